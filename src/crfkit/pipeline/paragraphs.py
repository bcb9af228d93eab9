"""Texts of any length, piece by piece, as paragraphs of bounded length."""

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

_BREAK = re.compile(r"\n[^\S\n]*\n\s*")  # a blank line, and the white space behind it
_NOT_SPACE = re.compile(r"\S")


class Paragraph(NamedTuple):
    """Characters of a text, white space behind them included; the first is no white space, except that of a text."""

    text: str
    start: int  # offset in the whole text
    spaces_before: str  # white space at the beginning of the whole text
    begins: bool  # whether a paragraph begins here; else it goes on
    ends: bool  # whether it ends here


class ParagraphReader:
    """Reads the paragraphs of a text that comes in pieces; blank lines separate them.

    One of more than `longest` characters comes in parts. Where the pieces end makes no difference. A text of white space
    alone has no paragraph.
    """

    def __init__(self, pieces: Iterable[str], longest: int) -> None:
        self._pieces = iter(pieces)
        self._longest = longest
        self._buffer = ""
        self._start = 0  # offset of the buffer in the whole text
        self._spaces_before = ""
        self._began = False  # something other than white space was seen
        self._after_break = True
        self._last: Paragraph | None = None

    def read(self) -> Paragraph | None:
        """The next paragraph, or part of one; None at the end of the text."""
        if not self._began and not self._skip_spaces():
            return None
        end, ends = self._find_end()
        if end == 0:
            return None
        text, begins = self._buffer[:end], self._after_break
        found = Paragraph(text, self._start, self._spaces_before, begins, ends)
        self._buffer, self._start = self._buffer[end:], self._start + end
        self._spaces_before, self._after_break, self._last = "", ends, found
        return found

    def give_back(self, n: int) -> None:
        """Let the next paragraph begin with the last `n` characters of the one that was read last."""
        if n:
            assert self._last is not None
            self._buffer = self._last.text[-n:] + self._buffer
            self._start -= n

    def _skip_spaces(self) -> bool:
        """Keep the white space at the beginning apart; False where there is nothing else."""
        while (found := _NOT_SPACE.search(self._buffer)) is None:
            if not self._more():
                return False
        self._spaces_before, self._buffer = self._buffer[: found.start()], self._buffer[found.start() :]
        self._start, self._began = found.start(), True
        return True

    def _find_end(self) -> tuple[int, bool]:
        """Where in the buffer the next paragraph ends, and whether it does not go on there."""
        seen = 0
        while True:
            found = _BREAK.search(self._buffer, seen)
            if found is not None and found.start() < self._longest:
                return self._skip_to_text(found.end()), True
            if len(self._buffer) >= self._longest:
                end = self._skip_to_text(self._longest)
                ends = _BREAK.search(self._buffer, max(0, len(self._buffer[:end].rstrip())), end) is not None
                return end, ends
            seen = len(self._buffer.rstrip())
            if not self._more():
                return len(self._buffer), True

    def _skip_to_text(self, place: int) -> int:
        """The first place from here on that is no white space."""
        while (found := _NOT_SPACE.search(self._buffer, place)) is None:
            if not self._more():
                return len(self._buffer)
        return found.start()

    def _more(self) -> bool:
        """Read another piece; False at the end of the text."""
        piece = next(self._pieces, None)
        if piece is None:
            return False
        self._buffer += piece
        return True


def read_lines(pieces: Iterable[str]) -> Iterator[Paragraph]:
    """The lines of a text that comes in pieces, blank ones as white space behind the line before."""
    held, start, before = "", 0, ""
    for line in split_lines(pieces):
        text = line.lstrip()
        spaces = line[: len(line) - len(text)]
        if held:
            held += spaces
        else:
            before += spaces
        if text:
            if held:
                yield Paragraph(held, start, before, False, True)
                start, before = start + len(held), ""
            else:
                start = len(before)
            held = text
    if held:
        yield Paragraph(held, start, before, False, True)


def split_lines(pieces: Iterable[str]) -> Iterator[str]:
    """Lines with their ends, whatever the pieces are."""
    held = ""
    for piece in pieces:
        *whole, held = (held + piece).split("\n")
        for line in whole:
            yield line + "\n"
    if held:
        yield held
