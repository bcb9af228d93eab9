"""Semi-Markov chains: what models need to know of `structures.Segments`, and their weights."""

from collections.abc import Callable, Collection, Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple, Self

import numpy as np

from crfkit import inference
from crfkit.arrays import Bools, Float64s, Int32s
from crfkit.features import (
    Dataset,
    Labels,
    MissingResource,
    Resource,
    SegmentCells,
    SegmentMap,
    SegmentTemplate,
    without_spans,
)
from crfkit.inference import Answerer
from crfkit.models.files import segment_file
from crfkit.models.files.resource_file import Resources
from crfkit.models.kinds.kind import StoredModel, StructureKind
from crfkit.models.kinds.segment_model import SegmentModel, refuse_allowed
from crfkit.models.potentials import FeaturePotentials, Learning, StructurePotentials, TrainingData
from crfkit.models.training.training_set import TrainingInput, TrainingSet
from crfkit.objective import Loss
from crfkit.structures import Chain, SegmentExtractor, Segments, SpanLabels


class _Read(NamedTuple):
    """What is read of training data."""

    cells: SegmentCells | None  # the features of segments
    beside: Any  # the values of feature functions


@dataclass(frozen=True, eq=False)
class SegmentPotentials(StructurePotentials):
    """Weights of features or of feature functions, and of transitions between segments; behind them those of segments."""

    segments: SegmentMap

    reads_inputs = True
    ends_at_positions = False

    @classmethod
    def learn(cls, given: Learning) -> tuple[FeaturePotentials, TrainingData]:
        """The weights that the segments of the training data have."""
        structure, data, base = given.settings.structure, given.data, given.base
        assert isinstance(structure, Segments)
        before = base.segments if isinstance(base, SegmentPotentials) else None
        dataset = replace(data.dataset, inputs=data.inputs)
        segments = SegmentMap.learn(
            structure,
            given.labels.classes,
            dataset,
            data.annotation,
            before,
            all_possible_states=given.settings.all_possible_states,
        )
        at_boundaries = segments.at_boundaries(given.feature_map)
        beside, functions, data = cls.learn_beside(
            given._replace(feature_map=at_boundaries, pairs=segments.label_pairs())
        )
        found = cls(given.encoder, beside.feature_map, segments, functions=functions)
        return found, data._replace(read=_Read(segments.cells(dataset), data.read))

    @property
    def structure_names(self) -> tuple[str, ...]:
        """In the order of their weights."""
        return self.segments.names

    @property
    def structure_keys(self) -> tuple[Hashable, ...]:
        """By type, role, and length or name."""
        return self.segments.keys

    def transition_names(self, labels: Sequence[Hashable]) -> Sequence[Hashable]:
        """The types of segments."""
        types = self.segments.types
        return [types.names[c] for c in types.type_of.tolist()]

    def transition_labels(self, n_labels: int) -> Int32s:
        """The label that stands for the type of each."""
        types = self.segments.types
        return types.transition[types.type_of]

    def existing_pairs(self) -> tuple[Int32s, Int32s]:
        """Within a segment and between two."""
        return self.segments.label_pairs()

    @property
    def own_blocks(self) -> dict[str, int]:
        """Those of functions, then lengths, and features of segments."""
        n_pairs = len(self.segments.pair_types)
        return {**self.beside.own_blocks, "lengths": self.segments.n_weights - n_pairs, "segments": n_pairs}

    @property
    def own_scores(self) -> str:
        """Those of segments."""
        return "lengths and features of segments that end here"

    @property
    def needs_inputs(self) -> bool:
        """Segment features and dictionaries look at them."""
        return self.segments.reads_inputs

    @property
    def columns_read(self) -> Collection[int | str] | None:
        """Those of dictionaries and of features without functions."""
        structure = self.segments.structure
        features: Any = structure.segment_features
        if structure.functions:
            return None
        found = {structure.column} if structure.dictionaries else set()
        for feature in features:
            found.update(feature.columns if isinstance(feature, SegmentExtractor) else [feature])
        return found

    def trained_structure(self, chain: Chain) -> Segments:
        """With the scheme that the labels have, and the types that may follow each other."""
        segments = self.segments
        scheme = segments.structure.scheme or segments.types.scheme
        return replace(segments.structure, scheme=scheme, bigrams=segments.bigrams)

    def design(self, dataset: Dataset, n_threads: int, *, asked_often: bool = False) -> Any:
        """Segmentations."""
        cells, values = self.segments.cells(dataset), self.values(dataset, n_threads)
        return self.segments.data(self.feature_map, dataset, cells, n_threads, functions=values)

    def answerer(self, weights: Float64s) -> Answerer:
        """On segmentations."""
        return Answerer(inference.GraphPotentials(weights))

    def loss(self, data: TrainingData, sample_weight: Float64s | None, n_threads: int) -> Loss:
        """On segmentations."""
        return self.segments.loss(
            self.feature_map,
            data.dataset,
            data.annotation,
            data.read.cells,
            functions=data.read.beside,
            sample_weight=sample_weight,
            n_threads=n_threads,
        )

    def read(self, dataset: Dataset, n_threads: int, n_shards: int = 1) -> Any:
        """The features of segments, and the values of functions."""
        return _Read(self.segments.cells(dataset), super().read(dataset, n_threads, n_shards))

    def contents(self) -> dict[str, Any]:
        """With the types of segments and their lengths."""
        return self.beside.contents() | {"pack_own": partial(segment_file.pack, self.segments)}

    def list_compared(self, data: TrainingData) -> Iterator[Any]:
        """What segments have weights for, and the features of each."""
        yield self.segments.keys, self.segments.exists, data.read.cells
        if self.functions is not None:
            yield from self.beside.list_compared(data._replace(read=data.read.beside))

    def list_compared_input(self, dataset: Dataset) -> Iterator[Any]:
        """The features of segments, and the values of functions."""
        yield self.segments.cells(dataset)
        yield from self.beside.list_compared_input(dataset)

    def _prune_own(self, used: Bools) -> tuple[Self, Bools]:
        """Features of segments without a weight go; outputs of functions and lengths stay."""
        n_kept = len(used) - self.own_blocks["segments"]
        return replace(self, segments=self.segments.keep(used[n_kept:])), np.concatenate(
            [np.ones(n_kept, np.bool_), used[n_kept:]]
        )

    def find_touched(self, data: TrainingData) -> Bools:
        """Of the features of segments, too, those that occur."""
        touched = self.beside.find_touched(data._replace(read=data.read.beside))
        of_segments = np.ones(self.own_blocks["segments"], np.bool_)
        if data.read.cells is not None:
            occurs = np.bincount(data.read.cells.ids, minlength=len(self.segments.features)) > 0
            of_segments = np.repeat(occurs, np.diff(self.segments.pair_ptr))
        return np.concatenate([touched, np.ones(self.own_blocks["lengths"], np.bool_), of_segments])

    def find_unsavable(self) -> str | None:
        """Functions are named by import path, which not every function has."""
        return segment_file.unsavable(self.segments.structure) or self.beside.find_unsavable()


