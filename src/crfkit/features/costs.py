"""Costs of mistakes: what training adds to the score of a wrong label.

Softmax-margin (Gimpel and Smith 2010) trains by

    Σ_n weight_n · (log Σ_y exp(score(y, x_n) + Σ_t cost(gold_t, y_t)) − score(gold, x_n))

A cost is a score that is known, so it is the weight of a feature that only training sees, and that stays as it is: every
position has a feature for its gold label, whose weight for label b is cost(gold, b). All losses of label sequences have
costs in this way, with no code of their own.

A margin is one cost m of every wrong label. Then the right label may as well cost −m: both sides of the difference above
have T · m less, and the objective is the same. So a position has a feature for each label that y allows there, whose weight
for this label is −m: L weights in all, and what a position has follows from its own labels alone, in any shard.
"""

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any

import numpy as np
import numpy.typing as npt

from crfkit import _core
from crfkit.arrays import Bools, Float64s, Int64s, offsets
from crfkit.errors import ArgumentError
from crfkit.features.dataset import Annotation, Dataset, FeatureList
from crfkit.features.feature_map import FeatureMap

Costs = float | Mapping[tuple[Any, Any], float] | Mapping[str, float] | npt.ArrayLike
"""Costs as `CRF.fit` takes them: see `read_costs`."""

OUTSIDE = "O"
KINDS = ("missed", "invented", "confused")


def check_costs(costs: Any) -> None:
    """Refuse what cannot be costs of any labels, before the data is read."""
    if isinstance(costs, Mapping):
        kinds = [key for key in costs if isinstance(key, str)]
        if kinds and len(kinds) < len(costs):
            raise ArgumentError(f"costs has pairs of labels beside {kinds[0]!r}, expected either of both")
        for key, value in costs.items():
            if not (isinstance(key, tuple) and len(key) == 2) and key not in KINDS:
                raise ArgumentError(
                    f"costs has the key {key!r}, expected pairs (gold label, predicted label), or some of "
                    f"{', '.join(map(repr, KINDS))}"
                )
            _check_number(f"costs[{key!r}]", value)
    elif _is_number(costs):
        if not math.isfinite(costs):
            raise ArgumentError(f"costs is {costs!r}, expected a finite number")
    else:
        _read_array(costs)


def read_costs(costs: Costs, labels: Sequence[Hashable]) -> Float64s:
    """The cost of each pair (gold, predicted) of labels, [L, L].

    {(gold, predicted): cost}       others are 0
    [L, L]                          an array in the order of the labels
    {"missed": a, "invented": b, "confused": c}
                                    a where the gold label is not O and the predicted one is, b where it is the other way
                                    round, c for two labels other than O
    a number c                      {"missed": c} from 0 on, {"invented": −c} below
    """
    check_costs(costs)
    matrix = np.zeros((len(labels), len(labels)))
    if isinstance(costs, Mapping):
        if any(isinstance(key, str) for key in costs):
            return _by_kind({str(key): float(value) for key, value in costs.items()}, labels)
        number = {label: b for b, label in enumerate(labels)}
        for pair, value in costs.items():
            for label in pair:
                if label not in number:
                    known = ", ".join(map(repr, labels[:20])) + ", …" * (len(labels) > 20)
                    raise ArgumentError(
                        f"costs has the label {label!r}, which y does not have; it has {known}"
                    )
            matrix[number[pair[0]], number[pair[1]]] = value
    elif _is_number(costs):
        size = float(costs)  # type: ignore[arg-type]
        return _by_kind({"missed": size} if size >= 0 else {"invented": -size}, labels)
    else:
        given = _read_array(costs)
        if given.shape != matrix.shape:
            raise ArgumentError(
                f"costs has the shape {given.shape}, expected {matrix.shape}: a row for each gold label, a column for "
                "each predicted one"
            )
        matrix[:] = given
    if np.diagonal(matrix).any():
        b = int(np.flatnonzero(np.diagonal(matrix))[0])
        raise ArgumentError(f"costs has {matrix[b, b]} for the right label {labels[b]!r}, expected 0")
    return matrix


def _by_kind(sizes: Mapping[str, float], labels: Sequence[Hashable]) -> Float64s:
    """Of labels of spans, by whether they are outside."""
    if OUTSIDE not in labels:
        raise ArgumentError(
            f"costs of missed and invented spans need the label {OUTSIDE!r}, which y does not have; expected costs of "
            "pairs (gold label, predicted label)"
        )
    outside = np.array([label == OUTSIDE for label in labels])
    matrix = np.full((len(labels), len(labels)), sizes.get("confused", 0.0))
    matrix[np.ix_(~outside, outside)] = sizes.get("missed", 0.0)
    matrix[np.ix_(outside, ~outside)] = sizes.get("invented", 0.0)
    np.fill_diagonal(matrix, 0.0)
    return matrix


def _is_number(value: object) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool | np.bool_)


def _check_number(what: str, value: object) -> None:
    if not _is_number(value) or not 0 <= float(value) < math.inf:  # type: ignore[arg-type]
        raise ArgumentError(f"{what} is {value!r}, expected a finite number of 0 or more")


def _read_array(costs: Any) -> Float64s:
    expected = "a number, a dict of pairs (gold label, predicted label), or a square array of numbers"
    try:
        given = np.asarray(costs, dtype=np.float64)
    except (TypeError, ValueError):
        raise ArgumentError(f"costs is {costs!r}, expected {expected}") from None
    if given.ndim != 2 or given.shape[0] != given.shape[1] or isinstance(costs, str):
        raise ArgumentError(f"costs has the shape {given.shape}, expected {expected}")
    for value in given[~((given >= 0) & np.isfinite(given))][:1].tolist():
        _check_number("a number of costs", value)
    return given


