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
from crfkit.objective import FunctionObjective, Objective, OnlineObjective, PatternObjective
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
        stochastic: bool,
        online: bool = False,
        n_threads: int,
        fixed: npt.NDArray[np.bool_] | None = None,
    ) -> Objective | FunctionObjective | OnlineObjective | PatternObjective:
        """What training minimises; `stochastic`: by steps along single sequences, `online`: after each mistake.

        `fixed` weights [D], which the data have no say in, are not penalised and stay as they are.
        """
        first, second = self.model.penalty("l1", l1), self.model.penalty("l2", l2)
        if fixed is not None:
            first, second = (np.where(fixed, 0.0, strengths) for strengths in (first, second))
        if self.values is not None:
            return FunctionObjective(
                self.values,
                self.annotation,
                l1=first,
                l2=second,
                sample_weight=sample_weight,
                n_threads=n_threads,
            )
        if self.starts is not None and self.model.patterns is not None and self.model.patterns.n_weights:
            return PatternObjective(
                self.dataset,
                self.annotation,
                self.model.feature_map,
                self.model.patterns,
                self.starts,
                l1=first,
                l2=second,
                sample_weight=sample_weight,
                n_threads=n_threads,
            )
        if online:
            return OnlineObjective(
                self.dataset,
                self.annotation,
                self.model.feature_map,
                l1=first,
                sample_weight=sample_weight,
                n_threads=n_threads,
            )
        return Objective(
            self.dataset,
            self.annotation,
            self.model.feature_map,
            l1=first,
            l2=second,
            sample_weight=sample_weight,
            stochastic=stochastic,
            n_threads=n_threads,
        )
