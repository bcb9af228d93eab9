"""CoNLL-U: sentences of words with lemma, tags, morphology, head and relation.

The format: ten columns separated by tabs (ID FORM LEMMA UPOS XPOS FEATS HEAD DEPREL DEPS MISC), `_` for
what is not given, comment lines that begin with `#`, a blank line after each sentence. Words are numbered
1, 2, …; a line whose ID is a range such as `3-4` is the written form of several words, one such as `8.1` is
a node that was not written at all.
"""

import re
import warnings
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import IO, NamedTuple, NoReturn

from crfkit.data.files import Source, Target, number_lines, open_target, source_name
from crfkit.errors import FileFormatError, UnsavableError

_WORD = re.compile(r"[1-9][0-9]{0,8}")
_RANGE = re.compile(r"([1-9][0-9]{0,8})-([1-9][0-9]{0,8})")
_EMPTY = re.compile(r"([0-9]{1,9})\.([1-9][0-9]{0,8})")


class Word(NamedTuple):
    """A word; its number is its place in `Sentence.words`, counted from 1. Texts are as in the file."""

    form: str
    lemma: str = "_"
    upos: str = "_"
    xpos: str = "_"
    feats: str = "_"  # Name=Value|…
    head: int | None = None  # number of its head, 0 for the root, None when the file has _
    deprel: str = "_"
    deps: str = "_"
    misc: str = "_"


class Multiword(NamedTuple):
    """Words `first` to `last` (numbered from 1, both included) are written together as `form`."""

    first: int
    last: int
    form: str
    misc: str
    feats: str = "_"  # Typo=Yes in some treebanks
    lemma: str = "_"  # this and all that follows is _ in files that keep to the format
    upos: str = "_"
    xpos: str = "_"
    head: str = "_"
    deprel: str = "_"
    deps: str = "_"


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
    head: str = "_"  # this and the relation are _ in files that keep to the format
    deprel: str = "_"


class CommentsDropped(UserWarning):
    """Comments at the end of a file that belong to no sentence were left out."""


@dataclass(frozen=True, slots=True)
class Sentence:
    """One sentence of a CoNLL-U file."""

    words: list[Word]
    multiwords: list[Multiword] = field(default_factory=list)
    empty_nodes: list[EmptyNode] = field(default_factory=list)
    comments: list[str] = field(default_factory=list)  # whole lines, with their #
    line: int = 1  # number of the line of its first node, counted from 1
    source: str = "<stream>"
    gaps: tuple[int, ...] = ()  # for each comment among the nodes (the last ones), the node after it

    def place(self, number: int) -> str:
        """Where word `number` (from 1) was read, as `file:line`."""
        node = number - 1
        node += sum(multiword.first <= number for multiword in self.multiwords)
        node += sum(empty.after < number for empty in self.empty_nodes)
        return f"{self.source}:{self.line + node + bisect_right(self.gaps, node)}"


def is_conllu(rows: Sequence[Sequence[str]]) -> bool:
    """Whether the rows of a column file look like CoNLL-U: ten columns, the first one a number, a range or a decimal.

    >>> is_conllu([("1", "dogs", "dog", "NOUN", "_", "_", "0", "root", "_", "_")])
    True
    """
    numbers = (_WORD, _RANGE, _EMPTY)
    return len(rows) > 0 and all(
        len(row) == 10 and any(number.fullmatch(row[0]) for number in numbers) for row in rows
    )


def read_conllu(source: Source) -> Iterator[Sentence]:
    """Read a CoNLL-U file (a path, also .gz, .xz, .bz2, or a stream), one sentence at a time.

    >>> import io
    >>> rows = ["1 dogs dog NOUN _ _ 2 nsubj _ _", "2 bark bark VERB _ _ 0 root _ _"]
    >>> for sentence in read_conllu(io.StringIO("\\n".join(rows).replace(" ", "\\t"))):
    ...     print([(word.form, word.head, word.deprel) for word in sentence.words])
    [('dogs', 2, 'nsubj'), ('bark', 0, 'root')]
    """
    name = source_name(source)
    reader = _Reader(name)
    empty = True
    number = 0
    for number, line in number_lines(source):
        if line.startswith("#"):
            reader.comment(number, line)
        elif line.strip(" \t"):
            reader.read(number, line)
        elif reader.line:
            empty = False
            yield reader.finish()
            reader = _Reader(name)
    if reader.line:
        empty = False
        yield reader.finish()
    if empty and number:  # one without a line is what write_conllu([]) writes
        raise FileFormatError(f"{name}: the file has no sentence, expected CoNLL-U")
    if reader.comments and not reader.line:
        warnings.warn(
            f"{name}:{number}: the file ends in comments without a sentence, which are left out",
            CommentsDropped,
            stacklevel=2,
        )


def write_conllu(sentences: Iterable[Sentence], target: Target) -> None:
    """Write sentences as `read_conllu` reads them, to a path (also .gz, .xz, .bz2) or a stream of text.

    A file that was read comes back byte by byte, if its lines end in line feeds and each sentence in one blank line. A file
    without sentences is empty, and gives none when it is read.
    """
    with open_target(target) as stream:
        for number, sentence in enumerate(sentences, 1):
            _Writer(f"sentence {number}", sentence).write(stream)


