"""Belief propagation: exact on trees, the fixed points of a plain reference on loops, bounds, and an honest status."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from crfkit import Chain, FactorGraph
from crfkit.errors import ArgumentError, NoOutputError
from crfkit.inference import belief_propagation, marginals, max_product
from tests.oracles.factor_graphs import SHAPES, Graph, GraphOracle, draw_graph
from tests.oracles.loopy import Loopy

SCHEDULES: tuple[Any, ...] = ("residual", "sequential", "synchronous")


def build(graph: Graph) -> FactorGraph:
    counts, factors = graph
    return FactorGraph.from_arrays(counts, [scope for scope, _ in factors], [table for _, table in factors])


def random_mask(random: np.random.Generator, counts: list[int]) -> dict[str, set[int]]:
    some = {str(v): set(np.flatnonzero(random.random(c) < 0.6).tolist()) for v, c in enumerate(counts)}
    return {name: values for name, values in some.items() if values}


def masks(counts: list[int], allowed: dict[str, set[int]]) -> list[Any]:
    return [np.array([x in allowed.get(str(v), range(c)) for x in range(c)]) for v, c in enumerate(counts)]


def ising(n: int, coupling: float, field: float, seed: int = 0) -> FactorGraph:
    """A grid of n × n spins with random signs of the couplings."""
    random = np.random.default_rng(seed)
    scopes: list[tuple[int, ...]] = [(v, v + 1) for v in range(n * n) if v % n < n - 1]
    scopes += [(v, v + n) for v in range(n * n - n)]
    signs = random.choice([-1.0, 1.0], size=len(scopes))
    tables = [coupling * s * np.array([[1.0, -1.0], [-1.0, 1.0]]) for s in signs]
    fields = [field * x * np.array([1.0, -1.0]) for x in random.normal(size=n * n)]
    return FactorGraph.from_arrays(
        [2] * (n * n), [*scopes, *((v,) for v in range(n * n))], [*tables, *fields]
    )


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("seed", range(3))
def test_exact_on_trees(schedule: Any, seed: int) -> None:
    random = np.random.default_rng(seed)
    for trial in range(60):
        graph = draw_graph(
            random,
            ("tree", "disconnected", "clique", "single")[trial % 4],
            0.25 * (trial % 3),
            (1, 10, 400)[seed],
        )
        allowed = random_mask(random, graph[0]) if trial % 2 else {}
        oracle = GraphOracle(graph, masks(graph[0], allowed))
        if oracle.log_partition == -math.inf:
            with pytest.raises(NoOutputError):
                belief_propagation(build(graph), allowed=allowed, schedule=schedule)
            continue
        result = belief_propagation(build(graph), allowed=allowed, schedule=schedule)
        assert result.exact
        assert result.converged
        assert result.bound is None
        assert "exact" in result.status
        np.testing.assert_allclose(result.log_partition, oracle.log_partition, rtol=1e-12, atol=1e-10)
        for v, expected in enumerate(oracle.of_variables):
            np.testing.assert_allclose(result.marginals[str(v)], expected, rtol=0, atol=1e-10)
        for found, expected in zip(
            result.marginals.factors, oracle.of_factors(oracle.marginals), strict=True
        ):
            np.testing.assert_allclose(found, expected, rtol=0, atol=1e-10)
        best = max_product(build(graph), allowed=allowed, schedule=schedule)
        assert best.optimal
        assert best.output is not None
        np.testing.assert_allclose(best.score, max(oracle.scores), rtol=1e-12, atol=1e-10)


@pytest.mark.parametrize("damping", [0.0, 0.4])
def test_fixed_points_on_loops_are_those_of_the_reference(damping: float) -> None:
    random = np.random.default_rng(5)
    n_converged = 0
    for trial in range(40):
        graph = draw_graph(random, ("loop", "grid", "random", "one value")[trial % 4], scale=0.5)
        reference = Loopy(graph, 0.3).run(300)
        schedule = SCHEDULES[trial % 3]
        result = belief_propagation(build(graph), schedule=schedule, damping=damping, tolerance=1e-11)
        if reference.residual > 1e-12 or not result.converged:
            continue
        n_converged += 1
        np.testing.assert_allclose(result.log_partition, reference.log_partition, rtol=0, atol=1e-8)
        for v, expected in enumerate(reference.of_variables):
            np.testing.assert_allclose(result.marginals[str(v)], expected, rtol=0, atol=1e-8)
        for found, wanted in zip(result.marginals.factors, reference.of_factors, strict=True):
            np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-8)
    assert n_converged > 35


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_tree_reweighted_bounds_hold(schedule: Any) -> None:
    random = np.random.default_rng(7)
    tight = []
    for trial in range(160):
        shape = SHAPES[trial % len(SHAPES)]
        graph = draw_graph(random, shape, 0.15 * (trial % 3 == 0), scale=(0.5, 2.0, 8.0)[trial % 5 % 3])
        allowed = random_mask(random, graph[0]) if trial % 4 == 0 else {}
        oracle = GraphOracle(graph, masks(graph[0], allowed))
        try:
            n = (2, 200)[trial % 2]  # the bound does not need convergence
            result = belief_propagation(
                build(graph),
                allowed=allowed,
                tree_reweighted=True,
                schedule=schedule,
                max_iterations=n,
                damping=0.2,
            )
            best = max_product(
                build(graph), allowed=allowed, tree_reweighted=True, schedule=schedule, max_iterations=n
            )
        except NoOutputError:
            assert not oracle.outputs
            continue
        if not oracle.outputs:
            continue
        assert result.bound == (None if result.exact else "upper")
        slack = 1e-9 * max(1.0, abs(oracle.log_partition))
        assert result.log_partition >= oracle.log_partition - slack
        tight.append(result.log_partition - oracle.log_partition)
        highest = max(oracle.scores)
        assert best.bound >= highest - slack
        assert best.score <= highest + slack
        if best.optimal:
            np.testing.assert_allclose(best.score, highest, rtol=1e-9, atol=1e-8)
    assert np.median(tight) < 0.1


def test_status_is_honest_where_messages_oscillate() -> None:
    """Frustrated grids at low temperature: converged means that the reference's residual is small too."""
    n_not = 0
    for seed in range(6):
        graph = ising(6, 3.0, 0.2, seed)
        for schedule in SCHEDULES:
            result = belief_propagation(graph, schedule=schedule, max_iterations=60)
            assert result.converged == (result.residual < 1e-6)
            assert ("not converged" in result.status) != result.converged
            n_not += not result.converged
    assert n_not > 6
    damped = belief_propagation(ising(6, 0.3, 0.2), damping=0.5)
    assert damped.converged
    assert "converged" in damped.status
    assert damped.residual < 1e-6


