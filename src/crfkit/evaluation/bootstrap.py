"""Is one model better than another, or was it the choice of the test sentences? The paired bootstrap.

Both models have predicted the same N sequences. Their difference d on these is measured again on B samples, each of N
sequences drawn with replacement, the same for both models (Efron and Tibshirani 1993, chapter 16; Koehn 2004):

    interval   the middle `confidence` of the differences d_1, …, d_B
    p value    (1 + number of samples with |d_b − d| ≥ |d|) / (1 + B), two-sided: how often a difference as large would
               be seen if there were none; d_b − d is what it varies by then (Berg-Kirkpatrick et al. 2012)

Every metric with a name is a ratio of two sums over sequences, so that a sample is a weighted sum of [N] numbers.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from crfkit.data import Sentence
from crfkit.errors import ArgumentError, EmptyDataError, ShapeError
from crfkit.evaluation.labels import known_accuracy, sequence_accuracy, span_totals
from crfkit.evaluation.metrics import METRICS, TREE_METRICS, MetricFunction, as_score, metric_for
from crfkit.evaluation.trees import TreeReport, evaluate_trees

_AT_ONCE = 1 << 22  # draws held at a time
_RATIOS = {"precision": "predicted", "recall": "gold"}
_SHARES = {"uas": "n_heads", "las": "n_arcs", "label_accuracy": "n_labels"}
_CONTENT = {"clas": "content", "mlas": "content_morphology", "blex": "content_lemmas"}


@dataclass(frozen=True)
class Comparison:
    """Two models on the same data: the second beside the first, with what the choice of sequences may explain."""

    metric: str
    first: float
    second: float
    interval: tuple[float, float]  # of the difference
    p_value: float  # two-sided, of no difference
    confidence: float
    n_sequences: int
    n_samples: int

    @property
    def difference(self) -> float:
        """second − first."""
        return self.second - self.first

    def __str__(self) -> str:
        low, high = (f"{100 * end:+.2f}" for end in self.interval)
        return (
            f"{self.metric}: {100 * self.first:.2f} and {100 * self.second:.2f}, difference {100 * self.difference:+.2f} "
            f"({100 * self.confidence:g}% interval {low} to {high}), p = {self.p_value:.4g}, "
            f"{self.n_samples:,} samples of {self.n_sequences:,} sequences"
        )


def paired_bootstrap(
    gold: Sequence[Any],
    first: Sequence[Any],
    second: Sequence[Any],
    metric: str | MetricFunction | None = None,
    *,
    n_samples: int = 10_000,
    confidence: float = 0.95,
    seed: int = 0,
) -> Comparison:
    """Compare two predictions of the same sequences: the difference, its confidence interval and its p value.

    All three are label sequences, or sentences with trees. `metric` is a name of `METRICS` (of `TREE_METRICS` for
    sentences), a function of gold and predicted sequences, which is slower, or None: F1 of spans where the labels are those
    of spans, otherwise accuracy; LAS for sentences. The same `seed` gives the same samples.

    >>> gold = [["A", "B"], ["A", "A"], ["B", "A"]]
    >>> found = paired_bootstrap(gold, [["B", "B"], ["A", "A"], ["B", "A"]], gold)
    >>> round(found.difference, 3), found.interval[0], found.p_value > 0.5
    (0.167, 0.0, True)
    """
    for which, some in (("first", first), ("second", second)):
        if len(some) != len(gold):
            raise ShapeError(
                f"there are {len(gold)} gold sequences and {len(some)} of the {which} prediction, expected as many"
            )
    if not gold:
        raise EmptyDataError("there is no sequence to compare predictions of")
    if n_samples < 1:
        raise ArgumentError(f"n_samples is {n_samples}, expected a whole number from 1 on")
    if not 0 < confidence < 1:
        raise ArgumentError(f"confidence is {confidence}, expected a share between 0 and 1")
    if callable(metric):
        name = getattr(metric, "__name__", type(metric).__name__)
        whole, samples = _by_function(metric, gold, first, second, n_samples, seed)
    else:
        name = metric or ("las" if isinstance(gold[0], Sentence) else metric_for((), gold).name)
        whole, samples = _by_sums(name, gold, first, second, n_samples, seed)
    difference = whole[1] - whole[0]
    differences = samples[:, 1] - samples[:, 0]  # [B]
    # Differences that are equal but for rounding count as equal.
    extreme = np.abs(differences - difference) >= abs(difference) - 1e-12
    tail = (1 - confidence) / 2
    low, high = np.quantile(differences, [tail, 1 - tail])
    return Comparison(
        name,
        float(whole[0]),
        float(whole[1]),
        (float(low), float(high)),
        (1 + int(extreme.sum())) / (1 + n_samples),
        confidence,
        len(gold),
        n_samples,
    )


Numbers = npt.NDArray[np.float64]


def draws(n: int, n_samples: int, seed: int) -> Iterator[npt.NDArray[np.int64]]:
    """The sequences of each sample, some samples at a time: [samples, n]."""
    random = np.random.default_rng(seed)
    at_once = max(1, _AT_ONCE // n)
    for begin in range(0, n_samples, at_once):
        yield random.integers(n, size=(min(at_once, n_samples - begin), n))


def _by_sums(
    metric: str, gold: Sequence[Any], first: Sequence[Any], second: Sequence[Any], n_samples: int, seed: int
) -> tuple[Numbers, Numbers]:
    """The metric of both on all sequences [2] and on each sample [B, 2]."""
    terms = np.stack([_terms(metric, gold, predicted) for predicted in (first, second)], axis=1)  # [N, 2, 2]
    flat = terms.reshape(len(gold), 4)
    samples = []
    for drawn in draws(len(gold), n_samples, seed):
        offsets = len(gold) * np.arange(len(drawn))[:, None]
        times = np.bincount((drawn + offsets).ravel(), minlength=drawn.size).reshape(drawn.shape)
        samples.append(_ratio((times @ flat).reshape(-1, 2, 2)))
    return _ratio(terms.sum(axis=0)), np.concatenate(samples)


def _ratio(sums: Numbers) -> Numbers:
    """Numerator by denominator, the last axis; 0 without a denominator."""
    above, below = sums[..., 0], sums[..., 1]
    return np.divide(above, below, out=np.zeros_like(above), where=below > 0)


def _by_function(
    metric: MetricFunction,
    gold: Sequence[Any],
    first: Sequence[Any],
    second: Sequence[Any],
    n_samples: int,
    seed: int,
) -> tuple[Numbers, Numbers]:
    def measured(some: Sequence[int]) -> list[float]:
        right = [gold[n] for n in some]
        return [as_score(metric(right, [predicted[n] for n in some])) for predicted in (first, second)]

    rows = [measured(row) for drawn in draws(len(gold), n_samples, seed) for row in drawn.tolist()]
    return np.array(measured(range(len(gold)))), np.array(rows)


def _terms(metric: str, gold: Sequence[Any], predicted: Sequence[Any]) -> Numbers:
    """Of each sequence what it adds to the numerator and to the denominator: [N, 2]."""
    pairs = [([right], [found]) for right, found in zip(gold, predicted, strict=True)]
    if isinstance(gold[0], Sentence):
        return np.array([_tree_terms(metric, evaluate_trees(*pair)) for pair in pairs], dtype=np.float64)
    if metric not in METRICS:
        raise ArgumentError(f"metric is {metric!r}, expected a function or one of {', '.join(METRICS)}")
    if metric == "sequence_accuracy":
        return np.array([(sequence_accuracy(*pair), 1.0) for pair in pairs])
    if metric == "accuracy":
        sizes = [sum(label is not None for label in right) for [right], _ in pairs]
        return np.array([(n * known_accuracy(*pair), n) for n, pair in zip(sizes, pairs, strict=True)])
    totals = [span_totals(*pair) for pair in pairs]
    if metric == "f1":
        return np.array([(2 * found.correct, found.predicted + found.gold) for found in totals])
    return np.array([(found.correct, getattr(found, _RATIOS[metric])) for found in totals])


def _tree_terms(metric: str, report: TreeReport) -> tuple[float, float]:
    if metric in _SHARES:
        return getattr(report, _SHARES[metric]), report.n_words
    if metric in _CONTENT:
        found = getattr(report, _CONTENT[metric])
        return 2 * found.correct, found.predicted + found.gold
    raise ArgumentError(f"metric is {metric!r}, expected a function or one of {', '.join(TREE_METRICS)}")
