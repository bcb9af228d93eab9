"""The stochastic average gradient."""

from dataclasses import dataclass
from math import isfinite, nan
from typing import ClassVar, Protocol

import numpy as np

from crfkit import _core
from crfkit.optimizers.loop import Optimizer
from crfkit.optimizers.protocols import Objective, OptimizationError, Vector, check_settings
from crfkit.optimizers.snapshot import Snapshot
from crfkit.optimizers.stochastic import Order, PassDescent, Place, State, StochasticObjective, penalty

VISIT = 4  # numbers kept for each sequence
LOSS = 1  # the one that is its loss at its last visit


class AveragedObjective(Objective, StochasticObjective, Protocol):
    """One whose sequences' residuals can be kept."""

    def n_residuals(self) -> int:
        """How many numbers the residuals of all sequences are."""


@dataclass(frozen=True)
class SAG(Optimizer):
    """The stochastic average gradient with non-uniform sampling (Schmidt and others, AISTATS 2015).

    Every step visits one sequence and goes along the average of the last known gradients of all of them, so that steps need
    not become shorter: it converges linearly to the minimum, at the cost of one sequence a step. How far a step goes
    follows from estimates, made at each visit, of how fast the gradient of each sequence changes; sequences where it changes
    fast are visited more often. In place of gradients the marginals of each sequence are kept.

    tolerance : on the gradient norm relative to the start. The estimate that comes with the steps is looked at after each
        pass; where it is low enough the true gradient decides.
    memory : bytes that marginals may take; where they would take more it is refused before any work
    random_state : the same one gives the same bits

    It takes no l1. The objective and the gradient norm in the history are exact at the start and where the tolerance is
    reached. Elsewhere they are estimates: each sequence counts as at its last visit, so they may be too high or too low.
    """

    max_iterations: int = 100
    tolerance: float = 1e-4
    memory: int = 1 << 32
    random_state: int = 0

    needs: ClassVar[frozenset[str]] = frozenset({"sequences", "value_and_gradient"})

    def __post_init__(self) -> None:
        check_settings(self, {"max_iterations": 0, "memory": 0, "random_state": 0}, ("tolerance",))

    def descent(self, objective: AveragedObjective, start: Vector, n_threads: int) -> PassDescent:
        """A new descent from `start`; raises `OptimizationError` where it would take too much memory."""
        return _Descent(self, objective, start)


class _Descent(PassDescent):
    """Steps along the average gradient.

    State: the weights [D]; gradient_sum [D], of the last known gradients; residuals, the last ones of each sequence;
    visits [N, 4] with the loss at the last visit among its fields; n_losses [1], those that were asked for.
    """

    _settings: SAG
    _objective: AveragedObjective

    def __init__(self, settings: SAG, objective: AveragedObjective, start: Vector) -> None:
        super().__init__(settings, objective, start)
        if not getattr(objective, "takes_any_order", lambda: True)():
            raise OptimizationError(
                "SAG visits the sequences of all shards in random order, and shards of this model are compiled anew "
                "each time they are opened: expected data in memory, or an optimizer that takes shards in turn, such as SGD."
            )
        self._n_residuals = objective.n_residuals()
        n_bytes = 8 * self._n_residuals
        if n_bytes > settings.memory:
            raise OptimizationError(
                f"SAG would keep {n_bytes / 1e6:,.0f} MB of marginals, expected at most memory={settings.memory} bytes: "
                "allow more, or take an optimizer that keeps none, such as SGD."
            )
        self.note = f"it keeps {n_bytes / 1e6:,.1f} MB of marginals"
        self._first_norm = nan

    def begin(self, start: Vector) -> None:
        """Starts at `start`, where nothing is known of any sequence."""
        getattr(self._objective, "refine", bool)()
        super().begin(start)
        self.n_evaluations = 0
        self.point = self._exact(start)
        if not isfinite(self.point.value):
            raise OptimizationError(
                f"The objective has value {self.point.value} at the start, expected finite numbers."
            )
        self._first_norm = self.point.norm
        self.values = [self.point.value]

    def _first_state(self, start: Vector) -> State:
        return {
            "weights": start,
            "gradient_sum": np.zeros(len(start)),
            "residuals": np.zeros(self._n_residuals),
            "visits": np.zeros(VISIT * self._objective.n_sequences),
        }

    def _exact(self, weights: Vector) -> Place:
        value, gradient = self._objective.value_and_gradient(weights)
        self.n_evaluations += 1
        self.passes += 1.0
        return Place(weights, value, float(np.linalg.norm(gradient)))

    def _copy_state(self, state: State) -> State:
        """Of the weights alone: the residuals are large, and nothing goes on after a pass that failed."""
        return {**state, "weights": state["weights"].copy(), "n_losses": np.zeros(1)}

    def _order(self) -> Order:
        """The first pass visits every sequence once, in random order; the others draw one for each step."""
        return super()._order() if self.n_passes == 0 else np.full(self._objective.n_sequences, -1, np.int32)

    def _rule(self, order: Order, state: State) -> _core.SAGRule:
        return _core.SAGRule(self._random().random(2 * len(order)))

    def _cost(self, state: State) -> float:
        return float(state["n_losses"][0]) / max(self._objective.n_sequences, 1)

    def _value(self, loss: float, state: State) -> float:
        """Each sequence counts as at its last visit."""
        return float(state["visits"][LOSS::VISIT].sum()) + penalty(self._objective, state["weights"])

    def _place(self, state: State, value: float) -> Place:
        weights = state["weights"]
        norm = float(np.linalg.norm(state["gradient_sum"] + self._objective.l2 * weights))
        if norm <= self._settings.tolerance * self._first_norm:
            return self._exact(weights)
        return Place(weights, value, norm)

    def snapshot(self) -> Snapshot:
        """What is known of the objective too."""
        numbers, arrays = super().snapshot()
        point = {"value": self.point.value, "norm": self.point.norm, "first_norm": self._first_norm}
        numbers = {**numbers, **point, "values": list(self.values), "n_evaluations": self.n_evaluations}
        return Snapshot(numbers, {name: array.copy() for name, array in arrays.items()})  # passes change them

    def restore(self, snapshot: Snapshot) -> None:
        """What is known of the objective too."""
        getattr(self._objective, "refine", bool)()
        super().restore(snapshot)
        self.values = snapshot.series("values")
        self.n_evaluations = snapshot.count("n_evaluations")
        self._first_norm = snapshot.number("first_norm")
        self.point = Place(self.point.x, snapshot.number("value"), snapshot.number("norm"))
        self._state = {name: array.copy() for name, array in self._state.items()}
