"""The engine of hyperpaths on random hypergraphs, against enumeration of all their hyperpaths."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np
import pytest

from crfkit import _core
from tests.oracles.oracle import Enumeration, Floats, Output


@dataclass(frozen=True, eq=False)
class Hypergraph:
    """Edges into each node, by their tails (−1: none), with scores [E]."""

    edges: list[list[tuple[int, int]]]
    scores: Floats

    @cached_property
    def core(self) -> _core.Hypergraph:
        """The same in the core."""
        tails = [tail for into in self.edges for edge in into for tail in edge]
        return _core.Hypergraph(
            np.cumsum([0, *map(len, self.edges)]), np.array(tails, dtype=np.int64), self.scores
        )

    def hyperpaths(self, node: int) -> list[Output]:
        """All hyperpaths of a node, as edges, heads before tails and left before right."""
        if node < 0:
            return [()]
        first = sum(map(len, self.edges[:node]))
        return [
            (edge, *left, *right)
            for edge, (one, other) in enumerate(self.edges[node], start=first)
            for left, right in itertools.product(self.hyperpaths(one), self.hyperpaths(other))
        ]

    @cached_property
    def oracle(self) -> Enumeration:
        """The distribution over the hyperpaths of the goal."""
        return Enumeration(((y, list(y)) for y in self.hyperpaths(len(self.edges) - 1)), self.scores)


def draw(random: np.random.Generator, scale: float = 1.0, forbidden: float = 0.0) -> Hypergraph:
    """A hypergraph with at most some hundred hyperpaths."""
    while True:
        n_nodes = int(random.integers(1, 8))
        edges = []
        for node in range(n_nodes):
            into = [tuple(random.integers(-1, node, size=2)) for _ in range(random.integers(1, 4))]
            edges.append([(int(a), int(b)) for a, b in into])
        n_edges = sum(map(len, edges))
        scores = random.normal(size=n_edges) * scale
        scores[random.random(n_edges) < forbidden] = -np.inf
        counts = [0] * n_nodes
        for node, into in enumerate(edges):
            counts[node] = sum((counts[a] if a >= 0 else 1) * (counts[b] if b >= 0 else 1) for a, b in into)
        if counts[-1] < 500:
            return Hypergraph(edges, scores)


KINDS = {
    "normal": {},
    "forbidden": {"forbidden": 0.2},
    "scores of 30": {"scale": 30.0},
    "scores of 700": {"scale": 700.0, "forbidden": 0.1},
    "scores of 1e5": {"scale": 1e5},
    "all equal": {"scale": 0.0},
}


@cache
def draw_all(kind: str) -> list[Hypergraph]:
    random = np.random.default_rng(len(kind))
    drawn = [draw(random, **KINDS[kind]) for _ in range(60)]
    return [graph for graph in drawn if graph.oracle.outputs]


@pytest.fixture(params=list(KINDS))
def graphs(request: pytest.FixtureRequest) -> list[Hypergraph]:
    return draw_all(request.param)


def scale_of(graph: Hypergraph) -> float:
    """What rounding errors are relative to."""
    return float(np.max(np.abs(graph.scores[np.isfinite(graph.scores)]), initial=1.0)) * len(graph.edges)


def test_log_partition(graphs: list[Hypergraph]) -> None:
    for graph in graphs:
        assert graph.core.log_partition() == pytest.approx(
            graph.oracle.log_partition, rel=1e-12, abs=1e-12 * scale_of(graph)
        )


def test_marginals(graphs: list[Hypergraph]) -> None:
    for graph in graphs:
        np.testing.assert_allclose(graph.core.marginals(), graph.oracle.marginals, rtol=0, atol=1e-9)


def test_hessian_vector(graphs: list[Hypergraph]) -> None:
    random = np.random.default_rng(0)
    for graph in graphs:
        direction = random.normal(size=len(graph.scores))
        np.testing.assert_allclose(
            graph.core.hessian_vector(direction), graph.oracle.hessian_vector(direction), rtol=0, atol=1e-9
        )


def test_entropy(graphs: list[Hypergraph]) -> None:
    for graph in graphs:
        assert graph.core.entropy() == pytest.approx(graph.oracle.entropy, rel=0, abs=1e-9)


def test_decode(graphs: list[Hypergraph]) -> None:
    for graph in graphs:
        score, edges = graph.core.decode()
        assert score == pytest.approx(graph.oracle.scores.max(), rel=1e-12, abs=1e-12 * scale_of(graph))
        assert tuple(edges) in graph.oracle.best_outputs(1e-12 * scale_of(graph))


def test_k_best(graphs: list[Hypergraph]) -> None:
    for graph in graphs:
        expected = graph.oracle.k_best
        for k in (0, 1, 2, len(expected), len(expected) + 3):
            found = graph.core.k_best(k)
            assert len(found) == min(k, len(expected))
            scores = [score for score, _ in found]
            assert scores == sorted(scores, reverse=True)
            outputs = [tuple(edges.tolist()) for _, edges in found]
            assert len(set(outputs)) == len(outputs)
            tolerance = 1e-12 * scale_of(graph)
            np.testing.assert_allclose(scores, [score for score, _ in expected[:k]], rtol=0, atol=tolerance)
            np.testing.assert_allclose(
                scores, [graph.oracle.score(output) for output in outputs], rtol=0, atol=tolerance
            )


def test_samples() -> None:
    random = np.random.default_rng(0)
    for kind in KINDS:
        graph = draw(random, **KINDS[kind])
        while not graph.oracle.outputs:
            graph = draw(random, **KINDS[kind])
        core, oracle, n = graph.core, graph.oracle, 3000
        longest = max(map(len, oracle.outputs))
        seen = np.zeros(len(oracle.outputs))
        for uniforms in random.random((n, longest)):
            seen[oracle.by_output[tuple(core.sample(uniforms).tolist())]] += 1
        deviation = np.sqrt(oracle.probabilities * (1 - oracle.probabilities) / n)
        assert np.all(np.abs(seen / n - oracle.probabilities) <= 5 * deviation + 5 / n)


def test_no_hyperpath() -> None:
    for graph in (
        Hypergraph([[(-1, -1)], [(0, -1)]], np.array([0.0, -np.inf])),
        Hypergraph([[], [(0, -1)]], np.array([0.0])),
    ):
        assert graph.core.log_partition() == -math.inf
        for ask in (graph.core.marginals, graph.core.decode, graph.core.entropy):
            with pytest.raises(ValueError, match="no hyperpath is possible"):
                ask()


@pytest.mark.parametrize(
    ("edge_ptr", "tails", "scores"),
    [
        ([0], [], []),
        ([0, 1], [0, -1], [0.0]),
        ([0, 1], [-2, -1], [0.0]),
        ([0, 1], [-1], [0.0]),
        ([0, 1, 0], [-1, -1], [0.0]),
        ([0, 1], [-1, -1, -1, -1], [0.0, 0.0]),
        ([1, 2], [-1, -1, -1, -1], [0.0, 0.0]),
    ],
)
def test_what_is_no_hypergraph(edge_ptr: list[int], tails: list[int], scores: list[float]) -> None:
    with pytest.raises(ValueError, match=r"node|edge|numbers"):
        _core.Hypergraph(
            np.array(edge_ptr, dtype=np.int64), np.array(tails, dtype=np.int64), np.array(scores, dtype=float)
        )


def test_far_apart_and_long() -> None:
    """A chain of 3,000 edges, each of weight exp(±500): sums far outside of the range of doubles."""
    n = 3000
    edges = [[(node - 1, -1), (node - 1, -1)] for node in range(n)]
    scores = np.tile([500.0, 499.0, -500.0, -500.5], n // 2)
    core = Hypergraph(edges, scores).core
    expected = sum(float(np.logaddexp(*pair)) for pair in scores.reshape(n, 2))
    assert core.log_partition() == pytest.approx(expected, rel=0, abs=1e-7)
    np.testing.assert_allclose(core.marginals().reshape(n, 2).sum(axis=1), 1.0, rtol=0, atol=1e-9)
    assert core.marginals()[0] == pytest.approx(1 / (1 + math.exp(-1)), abs=1e-12)
