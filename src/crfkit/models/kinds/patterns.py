"""Chains with patterns: what models need to know of `structures.Patterns`, and their weights."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple, Self

import numpy as np

from crfkit import inference
from crfkit.arrays import Bools, Float64s, Int64s
from crfkit.features import Dataset, PatternData, PatternMap
from crfkit.inference import Answerer
from crfkit.models.files import pattern_file
from crfkit.models.kinds.kind import StoredModel, StructureKind
from crfkit.models.potentials import FeaturePotentials, Learning, StructurePotentials, TrainingData
from crfkit.models.training.fingerprint import by_code
from crfkit.objective import Loss
from crfkit.structures import Chain, Growth, Patterns


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

    def read(self, dataset: Dataset, n_threads: int, n_shards: int = 1) -> Any:
        """Where patterns may begin, and the values of functions."""
        return _Read(self.patterns.data(dataset), super().read(dataset, n_threads, n_shards))

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
        return self.beside.contents() | {"pack_own": partial(pattern_file.pack, self.patterns)}

    def trellis_sizes(self, dataset: Dataset, design: Any) -> Iterator[tuple[Int64s, Int64s, Float64s]]:
        """States, arcs and sparsity of the trellis of each sequence."""
        if not self.patterns.n_weights:
            yield from super().trellis_sizes(dataset, design)
        starts = self.patterns.data(dataset)
        for n, (begin, end) in enumerate(pairwise(dataset.sequence_ptr.tolist())):
            states, arcs, _ = design.trellises.sizes(n)
            yield states, arcs, self.patterns.sparsity(starts, n, begin, end)

    def list_compared(self, data: TrainingData) -> Iterator[Any]:
        """The patterns, where each may begin, and the values of functions."""
        yield self.patterns.names, data.read.starts
        if self.functions is not None:
            yield from self.beside.list_compared(_without_patterns(data))

    def list_compared_input(self, dataset: Dataset) -> Iterator[Any]:
        """Where each pattern may begin, and the values of functions."""
        yield self.patterns.data(dataset)
        yield from self.beside.list_compared_input(dataset)


class PatternKind(StructureKind):
    """Chains with patterns."""

    structure = Patterns
    written = "crfkit.Patterns(…)"
    potentials = PatternPotentials
    key = "patterns"
    unpack = staticmethod(pattern_file.unpack)
    calls_functions = True
    adds_to_chain = True
    learns_from_labels = True

    def reads_sequences(self, structure: Patterns) -> bool:
        """For gates, for functions of the input, and while patterns grow."""
        gated = any(pattern.when is not None for pattern in structure.written)
        return gated or bool(structure.functions) or bool(structure.grow)

    def growth(self, structure: Patterns) -> Growth | None:
        """Whether patterns grow in rounds."""
        return structure.grow if isinstance(structure.grow, Growth) else None

    def functions(self, structure: Patterns) -> list[Callable[..., Any]]:
        """Conditions of patterns, and functions that give patterns."""
        return pattern_file.functions_of(structure)

    def text(self, structure: Patterns) -> str:
        """Functions that give patterns come first."""
        gates = [pattern.when for pattern in structure.written if callable(pattern.when)]
        return f"{structure!r} {', '.join(map(by_code, [*structure.functions, *gates]))}".rstrip()

    def open(self, stored: StoredModel) -> tuple[Patterns, PatternPotentials]:
        """The patterns, with the functions that are given."""
        own, chain = stored.contents.own, stored.chain
        structure = pattern_file.with_functions(own.structure, stored.given, trust=stored.trust)
        of_chain = {name: getattr(chain, name) for name in ("start", "end", "bigrams", "unseen")}
        structure = replace(structure, **of_chain)
        patterns = replace(own, structure=structure, columns=stored.template is not None)
        return structure, PatternPotentials(*stored.features, patterns, functions=stored.functions)


class _Read(NamedTuple):
    """What was read of training data: for the patterns, and for the potentials beside them."""

    starts: PatternData
    beside: Any


def _without_patterns(data: TrainingData) -> TrainingData:
    return data._replace(read=data.read.beside)
