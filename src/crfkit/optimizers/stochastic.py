"""What the methods share that go through the data pass by pass, with a step after a few sequences each.

How a step moves the weights is defined by a rule in the native core (`_core.SGDRule`, …). An objective runs it:
`objective.run(rule, state, order)` takes the steps of one pass and changes the state in place.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from math import inf, isfinite, nan
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from crfkit import _core
from crfkit.errors import ArgumentError
from crfkit.optimizers.protocols import DivergenceError, Vector, is_whole
from crfkit.optimizers.snapshot import Snapshot

Order = npt.NDArray[np.int32]  # of sequences
State = dict[str, Vector]  # what a rule keeps between two passes, by name; "weights" [D] among them

# Names that arrays of a state had in earlier checkpoints, where the time of mistake-driven methods was a number.
OLD_NAMES = {
    "weights": "x",
    "weighted_steps": "second",
    "variances": "second",
    "gradient_sum": "slopes",
    "residuals": "kept",
}


class StepObjective(Protocol):
    """A data set of N sequences that rules can step along."""

    n_sequences: int  # N

    @property
    def n_weights(self) -> int:
        """D."""

    def run(
        self, rule: _core.StepRule, state: State, order: Order, /, dropout: tuple[float, int] | None = None
    ) -> float:
        """Takes the steps of one pass over the sequences of `order`, and changes the arrays of `state` in place.

        Returns the sum of the losses, each before its step. Where KeyboardInterrupt ends the pass, the state is that after
        the steps so far. `dropout` is a rate and a seed, for objectives that know the features of their weights.
        """


class StochasticObjective(StepObjective, Protocol):
    """An objective Σ_n loss_n(w) + Σ_d (l1_d |w_d| + ½ l2_d w_d²)."""

    l1: float | Vector
    l2: float | Vector


class Place(NamedTuple):
    """Where a descent is; its gradient norm is seldom known."""

    x: Vector  # [D]
    value: float
    norm: float = nan


def penalty(objective: StochasticObjective, weights: Vector) -> float:
    """Σ_d (l1_d |w_d| + ½ l2_d w_d²)."""
    with np.errstate(over="ignore", invalid="ignore"):  # a rate that is far too high
        return float(np.sum(objective.l1 * np.abs(weights)) + 0.5 * np.sum(objective.l2 * weights * weights))


def shuffled(objective: StepObjective, random: np.random.Generator) -> Order:
    """A random order of all sequences [N]: of the shards, and within each.

    An objective may say where its shards begin: `shard_ptr` has the first sequence of each, and N.
    """
    ptr = getattr(objective, "shard_ptr", (0, objective.n_sequences))
    shards = random.permutation(len(ptr) - 1) if len(ptr) > 2 else (0,)
    orders = [ptr[i] + random.permutation(ptr[i + 1] - ptr[i]) for i in shards]
    return np.concatenate(orders).astype(np.int32)


def check_positive(optimizer: object, *names: str, or_else: str = "") -> None:
    """Refuses settings that are neither positive finite numbers nor the text `or_else`."""
    for name in names:
        value = getattr(optimizer, name)
        if or_else and isinstance(value, str) and value == or_else:
            continue
        if not (is_whole(value) or isinstance(value, float | np.floating)) or not 0 < value < inf:
            what = f' or "{or_else}"' if or_else else ""
            raise ArgumentError(
                f"{type(optimizer).__name__} got {name}={value!r}, expected a positive number{what}."
            )


class PassDescent(ABC):
    """Pass after pass over the sequences, in random order; a method brings its rule and its state."""

    n_evaluations = 0
    note = ""  # what was decided during the run, as a text

    def __init__(self, settings: Any, objective: Any, start: Vector) -> None:
        self._settings = settings
        self._objective = objective
        self._state: State = {"weights": start}
        self.point = Place(start, nan)
        self.values: list[float] = []  # the objective by iteration, beginning with that of the start
        self.passes = 0.0

    @property
    def n_passes(self) -> int:
        """Passes that have been completed."""
        return len(self.values) - 1

    def begin(self, start: Vector) -> None:
        """Starts at `start`; the objective there is not evaluated."""
        self.point = Place(start, nan)
        self.values = [nan]
        self._state = self._first_state(start)

    def advance(self) -> bool:
        """Makes one pass."""
        state, order = self._copy_state(self._state), self._order()
        try:
            loss = self._run(self._rule(order, state), state, order)
        except KeyboardInterrupt:
            unfinished = self._learned_weights(state)
            if self.n_passes == 0 and np.isfinite(unfinished).all():
                self.point = Place(unfinished, nan)
            raise
        except OverflowError as error:
            raise DivergenceError(f"{self._name()} diverged in pass {len(self.values)}: {error}") from None
        value = self._value(loss, state)
        if not isfinite(value):
            raise DivergenceError(f"{self._name()} diverged in pass {len(self.values)}; {self._advice()}.")
        self.passes += self._cost(state)
        self._state = state
        self.values.append(value)
        self.point = self._place(state, value)
        self.values[-1] = self.point.value
        return True

    def _run(self, rule: _core.StepRule, state: State, order: Order) -> float:
        """One pass by a rule."""
        return float(self._objective.run(rule, state, order))

    @abstractmethod
    def _first_state(self, start: Vector) -> State:
        """The state before the first pass."""

    @abstractmethod
    def _rule(self, order: Order, state: State) -> _core.StepRule:
        """The rule of the pass that comes next."""

    @abstractmethod
    def _value(self, loss: float, state: State) -> float:
        """The objective of a pass with this sum of losses."""

    def _name(self) -> str:
        return type(self._settings).__name__

    def _advice(self) -> str:
        return "its loss left the range of numbers"

    def _copy_state(self, state: State) -> State:
        """For a pass to change."""
        return {name: array.copy() for name, array in state.items()}

    def _order(self) -> Order:
        """A random order of all sequences."""
        return shuffled(self._objective, self._random())

    def _random(self) -> np.random.Generator:
        """Random numbers of the pass that comes next: the same after a resume."""
        return np.random.default_rng((self._settings.random_state, len(self.values)))

    def _cost(self, state: State) -> float:
        """Of the pass that led to this state, in passes over the data."""
        return 1.0

    def _learned_weights(self, state: State) -> Vector:
        """The weights [D] to keep if it ended in this state."""
        return state["weights"]

    def _place(self, state: State, value: float) -> Place:
        """Where it is after a pass."""
        return Place(self._learned_weights(state), value)

    def refine(self) -> bool:
        """Nothing becomes more exact."""
        return False

    def best(self) -> Vector:
        """The weights [D] of the last whole pass; where there is none, those of the steps so far."""
        return self.point.x

    def snapshot(self) -> Snapshot:
        """The state, and how many passes were made: random numbers follow from that."""
        numbers = {"values": self.values[1:], "passes": self.passes, "note": self.note}
        return Snapshot(numbers, dict(self._state))

    def restore(self, snapshot: Snapshot) -> None:
        """Resumes from a snapshot."""
        self.values = [nan, *snapshot.series("values")]
        self.passes, self.note = snapshot.number("passes"), snapshot.text("note")
        self._state = self._restore_state(snapshot)
        self.point = Place(self._learned_weights(self._state), self.values[-1])

    def _restore_state(self, snapshot: Snapshot) -> State:
        """The state in a snapshot, which has the names and sizes of the first one."""
        found = {}
        for name, array in self._first_state(self.point.x).items():
            if name in snapshot.numbers:
                found[name] = np.array([snapshot.number(name)])
                continue
            stored = name if name in snapshot.arrays else OLD_NAMES.get(name, name)
            found[name] = snapshot.vector(stored, len(array))
        return found
