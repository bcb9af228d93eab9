"""The weights of word lattices."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from crfkit import inference
from crfkit.arrays import Float64s, Int32s
from crfkit.errors import InputError
from crfkit.features import Dataset, Labels, LatticeDataset, LatticeMap, read_lattices, with_arcs
from crfkit.inference import Answerer
from crfkit.models.potentials.features import FeaturePotentials, TrainingData
from crfkit.objective import Loss
from crfkit.structures import Chain, CostMatrix, Lattice


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

    def encode(self, X: Any) -> LatticeDataset:
        """New lattices in numbers."""
        lattices = read_lattices(X)
        return with_arcs(self.encoder.encode([[arc.features for arc in x.arcs] for x in lattices]), lattices)

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
        return Answerer(inference.WordLatticePotentials(weights))

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
