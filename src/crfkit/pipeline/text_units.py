"""Text as positions of a chain: runs of letters, runs of digits, and all other characters one by one.

Characters that are drawn as one are one position: a character with its combining marks, emoji that are joined or have a skin
tone, the two letters of a flag.

A token hardly ever begins inside a run of letters in most languages, so a run is one position, which makes a text five
times shorter than its characters. Where the training set shows otherwise, as in Chinese, each character is a position.
"""

import re
import sys
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from typing import NamedTuple

Row = tuple[str, ...]  # the columns of a position

CHUNK = re.compile(r"\S+")
_LONGEST = 30  # characters of a chunk that is a feature as a whole
_MOST_KEPT = 20_000  # chunks whose rows are kept

TEMPLATE = """\
# Columns: 0 the characters, 1 whether white space is before them, 2 the text between white space that they are in,
# 3 where in it they are, 4 its kind (address of a web page, of mail), 5 the shape of the characters, 6 that of the text.
bias=1
run[-3]=%x[-3,0]
run[-2]=%x[-2,0]
run[-1]=%x[-1,0]
run=%x[0,0]
run[1]=%x[1,0]
run[2]=%x[2,0]
run[-1]|run=%lower[-1,0]|%x[0,1]|%lower[0,0]
run|run[1]=%x[0,1]|%lower[0,0]|%lower[1,0]|%x[1,1]
run[-1]|run[1]=%lower[-1,0]|%lower[1,0]
run[-2]|run[-1]|shape=%lower[-2,0]|%x[-1,0]|%x[0,1]|%x[0,5]
run|shape[-1]=%lower[0,0]|%x[0,1]|%x[-1,5]
run[1]|shape[-1]|shape=%lower[1,0]|%x[0,1]|%x[-1,5]|%x[0,5]
suffix3=%lower_suffix[0,0,3]
suffix2=%lower_suffix[0,0,2]
prefix3=%lower_prefix[0,0,3]

# The text between white space, here and before.
chunk=%x[0,2]|%x[0,3]
chunk[-1]=%x[-1,2]|%x[0,1]
kind=%x[0,4]|%x[0,1]
kind|shapes=%x[0,4]|%x[0,1]|%x[-1,5]|%x[0,5]
chunk_shape=%x[0,6]|%x[0,3]
chunk_shapes=%x[-1,6]|%x[0,6]|%x[0,3]

# Capitals, digits, punctuation and white space, here and around.
shapes[-1..0]=%x[0,1]|%x[-1,5]|%x[0,5]
shapes[0..1]=%x[0,1]|%x[1,1]|%x[0,5]|%x[1,5]
shapes[-1..1]=%x[0,1]|%x[-1,5]|%x[0,5]|%x[1,5]
shapes[-2..1]=%x[0,1]|%x[-2,5]|%x[-1,5]|%x[0,5]|%x[1,5]
shapes[-2..2]=%x[-1,1]|%x[0,1]|%x[1,1]|%x[2,1]|%x[-2,5]|%x[-1,5]|%x[0,5]|%x[1,5]|%x[2,5]
spaces|shape=%x[-1,1]|%x[0,1]|%x[1,1]|%x[0,5]

# Transitions between labels.
B
"""

CHARACTERS = """\

# Texts of many scripts have no white space: characters around, in pairs and in threes.
run[3]=%x[3,0]
run[-2]|run[-1]=%x[-2,0]|%x[-1,0]
run[1]|run[2]=%x[1,0]|%x[2,0]
run[-1]|run|run[1]=%x[-1,0]|%x[0,0]|%x[1,0]
run[-2]|run[-1]|run=%x[-2,0]|%x[-1,0]|%x[0,0]
run|run[1]|run[2]=%x[0,0]|%x[1,0]|%x[2,0]
"""


class Units(NamedTuple):
    """The positions of a text: their columns, and where each begins."""

    rows: list[Row]
    starts: list[int]


