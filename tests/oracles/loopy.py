"""Loopy belief propagation in plain NumPy: synchronous, in the log domain. Nothing of the library is used.

A message from factor f to variable i is
    λ_{f→i}(x_i) = log Σ_{x_f \\ i} exp(score_f + Σ_{j≠i} ν_{j→f}),    ν_{j→f} = Σ_{g∋j, g≠f} λ_{g→j}.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tests.oracles.factor_graphs import Graph
from tests.oracles.oracle import Floats


@dataclass
class Loopy:
    """Finite scores only. `run` goes on until nothing changes by more than 1e-13."""

    graph: Graph
    damping: float = 0.0
    residual: float = np.inf

    def __post_init__(self) -> None:
        counts, factors = self.graph
        self.sent: dict[tuple[int, int], Floats] = {
            (f, v): np.zeros(counts[v]) for f, (scope, _) in enumerate(factors) for v in scope
        }

    def belief(self, v: int) -> Floats:
        parts = [message for (_, u), message in self.sent.items() if u == v]
        return np.sum([np.zeros(self.graph[0][v]), *parts], axis=0)

    def joint(self, f: int, without: int | None = None) -> Floats:
        """score_f + Σ_j ν_{j→f} over all variables of the scope but one."""
        scope, table = self.graph[1][f]
        total = table.copy()
        for axis, v in enumerate(scope):
            if v != without:
                shape = [1] * len(scope)
                shape[axis] = -1
                total = total + (self.belief(v) - self.sent[f, v]).reshape(shape)
        return total

    def run(self, n: int) -> Loopy:
        for _ in range(n):
            fresh = {}
            for f, v in self.sent:
                axes = tuple(a for a, u in enumerate(self.graph[1][f][0]) if u != v)
                message = _log_sum(self.joint(f, v), axes)
                fresh[f, v] = message - message.max()
            self.residual = max(
                (float(np.abs(np.exp(m) - np.exp(self.sent[key])).max()) for key, m in fresh.items()),
                default=0.0,
            )
            if self.residual < 1e-13:
                break
            for key, m in fresh.items():
                old = np.exp(self.sent[key])
                self.sent[key] = np.log(self.damping * old + (1 - self.damping) * np.exp(m))
        return self

    @property
    def of_variables(self) -> list[Floats]:
        return [_normalised(self.belief(v)) for v in range(len(self.graph[0]))]

    @property
    def of_factors(self) -> list[Floats]:
        return [_normalised(self.joint(f)) for f in range(len(self.graph[1]))]

    @property
    def log_partition(self) -> float:
        """Σ_f (E[score_f] + H(b_f)) + Σ_i (1 − number of its factors) H(b_i)."""
        total = 0.0
        for (_, table), b in zip(self.graph[1], self.of_factors, strict=True):
            total += float((b * table).sum()) + _entropy(b)
        for v, b in enumerate(self.of_variables):
            total += (1 - sum(u == v for _, u in self.sent)) * _entropy(b)
        return total


def _log_sum(scores: Floats, axes: tuple[int, ...]) -> Floats:
    high = scores.max()
    return np.asarray(high + np.log(np.exp(scores - high).sum(axis=axes)))


def _normalised(scores: Floats) -> Floats:
    weights = np.exp(scores - scores.max())
    return np.asarray(weights / weights.sum())


def _entropy(b: Floats) -> float:
    some = b[b > 0]
    return -float((some * np.log(some)).sum())
