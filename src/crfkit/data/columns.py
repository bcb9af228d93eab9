"""Column files: one position a line, its columns beside each other, a blank line after each sequence.

Columns. A file whose first row holds a tab is separated by tabs, one by one, so that values may hold blanks
or be empty. Otherwise runs of blanks and tabs separate; that is also what the separator `" "` asks for. All rows of a
file have the same number of columns.

Comments. `#` is a word in some corpora (`# # I-NP` in CoNLL-2000) and begins a comment in others (`# text =
…` in CoNLL-U). By default, a line is a comment when all of this holds:

1. it begins with `#`,
2. it stands before the first row of a sequence, and
3. it has not as many columns as the rows of the file, or it reads `# key = value` with blanks.

The number of columns is that of the first line which is not blank and does not begin with `#`.
"""

import io
import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import IO

from crfkit.data.files import Source, decode_lines, number_lines, source_name
from crfkit.errors import ArgumentError, FileFormatError, UnsavableError

AUTO = "auto"
"""The value of `comment` that asks for the rule of this module."""

Row = tuple[str, ...]

_BLANKS = " \t"
_KEY_VALUE = re.compile(r"# *[^ \t=]+ = ")


@dataclass(frozen=True, slots=True)
class ColumnSequence:
    """One sequence of a column file."""

    rows: list[Row]  # [T]: the columns of each position
    line: int  # number of the line of its first row, counted from 1
    comments: list[str] = field(default_factory=list)  # the comment lines before it and in it, as they stand
    source: str = "<stream>"
    separator: str = " "  # to write it with: a tab, a blank (for runs of blanks), or the one asked for
    gaps: tuple[int, ...] = ()  # for each comment among the rows, the position that follows it
    lines: tuple[str, ...] = ()  # [T] of a ragged file: the rows as they stand there

    def place(self, position: int) -> str:
        """Where a position was read, as `file:line`."""
        return f"{self.source}:{self.line + position + bisect_right(self.gaps, position)}"


def read_columns(
    source: Source, *, separator: str | None = None, comment: str | None = AUTO, ragged: bool = False
) -> Iterator[ColumnSequence]:
    """Read a column file, one sequence at a time.

    `source` is a path (also .gz, .xz, .bz2) or a stream of text or bytes. `separator` None lets the first row
    decide, as the module says, and `" "` means runs of blanks and tabs. `comment` is `AUTO` (the rule of the
    module), a prefix (each line that begins with it is a comment, anywhere), or None (no line is). In a `ragged`
    file each row may have another number of columns; then `AUTO` takes nothing but `# key = value` for a comment.

    >>> import io
    >>> for sequence in read_columns(io.StringIO("the D\\ndog N\\n\\nit P\\n")):
    ...     print(sequence.line, sequence.rows)
    1 [('the', 'D'), ('dog', 'N')]
    4 [('it', 'P')]
    """
    if separator == "" or comment == "":
        raise ArgumentError(
            "separator and comment must not be empty strings: leave them out, or give None for no comments"
        )
    return _Reader(source_name(source), separator, comment, ragged=ragged).sequences(number_lines(source))


def read_part(
    part: bytes,
    name: str,
    *,
    first_line: int,
    first_row: str | None,
    separator: str | None = None,
    comment: str | None = AUTO,
) -> Iterator[ColumnSequence]:
    """The sequences of some lines of the file `name`, as `read_columns` reads them there, with its errors.

    They begin with the line `first_line`, at a place where a sequence may begin. `first_row` is the line that fixed the
    columns of the file; None: it is among them.
    """
    reader = _Reader(name, separator, comment, ragged=False)
    if first_row is not None:
        reader.fix_columns(first_row)
    return reader.sequences(decode_lines(io.BytesIO(part), name, first_line))


def write_columns(
    rows: Iterable[Sequence[str]], stream: IO[str], *, comments: Iterable[str] = (), separator: str = "\t"
) -> None:
    """Write one sequence as `read_columns` reads it, and the blank line that ends it."""
    if not hasattr(stream, "write"):
        raise ArgumentError(
            f"stream is of type {type(stream).__name__}, expected a file that is open for text: "
            "write_columns(rows, stream)"
        )
    stream.writelines(f"{line}\n" for line in comments)
    for position, row in enumerate(rows):
        for value in row:
            if separator in value or "\n" in value or (separator == " " and (not value or "\t" in value)):
                raise UnsavableError(
                    f"position {position}: the value {value!r} cannot stand in a file separated by {separator!r}"
                )
        stream.write(separator.join(row) + "\n")
    stream.write("\n")