class SegmentKind(StructureKind):
    """Semi-Markov chains."""

    structure = Segments
    written = "crfkit.Segments(…)"
    potentials = SegmentPotentials
    model = SegmentModel
    key = "segments"
    unpack = staticmethod(segment_file.unpack)
    calls_functions = True
    learns_from_labels = True

    def reads_sequences(self, structure: Segments) -> bool:
        """For features of segments and for dictionaries; labels in IOB1 are read as those of BIO beforehand."""
        return bool(structure.segment_features) or bool(structure.dictionaries) or structure.reads_iob1

    def learn(self, given: TrainingInput) -> TrainingSet:
        """Labels of IOB1 have been read as those of BIO."""
        assert isinstance(given.settings.structure, Segments)
        if given.settings.structure.reads_iob1:
            refuse_allowed(given.allowed)
        return super().learn(given)

    def complete_labels(self, structure: Segments, labels: Labels) -> Labels:
        """In IOB1 every type has a label with I."""
        if not structure.reads_iob1:
            return labels
        return Labels.learn(
            [[*labels.classes, *(f"I{str(label)[1:]}" for label in labels.classes if label != "O")]]
        )

    def read_labels(self, X: Any, y: Any, structure: Segments, which: str = "") -> tuple[Any, Any]:
        """y may be lists of spans."""
        return without_spans(X, y, structure, which)

    def read_spans(
        self, structure: Segments, labels: Sequence[Hashable], scheme: str | None
    ) -> SpanLabels | None:
        """By the scheme of the structure, unless another one is given."""
        return super().read_spans(structure, labels, scheme or structure.scheme)

    def functions(self, structure: Segments) -> list[Callable[..., Any]]:
        """Of features of segments."""
        return structure.functions

    def bind(self, structure: Segments, resources: Resources | None) -> Segments:
        """Those that templates name, beside their own."""
        if not resources or not _templates(structure):
            return structure
        features: Any = structure.segment_features
        bound = [
            feature.bind({**feature.resources, **resources})
            if isinstance(feature, SegmentTemplate)
            else feature
            for feature in features
        ]
        return replace(structure, segment_features=bound)

    def used_resources(self, structure: Segments) -> dict[str, Resource | MissingResource]:
        """Those of templates."""
        found: dict[str, Resource | MissingResource] = {}
        for template in _templates(structure):
            found |= template.used_resources()
        return found

    def open(self, stored: StoredModel) -> tuple[Segments, SegmentPotentials]:
        """The segments, with the functions and the resources that are given."""
        segments: SegmentMap = stored.contents.own
        structure = segment_file.with_functions(segments.structure, stored.given, trust=stored.trust)
        structure = self.bind(structure, stored.resources)
        segments = replace(segments, structure=structure)
        functions = stored.functions
        if functions is not None:
            functions = replace(functions, pairs=segments.label_pairs())
        return structure, SegmentPotentials(*stored.features, segments, functions=functions)


def _templates(structure: Segments) -> list[SegmentTemplate]:
    """Those of the features of segments that are templates."""
    features: Any = structure.segment_features
    return [feature for feature in features if isinstance(feature, SegmentTemplate)]
