"""`l2="auto"`: a strength of the penalty that makes held-out sentences likely.

A part of the training sequences is trained on, others are held out, in pieces (`held_out_split`). Strengths go down from
the strongest, while held-out labels become more likely: one for all weights, or with {"near": "auto"} one for a block of
features while the others stay. The likelihood tells small differences apart that F1 and accuracy of few sentences do not.
It is that of the weights or of smaller multiples of them, whichever is higher: a weak penalty makes a model too sure, which
lowers the plain likelihood, while its best labels, which no scale changes, may be better. Of the strengths that come within
1 % of the highest, the strongest is chosen: what is weaker gains nothing but too sure probabilities. Costs of mistakes play
no part: they are about decisions, and a part of the data may lack labels that they name.

Methods that minimise the objective begin with the weights of the strength before. Those that make passes begin anew, and
make few: then no strength has had more passes than another.
"""

import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from time import perf_counter
from typing import Any, NamedTuple

from crfkit.errors import UnsupportedError
from crfkit.features import DEFAULT_BLOCK, Strength, open_blocks
from crfkit.models.chain_model import ChainModel
from crfkit.models.checks import check_optimizer, count_threads
from crfkit.models.training.crf_task import CRFTask
from crfkit.models.training.held_out_split import Split, hold_out
from crfkit.models.training.progress import Report
from crfkit.models.training.stored_task import StoredTask
from crfkit.models.training.train import Plan, Trained, Weighted, train
from crfkit.optimizers import StopReason

GRID = (100.0, 30.0, 10.0, 3.0, 1.0, 0.3, 0.1, 0.03, 0.01, 0.003)
PASSES = 3  # of a trial, by methods that make passes
SLACK = 0.01  # of the highest log-likelihood
_IDLE = 2  # strengths in a row that are no better end the search
_UNTIL_FOUND = 1.0  # the strength of a block while that of another one is searched for


class PenaltyTrial(NamedTuple):
    """A strength that was tried."""

    l2: Strength
    log_likelihood: float  # of a held-out sequence, on average, under the weights times `scale`
    n_iterations: int
    scale: float = 1.0
    block: str = DEFAULT_BLOCK  # whose strength it was about


class PenaltySearch(NamedTuple):
    """The strength that was chosen, and how."""

    l2: Strength
    trials: tuple[PenaltyTrial, ...]
    n_trained: int  # sequences of each trial
    n_held_out: int

    @property
    def reason(self) -> str:
        """For people."""
        tried = ", ".join(
            f"{_write(_strength_of(trial.l2, trial.block), trial.block, self.l2)}: {trial.log_likelihood:.3f}"
            for trial in self.trials
        )
        blocks = dict.fromkeys(trial.block for trial in self.trials)
        found = ", ".join(_write(_strength_of(self.l2, block), block, self.l2) for block in blocks)
        return (
            f"l2 {found} made {self.n_held_out:,} held-out sequences most likely, or nearly so, after training on "
            f"{self.n_trained:,} others (log-likelihood of a sequence by l2: {tried})"
        )


def _strength_of(l2: Strength, block: str) -> float:
    return l2[block] if isinstance(l2, Mapping) else l2


def _write(strength: float, block: str, l2: Strength) -> str:
    """A strength for people, with the name of its block where there are several."""
    return f"{block} {strength:g}" if isinstance(l2, Mapping) else f"{strength:g}"


def resolve_l2(
    task: CRFTask | StoredTask, plan: Plan[ChainModel]
) -> tuple[CRFTask | StoredTask, Plan[ChainModel], PenaltySearch | None]:
    """Task and plan with the strength that "auto" stands for, and the search; what has a strength stays as it is."""
    if not open_blocks(task.settings.l2):
        return task, plan, None
    task.settings.check()
    task.check(plan)
    plan.check()
    begin = perf_counter()
    found = _search(task, plan)
    if plan.time_budget is not None:
        plan = replace(plan, time_budget=max(plan.time_budget - (perf_counter() - begin), 1e-9))
    return _with_l2(task, found.l2), plan, found


