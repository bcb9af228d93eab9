"""Single passes of stochastic methods, for tests: the state in, the new one out."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from crfkit import _core
from crfkit.optimizers.online import OnlineLearner

Float64s = npt.NDArray[np.float64]
Order = npt.NDArray[np.int32]


def run(
    objective: Any, rule: _core.StepRule, state: dict[str, Float64s], order: Order, **options: Any
) -> Any:
    """The loss of a pass and the state after it; the one before it stays."""
    state = {name: np.array(array) for name, array in state.items()}
    return objective.run(rule, state, order, **options), state


def sgd_pass(
    objective: Any,
    w: Float64s,
    order: Order,
    rates: Float64s,
    *,
    batch: int = 1,
    total: Float64s | None = None,
) -> tuple[float, Float64s, Float64s | None]:
    """Loss, weights and the sum of the weights after each step, if `total` is given."""
    state = {"weights": w} if total is None else {"weights": w, "total": total}
    loss, after = run(objective, _core.SGDRule(rates, batch), state, order)
    return loss, after["weights"], after.get("total")


def adagrad_pass(
    objective: Any, z: Float64s, root: Float64s, order: Order, rate: float, passes: float, *, batch: int = 1
) -> tuple[float, Float64s, Float64s, Float64s]:
    """Loss, weights, z and root."""
    state = {"weights": np.full(len(z), np.nan), "z": z, "root": root}
    loss, after = run(objective, _core.AdaGradRule(rate, passes, batch), state, order)
    return loss, after["weights"], after["z"], after["root"]


def online_pass(objective: Any, learner: OnlineLearner, w: Float64s, order: Order) -> Any:
    """Loss and state after a pass from the first state at w."""
    return run(objective, learner.rule(), learner.first_state(w), order)