def test_damping_is_raised_where_messages_do_not_settle() -> None:
    n_better = 0
    for seed in range(12):
        graph = ising(8, 1.0, 0.5, seed)
        plain = belief_propagation(graph, damping=0.0, max_iterations=500)
        assert plain.damping == 0.0
        by_default = belief_propagation(graph, max_iterations=500)
        assert by_default.converged >= plain.converged
        n_better += by_default.converged > plain.converged
        if by_default.converged:
            assert by_default.averaged == 1
    assert n_better >= 3
    easy = belief_propagation(ising(8, 0.3, 0.5), max_iterations=500)
    assert easy.converged
    assert easy.damping == 0.0


def test_messages_that_do_not_settle_are_averaged() -> None:
    """The means are those of the states of the second half, by the reference."""
    against = 3.0 * np.array([[-1.0, 1.0], [1.0, -1.0]])
    scopes = [(0, 1), (1, 2), (0, 2), (2, 3), (3, 4), (2, 4)]
    tables = [against + 0.3 * np.random.default_rng(f).normal(size=(2, 2)) for f in range(6)]
    graph: Graph = ([2] * 5, list(zip(scopes, tables, strict=True)))
    result = belief_propagation(build(graph), schedule="synchronous", damping=0.0, max_iterations=20)
    assert not result.converged
    assert result.averaged == 11
    assert "marginals are means of 11 iterations" in result.status
    reference = Loopy(graph).run(9)
    states = [reference.run(1).of_variables for _ in range(11)]
    for v in range(5):
        expected = np.mean([state[v] for state in states], axis=0)
        np.testing.assert_allclose(result.marginals[str(v)], expected, rtol=0, atol=1e-9)


