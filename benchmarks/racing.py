"""One training of the optimizers' benchmark, in a process of its own: a toolkit and one of its methods.

The clock stands still while the objective is evaluated for the record and while the test part is tagged. What comes
out is a list of marks, one an iteration: CPU seconds, passes over the data, objective, test accuracy.
"""

from __future__ import annotations

import dataclasses
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, ClassVar, NamedTuple, cast

import numpy as np
import numpy.typing as npt

import crfkit
from benchmarks.problems import PROBLEMS, Data, Problem
from crfkit.evaluation import accuracy
from crfkit.optimizers import OPTIMIZERS, Optimizer, Outcome, Step, Watch

Float64s = npt.NDArray[np.float64]
ONLINE = ("averaged_perceptron", "passive_aggressive", "arow")  # methods without an objective of ours
STOCHASTIC = ("sgd", "adagrad", "sag")  # methods whose history has no objective, or an estimate of it


@dataclasses.dataclass(frozen=True)
class Entry:
    """Who takes part: a toolkit, one of its methods, and how far it goes."""

    problem: str
    toolkit: str  # "crfkit" or "crfsuite"
    method: str
    iterations: int
    settings: dict[str, Any] = dataclasses.field(default_factory=dict)
    part: float = 1.0  # share of the sequences
    scored: bool = False  # whether the test part is tagged after each iteration


class Mark(NamedTuple):
    """After an iteration."""

    seconds: float  # CPU
    passes: float
    objective: float | None
    accuracy: float | None


class StopWatch:
    """CPU seconds, less those that were spent on looking."""

    def __init__(self) -> None:
        self._began = time.process_time()
        self._looking = 0.0

    def seconds(self) -> float:
        """Until now."""
        return time.process_time() - self._began - self._looking

    def look(self, function: Callable[[], float]) -> float:
        """Call a function while the watch stands still."""
        began = time.process_time()
        found = function()
        self._looking += time.process_time() - began
        return found


@dataclasses.dataclass(frozen=True)
class _Timed:
    """An optimizer of ours with a watch: notes a mark after each iteration."""

    inner: Optimizer
    marks: list[Mark]
    method: str
    takes_l1: ClassVar[bool] = False

    @property
    def needs(self) -> frozenset[str]:
        """As the optimizer inside."""
        return self.inner.needs

    def minimize(
        self,
        objective: Any,
        start: npt.ArrayLike,
        *,
        callback: Any = None,
        n_threads: int = 1,
        watch: Watch | None = None,
    ) -> Outcome:
        """As the optimizer inside; its own objective is replaced by the true one at the weights of the iteration."""
        clock = StopWatch()

        def tell(step: Step) -> bool:
            value: float | None = None
            if self.method not in ONLINE:
                value = step.objective
                if self.method in STOCHASTIC:
                    value = clock.look(lambda: float(objective.value_and_gradient(step.weights)[0]))
            self.marks.append(Mark(clock.seconds(), step.passes, value, step.dev_score))
            return False

        if watch is not None and watch.score is not None:
            score = watch.score
            watch = dataclasses.replace(watch, score=lambda w: clock.look(lambda: score(w)))
        found: Outcome = self.inner.minimize(
            objective, start, callback=tell, n_threads=n_threads, watch=watch
        )
        return found


def ours(entry: Entry, problem: Problem, data: Data) -> list[Mark]:
    """crfkit."""
    inner = OPTIMIZERS[entry.method](max_iterations=entry.iterations, **entry.settings)
    marks: list[Mark] = []
    model = crfkit.CRF(
        structure=crfkit.Chain(start=False, end=False),
        optimizer=cast(Optimizer, _Timed(inner, marks, entry.method)),
        l2=problem.l2,
        all_possible_transitions=False,
        n_threads=1,
    )
    dev = (data.X_test, data.y_test) if entry.scored else None
    model.fit(data.X, data.y, dev=dev, metric=None if dev is None else "accuracy")
    if not entry.scored:
        marks[-1] = marks[-1]._replace(accuracy=accuracy(data.y_test, model.predict(data.X_test)))
    return marks


def rival(entry: Entry, problem: Problem, data: Data) -> list[Mark]:
    """python-crfsuite; the objective of its last iteration is evaluated by us, for its stochastic log has another one."""
    from benchmarks.rival_methods import LoggedTrainer, objective_of

    trainer = LoggedTrainer(entry.method, {**_rival_settings(entry, problem), **entry.settings})
    for features, labels in zip(data.X, data.y, strict=True):
        trainer.append(features, labels, 0)
    if entry.scored:
        for features, labels in zip(data.X_test, data.y_test, strict=True):
            trainer.append(features, labels, 1)
    with TemporaryDirectory() as folder:
        path = str(Path(folder) / "model")
        trainer.train(path, holdout=1 if entry.scored else -1)
        marks = [Mark(*mark) for mark in trainer.marks]
        if entry.method == "l2sgd":
            marks[-1] = marks[-1]._replace(objective=objective_of(path, data, problem.l2))
    return marks


def _rival_settings(entry: Entry, problem: Problem) -> dict[str, Any]:
    settings: dict[str, Any] = {"max_iterations": entry.iterations, "feature.possible_transitions": False}
    if entry.method in ("lbfgs", "l2sgd"):
        settings["c2"] = problem.l2 / 2
    if entry.method == "lbfgs":
        settings |= {"period": 10, "delta": 1e-7, "epsilon": 1e-7}
    elif entry.method == "l2sgd":
        settings |= {"delta": 0.0}
    else:
        settings |= {"epsilon": 0.0}
    return settings


def main() -> None:
    """Run the entry given as JSON in the first argument."""
    entry = Entry(**json.loads(sys.argv[1]))
    problem = PROBLEMS[entry.problem]
    data = problem.read().first(entry.part)
    marks = (ours if entry.toolkit == "crfkit" else rival)(entry, problem, data)
    print(json.dumps(marks))


if __name__ == "__main__":
    main()