@dataclass(frozen=True)
class CostFeatures:
    """A data set with features of costs behind all others, and their weights, which stay as they are."""

    dataset: Dataset
    feature_map: FeatureMap
    begin: int  # of the weights of costs in w [D]
    weights: Float64s  # those other than 0

    @classmethod
    def of(
        cls, costs: Float64s, feature_map: FeatureMap, dataset: Dataset, annotation: Annotation
    ) -> "CostFeatures":
        """Of costs [L, L]: labels that the annotation allows cost 0, others what they cost beside the nearest of these."""
        which, rows = _rows(costs, annotation)
        has = which >= 0
        used, which[has] = np.unique(which[has], return_inverse=True)
        rows = rows[used]
        n_features = len(feature_map.pair_ptr) - 1
        of_row, predicted = np.nonzero(rows)
        pair_labels, facets = predicted, feature_map.facets
        if facets is not None:  # then weights name facets: labels become such
            pair_labels = predicted + feature_map.n_labels + 1 + len(facets)
            facets = facets.with_labels()
        pair_ptr = feature_map.n_pairs + np.cumsum(np.bincount(of_row, minlength=len(rows)))
        larger = replace(
            feature_map,
            pair_ptr=np.concatenate([feature_map.pair_ptr, pair_ptr.astype(np.int64)]),
            pair_labels=np.concatenate([feature_map.pair_labels, pair_labels.astype(np.int32)]),
            facets=facets,
        )
        states = _insert(dataset.states, has, n_features + which)
        return cls(replace(dataset, states=states), larger, feature_map.n_pairs, rows[of_row, predicted])

    def fix(self, loss: _core.DataLoss) -> _core.DataLoss:
        """The loss of this data set and this feature map, as a function of the weights without costs."""
        return _core.fix_weights(loss, self.begin, self.weights)


def _rows(costs: Float64s, annotation: Annotation) -> tuple[Int64s, Float64s]:
    """The number of the row of costs that each position has, −1 where it has none, and the rows [rows, L]."""
    rows = list(costs)
    which = annotation.labels.astype(np.int64)
    if annotation.sets is not None:
        ptr, labels = annotation.sets.position_ptr, annotation.sets.labels
        found: dict[bytes, int] = {}
        for t in np.flatnonzero((which < 0) & (np.diff(ptr) > 0)).tolist():
            known = labels[ptr[t] : ptr[t + 1]]
            number = found.setdefault(known.tobytes(), len(rows))
            if number == len(rows):
                row = costs[known].min(axis=0)
                row[known] = 0.0
                rows.append(row)
            which[t] = number
    every = np.array(rows)
    is_cost: Bools = np.any(every, axis=1)  # [rows]
    return np.where((which >= 0) & is_cost[which], which, -1), every


def _insert(states: FeatureList, has: Bools, features: Int64s) -> FeatureList:
    """With one more feature, the last one, at the positions that have one."""
    places = states.position_ptr[1:][has]
    return FeatureList(
        states.position_ptr + offsets(has),
        np.insert(states.ids, places, features[has].astype(np.int32)),
        None if states.values is None else np.insert(states.values, places, 1.0),
    )


def with_margin_features(feature_map: FeatureMap) -> FeatureMap:
    """The map with a feature of each label behind all others, which has one weight, for this label."""
    labels, facets = np.arange(feature_map.n_labels), feature_map.facets
    if facets is not None:  # then weights name facets: labels become such
        labels, facets = labels + feature_map.n_labels + 1 + len(facets), facets.with_labels()
    pair_ptr = feature_map.n_pairs + 1 + np.arange(feature_map.n_labels, dtype=np.int64)
    return replace(
        feature_map,
        pair_ptr=np.concatenate([feature_map.pair_ptr, pair_ptr]),
        pair_labels=np.concatenate([feature_map.pair_labels, labels.astype(np.int32)]),
        facets=facets,
        right_labels=len(feature_map.pair_ptr) - 1,
    )


def fix_margin(loss: _core.DataLoss, feature_map: FeatureMap, margin: float) -> _core.DataLoss:
    """The loss of `with_margin_features(feature_map)`, as a function of the weights of the map itself."""
    return _core.fix_weights(loss, feature_map.n_pairs, np.full(feature_map.n_labels, -margin))


def mark_right_labels(dataset: Dataset, annotation: Annotation, first: int) -> Dataset:
    """The data set with feature `first` + b, for each label b that the annotation allows, at positions where it says one."""
    positions = np.flatnonzero(annotation.labels >= 0)
    labels = annotation.labels[positions].astype(np.int64)
    if annotation.sets is not None:
        counts = np.diff(annotation.sets.position_ptr)
        counts[positions] = 0
        of_sets = np.repeat(np.arange(len(counts)), counts)
        kept = np.repeat(annotation.labels < 0, np.diff(annotation.sets.position_ptr))
        positions = np.concatenate([positions, of_sets])
        labels = np.concatenate([labels, annotation.sets.labels[kept]])
        order = np.argsort(positions, kind="stable")
        positions, labels = positions[order], labels[order]
    states = dataset.states
    places = states.position_ptr[1:][positions]
    marked = FeatureList(
        states.position_ptr + offsets(np.bincount(positions, minlength=len(annotation.labels))),
        np.insert(states.ids, places, (first + labels).astype(np.int32)),
        None if states.values is None else np.insert(states.values, places, 1.0),
    )
    return replace(dataset, states=marked)
