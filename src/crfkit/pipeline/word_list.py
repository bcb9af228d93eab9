"""What a list of words of a language, such as that of a spelling checker, says of a word: a signature of its inflection.

The list shows which endings alternate: English words come with and without s, ed, ing, 's. A word is then described by the
endings that it can take, and by the words that it may be derived from, with what these can take. That tells nouns from verbs
and adjectives among words that the training set does not have.
"""

import os
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple, Self

from crfkit.data import read_text
from crfkit.errors import ArgumentError, EmptyDataError

N_ENDINGS = 20  # alternations that are kept: the most frequent ones
_LONGEST = 4  # characters of an ending
_SHORTEST_STEM = 3
_MOST_KEPT = 100_000  # words whose columns are kept

N_COLUMNS = 3


class Alternation(NamedTuple):
    """Two endings of one stem: that of a shorter word, and that of a longer one."""

    before: str
    after: str


class WordList:
    """Words of a language; capitalised ones are names.

    >>> words = WordList(["walk", "walks", "walked", "walking", "talk", "talks", "talked", "talking", "London"])
    >>> [(one.before, one.after) for one in words.alternations][:3]
    [('', 'ed'), ('', 'ing'), ('', 's')]
    >>> words.columns("Walks")
    ('l', 'de', 's|abc')
    >>> words.columns("london")
    ('c', '-', '-')
    """

    def __init__(self, words: Iterable[str], alternations: Sequence[Alternation] | None = None) -> None:
        if isinstance(words, str | bytes) or not isinstance(words, Iterable):
            raise ArgumentError(f"words is of type {type(words).__name__}, expected a list of words")
        self.words = frozenset(words)
        if not all(isinstance(word, str) for word in self.words):
            raise ArgumentError("words has something that is no string, expected a list of words")
        if not self.words:
            raise EmptyDataError("the list of words is empty")
        self.alternations = tuple(find_alternations(self.words) if alternations is None else alternations)
        self._kept = _keep(self._describe)

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Self:
        """Of a file with one word on each line (also .gz, .xz, .bz2)."""
        words = [word for line in read_text(path).splitlines() if (word := line.strip())]
        if not words:
            raise EmptyDataError(f"{os.fspath(path)}: the file has no word, expected one on each line")
        return cls(words)

    def columns(self, form: str) -> tuple[str, str, str]:
        """Of a word: how it is listed, which endings it can take, what it may be derived from.

        The first is `l` for a word as it is in lower case, `c` capitalised, `u` in capitals; `-`: not listed.
        """
        return self._kept(form)

    def _describe(self, form: str) -> tuple[str, str, str]:
        lower = form.lower()
        listed = ("l" if lower in self.words else "") + ("c" if lower.capitalize() in self.words else "")
        if not listed and form.upper() in self.words:
            listed = "u"
        bases = {
            f"{one.after}|{self._endings(base)}"
            for one in self.alternations
            if (base := _exchange(lower, one.after, one.before)) in self.words
        }
        return listed or "-", self._endings(lower), "/".join(sorted(bases)) or "-"

    def _endings(self, word: str) -> str:
        """The alternations by which a word becomes another one of the list, a letter for each."""
        found = (
            chr(ord("a") + i)
            for i, one in enumerate(self.alternations)
            if _exchange(word, one.before, one.after) in self.words
        )
        return "".join(found) or "-"

    def __getstate__(self) -> dict[str, Any]:
        return {"words": self.words, "alternations": self.alternations}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._kept = _keep(self._describe)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, WordList) and self.__getstate__() == other.__getstate__()

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"WordList({len(self.words):,} words)"


def find_alternations(words: Iterable[str]) -> list[Alternation]:
    """The most frequent alternations of endings in a list of words; the one before has at most one character."""
    endings: defaultdict[str, list[str]] = defaultdict(list)  # of each stem
    for word in words:
        if word == word.lower():
            for cut in range(max(_SHORTEST_STEM, len(word) - _LONGEST), len(word) + 1):
                endings[word[:cut]].append(word[cut:])
    counts: Counter[Alternation] = Counter()
    for own in endings.values():
        short = [ending for ending in own if len(ending) <= 1]
        counts.update(
            Alternation(before, after)
            for before in short
            for after in own
            if len(before) < len(after) and (not before or before[0] != after[0])
        )
    return sorted(counts, key=lambda one: (-counts[one], one))[:N_ENDINGS]


def _exchange(word: str, before: str, after: str) -> str | None:
    """The word with another ending; None where it does not end so, or would have no stem."""
    stem = len(word) - len(before)
    return word[:stem] + after if word.endswith(before) and stem >= _SHORTEST_STEM - 1 else None


def _keep(describe: Callable[[str], tuple[str, str, str]]) -> Callable[[str], tuple[str, str, str]]:
    return lru_cache(_MOST_KEPT)(describe)
