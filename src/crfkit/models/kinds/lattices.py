"""Word lattices: what models need to know of `structures.Lattice`, and their weights.

A model file has {"lattice": {"transitions": "labels", null or [template, …], "crossed": bool, "boundary": label}} in its
structure; the names of the weights of transitions lie in an array of their own.
"""

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from crfkit import inference
from crfkit.arrays import Float64s, Int32s
from crfkit.data import MAX_LABELS
from crfkit.errors import EmptyDataError, FileFormatError, InputError, SizeLimitError, UnsupportedError
from crfkit.features import (
    ON_PATH,
    UNKNOWN,
    Annotation,
    Dataset,
    Encoder,
    FeatureMap,
    Labels,
    LatticeDataset,
    LatticeMap,
    encode_paths,
    read_lattices,
    with_arcs,
)
from crfkit.inference import Answerer
from crfkit.models.chain_model import ChainModel
from crfkit.models.files.file_arrays import setting
from crfkit.models.kinds.kind import StoredModel, StructureKind
from crfkit.models.kinds.lattice_model import LatticeModel, allow
from crfkit.models.potentials import FeaturePotentials, TrainingData
from crfkit.models.training.training_set import TrainingInput, TrainingSet
from crfkit.models.training.warm_start import widen
from crfkit.objective import Loss
from crfkit.structures import Chain, CostMatrix, Lattice

if TYPE_CHECKING:
    from crfkit.models.settings import CRFSettings

ANY_LABEL = "*"  # what features score that are not crossed with labels


@dataclass(frozen=True, eq=False)
class LatticePotentials(FeaturePotentials):
    """Weights of the features of arcs, and behind them those of transitions between neighbouring arcs.

    Features score the label of their arc, or, where they are not crossed with labels, the only label there is.
    """

    lattices: LatticeMap
    labels: Labels

    labels_positions: ClassVar[bool] = False

    @property
    def structure_names(self) -> tuple[str, ...]:
        """The transitions, in the order of their weights."""
        return self.lattices.names

    @property
    def own_blocks(self) -> dict[str, int]:
        """One block."""
        return {"transitions": len(self.lattices.names)}

    def trained_structure(self, chain: Chain) -> Lattice:
        """The structure, of which training fixes nothing."""
        return self.lattices.structure

    def encode(self, X: Any, n_threads: int = 1) -> LatticeDataset:
        """New lattices in numbers."""
        lattices = read_lattices(X)
        rows = [[arc.features for arc in x.arcs] for x in lattices]
        return with_arcs(self.encoder.encode(rows, n_threads), lattices)

    def outcomes(self, dataset: LatticeDataset) -> Int32s:
        """The label that the features of each arc score, [T]; −1 for one that training has not seen."""
        if not self.lattices.structure.crossed:
            return np.zeros(dataset.n_positions, np.int32)
        ids = {label: i for i, label in enumerate(self.labels.classes)}
        return np.array([ids.get(label, -1) for label in dataset.arc_labels] or [0], np.int32)[
            dataset.label_ids
        ]

    def design(self, dataset: Dataset, n_threads: int, *, asked_often: bool = False) -> Any:
        """Lattices."""
        assert isinstance(dataset, LatticeDataset)
        return self.lattices.data(self.feature_map, self.outcomes(dataset), dataset, n_threads)

    def answerer(self, weights: Float64s) -> Answerer:
        """On lattices."""
        return Answerer(inference.GraphPotentials(weights))

    def loss(self, data: TrainingData, sample_weight: Float64s | None, n_threads: int) -> Loss:
        """On lattices."""
        assert isinstance(data.dataset, LatticeDataset)
        return self.lattices.loss(
            self.feature_map,
            self.outcomes(data.dataset),
            data.dataset,
            data.annotation.labels,
            sample_weight=sample_weight,
            n_threads=n_threads,
        )

    def find_unsavable(self) -> str | None:
        """The label of the boundary is kept too."""
        if isinstance(self.lattices.structure.transitions, CostMatrix):
            return "its transitions have costs that are known: compat.write_mecab writes them"
        try:
            Labels([self.lattices.structure.boundary]).to_json()
        except InputError as error:
            return str(error)
        return super().find_unsavable()

    def contents(self) -> dict[str, Any]:
        """With the names of the transitions; the structure itself is in the settings of the file."""
        return super().contents() | {"structure_names": self.lattices.names}

    def list_compared(self, data: TrainingData) -> Iterator[Any]:
        """The names of the transitions; the arcs are in the data set."""
        yield list(self.lattices.names)


