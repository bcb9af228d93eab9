"""Mistake-driven training, sequence by sequence: what the perceptron, passive-aggressive and AROW share."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import KW_ONLY, dataclass
from math import nan
from typing import ClassVar

import numpy as np

from crfkit import _core
from crfkit.errors import ArgumentError
from crfkit.optimizers.loop import Optimizer
from crfkit.optimizers.protocols import Vector, check_settings
from crfkit.optimizers.snapshot import Snapshot
from crfkit.optimizers.stochastic import Order, PassDescent, Place, State, StepObjective


@dataclass(frozen=True)
class OnlineLearner(Optimizer):
    """Settings of every mistake-driven method."""

    max_iterations: int = 10
    _: KW_ONLY
    random_state: int = 0

    needs: ClassVar[frozenset[str]] = frozenset({"mistakes"})

    def __post_init__(self) -> None:
        check_settings(self, {"max_iterations": 0, "random_state": 0}, ())

    def descent(self, objective: StepObjective, start: Vector, n_threads: int) -> PassDescent:
        """A new descent from `start`."""
        return _Descent(self, objective, start)

    def averages(self) -> bool:
        """Whether the mean of the weights over all steps is learned, in place of the last ones."""
        return False

    def first_state(self, start: Vector) -> State:
        """The state before the first step: weights [D]; time [1], the sum of the weights of the sequences seen so far.

        For the mean of the weights also weighted_steps [D], the sum of step · (time + 1).
        """
        state = {"weights": start, "time": np.zeros(1)}
        return {**state, "weighted_steps": np.zeros(len(start))} if self.averages() else state

    def learned_weights(self, state: State) -> Vector:
        """The last weights, or the mean of the weights before the first sequence and after each."""
        if self.averages():
            return state["weights"] - state["weighted_steps"] / (float(state["time"][0]) + 1.0)
        return state["weights"]

    @abstractmethod
    def rule(self) -> _core.MistakeRule:
        """How a mistake moves the weights."""

    def _check_switches(self, *names: str) -> None:
        for name in names:
            value = getattr(self, name)
            if not isinstance(value, bool | np.bool_):
                raise ArgumentError(f"{type(self).__name__} got {name}={value!r}, expected True or False.")


class _Descent(PassDescent):
    """Passes whose objective is the sum of the losses met during the pass."""

    _settings: OnlineLearner

    def __init__(self, settings: OnlineLearner, objective: StepObjective, start: Vector) -> None:
        super().__init__(settings, objective, start)
        self._generator = np.random.default_rng(settings.random_state)
        self.begin(start)

    def _first_state(self, start: Vector) -> State:
        return self._settings.first_state(start)

    def _rule(self, order: Order, state: State) -> _core.MistakeRule:
        return self._settings.rule()

    def _random(self) -> np.random.Generator:
        """The same one for all passes."""
        return self._generator

    def _value(self, loss: float, state: State) -> float:
        return loss

    def _learned_weights(self, state: State) -> Vector:
        return self._settings.learned_weights(state)

    def restore(self, snapshot: Snapshot) -> None:
        """Resumes from a snapshot; random orders follow from the number of passes."""
        self.values = [nan, *snapshot.series("values")]
        self.passes = float(self.n_passes)
        self._state = self._restore_state(snapshot)
        self.point = Place(self._learned_weights(self._state), self.values[-1])
        for _ in range(self.n_passes):
            self._order()
