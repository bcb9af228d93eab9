"""Which candidate patterns pay, judged on samples of the model that has none of them.

With q_r the share of label sequence r among the samples of its sequence, F [R, C] how often each candidate matches,
and θ the
weights of the candidates, the model with them is on these label sequences

    p_r ∝ q_r exp(F_r θ)      and the objective      Σ_n weight_n (log Σ_r q_r exp(F_r θ) − F_right θ) + l1 |θ| + ½ l2 |θ|²

where r runs through the label sequences of sequence n. Its gradient for a candidate is E − O, how often the model
expects it less
how often it occurs, and its curvature is V, the variance of the count: a Newton step on this weight alone gains about
½ (|E − O| − l1)² / (V + l2). The best candidate joins, the weights of all that joined are fitted, and so on: a candidate
that says the same as one that joined gains nothing any more.
"""

from collections.abc import Collection
from typing import NamedTuple

import numpy as np

from crfkit.arrays import Float64s
from crfkit.models.patterns.samples import Counts, SampledSequences

_NEWTON_STEPS = 5
_LONGEST_STEP = 1.0  # of a weight


class Limits(NamedTuple):
    """Which candidates are to join."""

    most: int  # candidates
    min_gain: float  # nats
    min_count: int  # times that the training data have it, or the model expects it
    l1: float
    l2: float


def choose_candidates(
    found: SampledSequences, counts: Counts, known: Collection[str], limits: Limits
) -> list[str]:
    """The candidates that pay, the best first; `known` ones are part of the model already."""
    pool = _Pool(found, counts)
    closed = np.array([not name or name in known for name in counts.names], np.bool_)
    share, joined = found.share, list[int]()
    while len(joined) < limits.most and len(counts.names):
        expected, variance = pool.moments(share)
        rare = (pool.observed < limits.min_count) & (expected < limits.min_count)
        slope = np.maximum(np.abs(expected - pool.observed) - limits.l1, 0.0)
        gains = np.where(closed | rare, 0.0, 0.5 * slope**2 / (variance + limits.l2 + 1e-12))
        best = int(np.argmax(gains))
        if gains[best] < max(limits.min_gain, 1e-12):
            break
        joined.append(best)
        closed[best] = True
        share = _fit_shares(found, pool.columns(joined), limits)
    return [counts.names[i] for i in joined]


class _Pool:
    """The counts of all candidates, made ready for sums over the label sequences of a sequence."""

    def __init__(self, found: SampledSequences, counts: Counts) -> None:
        self._found, self._counts = found, counts
        C = max(len(counts.names), 1)
        self._n_candidates = C
        pairs = found.sequence[counts.label_sequence] * C + counts.candidate
        distinct, self._pair = np.unique(pairs, return_inverse=True)  # (sequence, candidate) of each entry
        self._sequence, self._candidate = np.divmod(distinct, C)
        right = (
            counts.times
            * found.right[counts.label_sequence]
            * found.weight[found.sequence[counts.label_sequence]]
        )
        self.observed = np.bincount(counts.candidate, right, C)  # [C] O

    def moments(self, share: Float64s) -> tuple[Float64s, Float64s]:
        """E and V of each candidate, [C], with these shares [R] of the label sequences."""
        counts, n_pairs = self._counts, len(self._sequence)
        times = share[counts.label_sequence] * counts.times
        mean = np.bincount(self._pair, times, n_pairs)
        square = np.bincount(self._pair, times * counts.times, n_pairs)
        weight = self._found.weight[self._sequence]
        expected = np.bincount(self._candidate, weight * mean, self._n_candidates)
        variance = np.bincount(self._candidate, weight * (square - mean**2), self._n_candidates)
        return expected.astype(np.float64), np.maximum(variance, 0.0)

    def columns(self, which: list[int]) -> Float64s:
        """F for some of the candidates, [R, m]."""
        F = np.zeros((len(self._found.share), len(which)))
        for j, candidate in enumerate(which):
            entries = self._counts.candidate == candidate
            F[self._counts.label_sequence[entries], j] = self._counts.times[entries]
        return F


def _fit_shares(found: SampledSequences, F: Float64s, limits: Limits) -> Float64s:
    """p_r [R] at the weights θ that are best for these candidates, by a few Newton steps from 0 on the smooth part."""
    N, weight = len(found.weight), found.weight[found.sequence]
    begins = np.searchsorted(found.sequence, np.arange(N))
    observed = (weight * found.right) @ F
    theta, share = np.zeros(F.shape[1]), found.share
    for _ in range(_NEWTON_STEPS):
        p = weight * share
        centred = F - np.add.reduceat(share[:, None] * F, begins)[found.sequence]
        gradient = p @ F - observed + limits.l2 * theta
        hessian = (centred * p[:, None]).T @ centred + (limits.l2 + 1e-9) * np.eye(len(theta))
        theta = theta - np.clip(np.linalg.solve(hessian, gradient), -_LONGEST_STEP, _LONGEST_STEP)
        scores = F @ theta
        scores -= np.maximum.reduceat(scores, begins)[found.sequence]
        share = found.share * np.exp(scores)
        share = share / np.add.reduceat(share, begins)[found.sequence]
    return share
