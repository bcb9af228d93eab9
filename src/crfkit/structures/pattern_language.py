"""The language of label patterns: regular expressions over the labels of consecutive positions.

    pattern    = [ "^" ] , sequence , [ "$" ] ;
    sequence   = item , { item } ;
    item       = atom , [ quantifier ]  |  choice ;
    choice     = atom , "|" , atom , { "|" , atom } ;
    atom       = label | "." | "!" , atom | "(" , sequence , ")" ;
    quantifier = "*" | "+" | "?" | "{" , number , "}" | "{" , number , "," , [ number ] , "}" ;
    label      = plain , { plain } | '"' , { any character, \\" or \\\\ } , '"' | "'" , { … } , "'" ;
    plain      = any character except blanks and  ^ $ | . ! ( ) * + ? { } " '  ;

A label matches one position with this label, `.` one position with any label, `!` one position with any label except those
of the atom, which must match one position too. Blanks separate labels and are otherwise ignored. `^` and `$` anchor the
match at the first and at the last position. `|` binds closer than a sequence: `A|B C` is A or B, then C; `A|B*` is an
error, since it is ambiguous: write `(A|B)*` or `A|(B*)`.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import NoReturn

from crfkit.errors import PatternError

MOST_REPEATS = 1000  # in {m,n}
DEEPEST = 50  # nested brackets

_SPECIAL = set("^$|.!()*+?{}\"'")
_COUNTS = re.compile(r"\{\s*([0-9]{1,6})\s*(,\s*([0-9]{1,6})?\s*)?\}")
_MISPLACED = {"^": "^ can only be the first character", "$": "$ can only be the last character"}
_NEEDS_QUOTES = re.compile(r"[\s^$|.!()*+?{}\"']|^$")


@dataclass(frozen=True)
class OnePosition:
    """One position whose label is among these names, or, if `others`, is not among them."""

    names: frozenset[str]
    others: bool = False


@dataclass(frozen=True)
class InOrder:
    """One after the other."""

    items: "tuple[Node, ...]"


@dataclass(frozen=True)
class Either:
    """One of these."""

    options: "tuple[Node, ...]"


@dataclass(frozen=True)
class Repeat:
    """Repetition: `least` to `most` times, or unbounded."""

    item: "Node"
    least: int
    most: int | None


Node = OnePosition | InOrder | Either | Repeat


@dataclass(frozen=True)
class Parsed:
    """A pattern: what it matches, and whether only at the first or the last position of a sequence."""

    body: Node
    first: bool
    last: bool


def parse(text: str) -> Parsed:
    """Parse the text of a pattern; ValueError, with a caret under the place, if it is invalid."""
    return _Parser(text).pattern()


def quote(name: str) -> str:
    """A label as a pattern has to write it.

    >>> quote("NN"), quote("PRP$")
    ('NN', '"PRP$"')
    """
    if not _NEEDS_QUOTES.search(name):
        return name
    return '"' + name.replace("\\", "\\\\").replace('"', '\\"') + '"'


class _Parser:
    """Reads a pattern from left to right; `at` is the character that comes next."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.depth = 0

    def pattern(self) -> Parsed:
        first = self.takes("^")
        body = self.sequence()
        if self.next() == ")":
            self.complain("this bracket was not opened")
        end = self.at
        last = self.takes("$")
        if self.next():
            self.at = end
            self.complain(_MISPLACED["$"])
        return Parsed(body, first, last)

    def sequence(self) -> Node:
        items = [self.item()]
        while self.next() not in ("", ")", "$"):
            items.append(self.item())
        return items[0] if len(items) == 1 else InOrder(tuple(items))

    def item(self) -> Node:
        options = [self.atom()]
        while self.takes("|"):
            options.append(self.atom())
        begin = self.at
        bounds = self.quantifier()
        if bounds is None:
            return _either(options)
        if len(options) > 1:
            self.at = begin
            self.complain(
                "ambiguous quantifier: write (A|B)* to repeat the choice, or A|(B*) to repeat the last label"
            )
        if self.next() in ("*", "+", "?", "{"):
            self.complain("a second quantifier: put the part that it repeats in brackets")
        return Repeat(options[0], *bounds)

    def quantifier(self) -> tuple[int, int | None] | None:
        plain: dict[str, tuple[int, int | None]] = {"*": (0, None), "+": (1, None), "?": (0, 1)}
        found = self.next()
        if found in plain:
            self.at += 1
            return plain[found]
        if found != "{":
            return None
        counts = _COUNTS.match(self.text, self.at)
        if counts is None:
            self.complain("expected {m}, {m,} or {m,n} with whole numbers")
        least = int(counts[1])
        most = least if counts[2] is None else None if counts[3] is None else int(counts[3])
        if (most or least) > MOST_REPEATS or (most is not None and most < max(least, 1)):
            self.complain(f"expected {{m,n}} with m ≤ n and n from 1 to {MOST_REPEATS}")
        self.at = counts.end()
        return least, most

    def atom(self) -> Node:
        begin, found = self.at, self.next()
        if found == "(":
            return self.group()
        if found == ".":
            self.at += 1
            return OnePosition(frozenset(), others=True)
        if found == "!":
            self.at += 1
            return self.parse_negated(self.at - 1, self.parse_nested(self.atom))
        if found in ('"', "'"):
            return OnePosition(frozenset([self.parse_quoted(found)]))
        if not found or found in _SPECIAL:
            is_last = not self.text[self.at + 1 :].strip()
            misplaced = None if found == "$" and is_last else _MISPLACED.get(found)
            self.complain(misplaced or f"expected a label, found {found or 'the end'}")
        begin = self.at
        while (
            self.at < len(self.text)
            and self.text[self.at] not in _SPECIAL
            and not self.text[self.at].isspace()
        ):
            self.at += 1
        return OnePosition(frozenset([self.text[begin : self.at]]))

    def group(self) -> Node:
        begin = self.at
        self.at += 1
        inside = self.parse_nested(self.sequence)
        if not self.takes(")"):
            if self.next():
                self.complain(_MISPLACED["$"])
            self.at = begin
            self.complain("this bracket is not closed")
        return inside

    def parse_nested(self, read: Callable[[], Node]) -> Node:
        self.depth += 1
        if self.depth > DEEPEST:
            self.complain(f"more than {DEEPEST} brackets or negations inside each other")
        node = read()
        self.depth -= 1
        return node

    def parse_negated(self, at: int, node: Node) -> Node:
        if not isinstance(node, OnePosition):
            self.at = at
            self.complain(
                "! matches one position, expected a label, or labels joined by | in brackets, after it"
            )
        return OnePosition(node.names, not node.others)

    def parse_quoted(self, quote: str) -> str:
        begin = self.at
        label = ""
        self.at += 1
        while self.at < len(self.text) and self.text[self.at] != quote:
            if self.text[self.at] == "\\" and self.text[self.at + 1 : self.at + 2] in ("\\", quote):
                self.at += 1
            label += self.text[self.at : self.at + 1]
            self.at += 1
        if self.at >= len(self.text):
            self.at = begin
            self.complain("this quote is not closed")
        self.at += 1
        return label

    def next(self) -> str:
        """The next character that is no blank, empty at the end."""
        while self.at < len(self.text) and self.text[self.at].isspace():
            self.at += 1
        return self.text[self.at : self.at + 1]

    def takes(self, character: str) -> bool:
        if self.next() != character:
            return False
        self.at += 1
        return True

    def complain(self, what: str) -> NoReturn:
        line = re.sub(r"\s", " ", self.text)
        raise PatternError(f"Pattern, character {self.at + 1}: {what}.\n    {line}\n    {' ' * self.at}^")


def _either(options: list[Node]) -> Node:
    """A choice; one between single positions is a single position itself."""
    if len(options) == 1:
        return options[0]
    positions = [option for option in options if isinstance(option, OnePosition)]
    if len(positions) < len(options):
        return Either(tuple(options))
    named = frozenset[str]().union(*(position.names for position in positions if not position.others))
    excluded = [position.names for position in positions if position.others]
    if not excluded:
        return OnePosition(named)
    return OnePosition(excluded[0].intersection(*excluded[1:]) - named, others=True)
