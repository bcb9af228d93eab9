"""Steps along the gradients of a few sequences each: what SGD and AdaGrad share."""

from abc import abstractmethod
from math import nan
from typing import Any, ClassVar

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


class GradientDescent(PassDescent):
    """Passes with a rate.

    The objective of a pass is the sum of the losses met during the pass, and the penalty after it.
    """

    _objective: StochasticObjective
    first_rate: float  # where the search for a rate begins

    def __init__(self, settings: Any, objective: StochasticObjective, start: Vector) -> None:
        super().__init__(settings, objective, start)
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
