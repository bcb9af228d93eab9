"""Stochastic gradient descent, a few sequences at a time."""

from __future__ import annotations

from dataclasses import dataclass
from math import nan
from typing import ClassVar

import numpy as np

from crfkit.optimizers.loop import Minimizer
from crfkit.optimizers.protocols import Vector, check_settings
from crfkit.optimizers.rate_search import search_rate
from crfkit.optimizers.snapshot import Snapshot
from crfkit.optimizers.stochastic import Order, PassDescent, StochasticObjective, check_rate

FIRST_RATE = 0.1  # where the search for one begins


@dataclass(frozen=True)
class SGD(Minimizer):
    """Stochastic gradient descent: steps along `batch` sequences each, in random order, for `max_iterations` passes.

    With N sequences and c = rate · batch / N, a step is

        w ← soft(w − rate · Σ ∇ loss_n(w), c · l1) / (1 + c · l2)        soft(x, a) = sign(x) · max(|x| − a, 0)

    and costs what its sequences touch: what it does to all other weights is made up for when they are next touched. Good
    weights come after few passes, which suits large data sets and many labels; the last digits of the minimum are better
    left to L-BFGS.

    rate : falls in a straight line to 0 over all passes, or stays with `average`. "auto": powers of 2 are tried on a
        sample of the data; `CRF.optimizer_reason_` says which one was taken.
    batch : sequences of a step. Their gradients add up, on several threads; the same bits for any number of these.
    average : keep the mean of the weights after all steps from the second pass on; a number between 0 and 1: after this
        share of the passes
    random_state : the same one gives the same bits

    The objective in the history is the sum of the losses met during the pass, plus the penalty after it; it is not known
    at the start, and its gradient norm never is (NaN).
    """

    max_iterations: int = 10
    rate: float | str = "auto"
    batch: int = 1
    average: bool | float = False
    random_state: int = 0

    needs: ClassVar[frozenset[str]] = frozenset({"stochastic_pass"})
    takes_l1: ClassVar[bool] = True
    scheduled: ClassVar[bool] = True  # max_iterations decides every step
    tolerance: ClassVar[float] = 0.0
    change: ClassVar[float] = 0.0
    period: ClassVar[int] = 1

    def __post_init__(self) -> None:
        check_settings(self, {"max_iterations": 0, "batch": 1, "random_state": 0}, ())
        check_rate(self)
        if not isinstance(self.average, bool | np.bool_) and not (
            isinstance(self.average, float | np.floating) and 0 < self.average < 1
        ):
            raise ValueError(
                f"SGD got average={self.average!r}, expected True, False or a number between 0 and 1."
            )

    def descent(self, objective: StochasticObjective, start: Vector, n_threads: int) -> PassDescent:
        """The way downhill."""
        return _Descent(self, objective, start)


class _Descent(PassDescent):
    """Steps along the gradient, and the mean of where they led."""

    _settings: SGD

    def __init__(self, settings: SGD, objective: StochasticObjective, start: Vector) -> None:
        super().__init__(settings, objective, start)
        self._rate = nan
        self._stand(start, np.zeros(0), 0)

    def _stand(self, weights: Vector, total: Vector, n_averaged: int) -> None:
        """At weights [D]; total [D] is the sum of those after `n_averaged` steps, [0] before there are any."""
        self._weights, self._total, self._n_averaged = weights, total, n_averaged

    @property
    def rate(self) -> float:
        """The first rate."""
        return self._rate

    def begin(self, start: Vector) -> None:
        """Stands at the start, with a rate."""
        super().begin(start)
        self._stand(start, np.zeros(0), 0)
        if not isinstance(self._settings.rate, str):
            self._rate = float(self._settings.rate)
            return
        found = search_rate(self._objective, self._tried, FIRST_RATE, self._settings.random_state)
        self._rate, self.passes, self.note = found

    def _tried(self, rate: float, order: Order) -> Vector:
        rates = np.full(-(-len(order) // self._batch), rate)
        return self._objective.stochastic_pass(self._weights, order, rates, batch=self._batch)[1]

    def _run(self, order: Order) -> tuple[float, Vector]:
        settings, done = self._settings, len(self.values) - 1
        n_steps = -(-len(order) // self._batch)
        rates = np.full(n_steps, self._rate)
        if not settings.average:
            rates *= 1.0 - (done + np.arange(n_steps) / max(n_steps, 1)) / settings.max_iterations
        total = None
        if settings.average and done >= self._first_averaged():
            total = self._total if self._n_averaged else np.zeros_like(self._weights)
        loss, weights, total = self._objective.stochastic_pass(
            self._weights, order, rates, batch=self._batch, total=total
        )
        if total is None:
            self._stand(weights, np.zeros(0), 0)
        else:
            self._stand(weights, total, self._n_averaged + n_steps)
        return loss, weights

    def _first_averaged(self) -> int:
        """Passes without averaging: one, or a share, but never all."""
        passes = self._settings.max_iterations
        average = self._settings.average
        share = 1 if isinstance(average, bool | np.bool_) else round(float(average) * passes)
        return min(share, passes - 1)

    def _found(self, weights: Vector) -> Vector:
        """The mean, where there is one."""
        return self._total / self._n_averaged if self._n_averaged else weights

    def snapshot(self) -> Snapshot:
        """The rate, and the sum of the weights too."""
        numbers, arrays = super().snapshot()
        own = {"rate": self._rate, "n_averaged": self._n_averaged}
        return Snapshot({**numbers, **own}, {**arrays, "weights": self._weights, "total": self._total})

    def restore(self, snapshot: Snapshot) -> None:
        """The rate, and the sum of the weights too."""
        super().restore(snapshot)
        self._rate = snapshot.number("rate")
        n_weights, n_averaged = len(self.point.x), snapshot.count("n_averaged")
        total = snapshot.vector("total", n_weights if n_averaged else 0)
        self._stand(snapshot.vector("weights", n_weights), total, n_averaged)
