"""crfkit through its public names."""

from __future__ import annotations

from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import ClassVar, cast

import numpy.typing as npt

import crfkit
from benchmarks.adapters import Clock, Settings
from benchmarks.tasks import Features, Labels
from crfkit.optimizers import LBFGS, Callback, Objective, Optimizer, Outcome, Step, Watch

ENDLESS = LBFGS(tolerance=0.0, change=0.0)
CONVERGED = LBFGS(tolerance=1e-7, change=1e-8)


@dataclass(frozen=True)
class _TimedLBFGS:
    """crfkit's L-BFGS, ticking a clock when it starts and at each iteration."""

    lbfgs: LBFGS
    clock: Clock
    needs: ClassVar[frozenset[str]] = LBFGS.needs
    takes_l1: ClassVar[bool] = LBFGS.takes_l1

    def minimize(
        self,
        objective: Objective,
        start: npt.ArrayLike,
        *,
        callback: Callback | None = None,
        n_threads: int = 1,
        watch: Watch | None = None,
    ) -> Outcome:
        """As LBFGS.minimize."""

        def tick(step: Step) -> bool:
            self.clock.tick(step.objective)
            return callback is not None and bool(callback(step))

        self.clock.tick()
        return self.lbfgs.minimize(objective, start, callback=tick, n_threads=n_threads, watch=watch)


class Adapter:
    """Answers `benchmarks.adapters.Toolkit`."""

    def __init__(self) -> None:
        self._model = crfkit.CRF()

    def version(self) -> str:
        """Name and version of what is measured."""
        return f"crfkit {version('crfkit')}"

    def fit(self, X: Features, y: Labels, settings: Settings, path: Path, clock: Clock) -> None:
        """Train from Python lists and write the model."""
        lbfgs = CONVERGED if settings.to_convergence else ENDLESS
        model = crfkit.CRF(
            structure=crfkit.Chain(start=False, end=False),
            optimizer=cast(Optimizer, _TimedLBFGS(replace(lbfgs, max_iterations=settings.iterations), clock)),
            l2=settings.l2,
            all_possible_transitions=settings.all_possible_transitions,
            n_threads=settings.n_threads,
        )
        model.fit(X, y)
        model.save(path)

    def open(self, path: Path, n_threads: int) -> None:
        """Make the model of a file ready to tag."""
        self._model = crfkit.load(path).set_params(n_threads=n_threads)

    def tag(self, X: Features) -> Labels:
        """The best labels of each sentence."""
        return self._model.predict(X)
