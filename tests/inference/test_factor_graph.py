"""Exact inference on factor graphs: against enumeration, on every shape, with −inf, allowed values and large scores."""

from __future__ import annotations

import copy
import math
import pickle
import signal
import subprocess
import sys
import time
from typing import Any

import numpy as np
import pytest

from crfkit import Chain, ChainScores, FactorGraph, ProjectiveTree, SpanningTree, _core, inference
from crfkit.errors import ArgumentError, NoOutputError, SizeLimitError
from tests.oracles.factor_graphs import SHAPES, Graph, GraphOracle, draw_graph
from tests.oracles.oracle import TreeOracle


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
        inference.marginals(graph, memory_limit="1M")
    with pytest.raises(ArgumentError, match="Got Chain, expected a FactorGraph"):
        inference.plan(Chain())  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="memory_limit"):
        inference.decode(Chain(), ChainScores(np.zeros((2, 2))), memory_limit=1.0)


def count_plans(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    made: list[Any] = []
    plan = _core.JunctionTree

    def count(*arguments: Any) -> Any:
        made.append(plan(*arguments))
        return made[-1]

    monkeypatch.setattr(_core, "JunctionTree", count)
    return made


def test_a_graph_is_planned_once(monkeypatch: pytest.MonkeyPatch) -> None:
    made, graph = count_plans(monkeypatch), grid(4)
    inference.plan(graph)
    value = inference.log_partition(graph)
    best = inference.decode(graph)
    inference.marginals(graph)
    inference.log_probability(graph, output=best.output)
    assert len(made) == 1
    for _ in range(2):
        inference.marginals(graph, allowed={0: 1})
    assert len(made) == 2
    inference.log_partition(graph)
    assert len(made) == 2
    scores = [2 * factor.scores for factor in graph.factors]
    assert inference.log_partition(graph, scores) > value
    assert len(made) == 2  # the same scores are possible
    scores[0] = np.where(np.eye(2) > 0, -np.inf, scores[0])
    other = FactorGraph.from_arrays([2] * 16, [f.variables for f in graph.factors], scores)
    assert inference.log_partition(graph, scores) == pytest.approx(inference.log_partition(other))
    made.clear()
    graph.factor([0, 15], [[0.0, 1.0], [1.0, 0.0]])
    assert inference.log_partition(graph) != value
    assert len(made) == 1
    for value in range(2):  # few plans are kept
        for v in range(6):
            inference.log_partition(graph, allowed={v: value})
    made.clear()
    inference.log_partition(graph, allowed={5: 1})
    assert not made
    inference.log_partition(graph, allowed={0: 0})
    assert len(made) == 1


def test_graphs_with_plans_can_be_copied() -> None:
    graph = grid(4)
    value, best = inference.log_partition(graph), inference.decode(graph)
    for same in (pickle.loads(pickle.dumps(graph)), copy.deepcopy(graph), copy.copy(graph)):
        assert inference.log_partition(same) == value
        same.factor([0], [0.0, 1.0])
        assert inference.log_partition(same) != value
        assert inference.log_partition(graph) == value
    assert dict(pickle.loads(pickle.dumps(best.output))) == dict(best.output)


def test_a_large_graph_is_refused_by_a_part_of_it() -> None:
    """The order of a hopeless grid is not followed far beyond the limit, and needs no more than a part of the grid."""
    found = inference.plan(grid(70), memory_limit=1e9)
    assert not found.fits
    assert found.cliques == []
    assert found.operations < 1e18  # followed to its end it has 1e28
    rows = {int(name) // 70 for name in found.largest_clique}
    assert len(rows) < 60


def test_many_tables_in_one_clique() -> None:
    """Their products are planned quickly; the sums are those over all assignments."""
    random = np.random.default_rng(2)
    n = 13
    scopes = [tuple(int(v) for v in random.permutation(n)[: random.integers(1, 4)]) for _ in range(900)]
    tables = [0.1 * random.normal(size=(2,) * len(scope)) for scope in scopes]
    graph = FactorGraph.from_arrays([2] * n, scopes, tables)
    total = np.zeros((2,) * n)
    for scope, table in zip(scopes, tables, strict=True):
        order = np.argsort(scope)
        total += np.transpose(table, order).reshape([2 if v in scope else 1 for v in range(n)])
    weights = np.exp(total - total.max())
    assert inference.log_partition(graph) == pytest.approx(math.log(weights.sum()) + total.max(), rel=1e-12)
    marginals = inference.marginals(graph)
    for v in range(n):
        known = weights.sum(axis=tuple(u for u in range(n) if u != v)) / weights.sum()
        np.testing.assert_allclose(marginals[str(v)], known, rtol=0, atol=1e-10)
    assert inference.decode(graph).score == pytest.approx(total.max(), rel=1e-12)


def test_a_variable_with_many_neighbours() -> None:
    leaves, values, random = 3000, 300, np.random.default_rng(0)
    tables = 0.1 * random.normal(size=(leaves, values, 2))
    graph = FactorGraph.from_arrays([values, *[2] * leaves], [(0, v + 1) for v in range(leaves)], tables)
    of_hub = np.logaddexp(tables[:, :, 0], tables[:, :, 1]).sum(axis=0)
    known = of_hub.max() + math.log(np.exp(of_hub - of_hub.max()).sum())
    assert inference.log_partition(graph) == pytest.approx(known, rel=1e-12)
    np.testing.assert_allclose(inference.marginals(graph)["0"], np.exp(of_hub - known), rtol=0, atol=1e-10)


def column_sums(tables: tuple[Any, Any, Any]) -> tuple[float, Any]:
    """log Z and the marginals [columns, rows, values] of a grid, by sums over whole columns.

    `tables` are scores of values [columns, rows, values], within columns and between columns [values, values] each.
    """
    own, down, across = tables
    columns, rows, n = own.shape
    shape = (n,) * rows

    def weights(column: int) -> Any:
        total = np.zeros(shape)
        for r in range(rows):
            total = total + own[column, r].reshape([n if i == r else 1 for i in range(rows)])
            if r + 1 < rows:
                total = total + down.reshape([n if i in (r, r + 1) else 1 for i in range(rows)])
        return np.exp(total)

    def step(message: Any, matrix: Any) -> Any:
        for r in range(rows):
            message = np.moveaxis(np.tensordot(message, matrix, axes=(r, 0)), -1, r)
        return message

    forward, backward = [weights(0)], [np.ones(shape)]
    for column in range(1, columns):
        forward.append(step(forward[-1], np.exp(across)) * weights(column))
        backward.append(step(backward[-1] * weights(columns - column), np.exp(across).T))
    z = forward[-1].sum()
    marginals = np.empty((columns, rows, n))
    for column in range(columns):
        joint = forward[column] * backward[columns - 1 - column] / z
        for r in range(rows):
            marginals[column, r] = joint.sum(axis=tuple(i for i in range(rows) if i != r))
    return float(np.log(z)), marginals


@pytest.mark.parametrize(("columns", "rows", "values"), [(17, 15, 2), (10, 9, 3), (4, 4, 12)])
def test_cliques_with_many_entries(columns: int, rows: int, values: int) -> None:
    random = np.random.default_rng(columns)
    own, down, across = (
        random.normal(size=s) for s in ((columns, rows, values), (values,) * 2, (values,) * 2)
    )
    scopes: list[tuple[int, ...]] = [(v,) for v in range(columns * rows)]
    tables = list(own.reshape(-1, values))
    for v in range(columns * rows):
        if v % rows + 1 < rows:
            scopes.append((v, v + 1))
            tables.append(down)
        if v + rows < columns * rows:
            scopes.append((v, v + rows))
            tables.append(across)
    graph = FactorGraph.from_arrays([values] * (columns * rows), scopes, tables)
    log_z, known = column_sums((own, down, across))
    assert inference.log_partition(graph) == pytest.approx(log_z, rel=1e-12)
    marginals = inference.marginals(graph)
    np.testing.assert_allclose(
        np.array(list(marginals.values())), known.reshape(-1, values), rtol=0, atol=1e-10
    )
    for factor, found in zip(graph.factors, marginals.factors, strict=True):
        for axis, v in enumerate(factor.variables):
            others = tuple(i for i in range(found.ndim) if i != axis)
            np.testing.assert_allclose(
                found.sum(axis=others), known.reshape(-1, values)[v], rtol=0, atol=1e-10
            )
    best = inference.decode(graph)
    assert best.score <= log_z
    for v in range(0, columns * rows, 29):  # no single change improves it
        for x in range(values):
            assert inference.score(
                graph, output=np.where(np.arange(columns * rows) == v, x, best.output.ids)
            ) <= (best.score + 1e-9)


@pytest.mark.parametrize("projective", [False, True])
def test_trees_as_a_factor_graph(projective: bool) -> None:
    """Heads as variables, and all trees as one list of configurations."""
    words, random = 4, np.random.default_rng(8)
    scores = random.normal(size=(words + 1, words + 1))
    trees = TreeOracle(scores, single_root=False).outputs
    if projective:
        trees = [heads for heads in trees if is_projective(heads)]
    graph = FactorGraph()
    variables = [graph.variable(f"head {w}", words + 1) for w in range(1, words + 1)]
    for w, variable in enumerate(variables, start=1):
        graph.factor([variable], scores[:, w])
    graph.factor(variables, dict.fromkeys(trees, 0.0))
    totals = np.array([sum(scores[h, w] for w, h in enumerate(heads, start=1)) for heads in trees])
    assert inference.log_partition(graph) == pytest.approx(float(np.logaddexp.reduce(totals)), rel=1e-12)
    assert inference.decode(graph).score == pytest.approx(totals.max())
    structure = ProjectiveTree(single_root=False) if projective else SpanningTree(single_root=False)
    assert inference.log_partition(graph) == pytest.approx(
        inference.log_partition(structure, scores), rel=1e-12
    )
    arcs = inference.marginals(structure, scores)
    found = np.array(list(inference.marginals(graph).values()))
    np.testing.assert_allclose(found.T, arcs[:, 1:], rtol=0, atol=1e-9)
    assert inference.entropy(graph) == pytest.approx(inference.entropy(structure, scores), rel=1e-9)


def is_projective(heads: tuple[int, ...]) -> bool:
    arcs = [(min(h, w), max(h, w)) for w, h in enumerate(heads, start=1)]
    return not any(a < c < b < d for a, b in arcs for c, d in arcs)


def test_a_long_question_can_be_interrupted() -> None:
    program = (
        "import numpy as np\nfrom crfkit import FactorGraph, inference\n"
        "n = 26\nscopes = [(v, v + 1) for v in range(n * n) if v % n < n - 1] + [(v, v + n) for v in range(n * n - n)]\n"
        "graph = FactorGraph.from_arrays([2] * n * n, scopes, [[[0.0, 0.5], [0.5, 0.0]]] * len(scopes))\n"
        "print('ready', flush=True)\n"
        "inference.log_partition(graph, memory_limit=1e15)\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        time.sleep(0.5)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=30)
    assert b"KeyboardInterrupt" in errors


@pytest.mark.parametrize(("n", "values"), [(15, 2), (9, 3)])
def test_large_cliques_in_the_log_domain(n: int, values: int) -> None:
    """Scores of 400 that cancel between factors change no assignment's score, but exceed the range of plain numbers."""
    random = np.random.default_rng(n)
    scopes = [(v, v + 1) for v in range(n * n) if v % n < n - 1] + [(v, v + n) for v in range(n * n - n)]
    plain = [random.normal(size=(values, values)) for _ in scopes]
    own = [np.zeros(values) for _ in range(n * n)]
    moved = []
    for (_, below), table in zip(scopes, plain, strict=True):
        shift = 400.0 * random.normal(size=values)
        own[below] -= shift
        moved.append(table + shift)
    names = [*scopes, *((v,) for v in range(n * n))]
    expected = FactorGraph.from_arrays([values] * n * n, names, [*plain, *(np.zeros_like(o) for o in own)])
    graph = FactorGraph.from_arrays([values] * n * n, names, [*moved, *own])
    assert inference.log_partition(graph) == pytest.approx(inference.log_partition(expected), rel=1e-10)
    found, known = inference.marginals(graph), inference.marginals(expected)
    for one, other in zip(found.factors, known.factors, strict=True):
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-9)
    assert inference.entropy(graph) == pytest.approx(inference.entropy(expected), rel=1e-9)
    direction = [random.normal(size=factor.scores.shape) for factor in graph.factors]
    moves = inference.hessian_vector(graph, direction=direction)
    for one, other in zip(
        moves.factors, inference.hessian_vector(expected, direction=direction).factors, strict=True
    ):
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-8)
