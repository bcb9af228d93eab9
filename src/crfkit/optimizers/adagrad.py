"""AdaGrad: a rate for each weight, and penalties that are exact."""

from __future__ import annotations

from dataclasses import dataclass
from math import nan
from typing import ClassVar, NamedTuple, Protocol

import numpy as np

from crfkit.optimizers.loop import Minimizer
from crfkit.optimizers.protocols import Vector, check_settings
from crfkit.optimizers.rate_search import search_rate
from crfkit.optimizers.snapshot import Snapshot
from crfkit.optimizers.stochastic import Order, PassDescent, StochasticObjective, check_rate

FIRST_RATE = 0.5  # where the search for one begins
FIRST_ROOT = 1.0  # √G at the start: gradients of single parts are at most 1


class AdaptiveState(NamedTuple):
    """What AdaGrad keeps of each weight, [D] each."""

    weights: Vector
    z: Vector
    root: Vector


class AdaptiveObjective(StochasticObjective, Protocol):
    """One that can step with a rate for each weight."""

    def adaptive_pass(
        self, z: Vector, root: Vector, order: Order, rate: float, passes: float, /, *, batch: int = 1
    ) -> tuple[float, Vector, Vector, Vector]:
        """Steps of AdaGrad from a state that `passes` passes led to; returns Σ_n loss_n and the new weights, z and root."""
        ...


@dataclass(frozen=True)
class AdaGrad(Minimizer):
    """AdaGrad (Duchi and others 2011) as the leader of all steps so far (FTRL-Proximal, McMahan 2011).

    A step along `batch` sequences with gradient g, where C passes were made,

        z ← z + g − (√(G + g²) − √G) / rate · w        G ← G + g²
        w = −soft(z, l1 · C) / (√G / rate + l2 · C)    soft(x, a) = sign(x) · max(|x| − a, 0)

    costs what its sequences touch. Without penalties it is w ← w − rate / √G · g: weights that are seldom touched move
    further. l1 gives exact zeros, and both penalties count in full after each pass. G begins at 1.

    rate : "auto": powers of 2 are tried on a sample of the data; `CRF.optimizer_reason_` says which one was taken
    batch : sequences of a step. Their gradients add up, on several threads; the same bits for any number of these.
    random_state : the same one gives the same bits

    The objective in the history is the sum of the losses met during the pass, plus the penalty after it; it is not known
    at the start, and its gradient norm never is (NaN).
    """

    max_iterations: int = 10
    rate: float | str = "auto"
    batch: int = 1
    random_state: int = 0

    needs: ClassVar[frozenset[str]] = frozenset({"adaptive_pass", "stochastic_pass"})
    takes_l1: ClassVar[bool] = True
    scheduled: ClassVar[bool] = False
    tolerance: ClassVar[float] = 0.0
    change: ClassVar[float] = 0.0
    period: ClassVar[int] = 1

    def __post_init__(self) -> None:
        check_settings(self, {"max_iterations": 0, "batch": 1, "random_state": 0}, ())
        check_rate(self)

    def descent(self, objective: AdaptiveObjective, start: Vector, n_threads: int) -> PassDescent:
        """The way downhill."""
        return _Descent(self, objective, start)


class _Descent(PassDescent):
    """Steps with a rate for each weight."""

    _settings: AdaGrad
    _objective: AdaptiveObjective

    def __init__(self, settings: AdaGrad, objective: AdaptiveObjective, start: Vector) -> None:
        super().__init__(settings, objective, start)
        self._rate = nan
        self._state = AdaptiveState(start, start, start)

    @property
    def rate(self) -> float:
        """The one for all weights, before it is divided by √G."""
        return self._rate

    def begin(self, start: Vector) -> None:
        """Stands at the start, with a rate."""
        super().begin(start)
        if isinstance(self._settings.rate, str):
            found = search_rate(self._objective, self._tried, FIRST_RATE, self._settings.random_state)
            self._rate, self.passes, self.note = found
        else:
            self._rate = float(self._settings.rate)
        self._state = self._at(start, self._rate)

    @staticmethod
    def _at(weights: Vector, rate: float) -> AdaptiveState:
        """The state that has these weights before the first step."""
        root = np.full(len(weights), FIRST_ROOT)
        return AdaptiveState(weights, -weights * root / rate, root)

    def _tried(self, rate: float, order: Order) -> Vector:
        state = self._at(self.point.x, rate)
        return self._step(state, order, rate, 0.0)[1].weights

    def _step(
        self, state: AdaptiveState, order: Order, rate: float, passes: float
    ) -> tuple[float, AdaptiveState]:
        loss, *found = self._objective.adaptive_pass(
            state.z, state.root, order, rate, passes, batch=self._batch
        )
        return loss, AdaptiveState(*found)

    def _run(self, order: Order) -> tuple[float, Vector]:
        loss, self._state = self._step(self._state, order, self._rate, float(len(self.values) - 1))
        return loss, self._state.weights

    def snapshot(self) -> Snapshot:
        """The rate and the state too."""
        numbers, arrays = super().snapshot()
        own = {"z": self._state.z, "root": self._state.root}
        return Snapshot({**numbers, "rate": self._rate}, {**arrays, **own})

    def restore(self, snapshot: Snapshot) -> None:
        """The rate and the state too."""
        super().restore(snapshot)
        self._rate = snapshot.number("rate")
        self._state = AdaptiveState(
            *(snapshot.vector(name, len(self.point.x)) for name in ("x", "z", "root"))
        )
