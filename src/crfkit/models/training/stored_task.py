"""Training on an encoded data set: the model is learned shard by shard, and so is its loss evaluated."""

import os
import tempfile
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeVar

import numpy as np

from crfkit.arrays import Float64s, Int32s, Int64s, offsets
from crfkit.data import EncodedDataset
from crfkit.errors import ArgumentError, FileFormatError, UnsupportedError
from crfkit.evaluation import read_metric
from crfkit.features import Annotation, Encoder, FeatureMap, Labels, Template, Vocabulary, read_shard
from crfkit.models.chain_model import ChainModel
from crfkit.models.checks import check_dev
from crfkit.models.constraints import bind_chain
from crfkit.models.potentials import FeaturePotentials, TrainingData
from crfkit.models.settings import CRFSettings, features_from_json, find_template
from crfkit.models.training.crf_task import EncodedChains, EncodedSequences, MakeLoss, here
from crfkit.models.training.data_warnings import warn_of_training_data
from crfkit.models.training.fingerprint import Fingerprint
from crfkit.models.training.sharded_data import Shard, ShardedData
from crfkit.models.training.train import Plan
from crfkit.models.training.training_set import FeatureCounts, build_feature_map
from crfkit.models.warning_types import UnsavableModel
from crfkit.objective import Loss, Objective, stored_loss
from crfkit.structures import Bigrams, Chain

Result = TypeVar("Result")
_MERGED_AT_ONCE = 1 << 23  # keys of weights that are collected before equal ones are dropped


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
        settings = self.settings
        if not settings.kind.trains_on_encoded or settings.functions is not None:
            what = "feature functions" if settings.functions is not None else settings.kind.written
            raise UnsupportedError(
                f"an encoded data set was given, but {what} looks at all sequences; expected X and y"
            )
        for name in ("facets", "tag_dictionary"):
            if getattr(settings, name):
                raise UnsupportedError(
                    f"an encoded data set was given, and {name}, which looks at all sequences; expected X and y"
                )
        if isinstance(settings.l2, str):
            raise UnsupportedError(
                f"an encoded data set was given, but l2 is {settings.l2!r}, which holds sequences out; expected a number"
            )
        adopt_settings(settings, self.dataset)

    def encode(self, plan: Plan[Any], n_threads: int) -> EncodedChains:
        """The model that the data call for, and warnings about them."""
        settings, template = adopt_settings(self.settings, self.dataset)
        data = StoredData(self.dataset)
        model = _learn(data, settings, template)
        if reason := model.find_unsavable():
            warnings.warn(f"this model cannot be saved or pickled: {reason}", UnsavableModel, stacklevel=5)
        warn_of_training_data(model, settings.min_count, stacklevel=5)
        if self.dataset.n_shards > 1:
            return StoredSequences(settings, model, plan.dev, plan.metric, data, self.make_loss)
        dataset, annotation = data.shard(0)[:2]
        whole = ShardedData(TrainingData(None, dataset, annotation), None, np.array(self.dataset.shard_ptr))
        own = (False, None, self.make_loss)
        return EncodedSequences(settings, model, plan.dev, plan.metric, whole, *own)


@dataclass(frozen=True)
class StoredData:
    """The shards of an encoded data set, opened when they are asked for: `TrainingShards`."""

    dataset: EncodedDataset

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
        return open_shard(str(self.dataset.files.shard(i)), self.dataset.shard(i))

    def shards(self, *, with_inputs: bool = False) -> Iterator[Shard]:
        """Shard after shard; they have no inputs."""
        for i in range(self.dataset.n_shards):
            if i + 1 < self.dataset.n_shards:
                self.dataset.expect(i + 1)
            yield self.shard(i)

    def map(self, function: Callable[[Shard], Result]) -> Iterator[Result]:
        """What a function gives for each shard, in order, wherever the shards are."""
        return self.dataset.map_shards(partial(_apply, function))

    def loss(self, potentials: FeaturePotentials, n_threads: int) -> Loss:
        """The sum of the losses of all shards; what is made of these lies in a scratch file."""

        def make(i: int) -> Loss:
            self.dataset.expect((i + 1) % self.dataset.n_shards)
            return potentials.shard_loss(*self.shard(i), n_threads)

        path = self.dataset.path
        scratch = str(path) if os.access(path, os.W_OK) else tempfile.gettempdir()
        return stored_loss(self.dataset.shard_ptr, make, potentials.n_weights, scratch, n_threads)


def open_shard(name: str, arrays: dict[str, Any]) -> Shard:
    """The numbers of a shard of an encoded data set."""
    try:
        return Shard(*read_shard(arrays), None)
    except ValueError as error:
        raise FileFormatError(f"{name}: the shard is damaged ({error})") from None


def _apply(function: Callable[[Shard], Result], name: str, arrays: dict[str, Any]) -> Result:
    return function(open_shard(name, arrays))


