"""Gibbs sampling: estimates near the enumeration's, an honest status, the same samples on any number of threads."""

from __future__ import annotations

import math

import numpy as np
import pytest

from crfkit import FactorGraph
from crfkit.errors import ArgumentError, NoOutputError
from crfkit.inference import gibbs
from tests.inference.test_belief_propagation import build, ising, masks, random_mask
from tests.oracles.factor_graphs import GraphOracle, draw_graph


@pytest.mark.parametrize("blocked", [True, False])
def test_marginals_are_near_those_of_the_enumeration(blocked: bool) -> None:
    random = np.random.default_rng(1)
    for trial, shape in enumerate(
        ["tree", "grid", "loop", "clique", "disconnected", "random", "one value", "single"] * 2
    ):
        graph = draw_graph(random, shape, scale=0.7)
        allowed = random_mask(random, graph[0]) if trial % 2 else {}
        oracle = GraphOracle(graph, masks(graph[0], allowed))
        result = gibbs(build(graph), 2000, random_state=trial, blocked=blocked, allowed=allowed)
        assert result.converged, result.status
        assert "not" not in result.status
        # five standard errors of a frequency with this many effective samples
        bound = 5 * 0.5 / math.sqrt(result.effective_samples)
        for v, expected in enumerate(oracle.of_variables):
            np.testing.assert_allclose(result.marginals[str(v)], expected, rtol=0, atol=bound)
            np.testing.assert_allclose(result.marginals[str(v)].sum(), 1.0, rtol=1e-10)
        for found, wanted in zip(result.marginals.factors, oracle.of_factors(oracle.marginals), strict=True):
            np.testing.assert_allclose(found, wanted, rtol=0, atol=bound)
        for y, score in zip(result.samples[::97], result.scores[::97], strict=True):
            place = oracle.by_output[tuple(int(x) for x in y)]
            np.testing.assert_allclose(score, oracle.scores[place], rtol=1e-12, atol=1e-12)


def test_a_forest_is_drawn_at_once() -> None:
    """Samples of a tree are independent, and the estimate given no other variable is exact."""
    graph = draw_graph(np.random.default_rng(0), "tree", scale=2.0)
    result = gibbs(build(graph), 2000, burn_in=0, random_state=2)
    assert result.n_blocks == 1
    assert result.effective_samples > 1500
    for v, expected in enumerate(GraphOracle(graph).of_variables):
        np.testing.assert_allclose(result.marginals[str(v)], expected, rtol=0, atol=1e-12)


def test_blocks_of_a_grid() -> None:
    assert gibbs(ising(8, 0.3, 0.2), 40, random_state=0).n_blocks == 2
    assert gibbs(ising(8, 0.3, 0.2), 40, random_state=0, blocked=False).n_blocks == 2  # as a chessboard has


def test_threads_do_not_change_samples() -> None:
    graph = ising(6, 0.5, 0.3)
    one = gibbs(graph, 400, random_state=7)
    two = gibbs(graph, 400, random_state=7, n_threads=2)
    assert (one.samples == two.samples).all()
    assert all((one.marginals[name] == two.marginals[name]).all() for name in one.marginals)
    assert (gibbs(graph, 400, random_state=8).samples != one.samples).any()


def test_status_is_honest_where_chains_do_not_mix() -> None:
    """Two variables that must be equal: single variables never move, blocks draw both."""
    graph = FactorGraph.from_arrays([2, 2], [(0, 1)], [[[0.0, -math.inf], [-math.inf, 0.0]]])
    stuck = gibbs(graph, 400, blocked=False, n_chains=8, random_state=0)
    assert not stuck.converged
    assert "not converged" in stuck.status
    assert stuck.r_hat == math.inf
    assert gibbs(graph, 400, random_state=0).converged
    frozen = gibbs(ising(6, 4.0, 0.1), 400, blocked=False, random_state=0)
    assert not frozen.converged


def test_impossible_configurations() -> None:
    random = np.random.default_rng(5)
    n_possible = 0
    for trial in range(40):
        graph = draw_graph(random, ("grid", "random")[trial % 2], 0.3, scale=(1.0, 900.0)[trial % 4 // 2])
        oracle = GraphOracle(graph)
        if not oracle.outputs:
            with pytest.raises(NoOutputError):
                gibbs(build(graph), 40)
            continue
        n_possible += 1
        result = gibbs(build(graph), 40, random_state=trial)
        assert {tuple(map(int, y)) for y in result.samples} <= set(oracle.by_output)
    assert n_possible > 10


def test_counts_are_sampled_with_their_added_variables() -> None:
    graph = FactorGraph.from_arrays([2] * 5, [], [])
    graph.exactly(2, range(5))
    result = gibbs(graph, 2000, random_state=0)
    assert result.samples.shape == (2000, 5)
    assert (result.samples.sum(axis=1) == 2).all()
    np.testing.assert_allclose(result.marginals["3"], [0.6, 0.4], atol=0.03)


def test_bad_arguments() -> None:
    graph = FactorGraph.from_arrays([2], [], [])
    for wrong in ({"thin": 0}, {"n_chains": 0}, {"n_threads": 0}, {"burn_in": -1}, {"n": 15}):
        with pytest.raises(ArgumentError, match=next(iter(wrong))):
            gibbs(graph, **wrong)  # type: ignore[arg-type]
