"""How good the probabilities of spans are: precision and recall over a threshold, and calibration.

Every function takes the gold label sequences `gold[n]`, or their spans (start, end, label), and the spans with
probabilities that were found in each sequence, `found[n]`, as `CRF.predict_spans` gives them. `scheme` says how gold labels
are read; None: by the scheme that they have, or as plain labels.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from crfkit.errors import ArgumentError, ShapeError
from crfkit.evaluation.counts import Counts
from crfkit.evaluation.labels import PLAIN, are_spans, scheme_of, span_sets

Scored = tuple[int, int, Any, float]  # start, end, label, probability


@dataclass(frozen=True)
class SpanCurve:
    """Precision and recall of the spans with a probability of at least each threshold, the highest threshold first."""

    thresholds: tuple[float, ...]
    counts: tuple[Counts, ...]  # of the spans above each threshold
    n_gold: int

    @property
    def area(self) -> float:
        """The area under precision over recall: the precision at each correct span, averaged over all gold spans."""
        before, total = 0.0, 0.0
        for found in self.counts:
            total += found.precision * (found.correct - before)
            before = found.correct
        return total / self.n_gold if self.n_gold else 0.0

    def at(self, threshold: float) -> Counts:
        """The counts of the spans with a probability of at least this threshold."""
        reached = [
            found for least, found in zip(self.thresholds, self.counts, strict=True) if least >= threshold
        ]
        return reached[-1] if reached else Counts(0, 0, self.n_gold)

    def threshold_for(self, precision: float) -> float | None:
        """The lowest threshold above which spans have at least this precision; None: no threshold has it.

        Choose it on other data than those that it is to be used for. `CRF.predict_spans` refuses None as a threshold.
        """
        good = (
            p for p, found in zip(self.thresholds, self.counts, strict=True) if found.precision >= precision
        )
        return min(good, default=None)

    def __str__(self) -> str:
        lines = [
            f"area under precision and recall: {100 * self.area:6.2f}%",
            "threshold  precision  recall     F1",
        ]
        for threshold in (0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99):
            found = self.at(threshold)
            shares = f"{100 * found.precision:8.2f}% {100 * found.recall:6.2f}% {100 * found.f1:6.2f}"
            lines.append(f"{threshold:9.2f}  {shares}")
        return "\n".join(lines)


class Bin(NamedTuple):
    """The spans whose probabilities are in one interval."""

    lower: float
    upper: float
    n: int
    probability: float  # the mean
    precision: float  # the share that is right


@dataclass(frozen=True)
class Calibration:
    """Probabilities beside the share of spans that are right: of probability 0.8, it should be 80 of 100 spans."""

    bins: tuple[Bin, ...]  # those that have spans

    @property
    def n(self) -> int:
        """How many spans."""
        return sum(found.n for found in self.bins)

    @property
    def error(self) -> float:
        """Expected calibration error: Σ over bins (share of the spans) · |mean probability − precision|."""
        far = sum(found.n * abs(found.probability - found.precision) for found in self.bins)
        return far / self.n if self.n else 0.0

    def __str__(self) -> str:
        lines = [f"expected calibration error: {100 * self.error:6.2f}%", "probability   mean   right  spans"]
        lines += (
            f"{found.lower:.2f} – {found.upper:.2f}  {found.probability:.3f}  {found.precision:.3f}  {found.n:5}"
            for found in self.bins
        )
        return "\n".join(lines)


def span_precision_recall(
    gold: Sequence[Sequence[Any]], found: Sequence[Sequence[Scored]], scheme: str | None = None
) -> SpanCurve:
    """Precision and recall at every probability that occurs."""
    gold_spans = _gold_spans(gold, scheme)
    n_gold = sum(map(len, gold_spans))
    thresholds, counts, correct = list[float](), list[Counts](), 0
    for k, (probability, is_right) in enumerate(sorted(_compared(gold_spans, found), reverse=True), start=1):
        correct += is_right
        if thresholds and thresholds[-1] == probability:
            counts[-1] = Counts(correct, k, n_gold)
        else:
            thresholds.append(probability)
            counts.append(Counts(correct, k, n_gold))
    return SpanCurve(tuple(thresholds), tuple(counts), n_gold)


def span_calibration(
    gold: Sequence[Sequence[Any]],
    found: Sequence[Sequence[Scored]],
    scheme: str | None = None,
    *,
    n_bins: int = 10,
) -> Calibration:
    """Mean probability and precision of the spans in each of `n_bins` intervals of the same width."""
    if n_bins < 1:
        raise ArgumentError(f"n_bins is {n_bins}, expected a whole number from 1 on")
    bins: list[list[tuple[float, bool]]] = [[] for _ in range(n_bins)]
    for probability, is_right in _compared(_gold_spans(gold, scheme), found):
        bins[min(int(probability * n_bins), n_bins - 1)].append((probability, is_right))
    return Calibration(
        tuple(
            Bin(
                k / n_bins,
                (k + 1) / n_bins,
                len(some),
                sum(p for p, _ in some) / len(some),
                sum(is_right for _, is_right in some) / len(some),
            )
            for k, some in enumerate(bins)
            if some
        )
    )


def _compared(
    gold: Sequence[set[tuple[int, int, Any]]], found: Sequence[Sequence[Scored]]
) -> list[tuple[float, bool]]:
    """The probability of each span that was found, and whether it is right."""
    if len(gold) != len(found):
        raise ShapeError(
            f"there are {len(gold)} gold sequences and spans of {len(found)} sequences, expected as many"
        )
    return [
        (float(p), (start, end, label) in right)
        for right, scored in zip(gold, found, strict=True)
        for start, end, label, p in scored
    ]


def _gold_spans(gold: Sequence[Sequence[Any]], scheme: str | None) -> list[set[tuple[int, int, Any]]]:
    if scheme is None and not are_spans(gold):
        scheme = scheme_of(label for labels in gold for label in labels) or PLAIN
    return list(span_sets(gold, scheme, "gold"))
