r"""The regular expressions of Wapiti's patterns, which know less than Python's.

    .       any byte
    \d \a \w    a digit, a letter, either         \l \u    a small letter, a capital
    \p \s       punctuation, a blank              \D …     all others, and so for each of them in capitals
    \x      the character x itself
    x* x?   x any number of times, and as few as will do; x or nothing, and rather x
    ^ $     at the beginning and at the end only: where the value begins and ends

They are matched byte by byte, and only ASCII has letters, digits and blanks. The match is the first one from the left. It
takes at most (bytes of the expression) · (bytes of the value) steps.
"""

from __future__ import annotations

import string
from typing import NamedTuple

_ALL = frozenset(range(256))
_CLASSES = {
    "d": string.digits,
    "a": string.ascii_letters,
    "w": string.ascii_letters + string.digits,
    "l": string.ascii_lowercase,
    "u": string.ascii_uppercase,
    "p": string.punctuation,
    "s": string.whitespace,
}


class _Atom(NamedTuple):
    """What one byte must be, and how often."""

    allowed: frozenset[int]
    repeat: str  # "" once, "*" or "?"


class WapitiRegex:
    """A compiled expression; ValueError for one that cannot be read.

    >>> WapitiRegex(".?.?.?$").find(b"walking")
    (4, 7)
    """

    def __init__(self, text: str) -> None:
        """`text` is the expression as it stands between the quotes of a pattern."""
        expression = text.encode("utf-8", "surrogateescape")
        self._at_start = expression.startswith(b"^")
        self._atoms: list[_Atom] = []
        self._at_end = False
        place = int(self._at_start)
        while place < len(expression):
            if expression[place:] == b"$":
                self._at_end = True
                break
            place = self._read_atom(expression, place)

    def _read_atom(self, expression: bytes, place: int) -> int:
        """Read the atom that begins at a place; where the next one does."""
        byte = expression[place]
        if byte in b"*?":
            raise ValueError(f"{chr(byte)} has nothing before it to repeat (\\{chr(byte)} is the character)")
        place += 1
        if byte == ord("."):
            allowed = _ALL
        elif byte == ord("\\") and place < len(expression):
            allowed = _class(expression[place])
            place += 1
        else:
            allowed = frozenset([byte])
        repeat = ""
        if expression[place : place + 1] in (b"*", b"?"):
            repeat = chr(expression[place])
            place += 1
        self._atoms.append(_Atom(allowed, repeat))
        return place

    def find(self, value: bytes) -> tuple[int, int] | None:
        """Where the first match begins and ends; None where there is none."""
        tried: set[tuple[int, int]] = set()  # (atom, place) from which no match goes on
        for begin in range(1 if self._at_start else len(value) + 1):
            end = self._end(value, begin, tried)
            if end is not None:
                return begin, end
        return None

    def _end(self, value: bytes, begin: int, tried: set[tuple[int, int]]) -> int | None:
        """The end of the match that begins here: ways on are tried one after the other, the preferred one first."""
        ways = [(0, begin)]
        while ways:
            k, place = ways.pop()
            if (k, place) in tried:
                continue
            tried.add((k, place))
            if k == len(self._atoms):
                if not self._at_end or place == len(value):
                    return place
                continue
            allowed, repeat = self._atoms[k]
            fits = place < len(value) and value[place] in allowed
            if repeat == "*":
                if fits:
                    ways.append((k, place + 1))
                ways.append((k + 1, place))
            else:
                if repeat == "?":
                    ways.append((k + 1, place))
                if fits:
                    ways.append((k + 1, place + 1))
        return None


def _class(byte: int) -> frozenset[int]:
    """What a backslash and this byte stand for."""
    known = _CLASSES.get(chr(byte).lower())
    if known is None:
        return frozenset([byte])
    found = frozenset(known.encode())
    return _ALL - found if chr(byte).isupper() else found
