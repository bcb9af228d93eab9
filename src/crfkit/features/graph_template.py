"""Graph templates: which variables exist for an input, and which factors with which features.

A template is a function of an input x and of a `GraphInput`, which it fills. Factors of the same kind have the same weights,
whatever graph they are in:

    def skip_chain(words, graph):
        for i, word in enumerate(words):
            graph.variable(i)
            graph.factor("word", [i], [f"w={word}"])
            if i > 0:
                graph.factor("transition", [i - 1, i])
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from crfkit.errors import ArgumentError, FeatureError, FunctionError, LabelError, NotLoadedError

Tie = str | Callable[[tuple[Hashable, ...]], Hashable] | None
BIAS = {"": 1.0}  # the feature of a factor without features
_NUMBERS = (int, float, np.integer, np.floating, np.bool_)


class VariableInput(NamedTuple):
    """A variable of an input: its name, and the kind whose labels it has."""

    name: Hashable
    kind: str
    labels: tuple[Hashable, ...] | None  # where the template says which labels this kind has


class FactorInput(NamedTuple):
    """A factor of an input, scored by features."""

    kind: str
    variables: tuple[int, ...]
    features: Mapping[str, float]
    tie: Tie


class ConstraintInput(NamedTuple):
    """A factor that excludes assignments: a method of `FactorGraph`, and its arguments besides the variables."""

    method: str
    variables: tuple[int, ...]
    arguments: tuple[Any, ...]


GraphTemplate = Callable[[Any, "GraphInput"], Any]
"""A function of an input and its empty `GraphInput`, which adds the variables and factors."""


@dataclass
class GraphInput:
    """The graph of one input, without weights; a graph template fills it."""

    variables: list[VariableInput] = field(default_factory=list)
    factors: list[FactorInput] = field(default_factory=list)
    constraints: list[ConstraintInput] = field(default_factory=list)
    _places: dict[Hashable, int] = field(default_factory=dict)

    def variable(
        self, name: Hashable, kind: str = "label", labels: Iterable[Hashable] | None = None
    ) -> Hashable:
        """Add a variable. All variables of a kind have the same labels: those of the training data, or these."""
        if not isinstance(name, Hashable) or name in self._places:
            what = "was added twice" if isinstance(name, Hashable) else "is not hashable"
            raise ArgumentError(f"Graph template: the variable {name!r} {what}, expected another name.")
        _check_kind(kind, f"variable {name!r}")
        given = None if labels is None else tuple(labels)
        if given is not None and (
            not all(isinstance(x, Hashable) for x in given) or not given or len(set(given)) < len(given)
        ):
            raise ArgumentError(
                f"Graph template: the variable {name!r} has the labels {given[:8]}, expected one or more, each of them once."
            )
        self._places[name] = len(self.variables)
        self.variables.append(VariableInput(name, kind, given))
        return name

    def factor(
        self,
        kind: str,
        variables: Iterable[Hashable],
        features: Iterable[str] | Mapping[str, float] | None = None,
        tie: Tie = None,
    ) -> None:
        """Add a factor over variables, by their names.

        Each feature has a weight for each configuration of labels; features are names, or names with values. Without
        features it is the weights of the configurations alone. `tie` gives configurations one weight together: "equal"
        asks only whether all labels are the same; a function of the tuple of labels gives a key, None for no weight at all.
        """
        _check_kind(kind, "factor")
        if not (tie is None or tie == "equal" or callable(tie)):
            raise ArgumentError(
                f'Factor {kind!r}: tie is {tie!r}, expected "equal" or a function of the tuple of labels.'
            )
        named = BIAS if features is None else _named(features, kind)
        self.factors.append(FactorInput(kind, self._scope(variables), named, tie))

    def at_most_one(self, variables: Iterable[Hashable], label: Hashable) -> None:
        """Exclude that two or more of these variables have this label."""
        _check_label(label, "at_most_one")
        self.constraints.append(ConstraintInput("at_most_one", self._scope(variables), (label,)))

    def exactly(self, k: int, variables: Iterable[Hashable], label: Hashable) -> None:
        """Demand that k of these variables have this label."""
        _check_label(label, "exactly")
        self.constraints.append(ConstraintInput("exactly", self._scope(variables), (k, label)))

    def equal(self, variables: Iterable[Hashable]) -> None:
        """Demand that these variables, which are of one kind, have the same label."""
        self.constraints.append(ConstraintInput("equal", self._scope(variables), ()))

    def _scope(self, variables: Iterable[Hashable]) -> tuple[int, ...]:
        if not isinstance(variables, Iterable):
            raise ArgumentError(
                f"Graph template: a factor over {variables!r}, expected a list of names of variables."
            )
        scope = []
        for name in variables:
            place = self._places.get(name) if isinstance(name, Hashable) else None
            if place is None:
                raise ArgumentError(
                    f"Graph template: there is no variable {name!r}, expected to add it first."
                )
            scope.append(place)
        if len(set(scope)) < len(scope):
            names = [self.variables[v].name for v in scope]
            raise ArgumentError(f"Graph template: a factor over {names}, expected each variable once.")
        return tuple(scope)


def read_input(template: GraphTemplate, x: Any, number: int) -> GraphInput:
    """The graph of an input; `number` for messages."""
    graph = GraphInput()
    try:
        template(x, graph)
    except (ArgumentError, FeatureError, LabelError) as error:
        raise type(error)(f"input {number}: {error}") from None
    except NotLoadedError:
        raise
    except Exception as error:
        raise FunctionError(
            f"input {number}: the graph template failed: {type(error).__name__}: {error}"
        ) from error
    return graph


def _check_kind(kind: object, what: str) -> None:
    if not isinstance(kind, str):
        raise ArgumentError(f"Graph template: a {what} of the kind {kind!r}, expected a text.")


def _check_label(label: object, method: str) -> None:
    if not isinstance(label, Hashable):
        raise LabelError(f"graph.{method}: got the label {label!r}, expected a label of the variables.")


def _named(features: Iterable[str] | Mapping[str, float], kind: str) -> Mapping[str, float]:
    if isinstance(features, str) or not isinstance(features, Iterable):
        raise FeatureError(f"Factor {kind!r}: features are {features!r}, expected a list or a dict of names.")
    values = features if isinstance(features, Mapping) else dict.fromkeys(features, 1.0)
    for name, value in values.items():
        if not isinstance(name, str) or not isinstance(value, _NUMBERS) or not abs(float(value)) < 1e15:
            raise FeatureError(
                f"Factor {kind!r}: got the feature {name!r} with the value {value!r}, expected a name and a number."
            )
    return values
