"""Random factor graphs, for the table of laws."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from crfkit.structures import FactorGraph
from tests.oracles.factor_graphs import Graph, GraphOracle, draw_graph
from tests.oracles.oracle import Bools, Floats, Output


@dataclass(frozen=True)
class GraphInstance:
    """A graph whose variables have a factor of their own each, perhaps with allowed values, and its enumeration."""

    graph: Graph
    allowed: dict[int, set[int]] | None = None

    @cached_property
    def structure(self) -> FactorGraph:
        """The variables and factors; the questions get other scores than these."""
        counts, factors = self.graph
        return FactorGraph.from_arrays(
            counts, [scope for scope, _ in factors], [np.zeros_like(table) for _, table in factors]
        )

    @property
    def scores(self) -> list[Floats]:
        """One array for each factor."""
        return [table for _, table in self.graph[1]]

    @cached_property
    def oracle(self) -> GraphOracle:
        """Brute force over the same scores."""
        if self.allowed is None:
            return GraphOracle(self.graph)
        masks = [
            np.isin(np.arange(count), list(self.allowed.get(v, range(count))))
            for v, count in enumerate(self.graph[0])
        ]
        return GraphOracle(self.graph, masks)

    @property
    def n_positions(self) -> int:
        """Variables."""
        return len(self.graph[0])

    @property
    def n_labels(self) -> None:
        """Each variable has its own number."""
        return None

    @property
    def scale(self) -> float:
        """What rounding errors are relative to: the largest score, at least 1."""
        finite = np.abs(self.flat(self.scores))
        return float(np.max(finite[np.isfinite(finite)], initial=1.0))

    def flat(self, parts: Any) -> Floats:
        """Numbers of the factors as one vector [P]."""
        tables = getattr(parts, "factors", parts)
        return np.concatenate([np.zeros(0), *(np.ravel(table) for table in tables)])

    def existing(self) -> Bools:
        """Which entries of the vector [P] can be given scores: all."""
        return np.ones(len(self.flat(self.scores)), dtype=np.bool_)

    def part_scores(self, vector: Floats) -> list[Floats]:
        """Scores of this instance's shape from a vector [P]."""
        return self.oracle.of_factors(vector)

    def with_scores(self, vector: Floats) -> GraphInstance:
        """The same question about other scores."""
        return self._with_tables(self.part_scores(vector))

    def _with_tables(self, tables: list[Floats]) -> GraphInstance:
        counts, factors = self.graph
        pairs = [(scope, table) for (scope, _), table in zip(factors, tables, strict=True)]
        return replace(self, graph=(counts, pairs))

    def shifted(self, position: int, by: float) -> GraphInstance:
        """Every value of one variable scores `by` more: so does every assignment."""
        own = next(f for f, (scope, _) in enumerate(self.graph[1]) if scope == (position,))
        return self._with_tables([table + by * (f == own) for f, table in enumerate(self.scores)])

    def reversed(self) -> GraphInstance:
        """Variables, scopes and factors in the opposite order."""
        counts, factors = self.graph
        last = len(counts) - 1
        turned = [(tuple(last - v for v in scope[::-1]), table.T) for scope, table in factors[::-1]]
        allowed = None if self.allowed is None else {last - v: some for v, some in self.allowed.items()}
        return GraphInstance((counts[::-1], turned), allowed)

    def reversed_parts(self, vector: Floats) -> Floats:
        """Numbers of factors in the order of the reversed instance."""
        return self.flat([table.T for table in self.part_scores(vector)[::-1]])

    def draw_order(self, random: np.random.Generator) -> Any:
        """New names for the values of each variable."""
        return [random.permutation(count) for count in self.graph[0]]

    def renamed(self, order: Any) -> GraphInstance:
        """Value j of the new variable v is value `order[v][j]` of this one."""
        renamed = self._with_tables(self._renamed(self.scores, order))
        if self.allowed is None:
            return renamed
        allowed = {
            v: {int(j) for j in np.flatnonzero(np.isin(order[v], list(some)))}
            for v, some in self.allowed.items()
        }
        return replace(renamed, allowed=allowed)

    def renamed_parts(self, vector: Floats, order: Any) -> Floats:
        """Numbers of factors in the order of the renamed instance."""
        return self.flat(self._renamed(self.part_scores(vector), order))

    def _renamed(self, tables: list[Floats], order: Any) -> list[Floats]:
        return [
            table[np.ix_(*(order[v] for v in scope))] if scope else table
            for (scope, _), table in zip(self.graph[1], tables, strict=True)
        ]

    def spelled_out(self) -> GraphInstance:
        """The same with −inf instead of allowed values."""
        tables = list(self.scores)
        for f, (scope, table) in enumerate(self.graph[1]):
            if len(scope) == 1 and self.allowed is not None and scope[0] in self.allowed:
                tables[f] = np.where(
                    np.isin(np.arange(len(table)), list(self.allowed[scope[0]])), table, -np.inf
                )
        return replace(self._with_tables(tables), allowed=None)

    def everything(self) -> dict[int, set[int]]:
        """All values of all variables."""
        return {v: set(range(count)) for v, count in enumerate(self.graph[0])}

    def allowing(self, output: Output) -> dict[int, int]:
        """What leaves one assignment."""
        return {v: int(x) for v, x in enumerate(output)}

    def allowed_of_one(self, random: np.random.Generator) -> tuple[dict[int, set[int]], float]:
        """The likeliest value of one variable, and its probability."""
        v = int(random.integers(self.n_positions))
        probabilities = self.oracle.of_variables[v]
        return {**(self.allowed or {}), v: {int(probabilities.argmax())}}, float(probabilities.max())

    def draw_outputs(self, random: np.random.Generator, n: int) -> Any:
        """Any values."""
        if not self.n_positions:
            return np.zeros((n, 0), dtype=np.int64)
        return np.stack([random.integers(count, size=n) for count in self.graph[0]], axis=1)

    def check_sums(self, vector: Floats) -> None:
        """Every factor has one configuration."""
        for table in self.part_scores(vector):
            np.testing.assert_allclose(table.sum(), 1.0, rtol=0, atol=1e-9)


