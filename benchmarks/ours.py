"""crfkit through its public names."""

from __future__ import annotations

from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

import crfkit
from benchmarks.adapters import Clock, Settings
from benchmarks.tasks import Features, Labels


@dataclass(frozen=True)
class _TimedLBFGS(crfkit.LBFGS):
    """crfkit's L-BFGS that ticks a clock at each iteration."""

    clock: Clock = field(default_factory=Clock, compare=False)

    def minimize(self, objective: Any, start: Any, *, callback: Any = None, n_threads: int = 1) -> Any:
        """As crfkit.LBFGS.minimize."""

        def tick(step: Any) -> bool:
            self.clock.tick(step.objective)
            return callback is not None and bool(callback(step))

        self.clock.tick()
        return super().minimize(objective, start, callback=tick, n_threads=n_threads)


class Adapter:
    """Answers `benchmarks.adapters.Toolkit`."""

    def __init__(self) -> None:
        self._model: Any = None

    def version(self) -> str:
        """Name and version of what is measured."""
        return f"crfkit {version('crfkit')}"

    def fit(self, X: Features, y: Labels, settings: Settings, path: Path, clock: Clock) -> None:
        """Train from Python lists and write the model."""
        stop = (
            {"tolerance": 1e-7, "change": 1e-8}
            if settings.to_convergence
            else {"tolerance": 0.0, "change": 0.0}
        )
        model = crfkit.CRF(
            structure=crfkit.Chain(start=False, end=False),
            optimizer=_TimedLBFGS(max_iterations=settings.iterations, clock=clock, **stop),
            l2=settings.l2,
            all_arcs=settings.all_arcs,
            n_threads=settings.n_threads,
        )
        model.fit(X, y)
        model.save(path)

    def open(self, path: Path, n_threads: int) -> None:
        """Make the model of a file ready to tag."""
        self._model = crfkit.load(path)
        self._model.set_params(n_threads=n_threads)

    def tag(self, X: Features) -> Labels:
        """The best labels of each sentence."""
        labels: Labels = self._model.predict(X)
        return labels
