"""A factor graph as the core reads it, and the core's answers as marginals and assignments of the graph."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from crfkit import _core
from crfkit.arrays import Bools, Float64s, Int32s, Int64s
from crfkit.errors import ArgumentError
from crfkit.structures import Assignment, FactorGraph, GraphMarginals, NoOutputError

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
    core: _core.FactorGraph
    allowed: Bools | None  # [values] of all variables, the added ones included

    @classmethod
    def of(cls, graph: FactorGraph, allowed: Mapping[Any, Any] | None) -> GraphScores:
        """Checks `allowed`, which maps variables to a label or to a set of labels."""
        if not isinstance(graph, FactorGraph):
            raise ArgumentError(f"got {type(graph).__name__}, expected a FactorGraph.")
        tables = graph.tables
        core = _core.FactorGraph(tables.cardinalities, tables.scope_ptr, tables.scopes)
        masks = graph.allowed_values(allowed)
        if masks is None:
            return cls(graph, core, None)
        n_added = int(tables.cardinalities[tables.n_variables :].sum())
        return cls(graph, core, np.concatenate([*masks, np.ones(n_added, dtype=np.bool_)]))

    @property
    def scores(self) -> Float64s:
        """Of all tables, one after the other."""
        return self.graph.tables.scores

    def marginals(self, of_values: Float64s, of_tables: Float64s) -> GraphMarginals:
        """Probabilities of all values and of all entries of tables, for the variables and factors of the graph."""
        tables = self.graph.tables
        ends = np.cumsum(tables.cardinalities[: tables.n_variables])
        variables = np.split(of_values[: ends[-1] if len(ends) else 0], ends[:-1]) if len(ends) else []
        return GraphMarginals(self.graph.variables, variables, FactorNumbers(tables.places, of_tables))

    def assignment(self, values: Int32s) -> Assignment:
        """The values of the graph's own variables."""
        return Assignment(self.graph.variables, values[: self.graph.tables.n_variables].astype(np.int32))

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
    """Raises unless each of the numbers is 1 or more."""
    for name, number in numbers.items():
        if number < 1:
            raise ArgumentError(f"{name} is {number}, expected 1 or more.")


def check_tolerance(tolerance: float) -> None:
    """Raises unless it is positive."""
    if not tolerance > 0:
        raise ArgumentError(f"tolerance is {tolerance}, expected a positive number.")
