"""What was found beside what was to be found."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


def precision(correct: float, predicted: float, gold: float) -> float:
    """correct / predicted; 0 where nothing was predicted."""
    return correct / predicted if predicted else 0.0


def recall(correct: float, predicted: float, gold: float) -> float:
    """correct / gold; 0 where there is nothing to find."""
    return correct / gold if gold else 0.0


def f1(correct: float, predicted: float, gold: float) -> float:
    """Harmonic mean of precision and recall: 2 · correct / (predicted + gold)."""
    both = predicted + gold
    return 2 * correct / both if both else 0.0


@dataclass(frozen=True)
class Counts:
    """Counts of things, and the ratios made of them; a ratio without a denominator is 0."""

    correct: int  # in gold and in the prediction alike
    predicted: int
    gold: int

    @property
    def precision(self) -> float:
        """correct / predicted."""
        return precision(self.correct, self.predicted, self.gold)

    @property
    def recall(self) -> float:
        """correct / gold."""
        return recall(self.correct, self.predicted, self.gold)

    @property
    def f1(self) -> float:
        """Harmonic mean of precision and recall: 2 · correct / (predicted + gold)."""
        return f1(self.correct, self.predicted, self.gold)


def sum_counts(parts: Iterable[Counts]) -> Counts:
    """The counts of several kinds of things together."""
    listed = list(parts)
    return Counts(
        correct=sum(part.correct for part in listed),
        predicted=sum(part.predicted for part in listed),
        gold=sum(part.gold for part in listed),
    )
