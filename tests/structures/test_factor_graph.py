"""Factor graphs: what is added, how it is checked, and that the tables for the core have the same distribution."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest

from crfkit import FactorGraph, inference
from crfkit.errors import ArgumentError, LabelError, ShapeError, SizeLimitError
from crfkit.structures import CountFactor, EqualFactor, ListFactor, TableFactor


def scores_of_tables(graph: FactorGraph) -> dict[tuple[int, ...], list[float]]:
    """Assignment of the graph → the scores, above −inf, of all assignments of the tables that extend it."""
    tables = graph.tables
    found: dict[tuple[int, ...], list[float]] = {}
    for y in itertools.product(*(range(count) for count in tables.cardinalities)):
        score = 0.0
        for f in range(len(tables.scope_ptr) - 1):
            scope = tables.scopes[tables.scope_ptr[f] : tables.scope_ptr[f + 1]]
            place = 0
            for v in scope:
                place = place * int(tables.cardinalities[v]) + y[v]
            score += float(tables.scores[tables.table_ptr[f] + place])
        if score > -math.inf:
            found.setdefault(y[: tables.n_variables], []).append(score)
    return found


def check_tables(graph: FactorGraph) -> None:
    """Each possible assignment has one extension, with its score."""
    found = scores_of_tables(graph)
    for y in itertools.product(*(range(len(v)) for v in graph.variables)):
        ids = np.array(y, dtype=np.int32)
        score = sum(factor.score(ids[list(factor.variables)]) for factor in graph.factors)
        if score == -math.inf:
            assert y not in found
        else:
            assert found[y] == [pytest.approx(score)]


def binary(n: int) -> FactorGraph:
    return FactorGraph.from_arrays([2] * n, [], [])


def test_scores_by_count() -> None:
    graph = FactorGraph()
    variables = [graph.variable(f"v{i}", 2 + i % 2) for i in range(4)]
    factor = graph.count(variables, [0.1, 0.2, -math.inf, 0.4, -math.inf])
    assert isinstance(factor, CountFactor)
    assert factor.score(np.array([1, 1, 1, 0], dtype=np.int32)) == 0.4
    assert factor.score(np.array([1, 2, 0, 0], dtype=np.int32)) == 0.2
    check_tables(graph)


@pytest.mark.parametrize("n", [0, 1, 2, 4])
def test_at_most_one_and_exactly(n: int) -> None:
    for k in range(n + 1):
        graph = binary(n)
        graph.exactly(k, range(n))
        possible = [y for y in itertools.product([0, 1], repeat=n) if sum(y) == k]
        assert sorted(scores_of_tables(graph)) == possible
        check_tables(graph)
    graph = binary(n)
    graph.at_most_one(range(n), label=0)
    assert sorted(scores_of_tables(graph)) == [
        y for y in itertools.product([0, 1], repeat=n) if y.count(0) <= 1
    ]
    check_tables(graph)


def test_a_count_that_is_impossible() -> None:
    graph = binary(2)
    graph.count([0, 1], [-math.inf] * 3)
    assert not scores_of_tables(graph)


def test_equality() -> None:
    graph = FactorGraph.from_arrays([3] * 3, [], [])
    assert isinstance(graph.equal([0, 1, 2]), EqualFactor)
    assert sorted(scores_of_tables(graph)) == [(0, 0, 0), (1, 1, 1), (2, 2, 2)]
    check_tables(graph)


@pytest.mark.parametrize("small", [4096, 0])
def test_lists_of_configurations(small: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("crfkit.structures.factor_tables.SMALL_TABLE", small)
    graph = FactorGraph()
    a, b = graph.variable("a", ["x", "y"]), graph.variable("b", 3)
    factor = graph.factor([a, b], {("x", 2): 1.5, ("y", 0): -0.5})
    assert isinstance(factor, ListFactor)
    check_tables(graph)
    tables = graph.tables
    assert tables.of_factors(tables.scores)[0].tolist() == [1.5, -0.5]
    moved = tables.with_scores([np.array([7.0, 8.0])], other=0.0)
    assert sorted(moved[moved != 0].tolist()) == [7.0, 8.0]
    other = graph.factor([a], {"x": 2.0}, other=0.5)
    assert isinstance(other, TableFactor)
    assert other.table.tolist() == [2.0, 0.5]


def test_lists_in_which_other_configurations_are_possible(monkeypatch: pytest.MonkeyPatch) -> None:
    """Over many variables a list is no table: its scores are those of the mapping, and one for all other configurations."""
    monkeypatch.setattr("crfkit.structures.factor_graph.LARGEST_TABLE", 10)
    graph = FactorGraph()
    a, b, c = graph.variable("a", ["x", "y"]), graph.variable("b", 3), graph.variable("c", 2)
    scores = {("x", 2, 0): 1.5, ("y", 0, 1): -0.5, ("x", 1, 1): -math.inf, ("x", 2, 1): 0.25}
    factor = graph.factor([a, b, c], scores, other=0.75)
    assert isinstance(factor, ListFactor)
    assert factor.scores.tolist() == [1.5, -0.5, -math.inf, 0.25, 0.75]
    assert factor.score(np.array([0, 2, 0], dtype=np.int32)) == 1.5
    assert factor.score(np.array([1, 2, 0], dtype=np.int32)) == 0.75
    check_tables(graph)
    tables = graph.tables
    assert tables.of_factors(tables.scores)[0].tolist() == factor.scores.tolist()
    # ten variables of ten values: no table of 10^10 entries
    wide = FactorGraph.from_arrays([10] * 10, [], [])
    random = np.random.default_rng(0)
    rows = {tuple(map(int, row)): float(i) for i, row in enumerate(random.integers(10, size=(50, 10)))}
    wide.factor(range(10), rows, other=-1.0)
    assert wide.tables.scores.size < 300_000
    expected = np.logaddexp(np.logaddexp.reduce(list(rows.values())), math.log(10**10 - 50) - 1.0)
    assert inference.log_partition(wide) == pytest.approx(expected, rel=1e-12)
    marginals = inference.marginals(wide).factors[0]
    assert marginals.shape == (51,)
    assert marginals[-1] == pytest.approx(math.exp(math.log(10**10 - 50) - 1.0 - expected), rel=1e-9)
    assert inference.decode(wide).score == 49.0
    alone = FactorGraph.from_arrays([10] * 10, [], [])
    alone.factor(range(10), rows)
    assert inference.log_partition(alone) == pytest.approx(np.logaddexp.reduce(list(rows.values())))
    assert inference.belief_propagation(alone).exact
    many = {tuple(map(int, row)): 0.0 for row in random.integers(10, size=(5000, 10))}
    wide.factor(range(10), many, other=0.0)
    with pytest.raises(SizeLimitError, match="a list of 5,000 configurations"):
        inference.log_partition(wide)


def test_a_list_over_no_variable() -> None:
    graph = FactorGraph.from_arrays([2], [], [])
    graph.factor([], {(): 1.5})
    graph.factor([], 0.25)
    check_tables(graph)
    assert inference.log_partition(graph) == pytest.approx(math.log(2) + 1.75)


def test_allowed_values() -> None:
    graph = FactorGraph()
    graph.variable("a", ["x", "y", ("z", 1)])
    graph.variable("b", 2)
    masks = graph.allowed_values({"a": {"x", "y"}, graph["b"]: 1})
    assert masks is not None
    assert [mask.tolist() for mask in masks] == [[True, True, False], [False, True]]
    tuples = graph.allowed_values({"a": ("z", 1)})
    assert tuples is not None
    assert tuples[0].tolist() == [False, False, True]
    both = graph.allowed_values({"a": {"x", "y"}, 0: ["y", ("z", 1)]})  # by its name and by its number
    assert both is not None
    assert both[0].tolist() == [False, True, False]
    with pytest.raises(LabelError):
        graph.allowed_values({"a": "x", 0: "y"})
    for key in (0.5, None, True, -1):
        with pytest.raises(ArgumentError, match="is no variable of this graph"):
            graph.allowed_values({key: "x"})
    with pytest.raises(LabelError):
        graph.allowed_values({"a": "q"})
    with pytest.raises(LabelError):
        graph.allowed_values({"a": []})


def test_assignments() -> None:
    graph = FactorGraph()
    graph.variable("a", ["x", "y"])
    graph.variable("b", 3)
    assert graph.assignment({"a": "y", "b": 2}).tolist() == [1, 2]
    assert graph.assignment([0, 1]).tolist() == [0, 1]
    for wrong in ({"a": "x"}, {"a": "x", "b": 1, "c": 0}):
        with pytest.raises(ArgumentError):
            graph.assignment(wrong)
    for outside in ([0, 3], [-1, 0]):
        with pytest.raises(LabelError):
            graph.assignment(outside)
    for shape in ([0], [[0], [1, 2]], "ab"):
        with pytest.raises(ShapeError):
            graph.assignment(shape)


def test_bad_input() -> None:
    graph = FactorGraph()
    a, b = graph.variable("a", 2), graph.variable("b", ["x", "y"])
    other = FactorGraph().variable("a", 2)
    one = graph.variable("one", 1)
    wrong: tuple[Any, ...] = (0, [], ["x", "x"], 2.0, True, None, [[1], [2]], 1 << 40)
    for name, labels in (("a", 2), (1, 2), *(("c", some) for some in wrong)):
        with pytest.raises(ArgumentError):
            graph.variable(name, labels)  # type: ignore[arg-type]
    for scope in ([a, a], [other], [9], ["q"], [0.7], [None], [True], 0):
        with pytest.raises(ArgumentError):
            graph.factor(scope, [[0.0]])  # type: ignore[arg-type]
    with pytest.raises(
        ShapeError, match=r"Factor 0 over \['a', 'b'\]: expected scores \[2, 2\], got \[2, 3\]"
    ):
        graph.factor([a, b], np.zeros((2, 3)))
    with pytest.raises(ArgumentError, match=r"Factor 0 over \['a'\]: scores are no array of numbers"):
        graph.factor([a], {0: "q"})  # type: ignore[dict-item]
    with pytest.raises(ArgumentError, match=r"got other=1.0 beside an array"):
        graph.factor([a], [0.0, 1.0], other=1.0)
    for k in (1.5, "1", 1.0, True):
        with pytest.raises(ArgumentError, match="exactly: k is"):
            graph.exactly(k, [a, b])  # type: ignore[arg-type]
    for no_numbers in ([[0.0, 1.0], [0.0]], ["x", "y"], [1j, 0.0]):
        with pytest.raises(ArgumentError, match="scores are no array of numbers"):
            graph.factor([a, b], no_numbers)
    with pytest.raises(ShapeError, match="1 tables for 2 scopes"):
        FactorGraph.from_arrays([2, 2], [(0,), (1,)], [[0.0, 0.0]])
    with pytest.raises(ArgumentError, match="expected a mapping"):
        graph.allowed_values(["a"])  # type: ignore[arg-type]
    for score in (np.nan, np.inf):
        with pytest.raises(ArgumentError):
            graph.factor([a], [0.0, score])
        with pytest.raises(ArgumentError):
            graph.factor([a], {0: score})
    with pytest.raises(ShapeError):
        graph.factor([a, b], {(0, "x", 1): 1.0})
    with pytest.raises(LabelError):
        graph.factor([a, b], {(0, "z"): 1.0})
    with pytest.raises(ArgumentError):
        graph.exactly(3, [a, b])
    with pytest.raises(ArgumentError):
        graph.at_most_one([one])
    with pytest.raises(ShapeError):
        graph.equal([a, one])
    with pytest.raises(ShapeError):
        FactorGraph.from_arrays([2], [], [], names=["a", "b"])


def test_structured_factors_that_need_too_large_tables_are_refused_before_these_are_made() -> None:
    graph = FactorGraph()
    many = [graph.variable(f"v{i}", 2) for i in range(3000)]
    graph.exactly(1500, many)
    with pytest.raises(SizeLimitError, match="counting up to 1,500 of 3,000 variables"):
        _ = graph.tables  # 72 GB
    wide = FactorGraph()
    wide.equal([wide.variable(f"v{i}", 100_000) for i in range(2)])
    with pytest.raises(SizeLimitError, match="100,000 values"):
        _ = wide.tables
    narrow = FactorGraph()
    narrow.exactly(2, [narrow.variable(f"v{i}", 2) for i in range(3000)])
    assert len(narrow.tables.cardinalities) == 6000


def test_complex_scores_are_refused() -> None:
    graph = FactorGraph()
    with pytest.raises(ArgumentError, match="complex"):
        graph.factor([graph.variable("a", 2)], np.array([1j, 2.0]))


def test_marginals_as_text() -> None:
    graph = FactorGraph()
    for i in range(9):
        graph.variable(f"v{i}", ["a", "b"])
        graph.factor([f"v{i}"], np.log([0.25, 0.75]))
    marginals = inference.marginals(graph)
    assert str(marginals).splitlines() == [f"v{i}: b 0.75, a 0.25" for i in range(8)] + ["…"]
    graph = FactorGraph()
    graph.variable("many", 10)
    assert str(inference.marginals(graph)).endswith("7 0.1, …")
    assert repr(marginals) == "GraphMarginals(9 variables, 9 factors)"
