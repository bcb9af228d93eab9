"""Which labels a word may have: those it was seen with, or those of words that end alike.

A word seen at `min_count` positions or more keeps the labels it was seen with. A rarer one has in addition, and an
unknown one only, the labels of its longest ending that `ending_count` positions with other rare words have; where not even
the last character is shared, those of all rare words, the open classes. So a rare word is treated as if it were
unknown, in training too, and a model learns there what it needs for words it never saw.

With `related`, an unknown word has the labels that its related forms give it, where there are such: see `related_forms`.

Words are compared in lower case. Shapes: V words, E endings, L labels, T positions.
"""

import os
from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from crfkit.arrays import Int32s, Int64s, offsets
from crfkit.counts import check_count
from crfkit.errors import ArgumentError, EmptyDataError, ShapeError
from crfkit.features.analysis_files import (
    FORM_FIRST,
    UNIMORPH,
    TagMapping,
    lexicon_lines,
    read_analyses,
    read_hunspell,
)
from crfkit.features.dataset import Annotation
from crfkit.features.endings import Endings, distinct
from crfkit.features.hunspell import MOST_FORMS, HunspellForm
from crfkit.features.position_words import Column, words_of
from crfkit.features.related_forms import RelatedForms
from crfkit.features.wording import shorten
from crfkit.structures import AllowedLabels

MOST_CHARACTERS = 100  # of an ending
RELATED = "related"
"""The value of the parameter `tag_dictionary` that asks for related forms."""
_RELATED_STEMS = 2  # that must show an exchange of endings, where nothing else is asked for


class Coverage(NamedTuple):
    """How often a dictionary allows the right label, and how many labels it leaves to choose from."""

    positions: int
    covered: float  # share of the positions whose label is allowed
    labels: float  # allowed at a position, on average
    known: float  # share of the positions whose word is in the dictionary
    known_covered: float
    known_labels: float
    unknown_covered: float
    unknown_labels: float

    def __str__(self) -> str:
        return (
            f"{self.covered:.2%} of {self.positions:,} positions may have their label, {self.labels:.2f} labels a position; "
            f"known words ({self.known:.2%}): {self.known_covered:.2%}, {self.known_labels:.2f}; "
            f"unknown: {self.unknown_covered:.2%}, {self.unknown_labels:.2f}"
        )


