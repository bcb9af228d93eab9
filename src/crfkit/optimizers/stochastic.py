"""What the methods share that go through the data pass by pass, a step along a few sequences at a time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from math import inf, isfinite, nan
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from crfkit.optimizers.protocols import DivergenceError, Objective, Vector, is_whole
from crfkit.optimizers.snapshot import Snapshot

STEPWISE = frozenset({"stochastic_pass", "adaptive_pass", "average_pass"})  # needs of such methods
Order = npt.NDArray[np.int32]


class StochasticObjective(Objective, Protocol):
    """An objective Σ_n loss_n(w) + Σ_d (l1_d |w_d| + ½ l2_d w_d²) over N sequences that can step along some of them."""

    l1: float | Vector
    l2: float | Vector
    n_sequences: int  # N

    def stochastic_pass(
        self, weights: Vector, order: Order, rates: Vector, /, *, batch: int = 1, total: Vector | None = None
    ) -> tuple[float, Vector, Vector | None]:
        """Steps of SGD along `batch` sequences of `order` each; `rates` has one number for each step.

        With c = rate · batch / N:  w ← soft(w − rate · Σ ∇ loss_n(w), c · l1) / (1 + c · l2). Returns Σ_n loss_n, each
        before its step, the new weights, and `total` plus the weights after each step. Where KeyboardInterrupt ends the
        pass, its attribute `learned` may hold the weights after the steps so far, [weights].
        """
        ...


class Place(NamedTuple):
    """Where a descent is; its gradient norm is seldom known."""

    x: Vector  # [D]
    value: float
    norm: float = nan


def penalty(objective: StochasticObjective, weights: Vector) -> float:
    """Σ_d (l1_d |w_d| + ½ l2_d w_d²)."""
    with np.errstate(over="ignore", invalid="ignore"):  # a rate that is far too high
        return float(np.sum(objective.l1 * np.abs(weights)) + 0.5 * np.sum(objective.l2 * weights * weights))


def check_rate(optimizer: Any) -> None:
    """Refuses a rate that is neither a positive number nor "auto"."""
    rate = optimizer.rate
    if isinstance(rate, str) and rate == "auto":
        return
    if not (is_whole(rate) or isinstance(rate, float | np.floating)) or not 0 < rate < inf:
        raise ValueError(
            f'{type(optimizer).__name__} got rate={rate!r}, expected a positive number or "auto".'
        )


class PassDescent:
    """Pass after pass over the sequences in random order; what a pass does is left to each method."""

    n_evaluations = 0
    note = ""  # what was decided on the way, in words

    def __init__(self, settings: Any, objective: StochasticObjective, start: Vector) -> None:
        self._settings = settings
        self._objective = objective
        self.point = Place(start, nan)
        self.values: list[float] = []
        self._unfinished: Vector | None = None  # the weights of a pass that was interrupted
        self.passes = 0.0
        self._batch = min(getattr(settings, "batch", 1), max(objective.n_sequences, 1))

    def begin(self, start: Vector) -> None:
        """Stands at the start; the objective there is not asked for."""
        self.point = Place(start, nan)
        self.values = [nan]

    def advance(self) -> bool:
        """Makes one pass; its objective is the sum of the losses met on the way, and the penalty after it."""
        with self._keeping():
            loss, weights = self._run(
                self._random().permutation(self._objective.n_sequences).astype(np.int32)
            )
        value = loss + penalty(self._objective, weights)
        if not isfinite(value):
            raise DivergenceError(
                f"{type(self._settings).__name__} diverged in pass {len(self.values)}; expected a rate below {self.rate:g}."
            )
        self.passes += 1.0
        self.point = Place(self._found(weights), value)
        self.values.append(value)
        return True

    @contextmanager
    def _keeping(self) -> Iterator[None]:
        """A pass that leaves its weights behind where it is interrupted."""
        try:
            yield
        except KeyboardInterrupt as interrupt:
            self._unfinished = getattr(interrupt, "learned", [None])[0]
            raise

    @property
    def rate(self) -> float:
        """The rate that is used."""
        raise NotImplementedError

    def _run(self, order: Order) -> tuple[float, Vector]:
        """A pass: the sum of the losses, and the weights after it."""
        raise NotImplementedError

    def _found(self, weights: Vector) -> Vector:
        """What to keep after a pass that ended with these weights."""
        return weights

    def _random(self) -> np.random.Generator:
        """Random numbers of the pass that comes next: the same after a resume."""
        return np.random.default_rng((self._settings.random_state, len(self.values)))

    def refine(self) -> bool:
        """Nothing becomes more exact."""
        return False

    def best(self) -> Vector:
        """The weights [D] of the last whole pass; where there is none, those of the steps so far."""
        if self._unfinished is not None and len(self.values) == 1:
            return self._unfinished
        return self.point.x

    def snapshot(self) -> Snapshot:
        """Weights and counts; a method adds its own."""
        return Snapshot(
            {"values": self.values[1:], "passes": self.passes, "note": self.note}, {"x": self.point.x}
        )

    def restore(self, snapshot: Snapshot) -> None:
        """Stands where the snapshot was taken."""
        self.values = [nan, *snapshot.series("values")]
        self.passes, self.note = snapshot.number("passes"), snapshot.text("note")
        self.point = Place(snapshot.vector("x", len(self.point.x)), self.values[-1])
