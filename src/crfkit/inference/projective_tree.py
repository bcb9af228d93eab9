"""The projective trees of one sentence. Formulas stand in `crfkit.structures.projective_tree`.

Many sentences at once, on several threads: `TreeBatch`, and `SiblingTreeBatch` for the second order.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from crfkit.arrays import Float64s, Int32s
from crfkit.inference.sibling_batch import SiblingTreeBatch, check_parts
from crfkit.inference.spanning_tree import Allowed, TreeProblem
from crfkit.structures import (
    ProjectiveTree,
    ScoredOutput,
    SpanningTree,
    TreeParts,
    adjacent_siblings,
    is_projective,
    sibling_scores,
    tree_output,
)


class ProjectiveProblem(TreeProblem):
    """A sentence with the scores of its arcs, and in the second order of adjacent siblings."""

    siblings: Float64s | None = None  # [T + 1, T + 1, T + 1]

    def __init__(self, structure: ProjectiveTree, scores: Any, allowed: Allowed = None) -> None:
        if structure.order == 1:
            super().__init__(structure, scores, allowed)
            return
        arcs, siblings = check_parts(scores)
        super().__init__(ProjectiveTree(structure.single_root), arcs, allowed)
        self.siblings = sibling_scores(siblings, len(self.arcs) - 1)
        self._batch = SiblingTreeBatch(structure, [TreeParts(self.arcs, self.siblings)])

    def _exists(self, heads: Int32s) -> bool:
        return super()._exists(heads) and is_projective(heads)

    def score(self, output: npt.ArrayLike) -> float:
        """score(y) of one tree; −inf where it has a part that does not exist, a circle or crossing arcs."""
        of_arcs = super().score(output)
        if self.siblings is None or of_arcs == -math.inf:
            return of_arcs
        heads, _ = tree_output(
            output, len(self.arcs) - 1, self.arcs.shape[2] if self.arcs.ndim == 3 else None
        )
        words = np.arange(1, len(heads) + 1)
        return math.fsum([of_arcs, *self.siblings[heads, adjacent_siblings(heads), words]])

    @staticmethod
    def parts(structure: ProjectiveTree, output: npt.ArrayLike, n_labels: int | None = None) -> Any:
        """Which arcs a tree has, and in the second order which adjacent siblings, as `TreeParts`."""
        arcs = TreeProblem.parts(structure, output, n_labels)
        if structure.order == 1:
            return arcs
        heads, _ = tree_output(output, None, n_labels)
        siblings = np.zeros((len(heads) + 1,) * 3)
        siblings[heads, adjacent_siblings(heads), np.arange(1, len(heads) + 1)] = 1
        return TreeParts(arcs, siblings)


def minimum_risk(
    structure: SpanningTree | ProjectiveTree, scores: Any, *, allowed: Allowed = None
) -> ScoredOutput:
    """The tree with the most expected correct arcs, Σ_m P(arc into m), and this number as its score."""
    if isinstance(structure, ProjectiveTree):
        return ProjectiveProblem(structure, scores, allowed).minimum_risk()
    return TreeProblem(structure, scores, allowed).minimum_risk()
