"""What optimizers and objectives may ask of each other, and what comes back.

Shapes: D weights.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

Vector = npt.NDArray[np.float64]  # [D]


class Objective(Protocol):
    """The smooth part f(w) of what is minimised: the negative log-likelihood with its quadratic penalty.

    Two more things are used where an objective has them:

    - `l1`, a float or float64[D]: the strengths of the penalty Σ l1_i |w_i|, the optimizer's business;
    - `refine() -> bool`: an objective may answer in single precision first. `refine` asks it to answer in
      double precision from now on, and says whether that changed anything.
    """

    @property
    def n_weights(self) -> int:
        """D."""
        ...

    def value_and_gradient(self, weights: Vector, /) -> tuple[float, Vector]:
        """f(w) and its gradient [D]: a new array at every call, since the optimizer keeps it."""
        ...


class Record(NamedTuple):
    """One line of the history of a minimisation; iteration 0 is the start."""

    iteration: int
    seconds: float  # since the start
    objective: float  # f(w) + Σ l1_i·|w_i|
    gradient_norm: float  # Euclidean norm of the gradient (with l1: of the pseudo-gradient)


History = tuple[Record, ...]


class Step(NamedTuple):
    """What a callback sees after each iteration."""

    iteration: int
    seconds: float
    objective: float
    gradient_norm: float
    weights: Vector  # [D], never changed afterwards, so it may be kept; read-only


class Outcome(NamedTuple):
    """Where a minimisation ended, and why."""

    weights: Vector  # [D]
    history: History
    converged: bool
    reason: str  # in words, for people; "interrupted" after Ctrl-C
    n_evaluations: int = 0  # calls of value_and_gradient


Callback = Callable[[Step], bool | None]  # True ends the minimisation


class Optimizer(Protocol):
    """Minimises an objective that answers everything in `needs`."""

    needs: ClassVar[frozenset[str]]

    def minimize(
        self,
        objective: Any,
        start: npt.ArrayLike,
        *,
        callback: Callback | None = None,
        n_threads: int = 1,
    ) -> Outcome:
        """The weights that minimise the objective, sought from `start`."""
        ...


def check_match(optimizer: Optimizer, objective: object) -> None:
    """Refuses, before any work, an objective that cannot answer what the optimizer needs."""
    if not isinstance(getattr(objective, "n_weights", None), int | np.integer):
        raise TypeError(
            f"{_name(objective)} cannot be minimised: it does not say n_weights, its number of weights."
        )
    missing = sorted(need for need in optimizer.needs if not callable(getattr(objective, need, None)))
    if missing:
        raise TypeError(
            f"{_name(optimizer)} needs {' and '.join(missing)} of an objective; {_name(objective)} has none."
        )


def checked_start(objective: Objective, start: npt.ArrayLike) -> Vector:
    """A copy [D] of the weights to start from; finite, one for each weight of the objective."""
    weights = np.array(start, dtype=np.float64, order="C")
    if weights.shape != (objective.n_weights,):
        raise ValueError(
            f"The start has shape {weights.shape}, expected ({objective.n_weights},): one number per weight."
        )
    _refuse_first(~np.isfinite(weights), weights, "The start", "a finite number")
    return weights


def checked_l1(objective: Objective) -> Vector | None:
    """The l1 strengths of an objective, [1] or [D]; None when nothing is penalised."""
    strengths = np.array(getattr(objective, "l1", 0.0), dtype=np.float64, order="C")
    if strengths.shape not in ((), (objective.n_weights,)):
        raise ValueError(
            f"l1 has shape {strengths.shape}, expected a number or one per weight: ({objective.n_weights},)."
        )
    strengths = np.atleast_1d(strengths)
    _refuse_first(
        ~((strengths >= 0) & np.isfinite(strengths)), strengths, "l1", "a finite number that is not negative"
    )
    return strengths if strengths.any() else None


def _refuse_first(bad: npt.NDArray[np.bool_], numbers: Vector, what: str, expected: str) -> None:
    """Complains about the first number that is bad, if any."""
    if bad.any():
        i = int(bad.argmax())
        raise ValueError(f"{what} has {numbers[i]} at weight {i}, expected {expected}.")


def _name(thing: object) -> str:
    return type(thing).__name__
