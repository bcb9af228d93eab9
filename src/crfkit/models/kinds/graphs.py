"""Structures of the user's own: what models need to know of `structures.GraphStructure`, and their weights."""

from collections.abc import Callable, Iterator
from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np

from crfkit import inference
from crfkit.arrays import Bools, Float64s
from crfkit.features import Dataset, GraphMap
from crfkit.inference import Answerer
from crfkit.models.files import graph_file
from crfkit.models.kinds.kind import StoredModel, StructureKind
from crfkit.models.potentials import FeaturePotentials, Learning, StructurePotentials, TrainingData
from crfkit.models.training.fingerprint import compare_by_code
from crfkit.objective import Loss
from crfkit.structures import Chain, GraphStructure


@dataclass(frozen=True, eq=False)
class GraphPotentials(StructurePotentials):
    """Weights of features or of feature functions, and behind them those that the arcs of the structure name."""

    graphs: GraphMap

    @classmethod
    def learn(cls, given: Learning) -> tuple[FeaturePotentials, TrainingData]:
        """The weights that the graphs of the training data have."""
        structure, classes = given.settings.structure, given.labels.classes
        assert isinstance(structure, GraphStructure)
        known = () if given.base is None else given.base.structure_names
        beside, functions, data = cls.learn_beside(given)
        graphs = GraphMap.learn(structure, classes, data.dataset, known)
        return cls(given.encoder, beside.feature_map, graphs, functions=functions), data

    @property
    def structure_names(self) -> tuple[str, ...]:
        """In the order of their weights."""
        return self.graphs.names

    @property
    def own_blocks(self) -> dict[str, int]:
        """One block, behind those of functions."""
        return {**self.beside.own_blocks, "structure": len(self.graphs.names)}

    def trained_structure(self, chain: Chain) -> GraphStructure:
        """The structure with the bigrams that training fixed."""
        trained = copy(self.graphs.structure)
        object.__setattr__(trained, "chain", chain)
        return trained

    def design(self, dataset: Dataset, n_threads: int, *, asked_often: bool = False) -> Any:
        """Graphs."""
        return self.graphs.data(self.feature_map, dataset, n_threads, self.values(dataset, n_threads))

    def answerer(self, weights: Float64s) -> Answerer:
        """On graphs."""
        return Answerer(inference.GraphPotentials(weights))

    def loss(self, data: TrainingData, sample_weight: Float64s | None, n_threads: int) -> Loss:
        """On graphs."""
        return self.graphs.loss(
            self.feature_map,
            data.dataset,
            data.annotation,
            functions=data.read,
            sample_weight=sample_weight,
            n_threads=n_threads,
        )

    def find_touched(self, data: TrainingData) -> Bools:
        """Of the weights of the structure, all."""
        return np.concatenate([self.beside.find_touched(data), np.ones(len(self.graphs.names), np.bool_)])

    def find_unsavable(self) -> str | None:
        """The class of the structure is named by import path, which not every class has."""
        return graph_file.unsavable(self.graphs.structure) or self.beside.find_unsavable()

    def contents(self) -> dict[str, Any]:
        """With the names of the weights; the structure itself is in the settings of the file."""
        return self.beside.contents() | {"structure_names": self.graphs.names}

    def list_compared(self, data: TrainingData) -> Iterator[Any]:
        """The graphs, and the values of functions."""
        yield from self.graphs.graphs(data.dataset)
        if self.functions is not None:
            yield from self.beside.list_compared(data)

    def list_compared_input(self, dataset: Dataset) -> Iterator[Any]:
        """The values of functions."""
        return self.beside.list_compared_input(dataset)


class GraphKind(StructureKind):
    """Structures whose class lists the arcs of a graph."""

    structure = GraphStructure
    written = "a GraphStructure"
    potentials = GraphPotentials
    key = "class"
    named_weights = True
    calls_functions = True

    def functions(self, structure: GraphStructure) -> list[Callable[..., Any]]:
        """The class."""
        return [graph_file.kind_of(structure)]

    def text(self, structure: GraphStructure) -> str:
        """The class, by its code, and its fields."""
        return compare_by_code(structure, "structure")

    def to_json(self, structure: GraphStructure) -> dict[str, Any]:
        """Import path and fields."""
        return graph_file.to_json(structure)

    def open(self, stored: StoredModel) -> tuple[GraphStructure, GraphPotentials]:
        """The structure, where its class is given, or may be imported."""
        structure = graph_file.from_json(stored.structure, stored.chain).open(
            stored.given, trust=stored.trust
        )
        classes, names = stored.contents.labels.classes, tuple(stored.contents.structure_names)
        graphs = GraphMap(structure, classes, names)
        return structure, GraphPotentials(*stored.features, graphs, functions=stored.functions)
