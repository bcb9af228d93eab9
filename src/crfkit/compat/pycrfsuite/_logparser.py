"""Reads the training log while it is written, and reports its events.

start              the first message
featgen_progress   another two percent of the features are there
featgen_end        all of them
prepared           training begins; or prepare_error, where it cannot
iteration          an iteration has ended: its numbers are in `last_iteration`
optimization_end   training has ended
end                the model is written
"""

import re
from collections.abc import Callable
from fractions import Fraction
from typing import Any, NamedTuple


class LabelScore(NamedTuple):
    """How well a label does on held-out data; precision, recall and f1 are None for a label that does not occur."""

    match: int
    model: int
    ref: int
    precision: float | None
    recall: float | None
    f1: float | None


_DECIMAL = r"(\d+\.\d+)"
_NUMBERS: dict[str, tuple[re.Pattern[str], Callable[[str], Any]]] = {
    "loss": (re.compile(f"Loss: {_DECIMAL}"), float),
    "feature_norm": (re.compile(f"Feature norm: {_DECIMAL}"), float),
    "error_norm": (re.compile(f"Error norm: {_DECIMAL}"), float),
    "active_features": (re.compile(r"Active features: (\d+)"), int),
    "linesearch_trials": (re.compile(r"Line search trials: (\d+)"), int),
    "linesearch_step": (re.compile(f"Line search step: {_DECIMAL}"), float),
    "time": (re.compile(f"Seconds required for this iteration: {_DECIMAL}"), float),
}
_HEAD = re.compile(r"\*{5} (?:Iteration|Epoch) #(\d+) \*{5}\n")
_SECONDS = re.compile(f"Seconds required: {_DECIMAL}")
_TOTAL_SECONDS = re.compile(f"Total seconds required for training: {_DECIMAL}")
_N_FEATURES = re.compile(r"Number of features: (\d+)")
_MEANS = re.compile(rf"Macro-average precision, recall, F1: \({_DECIMAL}, {_DECIMAL}, {_DECIMAL}\)")
_ACCURACY = re.compile(r"(Item|Instance) accuracy: (\d+) / (\d+)")
_LABEL = re.compile(r"    (.+): \((\d+), (\d+), (\d+)\) \((\d\.\d+|\*+), (\d\.\d+|\*+), (\d\.\d+|\*+)\)")
_PROGRESS = frozenset([".", *map(str, range(11))])
_STEP = 2  # percent


class TrainLogParser:
    """The contents of the log so far.

    iterations, last_iteration : dicts with num, loss, feature_norm, time and so on; with held-out data also scores
        ({label: LabelScore}), avg_precision, avg_recall, avg_f1, item_accuracy and instance_accuracy
    featgen_percent, featgen_num_features, featgen_seconds, training_seconds, storing_seconds : None before they are known
    log, events : all messages, and (event, first message, behind its last message)
    """

    def __init__(self) -> None:
        self.state: str | None = None
        self.featgen_percent = -_STEP
        self.featgen_num_features: int | None = None
        self.featgen_seconds: float | None = None
        self.training_seconds: float | None = None
        self.storing_seconds: float | None = None
        self.iterations: list[dict[str, Any]] = []
        self.last_iteration: dict[str, Any] | None = None
        self.log: list[str] = []
        self.events: list[tuple[str, int, int]] = []

    def feed(self, line: str) -> str | None:
        """Read the next message; the event that it completes, if any."""
        self.log.append(line)
        if self.state is None:
            self.state = "STARTING"
            self._starting(line)
            self.events.append(("start", 0, len(self.log)))
            return "start"
        readers = {
            "STARTING": self._starting,
            "FEATGEN": self._featgen,
            "AFTER_FEATGEN": self._after_featgen,
            "ITERATION": self._iteration,
            "AFTER_ITERATION": self._after_iteration,
            "STORING": self._storing,
        }
        event = readers[self.state](line)
        if event is not None:
            # The message that shows that these are over belongs to what comes next.
            early = event in ("prepared", "optimization_end")
            self.events.append((event, self.events[-1][2], len(self.log) - early))
        return event

    @property
    def last_log(self) -> str:
        """The messages of the last event."""
        _, begin, end = self.events[-1]
        return "".join(self.log[begin:end])

    def _starting(self, line: str) -> str | None:
        if line.startswith("Feature generation"):
            self.state = "FEATGEN"
        return None

    def _featgen(self, line: str) -> str | None:
        if line in _PROGRESS:
            self.featgen_percent += _STEP
            return "featgen_progress"
        if found := _N_FEATURES.match(line):
            self.featgen_num_features = int(found[1])
        elif found := _SECONDS.match(line):
            self.featgen_seconds = float(found[1])
            self.state = "AFTER_FEATGEN"
            return "featgen_end"
        return None

    def _after_featgen(self, line: str) -> str | None:
        if _HEAD.match(line):
            self._begin_iteration(line)
            return "prepared"
        if "terminated with error" in line:
            self.state = "AFTER_ITERATION"
            return "prepare_error"
        return None

    def _begin_iteration(self, line: str) -> None:
        head = _HEAD.match(line)
        self.state = "ITERATION"
        self.last_iteration = {"num": int(head[1]) if head else 0, "scores": {}}
        self.iterations.append(self.last_iteration)

    def _iteration(self, line: str) -> str | None:
        if line == "\n":
            self.state = "AFTER_ITERATION"
            return "iteration"
        if _HEAD.match(line):
            self._begin_iteration(line)
        elif self.last_iteration is not None:
            self.last_iteration.update(_numbers(line))
            if found := _LABEL.match(line):
                shares = [None if "*" in part else float(part) for part in found.groups()[4:]]
                self.last_iteration["scores"][found[1]] = LabelScore(*map(int, found.groups()[1:4]), *shares)
        return None

    def _after_iteration(self, line: str) -> str | None:
        if _HEAD.match(line):
            self._begin_iteration(line)
        elif found := _TOTAL_SECONDS.match(line):
            self.training_seconds = float(found[1])
        elif line.startswith("Storing the model"):
            self.state = "STORING"
            return "optimization_end"
        return None

    def _storing(self, line: str) -> str | None:
        if line == "\n":
            return "end"
        if found := _SECONDS.match(line):
            self.storing_seconds = float(found[1])
        return None


def _numbers(line: str) -> dict[str, Any]:
    """The numbers in a line of an iteration."""
    for key, (pattern, kind) in _NUMBERS.items():
        if found := pattern.match(line):
            return {key: kind(found[1])}
    if found := _MEANS.match(line):
        return dict(zip(("avg_precision", "avg_recall", "avg_f1"), map(float, found.groups()), strict=True))
    if found := _ACCURACY.match(line):
        share = Fraction(int(found[2]), int(found[3]) or 1)
        name = f"{found[1].lower()}_accuracy"
        return {name: share, f"{name}_float": float(share)}
    return {}
