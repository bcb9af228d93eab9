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

Macros that read resources (`crfkit.Lexicon`, `crfkit.Clusters`, `crfkit.WordVectors`) name them:

    city=%in[0,0,cities]                          →  "city=B" at the first word of an entry of the lexicon `cities`
    path4=%cluster[0,0,4]                         →  the first 4 characters of the word's path
    vector=%vector[0,0,glove]                     →  the dense block "vector", alone on its line

A macro may ask how often the training data have a value:

    suffix3|rare=%lower_suffix[0,0,3]|%rare[0,0,10]     →  "suffix3|rare=ogs|1", where "dogs" was seen less than 10 times

Beyond CRF++, `%lower[0,0]`, `%suffix[0,0,3]` and the other entries of `FUNCTIONS` are applied to the value
first. Where a function gives nothing (a suffix of 3 of a word of 2 letters), the line makes no feature at
that position.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from os import PathLike
from typing import Any, ClassVar, Literal, NamedTuple, NoReturn, Self

from crfkit import _core
from crfkit.data import read_text
from crfkit.errors import FeatureError, TemplateError
from crfkit.features.frequent_words import FrequentWords, WordCounter
from crfkit.features.knowledge import MissingResource, Resource
from crfkit.features.knowledge.macros import (
    MACROS,
    Lookup,
    ResourceReader,
    find_lexicon,
    look_up,
    parse_lookup,
    resource_name,
)
from crfkit.features.template_functions import FUNCTIONS

RARE = "rare"  # the function that asks how often training data have a value

Row = Sequence[str] | str  # the columns of one position; a bare string is a row of one column


class Transform(NamedTuple):
    """What is done to the value of a column before it enters a feature: `%function[…,column,argument]`."""

    function: str  # `x`: the value itself
    column: int
    argument: (
        int | str | Lookup | None
    )  # the length of prefixes and suffixes, or what is looked up; in other languages, theirs


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


class VectorMacro(NamedTuple):
    """A line that is a dense block of features: the word vectors of a column at a row that many positions away."""

    name: str  # of the block
    resource: str
    column: int
    row: int
    number: int  # of the line


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
    vectors: tuple[VectorMacro, ...] = ()  # lines that are dense blocks

    def boundary(self, transform: int, position: int, n_positions: int) -> str:
        """What a transform gives at a position outside a sequence of `n_positions`."""
        distance = -position if position < 0 else position - n_positions + 1
        if not self.boundaries:
            return f"_B{'-' if position < 0 else '+'}{distance}"
        before, after = self.boundaries[transform]
        texts = before if position < 0 else after
        return texts[min(distance, len(texts)) - 1]


