"""Feature templates: the language of CRF++, with names of lines, and functions in the place of `x`.

A template is a text of lines. A line that begins with `U` makes features on labels, one that begins with `B`
makes features on arcs; blank lines and lines that begin with `#` are skipped. In a line, each macro
`%x[row,column]` is replaced by the value in that column of the row that many positions away, and what results
is the feature:

    U05:%x[-1,0]/%x[0,1]      at "the dog", position 1  →  the feature "U05:the/NN"

CRF++ refuses lines that begin otherwise. Here such a line has a name, so that its features can be read:

    suffix2=%suffix[0,0,2]                        →  "suffix2=og", on labels
    transition word[-1]|pos=%x[-1,0]|%x[0,1]      →  "word[-1]|pos=the|NN", on transitions, as a `B` line

A row outside the sequence is `_B-1`, `_B-2`, … before the first position and `_B+1`, `_B+2`, … after the last,
whatever the function. `B` lines are features of the arc that enters a position, so the first position has none. Equal
lines make equal features, each time they stand there.

Beyond CRF++, `%lower[0,0]`, `%suffix[0,0,3]` and the other entries of `FUNCTIONS` are applied to the value
first. Where a function gives nothing (a suffix of 3 of a word of 2 letters), the line makes no feature at
that position.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from os import PathLike
from types import MappingProxyType
from typing import Any, ClassVar, Literal, NamedTuple, NoReturn, Self

from crfkit.data import read_text
from crfkit.errors import FeatureError, TemplateError

Row = Sequence[str] | str  # the columns of one position; a bare string is a row of one column


class Transform(NamedTuple):
    """What is done to the value of a column before it enters a feature: `%function[…,column,argument]`."""

    function: str  # `x`: the value itself
    column: int
    argument: int | str | None  # the length of prefixes and suffixes; in other languages, theirs


class Macro(NamedTuple):
    """One macro of a line, with the literal text before it."""

    literal: str
    transform: int  # index into Program.transforms
    row: int  # offset from the anchor
    anchor: Literal["position", "first", "end"] = "position"  # the current one, the first, or behind the last

    def position(self, current: int, n_positions: int) -> int:
        """The position that it reads, which may be outside the sequence."""
        return self.row + {"position": current, "first": 0, "end": n_positions}[self.anchor]


class Line(NamedTuple):
    """One line of a template: `literal value literal value … tail`."""

    kind: str  # "U" or "B"
    macros: tuple[Macro, ...]
    tail: str


class Boundaries(NamedTuple):
    """What a transform gives outside the sequence, by the distance from it; the last one for all that are farther."""

    before: tuple[str, ...]
    after: tuple[str, ...]


class Program(NamedTuple):
    """A template in numbers and literals; equal transforms are stored once."""

    transforms: tuple[Transform, ...]
    lines: tuple[Line, ...]
    boundaries: tuple[Boundaries, ...] = ()  # of each transform; none: _B-1, _B-2, … and _B+1, _B+2, …
    cut_at_zero: bool = False  # a zero byte ends a feature, as it does in C

    def boundary(self, transform: int, position: int, n_positions: int) -> str:
        """What a transform gives at a position outside a sequence of `n_positions`."""
        distance = -position if position < 0 else position - n_positions + 1
        if not self.boundaries:
            return f"_B{'-' if position < 0 else '+'}{distance}"
        before, after = self.boundaries[transform]
        texts = before if position < 0 else after
        return texts[min(distance, len(texts)) - 1]


def _upper_first(value: str) -> bool:
    return value[:1].isupper() or value[:1].istitle()


def _kind(character: str) -> str:
    """X, x or d for capitals, other letters and digits; any other character stands for itself."""
    if character.isdigit():
        return "d"
    if character.isalpha():
        return "X" if _upper_first(character) else "x"
    return character


def _shape(value: str) -> str:
    return "".join(map(_kind, value))


def _short_shape(value: str) -> str:
    return re.sub(r"(.)\1+", r"\1", _shape(value), flags=re.DOTALL)


def _digits(value: str) -> str:
    return "".join("0" if character.isdigit() else character for character in value)


def _is_title(value: str) -> bool:
    return _upper_first(value) and value[1:] == value[1:].lower()


def _prefix(value: str, length: int) -> str | None:
    return value[:length] if len(value) >= length else None


def _suffix(value: str, length: int) -> str | None:
    return value[-length:] if len(value) >= length else None


@lru_cache(maxsize=1 << 12)  # one word is asked for many prefixes and suffixes in a row
def _bare(value: str) -> str:
    """Lower case without accents, breathings, cedillas …: what combines with a letter is dropped."""
    if value.isascii():
        return value.lower()
    apart = unicodedata.normalize("NFD", value.lower())
    letters = "".join(character for character in apart if not unicodedata.combining(character))
    return unicodedata.normalize("NFC", letters) or value


class Function(NamedTuple):
    """What may stand in a macro in the place of `x`."""

    description: str
    apply: Callable[..., str | None]  # of the value, and of n where it takes a length
    has_length: bool = False


def _test(what: str, holds: Callable[[str], bool]) -> Function:
    return Function(f"1 when {what}, otherwise nothing", lambda value: "1" if holds(value) else None)


FUNCTIONS: Mapping[str, Function] = MappingProxyType(
    {
        "x": Function("the value itself", lambda value: value),
        "lower": Function("the value in lower case", str.lower),
        "bare": Function("in lower case without accents and other marks on letters: Łódź → łodz", _bare),
        "prefix": Function("its first n characters; nothing when it is shorter", _prefix, True),
        "suffix": Function("its last n characters; nothing when it is shorter", _suffix, True),
        "lower_prefix": Function("the prefix in lower case", lambda x, n: _prefix(x.lower(), n), True),
        "lower_suffix": Function("the suffix in lower case", lambda x, n: _suffix(x.lower(), n), True),
        "bare_prefix": Function("the prefix of the bare value", lambda x, n: _prefix(_bare(x), n), True),
        "bare_suffix": Function("the suffix of the bare value", lambda x, n: _suffix(_bare(x), n), True),
        "shape": Function("capitals as X, other letters as x, digits as d: Rome-27 → Xxxx-dd", _shape),
        "short_shape": Function("the shape with runs of one character collapsed: Xx-d", _short_shape),
        "digits": Function("the value with every digit as 0", _digits),
        "length": Function("how many characters it has", lambda value: str(len(value))),
        "has_digit": _test("a digit occurs", lambda value: any(map(str.isdigit, value))),
        "has_hyphen": _test("a hyphen occurs", lambda value: "-" in value),
        "has_upper": _test("a capital letter occurs", lambda value: any(map(_upper_first, value))),
        "is_title": _test("the first letter is a capital and no other is", _is_title),
        "is_upper": _test("it has letters and all of them are capitals", str.isupper),
    }
)
"""The functions that may stand in a macro, and what each gives."""


@dataclass(frozen=True)
class Template:
    """A parsed template. Two templates are equal when their texts are.

    `Template.read` takes it from a file; `text` is what was parsed, `source` names it in messages.

    >>> Template.parse("U00:%x[0,0]/%suffix[0,0,2]").expand(["the", "dogs"], 1)
    (['U00:dogs/gs'], [])
    """

    LANGUAGE: ClassVar[str] = "crf++"  # what a model file calls it

    text: str
    source: str = field(default="template", compare=False)
    _program: Program = field(init=False, compare=False, repr=False)
    _line_numbers: tuple[int, ...] = field(init=False, compare=False, repr=False)  # of the program's lines

    def __post_init__(self) -> None:
        """Parse the text; what is wrong with it is said with its line and character."""
        program, line_numbers = self._parsed()
        object.__setattr__(self, "_program", program)
        object.__setattr__(self, "_line_numbers", line_numbers)

    def _parsed(self) -> tuple[Program, tuple[int, ...]]:
        """The program, and the number of the line that each of its lines stands on."""
        return _Parser(self.source).parse(self.text)

    @classmethod
    def parse(cls, text: str, source: str = "template") -> Self:
        """The template with this text: the same as `Template(text, source)`."""
        return cls(text, source)

    @classmethod
    def read(cls, path: str | PathLike[str]) -> Self:
        """Read and parse a template file."""
        return cls.parse(read_text(path), source=str(path))

    def program(self) -> Program:
        """The template as numbers and literals, for an extractor that works on whole data sets."""
        return self._program

    def transform(self, index: int, value: str) -> str | None:
        """Transform `index` of the program on a value; None: the lines that use it make no feature there."""
        return self._apply(self._program.transforms[index], value)

    def _apply(self, transform: Transform, value: str) -> str | None:
        arguments = () if transform.argument is None else (transform.argument,)
        return FUNCTIONS[transform.function].apply(value, *arguments)

    @property
    def n_columns(self) -> int:
        """How many columns a row must have at least."""
        return max((transform.column + 1 for transform in self._program.transforms), default=0)

    def unread_columns(self, n_columns: int) -> list[int]:
        """Those of the columns of a row that are not read."""
        return sorted({*range(n_columns)} - {transform.column for transform in self._program.transforms})

    @property
    def has_plain_arcs(self) -> bool:
        """Whether a `B` line without macros asks for arc weights that do not depend on the input."""
        return any(line.kind == "B" and not line.macros for line in self._program.lines)

    @property
    def least_columns(self) -> int:
        """How many columns every row must have, where rows may have different numbers of them."""
        return self.n_columns

    def first_missed(self, rows: Sequence[Row]) -> tuple[int, str] | None:
        """The first row that lacks a column beyond `least_columns` that is read there, and what is wrong with it."""
        return None

    def pad(self, sequences: Sequence[Any]) -> Sequence[Any]:
        """Sequences whose rows have as many columns as are read anywhere; those of a template have them already."""
        return sequences

    def check_columns(self, n_columns: int) -> None:
        """Raise InputError when a line reads a column that rows of `n_columns` columns do not have."""
        for line, number in zip(self._program.lines, self._line_numbers, strict=True):
            for macro in line.macros:
                column = self._program.transforms[macro.transform].column
                if column >= n_columns:
                    noun = "column" if n_columns == 1 else "columns"
                    raise FeatureError(
                        f"{self.source}:{number}: the template reads column {column} (counted from 0), "
                        f"but the input has {n_columns} feature {noun}"
                    )

    def within_columns(self, n_columns: int) -> Self:
        """The template without the lines that read a column beyond the first `n_columns`."""
        beyond = {
            number
            for line, number in zip(self._program.lines, self._line_numbers, strict=True)
            if any(self._program.transforms[macro.transform].column >= n_columns for macro in line.macros)
        }
        kept = (line for number, line in enumerate(self.text.split("\n"), 1) if number not in beyond)
        return self.parse("\n".join(kept), source=self.source)

    def expand(self, rows: Sequence[Row], i: int) -> tuple[list[str], list[str]]:
        """The features of position `i` and of the arc that enters it: the plain form of what extractors do."""
        if not 0 <= i < len(rows):
            raise IndexError(f"position {i} of a sequence of {len(rows)} positions")
        states: list[str] = []
        arcs: list[str] = []
        for line in self._program.lines:
            if line.kind == "B" and i == 0:
                continue
            feature = self._feature(line, rows, i)
            if feature is not None:
                (states if line.kind == "U" else arcs).append(feature)
        return states, arcs

    def _feature(self, line: Line, rows: Sequence[Row], i: int) -> str | None:
        pieces: list[str] = []
        for macro in line.macros:
            value = self._value(macro, rows, macro.position(i, len(rows)))
            if value is None:
                return None
            pieces += (macro.literal, value)
        feature = "".join(pieces) + line.tail
        return feature.partition("\0")[0] if self._program.cut_at_zero else feature

    def _value(self, macro: Macro, rows: Sequence[Row], position: int) -> str | None:
        if not 0 <= position < len(rows):
            return self._program.boundary(macro.transform, position, len(rows))
        row = rows[position]
        columns = (row,) if isinstance(row, str) else row
        transform = self._program.transforms[macro.transform]
        if transform.column >= len(columns):
            raise FeatureError(
                f"position {position} has {len(columns)} columns, but {self.source} reads column {transform.column}"
            )
        return self._apply(transform, columns[transform.column])


class LineParser:
    """What parsers of all template languages share: transforms that are numbered once, and complaints with their place."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.transforms: dict[Transform, int] = {}

    def number_of(self, transform: Transform) -> int:
        """The index of a transform in the program."""
        return self.transforms.setdefault(transform, len(self.transforms))

    def complain(self, number: int, line: str, at: int, what: str) -> NoReturn:
        """Say what is wrong with a line, and where in it."""
        raise TemplateError(f"{self.source}:{number}: {what}, at character {at + 1} of '{line}'")


