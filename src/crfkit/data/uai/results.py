"""Results: the task in the first line, then its answer.

PR      log10 Z
MAR     the number of variables, then for each how many values it has and their probabilities
MPE     the number of variables, then the value of each (MAP in some files)
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from crfkit.arrays import Float64s, Int32s
from crfkit.data.files import ByteSource, Target, open_target
from crfkit.data.uai.numbers import NumberFile
from crfkit.errors import ArgumentError

_TASKS = ("PR", "MAR", "MPE", "MAP")


@dataclass(frozen=True, eq=False)
class UAIResult:
    """The answer of one task; the others are None."""

    log_partition: float | None = None  # natural logarithm
    marginals: Sequence[Float64s] | None = None  # [V] probabilities of the values of each variable
    values: Int32s | None = None  # [V] the assignment with the highest score


def write_uai_result(
    target: Target,
    *,
    log_partition: float | None = None,
    marginals: Mapping[str, npt.ArrayLike] | Iterable[npt.ArrayLike] | None = None,
    values: npt.ArrayLike | None = None,
) -> None:
    """Write one of the three: log Z (natural logarithm), marginals in the order of the variables, or value ids."""
    if (log_partition is None) + (marginals is None) + (values is None) != 2:
        raise ArgumentError("write_uai_result: expected exactly one of log_partition, marginals and values.")
    if log_partition is not None:
        lines = ["PR", repr(float(log_partition) / math.log(10))]
    elif marginals is not None:
        arrays = marginals.values() if isinstance(marginals, Mapping) else marginals
        rows = [np.asarray(array, dtype=np.float64).tolist() for array in arrays]
        lines = [
            "MAR",
            " ".join([str(len(rows)), *(f"{len(row)} {' '.join(map(repr, row))}" for row in rows)]),
        ]
    else:
        ids = np.asarray(values).tolist()
        lines = ["MPE", " ".join(map(str, [len(ids), *ids]))]
    with open_target(target) as stream:
        stream.write("\n".join(lines) + "\n")


def read_uai_result(source: ByteSource) -> UAIResult:
    """Read a result (a path, also .gz, .xz, .bz2, or a binary stream).

    Of several solutions, separated by -BEGIN-, the last one counts. Earlier forms of the format have the number of samples
    before the answer; it must be 1.

    >>> import io
    >>> read_uai_result(io.BytesIO(b"MPE 3 0 1 0")).values.tolist()
    [0, 1, 0]
    """
    file = NumberFile(source, heading=True, marker=b"-BEGIN-")
    task = file.word.upper()
    if task not in _TASKS:
        file.fail(f"the file begins with {file.word!r}, expected one of {', '.join(_TASKS)}")
    if task == "PR":
        result = UAIResult(log_partition=_read_partition(file))
    elif task == "MAR":
        result = UAIResult(marginals=_read_marginals(file))
    else:
        result = UAIResult(values=_read_values(file))
    file.end()
    return result


def _read_partition(file: NumberFile) -> float:
    if file.n_left == 2:
        _one_sample(file)
    value = float(file.take(1, "log10 Z")[0])
    if math.isnan(value) or value == math.inf:
        file.fail(f"got {file.token(file.at - 1)}, expected log10 Z", file.at - 1)
    return value * math.log(10)


def _read_values(file: NumberFile) -> Int32s:
    if file.n_left > 1 and file.n_left != 1 + file.numbers[0] and file.n_left == 2 + file.numbers[1]:
        _one_sample(file)
    n = file.count("the number of variables")
    return np.array(file.counts(n, f"the values of {n:,} variables"), dtype=np.int32)


def _read_marginals(file: NumberFile) -> list[Float64s]:
    if not _is_marginals(file.numbers, 0) and _is_marginals(file.numbers, 1):
        _one_sample(file)
    found = []
    n = file.count("the number of variables")
    if n > file.n_left:
        file.fail(f"{n:,} variables do not fit in the {file.n_left:,} numbers that follow", file.at - 1)
    for variable in range(n):
        size = file.count(f"how many values variable {variable} has")
        numbers = file.take(size, f"{size:,} probabilities of variable {variable}")
        if not ((numbers >= 0) & (numbers <= 1)).all():
            place = file.at - size + int(np.argmin((numbers >= 0) & (numbers <= 1)))
            file.fail(f"variable {variable}: got {file.token(place)}, expected a probability of 0 … 1", place)
        found.append(numbers.copy())
    return found


def _is_marginals(numbers: Float64s, at: int) -> bool:
    """Whether lists of numbers from here on, as many as the first one says, end where the file ends."""
    if at >= len(numbers) or not 0 <= numbers[at] <= len(numbers):
        return False
    left, at = int(numbers[at]), at + 1
    while left and at < len(numbers) and 0 <= numbers[at] <= len(numbers):
        left, at = left - 1, at + 1 + int(numbers[at])
    return not left and at == len(numbers)


def _one_sample(file: NumberFile) -> None:
    n = file.count("the number of samples")
    if n != 1:
        file.fail(f"the file has {n} samples, expected 1", file.at - 1)
