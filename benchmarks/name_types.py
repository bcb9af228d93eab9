"""Labels of names in Chinese text, and names chosen by the mean of several models' probabilities.

Labels are those of organisations alone (B I E S O), or of persons, places and organisations (B-PER …). A mark between two
names of one type, as in `A、B`, may have a type of its own: the transitions into it and out of it then say that both are
members of an enumeration, although a transition sees two segments only.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any

from benchmarks.name_spans import Span as Place
from crfkit import Span
from crfkit.evaluation import spans
from crfkit.structures import segment_labels

ORGANISATION = "ORG"
MARKS = frozenset("、，和与及")


def span_labels(n: int, chosen: Iterable[tuple[Any, ...]]) -> list[str]:
    """B I E S O of n characters, for spans (start, end, …)."""
    labels = ["O"] * n
    for start, end, *_ in chosen:
        length = end - start
        labels[start:end] = ["S"] if length == 1 else ["B", *["I"] * (length - 2), "E"]
    return labels


def organisations(tags: Sequence[str]) -> list[str]:
    """B I E S O for the organisations among BIO tags."""
    return span_labels(len(tags), (span for span in spans(tags, "IOB2") if span.label == ORGANISATION))


def all_types(text: str, tags: Sequence[str]) -> list[str]:
    """IOBES labels of all names among BIO tags, and of the marks between two of one type."""
    labels = ["O"] * len(tags)
    names = spans(tags, "IOB2")
    for span in names:
        labels[span.start : span.end] = map(str, segment_labels(span.label, span.end - span.start, "iobes"))
    for a, b in pairwise(names):
        if a.label == b.label and b.start == a.end + 1 and text[a.end] in MARKS:
            labels[a.end] = f"S-{a.label}+{a.label}"
    return labels


def without_marks(labels: Sequence[Any]) -> list[str]:
    """IOBES labels of names alone, none for the marks between them."""
    return ["O" if "+" in str(label) else str(label) for label in labels]


def only_organisations(labels: Sequence[Any]) -> list[str]:
    """B I E S O for the organisations among IOBES labels."""
    return span_labels(len(labels), (span for span in spans(labels, "IOBES") if span.label == ORGANISATION))


def choose(found: Sequence[Iterable[Span]], threshold: float) -> list[Place]:
    """The organisations in what models say of a sentence whose mean probability reaches a threshold, none overlapping.

    Where spans overlap, the more probable one is chosen.
    """
    means = defaultdict[Place, float](float)
    for some in found:
        for span in some:
            if span.label in (ORGANISATION, ""):
                means[span.start, span.end] += span.probability / len(found)
    chosen: list[Place] = []
    for begin, end in sorted(means, key=lambda place: (-means[place], place)):
        if means[begin, end] >= threshold and all(end <= a or b <= begin for a, b in chosen):
            chosen.append((begin, end))
    return sorted(chosen)
