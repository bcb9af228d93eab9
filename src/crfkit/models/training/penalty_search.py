"""`l2="auto"`: a strength of the penalty that makes held-out sentences likely.

A part of the training sequences is trained on, another is held out: the last ones, since neighbours of training sentences
are too much like them. Strengths go down from the strongest, each from the weights of the one before, while held-out labels
become more likely. The likelihood tells small differences apart that F1 and accuracy of few sentences do not. It is that of
the weights or of smaller multiples of them, whichever is higher: a weak penalty makes a model too sure, which lowers the
plain likelihood, while its best labels, which no scale changes, may be better. Of the strengths that come within 1 % of the
highest, the strongest is chosen: what is weaker gains nothing but too sure probabilities. Costs of mistakes play no part:
they are about decisions, and a part of the data may lack labels that they name.
"""

import warnings
from collections.abc import Sequence
from dataclasses import replace
from time import perf_counter
from typing import NamedTuple

from crfkit.errors import UnsupportedError
from crfkit.models.chain_model import ChainModel
from crfkit.models.checks import check_optimizer, count_threads
from crfkit.models.training.crf_task import CRFTask
from crfkit.models.training.held_out_split import hold_out
from crfkit.models.training.progress import Report
from crfkit.models.training.stored_task import StoredTask
from crfkit.models.training.train import Plan, Trained, Weighted, train
from crfkit.optimizers import StopReason

GRID = (100.0, 30.0, 10.0, 3.0, 1.0, 0.3, 0.1, 0.03, 0.01, 0.003)
SLACK = 0.01  # of the highest log-likelihood
_IDLE = 2  # strengths in a row that are no better end the search


class PenaltyTrial(NamedTuple):
    """A strength that was tried."""

    l2: float
    log_likelihood: float  # of a held-out sequence, on average, under the weights times `scale`
    n_iterations: int
    scale: float = 1.0


class PenaltySearch(NamedTuple):
    """The strength that was chosen, and how."""

    l2: float
    trials: tuple[PenaltyTrial, ...]
    n_trained: int  # sequences of each trial
    n_held_out: int

    @property
    def reason(self) -> str:
        """For people."""
        tried = ", ".join(f"{trial.l2:g}: {trial.log_likelihood:.3f}" for trial in self.trials)
        return (
            f"l2 {self.l2:g} made {self.n_held_out:,} held-out sequences most likely, or nearly so, after training on "
            f"{self.n_trained:,} others (log-likelihood of a sequence by l2: {tried})"
        )


def resolve_l2(
    task: CRFTask | StoredTask, plan: Plan[ChainModel]
) -> tuple[CRFTask | StoredTask, Plan[ChainModel], PenaltySearch | None]:
    """Task and plan with the strength that "auto" stands for, and the search; what has a strength stays as it is."""
    if not isinstance(task.settings.l2, str):
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
    if "mistakes" in getattr(check_optimizer(settings.optimizer, settings.l1), "needs", ()):
        raise UnsupportedError(
            f"l2 is 'auto', but optimizer is {settings.optimizer!r}, which has no penalty; expected a number"
        )
    if not settings.kind.find_potentials(settings).labels_positions:
        raise UnsupportedError(
            f"l2 is 'auto', which {settings.kind.written} does not have; expected a number"
        )
    split = hold_out(task, plan.dev)
    n_threads = count_threads(settings.n_threads)
    trials: list[PenaltyTrial] = []
    start: Weighted[ChainModel] | None = None
    with Report(plan.verbose) as report:
        for l2 in GRID:
            report.stage(f"l2={l2:g} on {split.n_trained:,} sequences")
            trained = _train_quietly(_with_l2(split.task, l2), start)
            found = split.held_out(trained.model, n_threads).best_scale(trained.weights)
            likelihood = found.log_likelihood / split.n_held_out
            trials.append(PenaltyTrial(l2, likelihood, trained.n_iter, found.scale))
            best = max(range(len(trials)), key=lambda i: trials[i].log_likelihood)
            if trained.reason == StopReason.INTERRUPTED or len(trials) - best > _IDLE:
                break
            start = Weighted(trained.model, trained.weights)
    return PenaltySearch(_choose(trials), tuple(trials), split.n_trained, split.n_held_out)


def _choose(trials: Sequence[PenaltyTrial]) -> float:
    """The strongest that comes near the highest log-likelihood; strengths descend."""
    highest = max(trial.log_likelihood for trial in trials)
    return next(trial.l2 for trial in trials if trial.log_likelihood >= highest - SLACK * abs(highest))


def _train_quietly(task: CRFTask | StoredTask, start: Weighted[ChainModel] | None) -> Trained[ChainModel]:
    """What is odd about the data, the training on all of it says."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return train(task, Plan(start=start))


def _with_l2(task: CRFTask | StoredTask, l2: float) -> CRFTask | StoredTask:
    return replace(task, settings=replace(task.settings, l2=l2))
