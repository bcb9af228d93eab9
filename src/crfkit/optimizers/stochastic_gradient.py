"""Steps along the gradients of a few sequences each: what SGD and AdaGrad share."""

from abc import abstractmethod
from math import nan
from typing import Any, ClassVar

import numpy as np

from crfkit import _core
from crfkit.errors import ArgumentError, UnsupportedError
from crfkit.optimizers.loop import Optimizer
from crfkit.optimizers.protocols import Vector, check_settings
from crfkit.optimizers.rate_search import search_rate
from crfkit.optimizers.snapshot import Snapshot
from crfkit.optimizers.stochastic import (
    Order,
    PassDescent,
    Place,
    State,
    StochasticObjective,
    check_positive,
    penalty,
)


class StochasticGradient(Optimizer):
    """Settings with a `rate`, which may be "auto", and a `batch`."""

    needs: ClassVar[frozenset[str]] = frozenset({"sequences"})
    takes_l1: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_settings(self, {"max_iterations": 0, "batch": 1, "random_state": 0}, ())
        check_positive(self, "rate", or_else="auto")
        dropout = getattr(self, "dropout")  # noqa: B009
        if not _is_share(dropout):
            name = type(self).__name__
            raise ArgumentError(f"{name} got dropout={dropout!r}, expected a number from 0 on, below 1.")


def _is_share(value: object) -> bool:
    is_number = isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)
    return is_number and bool(0 <= value < 1)  # type: ignore[operator]


class GradientDescent(PassDescent):
    """Passes with a rate.

    The objective of a pass is the sum of the losses met during the pass, and the penalty after it.
    """

    _objective: StochasticObjective
    first_rate: float  # where the search for a rate begins

    def __init__(self, settings: Any, objective: StochasticObjective, start: Vector) -> None:
        super().__init__(settings, objective, start)
        if settings.dropout and getattr(objective, "features", None) is None:
            raise UnsupportedError(
                f"{self._name()} got dropout={settings.dropout}, but the objective does not know which weights are those "
                "of one feature; expected dropout=0"
            )
        self.rate = nan
        self._batch = min(settings.batch, max(objective.n_sequences, 1))

    def begin(self, start: Vector) -> None:
        """Starts at `start`, with a rate."""
        self.point = Place(start, nan)
        if isinstance(self._settings.rate, str):
            found = search_rate(self._objective, self._try_rate, self.first_rate, self._settings.random_state)
            self.rate, self.passes, self.note = found
        else:
            self.rate = float(self._settings.rate)
        super().begin(start)

    def _run(self, rule: _core.StepRule, state: State, order: Order) -> float:
        if not self._settings.dropout:
            return super()._run(rule, state, order)
        # Other random numbers than those of the order, for the same pass: the same after a resume.
        random = np.random.default_rng((self._settings.random_state, len(self.values), 1))
        seed = int(random.integers(2**63))
        return float(self._objective.run(rule, state, order, dropout=(float(self._settings.dropout), seed)))

    @abstractmethod
    def _try_rate(self, rate: float, order: Order) -> Vector:
        """The weights after steps with this rate from where it is."""

    def _value(self, loss: float, state: State) -> float:
        return loss + penalty(self._objective, state["weights"])

    def _advice(self) -> str:
        return f"expected a rate below {self.rate:g}"

    def snapshot(self) -> Snapshot:
        """The rate too."""
        numbers, arrays = super().snapshot()
        return Snapshot({**numbers, "rate": self.rate}, arrays)

    def restore(self, snapshot: Snapshot) -> None:
        """The rate too."""
        self.rate = snapshot.number("rate")
        super().restore(snapshot)
