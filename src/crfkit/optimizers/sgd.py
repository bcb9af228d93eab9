"""Stochastic gradient descent, sequence by sequence."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, isfinite, nan
from typing import ClassVar, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from crfkit.optimizers.loop import Callback, Outcome, Snapshot, Watch, minimize
from crfkit.optimizers.problem import Objective, Vector, check_settings


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
    same bits. The objective in the history is the sum of the losses met during the pass, plus the penalty after it; it is
    not known at the start, and its gradient norm never is (NaN). No l1, and one l2 for all weights.
    """

    max_iterations: int = 10
    rate: float = 0.05
    random_state: int = 0

    needs: ClassVar[frozenset[str]] = frozenset({"stochastic_pass"})
    takes_l1: ClassVar[bool] = False
    scheduled: ClassVar[bool] = True  # max_iterations decides every step
    tolerance: ClassVar[float] = 0.0
    change: ClassVar[float] = 0.0
    period: ClassVar[int] = 1

    def __post_init__(self) -> None:
        check_settings(self, {"max_iterations": 0, "random_state": 0}, ())
        if not isinstance(self.rate, float | int | np.floating) or not 0 < self.rate < inf:
            raise ValueError(f"SGD got rate={self.rate!r}, expected a positive number.")

    def minimize(
        self,
        objective: StochasticObjective,
        start: npt.ArrayLike,
        *,
        callback: Callback | None = None,
        n_threads: int = 1,
        watch: Watch | None = None,
    ) -> Outcome:
        """The weights after the last pass; arguments as for `LBFGS.minimize`."""
        return minimize(self, objective, start, callback, n_threads, watch)

    def descent(self, objective: StochasticObjective, start: Vector, n_threads: int) -> _Descent:
        """The way downhill."""
        return _Descent(self, objective, start)


class _Place(NamedTuple):
    x: Vector  # [D]
    value: float
    norm: float = nan


class _Descent:
    """Pass after pass over the sequences."""

    n_evaluations = 0

    def __init__(self, settings: SGD, objective: StochasticObjective, start: Vector) -> None:
        self._settings = settings
        self._objective = objective
        self._random = np.random.default_rng(settings.random_state)
        self.point = _Place(start, nan)
        self.values: list[float] = []

    @property
    def passes(self) -> float:
        """Over the data, until now."""
        return float(max(len(self.values) - 1, 0))

    def begin(self, start: Vector) -> None:
        """Stands at the start; the objective there is not asked for."""
        self.point = _Place(start, nan)
        self.values = [nan]

    def advance(self) -> bool:
        """Makes one pass."""
        n, iteration = self._objective.n_sequences, len(self.values) - 1
        total = max(1, n * self._settings.max_iterations)
        rates = self._settings.rate * (1.0 - (iteration * n + np.arange(n)) / total)
        loss, weights = self._objective.stochastic_pass(self.point.x, self._order(), rates)
        with np.errstate(over="ignore", invalid="ignore"):  # a rate that is far too high
            value = loss + 0.5 * self._objective.l2 * float(weights @ weights)
        if not isfinite(value):
            raise ValueError(
                f"SGD diverged in pass {iteration + 1}; expected a rate below {self._settings.rate}."
            )
        self.point = _Place(weights, value)
        self.values.append(value)
        return True

    def _order(self) -> npt.NDArray[np.int32]:
        return self._random.permutation(self._objective.n_sequences).astype(np.int32)

    def refine(self) -> bool:
        """Nothing becomes more exact."""
        return False

    def best(self) -> Vector:
        """The weights [D] of the last whole pass."""
        return self.point.x

    def snapshot(self) -> Snapshot:
        """The weights and how many passes were made: the random numbers follow from that."""
        return Snapshot({"values": self.values[1:]}, {"x": self.point.x})

    def restore(self, snapshot: Snapshot) -> None:
        """Stands where the snapshot was taken."""
        self.values = [nan, *snapshot.numbers["values"]]
        self.point = _Place(np.ascontiguousarray(snapshot.arrays["x"]), self.values[-1])
        for _ in self.values[1:]:
            self._order()