@dataclass(frozen=True)
class Template(ResourceReader):
    """A parsed template. Two templates are equal when their texts are.

    `Template.read` takes it from a file; `text` is what was parsed, `source` names it in messages.

    >>> Template.parse("U00:%x[0,0]/%suffix[0,0,2]").expand(["the", "dogs"], 1)
    (['U00:dogs/gs'], [])
    """

    LANGUAGE: ClassVar[str] = "crf++"  # what a model file calls it

    text: str
    source: str = field(default="template", compare=False)
    resources: Mapping[str, Resource | MissingResource] = field(
        default_factory=dict, compare=False, repr=False
    )  # those that its macros name
    counts: FrequentWords | None = field(
        default=None, compare=False, repr=False
    )  # of training data, which `%rare` asks; None: there are none yet, and all values are rare
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

    def bind(self, resources: Mapping[str, Resource | MissingResource] | None) -> Self:
        """The same template with these resources, by the names that its macros have for them."""
        return replace(self, resources=dict(resources or {}))

    @property
    def asked_counts(self) -> dict[int, set[int]]:
        """The counts that `%rare` macros ask for, by column."""
        found: dict[int, set[int]] = {}
        for function, column, argument in self._program.transforms:
            if function == RARE and isinstance(argument, int):
                found.setdefault(column, set()).add(argument)
        return found

    def count(self, sequences: Iterable[Iterable[Any]]) -> Self:
        """The same template with the counts of these sequences, as far as its macros ask for them."""
        counter = WordCounter(self.asked_counts)
        counter.add(sequences)
        return replace(self, counts=counter.finish())

    @property
    def lookups(self) -> dict[Lookup, str]:
        """What its macros look up in resources, and where it stands."""
        found: dict[Lookup, str] = {}
        for line, number in zip(self._program.lines, self._line_numbers, strict=True):
            for macro in line.macros:
                argument = self._program.transforms[macro.transform].argument
                if isinstance(argument, Lookup):
                    found.setdefault(argument, f"{self.source}:{number}")
        for vector in self._program.vectors:
            found.setdefault(Lookup("vector", vector.resource), f"{self.source}:{vector.number}")
        return found

    def find_unmatched_lexicons(self, names: _core.Vocabulary) -> list[str]:
        """The lexicons whose states are none of these names of features, on any line that has a state alone."""
        matched: dict[str, bool] = {}
        for line in self._program.lines:
            if len(line.macros) != 1 or line.tail:
                continue
            [macro] = line.macros
            argument = self._program.transforms[macro.transform].argument
            if isinstance(argument, Lookup) and argument.macro == "in":
                name = resource_name(argument, self.resources)
                found = any(macro.literal + state in names for state in "BIES")
                matched[name] = matched.get(name, False) or found
        return [name for name, found in matched.items() if not found]

    def lexicon(self, index: int) -> tuple[_core.LexiconTable, int] | None:
        """The lexicon that transform `index` matches, and the number of the list (−1: all); None for any other transform."""
        argument = self._program.transforms[index].argument
        return find_lexicon(argument, self.resources) if isinstance(argument, Lookup) else None

    def transform(self, index: int, value: str) -> str | None:
        """Transform `index` of the program on a value; None: the lines that use it make no feature there."""
        return self._apply(self._program.transforms[index], value)

    def _apply(self, transform: Transform, value: str) -> str | None:
        if isinstance(transform.argument, Lookup):
            return look_up(transform.argument, self.resources, value)
        if transform.function == RARE and isinstance(transform.argument, int):
            is_rare = self.counts is None or self.counts.is_rare(transform.column, value, transform.argument)
            return "1" if is_rare else None
        arguments = () if transform.argument is None else (transform.argument,)
        return FUNCTIONS[transform.function].apply(value, *arguments)

    @property
    def n_columns(self) -> int:
        """How many columns a row must have at least."""
        return max((column + 1 for column in self._columns()), default=0)

    def unread_columns(self, n_columns: int) -> list[int]:
        """Those of the columns of a row that are not read."""
        return sorted({*range(n_columns)} - self._columns())

    def _columns(self) -> set[int]:
        transforms = {transform.column for transform in self._program.transforms}
        return transforms | {vector.column for vector in self._program.vectors}

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
        for number, columns in self._columns_of_lines():
            for column in columns:
                if column >= n_columns:
                    noun = "column" if n_columns == 1 else "columns"
                    raise FeatureError(
                        f"{self.source}:{number}: the template reads column {column} (counted from 0), "
                        f"but the input has {n_columns} feature {noun}"
                    )

    def _columns_of_lines(self) -> list[tuple[int, list[int]]]:
        """The columns that each line reads, by its number."""
        transforms = self._program.transforms
        of_lines = [
            (number, [transforms[macro.transform].column for macro in line.macros])
            for line, number in zip(self._program.lines, self._line_numbers, strict=True)
        ]
        return sorted([*of_lines, *((vector.number, [vector.column]) for vector in self._program.vectors)])

    def within_columns(self, n_columns: int) -> Self:
        """The template without the lines that read a column beyond the first `n_columns`."""
        beyond = {
            number for number, columns in self._columns_of_lines() if max(columns, default=-1) >= n_columns
        }
        kept = (line for number, line in enumerate(self.text.split("\n"), 1) if number not in beyond)
        return replace(self, text="\n".join(kept))

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
        if found := self.lexicon(macro.transform):
            words = (row if isinstance(row, str) else row[transform.column] for row in rows)
            table, number = found
            return table.values([self._apply(transform, word) or "" for word in words], number)[position]
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
        vectors: list[VectorMacro] = []
        for number, line in enumerate(text.split("\n"), 1):
            line = line.removesuffix("\r")
            if not line.strip() or line.startswith("#"):
                continue
            if "%vector" in line:
                vectors.append(self.vector(number, line))
                continue
            lines.append(self.line(number, line))
            numbers.append(number)
        if not lines and not vectors:
            raise TemplateError(
                f"{self.source}: the template has no line that begins with U or B, or with a name and ="
            )
        return Program(tuple(self.transforms), tuple(lines), vectors=tuple(vectors)), tuple(numbers)

    def vector(self, number: int, line: str) -> VectorMacro:
        """A line that is a dense block: one macro `%vector`, and nothing behind it."""
        kind, begin = self.begin(number, line)
        start = line.index("%")
        found = MACRO.match(line, start)
        assert found is not None  # every part after the % may be empty
        if kind != "U" or found["function"] != "vector" or found.end() != len(line.rstrip()):
            self.complain(number, line, start, "expected %vector alone on a line of features on labels")
        transform, row = self.macro(number, line, found)
        assert isinstance(transform.argument, Lookup)
        assert transform.argument.resource is not None
        name = line[begin:start].rstrip("=:")
        return VectorMacro(name, transform.argument.resource, transform.column, row, number)

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
        if function not in FUNCTIONS and function not in MACROS and function != RARE:
            known = ", ".join([*FUNCTIONS, *MACROS, RARE])
            self.complain(
                number, line, found.start(), f"unknown function %{function}: expected one of {known}"
            )
        if not found["open"]:
            self.complain(number, line, found.end("function"), f"expected [ after %{function}")
        if not found["close"]:
            self.complain(number, line, found.start("open"), "the bracket is not closed")
        if function in MACROS:
            return self.lookup(number, line, found)
        last = "count" if function == RARE else "length"
        form = (
            f"[row,column,{last}]" if function == RARE or FUNCTIONS[function].has_length else "[row,column]"
        )
        numbers = [part.strip() for part in found["inside"].split(",")]
        if len(numbers) != form.count(",") + 1 or not all(map(_INTEGER.fullmatch, numbers)):
            self.complain(number, line, found.start("open"), f"expected %{function}{form} with whole numbers")
        row, column, *length = map(int, numbers)
        if column < 0:
            self.complain(
                number, line, found.start("open"), f"column {column} is negative: columns count from 0"
            )
        if length and length[0] < 1:
            self.complain(number, line, found.start("open"), f"{last} {length[0]} is below 1")
        return Transform(function, column, length[0] if length else None), row

    def lookup(self, number: int, line: str, found: re.Match[str]) -> tuple[Transform, int]:
        """A macro that reads a resource."""
        form = MACROS[found["function"]]
        row, column, *given = [part.strip() for part in found["inside"].split(",")] + [""]
        lookup = parse_lookup(found["function"], given[:-1])
        if lookup is None or not _INTEGER.fullmatch(row) or not _INTEGER.fullmatch(column) or int(column) < 0:
            self.complain(number, line, found.start("open"), f"expected %{found['function']}{form}")
        return Transform(found["function"], int(column), lookup), int(row)