class LatticeKind(StructureKind):
    """Word lattices."""

    structure = Lattice
    written = "crfkit.Lattice(…)"
    potentials = LatticePotentials
    model = LatticeModel
    key = "lattice"
    inputs = "word lattices"
    named_weights = True

    def check(self, settings: "CRFSettings") -> None:
        """Arcs come with their features."""
        others = (settings.features, settings.facets or None, settings.tag_dictionary or None)
        if any(other is not None for other in others):
            raise UnsupportedError(
                "a Lattice lists its arcs with their features: expected no features, facets or tag_dictionary"
            )

    def learn(self, given: TrainingInput) -> TrainingSet:
        """Features, labels and transitions that training lattices call for."""
        return _learn(given)

    def read_spans(self, structure: Lattice, labels: Sequence[Hashable], scheme: str | None) -> None:
        """Arcs are spans."""

    def to_json(self, structure: Lattice) -> dict[str, Any]:
        """Everything."""
        transitions = structure.transitions
        assert not isinstance(transitions, CostMatrix)  # which no file holds
        plain = transitions is None or isinstance(transitions, str)
        return {
            "lattice": {
                "transitions": transitions if plain else list(transitions or ()),
                "crossed": bool(structure.crossed),
                "boundary": Labels([structure.boundary]).to_json(),
            }
        }

    def open(self, stored: StoredModel) -> tuple[Lattice, LatticePotentials]:
        """The structure, and the names of its transitions."""
        contents = stored.contents
        if stored.functions or contents.dictionary or len(contents.feature_map.arc_before):
            raise FileFormatError("it has a lattice, and what lattices have not")
        structure = _from_json(setting(stored.structure, "lattice", dict))
        lattices = LatticeMap(structure, tuple(contents.structure_names))
        return structure, LatticePotentials(*stored.features, lattices, contents.labels)


def _from_json(value: dict[str, Any]) -> Lattice:
    """The inverse of `to_json`."""
    try:
        (boundary,) = Labels.from_json(setting(value, "boundary", list)).classes
        transitions = setting(value, "transitions", (str, list, type(None)))
        return Lattice(transitions, setting(value, "crossed", bool), boundary)
    except ValueError as error:
        raise FileFormatError(f"its structure is damaged ({str(error).rstrip('.')})") from None


def _learn(given: TrainingInput) -> TrainingSet:
    """Features, labels and transitions that training lattices call for, and the lattices in numbers."""
    settings, base = given.settings, given.base
    structure = settings.structure
    assert isinstance(structure, Lattice)
    lattices = read_lattices(given.X)
    rows = [[arc.features for arc in lattice.arcs] for lattice in lattices]
    before = None if base is None else base.potentials
    encoder, features = FeaturePotentials.encode_training(rows, settings, None, before)
    dataset = with_arcs(features, lattices)
    known = encode_paths(given.y, dataset)
    if given.allowed is not None:
        dataset = allow(dataset, given.allowed)
        known = np.where(np.asarray(dataset.exists), known, 0).astype(np.int32)
    if not np.any(known != UNKNOWN):
        raise EmptyDataError("y names no arc of any path: there is nothing to learn from")
    labels = _labels(structure, dataset, base)
    feature_map = _feature_map(structure, settings, encoder, dataset, known, labels)
    if base is not None:
        feature_map = widen(feature_map, labels, base.potentials.feature_map, base.labels)
    on_path = None if settings.all_possible_transitions else known == ON_PATH
    names = () if base is None else base.potentials.structure_names
    lattice_map = LatticeMap.learn(structure, dataset, on_path, names)
    potentials = LatticePotentials(encoder, feature_map, lattice_map, labels)
    model = LatticeModel(labels, structure.chain, potentials)
    data = TrainingData(given.X, dataset, Annotation(known))
    return TrainingSet(model, data, np.ones(dataset.n_sequences, np.bool_))


def _labels(structure: Lattice, dataset: LatticeDataset, base: ChainModel | None) -> Labels:
    """The labels that features score."""
    if not structure.crossed:
        return Labels([ANY_LABEL])
    labels = Labels.learn([dataset.arc_labels, () if base is None else base.labels.classes])
    if len(labels) > MAX_LABELS:
        raise SizeLimitError(
            f"the arcs have {len(labels):,} different labels, expected at most {MAX_LABELS:,}; with "
            "Lattice(crossed=False) they may have any number"
        )
    return labels


def _feature_map(
    structure: Lattice,
    settings: "CRFSettings",
    encoder: Encoder,
    dataset: LatticeDataset,
    known: Any,
    labels: Labels,
) -> FeatureMap:
    """Weights for features with the labels of arcs on paths, or of all arcs."""
    ids = labels.encode([dataset.arc_labels], [len(dataset.arc_labels)]).labels if structure.crossed else None
    outcomes = np.zeros(dataset.n_positions, np.int32) if ids is None else ids[dataset.label_ids]
    seen = outcomes if settings.all_possible_states else np.where(known == ON_PATH, outcomes, UNKNOWN)
    arcless = Chain(start=False, end=False)
    feature_map = FeatureMap.build(
        dataset,
        Annotation(seen.astype(np.int32)),
        arcless,
        n_labels=len(labels),
        n_features=len(encoder.vocabulary),
    )
    nothing = np.zeros(0, np.int32)
    return replace(feature_map, arc_before=nothing, arc_after=nothing)
