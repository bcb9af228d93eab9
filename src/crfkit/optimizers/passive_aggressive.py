"""Passive-aggressive training."""

from dataclasses import dataclass

from crfkit import _core
from crfkit.errors import ArgumentError
from crfkit.optimizers.online import OnlineLearner
from crfkit.optimizers.protocols import is_whole
from crfkit.optimizers.stochastic import check_positive

VARIANTS = (0, 1, 2)


@dataclass(frozen=True)
class PassiveAggressive(OnlineLearner):
    """Passive-aggressive training (Crammer et al. 2006): the smallest step that puts a mistake right, with a margin.

    As `AveragedPerceptron`, but with d = φ(right) − φ(predicted) the step is w ← w + τ d, where

        loss = score(predicted) − score(right) + margin        margin: √(number of wrong labels), or 1
        τ    = loss / |d|²                     variant 0
               min(C, loss / |d|²)             variant 1
               loss / (|d|² + 1 / (2 C))       variant 2

    Parameters
    ----------
    variant : see above
    aggressiveness : C, the larger the further a step may go; without effect in variant 0
    error_sensitive : the margin grows with the number of wrong labels
    average : the mean of the weights over all steps is learned, otherwise the last ones

    The weight of a sequence multiplies its C. The objective in the history is the sum of the losses of the mistakes in the
    pass. Penalties, partial labels and the rest are as for `AveragedPerceptron`.
    """

    variant: int = 1
    aggressiveness: float = 1.0
    error_sensitive: bool = True
    average: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if not is_whole(self.variant) or self.variant not in VARIANTS:
            raise ArgumentError(f"PassiveAggressive got variant={self.variant!r}, expected 0, 1 or 2.")
        check_positive(self, "aggressiveness")
        self._check_switches("error_sensitive", "average")

    def averages(self) -> bool:
        """As `average` says."""
        return bool(self.average)

    def rule(self) -> _core.MistakeRule:
        """How a mistake moves the weights."""
        return _core.PassiveAggressiveRule(
            int(self.variant), float(self.aggressiveness), bool(self.error_sensitive)
        )
