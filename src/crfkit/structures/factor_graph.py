"""Factor graphs: discrete variables of any sizes, and factors that score some of them together.

    p(y) = exp(Σ_f score_f(y_f)) / Z        y_f: the values of the variables of factor f

Scores are in the log domain; −inf excludes a configuration. A configuration is one value for each variable of a factor, an
assignment one value for each variable of the graph.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from crfkit.arrays import Bools, Float64s, Int32s
from crfkit.errors import ArgumentError, InputError, LabelError, ShapeError
from crfkit.structures.factor_tables import FactorTables, expand
from crfkit.structures.factors import LARGEST_TABLE, CountFactor, EqualFactor, Factor, ListFactor, TableFactor

LARGEST = 1 << 24  # values of a variable
SHOWN = 8  # variables, and values of one, that a text lists


@dataclass(frozen=True, eq=False)
class Variable:
    """A variable of a factor graph, made by `FactorGraph.variable`."""

    name: str
    labels: Sequence[Hashable]  # its values, in the order of their ids
    index: int  # its number in the graph

    def __len__(self) -> int:
        return len(self.labels)

    def value_id(self, label: Hashable) -> int:
        """The id of one of its labels."""
        try:
            return self.labels.index(label)
        except ValueError:
            raise LabelError(
                f"Variable {self.name!r} has no value {label!r}, expected one of {_shown(self.labels)}."
            ) from None


class Assignment(Mapping[str, Hashable]):
    """One value for each variable of a graph: a mapping from names to labels, and an array of value ids [V]."""

    def __init__(self, graph: FactorGraph, ids: Int32s) -> None:
        self._graph, self._variables, self.ids = graph, graph.variables, ids

    def __getitem__(self, name: str) -> Hashable:
        variable = self._graph.named[name]
        if variable.index >= len(self._variables):  # it was added later
            raise KeyError(name)
        return variable.labels[int(self.ids[variable.index])]

    def __iter__(self) -> Iterator[str]:
        return (variable.name for variable in self._variables)

    def __len__(self) -> int:
        return len(self._variables)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> npt.NDArray[Any]:
        return np.array(self.ids, dtype=dtype) if copy or dtype else self.ids

    def __repr__(self) -> str:
        return f"Assignment({dict(self)!r})"


class FactorGraph:
    """Variables and factors; both are added one by one.

    >>> graph = FactorGraph()
    >>> rain = graph.variable("rain", ["no", "yes"])
    >>> grass = graph.variable("grass", ["dry", "wet"])
    >>> factor = graph.factor([rain, grass], [[0.0, -2.0], [-2.0, 0.5]])
    """

    def __init__(self) -> None:
        self._variables: list[Variable] = []
        self._factors: list[Factor] = []
        self._names: dict[str, Variable] = {}
        self._forget()

    def _forget(self) -> None:
        """What was made of the variables and factors, when some are added."""
        self._tables: FactorTables | None = None
        self._all_variables: tuple[Variable, ...] | None = None
        self._all_factors: tuple[Factor, ...] | None = None

    def __getstate__(self) -> dict[str, Any]:
        """Copies make their tables and plans anew."""
        return {"variables": list(self._variables), "factors": list(self._factors)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._variables, self._factors = state["variables"], state["factors"]
        self._names = {variable.name: variable for variable in self._variables}
        self._forget()

    @classmethod
    def from_arrays(
        cls,
        cardinalities: Sequence[int],
        scopes: Iterable[Sequence[int]],
        tables: Iterable[npt.ArrayLike],
        names: Sequence[str] | None = None,
    ) -> FactorGraph:
        """A graph of dense tables: how many values each variable has, and for each factor its variables and its scores.

        Variables without names are called "0", "1", and so on.
        """
        graph = cls()
        if names is not None and len(names) != len(cardinalities):
            raise ShapeError(f"Factor graph: {len(names)} names for {len(cardinalities)} variables.")
        for index, count in enumerate(cardinalities):
            graph.variable(str(index) if names is None else names[index], count)
        scopes, tables = list(scopes), list(tables)
        if len(scopes) != len(tables):
            raise ShapeError(f"Factor graph: {len(tables)} tables for {len(scopes)} scopes.")
        for scope, scores in zip(scopes, tables, strict=True):
            graph.factor(scope, scores)
        return graph

    def variable(self, name: str, labels: Iterable[Hashable] | int) -> Variable:
        """Add a variable with these labels, or with the values 0 … n − 1."""
        if not isinstance(name, str):  # a number stands for the variable that was added at this place
            raise ArgumentError(f"Variable {name!r}: got a name that is no text, expected a str.")
        if name in self._names:
            raise ArgumentError(f"Factor graph: there is a variable {name!r} already, expected another name.")
        values = _values(name, labels)
        self._forget()
        self._variables.append(Variable(name, values, len(self._variables)))
        self._names[name] = self._variables[-1]
        return self._variables[-1]

    def factor(
        self,
        variables: Iterable[Variable | str | int],
        scores: npt.ArrayLike | Mapping[Any, float],
        other: float = -math.inf,
    ) -> Factor:
        """Add a factor over these variables.

        `scores` is an array with one axis for each variable, or a mapping from configurations (tuples of labels) to
        scores; all configurations that it does not name score `other`, by default −inf. A mapping over many variables
        takes memory for its configurations, not for all; `other` is then one more score, after those of the mapping.
        """
        scope = self._scope(variables)
        try:
            if not isinstance(scores, Mapping):
                if other != -math.inf:
                    raise ArgumentError(f"got other={other!r} beside an array, expected it beside a mapping.")
                return self._add(TableFactor.checked(scope, self._shape(scope), scores))
            ids = np.array([self._configuration(scope, key) for key in scores], dtype=np.int32)
            ids = ids.reshape(len(scores), len(scope))
            listed = ListFactor.checked(scope, ids, list(scores.values()), other)
            small = math.prod(self._shape(scope)) <= LARGEST_TABLE
            return self._add(listed.table(self._shape(scope)) if listed.has_other and small else listed)
        except InputError as error:
            raise type(error)(f"{self._named(scope)}: {error}") from None

    def count(
        self,
        variables: Iterable[Variable | str | int],
        scores: npt.ArrayLike,
        label: Hashable | None = None,
    ) -> Factor:
        """Add a factor that scores how many of n variables have a value: `scores` [n + 1].

        The value is `label`, or that with id 1.
        """
        scope = self._scope(variables)
        ids = [1 if label is None else self._variables[v].value_id(label) for v in scope]
        for v, value in zip(scope, ids, strict=True):
            if value >= len(self._variables[v]):
                raise ArgumentError(f"Variable {self._variables[v].name!r} has one value only, expected two.")
        try:
            return self._add(CountFactor.checked(scope, tuple(ids), scores))
        except InputError as error:
            raise type(error)(f"{self._named(scope)}: {error}") from None

    def at_most_one(self, variables: Iterable[Variable | str | int], label: Hashable | None = None) -> Factor:
        """Add a factor that excludes that two or more of the variables have a value (`label`, or that with id 1)."""
        scope = self._scope(variables)
        return self.count(scope, [0.0 if n < 2 else -math.inf for n in range(len(scope) + 1)], label)

    def exactly(
        self, k: int, variables: Iterable[Variable | str | int], label: Hashable | None = None
    ) -> Factor:
        """Add a factor that demands that k of the variables have a value (`label`, or that with id 1)."""
        scope = self._scope(variables)
        if not isinstance(k, int | np.integer) or isinstance(k, bool) or not 0 <= k <= len(scope):
            raise ArgumentError(f"exactly: k is {k!r}, expected 0 … {len(scope)}, the number of variables.")
        return self.count(scope, [0.0 if n == k else -math.inf for n in range(len(scope) + 1)], label)

    def equal(self, variables: Iterable[Variable | str | int]) -> Factor:
        """Add a factor that demands that all these variables have values with the same id."""
        scope = self._scope(variables)
        sizes = {len(self._variables[v]) for v in scope}
        if len(sizes) > 1:
            raise ShapeError(f"equal: the variables have {sorted(sizes)} values, expected the same number.")
        return self._add(EqualFactor(scope))

    @property
    def variables(self) -> Sequence[Variable]:
        """In the order in which they were added."""
        if self._all_variables is None:
            self._all_variables = tuple(self._variables)
        return self._all_variables

    @property
    def factors(self) -> Sequence[Factor]:
        """In the order in which they were added."""
        if self._all_factors is None:
            self._all_factors = tuple(self._factors)
        return self._all_factors

    @property
    def named(self) -> Mapping[str, Variable]:
        """The variables by their names."""
        return MappingProxyType(self._names)

    def __getitem__(self, name: str) -> Variable:
        """The variable with this name."""
        if name not in self._names:
            raise ArgumentError(f"Factor graph: there is no variable {name!r}.")
        return self._names[name]

    def __repr__(self) -> str:
        return f"FactorGraph({len(self._variables)} variables, {len(self._factors)} factors)"

    @property
    def tables(self) -> FactorTables:
        """The same distribution by dense tables alone, some over variables that are added for this."""
        if self._tables is None:
            self._tables = expand([len(variable) for variable in self._variables], self._factors)
        return self._tables

    def allowed_values(self, allowed: Mapping[Any, Any] | None) -> list[Bools] | None:
        """Which values each variable may have, [V] masks; `allowed` maps variables to a label or a set of labels."""
        if allowed is None:
            return None
        if not isinstance(allowed, Mapping):
            raise ArgumentError(f"allowed is {allowed!r}, expected a mapping from variables to labels.")
        masks = [np.ones(len(variable), dtype=np.bool_) for variable in self._variables]
        for key, labels in allowed.items():
            variable = self._variables[self._index(key)]
            some = labels if isinstance(labels, set | frozenset | list | tuple | range) else [labels]
            if isinstance(labels, tuple) and labels in variable.labels:
                some = [labels]
            mask = np.zeros(len(variable), dtype=np.bool_)
            mask[[variable.value_id(label) for label in some]] = True
            masks[variable.index] &= mask  # a variable may be given by its name and by its number
            if not masks[variable.index].any():
                raise LabelError(f"Variable {variable.name!r} is allowed no value, expected at least one.")
        return masks

    def assignment(self, output: Mapping[str, Hashable] | npt.ArrayLike) -> Int32s:
        """The value ids of an assignment [V], which is a mapping from names to labels or already one of ids."""
        if isinstance(output, Assignment):
            output = output.ids
        if isinstance(output, Mapping):
            missing = [name for name in self._names if name not in output]
            if missing or len(output) > len(self._names):
                wrong = missing or [name for name in output if name not in self._names]
                raise ArgumentError(
                    f"Assignment: {'no value for' if missing else 'there is no'} variable {wrong[0]!r}, "
                    f"expected one value for each of {len(self._names)}."
                )
            return np.array([v.value_id(output[v.name]) for v in self._variables], dtype=np.int32)
        try:
            ids = np.asarray(output)
        except ValueError:  # lists of different lengths
            raise ShapeError(
                f"Assignment: expected {len(self._variables)} integers, got {output!r}."
            ) from None
        if ids.shape != (len(self._variables),) or (ids.dtype.kind not in "iu" and ids.size):
            raise ShapeError(
                f"Assignment: expected {len(self._variables)} integers, got {ids.dtype} with shape {list(ids.shape)}."
            )
        for variable, value in zip(self._variables, ids, strict=True):
            if not 0 <= value < len(variable):
                raise LabelError(
                    f"Variable {variable.name!r}: got the value id {value}, expected 0 … {len(variable) - 1}."
                )
        return ids.astype(np.int32)

    def _add(self, factor: Factor) -> Factor:
        self._forget()
        self._factors.append(factor)
        return factor

    def _index(self, key: Variable | str | int) -> int:
        if isinstance(key, str):
            return self[key].index
        if isinstance(key, Variable):
            index = key.index if self._names.get(key.name) is key else -1
        else:
            index = int(key) if isinstance(key, int | np.integer) and not isinstance(key, bool) else -1
        if not 0 <= index < len(self._variables):
            raise ArgumentError(f"Factor graph: {key!r} is no variable of this graph.")
        return index

    def _scope(self, variables: Iterable[Variable | str | int]) -> tuple[int, ...]:
        if not isinstance(variables, Iterable):
            raise ArgumentError(f"Factor: got the variables {variables!r}, expected a list of variables.")
        scope = tuple(self._index(variable) for variable in variables)
        if len(set(scope)) < len(scope):
            raise ArgumentError(f"{self._named(scope)}: expected each variable once.")
        return scope

    def _named(self, scope: tuple[int, ...]) -> str:
        """A factor that is to be added, for a message."""
        return f"Factor {len(self._factors)} over {_shown([self._variables[v].name for v in scope])}"

    def _shape(self, scope: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(len(self._variables[v]) for v in scope)

    def _configuration(self, scope: tuple[int, ...], key: Any) -> list[int]:
        labels = key if isinstance(key, tuple) and len(key) == len(scope) else (key,)
        if len(labels) != len(scope):
            raise ShapeError(f"got the configuration {key!r}, expected a tuple of {len(scope)} labels.")
        return [self._variables[v].value_id(label) for v, label in zip(scope, labels, strict=True)]


class GraphMarginals(Mapping[str, Float64s]):
    """Probabilities: of the values of each variable, by its name, and of the scores of each factor (`factors`).

    A factor with a table has the probability of each configuration, one with a list of configurations that of each of
    these, one that counts that of each number; `equal` has none.
    """

    def __init__(
        self, variables: Sequence[Variable], of_variables: Sequence[Float64s], factors: Sequence[Float64s]
    ) -> None:
        self._variables = variables
        self._of = {v.name: numbers for v, numbers in zip(variables, of_variables, strict=True)}
        self.factors = factors

    def __getitem__(self, name: str) -> Float64s:
        return self._of[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._of)

    def __len__(self) -> int:
        return len(self._of)

    def __repr__(self) -> str:
        return f"GraphMarginals({len(self._of)} variables, {len(self.factors)} factors)"

    def __str__(self) -> str:
        """The likeliest values of the first variables, one line for each."""
        lines = []
        for variable in self._variables[:SHOWN]:
            p = self._of[variable.name]
            order = np.argsort(-p, kind="stable")
            some = ", ".join(f"{variable.labels[i]} {p[i]:.3g}" for i in order[:SHOWN])
            lines.append(f"{variable.name}: {some}{', …' * (len(p) > SHOWN)}")
        return "\n".join(lines + ["…"] * (len(self._of) > SHOWN))


def _shown(labels: Sequence[Hashable]) -> str:
    """Some labels for a message."""
    some = ", ".join(repr(label) for label in labels[:SHOWN])
    return f"[{some}{', …' if len(labels) > SHOWN else ''}]"


def _values(name: str, labels: Iterable[Hashable] | int) -> Sequence[Hashable]:
    """The labels of a variable, or 0 … n − 1."""
    if isinstance(labels, int | np.integer) and not isinstance(labels, bool):
        if not 1 <= labels <= LARGEST:
            raise ArgumentError(f"Variable {name!r}: it has {labels:,} values, expected 1 … {LARGEST:,}.")
        return range(int(labels))
    if not isinstance(labels, Iterable):
        raise ArgumentError(f"Variable {name!r}: got {labels!r}, expected its labels, or how many it has.")
    values = tuple(labels)
    if not all(isinstance(value, Hashable) for value in values):
        wrong = next(value for value in values if not isinstance(value, Hashable))
        raise ArgumentError(f"Variable {name!r}: got the label {wrong!r}, expected one that is hashable.")
    if not values or len(set(values)) < len(values):
        raise ArgumentError(
            f"Variable {name!r}: got the labels {_shown(values)}, expected one or more, each of them once."
        )
    return values
