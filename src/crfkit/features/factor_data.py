"""Inputs of a conditional random field on factor graphs in numbers, as the core reads them."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np

from crfkit import _core
from crfkit.arrays import Float64s, offsets
from crfkit.errors import (
    ArgumentError,
    ImpossibleLabelsError,
    InputError,
    LabelError,
    NoOutputError,
    ShapeError,
    SizeLimitError,
    UnsupportedError,
    reword,
)
from crfkit.features.factor_map import FactorMap, allowed_values, check_scope
from crfkit.features.graph_template import GraphInput
from crfkit.structures import FactorGraph

Shape = tuple[Hashable, ...]


def read_outputs(graph: GraphInput, y: Any, number: int) -> list[Any]:
    """The annotation of each variable: y is a mapping from names, or a list in the order of the variables.

    Variables that a mapping does not name are unknown, as None is.
    """
    if not isinstance(y, Mapping | Iterable):
        raise LabelError(
            f"y[{number}] is {y!r}, expected a mapping from variables to labels, or a list of labels."
        )
    values = list(y.values() if isinstance(y, Mapping) else y)
    for value in values:
        if not isinstance(value, Hashable | set):
            raise LabelError(
                f"y[{number}] has the label {value!r}, expected a label, a set of labels, or None."
            )
    if isinstance(y, Mapping):
        names = {variable.name for variable in graph.variables}
        for name in y:
            if name not in names:
                raise LabelError(
                    f"y[{number}] names {name!r}, which is no variable of the graph of its input."
                )
        return [y.get(variable.name) for variable in graph.variables]
    if len(values) != len(graph.variables):
        raise ShapeError(
            f"y[{number}] has {len(values)} labels, expected {len(graph.variables)}, one for each variable, or a mapping."
        )
    return values


def empty_graph(factor_map: FactorMap, graph: GraphInput, number: int) -> FactorGraph:
    """The factor graph of an input with all scores 0; `number` for messages.

    First the tables of single variables, then the factors of the template, then its constraints.
    """
    built = FactorGraph()
    names = [str(variable.name) for variable in graph.variables]
    unique = len(set(names)) == len(names)
    for v, variable in enumerate(graph.variables):
        built.variable(names[v] if unique else f"{v}: {names[v]}", factor_map.labels[variable.kind])
    sizes = [len(variable) for variable in built.variables]
    for v, size in enumerate(sizes):
        built.factor([v], np.zeros(size))
    for factor in graph.factors:
        built.factor(factor.variables, np.zeros([sizes[v] for v in factor.variables]))
    return _constrained(built, graph, number)


def scored_graph(factor_map: FactorMap, graph: GraphInput, weights: Float64s, number: int = 0) -> FactorGraph:
    """The factor graph of an input at weights w [D]; the names of its variables are texts."""
    known = _known_features(factor_map, graph, number)
    built = FactorGraph()
    for variable in graph.variables:
        name = str(variable.name)
        if name in built.named:
            raise ArgumentError(
                f"input {number}: two variables are called {name!r} as a text, expected names that differ as texts."
            )
        built.variable(name, factor_map.labels[variable.kind])
    for factor in known.factors:
        built.factor(factor.variables, factor_map.scores(factor.kind, factor.features, weights))
    return _constrained(built, graph, number)


def _constrained(built: FactorGraph, graph: GraphInput, number: int) -> FactorGraph:
    """With the constraints of the template."""
    for method, variables, arguments in graph.constraints:
        try:
            if method == "exactly":
                built.exactly(arguments[0], variables, arguments[1])
            else:
                getattr(built, method)(variables, *arguments)
        except InputError as error:
            said = str(error).removeprefix(f"{method}: ")
            raise reword(error, f"input {number}: graph.{method}: {said}") from None
    return built


def encode_graphs(
    factor_map: FactorMap,
    inputs: Sequence[GraphInput],
    outputs: Sequence[Sequence[Any]],
    sample_weight: Float64s | None = None,
) -> _core.FactorData:
    """Training data in numbers. Inputs with the same variables and factors share what depends on these alone."""
    numbers: dict[Shape, int] = {}
    known: list[_core.GraphShape] = []
    shapes, table_counts, ids, values, feature_counts, masks = [], [], [], [], [], []
    value_ids = {kind: factor_map.value_ids(kind) for kind in factor_map.labels}
    n_tables, added = [], []  # of each shape: tables, and values of variables that were added
    for number, (graph, output) in enumerate(zip(inputs, outputs, strict=True)):
        key = shape_key(graph)
        shape = numbers.setdefault(key, len(known))
        if shape == len(known):
            tables = empty_graph(factor_map, graph, number).tables
            known.append(
                _core.GraphShape(
                    tables.cardinalities, tables.scope_ptr, tables.scopes, tables.n_variables, tables.scores
                )
            )
            n_tables.append(len(tables.scope_ptr) - 1)
            added.append(int(tables.cardinalities[tables.n_variables :].sum()))
        shapes.append(shape)
        table_counts.append(n_tables[shape])
        feature_counts += [0] * len(graph.variables)
        for factor in graph.factors:
            n = 0
            for name, value in factor.features.items():
                feature = factor_map.features.get((factor.kind, name))
                if feature is not None:
                    ids.append(feature)
                    values.append(value)
                    n += 1
            feature_counts.append(n)
        feature_counts += [0] * (n_tables[shape] - len(graph.variables) - len(graph.factors))
        for variable, label in zip(graph.variables, output, strict=True):
            masks.append(allowed_values(label, value_ids[variable.kind], f"y[{number}][{variable.name!r}]"))
        masks.append(np.ones(added[shape], dtype=np.bool_))
    ends = np.cumsum([len(mask) for mask in masks], dtype=np.int64)
    per_graph = np.cumsum([len(graph.variables) + 1 for graph in inputs], dtype=np.int64)
    return _core.FactorData(
        *factor_map.entries(),
        factor_map.weight_ptr,
        known,
        np.array(shapes, dtype=np.int64),
        offsets(table_counts),
        offsets(feature_counts),
        np.array(ids, dtype=np.int64),
        np.array(values, dtype=np.float64),
        np.concatenate([np.zeros(1, dtype=np.int64), ends[per_graph - 1]]),
        np.concatenate([np.zeros(0, dtype=np.bool_), *masks]).view(np.uint8),
        np.ones(len(inputs)) if sample_weight is None else sample_weight,
    )


def graph_loss(
    factor_map: FactorMap,
    inputs: Sequence[GraphInput],
    outputs: Sequence[Sequence[Any]],
    *,
    sample_weight: Float64s | None = None,
    criterion: str = "likelihood",
    memory_limit: int = 1 << 32,
    n_threads: int = 1,
) -> _core.DataLoss:
    """The loss of a data set of graphs."""
    if criterion == "pseudo_likelihood":
        for number, (graph, output) in enumerate(zip(inputs, outputs, strict=True)):
            if graph.constraints or any(x is None or isinstance(x, set | frozenset) for x in output):
                raise UnsupportedError(
                    f"input {number}: it has unknown labels or constraints, expected one label for each variable and no "
                    "constraints for pseudo-likelihood"
                )
    data = encode_graphs(factor_map, inputs, outputs, sample_weight)
    with _named_errors(inputs, outputs):
        return _core.factor_loss(data, criterion, memory_limit, n_threads)


class GraphAnswers:
    """Inputs in numbers, and what a model predicts for them."""

    def __init__(
        self,
        factor_map: FactorMap,
        inputs: Sequence[GraphInput],
        *,
        method: str,
        memory_limit: int,
        n_threads: int,
    ) -> None:
        known = [_known_features(factor_map, graph, number) for number, graph in enumerate(inputs)]
        self._inputs, self._labels, self._n_threads = inputs, factor_map.labels, n_threads
        data = encode_graphs(factor_map, known, [[None] * len(graph.variables) for graph in inputs])
        criterion = "likelihood" if method == "exact" else method
        with _named_errors(inputs):
            self._core = _core.FactorAnswers(data, criterion, memory_limit, n_threads)

    def decode(self, weights: Float64s) -> list[dict[Hashable, Hashable]]:
        """The best label of each variable of each input, by name."""
        values = iter(self._asked(self._core.decode, weights).tolist())
        return [
            {variable.name: self._labels[variable.kind][next(values)] for variable in graph.variables}
            for graph in self._inputs
        ]

    def marginals(self, weights: Float64s) -> list[dict[Hashable, dict[Hashable, float]]]:
        """The probability of each label of each variable of each input."""
        values = iter(self._asked(self._core.marginals, weights).tolist())
        return [
            {
                variable.name: {label: next(values) for label in self._labels[variable.kind]}
                for variable in graph.variables
            }
            for graph in self._inputs
        ]

    def _asked(self, question: Any, weights: Float64s) -> Any:
        with _named_errors(self._inputs):
            return question(weights, self._n_threads)


@contextmanager
def _named_errors(
    inputs: Sequence[GraphInput], outputs: Sequence[Sequence[Any]] | None = None
) -> Iterator[None]:
    """What the core says about single graphs, with the numbers of inputs and the names of variables."""
    try:
        yield
    except ValueError as error:
        if len(error.args) != 4:
            raise
        message, number, variables, too_large = error.args
        if too_large:
            names = ", ".join(repr(inputs[number].variables[v].name) for v in variables[:8])
            some = f" ({names}{', …' if len(variables) > 8 else ''})"
            raise SizeLimitError(
                f"input {number}: {message}{some}; expected a narrower graph, or belief propagation"
            ) from None
        if outputs is not None and any(value is not None for value in outputs[number]):
            raise ImpossibleLabelsError(
                f"y[{number}]: the constraints of the graph template exclude every assignment with these labels."
            ) from None
        raise NoOutputError(
            f"input {number}: no assignment is possible, the constraints of the graph template exclude every one."
        ) from None


def _known_features(factor_map: FactorMap, graph: GraphInput, number: int) -> GraphInput:
    """The graph of a new input without factors of kinds that no training input had; its variables must be known."""
    for variable in graph.variables:
        if variable.kind not in factor_map.labels:
            raise LabelError(
                f"input {number}: variable {variable.name!r} is of the kind {variable.kind!r}, which no training input had"
            )
    for factor in graph.factors:
        if factor.kind in factor_map.kinds:
            check_scope(factor_map.kinds[factor.kind], factor, graph, number)
    if all(factor.kind in factor_map.kinds for factor in graph.factors):
        return graph
    return replace(graph, factors=[factor for factor in graph.factors if factor.kind in factor_map.kinds])


def shape_key(graph: GraphInput) -> Shape:
    """Equal for inputs whose graphs differ in features alone."""
    return (
        tuple(variable.kind for variable in graph.variables),
        tuple(factor.variables for factor in graph.factors),
        tuple(graph.constraints),
    )


def check_possible(factor_map: FactorMap, graph: GraphInput, output: Sequence[Any], number: int) -> None:
    """Refuse labels that constraints of the graph exclude, where all of them are known."""
    if not graph.constraints or any(value is None or isinstance(value, set | frozenset) for value in output):
        return
    built = empty_graph(factor_map, graph, number)
    ids = np.array(
        [variable.value_id(label) for variable, label in zip(built.variables, output, strict=True)],
        dtype=np.int32,
    )
    for factor in built.factors[len(graph.variables) + len(graph.factors) :]:
        if factor.score(ids[list(factor.variables)]) == -np.inf:
            names = [graph.variables[v].name for v in factor.variables]
            raise ImpossibleLabelsError(
                f"y[{number}]: the labels of {names[:8]} are excluded by a constraint of the graph template."
            )
