"""What the weights of a trained model say, by name."""

from collections.abc import Hashable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from crfkit.arrays import Float64s
from crfkit.errors import LabelError
from crfkit.models.crf import CRF


class FeatureWeight(NamedTuple):
    """The weight of a feature for one label."""

    feature: str
    weight: float


class TransitionWeight(NamedTuple):
    """The weight of two neighbouring labels, facets or types of segments; None is the start or the end of a sequence."""

    before: Hashable | None
    after: Hashable | None
    weight: float


class TransitionFeatureWeight(NamedTuple):
    """The weight of a feature for two neighbouring labels or types of segments, as `B` lines of templates make them."""

    feature: str
    before: Hashable
    after: Hashable
    weight: float


class TrellisSize(NamedTuple):
    """The trellis of one sequence of T positions."""

    states: npt.NDArray[np.int64]  # [T] at each position
    arcs: npt.NDArray[np.int64]  # [T + 1] into each position, and into the end
    sparsity: Float64s  # [T] κ: what the patterns tell apart there, by all runs of labels of their length


def heaviest_features(model: CRF[Any], label: Hashable, n: int = 10) -> list[FeatureWeight]:
    """The n features with the largest weights for a label, by absolute value; a dense column is `block[column]`.

    Where labels have facets, these are the weights of the facets of the label: `feature [kind=value]`. With span states they
    are those of the states of the label: `feature [E-PER]`.
    """
    states = model._get_model().labels.ids_of(label)
    if not states:
        raise LabelError(f"the model has no label {label!r}")
    feature_map, weights = model.feature_map_, model.weights_
    outcomes = list(states) if feature_map.facets is None else feature_map.facets.ids_of(states[0])
    pairs = np.flatnonzero(np.isin(feature_map.pair_labels, outcomes))  # where the weights of this label lie
    columns = np.arange(feature_map.n_pairs, feature_map.arcs_begin).reshape(-1, feature_map.n_labels)
    where = np.concatenate([pairs, columns[:, list(states)].ravel()])
    order = where[np.argsort(-np.abs(weights[where]), kind="stable")[: max(n, 0)]]
    return [FeatureWeight(_name(model, int(at)), float(weights[at])) for at in order]


def _name(model: CRF[Any], at: int) -> str:
    """The feature or dense column that the weight at this place belongs to, by name, and its state if there are such."""
    feature_map = model.feature_map_
    if model.span_states_ is not None:
        first = feature_map.n_pairs
        state = feature_map.pair_labels[at] if at < first else (at - first) % feature_map.n_labels
        return f"{_feature_name(model, at)} [{model.states_[state]}]"
    return _feature_name(model, at)


def _feature_name(model: CRF[Any], at: int) -> str:
    feature_map = model.feature_map_
    if at < feature_map.n_pairs:
        feature = int(np.searchsorted(feature_map.pair_ptr, at, side="right")) - 1
        name, facets = str(model.encoder_.vocabulary.name(feature)), feature_map.facets
        if facets is None:
            return name
        return f"{name} [{facets.names[feature_map.pair_labels[at] - feature_map.n_labels - 1]}]"
    block = max(
        (name for name in feature_map.dense if feature_map.dense_begin(name) <= at),
        key=feature_map.dense_begin,
    )
    return f"{block}[{(at - feature_map.dense_begin(block)) // feature_map.n_labels}]"


def transition_weights(model: CRF[Any]) -> list[TransitionWeight]:
    """The weights of transitions, by falling absolute value; with span states they are those of states (`CRF.states_`)."""
    feature_map = model.feature_map_
    facets = feature_map.facets
    names = [*_transition_names(model), None, *(() if facets is None else facets.names)]
    weights = model.weights_[feature_map.arcs_begin : feature_map.triples_begin]
    return [
        TransitionWeight(names[feature_map.arc_before[i]], names[feature_map.arc_after[i]], float(weights[i]))
        for i in np.argsort(-np.abs(weights), kind="stable")
    ]


def find_states(model: CRF[Any], labels: Sequence[Hashable]) -> list[Any] | None:
    """The states (`CRF.states_`) of a label sequence; None where no sequence of states is written so.

    Without span states these are the labels themselves. With them, valid sequences of BIO have states.
    """
    known = model._get_model().labels
    if not set(labels) <= set(known.written.classes):
        return None
    written = [known.written.ids_of(label)[0] for label in labels]
    ids = known.find_states(np.array(written, np.int32), np.array([0, len(written)])).tolist()
    return None if -1 in ids else [known.classes[id] for id in ids]


def heaviest_transition_features(model: CRF[Any], n: int = 10) -> list[TransitionFeatureWeight]:
    """The n features of transitions with the largest weights, by absolute value."""
    feature_map, labels = model.feature_map_, _transition_names(model)
    weights = model.weights_[feature_map.triples_begin : feature_map.n_weights]
    order = np.argsort(-np.abs(weights), kind="stable")[: max(n, 0)]
    features = np.searchsorted(feature_map.arc_ptr, order, side="right") - 1
    befores, afters = np.divmod(feature_map.arc_triples[order], feature_map.n_labels)
    name = model.encoder_.arc_vocabulary.name
    return [
        TransitionFeatureWeight(name(int(feature)), labels[before], labels[after], float(weights[at]))
        for at, feature, before, after in zip(order, features, befores, afters, strict=True)
    ]


def _transition_names(model: CRF[Any]) -> Sequence[Hashable]:
    """What the transitions of each label are those of: the label, or the type of its segment."""
    return model._get_model().potentials.transition_names(model.states_)


def heaviest_patterns(model: CRF[Any], n: int = 10) -> list[FeatureWeight]:
    """The n patterns with the largest weights, by absolute value."""
    names = model.pattern_names_
    return _heaviest(names, model.weights_[len(model.weights_) - len(names) :], n)


def heaviest_of_structure(model: CRF[Any], n: int = 10) -> list[FeatureWeight]:
    """The n weights of segments, or of a structure of your own, that are largest by absolute value."""
    names = model.structure_names_
    return _heaviest(names, model.weights_[len(model.weights_) - len(names) :], n)


def trellis_sizes(model: CRF[Any], X: Any, *, allowed: Any = None) -> list[TrellisSize]:
    """How large the trellis of each sequence is, for a model with patterns."""
    ask = model._ask(X, allowed)
    return [TrellisSize(*sizes) for sizes in ask.model.potentials.trellis_sizes(ask.dataset, ask.design)]


def heaviest_outputs(model: CRF[Any], n: int = 10) -> list[FeatureWeight]:
    """The n outputs of feature functions with the largest weights, by absolute value: `f`, `f[3]` or `f:name`."""
    return _heaviest(model.output_names_, model.weights_[model.feature_map_.n_weights :], n)


def _heaviest(names: Sequence[str], weights: Float64s, n: int) -> list[FeatureWeight]:
    """The n largest of the weights that begin with those of these names."""
    order = np.argsort(-np.abs(weights[: len(names)]), kind="stable")[: max(n, 0)]
    return [FeatureWeight(names[at], float(weights[at])) for at in order.tolist()]
