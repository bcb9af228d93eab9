"""Newton's method with a line search, its directions found by conjugate gradients.

The rules are those of today's linear classifiers: L. Galli and C.-J. Lin, A study on truncated Newton methods for linear
classification, IEEE TNNLS 33 (2022), for the stopping of the conjugate gradients.
"""

from dataclasses import dataclass
from math import sqrt

import numpy as np

from crfkit import _core
from crfkit.optimizers.counted_objective import CountedObjective, Point
from crfkit.optimizers.descent import BatchDescent, dot, fall
from crfkit.optimizers.protocols import Objective, Vector
from crfkit.optimizers.truncated_newton import NewtonDescent, TruncatedNewton

SUFFICIENT = 0.01  # η: f falls by at least this share of what the slope promises
MOST_HALVINGS = 20
LOOSEST = 0.5  # of the stopping of the conjugate gradients
FLATTEST = 1e-16  # d·H d / d·d up to which there is no curvature to go by


@dataclass(frozen=True)
class Newton(TruncatedNewton):
    """Truncated Newton with a backtracking line search, as today's linear solvers do it.

    It stops by the same rules as `LBFGS`. Where the Hessian has a direction of negative curvature, as with partial labels,
    the direction found until then is kept. It takes no l1 penalty.
    """

    change: float = 1e-12

    def descent(self, objective: Objective, start: Vector, n_threads: int) -> BatchDescent:
        """A new descent from `start`."""
        return _Descent(objective, start, n_threads)


def newton_direction(objective: CountedObjective, point: Point) -> Vector:
    """Conjugate gradients for H s = −g from s = 0.

    They end at step k when k (Q_k − Q_{k−1}) ≥ ε Q_k, where Q_k = g·s_k + ½ s_k·H s_k is what the model promises and
    ε = min(½, √|g|): when one more step would bring little of what the last k have brought on average.
    """
    n = objective.n_threads
    s = np.zeros_like(point.x)
    r = d = -point.gradient
    rr = dot(r, r, n)
    enough = min(LOOSEST, sqrt(sqrt(rr)))
    Q = 0.0
    for k in range(1, max(len(s), 5) + 1):
        Hd = objective.product(point.x, d)
        dHd, dd = dot(d, Hd, n), dot(d, d, n)
        if dHd <= FLATTEST * dd:
            return d if k == 1 else s
        alpha = rr / dHd
        s, r = _core.vector_step(s, d, alpha, n), _core.vector_step(r, Hd, -alpha, n)
        before, Q = Q, -0.5 * (dot(s, r, n) - dot(s, point.gradient, n))
        if min(before, 0.0) < Q or k * (Q - before) >= enough * Q:
            break
        rr, last = dot(r, r, n), rr
        d = _core.vector_step(r, d, rr / last, n)
    return s


class _Descent(NewtonDescent):
    """Along Newton directions, halving the step until f falls enough."""

    def next_point(self) -> Point | None:
        """The end of the first step that lowers f enough, in double precision where single shows none."""
        self.refine_near_minimum()
        found = self._search()
        if found is None and self.objective.is_coarse and self.refine():
            found = self._search()
        return found

    def _search(self) -> Point | None:
        objective, point, n = self.objective, self.point, self.objective.n_threads
        direction = newton_direction(objective, point)
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
