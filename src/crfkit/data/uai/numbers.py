"""Texts of numbers with white space between them: what all UAI files are, after the word that they may begin with.

Memory is a few times the size of the file, whatever its numbers claim: a count is compared with the numbers that are left
before anything of this size is made.
"""

from __future__ import annotations

import re
import warnings
from typing import NoReturn

import numpy as np

from crfkit.arrays import Float64s
from crfkit.data.files import ByteSource, read_all, source_name
from crfkit.errors import FileFormatError

_COMMENT = re.compile(rb"#[^\n]*")
_TOKEN = re.compile(rb"[^\s]+")
_NUMBER = re.compile(rb"[+-]?(?:(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?|nan|inf(?:inity)?)", re.IGNORECASE)
_LINE_FEED = b"\n"
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class NumberFile:
    """The numbers of a file, taken one after the other; what is wrong is reported with its line."""

    def __init__(self, source: ByteSource, *, heading: bool = False, marker: bytes = b"") -> None:
        """Read it; with a heading, the first word is `word`. Only what follows the last `marker` counts."""
        self.name = source_name(source)
        text = read_all(source).removeprefix(_BYTE_ORDER_MARK)
        if b"#" in text:
            text = _COMMENT.sub(b"", text)
        self._text = text  # all of it, so that lines can be counted
        self.word, self._begin = "", 0
        if heading and (first := _TOKEN.search(text)):
            self.word, self._begin = first[0][:40].decode("utf-8", "backslashreplace"), first.end()
        if marker and (last := text.rfind(marker)) >= self._begin:
            self._begin = last + len(marker)
        self.numbers = self._parse(text[self._begin :] if self._begin else text)
        self.at = 0  # how many of the numbers were taken

    @property
    def n_left(self) -> int:
        """Numbers that were not taken yet."""
        return len(self.numbers) - self.at

    def count(self, what: str, largest: int = 1 << 53) -> int:
        """The next number, which is a whole number."""
        if not self.n_left:
            self.fail(f"the file ends, expected {what}")
        value = float(self.numbers[self.at])
        if not 0 <= value <= largest or value != int(value):
            limit = f" of at most {largest:,}" if largest < 1 << 53 else ""
            self.fail(f"got {self.token(self.at)}, expected {what}, a whole number{limit}", self.at)
        self.at += 1
        return int(value)

    def take(self, n: int, what: str) -> Float64s:
        """The next n numbers [n]."""
        if n > self.n_left:
            self.fail(f"the file ends too early: expected {what}, got {self.n_left:,} numbers")
        self.at += n
        return self.numbers[self.at - n : self.at]

    def counts(self, n: int, what: str, least: int = 0, largest: int = (1 << 31) - 1) -> list[int]:
        """The next n numbers, all of them whole and within these limits."""
        found = self.take(n, what)
        wrong = ~((found >= least) & (found <= largest) & (found == np.floor(found)))
        if wrong.any():
            place = self.at - n + int(np.argmax(wrong))
            self.fail(
                f"got {self.token(place)}, expected {what}, whole numbers of {least} … {largest:,}", place
            )
        return [int(number) for number in found.tolist()]

    def end(self) -> None:
        """Nothing may be left."""
        if self.n_left:
            self.fail(
                f"got {self.token(self.at)}, expected the end of the file ({self.n_left:,} numbers too many)",
                self.at,
            )

    def token(self, place: int) -> str:
        """A number as the file has it."""
        found = self._token(place)
        return repr(found[0][:40].decode("utf-8", "backslashreplace")) if found else "nothing"

    def fail(self, message: str, place: int | None = None) -> NoReturn:
        """Raise an error; `place` is the number that is wrong."""
        found = None if place is None else self._token(place)
        line = "" if found is None else f":{self._text.count(_LINE_FEED, 0, found.start()) + 1}"
        raise FileFormatError(f"{self.name}{line}: {message}")

    def _token(self, place: int) -> re.Match[bytes] | None:
        for number, found in enumerate(_TOKEN.finditer(self._text, self._begin)):
            if number == place:
                return found
        return None

    def _parse(self, text: bytes) -> Float64s:
        if not text.strip():
            return np.zeros(0)
        space = np.frombuffer(b" " + text, dtype=np.uint8)
        blank = (space == 32) | ((space >= 9) & (space <= 13))
        n_tokens = int(np.count_nonzero(blank[:-1] & ~blank[1:]))
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error", DeprecationWarning)  # an error since NumPy 2.3
                numbers = np.fromstring(text, sep=" ")
        except (ValueError, DeprecationWarning):
            numbers = np.zeros(0)
        if len(numbers) != n_tokens:  # it stops at what is no number, and reads "1-2" as two
            for place, found in enumerate(_TOKEN.finditer(self._text, self._begin)):
                if not _NUMBER.fullmatch(found[0]):
                    self.fail(f"got {self.token(place)}, expected a number", place)
            numbers = np.array(text.split(), dtype=np.float64)
        return numbers
