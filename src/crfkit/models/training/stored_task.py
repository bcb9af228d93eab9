"""Training on an encoded data set: the model is learned shard by shard, and so is its loss evaluated."""

import os
import tempfile
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple, TypeVar

import numpy as np

from crfkit.arrays import Float64s, Int64s, offsets
from crfkit.data import EncodedDataset
from crfkit.errors import ArgumentError, EmptyDataError, FileFormatError, UnsupportedError
from crfkit.evaluation import read_metric
from crfkit.features import (
    Annotation,
    Column,
    Dataset,
    DictionaryWords,
    Encoder,
    FeatureList,
    FeatureMap,
    Labels,
    StateLabels,
    TagDictionary,
    Template,
    Vocabulary,
    WordCounts,
    read_counts,
    read_shard,
)
from crfkit.models.chain_model import ChainModel
from crfkit.models.checks import check_dev
from crfkit.models.constraints import bind_chain
from crfkit.models.potentials import FeaturePotentials, Learning, TrainingData
from crfkit.models.settings import CRFSettings, check_used, features_from_json, find_template
from crfkit.models.span_states import choose_states
from crfkit.models.training.crf_task import EncodedChains, EncodedSequences, MakeLoss, here
from crfkit.models.training.data_warnings import warn_of_tag_dictionary, warn_of_training_data
from crfkit.models.training.fingerprint import Fingerprint
from crfkit.models.training.map_union import join_maps
from crfkit.models.training.sharded_data import Shard, ShardedData
from crfkit.models.training.train import Plan
from crfkit.models.training.training_set import FeatureCounts, build_feature_map
from crfkit.models.warning_types import UnsavableModel
from crfkit.objective import Loss, Objective, stored_loss
from crfkit.structures import AllowedLabels, Bigrams, Chain

Result = TypeVar("Result")
_ShardLabels = tuple[Annotation, Int64s, AllowedLabels | None]


@dataclass(frozen=True)
class StoredTask:
    """An encoded data set, and the settings of the CRF that is to be trained on it."""

    settings: CRFSettings
    dataset: EncodedDataset
    make_loss: MakeLoss = here  # by the processors of this machine, or others

    @property
    def sequences(self) -> str:
        """How many there are, for people."""
        return f"{self.dataset.n_sequences:,} encoded sequences"

    def check(self, plan: Plan[Any]) -> None:
        """Refuse what needs the sequences themselves, and settings that the data set was not encoded with."""
        check_dev(plan.dev)
        read_metric(plan.metric)
        if obstacle := find_obstacle(self.settings):
            raise UnsupportedError(f"an encoded data set was given, but {obstacle}; expected X and y")
        adopt_settings(self.settings, self.dataset)

    def encode(self, plan: Plan[Any], n_threads: int) -> EncodedChains:
        """The model that the data call for, and warnings about them."""
        settings, template = adopt_settings(self.settings, self.dataset)
        data, labels = _read_labels(self.dataset, settings)
        model = _learn(data, labels, settings, template, n_threads)
        if reason := model.find_unsavable():
            warnings.warn(f"this model cannot be saved or pickled: {reason}", UnsavableModel, stacklevel=5)
        warn_of_training_data(model, settings.least_count(1), stacklevel=5)
        warn_of_tag_dictionary(settings.tag_dictionary, model.labels.written.classes, stacklevel=5)
        if self.dataset.n_shards > 1:
            return StoredSequences(settings, model, plan.dev, plan.metric, data, self.make_loss)
        dataset, annotation = data.shard(0)[:2]
        known = TrainingData(None, dataset, annotation, model.potentials.read(dataset, n_threads))
        whole = ShardedData(known, None, np.array(self.dataset.shard_ptr))
        own = (False, None, self.make_loss)
        return EncodedSequences(settings, model, plan.dev, plan.metric, whole, *own)


class ShardReading(NamedTuple):
    """How a model reads shards, which have features and labels."""

    words: DictionaryWords | None = None  # which labels the words may have, where shards do not say it
    labels: StateLabels | None = None  # the states of the labels


AS_STORED = ShardReading()
"""Reads shards as they were written."""