@dataclass(frozen=True, eq=False)
class TagDictionary:
    """The labels that each word may have; `from_data` and `from_lexicon` make one.

    >>> X, y = [["the", "dogs"], ["the", "cats"]], [["DET", "NOUN"], ["DET", "NOUN"]]
    >>> dictionary = TagDictionary.from_data(X, y, min_count=2)
    >>> dictionary.allowed_labels("the"), dictionary.allowed_labels("birds")
    (('DET',), ('NOUN',))
    """

    classes: tuple[Hashable, ...]  # [L]
    words: tuple[str, ...]  # [V] in lower case
    endings: tuple[str, ...]  # [E]; without "", words that share no ending may have any label
    ptr: Int64s  # [V + E + 1] word v has the labels ptr[v]:ptr[v + 1], ending e those at V + e
    labels: Int32s  # ascending within a list; an empty list allows all labels
    column: Column = 0
    related: RelatedForms | None = None  # which say what unknown words may have, before endings do
    _entries: dict[str, int] = field(init=False, repr=False)  # word → its list
    _ending_entries: dict[str, int] = field(init=False, repr=False)
    _longest: int = field(init=False, repr=False)  # ending, in characters
    _of_related: dict[tuple[int, ...], int] = field(
        init=False, repr=False
    )  # the lists of unknown words, by their labels; they stand behind all others

    def __post_init__(self) -> None:
        """Refuse tables that do not fit together, and make them quick to look up."""
        n_lists = len(self.words) + len(self.endings)
        rises = self.ptr.shape == (n_lists + 1,) and self.ptr[0] == 0 and np.all(np.diff(self.ptr) >= 0)
        if not rises or self.ptr[-1] != len(self.labels):
            raise ArgumentError("the lists of labels of a tag dictionary do not fit its words and endings")
        if len(self.labels) and not 0 <= self.labels.min() <= self.labels.max() < len(self.classes):
            raise ArgumentError("a tag dictionary names a label that does not exist")
        entries = {word: v for v, word in enumerate(self.words)}
        ending_entries = {ending: len(self.words) + e for e, ending in enumerate(self.endings)}
        if len(entries) + len(ending_entries) != n_lists:
            raise ArgumentError("a tag dictionary has a word or an ending twice")
        object.__setattr__(self, "_entries", entries)
        object.__setattr__(self, "_ending_entries", ending_entries)
        object.__setattr__(self, "_of_related", {})
        object.__setattr__(self, "_longest", max(map(len, self.endings), default=0))

    def __repr__(self) -> str:
        related = "" if self.related is None else f", {len(self.related.rules):,} exchanges of endings"
        return (
            f"<TagDictionary of {len(self.words):,} words, {len(self.endings):,} endings and "
            f"{len(self.classes):,} labels{related}>"
        )

    @classmethod
    def from_data(
        cls,
        X: Iterable[Any],
        y: Iterable[Any],
        column: Column = 0,
        *,
        min_count: int = 10,
        ending_length: int = 10,
        ending_count: int = 30,
        related: int = 0,
    ) -> Self:
        """The dictionary of training data.

        `column` says where a position has its word: a position is a word, a row of columns, or a dict. Words seen at
        `min_count` positions keep the labels seen there; `ending_length` = 0 gives all others the open classes.
        `related` = 2: unknown words have the labels of exchanges of endings that at least 2 stems show, where there are.
        Positions whose label is None or a set of several say nothing.
        """
        words, labels = list(words_of(X, column)), list(map(_single, chain.from_iterable(y)))
        if len(words) != len(labels):
            raise ShapeError(f"X has {len(words)} positions but y has {len(labels)} labels")
        counts = Counter(pair for pair in zip(words, labels, strict=True) if pair[1] is not None)
        seen = [(word, label, n) for (word, label), n in counts.items()]
        numbers = {"min_count": min_count, "ending_length": ending_length, "ending_count": ending_count}
        return cls.from_counts(seen, column, **numbers, related=related)

    @classmethod
    def from_counts(
        cls,
        seen: Sequence[tuple[str, Hashable, int]],
        column: Column = 0,
        *,
        min_count: int = 10,
        ending_length: int = 10,
        ending_count: int = 30,
        related: int = 0,
    ) -> Self:
        """The dictionary of training data from (word, label, number of positions), in any order; see `from_data`."""
        if not seen:
            raise EmptyDataError("no position has a label: there is nothing to make a tag dictionary of")
        return cls._make(seen, column, min_count, ending_length, ending_count, related=related)

    @classmethod
    def from_lexicon(
        cls,
        lexicon: Mapping[str, Iterable[Hashable]] | str | os.PathLike[str],
        column: Column = 0,
        *,
        ending_length: int = 10,
        ending_count: int = 30,
    ) -> Self:
        """The dictionary of a lexicon: {word: labels}, or a file whose lines have a word and its labels, separated by tabs.

        Words of the lexicon have the labels it gives; unknown ones those of the words that end alike.
        """
        entries = lexicon.items() if isinstance(lexicon, Mapping) else lexicon_lines(lexicon)
        seen = []
        for word, labels in entries:
            listed = isinstance(labels, Iterable) and not isinstance(labels, str | bytes)
            if not isinstance(word, str) or not listed:
                raise ArgumentError(
                    f"the lexicon has {shorten(word)}: {shorten(labels)}, expected a word and a list of labels"
                )
            seen += [(word, label, 1) for label in labels]
        if not seen:
            raise EmptyDataError("the lexicon has no word with a label")
        return cls._make(seen, column, 1, ending_length, ending_count, all_rare=True)

    @classmethod
    def from_analyses(
        cls,
        path: str | os.PathLike[str],
        mapping: TagMapping | None = None,
        column: Column = 0,
        *,
        columns: tuple[str, ...] = FORM_FIRST,
        ending_length: int = 0,
        ending_count: int = 30,
    ) -> Self:
        """The dictionary of a full-form lexicon: lines with a form, its lemma and its tag, separated by tabs.

        `mapping` gives the label of a tag, several labels, or None: {tag: labels} or a function. `join` it with the
        dictionary of training data, which then says what unknown words may have.
        """
        seen = [(form, label, 1) for form, label in read_analyses(path, mapping, columns)]
        return cls._make(seen, column, 1, ending_length, ending_count, all_rare=True)

    @classmethod
    def from_unimorph(
        cls, path: str | os.PathLike[str], mapping: TagMapping | None = None, column: Column = 0
    ) -> Self:
        """The dictionary of a UniMorph file: lines with a lemma, a form and its features; see `from_analyses`."""
        return cls.from_analyses(path, mapping, column, columns=UNIMORPH)

    @classmethod
    def from_hunspell(
        cls,
        path: str | os.PathLike[str],
        mapping: Mapping[str, Any] | Callable[[HunspellForm], Any],
        column: Column = 0,
        *,
        affixes: str | os.PathLike[str] | None = None,
        limit: int = MOST_FORMS,
    ) -> Self:
        """The dictionary of all forms of a hunspell dictionary (.dic, and `affixes`, by default the .aff file beside it).

        `mapping` gives labels, several or None, as in `from_analyses`: {tag: labels}, a tag being the morphological fields
        of a form ("po:noun is:plural"), or a function of a `HunspellForm`, which has the flags as well.
        """
        seen = [(form, label, 1) for form, label in read_hunspell(path, mapping, affixes, limit)]
        return cls._make(seen, column, 1, 0, 1, all_rare=True)

    @classmethod
    def _make(
        cls,
        seen: Sequence[tuple[str, Hashable, int]],
        column: Column,
        min_count: int,
        ending_length: int,
        ending_count: int,
        *,
        all_rare: bool = False,
        related: int = 0,
    ) -> Self:
        """From (word, label, number of positions); `all_rare`: all words say what endings go with, not only rare ones."""
        min_count = check_count("min_count", min_count)
        ending_length = check_count("ending_length", ending_length, MOST_CHARACTERS, least=0)
        ending_count = check_count("ending_count", ending_count)
        related = check_count("related", related, least=0)
        classes = _sort({label for _, label, _ in seen})
        ids = {label: i for i, label in enumerate(classes)}
        together: Counter[tuple[str, int]] = Counter()
        lower = {word: word.lower() for word, _, _ in seen}
        for word, label, n in seen:
            together[lower[word], ids[label]] += n
        words = sorted(set(lower.values()))
        places = {word: v for v, word in enumerate(words)}
        counted = sorted((places[word], label, n) for (word, label), n in together.items())
        pairs = np.array(counted, np.int64)  # [P, 3]
        positions = np.bincount(pairs[:, 0], pairs[:, 2], len(words))  # [V]
        rare = np.flatnonzero((positions < min_count) | all_rare)
        rank = np.full(len(words), -1, np.int64)  # among the rare words
        rank[rare] = np.arange(len(rare))
        of_rare = pairs[rank[pairs[:, 0]] >= 0]
        endings = Endings.build(
            [words[v] for v in rare.tolist()],
            rank[of_rare[:, 0]],
            of_rare[:, 1],
            of_rare[:, 2],
            longest=ending_length,
            min_count=ending_count,
            n_labels=len(classes),
        )
        chosen = np.full(len(words), -1, np.int64)
        chosen[rare] = np.where(positions[rare] < min_count, endings.of_words, -1)
        return cls(
            tuple(classes),
            tuple(words),
            tuple(endings.texts),
            *_lists(pairs, chosen, endings, len(classes)),
            column,
            RelatedForms.learn(words, pairs[:, 0], pairs[:, 1], related) if related else None,
        )

    @staticmethod
    def options(asked: object) -> dict[str, int]:
        """The arguments of `from_data` and `from_counts` that the parameter `tag_dictionary` stands for."""
        return {"related": _RELATED_STEMS} if asked == RELATED else {}

    def allowed_labels(self, word: str) -> tuple[Hashable, ...]:
        """The labels that a word may have; all, where nothing is known about any part of it."""
        ids = self.allowed_entries(self.find_entries([word])).labels
        return tuple(self.classes[i] for i in ids.tolist()) or self.classes

    def __contains__(self, word: str) -> bool:
        return word.lower() in self._entries

    def bind_labels(self, classes: Sequence[Hashable]) -> "TagDictionary":
        """The same dictionary with the ids of these labels; others are dropped, and a list that is left empty allows all."""
        ids = {label: i for i, label in enumerate(classes)}
        new = np.array([ids.get(label, -1) for label in self.classes], np.int32)[self.labels]
        lists = np.repeat(np.arange(len(self.ptr) - 1), np.diff(self.ptr))[new >= 0]
        order = np.lexsort((new[new >= 0], lists))
        counts = np.bincount(lists, minlength=len(self.ptr) - 1)
        related = self.related
        if related is not None:
            related = related.renumber(np.array([ids.get(label, -1) for label in self.classes], np.int32))
        lists_of = offsets(counts), new[new >= 0][order]
        return TagDictionary(tuple(classes), self.words, self.endings, *lists_of, self.column, related)

    def words_without(self, labels: Collection[Hashable]) -> list[str]:
        """The words that have labels, but none of these."""
        known = set(labels)
        is_known = np.array([label in known for label in self.classes], np.bool_)
        counts = np.diff(self.ptr)
        lists = np.repeat(np.arange(len(counts)), counts)
        n_known = np.bincount(lists[is_known[self.labels]], minlength=len(counts))
        return [word for v, word in enumerate(self.words) if counts[v] and not n_known[v]]

    def join(self, other: "TagDictionary") -> "TagDictionary":
        """A dictionary that allows a word, or an ending, the labels that either one does.

        Related forms are those of this one; where it has none, those of the other.
        """
        classes = tuple(dict.fromkeys((*self.classes, *other.classes)))
        both = [dictionary.bind_labels(classes) for dictionary in (self, other)]
        words = {text: v for v, text in enumerate(dict.fromkeys((*self.words, *other.words)))}
        endings = dict.fromkeys((*self.endings, *other.endings))
        ending_lists = {text: len(words) + e for e, text in enumerate(endings)}
        n_lists, codes = len(words) + len(endings), []
        allows_all = np.zeros(n_lists, np.bool_)
        for one in both:
            lists = [words[text] for text in one.words] + [ending_lists[text] for text in one.endings]
            to, counts = np.array(lists, np.int64), np.diff(one.ptr)
            allows_all[to[counts == 0]] = True
            codes.append(np.repeat(to, counts) * len(classes) + one.labels)
        of, labels = np.divmod(distinct(np.concatenate(codes)), len(classes))
        kept = ~allows_all[of]
        ptr = offsets(np.bincount(of[kept], minlength=n_lists))
        lists_of = ptr, labels[kept].astype(np.int32)
        related = both[1].related if both[0].related is None else both[0].related
        return TagDictionary(classes, tuple(words), tuple(endings), *lists_of, self.column, related)

    def allowed(self, X: Iterable[Any], gold: Annotation | None = None) -> AllowedLabels:
        """The ids of the labels that the positions of sequences X may have; those that `gold` names are added."""
        return self.allowed_entries(self.find_entries(words_of(X, self.column)), gold)

    def find_entries(self, words: Iterable[str]) -> Int64s:
        """The list of labels of each word, −1 where there is none."""
        return np.fromiter(self._entries_of(words), np.int64)

    def allowed_entries(self, entries: Int64s, gold: Annotation | None = None) -> AllowedLabels:
        """The same as `allowed`, for positions with these lists of labels, [T]."""
        empty = entries < 0
        entries = np.where(empty, 0, entries)
        ptr, labels = self._all_lists()
        counts = np.where(empty, 0, ptr[entries + 1] - ptr[entries])
        position_ptr = offsets(counts)
        places = np.arange(position_ptr[-1]) + np.repeat(ptr[entries] - position_ptr[:-1], counts)
        allowed = AllowedLabels(position_ptr, labels[places])
        return allowed if gold is None else _with_gold(allowed, gold, len(self.classes))

    def coverage(self, X: Iterable[Any], y: Iterable[Any]) -> Coverage:
        """How often the label of a position is among those of its word. Positions with None or several are left out."""
        X, gold = list(X), list(chain.from_iterable(y))
        ids = {label: i for i, label in enumerate(self.classes)}
        labels = np.array(
            [-2 if label is None else ids.get(label, -1) for label in map(_single, gold)], np.int64
        )
        allowed = self.allowed(X)
        counts = np.diff(allowed.position_ptr)
        if len(counts) != len(labels):
            raise ShapeError(f"X has {len(counts)} positions but y has {len(labels)} labels")
        position = np.repeat(np.arange(len(counts)), counts)
        covered = (counts == 0) & (labels >= 0)
        covered[position[allowed.labels == labels[position]]] = True
        counts = np.where(counts == 0, len(self.classes), counts)
        known = np.fromiter((word in self for word in words_of(X, self.column)), np.bool_)
        judged = labels > -2
        shares = [_mean(part[judged & which]) for which in (known, ~known) for part in (covered, counts)]
        return Coverage(
            int(judged.sum()), _mean(covered[judged]), _mean(counts[judged]), _mean(known[judged]), *shares
        )

    def _entries_of(self, words: Iterable[str]) -> Iterable[int]:
        found: dict[str, int] = {}  # words met before
        for word in words:
            entry = found.get(word)
            if entry is None:
                entry = found[word] = self._entry(word)
            yield entry

    def _all_lists(self) -> tuple[Int64s, Int32s]:
        """The lists of words and endings, and behind them those of unknown words with related forms."""
        if not self._of_related:
            return self.ptr, self.labels
        more = sorted(self._of_related, key=self._of_related.__getitem__)
        ends = self.ptr[-1] + offsets([len(ids) for ids in more])[1:]
        labels = np.array([i for ids in more for i in ids], np.int32)
        return np.concatenate([self.ptr, ends]), np.concatenate([self.labels, labels])

    def _entry(self, word: str) -> int:
        """The list of a word, or of its longest ending that has one; −1 where there is none."""
        lower = word.lower()
        entry = self._entries.get(lower)
        if entry is not None:
            return entry
        if self.related is not None and (ids := self.related.candidates(lower)):
            return self._of_related.setdefault(ids, len(self.ptr) - 1 + len(self._of_related))
        for begin in range(max(len(lower) - self._longest, 0), len(lower) + 1):
            entry = self._ending_entries.get(lower[begin:])
            if entry is not None:
                return entry
        return -1


