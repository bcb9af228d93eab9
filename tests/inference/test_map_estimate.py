"""Best assignments with a dual bound, against enumeration."""

from __future__ import annotations

import math

import numpy as np
import pytest

from crfkit import FactorGraph
from crfkit.errors import ArgumentError, NoOutputError
from crfkit.inference import MapResult, map_estimate, max_product
from tests.inference.test_belief_propagation import build, ising, masks, random_mask
from tests.oracles.factor_graphs import SHAPES, GraphOracle, draw_graph


@pytest.mark.parametrize("impossible", [0.0, 0.3])
def test_scores_and_bounds(impossible: float) -> None:
    random = np.random.default_rng(9)
    optimal = []
    for trial in range(160):
        graph = draw_graph(random, SHAPES[trial % len(SHAPES)], impossible, (0.3, 3.0, 100.0)[trial % 3])
        allowed = random_mask(random, graph[0]) if trial % 2 else {}
        oracle = GraphOracle(graph, masks(graph[0], allowed))
        if not oracle.outputs:
            with pytest.raises(NoOutputError):
                map_estimate(build(graph), allowed=allowed)
            continue
        result = map_estimate(build(graph), allowed=allowed, max_iterations=(3, 500)[trial % 4 > 0])
        highest = max(oracle.scores)
        slack = 1e-9 * max(1.0, abs(highest))
        assert result.bound >= highest - slack
        assert result.output is not None
        place = oracle.by_output[tuple(result.output.ids.tolist())]
        np.testing.assert_allclose(result.score, oracle.scores[place], rtol=1e-12, atol=1e-12)
        assert ("optimal" in result.status) == result.optimal
        assert result.gap == max(0.0, result.bound - result.score)
        if result.optimal:
            np.testing.assert_allclose(result.score, highest, rtol=1e-9, atol=1e-9)
        if trial % 4:
            optimal.append(result.optimal)
    assert np.mean(optimal) > 0.8


def test_bound_is_that_of_the_linear_relaxation() -> None:
    """A frustrated triangle: the relaxation is half-way, at a score of 3 with −1 … 1 for each pair; the best is 1."""
    against = np.array([[-1.0, 1.0], [1.0, -1.0]])
    graph = FactorGraph.from_arrays([2] * 3, [(0, 1), (1, 2), (0, 2)], [against] * 3)
    result = map_estimate(graph)
    assert result.score == 1.0
    np.testing.assert_allclose(result.bound, 3.0, atol=1e-6)
    assert not result.optimal
    assert "gap" in result.status


def test_grids_are_solved_with_a_certificate() -> None:
    """Weak couplings: the relaxation is tight, which proves the assignment that max-product finds too."""
    graph = ising(12, 0.4, 1.0)
    result = map_estimate(graph)
    assert result.optimal
    assert result.converged
    other = max_product(graph, damping=0.3, schedule="sequential", max_iterations=200)
    assert other.score <= result.score + 1e-9
    assert other.bound == math.inf
    assert not other.optimal


def test_trees_are_solved_with_a_certificate() -> None:
    """The relaxation is tight on them."""
    random = np.random.default_rng(4)
    for scale in (0.3, 3.0, 30.0) * 10:
        graph = draw_graph(random, "tree", scale=scale)
        result = map_estimate(build(graph))
        assert result.optimal, result.status
        np.testing.assert_allclose(result.score, max(GraphOracle(graph).scores), rtol=1e-9)


def test_nothing_found_is_not_optimal() -> None:
    none = MapResult(None, -math.inf, math.inf, converged=False, residual=1.0, iterations=1.0, status="")
    assert not none.optimal
    assert none.gap == math.inf


def test_bad_arguments() -> None:
    graph = FactorGraph.from_arrays([2], [], [])
    with pytest.raises(ArgumentError, match="tolerance"):
        map_estimate(graph, tolerance=0.0)
    with pytest.raises(ArgumentError, match="max_iterations"):
        map_estimate(graph, max_iterations=0)
    assert map_estimate(FactorGraph()).optimal
