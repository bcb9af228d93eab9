"""Mistake-driven training, sequence by sequence: what the perceptron, passive-aggressive and AROW share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import KW_ONLY, dataclass
from math import inf, isfinite, nan
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from crfkit import _core
from crfkit.optimizers.loop import Minimizer
from crfkit.optimizers.protocols import DivergenceError, Vector, check_settings, is_whole
from crfkit.optimizers.snapshot import Snapshot


class OnlineState(NamedTuple):
    """What a learner knows between two passes."""

    weights: Vector  # [D]
    second: Vector  # [D] what is kept beside each weight: for their mean, or AROW's variances; [0]: nothing
    time: float  # how many sequences it has seen, each counted by its weight


class OnlineObjective(Protocol):
    """A data set whose sequences are labelled one by one, with a step after each mistake."""

    n_sequences: int

    @property
    def n_weights(self) -> int:
        """D."""
        ...

    def online_pass(
        self,
        rule: _core.OnlineRule,
        weights: Vector,
        second: Vector,
        time: float,
        order: npt.NDArray[np.int32],
        /,
    ) -> tuple[float, Vector, Vector, float]:
        """The sum of the losses, each before its step, and the new weights, `second` and `time`.

        Where KeyboardInterrupt ends the pass, its attribute `learned` may hold those of the steps so far, with `time` [1].
        """
        ...


@dataclass(frozen=True)
class OnlineLearner(Minimizer, ABC):
    """Settings of every mistake-driven method."""

    max_iterations: int = 10
    _: KW_ONLY
    random_state: int = 0

    needs: ClassVar[frozenset[str]] = frozenset({"online_pass"})
    takes_l1: ClassVar[bool] = False
    scheduled: ClassVar[bool] = False  # more passes go on where fewer ended
    tolerance: ClassVar[float] = 0.0
    change: ClassVar[float] = 0.0
    period: ClassVar[int] = 1

    def __post_init__(self) -> None:
        check_settings(self, {"max_iterations": 0, "random_state": 0}, ())

    def descent(self, objective: OnlineObjective, start: Vector, n_threads: int) -> _Descent:
        """The way through the passes."""
        return _Descent(self, objective, start)

    def averages(self) -> bool:
        """Whether the mean of the weights over all steps is learned, in place of the last ones."""
        return False

    def second(self, n_weights: int) -> Vector:
        """What is kept beside each weight, at the start."""
        return np.zeros(n_weights if self.averages() else 0)

    @abstractmethod
    def rule(self) -> _core.OnlineRule:
        """How a mistake moves the weights."""

    def _check_positive(self, *names: str) -> None:
        for name in names:
            value = getattr(self, name)
            if not (is_whole(value) or isinstance(value, float | np.floating)) or not 0 < value < inf:
                raise ValueError(f"{type(self).__name__} got {name}={value!r}, expected a positive number.")

    def _check_switches(self, *names: str) -> None:
        for name in names:
            value = getattr(self, name)
            if not isinstance(value, bool | np.bool_):
                raise ValueError(f"{type(self).__name__} got {name}={value!r}, expected True or False.")


class _Place(NamedTuple):
    x: Vector  # [D]
    value: float
    norm: float = nan


class _Descent:
    """Pass after pass over the sequences, in random order."""

    n_evaluations = 0

    def __init__(self, learner: OnlineLearner, objective: OnlineObjective, start: Vector) -> None:
        self._learner = learner
        self._objective = objective
        self._rule = learner.rule()
        self._random = np.random.default_rng(learner.random_state)
        self.begin(start)

    @property
    def passes(self) -> float:
        """Over the data, until now."""
        return float(len(self.values) - 1)

    def begin(self, start: Vector) -> None:
        """Stands at the start; the loss there is not asked for."""
        self._state = OnlineState(start, self._learner.second(len(start)), 0.0)
        self.point = _Place(start, nan)
        self.values: list[float] = [nan]

    def advance(self) -> bool:
        """Makes one pass."""
        where = f"{type(self._learner).__name__} diverged in pass {len(self.values)}"
        try:
            loss, weights, second, time = self._objective.online_pass(self._rule, *self._state, self._order())
        except KeyboardInterrupt as interrupt:
            if len(self.values) == 1 and hasattr(interrupt, "learned"):  # no whole pass was made
                weights, second, clock = interrupt.learned
                self.point = _Place(self._learned(OnlineState(weights, second, float(clock[0]))), nan)
            raise
        except OverflowError as error:
            raise DivergenceError(f"{where}: {error}") from None
        if not isfinite(loss):
            raise DivergenceError(f"{where}: its loss left the range of numbers.")
        self._stand(OnlineState(weights, second, time), [*self.values, loss])
        return True

    def _stand(self, state: OnlineState, values: list[float]) -> None:
        self._state, self.values, self.point = state, values, _Place(self._learned(state), values[-1])

    def _learned(self, state: OnlineState) -> Vector:
        if self._learner.averages():  # mean of the weights before the first step and after each
            return state.weights - state.second / (state.time + 1.0)
        return state.weights

    def _order(self) -> npt.NDArray[np.int32]:
        return self._random.permutation(self._objective.n_sequences).astype(np.int32)

    def refine(self) -> bool:
        """Nothing becomes more exact."""
        return False

    def best(self) -> Vector:
        """The weights [D] of the last whole pass; where there is none, those of the steps so far."""
        return self.point.x

    def snapshot(self) -> Snapshot:
        """The state and how many passes were made: the random numbers follow from that."""
        arrays: dict[str, npt.NDArray[Any]] = {"x": self._state.weights, "second": self._state.second}
        return Snapshot({"values": self.values[1:], "time": self._state.time}, arrays)

    def restore(self, snapshot: Snapshot) -> None:
        """Stands where the snapshot was taken."""
        n_weights = len(self._state.weights)
        weights = snapshot.vector("x", n_weights)
        second = snapshot.vector("second", len(self._learner.second(n_weights)))
        values = [nan, *snapshot.series("values")]
        self._stand(OnlineState(weights, second, snapshot.number("time")), values)
        for _ in values[1:]:
            self._order()
