"""Organisation names as segments: what the gazetteers and their rules say of whole spans, as features of segments.

The rules are those of `NamePatterns` that look at one span. What concerns two spans at once, such as the members of an
enumeration, is no feature of a segment.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from benchmarks.gazetteers import Gazetteers
from benchmarks.name_patterns import Row, Structure
from benchmarks.name_spans import candidates, place_spans, whole_names


class NameSegments:
    """A function of a sentence that gives the features of spans that may be names."""

    FAMILIES = ("whole", "tail", "structure", "characters", "context")

    def __init__(self, gazetteers: Gazetteers, families: Sequence[str] = FAMILIES) -> None:
        """`families` are some of FAMILIES."""
        self.gazetteers = gazetteers
        self.families = frozenset(families)
        self.__name__ = "NameSegments"

    def __call__(self, rows: Sequence[Row]) -> Iterator[tuple[int, int, list[str]]]:
        """(start, end, names of features), for spans of this sentence."""
        text = "".join(row[0] for row in rows)
        matches = self.gazetteers.matches(text)
        look = Structure(text, matches)
        known = whole_names(matches) if "whole" in self.families else {}
        placed = place_spans(matches) if "tail" in self.families else {}
        for span in candidates(text, matches, self.gazetteers.openings):
            names = list(known.get(span, ()))
            if span in placed:
                names.append(f"place + tail known {placed[span]}")
            if "structure" in self.families:
                names += look.names(span)
            if "characters" in self.families:
                names += look.characters(span)
            if "context" in self.families:
                names += look.context(span)
            yield *span, names
