"""Repeated runs of one training put together: the best time of each iteration, and what follows from it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

GAP = 1e-4  # relative distance (f − f*) / f* that counts as arrived


def clock_of(n_threads: int) -> str:
    """One thread: CPU seconds, which other work on the machine does not stretch; more threads: wall clock."""
    return "cpu" if n_threads == 1 else "wall"


@dataclass(frozen=True)
class Curve:
    """A descent: iteration k took seconds[k] and arrived at objectives[k]."""

    seconds: tuple[float, ...]
    objectives: tuple[float, ...]

    @property
    def seconds_per_iteration(self) -> float:
        """The mean over all iterations: line searches and the optimizer's own work included."""
        return sum(self.seconds) / len(self.seconds)

    def first(self, n: int) -> Curve:
        """The first n iterations."""
        return Curve(self.seconds[:n], self.objectives[:n])

    def seconds_to_gap(self, optimum: float) -> float:
        """Seconds from the start of the descent until (f − f*) / f* ≤ 1e-4; inf when it never was."""
        elapsed = 0.0
        for seconds, objective in zip(self.seconds, self.objectives, strict=True):
            elapsed += seconds
            if objective <= optimum * (1 + GAP):
                return elapsed
        return math.inf


def pooled(runs: Sequence[dict[str, Any]], n_threads: int) -> Curve:
    """The curve of runs that make the same descent, some further: of each iteration the least seconds."""
    column = ("cpu", "wall").index(clock_of(n_threads))
    longest = max(runs, key=lambda run: len(run["ticks"]))
    times = [[run["descent_start"][column], *(tick[column] for tick in run["ticks"])] for run in runs]
    durations = [[after - before for before, after in pairwise(t)] for t in times]
    best = [min(d[k] for d in durations if k < len(d)) for k in range(len(longest["ticks"]))]
    return Curve(tuple(best), tuple(tick[2] for tick in longest["ticks"]))
