"""The one training loop: it runs a descent, and knows when to stop, what to note and when to save.

An optimizer brings its `descent`, which goes from point to point; everything else is the same for all of them.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from math import isnan, nan
from time import perf_counter
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from crfkit.errors import ArgumentError
from crfkit.optimizers.history import History, Record
from crfkit.optimizers.protocols import Vector, check_match, check_penalty, check_start, is_whole
from crfkit.optimizers.snapshot import Snapshot, SnapshotError
from crfkit.optimizers.stop_reason import StopReason


class Step(NamedTuple):
    """What a callback sees after each iteration."""

    iteration: int
    seconds: float
    objective: float
    gradient_norm: float
    passes: float
    dev_score: float | None
    improved: bool  # this dev score is the highest so far
    weights: Vector  # [D], never changed afterwards, so it may be kept; read-only


Callback = Callable[[Step], bool | None]
"""A function that sees every step; returning True ends the minimisation."""


class Best(NamedTuple):
    """The place with the highest dev score: the earliest of equals, but the latest where all scores are 0."""

    iteration: int
    score: float
    weights: Vector  # [D]


class Outcome(NamedTuple):
    """Where a minimisation ended, and why."""

    weights: Vector  # [D]
    history: History
    reason: StopReason
    n_evaluations: int = 0  # calls of value_and_gradient
    best: Best | None = None  # with held-out data
    note: str = ""  # what the optimizer decided during the run, as a text
    message: str = ""  # the reason as a text, with the number of iterations or seconds that it is about

    @property
    def converged(self) -> bool:
        """Whether it ended at a minimum, as far as the settings tell."""
        return self.reason.converged


@dataclass(frozen=True)
class Watch:
    """What is asked of a minimisation beside the minimum.

    score : the score of weights [D] on held-out data; the weights with the highest are kept apart; NaN is never the highest
    patience : so many iterations without a higher score end it; scores of 0 from the start on do not count
    seconds : the time budget; the iteration that uses it up is the last
    save : is given a `Snapshot` after every `every`-th iteration
    resume : a snapshot to go on from, in place of the start
    """

    score: Callable[[Vector], float] | None = None
    patience: int | None = None
    seconds: float | None = None
    save: Callable[[Snapshot], None] | None = None
    every: int = 10
    resume: Snapshot | None = None

    def describe(self, reason: StopReason) -> str:
        """The reason as a text, with the patience or the time budget."""
        if reason is StopReason.NO_IMPROVEMENT:
            return f"no better dev score in {self.patience} iterations"
        if reason is StopReason.TIME_BUDGET:
            return f"the time budget of {self.seconds:g} seconds is used up"
        return str(reason)


class Place(Protocol):
    """Where a descent is."""

    @property
    def x(self) -> Vector:
        """[D]."""

    @property
    def value(self) -> float:
        """The objective, l1 included; NaN where it is not known."""

    @property
    def norm(self) -> float:
        """Of the gradient, or of the pseudo-gradient with l1; NaN where it is not known."""


class Descent(Protocol):
    """A minimisation in progress, as the loop sees it."""

    @property
    def point(self) -> Place:
        """Where it is, after `begin` or `restore`."""

    values: list[float]  # the objective by iteration, as it would be computed now

    @property
    def passes(self) -> float:
        """Over the data, until now."""

    @property
    def n_evaluations(self) -> int:
        """Calls of value_and_gradient."""

    def begin(self, start: Vector) -> None:
        """Starts at `start`, which is iteration 0."""

    def advance(self) -> bool:
        """Goes on to the next point; False when there is none."""

    def refine(self) -> bool:
        """Works more exactly from now on, as far as that is possible; True when anything has changed."""

    def best(self) -> Vector:
        """The weights [D] to keep if it ended here; also in the middle of a step, and before the start is known."""

    def snapshot(self) -> Snapshot:
        """All that the next steps depend on."""

    def restore(self, snapshot: Snapshot) -> None:
        """Resumes from a snapshot."""


class Optimizer(ABC):
    """The settings of an optimizer, which minimises an objective that answers everything in `needs`.

    What an optimizer may need, and the method that answers it:

    - value_and_gradient: `value_and_gradient(w)`;
    - hessian_vector: `hessian_vector(w, v)`, H(w) v, [D];
    - sequences: `run(rule, state, order)` with a rule that steps along the gradients of single sequences;
    - mistakes: `run(rule, state, order)` with one that steps after each sequence whose best output is wrong.
    """

    max_iterations: int
    tolerance: float = 0.0
    change: float = 0.0
    period: int = 1
    needs: ClassVar[frozenset[str]]
    takes_l1: ClassVar[bool] = False  # whether it can minimise an objective with l1
    scheduled: ClassVar[bool] = False  # whether max_iterations decides every step, so that a resume keeps it

    @abstractmethod
    def descent(self, objective: Any, start: Vector, n_threads: int) -> Descent:
        """A new descent from `start`."""

    def minimize(
        self,
        objective: Any,
        start: npt.ArrayLike,
        *,
        callback: Callback | None = None,
        n_threads: int = 1,
        watch: Watch | None = None,
    ) -> Outcome:
        """The weights that minimise objective f(w) + Σ l1_i |w_i|, sought from `start` [D].

        A method that goes through the data pass by pass gives those after its last pass. `callback` sees each iteration and
        ends the minimisation by returning True. Ctrl-C ends it too: the outcome then has the best weights so far. The same
        bits come out for any `n_threads`. `watch` asks for a dev score, a time budget, snapshots. Bad arguments raise
        before any work.
        """
        check_match(self, objective)
        check_penalty(self, objective)
        if not is_whole(n_threads) or n_threads < 1:
            raise ArgumentError(
                f"minimize got n_threads={n_threads!r}, expected a whole number of at least 1."
            )
        weights = check_start(objective, start)
        descent = self.descent(objective, weights, int(n_threads))
        return _Loop(self, descent, weights, callback, watch or Watch()).run()


class _Loop:
    """The state of one minimisation."""

    def __init__(
        self, settings: Optimizer, descent: Descent, start: Vector, callback: Callback | None, watch: Watch
    ) -> None:
        self._settings = settings
        self._descent = descent
        self._start = start
        self._callback = callback
        self._watch = watch
        self._began = perf_counter()
        self._history: list[Record] = []
        self._best: Best | None = None

    def run(self) -> Outcome:
        """Descends until there is a reason to stop."""
        try:
            if self._watch.resume is None:
                self._descent.begin(self._start)
                self._note()
            else:
                self._restore(self._watch.resume)
            reason = self._descend()
        except KeyboardInterrupt:
            reason = StopReason.INTERRUPTED
        return Outcome(
            self._descent.best(),
            History(self._history),
            reason,
            self._descent.n_evaluations,
            self._best,
            getattr(self._descent, "note", ""),
            self._watch.describe(reason),
        )

    def _descend(self) -> StopReason:
        while True:
            reason = self._converged()
            if reason is not None:
                if self._descent.refine():  # nothing counts as converged on the word of single precision
                    continue
                return reason
            reason = self._exhausted()
            if reason is not None:
                return reason
            if not self._descent.advance():
                return StopReason.NO_DESCENT
            step = self._note()
            if self._watch.save is not None and step.iteration % self._watch.every == 0:
                self._watch.save(self._snapshot())
            if self._callback is not None and self._callback(step):
                return StopReason.CALLBACK

    def _converged(self) -> StopReason | None:
        settings, values = self._settings, self._descent.values
        if self._descent.point.norm <= settings.tolerance * self._history[0].gradient_norm:
            return StopReason.CONVERGED
        if settings.change and len(values) > settings.period:
            fall = values[-1 - settings.period] - values[-1]
            if fall <= settings.change * abs(values[-1]):
                return StopReason.NO_CHANGE
        return None

    def _exhausted(self) -> StopReason | None:
        """Why no further iteration may be done."""
        iteration = self._history[-1].iteration
        watch = self._watch
        best = 1 if self._best is None else self._best.iteration  # scores begin with the first iteration
        if watch.patience is not None and watch.score is not None and iteration - best >= watch.patience:
            return StopReason.NO_IMPROVEMENT
        if iteration >= self._settings.max_iterations:
            return StopReason.MAX_ITERATIONS
        if watch.seconds is not None and perf_counter() - self._began >= watch.seconds:
            return StopReason.TIME_BUDGET
        return None

    def _note(self) -> Step:
        """Adds a record to the history, with the dev score from the first iteration on."""
        point, iteration = self._descent.point, len(self._history)
        weights = point.x.view()
        weights.flags.writeable = False
        score = None if self._watch.score is None or iteration == 0 else float(self._watch.score(weights))
        improved = score is not None and self._improves(score)
        if score is not None and improved:
            self._best = Best(iteration, score, weights)
        record = Record(
            iteration, perf_counter() - self._began, point.value, point.norm, self._descent.passes, score
        )
        self._history.append(record)
        return Step(*record, improved, weights)

    def _improves(self, score: float) -> bool:
        """Whether the next iteration, with this dev score, is the best one so far; with NaN it never is.

        Scores of 0 from the start on tell nothing apart, such as F1 while no span is found: then the latest weights are the
        best ones, and patience has not begun.
        """
        if isnan(score):
            return False
        if self._best is None or score > self._best.score:
            return True
        return score == 0 and not any(record.dev_score for record in self._history)

    def _snapshot(self) -> Snapshot:
        numbers, arrays = self._descent.snapshot()
        loop: dict[str, Any] = {}
        if self._best is not None:
            loop["best"] = self._best.iteration
            arrays = {**arrays, "best": self._best.weights}
        history = History(self._history).to_array()
        return Snapshot(
            {"descent": numbers, "loop": loop}, {**arrays, "start": self._start, "history": history}
        )

    def _restore(self, snapshot: Snapshot) -> None:
        """Resumes from a snapshot; a SnapshotError where that cannot be."""
        loop, n_weights = snapshot.part("loop"), len(self._start)
        self._start = snapshot.vector("start", n_weights)
        self._history = self._restore_history(snapshot.any_array("history"))
        if "best" in loop.numbers:
            best = loop.count("best", least=1)
            score = self._history[best].dev_score if best < len(self._history) else None
            if score is None or isnan(score):
                raise SnapshotError(f"its best iteration is {best}, which has no dev score")
            self._best = Best(best, score, snapshot.vector("best", n_weights))
        self._descent.restore(snapshot.part("descent"))
        if len(self._descent.values) != len(self._history):
            raise SnapshotError("its history and its objective have different lengths")
        self._began = perf_counter() - self._history[-1].seconds

    def _restore_history(self, rows: npt.NDArray[np.float64]) -> list[Record]:
        """The records of an array; with a dev set, those after the start have scores, some of which may be NaN."""
        if rows.ndim != 2 or rows.shape[1] != len(Record._fields) or not len(rows):
            raise SnapshotError(f"its history has the shape {list(rows.shape)}, expected 6 columns")
        if not (rows[:, 0] == np.arange(len(rows))).all() or not np.isfinite(rows[:, 1]).all():
            raise SnapshotError(
                "its history has iterations that do not follow one another, or unknown seconds"
            )
        first, *others = History.from_array(rows)
        if self._watch.score is not None:
            others = [r._replace(dev_score=nan) if r.dev_score is None else r for r in others]
        return [first, *others]
