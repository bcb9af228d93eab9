"""Classes of characters, as `char.def` of MeCab's dictionaries lists them, and the unknown words that they make.

    DEFAULT 0 1 0              # a class: INVOKE GROUP LENGTH
    KANJI 0 0 2
    0x4E00..0x9FFF KANJI       # the class of a character, or of a range, and further classes that it goes with
    0x3007 SYMBOL KANJI

INVOKE: unknown words are added also where the lexicon has words. GROUP: all characters that go together make one word.
LENGTH n: so do the first 1, …, n of these.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from crfkit.errors import FileFormatError

DEFAULT, SPACE = "DEFAULT", "SPACE"
LONGEST_GROUP = 24  # characters of a word by GROUP, at most
_MOST = 17  # classes
_LAST = 0xFFFE  # characters beyond the range have the class of character 0
_RANGE = re.compile(r"0[xX]([0-9A-Fa-f]+)(?:\.\.0[xX]([0-9A-Fa-f]+))?")


class CharacterClass(NamedTuple):
    """How unknown words of a class of characters are made."""

    name: str
    invoke: bool
    group: bool
    length: int


@dataclass(frozen=True)
class CharacterClasses:
    """Classes, and the ranges (first, last, names of classes) that characters have them by; later ranges win."""

    classes: tuple[CharacterClass, ...]
    ranges: tuple[tuple[int, int, tuple[str, ...]], ...] = ()
    longest_group: int = LONGEST_GROUP
    _numbers: dict[str, int] = field(init=False, repr=False, compare=False)
    _found: dict[str, tuple[int, int]] = field(
        init=False, repr=False, compare=False
    )  # (number, mask), as met

    def __post_init__(self) -> None:
        """Number the classes."""
        numbers = {kind.name: i for i, kind in enumerate(self.classes)}
        if len(numbers) != len(self.classes) or len(numbers) > _MOST:
            raise FileFormatError(f"expected at most {_MOST} distinct classes of characters")
        for name in (DEFAULT, SPACE):
            if name not in numbers:
                raise FileFormatError(f"there is no class {name} of characters")
        for first, last, names in self.ranges:
            unknown = [name for name in names if name not in numbers]
            if unknown or not names or not 0 <= first <= last <= _LAST:
                what = f"unknown classes {unknown}" if unknown else "no class, or a range out of order"
                raise FileFormatError(f"characters {first:#x} to {last:#x} have {what}")
        object.__setattr__(self, "_numbers", numbers)
        object.__setattr__(self, "_found", {})

    @classmethod
    def parse(cls, lines: Iterable[str]) -> "CharacterClasses":
        """From the lines of a `char.def`."""
        classes: list[CharacterClass] = []
        ranges: list[tuple[int, int, tuple[str, ...]]] = []
        for number, line in enumerate(lines, 1):
            columns = line.split("#")[0].split()
            if not columns:
                continue
            try:
                if found := _RANGE.fullmatch(columns[0]):
                    first = int(found[1], 16)
                    ranges.append((first, int(found[2] or found[1], 16), tuple(columns[1:])))
                else:
                    name, invoke, group, length = columns[:4]
                    classes.append(CharacterClass(name, bool(int(invoke)), bool(int(group)), int(length)))
            except ValueError:
                raise FileFormatError(
                    f"line {number}: {line.strip()!r}, expected NAME INVOKE GROUP LENGTH or 0x…..0x… NAME …"
                ) from None
        return cls(tuple(classes), tuple(ranges))

    def lines(self) -> Iterator[str]:
        """The lines of a `char.def`."""
        for kind in self.classes:
            yield f"{kind.name} {int(kind.invoke)} {int(kind.group)} {kind.length}"
        for first, last, names in self.ranges:
            yield f"0x{first:04X}..0x{last:04X} {' '.join(names)}"

    def number(self, character: str) -> int:
        """The number of the class of a character."""
        return self._of(character)[0]

    def skip_space(self, text: str, at: int) -> int:
        """Where the spaces end that begin at a place."""
        return self._end_of_group(text, at, 1 << self._numbers[SPACE])

    def unknown_words(self, text: str, at: int, *, known: bool) -> tuple[int, list[int]]:
        """The class of the character at a place that is no space, and the ends of the unknown words that begin there.

        `known`: whether the lexicon has a word there.
        """
        number, mask = self._of(text[at])
        kind = self.classes[number]
        if known and not kind.invoke:
            return number, []
        ends: list[int] = []
        grouped = -1
        if kind.group:
            grouped = self._end_of_group(text, at + 1, mask)
            if grouped - at - 1 <= self.longest_group:
                ends.append(grouped)
        for end in range(at + 1, at + 1 + kind.length):
            if end != grouped:
                ends.append(end)
            if end >= len(text) or not mask & self._of(text[end])[1]:
                break
        if not ends and not known:
            ends.append(at + 1)
        return number, ends

    def _end_of_group(self, text: str, at: int, mask: int) -> int:
        """Where characters end of which each goes with the one before; the first with `mask`."""
        while at < len(text):
            other = self._of(text[at])[1]
            if not mask & other:
                break
            mask = other
            at += 1
        return at

    def _of(self, character: str) -> tuple[int, int]:
        """The number of the class of a character, and the classes that it goes with as bits."""
        found = self._found.get(character)
        if found is None:
            code = ord(character) if ord(character) <= 0xFFFF else 0
            names: tuple[str, ...] = (DEFAULT,)
            for first, last, given in self.ranges:
                if first <= code <= last:
                    names = given
            mask = 0
            for name in names:
                mask |= 1 << self._numbers[name]
            found = self._found[character] = (self._numbers[names[0]], mask)
        return found
