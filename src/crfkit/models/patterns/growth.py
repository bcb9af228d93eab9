"""Growth: training that finds the patterns that pay (`crfkit.structures.Growth`).

Round by round: samples from the current model (`samples`) show what it gets wrong, candidates that would mend it are
chosen on these samples (`choice`), and the model is trained with them. Rounds go on while they make held-out data
more likely.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import compress
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from crfkit.errors import ArgumentError, InputError
from crfkit.models.chain_model import ChainModel
from crfkit.models.checks import count_threads, read_sample_weight
from crfkit.models.kinds.patterns import PatternPotentials
from crfkit.models.patterns.choice import Limits, choose_candidates
from crfkit.models.patterns.samples import candidate_counts, label_sequences
from crfkit.models.training.crf_task import CRFTask
from crfkit.models.training.dev_score import make_dev_score
from crfkit.models.training.held_out import log_likelihood
from crfkit.models.training.interruption import terminable
from crfkit.models.training.progress import Progress, ProgressCallback
from crfkit.models.training.train import Plan, Trained, Weighted, train
from crfkit.models.training.training_set import Examples
from crfkit.optimizers import StopReason
from crfkit.structures import Growth, Pattern, Patterns

ChainPlan = Plan[ChainModel]

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
    """A training run, and how it chose its patterns."""

    trained: Trained[ChainModel]
    rounds: list[GrowthRound]


@terminable()
def grow(task: CRFTask, plan: ChainPlan) -> Grown:
    """Grow patterns on a part of the data, measured on the rest; then train on all of it."""
    task.settings.check()
    task.check(plan)
    plan.check()
    structure = _structure(task)
    part, dev = _hold_out(task.examples, plan, _growth(task))
    begin = perf_counter()
    rounds, texts, trained, ended = _run_rounds(
        replace(task, examples=part), replace(plan, checkpoint=None, dev=dev)
    )
    if not ended:
        if plan.time_budget is not None:
            left = max(plan.time_budget - (perf_counter() - begin), 1e-3)
            plan = replace(plan, time_budget=left)
        start = Weighted(trained.model, trained.weights)
        trained = train(_add_patterns(task, texts), replace(plan, start=start))
    model, potentials = trained.model, _potentials(trained.model)
    names = set(potentials.pattern_names)
    found = tuple(Pattern(text) for text in texts if text in names)
    patterns = replace(potentials.patterns, structure=structure, found=found)
    asked = replace(model, potentials=replace(potentials, patterns=patterns))
    return Grown(trained._replace(model=asked), rounds)


def _structure(task: CRFTask) -> Patterns:
    structure = task.settings.structure
    assert isinstance(structure, Patterns)
    return structure


def _growth(task: CRFTask) -> Growth:
    growth = task.settings.kind.growth(task.settings.structure)
    assert growth is not None
    return growth


def _potentials(model: ChainModel) -> PatternPotentials:
    assert isinstance(model.potentials, PatternPotentials)
    return model.potentials


class _Rounds(NamedTuple):
    """What the rounds came to."""

    rounds: list[GrowthRound]
    texts: list[str]  # the patterns of the best one
    trained: Trained[ChainModel]  # its training
    ended: bool  # by the user: nothing is to follow


def _run_rounds(task: CRFTask, plan: ChainPlan) -> _Rounds:
    """All rounds."""
    growth, n_threads = _growth(task), count_threads(task.settings.n_threads)
    begin = perf_counter()
    watcher = _Settled(plan.callback)
    still = replace(plan, dev=None, metric=None, patience=None, callback=watcher)
    texts: list[str] = []
    trained = train(_add_patterns(task, texts), still)
    rounds = [_measure(trained, [], 0, plan, task.settings.decode, n_threads)]
    best, kept, idle = trained, texts, 0
    while idle < growth.patience and not watcher.has_ended(trained):
        if plan.time_budget is not None and 2 * (perf_counter() - begin) > plan.time_budget:
            break
        try:
            joined = _find_joining(task, trained, texts, n_threads)
        except KeyboardInterrupt:
            trained = trained._replace(reason=str(StopReason.INTERRUPTED))
            break
        if not joined:
            break
        texts = texts + joined
        start = Weighted(trained.model, trained.weights)
        watcher.begin()
        trained = train(_add_patterns(task, texts), replace(still, start=start))
        rounds.append(_measure(trained, joined, len(texts), plan, task.settings.decode, n_threads))
        if rounds[-1].log_likelihood > max(earlier.log_likelihood for earlier in rounds[:-1]):
            best, kept, idle = trained, texts, 0
        else:
            idle += 1
    ended = watcher.has_ended(trained)
    return _Rounds(rounds, kept, best._replace(reason=trained.reason) if ended else best, ended)


class _Settled:
    """A callback that ends a training run when little more is to be gained: a round of growth needs no exact optimum.

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
        """Whether to end training."""
        self._asked = self._asked or (self._also is not None and bool(self._also(progress)))
        self._objectives.append(progress.objective)
        lately = self._objectives[-_LATELY - 1 :]
        return self._asked or (len(lately) > _LATELY and lately[0] - lately[-1] < _LITTLE * abs(lately[-1]))

    def has_ended(self, trained: Trained[ChainModel]) -> bool:
        """Whether the user ended the growth: by the callback, or by Ctrl-C in this training."""
        return self._asked or trained.reason == StopReason.INTERRUPTED


