"""The weights of a conditional random field on factor graphs: which features of which factors have some.

A factor kind is a name that a graph template gives. Its configurations, one label for each variable, fall into classes,
each of them alone unless the template ties some. A weight belongs to a feature of a factor kind and a class.

Letters: F features, D weights, N inputs.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NoReturn

import numpy as np

from crfkit.arrays import Bools, Float64s, Int64s, offsets
from crfkit.errors import ArgumentError, FunctionError, LabelError, UnsupportedError
from crfkit.features.graph_template import BIAS, FactorInput, GraphInput, GraphTemplate, Tie

MOST_CONFIGURATIONS = 1 << 20  # of one factor kind


@dataclass(frozen=True, eq=False)
class FactorKind:
    """Factors that have the same weights."""

    kinds: tuple[str, ...]  # of the variables
    classes: Int64s  # [configurations] the class of each, −1: none
    tied: bool  # whether classes are not simply the configurations

    @property
    def n_classes(self) -> int:
        """How many classes there are."""
        return int(self.classes.max()) + 1 if len(self.classes) else 0


@dataclass(frozen=True, eq=False)
class FactorMap:
    """Which weights there are, and where in w [D]: feature by feature, class by class."""

    labels: Mapping[str, tuple[Hashable, ...]]  # of each kind of variables
    kinds: Mapping[str, FactorKind]
    features: Mapping[tuple[str, str], int]  # (factor kind, name) → id
    weight_ptr: Int64s  # [F + 1]
    weight_classes: Int64s  # [D] ascending for each feature

    @property
    def n_weights(self) -> int:
        """D."""
        return len(self.weight_classes)

    @property
    def owners(self) -> list[str]:
        """The factor kind of each feature [F]."""
        return [kind for kind, _ in self.features]

    def value_ids(self, kind: str) -> dict[Hashable, int]:
        """Label → id, of a kind of variables."""
        return {label: i for i, label in enumerate(self.labels[kind])}

    def entries(self) -> tuple[Int64s, Int64s, Int64s]:
        """Which configurations each feature scores, by which weight: entry_ptr [F + 1], configurations, weights."""
        members = {name: _members(kind) for name, kind in self.kinds.items()}
        begins = dict(zip(members, offsets([len(some) for some in members.values()]), strict=False))
        lists = [
            some for of in members.values() for some in of
        ]  # the configurations of all classes of all kinds
        list_ptr = offsets([len(some) for some in lists])
        flat = np.concatenate([np.zeros(0, dtype=np.int64), *lists])
        first = np.array([begins[owner] for owner in self.owners], dtype=np.int64)
        own = np.repeat(first, np.diff(self.weight_ptr)) + self.weight_classes  # [D] which list
        counts = np.diff(list_ptr)[own]
        entry_of_weight = offsets(counts)
        within = np.arange(entry_of_weight[-1]) - np.repeat(entry_of_weight[:-1], counts)
        weights = np.repeat(np.arange(self.n_weights, dtype=np.int64), counts)
        return entry_of_weight[self.weight_ptr], flat[np.repeat(list_ptr[own], counts) + within], weights

    def transfer_weights(self, old: FactorMap, weights: Float64s) -> Float64s:
        """The weights [D] to begin with: those that another map has for the same labels, and 0."""
        start = np.zeros(self.n_weights)
        same = {name: _same_classes(self, old, name) for name in self.kinds if name in old.kinds}
        for (owner, name), feature in self.features.items():
            there = old.features.get((owner, name))
            if there is None or owner not in same:
                continue
            begin, end = old.weight_ptr[there], old.weight_ptr[there + 1]
            place = {int(c): d for d, c in enumerate(old.weight_classes[begin:end], begin)}
            for d in range(self.weight_ptr[feature], self.weight_ptr[feature + 1]):
                known = place.get(same[owner].get(int(self.weight_classes[d]), -1))
                if known is not None:
                    start[d] = weights[known]
        return start

    def prune(self, weights: Float64s) -> tuple[FactorMap, Float64s]:
        """The same map without weights that are exactly 0, and the weights that are left."""
        used = weights != 0
        pruned = replace(
            self, weight_ptr=offsets(used)[self.weight_ptr], weight_classes=self.weight_classes[used]
        )
        return pruned, weights[used]

    def scores(self, kind: str, features: Mapping[str, float], weights: Float64s) -> Float64s:
        """The scores of a factor at weights w [D], one axis for each variable."""
        found = self.kinds[kind]
        by_class = np.zeros(found.n_classes + 1)  # the last one: no class
        for name, value in features.items():
            feature = self.features.get((kind, name))
            if feature is not None:
                own = slice(self.weight_ptr[feature], self.weight_ptr[feature + 1])
                by_class[self.weight_classes[own]] += value * weights[own]
        return by_class[found.classes].reshape([len(self.labels[k]) for k in found.kinds])


def learn_factors(
    inputs: Sequence[GraphInput],
    outputs: Sequence[Sequence[Any]],
    *,
    all_configurations: bool = False,
    min_count: int = 1,
) -> FactorMap:
    """The map of training data: one value for each variable of each input, a label, a set of labels, or None (unknown).

    A feature has weights for the classes of configurations that some annotation allows, or for all. Factors without
    features have weights for all, as a chain has for all pairs of labels: what never occurs is learned to be unlikely.
    """
    labels = _learn_labels(inputs, outputs)
    kinds: dict[str, FactorKind] = {}
    ties: dict[str, Tie] = {}
    features: dict[tuple[str, str], int] = {}
    counts: list[int] = []
    seen: list[set[int]] = []
    ids = {kind: {label: i for i, label in enumerate(known)} for kind, known in labels.items()}
    for number, (graph, output) in enumerate(zip(inputs, outputs, strict=True)):
        for factor in graph.factors:
            kind = kinds.get(factor.kind)
            if kind is None:
                kind = kinds[factor.kind] = _make_kind(factor, graph, labels, number)
            check_scope(kind, factor, graph, number)
            first = ties.setdefault(factor.kind, factor.tie)
            if first != factor.tie and not (callable(first) and callable(factor.tie)):
                raise UnsupportedError(
                    f"input {number}: Factor {factor.kind!r}: tie is {factor.tie!r}, elsewhere {first!r}, expected the same."
                )
            some = set() if all_configurations else _allowed_classes(kind, factor, graph, output, ids, number)
            for name in factor.features:
                feature = features.setdefault((factor.kind, name), len(features))
                if feature == len(seen):
                    seen.append(set())
                    counts.append(0)
                counts[feature] += 1
                seen[feature] |= some
    kept = [key for key, feature in features.items() if counts[feature] >= min_count]
    classes = [
        range(kinds[key[0]].n_classes)
        if all_configurations or key[1] in BIAS
        else sorted(seen[features[key]] - {-1})
        for key in kept
    ]
    return FactorMap(
        labels,
        kinds,
        {key: i for i, key in enumerate(kept)},
        offsets([len(some) for some in classes]),
        np.array([c for some in classes for c in some], dtype=np.int64),
    )


def check_scope(kind: FactorKind, factor: FactorInput, graph: GraphInput, number: int) -> None:
    """Raises unless a factor is over variables of the kinds that others of its kind have."""
    scope = tuple(graph.variables[v].kind for v in factor.variables)
    if kind.kinds != scope:
        raise UnsupportedError(
            f"input {number}: Factor {factor.kind!r} is over variables of the kinds {scope}, elsewhere over {kind.kinds}, "
            "expected the same."
        )


def allowed_values(value: Any, ids: Mapping[Hashable, int], where: str) -> Bools:
    """A label, a set of labels or None (unknown) as a mask over the labels of a kind."""
    mask = np.zeros(len(ids), dtype=np.bool_)
    if value is None:
        mask[:] = True
        return mask
    for label in value if isinstance(value, set | frozenset) else (value,):
        mask[ids[label] if label in ids else _unknown(where, label, ids)] = True
    if not mask.any():
        raise LabelError(f"{where}: got an empty set of labels, expected at least one.")
    return mask


def _learn_labels(
    inputs: Sequence[GraphInput], outputs: Sequence[Sequence[Any]]
) -> dict[str, tuple[Hashable, ...]]:
    """The labels of each kind of variables: those that the template gives, else those that occur, sorted."""
    given: dict[str, tuple[Hashable, ...]] = {}
    seen: dict[str, set[Hashable]] = {}
    for number, (graph, output) in enumerate(zip(inputs, outputs, strict=True)):
        for variable, value in zip(graph.variables, output, strict=True):
            if (
                variable.labels is not None
                and given.setdefault(variable.kind, variable.labels) != variable.labels
            ):
                raise ArgumentError(
                    f"input {number}: variable {variable.name!r} of the kind {variable.kind!r} has the labels "
                    f"{variable.labels}, others of this kind {given[variable.kind]}, expected the same."
                )
            some = seen.setdefault(variable.kind, set())
            if value is not None:
                some.update(value if isinstance(value, set | frozenset) else (value,))
    labels = {}
    for kind, some in seen.items():
        labels[kind] = given.get(kind) or tuple(sorted(some, key=lambda label: (str(type(label)), label)))
        if not labels[kind]:
            raise LabelError(
                f"Variables of the kind {kind!r} have no labels: expected labels in y, or "
                "graph.variable(…, labels=…) in the graph template for variables that are hidden."
            )
    return labels


def _make_kind(
    factor: FactorInput, graph: GraphInput, labels: Mapping[str, tuple[Hashable, ...]], number: int
) -> FactorKind:
    """The kind of a factor, which is the first of it."""
    scope, where, tie = (
        tuple(graph.variables[v].kind for v in factor.variables),
        f"input {number}: Factor {factor.kind!r}",
        factor.tie,
    )
    size = math.prod(len(labels[kind]) for kind in scope)
    if size > MOST_CONFIGURATIONS:
        raise UnsupportedError(
            f"{where} has {size:,} configurations, expected at most {MOST_CONFIGURATIONS:,}."
        )
    if tie is None:
        return FactorKind(scope, np.arange(size, dtype=np.int64), tied=False)
    known: dict[Hashable, int] = {}
    classes = []
    for configuration in itertools.product(*(labels[kind] for kind in scope)):
        try:
            key = len(set(configuration)) <= 1 if isinstance(tie, str) else tie(configuration)
            classes.append(-1 if key is None else known.setdefault(key, len(known)))
        except Exception as error:
            raise FunctionError(
                f"{where}: tie failed for the tuple of labels {configuration}: {type(error).__name__}: {error}"
            ) from error
    return FactorKind(scope, np.array(classes, dtype=np.int64), tied=True)


def _allowed_classes(
    kind: FactorKind,
    factor: FactorInput,
    graph: GraphInput,
    output: Sequence[Any],
    ids: Mapping[str, Mapping[Hashable, int]],
    number: int,
) -> set[int]:
    """The classes of the configurations that the annotation of a factor allows."""
    places = [0]
    for v in factor.variables:
        of = ids[graph.variables[v].kind]
        value = output[v]
        if value is None:
            some: Iterable[int] = range(len(of))
        else:
            named = value if isinstance(value, set | frozenset) else (value,)
            where = f"y[{number}][{graph.variables[v].name!r}]"
            some = [of[x] if x in of else _unknown(where, x, of) for x in named]
        places = [place * len(of) + x for place in places for x in some]
    if not kind.tied:
        return set(places)
    return set(kind.classes[places].tolist())


def _unknown(where: str, label: Any, ids: Mapping[Hashable, int]) -> NoReturn:
    raise LabelError(f"{where}: got the label {label!r}, expected one of {list(ids)[:8]}.")


def _members(kind: FactorKind) -> list[Int64s]:
    """The configurations of each class."""
    order = np.argsort(kind.classes, kind="stable")
    order = order[kind.classes[order] >= 0]
    counts = np.bincount(kind.classes[order], minlength=kind.n_classes)
    return np.split(order.astype(np.int64), np.cumsum(counts)[:-1])


def _same_classes(new: FactorMap, old: FactorMap, name: str) -> dict[int, int]:
    """Class of a factor kind → the class in another map that has the same labels, by one configuration of each."""
    here, there = new.kinds[name], old.kinds[name]
    if here.kinds != there.kinds:
        return {}
    ids = [old.value_ids(kind) if kind in old.labels else {} for kind in there.kinds]
    found: dict[int, int] = {}
    configurations = itertools.product(*(new.labels[kind] for kind in here.kinds))
    for own, configuration in zip(here.classes.tolist(), configurations, strict=True):
        if own < 0 or own in found or any(x not in of for x, of in zip(configuration, ids, strict=True)):
            continue
        place = 0
        for x, of in zip(configuration, ids, strict=True):
            place = place * len(of) + of[x]
        found[own] = int(there.classes[place])
    return found


def check_template(template: GraphTemplate | None) -> None:
    """Refuse what is no function."""
    if not callable(template):
        raise ArgumentError(f"graph_template is {template!r}, expected a function of an input and a graph.")
