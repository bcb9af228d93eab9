"""Random batches of factor graphs of one shape, with the enumeration of each element."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from crfkit import FactorGraph
from crfkit.nn import FactorGraphDistribution
from tests.oracles.factor_graphs import Graph, GraphOracle, draw_graph


@dataclass
class GraphBatch:
    """Dense tables: scores [B, …] for each scope."""

    counts: list[int]
    scopes: list[tuple[int, ...]]
    scores: list[Any]

    @property
    def graph(self) -> FactorGraph:
        """With other scores than those of the batch, which replace them."""
        shapes = [tuple(self.counts[v] for v in scope) for scope in self.scopes]
        return FactorGraph.from_arrays(self.counts, self.scopes, [np.full(shape, 7.0) for shape in shapes])

    def element(self, b: int) -> Graph:
        """One graph."""
        return self.counts, [(scope, part[b]) for scope, part in zip(self.scopes, self.scores, strict=True)]

    @property
    def oracles(self) -> list[GraphOracle]:
        """Of each element."""
        return [GraphOracle(self.element(b)) for b in range(len(self.scores[0]))]

    def tensors(self, dtype: Any, requires_grad: bool = False, device: str = "cpu") -> list[Any]:
        """The scores."""
        return [
            torch.tensor(part, dtype=dtype, device=device, requires_grad=requires_grad)
            for part in self.scores
        ]

    def distribution(
        self, dtype: Any = torch.float64, requires_grad: bool = False, **options: Any
    ) -> FactorGraphDistribution:
        """The distribution over all assignments."""
        return FactorGraphDistribution(self.graph, self.tensors(dtype, requires_grad), **options)


def draw_batch(
    seed: int, shape: str, *, B: int = 3, impossible: float = 0.0, scale: float = 1.0
) -> GraphBatch:
    """A shape by `draw_graph`; `impossible` is the share of scores that are −inf."""
    random = np.random.default_rng(seed)
    counts, factors = draw_graph(random, shape)
    factors = factors or [((0,), np.zeros(counts[0]))]
    scores = []
    for _, table in factors:
        part = scale * random.normal(size=(B, *table.shape))
        scores.append(np.where(random.random(part.shape) < impossible, -np.inf, part))
    return GraphBatch(counts, [scope for scope, _ in factors], scores)


def mixed_graph(B: int) -> tuple[FactorGraph, list[Any]]:
    """A graph with every kind of factor, one of which lists so many configurations that a variable is added for it."""
    random = np.random.default_rng(0)
    graph = FactorGraph()
    names = [graph.variable(f"v{i}", 3).name for i in range(8)]
    graph.factor(names[:2], random.normal(size=(3, 3)))
    lists = {tuple(int(x) for x in random.integers(0, 3, size=8)): 0.0 for _ in range(60)}
    graph.factor(names, lists)
    graph.equal([names[0], names[5]])
    graph.count(names[2:6], [0.5, 0.0, 1.0, -np.inf, -np.inf])
    graph.at_most_one(names[4:7], 2)
    return graph, [
        np.where(np.isinf(factor.scores), -np.inf, random.normal(size=(B, *factor.scores.shape)))
        for factor in graph.factors
        if factor.scores.size
    ]
