"""The weights of patterns."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from crfkit import inference
from crfkit.data import InputError
from crfkit.features import Dataset, Encoder, FeatureMap, Labels, PatternMap
from crfkit.inference import Answerer
from crfkit.models.files import pattern_file
from crfkit.models.files.pattern_file import StoredPatterns
from crfkit.models.potentials.features import FeaturePotentials, TrainingData
from crfkit.models.settings import CRFSettings
from crfkit.objective import Loss
from crfkit.structures import Chain, Patterns

Bools = npt.NDArray[np.bool_]
Float64s = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class PatternPotentials(FeaturePotentials):
    """Weights of features, and behind them one for each pattern. As long as there is no pattern, a plain chain."""

    patterns: PatternMap

    reads_inputs = True
    lists_outputs = True

    @classmethod
    def learn(
        cls,
        encoder: Encoder,
        feature_map: FeatureMap,
        labels: Labels,
        settings: CRFSettings,
        data: TrainingData,
        base: FeaturePotentials | None,
        n_threads: int,
    ) -> tuple[FeaturePotentials, TrainingData]:
        """The patterns that the training data have, and where each may begin."""
        structure = settings.structure
        assert isinstance(structure, Patterns)
        if data.dataset.arcs is not None:
            raise InputError(
                "structure has patterns, which do not go with features of arcs: expected a template without B lines that "
                "read the input (a bare B is fine), or crfkit.Chain(…)"
            )
        patterns, starts = PatternMap.learn(
            structure,
            labels.classes,
            replace(data.dataset, inputs=data.inputs),
            data.annotation,
            columns=encoder.template is not None,
            base=base.patterns if isinstance(base, PatternPotentials) else None,
        )
        return cls(encoder, feature_map, patterns), data._replace(read=starts)

    @property
    def pattern_names(self) -> list[str]:
        """In the order of their weights."""
        return self.patterns.names

    @property
    def own_blocks(self) -> dict[str, int]:
        """One block."""
        return {"patterns": self.patterns.n_weights}

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
            return super().design(dataset, n_threads, asked_often=asked_often)
        return self.patterns.trellises(self.patterns.data(dataset), self.feature_map, dataset, n_threads)

    def answerer(self, weights: Float64s) -> Answerer:
        """On trellises."""
        if not self.patterns.n_weights:
            return super().answerer(weights)
        return Answerer(inference.PatternPotentials(self.feature_map.layout, weights))

    def loss(self, data: TrainingData, sample_weight: Float64s | None, n_threads: int) -> Loss:
        """On trellises."""
        if not self.patterns.n_weights:
            return super().loss(data, sample_weight, n_threads)
        return self.patterns.loss(
            data.read,
            self.feature_map,
            data.dataset,
            data.annotation,
            sample_weight=sample_weight,
            n_threads=n_threads,
        )

    def find_touched(self, data: TrainingData) -> Bools:
        """Of patterns, those that may begin somewhere in the data."""
        touched = super().find_touched(data)
        touched[self.feature_map.n_weights :] = data.read.reachable(self.patterns.n_weights)
        return touched

    def _prune_own(self, used: Bools) -> tuple[Self, Bools]:
        """Patterns that were taken from data go; those that were asked for stay."""
        patterns, left = self.patterns.kept(used)
        return replace(self, patterns=patterns), left

    def find_unsavable(self) -> str | None:
        """Functions of patterns are named by import path, which not every function has."""
        return pattern_file.unsavable(self.patterns.structure) or super().find_unsavable()

    def contents(self) -> dict[str, Any]:
        """With the patterns."""
        return super().contents() | {"patterns": StoredPatterns.of(self.patterns)}

    def compared(self, data: TrainingData) -> Iterator[Any]:
        """The patterns, and where each may begin."""
        yield self.patterns.names, data.read

    def compared_input(self, dataset: Dataset) -> Iterator[Any]:
        """Where each pattern may begin."""
        yield self.patterns.data(dataset)
