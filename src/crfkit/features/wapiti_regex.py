r"""The regular expressions of Wapiti's patterns, which know less than Python's.

    .       any byte
    \d \a \w    a digit, a letter, either         \l \u    a small letter, a capital
    \p \s       punctuation, a blank              \D …     all others, and so for each of them in capitals
    \x      the character x itself
    x* x?   x any number of times, and as few as will do; x or nothing, and rather x
    ^ $     at the beginning and at the end only: where the value begins and ends

They are matched byte by byte, and only ASCII has letters, digits and blanks. The match is the first one from the left. It
takes at most (bytes of the expression) · (bytes of the value) steps.

Wapiti counts the bytes of a match while it tries, and does not take back all that it has counted where taking an
optional byte leads to no match: `.?.$` finds two bytes in a value of one. Such a match goes on with the bytes that
follow it; at the end of the value that is the zero byte of a C string, which ends the whole feature.
"""

import string
from typing import NamedTuple

from crfkit.errors import TemplateError

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
            raise TemplateError(
                f"{chr(byte)} has nothing before it to repeat (\\{chr(byte)} is the character)"
            )
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
        """Where the first match begins, and ends by Wapiti's count; None where there is none.

        The end is one more than the length of the value where Wapiti counts beyond it.
        """
        n = len(value)
        row = [_Match(not self._at_end or place == n, 0) for place in range(n + 1)]
        for atom in reversed(self._atoms):
            row = _row(atom, value, row)
        for begin, match in enumerate(row[:1] if self._at_start else row):
            if match.leads:
                return begin, min(begin + match.n_bytes, n + 1)
        return None


class _Match(NamedTuple):
    """What comes of matching the rest of an expression from a place on."""

    leads: bool  # to a match
    n_bytes: int  # what is added to the count of bytes, also where it leads to none


def _row(atom: _Atom, value: bytes, following: list[_Match]) -> list[_Match]:
    """The matches of an atom from every place, [n + 1], with those of the atoms behind it."""
    row = following.copy()
    for place in range(len(value), -1, -1):
        fits = place < len(value) and value[place] in atom.allowed
        skipped = following[place]
        if atom.repeat == "*":  # as few as will do; a repetition sets the count to what it was, and one more
            if not skipped.leads:
                leads, n_bytes = row[place + 1] if fits else (False, 0)
                row[place] = _Match(leads, n_bytes + 1)
        elif not fits:
            row[place] = skipped if atom.repeat == "?" else _Match(False, 1)
        else:
            leads, n_bytes = following[place + 1]
            if leads or atom.repeat != "?":
                row[place] = _Match(leads, n_bytes + 1)
            else:  # the byte is given back, but not what was counted behind it
                row[place] = _Match(skipped.leads, skipped.n_bytes + n_bytes)
    return row


def _class(byte: int) -> frozenset[int]:
    """What a backslash and this byte stand for."""
    known = _CLASSES.get(chr(byte).lower())
    if known is None:
        return frozenset([byte])
    found = frozenset(known.encode())
    return _ALL - found if chr(byte).isupper() else found
