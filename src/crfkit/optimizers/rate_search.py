"""The search for a learning rate: a pass over a sample of the data for each of several powers of 2."""

from collections.abc import Callable
from math import inf, isfinite
from typing import NamedTuple

import numpy as np

from crfkit import _core
from crfkit.optimizers.protocols import Vector
from crfkit.optimizers.stochastic import Order, StochasticObjective, penalty, shuffled

SAMPLE = 1000  # sequences, or a tenth of the data where that is more
MOST_TRIALS = 24


class RateFound(NamedTuple):
    """The rate with the lowest objective, and what the search took."""

    rate: float
    passes: float  # over the data
    note: str  # for people


def sample_loss(objective: StochasticObjective, weights: Vector, sample: Order) -> float:
    """The sum of the losses of some sequences at these weights: what SGD meets at the rate 0."""
    return objective.run(_core.SGDRule(np.zeros(len(sample)), 1), {"weights": weights.copy()}, sample)


def search_rate(
    objective: StochasticObjective, run: Callable[[float, Order], Vector], first: float, random_state: int
) -> RateFound:
    """Tries `first`, then its doubles as long as they do better, or else its halves.

    `run(rate, order)` gives the weights after steps along the sequences of `order`. Each is judged by the objective of
    the same sequences, with their share of the penalty, so a trial takes two passes over the sample.
    """
    N = objective.n_sequences
    size = min(N, max(SAMPLE, N // 10))
    sample = shuffled(objective, np.random.default_rng((random_state, 0)))[:size]
    tried: dict[float, float] = {}

    def value(rate: float) -> float:
        weights = run(rate, sample)
        loss = inf
        if np.isfinite(weights).all():
            loss = sample_loss(objective, weights, sample)
        found = loss + size / max(N, 1) * penalty(objective, weights)
        tried[rate] = found if isfinite(found) else inf
        return tried[rate]

    best, lowest = first, value(first)
    for factor in (2.0, 0.5):
        while len(tried) < MOST_TRIALS and value(best * factor) < lowest:
            best *= factor
            lowest = tried[best]
        if best != first:
            break
    passes = 2 * size * len(tried) / max(N, 1)
    words = f"rate {best:g} had the lowest objective of {len(tried)} on {size:,} sequences"
    return RateFound(best, passes, f"{words}, which took {passes:.2g} passes")
