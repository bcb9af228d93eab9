"""L-BFGS, orthant-wise where an l1 penalty asks for it."""

from dataclasses import dataclass
from typing import ClassVar

from crfkit.optimizers.active_pairs import ActivePairs
from crfkit.optimizers.counted_objective import Point
from crfkit.optimizers.descent import BatchDescent
from crfkit.optimizers.lbfgs_memory import Pairs
from crfkit.optimizers.line_search import orthant_search, wolfe_search
from crfkit.optimizers.loop import Optimizer
from crfkit.optimizers.protocols import Objective, Vector, check_settings
from crfkit.optimizers.snapshot import Snapshot

LEAST_PAIRS, MOST_PAIRS = 10, 30  # how many steps are remembered where no number is given
MOST_ACTIVE_PAIRS = 60  # with l1, where only active weights have pairs
PAIR_BYTES = 1 << 28  # what more than the least may take

# With l1, the first iterations end when the objective falls by no more than this share of it over so many iterations.
EARLY_PERIOD = 5
EARLY_DECREASE = 0.15


@dataclass(frozen=True)
class LBFGS(Optimizer):
    """Limited-memory BFGS (Nocedal 1980), with an l1 penalty orthant-wise (OWL-QN, Andrew and Gao 2007).

    It stops as soon as one of these holds:

    - |g| ≤ tolerance · |g at the start|, where g is the gradient (with l1 the pseudo-gradient),
    - the objective fell by no more than change · |objective| over the last `period` iterations
      (`change=0` switches this off),
    - `max_iterations` are done.

    With the defaults the objective typically ends within a relative 1e-6 of its minimum.
    `memory` is the number m of steps whose curvature is remembered: 8·m bytes per weight, 4·m from 100,000 weights on,
    and with l1 8·m per active weight. None takes 30, with l1 60, or fewer where these would need more than 256 MB, but at
    least 10.
    """

    max_iterations: int = 1000
    tolerance: float = 1e-5
    memory: int | None = None
    change: float = 1e-6
    period: int = 10

    needs: ClassVar[frozenset[str]] = frozenset({"value_and_gradient"})
    takes_l1: ClassVar[bool] = True

    def __post_init__(self) -> None:
        counts = {"max_iterations": 0, "memory": 1, "period": 1}
        if self.memory is None:
            del counts["memory"]
        check_settings(self, counts, ("tolerance", "change"))

    def n_pairs(self, n_weights: int, *, l1: bool = False) -> int:
        """How many steps are remembered where there are so many weights."""
        if self.memory is not None:
            return self.memory
        most = MOST_ACTIVE_PAIRS if l1 else MOST_PAIRS
        return max(LEAST_PAIRS, min(most, PAIR_BYTES // ((8 if l1 else 4) * max(n_weights, 1))))

    def descent(self, objective: Objective, start: Vector, n_threads: int) -> BatchDescent:
        """A new descent from `start`."""
        return _Descent(self, objective, start, n_threads)


class _Descent(BatchDescent):
    """Along the direction of the curvature pairs, as far as a line search goes."""

    def __init__(self, settings: LBFGS, objective: Objective, start: Vector, n_threads: int) -> None:
        super().__init__(objective, start, n_threads)
        self._early = self.objective.l1 is not None  # the first iterations with l1, see orthant_search
        kind = ActivePairs if self._early else Pairs
        self._pairs = kind(settings.n_pairs(len(start), l1=self._early), len(start), n_threads)

    def next_point(self) -> Point | None:
        """The point of a line search; if it fails, of one in double precision, or along steepest descent."""
        found = self._search()
        while found is None:
            if self.objective.is_coarse:
                self.refine()
            elif len(self._pairs):
                self._pairs.clear()
            else:
                return None
            found = self._search()
        return found

    def arrive(self, before: Point) -> None:
        """Keeps the step and what it did to the gradient."""
        point = self.point
        self._pairs.add(point.x, before.x, point.gradient, before.gradient, point.descent)
        if self._early and len(self.values) > EARLY_PERIOD:
            decrease = self.values[-1 - EARLY_PERIOD] - point.value
            self._early = decrease > EARLY_DECREASE * abs(point.value)

    def _search(self) -> Point | None:
        """The point that a line search finds along the direction of the pairs."""
        objective, point = self.objective, self.point
        if not point.norm > 0.0:  # what looked like a slope was rounding
            return None
        first_step = 1.0 if len(self._pairs) else 1.0 / point.norm
        direction, slope = self._pairs.direction(point.descent)
        if not slope < 0.0:
            return None
        if objective.l1 is None:
            return wolfe_search(objective, point, direction, slope, first_step)
        return orthant_search(objective, point, direction, first_step, early=self._early)

    def snapshot(self) -> Snapshot:
        """The pairs too."""
        numbers, arrays = super().snapshot()
        order, pairs = self._pairs.snapshot(self.point.descent)
        return Snapshot({**numbers, "pairs": order, "early": self._early}, {**arrays, **pairs})

    def restore(self, snapshot: Snapshot) -> None:
        """The pairs too."""
        super().restore(snapshot)
        self._pairs.restore(snapshot, self.point.descent)
        self._early = snapshot.flag("early")
