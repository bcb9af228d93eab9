"""Factor graphs by enumeration of all assignments, and random ones of every shape. Nothing of the library is used.

A graph is (cardinalities [V], factors), a factor (scope, table): an array with one axis for each variable of its scope.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np

from tests.oracles.oracle import Bools, Enumeration, Floats, Output

Factor = tuple[tuple[int, ...], Floats]
Graph = tuple[list[int], list[Factor]]


class GraphOracle(Enumeration):
    """All assignments that `allowed` (one mask for each variable) admits; parts are the entries of the tables, in order."""

    def __init__(self, graph: Graph, allowed: Sequence[Bools] | None = None) -> None:
        self.cardinalities, self.factors = graph
        self.begins = np.cumsum([0, *(table.size for _, table in self.factors)])
        self.allowed = allowed
        scores = np.concatenate([np.zeros(0), *(table.ravel() for _, table in self.factors)])
        super().__init__(((y, self.parts(y)) for y in self._assignments()), scores)

    def _assignments(self) -> list[Output]:
        values = [list(range(count)) for count in self.cardinalities]
        admitted = (
            [[x for x in xs if self.allowed[v][x]] for v, xs in enumerate(values)] if self.allowed else values
        )
        return list(itertools.product(*admitted))

    def parts(self, y: Output) -> list[int]:
        """The entry of each table that an assignment has."""
        return [
            int(begin + (np.ravel_multi_index([y[v] for v in scope], table.shape) if scope else 0))
            for begin, (scope, table) in zip(self.begins[:-1], self.factors, strict=True)
        ]

    @property
    def of_variables(self) -> list[Floats]:
        """The probability of each value of each variable."""
        numbers = [np.zeros(count) for count in self.cardinalities]
        for y, p in zip(self.outputs, self.probabilities, strict=True):
            for v, x in enumerate(y):
                numbers[v][x] += p
        return numbers

    def of_factors(self, flat: Floats) -> list[Floats]:
        """Numbers of all parts, table by table."""
        pieces = np.split(flat, self.begins[1:-1])[: len(self.factors)]
        return [piece.reshape(t.shape) for piece, (_, t) in zip(pieces, self.factors, strict=True)]


SHAPES = ("tree", "grid", "loop", "clique", "disconnected", "random", "one value", "single")


def draw_graph(
    random: np.random.Generator, shape: str, impossible: float = 0.0, scale: float = 1.0, largest: int = 3
) -> Graph:
    """A random graph of a shape; `impossible` is the share of entries that are −inf."""
    n = 1 if shape == "single" else int(random.integers(2, 7))
    counts = [int(c) for c in random.integers(1 if shape == "one value" else 2, largest + 1, size=n)]
    edges: Sequence[tuple[int, ...]] = ()
    if shape == "tree":
        edges = [(int(random.integers(v)), v) for v in range(1, n)]
    elif shape == "grid":
        counts, n = [2] * 9, 9
        edges = [(v, v + 1) for v in range(9) if v % 3 < 2] + [(v, v + 3) for v in range(6)]
    elif shape == "loop":
        edges = [(v, (v + 1) % n) for v in range(n)] if n > 2 else [(0, 1)]
    elif shape == "clique":
        n = min(n, 5)
        counts = counts[:n]
        edges = [tuple(range(n))]
    elif shape == "disconnected":
        edges = [(v, v + 1) for v in range(0, n - 1, 2)]
    elif shape in ("random", "one value"):
        edges = [
            tuple(int(v) for v in random.permutation(n)[: random.integers(1, min(n, 3) + 1)])
            for _ in range(int(random.integers(1, 2 * n)))
        ]
    scopes = [*edges, *((v,) for v in range(n) if random.random() < 0.5)]
    if random.random() < 0.2:
        scopes.append(())
    factors: list[Factor] = []
    for scope in scopes:
        table = scale * random.normal(size=tuple(counts[v] for v in scope))
        factors.append((scope, np.where(random.random(table.shape) < impossible, -np.inf, table)))
    return counts, factors
