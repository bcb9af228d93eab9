"""TRON: Newton's method in a trust region, its steps found by conjugate gradients.

Each iteration minimises the model q(s) = g·s + ½ s·H s inside |s| ≤ Δ, about, and believes the model as far as f agrees:
C.-J. Lin and J. J. Moré, Newton's method for large bound-constrained optimization problems, SIAM J. Optim. 9 (1999).
"""

from dataclasses import dataclass
from math import sqrt
from typing import NamedTuple

import numpy as np

from crfkit import _core
from crfkit.optimizers.counted_objective import CountedObjective, Point
from crfkit.optimizers.descent import BatchDescent, Fall, dot, fall, norm
from crfkit.optimizers.protocols import Objective, Vector
from crfkit.optimizers.snapshot import Snapshot
from crfkit.optimizers.truncated_newton import NewtonDescent, TruncatedNewton

ACCEPTED = 1e-4  # η₀: a step is taken when f falls by more than this share of what the model promised
POOR, GOOD = 0.25, 0.75  # η₁, η₂
LEAST, HALF, MOST = 0.25, 0.5, 4.0  # σ₁, σ₂, σ₃: by how much the radius changes
LOOSEST = 0.1  # share of the gradient norm to which a step solves H s = −g, at the loosest
MOST_REJECTED = 60  # Δ is a quarter to the sixtieth then


@dataclass(frozen=True)
class TRON(TruncatedNewton):
    """Trust-region Newton (Lin and Moré 1999), with exact Hessian·vector products.

    It stops by the same rules as `LBFGS`. An iteration takes one gradient and as many Hessian–vector products as its linear
    system needs. Near the minimum the gradient norm falls faster and faster. Where the Hessian has a direction of negative
    curvature, as with partial labels, a step goes along it to the edge of the trust region. It takes no l1 penalty.
    """

    def descent(self, objective: Objective, start: Vector, n_threads: int) -> BatchDescent:
        """A new descent from `start`."""
        return _Descent(objective, start, n_threads)


class ModelStep(NamedTuple):
    """A step s that makes q small, with H s = −g − residual."""

    s: Vector  # [D]
    residual: Vector  # [D]
    at_edge: bool  # |s| = Δ


class Trial(NamedTuple):
    """What became of a step."""

    promised: float  # −q(s)
    fall: float  # f(x) − f(x + s)
    slope: float  # g·s
    length: float  # |s|
    at_edge: bool


def model_step(objective: CountedObjective, point: Point, radius: float, tolerance: float) -> ModelStep:
    """Conjugate gradients for H s = −g from s = 0 until |residual| ≤ tolerance or |s| = radius (Steihaug 1983).

    α = r·r / d·H d;   s ← s + α d;   r ← r − α H d;   β = r'·r' / r·r;   d ← r' + β d
    """
    n = objective.n_threads
    s = np.zeros_like(point.x)
    r = d = -point.gradient
    rr = dot(r, r, n)
    for _ in range(max(len(s), 5)):
        if sqrt(rr) <= tolerance:
            break
        Hd = objective.product(point.x, d)
        dHd = dot(d, Hd, n)
        alpha = rr / dHd if dHd > 0.0 else 0.0
        further = _core.vector_step(s, d, alpha, n)
        if dHd <= 0.0 or norm(further, n) > radius:
            tau = to_edge(s, d, radius, n)
            return ModelStep(_core.vector_step(s, d, tau, n), _core.vector_step(r, Hd, -tau, n), True)
        s, r = further, _core.vector_step(r, Hd, -alpha, n)
        rr, before = dot(r, r, n), rr
        d = _core.vector_step(r, d, rr / before, n)
    return ModelStep(s, r, False)


def to_edge(s: Vector, d: Vector, radius: float, n_threads: int) -> float:
    """τ ≥ 0 with |s + τ d| = radius, by the formula that does not cancel."""
    sd, dd = _core.vector_products(d, s, n_threads)
    ss = dot(s, s, n_threads)
    rest = max(radius * radius - ss, 0.0)
    root = sqrt(sd * sd + dd * rest)
    if sd >= 0.0:
        return rest / (sd + root) if rest else 0.0
    return (root - sd) / dd


def new_radius(radius: float, trial: Trial) -> float:
    """Lin and Moré's rules. α is where f would be least along s, by the parabola through f(x), its slope and f(x + s)."""
    bend = -trial.fall - trial.slope
    alpha = MOST if bend <= 0.0 else max(LEAST, -0.5 * trial.slope / bend)
    reach = alpha * trial.length
    if trial.fall < ACCEPTED * trial.promised:
        return min(reach, HALF * radius)
    if trial.fall < POOR * trial.promised:
        return max(LEAST * radius, min(reach, HALF * radius))
    if trial.fall < GOOD * trial.promised:
        return max(LEAST * radius, min(reach, MOST * radius))
    if trial.at_edge:
        return MOST * radius
    return max(radius, min(reach, MOST * radius))


class _Descent(NewtonDescent):
    """Steps inside a trust region."""

    def __init__(self, objective: Objective, start: Vector, n_threads: int) -> None:
        super().__init__(objective, start, n_threads)
        self._radius = 0.0  # Δ; 0 before the first step, whose Δ is |g|

    def next_point(self) -> Point | None:
        """The first of ever shorter steps that f agrees with; None when rounding hides all they do."""
        self.refine_near_minimum()
        for _ in range(MOST_REJECTED):
            found, trial, seen = self._try_step()
            if seen.hidden and self.objective.is_coarse:
                self.refine()
            elif not seen.certain:
                return None
            elif trial.fall > ACCEPTED * trial.promised:
                return found
        return None

    def _try_step(self) -> tuple[Point, Trial, Fall]:
        """The point at the end of a step; the radius follows from what became of it."""
        objective, point, n = self.objective, self.point, self.objective.n_threads
        first = self._radius == 0.0
        radius = point.norm if first else self._radius
        forcing = min(LOOSEST, sqrt(point.norm / self._first_norm))
        step = model_step(objective, point, radius, forcing * point.norm)
        slope, length = dot(point.gradient, step.s, n), norm(step.s, n)
        promised = -0.5 * (slope - dot(step.s, step.residual, n))
        found = objective.at(_core.vector_step(point.x, step.s, 1.0, n))
        seen = fall(objective, point, found, promised)
        trial = Trial(promised, seen.amount, slope, length, step.at_edge)
        if first:
            radius = min(radius, length)
        self._radius = new_radius(radius, trial) if found.is_finite() else LEAST * min(radius, length)
        return found, trial, seen

    def snapshot(self) -> Snapshot:
        """The trust region too."""
        numbers, arrays = super().snapshot()
        return Snapshot({**numbers, "radius": self._radius}, arrays)

    def restore(self, snapshot: Snapshot) -> None:
        """The trust region too."""
        super().restore(snapshot)
        self._radius = snapshot.number("radius")
