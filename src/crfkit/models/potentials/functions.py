"""The weights of feature functions, alone and before those of a structure."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from crfkit import inference
from crfkit.arrays import Bools, Float64s
from crfkit.features import Dataset, Encoder, FunctionData, FunctionMap, Outputs, Template
from crfkit.inference import Answerer
from crfkit.models.files import function_file
from crfkit.models.potentials.features import FeaturePotentials, Learning, TrainingData
from crfkit.objective import Loss

if TYPE_CHECKING:
    from crfkit.models.settings import CRFSettings


@dataclass(frozen=True, eq=False)
class FunctionPotentials(FeaturePotentials):
    """Weights of transitions, and behind them one for each output of each function."""

    functions: FunctionMap

    lists_outputs = True

    @classmethod
    def encode_training(
        cls, X: Any, settings: "CRFSettings", template: Template | None, base: FeaturePotentials | None
    ) -> tuple[Encoder, Dataset]:
        """Only the lengths of the inputs: functions look at them later."""
        assert settings.functions is not None
        return Encoder(template), settings.functions.dataset(X)

    @classmethod
    def learn(cls, given: Learning) -> tuple[FeaturePotentials, TrainingData]:
        """The outputs that the functions have on the training data, and their values."""
        functions, feature_map, base = given.settings.functions, given.feature_map, given.base
        assert functions is not None
        if not functions.transitions:
            none = np.zeros(0, np.int32)
            feature_map = replace(feature_map, arc_before=none, arc_after=none)
        outputs = tuple(map(Outputs, functions))
        if isinstance(base, FunctionPotentials):
            known = {found.function.name: found for found in base.functions.outputs}
            for own in outputs:
                if own.function.name in known:
                    own.adopt(known[own.function.name])
        known_to_all = (functions, outputs, given.labels.classes, given.settings.chain)
        map_ = FunctionMap(*known_to_all, feature_map, given.pairs)
        values = FunctionData(map_, given.data.dataset, given.n_threads, learn=True)
        return cls(given.encoder, feature_map, map_), given.data._replace(read=values)

    @property
    def output_names(self) -> list[str]:
        """In the order of their weights."""
        return self.functions.output_names()

    @property
    def own_blocks(self) -> dict[str, int]:
        """A block for each function."""
        named = (function.name for function in self.functions.functions)
        return dict(zip(named, self.functions.sizes, strict=True))

    @property
    def own_scores(self) -> str:
        """Of one label they are features."""
        return "feature functions of two labels"

    def function_scores(
        self, dataset: Dataset, i: int, coefficients: Float64s, weights: Float64s
    ) -> Iterator[tuple[str, float]]:
        """Of the functions of one label."""
        assert dataset.inputs is not None
        return self.functions.label_scores(dataset.inputs[0], i, coefficients, weights)

    def encode(self, X: Any, n_threads: int = 1) -> Dataset:
        """Only the lengths of the inputs."""
        return self.functions.functions.dataset(X)

    def design(self, dataset: Dataset, n_threads: int, *, asked_often: bool = False) -> FunctionData:
        """Slices of lattices, for which the functions are called as they are read."""
        return FunctionData(self.functions, dataset, n_threads)

    def answerer(self, weights: Float64s) -> Answerer:
        """On slices of lattices."""
        return Answerer(inference.FunctionPotentials(weights))

    def loss(self, data: TrainingData, sample_weight: Float64s | None, n_threads: int) -> Loss:
        """On slices of lattices, with the values that the functions gave."""
        values: FunctionData = data.read
        return values.loss(data.annotation, sample_weight=sample_weight, n_threads=n_threads)

    def read(self, dataset: Dataset, n_threads: int, n_shards: int = 1) -> FunctionData:
        """The values of the functions; shards share the memory for these."""
        memory = self.functions.functions.memory // n_shards
        return FunctionData(self.functions, dataset, n_threads, memory=memory)

    def find_touched(self, data: TrainingData) -> Bools:
        """Of outputs, those that have a value somewhere in the data."""
        touched = super().find_touched(data)
        touched[self.feature_map.n_weights :] = data.read.occurring()
        return touched

    def find_unsavable(self) -> str | None:
        """Functions are named by import path, which not every function has."""
        return function_file.unsavable(self.functions.functions)

    def contents(self) -> dict[str, Any]:
        """With the names of outputs; the functions themselves are in the settings of the file."""
        return super().contents() | {
            "functions": function_file.to_json(self.functions),
            "output_names": function_file.output_names(self.functions),
        }

    def list_compared(self, data: TrainingData) -> Iterator[Any]:
        """The values of the functions."""
        yield None
        yield from data.read.values()

    def list_compared_input(self, dataset: Dataset) -> Iterator[Any]:
        """The values of the functions."""
        return FunctionData(self.functions, dataset, n_threads=1).values()


@dataclass(frozen=True, eq=False, kw_only=True)
class StructurePotentials(FeaturePotentials):
    """Weights of features or of feature functions, and behind them those of a structure."""

    functions: FunctionMap | None = None

    lists_outputs = True

    @property
    def beside(self) -> FeaturePotentials:
        """The potentials without those of the structure."""
        if self.functions is None:
            return FeaturePotentials(self.encoder, self.feature_map)
        return FunctionPotentials(self.encoder, self.feature_map, self.functions)

    @property
    def own_scores(self) -> str:
        """As without the structure."""
        return self.beside.own_scores

    def function_scores(
        self, dataset: Dataset, i: int, coefficients: Float64s, weights: Float64s
    ) -> Iterator[tuple[str, float]]:
        """As without the structure."""
        return self.beside.function_scores(dataset, i, coefficients, weights)

    @classmethod
    def encode_training(
        cls, X: Any, settings: "CRFSettings", template: Template | None, base: FeaturePotentials | None
    ) -> tuple[Encoder, Dataset]:
        """As without the structure."""
        return potentials_without_structure(settings).encode_training(X, settings, template, base)

    @staticmethod
    def learn_beside(given: Learning) -> tuple[FeaturePotentials, FunctionMap | None, TrainingData]:
        """The potentials without those of the structure, their functions, and the data as these read it."""
        if isinstance(given.base, StructurePotentials):
            given = given._replace(base=given.base.beside)
        beside, data = potentials_without_structure(given.settings).learn(given)
        return beside, beside.functions if isinstance(beside, FunctionPotentials) else None, data

    @property
    def output_names(self) -> Sequence[str]:
        """In the order of their weights, which lie before those of the structure."""
        return self.beside.output_names

    def encode(self, X: Any, n_threads: int = 1) -> Dataset:
        """As without the structure."""
        return self.beside.encode(X, n_threads)

    def values(self, dataset: Dataset, n_threads: int) -> FunctionData | None:
        """The functions on a data set."""
        return None if self.functions is None else FunctionData(self.functions, dataset, n_threads)

    def read(self, dataset: Dataset, n_threads: int, n_shards: int = 1) -> Any:
        """As without the structure."""
        return self.beside.read(dataset, n_threads, n_shards)


def potentials_without_structure(settings: "CRFSettings") -> type[FeaturePotentials]:
    """Of features, or of feature functions."""
    return FeaturePotentials if settings.functions is None else FunctionPotentials
