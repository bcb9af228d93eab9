"""The forms that an input sequence may have, and what they become.

    a list of positions                        string features (see `Encoder`), and dense rows inside them
    a NumPy matrix [T, K]                  the dense block "x"
    a SciPy sparse matrix [T, K]           features "x:j" with values
    a dict of these by name                each block under its own name; features of lists keep their own names

SciPy is recognised by its methods and never imported.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from crfkit import _core
from crfkit._core import Vocabulary
from crfkit.arrays import Float64s, Int32s, Int64s, offsets
from crfkit.errors import FeatureError
from crfkit.features.dataset import FeatureList
from crfkit.features.given_sequences import LIST_OF_POSITIONS, is_sparse, unusable_sequence
from crfkit.features.wording import describe_value

ROWS = "x"  # the name of a block that has none of its own
POSITIONS = ""  # the key of a plain list of positions

Blocks = dict[str, Any]  # block name → list of positions, NumPy matrix or sparse matrix
_EXPECTED = "expected a finite number, at most 1e20 in size"


def blocks_of(n: int, sequence: Any) -> Blocks:
    """Sequence n as blocks."""
    if isinstance(sequence, list | tuple):
        return {POSITIONS: sequence}
    if isinstance(sequence, Mapping):
        return {name: _block(n, name, block) for name, block in sequence.items()}
    if is_sparse(sequence) or (isinstance(sequence, np.ndarray) and sequence.ndim == 2):
        return {ROWS: sequence}
    if isinstance(sequence, np.ndarray) and sequence.ndim == 1 and sequence.dtype.kind == "O":
        return {POSITIONS: sequence.tolist()}
    if isinstance(sequence, np.ndarray):
        raise unusable_sequence(n, sequence, LIST_OF_POSITIONS)
    return {POSITIONS: list(sequence)}


def _block(n: int, name: Any, block: Any) -> Any:
    """A block of a sequence that is a dict: a list of positions or a matrix."""
    if not isinstance(name, str):
        raise FeatureError(f"sequence {n}: a block has the name {describe_value(name)}, expected a string")
    if isinstance(block, list | tuple) or is_sparse(block):
        return block
    if isinstance(block, np.ndarray) and (block.ndim == 2 or block.dtype.kind == "O"):
        return block if block.ndim == 2 else block.tolist()
    if isinstance(block, str | bytes | np.ndarray | Mapping) or not isinstance(block, Iterable):
        raise FeatureError(
            f"sequence {n}: block {name!r} is {describe_value(block)}, expected a list of positions or a matrix "
            f"(if these dicts are the positions of one sequence, write [X] for X)"
        )
    return list(block)


def n_positions(n: int, blocks: Blocks) -> int:
    """T of a sequence, on which its blocks must agree."""
    sizes = {
        name: block.shape[0] if hasattr(block, "shape") else len(block) for name, block in blocks.items()
    }
    if not sizes:
        raise FeatureError(f"sequence {n} is an empty dict, expected at least one block")
    (first, size), *others = sizes.items()
    for name, other in others:
        if other != size:
            raise FeatureError(
                f"sequence {n}: block {first!r} has {size} positions but block {name!r} has {other}"
            )
    return int(size)


class Place:
    """Where a position of the flat arrays lies: its sequence, and its number there."""

    def __init__(self, sequence_ptr: Int64s) -> None:
        self.sequence_ptr = sequence_ptr

    def __call__(self, position: int) -> str:
        """The place of a position, for error messages."""
        n = int(np.searchsorted(self.sequence_ptr, position, side="right")) - 1
        return f"sequence {n}, position {position - int(self.sequence_ptr[n])}"


def _usable(values: Float64s) -> npt.NDArray[np.bool_]:
    """Which values can be trained with."""
    return np.abs(values) <= _core.LARGEST_VALUE  # NaN is not


DenseRows = tuple[int, npt.NDArray[Any]]  # the first position, and a matrix [R, K] from there on


def dense_block(name: str, pieces: Iterable[DenseRows], size: int | None, place: Place) -> Float64s:
    """A block [T, K] from its rows, 0 where a position has none; `size` is the K of training, None while training."""
    n_all = int(place.sequence_ptr[-1])
    block = None if size is None else np.zeros((n_all, size))
    for position, rows in pieces:
        if block is None:
            block = np.zeros((n_all, rows.shape[1]))
        if rows.shape[1] != block.shape[1]:
            than = "in training" if size is not None else "at the positions before"
            raise FeatureError(
                f"{place(position)}: block {name!r} has {rows.shape[1]} columns, expected {block.shape[1]} as {than}"
            )
        if rows.dtype.kind not in "fiub":
            raise FeatureError(
                f"{place(position)}: block {name!r} holds values of type {rows.dtype}, expected numbers"
            )
        block[position : position + len(rows)] = rows
    assert block is not None  # a block without a size has rows
    if not _usable(block).all():
        position, column = np.argwhere(~_usable(block))[0].tolist()
        raise FeatureError(
            f"{place(position)}: column {column} of block {name!r} has the value {block[position, column]}, {_EXPECTED}"
        )
    return block


class SparseRows(NamedTuple):
    """Rows of a sparse block over all T positions."""

    position_ptr: Int64s  # [T + 1]
    columns: Int64s  # [nnz]
    values: Float64s  # [nnz]


def stack_matrices(name: str, matrices: Sequence[Any], lengths: Sequence[int], place: Place) -> SparseRows:
    """The sparse matrices of all sequences, one under the other; None stands for empty rows."""
    counts: list[npt.NDArray[Any]] = []
    columns: list[npt.NDArray[Any]] = []
    values: list[npt.NDArray[Any]] = []
    for matrix, length in zip(matrices, lengths, strict=True):
        if matrix is None:
            counts.append(np.zeros(length, np.int64))
            continue
        csr = matrix.tocsr()
        counts.append(np.diff(csr.indptr))
        columns.append(csr.indices)
        values.append(csr.data)
    rows = SparseRows(
        offsets(np.concatenate([np.zeros(0, np.int64), *counts])),
        np.concatenate([np.zeros(0, np.int64), *columns]).astype(np.int64),
        np.concatenate([np.zeros(0), *values]).astype(np.float64),
    )
    bad = np.flatnonzero(~_usable(rows.values))
    if len(bad):
        position = int(np.searchsorted(rows.position_ptr, bad[0], side="right")) - 1
        raise FeatureError(
            f"{place(position)}: feature '{name}:{rows.columns[bad[0]]}' has the value {rows.values[bad[0]]}, {_EXPECTED}"
        )
    return rows


def sparse_features(name: str, rows: SparseRows, vocabulary: Vocabulary, *, grow: bool) -> FeatureList:
    """Column j of a sparse block as the feature "name:j"; when not `grow`, unknown ones are dropped."""
    columns, first, places = np.unique(rows.columns, return_index=True, return_inverse=True)
    ids = np.empty(len(columns), dtype=np.int32)
    look_up = vocabulary.add if grow else vocabulary.get
    for k in np.argsort(first).tolist():  # ids in order of first occurrence
        ids[k] = look_up(vocabulary.name_of(f"{name}:{columns[k]}"))
    found = ids[places]
    known = found >= 0
    position_ptr = offsets(known)[rows.position_ptr]
    return FeatureList(position_ptr, found[known], rows.values[known])


def merge_lists(lists: Sequence[FeatureList]) -> FeatureList:
    """The features of several lists over the same positions, list after list at each position."""
    if len(lists) == 1:
        return lists[0]
    counts = np.stack([np.diff(part.position_ptr) for part in lists], axis=1)  # [T, lists]
    begins = offsets(counts.ravel())[:-1].reshape(counts.shape)
    total = int(counts.sum())
    ids: Int32s = np.empty(total, dtype=np.int32)
    values = None if all(part.values is None for part in lists) else np.ones(total)
    for k, part in enumerate(lists):
        shift = np.repeat(begins[:, k] - part.position_ptr[:-1], counts[:, k])
        places = np.arange(len(part.ids)) + shift
        ids[places] = part.ids
        if values is not None and part.values is not None:
            values[places] = part.values
    return FeatureList(offsets(counts.sum(axis=1)), ids, values)
