"""The forms of the words of a hunspell dictionary, with their flags and morphological fields.

A word has at most two suffixes, the second one by a flag of the first, and one prefix. A prefix and a suffix of one word go
together where both are said to cross, or where one of them has the flag of the other.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from crfkit.counts import check_count
from crfkit.data import make_read_error
from crfkit.errors import ArgumentError, FileFormatError
from crfkit.features.hunspell.affix_file import Affix, AffixFile, Lines, decode

MOST_FORMS = 20_000_000
"""The most forms that a dictionary may have, unless another number is given."""
_FIELD = re.compile(r"[ \t]+(?=[a-z]{2}:)|\t")
_SLASH = re.compile(r"(?<!\\)/")


class HunspellForm(NamedTuple):
    """A form of a word."""

    form: str
    word: str  # of which it is a form, as the dictionary has it
    flags: frozenset[str]  # of the word
    affixes: tuple[str, ...]  # the flags of its affixes: those of suffixes, then that of the prefix
    fields: tuple[str, ...]  # morphological, of the word and of its affixes: ("po:noun", "is:plural")

    @property
    def tag(self) -> str:
        """What its fields say of it, with blanks between them: "po:noun is:plural"; stems, sounds and such left out."""
        return " ".join(one for one in self.fields if one[:3] not in ("st:", "ph:", "al:", "pa:", "hy:"))


def hunspell_forms(
    path: str | os.PathLike[str],
    affixes: str | os.PathLike[str] | None = None,
    *,
    limit: int = MOST_FORMS,
) -> Iterator[HunspellForm]:
    """The forms of the words of a dictionary (.dic), in its order; one form may occur several times.

    `affixes` is the file of its affixes; None: that of the same name with the ending .aff. Forms of compounds are not made.
    More than `limit` forms raise ArgumentError: agglutinating languages may have billions.
    """
    check_count("limit", limit)
    rules = AffixFile.read(Path(path).with_suffix(".aff") if affixes is None else affixes)
    entries = list(_read_words(path, rules))
    forbidden = {word for word, flags, _, _ in entries if rules.forbidden in flags}
    n_forms = 0
    for word, flags, fields, number in entries:
        if rules.forbidden in flags:
            continue
        for form in _forms(word, flags, fields, rules):
            if form.form in forbidden:
                continue
            n_forms += 1
            if n_forms > limit:
                raise ArgumentError(
                    f"{os.fspath(path)}:{number}: the words so far have more than {limit:,} forms, the limit; "
                    "give a higher one, or fewer words"
                )
            yield form


def _read_words(
    path: str | os.PathLike[str], rules: AffixFile
) -> Iterator[tuple[str, frozenset[str], tuple[str, ...], int]]:
    """Words, flags, fields and lines of a dictionary, whose first line says how many words there are."""
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise make_read_error(path, error) from None
    text = decode(data, rules.encoding, path)
    lines = Lines(path, text)
    for number, line in enumerate(text.split("\n"), 1):
        lines.number = number
        if number == 1:
            if not line.split() or not line.split()[0].isdecimal():
                raise FileFormatError(
                    f"{os.fspath(path)}:1: expected the number of words, found {line[:40]!r}"
                )
            continue
        if not line.strip() or line.startswith(("# ", "\t")):
            continue
        given, *fields = (part for part in _FIELD.split(line.rstrip()) if part)
        word, *flags = _SLASH.split(given.rstrip(), maxsplit=1)
        word = word.replace("\\/", "/")
        if not word:
            lines.complain("expected a word before its flags")
        found = rules.flags(flags[0], lines) if flags and flags[0] else frozenset()
        yield word, found, rules.fields(fields, lines), number


def _forms(
    word: str, flags: frozenset[str], fields: tuple[str, ...], rules: AffixFile
) -> Iterator[HunspellForm]:
    """The word itself and its forms."""

    def make(form: str, *used: Affix) -> HunspellForm:
        own = (one for affix in used for one in affix.fields)
        return HunspellForm(form, word, flags, tuple(affix.flag for affix in used), (*fields, *own))

    if not flags & {rules.need_affix, rules.in_compounds}:
        yield make(word)
    for suffixes, form in _with_suffixes(word, flags, rules):
        if suffixes and _is_given(flags, suffixes, None) and _stands_alone(suffixes, None, rules):
            yield make(form, *suffixes)
        for prefix, longer in _with_prefix(word, flags, form, suffixes, rules):
            if _stands_alone(suffixes, prefix, rules):
                yield make(longer, *suffixes, prefix)


def _with_suffixes(
    word: str, flags: frozenset[str], rules: AffixFile
) -> Iterator[tuple[tuple[Affix, ...], str]]:
    """The word without suffixes, with one, and with two, or with one that a prefix of it has the flag of."""
    yield (), word
    of_prefixes = frozenset[str]().union(
        *(prefix.flags for prefix in _affixes(flags, rules, is_suffix=False))
    )
    for first in _affixes(flags | of_prefixes, rules, is_suffix=True):
        form = first.apply(word, whole=rules.strips_all)
        if form is None:
            continue
        yield (first,), form
        for second in _affixes(first.flags, rules, is_suffix=True):
            longer = second.apply(form, whole=rules.strips_all)
            if longer is not None:
                yield (first, second), longer


def _with_prefix(
    word: str, flags: frozenset[str], form: str, suffixes: tuple[Affix, ...], rules: AffixFile
) -> Iterator[tuple[Affix, str]]:
    """A form with the prefixes that its word, or its suffixes, have the flags of."""
    of_suffixes = frozenset[str]().union(*(suffix.flags for suffix in suffixes))
    for prefix in _affixes(flags | of_suffixes, rules, is_suffix=False):
        if suffixes and not (prefix.crosses and all(suffix.crosses for suffix in suffixes)):
            continue
        longer = prefix.apply(form, whole=rules.strips_all)
        if longer is not None and _is_given(flags, suffixes, prefix):
            yield prefix, longer


def _is_given(flags: frozenset[str], suffixes: tuple[Affix, ...], prefix: Affix | None) -> bool:
    """Whether each affix has its flag at the word, or at another affix that stands before it."""
    of_prefix = frozenset[str]() if prefix is None else prefix.flags
    if suffixes and suffixes[0].flag not in flags and not (prefix and suffixes[0].flag in of_prefix):
        return False
    if prefix is None or prefix.flag in flags:
        return True
    return any(prefix.flag in suffix.flags for suffix in suffixes) and suffixes[0].flag in flags


def _stands_alone(suffixes: tuple[Affix, ...], prefix: Affix | None, rules: AffixFile) -> bool:
    """Whether affixes that need others have these, and no affix is one of compounds."""
    used = (*suffixes, *(() if prefix is None else (prefix,)))
    if any(rules.in_compounds in affix.flags for affix in used):
        return False
    if rules.circumfix is not None:
        around = [
            any(rules.circumfix in one.flags for one in side) for side in (suffixes, used[len(suffixes) :])
        ]
        if around[0] != around[1]:
            return False
    last = suffixes[-1:]
    needs = [rules.need_affix in affix.flags for affix in (*last, *used[len(suffixes) :])]
    return rules.need_affix is None or not all(needs)


def _affixes(flags: frozenset[str], rules: AffixFile, *, is_suffix: bool) -> Iterator[Affix]:
    for flag in sorted(flags & rules.affixes.keys()):
        for affix in rules.affixes[flag]:
            if affix.is_suffix == is_suffix:
                yield affix
