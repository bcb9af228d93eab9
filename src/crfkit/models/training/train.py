"""From training data to weights: what `CRF.fit`, `CRF.partial_fit` and `Parser.fit` do.

A `Task` knows the data and the kind of model, `train` does what all have in common: settings and data are checked, the
model is learned from the data, an optimizer minimises the objective, and the best weights are kept. With a dev set these
are the weights with the highest dev score (the earliest of equals), and `patience` iterations in a row without a higher
one end the run.
"""

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, Protocol, Self, TypeVar

import numpy as np

from crfkit.arrays import Float64s
from crfkit.counts import check_count
from crfkit.errors import UnsupportedError
from crfkit.models.checks import check_time_budget, count_threads
from crfkit.models.graph_settings import GraphSettings
from crfkit.models.settings import CRFSettings, ParserSettings
from crfkit.models.training.checkpoint import Checkpoint, CheckpointRun, check_checkpoint, name_damage
from crfkit.models.training.interruption import terminable
from crfkit.models.training.progress import LOGGER, ProgressCallback, Report, Verbosity
from crfkit.models.training.seconds_left import SecondsLeft
from crfkit.models.warning_types import UnusedStart
from crfkit.objective import Objective
from crfkit.optimizers import AUTO, Choice, History, Outcome, Watch, optimizer_named

SMALL_SHARE = 0.1  # of the weights that two models could have in common
WHOLE = {"value_and_gradient", "hessian_vector"}  # what optimizers need that see all data at once
Model = TypeVar("Model", bound="TrainableModel")
Model_co = TypeVar("Model_co", bound="TrainableModel", covariant=True)


class TrainableModel(Protocol):
    """What training fixes besides the weights [D]."""

    @property
    def n_weights(self) -> int:
        """D."""

    def transfer_weights(self, old: Self, weights: Float64s) -> Float64s:
        """The weights [D] to begin with: those that another model has too, and 0."""

    def find_difference(self, old: Self) -> str | None:
        """Why few weights pass from another model to this one; None where that cannot be seen."""

    def prune(self, weights: Float64s) -> tuple[Self, Float64s]:
        """The same model without weights that are exactly 0, and the weights that are left."""


class EncodedTask(Protocol[Model_co]):
    """Training data in numbers, and the model that was learned from them."""

    @property
    def model(self) -> Model_co:
        """Without its weights."""

    @property
    def labels(self) -> str:
        """How many there are, for people: "9 labels"."""

    def objective(self, n_threads: int, start: Float64s | None) -> Objective:
        """What training minimises; from these weights, where that takes values and gradients of all data alone."""

    def choose(self) -> Choice:
        """The optimizer that suits the data, where "auto" is asked for."""

    def dev_score(self, n_threads: int) -> Callable[[Float64s], float] | None:
        """The score of weights on held-out data, if there are such."""

    def fingerprint(self) -> dict[str, str]:
        """The data, for a checkpoint to compare."""


class Task(Protocol[Model_co]):
    """Data to train on, and the settings of the model."""

    @property
    def sequences(self) -> str:
        """How many there are, for people: "14,041 sequences"."""

    @property
    def settings(self) -> CRFSettings | ParserSettings | GraphSettings:
        """The parameters of the estimator."""

    def check(self, plan: "Plan[Any]") -> None:
        """Refuse a dev set and a metric that have no meaning, before any work."""

    def encode(self, plan: "Plan[Any]", n_threads: int) -> EncodedTask[Model_co]:
        """Learns the model from the data, and warns of what is odd about them."""


class Weighted(NamedTuple, Generic[Model]):
    """A model and its weights [D]."""

    model: Model
    weights: Float64s


@dataclass(frozen=True)
class Plan(Generic[Model]):
    """How to train: the arguments of `fit`."""

    dev: Any = None
    metric: Any = None
    patience: int | None = None
    callback: ProgressCallback | None = None
    time_budget: float | None = None
    checkpoint: Checkpoint | None = None
    start: Weighted[Model] | None = None  # whose weights to begin with
    verbose: Verbosity = False

    def check(self) -> None:
        """Refuse what has no meaning, before any work."""
        for name, value in (("metric", self.metric), ("patience", self.patience)):
            if value is not None and self.dev is None:
                raise UnsupportedError(f"{name} was given without dev, the held-out data that it is about")
        if self.patience is not None:
            check_count("patience", self.patience)
        check_time_budget(self.time_budget)
        if self.checkpoint is not None:
            check_checkpoint(self.checkpoint)


