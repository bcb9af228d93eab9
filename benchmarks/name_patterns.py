"""Organisation names as patterns: whole spans B I … E, and what is far apart but belongs together.

Each name of a weight says what is true of a span that is labelled as one name: how it begins (with a place, with a known
name), how it ends and what lies between; what stands before and behind it; that all of it is a known name, or a place and
what is known to follow places; that marks in it have no partner. Members of an enumeration
`A、B、C`, and the same name twice, have weights for being names together.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import combinations

from benchmarks.gazetteers import START, Gazetteers, Match
from benchmarks.name_spans import LEADS, LONGEST_SPAN, Span, candidates, place_spans, whole_names

FARTHEST = 40  # positions between two that belong together
LINKS = frozenset("的了在是和与对把将被从向为等于及")
PAIRS = {"（": "）", "(": ")", "《": "》", "“": "”", "‘": "’", "『": "』"}
INSIDE = ["B", "I", "E", "S"]
END = "$"  # stands behind the last character

Row = tuple[str, ...]  # the columns of a position; the first is its character
Configuration = tuple[int, list[str | list[str] | None], str]


class NamePatterns:
    """A function of a sentence that gives its higher-order patterns, of some families or of all."""

    FAMILIES = ("whole", "tail", "structure", "characters", "context", "marks", "enumeration", "twice")

    def __init__(self, gazetteers: Gazetteers, families: Sequence[str] = FAMILIES) -> None:
        """`families` are some of FAMILIES."""
        self.gazetteers = gazetteers
        self.families = frozenset(families)
        self.__name__ = "NamePatterns"

    def __call__(self, rows: Sequence[Row]) -> Iterator[Configuration]:
        """(first position, labels of each position, name of the weight), for patterns of this sentence."""
        text = "".join(row[0] for row in rows)
        matches = self.gazetteers.matches(text)
        spans = candidates(text, matches, self.gazetteers.openings)
        if "whole" in self.families:
            for span, names in whole_names(matches).items():
                if span[1] - span[0] > 1:
                    yield from (_span(span, name) for name in names)
        if "tail" in self.families:
            for span, detail in place_spans(matches).items():
                yield _span(span, f"place + tail known {detail}")
        yield from self._of_spans(text, matches, spans)
        if "marks" in self.families:
            yield from _marks(text)
        if "enumeration" in self.families:
            yield from _enumeration(text, spans)
        if "twice" in self.families:
            yield from _twice(text, spans)

    def _of_spans(
        self, text: str, matches: Sequence[Match], spans: Sequence[Span]
    ) -> Iterator[Configuration]:
        look = Structure(text, matches)
        for span in spans:
            if "structure" in self.families:
                yield from (_span(span, name) for name in look.names(span))
            if "characters" in self.families:
                yield from (_span(span, name) for name in look.characters(span))
            if "context" in self.families:
                yield from (_span(span, name) for name in look.context(span))


class Structure:
    """How spans of a sentence are built."""

    def __init__(self, text: str, matches: Sequence[Match]) -> None:
        self._text = text
        self._endings = defaultdict[int, list[int]](list)  # end → begins, the longest first
        self._leads = defaultdict[int, list[Match]](list)
        for match in matches:
            if match.kind == "ending":
                self._endings[match.end].append(match.begin)
            elif match.kind in LEADS:
                self._leads[match.begin].append(match)
        self._cut = {  # positions inside a place or a name that begins before them
            position
            for match in matches
            if match.kind != "ending"
            for position in range(match.begin + 1, match.end)
        }

    def names(self, span: Span) -> Iterator[str]:
        """How a span begins, what it holds, and how it ends."""
        begin, end = span
        text = self._text
        tail, leads, kind = self._built(span)
        ending = text[tail:end] or "none"
        between = tail - max((match.end for match in leads), default=begin)
        yield f"ending {ending}, {_size(tail - begin)} before"
        yield f"{kind} … {ending}"
        yield f"{kind} … {ending}, length {_size(end - begin)}"
        yield f"{kind} … ending, {_size(between)} between"
        if any(match.kind == "head" and match.end == tail for match in leads):
            yield "known head + ending"
        yield f"length {min(end - begin, LONGEST_SPAN)}"
        inner = sum(
            any(position >= begin for position in self._endings.get(cut, ()))
            for cut in range(begin + 1, end - 1)
        )
        yield f"{min(inner, 3)} endings inside"
        yield f"{min(inner, 3)} endings inside, {ending}"
        if begin in self._cut:
            yield "begins inside an entry"
        if end in self._cut:
            yield "ends inside an entry"
        for link in LINKS.intersection(text[begin:end]):
            yield f"holds {link}"
        if any(text.count(a, begin, end) != text.count(b, begin, end) for a, b in PAIRS.items()):
            yield "marks without partner"

    def characters(self, span: Span) -> Iterator[str]:
        """The characters at both ends of a span."""
        begin, end = span
        tail, _, _ = self._built(span)
        yield f"from {self._text[begin]} to {self._text[end - 1]}"
        yield f"from {self._text[begin : begin + 2]} to {self._text[tail:end] or 'none'}"

    def context(self, span: Span) -> Iterator[str]:
        """The characters around a span, with what it is."""
        begin, end = span
        before, after = (START + self._text)[begin], (self._text + END)[end]
        tail, _, kind = self._built(span)
        ending = self._text[tail:end] or "none"
        yield f"{before} before … {ending}"
        yield f"… {ending} before {after}"
        yield f"between {before} and {after}"
        yield f"{before} before {kind}, length {_size(end - begin)}"

    def _built(self, span: Span) -> tuple[int, list[Match], str]:
        """Where the ending of a span begins, the entries before it, and the kind of the longest of them."""
        begin, end = span
        tail = min((position for position in self._endings.get(end, ()) if position >= begin), default=end)
        leads = [match for match in self._leads.get(begin, ()) if match.end <= tail]
        lead = max(leads, key=lambda match: match.end, default=None)
        return tail, leads, "none" if lead is None else lead.kind


def _size(n: int) -> str:
    return str(n) if n < 4 else "4-5" if n < 6 else "6-8" if n < 9 else "9+"


def _labels(length: int) -> list[str | list[str] | None]:
    """Of a name with so many characters."""
    return ["S"] if length == 1 else ["B", *["I"] * (length - 2), "E"]


def _span(span: Span, weight: str) -> Configuration:
    begin, end = span
    return begin, _labels(end - begin), weight


def _marks(text: str) -> Iterator[Configuration]:
    """Of two marks that belong together, only one lies in a name."""
    opened: list[int] = []
    for position, character in enumerate(text):
        if character in PAIRS:
            opened.append(position)
        elif opened and character == PAIRS[text[opened[-1]]]:
            begin = opened.pop()
            if position - begin <= FARTHEST:
                gap: list[str | list[str] | None] = [None] * (position - begin - 1)
                yield begin, ["O", *gap, INSIDE], "marks disagree"
                yield begin, [INSIDE, *gap, "O"], "marks disagree"


def _enumeration(text: str, spans: Sequence[Span]) -> Iterator[Configuration]:
    """Two neighbours in an enumeration are both names."""
    for a, b in combinations(sorted(spans), 2):
        if b[0] == a[1] + 1 and text[a[1]] == "、":
            yield a[0], [*_labels(a[1] - a[0]), "O", *_labels(b[1] - b[0])], "members"


def _twice(text: str, spans: Sequence[Span]) -> Iterator[Configuration]:
    """The same characters are a name in two places."""
    for a, b in combinations(sorted(spans), 2):
        if a[1] <= b[0] <= a[1] + FARTHEST and text[slice(*a)] == text[slice(*b)]:
            labels = _labels(a[1] - a[0])
            yield a[0], [*labels, *[None] * (b[0] - a[1]), *labels], "twice"
