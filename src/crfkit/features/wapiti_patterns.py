r"""Wapiti's patterns: features from columns, in another language than templates.

A pattern is a line; what follows a `#` in it is no part of it. Its first character, small or capital, says what it makes
features of:

    u    labels        b    arcs, that is two neighbouring labels        *    both

In a pattern, commands are replaced by what they give:

    %x[row,column]              the value in a column, counted from 0, of the row that many positions away
    %t[row,column,"regex"]      true or false: whether the expression matches in the value
    %m[row,column,"regex"]      what the expression matches; nothing where it does not

`%X`, `%T` and `%M` give it in small letters. A row `@1` is the first one of the sequence, `@-1` the last. A row outside the
sequence reads `_x-1` … `_x-4` and `_x-#` before it, `_x+1` … `_x+4` and `_x+#` behind it. Expressions are those of
`wapiti_regex`.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar

from crfkit.errors import FeatureError, TemplateError
from crfkit.features.templates import Boundaries, Line, LineParser, Macro, Program, Row, Template, Transform
from crfkit.features.wapiti_regex import WapitiRegex

_BEFORE = ("_x-1", "_x-2", "_x-3", "_x-4", "_x-#")
_AFTER = ("_x+1", "_x+2", "_x+3", "_x+4", "_x+#")
_KINDS = {"u": "U", "b": "B", "*": "UB"}
_COMMAND = re.compile(
    r"%(?P<function>[xtm])\[(?P<anchor>@?) *(?P<row>[+-]?[0-9]{1,6}), *(?P<column>[0-9]{1,6})"
    r'(?:,"(?P<regex>(?:[^"\\]|\\.)*)")?\]',
    re.IGNORECASE,
)
_SMALL = str.maketrans({capital: capital.lower() for capital in map(chr, range(ord("A"), ord("Z") + 1))})


@dataclass(frozen=True)
class WapitiPatterns(Template):
    """Parsed patterns of Wapiti, in the place of a template.

    >>> WapitiPatterns.parse('u:suf=%m[0,0,".?.?$"]').expand(["the", "dogs"], 1)
    (['u:suf=gs'], [])
    """

    LANGUAGE: ClassVar[str] = "wapiti"

    def _parsed(self) -> tuple[Program, tuple[int, ...]]:
        return _Parser(self.source).parse(self.text)

    def _apply(self, transform: Transform, value: str) -> str | None:
        return _apply(transform, value)

    @property
    def least_columns(self) -> int:
        """How many columns every row must have: one. Others must be there where a pattern reads them."""
        return min(self.n_columns, 1)

    def pad(self, sequences: Sequence[Any]) -> Sequence[Any]:
        """The sequences with rows filled up to as many columns as are read anywhere; InputError where one is missed."""
        n_columns = self.n_columns
        if n_columns <= 1:
            return sequences
        found: list[Any] = []
        for n, sequence in enumerate(sequences):
            rows = sequence if isinstance(sequence, list | tuple) else ()
            short = [
                i
                for i, row in enumerate(rows)
                if isinstance(row, str | list | tuple) and _size(row) < n_columns
            ]
            if short:
                missed = self.first_missed(rows)
                if missed is not None:
                    raise FeatureError(f"sequence {n}, position {missed[0]}: {missed[1]}")
                sequence = list(rows)
                for i in short:
                    row = (rows[i],) if isinstance(rows[i], str) else tuple(rows[i])
                    sequence[i] = (*row, *[""] * (n_columns - len(row)))
            found.append(sequence)
        return found

    def first_missed(self, rows: Sequence[Row]) -> tuple[int, str] | None:
        """The first row in which a pattern reads a column that it does not have, and what is wrong with it."""
        if not any(_size(row) < self.n_columns for row in rows):
            return None
        program = self.program()
        macros = {macro for line in program.lines for macro in line.macros}
        reads = {
            (macro.position(current, len(rows)), program.transforms[macro.transform].column)
            for macro in macros
            for current in range(len(rows))
        }
        for i, column in sorted(reads):
            if 0 <= i < len(rows) and column >= _size(rows[i]):
                size = _size(rows[i])
                noun = "column" if size == 1 else "columns"
                return (
                    i,
                    f"the row has {size} {noun}, and the patterns read column {column} there (counted from 0)",
                )
        return None

    def of_single_rows(self) -> "WapitiPatterns":
        """The patterns that make the features which these make where every row is a sequence of its own.

        >>> WapitiPatterns.parse("u:%x[-1,0]/%x[@1,0]").of_single_rows().text
        'u:_x-1/%x[0,0]'
        """
        return WapitiPatterns.parse(_COMMAND.sub(_in_single_row, self.text), self.source)


def _size(row: Row) -> int:
    """The number of columns of a row."""
    return 1 if isinstance(row, str) else len(row)


def _in_single_row(command: re.Match[str]) -> str:
    """What to write for a command in a sequence of one row: itself, or what it gives outside of the sequence."""
    row = int(command["row"])
    if command["anchor"]:
        row += 1 if row < 0 else -1
    regex = command["regex"]
    if row == 0:
        expression = "" if regex is None else f',"{regex}"'
        return f"%{command['function']}[0,{command['column']}{expression}]"
    outside = (_BEFORE if row < 0 else _AFTER)[min(abs(row), len(_BEFORE)) - 1]
    text = _apply(Transform(command["function"], int(command["column"]), regex), outside)
    if "#" in text:
        raise TemplateError(f"{command[0]} reads a row that is {abs(row)} away, in sequences of one row")
    return text


@lru_cache(maxsize=1 << 10)
def _compile(regex: str) -> WapitiRegex:
    return WapitiRegex(regex)


def _apply(transform: Transform, value: str) -> str:
    function, _, regex = transform
    if isinstance(regex, str):
        whole = _bytes(value)
        found = _compile(regex).find(whole)
        if function in "tT":
            value = "false" if found is None else "true"
        else:  # half of a character that is cut in two is a lone surrogate
            begin, end = found or (0, 0)
            value = (whole + b"\0")[begin:end].decode("utf-8", "surrogateescape")
    return value.translate(_SMALL) if function.isupper() else value


def _bytes(value: str) -> bytes:
    """The bytes of a value, also of one that was cut inside a character before."""
    try:
        return value.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:  # half a pair of surrogates, which stands for no byte
        return value.encode("utf-8", "surrogatepass")


class _Parser(LineParser):
    """Turns the text of a pattern file into a program, line by line."""

    def parse(self, text: str) -> tuple[Program, tuple[int, ...]]:
        lines: list[Line] = []
        numbers: list[int] = []
        for number, line in enumerate(text.split("\n"), 1):
            pattern = line.partition("#")[0].rstrip()
            if not pattern:
                continue
            kinds = _KINDS.get(pattern[0].lower())
            if kinds is None:
                self.complain(number, pattern, 0, "a pattern must begin with u, b, * or #")
            macros, tail = self.commands(number, pattern[0].lower() + pattern[1:])
            for kind in kinds:
                lines.append(Line(kind, macros, tail))
                numbers.append(number)
        if not lines:
            raise TemplateError(f"{self.source}: there is no line that begins with u, b or *")
        boundaries = tuple(
            Boundaries(
                tuple(_apply(transform, value) for value in _BEFORE),
                tuple(_apply(transform, value) for value in _AFTER),
            )
            for transform in self.transforms
        )
        return Program(tuple(self.transforms), tuple(lines), boundaries, cut_at_zero=True), tuple(numbers)

    def commands(self, number: int, pattern: str) -> tuple[tuple[Macro, ...], str]:
        """The commands of a pattern, and what stands behind the last."""
        macros: list[Macro] = []
        end = 0
        while (start := pattern.find("%", end)) >= 0:
            found = _COMMAND.match(pattern, start)
            if found is None or (found["regex"] is None) != (found["function"] in "xX"):
                self.complain(
                    number,
                    pattern,
                    start,
                    'expected %x[row,column], %t[row,column,"regex"] or %m[row,column,"regex"], with @ before '
                    "the row of a fixed place",
                )
            transform = Transform(found["function"], int(found["column"]), found["regex"])
            if found["regex"] is not None:
                try:
                    _compile(found["regex"])
                except ValueError as error:
                    self.complain(number, pattern, found.start("regex"), str(error))
            index = self.number_of(transform)
            row = int(found["row"])
            literal = pattern[end:start]
            if not found["anchor"]:
                macros.append(Macro(literal, index, row))
            elif row < 0:
                macros.append(Macro(literal, index, row, "end"))
            else:
                macros.append(Macro(literal, index, row - 1, "first"))
            end = found.end()
        return tuple(macros), pattern[end:]
