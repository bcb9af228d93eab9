"""Where the arcs of a tree go: how high each is, and where along its words it begins and ends.

Words are numbered from 1; 0 is the root, from which an arc comes straight down. An arc between words i < j goes up from i,
across and down to j. Two rules keep lines apart:

    heights   an arc is one level above every shorter one that it overlaps, so no two coincide
    ends      those at one word stand side by side in slots, from left to right: arcs to the left, the nearest first;
              the arc from the root; arcs to the right, the farthest first. Lines of a projective tree never cross so.
"""

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple


class Arc(NamedTuple):
    """From a head to a dependent."""

    head: int  # 0: the root
    dependent: int
    label: str
    wrong: bool = False

    @property
    def span(self) -> tuple[int, int]:
        """Its words from left to right."""
        return min(self.head, self.dependent), max(self.head, self.dependent)


def levels(arcs: Sequence[Arc], *, chained: bool = True) -> list[int]:
    """The height of each arc, from 1; the arcs from the root are all as high as the highest other one, plus 1.

    Without `chained`, an arc to a word and one from that word to the other side have different heights too.
    """
    found = [0] * len(arcs)
    between = [k for k, arc in enumerate(arcs) if arc.head]
    below: list[int] = []
    for k in sorted(between, key=lambda k: (arcs[k].span[1] - arcs[k].span[0], arcs[k].span)):
        first, last = arcs[k].span
        shared = (
            found[j]
            for j in below
            if (arcs[j].span[0] < last and first < arcs[j].span[1])
            or not (
                chained or {arcs[j].head, arcs[k].head}.isdisjoint((arcs[j].dependent, arcs[k].dependent))
            )
        )
        found[k] = 1 + max(shared, default=0)
        below.append(k)
    top = 1 + max(found, default=0)
    return [level or top for level in found]


def slots(arcs: Sequence[Arc], n_words: int) -> list[dict[int, int]]:
    """For each word (from 1; entry 0 is empty) the arcs that end there, by index, with their slots from the left."""
    ends: list[list[tuple[int, int, int]]] = [[] for _ in range(n_words + 1)]
    for k, arc in enumerate(arcs):
        if arc.head == 0:
            ends[arc.dependent].append((1, 0, k))
            continue
        for word, other in ((arc.head, arc.dependent), (arc.dependent, arc.head)):
            ends[word].append((0 if other < word else 2, -other, k))
    return [{k: slot for slot, (_, _, k) in enumerate(sorted(at_word))} for at_word in ends]


def clear_middle(begin: float, end: float, crossing: Iterable[float], half_width: float) -> float:
    """The x nearest to the middle of a line at which something fits between what crosses the line; else the middle."""
    middle = (begin + end) / 2
    edges = [begin, *sorted(crossing), end]
    free = [
        min(max(middle, left + half_width), right - half_width)
        for left, right in pairwise(edges)
        if right - left >= 2 * half_width
    ]
    return min(free, key=lambda x: abs(x - middle), default=middle)


class Columns(NamedTuple):
    """Where words stand, and where on them arcs end; x grows to the right."""

    centres: list[float]  # [T + 1] of words; entry 0 is not used
    width: float

    @classmethod
    def of(
        cls,
        widths: Sequence[float],
        arcs: Sequence[tuple[Arc, float, float]],
        gap: float,
    ) -> "Columns":
        """Place words as near to each other as they and the labels between them allow.

        `widths[i - 1]` is the width of word i; for each arc, how far apart its words must be at least (label and slots),
        and how far a root's label reaches to each side of its word.
        """
        n_words = len(widths)
        needs: list[list[tuple[int, float]]] = [[] for _ in range(n_words + 1)]
        sides = [0.0, *(width / 2 for width in widths)]
        for arc, distance, side in arcs:
            first, last = arc.span
            if arc.head:
                needs[last].append((first, distance))
            else:
                sides[last] = max(sides[last], side)
        centres = [0.0] * (n_words + 1)
        for word in range(1, n_words + 1):
            before = centres[word - 1] + sides[word - 1] if word > 1 else 0.0
            centres[word] = before + gap + sides[word]
            for first, distance in needs[word]:
                centres[word] = max(centres[word], centres[first] + distance)
        return cls(centres, (centres[-1] + sides[-1] if n_words else 0.0) + gap)