def draw_graph_instance(
    random: np.random.Generator,
    *,
    shape: str,
    impossible: float = 0.0,
    scale: float = 1.0,
    restricted: float = 0.0,
    whole: bool = False,
) -> GraphInstance:
    """A random graph with at least one possible assignment; `restricted` is the share of values that are not allowed."""
    if shape == "empty":
        return GraphInstance(([], [((), np.array(0.5))]))
    while True:
        counts, factors = draw_graph(random, shape, impossible, scale)
        factors = [(scope, table) for scope, table in factors if len(scope) != 1]
        factors += [((v,), scale * random.normal(size=count)) for v, count in enumerate(counts)]
        if whole:
            factors = [(scope, np.rint(table)) for scope, table in factors]
        allowed = None
        if restricted:
            masks = [random.random(count) >= restricted for count in counts]
            allowed = {v: {int(x) for x in np.flatnonzero(m)} for v, m in enumerate(masks) if m.any()}
        instance = GraphInstance((counts, factors), allowed)
        if instance.oracle.outputs:
            return instance


GRAPHS: Mapping[str, Mapping[str, Any]] = {
    "factor graph, tree": {"shape": "tree"},
    "factor graph, grid": {"shape": "grid"},
    "factor graph, loop, forbidden": {"shape": "loop", "impossible": 0.2},
    "factor graph, clique, ties": {"shape": "clique", "whole": True},
    "factor graph, disconnected, allowed values": {"shape": "disconnected", "restricted": 0.3},
    "factor graph, random": {"shape": "random", "impossible": 0.1, "restricted": 0.2},
    "factor graph, one value": {"shape": "one value"},
    "factor graph, single": {"shape": "single"},
    "factor graph, scores of 400": {"shape": "random", "scale": 400.0},
    "factor graph, scores of 1e4": {"shape": "random", "scale": 1e4, "impossible": 0.1, "restricted": 0.1},
    "factor graph, empty": {"shape": "empty"},
}
