"""The weights of features of positions and of transitions."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

import numpy as np

from crfkit.arrays import Bools, Float64s, Int32s, Int64s
from crfkit.data import check_labels, fewest_weights
from crfkit.errors import InputError, UnsupportedError
from crfkit.features import (
    Annotation,
    Dataset,
    Encoder,
    FeatureMap,
    Labels,
    MergedFeatures,
    Strength,
    Template,
    mark_right_labels,
    penalty_vector,
)
from crfkit.inference import Answerer, ChainPotentials
from crfkit.models.checks import count_threads
from crfkit.models.training.warm_start import copy_named, transfer_features, without_unused
from crfkit.objective import Loss
from crfkit.structures import Chain, SequenceStructure

if TYPE_CHECKING:
    from crfkit.models.settings import CRFSettings

NOT_LOCAL = (
    "it is normalised at each position, which does not go with patterns, feature functions, bigrams, facets or a "
    "tag dictionary"
)


class TrainingData(NamedTuple):
    """Training data in numbers."""

    inputs: Any  # X, as it was given
    dataset: Dataset
    annotation: Annotation
    read: Any = None  # what the potentials have read of it beside the features: the values of functions, starts of patterns


class Learning(NamedTuple):
    """What potentials are learned from."""

    encoder: Encoder
    feature_map: FeatureMap
    labels: Labels
    settings: CRFSettings
    data: TrainingData
    base: FeaturePotentials | None  # those of a model that is trained further
    n_threads: int
    pairs: tuple[Int32s, Int32s] | None = (
        None  # the only neighbours, where transitions are not those of labels
    )


@dataclass(frozen=True, eq=False)
class FeaturePotentials:
    """Weights for (feature, label), (column of a dense block, label), transitions, and (feature, transition)."""

    encoder: Encoder
    feature_map: FeatureMap  # where these weights lie: the first ones of w [D]

    reads_inputs: ClassVar[bool] = False  # training looks at the inputs themselves, beside their features
    lists_outputs: ClassVar[bool] = False  # impossible sequences are refused before the core sees the input
    local: ClassVar[bool] = False  # normalised at each position
    labels_positions: ClassVar[bool] = True  # outputs are label sequences
    ends_at_positions: ClassVar[bool] = (
        True  # the weights of start and end score the first and the last position
    )

    @classmethod
    def encode_training(
        cls, X: Any, settings: CRFSettings, template: Template | None, base: FeaturePotentials | None
    ) -> tuple[Encoder, Dataset]:
        """The features of training data, beside those of a base, and the data in numbers."""
        n_threads = count_threads(settings.n_threads)
        if base is not None:
            encoder = replace(base.encoder)
            return encoder, encoder.extend_encode(X, n_threads)
        encoder = Encoder(template, hash_bits=settings.hash_bits)
        dataset = encoder.fit_encode(X, n_threads)
        least = settings.least_count(dataset.n_positions)
        return encoder, encoder.cut(dataset, least) if least > 1 else dataset

    @classmethod
    def learn(cls, given: Learning) -> tuple[FeaturePotentials, TrainingData]:
        """The potentials that training data call for, beside those of a base, and the data as these read it."""
        return cls(given.encoder, given.feature_map), given.data

    @property
    def output_names(self) -> Sequence[str]:
        """The outputs of feature functions; their weights lie behind those of the feature map."""
        return ()

    @property
    def pattern_names(self) -> Sequence[str]:
        """The patterns; their weights lie behind all others."""
        return ()

    @property
    def structure_names(self) -> Sequence[str]:
        """The weights of a structure of the user's own; they lie behind all others."""
        return ()

    @property
    def structure_keys(self) -> Sequence[Hashable]:
        """The same as keys, by which weights pass from one model to the next."""
        return self.structure_names

    def transition_names(self, labels: Sequence[Hashable]) -> Sequence[Hashable]:
        """What the transitions of each label are those of: the label itself."""
        return labels

    def transition_labels(self, n_labels: int) -> Int32s:
        """The label whose transitions each label has: its own. [L]"""
        return np.arange(n_labels, dtype=np.int32)

    def existing_pairs(self) -> tuple[Int32s, Int32s] | None:
        """The only labels that may follow each other, as (before, after), L being the start and the end; None: all may."""
        return None if self.feature_map.soft else self.feature_map.bigrams

    @property
    def own_blocks(self) -> dict[str, int]:
        """Blocks of the weights behind those of the feature map: name → number of weights."""
        return {}

    @property
    def n_weights(self) -> int:
        """D."""
        return self.feature_map.n_weights + sum(self.own_blocks.values())

    @property
    def n_features(self) -> int:
        """Features of positions and of transitions, columns of dense blocks, patterns, and outputs of functions."""
        encoder = self.encoder
        n_columns = sum(self.feature_map.dense.values())
        own = sum(self.own_blocks.values())
        return len(encoder.vocabulary) + len(encoder.arc_vocabulary) + n_columns + own

    def function_scores(
        self, dataset: Dataset, i: int, coefficients: Float64s, weights: Float64s
    ) -> Iterator[tuple[str, float]]:
        """What feature functions add to Σ_b coefficients[b] · score(b) at position i of the only sequence, by output."""
        return iter(())

    def outcomes(self, dataset: Any) -> Int32s:
        """The label that the features of each arc of word lattices score."""
        raise UnsupportedError("the model has no word lattices")

    @property
    def own_scores(self) -> str:
        """What scores a position beside its features, the start and the end."""
        return "other scores of the position"

    @property
    def needs_inputs(self) -> bool:
        """Whether new inputs themselves are looked at, beside their features."""
        return False

    @property
    def columns_read(self) -> Collection[int | str] | None:
        """The columns of the input that are read beside those of the template; None: not known."""
        return None if self.reads_inputs else ()

    def trained_structure(self, chain: Chain) -> SequenceStructure:
        """The structure with the bigrams that training fixed."""
        return chain

    def encode(self, X: Any, n_threads: int = 1) -> Dataset:
        """New input in numbers."""
        return self.encoder.encode(X, n_threads)

    def design(self, dataset: Dataset, n_threads: int, *, asked_often: bool = False) -> Any:
        """Encoded input as what answers questions reads it."""
        return self.feature_map.design(dataset, n_threads, purpose="training" if asked_often else "questions")

    def answerer(self, weights: Float64s) -> Answerer:
        """What answers questions, with weights [D]."""
        return Answerer(ChainPotentials(self.feature_map.layout, weights, local=self.local))

    def loss(self, data: TrainingData, sample_weight: Float64s | None, n_threads: int) -> Loss:
        """−log p(y | x), summed over the training data, as a function of the weights [D]."""
        return self.feature_map.loss(
            data.dataset, data.annotation, sample_weight=sample_weight, n_threads=n_threads
        )

    def training_loss(self, data: TrainingData, sample_weight: Float64s | None, n_threads: int) -> Loss:
        """The same, where training may have features of its own: those that tell which labels are right."""
        first = self.feature_map.right_labels
        if first is not None:
            data = data._replace(dataset=mark_right_labels(data.dataset, data.annotation, first))
        return self.loss(data, sample_weight, n_threads)

    def read(self, dataset: Dataset, n_threads: int, n_shards: int = 1) -> Any:
        """What `loss` reads of training data beside the features (`TrainingData.read`), of one of `n_shards` shards."""
        return None

    def shard_loss(
        self,
        dataset: Dataset,
        annotation: Annotation,
        sample_weight: Float64s | None,
        n_threads: int,
        n_shards: int = 1,
    ) -> Loss:
        """The loss of one shard: of data that may be read anywhere, as long as the model is this one."""
        read = self.read(dataset, n_threads, n_shards)
        data = TrainingData(dataset.inputs, dataset, annotation, read)
        loss = self.training_loss(data, sample_weight, n_threads)
        if n_shards > 1:
            loss.set_shard()
        return loss

    def merge(self, data: TrainingData) -> MergedFeatures | None:
        """The features of the training data, equal ones merged; None where that saves little, or there are other weights."""
        # With facets, nearly all of the time goes to the arcs of lattices.
        merges = type(self) is FeaturePotentials and self.feature_map.facets is None
        return MergedFeatures.of(self.feature_map, data.dataset) if merges else None

    def penalty(self, name: str, strength: Strength) -> Float64s:
        """The strength of each weight, [D] or [1]."""
        return penalty_vector(name, strength, self.feature_map, self.encoder, self.own_blocks)

    def number_features(self) -> Int32s:
        """The feature, or column of a dense block, that each weight [D] is one of; −1 for transitions and own weights."""
        map_ = self.feature_map
        n_features, n_columns = len(map_.pair_ptr) - 1, sum(map_.dense.values())
        found = np.full(self.n_weights, -1, np.int32)
        found[: map_.n_pairs] = np.repeat(np.arange(n_features), np.diff(map_.pair_ptr))
        found[map_.n_pairs : map_.arcs_begin] = np.repeat(n_features + np.arange(n_columns), map_.n_labels)
        of_arcs = n_features + n_columns + np.arange(len(map_.arc_ptr) - 1)
        found[map_.triples_begin : map_.n_weights] = np.repeat(of_arcs, np.diff(map_.arc_ptr))
        return found

    def find_touched(self, data: TrainingData) -> Bools:
        """Which weights [D] the data have a say in: those of features that occur, and all transitions."""
        dataset, map_ = data.dataset, self.feature_map
        touched = np.ones(self.n_weights, dtype=np.bool_)
        n_features = len(map_.pair_ptr) - 1
        occurs = np.bincount(dataset.states.ids, minlength=n_features)[:n_features] > 0
        touched[: map_.n_pairs] = np.repeat(occurs, np.diff(map_.pair_ptr))
        n_arc_features = len(map_.arc_ptr) - 1
        arc_ids = np.zeros(0, np.int32) if dataset.arcs is None else dataset.arcs.ids
        occurs = np.bincount(arc_ids, minlength=n_arc_features)[:n_arc_features] > 0
        touched[map_.triples_begin : map_.n_weights] = np.repeat(occurs, np.diff(map_.arc_ptr))
        return touched

    def transfer_weights(
        self, labels: Labels, old: FeaturePotentials, old_labels: Labels, weights: Float64s
    ) -> Float64s:
        """The weights [D] to begin with: those that `old` has too, by what they score, and 0."""
        start = np.zeros(self.n_weights)
        here, there = old.feature_map, self.feature_map
        linked = dict(
            zip(
                self.transition_names(labels.classes),
                self.transition_labels(len(labels)).tolist(),
                strict=True,
            )
        )
        arcs = [linked.get(name, -1) for name in old.transition_names(old_labels.classes)]
        transfer_features(old.encoder, here, old_labels, weights, self.encoder, there, labels, arcs, start)
        behind, start_behind = weights[here.n_weights :], start[there.n_weights :]
        n, n_start = len(old.output_names), len(self.output_names)
        copy_named(old.output_names, behind[:n], self.output_names, start_behind[:n_start])
        copy_named(old.pattern_names, behind[n:], self.pattern_names, start_behind[n_start:])
        copy_named(old.structure_keys, behind[n:], self.structure_keys, start_behind[n_start:])
        return start

    def prune(self, weights: Float64s) -> tuple[FeaturePotentials, Float64s]:
        """The same without the features whose weights are exactly 0, as l1 leaves many, and the weights that are left."""
        map_ = self.feature_map
        used_pairs = weights[: map_.n_pairs] != 0.0
        used_triples = weights[map_.triples_begin : map_.n_weights] != 0.0
        smaller, used_own = self._prune_own(weights[map_.n_weights :] != 0.0)
        between = np.ones(map_.triples_begin - map_.n_pairs, np.bool_)  # dense blocks and transitions stay
        used = np.concatenate([used_pairs, between, used_triples, used_own])
        n_used = int(np.count_nonzero(used))
        if n_used == len(weights) or n_used < fewest_weights(map_.n_labels):
            return self, weights
        pair_ptr, used_features = without_unused(map_.pair_ptr, used_pairs)
        arc_ptr, used_arc_features = without_unused(map_.arc_ptr, used_triples)
        feature_map = replace(
            map_,
            pair_ptr=pair_ptr,
            pair_labels=map_.pair_labels[used_pairs],
            arc_ptr=arc_ptr,
            arc_triples=map_.arc_triples[used_triples],
        )
        encoder = replace(
            self.encoder,
            vocabulary=self.encoder.vocabulary.keep(used_features)[0],
            arc_vocabulary=self.encoder.arc_vocabulary.keep(used_arc_features)[0],
        )
        return replace(smaller, encoder=encoder, feature_map=feature_map), weights[used]

    def _prune_own(self, used: Bools) -> tuple[Self, Bools]:
        """The same without what is not used behind the weights of the feature map, and which of these are left."""
        return self, np.ones(len(used), dtype=np.bool_)

    def find_unsavable(self) -> str | None:
        """Why no file can hold these potentials; None where one can."""
        try:
            check_labels(self.feature_map.n_labels, self.feature_map.n_weights)
        except InputError as error:
            return str(error)
        return None

    def contents(self) -> dict[str, Any]:
        """What the model file holds of them: fields of `crf_file.Contents`."""
        return {"encoder": self.encoder, "feature_map": self.feature_map}

    def trellis_sizes(self, dataset: Dataset, design: Any) -> Iterator[tuple[Int64s, Int64s, Float64s]]:
        """States, arcs and sparsity of the trellis of each sequence, where there are patterns."""
        raise UnsupportedError("the model has no patterns: each position has one state for each label")

    def list_compared(self, data: TrainingData) -> Iterator[Any]:
        """What a checkpoint compares of training data beside features and labels."""
        yield None

    def list_compared_input(self, dataset: Dataset) -> Iterator[Any]:
        """The same for held-out data."""
        return iter(())


@dataclass(frozen=True, eq=False)
class LocalPotentials(FeaturePotentials):
    """The same, normalised at each position, as in maximum entropy Markov models; they come from other toolkits."""

    local = True

    def __post_init__(self) -> None:
        """Refuse what is normalised over whole sequences only."""
        if self.feature_map.bigrams is not None or self.feature_map.facets is not None:
            raise UnsupportedError(NOT_LOCAL)
