"""Structures that are given arc by arc: every output is a path from START to END of an acyclic graph.

A second-order chain, segments, a word lattice, an automaton over labels: whatever can be drawn as such a graph gets every
question of `crfkit.inference`. score(y) = Σ of the scores of the arcs of the path y.

Letters: A arcs, S states (nodes of the graph).
"""

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from crfkit.arrays import Int64s
from crfkit.errors import ArgumentError, ShapeError
from crfkit.structures.structure import AllowedLabels


@dataclass(frozen=True, eq=False)
class PathGraph:
    """A graph of `n_nodes` nodes in topological order: 0 is START, `n_nodes` − 1 is END.

    Arc e leads from node `sources[e]` to a later one, `targets[e]`; it may jump over nodes, and two arcs may lead from
    one node to the same one. An output is the list of the arcs of a path.

    >>> graph = PathGraph(4, [0, 0, 1, 2, 1], [1, 2, 3, 3, 2])
    >>> graph.is_path([0, 4, 3]), graph.is_path([0, 3])
    (True, False)
    """

    n_nodes: int
    sources: Int64s  # [A]
    targets: Int64s  # [A]

    def __init__(self, n_nodes: int, sources: npt.ArrayLike, targets: npt.ArrayLike) -> None:
        """Refuse what is not such a graph."""
        object.__setattr__(self, "n_nodes", n_nodes)
        for name, given in (("sources", sources), ("targets", targets)):
            array = np.asarray(given)
            if array.ndim != 1 or (array.dtype.kind not in "iu" and array.size):
                raise ShapeError(
                    f"PathGraph.{name}: expected a list of integers, got {array.dtype} with shape {list(array.shape)}."
                )
            nodes = array.astype(np.int64)
            nodes.flags.writeable = False
            object.__setattr__(self, name, nodes)
        if n_nodes < 2:
            raise ArgumentError(f"PathGraph has a START and an END, got n_nodes = {n_nodes}.")
        if len(self.sources) != len(self.targets):
            raise ShapeError(
                f"PathGraph has {len(self.sources)} sources and {len(self.targets)} targets, expected one of each per arc."
            )
        wrong = (self.sources < 0) | (self.sources >= self.targets) | (self.targets >= n_nodes)
        if wrong.any():
            e = int(wrong.argmax())
            raise ArgumentError(
                f"PathGraph: arc {e} leads from node {self.sources[e]} to {self.targets[e]}, "
                f"expected 0 ≤ source < target < {n_nodes}."
            )

    def bind(
        self, labels: Sequence[Hashable], outputs: Iterable[npt.ArrayLike | AllowedLabels]
    ) -> "PathGraph":
        """The graph itself: it does not depend on training data."""
        return self

    @property
    def n_arcs(self) -> int:
        """A."""
        return len(self.sources)

    def is_path(self, arcs: Sequence[int] | Int64s) -> bool:
        """Whether these arcs are a path from START to END."""
        numbers = np.asarray(arcs, dtype=np.int64)
        if not len(numbers) or numbers.min() < 0 or numbers.max() >= self.n_arcs:
            return False
        nodes = np.array([0, *self.targets[numbers]])
        return bool(nodes[-1] == self.n_nodes - 1 and np.array_equal(self.sources[numbers], nodes[:-1]))
