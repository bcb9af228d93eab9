"""Word lattices as flat arrays, their paths, and the weights of their transitions.

Shapes: N lattices, T arcs in all lattices together. Arcs are the positions of the data set.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from crfkit import _core
from crfkit.arrays import Bools, Int32s, Int64s, offsets
from crfkit.errors import FeatureError, NoOutputError
from crfkit.features.dataset import Dataset, sequence_weights
from crfkit.features.feature_map import FeatureMap
from crfkit.features.given_sequences import list_sequences
from crfkit.structures import CostMatrix, Lattice, WordLattice

OFF_PATH = 0
"""An arc that is not on the gold path."""
ON_PATH = 1
"""An arc of the gold path."""
UNKNOWN = -1
"""An arc of which nothing is known."""

_NONE = np.zeros(0, np.int64)


@dataclass(frozen=True)
class LatticeDataset(Dataset):
    """N encoded lattices; arc a leads from `starts[a]` to `ends[a]` and has the label `arc_labels[label_ids[a]]`."""

    lengths: Int64s = field(default_factory=lambda: _NONE)  # [N]
    starts: Int64s = field(default_factory=lambda: _NONE)  # [T]
    ends: Int64s = field(default_factory=lambda: _NONE)  # [T]
    label_ids: Int32s = field(default_factory=lambda: np.zeros(0, np.int32))  # [T]
    arc_labels: tuple[Hashable, ...] = ()  # in the order of their first occurrence
    exists: Bools | None = None  # [T] which arcs `allowed` leaves; None: all

    def between(self, first: int, last: int) -> Self:
        """The lattices `first`, …, `last` − 1 alone, as views."""
        arcs = slice(int(self.sequence_ptr[first]), int(self.sequence_ptr[last]))
        return replace(
            super().between(first, last),
            lengths=self.lengths[first:last],
            starts=self.starts[arcs],
            ends=self.ends[arcs],
            label_ids=self.label_ids[arcs],
            exists=None if self.exists is None else self.exists[arcs],
        )


def read_lattices(X: Any) -> list[WordLattice]:
    """The lattices of an input; InputError for anything else."""
    lattices = []
    for n, x in enumerate(list_sequences(X)):
        if isinstance(x, WordLattice):
            lattices.append(x)
            continue
        try:
            length, arcs = x
            lattices.append(WordLattice(length, arcs))
        except (TypeError, ValueError) as error:
            raise FeatureError(
                f"sequence {n} is no crfkit.WordLattice(length, arcs) ({str(error).rstrip('.')})"
            ) from None
    return lattices


def with_arcs(dataset: Dataset, lattices: Sequence[WordLattice]) -> LatticeDataset:
    """The encoded features of arcs, with the arcs."""
    ids: dict[Hashable, int] = {}
    arcs = [arc for lattice in lattices for arc in lattice.arcs]
    return LatticeDataset(
        dataset.sequence_ptr,
        dataset.states,
        dense=dataset.dense,
        lengths=np.array([lattice.length for lattice in lattices], np.int64),
        starts=np.array([arc.start for arc in arcs], np.int64),
        ends=np.array([arc.end for arc in arcs], np.int64),
        label_ids=np.array([ids.setdefault(arc.label, len(ids)) for arc in arcs], np.int32),
        arc_labels=tuple(ids),
    )


@dataclass(frozen=True, eq=False)
class LatticeMap:
    """Which weights transitions have. They lie behind those of the feature map, in the order of `names`."""

    structure: Lattice
    names: tuple[str, ...]
    _numbers: dict[str, int] = field(init=False, repr=False)
    _pairs: dict[tuple[Hashable, Hashable], tuple[int, ...]] = field(init=False, repr=False)  # met before

    def __post_init__(self) -> None:
        """Number the names."""
        object.__setattr__(self, "_numbers", {name: i for i, name in enumerate(self.names)})
        object.__setattr__(self, "_pairs", {})

    @classmethod
    def learn(
        cls, structure: Lattice, dataset: LatticeDataset, of_arcs: Bools | None, known: Sequence[str]
    ) -> LatticeMap:
        """With the weights of pairs that meet in training data, only between some arcs if these are given."""
        names = dict.fromkeys(known)
        for before, after in _labels_of(meeting_pairs(dataset, of_arcs), dataset, structure):
            names.update(dict.fromkeys(structure.pair_names(before, after)))
        return cls(structure, tuple(names))

    def weights_of(self, before: Hashable, after: Hashable) -> tuple[int, ...]:
        """The numbers of the weights of two neighbouring labels."""
        found = self._pairs.get((before, after))
        if found is None:
            names = self.structure.pair_names(before, after)
            found = tuple(self._numbers[name] for name in names if name in self._numbers)
            self._pairs[before, after] = found
        return found

    def data(
        self, feature_map: FeatureMap, outcomes: Int32s, dataset: LatticeDataset, n_threads: int
    ) -> _core.WordLattices:
        """A data set for the native core; `outcomes` [T] are the labels that the features of arcs score."""
        keys = meeting_pairs(dataset, None)
        pairs = list(_labels_of(keys, dataset, self.structure))
        lists = [self.weights_of(*pair) for pair in pairs]
        matrix = self.structure.transitions
        values = None
        if isinstance(matrix, CostMatrix) and self.names:
            values = np.array([matrix.value(*pair) for pair in pairs], np.float64)
        exists = dataset.exists
        try:
            return _core.WordLattices(
                feature_map.layout,
                feature_map.design(dataset, n_threads),
                dataset.lengths,
                dataset.starts,
                dataset.ends,
                dataset.label_ids,
                outcomes,
                None if exists is None else exists.astype(np.uint8),
                len(dataset.arc_labels) + 1,
                keys,
                offsets([len(weights) for weights in lists]),
                np.array([weight for weights in lists for weight in weights], np.int32),
                values,
            )
        except ValueError as error:
            raise NoOutputError(str(error)) from None

    def loss(
        self,
        feature_map: FeatureMap,
        outcomes: Int32s,
        dataset: LatticeDataset,
        known: Int32s,
        *,
        sample_weight: npt.ArrayLike | None = None,
        n_threads: int = 1,
    ) -> _core.DataLoss:
        """The loss over a data set of which `known` [T] says what is known of each arc, for `Objective`."""
        data = self.data(feature_map, outcomes, dataset, n_threads)
        weights = sequence_weights(sample_weight, dataset.n_sequences)
        n_weights = feature_map.n_weights + len(self.names)
        try:
            return _core.word_lattice_loss(data, known, weights, n_weights, n_threads)
        except ValueError as error:
            raise NoOutputError(str(error)) from None


def meeting_pairs(dataset: LatticeDataset, of_arcs: Bools | None) -> Int64s:
    """The pairs of labels that meet at a place of a lattice, ascending: before · (labels + 1) + after.

    The last label is that of the boundary. With `of_arcs` [T], only between these arcs.
    """
    boundary = len(dataset.arc_labels)
    arcs = np.arange(dataset.n_positions) if of_arcs is None else np.flatnonzero(of_arcs)
    first_place = offsets(dataset.lengths + 1)  # places of all lattices, one after the other
    filled = np.flatnonzero(dataset.lengths > 0)
    base = np.repeat(first_place[:-1], np.diff(dataset.sequence_ptr))[arcs]
    at_boundary = np.full(len(filled), boundary)
    ending = _join(base + dataset.ends[arcs], dataset.label_ids[arcs], first_place[filled], at_boundary)
    last_place = first_place[1:][filled] - 1
    beginning = _join(base + dataset.starts[arcs], dataset.label_ids[arcs], last_place, at_boundary)
    n = boundary + 1
    before, after = (np.unique(place * n + label) for place, label in (ending, beginning))
    # For each ended label, all labels that begin at its place: they lie side by side.
    low = np.searchsorted(after, before // n * n)
    counts = np.searchsorted(after, (before // n + 1) * n) - low
    rows = np.repeat(np.arange(len(before)), counts)
    columns = np.arange(len(rows)) - np.repeat(offsets(counts)[:-1], counts) + np.repeat(low, counts)
    found: Int64s = np.unique(before[rows] % n * n + after[columns] % n)
    return found


def _join(places: Int64s, labels: Int32s, more_places: Int64s, more_labels: Int64s) -> tuple[Int64s, Int64s]:
    return np.concatenate([places, more_places]), np.concatenate([labels.astype(np.int64), more_labels])


def _labels_of(
    keys: Int64s, dataset: LatticeDataset, structure: Lattice
) -> Iterable[tuple[Hashable, Hashable]]:
    labels = [*dataset.arc_labels, structure.boundary]
    before, after = np.divmod(keys, len(labels))
    return ((labels[i], labels[j]) for i, j in zip(before.tolist(), after.tolist(), strict=True))
