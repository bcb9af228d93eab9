"""Best assignments with a dual bound, against enumeration."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest

from crfkit import FactorGraph
from crfkit.errors import ArgumentError, NoOutputError
from crfkit.inference import MapResult, decode, map_estimate, max_product, score
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
        size = int(random.choice([1, 4, 16, 65536]))
        passes = (1, 3, 500, 500)[trial % 4]
        result = map_estimate(build(graph), allowed=allowed, max_iterations=passes, cluster_size=size)
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
        np.testing.assert_allclose(
            result.score, highest, rtol=1e-9, atol=1e-9
        )  # always, on graphs this small
        if passes == 500:
            optimal.append(result.optimal)
    assert np.mean(optimal) > 0.8


def test_bound_is_that_of_the_linear_relaxation() -> None:
    """A frustrated triangle: the relaxation is half-way, at a score of 3 with −1 … 1 for each pair; the best is 1."""
    against = np.array([[-1.0, 1.0], [1.0, -1.0]])
    graph = FactorGraph.from_arrays([2] * 3, [(0, 1), (1, 2), (0, 2)], [against] * 3)
    result = map_estimate(graph, cluster_size=1)
    assert result.score == 1.0
    np.testing.assert_allclose(result.bound, 3.0, atol=1e-6)
    assert not result.optimal
    assert "gap" in result.status
    joined = map_estimate(graph, cluster_size=8)
    assert joined.optimal
    assert joined.score == 1.0


@pytest.mark.parametrize("seed", range(4))
def test_frustrated_grids_lose_nothing(seed: int) -> None:
    """Couplings that contradict each other, on grids that are still narrow enough for the exact answer."""
    for graph in (ising(12, 1.0, 0.3, seed), spin_glass(14, seed)):
        exact = decode(graph).score
        loosest = math.inf
        for size in (1, 64, 1024):  # never a junction tree
            result = map_estimate(graph, cluster_size=size)
            np.testing.assert_allclose(result.score, exact, rtol=1e-9)
            assert exact - 1e-9 <= result.bound <= loosest + 1e-9  # larger clusters are tighter
            loosest = result.bound


def spin_glass(n: int, seed: int) -> FactorGraph:
    """A grid of n × n spins with normal couplings."""
    random = np.random.default_rng(seed)
    scopes = [(v, v + 1) for v in range(n * n) if v % n < n - 1] + [(v, v + n) for v in range(n * n - n)]
    tables = [w * np.array([[1.0, -1.0], [-1.0, 1.0]]) for w in random.normal(size=len(scopes))]
    return FactorGraph.from_arrays([2] * (n * n), scopes, tables)


@pytest.mark.parametrize("cluster_size", [1, 4, 65536])
def test_structured_factors(cluster_size: int) -> None:
    random = np.random.default_rng(cluster_size)
    n_found = 0
    for trial in range(60):
        graph = FactorGraph()
        counts = [int(count) for count in random.integers(2, 4, size=5)]
        for v, count in enumerate(counts):
            graph.variable(f"v{v}", count)
        for _ in range(3):
            scope = random.choice(5, size=2, replace=False).tolist()
            table = random.normal(scale=3.0, size=[counts[v] for v in scope])
            graph.factor(scope, np.where(random.random(table.shape) < 0.15, -np.inf, table))
        some = random.choice(5, size=4, replace=False).tolist()
        if trial % 3 == 0:
            graph.exactly(int(random.integers(0, 5)), some)
        elif trial % 3 == 1:
            graph.count(some, random.normal(size=5))
        else:
            graph.equal([v for v in range(5) if counts[v] == counts[0]])
        scores = [score(graph, None, y) for y in product(*map(range, counts))]
        if max(scores) == -math.inf:
            with pytest.raises(NoOutputError):
                map_estimate(graph, cluster_size=cluster_size)
            continue
        result = map_estimate(graph, cluster_size=cluster_size)
        np.testing.assert_allclose(result.score, max(scores), rtol=1e-9, atol=1e-9)
        assert result.bound >= max(scores) - 1e-9
        n_found += 1
    assert n_found > 30


def test_a_star_of_many_tables_takes_no_quadratic_time() -> None:
    n = 20_000
    graph = FactorGraph.from_arrays(
        [2] * n, [(0, v) for v in range(1, n)], [[[0.0, 1.0], [0.5, 0.0]]] * (n - 1)
    )
    result = map_estimate(graph)
    assert result.optimal
    assert result.score == n - 1


def test_wide_graphs_have_a_bound_that_no_junction_tree_gives() -> None:
    graph = ising(30, 1.0, 0.3)
    result = map_estimate(graph, max_iterations=80)
    other = max_product(graph, max_iterations=200)
    assert other.score <= result.score
    assert result.gap < 0.03 * result.score
    again = map_estimate(graph, max_iterations=80)
    assert (again.score, again.bound) == (result.score, result.bound)


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


def test_what_a_junction_tree_solves_cheaply_is_solved_by_it() -> None:
    """Hard couplings on a grid that is narrow enough; with small clusters there are bounds alone."""
    graph = ising(8, 3.0, 0.3)
    exact = map_estimate(graph)
    assert (exact.optimal, exact.converged, exact.iterations) == (True, True, 0)
    assert exact.status == "optimal: by exact inference"
    assert (exact.score, exact.bound) == (decode(graph).score,) * 2
    relaxed = map_estimate(graph, cluster_size=1)
    assert relaxed.iterations > 0
    assert relaxed.bound > exact.score + 1
    fixed = map_estimate(graph, allowed={0: 1, 5: 0})
    assert (fixed.iterations, fixed.score) == (0, decode(graph, allowed={0: 1, 5: 0}).score)


def pigeons(n: int) -> FactorGraph:
    """n + 1 pigeons in n holes, which is impossible but takes long to see, and other variables beside them."""
    differ = np.where(np.eye(n, dtype=bool), -np.inf, 0.0)
    pairs = [(a, b) for a in range(n + 1) for b in range(a)]
    random = np.random.default_rng(3)
    more = [(n + 1 + a, n + 1 + b) for a in range(6) for b in range(a)]
    tables = [differ] * len(pairs) + [random.normal(size=(3, 3)) for _ in more]
    return FactorGraph.from_arrays([n] * (n + 1) + [3] * 6, pairs + more, tables)


def test_the_bound_falls_though_no_assignment_is_found() -> None:
    result = map_estimate(pigeons(10), cluster_size=1)
    assert result.output is None
    assert result.converged
    assert not result.optimal
    assert result.iterations > 5


def test_scores_that_are_all_small_have_proofs_as_strict_as_others() -> None:
    large, small = (map_estimate(ising(24, 2.0 * f, 0.3 * f), max_iterations=5) for f in (1.0, 1e-12))
    assert not large.optimal
    assert not small.optimal
    assert large.gap > 1e-3 * large.score
    assert small.gap > 1e-3 * small.score
    tree = FactorGraph.from_arrays([2, 2], [(0, 1)], [[[0.0, 2e-12], [1e-12, 0.0]]])
    for cluster_size in (1, 65536):
        assert map_estimate(tree, cluster_size=cluster_size).optimal


def test_a_gap_within_a_wide_tolerance_is_no_proof() -> None:
    result = map_estimate(ising(24, 1.0, 0.3), tolerance=0.5)
    assert result.converged
    assert not result.optimal
    assert result.status.startswith("within the tolerance after ")


@pytest.mark.parametrize("seed", [6, 27, 44])
def test_local_search_takes_no_value_that_is_not_allowed(seed: int) -> None:
    """Value 0 scores much and is excluded for most variables; others exclude each other, but for one known assignment."""
    random, n = np.random.default_rng(seed), 29
    known = random.integers(1, 4, size=n)
    pairs = [(a, b) for b in range(n) for a in range(b)]
    tables = []
    for a, b in pairs:
        table = np.where(random.random((4, 4)) < 0.4, -np.inf, random.normal(size=(4, 4)))
        table[0] = np.where(random.random(4) < 0.02, -np.inf, 3.0)
        table[:, 0] = np.where(random.random(4) < 0.02, -np.inf, 3.0)
        table[known[a], known[b]] = random.normal()
        tables.append(table)
    graph = FactorGraph.from_arrays([4] * n, pairs, tables)
    allowed = {v: {1, 2, 3} for v in range(n) if v % 10}
    result = map_estimate(graph, allowed=allowed, max_iterations=1, cluster_size=1)
    assert result.iterations > 0  # not by exact inference
    assert result.output is not None
    values = result.output.ids
    assert all(values[v] > 0 for v in allowed)
    own = sum(table[values[a], values[b]] for (a, b), table in zip(pairs, tables, strict=True))
    np.testing.assert_allclose(result.score, own, rtol=1e-12)
    assert result.bound >= sum(t[known[a], known[b]] for (a, b), t in zip(pairs, tables, strict=True))


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
    with pytest.raises(ArgumentError, match="cluster_size"):
        map_estimate(graph, cluster_size=0)
    assert map_estimate(FactorGraph()).optimal
