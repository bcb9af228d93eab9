"""What a command shows while it works: one line that changes on a terminal, plain lines elsewhere."""

import logging
import sys
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from time import perf_counter
from types import TracebackType
from typing import TYPE_CHECKING, Any, NamedTuple, Self, TypeVar

from crfkit.cli.streams import complain

if TYPE_CHECKING:
    from rich.live import Live

    from crfkit.models import Pace, Progress, ProgressCallback, SecondsLeft

PATIENCE = 1.0  # seconds after which a stage is shown
INTERVAL, LONGEST = 5.0, 60.0  # seconds between two lines of a stage where lines stay; they grow with it

T = TypeVar("T")


class _Stage(NamedTuple):
    """What a command does at the moment."""

    text: str
    began: float
    noun: str | None = None  # what it counts, if it does
    waits: bool = False  # for input: it is not shown before something was counted


class Display:
    """What people see of a command, on the error stream: notes, warnings, its stages and its iterations.

    On a terminal the last line changes; elsewhere lines follow each other at intervals that grow. A stage is shown
    when it lasts longer than `PATIENCE`. Stages that the library logs are shown too. A context manager.
    """

    def __init__(self, *, quiet: bool = False, stages: bool = True) -> None:
        self._quiet = quiet
        self._stages = stages and not quiet
        self._seconds_left: SecondsLeft | None = None
        self._dev_name = "score"
        self._pace: Pace | None = None
        self._lock = threading.RLock()
        self._stage: _Stage | None = None
        self._count = 0
        self._shown: tuple[float, int] | None = None  # when the stage was last shown, and its count then
        self._held: str | None = None  # a line of an iteration that was not due
        self._live: Live | None = None
        self._warned: set[str] = set()  # each warning is shown once
        self._ended = threading.Event()
        self._exits = ExitStack()

    def __enter__(self) -> Self:
        self._exits.enter_context(warnings.catch_warnings())
        warnings.simplefilter("ignore" if self._quiet else "default", UserWarning)
        warnings.showwarning = self._warn  # type: ignore[assignment]
        if self._stages:
            ticker = threading.Thread(target=self._tick, daemon=True)
            ticker.start()
            self._exits.callback(self._hide)
            self._exits.callback(ticker.join)
            self._exits.callback(self._ended.set)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._exits.close()

    def say(self, text: str) -> None:
        """Write a line that stays."""
        if not self._quiet:
            with self._lock:
                self._release()
                self._write(text)

    def stage(self, text: str, noun: str | None = None, *, waits: bool = False) -> None:
        """Begin another stage; `noun` is what `counted` counts in it, and it may wait for input."""
        with self._lock:
            self._release()
            if self._stage is None:
                self._hide()
            self._stage, self._count, self._shown = _Stage(text, perf_counter(), noun, waits), 0, None

    def count(self, items: Iterable[T], size: Callable[[T], int] = lambda _: 1) -> Iterator[T]:
        """The items; each is counted, by its size, when the next one is asked for."""
        for item in items:
            yield item
            self._count += size(item)

    @contextmanager
    def training(self, seconds_left: "SecondsLeft | None", dev_name: str) -> "Iterator[ProgressCallback]":
        """A callback that shows the iterations of a training run; stages that the library logs are shown meanwhile.

        Without `seconds_left`, `expect` may say later how long it takes.
        """
        from crfkit.models import LOGGER, Pace

        self._seconds_left, self._dev_name, self._pace = seconds_left, dev_name, Pace()
        listener = _Listener(self)
        level = LOGGER.level
        LOGGER.addHandler(listener)
        LOGGER.setLevel(min(LOGGER.getEffectiveLevel(), logging.INFO))
        try:
            yield self._iteration
        finally:
            LOGGER.removeHandler(listener)
            LOGGER.setLevel(level)

    def expect(self, optimizer: object) -> None:
        """Let the iterations that follow be those of another optimizer; None: of one that is not known."""
        from crfkit.models import SecondsLeft

        self._seconds_left = None if optimizer is None else SecondsLeft.of(optimizer, None)

    @contextmanager
    def standard_output(self) -> Iterator[None]:
        """Clears the changing line while something is written to standard output."""
        with self._lock:
            self._hide()
            yield

    def _iteration(self, progress: "Progress") -> None:
        assert self._pace is not None
        if self._quiet:
            return
        left = None if self._seconds_left is None else self._seconds_left(progress)
        line = progress.line(self._dev_name) + ("" if left is None else f"  about {left:.0f} s left")
        with self._lock:
            self._stage, self._held = None, None
            if _is_terminal() or self._pace.is_due(progress):
                self._show(line)
            else:
                self._held = line

    def _release(self) -> None:
        """Write the last iteration, if it was held back."""
        if self._held is not None:
            complain(self._held)
            self._held = None

    def _tick(self) -> None:
        """In a thread of its own: show stages that last."""
        while not self._ended.wait(min(PATIENCE, 0.25)):
            with self._lock:
                stage, now = self._stage, perf_counter()
                if stage is None or now - stage.began < PATIENCE or (stage.waits and not self._count):
                    continue
                counts = f": {self._count:,} {stage.noun}" if stage.noun and self._count else ""
                line = f"{stage.text}{counts}"
                if self._shown is not None or _is_terminal():
                    line += f", {now - stage.began:.0f} s"
                if _is_terminal() or self._is_due(stage, now):
                    self._shown = (now, self._count)
                    self._show(line)

    def _is_due(self, stage: _Stage, now: float) -> bool:
        """Whether a stage deserves another line where lines stay: rarely, and only if something went on."""
        if self._shown is None:
            return True
        when, count = self._shown
        waited = now - when >= min(max(INTERVAL, 0.5 * (now - stage.began)), LONGEST)
        return waited and (stage.noun is None or self._count > count)

    def _show(self, line: str) -> None:
        """Show a line: the one that changes on a terminal, one more elsewhere."""
        if not _is_terminal():
            complain(line)
            return
        from rich.text import Text

        if self._live is None:
            from rich.console import Console
            from rich.live import Live

            self._live = Live(console=Console(stderr=True), auto_refresh=False, redirect_stdout=False)
            self._live.start()
        with suppress(OSError):
            self._live.update(Text(line), refresh=True)

    def _write(self, text: str) -> None:
        self._hide()
        complain(text)

    def _hide(self) -> None:
        """Take the changing line of a stage off; that of an iteration stays."""
        if self._live is not None:
            self._live.transient = self._stage is not None
            self._live.stop()
            self._live = None

    def _warn(self, message: Warning | str, *details: Any) -> None:
        if str(message) not in self._warned:
            self._warned.add(str(message))
            self.say(f"crfkit: warning: {message}")


class _Listener(logging.Handler):
    """Shows the stages of a training run that the library logs, and what a cluster warns of: workers that were lost."""

    def __init__(self, display: Display) -> None:
        super().__init__(logging.INFO)
        self._display = display

    def emit(self, record: logging.LogRecord) -> None:
        """Show a record, if it is one of a stage or a warning of a cluster."""
        if record.levelno >= logging.WARNING and record.name == "crfkit.distributed":
            self._display.say(f"crfkit: warning: {record.getMessage()}")
        elif hasattr(record, "stage"):
            self._display.stage(record.getMessage())


def _is_terminal() -> bool:
    return sys.stderr is not None and sys.stderr.isatty()