class UnitReader:
    """Cuts texts into positions; the rows of frequent texts between white space are kept."""

    N_COLUMNS = 7

    def __init__(self, *, characters: bool) -> None:
        self.characters = characters
        self.template = TEMPLATE + (CHARACTERS if characters else "")
        pattern = single_characters() if characters else runs()
        self._read: Callable[[str], tuple[tuple[Row, ...], tuple[int, ...]]] = lru_cache(_MOST_KEPT)(
            lambda chunk: _read_chunk(chunk, pattern)
        )

    def __getstate__(self) -> dict[str, bool]:
        return {"characters": self.characters}

    def __setstate__(self, state: dict[str, bool]) -> None:
        UnitReader.__init__(self, **state)

    def read(self, text: str) -> Units:
        """The positions of a text."""
        rows: list[Row] = []
        starts: list[int] = []
        for found in CHUNK.finditer(text):
            begin = found.start()
            own, offsets = self._read(found.group())
            rows += own
            starts += [begin + offset for offset in offsets]
        return Units(rows, starts)


_PICTURE = "[\u2190-\u2bff\u3030\u303d\u3297\u3299\U0001f000-\U0001f1e5\U0001f200-\U0001faff]"
_JOINED = "\ufe0e\ufe0f\u20e3\U0001f3fb-\U0001f3ff\U000e0020-\U000e007f"  # variants, keycap, skin tones, flags of regions
_EMOJI = (
    "[\U0001f1e6-\U0001f1ff]{2}"  # the flag of a country
    "|[0-9#*]\ufe0f?\u20e3"
    f"|{_PICTURE}[{_JOINED}]*(?:\u200d{_PICTURE}[{_JOINED}]*)*"
)


@lru_cache(1)
def runs() -> re.Pattern[str]:
    """Matches a run of letters with their combining marks, a run of digits, or any other character as it is drawn."""
    marks = _marks()
    return re.compile(rf"(?:[^\W\d_][{marks}]*)+|{_EMOJI}|(?:\d[{marks}]*)+|.[{marks}]*", re.DOTALL)


@lru_cache(1)
def single_characters() -> re.Pattern[str]:
    """Matches a character as it is drawn."""
    return re.compile(rf"{_EMOJI}|.[{_marks()}]*", re.DOTALL)


@lru_cache(1)
def _marks() -> str:
    """All combining marks, as ranges of a regular expression."""
    return "".join(
        f"{chr(first)}-{chr(last)}"
        for first, last in _ranges(
            code for code in range(sys.maxunicode + 1) if unicodedata.category(chr(code))[0] == "M"
        )
    )


def _ranges(codes: Iterable[int]) -> Iterator[tuple[int, int]]:
    """Sorted numbers as (first, last) of runs of consecutive ones."""
    first = last = -2
    for code in codes:
        if code != last + 1:
            if first >= 0:
                yield first, last
            first = code
        last = code
    if first >= 0:
        yield first, last


def _read_chunk(chunk: str, pattern: re.Pattern[str]) -> tuple[tuple[Row, ...], tuple[int, ...]]:
    """Rows and places of the positions of a text without white space."""
    found = [(match.group(), match.start()) for match in pattern.finditer(chunk)]
    lower = chunk.lower()
    kind = _kind(lower)
    whole = lower if len(chunk) <= _LONGEST else "_"
    shapes = [_shape(text) for text, _ in found]
    shape = "".join(shapes)[:_LONGEST]
    n = len(found) if len(found) < 10 else ""
    rows = tuple(
        (text, "1" if k == 0 else "0", whole, f"{k}/{n}", kind, shapes[k], shape)
        for k, (text, _) in enumerate(found)
    )
    return rows, tuple(start for _, start in found)


def _kind(lower: str) -> str:
    if "://" in lower or "www." in lower:
        return "web"
    return "mail" if "@" in lower[1:-1] else "text"


def _shape(text: str) -> str:
    """X, x, XX, xx, Xx or xX for letters, digits as d, anything else as it is."""
    if text[0].isdigit():
        return "d" * min(len(text), 5)
    if not text[0].isalpha():
        return text
    if len(text) == 1:
        return "X" if text.isupper() else "x"
    if text.isupper():
        return "XX"
    if text.islower():
        return "xx"
    return "Xx" if text[0].isupper() and text[1:].islower() else "xX"
