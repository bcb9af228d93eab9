"""Templates of features of whole segments, in the language of `templates`, with places of a segment as rows.

    text=%lower[segment,0]                        the words of the segment, joined by blanks, in lower case
    last|positions=%x[last,0]|%positions[segment] its last word, with the number of its positions
    before=%x[first-1,0]                          the word before it
    city=%in[segment,0,cities]                    the segment as a whole is an entry of the lexicon `cities`

The row of a macro is `segment`, for the values of all its positions joined by blanks, or `first` or `last`, with an offset
where it is another position: `first+1`, `last-1`; `first-1` is the one before the segment and `last+1` the one behind.
Functions are those of templates, of the joined values too. Outside of the sequence values are `_B-1`, `_B+1`, …; where a
function gives nothing, the line makes no feature.

Macros that read resources give at a position what they give there in a template. Of a whole segment,

    %in[segment,0,places]         gives 1 where it is exactly an entry; with several lists those that have it: city+person
    %cluster[segment,0,4]         gives the paths of its words, joined by blanks; nothing where a word has none
    %vector[segment,0,glove]      gives the mean of the vectors of its words

A `%vector` line has a feature `name[k]` for each number k of a vector, whose value is that number.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from os import PathLike
from typing import Any, NamedTuple, Self

import numpy as np

from crfkit.data import read_text
from crfkit.errors import TemplateError
from crfkit.features.knowledge import Clusters, Lexicon, WordVectors
from crfkit.features.knowledge.macros import (
    MACROS,
    Lookup,
    ResourceReader,
    Resources,
    find_resource,
    parse_lookup,
)
from crfkit.features.position_words import sequence_words
from crfkit.features.template_functions import FUNCTIONS
from crfkit.features.templates import MACRO, NAMED_LINE, LineParser, Transform
from crfkit.structures import SegmentExtractor, SegmentNames

_POSITIONS = "positions"
_ROW = re.compile(r"(first|last)([+-][0-9]{1,6})?|segment")
_NUMBER = re.compile(r"[0-9]{1,6}")
_FORM = "place being segment, first or last, or first-1, last+1, …"

Value = Callable[
    [int, int], str | None
]  # of (start, end): what stands in the place of a macro; None: nothing


class Place(NamedTuple):
    """Which positions of a segment, or beside it, a macro reads."""

    anchor: str  # "segment", "first" or "last"
    row: int  # offset from the first or the last position

    def position(self, start: int, end: int) -> int:
        """The only position, which may be outside of the sequence."""
        return (start if self.anchor == "first" else end - 1) + self.row


class SegmentMacro(NamedTuple):
    """One macro of a line, with the literal text before it."""

    literal: str
    transform: Transform | None  # None: the number of positions
    place: Place

    def open(self, columns: dict[int, list[str]], resources: Resources) -> Value:
        """What stands in its place for the segments of one sequence."""
        if self.transform is None:
            return lambda start, end: str(end - start)
        words = columns[self.transform.column]
        if self.place.anchor == "segment":
            return _of_segments(self.transform, words, resources)
        return _at_positions(_of_words(self.transform, words, resources), self.place)


def _of_segments(transform: Transform, words: list[str], resources: Resources) -> Value:
    """What a transform makes of whole segments."""
    lookup = transform.argument
    if not isinstance(lookup, Lookup):
        apply, arguments = FUNCTIONS[transform.function].apply, () if lookup is None else (lookup,)
        return lambda start, end: apply(" ".join(words[start:end]), *arguments)
    resource = find_resource(lookup, resources)
    if isinstance(resource, Lexicon):
        folded = [*map(resource.fold, words)]
        names = resource.lists if lookup.list is None else (lookup.list,)
        find, numbers = resource.table.find, {resource.number_of(name): name for name in names}

        def entry(start: int, end: int) -> str | None:
            found = [numbers[number] for number in find(folded[start:end]) if number in numbers]
            return ("+".join(found) if len(numbers) > 1 else "1") if found else None

        return entry
    paths = _of_words(transform, words, resources)

    def joined(start: int, end: int) -> str | None:
        some = [path for path in paths[start:end] if path is not None]
        return " ".join(some) if len(some) == end - start else None

    return joined


def _of_words(transform: Transform, words: list[str], resources: Resources) -> list[str | None]:
    """What a transform makes of the words of a sequence, one by one."""
    lookup = transform.argument
    if not isinstance(lookup, Lookup):
        apply, arguments = FUNCTIONS[transform.function].apply, () if lookup is None else (lookup,)
        return [apply(word, *arguments) for word in words]
    resource = find_resource(lookup, resources)
    if isinstance(resource, Lexicon):
        return resource.states(words, lookup.list)
    assert isinstance(resource, Clusters)
    return [resource.get(word, lookup.length) for word in words]


def _at_positions(values: list[str | None], place: Place) -> Value:
    """The value at a position of segments, or beside them."""

    def value(start: int, end: int) -> str | None:
        at = place.position(start, end)
        if not 0 <= at < len(values):
            return f"_B-{-at}" if at < 0 else f"_B+{at - len(values) + 1}"
        return values[at]

    return value


class SegmentLine(NamedTuple):
    """One line of a template: `literal value literal value … tail`."""

    macros: tuple[SegmentMacro, ...]
    tail: str
    number: int

    def open(self, columns: dict[int, list[str]], resources: Resources) -> Value:
        """The feature of each segment of one sequence; None where a macro gives nothing."""
        parts = [(macro.literal, macro.open(columns, resources)) for macro in self.macros]

        def feature(start: int, end: int) -> str | None:
            pieces: list[str] = []
            for literal, read in parts:
                value = read(start, end)
                if value is None:
                    return None
                pieces += (literal, value)
            return "".join(pieces) + self.tail

        return feature


class SegmentVector(NamedTuple):
    """A line that is a block of numbers: word vectors at a place of the segment, or their mean."""

    name: str  # of the block
    lookup: Lookup
    column: int
    place: Place
    number: int  # of the line

    def open(
        self, columns: dict[int, list[str]], resources: Resources
    ) -> Callable[[int, int], list[tuple[str, float]]]:
        """Names and values of the features of the segments of one sequence; none outside of it, or where all are 0."""
        vectors = find_resource(self.lookup, resources)
        assert isinstance(vectors, WordVectors)
        rows = vectors.rows(columns[self.column])  # [T, K]
        names = [f"{self.name}[{k}]" for k in range(vectors.size)]

        def block(start: int, end: int) -> list[tuple[str, float]]:
            if self.place.anchor == "segment":
                row = rows[start:end].mean(axis=0)
            else:
                at = self.place.position(start, end)
                row = rows[at] if 0 <= at < len(rows) else np.zeros(0)
            return [*zip(names, row.tolist(), strict=True)] if row.any() else []

        return block


@dataclass(frozen=True)
class SegmentTemplate(ResourceReader, SegmentExtractor):
    """Features of whole segments, for `Segments(segment_features=…)`. Two templates are equal when their texts are.

    `SegmentTemplate.read` takes it from a file; `text` is what was parsed, `source` names it in messages. The resources
    that its macros name are those of the model, `CRF(resources=…)`.

    >>> SegmentTemplate("text=%lower[segment,0]\\nlast|n=%x[last,0]|%positions[segment]").expand(["New", "York"], 0, 2)
    ['text=new york', 'last|n=York|2']
    """

    text: str
    source: str = field(default="segment template", compare=False)
    resources: Resources = field(
        default_factory=dict, compare=False, repr=False
    )  # those that its macros name
    _lines: tuple[SegmentLine, ...] = field(init=False, compare=False, repr=False)
    _vectors: tuple[SegmentVector, ...] = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        """Parse the text; what is wrong with it is said with its line and character."""
        lines = _Parser(self.source).parse(self.text)
        vectors = tuple(line for line in lines if isinstance(line, SegmentVector))
        object.__setattr__(self, "_lines", tuple(line for line in lines if isinstance(line, SegmentLine)))
        object.__setattr__(self, "_vectors", vectors)

    @classmethod
    def read(cls, path: str | PathLike[str]) -> Self:
        """Read and parse a template file."""
        return cls(read_text(path), source=str(path))

    def bind(self, resources: Resources | None) -> Self:
        """The same template with these resources, by the names that its macros have for them."""
        return replace(self, resources=dict(resources or {}))

    @property
    def lookups(self) -> dict[Lookup, str]:
        """What its macros look up in resources, and where it stands."""
        found: dict[Lookup, str] = {}
        for line in self._lines:
            for macro in line.macros:
                if macro.transform is not None and isinstance(macro.transform.argument, Lookup):
                    found.setdefault(macro.transform.argument, f"{self.source}:{line.number}")
        for vector in self._vectors:
            found.setdefault(vector.lookup, f"{self.source}:{vector.number}")
        return found

    @property
    def columns(self) -> frozenset[int | str]:
        """The columns that it reads."""
        transforms = (macro.transform for line in self._lines for macro in line.macros)
        found = {transform.column for transform in transforms if transform is not None}
        return frozenset(found | {vector.column for vector in self._vectors})

    def open(self, n: int, x: Any) -> SegmentNames:
        """Names and values of the features of the segments of input n, as a function of (start, end)."""
        names, blocks = self._open(n, x)

        def features(start: int, end: int) -> Iterable[tuple[str, float]]:
            found: list[tuple[str, float]] = [(name, 1.0) for name in names(start, end)]
            for block in blocks:
                found += block(start, end)
            return found

        return features

    def _open(self, n: int, x: Any) -> tuple[Callable[[int, int], list[str]], list[Any]]:
        """The names of features, and the blocks of numbers, of the segments of input n."""
        columns: dict[Any, list[str]] = {
            column: list(sequence_words(n, x, column, "a segment template needs")) for column in self.columns
        }
        opened = [line.open(columns, self.resources) for line in self._lines]

        def names(start: int, end: int) -> list[str]:
            found = (feature(start, end) for feature in opened)
            return [name for name in found if name is not None]

        return names, [vector.open(columns, self.resources) for vector in self._vectors]

    def expand(self, rows: Sequence[Any], start: int, end: int) -> list[str]:
        """The features of the positions start … end − 1 of a sequence as a segment, without those of vectors."""
        if not 0 <= start < end <= len(rows):
            raise IndexError(f"positions {start} to {end - 1} of a sequence of {len(rows)} positions")
        self.check_resources()
        return self._open(0, rows)[0](start, end)


class _Parser(LineParser):
    """Turns the text of a template into lines."""

    def parse(self, text: str) -> list[SegmentLine | SegmentVector]:
        """All lines but blank ones and comments."""
        numbered = ((n, line.removesuffix("\r")) for n, line in enumerate(text.split("\n"), 1))
        lines = [self.line(n, line) for n, line in numbered if line.strip() and not line.startswith("#")]
        if not lines:
            raise TemplateError(
                f"{self.source}: the template has no line that begins with U, or with a name and ="
            )
        blocks: set[str] = set()
        for line in lines:
            if isinstance(line, SegmentVector) and line.name in blocks:
                raise TemplateError(f"{self.source}:{line.number}: there are two blocks named {line.name!r}")
            blocks |= {line.name} if isinstance(line, SegmentVector) else set()
        return lines

    def line(self, number: int, line: str) -> SegmentLine | SegmentVector:
        """One line, whose features are on the types of segments."""
        named = NAMED_LINE.match(line)
        if line[0] != "U" and (named is None or named["transition"] is not None or line[0] == "B"):
            what = "a line of a segment template must begin with U or #, or with a name and ="
            self.complain(number, line, 0, what)
        macros: list[SegmentMacro] = []
        end = 0
        while (start := line.find("%", end)) >= 0:
            found = MACRO.match(line, start)
            assert found is not None  # every part after the % may be empty
            macros.append(self.macro(number, line, end, found))
            end = found.end()
        if "%vector" in line:
            return self.vector(number, line, macros, line[end:])
        return SegmentLine(tuple(macros), line[end:], number)

    def vector(self, number: int, line: str, macros: Sequence[SegmentMacro], tail: str) -> SegmentVector:
        """A line that is a block of numbers: one macro `%vector`, and nothing behind it."""
        [first, *others] = macros
        if others or tail.strip() or first.transform is None or first.transform.function != "vector":
            self.complain(number, line, line.index("%"), "expected %vector alone on a line")
        assert isinstance(first.transform.argument, Lookup)
        name = first.literal.rstrip("=:")
        return SegmentVector(name, first.transform.argument, first.transform.column, first.place, number)

    def macro(self, number: int, line: str, begin: int, found: re.Match[str]) -> SegmentMacro:
        """One macro, with the text of the line before it from `begin` on."""
        function = found["function"]
        if function not in FUNCTIONS and function not in MACROS and function != _POSITIONS:
            known = ", ".join([*FUNCTIONS, *MACROS, _POSITIONS])
            self.complain(
                number, line, found.start(), f"unknown function %{function}: expected one of {known}"
            )
        form = "[segment]" if function == _POSITIONS else "[place,column]"
        if function in MACROS:
            form = MACROS[function].replace("[row,", "[place,")
        elif function in FUNCTIONS and FUNCTIONS[function].has_length:
            form = "[place,column,length]"
        place, *given = (part.strip() for part in found["inside"].split(","))
        row = _ROW.fullmatch(place)
        transform = self.transform(number, line, found, given)
        is_complete = bool(found["open"] and found["close"]) and (transform is not None or not given)
        if (
            not is_complete
            or row is None
            or (transform is None) != (function == _POSITIONS)
            or (transform is None and place != "segment")
        ):
            self.complain(number, line, found.end("function"), f"expected %{function}{form}, {_FORM}")
        literal = line[begin : found.start()]
        return SegmentMacro(literal, transform, Place(row[1] or "segment", int(row[2] or 0)))

    def transform(
        self, number: int, line: str, found: re.Match[str], given: Sequence[str]
    ) -> Transform | None:
        """What a macro with these arguments behind its place does; None where they are none of its forms."""
        function = found["function"]
        if function == _POSITIONS or not given or not _NUMBER.fullmatch(given[0]):
            return None
        if function in MACROS:
            lookup = parse_lookup(function, given[1:])
            return None if lookup is None else Transform(function, int(given[0]), lookup)
        lengths = given[1:]
        if len(lengths) != FUNCTIONS[function].has_length or not all(map(_NUMBER.fullmatch, lengths)):
            return None
        if lengths and int(lengths[0]) < 1:
            self.complain(number, line, found.start("open"), f"length {lengths[0]} is below 1")
        return Transform(function, int(given[0]), int(lengths[0]) if lengths else None)
