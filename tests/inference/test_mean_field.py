"""Mean field: a lower bound that never falls, fixed points by their definition, −inf."""

from __future__ import annotations

import math

import numpy as np
import pytest

from crfkit import FactorGraph
from crfkit.errors import ArgumentError, NoOutputError
from crfkit.inference import mean_field
from tests.inference.test_belief_propagation import build, masks, random_mask
from tests.oracles.factor_graphs import SHAPES, GraphOracle, draw_graph


@pytest.mark.parametrize("impossible", [0.0, 0.2, 0.4])
def test_bounds_hold_and_never_fall(impossible: float) -> None:
    random = np.random.default_rng(3)
    n_found = 0
    for trial in range(160):
        graph = draw_graph(random, SHAPES[trial % len(SHAPES)], impossible, (0.5, 2.0, 30.0)[trial % 3])
        allowed = random_mask(random, graph[0]) if trial % 2 else {}
        oracle = GraphOracle(graph, masks(graph[0], allowed))
        if not oracle.outputs:
            with pytest.raises(NoOutputError):
                mean_field(build(graph), allowed=allowed)
            continue
        n_found += 1
        result = mean_field(build(graph), allowed=allowed, max_iterations=(1, 300)[trial % 4 > 0])
        assert result.bound == "lower"
        slack = 1e-10 * max(1.0, abs(oracle.log_partition))
        assert -math.inf < result.log_partition <= oracle.log_partition + slack
        assert (np.diff(result.bounds) >= -slack).all()
        assert result.converged == (result.residual < 1e-6)
        assert ("not converged" in result.status) != result.converged
        # the bound by its definition: Σ_y q(y) (score(y) − log q(y)), and q(y) = 0 for what is impossible
        q = np.array(
            [math.prod(result.marginals[str(v)][x] for v, x in enumerate(y)) for y in oracle.outputs]
        )
        np.testing.assert_allclose(q.sum(), 1.0, rtol=1e-12)
        some = q > 0
        expected = (q[some] * (oracle.scores[some] - np.log(q[some]))).sum()
        np.testing.assert_allclose(result.log_partition, expected, rtol=1e-10, atol=1e-9)
    assert n_found > 60


def test_independent_variables_are_exact() -> None:
    graph = FactorGraph.from_arrays([2, 3], [(0,), (1,), ()], [[0.0, 1.0], [0.5, -1.0, 0.0], 2.0])
    result = mean_field(graph)
    expected = np.logaddexp(0, 1) + np.log(np.exp([0.5, -1.0, 0.0]).sum()) + 2.0
    assert result.converged
    np.testing.assert_allclose(result.log_partition, expected, rtol=1e-14)


def test_bad_arguments() -> None:
    graph = FactorGraph.from_arrays([2], [], [])
    with pytest.raises(ArgumentError, match="tolerance"):
        mean_field(graph, tolerance=-1.0)
    with pytest.raises(ArgumentError, match="max_iterations"):
        mean_field(graph, max_iterations=0)
