"""python-crfsuite: CRFsuite's L-BFGS, which has one thread. It minimises NLL + c2·|w|², so c2 = ½·l2."""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path

import pycrfsuite

from benchmarks.adapters import Clock, Settings
from benchmarks.tasks import Features, Labels

NEVER = {"period": 1_000_000, "delta": 0.0, "epsilon": 1e-12}  # no early stop
CONVERGED = {"period": 10, "delta": 1e-7, "epsilon": 1e-7}


class _TimedTrainer(pycrfsuite.Trainer):  # type: ignore[misc]
    """Reads the training log as it is written: a few short strings an iteration, nothing is printed."""

    clock: Clock

    def message(self, message: str) -> None:
        """A piece of the log; the loss is the objective, penalty included."""
        if message.startswith("Loss: "):
            self.clock.tick(float(message.removeprefix("Loss: ")))
        elif message.startswith("L-BFGS optimization"):
            self.clock.tick()


class Adapter:
    """Answers `benchmarks.adapters.Toolkit`."""

    def __init__(self) -> None:
        self._tagger = pycrfsuite.Tagger()

    def version(self) -> str:
        """Name and version of what is measured."""
        return f"python-crfsuite {version('python-crfsuite')}"

    def fit(self, X: Features, y: Labels, settings: Settings, path: Path, clock: Clock) -> None:
        """Train from Python lists and write the model."""
        trainer = _TimedTrainer("lbfgs", self._params(settings))
        trainer.clock = clock
        for features, labels in zip(X, y, strict=True):
            trainer.append(features, labels)
        trainer.train(str(path))

    @staticmethod
    def _params(settings: Settings) -> dict[str, float]:
        return {
            "c1": 0.0,
            "c2": settings.l2 / 2,
            "max_iterations": settings.iterations,
            "feature.possible_states": 0,
            "feature.possible_transitions": int(settings.all_possible_transitions),
            **(CONVERGED if settings.to_convergence else NEVER),
        }

    def open(self, path: Path, n_threads: int) -> None:
        """Make the model of a file ready to tag."""
        self._tagger.open(str(path))

    def tag(self, X: Features) -> Labels:
        """The best labels of each sentence."""
        tag = self._tagger.tag
        return [tag(features) for features in X]