class Trained(NamedTuple, Generic[Model]):
    """What a training run gives."""

    model: Model
    weights: Float64s
    history: History
    n_iter: int
    reason: str  # why it ended: a `StopReason`, or its text with numbers
    choice: Choice


def train(task: Task[Model], plan: Plan[Model]) -> Trained[Model]:
    """Learn what the data call for, minimise the objective, keep the best weights."""
    task.settings.check()
    task.check(plan)
    plan.check()
    with Report(plan.verbose) as report:
        return _train(task, plan, report)


def _train(task: Task[Model], plan: Plan[Model], report: Report) -> Trained[Model]:
    """The same, for arguments that were checked."""
    n_threads = count_threads(task.settings.n_threads)
    run = None if plan.checkpoint is None else CheckpointRun(plan.checkpoint, task.settings, plan.metric)
    report.stage(f"encoding {task.sequences}")
    encoded = task.encode(plan, n_threads)
    model = encoded.model
    report.stage(f"minimising over {model.n_weights:,} weights, for {encoded.labels}")
    start = np.zeros(model.n_weights)
    if plan.start is not None:
        start = _begin(model, plan.start)
    choice = _given_optimizer(task.settings.optimizer) or encoded.choose()
    merging: Float64s | None = None
    if choice.optimizer.needs <= WHOLE:
        merging = start if run is None else run.merging_start(start)
    objective = encoded.objective(n_threads, merging)
    watch = Watch(score=encoded.dev_score(n_threads), patience=plan.patience, seconds=plan.time_budget)
    if run is not None:
        watch = run.wrap(watch, encoded.fingerprint(), choice.optimizer)
    report.expect(SecondsLeft.of(choice.optimizer, plan.time_budget))
    del encoded  # the objective has the data in its own form
    with terminable(), name_damage(plan.checkpoint):
        outcome = objective.minimize(
            choice.optimizer, start, callback=report.callback(plan.callback), n_threads=n_threads, watch=watch
        )
    report.end(outcome)
    return _keep_best(model, outcome, choice)


def _begin(model: Model, first: Weighted[Model]) -> Float64s:
    """The weights to begin with, from those of another model; a warning where they have little in common."""
    start = model.transfer_weights(first.model, first.weights)
    n_used, n_given = (int(np.count_nonzero(weights)) for weights in (start, first.weights))
    used = f"{n_used:,} of the {n_given:,} weights of start are used"
    LOGGER.info("%s, this model has %s", used, f"{len(start):,}")
    if n_used < SMALL_SHARE * min(n_given, len(start)):
        reason = model.find_difference(first.model)
        text = f"{used}, this model has {len(start):,}, and all others begin at 0"
        warnings.warn(text if reason is None else f"{text}: {reason}", UnusedStart, stacklevel=5)
    return start


def _keep_best(model: Model, outcome: Outcome, choice: Choice) -> Trained[Model]:
    """The weights with the highest dev score, where there is one, else the last ones."""
    weights, n_iter = outcome.weights, len(outcome.history) - 1
    if outcome.best is not None:
        weights, n_iter = outcome.best.weights, outcome.best.iteration
    if outcome.note:
        choice = choice._replace(reason=f"{choice.reason}; {outcome.note}")
    return Trained(*model.prune(weights), outcome.history, max(n_iter, 0), outcome.message, choice)


def _given_optimizer(optimizer: Any) -> Choice | None:
    """The optimizer that was asked for; None where it is to be chosen."""
    if optimizer == AUTO:
        return None
    if isinstance(optimizer, str):
        named = optimizer_named(optimizer)
        if named is not None:
            return Choice(named(), f"{named.__name__} was asked for by name")
    return Choice(optimizer, f"{type(optimizer).__name__} was given")