MACRO = re.compile(r"%(?P<function>\w*)(?P<open>\[?)(?P<inside>[^\]%]*)(?P<close>\]?)")
"""A macro, and what is like one: every part after the % may be missing."""
_INTEGER = re.compile(r"[+-]?[0-9]{1,6}")
NAMED_LINE = re.compile(r"(?P<transition>transition +)?(?P<name>[^\s%:=]+)=")
"""How a line with a name begins, unless its first character is U, B or #."""


class _Parser(LineParser):
    """Turns the text of a template into a program, line by line."""

    def parse(self, text: str) -> tuple[Program, tuple[int, ...]]:
        """The program of a template, and the number of the line that each line of it stands on."""
        lines: list[Line] = []
        numbers: list[int] = []
        for number, line in enumerate(text.split("\n"), 1):
            line = line.removesuffix("\r")
            if not line.strip() or line.startswith("#"):
                continue
            lines.append(self.line(number, line))
            numbers.append(number)
        if not lines:
            raise TemplateError(
                f"{self.source}: the template has no line that begins with U or B, or with a name and ="
            )
        return Program(tuple(self.transforms), tuple(lines)), tuple(numbers)

    def begin(self, number: int, line: str) -> tuple[str, int]:
        """The kind of a line, U or B, and where the text of its features begins."""
        if line[0] in "UB":
            return line[0], 0
        named = NAMED_LINE.match(line)
        if named is None:
            self.complain(number, line, 0, "a line must begin with U, B or #, or with a name and =")
        return ("U", 0) if named["transition"] is None else ("B", named.start("name"))

    def line(self, number: int, line: str) -> Line:
        macros: list[Macro] = []
        kind, end = self.begin(number, line)
        while (start := line.find("%", end)) >= 0:
            found = MACRO.match(line, start)
            assert found is not None  # every part after the % may be empty
            transform, row = self.macro(number, line, found)
            macros.append(Macro(line[end:start], self.number_of(transform), row))
            end = found.end()
        return Line(kind, tuple(macros), line[end:])

    def macro(self, number: int, line: str, found: re.Match[str]) -> tuple[Transform, int]:
        function = found["function"]
        if function not in FUNCTIONS:
            known = ", ".join(FUNCTIONS)
            self.complain(
                number, line, found.start(), f"unknown function %{function}: expected one of {known}"
            )
        if not found["open"]:
            self.complain(number, line, found.end("function"), f"expected [ after %{function}")
        if not found["close"]:
            self.complain(number, line, found.start("open"), "the bracket is not closed")
        form = "[row,column,length]" if FUNCTIONS[function].has_length else "[row,column]"
        numbers = [part.strip() for part in found["inside"].split(",")]
        if len(numbers) != form.count(",") + 1 or not all(map(_INTEGER.fullmatch, numbers)):
            self.complain(number, line, found.start("open"), f"expected %{function}{form} with whole numbers")
        row, column, *length = map(int, numbers)
        if column < 0:
            self.complain(
                number, line, found.start("open"), f"column {column} is negative: columns count from 0"
            )
        if length and length[0] < 1:
            self.complain(number, line, found.start("open"), f"length {length[0]} is below 1")
        return Transform(function, column, length[0] if length else None), row
