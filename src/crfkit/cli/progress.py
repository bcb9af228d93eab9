"""How a training shows itself: one line that changes on a terminal, plain lines elsewhere."""

from __future__ import annotations

import math
import sys
from types import TracebackType
from typing import TYPE_CHECKING, Self

import click

if TYPE_CHECKING:
    from rich.live import Live

    from crfkit.models import Progress


class SecondsLeft:
    """An estimate of the time that a training still takes.

    The gradient norm of a quasi-Newton method goes up and down, but its lowest value so far falls roughly like a geometric
    sequence. Its mean fall says how many more iterations it takes to the tolerance; the limit on them is never passed.
    """

    def __init__(self, max_iterations: int, tolerance: float = 0.0, time_budget: float | None = None) -> None:
        self._max_iterations = max_iterations
        self._tolerance = tolerance
        self._time_budget = time_budget
        self._first: Progress | None = None
        self._lowest_norm = math.inf

    @classmethod
    def of(cls, optimizer: object, time_budget: float | None) -> SecondsLeft:
        """For an optimizer; for "auto", whose limit is not known yet, L-BFGS stands in."""
        if isinstance(optimizer, str):
            from crfkit.optimizers import LBFGS

            optimizer = LBFGS()
        return cls(getattr(optimizer, "max_iterations", 0), getattr(optimizer, "tolerance", 0.0), time_budget)

    def __call__(self, progress: Progress) -> float | None:
        """Seconds left after this iteration; None while there is nothing to go by."""
        if (
            self._first is None or progress.iteration <= self._first.iteration
        ):  # the first, or that of another round
            self._first, self._lowest_norm = progress, progress.gradient_norm
            return None
        self._lowest_norm = min(self._lowest_norm, progress.gradient_norm)
        n_seen = progress.iteration - self._first.iteration
        n_left = float(self._max_iterations - progress.iteration)
        goal = self._tolerance * self._first.gradient_norm
        if 0.0 < goal < self._lowest_norm < self._first.gradient_norm:
            fall = math.log(self._first.gradient_norm / self._lowest_norm) / n_seen
            n_left = min(n_left, math.log(self._lowest_norm / goal) / fall)
        left = n_left * (progress.seconds - self._first.seconds) / n_seen
        return (
            left if self._time_budget is None else min(left, max(0.0, self._time_budget - progress.seconds))
        )


class Display:
    """Shows each iteration of a training on the error stream, under a title; a context manager."""

    def __init__(self, title: str, seconds_left: SecondsLeft, dev_name: str, *, quiet: bool = False) -> None:
        self._title = title
        self._seconds_left = seconds_left
        self._dev_name = dev_name
        self._quiet = quiet
        self._live: Live | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live is not None:
            self._live.stop()

    def __call__(self, progress: Progress) -> None:
        """Show one iteration."""
        if self._quiet:
            return
        if progress.iteration == 1:
            self._begin()
        line = self._line(progress)
        if self._live is not None:
            self._live.update(line, refresh=True)
        else:
            click.echo(line, err=True)

    def _begin(self) -> None:
        click.echo(self._title, err=True)
        if sys.stderr.isatty():
            from rich.console import Console
            from rich.live import Live

            self._live = Live(console=Console(stderr=True), auto_refresh=False)
            self._live.start()

    def _line(self, progress: Progress) -> str:
        parts = [
            f"iteration {progress.iteration:4d}",
            f"objective {progress.objective:14.4f}",
        ]
        if not math.isnan(progress.gradient_norm):  # stochastic methods do not know it
            parts.append(f"gradient {progress.gradient_norm:10.4g}")
        if progress.dev_score is not None:
            parts.append(
                f"dev {self._dev_name} {100 * progress.dev_score:6.2f}{'*' if progress.improved else ' '}"
            )
        parts.append(f"{progress.seconds:7.1f} s")
        left = self._seconds_left(progress)
        if left is not None:
            parts.append(f"about {left:.0f} s left")
        return "  ".join(parts)
