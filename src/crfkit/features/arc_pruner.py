"""A first-order model that leaves few arcs of each sentence to a second-order one."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from crfkit import _core
from crfkit.arrays import Float64s, Int32s
from crfkit.features.arc_map import ArcMap
from crfkit.features.treebank import KnownTrees

THRESHOLD = 1e-3  # arcs with less than this share of the probability of the likeliest head are left out
MOST_HEADS = 8  # of a word


@dataclass(frozen=True)
class ArcPruner:
    """Keeps the likeliest heads of each word.

    The probabilities are those of a spanning-tree model with weights [D] of `arc_map`. The arcs of one projective tree are
    always among those that are kept.
    """

    arc_map: ArcMap
    weights: Float64s  # [D]
    threshold: float = THRESHOLD
    most: int = MOST_HEADS

    @cached_property
    def model(self) -> _core.PruningModel:
        """What the native core asks."""
        weights = np.ascontiguousarray(self.weights, dtype=np.float64)
        return _core.PruningModel(self.arc_map.layout, weights, self.threshold, self.most)

    def candidates(
        self, treebank: _core.Treebank, trees: KnownTrees, *, single_root: bool, n_threads: int
    ) -> _core.CandidateArcs:
        """The arcs of each sentence that are kept, and those that are known."""
        return self.model.candidates(treebank, trees.heads, bool(single_root), n_threads)


def lift_crossing_arcs(treebank: _core.Treebank, trees: KnownTrees) -> KnownTrees:
    """The trees without crossing arcs: the dependent of such an arc gets the head of its head, until none is left.

    Sentences with an unknown head stay as they are.
    """
    return trees._replace(heads=_core.lifted_heads(treebank, trees.heads))


def crossing_share(treebank: _core.Treebank, trees: KnownTrees) -> float:
    """The share of words whose head changes where crossing arcs are lifted; 0 where no tree is known."""
    lifted: Int32s = lift_crossing_arcs(treebank, trees).heads
    return float((lifted != trees.heads).mean()) if len(lifted) else 0.0
