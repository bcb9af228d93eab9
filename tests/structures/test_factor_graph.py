"""Factor graphs: what is added, how it is checked, and that the tables for the core have the same distribution."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from crfkit import FactorGraph
from crfkit.errors import ArgumentError, LabelError, ShapeError
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
    with pytest.raises(ShapeError):
        graph.assignment([0])


def test_bad_input() -> None:
    graph = FactorGraph()
    a, b = graph.variable("a", 2), graph.variable("b", ["x", "y"])
    other = FactorGraph().variable("a", 2)
    one = graph.variable("one", 1)
    for name, labels in (("a", 2), (1, 2), ("c", 0), ("c", []), ("c", ["x", "x"])):
        with pytest.raises(ArgumentError):
            graph.variable(name, labels)  # type: ignore[arg-type]
    for scope in ([a, a], [other], [9], ["q"]):
        with pytest.raises(ArgumentError):
            graph.factor(scope, [[0.0]])
    with pytest.raises(ShapeError):
        graph.factor([a, b], np.zeros((2, 3)))
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
