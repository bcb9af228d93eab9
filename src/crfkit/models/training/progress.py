"""What a training run reports: a `Progress` after each iteration, log records, and lines where `verbose` asks for them.

Everything goes to the logger "crfkit": stages of the run and some iterations at level INFO, all other iterations at DEBUG.
Records of iterations have the attribute `progress`, those of stages the attribute `stage`.
"""

import logging
import math
import sys
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np

from crfkit.errors import ArgumentError
from crfkit.optimizers import Callback, Outcome, Step

if TYPE_CHECKING:
    from crfkit.models.training.live_display import LiveDisplay

LOGGER = logging.getLogger("crfkit")
"""Where training reports its stages and iterations."""
LIVE = "live"
Verbosity = bool | int | str  # of `fit`; a text is "live"

_FIRST = 10  # so many iterations have a line each
_SECONDS = 2.0  # between the lines of later ones, at least
_SHARE = 0.02  # of the time since the start, at least: a long run has a few hundred lines


class Progress(NamedTuple):
    """What a callback of `fit` sees after each iteration."""

    iteration: int
    seconds: float  # since the start of the minimisation
    objective: float
    gradient_norm: float
    dev_score: float | None  # None without a dev set
    improved: bool  # this dev score is the highest so far
    passes: float = 0.0  # over the data, until here

    def line(self, dev_name: str = "score") -> str:
        """One line for people; `dev_name` is what they call the dev score."""
        parts = [f"iteration {self.iteration:4d}", f"objective {self.objective:14.4f}"]
        if not math.isnan(self.gradient_norm):  # stochastic methods do not know it
            parts.append(f"gradient {self.gradient_norm:10.4g}")
        if self.dev_score is not None:
            parts.append(f"dev {dev_name} {100 * self.dev_score:6.2f}{'*' if self.improved else ' '}")
        parts.append(f"{self.seconds:7.1f} s")
        return "  ".join(parts)


ProgressCallback = Callable[[Progress], bool | None]
"""A function that sees every iteration; returning True ends training."""


class Pace:
    """Chooses the iterations that are worth a line: the first ones, then some at intervals that grow with the run."""

    def __init__(self) -> None:
        self._iteration = 0
        self._shown = 0.0

    def is_due(self, progress: Progress) -> bool:
        """Whether this iteration, the next one of the run or the first of another run, is worth a line."""
        if progress.iteration <= self._iteration:
            self._shown = 0.0
        self._iteration = progress.iteration
        interval = max(_SECONDS, _SHARE * progress.seconds)
        due = progress.iteration <= _FIRST or progress.seconds - self._shown >= interval
        if due:
            self._shown = progress.seconds
        return due


class Report:
    """Log records of one training run; `verbose` also writes them to the error stream, unless logging does.

    verbose: False or 0: nothing; True or 1: stages and some iterations; 2: every iteration; "live": a plot that changes
    in a notebook, one line on a terminal, elsewhere as 1. A context manager.
    """

    def __init__(self, verbose: Verbosity = False) -> None:
        if not (isinstance(verbose, str) and verbose == LIVE) and (
            not isinstance(verbose, bool | int | np.bool_ | np.integer) or not 0 <= int(verbose) <= 2
        ):
            raise ArgumentError(f"verbose is {verbose!r}, expected True, False, 0, 1, 2 or {LIVE!r}")
        self._is_live = isinstance(verbose, str)
        self._verbose = 1 if isinstance(verbose, str) else int(verbose)
        self._display: LiveDisplay | None = None

    def __enter__(self) -> Self:
        if self._is_live:
            from crfkit.models.training.live_display import LiveDisplay, open_screen

            screen = open_screen()
            self._display = None if screen is None else LiveDisplay(screen)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._display is not None:
            self._display.close()
            self._display = None

    def stage(self, text: str) -> None:
        """What the run does from now on."""
        self._say(logging.INFO, text, stage=True)
        if self._display is not None:
            self._display.stage(text)

    def expect(self, seconds_left: Callable[[Progress], float | None]) -> None:
        """What estimates the time that the run still takes, after an iteration."""
        if self._display is not None:
            self._display.expect(seconds_left)

    def end(self, outcome: Outcome) -> None:
        """Why the minimisation ended, and after how long."""
        if outcome.history:
            last = outcome.history[-1]
            text = f"{outcome.message}: {last.iteration} iterations, {last.seconds:.1f} s"
            self._say(logging.INFO, text)
            if self._display is not None:
                self._display.end(text)

    def callback(self, callback: ProgressCallback | None) -> Callback | None:
        """What the loop calls after each iteration: reports it, then tells the callback of the user."""
        heard = self._verbose > 0 or LOGGER.isEnabledFor(logging.INFO)
        if callback is None and not heard:
            return None
        pace = Pace()

        def tell(step: Step) -> bool:
            progress = Progress(**{name: getattr(step, name) for name in Progress._fields})
            if heard:
                level = logging.INFO if pace.is_due(progress) else logging.DEBUG
                self._say(level, progress.line(), progress=progress)
                if self._display is not None:
                    self._display.iteration(progress)
            return callback is not None and bool(callback(progress))

        return tell

    def _say(self, level: int, text: str, **attributes: Any) -> None:
        logged = LOGGER.isEnabledFor(level)
        if logged:
            LOGGER.log(level, "%s", text, extra=attributes)
        asked = self._display is None and self._verbose >= (1 if level >= logging.INFO else 2)
        if asked and not (logged and LOGGER.hasHandlers()):
            print(text, file=sys.stderr, flush=True)


def count_of(things: Any, noun: str) -> str:
    """How many, for people; an iterator does not know it."""
    return f"{len(things):,} {noun}" if hasattr(things, "__len__") else noun
