"""The spanning or projective trees of one sentence. Formulas stand in `crfkit.structures.spanning_tree`.

Many sentences at once, on several threads: `TreeBatch`.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from crfkit.arrays import Int32s
from crfkit.inference.tree_batch import TreeBatch
from crfkit.structures import (
    AllowedLabels,
    ProjectiveTree,
    ScoredOutput,
    SpanningTree,
    allowed_arcs,
    is_tree,
    tree_output,
    tree_scores,
)

Allowed = AllowedLabels | npt.ArrayLike | None


class TreeProblem:
    """A sentence with the scores of its arcs: a batch of one sentence."""

    _batch: TreeBatch

    def __init__(
        self, structure: SpanningTree | ProjectiveTree, scores: npt.ArrayLike, allowed: Allowed = None
    ) -> None:
        self.structure, self.arcs = structure, tree_scores(scores)
        mask = allowed_arcs(allowed, self.arcs.shape)
        if mask is not None:
            self.arcs = np.where(mask, self.arcs, -np.inf)
        self._batch = TreeBatch(structure, [self.arcs])

    def log_partition(self) -> float:
        """log Z; −inf when no tree exists."""
        return float(self._batch.log_partition()[0])

    def marginals(self) -> Any:
        """∇ log Z: the probability of every arc, in the shape of the scores; 0 on the diagonal and in column 0."""
        return self._batch.marginals()[0]

    def hessian_vector(self, direction: Any) -> Any:
        """∇² log Z · direction."""
        return self._batch.hessian_vector([direction])[0]

    def decode(self) -> ScoredOutput:
        """The highest-scoring tree: heads [T], or heads and labels [T, 2]."""
        return self._batch.decode()[0]

    def minimum_risk(self) -> ScoredOutput:
        """The tree with the most expected correct arcs."""
        return self._batch.minimum_risk()[0]

    def k_best(self, k: int) -> list[ScoredOutput]:
        """The k highest-scoring trees, best first."""
        return self._batch.k_best(k)[0]

    def sample(self, n: int, random: np.random.Generator) -> Int32s:
        """`n` independent trees, [n, T] or [n, T, 2]."""
        return self._batch.sample(n, random)[0]

    def entropy(self) -> float:
        """−Σ_y p(y) log p(y); no number of the size of the scores enters."""
        return float(self._batch.entropy()[0])

    def score(self, output: npt.ArrayLike) -> float:
        """score(y) of one tree; −inf where it has an arc that does not exist, a circle, or one root too many."""
        n_words = len(self.arcs) - 1
        heads, labels = tree_output(output, n_words, self.arcs.shape[2] if self.arcs.ndim == 3 else None)
        if not self._exists(heads):
            return -math.inf
        by_label = self.arcs.reshape(n_words + 1, n_words + 1, -1)
        return math.fsum(by_label[heads, np.arange(1, n_words + 1), labels])

    def _exists(self, heads: Int32s) -> bool:
        """Whether heads are those of a tree."""
        return is_tree(heads, self.structure.single_root)

    @staticmethod
    def parts(structure: Any, output: npt.ArrayLike, n_labels: int | None = None) -> Any:
        """Which arcs a tree has, [T + 1, T + 1], or [T + 1, T + 1, R] with `n_labels`."""
        heads, labels = tree_output(output, None, n_labels)
        n_words = len(heads)
        arcs = np.zeros((n_words + 1, n_words + 1, n_labels or 1))
        arcs[heads, np.arange(1, n_words + 1), labels] = 1
        return arcs[:, :, 0] if n_labels is None else arcs