@dataclass(frozen=True)
class StoredSequences(EncodedChains):
    """An encoded data set that is read shard by shard."""

    stored: StoredData
    make_loss: MakeLoss

    def objective(self, n_threads: int, start: Float64s | None) -> Objective:
        """What training minimises."""
        l1, l2 = self._penalty("l1"), self._penalty("l2")
        potentials = self.model.potentials
        loss = self.make_loss(self.stored, potentials, n_threads)
        return Objective(loss, l1=l1, l2=l2, features=potentials.number_features())

    def fingerprint(self) -> dict[str, str]:
        """Of the data, by the checksums of their shards, and of what they call for."""
        head = self.stored.dataset.head
        digest = Fingerprint()
        for thing in (head["shards"], head["labels"], head["settings"], self.model.potentials.feature_map):
            digest.add(thing)
        return {"data": digest.hexdigest(), **self._dev_fingerprint()}


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
    if settings.min_count not in (1, stored["min_count"]):
        raise ArgumentError(
            f"{dataset.path}: the data set was encoded with min_count={stored['min_count']}, the model has "
            f"min_count={settings.min_count}; leave it out, or encode the files again"
        )
    return replace(settings, features=features, min_count=stored["min_count"]), template


def _learn(data: StoredData, settings: CRFSettings, template: Template | None) -> ChainModel:
    """The labels, transitions and weights of all shards."""
    dataset = data.dataset
    names, stored = dataset.vocabulary(), dataset.settings
    states = Vocabulary.from_bytes(names["names"], names["lengths"])
    arcs = Vocabulary.from_bytes(names["arc_names"], names["arc_lengths"])
    n_columns, more_columns = stored.get("n_columns"), bool(stored.get("more_columns"))
    encoder = Encoder(template, states, arcs, {}, n_columns, more_columns)
    labels = settings.kind.complete_labels(settings.structure, Labels.from_json(dataset.labels))
    chain = _bind(data, settings, labels)
    build = partial(_build_map, FeatureCounts.of(encoder), labels, chain, settings)
    joint = _join_maps(
        data.map(build), complete=settings.all_possible_states and settings.all_possible_transitions
    )
    encoder.dense_sizes = dict(joint.dense)
    return settings.kind.model(labels, settings.chain, FeaturePotentials(encoder, joint), None)


def _build_map(
    counts: FeatureCounts, labels: Labels, chain: Chain, settings: CRFSettings, shard: Shard
) -> FeatureMap:
    """What the sequences of a shard call for."""
    return build_feature_map(counts, shard.dataset, shard.annotation, labels, chain, settings)


def _join_maps(maps: Iterator[FeatureMap], *, complete: bool) -> FeatureMap:
    """What all shards call for; `complete`: each of them calls for all that there is."""
    joint: FeatureMap | None = None
    keys = [_Keys() for _ in range(3)]
    for joint in maps:
        if complete:
            return joint
        L = joint.n_labels
        keys[0].add(
            np.repeat(np.arange(len(joint.pair_ptr) - 1), np.diff(joint.pair_ptr)) * L + joint.pair_labels
        )
        keys[1].add(joint.arc_before.astype(np.int64) * (L + 1) + joint.arc_after)
        owners = np.repeat(np.arange(len(joint.arc_ptr) - 1), np.diff(joint.arc_ptr))
        keys[2].add(owners * L * L + joint.arc_triples)
    assert joint is not None
    L = joint.n_labels
    pair_ptr, pair_labels = _lists(keys[0].unique(), len(joint.pair_ptr) - 1, L)
    before, after = np.divmod(keys[1].unique(), L + 1)
    arc_ptr, arc_triples = _lists(keys[2].unique(), len(joint.arc_ptr) - 1, L * L)
    return replace(
        joint,
        pair_ptr=pair_ptr,
        pair_labels=pair_labels,
        arc_before=before.astype(np.int32),
        arc_after=after.astype(np.int32),
        arc_ptr=arc_ptr,
        arc_triples=arc_triples,
    )


def _bind(data: StoredData, settings: CRFSettings, labels: Labels) -> Chain:
    """The chain with the bigrams of all shards."""
    chain = settings.chain
    if chain.bigrams is None:
        return chain
    also: Bigrams | None = None
    for annotation, sequence_ptr in data.map(_find_labels):
        chain, skipped = bind_chain(settings.chain, labels, annotation, None, sequence_ptr, also)
        if len(skipped):
            raise UnsupportedError(
                "some sequences of the data set lie outside the bigrams, and none of an encoded data set can be left "
                "out; expected other bigrams, or X and y"
            )
        also = chain.bigrams if isinstance(chain.bigrams, Bigrams) else None
    return chain


def _find_labels(shard: Shard) -> tuple[Annotation, Int64s]:
    return shard.annotation, shard.dataset.sequence_ptr


class _Keys:
    """Numbers of which each is kept once."""

    def __init__(self) -> None:
        self._pieces: list[Int64s] = []
        self._n = 0

    def add(self, keys: Int64s) -> None:
        self._pieces.append(keys)
        self._n += len(keys)
        if self._n > _MERGED_AT_ONCE:
            self.unique()

    def unique(self) -> Int64s:
        """Ascending."""
        found = np.unique(np.concatenate(self._pieces))
        self._pieces, self._n = [found], 0
        return found


def _lists(keys: Int64s, n_lists: int, size: int) -> tuple[Int64s, Int32s]:
    """Lists of numbers below `size` from keys list · size + number."""
    lists, numbers = np.divmod(keys, max(size, 1))
    return offsets(np.bincount(lists, minlength=n_lists)), numbers.astype(np.int32)
