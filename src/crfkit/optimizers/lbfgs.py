"""L-BFGS, orthant-wise where an l1 penalty asks for it."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from time import perf_counter
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from crfkit.optimizers.landscape import Landscape, Point
from crfkit.optimizers.line_search import orthant_search, wolfe_search
from crfkit.optimizers.pairs import Pairs
from crfkit.optimizers.problem import (
    Callback,
    Objective,
    Outcome,
    Record,
    Step,
    Vector,
    check_match,
    checked_start,
)

# Reasons to stop; the first two count as converged.
FLAT = "the gradient norm fell below the tolerance"
STEADY = "the objective no longer changes"
LIMIT = "the iteration limit was reached"
STOPPED = "the callback asked to stop"
STUCK = "no step lowers the objective any further"
INTERRUPTED = "interrupted"

UNMEASURABLE = 1e-7  # a relative fall per iteration that single precision often does not show


@dataclass(frozen=True)
class LBFGS:
    """Limited-memory BFGS (Nocedal 1980), with an l1 penalty orthant-wise (OWL-QN, Andrew and Gao 2007).

    It stops as soon as one of these holds:

    - |g| ≤ tolerance · |g at the start|, where g is the gradient (with l1 the pseudo-gradient),
    - the objective fell by no more than change · |objective| over the last `period` iterations
      (`change=0` switches this off),
    - `max_iterations` are done.

    With the defaults the objective typically ends within a relative 1e-6 of its minimum.
    `memory` is the number m of steps whose curvature is remembered: 8·m bytes per weight.
    """

    max_iterations: int = 1000
    tolerance: float = 1e-5
    memory: int = 10
    change: float = 1e-6
    period: int = 10

    needs: ClassVar[frozenset[str]] = frozenset({"value_and_gradient"})

    def __post_init__(self) -> None:
        for name, least in (("max_iterations", 0), ("memory", 1), ("period", 1)):
            value = getattr(self, name)
            if not _is_whole(value) or value < least:
                raise ValueError(f"LBFGS got {name}={value!r}, expected a whole number of at least {least}.")
        for name in ("tolerance", "change"):
            value = getattr(self, name)
            if not (_is_whole(value) or isinstance(value, float | np.floating)) or not 0 <= value < inf:
                raise ValueError(
                    f"LBFGS got {name}={value!r}, expected a finite number that is not negative."
                )

    def minimize(
        self,
        objective: Objective,
        start: npt.ArrayLike,
        *,
        callback: Callback | None = None,
        n_threads: int = 1,
    ) -> Outcome:
        """The weights that minimise objective f(w) + Σ l1_i |w_i|, sought from `start` [D].

        `callback` sees each iteration and ends the minimisation by returning True. Ctrl-C ends it too: the
        outcome then has the best weights so far. The same bits come out for any `n_threads`.
        """
        check_match(self, objective)
        if not _is_whole(n_threads) or n_threads < 1:
            raise ValueError(f"minimize got n_threads={n_threads!r}, expected a whole number of at least 1.")
        return _Descent(self, objective, checked_start(objective, start), callback, int(n_threads)).run()


def _is_whole(value: object) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


class _Descent:
    """One minimisation under way."""

    def __init__(
        self, settings: LBFGS, objective: Objective, start: Vector, callback: Callback | None, n_threads: int
    ) -> None:
        self._settings = settings
        self._callback = callback
        self._land = Landscape(objective, n_threads)
        self._pairs = Pairs(settings.memory, len(start), n_threads)
        self._start = start
        self._began = perf_counter()
        self._point: Point | None = None  # the best so far
        self._values: list[float] = []  # the objective by iteration, in the precision of the current one
        self._history: list[Record] = []

    def run(self) -> Outcome:
        """Descends until there is a reason to stop."""
        try:
            reason = self._descend(self._first_point())
        except KeyboardInterrupt:
            reason = INTERRUPTED
        point = self._point
        worse = point is None or point.value > self._values[0]  # by rounding alone
        weights = self._start if point is None or worse else point.x
        return Outcome(
            weights, tuple(self._history), reason in (FLAT, STEADY), reason, self._land.n_evaluations
        )

    def _first_point(self) -> Point:
        point = self._land.at(self._start)
        if not point.is_finite():
            what = f"value {point.value} and gradient norm {point.norm}"
            raise ValueError(f"The objective has {what} at the start, expected finite numbers.")
        self._values.append(point.value)
        self._point = point
        self._note(point)
        return point

    def _descend(self, point: Point) -> str:
        goal = self._settings.tolerance * point.norm
        while True:
            reason = self._reason_to_stop(point, goal)
            if reason is None:
                found = self._next_point(point)
                if found is None:
                    return STUCK
                point = found
                step = self._note(point)
                if self._callback is not None and self._callback(step):
                    return STOPPED
            elif reason == LIMIT:
                return reason
            else:  # nothing counts as converged on the word of single precision
                refined = self._refined(point)
                if refined is None:
                    return reason
                point = refined

    def _reason_to_stop(self, point: Point, goal: float) -> str | None:
        settings, values = self._settings, self._values
        if point.norm <= goal:
            return FLAT
        if settings.change and len(values) > settings.period:
            fall = values[-1 - settings.period] - values[-1]
            if fall <= settings.change * abs(values[-1]):
                return STEADY
        return LIMIT if len(values) > settings.max_iterations else None

    def _next_point(self, point: Point) -> Point | None:
        """The point of the next iteration; None when even the steepest way down leads nowhere."""
        found = self._searched(point)
        while found is None:
            if self._land.is_coarse:
                point = self._refined(point) or point
            elif len(self._pairs):
                self._pairs.clear()
            else:
                return None
            found = self._searched(point)
        self._values.append(found.value)
        self._point = found
        self._pairs.add(found.x, point.x, found.gradient, point.gradient, found.descent)
        if point.value - found.value <= UNMEASURABLE * abs(found.value):
            found = self._refined(found) or found
        return found

    def _searched(self, point: Point) -> Point | None:
        """The point that a line search finds along the direction of the pairs."""
        land = self._land
        if not point.norm > 0.0:  # what looked like a slope was rounding
            return None
        first_step = 1.0 if len(self._pairs) else 1.0 / point.norm
        direction, slope = self._pairs.direction(point.descent)
        if not slope < 0.0:
            return None
        search = wolfe_search if land.l1 is None else orthant_search
        return search(land, point, direction, slope, first_step)

    def _refined(self, point: Point) -> Point | None:
        """The point as the objective sees it in double precision; None when it has nothing better to say.

        While single precision shows no progress beyond its noise, the start may still be the better point.
        """
        noise = self._land.noise
        if not self._land.refine():
            return None
        known = point.value
        x = point.x
        if self._values[0] - known <= noise * abs(known):
            known, x = self._values[0], self._start
        refined = self._land.at(x)
        if not refined.is_finite():
            return None
        shift = refined.value - known
        self._values = [value + shift for value in self._values]
        self._point = refined
        return refined

    def _note(self, point: Point) -> Step:
        """Adds a record to the history."""
        record = Record(len(self._history), perf_counter() - self._began, point.value, point.norm)
        self._history.append(record)
        weights = point.x.view()
        weights.flags.writeable = False
        return Step(*record, weights)
