"""The weights of semi-Markov chains."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from crfkit import inference
from crfkit.arrays import Float64s
from crfkit.features import Dataset, SegmentMap
from crfkit.inference import Answerer
from crfkit.models.potentials.features import FeaturePotentials, Learning, TrainingData
from crfkit.objective import Loss
from crfkit.structures import Chain, Segments


@dataclass(frozen=True, eq=False)
class SegmentPotentials(FeaturePotentials):
    """Weights of features and of transitions between segments, and behind them those of segments as a whole."""

    segments: SegmentMap

    @classmethod
    def learn(cls, given: Learning) -> tuple[FeaturePotentials, TrainingData]:
        """The weights that the segments of the training data have."""
        structure, data, base = given.settings.structure, given.data, given.base
        assert isinstance(structure, Segments)
        before = base.segments if isinstance(base, SegmentPotentials) else None
        segments = SegmentMap.learn(structure, given.labels.classes, data.dataset, data.annotation, before)
        return cls(given.encoder, segments.at_boundaries(given.feature_map), segments), data

    @property
    def structure_names(self) -> tuple[str, ...]:
        """In the order of their weights."""
        return self.segments.names

    @property
    def own_blocks(self) -> dict[str, int]:
        """One block."""
        return {"lengths": self.segments.n_weights}

    def trained_structure(self, chain: Chain) -> Segments:
        """With the scheme that the labels have."""
        return replace(self.segments.structure, scheme=self.segments.types.scheme)

    def design(self, dataset: Dataset, n_threads: int, *, asked_often: bool = False) -> Any:
        """Segmentations."""
        return self.segments.data(self.feature_map, dataset, n_threads)

    def answerer(self, weights: Float64s) -> Answerer:
        """On segmentations."""
        return Answerer(inference.GraphPotentials(weights))

    def loss(self, data: TrainingData, sample_weight: Float64s | None, n_threads: int) -> Loss:
        """On segmentations."""
        return self.segments.loss(
            self.feature_map,
            data.dataset,
            data.annotation,
            sample_weight=sample_weight,
            n_threads=n_threads,
        )

    def contents(self) -> dict[str, Any]:
        """With the types of segments and their lengths."""
        return super().contents() | {"segments": self.segments}

    def compared(self, data: TrainingData) -> Iterator[Any]:
        """What segments have weights for."""
        yield self.segments.names
