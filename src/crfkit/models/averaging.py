"""The mean of several trained models."""

from collections.abc import Iterable, Sequence
from dataclasses import fields, is_dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from crfkit.arrays import Float64s
from crfkit.errors import ArgumentError, UnsupportedError
from crfkit.features import Annotation, Encoder, FeatureMap, FrequentWords, Labels, StateLabels, Vocabulary
from crfkit.models.chain_model import ChainModel
from crfkit.models.checks import read_numbers
from crfkit.models.constraints import bind_chain
from crfkit.models.crf import CRF
from crfkit.models.potentials import FeaturePotentials
from crfkit.models.training.warm_start import join_maps
from crfkit.optimizers import History
from crfkit.structures import Bigrams, Chain


def average_models(models: Iterable[CRF[Any]], weights: npt.ArrayLike | None = None) -> CRF[Any]:
    """The model whose weights are the mean of those of several models, or their sum by `weights`, which sum up to 1.

    A weight is known by what it scores: features, labels and transitions may differ from model to model, and what a model
    does not have counts as 0. Models with weights beside those of features (patterns, segments, feature functions) must
    have the same ones. The score of a label sequence is the mean of its scores.

    >>> X, y = [[["a"], ["b"]], [["b"], ["c"]]], [["A", "B"], ["B", "C"]]
    >>> mean = average_models([CRF().fit(X[:1], y[:1]), CRF().fit(X[1:], y[1:])])
    >>> mean.classes_, mean.predict(X)
    (['A', 'B', 'C'], [['A', 'B'], ['B', 'C']])
    """
    if isinstance(models, CRF) or not isinstance(models, Iterable):
        raise ArgumentError(f"models is of type {type(models).__name__}, expected a list of trained CRFs")
    given = list(models)
    if not given or not all(isinstance(model, CRF) for model in given):
        kinds = ", ".join(sorted({type(model).__name__ for model in given})) or "none"
        raise ArgumentError(f"models are {kinds}, expected at least one trained CRF")
    shares = _read_shares(weights, len(given))
    every = [(model._get_model(), model.weights_) for model in given]
    target = _join([model for model, _ in every])
    mean = np.zeros(target.n_weights)
    for share, (model, values) in zip(shares, every, strict=True):
        mean += share * target.transfer_weights(model, values)
    crf: CRF[Any] = CRF(**given[0].get_params(deep=False))
    crf._l2 = given[0].l2_
    crf._set_model(target, mean)
    crf.history_, crf.n_iter_, crf._metadata = History(), 0, {}
    crf.stop_message_ = f"the mean of {len(given)} models"
    crf.optimizer_, crf.optimizer_reason_ = given[0].optimizer_, "the model is a mean of others"
    return crf


def _read_shares(weights: npt.ArrayLike | None, n: int) -> list[float]:
    if weights is None:
        return [1 / n] * n
    found = read_numbers("weights", weights, n, "model")
    if not np.isfinite(found).all() or abs(float(found.sum()) - 1) > 1e-9:
        raise ArgumentError(f"weights are {found.tolist()}, expected numbers that sum up to 1")
    return [float(share) for share in found]


