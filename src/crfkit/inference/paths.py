"""The paths of a graph that is given by its arcs, by the path engine of the core (`core/paths`).

Scores, marginals and directions are float64 [A], one number for each arc; −inf marks an arc that does not exist. `allowed`
is a bool array [A]. Outputs are lists of arcs.
"""

from __future__ import annotations

import math
from functools import cached_property, lru_cache

import numpy as np
import numpy.typing as npt

from crfkit import _core
from crfkit.arrays import Float64s, Int32s
from crfkit.errors import ArgumentError, ShapeError
from crfkit.inference.problem import PathProblem, check_finite
from crfkit.structures import PathGraph, ScoredOutput

Allowed = npt.NDArray[np.bool_] | None


class GraphProblem(PathProblem):
    """A graph with the scores of its arcs."""

    def __init__(self, structure: PathGraph, scores: npt.ArrayLike, allowed: Allowed = None) -> None:
        self.structure, self.scores = structure, _scores(structure, scores, allowed)

    @cached_property
    def core(self) -> _core.ScoredGraph:
        """The graph at the scores."""
        return _core.ScoredPaths(_graph(self.structure), self.scores)

    def direction(self, direction: npt.ArrayLike) -> _core.ScoredGraph:
        """The graph at a direction."""
        moves = _numbers(self.structure, direction)
        check_finite(moves)
        return _core.ScoredPaths(_graph(self.structure), moves)

    def shape_marginals(self, parts: tuple[Float64s, ...]) -> Float64s:
        """Those of arcs [A]; the other ones are of nodes."""
        return parts[0]

    def decode(self) -> ScoredOutput:
        """The path with the highest score."""
        arcs, score = super().decode()
        return ScoredOutput(arcs[arcs >= 0], score)

    def k_best(self, k: int) -> list[ScoredOutput]:
        """The k paths with the highest scores, best first."""
        return [ScoredOutput(arcs[arcs >= 0], score) for arcs, score in super().k_best(k)]

    def sample(self, n: int, random: np.random.Generator) -> Int32s:
        """`n` independent paths as arcs [n, length of the longest], −1 after the end of a path."""
        arcs = super().sample(n, random)
        ended = np.sort(arcs < 0, axis=1)  # as many as levels that the path jumps over
        drawn = np.full_like(arcs, -1)
        drawn[~ended] = arcs[arcs >= 0]
        return drawn[:, ~ended.all(axis=0)]

    def score(self, output: npt.ArrayLike) -> float:
        """score(y) of one path; −inf where it is none, or has an arc that does not exist."""
        arcs = np.asarray(output, dtype=np.int64)
        return math.fsum(self.scores[arcs]) if self.structure.is_path(arcs) else -math.inf

    @staticmethod
    def parts(structure: PathGraph, output: npt.ArrayLike, n_labels: int | None = None) -> Float64s:
        """1 for the arcs of a path, 0 for all others [A]."""
        counts = np.zeros(structure.n_arcs)
        counts[np.asarray(output, dtype=np.int64)] = 1.0
        return counts


def _numbers(structure: PathGraph, numbers: npt.ArrayLike) -> Float64s:
    """One number for each arc."""
    array = np.ascontiguousarray(numbers, dtype=np.float64)
    if array.shape != (structure.n_arcs,):
        raise ShapeError(f"Scores of a path graph: expected [{structure.n_arcs}], got {list(array.shape)}.")
    if np.isnan(array).any() or (array == np.inf).any():
        raise ArgumentError("Scores of a path graph: expected finite numbers or −inf, got NaN or +inf.")
    return array


def _scores(structure: PathGraph, scores: npt.ArrayLike, allowed: Allowed) -> Float64s:
    """The scores of the arcs; −inf for those that are not allowed."""
    array = _numbers(structure, scores)
    if allowed is None:
        return array
    mask = np.asarray(allowed)
    if mask.dtype != np.bool_ or mask.shape != array.shape:
        raise ShapeError(
            f"allowed: expected bools [{structure.n_arcs}], got {mask.dtype} with shape {list(mask.shape)}."
        )
    return np.where(mask, array, -np.inf)


@lru_cache(maxsize=64)
def _graph(structure: PathGraph) -> _core.PathGraph:
    """The same graph in the core."""
    return _core.PathGraph(structure.n_nodes, structure.sources, structure.targets)
