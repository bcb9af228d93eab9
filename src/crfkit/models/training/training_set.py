"""What is asked of a model before its training, and a training set in numbers."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from crfkit.features import (
    Annotation,
    Dataset,
    FacetsOf,
    FeatureFunctions,
    FunctionData,
    PatternData,
    Strength,
    TagDictionary,
    Template,
)
from crfkit.objective import Loss, Objective
from crfkit.structures import Chain, Patterns

if TYPE_CHECKING:
    from crfkit.models.chain_model import ChainModel

Float64s = npt.NDArray[np.float64]


class Choices(NamedTuple):
    """What a user asks of a model, apart from its training: the parameters of `CRF`, checked."""

    structure: Chain | Patterns
    template: Template | None = None
    min_count: int = 1
    all_possible_states: bool = False
    all_possible_transitions: bool = True
    functions: FeatureFunctions | None = None
    facets: str | Mapping[Any, Mapping[str, str]] | FacetsOf | None = None
    tag_dictionary: bool | TagDictionary | None = None


class Lesson(NamedTuple):
    """A training set in numbers, and the model that is to be trained on it."""

    model: ChainModel
    dataset: Dataset
    annotation: Annotation
    kept: npt.NDArray[np.bool_]  # which of the given sequences these are
    values: FunctionData | None = None  # of feature functions, where the model has such
    starts: PatternData | None = None  # of patterns, where the model has such
    gone: frozenset[Hashable] = frozenset()  # labels that only sequences have that were left out

    def objective(
        self,
        *,
        l1: Strength,
        l2: Strength,
        sample_weight: Float64s | None,
        n_threads: int,
        fixed: npt.NDArray[np.bool_] | None = None,
    ) -> Objective:
        """What training minimises. `fixed` weights [D], which the data have no say in, are not penalised and stay."""
        first, second = self.model.penalty("l1", l1), self.model.penalty("l2", l2)
        if fixed is not None:
            first, second = (np.where(fixed, 0.0, strengths) for strengths in (first, second))
        return Objective(self._loss(sample_weight, n_threads), l1=first, l2=second)

    def _loss(self, sample_weight: Float64s | None, n_threads: int) -> Loss:
        model, patterns = self.model, self.model.patterns
        if self.values is not None:
            return self.values.loss(self.annotation, sample_weight=sample_weight, n_threads=n_threads)
        if self.starts is not None and patterns is not None and patterns.n_weights:
            return patterns.loss(
                self.starts,
                model.feature_map,
                self.dataset,
                self.annotation,
                sample_weight=sample_weight,
                n_threads=n_threads,
            )
        return model.feature_map.loss(
            self.dataset, self.annotation, sample_weight=sample_weight, n_threads=n_threads
        )