@dataclass(frozen=True)
class StoredData:
    """The shards of an encoded data set, opened when they are asked for: `TrainingShards`."""

    dataset: EncodedDataset
    reading: ShardReading = AS_STORED

    @property
    def shard_ptr(self) -> list[int]:
        """The first sequence of each shard, and N."""
        return self.dataset.shard_ptr

    @property
    def n_shards(self) -> int:
        """At least 1."""
        return self.dataset.n_shards

    def shard(self, i: int) -> Shard:
        """The numbers of shard i, as parts of a memory map."""
        return open_shard(str(self.dataset.files.shard(i)), self.dataset.shard(i), self.reading)

    def shards(self, *, with_inputs: bool = False) -> Iterator[Shard]:
        """Shard after shard; they have no inputs."""
        for i in range(self.dataset.n_shards):
            if i + 1 < self.dataset.n_shards:
                self.dataset.expect(i + 1)
            yield self.shard(i)

    def map(self, function: Callable[[Shard], Result]) -> Iterator[Result]:
        """What a function gives for each shard, in order, wherever the shards are."""
        return self.dataset.map_shards(partial(_apply, function, self.reading))

    def loss(self, potentials: FeaturePotentials, n_threads: int) -> Loss:
        """The sum of the losses of all shards; what is made of these lies in a scratch file."""

        def make(i: int) -> Loss:
            self.dataset.expect((i + 1) % self.dataset.n_shards)
            return potentials.shard_loss(*self.shard(i), n_threads, self.n_shards)

        path = self.dataset.path
        scratch = str(path) if os.access(path, os.W_OK) else tempfile.gettempdir()
        return stored_loss(self.dataset.shard_ptr, make, potentials.n_weights, scratch, n_threads)


def open_shard(name: str, arrays: dict[str, Any], reading: ShardReading = AS_STORED) -> Shard:
    """The numbers of a shard of an encoded data set, with the labels that its words may have."""
    try:
        dataset, annotation = read_shard(arrays)
    except ValueError as error:
        raise FileFormatError(f"{name}: the shard is damaged ({error})") from None
    labels, words, ptr = reading.labels, reading.words, dataset.sequence_ptr
    if labels is not None:
        annotation = labels.read_spans(annotation, ptr)
    if words is not None:
        allowed = words.allowed(arrays["words"], annotation)
        dataset = replace(dataset, allowed=allowed if labels is None else labels.complete_words(allowed))
    if labels is not None:
        annotation = labels.to_states(annotation, ptr)
        if dataset.allowed is not None:
            dataset = replace(dataset, allowed=labels.allow_states(dataset.allowed))
    return Shard(dataset, annotation, None)


def _apply(
    function: Callable[[Shard], Result], reading: ShardReading, name: str, arrays: dict[str, Any]
) -> Result:
    return function(open_shard(name, arrays, reading))


@dataclass(frozen=True)
class StoredSequences(EncodedChains):
    """An encoded data set that is read shard by shard."""

    stored: StoredData
    make_loss: MakeLoss

    def objective(self, n_threads: int, start: Float64s | None) -> Objective:
        """What training minimises."""
        l1, l2 = self._penalty("l1"), self._penalty("l2")
        potentials = self.model.potentials

        def make(feature_map: FeatureMap) -> Loss:
            return self.make_loss(self.stored, replace(potentials, feature_map=feature_map), n_threads)

        loss = self._with_margin(potentials.feature_map, make)
        return Objective(loss, l1=l1, l2=l2, features=potentials.number_features)

    def fingerprint(self) -> dict[str, str]:
        """Of the data, by the checksums of their shards, and of what they call for."""
        head = self.stored.dataset.head
        digest = Fingerprint()
        potentials = self.model.potentials
        own = [*potentials.pattern_names, *potentials.structure_names]
        if isinstance(self.model.labels, StateLabels):
            own += map(str, self.model.labels.classes)
        for thing in (head["shards"], head["labels"], head["settings"], potentials.feature_map, own):
            digest.add(thing)
        if (known := self.model.dictionary) is not None:
            for thing in (known.words, known.endings, known.ptr, known.labels):
                digest.add(thing)
        return {"data": digest.hexdigest(), **self._dev_fingerprint()}


def find_obstacle(settings: CRFSettings) -> str | None:
    """What of the settings needs the sequences themselves, and not features and labels as numbers alone."""
    if settings.functions is not None:
        return "feature functions look at all sequences"
    if settings.kind.reads_sequences(settings.structure):
        return f"this {settings.kind.written} looks at all sequences"
    return None


