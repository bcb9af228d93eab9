"""Rewriting the fields of words, as `rewrite.def` of MeCab's dictionaries says.

    [unigram rewrite]
    名詞,固有名詞,*  $1,$2,*          # pattern of the first fields, and what they become; $1 is the first field
    *,*,*           $1,$2,$3
    [left rewrite]  …   the fields that a word shows to the word before it
    [right rewrite] …   the fields that it shows to the word after it

A field of a pattern is a text, `*` (anything), or `(a|b|c)`. The first pattern that fits counts.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from crfkit.errors import FileFormatError
from crfkit.features.words.csv_fields import join_fields, split_fields

SECTIONS = ("unigram", "left", "right")
_REFERENCE = re.compile(r"\$(\d+)")

Fields = tuple[str, ...]


class RewrittenFields(NamedTuple):
    """The fields of a word: for features of its own, as the word before it sees them, and as the word after it does."""

    unigram: Fields
    left: Fields
    right: Fields


class Rule(NamedTuple):
    """A pattern and what fields that fit it become."""

    pattern: Fields
    result: Fields

    def fits(self, fields: Sequence[str]) -> bool:
        """Whether all fields of the pattern fit."""
        return len(fields) >= len(self.pattern) and all(map(_fits, self.pattern, fields))

    def apply(self, fields: Sequence[str]) -> Fields:
        """The rewritten fields."""

        def field_of(found: re.Match[str]) -> str:
            i = int(found[1])
            if not 1 <= i <= len(fields):
                raise FileFormatError(f"{join_fields(self.result)} needs field {i} of {join_fields(fields)}")
            return fields[i - 1]

        return tuple(_REFERENCE.sub(field_of, part) for part in self.result)


def _fits(pattern: str, field: str) -> bool:
    if pattern.startswith("*") or pattern == field:
        return True
    return len(pattern) > 2 and pattern[0] == "(" and pattern[-1] == ")" and field in pattern[1:-1].split("|")


@dataclass(frozen=True)
class Rewriting:
    """The rules of the three sections; a section without rules leaves fields as they are."""

    unigram: tuple[Rule, ...] = ()
    left: tuple[Rule, ...] = ()
    right: tuple[Rule, ...] = ()

    @classmethod
    def parse(cls, lines: Iterable[str]) -> "Rewriting":
        """From the lines of a `rewrite.def`."""
        rules: dict[str, list[Rule]] = {name: [] for name in SECTIONS}
        section = None
        for number, line in enumerate(lines, 1):
            text = line.strip()
            if not text or line.startswith("#"):
                continue
            if found := re.fullmatch(r"\[(\w+) rewrite\]", text):
                section = found[1]
                continue
            columns = text.split(None, 1)
            if section not in rules or len(columns) != 2:
                raise FileFormatError(
                    f"line {number}: {text!r}, expected a pattern and a result below [unigram rewrite], [left rewrite] or "
                    "[right rewrite]"
                )
            rules[section].append(Rule(split_fields(columns[0]), split_fields(columns[1])))
        return cls(*(tuple(rules[name]) for name in SECTIONS))

    def lines(self, n_fields: Iterable[int] = ()) -> Iterator[str]:
        """The lines of a `rewrite.def`; a section without rules has one for each of these numbers of fields."""
        kept = [
            Rule(("*",) * n, tuple(f"${i + 1}" for i in range(n)))
            for n in sorted(set(n_fields), reverse=True)
        ]
        for name in SECTIONS:
            yield f"[{name} rewrite]"
            for rule in getattr(self, name) or kept:
                yield f"{join_fields(rule.pattern)}\t{join_fields(rule.result)}"

    def rewrite(self, fields: Fields) -> RewrittenFields:
        """The fields of a word by the rules."""
        return RewrittenFields(*(_first(getattr(self, name), fields, name) for name in SECTIONS))


def _first(rules: tuple[Rule, ...], fields: Fields, name: str) -> Fields:
    if not rules:
        return fields
    for rule in rules:
        if rule.fits(fields):
            return rule.apply(fields)
    raise FileFormatError(f"no rule of [{name} rewrite] fits the fields {join_fields(fields)}")