def _join(models: Sequence[ChainModel]) -> ChainModel:
    """A model, without weights, that has all that these have."""
    first = models[0]
    counts = [_counts(model.potentials.encoder) for model in models]
    if all(_has_same_weights(first, other) for other in models[1:]) and all(
        one == counts[0] for one in counts
    ):
        return first
    for model in models:
        potentials, map_ = model.potentials, model.potentials.feature_map
        alike = map_.dense == first.potentials.feature_map.dense and map_.facets is None
        same_template = potentials.encoder.template == first.potentials.encoder.template
        same_template &= _counts(potentials.encoder) == _counts(first.potentials.encoder)
        same_template &= potentials.encoder.hash_bits == first.potentials.encoder.hash_bits
        if type(potentials) is not FeaturePotentials or not alike or not same_template or model.dictionary:
            raise UnsupportedError(
                "the models have different weights, and templates, dense blocks, facets, patterns, segments, tag "
                "dictionaries or feature functions beside them; expected models of the same features"
            )
    labels = _join_labels([model.labels for model in models])
    names = [_union(m.potentials.encoder.vocabulary for m in models)]
    names.append(_union(m.potentials.encoder.arc_vocabulary for m in models))
    encoder = replace(first.potentials.encoder, vocabulary=names[0], arc_vocabulary=names[1])
    maps = [(m.potentials.encoder, m.potentials.feature_map, m.labels) for m in models]
    joint = _add_bigrams(join_maps(maps, encoder, labels), first.structure, labels)
    return replace(first, labels=labels, potentials=FeaturePotentials(encoder, joint))


def _add_bigrams(joint: FeatureMap, structure: Chain, labels: Labels) -> FeatureMap:
    """A feature map with the pairs of labels of different models that a structure allows, such as those of a scheme."""
    if joint.bigrams is None or joint.soft:
        return joint
    nothing = Annotation(np.zeros(0, np.int32))
    asked = bind_chain(structure, labels, nothing, None, np.zeros(1, np.int64))[0].bigrams
    if not isinstance(asked, Bigrams):
        return joint
    found = Bigrams.from_ids(labels.classes, *joint.bigrams) | asked
    return replace(joint, bigrams=found.ids(labels.classes))


def _join_labels(known: Sequence[Labels]) -> Labels:
    """All labels; UnsupportedError where those of some models alone have states."""
    have_states = [isinstance(labels, StateLabels) for labels in known]
    written = Labels.learn([labels.written.classes for labels in known])
    if any(have_states) != all(have_states):
        raise UnsupportedError(
            "some of the models have states of span labels and others have not; expected models of the same span_states"
        )
    return StateLabels(written) if all(have_states) else written


def _has_same_weights(first: ChainModel, other: ChainModel) -> bool:
    ours, theirs = first.potentials, other.potentials
    if ours.encoder.template != theirs.encoder.template:  # names may stand for other features
        return False
    if ours.encoder.hash_bits != theirs.encoder.hash_bits:
        return False
    if not _is_equal(_constraints(first), _constraints(other)):
        return False
    if first.n_weights != other.n_weights or type(first.potentials) is not type(other.potentials):
        return False
    ones: Float64s = np.ones(first.n_weights)
    return bool(
        first.transfer_weights(other, ones).all() and set(first.labels.classes) == set(other.labels.classes)
    )


def _constraints(model: ChainModel) -> tuple[Any, ...]:
    """What decides beside the weights: a tag dictionary, facets of labels, labels that may follow; by the ids of labels."""
    map_ = model.potentials.feature_map
    found = model.dictionary, map_.facets, map_.bigrams
    return () if found == (None, None, None) else (model.labels.classes, *found, map_.soft)


def _is_equal(one: Any, other: Any) -> bool:
    """Whether two values are equal; dataclasses by their fields, arrays by their entries."""
    if type(one) is not type(other):
        return False
    if is_dataclass(one):
        names = [field.name for field in fields(one)]
        return all(_is_equal(getattr(one, name), getattr(other, name)) for name in names)
    if isinstance(one, np.ndarray):
        return np.array_equal(one, other)
    if isinstance(one, tuple | list):
        return len(one) == len(other) and all(map(_is_equal, one, other))
    return bool(one == other)


def _counts(encoder: Encoder) -> FrequentWords | None:
    """How often words occur in training data, where macros ask for that."""
    return None if encoder.template is None else encoder.template.counts


def _union(vocabularies: Iterable[Vocabulary]) -> Vocabulary:
    found = Vocabulary()
    for vocabulary in vocabularies:
        for name in vocabulary.names():
            found.add(name)
    return found
