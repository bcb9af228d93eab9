"""What training fixes besides the weights: labels, constraints, and potentials, which say which weight scores what."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from crfkit.arrays import Bools, Float64s, Int32s, offsets
from crfkit.errors import InputError, UnsupportedError
from crfkit.evaluation import MetricFunction, metric_for
from crfkit.features import (
    IOBES,
    Annotation,
    Dataset,
    Labels,
    StateLabels,
    TagDictionary,
    check_lists,
    encode_allowed,
    first_of,
    read_once,
)
from crfkit.inference import Answerer
from crfkit.lazy import lazy_property
from crfkit.models.constraints import check_possible, find_impossible, trained_bigrams, trained_chain
from crfkit.models.files.crf_file import Contents
from crfkit.models.potentials import FeaturePotentials
from crfkit.structures import Bigrams, Chain, SequenceStructure


@dataclass(frozen=True, eq=False)
class ChainModel:
    """A chain model without its weights w [D]. Where labels have states, its chain and its weights are those of states."""

    labels: Labels
    structure: Chain  # as it was asked for, patterns apart
    potentials: FeaturePotentials
    dictionary: TagDictionary | None = None  # the labels that words may have, as ids of the written labels

    @lazy_property
    def chain(self) -> Chain:
        """The structure with its bigrams fixed by training."""
        return trained_chain(self.structure, self.labels, self.potentials.feature_map.bigrams)

    @property
    def bigrams(self) -> Bigrams | None:
        """The bigrams that training fixed; None for a plain chain."""
        return trained_bigrams(self.labels, self.potentials.feature_map.bigrams)

    @property
    def trained_structure(self) -> SequenceStructure:
        """The structure, patterns included, with its bigrams fixed by training."""
        return self.potentials.trained_structure(self.chain)

    @property
    def n_weights(self) -> int:
        """D."""
        return self.potentials.n_weights

    def transfer_weights(self, old: "ChainModel", weights: Float64s) -> Float64s:
        """The weights [D] to begin with: those that another model has too, and 0."""
        return self.potentials.transfer_weights(self.labels, old.potentials, old.labels, weights)

    def find_difference(self, old: "ChainModel") -> str | None:
        """Why few weights pass from another model to this one; None where that cannot be seen."""
        ours, theirs = (_describe_features(model) for model in (self, old))
        if ours != theirs:
            return f"start knows features by {theirs}, this model by {ours}"
        if not set(self.labels.classes) & set(old.labels.classes):
            return "they have no label in common"
        vocabularies = [model.potentials.encoder.vocabulary for model in (old, self)]
        if all(vocabularies) and not np.any(vocabularies[1].find(vocabularies[0]) >= 0):
            names = " and ".join(repr(names.name(0)) for names in vocabularies)
            return f"they have no feature in common, which are such as {names}"
        return None

    def prune(self, weights: Float64s) -> "tuple[ChainModel, Float64s]":
        """The same model without features whose weights are exactly 0, and the weights that are left."""
        potentials, left = self.potentials.prune(weights)
        return replace(self, potentials=potentials), left

    def find_unsavable(self) -> str | None:
        """Why no file can hold this model; None where one can."""
        try:
            self.labels.to_json()
        except InputError as error:
            return str(error)
        return self.potentials.find_unsavable()

    def contents(self, settings: dict[str, Any], weights: Float64s, history: Float64s) -> Contents:
        """What the model file holds."""
        parts = self.potentials.contents()
        return Contents(
            settings={**settings, "functions": parts.pop("functions", None)},
            labels=self.labels,
            dictionary=self.dictionary,
            weights=weights,
            history=history,
            **parts,
        )

    def decode(self, ids: Int32s, dataset: Dataset, n: int = 1) -> list[list[Any]]:
        """Label ids as lists of the user's own labels; n label sequences for each sequence, one after the other."""
        ptr = dataset.sequence_ptr if n == 1 else offsets(np.repeat(np.diff(dataset.sequence_ptr), n))
        return self.labels.decode_sequences(ids, ptr)

    def decode_one(self, ids: Int32s, dataset: Dataset, n: int) -> list[Any]:
        """The same of sequence n alone."""
        return self.labels.decode(ids)

    def annotate(self, y: Any, dataset: Dataset) -> Annotation:
        """Labels of encoded input in numbers."""
        return self.labels.encode(y, np.diff(dataset.sequence_ptr))

    def read_gold(self, y: Any, dataset: Dataset, which: str = "") -> list[Any]:
        """Right outputs as metrics compare them."""
        return check_lists(y, dataset.sequence_ptr, which)

    def convert_outputs(self, outputs: list[list[Any]], dataset: Dataset) -> list[list[Any]]:
        """Predicted outputs as metrics compare them."""
        return outputs

    def written_scheme(self, scheme: str) -> str:
        """The scheme of the label ids of spans, where this is that of labels."""
        return IOBES if isinstance(self.labels, StateLabels) else scheme

    def check_marginals(self) -> None:
        """Refuse questions on probabilities of labels where labels have none."""

    def read_marginals(self, marginals: Float64s) -> Float64s:
        """Of all sequences together: the probabilities [T, L] that `predict_marginals` gives."""
        self.check_marginals()
        return self.labels.sum_states(marginals)

    def figure(self, metric: MetricFunction | None, gold: list[Any]) -> MetricFunction:
        """The metric that is given, or the default one."""
        return metric or metric_for(self.labels.written.classes, gold)

    def encode(self, X: Any, allowed: Any = None, n_threads: int = 1) -> Dataset:
        """New input in numbers."""
        needs_inputs = self.potentials.needs_inputs
        if self.dictionary is not None or needs_inputs:
            X = read_once(X)
        dataset = self.potentials.encode(X, n_threads)
        allowed = encode_allowed(allowed, self.labels.written, np.diff(dataset.sequence_ptr))
        if self.dictionary is not None:
            allowed = first_of(allowed, self.labels.complete_words(self.dictionary.allowed(X)))
        allowed = None if allowed is None else self.labels.allow_states(allowed)
        return replace(dataset, allowed=allowed, inputs=X if needs_inputs else dataset.inputs)

    def design(self, dataset: Dataset, n_threads: int, *, asked_often: bool = False) -> Any:
        """Encoded input as the answerer reads it."""
        if self.potentials.lists_outputs:
            check_possible(self.chain, dataset.sequence_ptr, dataset.allowed)
        return self.potentials.design(dataset, n_threads, asked_often=asked_often)

    def find_impossible(self, y: Any, dataset: Dataset) -> list[Bools]:
        """The positions [T] of each sequence whose right label no output has there."""
        if not self.potentials.labels_positions:
            raise UnsupportedError("outputs are paths of word lattices, whose positions have no labels")
        gold, ptr = check_lists(y, dataset.sequence_ptr), dataset.sequence_ptr
        return find_impossible(self.chain, self.labels, gold, ptr, dataset.allowed)

    def answerer(self, weights: Float64s) -> Answerer:
        """What answers questions, with weights [D]."""
        return self.potentials.answerer(weights)


def _describe_features(model: ChainModel) -> str:
    bits = model.potentials.encoder.hash_bits
    return "their names" if bits is None else f"2^{bits} buckets of their names"
