"""What `fit(verbose="live")` shows: a plot in a notebook, one line on a terminal, that change as training goes on."""

import sys
from collections.abc import Callable
from contextlib import suppress
from time import perf_counter
from typing import Any, Protocol

from crfkit.markup import Line, fragment, line_plot, tag
from crfkit.models.training.progress import Progress

INTERVAL = 0.25  # seconds between two pictures, at least


class Screen(Protocol):
    """Where something that changes is shown."""

    def show(self, text: str, seen: list[Progress]) -> None:
        """Show a line, and what there is to plot, in place of what was shown before."""

    def close(self) -> None:
        """What is shown stays."""


class LiveDisplay:
    """The stages and iterations of a training run on a screen, the last one always, the others not too often."""

    def __init__(self, screen: Screen) -> None:
        self._screen = screen
        self._seen: list[Progress] = []
        self._shown = -INTERVAL
        self._seconds_left: Callable[[Progress], float | None] = lambda _: None

    def stage(self, text: str) -> None:
        """Show what the run does from now on."""
        self._show(text)

    def expect(self, seconds_left: Callable[[Progress], float | None]) -> None:
        """Let iterations say how long the run may still take."""
        self._seconds_left = seconds_left

    def iteration(self, progress: Progress) -> None:
        """Show an iteration, if the last picture is old enough."""
        left = self._seconds_left(progress)
        self._seen.append(progress)
        now = perf_counter()
        if now - self._shown >= INTERVAL:
            self._shown = now
            self._show(progress.line() + ("" if left is None else f"  about {left:.0f} s left"))

    def end(self, text: str) -> None:
        """Show how the run ended."""
        last = f"{self._seen[-1].line()}; " if self._seen else ""
        self._show(last + text)

    def close(self) -> None:
        """No more is shown."""
        with suppress(OSError):
            self._screen.close()

    def _show(self, text: str) -> None:
        with suppress(OSError):  # training goes on where nobody looks
            self._screen.show(text, self._seen)


class Notebook:
    """An output of a notebook that is shown again and again; it needs no widgets."""

    def __init__(self) -> None:
        self._handle: Any = None

    def show(self, text: str, seen: list[Progress]) -> None:
        """Show a line and a plot of the objective and the dev score."""
        from IPython.display import display

        view = _ProgressView(text, seen)
        if self._handle is None:
            self._handle = display(view, display_id=True)
        else:
            self._handle.update(view)

    def close(self) -> None:
        """The last picture stays as it is."""


class _ProgressView:
    """What a notebook shows at the moment."""

    def __init__(self, text: str, seen: list[Progress]) -> None:
        self._text = text
        self._seen = seen

    def __repr__(self) -> str:
        return self._text

    def _repr_html_(self) -> str:
        lines = [
            Line("objective", [progress.objective for progress in self._seen]),
            Line("dev score", [progress.dev_score for progress in self._seen]),
        ]
        plot = line_plot([progress.iteration for progress in self._seen], lines, "iteration")
        return fragment(plot, tag("div", self._text, style="white-space:pre-wrap"))


class Terminal:
    """The last line of a terminal."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.live import Live

        self._live = Live(
            console=Console(stderr=True), auto_refresh=False, redirect_stdout=False, redirect_stderr=False
        )
        self._live.start()

    def show(self, text: str, seen: list[Progress]) -> None:
        """Show a line."""
        from rich.text import Text

        self._live.update(Text(text), refresh=True)

    def close(self) -> None:
        """The last line stays."""
        self._live.stop()


def open_screen() -> Screen | None:
    """A notebook or a terminal, where there is one."""
    if _is_notebook():
        return Notebook()
    if sys.stderr is not None and sys.stderr.isatty():
        return Terminal()
    return None


def _is_notebook() -> bool:
    """Whether this runs in the kernel of a notebook."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return getattr(shell, "kernel", None) is not None
