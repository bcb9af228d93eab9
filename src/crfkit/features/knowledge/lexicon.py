"""Lexicons: lists of names, places, terms …, and where their entries occur in a sequence of words."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import NamedTuple, Self

from crfkit import _core
from crfkit.data import number_lines, source_name
from crfkit.errors import ArgumentError, FileFormatError
from crfkit.features.hunspell import MOST_FORMS, hunspell_forms
from crfkit.features.knowledge import mapped_file
from crfkit.features.knowledge.mapped_file import MappedFile
from crfkit.features.knowledge.resource import WORD_ARRAYS, Resource, open_words
from crfkit.features.wording import describe_value

Entry = str | Sequence[str]  # a text that is split into tokens, or its tokens
MAX_LISTS = 1000
_ARRAYS = ("first", "edges", "node_sets", "set_ptr", "set_lists")  # of its file, beside those of the tokens
_LETTERS = " BIES"  # of the states
_ENDS = (3, 4)  # the states E and S


class Match(NamedTuple):
    """An entry of a list at the positions start, …, end − 1."""

    start: int
    end: int
    list: str


class Lexicon(Resource):
    """Lists of entries, each of one or several tokens, for features such as "this word is in a list of cities".

    `Lexicon.build` makes one of entries, `Lexicon.read` of text files; with a path they write a file that `Lexicon.load`
    maps in milliseconds, also with millions of entries. An entry may be in several lists.

    Matching goes list by list, from left to right: where an entry of the list begins, the longest one is taken, and matching
    goes on behind it.

    >>> lexicon = Lexicon.build({"city": ["York", "New York"], "person": ["York"]})
    >>> lexicon.match(["New", "York"])
    [Match(start=0, end=2, list='city'), Match(start=1, end=2, list='person')]
    >>> lexicon.states(["New", "York"], "city")
    ['B', 'E']
    >>> lexicon["York"]
    ('city', 'person')
    """

    KIND = "lexicon"

    @classmethod
    def build(
        cls,
        entries: Iterable[Entry] | Mapping[str, Iterable[Entry]],
        path: str | os.PathLike[str] | None = None,
        *,
        fold_case: bool = False,
        split: Callable[[str], Sequence[str]] = str.split,
    ) -> Self:
        """A lexicon of entries, one list of them or several by name; with `path`, in a file that is mapped.

        An entry is a text, which `split` makes tokens of (at blanks; `list` for characters), or a sequence of tokens. With
        `fold_case`, entries and words are compared without regard to case.
        """
        if isinstance(entries, str | bytes) or not isinstance(entries, Iterable):
            raise ArgumentError(
                f"entries is {describe_value(entries)}, expected a list of entries, or such lists by name"
            )
        lists = dict(entries) if isinstance(entries, Mapping) else {"": entries}
        for name, some in lists.items():
            if not isinstance(name, str):
                raise ArgumentError(f"entries has a list named {describe_value(name)}, expected a string")
            if isinstance(some, str | bytes) or not isinstance(some, Iterable):
                raise ArgumentError(
                    f"the list {name!r} of entries is {describe_value(some)}, expected a list of entries"
                )
        named = ((name, entry) for name, some in lists.items() for entry in some)
        return cls._build(named, list(lists), path, fold_case=fold_case, split=split)

    @classmethod
    def read(
        cls,
        paths: str | os.PathLike[str] | Mapping[str, str | os.PathLike[str] | Iterable[bytes]],
        to: str | os.PathLike[str] | None = None,
        *,
        fold_case: bool = False,
        split: Callable[[str], Sequence[str]] = str.split,
    ) -> Self:
        """A lexicon of text files, one entry a line; with `to`, in a file that is mapped.

        Several files, or streams of lines, by the names of their lists, or one file. In a line with a tab, what stands
        behind it is the name of the entry's list.
        """
        files = paths if isinstance(paths, Mapping) else {"": paths}
        pairs = chain.from_iterable(_read_entries(path, name) for name, path in files.items())
        return cls._build(pairs, [], to, fold_case=fold_case, split=split)

    @classmethod
    def from_hunspell(
        cls,
        path: str | os.PathLike[str],
        to: str | os.PathLike[str] | None = None,
        *,
        affixes: str | os.PathLike[str] | None = None,
        fold_case: bool = False,
        limit: int = MOST_FORMS,
    ) -> Self:
        """A lexicon of all forms of a hunspell dictionary (.dic, and `affixes`, by default the .aff file beside it).

        With `to`, in a file that is mapped. More than `limit` forms raise an error.
        """
        forms = (("", form.form) for form in hunspell_forms(path, affixes, limit=limit))
        return cls._build(forms, [""], to, fold_case=fold_case, split=str.split)

    @classmethod
    def _build(
        cls,
        entries: Iterable[tuple[str, Entry]],
        names: list[str],
        path: str | os.PathLike[str] | None,
        *,
        fold_case: bool,
        split: Callable[[str], Sequence[str]],
    ) -> Self:
        if not callable(split):
            raise ArgumentError(f"split is {describe_value(split)}, expected a function of a text")
        builder = _core.LexiconBuilder()
        numbers = {name: number for number, name in enumerate(names)}
        for name, entry in entries:
            if not isinstance(entry, str | list | tuple):
                raise ArgumentError(
                    f"an entry is {describe_value(entry)}, expected a text or a sequence of tokens"
                )
            found = split(entry) if isinstance(entry, str) else entry
            if isinstance(found, str | bytes) or not isinstance(found, Iterable):
                raise ArgumentError(
                    f"split makes {describe_value(found)} of the entry {entry!r}, expected a list of tokens"
                )
            tokens = list(found)
            for token in tokens:
                if not isinstance(token, str):
                    raise ArgumentError(
                        f"the entry {entry!r} has {describe_value(token)}, expected tokens that are strings"
                    )
            if fold_case:
                tokens = [token.casefold() for token in tokens]
            if not tokens:
                raise ArgumentError(f"the entry {entry!r} has no tokens")
            builder.add(tokens, numbers.setdefault(name, len(numbers)))
            if len(numbers) > MAX_LISTS:
                raise ArgumentError(
                    f"entries are in more than {MAX_LISTS:,} lists, expected at most {MAX_LISTS:,}"
                )
        if not numbers:
            raise ArgumentError("a lexicon needs at least one list")
        arrays: dict[str, mapped_file.Array] = dict(
            zip((*WORD_ARRAYS, *_ARRAYS), [*builder.tokens(), *builder.finish()], strict=True)
        )
        settings = {"lists": list(numbers), "fold_case": bool(fold_case), "n_entries": builder.n_entries}
        return cls._keep(mapped_file.make(cls.KIND, settings, arrays), path)

    def _open(self, file: MappedFile) -> None:
        lists, fold_case, n_entries = (file.settings[name] for name in ("lists", "fold_case", "n_entries"))
        if not isinstance(lists, list) or not all(isinstance(name, str) for name in lists):
            raise ValueError("its lists have no names")
        if not isinstance(fold_case, bool) or not isinstance(n_entries, int) or n_entries < 0:
            raise ValueError("its settings are damaged")
        if len(set(lists)) != len(lists) or not 1 <= len(lists) <= MAX_LISTS:
            raise ValueError("its lists are damaged")
        self._table = _core.LexiconTable(open_words(file), [file.arrays[name] for name in _ARRAYS], lists)
        self._lists: tuple[str, ...] = tuple(lists)
        self.fold_case = fold_case
        self._n_entries = n_entries

    @property
    def lists(self) -> tuple[str, ...]:
        """The names of its lists; `("",)` where there is one without a name."""
        return self._lists

    def __len__(self) -> int:
        """How many entries there are; one in several lists counts once."""
        return self._n_entries

    def __repr__(self) -> str:
        names = ", ".join(filter(None, self._lists))
        return f"<Lexicon of {len(self):,} entries{f' in the lists {names}' if names else ''}>"

    def __getitem__(self, entry: Entry) -> tuple[str, ...]:
        """The lists that have exactly this entry: a text that is split at blanks, or its tokens."""
        tokens = entry.split() if isinstance(entry, str) else entry
        return tuple(self._lists[number] for number in self._table.find(self._folded(tokens)))

    def __contains__(self, entry: Entry) -> bool:
        """Whether a list has exactly this entry."""
        return bool(self[entry])

    def match(self, words: Sequence[str]) -> list[Match]:
        """The entries that occur in a sequence of words, list by list without overlaps; sorted by their place."""
        states = self._table.states(self._folded(words))  # [lists, T]
        found: list[Match] = []
        for name, row in zip(self._lists, states.tolist(), strict=True):
            start = 0
            for i, state in enumerate(row):
                if state in _ENDS:
                    found.append(Match(start, i + 1, name))
                if state == 0 or state in _ENDS:
                    start = i + 1
        return sorted(found, key=lambda match: (match.start, match.end, self._lists.index(match.list)))

    def states(self, words: Sequence[str], list: str | None = None) -> list[str | None]:
        """What the macro `%in[0,0,name]` reads at each word, or `%in[0,0,name,list]`; None where no entry is.

        For one list, B, I, E and S: the first, an inner, the last and the only word of an entry. For several lists, these
        with the names of the lists: `B-city+S-person`.
        """
        number = -1 if list is None else self.number_of(list)
        return self._table.values(self._folded(words), number)

    def features(self, words: Sequence[str], name: str = "in") -> list[list[str]]:
        """Strings for positions that are lists of features: `name=B-city`, one for each list that has an entry there."""
        columns = self._table.states(self._folded(words)).T.tolist()  # [T, lists]
        ends = [f"-{list}" if len(self._lists) > 1 else "" for list in self._lists]
        return [
            [f"{name}={_LETTERS[state]}{end}" for state, end in zip(states, ends, strict=True) if state]
            for states in columns
        ]

    def number_of(self, list: str) -> int:
        """The number of a list; ArgumentError where there is none of this name."""
        if list not in self._lists:
            known = ", ".join(map(repr, self._lists))
            expected = ": its entries are in one list without a name"
            if self._lists != ("",):
                expected = f", expected one of {known}"
            raise ArgumentError(f"the lexicon has no list {list!r}{expected}")
        return self._lists.index(list)

    @property
    def table(self) -> _core.LexiconTable:
        """The lexicon as the native core holds it."""
        return self._table

    def fold(self, word: str) -> str:
        """A word as it is compared with those of entries."""
        return word.casefold() if self.fold_case else word

    def _folded(self, words: Sequence[str]) -> Sequence[str]:
        if isinstance(words, str):
            raise ArgumentError(f"words is {describe_value(words)}, expected a list of words")
        return [word.casefold() for word in words] if self.fold_case else words


def _read_entries(source: str | os.PathLike[str] | Iterable[bytes], name: str) -> Iterator[tuple[str, str]]:
    """(list, entry) of each line of a text file that is not blank."""
    is_empty, path = True, source_name(source)
    for number, line in number_lines(source):
        entry, tab, listed = line.rpartition("\t") if "\t" in line else (line, "", "")
        if not line.strip():
            continue
        if not entry.strip() or (tab and not listed.strip()):
            raise FileFormatError(f"{path}:{number}: expected an entry, a tab and the name of its list")
        is_empty = False
        yield (listed.strip() or name), entry
    if is_empty:
        raise FileFormatError(f"{path}: the file has no entry, expected one on each line")
