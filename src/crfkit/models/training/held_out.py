"""How likely held-out data is under a trained model."""

from dataclasses import replace
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from crfkit.arrays import Bools, Float64s, offsets
from crfkit.data import ArrayFile
from crfkit.features import Annotation, Dataset, open_part
from crfkit.models.chain_model import ChainModel
from crfkit.models.training.train import Trained
from crfkit.structures import AllowedLabels

SMALLEST_SCALE = 0.1  # of weights
_STEPS = 10  # of the search, each of which leaves 62 % of the range
_GOLDEN = (5**0.5 - 1) / 2


class ScaledLikelihood(NamedTuple):
    """The scale of the weights under which held-out data is most likely, and how likely it is then."""

    scale: float
    log_likelihood: float


class HeldOut:
    """Held-out data, as a model sees it.

    Labels that the model does not know are taken for unknown (of a set, the others count), and sequences left out that its
    constraints exclude.
    """

    def __init__(self, model: ChainModel, dataset: Dataset, annotation: Annotation, n_threads: int) -> None:
        self._annotation, self._has_outputs = annotation, _have_outputs(model, dataset)
        if not self._has_outputs.all():
            dataset = _allow_all(dataset, ~self._has_outputs)
        self._design, self._model, self._n_threads = model.design(dataset, n_threads), model, n_threads

    @classmethod
    def encode(cls, model: ChainModel, dev: Any, n_threads: int) -> "HeldOut":
        """Held-out data (X, y) or (X, y, allowed)."""
        X, y, allowed = (*dev, None)[:3]
        dataset, known = model.encode(X, allowed), set(model.labels.written.classes)
        gold = [[_known_part(entry, known) for entry in labels] for labels in y]
        annotation = model.labels.encode(gold, np.diff(dataset.sequence_ptr))
        return cls(model, dataset, annotation, n_threads)

    @classmethod
    def open(cls, model: ChainModel, part: ArrayFile, n_threads: int) -> "HeldOut":
        """Sequences of an encoded data set."""
        dataset, annotation = open_part(part, model.potentials.encoder, model.labels, model.dictionary)
        return cls(model, dataset, annotation, n_threads)

    def log_likelihood(self, weights: Float64s) -> float:
        """log p of the labels, summed over the sequences."""
        answerer, gold = self._model.answerer(weights), self._annotation
        of_gold = answerer.log_partitions(self._design, gold.labels, gold.sets, self._n_threads)
        possible = np.isfinite(of_gold) & self._has_outputs  # the same ones for all weights
        of_all = answerer.log_partitions(self._design, n_threads=self._n_threads)
        return float(np.sum(of_gold[possible] - of_all[possible]))

    def best_scale(self, weights: Float64s) -> ScaledLikelihood:
        """max over s ≤ 1 of log p of the labels under the weights s·w, by golden-section search over log s.

        Best labels are the same for every s > 0. Where y is complete, log p is concave in s, as in any log-linear model.
        """
        low, high = np.log(SMALLEST_SCALE), 0.0
        tried: dict[float, float] = {}

        def value(log_scale: float) -> float:
            if log_scale not in tried:
                tried[log_scale] = self.log_likelihood(np.exp(log_scale) * weights)
            return tried[log_scale]

        value(high)
        left, right = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
        for _ in range(_STEPS):
            if value(left) > value(right):
                high, right = right, left
                left = high - _GOLDEN * (high - low)
            else:
                low, left = left, right
                right = low + _GOLDEN * (high - low)
        best = max(tried, key=tried.__getitem__)
        return ScaledLikelihood(float(np.exp(best)), tried[best])


def log_likelihood(trained: Trained[ChainModel], dev: Any, n_threads: int) -> float:
    """log p of the labels of held-out data under a trained model, summed over its sequences."""
    return HeldOut.encode(trained.model, dev, n_threads).log_likelihood(trained.weights)


def _have_outputs(model: ChainModel, dataset: Dataset) -> Bools:
    """The sequences [N] that have label sequences; others have none among the bigrams and the allowed labels."""
    found, allowed = np.ones(dataset.n_sequences, np.bool_), dataset.allowed
    if allowed is not None and model.chain.constrained:
        sets = (allowed.between(begin, end) for begin, end in pairwise(dataset.sequence_ptr.tolist()))
        found[[outside.sequence for outside in model.chain.outside(sets)]] = False
    return found


def _allow_all(dataset: Dataset, sequences: Bools) -> Dataset:
    """The data set with all labels allowed in these sequences [N]."""
    allowed = dataset.allowed
    assert allowed is not None
    kept = np.repeat(~sequences, np.diff(dataset.sequence_ptr))  # [T]
    counts = np.diff(allowed.position_ptr)
    own = AllowedLabels(offsets(np.where(kept, counts, 0)), allowed.labels[np.repeat(kept, counts)])
    return replace(dataset, allowed=own)


def _known_part(entry: Any, known: set[Any]) -> Any:
    """What an entry of y says by the labels that are known; None where it names no other."""
    if isinstance(entry, set | frozenset):
        return set(entry & known) or None
    return entry if entry in known else None
