"""The training algorithms of CRFsuite and their parameters: names, defaults and meanings."""

import math
import re
from typing import Any, NamedTuple

ALIASES = {"ap": "averaged-perceptron", "pa": "passive-aggressive"}
GRAPHICAL_MODEL = "crf1d"
UNLIMITED = 2**31 - 1
_NUMBER = re.compile(r"\s*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
_INT = re.compile(r"\s*[+-]?\d+")


def whole(text: str) -> int:
    """The number that a text begins with, 0 where there is none: what C makes of it."""
    found = _INT.match(text)
    return int(found[0]) if found else 0


def decimal(text: str) -> float:
    """As `whole`, with a fraction."""
    found = _NUMBER.match(text)
    value = float(found[0]) if found else 0.0
    return value if math.isfinite(value) else 0.0


def switch(text: str) -> bool:
    """On for every number but 0."""
    return bool(whole(text))


class Parameter(NamedTuple):
    """What can be set."""

    default: Any
    meaning: str
    counts: bool = False  # a whole number, though it is given back as a float

    def read(self, value: Any) -> Any:
        """A value of this parameter's type from what a user gives."""
        text = str(int(value)) if isinstance(value, bool) else str(value)
        if isinstance(self.default, bool):
            return switch(text)
        if isinstance(self.default, int):
            return whole(text)
        if self.counts:
            return float(whole(text))
        return decimal(text) if isinstance(self.default, float) else text


_FEATURES = {
    "feature.minfreq": Parameter(0.0, "Features that occur less often than this are left out."),
    "feature.possible_states": Parameter(
        False, "Give every attribute a weight for every label, not only for those it occurs with."
    ),
    "feature.possible_transitions": Parameter(
        False, "Give every pair of labels a weight, not only those that occur side by side."
    ),
}
_C2 = Parameter(1.0, "Strength of the L2 penalty c2·|w|².")
_PERIOD = Parameter(10, "The number of iterations over which `delta` is looked at.")
_PASSES = Parameter(100, "The largest number of passes over the data.")

ALGORITHMS: dict[str, dict[str, Parameter]] = {
    "lbfgs": {
        **_FEATURES,
        "c1": Parameter(0.0, "Strength of the L1 penalty c1·|w|."),
        "c2": _C2,
        "max_iterations": Parameter(UNLIMITED, "The largest number of iterations; 0: no limit."),
        "num_memories": Parameter(
            6,
            "The number of steps whose curvature is remembered; 6, the default, leaves it to the optimizer.",
        ),
        "epsilon": Parameter(1e-5, "Stop when |gradient| < epsilon · max(1, |w|)."),
        "period": _PERIOD,
        "delta": Parameter(
            1e-5, "Stop when the objective fell by less than this share of it over `period` iterations."
        ),
        "linesearch": Parameter(
            "MoreThuente",
            "'MoreThuente', 'Backtracking' or 'StrongBacktracking'; taken and ignored: the line search is one of its own.",
        ),
        "max_linesearch": Parameter(20, "Taken and ignored: the line search has a limit of its own."),
    },
    "l2sgd": {
        **_FEATURES,
        "c2": _C2,
        "max_iterations": Parameter(1000, "The largest number of passes over the data; never more than 100."),
        "period": _PERIOD,
        "delta": Parameter(
            1e-6, "Stop when the objective fell by less than this share of it over `period` passes."
        ),
        "calibration.eta": Parameter(0.1, "The first learning rate to try."),
        "calibration.rate": Parameter(2.0, "The factor from one learning rate to the next."),
        "calibration.samples": Parameter(
            1000.0, "The number of instances that learning rates are tried on.", counts=True
        ),
        "calibration.candidates": Parameter(
            10, "The number of learning rates that must do better than none."
        ),
        "calibration.max_trials": Parameter(20, "The largest number of learning rates to try."),
    },
    "averaged-perceptron": {
        **_FEATURES,
        "max_iterations": _PASSES,
        "epsilon": Parameter(
            0.0,
            "Stop when wrong label sequences score above the right ones by less than this, in the mean of all instances.",
        ),
    },
    "passive-aggressive": {
        **_FEATURES,
        "type": Parameter(1, "0: without slack variables, 1: PA type I, 2: PA type II."),
        "c": Parameter(1.0, "How far a step may go."),
        "error_sensitive": Parameter(True, "The margin grows with the number of wrong labels."),
        "averaging": Parameter(True, "Learn the mean of the weights over all steps."),
        "max_iterations": _PASSES,
        "epsilon": Parameter(0.0, "Stop when the mean loss of an instance is below this."),
    },
    "arow": {
        **_FEATURES,
        "variance": Parameter(1.0, "The variance of every weight at the start."),
        "gamma": Parameter(1.0, "How much a single mistake counts for less."),
        "max_iterations": _PASSES,
        "epsilon": Parameter(0.0, "Stop when the mean loss of an instance is not above this."),
    },
}


def defaults(algorithm: str) -> dict[str, Any]:
    """The parameters of an algorithm as they are before anybody sets them."""
    return {name: parameter.default for name, parameter in ALGORITHMS[algorithm].items()}
