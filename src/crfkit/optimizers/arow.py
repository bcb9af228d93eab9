"""Adaptive regularisation of weights."""

from dataclasses import dataclass

import numpy as np

from crfkit import _core
from crfkit.optimizers.online import OnlineLearner
from crfkit.optimizers.protocols import Vector
from crfkit.optimizers.stochastic import State, check_positive


@dataclass(frozen=True)
class AROW(OnlineLearner):
    """Adaptive regularisation of weights (Crammer et al. 2009; for sequences Mejer & Crammer 2010).

    Each weight has a variance v, which falls with every mistake that it had a part in: often seen weights move less. With
    d = φ(right) − φ(predicted) of a mistake (see `AveragedPerceptron`),

        loss = score(predicted) − score(right) + number of wrong labels
        w   ← w + loss / (Σ v d² + gamma) · v ∘ d
        1/v ← 1/v + d² / gamma

    Parameters
    ----------
    variance : of every weight, at the start
    gamma : how much a single mistake counts for less, in steps and in variances

    gamma is divided by the weight of a sequence. The objective in the history is the sum of the losses of the mistakes in
    the pass. The weights after the last pass are learned, not their mean. Penalties, partial labels and the rest are as for
    `AveragedPerceptron`.
    """

    variance: float = 1.0
    gamma: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        check_positive(self, "variance", "gamma")

    def first_state(self, start: Vector) -> State:
        """With the variances [D]."""
        return {**super().first_state(start), "variances": np.full(len(start), float(self.variance))}

    def rule(self) -> _core.MistakeRule:
        """How a mistake moves the weights."""
        return _core.AROWRule(float(self.gamma))
