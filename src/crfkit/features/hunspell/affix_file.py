"""The affix file of hunspell (.aff): what flags mean, and the prefixes and suffixes that they stand for.

    SET UTF-8                     encoding of both files; else ISO8859-1
    FLAG long | num | UTF-8       flags have two characters, are numbers with commas between them, or one character
    AF 2 / AF AB / AF C           aliases: flags of words and affixes are then numbers of these lists
    AM 1 / AM po:noun             the same for morphological fields
    SFX D Y 2                     suffixes of flag D, which go together with prefixes (Y), 2 rules:
    SFX D y ied [^aeiou]y is:past     strip y, append ied, where the word ends so; fields that the form has
    SFX D 0 ed/AB [^ey]           nothing is stripped; flags of further affixes behind this one

What is about compounds, suggestions and checking is skipped.
"""

from __future__ import annotations

import codecs
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple, NoReturn

from crfkit.data import make_read_error
from crfkit.errors import FileFormatError
from crfkit.features.wording import shorten

_SET = re.compile(rb"^[ \t]*SET[ \t]+(\S+)", re.MULTILINE)
_WORD = re.compile(r"[^ \t\r]+")
_PART = re.compile(r"\[\^?[^\]]*\]|.", re.DOTALL)
_SPECIAL = {  # flags with a meaning of their own, by the name of their line
    "NEEDAFFIX": "need_affix",
    "PSEUDOROOT": "need_affix",  # its name in old files
    "CIRCUMFIX": "circumfix",
    "FORBIDDENWORD": "forbidden",
    "ONLYINCOMPOUND": "in_compounds",
}


class Affix(NamedTuple):
    """A rule: what is stripped from a word, and what takes its place."""

    flag: str
    is_suffix: bool
    crosses: bool  # goes together with affixes on the other side
    strip: str
    text: str
    condition: re.Pattern[str] | None  # of the word, at the side of the affix; None: any
    flags: frozenset[str]  # of further affixes, and of what the form needs
    fields: tuple[str, ...]  # morphological

    def apply(self, word: str, *, whole: bool) -> str | None:
        """The form of a word; None where it has none. `whole`: all of the word may be stripped."""
        if len(word) < len(self.strip) + (not whole):
            return None
        if self.condition is not None and not self.condition.search(word):
            return None
        if self.is_suffix:
            return word.removesuffix(self.strip) + self.text if word.endswith(self.strip) else None
        return self.text + word.removeprefix(self.strip) if word.startswith(self.strip) else None


@dataclass
class AffixFile:
    """What an affix file says."""

    encoding: str = "ISO8859-1"
    flag_type: str = "short"  # short, long, num
    affixes: dict[str, list[Affix]] = field(default_factory=dict)  # by flag
    flag_aliases: list[frozenset[str]] = field(default_factory=list)
    field_aliases: list[tuple[str, ...]] = field(default_factory=list)
    need_affix: str | None = None  # a word with this flag exists with an affix alone
    circumfix: str | None = None  # an affix with this flag goes with one on the other side that has it too
    forbidden: str | None = None
    in_compounds: str | None = None
    strips_all: bool = False

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> AffixFile:
        """Read a file; FileFormatError with the line that cannot be understood."""
        try:
            data = Path(path).read_bytes()
        except OSError as error:
            raise make_read_error(path, error) from None
        found = cls()
        if (named := _SET.search(data)) is not None:
            found.encoding = named[1].decode("ascii", "replace")
        lines = Lines(path, decode(data, found.encoding, path))
        for words in lines:
            found._read_line(words, lines)
        return found

    def _read_line(self, words: list[str], lines: Lines) -> None:
        name, *given = words
        if name == "FLAG":
            types = {"long": "long", "num": "num", "UTF-8": "short"}
            if len(given) != 1 or given[0] not in types:
                lines.complain("expected FLAG long, FLAG num or FLAG UTF-8")
            self.flag_type = types[given[0]]
        elif name in _SPECIAL:
            setattr(self, _SPECIAL[name], next(iter(self._parse_flags(given[0] if given else "", lines))))
        elif name == "FULLSTRIP":
            self.strips_all = True
        elif name == "AF":
            for alias in lines.listed(name, given):
                self.flag_aliases.append(self._parse_flags(alias[1] if len(alias) > 1 else "", lines))
        elif name == "AM":
            self.field_aliases += [tuple(alias[1:]) for alias in lines.listed(name, given)]
        elif name in ("PFX", "SFX"):
            self._read_affixes(name, given, lines)

    def _read_affixes(self, name: str, given: list[str], lines: Lines) -> None:
        """The rules of a flag, behind their head."""
        if len(given) < 3 or given[1] not in "YN":
            lines.complain(f"expected {name}, a flag, Y or N, and the number of its rules")
        flag, crosses = next(iter(self._parse_flags(given[0], lines))), given[1] == "Y"
        for rule in lines.listed(name, given[2:]):
            if len(rule) < 4 or rule[1] != given[0]:
                lines.complain(
                    f"expected a rule of {name} {given[0]}: what is stripped, what is added, a condition"
                )
            strip, added = ("" if text == "0" else text for text in rule[2:4])
            text, _, flags = added.partition("/")
            has_condition = len(rule) > 4 and not _is_field(rule[4])
            condition = rule[4] if has_condition else "."
            pattern = (
                None if condition == "." else _condition(condition, is_suffix=name == "SFX", lines=lines)
            )
            self.affixes.setdefault(flag, []).append(
                Affix(
                    flag,
                    name == "SFX",
                    crosses,
                    strip,
                    "" if text == "0" else text,
                    pattern,
                    self.flags(flags, lines) if flags else frozenset(),
                    self.fields(rule[4 + has_condition :], lines),
                )
            )

    def flags(self, text: str, lines: Lines) -> frozenset[str]:
        """The flags of a word or an affix, by their alias where there are aliases."""
        if not self.flag_aliases:
            return self._parse_flags(text, lines)
        if not text.isdecimal() or not 1 <= int(text) <= len(self.flag_aliases):
            lines.complain(
                f"expected the number of an alias of flags, from 1 to {len(self.flag_aliases)}, found {text}"
            )
        return self.flag_aliases[int(text) - 1]

    def fields(self, texts: list[str], lines: Lines) -> tuple[str, ...]:
        """Morphological fields, by their alias where there are aliases."""
        if not self.field_aliases or len(texts) != 1 or not texts[0].isdecimal():
            return tuple(texts)
        if not 1 <= int(texts[0]) <= len(self.field_aliases):
            lines.complain(f"expected the number of an alias of fields, from 1 to {len(self.field_aliases)}")
        return self.field_aliases[int(texts[0]) - 1]

    def _parse_flags(self, text: str, lines: Lines) -> frozenset[str]:
        if self.flag_type == "num":
            flags = text.split(",")
            if not all(flag.isdecimal() for flag in flags):
                lines.complain(f"expected flags that are numbers, separated by commas, found {shorten(text)}")
            return frozenset(flags)
        size = 2 if self.flag_type == "long" else 1
        if not text or len(text) % size:
            lines.complain(
                f"expected flags of {size} character{'s' * (size > 1)} each, found {shorten(text)}"
            )
        return frozenset(text[i : i + size] for i in range(0, len(text), size))


