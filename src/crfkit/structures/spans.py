"""Labels read as spans of positions: entities, chunks, words."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np

from crfkit.arrays import Bools, Int32s
from crfkit.errors import ArgumentError, LabelError
from crfkit.structures.schemes import PLAIN, SCHEMES, Place, find_scheme, label_places

Threshold = float | Literal["auto"] | None
"""The least probability of a span; None: there is none."""


class Span(NamedTuple):
    """The positions `start`, …, `end` − 1 are one span with this label; its probability under a model.

    >>> Span(3, 5, "PER", 0.98)
    Span(start=3, end=5, label='PER', probability=0.98)
    """

    start: int
    end: int
    label: Any
    probability: float = 1.0

    def in_characters(self, tokens: Sequence[tuple[int, int]]) -> "Span":
        """The same span in characters of the text, where `tokens[i]` is (begin, end) of token i.

        >>> Span(1, 3, "LOC", 0.9).in_characters([(0, 2), (3, 6), (7, 11)])
        Span(start=3, end=11, label='LOC', probability=0.9)
        """
        return self._replace(start=int(tokens[self.start][0]), end=int(tokens[self.end - 1][1]))


@dataclass(frozen=True, eq=False)
class SpanLabels:
    """How L labels are read as spans of C types.

    Two neighbouring positions belong to one span where the first label goes on, the second follows, and both are of one
    type: B-X goes on, E-X follows, I-X does both, S-X neither. Every label sequence is read so, ill-formed ones as
    conlleval reads them (I-X after O begins a span). In IOB1, where I-X begins a span, this is the rule itself.
    """

    scheme: str  # a name of `SCHEMES`, or "plain"
    types: tuple[Any, ...]  # [C] sorted
    type_of: Int32s  # [L] the type of each label; −1: outside of all spans
    goes_on: Bools  # [L] the next position may belong to the same span
    follows: Bools  # [L] the position may continue a span

    @classmethod
    def of(cls, labels: Sequence[Hashable], scheme: str | None = None) -> "SpanLabels":
        """Of these labels, by a scheme ("bio", "iob1", "iobes", "bilou", "bmes"; "plain": runs of equal labels).

        Without one: the first scheme that has all these labels, or plain. InputError where the labels are not those of
        the scheme, where only some have the form of one, and where there are none but O.
        """
        name = _detected(labels) if scheme is None else _checked(scheme)
        places = [_plain(label) for label in labels] if name == PLAIN else label_places(name, labels)
        inside = {found.type for found in places if found.role != "O"}
        if not inside:
            raise LabelError("the model has no labels of spans, only 'O'")
        types = tuple(sorted(inside) if all(isinstance(t, str) for t in inside) else sorted(inside, key=str))
        numbers = {kind: i for i, kind in enumerate(types)}
        return cls(
            scheme=name,
            types=types,
            type_of=np.array([numbers[p.type] if p.role != "O" else -1 for p in places], np.int32),
            goes_on=np.array([p.role in "BIR" for p in places], np.bool_),
            follows=np.array([p.role in "IER" for p in places], np.bool_),
        )

    def read(self, ids: Sequence[int]) -> list[Span]:
        """The spans of one label sequence, given as ids, in order."""
        found: list[list[int]] = []
        for i, b in enumerate(ids):
            if self.type_of[b] < 0:
                continue
            if i > 0 and self.continues(ids[i - 1], b):
                found[-1][1] = i + 1
            else:
                found.append([i, i + 1, int(self.type_of[b])])
        return [Span(start, end, self.types[kind]) for start, end, kind in found]

    def continues(self, before: int, after: int) -> bool:
        """Whether the label `after` continues the span of the label `before` it."""
        same = self.type_of[before] == self.type_of[after] >= 0
        return bool(same and self.goes_on[before] and self.follows[after])


def _checked(scheme: str) -> str:
    name = scheme.lower() if isinstance(scheme, str) else scheme
    if name != PLAIN and name not in SCHEMES:
        raise ArgumentError(
            f"unknown scheme of span labels {scheme!r}, expected one of {', '.join(SCHEMES)}, {PLAIN}"
        )
    return name


def _plain(label: Any) -> Place:
    """A label that is its own type, in a run of equal ones."""
    return Place("O", "") if label == "O" else Place("R", label)


def _detected(labels: Sequence[Hashable]) -> str:
    """The scheme of these labels, as `crfkit.evaluation.scheme_of` finds it, or plain."""
    found = find_scheme(labels)
    if found != PLAIN:
        return found
    known = [label for label in labels if _looks_like_a_span(label)]
    other = [label for label in labels if label != "O" and not _looks_like_a_span(label)]
    if known and other:
        raise LabelError(
            f"the label {known[0]!r} is one of spans and {other[0]!r} is not, expected labels of one scheme; "
            f"scheme={PLAIN!r} reads runs of equal labels"
        )
    return PLAIN


def _looks_like_a_span(label: Any) -> bool:
    return isinstance(label, str) and label[1:2] == "-" and label[0] in "BIESLUM" and len(label) > 2
