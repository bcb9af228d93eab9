"""What optimizers and objectives may ask of each other.

Shapes: D weights.
"""

from math import inf
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from crfkit.errors import ArgumentError, ShapeError, UnsupportedError

Vector = npt.NDArray[np.float64]  # [D]


ANSWERS = {
    "sequences": "run",
    "mistakes": "run",
}  # the methods of an objective that answer a need of another name


class OptimizationError(ValueError):
    """A minimisation that cannot be done with these settings on these data."""


class DivergenceError(OptimizationError):
    """A minimisation whose numbers grew beyond what a float can hold: the rate, or values of features, are too large."""


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

    def value_and_gradient(self, weights: Vector, /) -> tuple[float, Vector]:
        """f(w) and its gradient [D]: a new array at every call, since the optimizer keeps it."""


def check_match(optimizer: Any, objective: object) -> None:
    """Refuses, before any work, an objective that cannot answer what the optimizer needs."""
    if not isinstance(getattr(objective, "n_weights", None), int | np.integer):
        raise TypeError(
            f"{_name(objective)} cannot be minimised: it does not say n_weights, its number of weights."
        )
    missing = sorted(
        need for need in optimizer.needs if not callable(getattr(objective, ANSWERS.get(need, need), None))
    )
    if missing:
        raise TypeError(
            f"{_name(optimizer)} needs {' and '.join(missing)} of an objective; {_name(objective)} has none."
        )


def check_penalty(optimizer: Any, objective: Objective) -> None:
    """Refuses an l1 penalty that the optimizer cannot minimise with."""
    if not optimizer.takes_l1 and check_l1(objective) is not None:
        raise UnsupportedError(
            f"{_name(optimizer)} takes no l1 penalty, expected l1=0 or an optimizer that can, such as LBFGS."
        )


def check_start(objective: Objective, start: npt.ArrayLike) -> Vector:
    """A copy [D] of the weights to start from; finite, one for each weight of the objective."""
    given = np.asarray(start, dtype=np.float64)
    if given.shape != (objective.n_weights,):
        raise ShapeError(
            f"The start has shape {given.shape}, expected ({objective.n_weights},): one number per weight."
        )
    _check_none(~np.isfinite(given), given, "The start", "a finite number")
    weights = np.zeros(len(given))  # takes up no memory as long as nothing is written
    if given.any():
        weights[:] = given
    return weights


def check_l1(objective: Objective) -> Vector | None:
    """The l1 strengths of an objective, [1] or [D]; None when nothing is penalised."""
    strengths = np.array(getattr(objective, "l1", 0.0), dtype=np.float64, order="C")
    if strengths.shape not in ((), (objective.n_weights,)):
        raise ShapeError(
            f"l1 has shape {strengths.shape}, expected a number or one per weight: ({objective.n_weights},)."
        )
    strengths = np.atleast_1d(strengths)
    _check_none(
        ~((strengths >= 0) & np.isfinite(strengths)), strengths, "l1", "a finite number that is not negative"
    )
    return strengths if strengths.any() else None


def _check_none(bad: npt.NDArray[np.bool_], numbers: Vector, what: str, expected: str) -> None:
    """Complains about the first number that is bad, if any."""
    if bad.any():
        i = int(bad.argmax())
        raise ArgumentError(f"{what} has {numbers[i]} at weight {i}, expected {expected}.")


def check_settings(optimizer: object, whole: dict[str, int], numbers: tuple[str, ...]) -> None:
    """Refuses settings other than whole numbers of at least `whole[name]` and finite `numbers` from 0 on."""
    for name, least in whole.items():
        value = getattr(optimizer, name)
        if not is_whole(value) or value < least:
            raise ArgumentError(
                f"{_name(optimizer)} got {name}={value!r}, expected a whole number of at least {least}."
            )
    for name in numbers:
        value = getattr(optimizer, name)
        if not (is_whole(value) or isinstance(value, float | np.floating)) or not 0 <= value < inf:
            raise ArgumentError(
                f"{_name(optimizer)} got {name}={value!r}, expected a finite number that is not negative."
            )


def is_whole(value: object) -> bool:
    """Whether a value is an integer, and not True or False."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def _name(thing: object) -> str:
    return type(thing).__name__