def _measure(
    trained: Trained[ChainModel],
    joined: Sequence[str],
    n_patterns: int,
    plan: ChainPlan,
    decode: str,
    n_threads: int,
) -> GrowthRound:
    model, weights = trained.model, trained.weights
    X, _, allowed = (*plan.dev, None)[:3]
    score = make_dev_score(model, plan.dev, metric=plan.metric, decode=decode, n_threads=n_threads)
    n_states = _mean_states(model, X, allowed, n_threads)
    likelihood = log_likelihood(trained, plan.dev, n_threads)
    return GrowthRound(tuple(joined), n_patterns, n_states, score(weights), likelihood)


def _find_joining(
    task: CRFTask, trained: Trained[ChainModel], known: Sequence[str], n_threads: int
) -> list[str]:
    """The patterns that pay at the weights of a trained model, as many as the size of its trellises allows."""
    growth, settings, part = _growth(task), task.settings, task.examples
    model = trained.model
    weight = read_sample_weight(part.sample_weight, len(part.y), np.ones(len(part.y), np.bool_))
    samples = label_sequences(model, trained.weights, part, weight, n_threads)
    counts = candidate_counts(samples, model, growth)
    strengths = _strength(settings.l1, 0.0), _strength(settings.l2, 1.0)
    limits = Limits(growth.per_round, growth.min_gain, growth.min_count, *strengths)
    joined = choose_candidates(samples, counts, {*known, *model.potentials.pattern_names}, limits)
    while joined and not _fits(task, model, [*known, *joined], n_threads):
        joined = joined[: 3 * len(joined) // 4]
    return joined


def _fits(task: CRFTask, model: ChainModel, texts: Sequence[str], n_threads: int) -> bool:
    """Whether the trellises with these patterns are as small as the growth wants them."""
    potentials, part = _potentials(model), task.examples
    new = tuple(Pattern(text) for text in texts if text not in potentials.pattern_names)
    larger = replace(potentials, patterns=replace(potentials.patterns, found=new))
    step = max(1, len(part.y) // _SIZED)
    allowed = None if part.allowed is None else part.allowed[::step]
    try:
        n_states = _mean_states(replace(model, potentials=larger), part.X[::step], allowed, n_threads)
    except InputError:  # a position has more than the structure allows
        return False
    return n_states <= _growth(task).max_states * len(model.labels)


def _mean_states(model: ChainModel, X: Any, allowed: Any, n_threads: int) -> float:
    """The states of a position, on average over the first sequences."""
    X, allowed = X[:_SIZED], None if allowed is None else allowed[:_SIZED]
    if not model.potentials.pattern_names:
        return float(len(model.labels))
    trellises = model.design(model.encode(X, allowed), n_threads).trellises
    sizes = np.concatenate([np.zeros(0), *(trellises.sizes(n)[0] for n in range(len(X)))])
    return float(sizes.sum() / max(len(sizes), 1))


def _strength(given: Any, default: float) -> float:
    """The penalty that patterns have."""
    return float(
        given.get("patterns", given.get("default", default)) if isinstance(given, Mapping) else given
    )


def _add_patterns(task: CRFTask, texts: Sequence[str]) -> CRFTask:
    """The task with these patterns beside those of the structure, and no growth."""
    structure = _structure(task)
    more = [Pattern(text) for text in texts]
    structure = replace(structure, patterns=(*structure.patterns, *more), grow=None)
    return replace(task, settings=replace(task.settings, structure=structure))


def _hold_out(examples: Examples, plan: ChainPlan, growth: Growth) -> tuple[Examples, Any]:
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
        raise ArgumentError(
            f"growth holds out one of {every} training sequences, got {len(y)}: expected more, or a dev set"
        )

    def some(part: Any, which: npt.NDArray[np.bool_]) -> Any:
        return None if part is None else list(compress(part, which))

    rest = Examples(*(some(part, ~held) for part in (X, y, examples.sample_weight, allowed)))
    return rest, (some(X, held), some(y, held), some(allowed, held))
