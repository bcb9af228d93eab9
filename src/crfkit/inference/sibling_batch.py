"""The questions on projective trees of the second order, of many sentences at once, on several threads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from crfkit import _core
from crfkit.arrays import Float64s
from crfkit.errors import ArgumentError, ShapeError
from crfkit.inference.tree_batch import TreeBatch
from crfkit.structures import (
    ProjectiveTree,
    ScoredOutput,
    TreeParts,
    numeric,
    possible_siblings,
    sibling_scores,
)

Scores = Sequence[TreeParts] | TreeParts


class SiblingTreeBatch(TreeBatch):
    """Sentences with scores of their arcs and of adjacent siblings, and the questions about their projective trees.

    `scores` is a list of `TreeParts` for sentences of any lengths, or one `TreeParts` of padded arrays, [N, T + 1, T + 1] or
    [N, T + 1, T + 1, R] and [N, T + 1, T + 1, T + 1], with the `lengths` [N] of the sentences. Marginals and directions
    have the form of the scores. A padded array of doubles in which all sentences have the same length is neither copied nor
    checked beforehand: it must not change while it is used, and questions raise ArgumentError for NaN and +inf. All else is
    as in `TreeBatch`.

    >>> zeros = TreeParts(np.zeros((4, 4)), np.zeros((4, 4, 4)))
    >>> np.exp(SiblingTreeBatch(ProjectiveTree(order=2), [zeros]).log_partition()).round(6)
    array([7.])
    """

    _orders = (2,)

    def __init__(
        self,
        structure: ProjectiveTree,
        scores: Scores,
        lengths: npt.ArrayLike | None = None,
        *,
        allowed: Sequence[Any] | None = None,
        n_threads: int = 1,
    ) -> None:
        arcs, siblings = _split(scores, lengths is not None)
        super().__init__(structure, arcs, lengths, allowed=allowed, n_threads=n_threads)
        self._siblings = self._join_siblings(siblings, "Scores of siblings")

    def _join_siblings(self, given: Any, what: str) -> Float64s:
        """Numbers of siblings of all sentences, flat; a view where it can be one, unchecked: the core checks."""
        if self._padded is not None:
            side = self._padded[1]
            given = numeric(given, what)
            if given.shape != (len(self), side, side, side):
                raise ShapeError(
                    f"{what}: expected [N, T + 1, T + 1, T + 1] = {[len(self), side, side, side]}, got {list(given.shape)}."
                )
            if self._full and given.dtype == np.float64:
                return np.ascontiguousarray(given, dtype=np.float64).reshape(-1)
            given = [
                array[: n + 1, : n + 1, : n + 1]
                for array, n in zip(given, self._lengths.tolist(), strict=True)
            ]
        elif len(given) != len(self):
            raise ShapeError(f"{what}: got {len(given)} sentences, expected {len(self)}.")
        arrays = [
            sibling_scores(values, n, f"{what}, sentence {i}").reshape(-1)
            for i, (values, n) in enumerate(zip(given, self._lengths.tolist(), strict=True))
        ]
        return np.concatenate(arrays or [np.zeros(0)])

    def _at(self, scores: Float64s, siblings: Float64s | None = None) -> _core.ScoredTrees:
        return super()._at(scores, self._siblings if siblings is None else siblings)

    def marginals(self) -> Any:
        """∇ log Z: the probability of every part, in the form of the scores."""
        return self.log_partition_and_marginals()[1]

    def log_partition_and_marginals(self) -> tuple[Float64s, Any]:
        """Both at the price of the second."""
        log_partition, arcs, siblings = self._ask("marginals").marginals()
        return log_partition, self._parts(arcs, siblings)

    def hessian_vector(self, direction: Any) -> Any:
        """∇² log Z · direction; the direction has the form of the scores, and is finite."""
        arcs, siblings = _split(direction, self._padded is not None)
        moves = self._join_siblings(siblings, "Direction of siblings")
        if not np.isfinite(moves[self._possible()]).all():
            raise ArgumentError(
                "Hessian–vector product: the direction of siblings holds −inf, expected finite numbers."
            )
        return self._parts(*self._ask("hessian_vector").hessian_vector(self._direction(arcs), moves))

    def minimum_risk(self) -> list[ScoredOutput]:
        """The tree with the most expected correct arcs (with their labels), Σ_m P(arc into m), and this number."""
        _, marginals, _ = self._ask("marginals").marginals()
        arcs = np.where(self._scores > -np.inf, marginals, -np.inf)
        return self._bests(self._at(arcs, np.where(self._siblings > -np.inf, 0.0, -np.inf)))

    def _possible(self) -> npt.NDArray[np.bool_]:
        """Which numbers of siblings are read, flat."""
        masks = [possible_siblings(n).reshape(-1) for n in self._lengths.tolist()]
        return np.concatenate(masks or [np.zeros(0, dtype=np.bool_)])

    def _parts(self, arcs: Float64s, siblings: Float64s | None) -> TreeParts | list[TreeParts]:
        """Numbers of parts in the form of the scores; 0 in the padding."""
        of_arcs = self._in_form(arcs)
        if self._full and self._padded is not None:
            side = self._padded[1]
            whole = cast(Float64s, siblings).reshape(len(self), side, side, side)
            return TreeParts(cast(Float64s, of_arcs), whole)
        of_siblings, begin = [], 0
        for n in self._lengths.tolist():
            size = (n + 1) ** 3
            piece = cast(Float64s, siblings)[begin : begin + size]
            of_siblings.append(piece.reshape(n + 1, n + 1, n + 1))
            begin += size
        if self._padded is None:
            return [TreeParts(*parts) for parts in zip(of_arcs, of_siblings, strict=True)]
        side = self._padded[1]
        padded = np.zeros((len(self), side, side, side))
        for whole, piece in zip(padded, of_siblings, strict=True):
            whole[: len(piece), : len(piece), : len(piece)] = piece
        return TreeParts(cast(Float64s, of_arcs), padded)


def _split(scores: Any, padded: bool) -> tuple[Any, Any]:
    """The numbers of arcs and of siblings."""
    if padded:
        return check_parts(scores)
    if isinstance(scores, TreeParts):
        raise ArgumentError("SiblingTreeBatch: got one TreeParts, expected a list of them, or lengths too.")
    pairs = [check_parts(parts) for parts in scores]
    return [arcs for arcs, _ in pairs], [siblings for _, siblings in pairs]


def check_parts(scores: Any) -> tuple[Any, Any]:
    """(arcs, siblings); ArgumentError for anything but a pair."""
    if not isinstance(scores, tuple) or len(scores) != 2:
        raise ArgumentError(
            f"ProjectiveTree of order 2: expected TreeParts(arcs, siblings), got {type(scores).__name__}."
        )
    arcs, siblings = scores
    return arcs, siblings
