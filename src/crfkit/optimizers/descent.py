"""What the descents that see the whole objective have in common: a point, its precision, and how to go on from a file."""

from math import inf, sqrt
from typing import Any, NamedTuple

from crfkit import _core
from crfkit.optimizers.counted_objective import CountedObjective, Point
from crfkit.optimizers.more_thuente import drowns
from crfkit.optimizers.protocols import Objective, OptimizationError, Vector
from crfkit.optimizers.snapshot import Snapshot

UNMEASURABLE = 1e-7  # a relative fall per iteration that single precision often does not show
VISIBLE = 1e-14  # a promised fall, relative to f, that gradients can still confirm


class BatchDescent:
    """From point to point over the whole data; `next_point` is left to each method."""

    def __init__(self, objective: Objective, start: Vector, n_threads: int) -> None:
        self.objective = CountedObjective(objective, n_threads)
        self.values: list[float] = []  # the objective by iteration, in the precision of the current one
        self._start = start
        self._point: Point | None = None

    @property
    def point(self) -> Point:
        """Where it is."""
        assert self._point is not None
        return self._point

    @property
    def passes(self) -> float:
        """Over the data, until now."""
        return self.objective.passes

    @property
    def n_evaluations(self) -> int:
        """Calls of value_and_gradient."""
        return self.objective.n_evaluations

    def begin(self, start: Vector) -> None:
        """Starts at `start`."""
        self._start = start
        point = self.objective.at(start)
        if not point.is_finite():
            what = f"value {point.value} and gradient norm {point.norm}"
            raise OptimizationError(f"The objective has {what} at the start, expected finite numbers.")
        self.values.append(point.value)
        self._point = point

    def advance(self) -> bool:
        """Goes on to the next point; False when no step leads downhill."""
        found = self.next_point()
        if found is None:
            return False
        before = self.point
        self.values.append(found.value)
        self._point = found
        self.arrive(before)
        if before.value - found.value <= UNMEASURABLE * abs(found.value):
            self.refine()
        return True

    def next_point(self) -> Point | None:
        """The point of the next iteration; None when even steepest descent finds none."""
        raise NotImplementedError

    def arrive(self, before: Point) -> None:
        """Learns from the step from `before` to the point where it is now."""

    def refine(self) -> bool:
        """Asks for double precision; True when the point is seen otherwise then.

        While single precision shows no progress beyond its noise, the start may still be the better point.
        """
        noise = self.objective.noise
        if not self.objective.refine():
            return False
        known, x = self.point.value, self.point.x
        if self.values[0] - known <= noise * abs(known):
            known, x = self.values[0], self._start
        refined = self.objective.at(x)
        if not refined.is_finite():
            return False
        shift = refined.value - known
        self.values = [value + shift for value in self.values]
        self._point = refined
        return True

    def best(self) -> Vector:
        """The weights [D] to keep: the last ones, unless the start was better by rounding alone."""
        worse = self._point is None or self._point.value > self.values[0]
        return self._start if self._point is None or worse else self._point.x

    def snapshot(self) -> Snapshot:
        """Point, precision, counts; a method adds its own."""
        point = self.point
        numbers: dict[str, Any] = {
            "values": list(self.values),
            "value": point.value,
            "penalty": point.penalty,
            "coarse": self.objective.is_coarse,
            "n_evaluations": self.objective.n_evaluations,
            "n_products": self.objective.n_products,
        }
        return Snapshot(numbers, {"x": point.x, "gradient": point.gradient})

    def restore(self, snapshot: Snapshot) -> None:
        """Resumes from a snapshot."""
        objective, n_weights = self.objective, len(self._start)
        self._start, x, gradient = (snapshot.vector(name, n_weights) for name in ("start", "x", "gradient"))
        if not snapshot.flag("coarse"):
            objective.refine()
        objective.n_evaluations, objective.n_products = (
            snapshot.count("n_evaluations"),
            snapshot.count("n_products"),
        )
        self.values = snapshot.series("values")
        self._point = objective.known_point(x, snapshot.number("value"), snapshot.number("penalty"), gradient)


class Fall(NamedTuple):
    """How far f falls from one point to another."""

    amount: float
    hidden: bool  # rounding hides it: it is worked out from the gradients
    certain: bool  # False: not even the gradients show that anything was gained


def fall(objective: CountedObjective, before: Point, after: Point, promised: float) -> Fall:
    """f(x) − f(x') where `promised` was expected.

    Where that drowns in rounding, by the slopes at both ends: −½ (g + g')·(x' − x), exact for a quadratic.
    """
    change = after.value - before.value if after.is_finite() else inf
    size = abs(before.value)
    if not drowns(promised, change, objective.noise * size):
        return Fall(-change, hidden=False, certain=True)
    n = objective.n_threads
    s = _core.vector_step(after.x, before.x, -1.0, n)
    amount = -0.5 * (dot(before.gradient, s, n) + dot(after.gradient, s, n))
    return Fall(amount, hidden=True, certain=after.norm < before.norm or promised > VISIBLE * size)


def dot(a: Vector, b: Vector, n_threads: int) -> float:
    """a·b, the same bits for any number of threads."""
    return _core.vector_products(a, b, n_threads)[0]


def norm(a: Vector, n_threads: int) -> float:
    """|a|."""
    return sqrt(_core.vector_products(a, a, n_threads)[1])