class Lines:
    """The lines of a file as words, without blank ones and comments; knows where it is."""

    def __init__(self, path: str | os.PathLike[str], text: str) -> None:
        self._path, self._lines, self.number = path, text.split("\n"), 0

    def __iter__(self) -> Iterator[list[str]]:
        while self.number < len(self._lines):
            self.number += 1
            words = _WORD.findall(self._lines[self.number - 1])
            if words and not words[0].startswith("#"):
                yield _without_comment(words)

    def listed(self, name: str, given: list[str]) -> Iterator[list[str]]:
        """The lines of a list, whose number of entries was given at its head, by the same name."""
        if not given or not given[0].isdecimal():
            self.complain(f"expected the number of the entries of {name}")
        head, left = self.number, int(given[0])
        if left == 0:
            return
        for words in self:
            if words[0] != name:
                self.complain(f"expected {left} more of the {given[0]} entries of {name} (line {head})")
            yield words
            left -= 1
            if not left:
                return
        self.complain(
            f"the file ends, expected {left} more of the {given[0]} entries of {name} (line {head})"
        )

    def complain(self, what: str) -> NoReturn:
        """Raise FileFormatError with the current line."""
        raise FileFormatError(f"{os.fspath(self._path)}:{self.number}: {what}")


def decode(data: bytes, encoding: str, path: str | os.PathLike[str]) -> str:
    """The text of a file; FileFormatError where it is not of this encoding."""
    known = re.sub(r"(?i)^microsoft-cp", "cp", encoding)
    try:
        text = data.removeprefix(codecs.BOM_UTF8).decode(known)
    except LookupError:
        raise FileFormatError(f"{os.fspath(path)}: its encoding {shorten(encoding)} is not known") from None
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise FileFormatError(f"{os.fspath(path)}:{line}: expected text in {encoding}") from None
    return text.replace("\r\n", "\n")


def _without_comment(words: list[str]) -> list[str]:
    """Without what stands behind a # that begins a word; a condition or a flag may be one, so not in the first five."""
    cut = next((i for i, word in enumerate(words) if i > 4 and word.startswith("#")), len(words))
    return words[:cut]


def _is_field(text: str) -> bool:
    return len(text) > 2 and text[2] == ":" and text[:2].isalpha()


def _condition(text: str, *, is_suffix: bool, lines: Lines) -> re.Pattern[str]:
    """A condition as a pattern: characters, sets [abc] and [^abc] without ranges, and . for any."""
    pieces = []
    for part in _PART.findall(text):
        if len(part) > 1:
            inverted = part.startswith("[^")
            inside = "".join(map(re.escape, part[1 + inverted : -1]))
            if not inside:
                lines.complain(f"the condition {text} has an empty set")
            pieces.append(f"[{'^' * inverted}{inside}]")
        elif part in "[]":
            lines.complain(f"the condition {text} has a bracket that is not closed")
        else:
            pieces.append("." if part == "." else re.escape(part))
    return re.compile("".join([*pieces, r"\Z"] if is_suffix else [r"\A", *pieces]), re.DOTALL)
