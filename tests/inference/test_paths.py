"""The path engine on random graphs, against enumeration of all their paths."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pytest

from crfkit import _core
from tests.oracles.oracle import Bools, Enumeration, Floats, Output


class Graph(NamedTuple):
    """A graph with scores of its arcs [A]."""

    n_nodes: int
    sources: list[int]
    targets: list[int]
    scores: Floats

    @property
    def graph(self) -> _core.PathGraph:
        """The same in the core, without scores."""
        return _core.PathGraph(self.n_nodes, np.array(self.sources, int), np.array(self.targets, int))

    @property
    def core(self) -> _core.ScoredPaths:
        """The same in the core."""
        return _core.ScoredPaths(self.graph, self.scores)

    def hessian_vector(self, direction: Floats, in_log_space: bool = False) -> Floats:
        """The core's product, of arcs."""
        graph = self.graph
        core = _core.ScoredPaths(graph, self.scores)
        return core.hessian_vector(_core.ScoredPaths(graph, direction), in_log_space)[0]

    def paths(self, node: int = 0) -> Iterator[tuple[int, ...]]:
        """All paths from a node to END, as arcs."""
        if node == self.n_nodes - 1:
            yield ()
        for arc, source in enumerate(self.sources):
            if source == node:
                for rest in self.paths(self.targets[arc]):
                    yield (arc, *rest)

    @property
    def oracle(self) -> Enumeration:
        """The distribution over the paths."""
        return Enumeration(((path, list(path)) for path in self.paths()), self.scores)

    def levels(self) -> list[int]:
        """One more than the highest level that an arc comes from; END comes last."""
        levels = [-1] + [0] * (self.n_nodes - 1)
        for node in range(1, self.n_nodes):
            before = [levels[s] for s, t in zip(self.sources, self.targets, strict=True) if t == node]
            levels[node] = max([-1, *before]) + 1
        levels[-1] = max(levels[:-1]) + 1
        return levels


