"""Evidence: the values of variables that were observed.

2  5 0  7 1          the number of variables, then each with its value
1  2  5 0  7 1       the same in an earlier form of the format, after the number of samples
"""

from __future__ import annotations

from collections.abc import Mapping

from crfkit.data.files import ByteSource, source_name
from crfkit.data.uai.numbers import NumberFile
from crfkit.errors import ArgumentError, FileFormatError

_LARGEST = (1 << 31) - 1


def read_uai_evidence(source: ByteSource, sample: int | None = None) -> dict[int, int]:
    """Read an evidence file (a path, also .gz, .xz, .bz2, or a binary stream): variable → its value, both as numbers.

    The questions of `crfkit.inference` take it as `allowed`. A file with several samples needs to know which, from 0.

    >>> import io
    >>> read_uai_evidence(io.BytesIO(b"2 5 0 7 1"))
    {5: 0, 7: 1}
    """
    file = NumberFile(source)
    samples = _samples(file)
    if sample is None and len(samples) > 1:
        raise ArgumentError(
            f"{file.name}: the file has {len(samples)} samples, expected an argument `sample`."
        )
    if sample is not None and not 0 <= sample < len(samples):
        raise ArgumentError(f"{file.name}: got the sample {sample}, expected 0 … {len(samples) - 1}.")
    return samples[sample or 0] if samples else {}


def _samples(file: NumberFile) -> list[dict[int, int]]:
    n = file.count("the number of observed variables")
    left = file.n_left
    if left == 2 * n:
        found = [_pairs(file, n)]
        file.end()
        return found
    try:
        return _earlier_form(file, n)
    except FileFormatError as error:
        raise FileFormatError(
            f"{error}. The file begins with {n:,}, and {left:,} numbers follow: {2 * n:,} would be the observed variables, "
            f"each with its value; as these are not, {n:,} was read as the number of samples."
        ) from None


def _earlier_form(file: NumberFile, n: int) -> list[dict[int, int]]:
    """Samples after their number, which is not trusted: each takes a number of the file."""
    found = [
        _pairs(file, file.count(f"the number of observed variables of sample {number} of {n}"))
        for number in range(n)
    ]
    file.end()
    return found


def _pairs(file: NumberFile, n: int) -> dict[int, int]:
    begin = file.at
    numbers = file.counts(2 * n, f"{n:,} observed variables, each with its value", largest=_LARGEST)
    values: dict[int, int] = {}
    for place, (variable, value) in enumerate(zip(numbers[::2], numbers[1::2], strict=True)):
        if values.setdefault(variable, value) != value:
            file.fail(
                f"variable {variable} has the values {values[variable]} and {value}, expected one",
                begin + 2 * place,
            )
    return values


def as_evidence(evidence: ByteSource | Mapping[int, int] | None) -> tuple[dict[int, int], str]:
    """Evidence from a file or as it was given, and how messages begin."""
    if evidence is None or isinstance(evidence, Mapping):
        return {int(v): int(x) for v, x in (evidence or {}).items()}, "evidence"
    return read_uai_evidence(evidence), source_name(evidence)
