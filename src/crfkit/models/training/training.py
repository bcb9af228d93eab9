"""From training data to weights: what `CRF.fit` and `CRF.partial_fit` do.

With a dev set, the model keeps the weights with the highest dev score (the earliest of equals); the training ends when
`patience` iterations in a row brought no higher one.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from crfkit.evaluation import MetricFunction
from crfkit.models.chain_model import ChainModel
from crfkit.models.constraints import SequencesSkipped, without_labels
from crfkit.models.estimator import UnsavableModel
from crfkit.models.training import checkpoint, parameters
from crfkit.models.training.checkpoint import Checkpoint
from crfkit.models.training.data_warnings import warn_of_training_data
from crfkit.models.training.interruption import terminable
from crfkit.models.training.progress import ProgressCallback, Report, count_of
from crfkit.models.training.training_set import Choices, Lesson
from crfkit.models.training.warm_start import carried, pruned, touched
from crfkit.optimizers import AUTO, Choice, History, StopReason, Watch, choose, optimizer_named

Float64s = npt.NDArray[np.float64]


class Examples(NamedTuple):
    """Training data as the user gives it."""

    X: Any
    y: Any
    sample_weight: npt.ArrayLike | None
    allowed: Any


class Weighted(NamedTuple):
    """A model and its weights [D]."""

    model: ChainModel
    weights: Float64s


@dataclass(frozen=True)
class Plan:
    """How to train, as `CRF.fit` is told."""

    dev: Any = None
    metric: str | MetricFunction | None = None
    patience: int | None = None
    callback: ProgressCallback | None = None
    time_budget: float | None = None
    checkpoint: Checkpoint | None = None
    start: Weighted | None = None  # whose weights to begin with
    extend: bool = False  # keep all that `start` knows
    verbose: bool | int = False

    def check(self) -> None:
        """Refuse what has no meaning, before any work."""
        parameters.check_dev(self.dev, self.metric, self.patience)
        parameters.check_time_budget(self.time_budget)
        if self.checkpoint is not None:
            checkpoint.check(self.checkpoint)


class Trained(NamedTuple):
    """What a training gives."""

    model: ChainModel
    weights: Float64s
    history: History
    n_iter: int
    reason: StopReason
    choice: Choice


def train(params: Mapping[str, Any], examples: Examples, plan: Plan) -> Trained:
    """Learn what the data call for, minimise the objective, keep the best weights."""
    parameters.check_parameters(params)
    plan.check()
    report = Report(plan.verbose)
    n_threads = parameters.thread_count(params["n_threads"])
    settings, saved = {}, None
    if plan.checkpoint is not None:
        settings = checkpoint.settings_of(params, plan.metric)
        saved = checkpoint.open_for(plan.checkpoint, settings)
    report.stage(f"encoding {count_of(examples.X, 'sequences')}")
    lesson = lesson_for(params, examples, plan, n_threads)
    model, kept = lesson.model, lesson.kept
    if plan.dev is not None and len(plan.dev) > 2:
        plan = replace(plan, dev=(*plan.dev[:2], without_labels(plan.dev[2], lesson.gone)))
    weights = parameters.checked_sample_weight(examples.sample_weight, len(kept), kept)
    if plan.checkpoint is not None:
        settings |= checkpoint.data_of(lesson, weights, plan.dev)
    report.stage(f"minimising over {model.n_weights:,} weights, for {len(model.labels):,} labels")
    given = given_optimizer(params["optimizer"])
    objective = lesson.objective(
        l1=params["l1"],
        l2=params["l2"],
        sample_weight=weights,
        n_threads=n_threads,
        fixed=~touched(lesson) if plan.extend else None,
    )
    watch, choice = _watch(plan, model, n_threads), given or choose(objective)
    if plan.checkpoint is not None:
        settings["chosen optimizer"] = type(choice.optimizer).__name__
        watch = checkpoint.watched(watch, plan.checkpoint, settings, saved)
    start = np.zeros(objective.n_weights)
    if plan.start is not None:
        start = carried(plan.start.model, plan.start.weights, model)
    del lesson  # the objective has the data in its own form
    with terminable(), checkpoint.name_damage(plan.checkpoint):
        outcome = choice.optimizer.minimize(
            objective, start, callback=report.callback(plan.callback), n_threads=n_threads, watch=watch
        )
    report.end(outcome)
    found, n_iter = outcome.weights, len(outcome.history) - 1
    if outcome.best is not None:
        found, n_iter = outcome.best.weights, outcome.best.iteration
    if outcome.note:
        choice = choice._replace(reason=f"{choice.reason}; {outcome.note}")
    return Trained(*pruned(model, found), outcome.history, max(n_iter, 0), outcome.reason, choice)


def lesson_for(params: Mapping[str, Any], examples: Examples, plan: Plan, n_threads: int) -> Lesson:
    """The training set in numbers, and what is to be said about it."""
    X, template = parameters.fitting_template(params["features"], examples.X)
    base = None
    if plan.extend and plan.start is not None:
        base = plan.start.model
        template = base.encoder.template
    choices = Choices(
        structure=params["structure"],
        template=template,
        min_count=params["min_count"],
        all_possible_states=params["all_possible_states"],
        all_possible_transitions=params["all_possible_transitions"],
        functions=parameters.functions_of(params["features"]),
        facets=params["facets"],
        tag_dictionary=params["tag_dictionary"],
    )
    lesson = ChainModel.learn(X, examples.y, examples.allowed, choices, n_threads, base)
    if reason := lesson.model.unsavable():
        warnings.warn(f"this model cannot be saved or pickled: {reason}", UnsavableModel, stacklevel=4)
    warn_of_training_data(lesson, params["min_count"], stacklevel=4)
    kept = lesson.kept
    if not kept.all():
        warnings.warn(
            f"{np.count_nonzero(~kept):,} of {len(kept):,} training sequences lie outside the bigrams and were left out",
            SequencesSkipped,
            stacklevel=4,
        )
    return lesson


def _watch(plan: Plan, model: ChainModel, n_threads: int) -> Watch:
    score = None
    if plan.dev is not None:
        score = model.dev_score(*(*plan.dev, None)[:3], metric=plan.metric, n_threads=n_threads)
    return Watch(score=score, patience=plan.patience, seconds=plan.time_budget)


def given_optimizer(optimizer: Any) -> Choice | None:
    """The optimizer that was asked for; None where it is to be chosen."""
    if optimizer == AUTO:
        return None
    if isinstance(optimizer, str):
        named = optimizer_named(optimizer)
        if named is not None:
            return Choice(named(), f"{named.__name__} was asked for by name")
    return Choice(optimizer, f"{type(optimizer).__name__} was given")
