"""What was found beside what was to be found."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Counts:
    """Counts of things, and the ratios made of them; a ratio without a denominator is 0."""

    correct: float  # in gold and in the prediction alike
    predicted: float
    gold: float

    @property
    def precision(self) -> float:
        """correct / predicted."""
        return self.correct / self.predicted if self.predicted else 0.0

    @property
    def recall(self) -> float:
        """correct / gold."""
        return self.correct / self.gold if self.gold else 0.0

    @property
    def f1(self) -> float:
        """Harmonic mean of precision and recall: 2 · correct / (predicted + gold)."""
        both = self.predicted + self.gold
        return 2 * self.correct / both if both else 0.0


@dataclass(frozen=True)
class AlignedCounts(Counts):
    """Counts of things that are properties of words, which are aligned first."""

    aligned: int  # gold words that a word of the prediction is aligned with

    @property
    def aligned_accuracy(self) -> float:
        """correct / aligned."""
        return self.correct / self.aligned if self.aligned else 0.0