def test_means_are_nearer_to_the_marginals() -> None:
    errors, of_states = [], []
    for seed in range(8):
        graph = ising(6, 2.0, 0.5, seed)
        exact = marginals(graph)
        found = belief_propagation(graph, damping=0.0, max_iterations=300)
        if not found.converged:
            errors.append(error_of(found.marginals, exact))
            tables = [(factor.variables, factor.scores) for factor in graph.factors]
            state = Loopy(([2] * 36, tables)).run(60).of_variables
            of_states.append(error_of({str(v): p for v, p in enumerate(state)}, exact))
    assert len(errors) >= 4
    assert np.mean(errors) < 0.9 * np.mean(of_states)


def error_of(found: Any, exact: Any) -> float:
    return float(np.mean([abs(found[name] - exact[name]).mean() for name in exact]))


def test_residual_is_that_of_the_reference() -> None:
    """One more update of all messages, by the reference, changes them by the residual that is reported."""
    random = np.random.default_rng(11)
    counts, factors = draw_graph(random, "grid", scale=3.0)
    # factors over one variable send their message at once here, a step later there
    graph = (counts, [(scope, table) for scope, table in factors if len(scope) > 1])
    for n in (1, 4, 7):
        reference = Loopy(graph).run(n + 1)  # the residual of its last pass is that after n updates
        result = belief_propagation(build(graph), schedule="synchronous", max_iterations=n)
        assert result.iterations == n
        assert math.isclose(result.residual, reference.residual, rel_tol=1e-9)


def test_threads_do_not_change_bits() -> None:
    graph = ising(40, 0.6, 0.3)
    one = belief_propagation(graph, schedule="synchronous", damping=0.2, n_threads=1)
    two = belief_propagation(graph, schedule="synchronous", damping=0.2, n_threads=2)
    assert one.log_partition == two.log_partition
    assert one.residual == two.residual
    assert all((one.marginals[name] == two.marginals[name]).all() for name in one.marginals)


def test_scores_far_apart() -> None:
    """What plain numbers lose is computed again with logarithms: long equalities under strong, opposed scores."""
    graph = FactorGraph.from_arrays([2] * 6, [], [])
    graph.equal(range(6))
    for v in range(5):
        graph.factor([v], [0.0, -300.0])
    graph.factor([5], [-math.inf, 0.0])
    result = belief_propagation(graph)
    np.testing.assert_allclose(result.log_partition, -1500.0, rtol=1e-14)
    assert all(result.marginals[str(v)].tolist() == [0.0, 1.0] for v in range(6))
    graph.factor([0], [0.0, -math.inf])
    with pytest.raises(NoOutputError, match="no assignment is possible"):
        belief_propagation(graph)


def test_counts_and_lists() -> None:
    graph = FactorGraph.from_arrays([2] * 5, [(v,) for v in range(5)], [[0.0, 0.3 * v] for v in range(5)])
    graph.exactly(2, range(5))
    result = belief_propagation(graph)
    assert result.exact
    weights = {(a, b): math.exp(0.3 * (a + b)) for a in range(5) for b in range(a + 1, 5)}
    np.testing.assert_allclose(result.log_partition, math.log(sum(weights.values())), rtol=1e-12)
    of_four = sum(w for pair, w in weights.items() if 4 in pair) / sum(weights.values())
    np.testing.assert_allclose(result.marginals["4"][1], of_four, rtol=1e-12)
    np.testing.assert_allclose(result.marginals.factors[5], [0, 0, 1, 0, 0, 0], atol=1e-14)
    best = max_product(graph)
    assert best.output is not None
    assert dict(best.output) == {"0": 0, "1": 0, "2": 0, "3": 1, "4": 1}


def test_bad_arguments() -> None:
    with pytest.raises(ArgumentError, match="Got Chain, expected a FactorGraph"):
        belief_propagation(Chain())  # type: ignore[arg-type]
    graph = FactorGraph.from_arrays([2, 2], [(0, 1)], [np.zeros((2, 2))])
    for wrong in (
        {"schedule": "random"},
        {"damping": 1.0},
        {"damping": -0.1},
        {"tolerance": 0.0},
        {"max_iterations": 0},
        {"n_threads": 0},
        {"damping": "a"},
        {"tolerance": "a"},
        {"max_iterations": 1.5},
        {"max_iterations": "3"},
        {"n_threads": 1.5},
    ):
        with pytest.raises(ArgumentError, match=next(iter(wrong))):
            belief_propagation(graph, **wrong)
    empty = belief_propagation(FactorGraph())
    assert empty.exact
    assert empty.log_partition == 0.0
    assert len(empty.marginals) == 0
