"""Growth: training that finds the patterns that pay (`crfkit.structures.Growth`).

Round by round: samples of the model of now (`pattern_samples`) show what it gets wrong, candidates that would mend it are
chosen on these samples (`pattern_choice`), and the model is trained with them. Rounds go on while they make held-out data
more likely.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import compress
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from crfkit.data import InputError
from crfkit.models.chain_model import ChainModel
from crfkit.models.patterns.choice import Limits, chosen
from crfkit.models.patterns.samples import candidate_counts, label_sequences
from crfkit.models.training import parameters
from crfkit.models.training.interruption import terminable
from crfkit.models.training.progress import Progress, ProgressCallback
from crfkit.models.training.training import (
    Examples,
    Plan,
    Trained,
    Weighted,
    train,
)
from crfkit.optimizers import StopReason
from crfkit.structures import Growth, Pattern, Patterns

Float64s = npt.NDArray[np.float64]

_LATELY, _LITTLE = 10, 3e-4  # iterations, and the share of the objective that they took off
_SIZED = 100  # sequences whose trellises are looked at before patterns join


class GrowthRound(NamedTuple):
    """A round of growth, after its training."""

    joined: tuple[str, ...]  # the patterns that it added
    n_patterns: int  # that have grown until here
    n_states: float  # of a position, on average
    score: float  # on held-out data
    log_likelihood: float  # of the held-out data: it decides, since it tells small steps apart


class Grown(NamedTuple):
    """A training, and how it came to its patterns."""

    trained: Trained
    rounds: list[GrowthRound]


def growth_of(structure: object) -> Growth | None:
    """How a structure wants its patterns to grow, if it does."""
    growth = structure.grow if isinstance(structure, Patterns) else None
    return growth if isinstance(growth, Growth) else None


def grown(params: Mapping[str, Any], examples: Examples, plan: Plan) -> Grown:
    """Grow patterns on a part of the data, measured on the rest; then train on all of it."""
    with terminable():
        return _grown(params, examples, plan)


def _grown(params: Mapping[str, Any], examples: Examples, plan: Plan) -> Grown:
    parameters.check_parameters(params)
    plan.check()
    structure: Patterns = params["structure"]
    part, dev = _apart(examples, plan, structure.grow)  # type: ignore[arg-type]
    begin = perf_counter()
    rounds, texts, trained, ended = _rounds(params, part, replace(plan, checkpoint=None, dev=dev))
    if not ended:
        if plan.time_budget is not None:
            left = max(plan.time_budget - (perf_counter() - begin), 1e-3)
            plan = replace(plan, time_budget=left)
        start = Weighted(trained.model, trained.weights)
        trained = train(_with(params, texts), examples, replace(plan, start=start))
    patterns = trained.model.patterns
    assert patterns is not None
    names = set(patterns.names)
    found = tuple(Pattern(text) for text in texts if text in names)
    asked = replace(trained.model, patterns=replace(patterns, structure=structure, found=found))
    return Grown(trained._replace(model=asked), rounds)


class _Rounds(NamedTuple):
    """What the rounds came to."""

    rounds: list[GrowthRound]
    texts: list[str]  # the patterns of the best one
    trained: Trained  # its training
    ended: bool  # by the user: nothing is to follow


def _rounds(params: Mapping[str, Any], part: Examples, plan: Plan) -> _Rounds:
    """All rounds."""
    growth: Growth = params["structure"].grow
    n_threads = parameters.thread_count(params["n_threads"])
    begin = perf_counter()
    watcher = _Settled(plan.callback)
    still = replace(plan, dev=None, metric=None, patience=None, callback=watcher)
    texts: list[str] = []
    trained = train(_with(params, texts), part, still)
    rounds = [_measured(trained, [], 0, plan, n_threads)]
    best, kept, idle = trained, texts, 0
    while idle < growth.patience and not watcher.has_ended(trained):
        if plan.time_budget is not None and 2 * (perf_counter() - begin) > plan.time_budget:
            break
        try:
            joined = _joining(params, part, trained, texts, n_threads)
        except KeyboardInterrupt:
            trained = trained._replace(reason=StopReason.INTERRUPTED)
            break
        if not joined:
            break
        texts = texts + joined
        start = Weighted(trained.model, trained.weights)
        watcher.begin()
        trained = train(_with(params, texts), part, replace(still, start=start))
        rounds.append(_measured(trained, joined, len(texts), plan, n_threads))
        if rounds[-1].log_likelihood > max(earlier.log_likelihood for earlier in rounds[:-1]):
            best, kept, idle = trained, texts, 0
        else:
            idle += 1
    ended = watcher.has_ended(trained)
    return _Rounds(rounds, kept, best._replace(reason=trained.reason) if ended else best, ended)


class _Settled:
    """A callback that ends a training when little more is to be gained: what a round of growth needs is no exact optimum.

    `also` is the callback of a user, who may end all of it.
    """

    def __init__(self, also: ProgressCallback | None) -> None:
        self._also = also
        self._asked = False  # by the user
        self.begin()

    def begin(self) -> None:
        """Another training is to follow."""
        self._objectives: list[float] = []

    def __call__(self, progress: Progress) -> bool:
        """Whether the training is to end."""
        self._asked = self._asked or (self._also is not None and bool(self._also(progress)))
        self._objectives.append(progress.objective)
        lately = self._objectives[-_LATELY - 1 :]
        return self._asked or (len(lately) > _LATELY and lately[0] - lately[-1] < _LITTLE * abs(lately[-1]))

    def has_ended(self, trained: Trained) -> bool:
        """Whether the user ended the growth: by the callback, or by Ctrl-C in this training."""
        return self._asked or trained.reason == StopReason.INTERRUPTED


def _measured(
    trained: Trained, joined: Sequence[str], n_patterns: int, plan: Plan, n_threads: int
) -> GrowthRound:
    model, weights = trained.model, trained.weights
    X, y, allowed = (*plan.dev, None)[:3]
    score = model.dev_score(X, y, allowed, metric=plan.metric, n_threads=n_threads)
    dataset, known = model.encode(X, allowed), set(model.labels.classes)
    gold = [[label if isinstance(label, set) or label in known else None for label in labels] for labels in y]
    annotation = model.labels.encode(gold, np.diff(dataset.sequence_ptr))
    answerer, design = model.answerer(weights), model.design(dataset, n_threads)
    of_gold = answerer.log_partitions(design, annotation.labels, annotation.sets, n_threads)
    possible = np.isfinite(of_gold)  # constraints may exclude what is held out, in every round the same
    of_all = answerer.log_partitions(design, n_threads=n_threads)
    log_likelihood = float(np.sum(of_gold[possible] - of_all[possible]))
    n_states = _mean_states(model, X, allowed, n_threads)
    return GrowthRound(tuple(joined), n_patterns, n_states, score(weights), log_likelihood)


def _joining(
    params: Mapping[str, Any], part: Examples, trained: Trained, known: Sequence[str], n_threads: int
) -> list[str]:
    """The patterns that pay at the weights of a trained model, as many as its trellises have room for."""
    growth: Growth = params["structure"].grow
    model = trained.model
    weight = parameters.checked_sample_weight(part.sample_weight, len(part.y), np.ones(len(part.y), np.bool_))
    samples = label_sequences(model, trained.weights, part, weight, n_threads)
    counts = candidate_counts(samples, model, growth)
    strengths = (_strength(params[name], default) for name, default in (("l1", 0.0), ("l2", 1.0)))
    limits = Limits(growth.per_round, growth.min_gain, growth.min_count, *strengths)
    taken = {*known, *model.patterns.names} if model.patterns is not None else set(known)
    joined = chosen(samples, counts, taken, limits)
    while joined and not _has_room(params, part, model, [*known, *joined], n_threads):
        joined = joined[: 3 * len(joined) // 4]
    return joined


def _has_room(
    params: Mapping[str, Any], part: Examples, model: ChainModel, texts: Sequence[str], n_threads: int
) -> bool:
    """Whether the trellises with these patterns are as small as the growth wants them."""
    growth: Growth = params["structure"].grow
    patterns = model.patterns
    assert patterns is not None
    new = tuple(Pattern(text) for text in texts if text not in patterns.names)
    larger = replace(model, patterns=replace(patterns, found=new))
    step = max(1, len(part.y) // _SIZED)
    allowed = None if part.allowed is None else part.allowed[::step]
    try:
        n_states = _mean_states(larger, part.X[::step], allowed, n_threads)
    except InputError:  # a position has more than the structure allows
        return False
    return n_states <= growth.max_states * len(model.labels)


def _mean_states(model: ChainModel, X: Any, allowed: Any, n_threads: int) -> float:
    """The states of a position, on average over the first sequences."""
    X, allowed = X[:_SIZED], None if allowed is None else allowed[:_SIZED]
    if model.patterns is None or not model.patterns.n_weights:
        return float(len(model.labels))
    trellises = model.design(model.encode(X, allowed), n_threads)
    sizes = np.concatenate([np.zeros(0), *(trellises.sizes(n)[0] for n in range(len(X)))])
    return float(sizes.sum() / max(len(sizes), 1))


def _strength(given: Any, default: float) -> float:
    """The penalty that patterns have."""
    return float(
        given.get("patterns", given.get("default", default)) if isinstance(given, Mapping) else given
    )


def _with(params: Mapping[str, Any], texts: Sequence[str]) -> dict[str, Any]:
    """The parameters with these patterns beside those of the structure, and no growth."""
    structure: Patterns = params["structure"]
    more = [Pattern(text) for text in texts]
    return {**params, "structure": replace(structure, patterns=(*structure.patterns, *more), grow=None)}


def _apart(examples: Examples, plan: Plan, growth: Growth) -> tuple[Examples, Any]:
    """The data to grow on, and the data to measure with: those of the plan, or a share of the training sequences."""
    X, y, allowed = (
        list(part) if part is not None else None for part in (examples.X, examples.y, examples.allowed)
    )
    if plan.dev is not None:
        return Examples(X, y, examples.sample_weight, allowed), plan.dev
    assert X is not None
    assert y is not None
    every = max(round(1 / growth.held_out), 2)
    held = np.arange(len(y)) % every == every - 1
    if not held.any() or len(X) != len(y):
        raise InputError(
            f"growth holds out one of {every} training sequences, got {len(y)}: expected more, or a dev set"
        )

    def some(part: Any, which: npt.NDArray[np.bool_]) -> Any:
        return None if part is None else list(compress(part, which))

    rest = Examples(*(some(part, ~held) for part in (X, y, examples.sample_weight, allowed)))
    return rest, (some(X, held), some(y, held), some(allowed, held))
