"""From word lattices with their paths to a model without weights, and the data in numbers."""

from dataclasses import replace
from typing import Any

import numpy as np

from crfkit.data import MAX_LABELS
from crfkit.errors import EmptyDataError, SizeLimitError
from crfkit.features import (
    ON_PATH,
    UNKNOWN,
    Annotation,
    Encoder,
    FeatureMap,
    Labels,
    LatticeDataset,
    LatticeMap,
    encode_paths,
    read_lattices,
    with_arcs,
)
from crfkit.models.chain_model import ChainModel
from crfkit.models.lattice_model import LatticeModel, allow
from crfkit.models.potentials import LatticePotentials, TrainingData
from crfkit.models.settings import CRFSettings
from crfkit.models.training.warm_start import widen
from crfkit.structures import Chain, Lattice

ANY_LABEL = "*"  # what features score that are not crossed with labels


def learn_lattices(
    X: Any, y: Any, allowed: Any, settings: CRFSettings, base: ChainModel | None
) -> tuple[LatticeModel, TrainingData]:
    """Features, labels and transitions that training lattices call for, and the lattices in numbers."""
    structure = settings.structure
    assert isinstance(structure, Lattice)
    lattices = read_lattices(X)
    rows = [[arc.features for arc in lattice.arcs] for lattice in lattices]
    encoder = Encoder() if base is None else replace(base.potentials.encoder)
    features = encoder.fit_encode(rows) if base is None else encoder.extend_encode(rows)
    if base is None and settings.min_count > 1:
        features = encoder.cut(features, settings.min_count)
    dataset = with_arcs(features, lattices)
    known = encode_paths(y, dataset)
    if allowed is not None:
        dataset = allow(dataset, allowed)
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
    return LatticeModel(labels, structure.chain, potentials), TrainingData(X, dataset, Annotation(known))


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
    settings: CRFSettings,
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