def _search(task: CRFTask | StoredTask, plan: Plan[ChainModel]) -> PenaltySearch:
    settings = task.settings
    optimizer = check_optimizer(settings.optimizer, settings.l1)
    needs = getattr(optimizer, "needs", ())
    if "mistakes" in needs:
        raise UnsupportedError(
            f"l2 is 'auto', but optimizer is {settings.optimizer!r}, which has no penalty; expected a number"
        )
    if not settings.kind.find_potentials(settings).labels_positions:
        raise UnsupportedError(
            f"l2 is 'auto', which {settings.kind.written} does not have; expected a number"
        )
    split = hold_out(task, plan.dev)
    makes_passes = "sequences" in needs and hasattr(optimizer, "max_iterations")
    if makes_passes:
        few: Any = replace(optimizer, max_iterations=min(PASSES, optimizer.max_iterations))
        split = split._replace(task=_with_optimizer(split.task, few))
    trials: list[PenaltyTrial] = []
    l2: Any = settings.l2
    with Report(plan.verbose) as report:
        for block in open_blocks(settings.l2):
            trials += _try_block(block, l2, split, report, continues=not makes_passes)
            l2 = _with_block(l2, block, _choose([trial for trial in trials if trial.block == block]))
    return PenaltySearch(l2, tuple(trials), split.n_trained, split.n_held_out)


def _try_block(
    block: str, l2: Any, split: Split, report: Report, *, continues: bool
) -> Iterator[PenaltyTrial]:
    """Strengths of a block, from the strongest on, each from the weights of the one before if it `continues` these."""
    n_threads = count_threads(split.task.settings.n_threads)
    start: Weighted[ChainModel] | None = None
    likelihoods: list[float] = []
    for strength in GRID:
        tried = _fill(_with_block(l2, block, strength))
        report.stage(f"l2={_write(strength, block, tried)} on {split.n_trained:,} sequences")
        trained = _train_quietly(_with_l2(split.task, tried), start)
        found = split.held_out(trained.model, n_threads).best_scale(trained.weights)
        likelihoods.append(found.log_likelihood / split.n_held_out)
        yield PenaltyTrial(tried, likelihoods[-1], trained.n_iter, found.scale, block)
        best = max(range(len(likelihoods)), key=likelihoods.__getitem__)
        if trained.reason == StopReason.INTERRUPTED or len(likelihoods) - best > _IDLE:
            return
        if continues:
            start = Weighted(trained.model, trained.weights)


def _choose(trials: Sequence[PenaltyTrial]) -> float:
    """The strongest that comes near the highest log-likelihood; strengths descend."""
    highest = max(trial.log_likelihood for trial in trials)
    chosen = next(trial for trial in trials if trial.log_likelihood >= highest - SLACK * abs(highest))
    return _strength_of(chosen.l2, chosen.block)


def _with_block(l2: Any, block: str, strength: float) -> Any:
    return {**l2, block: strength} if isinstance(l2, Mapping) else strength


def _fill(l2: Any) -> Strength:
    """With a number for blocks that were not yet searched for."""
    for block in open_blocks(l2):
        l2 = _with_block(l2, block, _UNTIL_FOUND)
    return l2  # type: ignore[no-any-return]


def _train_quietly(task: CRFTask | StoredTask, start: Weighted[ChainModel] | None) -> Trained[ChainModel]:
    """What is odd about the data, the training on all of it says."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return train(task, Plan(start=start))


def _with_optimizer(task: CRFTask | StoredTask, optimizer: Any) -> CRFTask | StoredTask:
    return replace(task, settings=replace(task.settings, optimizer=optimizer))


def _with_l2(task: CRFTask | StoredTask, l2: Strength) -> CRFTask | StoredTask:
    return replace(task, settings=replace(task.settings, l2=l2))
