"""Word clusters: words with a class, or with a path in a tree of classes whose beginnings are coarser classes."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, Self

import numpy as np

from crfkit import _core
from crfkit.counts import check_count
from crfkit.data import number_lines, replacing
from crfkit.errors import ArgumentError, FileFormatError
from crfkit.features.knowledge import mapped_file
from crfkit.features.knowledge.mapped_file import MappedFile
from crfkit.features.knowledge.resource import Resource, index_words, open_words
from crfkit.features.wording import describe_value

_PATH = re.compile(r"[01]+")
_BREAK = re.compile(r"[\t\r\n]")
_MOST = 2**64 - 1  # a count
LENGTHS = (4, 6, 10, None)  # of paths, as features mostly have them


class ClusteredWord(NamedTuple):
    """A word with its class, or with its path, and how often it occurred."""

    word: str
    path: str
    frequency: int = 0


class Clusters(Resource):
    """Classes of words: paths of Brown clusters, whose beginnings are coarser classes, or flat classes.

    `Clusters.read` takes them from text files, `Clusters.build` from a dict, `learn_clusters` learns them from text.

    >>> clusters = Clusters.build({"Paris": "0110", "Rome": "0111", "runs": "10"})
    >>> clusters["Rome"], clusters.get("Rome", 3), clusters.get("Oslo")
    ('0111', '011', None)
    """

    KIND = "clusters"

    @classmethod
    def build(
        cls,
        words: Mapping[str, str] | Iterable[ClusteredWord],
        path: str | os.PathLike[str] | None = None,
        *,
        fold_case: bool = False,
    ) -> Self:
        """Clusters of words with their classes or paths; with `path`, in a file that is mapped.

        With `fold_case`, words are compared without regard to case: of several words that are equal then, the class of the
        most frequent one counts.
        """
        given: object = words
        if isinstance(given, str | bytes) or not isinstance(given, Iterable):
            raise ArgumentError(f"words is {describe_value(given)}, expected words with their classes")
        if isinstance(words, Mapping):
            words = [ClusteredWord(word, class_) for word, class_ in words.items()]
        names, paths = _core.Vocabulary(), _core.Vocabulary()
        classes: list[int] = []
        counts: list[int] = []
        for entry in words:
            if not isinstance(entry, tuple | list) or len(entry) != 3:
                raise ArgumentError(
                    f"words has {describe_value(entry)}, expected a ClusteredWord: a word, its class and its count"
                )
            word, class_, count = entry
            if not isinstance(word, str) or not isinstance(class_, str):
                raise ArgumentError(
                    f"words has {describe_value(word)} with {describe_value(class_)}, expected words with strings"
                )
            count = check_count(f"the count of {word!r}", count, _MOST, least=0)
            id = names.add(word.casefold() if fold_case else word)
            if id == len(classes):
                classes.append(paths.add(class_))
                counts.append(count)
            elif count > counts[id]:
                classes[id], counts[id] = paths.add(class_), count
        arrays = {
            **index_words(names),
            "classes": np.array(classes, dtype=np.uint32),
            "counts": np.array(counts, dtype=np.uint64),
        }
        settings = {"paths": paths.names(), "fold_case": bool(fold_case)}
        return cls._keep(mapped_file.make(cls.KIND, settings, arrays), path)

    @classmethod
    def read(
        cls,
        path: str | os.PathLike[str],
        to: str | os.PathLike[str] | None = None,
        *,
        fold_case: bool = False,
    ) -> Self:
        """Clusters of a text file; with `to`, in a file that is mapped.

        Lines are `path<TAB>word<TAB>count`, as programs for Brown clusters write them, or `word<TAB>class` for flat classes,
        in each case with or without what comes last; blanks may stand for tabs.
        """
        rows: list[list[str]] = []
        for number, line in number_lines(path):
            if not line.strip():
                continue
            row = line.split("\t") if "\t" in line else line.split()
            if not 2 <= len(row) <= 3 or not row[0] or not row[1]:
                raise FileFormatError(
                    f"{path}:{number}: expected a path, a word and its count, or a word and its class"
                )
            if row[2:] and row[2].isdecimal() and int(row[2]) > _MOST:
                raise FileFormatError(f"{path}:{number}: the count is {row[2]}, expected at most {_MOST}")
            rows.append(row)
        if not rows:
            raise FileFormatError(f"{path}: the file has no word, expected one on each line")
        by_path = all(_PATH.fullmatch(row[0]) for row in rows)
        words = (
            ClusteredWord(
                row[by_path], row[not by_path], int(row[2]) if row[2:] and row[2].isdecimal() else 0
            )
            for row in rows
        )
        return cls.build(words, to, fold_case=fold_case)

    def _open(self, file: MappedFile) -> None:
        paths, fold_case = file.settings["paths"], file.settings["fold_case"]
        self._words = open_words(file)
        self._classes, self._counts = file.arrays["classes"], file.arrays["counts"]
        if not isinstance(paths, list) or not all(isinstance(path, str) for path in paths):
            raise ValueError("its paths are damaged")
        if not isinstance(fold_case, bool):
            raise ValueError("its settings are damaged")
        if self._classes.shape != (len(self._words),) or self._counts.shape != self._classes.shape:
            raise ValueError("the sizes of its arrays do not fit together")
        if len(self._classes) and int(self._classes.max()) >= len(paths):
            raise ValueError("a word has a class that there is not")
        self._paths: list[str] = paths
        self.fold_case = fold_case

    @property
    def paths(self) -> tuple[str, ...]:
        """The classes, or the paths of the classes."""
        return tuple(self._paths)

    def __len__(self) -> int:
        """How many words have a class."""
        return len(self._words)

    def __repr__(self) -> str:
        return f"<Clusters of {len(self):,} words in {len(self._paths):,} classes>"

    def __contains__(self, word: str) -> bool:
        return self.get(word) is not None

    def __getitem__(self, word: str) -> str:
        """The class or path of a word; KeyError where it has none."""
        found = self.get(word)
        if found is None:
            raise KeyError(word)
        return found

    def get(self, word: str, length: int | None = None) -> str | None:
        """What the macro `%cluster[0,0]` reads for a word, or `%cluster[0,0,length]`; None where it has no class.

        That is its path, or the first `length` characters of it; all of it where it is shorter.
        """
        id = self._words.get(word.casefold() if self.fold_case else word)
        if id < 0:
            return None
        path: str = self._paths[int(self._classes[id])]
        return path if length is None else path[:length]

    def features(
        self, words: Sequence[str], name: str = "cluster", lengths: Sequence[int | None] = LENGTHS
    ) -> list[list[str]]:
        """Strings for positions that are lists of features: `cluster4=0110`, and `cluster=…` for the whole path."""
        return [
            [
                f"{name}{'' if length is None else length}={value}"
                for length in lengths
                if (value := self.get(word, length)) is not None
            ]
            for word in words
        ]

    def words(self) -> list[ClusteredWord]:
        """All words with their paths and counts."""
        return [
            ClusteredWord(self._words.name(id), self._paths[class_], count)
            for id, (class_, count) in enumerate(
                zip(self._classes.tolist(), self._counts.tolist(), strict=True)
            )
        ]

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write the text file of lines `path<TAB>word<TAB>count`, which `read` takes, sorted by path and count."""
        lines = [_write_line(word) for word in sort_by_path(self.words())]
        with replacing(path) as stream:
            stream.writelines(lines)


def sort_by_path(words: Iterable[ClusteredWord]) -> list[ClusteredWord]:
    """The words in the order of text files: those of a class together, the most frequent first."""
    return sorted(words, key=lambda word: (word.path, -word.frequency))


def _write_line(entry: ClusteredWord) -> bytes:
    """The line of a word in a text file; ArgumentError where no line can hold it."""
    word, path, count = entry
    try:
        if not (word and path) or _BREAK.search(word + path):
            raise ValueError
        return f"{path}\t{word}\t{count}\n".encode()
    except ValueError:  # UnicodeEncodeError too
        raise ArgumentError(
            f"the word {word!r} with the path {path!r} cannot be a line of a text file, expected Unicode text without tabs "
            "and line ends in both; save keeps such words"
        ) from None
