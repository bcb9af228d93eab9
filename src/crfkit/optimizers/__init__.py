"""Optimizers: they minimise f(w) + Σ l1_i |w_i| over w and know nothing of conditional random fields.

An optimizer declares in `needs` what it asks of an objective, and raises TypeError for one that cannot answer. It brings a
`Descent`; stopping, history, callbacks, snapshots and resuming are the same loop for all. A new optimizer is a module here
and a line in `OPTIMIZERS`.
"""

from typing import Any

from crfkit.optimizers.adagrad import AdaGrad
from crfkit.optimizers.arow import AROW
from crfkit.optimizers.auto import AUTO, Choice, choose
from crfkit.optimizers.averaged_perceptron import AveragedPerceptron
from crfkit.optimizers.history import History, Record
from crfkit.optimizers.lbfgs import LBFGS
from crfkit.optimizers.loop import Best, Callback, Descent, Optimizer, Outcome, Step, Watch
from crfkit.optimizers.newton import Newton
from crfkit.optimizers.passive_aggressive import PassiveAggressive
from crfkit.optimizers.protocols import DivergenceError, Objective, OptimizationError
from crfkit.optimizers.sag import SAG
from crfkit.optimizers.sgd import SGD
from crfkit.optimizers.snapshot import Snapshot, SnapshotError
from crfkit.optimizers.stop_reason import StopReason
from crfkit.optimizers.tron import TRON

__all__ = [
    "AROW",
    "AUTO",
    "LBFGS",
    "OPTIMIZERS",
    "SAG",
    "SGD",
    "TRON",
    "AdaGrad",
    "AveragedPerceptron",
    "Best",
    "Callback",
    "Choice",
    "Descent",
    "DivergenceError",
    "History",
    "Newton",
    "Objective",
    "OptimizationError",
    "Optimizer",
    "Outcome",
    "PassiveAggressive",
    "Record",
    "Snapshot",
    "SnapshotError",
    "Step",
    "StopReason",
    "Watch",
    "choose",
    "optimizer_named",
]

OPTIMIZERS: dict[str, type[Any]] = {
    "adagrad": AdaGrad,
    "arow": AROW,
    "averaged_perceptron": AveragedPerceptron,
    "lbfgs": LBFGS,
    "newton": Newton,
    "passive_aggressive": PassiveAggressive,
    "sag": SAG,
    "sgd": SGD,
    "tron": TRON,
}
"""The optimizers by the names that `optimizer=` takes."""
_SHORT_NAMES = {"ap": "averaged_perceptron", "pa": "passive_aggressive"}


def optimizer_named(name: str) -> type[Any] | None:
    """The optimizer of this name, long or short; None where there is none."""
    return OPTIMIZERS.get(_SHORT_NAMES.get(name, name))
