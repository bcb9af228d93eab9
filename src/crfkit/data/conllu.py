"""CoNLL-U: sentences of words with lemma, tags, morphology, head and relation.

The format: ten columns separated by tabs (ID FORM LEMMA UPOS XPOS FEATS HEAD DEPREL DEPS MISC), `_` for
what is not given, comment lines that begin with `#`, a blank line after each sentence. Words are numbered
1, 2, …; a line whose ID is a range such as `3-4` is the written form of several words, one such as `8.1` is
a node that was not written at all.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple, NoReturn

from crfkit.data.errors import InputError
from crfkit.data.files import Source, numbered_lines, source_name

_WORD = re.compile(r"[1-9][0-9]{0,8}")
_RANGE = re.compile(r"([1-9][0-9]{0,8})-([1-9][0-9]{0,8})")
_EMPTY = re.compile(r"([0-9]{1,9})\.([1-9][0-9]{0,8})")


class Word(NamedTuple):
    """A word; its number is its place in `Sentence.words`, counted from 1. Texts are as in the file."""

    form: str
    lemma: str
    upos: str
    xpos: str
    feats: str  # Name=Value|…, or _
    head: int | None  # number of its head, 0 for the root, None when the file has _
    deprel: str
    deps: str
    misc: str


class Multiword(NamedTuple):
    """Words `first` to `last` (numbered from 1, both included) are written together as `form`."""

    first: int
    last: int
    form: str
    misc: str


class EmptyNode(NamedTuple):
    """A node that is not written, for the enhanced graph only: number `rank` of those after word `after`."""

    after: int
    rank: int
    form: str
    lemma: str
    upos: str
    xpos: str
    feats: str
    deps: str
    misc: str


@dataclass(frozen=True, slots=True)
class Sentence:
    """One sentence of a CoNLL-U file."""

    words: list[Word]
    multiwords: list[Multiword] = field(default_factory=list)
    empty_nodes: list[EmptyNode] = field(default_factory=list)
    comments: list[str] = field(default_factory=list)  # whole lines, with their #
    line: int = 1  # number of the line of its first node, counted from 1
    source: str = "<stream>"


def read_conllu(source: Source) -> Iterator[Sentence]:
    """Read a CoNLL-U file (a path, also .gz, .xz, .bz2, or a stream), one sentence at a time."""
    name = source_name(source)
    reader = _Reader(name)
    empty = True
    for number, line in numbered_lines(source):
        if line.startswith("#"):
            reader.comments.append(line)
        elif line.strip(" \t"):
            reader.read(number, line)
        elif reader.line:
            empty = False
            yield reader.finish()
            reader = _Reader(name)
    if reader.line:
        empty = False
        yield reader.finish()
    if empty:
        raise InputError(f"{name}: the file has no sentence, expected CoNLL-U")


class _Reader:
    """Collects the lines of one sentence."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.comments: list[str] = []
        self.words: list[Word] = []
        self.word_lines: list[int] = []
        self.multiwords: list[Multiword] = []
        self.empty_nodes: list[EmptyNode] = []
        self.line = 0  # 0: no node was read yet
        self.last_line = 0

    def read(self, number: int, line: str) -> None:
        columns = line.split("\t")
        if len(columns) != 10:
            self.complain(number, f"found {len(columns)} tab-separated columns, expected the 10 of CoNLL-U")
        self.line = self.line or number
        self.last_line = number
        node, form, *rest = columns
        if _WORD.fullmatch(node):
            self.word(number, columns)
        elif found := _RANGE.fullmatch(node):
            self.multiword(number, int(found[1]), int(found[2]), form, rest[-1])
        elif found := _EMPTY.fullmatch(node):
            self.empty_node(number, int(found[1]), int(found[2]), columns)
        else:
            self.complain(number, f"the ID is '{node}', expected a number, a range such as 3-4, or 8.1")

    def word(self, number: int, columns: list[str]) -> None:
        node, form, lemma, upos, xpos, feats, head, deprel, deps, misc = columns
        if int(node) != len(self.words) + 1:
            self.complain(number, f"the ID is {node}, expected {len(self.words) + 1}")
        if head != "_" and head != "0" and not _WORD.fullmatch(head):
            self.complain(number, f"the HEAD is '{head}', expected the number of a word, 0 or _")
        governor = None if head == "_" else int(head)
        self.words.append(Word(form, lemma, upos, xpos, feats, governor, deprel, deps, misc))
        self.word_lines.append(number)

    def multiword(self, number: int, first: int, last: int, form: str, misc: str) -> None:
        begin = max(len(self.words), self.multiwords[-1].last if self.multiwords else 0) + 1
        if first != len(self.words) + 1 or first < begin or last <= first:
            self.complain(
                number, f"the range is {first}-{last}, expected one that begins at {begin} and goes up"
            )
        self.multiwords.append(Multiword(first, last, form, misc))

    def empty_node(self, number: int, after: int, rank: int, columns: list[str]) -> None:
        previous = self.empty_nodes[-1] if self.empty_nodes else None
        expected = previous.rank + 1 if previous and previous.after == len(self.words) else 1
        if (after, rank) != (len(self.words), expected):
            self.complain(number, f"the ID is {after}.{rank}, expected {len(self.words)}.{expected}")
        _, form, lemma, upos, xpos, feats, _, _, deps, misc = columns
        self.empty_nodes.append(EmptyNode(after, rank, form, lemma, upos, xpos, feats, deps, misc))

    def finish(self) -> Sentence:
        if not self.words:
            self.complain(self.line, "the sentence has no word")
        for word, number in zip(self.words, self.word_lines, strict=True):
            if word.head is not None and word.head > len(self.words):
                self.complain(
                    number, f"the HEAD is {word.head}, but the sentence has {len(self.words)} words"
                )
        if self.multiwords and self.multiwords[-1].last > len(self.words):
            last = self.multiwords[-1]
            self.complain(
                self.last_line, f"the range {last.first}-{last.last} goes beyond the {len(self.words)} words"
            )
        return Sentence(self.words, self.multiwords, self.empty_nodes, self.comments, self.line, self.name)

    def complain(self, number: int, what: str) -> NoReturn:
        raise InputError(f"{self.name}:{number}: {what}")