def _lists(pairs: Int64s, chosen: Int64s, endings: Endings, n_labels: int) -> tuple[Int64s, Int32s]:
    """The labels of each word, its own and those of the ending it shares, and then those of each ending."""
    n_words = len(chosen)
    sharing = np.flatnonzero(chosen >= 0)
    counts = np.diff(endings.ptr)[chosen[sharing]]
    begins = offsets(counts)
    places = np.arange(begins[-1]) + np.repeat(endings.ptr[chosen[sharing]] - begins[:-1], counts)
    shared = np.repeat(sharing, counts) * n_labels + endings.labels[places]
    codes = distinct(np.concatenate([pairs[:, 0] * n_labels + pairs[:, 1], shared]))
    words, labels = np.divmod(codes, n_labels)
    ptr = offsets(np.bincount(words, minlength=n_words))
    return (
        np.concatenate([ptr, ptr[-1] + endings.ptr[1:]]),
        np.concatenate([labels.astype(np.int32), endings.labels]),
    )


def _with_gold(allowed: AllowedLabels, gold: Annotation, n_labels: int) -> AllowedLabels:
    """AllowedLabels that allows the labels that an annotation names; where all are allowed already, it stays so."""
    counts = np.diff(allowed.position_ptr)
    named = np.flatnonzero(gold.labels >= 0)
    positions = [np.repeat(np.arange(len(counts)), counts), named]
    labels = [allowed.labels, gold.labels[named]]
    if gold.sets is not None:
        positions.append(np.repeat(np.arange(len(counts)), np.diff(gold.sets.position_ptr)))
        labels.append(gold.sets.labels)
    at, which = np.concatenate(positions), np.concatenate(labels)
    at, which = at[counts[at] > 0], which[counts[at] > 0]
    at, which = np.divmod(distinct(at * n_labels + which), n_labels)
    return AllowedLabels(offsets(np.bincount(at, minlength=len(counts))), which.astype(np.int32))


def _mean(numbers: npt.NDArray[Any]) -> float:
    return float(numbers.mean()) if len(numbers) else float("nan")


def _single(entry: Any) -> Any:
    """The only label that an entry of y names; None where it names none or several."""
    if isinstance(entry, set | frozenset):
        return next(iter(entry)) if len(entry) == 1 else None
    return entry


def _sort(labels: set[Hashable]) -> list[Hashable]:
    try:
        return sorted(labels)  # type: ignore[type-var]
    except TypeError:
        return sorted(labels, key=repr)
