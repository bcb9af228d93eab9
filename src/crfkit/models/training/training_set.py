"""From training data to a model without weights, and the data in numbers."""

from collections.abc import Hashable, Iterator
from dataclasses import replace
from itertools import compress
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from crfkit.arrays import Bools
from crfkit.data import MAX_LABELS
from crfkit.errors import ArgumentError, LabelError
from crfkit.features import (
    Annotation,
    Dataset,
    Encoder,
    Facets,
    FeatureMap,
    Labels,
    TagDictionary,
    Template,
    check_lists,
    encode_allowed,
    first_of,
    read_once,
)
from crfkit.models.chain_model import ChainModel
from crfkit.models.constraints import bind_chain, check_gold, find_labels_gone, without_labels
from crfkit.models.potentials import FeaturePotentials, Learning, TrainingData
from crfkit.models.span_states import choose_states
from crfkit.models.training.warm_start import widen
from crfkit.structures import Bigrams, Chain

if TYPE_CHECKING:
    from crfkit.models.settings import CRFSettings


class Examples(NamedTuple):
    """Training data as the user gives it."""

    X: Any
    y: Any
    sample_weight: npt.ArrayLike | None
    allowed: Any


def check_labels_given(y: Any) -> None:
    """Refuse sequences without y."""
    if y is None:
        raise LabelError(
            "y is None, expected a list with a list of labels for each sequence; pairs (x, y) are given to fit as an "
            "iterator: iter(pairs)"
        )


class TrainingSet(NamedTuple):
    """An encoded training set, and the model that is to be trained on it."""

    model: ChainModel
    data: TrainingData
    kept: Bools  # [N] which of the given sequences these are
    gone: frozenset[Hashable] = frozenset()  # labels that only sequences have that were left out


class TrainingInput(NamedTuple):
    """What a model is learned from."""

    X: Any
    y: Any
    allowed: Any
    settings: "CRFSettings"
    template: Template | None = None
    n_threads: int = 1
    base: ChainModel | None = None  # all that it has the model has too, whatever `min_count` says

    def learn(self) -> TrainingSet:
        """Vocabularies, labels, bigrams and weights that training data call for, and the data in numbers."""
        return self.settings.kind.learn(self)


def learn_sequences(kind: type[FeaturePotentials], given: TrainingInput) -> TrainingSet:
    """The same for structures whose outputs are label sequences, with potentials of this kind."""
    X, y, allowed, settings, template, n_threads, base = given
    X, allowed = (list(part) if isinstance(part, Iterator) else part for part in (X, allowed))
    if settings.tag_dictionary or kind.reads_inputs:
        X = read_once(X)
    potentials = None if base is None else base.potentials
    encoder, dataset = kind.encode_training(X, settings, template, potentials)
    ptr = dataset.sequence_ptr
    gold = check_lists(y, ptr)
    written = settings.kind.complete_labels(settings.structure, _find_written(gold, base))
    annotation = written.encode(gold, np.diff(ptr))
    labels = choose_states(written, settings, base, lambda states: [states.count_beginnings(annotation, ptr)])
    if labels.written is not written:  # it has other labels too, and other ids
        annotation = labels.written.encode(gold, np.diff(ptr))
    annotation = labels.read_spans(annotation, ptr)
    constraints = encode_allowed(allowed, labels.written, np.diff(ptr))
    check_gold(annotation, constraints, labels.written, ptr)
    dictionary = _find_dictionary(settings, X, gold, labels.written, base)
    if dictionary is not None:
        constraints = first_of(constraints, labels.complete_words(dictionary.allowed(X, annotation)))
    annotation = labels.to_states(annotation, ptr)
    constraints = None if constraints is None else labels.allow_states(constraints)
    also = None if base is None else base.bigrams
    chain, skipped = bind_chain(settings.chain, labels, annotation, constraints, ptr, also)
    kept = np.ones(len(gold), dtype=np.bool_)
    if len(skipped):
        kept[skipped] = False
        known = () if base is None else base.labels.written.classes
        gone = find_labels_gone(labels.written, gold, allowed, kept, known)
        left = None if allowed is None else without_labels(list(compress(allowed, kept)), gone)
        X, y = list(compress(X, kept)), list(compress(gold, kept))
        rest = learn_sequences(kind, given._replace(X=X, y=y, allowed=left))
        kept[kept] = rest.kept
        return rest._replace(kept=kept, gone=rest.gone | gone)
    dataset = replace(dataset, allowed=constraints)
    feature_map = build_feature_map(FeatureCounts.of(encoder), dataset, annotation, labels, chain, settings)
    if base is not None:
        feature_map = widen(feature_map, labels, base.potentials.feature_map, base.labels)
    data = TrainingData(X, dataset, annotation)
    learned, data = kind.learn(Learning(encoder, feature_map, labels, settings, data, potentials, n_threads))
    return TrainingSet(settings.kind.model(labels, settings.chain, learned, dictionary), data, kept)


def _find_written(gold: list[Any], base: ChainModel | None) -> Labels:
    labels = Labels.learn(gold if base is None else [*gold, base.labels.written.classes])
    if len(labels) > MAX_LABELS:
        raise ArgumentError(f"y has {len(labels):,} different labels, expected at most {MAX_LABELS:,}")
    return labels


def _find_dictionary(
    settings: "CRFSettings", X: Any, gold: list[Any], labels: Labels, base: ChainModel | None
) -> TagDictionary | None:
    """The tag dictionary that is asked for: the one given, or made from the data and joined to that of the base."""
    asked = settings.tag_dictionary
    if not asked:
        return None
    if isinstance(asked, TagDictionary):
        return asked.bind_labels(labels.classes)
    dictionary = TagDictionary.from_data(X, gold, **TagDictionary.options(asked))
    if base is not None and base.dictionary is not None:
        dictionary = base.dictionary.join(dictionary)
    return dictionary.bind_labels(labels.classes)


class FeatureCounts(NamedTuple):
    """What is to be known of an encoder, for the weights that a model has."""

    n_features: int
    n_arc_features: int
    plain_arcs: bool  # whether pairs of labels have weights, beside start and end

    @classmethod
    def of(cls, encoder: Encoder) -> "FeatureCounts":
        """Those of an encoder."""
        plain_arcs = encoder.template is None or encoder.template.has_plain_arcs
        return cls(len(encoder.vocabulary), len(encoder.arc_vocabulary), plain_arcs)


def build_feature_map(
    counts: FeatureCounts,
    dataset: Dataset,
    annotation: Annotation,
    labels: Labels,
    chain: Chain,
    settings: "CRFSettings",
) -> FeatureMap:
    """Which features and transitions have weights."""
    feature_map = FeatureMap.build(
        dataset,
        annotation,
        settings.chain,
        n_labels=len(labels),
        n_features=counts.n_features,
        n_arc_features=counts.n_arc_features,
        all_possible_states=settings.all_possible_states,
        all_possible_transitions=settings.all_possible_transitions,
        bigrams=chain.bigrams.ids(labels.classes) if isinstance(chain.bigrams, Bigrams) else None,
        soft=chain.unseen == "soft",
        facets=Facets.find(labels.classes, settings.facets),
    )
    if counts.plain_arcs:
        return feature_map
    # Start and end only: a template without a bare B line asks for no other transitions.
    n_labels = feature_map.n_labels
    kept = (feature_map.arc_before == n_labels) | (feature_map.arc_after == n_labels)
    return replace(
        feature_map, arc_before=feature_map.arc_before[kept], arc_after=feature_map.arc_after[kept]
    )
