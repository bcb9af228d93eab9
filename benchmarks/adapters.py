"""What the benchmark asks of a toolkit; one file a toolkit answers it."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import NamedTuple, Protocol, cast

from benchmarks.tasks import Features, Labels


class Tick(NamedTuple):
    """The clocks when an iteration ended, and the objective; the first tick is the start of the descent."""

    cpu: float  # seconds of all threads of the process
    wall: float
    objective: float  # inf at the start


@dataclass
class Clock:
    """Collects the ticks of one training."""

    ticks: list[Tick] = field(default_factory=list)

    def tick(self, objective: float = float("inf")) -> None:
        """Note that an iteration has ended."""
        self.ticks.append(Tick(time.process_time(), time.perf_counter(), objective))


@dataclass(frozen=True)
class Settings:
    """The objective f(w) = NLL + ½·l2·|w|² of a chain without start and end arcs, and how long to descend."""

    l2: float
    all_possible_transitions: bool
    iterations: int
    n_threads: int = 1
    to_convergence: bool = False  # stop before `iterations` when the objective hardly moves


class Toolkit(Protocol):
    """A toolkit that trains chains and tags with them; one object serves one model."""

    def version(self) -> str:
        """Name and version of what is measured."""

    def fit(self, X: Features, y: Labels, settings: Settings, path: Path, clock: Clock) -> None:
        """Train from Python lists (encoding included) and write the model to `path`."""

    def open(self, path: Path, n_threads: int) -> None:
        """Make the model of a file ready to tag."""

    def tag(self, X: Features) -> Labels:
        """The best labels of each sentence, by the model that was opened."""


MODULES = {"crfsuite": "benchmarks.rival_crfsuite", "crfkit": "benchmarks.ours"}


def adapter(name: str) -> Toolkit:
    """The adapter of a toolkit, with the toolkit loaded."""
    return cast(Toolkit, import_module(MODULES[name]).Adapter())
