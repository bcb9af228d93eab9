"""Newton's method with a line search, its directions found by preconditioned conjugate gradients.

The rules are those of today's linear classifiers: L. Galli and C.-J. Lin, A study on truncated Newton methods for linear
classification, IEEE TNNLS 33 (2022), for the stopping of the conjugate gradients; C.-Y. Hsia, W.-L. Chiang and C.-J. Lin,
Preconditioned conjugate gradient methods in truncated Newton frameworks for large-scale linear classification, ACML 2018,
for the preconditioner.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from typing import ClassVar

import numpy as np

from crfkit import _core
from crfkit.optimizers.counted_objective import CountedObjective, Point
from crfkit.optimizers.descent import BatchDescent, dot, fall
from crfkit.optimizers.loop import Minimizer
from crfkit.optimizers.protocols import Objective, Vector, check_settings
from crfkit.optimizers.snapshot import Snapshot

SUFFICIENT = 0.01  # η: f falls by at least this share of what the slope promises
MOST_HALVINGS = 20
LOOSEST = 0.5  # of the stopping of the conjugate gradients
DIAGONAL = 0.01  # share of diag(H) in the preconditioner
FLATTEST = 1e-16  # d·H d / d·d up to which there is no curvature to go by
ROUGH = 1e-2  # |g| / |g at the start| from which on gradients are worth all their digits


@dataclass(frozen=True)
class Newton(Minimizer):
    """Truncated Newton with a backtracking line search, as today's linear solvers do it.

    It stops as soon as one of these holds:

    - |g| ≤ tolerance · |g at the start|,
    - the objective fell by no more than change · |objective| over the last `period` iterations
      (`change=0` switches this off),
    - `max_iterations` are done.

    Where the Hessian has a direction of negative curvature, as with partial labels, the direction found until then is kept.
    It takes no l1 penalty.
    """

    max_iterations: int = 200
    tolerance: float = 1e-3
    change: float = 1e-12
    period: int = 1

    needs: ClassVar[frozenset[str]] = frozenset({"value_and_gradient", "hessian_vector"})
    takes_l1: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check_settings(self, {"max_iterations": 0, "period": 1}, ("tolerance", "change"))

    def descent(self, objective: Objective, start: Vector, n_threads: int) -> BatchDescent:
        """The way downhill."""
        return _Descent(objective, start, n_threads)


def newton_direction(objective: CountedObjective, point: Point, M: Vector | None) -> Vector:
    """Conjugate gradients for H s = −g, preconditioned by the diagonal M [D] (None: 1), from s = 0.

    They end at step k when k (Q_k − Q_{k−1}) ≥ ε Q_k, where Q_k = g·s_k + ½ s_k·H s_k is what the model promises and
    ε = min(½, √|g|_{M⁻¹}): when one more step would bring little of what the last k have brought on average.
    """
    n = objective.n_threads
    s = np.zeros_like(point.x)
    r = -point.gradient
    z = d = r if M is None else r / M
    zr = dot(z, r, n)
    enough = min(LOOSEST, sqrt(sqrt(zr)))
    Q = 0.0
    for k in range(1, max(len(s), 5) + 1):
        Hd = objective.product(point.x, d)
        dHd, dd = dot(d, Hd, n), dot(d, d, n)
        if dHd <= FLATTEST * dd:
            return d if k == 1 else s
        alpha = zr / dHd
        s, r = _core.vector_step(s, d, alpha, n), _core.vector_step(r, Hd, -alpha, n)
        before, Q = Q, -0.5 * (dot(s, r, n) - dot(s, point.gradient, n))
        if min(before, 0.0) < Q or k * (Q - before) >= enough * Q:
            break
        z = r if M is None else r / M
        zr, last = dot(z, r, n), zr
        d = _core.vector_step(z, d, zr / last, n)
    return s


class _Descent(BatchDescent):
    """Along Newton directions, halving the step until f falls enough."""

    def __init__(self, objective: Objective, start: Vector, n_threads: int) -> None:
        super().__init__(objective, start, n_threads)
        self._first_norm = 0.0

    def begin(self, start: Vector) -> None:
        """Stands at the start."""
        super().begin(start)
        self._first_norm = self.point.norm

    def next_point(self) -> Point | None:
        """The end of the first step that lowers f enough, in double precision where single shows none."""
        if self.objective.is_coarse and self.point.norm <= ROUGH * self._first_norm:
            self.refine()
        found = self._searched()
        if found is None and self.objective.is_coarse and self.refine():
            found = self._searched()
        return found

    def _searched(self) -> Point | None:
        objective, point, n = self.objective, self.point, self.objective.n_threads
        diagonal = objective.curvatures(point.x)
        direction = newton_direction(
            objective, point, None if diagonal is None else 1.0 - DIAGONAL + DIAGONAL * diagonal
        )
        slope = dot(point.gradient, direction, n)
        step = 1.0
        for _ in range(MOST_HALVINGS):
            found = objective.at(_core.vector_step(point.x, direction, step, n))
            seen = fall(objective, point, found, -step * slope)
            if (seen.hidden and objective.is_coarse) or not seen.certain:
                return None
            if seen.amount >= -SUFFICIENT * step * slope > 0.0:
                return found
            step *= 0.5
        return None

    def snapshot(self) -> Snapshot:
        """The gradient norm at the start too."""
        numbers, arrays = super().snapshot()
        return Snapshot({**numbers, "first_norm": self._first_norm}, arrays)

    def restore(self, snapshot: Snapshot) -> None:
        """The gradient norm at the start too."""
        super().restore(snapshot)
        self._first_norm = snapshot.number("first_norm")
