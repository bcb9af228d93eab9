"""The values of one feature function on the parts of one input: called, checked, and brought into arrays.

A part is a label at a position, or a pair of neighbouring labels. P parts, K outputs.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from crfkit._core import Vocabulary
from crfkit.arrays import Float64s, Int32s, Int64s, offsets
from crfkit.errors import FunctionError
from crfkit.features.functions import FeatureFunction
from crfkit.features.given_sequences import is_sparse
from crfkit.features.wording import describe_value, shorten
from crfkit.structures import END, START

Objects = npt.NDArray[np.object_]

_SHORT, _DENSITY = 8, 0.4  # longer rows with a smaller share of values that are not 0 are kept as lists


class Parts(NamedTuple):
    """Where a function is called for one input."""

    sequence: int  # its number, for messages
    x: Any
    positions: Int32s  # [P]
    labels: Objects  # [P]
    befores: Objects | None  # [P]; None for functions of labels

    def until(self, n: int) -> "Parts":
        """The first n of them."""
        befores = None if self.befores is None else self.befores[:n]
        return Parts(self.sequence, self.x, self.positions[:n], self.labels[:n], befores)

    def place(self, k: int) -> str:
        """Part k, for error messages."""
        label = self.labels[k]
        where = f"sequence {self.sequence}, position {self.positions[k]}, "
        if self.befores is None:
            return f"{where}label {shorten(label)}"
        before = self.befores[k]
        if before is START:
            return f"{where}label {shorten(label)} at the start"
        what = "the end" if label is END else f"label {shorten(label)}"
        return f"{where}{what} after {shorten(before)}"


class Lists(NamedTuple):
    """Those values of parts that are not 0: part p has the outputs ids[ptr[p]:ptr[p + 1]]."""

    ptr: Int64s  # [P + 1]
    ids: Int32s
    values: Float64s


Values = Float64s | Lists  # a row for each part [P, K], or lists


class Outputs:
    """The outputs of a function: declared, or learned from the values that it gives to training data.

    `size` is None until a value is seen. Named outputs have a vocabulary; it grows while `growing`, unless the names were
    declared.
    """

    def __init__(self, function: FeatureFunction) -> None:
        declared = function.outputs
        self.function = function
        self.vocabulary: Vocabulary | None = None
        self.declared = declared is not None
        self.growing = False
        self._size = declared if isinstance(declared, int) else None
        if declared is not None and not isinstance(declared, int):
            self.set_names(declared)

    def adopt(self, known: "Outputs") -> None:
        """Take over the outputs that another model has for the function, unless they were declared."""
        if self.declared:
            return
        if known.vocabulary is not None:
            self.set_names(known.vocabulary.names())
        elif known.size is not None:
            self.set_size(known.size)

    def set_names(self, names: Sequence[str]) -> None:
        """The outputs are these."""
        self.vocabulary = Vocabulary()
        for name in names:
            self.vocabulary.add(name)

    @property
    def size(self) -> int | None:
        """K, as far as it is known."""
        return self._size if self.vocabulary is None else len(self.vocabulary)

    def set_size(self, size: int) -> None:
        """There are so many, without names."""
        self._size = size

    def name(self, k: int) -> str:
        """The name of output k: `f`, `f[3]` or `f:name`."""
        if self.vocabulary is not None:
            return f"{self.function.name}:{self.vocabulary.name(k)}"
        return self.function.name if self.size == 1 else f"{self.function.name}[{k}]"

    def evaluate(self, parts: Parts) -> Values:
        """The values of all parts of an input; InputError, naming the part, for any that cannot be used."""
        results = self._call(parts)
        if is_sparse(results):
            return self._from_matrix(results, parts)
        if isinstance(results, np.ndarray):
            if results.ndim not in (1, 2) or len(results) != len(parts.positions):
                raise self._error(
                    parts,
                    None,
                    f"gave {describe_value(results)}, expected a row for each of {len(parts.positions)} parts",
                )
            return self._from_rows(results, parts)
        if any(isinstance(result, Mapping) for result in results):
            return self._from_dicts(results, parts)
        if any(map(is_sparse, results)):
            return self._from_sparse_rows(results, parts)
        try:
            rows = np.array(results)
        except ValueError:  # rows of different length
            rows = np.empty(0, dtype=object)
        if rows.dtype.kind not in "fiub" or rows.ndim not in (1, 2):
            for k, result in enumerate(results):
                self._check_row(result, parts, k)
        return self._from_rows(rows, parts)

    def _call(self, parts: Parts) -> Any:
        """What the function gives: one result for each part, in a list or as rows of an array."""
        function, x = self.function.function, parts.x
        around = () if parts.befores is None else (parts.befores,)
        if not self.function.vectorised:
            results: list[Any] = []
            columns = (
                *(column.tolist() for column in around),
                parts.labels.tolist(),
                parts.positions.tolist(),
            )
            try:
                results.extend(map(function, [x] * len(parts.positions), *columns))
            except Exception as error:
                raise self._failure(parts, len(results), error) from error
            return results
        try:
            given = function(x, *around, parts.labels, parts.positions)
        except Exception as error:
            raise self._failure(parts, None, error) from error
        if is_sparse(given) or isinstance(given, np.ndarray):
            return given
        if not isinstance(given, list | tuple) or len(given) != len(parts.positions):
            what = f"gave {describe_value(given)}"
            if isinstance(given, list | tuple):
                what = f"gave a list of {len(given)}"
            raise self._error(parts, None, f"{what}, expected a row for each of {len(parts.positions)} parts")
        return list(given)

    def _from_rows(self, rows: npt.NDArray[Any], parts: Parts) -> Values:
        if rows.dtype.kind not in "fiub":
            raise self._error(parts, None, f"gave an array of {rows.dtype}, expected numbers")
        dense = np.ascontiguousarray(rows.reshape(len(rows), -1) if rows.size else rows[:, None], np.float64)
        if len(dense):
            self._check_size(dense.shape[1], parts, 0)
        if not np.isfinite(dense).all():
            k, column = (int(i) for i in np.argwhere(~np.isfinite(dense))[0])
            raise self._not_finite(parts, k, dense[k, column])
        return dense

    def _from_matrix(self, matrix: Any, parts: Parts) -> Values:
        """A SciPy sparse matrix [P, K]."""
        if matrix.ndim != 2 or matrix.shape[0] != len(parts.positions):
            raise self._error(
                parts,
                None,
                f"gave {describe_value(matrix)}, expected a row for each of {len(parts.positions)} parts",
            )
        if len(parts.positions):
            self._check_size(matrix.shape[1], parts, 0)
        rows = matrix.tocsr()
        values = np.asarray(rows.data, dtype=np.float64)
        ptr = rows.indptr.astype(np.int64)
        self._check_finite(values, ptr, parts)
        return Lists(ptr, rows.indices.astype(np.int32), values)

    def _from_sparse_rows(self, results: Sequence[Any], parts: Parts) -> Values:
        for k, result in enumerate(results):
            if not is_sparse(result) or (result.ndim == 2 and result.shape[0] != 1) or result.ndim > 2:
                raise self._error(parts, k, f"gave {describe_value(result)}, expected a sparse row")
            self._check_size(result.shape[-1], parts, k)
        rows = [result.tocoo() for result in results]
        ids = np.concatenate([row.coords[-1] if hasattr(row, "coords") else row.col for row in rows])
        values = np.concatenate([np.asarray(row.data, dtype=np.float64) for row in rows])
        ptr = offsets([len(row.data) for row in rows])
        self._check_finite(values, ptr, parts)
        return Lists(ptr, ids.astype(np.int32), values)

    def _from_dicts(self, results: Sequence[Any], parts: Parts) -> Values:
        ids: list[int] = []
        values: list[float] = []
        counts = []
        for k, result in enumerate(results):
            if not isinstance(result, Mapping):
                raise self._error(parts, k, f"gave {describe_value(result)}, for other parts a dict")
            before = len(ids)
            for key, value in result.items():
                number = self._id(key, parts, k)
                if isinstance(value, str) or not np.isscalar(value):
                    raise self._error(
                        parts, k, f"gave {shorten(value)} for {shorten(key)}, expected a number"
                    )
                if number >= 0:
                    ids.append(number)
                    values.append(float(value))  # type: ignore[arg-type]
            counts.append(len(ids) - before)
        found, ptr = np.array(values, dtype=np.float64), offsets(counts)
        self._check_finite(found, ptr, parts)
        return Lists(ptr, np.array(ids, dtype=np.int32), found)

    def _id(self, key: Any, parts: Parts, k: int) -> int:
        """The number of an output; −1 for a name that training has not seen."""
        if isinstance(key, str):
            if self.vocabulary is None:
                if self._size is not None:
                    raise self._error(
                        parts, k, f"gave the output {key!r}, expected numbers from 0 to {self._size - 1}"
                    )
                self.vocabulary = Vocabulary()
            number = self.vocabulary.get(key)
            if number < 0 and self.declared:
                raise self._error(parts, k, f"gave the output {key!r}, which is none of the declared ones")
            return self.vocabulary.add(key) if number < 0 and self.growing else number
        if not isinstance(key, int | np.integer) or isinstance(key, bool):
            raise self._error(
                parts, k, f"gave a dict with the key {shorten(key)}, expected numbers or names of outputs"
            )
        size = self.size if self.vocabulary is None or self.declared else None
        if size is None:
            raise self._error(
                parts,
                k,
                f"gave the output {key}, but the number of outputs is unknown: expected FeatureFunction(f, outputs=…)",
            )
        if not 0 <= key < size:
            raise self._error(parts, k, f"gave the output {key}, expected numbers from 0 to {size - 1}")
        return int(key)

    def _check_row(self, result: Any, parts: Parts, k: int) -> None:
        """Complain about a value that is neither a number nor a vector of the right length."""
        try:
            row = np.asarray(result)
        except ValueError:
            row = np.empty(0, dtype=object)
        if row.dtype.kind not in "fiub" or row.ndim > 1:
            raise self._error(
                parts, k, f"gave {describe_value(result)}, expected a number, a vector or a dict"
            )
        self._check_size(row.size, parts, k)

    def _check_size(self, size: int, parts: Parts, k: int) -> None:
        if self.vocabulary is not None and not self.declared:
            raise self._error(parts, k, "gave a vector, for other parts dicts with names")
        if self.size is None:
            self.set_size(size)
        if size != self.size:
            expected = f"{self.size} as {'declared' if self.declared else 'before'}"
            raise self._error(parts, k, f"gave {size} outputs, expected {expected}")

    def _check_finite(self, values: Float64s, ptr: Int64s, parts: Parts) -> None:
        if not np.isfinite(values).all():
            at = int(np.flatnonzero(~np.isfinite(values))[0])
            raise self._not_finite(parts, int(np.searchsorted(ptr, at, side="right")) - 1, values[at])

    def _not_finite(self, parts: Parts, k: int, value: float) -> FunctionError:
        return self._error(parts, k, f"gave {value}, expected finite numbers")

    def _failure(self, parts: Parts, k: int | None, error: Exception) -> FunctionError:
        return self._error(parts, k, f"failed ({type(error).__name__}: {error})")

    def _error(self, parts: Parts, k: int | None, what: str) -> FunctionError:
        where = f"sequence {parts.sequence}" if k is None else parts.place(k)
        return FunctionError(f"{where}: the feature function {self.function.name!r} {what}")


def join_values(pieces: Sequence[Values | int], size: int) -> Values:
    """The values of one input after the other; a number stands for so many parts without any.

    Rows where all have rows, unless these are nearly empty; otherwise lists.
    """
    filled = [np.zeros((piece, size)) if isinstance(piece, int) else piece for piece in pieces]
    rows = [piece for piece in filled if not isinstance(piece, Lists)]
    if len(rows) == len(filled):
        dense = np.concatenate([np.zeros((0, size)), *rows])
        sparse = size > _SHORT and np.count_nonzero(dense) < _DENSITY * dense.size
        return _list_values(dense) if sparse else dense
    lists = [piece if isinstance(piece, Lists) else _list_values(piece) for piece in filled]
    return Lists(
        offsets(np.concatenate([np.diff(piece.ptr) for piece in lists])),
        np.concatenate([piece.ids for piece in lists]),
        np.concatenate([piece.values for piece in lists]),
    )


def _list_values(rows: Float64s) -> Lists:
    """Rows as lists."""
    part, ids = np.nonzero(rows)
    ptr = np.searchsorted(part, np.arange(len(rows) + 1)).astype(np.int64)
    return Lists(ptr, ids.astype(np.int32), rows[part, ids])
