"""Organisation names as patterns: whole spans B I … E, and what is far apart but belongs together.

Each name of a weight says what is true of a span that is labelled as one name: how it begins (with a place, with a known
name), how it ends and what lies between; that all of it is a known name, or a place and what is known to follow places; that
marks in it have no partner. Members of an
enumeration `A、B、C`, and the same name twice, have weights for being names together.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import combinations

from benchmarks.gazetteers import START, Gazetteers, Match

LONGEST_SPAN = 16
FARTHEST = 40  # sites between two that belong together
STOPS = frozenset("。，；：！？、")  # in no name
LINKS = frozenset("的了在是和与对把将被从向为等于及")
PAIRS = {"（": "）", "(": ")", "《": "》", "“": "”", "‘": "’", "『": "』"}
LEADS = ("place", "organisation", "known", "head")  # entries that a name may begin with
INSIDE = ["B", "I", "E", "S"]

Span = tuple[int, int]
Row = tuple[str, ...]  # the columns of a site; the first is its character
Configuration = tuple[int, list[str | list[str] | None], str]


class NamePatterns:
    """A function of a sentence that gives its higher-order patterns, of some families or of all."""

    FAMILIES = ("whole", "tail", "structure", "marks", "enumeration", "twice")

    def __init__(self, gazetteers: Gazetteers, families: Sequence[str] = FAMILIES) -> None:
        """`families` are some of FAMILIES."""
        self.gazetteers = gazetteers
        self.families = frozenset(families)
        self.__name__ = "NamePatterns"

    def __call__(self, rows: Sequence[Row]) -> Iterator[Configuration]:
        """(first site, labels of each site, name of the weight), for patterns of this sentence."""
        text = "".join(row[0] for row in rows)
        matches = self.gazetteers.matches(text)
        whole = {span: names for span, names in whole_names(matches).items() if span[1] - span[0] > 1}
        placed = place_spans(matches)
        ended = ending_spans(text, matches, self.gazetteers.openings)
        spans = dict.fromkeys((*ended, *whole, *placed))
        if "whole" in self.families:
            for span, names in whole.items():
                yield from (_span(span, name) for name in names)
        if "tail" in self.families:
            yield from (_span(span, f"place + tail known {detail}") for span, detail in placed.items())
        if "structure" in self.families:
            look = _Structure(text, matches)
            for span in spans:
                yield from (_span(span, name) for name in look.names(span))
        if "marks" in self.families:
            yield from _marks(text)
        if "enumeration" in self.families:
            yield from _enumeration(text, list(spans))
        if "twice" in self.families:
            yield from _twice(text, list(spans))


def whole_names(matches: Sequence[Match]) -> dict[Span, list[str]]:
    """Spans that are in the gazetteer of organisations or in the training data as a whole."""
    found = defaultdict[Span, list[str]](list)
    entries = [match for match in matches if match.kind in ("organisation", "known")]
    for match in entries:
        inner = any(
            other.begin <= match.begin and match.end <= other.end and other[:2] != match[:2]
            for other in entries
        )
        place = ", in a longer one" if inner else ""
        found[match.begin, match.end].append(f"whole {match.kind} {match.detail}{place}")
    return dict(found)


def ending_spans(text: str, matches: Sequence[Match], openings: frozenset[str]) -> Iterator[Span]:
    """Spans that end as organisations do, and begin with an entry or after a character that often stands before names."""
    begins = {match.begin for match in matches if match.kind in LEADS}
    begins |= {site for site, before in enumerate(START + text[:-1]) if before in openings}
    for end in sorted({match.end for match in matches if match.kind == "ending"}):
        for begin in range(end - 1, max(end - LONGEST_SPAN, 0) - 1, -1):
            if text[begin] in STOPS:
                break
            if begin in begins and begin < end - 1:
                yield begin, end


def place_spans(matches: Sequence[Match]) -> dict[Span, str]:
    """Spans of a place and a known tail, and how often the tail is known."""
    tails = defaultdict[int, list[Match]](list)
    for match in matches:
        if match.kind == "tail":
            tails[match.begin].append(match)
    return {
        (place.begin, tail.end): tail.detail
        for place in matches
        if place.kind == "place"
        for tail in tails[place.end]
    }


class _Structure:
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
        self._cut = {  # sites inside a place or a name that begins before them
            site for match in matches if match.kind != "ending" for site in range(match.begin + 1, match.end)
        }

    def names(self, span: Span) -> Iterator[str]:
        """What is true of a span."""
        begin, end = span
        text = self._text
        tail = min((site for site in self._endings[end] if site >= begin), default=end)
        ending = text[tail:end] or "none"
        leads = [match for match in self._leads[begin] if match.end <= tail]
        lead = max(leads, key=lambda match: match.end, default=None)
        kind = "none" if lead is None else lead.kind
        between = tail - (begin if lead is None else lead.end)
        yield f"ending {ending}, {_size(tail - begin)} before"
        yield f"{kind} … {ending}"
        yield f"{kind} … ending, {_size(between)} between"
        if any(match.kind == "head" and match.end == tail for match in leads):
            yield "known head + ending"
        yield f"length {min(end - begin, LONGEST_SPAN)}"
        if begin in self._cut:
            yield "begins inside an entry"
        if end in self._cut:
            yield "ends inside an entry"
        for link in LINKS.intersection(text[begin:end]):
            yield f"holds {link}"
        if any(text.count(a, begin, end) != text.count(b, begin, end) for a, b in PAIRS.items()):
            yield "marks without partner"


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
    for site, character in enumerate(text):
        if character in PAIRS:
            opened.append(site)
        elif opened and character == PAIRS[text[opened[-1]]]:
            begin = opened.pop()
            if site - begin <= FARTHEST:
                gap: list[str | list[str] | None] = [None] * (site - begin - 1)
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
