"""Models whose outputs are paths through word lattices."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from crfkit.arrays import Float64s, Int32s
from crfkit.errors import InputError, reword
from crfkit.evaluation import MetricFunction, path_metric
from crfkit.features import (
    Annotation,
    Dataset,
    LatticeDataset,
    encode_paths,
    gold_triples,
    path_numbers,
    path_triples,
)
from crfkit.models.chain_model import ChainModel


@dataclass(frozen=True, eq=False)
class LatticeModel(ChainModel):
    """A model of word lattices without its weights. Its positions are arcs, its outputs lists of their numbers."""

    def encode(self, X: Any, allowed: Any = None, n_threads: int = 1) -> Dataset:
        """New lattices in numbers; `allowed` has, for each of them, None or a path that may be partial."""
        dataset = self.potentials.encode(X, n_threads)
        return dataset if allowed is None else allow(dataset, allowed)

    def annotate(self, y: Any, dataset: Dataset) -> Annotation:
        """What paths say of each arc."""
        return Annotation(encode_paths(y, _lattices(dataset)))

    def decode(self, ids: Int32s, dataset: Dataset, n: int = 1) -> list[list[Any]]:
        """Which arcs are on paths, as lists of their numbers; n paths for each lattice."""
        return path_numbers(ids, _lattices(dataset), n)

    def decode_one(self, ids: Int32s, dataset: Dataset, n: int) -> list[Any]:
        """The same of lattice n alone."""
        arcs = np.flatnonzero(ids)
        first = dataset.sequence_ptr[n]
        numbers: list[Any] = arcs[np.argsort(_lattices(dataset).starts[first + arcs], kind="stable")].tolist()
        return numbers

    def read_gold(self, y: Any, dataset: Dataset, which: str = "") -> list[Any]:
        """Full paths as lists of (start, end, label), which metrics compare."""
        return gold_triples(y, _lattices(dataset), which)

    def convert_outputs(self, outputs: list[list[Any]], dataset: Dataset) -> list[list[Any]]:
        """The same of outputs."""
        return path_triples(outputs, _lattices(dataset))

    def read_marginals(self, marginals: Float64s) -> Float64s:
        """The probability of each arc to be on the path."""
        return marginals[:, 1]

    def figure(self, metric: MetricFunction | None, gold: list[Any]) -> MetricFunction:
        """F1 of arcs by default."""
        return path_metric(metric)


def allow(dataset: Dataset, allowed: Any) -> LatticeDataset:
    """The lattices with those arcs alone that partial paths leave possible."""
    lattices = _lattices(dataset)
    try:
        known = encode_paths(allowed, lattices)
    except InputError as error:
        raise reword(error, f"allowed: {error}") from None
    return replace(lattices, exists=np.asarray(known != 0))


def _lattices(dataset: Dataset) -> LatticeDataset:
    assert isinstance(dataset, LatticeDataset)
    return dataset
