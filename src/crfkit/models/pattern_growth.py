"""Growth: training that finds the label n-grams that pay, longer ones out of those that did (`crfkit.structures.Growth`).

A candidate is absent as long as its weight is 0. With it in the trellis at weight 0, its gradient is exactly E − O: how
often the model of now expects it, less how often it occurs. With V the variance of its count, a Newton step on this weight
alone lowers the objective by about ½ (E − O)² / (V + l2). V is on the diagonal of the Hessian: a few products with vectors s
of random signs estimate all of it, since the mean of s ∘ H s is that diagonal; and it is E at most.
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
from crfkit.models import parameters
from crfkit.models.chain_model import ChainModel
from crfkit.models.growth import carried
from crfkit.models.training import Examples, Plan, Trained, Weighted, lesson_for, train
from crfkit.structures import ANYWHERE, Gram, Growth, Pattern, Patterns, windows

Float64s = npt.NDArray[np.float64]
Int32s = npt.NDArray[np.int32]

_MOST_CANDIDATES = 20_000  # of a round, the most frequent
_PROBES = 8  # products with the Hessian


class GrowthRound(NamedTuple):
    """A round of growth, after its training."""

    n_patterns: int  # that have grown until here
    longest: int  # labels of the longest of them
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
    parameters.check_parameters(params)
    plan.check()
    structure: Patterns = params["structure"]
    part, dev = _apart(examples, plan, structure.grow)  # type: ignore[arg-type]
    begin = perf_counter()
    rounds, texts, last = _rounds(params, part, replace(plan, checkpoint=None, resume=False, dev=dev))
    if plan.time_budget is not None:
        left = max(plan.time_budget - (perf_counter() - begin), 1e-3)
        plan = replace(plan, time_budget=left)
    first = Weighted(last.model, last.weights) if plan.start is None or not plan.extend else plan.start
    trained = train(_with(params, texts), examples, replace(plan, start=first))
    patterns = trained.model.patterns
    assert patterns is not None
    asked = replace(trained.model, patterns=replace(patterns, structure=structure))
    return Grown(trained._replace(model=asked), rounds)


def _rounds(
    params: Mapping[str, Any], part: Examples, plan: Plan
) -> tuple[list[GrowthRound], list[str], Trained]:
    """All rounds; the n-grams of the best one, and its training."""
    growth: Growth = params["structure"].grow
    n_threads = parameters.thread_count(params["n_threads"])
    begin = perf_counter()
    still = replace(plan, dev=None, metric=None, patience=None)
    trained = train(_with(params, []), part, still)
    kept: list[Gram] = []
    rounds = [_measured(trained.model, trained.weights, kept, plan, n_threads)]
    best, chosen, idle = trained, list[str](), 0
    while idle < growth.patience:
        if plan.time_budget is not None and 2 * (perf_counter() - begin) > plan.time_budget:
            break
        joined = _joining(params, part, still, trained, kept)
        if not joined:
            break
        kept += joined
        labels = trained.model.labels.classes
        texts = [gram.text(labels) for gram in kept]
        start = Weighted(trained.model, trained.weights)
        trained = train(_with(params, texts), part, replace(still, start=start))
        rounds.append(_measured(trained.model, trained.weights, kept, plan, n_threads))
        if rounds[-1].log_likelihood > max(earlier.log_likelihood for earlier in rounds[:-1]):
            best, chosen, idle = trained, texts, 0
        else:
            idle += 1
    return rounds, chosen, best


def _measured(
    model: ChainModel, weights: Float64s, kept: Sequence[Gram], plan: Plan, n_threads: int
) -> GrowthRound:
    X, y, allowed = (*plan.dev, None)[:3]
    score = model.dev_score(X, y, allowed, metric=plan.metric, n_threads=n_threads)
    longest = max((len(gram.labels) for gram in kept), default=0)
    dataset, known = model.encode(X, allowed), set(model.labels.classes)
    gold = [[label if isinstance(label, set) or label in known else None for label in labels] for labels in y]
    annotation = model.labels.encode(gold, np.diff(dataset.sequence_ptr))
    tagger, design = model.tagger(weights), model.design(dataset, n_threads)
    of_gold = tagger.log_partitions(design, annotation.labels, annotation.sets, n_threads)
    log_likelihood = float(np.sum(of_gold - tagger.log_partitions(design, n_threads=n_threads)))
    return GrowthRound(len(kept), longest, score(weights), log_likelihood)


def _joining(
    params: Mapping[str, Any], part: Examples, plan: Plan, trained: Trained, kept: Sequence[Gram]
) -> list[Gram]:
    """The candidates that pay most at the weights of a trained model."""
    growth: Growth = params["structure"].grow
    n_threads = parameters.thread_count(params["n_threads"])
    labels = trained.model.labels.classes
    names = set(trained.model.patterns.names)  # type: ignore[union-attr]
    lesson = lesson_for(_with(params, [gram.text(labels) for gram in kept]), part, plan, n_threads)
    weights = parameters.checked_sample_weight(part.sample_weight, len(lesson.kept), lesson.kept)
    counts = {
        gram: count
        for gram, count in _candidates(
            lesson.annotation.labels, lesson.dataset.sequence_ptr, weights, growth, kept
        ).items()
        if gram.text(labels) not in names
    }
    if not counts:
        return []
    texts = [gram.text(labels) for gram in (*kept, *counts)]
    lesson = lesson_for(_with(params, texts), part, plan, n_threads)
    objective: Any = lesson.objective(
        l1=0.0, l2=params["l2"], sample_weight=weights, stochastic=False, n_threads=n_threads
    )
    model = lesson.model
    start = carried(trained.model, trained.weights, model)
    gradient = objective.value_and_gradient(start)[1]
    place = {name: model.feature_map.n_weights + i for i, name in enumerate(model.patterns.names)}  # type: ignore[union-attr]
    at = np.array([place[gram.text(labels)] for gram in counts])
    expected = np.maximum(gradient[at] + np.array(list(counts.values())), 0.0)
    l1, l2 = _strengths(model, params, at)
    variances = np.minimum(_diagonal(objective, start, at) - l2, expected)
    gains = _gains(gradient[at], variances, l1, l2)
    order = np.argsort(-gains, kind="stable")[: growth.per_round]
    grams = list(counts)
    return [grams[i] for i in order.tolist() if gains[i] >= max(growth.min_gain, 1e-12)]


def _strengths(
    model: ChainModel, params: Mapping[str, Any], at: npt.NDArray[Any]
) -> tuple[Float64s, Float64s]:
    """The l1 and the l2 of the weights at these places."""
    both = (np.broadcast_to(model.penalty(name, params[name]), model.n_weights)[at] for name in ("l1", "l2"))
    l1, l2 = both
    return l1, l2


def _diagonal(objective: Any, w: Float64s, at: npt.NDArray[Any]) -> Float64s:
    """The diagonal of the Hessian at these weights, estimated."""
    random = np.random.default_rng(0)
    total = np.zeros(len(at))
    for _ in range(_PROBES):
        signs = random.choice([-1.0, 1.0], size=len(at))
        v = np.zeros_like(w)
        v[at] = signs
        total += signs * objective.hessian_vector(w, v)[at]
    return total / _PROBES


def _gains(gradient: Float64s, variances: Float64s, l1: Float64s, l2: Float64s) -> Float64s:
    """½ (|E − O| − l1)² / (V + l2), 0 where l1 holds the weight at 0."""
    slope = np.maximum(np.abs(gradient) - l1, 0.0)
    gains: Float64s = 0.5 * slope**2 / (np.maximum(variances, 0.1 * np.abs(gradient)) + l2 + 1e-12)
    return gains


def _candidates(
    ids: Int32s, ptr: npt.NDArray[np.int64], weights: Float64s | None, growth: Growth, kept: Sequence[Gram]
) -> dict[Gram, float]:
    """The n-grams that extend a kept one, or a bigram, by one label, and their counts, the most frequent first."""
    known = {gram.labels for gram in kept}
    found: dict[Gram, float] = {}
    for length in range(3, min(growth.order + 1, max(map(len, known), default=2) + 1) + 1):
        runs, counts, sums = windows(ids, ptr, length, weights)
        for run, count, total in zip(map(tuple, runs.tolist()), counts.tolist(), sums.tolist(), strict=True):
            extends = length == 3 or run[1:] in known or run[:-1] in known
            if count >= growth.min_count and extends and run not in known:
                found[Gram(ANYWHERE, run)] = total
    order = sorted(found, key=lambda gram: -found[gram])[:_MOST_CANDIDATES]
    return {gram: found[gram] for gram in order}


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
