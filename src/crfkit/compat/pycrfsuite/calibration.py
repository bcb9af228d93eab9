"""The learning rate of stochastic gradient descent, found by trying some."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from crfkit import _core
from crfkit.objective import Objective


class Trial(NamedTuple):
    """A learning rate, and the loss of the sample after one pass with it."""

    loss: float
    rate: float


def calibrate(objective: Objective, params: dict[str, Any], say: Callable[[str], None]) -> float:
    """The learning rate after which one pass over some instances lowers their loss the most.

    From `calibration.eta` on it goes upwards by the factor `calibration.rate` while that lowers the loss, then downwards,
    until `calibration.candidates` rates have lowered it or `calibration.max_trials` were tried.
    """
    n = objective.n_sequences
    sample = np.arange(min(n, max(1, int(params["calibration.samples"]))), dtype=np.int32)
    first = _loss(objective, np.zeros(objective.n_weights), sample)
    say(f"Initial loss: {first:f}\n")
    start = params["calibration.eta"] if params["calibration.eta"] > 0 else 0.1
    factor = params["calibration.rate"] if params["calibration.rate"] > 1 else 2.0
    rate, upwards, n_better = start, True, 0
    best = Trial(np.inf, start)
    for trial in range(1, max(1, params["calibration.max_trials"]) + 1):
        loss = _after_pass(objective, sample, rate)
        say(f"Trial #{trial} (eta = {rate:f}): {loss:f}{'' if loss < first else ' (worse)'}\n")
        best = min(best, Trial(loss, rate))
        n_better += loss < first
        if n_better >= max(1, params["calibration.candidates"]):
            break
        if upwards and not loss < first:
            upwards, rate = False, start
        rate = rate * factor if upwards else rate / factor
    say(f"Best learning rate (eta): {best.rate:f}\n")
    return best.rate


def _after_pass(objective: Objective, sample: Any, rate: float) -> float:
    state = {"weights": np.zeros(objective.n_weights)}
    objective.run(_core.SGDRule(np.full(len(sample), rate), 1), state, sample)
    moved = state["weights"]
    return _loss(objective, moved, sample) if np.isfinite(moved).all() else np.inf


def _loss(objective: Objective, weights: Any, sample: Any) -> float:
    """Of the sample, with its share of the penalty: the losses that a pass with the rate 0 meets."""
    loss = objective.run(_core.SGDRule(np.zeros(len(sample)), 1), {"weights": weights.copy()}, sample)
    share = len(sample) / max(objective.n_sequences, 1)
    return loss + 0.5 * share * float(np.sum(objective.l2 * weights * weights))
