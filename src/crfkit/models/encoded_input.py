"""New input, encoded, and what answers questions about it."""

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from crfkit.arrays import Float64s, Int32s, Int64s
from crfkit.errors import InputError, UnsupportedError
from crfkit.features import Dataset
from crfkit.inference import Answerer, ChainPotentials
from crfkit.models.chain_model import ChainModel
from crfkit.models.constraints import check_possible
from crfkit.structures import AllowedLabels, ChainScores


class ScoredLabels(NamedTuple):
    """A label sequence, its score, and log Z, the logarithm of the sum over all label sequences of its input."""

    labels: list[Any]
    score: float
    log_partition: float

    @property
    def probability(self) -> float:
        """p(y | x) = exp(score − log Z)."""
        return math.exp(min(self.score - self.log_partition, 0.0))


class EncodedInput(NamedTuple):
    """Encoded input and what answers questions about it."""

    model: ChainModel
    answerer: Answerer
    design: Any  # the input as the native core reads it
    dataset: Dataset
    n_threads: int

    @property
    def ptr(self) -> Int64s:
        """[N + 1] the positions of sequence n are ptr[n]:ptr[n + 1]."""
        return self.dataset.sequence_ptr

    @property
    def allowed(self) -> AllowedLabels | None:
        """The labels that each position may have; None: all."""
        return self.dataset.allowed

    @contextmanager
    def explain_impossible(self) -> Iterator[None]:
        """Where the native core finds that a sequence has no possible label sequence, say why."""
        try:
            yield
        except ValueError as error:
            check_possible(self.model.chain, self.ptr, self.allowed)
            raise error if isinstance(error, InputError) else InputError(str(error)) from error

    def find_best(self, n: int) -> list[list[ScoredLabels]]:
        """The n best label sequences of each input, best first; fewer where fewer exist."""
        with self.explain_impossible():
            log_z = self.answerer.log_partitions(self.design, n_threads=self.n_threads).tolist()
            found = self.answerer.k_best(self.design, n, self.n_threads)
        return [
            [
                ScoredLabels(self.model.decode_one(labels, self.dataset, n), score, total)
                for score, labels in best
            ]
            for n, (best, total) in enumerate(zip(found, log_z, strict=True))
        ]

    def position_scores(self, labels: Sequence[Int32s]) -> list[Float64s]:
        """For each sequence, the scores [T] of the positions of one label sequence: emission and transition into it."""
        potentials = self.answerer.potentials
        if not isinstance(potentials, ChainPotentials):
            raise UnsupportedError("the scores of positions are for plain chains")
        if self.model.potentials.feature_map.facets is not None:
            raise UnsupportedError("the scores of positions are for labels without facets")
        return [_along(potentials.scores(self.design, n), y) for n, y in enumerate(labels)]


def _along(scores: ChainScores, y: Int32s) -> Float64s:
    """The scores of the positions of a label sequence."""
    found: Float64s = scores.emissions[np.arange(len(y)), y]
    arcs = scores.transitions
    if arcs is not None and len(y) > 1:
        found[1:] += arcs[np.arange(len(y) - 1), y[:-1], y[1:]] if arcs.ndim == 3 else arcs[y[:-1], y[1:]]
    return found
