"""Templates of features of whole segments, in the language of `templates`, with places of a segment as rows.

    text=%lower[segment,0]                        the words of the segment, joined by blanks, in lower case
    last|positions=%x[last,0]|%positions[segment] its last word, with the number of its positions
    before=%x[first-1,0]                          the word before it

The row of a macro is `segment`, for the values of all its positions joined by blanks, or `first` or `last`, with an offset
where it is another position: `first+1`, `last-1`; `first-1` is the one before the segment and `last+1` the one behind.
Functions are those of templates, of the joined values too. Outside of the sequence values are `_B-1`, `_B+1`, …; where a
function gives nothing, the line makes no feature.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from os import PathLike
from typing import Any, NamedTuple, Self

from crfkit.data import read_text
from crfkit.errors import TemplateError
from crfkit.features.tag_dictionary import sequence_words
from crfkit.features.template_functions import FUNCTIONS
from crfkit.features.templates import MACRO, NAMED_LINE, LineParser, Transform
from crfkit.structures import SegmentExtractor, SegmentFeature

_POSITIONS = "positions"
_ROW = re.compile(r"(first|last)([+-][0-9]{1,6})?|segment")
_NUMBER = re.compile(r"[0-9]{1,6}")


class SegmentMacro(NamedTuple):
    """One macro of a line, with the literal text before it."""

    literal: str
    transform: Transform | None  # None: the number of positions
    anchor: str  # "segment", "first" or "last"
    row: int  # offset from the first or the last position

    def value(self, columns: dict[int, list[str]], start: int, end: int) -> str | None:
        """What stands in its place for the positions start … end − 1; None: nothing."""
        if self.transform is None:
            return str(end - start)
        function, column, argument = self.transform
        values = columns[column]
        if self.anchor == "segment":
            text = " ".join(values[start:end])
        else:
            at = (start if self.anchor == "first" else end - 1) + self.row
            if not 0 <= at < len(values):
                return f"_B-{-at}" if at < 0 else f"_B+{at - len(values) + 1}"
            text = values[at]
        return FUNCTIONS[function].apply(text, *(() if argument is None else (argument,)))


class SegmentLine(NamedTuple):
    """One line of a template: `literal value literal value … tail`."""

    macros: tuple[SegmentMacro, ...]
    tail: str

    def feature(self, columns: dict[int, list[str]], start: int, end: int) -> str | None:
        """The feature of a segment; None where a macro gives nothing."""
        pieces: list[str] = []
        for macro in self.macros:
            value = macro.value(columns, start, end)
            if value is None:
                return None
            pieces += (macro.literal, value)
        return "".join(pieces) + self.tail


@dataclass(frozen=True)
class SegmentTemplate(SegmentExtractor):
    """Features of whole segments, for `Segments(segment_features=…)`. Two templates are equal when their texts are.

    `SegmentTemplate.read` takes it from a file; `text` is what was parsed, `source` names it in messages.

    >>> SegmentTemplate("text=%lower[segment,0]\\nlast|n=%x[last,0]|%positions[segment]").expand(["New", "York"], 0, 2)
    ['text=new york', 'last|n=York|2']
    """

    text: str
    source: str = field(default="segment template", compare=False)
    _lines: tuple[SegmentLine, ...] = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        """Parse the text; what is wrong with it is said with its line and character."""
        object.__setattr__(self, "_lines", _Parser(self.source).parse(self.text))

    @classmethod
    def read(cls, path: str | PathLike[str]) -> Self:
        """Read and parse a template file."""
        return cls(read_text(path), source=str(path))

    @property
    def columns(self) -> frozenset[int | str]:
        """The columns that it reads."""
        return frozenset(
            macro.transform.column
            for line in self._lines
            for macro in line.macros
            if macro.transform is not None
        )

    def open(self, n: int, x: Any) -> SegmentFeature:
        """The names of the features of the segments of input n, as a function of (x, start, end)."""
        columns = {
            column: list(sequence_words(n, x, column, "a segment template needs")) for column in self.columns
        }

        def names(_: Any, start: int, end: int) -> list[str]:
            found = (line.feature(columns, start, end) for line in self._lines)  # type: ignore[arg-type]
            return [name for name in found if name is not None]

        return names

    def expand(self, rows: Sequence[Any], start: int, end: int) -> list[str]:
        """The features of the positions start … end − 1 of a sequence as a segment."""
        if not 0 <= start < end <= len(rows):
            raise IndexError(f"positions {start} to {end - 1} of a sequence of {len(rows)} positions")
        names: list[str] = self.open(0, rows)(rows, start, end)
        return names


class _Parser(LineParser):
    """Turns the text of a template into lines."""

    def parse(self, text: str) -> tuple[SegmentLine, ...]:
        """All lines but blank ones and comments."""
        numbered = ((n, line.removesuffix("\r")) for n, line in enumerate(text.split("\n"), 1))
        lines = [self.line(n, line) for n, line in numbered if line.strip() and not line.startswith("#")]
        if not lines:
            raise TemplateError(
                f"{self.source}: the template has no line that begins with U, or with a name and ="
            )
        return tuple(lines)

    def line(self, number: int, line: str) -> SegmentLine:
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
        return SegmentLine(tuple(macros), line[end:])

    def macro(self, number: int, line: str, begin: int, found: re.Match[str]) -> SegmentMacro:
        """One macro, with the text of the line before it from `begin` on."""
        function = found["function"]
        if function not in FUNCTIONS and function != _POSITIONS:
            known = ", ".join([*FUNCTIONS, _POSITIONS])
            self.complain(
                number, line, found.start(), f"unknown function %{function}: expected one of {known}"
            )
        form = "[segment]" if function == _POSITIONS else "[place,column]"
        if function in FUNCTIONS and FUNCTIONS[function].has_length:
            form = "[place,column,length]"
        place, *numbers = (part.strip() for part in found["inside"].split(","))
        row = _ROW.fullmatch(place)
        complete = found["open"] and found["close"] and len(numbers) == form.count(",")
        if (
            not complete
            or row is None
            or not all(map(_NUMBER.fullmatch, numbers))
            or (place != "segment" and not numbers)
        ):
            what = f"expected %{function}{form}, place being segment, first or last, or first-1, last+1, …"
            self.complain(number, line, found.end("function"), what)
        literal, values = line[begin : found.start()], [*map(int, numbers)]
        if not values:
            return SegmentMacro(literal, None, place, 0)
        if len(values) > 1 and values[1] < 1:
            self.complain(number, line, found.start("open"), f"length {values[1]} is below 1")
        transform = Transform(function, values[0], values[1] if len(values) > 1 else None)
        return SegmentMacro(literal, transform, row[1] or "segment", int(row[2] or 0))
