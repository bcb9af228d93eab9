"""A factor graph as the core reads it, and the core's answers as marginals and assignments of the graph."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from crfkit import _core
from crfkit.arrays import Bools, Float64s, Int32s, Int64s
from crfkit.errors import ArgumentError
from crfkit.inference.problem import MOST, WHOLE, is_whole
from crfkit.structures import Assignment, FactorGraph, GraphMarginals, NoOutputError

_CORE = ("core",)
IMPOSSIBLE = "Factor graph: no assignment is possible; factors or allowed values exclude every one."


@dataclass(frozen=True, eq=False)
class FactorNumbers(Sequence[Float64s]):
    """Numbers of the entries of tables, for each factor of a graph when they are asked for."""

    places: Sequence[Int64s]  # of each factor's scores among those of the tables; −1: none
    flat: Float64s

    def __len__(self) -> int:
        return len(self.places)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        places = self.places[index]
        return np.where(places >= 0, self.flat[np.maximum(places, 0)], 0.0)


@dataclass(frozen=True, eq=False)
class GraphScores:
    """The dense tables of a graph, with the values that are allowed."""

    graph: FactorGraph
    masks: Sequence[Bools] | None  # [V] the allowed values of each variable
    allowed: Bools | None  # [values] of all variables, the added ones included

    @classmethod
    def of(cls, graph: FactorGraph, allowed: Mapping[Any, Any] | None) -> GraphScores:
        """Checks `allowed`, which maps variables to a label or to a set of labels."""
        if not isinstance(graph, FactorGraph):
            raise ArgumentError(f"Got {type(graph).__name__}, expected a FactorGraph.")
        tables, masks = graph.tables, graph.allowed_values(allowed)
        if masks is None:
            return cls(graph, None, None)
        n_added = int(tables.cardinalities[tables.n_variables :].sum())
        return cls(graph, masks, np.concatenate([*masks, np.ones(n_added, dtype=np.bool_)]))

    @property
    def core(self) -> _core.FactorGraph:
        """The tables in the core, without scores; they are kept as long as the graph does not change."""
        tables = self.graph.tables
        if _CORE not in tables.plans:
            tables.plans[_CORE] = _core.FactorGraph(tables.cardinalities, tables.scope_ptr, tables.scopes)
        kept: _core.FactorGraph = tables.plans[_CORE]
        return kept

    def messages(self, tree_reweighted: bool) -> _core.BeliefPropagation:
        """Which messages the tables send, kept likewise."""
        plans, key = self.graph.tables.plans, ("messages", tree_reweighted)
        if key not in plans:
            plans[key] = _core.BeliefPropagation(self.core, tree_reweighted)
        kept: _core.BeliefPropagation = plans[key]
        return kept

    @property
    def scores(self) -> Float64s:
        """Of all tables, one after the other."""
        return self.graph.tables.scores

    def marginals(self, of_values: Float64s, of_tables: Float64s) -> GraphMarginals:
        """Probabilities of all values and of all entries of tables, for the variables and factors of the graph."""
        numbers = FactorNumbers(self.graph.tables.places, of_tables)
        return GraphMarginals(self.graph.variables, self.of_variables(of_values), numbers)

    def of_variables(self, of_values: Float64s) -> list[Float64s]:
        """Numbers of all values, for each variable of the graph."""
        tables = self.graph.tables
        ends = np.cumsum(tables.cardinalities[: tables.n_variables], dtype=np.int64)
        return np.split(of_values[: ends[-1]], ends[:-1]) if len(ends) else []

    def assignment(self, values: Int32s) -> Assignment:
        """The values of the graph's own variables."""
        return Assignment(self.graph, values[: self.graph.tables.n_variables])

    def checked(self, answer: dict[str, Any] | None) -> dict[str, Any]:
        """What the core answers, unless it found no possible assignment to begin with."""
        if answer is None:
            raise NoOutputError(
                "Factor graph: no possible assignment was found in the number of steps that the search takes."
            )
        if not answer["possible"]:
            raise self.no_output()
        return answer

    def no_output(self) -> NoOutputError:
        """The error for a graph without a possible assignment."""
        return NoOutputError(IMPOSSIBLE)


def check_counts(**numbers: int) -> None:
    """Raises unless each of the numbers is a whole number of 1 or more."""
    for name, number in numbers.items():
        if not is_whole(number) or not 1 <= number <= MOST:
            raise ArgumentError(f"{name} is {number!r}, expected 1 or more{WHOLE}.")


def check_tolerance(tolerance: float) -> None:
    """Raises unless it is positive."""
    if not isinstance(tolerance, int | float | np.integer | np.floating) or not tolerance > 0:
        raise ArgumentError(f"tolerance is {tolerance!r}, expected a positive number.")