def find_word_column(settings: CRFSettings) -> Column | None:
    """The column of the words that a tag dictionary looks up; None: there is none."""
    asked = settings.tag_dictionary
    if not asked:
        return None
    return asked.column if isinstance(asked, TagDictionary) else 0


def adopt_settings(settings: CRFSettings, dataset: EncodedDataset) -> tuple[CRFSettings, Template | None]:
    """The settings with those that the data set was encoded with; ArgumentError where others were asked for."""
    stored = dataset.settings
    n_columns = stored.get("n_columns")
    features = features_from_json(stored, n_columns, settings.resources or {})
    template = find_template(features, n_columns, settings.resources)
    if settings.features is not None:
        asked = find_template(settings.features, n_columns, settings.resources)
        if asked is None or template is None or asked.text != template.text:
            name = stored.get("preset") or ("no template" if template is None else "another template")
            raise ArgumentError(
                f"{dataset.path}: the data set was encoded with {name}, the model has other features; leave features "
                "out, or encode the files again"
            )
        template = asked  # with the resources that it reads
    if settings.least_count(1) not in (1, stored["min_count"]):
        raise ArgumentError(
            f"{dataset.path}: the data set was encoded with min_count={stored['min_count']}, the model has "
            f"min_count={settings.min_count}; leave it out, or encode the files again"
        )
    check_used(settings.resources, template, settings.kind.used_resources(settings.structure))
    _check_resources(dataset, settings)
    column = find_word_column(settings)
    if column is not None and stored.get("word_column") != column:
        raise ArgumentError(
            f"{dataset.path}: the data set was encoded without the words of column {column!r}, and the model has a "
            f"tag_dictionary, which looks them up; encode the files again with word_column={column!r} "
            f"(crfkit encode --word-column {column}), or leave it out"
        )
    bits = stored.get("hash_bits")
    if settings.hash_bits not in (None, bits):
        raise ArgumentError(
            f"{dataset.path}: the data set was encoded with hash_bits={bits}, the model has "
            f"hash_bits={settings.hash_bits}; leave it out, or encode the files again"
        )
    return replace(settings, features=features, min_count=stored["min_count"], hash_bits=bits), template


def _check_resources(dataset: EncodedDataset, settings: CRFSettings) -> None:
    """Refuse other resources than those that the data set was encoded with."""
    stored = dataset.settings.get("resources", {})
    own = settings.features.used_resources() if isinstance(settings.features, Template) else {}
    given = {name: resource.digest for name, resource in {**own, **(settings.resources or {})}.items()}
    for name in sorted({*stored, *given}):
        if stored.get(name) != given.get(name):
            state = "without" if name not in stored else "with" if name not in given else "with another"
            raise ArgumentError(
                f"{dataset.path}: the data set was encoded {state} resource {name!r}; give the model the resources that the "
                "data were encoded with, or encode them again"
            )


def _read_labels(dataset: EncodedDataset, settings: CRFSettings) -> tuple[StoredData, Labels]:
    """The labels of all shards, and the shards with those that their words may have."""
    written = Labels.from_json(dataset.labels)
    complete = settings.kind.complete_labels(settings.structure, written)
    labels = choose_states(
        complete, settings, None, lambda states: StoredData(dataset).map(partial(_count_beginnings, states))
    )
    states = labels if isinstance(labels, StateLabels) else None
    if len(labels.written) != len(written):
        missing = [label for label in labels.written.classes if not written.ids_of(label)]
        raise UnsupportedError(
            f"{dataset.path}: the data set has spans that begin with I, and no label {missing[0]!r}, which they are read "
            "as; expected labels of BIO, or X and y"
        )
    asked, column = settings.tag_dictionary, find_word_column(settings)
    if column is None:
        return StoredData(dataset, ShardReading(None, states)), labels
    stored = dataset.vocabulary()
    words = Vocabulary.from_bytes(stored["word_names"], stored["word_lengths"]).names()
    if not isinstance(asked, TagDictionary):
        counts = WordCounts.join(dataset.map_shards(partial(_count_words, len(written))))
        asked = counts.to_dictionary(words, labels.written, column, **TagDictionary.options(asked))
    known = DictionaryWords.find(asked.bind_labels(labels.written.classes), words)
    return StoredData(dataset, ShardReading(known, states)), labels


