"""How many spanning trees a graph has: the matrix-tree theorem in whole numbers."""

import numpy as np
import numpy.typing as npt

from crfkit.errors import ArgumentError, ShapeError
from crfkit.inference.spanning_tree import TreeProblem
from crfkit.structures import SpanningTree

Matrix = list[list[int]]


def count(structure: SpanningTree, allowed: npt.ArrayLike) -> int:
    """The exact number of trees of a graph: bools [T + 1, T + 1] (head, dependent), or [T + 1, T + 1, R] with labels.

    It is a determinant of whole numbers of any length (Koo et al. 2007), for up to some hundred words; `log_count` has no
    such limit.

    >>> count(SpanningTree(), np.ones((21, 21), dtype=bool))  # 20¹⁹
    5242880000000000000000000
    """
    arcs = _number_of_arcs(structure, allowed)  # [T + 1, T + 1]
    n_words = len(arcs) - 1
    root = [int(number) for number in arcs[0, 1:]]
    between = [[int(number) for number in row] for row in arcs[1:, 1:]]
    # L_mm = number of arcs into m, L_hm = −(arcs h → m); Z = det L, or with its first row replaced by the root's arcs.
    laplacian = [[-number for number in row] for row in between]
    for m in range(n_words):
        into = sum(between[h][m] for h in range(n_words) if h != m)
        laplacian[m][m] = into + (0 if structure.single_root else root[m])
    if structure.single_root and n_words:
        laplacian[0] = root
    return _determinant(laplacian)


def log_count(structure: SpanningTree, allowed: npt.ArrayLike) -> float:
    """The logarithm of the number of trees of a graph of any size; −inf when there is none."""
    numbers = _number_of_arcs(structure, allowed)
    with np.errstate(divide="ignore"):
        return TreeProblem(structure, np.log(numbers)).log_partition()


def _number_of_arcs(structure: SpanningTree, allowed: npt.ArrayLike) -> npt.NDArray[np.int64]:
    """How many arcs lead from each head to each dependent, [T + 1, T + 1]: 0 and 1, or up to R."""
    if not isinstance(structure, SpanningTree):
        raise ArgumentError(f"count: expected a SpanningTree, got {type(structure).__name__}.")
    given = np.asarray(allowed)
    if (
        given.dtype != np.bool_
        or given.ndim not in (2, 3)
        or given.shape[0] != given.shape[1]
        or not len(given)
    ):
        raise ShapeError(
            f"count: expected bools [T + 1, T + 1] or [T + 1, T + 1, R], got {given.dtype} with shape {list(given.shape)}."
        )
    return given.astype(np.int64) if given.ndim == 2 else given.sum(axis=2, dtype=np.int64)


def _determinant(rows: Matrix) -> int:
    """By elimination in which every division leaves no remainder (Bareiss 1968)."""
    sign, before = 1, 1
    rows = [list(row) for row in rows]
    while len(rows) > 1:
        first = next((i for i, row in enumerate(rows) if row[0] != 0), None)
        if first is None:
            return 0
        if first:
            rows[0], rows[first], sign = rows[first], rows[0], -sign
        (pivot, *across), *below = rows
        rows = [
            [(pivot * x - row[0] * y) // before for x, y in zip(row[1:], across, strict=True)]
            for row in below
        ]
        before = pivot
    return sign * rows[0][0] if rows else 1