class _Reader:
    """Reads the sequences of one file; `n_columns` and `split` are fixed by its first row."""

    def __init__(self, name: str, separator: str | None, comment: str | None, *, ragged: bool) -> None:
        self.name = name
        self.ragged = ragged
        self.separator = separator
        self.joint = separator or " "  # what the columns are to be written with
        self.comment = comment
        self.prefix = "#" if comment == AUTO else comment  # what a comment begins with; None: there are none
        self.n_columns = 0
        self.split: Callable[[str], Row] = _split_blanks

    def sequences(self, lines: Iterator[tuple[int, str]]) -> Iterator[ColumnSequence]:
        rows: list[Row] = []
        comments: list[str] = []
        gaps: list[int] = []
        texts: list[str] = []
        first = 0
        for number, line in self._from_first_row(lines):
            if not line.strip(_BLANKS):
                if rows:
                    yield self._sequence(rows, first, comments, gaps, texts)
                    rows, comments, gaps, texts = [], [], [], []
            elif self.prefix and line.startswith(self.prefix) and self._is_comment(line, inside=bool(rows)):
                comments.append(line)
                if rows:
                    gaps.append(len(rows))
            else:
                row = self.split(line)
                if len(row) != self.n_columns and not self.ragged:
                    self._complain_ragged(number, line, len(row))
                if not rows:
                    first = number
                rows.append(row)
                if self.ragged:
                    texts.append(line)
        if rows:
            yield self._sequence(rows, first, comments, gaps, texts)

    def _sequence(
        self, rows: list[Row], first: int, comments: list[str], gaps: list[int], texts: list[str]
    ) -> ColumnSequence:
        return ColumnSequence(rows, first, comments, self.name, self.joint, tuple(gaps), tuple(texts))

    def _from_first_row(self, lines: Iterator[tuple[int, str]]) -> Iterator[tuple[int, str]]:
        """Hold the lines back until one is surely a row, fix the columns by it, then pass all lines on."""
        if self.n_columns:  # fixed by a line before these
            yield from lines
            return
        held: list[tuple[int, str]] = []
        for number, line in lines:
            held.append((number, line))
            if line.strip(_BLANKS) and not (self.prefix and line.startswith(self.prefix)):
                self.fix_columns(line)
                break
        else:
            self._complain_empty(held)
        yield from held
        yield from lines

    def fix_columns(self, line: str) -> None:
        """Take separator and number of columns from the first row, as far as they were not given."""
        if self.separator is None:
            self.separator = "\t" if "\t" in line else " "
        separator = self.separator
        if separator != " ":
            self.split = lambda line: tuple(line.split(separator))
        self.joint = "\t" if separator == " " and "\t" in line else separator
        self.n_columns = len(self.split(line))

    def _is_comment(self, line: str, *, inside: bool) -> bool:
        if self.comment != AUTO:
            return True
        odd = len(self.split(line)) != self.n_columns and not self.ragged
        return not inside and (odd or _KEY_VALUE.match(line) is not None)

    def _complain_ragged(self, number: int, line: str, found: int) -> None:
        hint = ""
        if self.comment == AUTO and line.startswith("#"):
            hint = " (a comment after the first row of a sequence must be announced: comment='#')"
        kind = "tab-separated " if self.separator == "\t" else ""
        raise FileFormatError(
            f"{self.name}:{number}: found {found} {kind}column{'s' * (found != 1)}, "
            f"expected {self.n_columns} as in the first row of the file{hint}"
        )

    def _complain_empty(self, held: list[tuple[int, str]]) -> None:
        if not held:
            raise FileFormatError(f"{self.name}: the file is empty, expected rows of columns")
        if not any(line.strip(_BLANKS) for _, line in held):
            raise FileFormatError(f"{self.name}: the file has only blank lines, expected rows of columns")
        raise FileFormatError(
            f"{self.name}: the file has only comments, expected rows of columns "
            "(comment=None reads every line as a row)"
        )


def _split_blanks(line: str) -> Row:
    """Split at runs of blanks and tabs alone: other white space, such as U+00A0, may belong to a word."""
    values = line.split(" ")
    if "" in values or "\t" in line:
        values = [value for value in line.replace("\t", " ").split(" ") if value]
    return tuple(values)
