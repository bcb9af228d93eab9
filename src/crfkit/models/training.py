"""What happens between two iterations of a training: progress, the dev score, early stopping.

With a dev set, the model keeps the weights with the highest dev score (the earliest of equals); the training ends when
`patience` iterations in a row brought no higher one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from crfkit.optimizers import Step

Float64s = npt.NDArray[np.float64]


class Progress(NamedTuple):
    """What a callback of `fit` sees after each iteration."""

    iteration: int
    seconds: float  # since the start of the minimisation
    objective: float
    gradient_norm: float
    dev_score: float | None  # None without a dev set
    improved: bool  # this dev score is the highest so far


ProgressCallback = Callable[[Progress], bool | None]  # True ends the training


class DevRecord(NamedTuple):
    """The best place that a training passed, by its dev score."""

    iteration: int
    score: float
    weights: Float64s  # [D]


class Watch:
    """The optimizer's callback of one training."""

    def __init__(
        self,
        dev_score: Callable[[Float64s], float] | None,
        patience: int | None,
        callback: ProgressCallback | None,
    ) -> None:
        self.best: DevRecord | None = None
        self.stopped_early = False
        self._dev_score = dev_score
        self.patience = patience
        self._callback = callback

    def __call__(self, step: Step) -> bool:
        """Score the dev set, tell the user's callback; True ends the training."""
        score = None if self._dev_score is None else self._dev_score(step.weights)
        improved = score is not None and (self.best is None or score > self.best.score)
        if score is not None and improved:
            self.best = DevRecord(step.iteration, score, step.weights)
        stop = False
        if self._callback is not None:
            progress = Progress(
                step.iteration, step.seconds, step.objective, step.gradient_norm, score, improved
            )
            stop = bool(self._callback(progress))
        if self.best is not None and self.patience is not None:
            self.stopped_early = step.iteration - self.best.iteration >= self.patience
        return stop or self.stopped_early