class _Writer:
    """Writes the lines of one sentence."""

    def __init__(self, name: str, sentence: Sentence) -> None:
        self.name = name
        self.sentence = sentence

    def write(self, stream: IO[str]) -> None:
        sentence = self.sentence
        for comment in sentence.comments:
            if not comment.startswith("#") or "\n" in comment or "\r" in comment:
                self.complain(f"the comment {comment[:40]!r} must be one line that begins with #")
        nodes = ["\t".join(columns) for columns in self.nodes()]
        n_before = len(sentence.comments) - len(sentence.gaps)  # comments before the first node
        lines = sentence.comments[:n_before]
        begin = 0
        for comment, gap in zip(sentence.comments[n_before:], sentence.gaps, strict=True):
            lines += [*nodes[begin:gap], comment]
            begin = gap
        text = "\n".join((*lines, *nodes[begin:], "", ""))
        if not text.isascii():
            self.check_encodable(text)
        stream.write(text)

    def check_encodable(self, text: str) -> None:
        """Refuse lone surrogates, which no file in UTF-8 can hold."""
        try:
            text.encode()
        except UnicodeEncodeError as error:
            line = text[: error.start].rpartition("\n")[2] + text[error.start :].partition("\n")[0]
            shown = ascii(text[error.start])
            self.complain(f"{line[:40]!r} has the lone surrogate {shown}, which UTF-8 cannot hold")

    def nodes(self) -> Iterator[tuple[str, ...]]:
        """The ten columns of every line, in the order of the file."""
        sentence = self.sentence
        multiwords, empty_nodes = iter(sentence.multiwords), iter(sentence.empty_nodes)
        multiword, empty = next(multiwords, None), next(empty_nodes, None)
        for number in range(len(sentence.words) + 1):
            if number > 0:
                word = sentence.words[number - 1]
                head = "_" if word.head is None else str(word.head)
                yield self.check(str(number), *word[:5], head, *word[6:])
            while empty is not None and empty.after == number:
                yield self.check(
                    f"{number}.{empty.rank}", *empty[2:7], empty.head, empty.deprel, empty.deps, empty.misc
                )
                empty = next(empty_nodes, None)
            if multiword is not None and multiword.first == number + 1:
                first, last, form, misc, feats, lemma, upos, xpos, head, deprel, deps = multiword
                rest = (feats, head, deprel, deps, misc)
                yield self.check(f"{first}-{last}", form, lemma, upos, xpos, *rest)
                multiword = next(multiwords, None)
        for left in (multiword, empty):
            if left is not None:
                self.complain(
                    f"{left} has no place among the {len(sentence.words)} words, or is out of order"
                )

    def check(self, *columns: str) -> tuple[str, ...]:
        for column in columns:
            if "\t" in column or "\n" in column or "\r" in column:
                self.complain(
                    f"{column[:40]!r} of node {columns[0]} has a tab or a line end, which CoNLL-U cannot hold"
                )
        return columns

    def complain(self, what: str) -> NoReturn:
        raise UnsavableError(f"{self.name} ({self.sentence.source}:{self.sentence.line}): {what}")


class _Reader:
    """Collects the lines of one sentence."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.comments: list[str] = []
        self.words: list[Word] = []
        self.word_lines: list[int] = []
        self.multiwords: list[Multiword] = []
        self.empty_nodes: list[EmptyNode] = []
        self.gaps: list[int] = []
        self.line = 0  # 0: no node was read yet
        self.last_line = 0

    def comment(self, number: int, line: str) -> None:
        if "\r" in line:
            self.complain(number, "found a carriage return inside of the comment, expected line feeds")
        self.comments.append(line)
        if self.line:
            self.gaps.append(len(self.words) + len(self.multiwords) + len(self.empty_nodes))

    def read(self, number: int, line: str) -> None:
        columns = line.split("\t")
        if "\r" in line:
            self.complain(
                number, "found a carriage return inside of the line, expected line feeds as line ends"
            )
        if len(columns) == 1:
            what = "found a line without tabs, expected the 10 tab-separated columns of CoNLL-U"
            self.complain(number, f"{what} (raw text is for a pipeline)")
        if len(columns) != 10:
            self.complain(number, f"found {len(columns)} tab-separated columns, expected the 10 of CoNLL-U")
        self.line = self.line or number
        self.last_line = number
        node, form, *rest = columns
        if _WORD.fullmatch(node):
            self.word(number, columns)
        elif found := _RANGE.fullmatch(node):
            lemma, upos, xpos, feats, *links, misc = rest
            written = (form, misc, feats, lemma, upos, xpos, *links)
            self.multiword(number, Multiword(int(found[1]), int(found[2]), *written))
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

    def multiword(self, number: int, found: Multiword) -> None:
        begin = max(len(self.words), self.multiwords[-1].last if self.multiwords else 0) + 1
        if found.first != len(self.words) + 1 or found.first < begin or found.last <= found.first:
            self.complain(
                number,
                f"the range is {found.first}-{found.last}, expected one that begins at {begin} and goes up",
            )
        self.multiwords.append(found)

    def empty_node(self, number: int, after: int, rank: int, columns: list[str]) -> None:
        previous = self.empty_nodes[-1] if self.empty_nodes else None
        expected = previous.rank + 1 if previous and previous.after == len(self.words) else 1
        if (after, rank) != (len(self.words), expected):
            self.complain(number, f"the ID is {after}.{rank}, expected {len(self.words)}.{expected}")
        if self.multiwords and self.multiwords[-1].first > after:
            written = f"{self.multiwords[-1].first}-{self.multiwords[-1].last}"
            self.complain(
                number, f"the ID is {after}.{rank} after the range {written}, expected it before that"
            )
        _, form, lemma, upos, xpos, feats, head, deprel, deps, misc = columns
        tags = (form, lemma, upos, xpos, feats)
        self.empty_nodes.append(EmptyNode(after, rank, *tags, deps, misc, head, deprel))

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
        nodes = (self.words, self.multiwords, self.empty_nodes)
        return Sentence(*nodes, self.comments, self.line, self.name, tuple(self.gaps))

    def complain(self, number: int, what: str) -> NoReturn:
        raise FileFormatError(f"{self.name}:{number}: {what}")
