"""Spans of a sentence that may be organisation names: candidates for patterns, most of them wrong.

A span is a candidate if all of it is an entry or a known name, if it is a place and what is known to follow places, or if
it ends as organisations do and begins where names begin.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

from benchmarks.gazetteers import START, Match

LONGEST_SPAN = 16
STOPS = frozenset("。，；：！？、")  # in no name
LEADS = ("place", "organisation", "known", "head")  # entries that a name may begin with

Span = tuple[int, int]


def candidates(text: str, matches: Sequence[Match], openings: frozenset[str]) -> list[Span]:
    """All of them, each once, without single characters."""
    found = dict.fromkeys(
        (
            *ending_spans(text, matches, openings),
            *whole_names(matches),
            *place_spans(matches),
        )
    )
    return [(begin, end) for begin, end in found if end - begin > 1]


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
    begins |= {position for position, before in enumerate(START + text[:-1]) if before in openings}
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