def draw_graph(
    seed: int,
    *,
    inside: int = 5,
    arcs: int = 14,
    scale: float = 1.0,
    absent: float = 0.0,
    whole: bool = False,
) -> Graph:
    """A random graph with a path: arcs between any two nodes, some twice, over any distance."""
    random = np.random.default_rng([seed, inside, arcs])
    n_nodes = inside + 2
    drawn = (sorted(random.choice(n_nodes, size=2, replace=False).tolist()) for _ in range(arcs))
    way = [0, *sorted(random.choice(np.arange(1, n_nodes - 1), size=inside // 2, replace=False)), n_nodes - 1]
    kept = [(int(a), int(b)) for a, b in itertools.pairwise(way)]
    listed = [(int(a), int(b)) for a, b in drawn] + kept
    pairs = [listed[i] for i in random.permutation(len(listed))]
    scores = random.normal(scale=scale, size=len(pairs))
    if whole:
        scores = random.integers(-1, 2, size=len(pairs)).astype(float)
    for arc, pair in enumerate(pairs):
        if pair not in kept and random.random() < absent:
            scores[arc] = -math.inf
    return Graph(n_nodes, [a for a, _ in pairs], [b for _, b in pairs], scores)


def dense_chain(seed: int, length: int, labels: int, scale: float = 1.0) -> Graph:
    """A chain: arcs between neighbouring levels alone."""
    random = np.random.default_rng([seed, length, labels])
    first = [1 + t * labels for t in range(length + 1)]
    pairs = [(0, first[0] + b) for b in range(labels)]
    for t in range(1, length):
        pairs += [(first[t - 1] + a, first[t] + b) for a in range(labels) for b in range(labels)]
    pairs += [(first[length - 1] + a, first[length]) for a in range(labels)]
    scores = random.normal(scale=scale, size=len(pairs))
    return Graph(first[length] + 1, [a for a, _ in pairs], [b for _, b in pairs], scores)


GRAPHS = {
    "small": [draw_graph(seed) for seed in range(6)],
    "dense": [draw_graph(seed, inside=7, arcs=40) for seed in range(3)],
    "sparse": [draw_graph(seed, inside=12, arcs=16) for seed in range(4)],
    "absent arcs": [draw_graph(seed, absent=0.5, arcs=20) for seed in range(6)],
    "ties": [draw_graph(seed, inside=6, arcs=24, whole=True) for seed in range(3)],
    "scores of 400": [draw_graph(seed, scale=400.0, absent=0.2) for seed in range(6)],
    "scores of 1e5": [draw_graph(seed, scale=1e5) for seed in range(3)],
    "START to END": [draw_graph(0, inside=0, arcs=3)],
    "chains": [dense_chain(seed, 4, 3) for seed in range(3)],
}
ALL = [pytest.param(graph, id=f"{name} {i}") for name, row in GRAPHS.items() for i, graph in enumerate(row)]
both_spaces = pytest.mark.parametrize("in_log_space", [False, True])
each_graph = pytest.mark.parametrize("graph", ALL)


def tolerance(graph: Graph) -> float:
    finite = graph.scores[np.isfinite(graph.scores)]
    return float(1e-12 * max(1.0, np.abs(finite).max()))


@each_graph
@both_spaces
def test_log_partition(graph: Graph, in_log_space: bool) -> None:
    found = graph.core.log_partition(in_log_space)
    assert found == pytest.approx(graph.oracle.log_partition, rel=1e-12, abs=tolerance(graph))


@each_graph
@both_spaces
def test_marginals(graph: Graph, in_log_space: bool) -> None:
    arcs, nodes = graph.core.marginals(in_log_space)
    expected = graph.oracle.marginals
    np.testing.assert_allclose(arcs, expected, rtol=0, atol=1e-12)
    entered = np.zeros(graph.n_nodes)
    entered[0] = 1.0
    np.add.at(entered, graph.targets, expected)
    np.testing.assert_allclose(nodes, entered, rtol=0, atol=1e-12)


@each_graph
@both_spaces
def test_hessian_vector(graph: Graph, in_log_space: bool) -> None:
    direction = np.random.default_rng(1).normal(size=len(graph.scores))
    found = graph.hessian_vector(direction, in_log_space)
    np.testing.assert_allclose(found, graph.oracle.hessian_vector(direction), rtol=0, atol=1e-12)


@pytest.mark.parametrize("graph", GRAPHS["small"])
def test_hessian_vector_by_differences(graph: Graph) -> None:
    direction, step = np.random.default_rng(2).normal(size=len(graph.scores)), 1e-4
    above, below = (
        graph._replace(scores=graph.scores + s * direction).core.marginals()[0] for s in (step, -step)
    )
    found = graph.hessian_vector(direction)
    np.testing.assert_allclose(found, (above - below) / (2 * step), rtol=0, atol=1e-7)


@each_graph
@both_spaces
def test_entropy(graph: Graph, in_log_space: bool) -> None:
    found = graph.core.entropy(in_log_space)
    assert found == pytest.approx(graph.oracle.entropy, rel=0, abs=tolerance(graph) * 10)
    assert found >= 0.0


@each_graph
def test_decode(graph: Graph) -> None:
    score, arcs = graph.core.decode()
    arcs = arcs[arcs >= 0]
    assert score == pytest.approx(graph.oracle.scores.max(), rel=1e-12, abs=tolerance(graph))
    assert tuple(arcs.tolist()) in graph.oracle.best_outputs(tolerance(graph))


@each_graph
def test_k_best_is_sorted_distinct_and_complete(graph: Graph) -> None:
    expected = graph.oracle.k_best
    for k in {0, 1, 2, 7, len(expected), len(expected) + 3}:
        found = graph.core.k_best(k)
        scores = [score for score, _ in found]
        paths: list[Output] = [tuple(arcs[arcs >= 0].tolist()) for _, arcs in found]
        assert len(set(paths)) == len(paths) == min(k, len(expected))
        assert scores == sorted(scores, reverse=True)
        np.testing.assert_allclose(scores, [s for s, _ in expected[:k]], rtol=1e-12, atol=tolerance(graph))
        known = [graph.oracle.score(path) for path in paths]
        np.testing.assert_allclose(scores, known, rtol=1e-12, atol=tolerance(graph))


@each_graph
def test_samples_follow_the_probabilities(graph: Graph) -> None:
    n, core, oracle = 3000, graph.core, graph.oracle
    uniforms = np.random.default_rng(3).random((n, core.n_uniforms))
    drawn = [tuple(arcs[arcs >= 0].tolist()) for arcs in core.sample(uniforms)]
    seen = np.zeros(len(oracle.outputs))
    np.add.at(seen, [oracle.by_output[path] for path in drawn], 1.0 / n)
    p = oracle.probabilities
    assert np.all(np.abs(seen - p) <= 5.0 * np.sqrt(p * (1 - p) / n) + 5.0 / n)


def span(graph: Graph, first: int, last: int, allowed: Bools) -> float:
    """P(a node of level `last`, and all arcs into levels first … last are allowed), by enumeration."""
    levels, oracle = graph.levels(), graph.oracle
    total = []
    for path, p in zip(oracle.outputs, oracle.probabilities, strict=True):
        into = [(levels[graph.targets[arc]], arc) for arc in path]
        passes = any(level == last for level, _ in into)
        if passes and all(allowed[arc] for level, arc in into if first <= level <= last):
            total.append(p)
    return math.fsum(total)


@each_graph
@both_spaces
def test_span_probability(graph: Graph, in_log_space: bool) -> None:
    core, random, n_levels = graph.core, np.random.default_rng(4), graph.graph.n_levels
    assert n_levels == graph.levels()[-1] + 1
    for _ in range(6):
        first, last = sorted(random.integers(n_levels, size=2).tolist())
        allowed = random.random(len(graph.scores)) < 0.7
        found = core.span_probability(first, last, allowed, in_log_space)
        assert found == pytest.approx(span(graph, first, last, allowed), rel=0, abs=1e-12)
    everything = np.ones(len(graph.scores), bool)
    assert core.span_probability(0, n_levels - 1, everything) == pytest.approx(1.0)


@both_spaces
def test_scores_far_apart(in_log_space: bool) -> None:
    """Where scaled messages underflow, a path that counts in the end is not lost."""
    # nodes 1 and 2 in the first level, 2000 nats apart; the arcs that follow make up for it
    graph = Graph(4, [0, 0, 1, 2], [1, 2, 3, 3], np.array([0.0, -2000.0, -2000.0, 0.0]))
    assert graph.core.log_partition(in_log_space) == pytest.approx(-2000 + math.log(2))
    np.testing.assert_allclose(graph.core.marginals(in_log_space)[0], 0.5)
    # the same over a jump: the level between is 2000 nats above, or below
    for far in (2000.0, -2000.0):
        graph = Graph(4, [0, 1, 2, 1], [1, 2, 3, 3], np.array([0.0, far, -far, 0.0]))
        assert graph.core.log_partition(in_log_space) == pytest.approx(math.log(2))
        np.testing.assert_allclose(graph.core.marginals(in_log_space)[0], [1, 0.5, 0.5, 0.5])


def test_long_chains_lose_no_digits() -> None:
    graph = dense_chain(0, 3000, 3, scale=30.0)
    scaled, logs = (graph.core.log_partition(slow) for slow in (False, True))
    assert scaled == pytest.approx(logs, rel=1e-14)
    for one, other in zip(*(graph.core.marginals(slow) for slow in (False, True)), strict=True):
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-11)
    direction = np.random.default_rng(5).normal(size=len(graph.scores))
    one, other = (graph.hessian_vector(direction, slow) for slow in (False, True))
    np.testing.assert_allclose(one, other, rtol=0, atol=1e-10)


def test_a_graph_without_a_path() -> None:
    for graph in (
        Graph(3, [0], [1], np.zeros(1)),
        Graph(3, [0, 1], [1, 2], np.array([0.0, -math.inf])),
        Graph(2, [], [], np.zeros(0)),
    ):
        for in_log_space in (False, True):
            assert graph.core.log_partition(in_log_space) == -math.inf
            with pytest.raises(ValueError):
                graph.core.marginals(in_log_space)
        assert graph.core.k_best(3) == []
        with pytest.raises(ValueError):
            graph.core.decode()


@pytest.mark.parametrize(
    ("n_nodes", "sources", "targets"),
    [(1, [], []), (3, [0, 1], [1]), (3, [1], [1]), (3, [2], [1]), (3, [0], [3]), (3, [-1], [1])],
)
def test_what_is_no_graph(n_nodes: int, sources: list[int], targets: list[int]) -> None:
    with pytest.raises(ValueError):
        _core.PathGraph(n_nodes, np.array(sources, int), np.array(targets, int))


def test_scores_that_do_not_fit() -> None:
    graph = draw_graph(0).graph
    with pytest.raises(ValueError):
        _core.ScoredPaths(graph, np.zeros(1))
