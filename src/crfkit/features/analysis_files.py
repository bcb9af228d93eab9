"""Files of morphological analyses: a form, its lemma and its tag in each line, separated by tabs.

UniMorph files have the lemma first and the tag as a bundle of features, `amo	amat	V;IND;PRS;3;SG`; other full-form
lexicons have the form first. Their tags become labels by a mapping, as two resources rarely have the same tag set.
"""

import os
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from typing import Any

from crfkit.data import read_text
from crfkit.errors import ArgumentError, EmptyDataError, FileFormatError
from crfkit.features.hunspell import MOST_FORMS, HunspellForm, hunspell_forms
from crfkit.features.wording import shorten

UNIMORPH = ("lemma", "form", "tag")
FORM_FIRST = ("form", "lemma", "tag")

# From a tag of the file to a label, several labels, or None: it has none.
TagMapping = Mapping[str, Any] | Callable[[str], Any]
"""How tags of a file become labels: {tag: label or list of labels}, or a function of the tag; what it lacks is left out."""


def read_analyses(
    path: str | os.PathLike[str], mapping: TagMapping | None = None, columns: tuple[str, ...] = FORM_FIRST
) -> list[tuple[str, Hashable]]:
    """The (form, label) pairs of a file, in its order; without a mapping, its tags are the labels.

    Lines may have more columns. Blank lines are skipped, and so are forms of several words, which no position has.
    """
    if not (mapping is None or isinstance(mapping, Mapping) or callable(mapping)):
        raise ArgumentError(f"mapping is {shorten(mapping)}, expected {{tag: labels}} or a function of a tag")
    if not all(list(columns).count(name) == 1 for name in ("form", "tag")):  # a text has letters
        raise ArgumentError(
            f'columns is {shorten(columns)}, expected names of which one is "form" and one is "tag"'
        )
    form, tag = columns.index("form"), columns.index("tag")
    labels_of: dict[str, tuple[Hashable, ...]] = {}
    unmapped: Counter[str] = Counter()
    pairs: list[tuple[str, Hashable]] = []
    for cells in _rows(path, columns):
        given = cells[tag]
        if given not in labels_of:
            labels_of[given] = _labels(given, mapping)
        if not labels_of[given]:
            unmapped[given] += 1
        if " " not in cells[form]:
            pairs += [(cells[form], label) for label in labels_of[given]]
    if not pairs:
        shown = ", ".join(shorten(name) for name, _ in unmapped.most_common(3))
        reason = f"; its most frequent tags are {shown}" if shown else ""
        raise EmptyDataError(f"{os.fspath(path)}: no form has a tag that the mapping knows{reason}")
    return pairs


def read_hunspell(
    path: str | os.PathLike[str],
    mapping: Mapping[str, Any] | Callable[[HunspellForm], Any],
    affixes: str | os.PathLike[str] | None = None,
    limit: int = MOST_FORMS,
) -> list[tuple[str, Hashable]]:
    """The distinct (form, label) pairs of a dictionary of hunspell; `mapping` gives the labels of a tag, or of a form."""
    if not (isinstance(mapping, Mapping) or callable(mapping)):
        raise ArgumentError(
            f"mapping is {shorten(mapping)}, expected {{tag: labels}} or a function of a HunspellForm"
        )
    labels_of: dict[str, tuple[Hashable, ...]] = {}
    unmapped: Counter[str] = Counter()
    pairs: dict[tuple[str, Hashable], None] = {}
    for form in hunspell_forms(path, affixes, limit=limit):
        tag = form.tag
        if isinstance(mapping, Mapping):
            if tag not in labels_of:
                labels_of[tag] = _labels(tag, mapping)
            labels = labels_of[tag]
        else:
            labels = _as_labels(form.form, mapping(form))
        if not labels:
            unmapped[tag] += 1
        if " " not in form.form:
            pairs |= dict.fromkeys((form.form, label) for label in labels)
    if not pairs:
        shown = ", ".join(repr(name) for name, _ in unmapped.most_common(3))
        raise EmptyDataError(
            f"{os.fspath(path)}: no form has a label by the mapping; its most frequent tags are {shown or 'none'}"
        )
    return list(pairs)


def _rows(path: str | os.PathLike[str], columns: tuple[str, ...]) -> Iterator[list[str]]:
    for number, line in enumerate(read_text(path).split("\n"), 1):
        line = line.removesuffix("\r")
        if not line.strip():
            continue
        cells = line.split("\t")
        if len(cells) < len(columns) or not all(cells[columns.index(name)] for name in ("form", "tag")):
            raise FileFormatError(
                f"{os.fspath(path)}:{number}: expected {', '.join(columns)}, separated by tabs, found {shorten(line)}"
            )
        yield cells


def _labels(tag: str, mapping: TagMapping | None) -> tuple[Hashable, ...]:
    """The labels of a tag."""
    if mapping is None:
        return (tag,)
    return _as_labels(tag, mapping.get(tag) if isinstance(mapping, Mapping) else mapping(tag))


def _as_labels(tag: str, found: Any) -> tuple[Hashable, ...]:
    """What a mapping gives for a tag: None, a label or several."""
    if found is None:
        return ()
    several = isinstance(found, Iterable) and not isinstance(found, str | bytes | tuple)
    labels: tuple[Any, ...] = tuple(found) if several else (found,)
    for label in labels:
        if not isinstance(label, Hashable):
            raise ArgumentError(f"the mapping gives {shorten(label)} for {tag!r}, expected a label or a list")
    return labels


def lexicon_lines(path: str | os.PathLike[str]) -> Iterable[tuple[str, list[str]]]:
    """The words of a file with their labels: a word and its labels in each line, separated by tabs."""
    for number, line in enumerate(read_text(path).splitlines(), 1):
        word, *labels = line.split("\t")
        if line.strip() and (not word or not labels or "" in labels):
            raise FileFormatError(
                f"{path}:{number}: expected a word and its labels, separated by tabs, found {shorten(line)}"
            )
        if line.strip():
            yield word, labels
