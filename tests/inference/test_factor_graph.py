"""Exact inference on factor graphs: against enumeration, on every shape, with −inf, allowed values and large scores."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from crfkit import Chain, ChainScores, FactorGraph, inference
from crfkit.errors import ArgumentError, NoOutputError, SizeLimitError
from tests.oracles.factor_graphs import SHAPES, Graph, GraphOracle, draw_graph


def build(graph: Graph) -> FactorGraph:
    return FactorGraph.from_arrays(
        graph[0], [scope for scope, _ in graph[1]], [table for _, table in graph[1]]
    )


def draw_allowed(random: np.random.Generator, graph: Graph) -> tuple[dict[int, set[int]], list[Any]]:
    """Some variables with some of their values, and the same as masks."""
    masks = [np.ones(count, dtype=np.bool_) for count in graph[0]]
    allowed = {}
    for v, count in enumerate(graph[0]):
        if random.random() < 0.3:
            some = {int(x) for x in random.permutation(count)[: random.integers(1, count + 1)]}
            allowed[v] = some
            masks[v] = np.isin(np.arange(count), list(some))
    return allowed, masks


def check_against_enumeration(number: int) -> None:
    """All questions on one random graph."""
    random = np.random.default_rng([number, 5])
    shape = SHAPES[number % len(SHAPES)]
    scale = (1.0, 10.0, 1e3)[number // len(SHAPES) % 3]
    numbers = draw_graph(random, shape, impossible=(0.0, 0.2, 0.5)[number % 3], scale=scale)
    graph = build(numbers)
    allowed, masks = draw_allowed(random, numbers)
    oracle = GraphOracle(numbers, masks)
    value = inference.log_partition(graph, allowed=allowed)
    if oracle.log_partition == -math.inf:
        assert value == -math.inf
        for question in (inference.marginals, inference.decode, inference.sample, inference.entropy):
            with pytest.raises(NoOutputError):
                question(graph, allowed=allowed)
        assert inference.k_best(graph, k=3, allowed=allowed) == []
        return
    assert value == pytest.approx(oracle.log_partition, rel=1e-12, abs=1e-10)
    marginals = inference.marginals(graph, allowed=allowed)
    for found, known in zip(marginals.values(), oracle.of_variables, strict=True):
        np.testing.assert_allclose(found, known, rtol=0, atol=1e-10)
    for found, known in zip(marginals.factors, oracle.of_factors(oracle.marginals), strict=True):
        np.testing.assert_allclose(found, known, rtol=0, atol=1e-10)
    assert inference.entropy(graph, allowed=allowed) == pytest.approx(oracle.entropy, rel=0, abs=1e-10)
    best = inference.decode(graph, allowed=allowed)
    assert best.score == pytest.approx(oracle.scores.max(), rel=1e-12, abs=1e-10)
    assert inference.score(graph, output=best.output) == pytest.approx(best.score, rel=1e-12)
    known_scores = sorted((s for s in oracle.scores if s > -math.inf), reverse=True)[:7]
    found_scores = [entry.score for entry in inference.k_best(graph, k=7, allowed=allowed)]
    np.testing.assert_allclose(found_scores, known_scores, rtol=1e-12, atol=1e-10)
    direction = random.normal(size=len(oracle.marginals))
    moved = inference.hessian_vector(graph, direction=oracle.of_factors(direction), allowed=allowed)
    for found, known in zip(moved.factors, oracle.of_factors(oracle.hessian_vector(direction)), strict=True):
        np.testing.assert_allclose(found, known, rtol=0, atol=1e-10)


@pytest.mark.parametrize("start", range(0, 300, 50))
def test_random_graphs(start: int) -> None:
    for number in range(start, start + 50):
        check_against_enumeration(number)


@pytest.mark.slow
@pytest.mark.parametrize("start", range(1000, 11000, 500))
def test_many_random_graphs(start: int) -> None:
    for number in range(start, start + 500):
        check_against_enumeration(number)


def test_a_chain_as_a_factor_graph() -> None:
    random = np.random.default_rng(3)
    emissions, transitions = random.normal(size=(30, 5)), random.normal(size=(5, 5))
    chain = ChainScores(emissions=emissions, transitions=transitions)
    graph = FactorGraph.from_arrays(
        [5] * 30,
        [*((t,) for t in range(30)), *((t, t + 1) for t in range(29))],
        [*emissions, *([transitions] * 29)],
    )
    expected = inference.marginals(Chain(), chain)
    found = inference.marginals(graph)
    assert inference.log_partition(graph) == pytest.approx(inference.log_partition(Chain(), chain), rel=1e-12)
    np.testing.assert_allclose(np.array(list(found.values())), expected.emissions, rtol=0, atol=1e-12)
    best, score = inference.decode(graph)
    known = inference.decode(Chain(), chain)
    assert score == pytest.approx(known.score)
    assert best.ids.tolist() == known.output.tolist()
    assert inference.entropy(graph) == pytest.approx(inference.entropy(Chain(), chain), rel=1e-12)


def test_scores_in_place_of_those_of_the_graph() -> None:
    random = np.random.default_rng(1)
    graph = build(draw_graph(random, "loop"))
    scores = [random.normal(size=factor.scores.shape) for factor in graph.factors]
    other = FactorGraph.from_arrays(
        [len(v) for v in graph.variables], [factor.variables for factor in graph.factors], scores
    )
    assert inference.log_partition(graph, scores) == inference.log_partition(other)
    output = inference.decode(graph, scores).output
    assert inference.log_probability(graph, scores, output) == inference.log_probability(other, output=output)
    with pytest.raises(ArgumentError):
        inference.log_partition(graph, [np.full(s.shape, np.nan) for s in scores])


def test_structured_factors() -> None:
    graph = FactorGraph()
    variables = [graph.variable(f"v{i}", 2) for i in range(12)]
    for v in variables:
        graph.factor([v], [0.0, 0.3])
    count = graph.exactly(4, variables)
    graph.equal(variables[:2])
    pairs = math.comb(10, 4) + math.comb(10, 2)  # both of the equal ones 0, or both 1
    assert inference.log_partition(graph) == pytest.approx(math.log(pairs) + 4 * 0.3)
    marginals = inference.marginals(graph)
    assert marginals.factors[graph.factors.index(count)].tolist() == pytest.approx([0] * 4 + [1] + [0] * 8)
    assert marginals["v0"][1] == pytest.approx(math.comb(10, 2) / pairs)
    samples = inference.sample(graph, n=50, random_state=0)
    assert samples.shape == (50, 12)
    assert set(samples.sum(axis=1)) == {4}


def grid(n: int) -> FactorGraph:
    scopes = [(v, v + 1) for v in range(n * n) if v % n < n - 1] + [(v, v + n) for v in range(n * n - n)]
    return FactorGraph.from_arrays([2] * n * n, scopes, [[[0.0, 0.5], [0.5, 0.0]]] * len(scopes))


def test_plans() -> None:
    found = inference.plan(grid(6))
    assert found.width in (6, 7)
    assert found.fits
    assert len(found.largest_clique) == found.width + 1
    assert found.largest_entries == 2 ** (found.width + 1)
    assert 0 < found.log_partition_memory <= found.memory
    fewer = inference.plan(grid(6), allowed=dict.fromkeys(range(6, 12), 0))
    assert fewer.width < found.width
    assert fewer.operations < found.operations


@pytest.mark.parametrize("n", [24, 60])
def test_what_does_not_fit_is_refused(n: int) -> None:
    graph = grid(n)
    assert not inference.plan(graph, memory_limit=1e6).fits
    with pytest.raises(
        SizeLimitError, match=r"width \d+.* of memory, expected at most 1 MB .*largest factor is number"
    ):
        inference.marginals(graph, memory_limit=1e6)
    with pytest.raises(ArgumentError, match="memory_limit"):
        inference.decode(Chain(), ChainScores(np.zeros((2, 2))), memory_limit=1.0)
