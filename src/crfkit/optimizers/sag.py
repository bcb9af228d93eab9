"""The stochastic average gradient."""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite, nan
from typing import ClassVar, Protocol

import numpy as np
import numpy.typing as npt

from crfkit.optimizers.loop import Minimizer
from crfkit.optimizers.protocols import DivergenceError, OptimizationError, Vector, check_settings
from crfkit.optimizers.snapshot import Snapshot
from crfkit.optimizers.stochastic import Order, PassDescent, Place, StochasticObjective, penalty

VISIT = 4  # numbers kept for each sequence
LOSS = 1  # the one that is its loss at its last visit


class AveragedObjective(StochasticObjective, Protocol):
    """One that keeps what its sequences gave at their last visit."""

    def kept_places(self) -> npt.NDArray[np.int64]:
        """Where the numbers kept of each sequence begin, [N + 1]."""
        ...

    def average_pass(
        self,
        weights: Vector,
        slopes: Vector,
        kept: Vector,
        visits: Vector,
        places: npt.NDArray[np.int64],
        order: Order,
        uniforms: Vector,
        /,
    ) -> float:
        """Steps of SAG, one for each entry of `order`; all but the last three arrays are changed in place.

        Returns how often the loss of a sequence was asked for.
        """
        ...


@dataclass(frozen=True)
class SAG(Minimizer):
    """The stochastic average gradient with non-uniform sampling (Schmidt and others, AISTATS 2015).

    Every step visits one sequence and goes along the average of the last known gradients of all of them, so that steps need
    not become shorter: it converges linearly to the minimum, at the cost of one sequence a step. How far a step goes
    follows from estimates, found on the way, of how fast the gradient of each sequence changes; sequences where it changes
    fast are visited more often. In place of gradients the marginals of each sequence are kept.

    tolerance : on the gradient norm relative to the start. The estimate that comes with the steps is looked at after each
        pass; where it is low enough the true gradient decides.
    memory : bytes that marginals may take; where they would take more it is refused before any work
    random_state : the same one gives the same bits

    It takes no l1. The objective and the gradient norm in the history are exact at the start and where the tolerance is
    reached. Elsewhere they are estimates: each sequence counts as at its last visit, so they may be off either way.
    """

    max_iterations: int = 100
    tolerance: float = 1e-4
    memory: int = 1 << 32
    random_state: int = 0

    needs: ClassVar[frozenset[str]] = frozenset({"average_pass", "value_and_gradient"})
    takes_l1: ClassVar[bool] = False
    scheduled: ClassVar[bool] = False
    change: ClassVar[float] = 0.0
    period: ClassVar[int] = 1

    def __post_init__(self) -> None:
        check_settings(self, {"max_iterations": 0, "memory": 0, "random_state": 0}, ("tolerance",))

    def descent(self, objective: AveragedObjective, start: Vector, n_threads: int) -> PassDescent:
        """The way downhill; refused where it would take too much memory."""
        return _Descent(self, objective, start)


class _Descent(PassDescent):
    """Steps along the average gradient."""

    _settings: SAG
    _objective: AveragedObjective
    rate = nan  # follows from the estimates, step by step

    def __init__(self, settings: SAG, objective: AveragedObjective, start: Vector) -> None:
        super().__init__(settings, objective, start)
        self._places = objective.kept_places()
        n_bytes = 8 * int(self._places[-1])
        if n_bytes > settings.memory:
            raise OptimizationError(
                f"SAG would keep {n_bytes / 1e6:,.0f} MB of marginals, expected at most memory={settings.memory} bytes: "
                "allow more, or take an optimizer that keeps none, such as SGD."
            )
        self.note = f"it keeps {n_bytes / 1e6:,.1f} MB of marginals"
        self._first_norm = nan
        self._slopes = self._kept = self._visits = np.zeros(0)

    def begin(self, start: Vector) -> None:
        """Stands at the start, where nothing is known of any sequence."""
        getattr(self._objective, "refine", bool)()
        self.n_evaluations = 0
        self.point = self._exact(start)
        if not isfinite(self.point.value):
            raise OptimizationError(
                f"The objective has value {self.point.value} at the start, expected finite numbers."
            )
        self._first_norm = self.point.norm
        self.values = [self.point.value]
        self._slopes = np.zeros(len(start))
        self._kept = np.zeros(int(self._places[-1]))
        self._visits = np.zeros(VISIT * self._objective.n_sequences)

    def _exact(self, weights: Vector) -> Place:
        value, gradient = self._objective.value_and_gradient(weights)
        self.n_evaluations += 1
        self.passes += 1.0
        return Place(weights, value, float(np.linalg.norm(gradient)))

    def advance(self) -> bool:
        """Makes one pass; the first one visits every sequence once."""
        n, random = self._objective.n_sequences, self._random()
        first = len(self.values) == 1
        order = random.permutation(n) if first else np.full(n, -1)
        weights = self.point.x.copy()
        with self._keeping():
            n_losses = self._objective.average_pass(
                weights,
                self._slopes,
                self._kept,
                self._visits,
                self._places,
                order.astype(np.int32),
                random.random(2 * n),
            )
        self.passes += n_losses / max(n, 1)
        value = float(self._visits[LOSS::VISIT].sum()) + penalty(self._objective, weights)
        if not isfinite(value):
            raise DivergenceError(f"SAG left the range of numbers in pass {len(self.values)}.")
        norm = float(np.linalg.norm(self._slopes + self._objective.l2 * weights))
        self.point = Place(weights, value, norm)
        if norm <= self._settings.tolerance * self._first_norm:
            self.point = self._exact(weights)
        self.values.append(self.point.value)
        return True

    def snapshot(self) -> Snapshot:
        """All that is kept of the sequences too."""
        numbers, arrays = super().snapshot()
        point = {"value": self.point.value, "norm": self.point.norm, "first_norm": self._first_norm}
        numbers = {**numbers, **point, "values": list(self.values), "n_evaluations": self.n_evaluations}
        own = {"slopes": self._slopes, "kept": self._kept, "visits": self._visits}
        return Snapshot(numbers, {**arrays, **{name: array.copy() for name, array in own.items()}})

    def restore(self, snapshot: Snapshot) -> None:
        """All that is kept of the sequences too."""
        super().restore(snapshot)
        getattr(self._objective, "refine", bool)()
        self.values = snapshot.series("values")
        self.n_evaluations = snapshot.count("n_evaluations")
        self._first_norm = snapshot.number("first_norm")
        self.point = Place(self.point.x, snapshot.number("value"), snapshot.number("norm"))
        sizes = (len(self.point.x), int(self._places[-1]), VISIT * self._objective.n_sequences)
        self._slopes, self._kept, self._visits = (  # copies, which the passes change
            snapshot.vector(name, size).copy()
            for name, size in zip(("slopes", "kept", "visits"), sizes, strict=True)
        )
