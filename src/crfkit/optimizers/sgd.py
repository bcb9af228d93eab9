"""Stochastic gradient descent, a few sequences at a time."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from crfkit import _core
from crfkit.errors import ArgumentError
from crfkit.optimizers.protocols import Vector
from crfkit.optimizers.snapshot import Snapshot
from crfkit.optimizers.stochastic import Order, PassDescent, State, StochasticObjective
from crfkit.optimizers.stochastic_gradient import GradientDescent, StochasticGradient


@dataclass(frozen=True)
class SGD(StochasticGradient):
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
    dropout : the share of features that each sequence is seen without, chosen anew in every pass; the others count
        1 / (1 − dropout) times. Transitions stay. Against features that fit the training data too well.

    The objective in the history is the sum of the losses met during the pass, plus the penalty after it; it is not known
    at the start, and its gradient norm never is (NaN).
    """

    max_iterations: int = 10
    rate: float | str = "auto"
    batch: int = 1
    average: bool | float = False
    random_state: int = 0
    dropout: float = 0.0

    scheduled: ClassVar[bool] = True  # max_iterations decides every step

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.average, bool | np.bool_) and not (
            isinstance(self.average, float | np.floating) and 0 < self.average < 1
        ):
            raise ArgumentError(
                f"SGD got average={self.average!r}, expected True, False or a number between 0 and 1."
            )

    def descent(self, objective: StochasticObjective, start: Vector, n_threads: int) -> PassDescent:
        """A new descent from `start`."""
        return _Descent(self, objective, start)


class _Descent(GradientDescent):
    """Steps along the gradient, and the mean of where they led.

    State: the weights, and from the first averaged pass on `total`, the sum of the weights after each step.
    """

    _settings: SGD
    first_rate = 0.1

    def _first_state(self, start: Vector) -> State:
        return {"weights": start}

    def _try_rate(self, rate: float, order: Order) -> Vector:
        state = {"weights": self.point.x.copy()}
        self._objective.run(
            _core.SGDRule(np.full(self._n_steps(len(order)), rate), self._batch), state, order
        )
        return state["weights"]

    def _rule(self, order: Order, state: State) -> _core.SGDRule:
        n_steps = self._n_steps(len(order))
        rates = np.full(n_steps, self.rate)
        if not self._settings.average:
            done = (self.n_passes + np.arange(n_steps) / max(n_steps, 1)) / self._settings.max_iterations
            rates *= 1.0 - done
        elif self.n_passes >= self._first_averaged():
            state.setdefault("total", np.zeros_like(state["weights"]))
        return _core.SGDRule(rates, self._batch)

    def _n_steps(self, n_sequences: int) -> int:
        return -(-n_sequences // int(self._batch))

    def _first_averaged(self) -> int:
        """Passes without averaging: one, or a share, but never all."""
        passes = self._settings.max_iterations
        average = self._settings.average
        share = 1 if isinstance(average, bool | np.bool_) else round(float(average) * passes)
        return min(share, passes - 1)

    def _n_averaged(self) -> int:
        """Steps whose weights the total has, after whole passes."""
        if not self._settings.average:
            return 0
        return max(self.n_passes - self._first_averaged(), 0) * self._n_steps(self._objective.n_sequences)

    def _learned_weights(self, state: State) -> Vector:
        """The mean, where there is one."""
        n_averaged = self._n_averaged()
        return state["total"] / n_averaged if n_averaged else state["weights"]

    def _restore_state(self, snapshot: Snapshot) -> State:
        state = super()._restore_state(snapshot)
        if self._n_averaged():
            state["total"] = snapshot.vector("total", len(state["weights"]))
        return state
