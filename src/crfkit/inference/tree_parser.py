"""The questions on the trees of whole treebanks, at the weights of a trained parser, on several threads."""

from __future__ import annotations

import numpy as np

from crfkit import _core
from crfkit.arrays import Float64s, Int32s


class TreeParser:
    """A layout of weights and their values, ready to answer. Treebanks are those of `crfkit.features.encode_sentences`."""

    def __init__(self, layout: _core.ArcLayout, weights: Float64s, *, single_root: bool = True) -> None:
        if not np.isfinite(weights).all():
            raise ValueError("TreeParser: a weight is NaN or infinite, expected finite numbers.")
        self.single_root = bool(single_root)
        self._n_labels = layout.n_labels
        self._core = _core.TreeParser(
            layout, np.ascontiguousarray(weights, dtype=np.float64), self.single_root
        )

    def decode(
        self, treebank: _core.Treebank, *, minimum_risk: bool = False, n_threads: int = 1
    ) -> tuple[Int32s, Int32s]:
        """Heads and labels [T] of the best trees, or of those with the most arcs right in expectation."""
        return self._core.best(treebank, minimum_risk, n_threads)

    def k_best(
        self, treebank: _core.Treebank, k: int, n_threads: int = 1
    ) -> list[list[tuple[float, Int32s, Int32s]]]:
        """(score, heads, labels) of the k best trees of each sentence, best first."""
        return self._core.k_best(treebank, k, n_threads)

    def log_partitions(
        self,
        treebank: _core.Treebank,
        heads: Int32s | None = None,
        labels: Int32s | None = None,
        n_threads: int = 1,
    ) -> Float64s:
        """log Z of every sentence, [N]; with heads and labels (−1: unknown), over the trees that agree."""
        return self._core.log_partitions(treebank, heads, labels, n_threads)

    def marginals(
        self, treebank: _core.Treebank, *, labelled: bool = False, n_threads: int = 1
    ) -> list[Float64s]:
        """P(h → m) of every sentence, [T + 1, T + 1], or P(h → m with label r), [T + 1, T + 1, R]."""
        return self._cut(treebank, self._core.marginals(treebank, labelled, n_threads), labelled)

    def scores(self, treebank: _core.Treebank, n_threads: int = 1) -> list[Float64s]:
        """Scores of the labelled arcs of every sentence, [T + 1, T + 1, R]."""
        return self._cut(treebank, self._core.scores(treebank, n_threads), True)

    def _cut(self, treebank: _core.Treebank, flat: Float64s, labelled: bool) -> list[Float64s]:
        depth = (self._n_labels,) if labelled else ()
        by_arc = flat.reshape(-1, *depth)
        ptr = treebank.arc_ptr.tolist()
        sides = (np.diff(treebank.sentence_ptr) + 1).tolist()
        return [by_arc[ptr[n] : ptr[n + 1]].reshape(side, side, *depth) for n, side in enumerate(sides)]
