"""Conditions on the input at the position where a pattern begins (gates).

    gate      = condition , { "&" , condition } ;
    condition = [ "!" ] , reference , [ "=" , value , { "|" , value } ] ;
    reference = name , [ "[" , offset , "]" ] | "%" , function , "[" , offset , "," , column , [ "," , length ] , "]" ;

A name is that of a feature: `w=Rome` requires the feature `w:Rome` of a dict {"w": "Rome"}, or `w=Rome` or `w:Rome` in a
list of strings, and `up` a feature without a value. With rows of columns, as templates read them, the name is
`word` for column 0 or the number of a column, and the macros of templates can be used: `%lower[0,0]=rome`, `%is_title[1,0]`.
The offset counts positions from the beginning of the pattern. Values and names with blanks or one of & | = [ ] ! are
quoted.
"""

import re
from dataclasses import dataclass
from typing import NoReturn

from crfkit.errors import PatternError

_TOKEN = re.compile(
    r"""\s*(?:(?P<sign>[&|=!])
          | (?P<macro>%\w+\[[^\]]*\])
          | (?P<offset>\[[^\]]*\])
          | (?P<quote>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')
          | (?P<word>[^\s&|=!\[\]"'%][^\s&|=!\[\]"']*))""",
    re.VERBOSE,
)
_WHOLE = re.compile(r"\[\s*([+-]?[0-9]{1,6})\s*\]")
_MACRO = re.compile(r"%(\w+)\[\s*([+-]?[0-9]{1,6})\s*,\s*([0-9]{1,6})\s*(?:,\s*([0-9]{1,6})\s*)?\]")


@dataclass(frozen=True)
class Macro:
    """A function of a column, as in templates."""

    function: str
    column: int
    length: int | None


@dataclass(frozen=True)
class Condition:
    """A condition on one position, `offset` positions after the beginning of the pattern."""

    reference: str | Macro
    offset: int
    values: tuple[str, ...]  # one of these; none: the feature or the value is present
    holds: bool  # False: the condition is negated


@dataclass(frozen=True)
class Gate:
    """Conditions that must all hold."""

    text: str
    conditions: tuple[Condition, ...]


def parse_gate(text: str) -> Gate:
    """Parse the text of a gate; ValueError, with a caret under the place, if it is invalid."""
    return _Parser(text).gate()


class _Parser:
    """Reads a gate token by token."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0

    def gate(self) -> Gate:
        conditions = [self.condition()]
        while self.takes("&"):
            conditions.append(self.condition())
        if self.takes("!"):
            self.complain("expected & or the end; ! negates what follows, or must be quoted", "!")
        if self.text[self.at :].strip():
            self.complain("expected & or the end")
        return Gate(self.text, tuple(conditions))

    def condition(self) -> Condition:
        holds = not self.takes("!")
        reference, offset = self.reference()
        values = []
        if self.takes("="):
            values.append(self.value())
            while self.takes("|"):
                values.append(self.value())
        return Condition(reference, offset, tuple(values), holds)

    def reference(self) -> tuple[str | Macro, int]:
        kind, token = self.token("macro", "quote", "word")
        if kind == "macro":
            macro = _MACRO.fullmatch(token)
            if macro is None:
                self.complain("expected %function[offset,column] with whole numbers, as in templates", token)
            length = None if macro[4] is None else int(macro[4])
            return Macro(macro[1], int(macro[3]), length), int(macro[2])
        name = _bare(kind, token)
        _, offset = self.token("offset", optional=True)
        if not offset:
            return name, 0
        number = _WHOLE.fullmatch(offset)
        if number is None:
            self.complain("expected a whole number of positions, as in [1] or [-2]", offset)
        return name, int(number[1])

    def value(self) -> str:
        return _bare(*self.token("quote", "word"))

    def takes(self, sign: str) -> bool:
        found = _TOKEN.match(self.text, self.at)
        if found is None or found["sign"] != sign:
            return False
        self.at = found.end()
        return True

    def token(self, *kinds: str, optional: bool = False) -> tuple[str, str]:
        """The next token, if it is of one of these kinds."""
        found = _TOKEN.match(self.text, self.at)
        kind = None if found is None else found.lastgroup
        if found is None or kind not in kinds:
            if optional:
                return "", ""
            self.complain(f"expected a {'name' if 'macro' in kinds else 'value'}")
        self.at = found.end()
        return str(kind), found[str(kind)]

    def complain(self, what: str, token: str = "") -> NoReturn:
        at = self.at - len(token)
        line = re.sub(r"\s", " ", self.text)
        raise PatternError(f"Gate, character {at + 1}: {what}.\n    {line}\n    {' ' * at}^")


def _bare(kind: str, token: str) -> str:
    """The text of a token."""
    return re.sub(r"\\(.)", r"\1", token[1:-1]) if kind == "quote" else token
