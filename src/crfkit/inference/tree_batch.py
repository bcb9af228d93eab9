"""The questions on the spanning or projective trees of many sentences at once, on several threads."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from crfkit import _core
from crfkit.arrays import Float64s, Int32s
from crfkit.errors import ArgumentError, ShapeError
from crfkit.inference.problem import check_k, check_n
from crfkit.inference.tree_memory import check_memory
from crfkit.structures import ProjectiveTree, ScoredOutput, SpanningTree, allowed_arcs, tree_scores


class TreeBatch:
    """Sentences with scores of their arcs, and the questions about their trees: spanning trees, or projective ones.

    A `ProjectiveTree` of order 2 has scores of siblings too: `SiblingTreeBatch`.

    `scores` is a list of arrays [T + 1, T + 1] (or all [T + 1, T + 1, R]), or one padded array [N, T + 1, T + 1] or
    [N, T + 1, T + 1, R] with the `lengths` [N] of the sentences. `allowed` is a list of what is known about each (None:
    nothing), in the forms of `crfkit.structures.allowed_arcs`. The answers do not depend on `n_threads`. Scores are copied:
    what happens to the arrays later changes nothing.

    >>> trees = TreeBatch(SpanningTree(), [np.zeros((3, 3)), np.zeros((4, 4))])
    >>> np.exp(trees.log_partition()).round(6)
    array([2., 9.])
    >>> trees = TreeBatch(ProjectiveTree(), np.zeros((2, 4, 4)), lengths=[2, 3])
    >>> np.exp(trees.log_partition()).round(6)
    array([2., 7.])
    """

    _orders: tuple[int, ...] = (1,)  # of projective trees

    def __init__(
        self,
        structure: SpanningTree | ProjectiveTree,
        scores: Sequence[npt.ArrayLike] | npt.NDArray[np.generic],
        lengths: npt.ArrayLike | None = None,
        *,
        allowed: Sequence[Any] | None = None,
        n_threads: int = 1,
    ) -> None:
        if not isinstance(structure, SpanningTree | ProjectiveTree):
            raise ArgumentError(
                f"TreeBatch: expected a SpanningTree or a ProjectiveTree, got {type(structure).__name__}."
            )
        if getattr(structure, "order", 1) not in self._orders:
            raise ArgumentError(
                f"{type(self).__name__}: got a {structure}, expected order {self._orders[0]}: trees of order 1 are asked by "
                f"TreeBatch, those of order 2 by SiblingTreeBatch."
            )
        self.structure, self._n_threads = structure, n_threads
        self._padded: tuple[int, ...] | None = None
        self._full = False  # no sentence is shorter than the padded array
        if lengths is None:
            matrices = [tree_scores(values, f"Scores of sentence {n}") for n, values in enumerate(scores)]
        else:
            matrices = self._cut(np.asarray(scores), np.asarray(lengths))
        self._shapes = [matrix.shape for matrix in matrices]
        self._labels = _common_labels(self._shapes)
        self._lengths = np.array([shape[0] - 1 for shape in self._shapes], dtype=np.int64)
        self._scores = _flat(np.asarray(scores)) if self._full else _join(matrices)
        if allowed is not None:
            self._forbid(allowed)

    @cached_property
    def _trees(self) -> _core.ScoredTrees:
        return self._at(self._scores)

    def _ask(self, question: str) -> _core.ScoredTrees:
        """The sentences, for one question; SizeLimitError where it takes too much memory."""
        if isinstance(self.structure, ProjectiveTree):
            longest = int(self._lengths.max(initial=0))
            n_threads = min(self._n_threads, len(self))
            check_memory(question, longest, self.structure, self._labels or 1, n_threads)
        return self._trees

    def _at(self, scores: Float64s, siblings: Float64s | None = None) -> _core.ScoredTrees:
        """The sentences with these scores."""
        single_root = bool(self.structure.single_root)
        projective = isinstance(self.structure, ProjectiveTree)
        core = _core.ScoredProjectiveTrees if projective else _core.ScoredTrees
        return core(scores, self._lengths, self._labels or 1, single_root, self._n_threads, siblings)

    def _cut(self, padded: npt.NDArray[np.generic], lengths: npt.NDArray[np.generic]) -> list[Float64s]:
        """The sentences of a padded batch."""
        if padded.ndim not in (3, 4) or padded.shape[1] != padded.shape[2] or padded.shape[1] == 0:
            raise ShapeError(
                f"TreeBatch: expected [N, T + 1, T + 1] or [N, T + 1, T + 1, R], got {list(padded.shape)}."
            )
        most = padded.shape[1] - 1
        if lengths.shape != padded.shape[:1] or (lengths.size and lengths.dtype.kind not in "iu"):
            raise ShapeError(
                f"TreeBatch: lengths are {lengths.dtype} with shape {list(lengths.shape)}, expected integers "
                f"[N] = [{len(padded)}]."
            )
        self._padded, self._full = padded.shape, bool((lengths == most).all())
        if self._full and padded.size and padded.dtype == np.float64:
            doubles = np.asarray(padded, dtype=np.float64)
            if (doubles < np.inf).all():  # nothing is left to refuse
                return list(doubles)
        cut = []
        for n, length in enumerate(lengths.tolist()):
            if not 0 <= length <= most:
                raise ShapeError(f"TreeBatch: sentence {n} has length {length}, expected 0 to {most}.")
            cut.append(tree_scores(padded[n, : length + 1, : length + 1], f"Scores of sentence {n}"))
        return cut

    def _forbid(self, allowed: Sequence[Any]) -> None:
        """Give arcs that the allowed labels excludes the score −inf."""
        if len(allowed) != len(self._shapes):
            raise ShapeError(
                f"TreeBatch: allowed labels for {len(allowed)} sentences, scores for {len(self._shapes)}."
            )
        masks = [
            np.ones(shape, dtype=np.bool_) if (mask := allowed_arcs(known, shape)) is None else mask
            for known, shape in zip(allowed, self._shapes, strict=True)
        ]
        self._scores = np.where(_join(masks), self._scores, -np.inf)

    def __len__(self) -> int:
        return len(self._shapes)

    def log_partition(self) -> Float64s:
        """log Z of each sentence, [N]; −inf where no tree exists."""
        return self._ask("log_partition").log_partition()

    def marginals(self) -> list[Float64s] | Float64s:
        """∇ log Z: the probability of every arc, in the form of the scores."""
        return self._in_form(self._ask("marginals").marginals()[1])

    def log_partition_and_marginals(self) -> tuple[Float64s, list[Float64s] | Float64s]:
        """Both at the price of the second."""
        log_partition, marginals, _ = self._ask("marginals").marginals()
        return log_partition, self._in_form(marginals)

    def hessian_vector(
        self, direction: Sequence[npt.ArrayLike] | npt.NDArray[np.generic]
    ) -> list[Float64s] | Float64s:
        """∇² log Z · direction; the direction has the form of the scores, and is finite."""
        return self._in_form(self._ask("hessian_vector").hessian_vector(self._direction(direction))[0])

    def _direction(self, direction: Sequence[npt.ArrayLike] | npt.NDArray[np.generic]) -> Float64s:
        """A direction of the scores of arcs, flat."""
        if self._padded is not None:
            given = np.asarray(direction)
            if given.shape != self._padded:
                raise ShapeError(
                    f"Hessian–vector product: the direction has shape {list(given.shape)}, expected {list(self._padded)}."
                )
            moves = self._cut(given, self._lengths)
        else:
            moves = [tree_scores(values, f"Direction of sentence {n}") for n, values in enumerate(direction)]
        shapes = [move.shape for move in moves]
        if shapes != self._shapes:
            raise ShapeError(
                f"Hessian–vector product: the direction has shapes {list(map(list, shapes))}, expected those of the scores, "
                f"{list(map(list, self._shapes))}."
            )
        for move in moves:
            if not np.isfinite(move[:, 1:][~np.eye(len(move), dtype=np.bool_)[:, 1:]]).all():
                raise ArgumentError(
                    "Hessian–vector product: the direction holds −inf, expected finite numbers."
                )
        return _join(moves)

    def entropy(self) -> Float64s:
        """−Σ_y p(y) log p(y) of each sentence, in nats, [N]; no number of the size of the scores enters."""
        return self._ask("entropy").entropy()

    def decode(self) -> list[ScoredOutput]:
        """The highest-scoring tree of each sentence."""
        return self._bests(self._ask("decode"))

    def minimum_risk(self) -> list[ScoredOutput]:
        """The tree with the most expected correct arcs (with their labels), Σ_m P(arc into m), and this number."""
        _, marginals, _ = self._ask("marginals").marginals()
        return self._bests(self._at(np.where(self._scores > -np.inf, marginals, -np.inf)))

    def k_best(self, k: int) -> list[list[ScoredOutput]]:
        """The k highest-scoring trees of each sentence, best first, all distinct; fewer where fewer exist."""
        check_k(k)
        found = self._ask("k_best").k_best(k)
        return [
            [ScoredOutput(self._output(heads, labels), score) for score, heads, labels in trees]
            for trees in found
        ]

    def sample(self, n: int = 1, random_state: int | np.random.Generator | None = None) -> list[Int32s]:
        """`n` independent trees of each sentence drawn from p(y), [n, T] or [n, T, 2]."""
        check_n(n)
        n_uniforms = n * int(self._lengths.sum()) * self._trees.n_uniforms
        uniforms = np.random.default_rng(random_state).random(n_uniforms)
        heads, labels = self._ask("sample").sample(n, uniforms)
        outputs, begin = [], 0
        for length in self._lengths.tolist():
            here = slice(begin, begin + n * length)
            shape = (n, length) if self._labels is None else (n, length, 2)
            outputs.append(self._output(heads[here], labels[here]).reshape(shape))
            begin += n * length
        return outputs

    def _bests(self, core: _core.ScoredTrees) -> list[ScoredOutput]:
        found, heads, labels = core.decode()
        ends = np.cumsum(self._lengths).tolist()
        return [
            ScoredOutput(self._output(heads[end - n : end], labels[end - n : end]), score)
            for score, n, end in zip(found.tolist(), self._lengths.tolist(), ends, strict=True)
        ]

    def _output(self, heads: Int32s, labels: Int32s) -> Int32s:
        return heads if self._labels is None else np.stack([heads, labels], axis=-1)

    def _in_form(self, flat: Float64s) -> list[Float64s] | Float64s:
        """Numbers for each arc in the form of the scores; 0 in the padding."""
        if self._full and self._padded is not None:
            return flat.reshape(self._padded)
        pieces, begin = [], 0
        for shape in self._shapes:
            size = math.prod(shape)
            pieces.append(flat[begin : begin + size].reshape(shape))
            begin += size
        if self._padded is None:
            return pieces
        padded = np.zeros(self._padded)
        for n, piece in enumerate(pieces):
            padded[n, : len(piece), : len(piece)] = piece
        return padded


def _common_labels(shapes: list[tuple[int, ...]]) -> int | None:
    """R of all sentences; None for unlabelled trees."""
    kinds = {shape[2:] for shape in shapes}
    if len(kinds) > 1:
        numbers = sorted(kind[0] if kind else 0 for kind in kinds)
        raise ShapeError(f"TreeBatch: sentences have {numbers} labels (0: none), expected the same for all.")
    return next((kind[0] for kind in kinds if kind), None)


def _flat(array: npt.NDArray[Any]) -> Float64s:
    """All numbers in a row."""
    return np.array(array, dtype=np.float64, order="C").reshape(-1)


def _join(arrays: Sequence[npt.NDArray[Any]]) -> npt.NDArray[Any]:
    """One after the other, flat; a copy."""
    return np.concatenate([array.reshape(-1) for array in arrays] or [np.zeros(0)])
