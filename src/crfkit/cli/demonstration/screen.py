"""How the demonstration prints: in colour on a terminal, plain elsewhere and where NO_COLOR is set."""

import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import IO, TYPE_CHECKING

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

if TYPE_CHECKING:
    from collections.abc import Callable

    from crfkit.models import Progress

HEADING, CODE, RIGHT, WRONG, CHANGED, PALE = "bold cyan", "green", "green", "bold red", "bold yellow", "dim"
Piece = str | tuple[str, str]  # a text, or a text and its style

_WITHOUT_BOXES = str.maketrans("│─┌└├┬┴┼▶·…–½Σ²", "|-++++++>-.-?S2")


class Screen:
    """Standard output; every line is indented below the heading before it."""

    def __init__(self, stream: IO[str] | None = None) -> None:
        stream = stream or sys.stdout
        plain = "NO_COLOR" in os.environ and os.environ["NO_COLOR"] != ""
        self._console = Console(
            file=stream, highlight=False, markup=False, emoji=False, color_system=None if plain else "auto"
        )
        self._boxes = _can_write(stream, "┌▶·")
        self._n_headings = 0

    def heading(self, text: str) -> None:
        """A new part, numbered."""
        self._n_headings += 1
        self._write([])
        self._write([(f"{self._n_headings}  {text}", HEADING)])

    def say(self, *pieces: Piece) -> None:
        """A line of text."""
        self._write(["   ", *pieces])

    def code(self, text: str) -> None:
        """A line of Python or of the shell."""
        self.say((text, CODE))

    def table(self, rows: Sequence[Sequence[Piece]]) -> None:
        """Rows whose columns stand below each other."""
        widths = [max(cell_len(_text(cell)) for cell in column) for column in zip(*rows, strict=True)]
        for row in rows:
            pieces: list[Piece] = []
            for cell, width in zip(row, widths, strict=True):
                pieces += [cell, " " * (width - cell_len(_text(cell)) + 2)]
            self.say(*pieces[:-1])

    @contextmanager
    def training(self, what: str) -> "Iterator[Callable[[Progress], None]]":
        """Show that something is trained, on a terminal with its iterations; gives a callback for `fit`."""
        if not self._console.is_terminal:
            self.say(f"training {what} …")
        status = self._console.status(f"training {what}") if self._console.is_terminal else None
        with status or nullcontext():

            def show(progress: "Progress") -> None:
                if status is not None:
                    status.update(
                        f"training {what}: iteration {progress.iteration}, objective {progress.objective:,.1f}"
                    )

            yield show

    def _write(self, pieces: Iterable[Piece]) -> None:
        line = Text()
        for piece in pieces:
            text, style = (piece, "") if isinstance(piece, str) else piece
            line.append(text if self._boxes else text.translate(_WITHOUT_BOXES), style)
        line.rstrip()
        self._console.print(line, soft_wrap=True)


def _text(piece: Piece) -> str:
    return piece if isinstance(piece, str) else piece[0]


def _can_write(stream: IO[str], text: str) -> bool:
    try:
        text.encode(getattr(stream, "encoding", None) or "utf-8")
    except UnicodeEncodeError:
        return False
    return True
