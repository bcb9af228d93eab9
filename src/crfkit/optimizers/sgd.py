"""Stochastic gradient descent, sequence by sequence."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, nan
from time import perf_counter
from typing import ClassVar, Protocol

import numpy as np
import numpy.typing as npt

from crfkit.optimizers.problem import (
    Callback,
    Objective,
    Outcome,
    Record,
    Step,
    Vector,
    check_match,
    checked_l1,
    checked_start,
)

DONE = "all passes were made"
STOPPED = "the callback asked to stop"
INTERRUPTED = "interrupted"


class StochasticObjective(Objective, Protocol):
    """An objective Σ_n loss_n(w) + ½·l2·|w|² that can step along its sequences one by one."""

    l2: float
    n_sequences: int

    def stochastic_pass(
        self, weights: Vector, order: npt.NDArray[np.int32], rates: Vector, /
    ) -> tuple[float, Vector]:
        """Step n: w ← (1 − rate · l2 / N) w − rate · ∇ loss_n(w). Returns Σ_n loss_n and the new weights."""
        ...


@dataclass(frozen=True)
class SGD:
    """Stochastic gradient descent: one step along each sequence, in random order, for `max_iterations` passes.

    The rate falls in a straight line from `rate` to 0 over all passes. Good weights come after few passes, which suits
    large data sets and many labels; the last digits of the minimum are better left to L-BFGS. A step costs what its
    sequence touches: the penalty is applied to all weights as one factor. One thread; the same `random_state` gives the
    same bits. The objective in the history is the sum of the losses met during the pass, plus the penalty after it; its
    gradient norm is not known (NaN). No l1, and one l2 for all weights.
    """

    max_iterations: int = 10
    rate: float = 0.05
    random_state: int = 0

    needs: ClassVar[frozenset[str]] = frozenset({"stochastic_pass"})

    def __post_init__(self) -> None:
        for name, least in (("max_iterations", 0), ("random_state", 0)):
            value = getattr(self, name)
            if not isinstance(value, int | np.integer) or isinstance(value, bool) or value < least:
                raise ValueError(f"SGD got {name}={value!r}, expected a whole number of at least {least}.")
        if not isinstance(self.rate, float | int | np.floating) or not 0 < self.rate < inf:
            raise ValueError(f"SGD got rate={self.rate!r}, expected a positive number.")

    def minimize(
        self,
        objective: StochasticObjective,
        start: npt.ArrayLike,
        *,
        callback: Callback | None = None,
        n_threads: int = 1,
    ) -> Outcome:
        """The weights after the last pass. `callback` sees each pass and ends it all by returning True; so does Ctrl-C."""
        check_match(self, objective)
        if checked_l1(objective) is not None:
            raise ValueError("SGD knows no l1 penalty; expected l1=0, or another optimizer such as LBFGS.")
        weights = checked_start(objective, start)
        random = np.random.default_rng(self.random_state)
        n, began = objective.n_sequences, perf_counter()
        history: list[Record] = []
        reason = DONE
        total = max(1, n * self.max_iterations)
        try:
            for iteration in range(self.max_iterations):
                order = random.permutation(n).astype(np.int32)
                steps = iteration * n + np.arange(n)
                loss, weights = objective.stochastic_pass(weights, order, self.rate * (1.0 - steps / total))
                with np.errstate(over="ignore", invalid="ignore"):  # a rate that is far too high
                    value = loss + 0.5 * objective.l2 * float(weights @ weights)
                record = Record(iteration + 1, perf_counter() - began, value, nan)
                history.append(record)
                if not np.isfinite(value):
                    raise ValueError(
                        f"SGD diverged in pass {iteration + 1}; expected a rate below {self.rate}."
                    )
                weights.flags.writeable = False
                if callback is not None and callback(Step(*record, weights)):
                    reason = STOPPED
                    break
        except KeyboardInterrupt:
            reason = INTERRUPTED
        return Outcome(weights, tuple(history), reason == DONE, reason)
