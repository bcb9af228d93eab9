"""The weights of patterns."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self

import numpy as np

from crfkit import inference
from crfkit.arrays import Bools, Float64s
from crfkit.features import Dataset, PatternData, PatternMap
from crfkit.inference import Answerer
from crfkit.models.files import pattern_file
from crfkit.models.files.pattern_file import StoredPatterns
from crfkit.models.potentials.features import FeaturePotentials, Learning, TrainingData
from crfkit.models.potentials.functions import StructurePotentials
from crfkit.objective import Loss
from crfkit.structures import Chain, Patterns


@dataclass(frozen=True, eq=False)
class PatternPotentials(StructurePotentials):
    """Weights of features or of feature functions, and behind them one for each pattern.

    As long as there is no pattern, all is as without.
    """

    patterns: PatternMap

    reads_inputs = True

    @classmethod
    def learn(cls, given: Learning) -> tuple[FeaturePotentials, TrainingData]:
        """The patterns that the training data have, and where each may begin."""
        structure, before = given.settings.structure, given.base
        assert isinstance(structure, Patterns)
        beside, functions, data = cls.learn_beside(given)
        patterns, starts = PatternMap.learn(
            structure,
            given.labels.classes,
            replace(data.dataset, inputs=data.inputs),
            data.annotation,
            columns=given.encoder.template is not None,
            base=before.patterns if isinstance(before, PatternPotentials) else None,
        )
        found = cls(given.encoder, beside.feature_map, patterns, functions=functions)
        return found, data._replace(read=_Read(starts, data.read))

    @property
    def pattern_names(self) -> list[str]:
        """In the order of their weights."""
        return self.patterns.names

    @property
    def own_blocks(self) -> dict[str, int]:
        """One block, behind those of functions."""
        return {**self.beside.own_blocks, "patterns": self.patterns.n_weights}

    @property
    def needs_inputs(self) -> bool:
        """Gates and functions look at them."""
        return self.patterns.needs_inputs

    def trained_structure(self, chain: Chain) -> Patterns:
        """The patterns that were asked for, with the bigrams that training fixed."""
        return replace(self.patterns.structure, bigrams=chain.bigrams)

    def design(self, dataset: Dataset, n_threads: int, *, asked_often: bool = False) -> Any:
        """Trellises."""
        if not self.patterns.n_weights:
            return self.beside.design(dataset, n_threads, asked_often=asked_often)
        starts, values = self.patterns.data(dataset), self.values(dataset, n_threads)
        return self.patterns.design(starts, self.feature_map, dataset, n_threads, values)

    def answerer(self, weights: Float64s) -> Answerer:
        """On trellises."""
        if not self.patterns.n_weights:
            return self.beside.answerer(weights)
        layout = self.feature_map.layout if self.functions is None else self.functions.layout
        return Answerer(inference.PatternPotentials(layout, weights, self.patterns.n_weights))

    def loss(self, data: TrainingData, sample_weight: Float64s | None, n_threads: int) -> Loss:
        """On trellises."""
        if not self.patterns.n_weights:
            return self.beside.loss(_without_patterns(data), sample_weight, n_threads)
        return self.patterns.loss(
            data.read.starts,
            self.feature_map,
            data.dataset,
            data.annotation,
            functions=data.read.beside,
            sample_weight=sample_weight,
            n_threads=n_threads,
        )

    def find_touched(self, data: TrainingData) -> Bools:
        """Of patterns, those that may begin somewhere in the data."""
        reachable = data.read.starts.reachable(self.patterns.n_weights)
        return np.concatenate([self.beside.find_touched(_without_patterns(data)), reachable])

    def _prune_own(self, used: Bools) -> tuple[Self, Bools]:
        """Patterns that were taken from data go; those that were asked for, and outputs of functions, stay."""
        n_outputs = len(used) - self.patterns.n_weights
        patterns, left = self.patterns.keep(used[n_outputs:])
        return replace(self, patterns=patterns), np.concatenate([np.ones(n_outputs, np.bool_), left])

    def find_unsavable(self) -> str | None:
        """Functions are named by import path, which not every function has."""
        return pattern_file.unsavable(self.patterns.structure) or self.beside.find_unsavable()

    def contents(self) -> dict[str, Any]:
        """With the patterns."""
        return self.beside.contents() | {"patterns": StoredPatterns.of(self.patterns)}

    def list_compared(self, data: TrainingData) -> Iterator[Any]:
        """The patterns, where each may begin, and the values of functions."""
        yield self.patterns.names, data.read.starts
        if self.functions is not None:
            yield from self.beside.list_compared(_without_patterns(data))

    def list_compared_input(self, dataset: Dataset) -> Iterator[Any]:
        """Where each pattern may begin, and the values of functions."""
        yield self.patterns.data(dataset)
        yield from self.beside.list_compared_input(dataset)


class _Read(NamedTuple):
    """What was read of training data: for the patterns, and for the potentials beside them."""

    starts: PatternData
    beside: Any


def _without_patterns(data: TrainingData) -> TrainingData:
    return data._replace(read=data.read.beside)