def _count_beginnings(states: StateLabels, shard: Shard) -> tuple[int, int]:
    return states.count_beginnings(shard.annotation, shard.dataset.sequence_ptr)


def _count_words(n_labels: int, name: str, arrays: dict[str, Any]) -> WordCounts:
    return WordCounts.of_shard(n_labels, arrays["words"], open_shard(name, arrays).annotation)


def _learn(
    data: StoredData, labels: Labels, settings: CRFSettings, template: Template | None, n_threads: int
) -> ChainModel:
    """The transitions and weights of all shards."""
    dataset = data.dataset
    names, stored = dataset.vocabulary(), dataset.settings
    states = Vocabulary.from_bytes(names["names"], names["lengths"])
    arcs = Vocabulary.from_bytes(names["arc_names"], names["arc_lengths"])
    n_columns, more_columns = stored.get("n_columns"), bool(stored.get("more_columns"))
    if template is not None and template.asked_counts:
        template = replace(template, counts=read_counts(names, str(dataset.path)))
    encoder = Encoder(template, states, arcs, {}, n_columns, more_columns, settings.hash_bits)
    chain = _bind(data, settings, labels)
    build = partial(_build_map, FeatureCounts.of(encoder), labels, chain, settings)
    complete = settings.all_possible_states and settings.all_possible_transitions and not settings.facets
    joint = join_maps(data.map(build), complete=complete)
    encoder.dense_sizes = dict(joint.dense)
    known = _join_labels(data.map(_find_labels) if settings.kind.learns_from_labels else ())
    learning = Learning(encoder, joint, labels, settings, known, None, n_threads)
    potentials = settings.kind.find_potentials(settings).learn(learning)[0]
    dictionary = None if data.reading.words is None else data.reading.words.dictionary
    return settings.kind.model(labels, settings.chain, potentials, dictionary)


def _build_map(
    counts: FeatureCounts, labels: Labels, chain: Chain, settings: CRFSettings, shard: Shard
) -> FeatureMap:
    """What the sequences of a shard call for."""
    return build_feature_map(counts, shard.dataset, shard.annotation, labels, chain, settings)


def _join_labels(shards: Iterable[_ShardLabels]) -> TrainingData:
    """The sequences and labels of all shards, without their features."""
    annotations, lengths = [Annotation(np.zeros(0, np.int32))], [np.zeros(0, np.int64)]
    for annotation, sequence_ptr, _ in shards:
        annotations.append(annotation)
        lengths.append(np.diff(sequence_ptr))
    sequence_ptr = offsets(np.concatenate(lengths))
    nothing = FeatureList(np.zeros(int(sequence_ptr[-1]) + 1, np.int64), np.zeros(0, np.int32), None)
    return TrainingData(None, Dataset(sequence_ptr, nothing), Annotation.join(annotations))


def _bind(data: StoredData, settings: CRFSettings, labels: Labels) -> Chain:
    """The chain with the bigrams of all shards."""
    chain = settings.chain
    if chain.bigrams is None and labels.bigrams is None:
        return chain
    also: Bigrams | None = None
    if chain.bigrams == "observed" or chain.unseen == "extend":  # first the pairs of all shards
        free = replace(chain, bigrams="observed", unseen="soft")
        for annotation, sequence_ptr, allowed in data.map(_find_labels):
            bound = bind_chain(free, labels, annotation, allowed, sequence_ptr, also)[0]
            also = bound.bigrams if isinstance(bound.bigrams, Bigrams) else None
    for annotation, sequence_ptr, allowed in data.map(_find_labels):
        try:
            chain, skipped = bind_chain(settings.chain, labels, annotation, allowed, sequence_ptr, also)
        except EmptyDataError:  # all sequences of this shard
            skipped = np.zeros(1, np.int64)
        if len(skipped):
            raise UnsupportedError(
                "some sequences of the data set lie outside the bigrams, and none that is encoded can be left out; expected "
                "other bigrams, or files or pairs (x, y), where those are left out whose labels are all known, or X and y"
            )
    return chain


def _find_labels(shard: Shard) -> _ShardLabels:
    return shard.annotation, shard.dataset.sequence_ptr, shard.dataset.allowed
