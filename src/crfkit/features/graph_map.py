"""The weights of a structure of the user's own, and data sets as its graphs."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from crfkit import _core
from crfkit.arrays import offsets
from crfkit.errors import reword
from crfkit.features.dataset import Annotation, Dataset, sequence_weights
from crfkit.features.feature_map import FeatureMap
from crfkit.features.function_data import FunctionData
from crfkit.lazy import lazy_property
from crfkit.structures import GraphStructure, OutputGraph

_KEPT = 256  # graphs, one for each length


@dataclass(frozen=True, eq=False)
class GraphMap:
    """Which weights the arcs of a structure have. They lie behind all others, in the order of `names`."""

    structure: GraphStructure
    labels: tuple[Hashable, ...]  # [L]
    names: tuple[str, ...]  # other names that arcs have are ignored

    @classmethod
    def learn(
        cls, structure: GraphStructure, labels: Sequence[Hashable], dataset: Dataset, known: Sequence[str]
    ) -> GraphMap:
        """With the weights that the graphs of training data have, beside known ones."""
        names = dict.fromkeys(known)
        for graph in cls(structure, tuple(labels), ()).graphs(dataset):
            names.update(dict.fromkeys(graph.names))
        return cls(structure, tuple(labels), tuple(names))

    def graphs(self, dataset: Dataset) -> Iterator[OutputGraph]:
        """The graph of each length that sequences of a data set have."""
        for length in np.unique(np.diff(dataset.sequence_ptr)).tolist():
            yield self._compile(length)

    def data(
        self,
        feature_map: FeatureMap,
        dataset: Dataset,
        n_threads: int,
        functions: FunctionData | None = None,
    ) -> _core.GraphData:
        """A data set as graphs, for the native core.

        `functions`: feature functions on the data set, in place of the features of the map.
        """
        lengths, graph_of = np.unique(np.diff(dataset.sequence_ptr), return_inverse=True)
        graphs = [self._native_graph(length) for length in lengths.tolist()]
        numbers = graph_of.astype(np.int32)
        if functions is None:
            design, first = feature_map.design(dataset, n_threads), feature_map.n_weights
            return _core.GraphData(feature_map.layout, design, None, first, graphs, numbers)
        map_ = functions.map
        design = map_.design(dataset.sequence_ptr, dataset.allowed, n_threads)
        return _core.GraphData(map_.layout, design, functions.native(), map_.n_weights, graphs, numbers)

    def loss(
        self,
        feature_map: FeatureMap,
        dataset: Dataset,
        annotation: Annotation,
        *,
        functions: FunctionData | None = None,
        sample_weight: npt.ArrayLike | None = None,
        n_threads: int = 1,
    ) -> _core.DataLoss:
        """The loss over the graphs of a data set, for `Objective`."""
        data = self.data(feature_map, dataset, n_threads, functions)
        weights = sequence_weights(sample_weight, dataset.n_sequences)
        n_weights = (feature_map if functions is None else functions.map).n_weights + len(self.names)
        try:
            return _core.graph_loss(
                data, annotation.labels, *annotation.set_arrays, weights, n_weights, n_threads
            )
        except ValueError as error:
            raise reword(error, str(error)) from None

    def _compile(self, length: int) -> OutputGraph:
        try:
            return self.structure.compile(length, self.labels)
        except ValueError as error:
            raise reword(error, str(error).rstrip(".")) from None

    @lazy_property
    def _native_graph(self) -> Callable[[int], _core.OutputGraph]:
        """The graph of a length as the native core holds it."""
        number = {name: i for i, name in enumerate(self.names)}

        @lru_cache(maxsize=_KEPT)
        def make(length: int) -> _core.OutputGraph:
            graph = self._compile(length)
            weights = np.array([number.get(name, -1) for name in graph.names], np.int32)
            known = weights >= 0
            return _core.OutputGraph(
                graph.level_ptr,
                graph.labels,
                graph.in_ptr,
                graph.sources,
                offsets(known)[graph.weight_ptr],
                weights[known],
            )

        return make
