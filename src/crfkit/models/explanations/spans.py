"""Why there is a span, against there being none, or against another one at its place: `CRF.explain_span`.

Whether a label sequence has the span depends on the labels of its positions and of the two beside it. The label sequences
that have it, and those that have it not, are unions of disjoint events k, each of which says for each of these positions
which labels are allowed. With A all events of the one, B all of the other, and p(k | A) the probability of an event,

    log p(A) − log p(B) = log Z(A) − log Z(B),     log Z(A) = Σ_k p(k | A) log Z(k) + H(A)

where H(A) = −Σ_k p(k | A) log p(k | A), and log Z(k) has the parts that `positions` describes, for several positions in a
row. No probability is subtracted from 1, so that log-odds of spans that are nearly certain are exact too.
"""

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from crfkit.arrays import Bools, Float64s
from crfkit.errors import ArgumentError, LabelError, UnsupportedError
from crfkit.inference import WindowContexts
from crfkit.models.encoded_input import EncodedInput
from crfkit.models.explanations.explanation import ROUNDING, Explanation, ExplanationPart
from crfkit.models.explanations.positions import (
    LEFT,
    RIGHT,
    check_explainable,
    feature_parts,
    own_parts,
    read_position,
)
from crfkit.structures import SpanLabels

OUTSIDE = "O"


class _Side(NamedTuple):
    """Means over the label sequences of one side of the comparison."""

    log_partition: float
    entropy: float  # of its events
    beginnings: Float64s  # [K] log F
    own: Float64s  # [K]
    arcs: Float64s  # [K + 1]
    marginals: Float64s  # [K, L]


def explain_span(
    ask: EncodedInput,
    weights: Float64s,
    labels: SpanLabels | None,
    start: int,
    end: int,
    label: Any,
    against: Any,
) -> Explanation:
    """The explanation of positions start … end − 1 of the only sequence of `ask` as a span of a type."""
    n_positions = int(ask.ptr[-1])
    if labels is None:
        raise UnsupportedError("explain_span is for spans of labelled positions, the model has word lattices")
    start = read_position("start", start, n_positions)
    if not isinstance(end, int | np.integer) or isinstance(end, bool) or not start < end <= n_positions:
        raise ArgumentError(f"end is {end!r}, expected a number from {start + 1} to {n_positions}")
    check_explainable(ask)
    window = _Window(labels, start, int(end), n_positions)
    with ask.explain_impossible():
        kind = _read_type(ask, window, label)
        ours = window.has_span(kind)
        theirs = window.has_no_span(kind) if against is None else window.has(labels, against, kind)
        everything = [] if against is None else [window.anything()]
        events = np.array([*ours, *theirs, *everything])
        found = ask.answerer.explain_windows(ask.design, 0, window.first, events)
    a, b = _join(found, 0, len(ours)), _join(found, len(ours), len(ours) + len(theirs))
    log_z = float(found.log_partitions[-1]) if everything else float(np.logaddexp(a[0], b[0]))
    name = labels.types[kind]
    odds = (
        math.exp(a.log_partition - log_z),
        math.exp(b.log_partition - log_z),
        a.log_partition - b.log_partition,
    )
    if math.isnan(odds[2]):
        raise LabelError(
            f"neither the span {name!r} nor {against!r} is possible at positions {start} to {end - 1}"
        )
    parts = list(_constraint(a, b, name) if math.isinf(odds[2]) else _parts(ask, weights, window, a, b))
    return Explanation("span", start, int(end), name, against, *odds, tuple(parts))


class _Window:
    """The positions of a span and those beside it, as far as there are such, with events on their labels."""

    def __init__(self, labels: SpanLabels, start: int, end: int, n_positions: int) -> None:
        self.labels, self.start, self.end = labels, start, end
        self.first, self.last = max(start - 1, 0), min(end + 1, n_positions)  # positions first … last − 1

    def anything(self) -> Bools:
        """All labels everywhere, [K, L]."""
        return np.ones((self.last - self.first, len(self.labels.type_of)), dtype=np.bool_)

    def has_span(self, kind: int) -> list[Bools]:
        """The events in which there is the span."""
        base = self._inside(kind)
        return [
            end
            for begin in self._begins(base, kind, wanted=True)
            for end in self._ends(begin, kind, wanted=True)
        ]

    def has_no_span(self, kind: int) -> list[Bools]:
        """The events in which there is not: a position is wrong, the first one; the span began before; it goes on."""
        base = self._inside(kind)
        found = []
        for t in range(self.start, self.end):
            event = self.anything()
            event[self.start - self.first : t - self.first] = base[self.start - self.first : t - self.first]
            event[t - self.first] = ~base[t - self.first]
            found.append(event)
        found += self._begins(base, kind, wanted=False)
        for begin in self._begins(base, kind, wanted=True):
            found += self._ends(begin, kind, wanted=False)
        return found

    def has(self, labels: SpanLabels, against: Any, kind: int) -> list[Bools]:
        """The events of another type at the same place, or of no span on any of the positions ("O")."""
        if against == OUTSIDE and OUTSIDE not in labels.types:
            event = self.anything()
            event[self.start - self.first : self.end - self.first] = labels.type_of < 0
            return [event]
        other = find_type(labels, against)
        if other == kind:
            raise LabelError(f"label and against are both {against!r}, expected two types of spans")
        return self.has_span(other)

    def _inside(self, kind: int) -> Bools:
        """The positions of the span have labels of the type that go on and follow, but for the first and the last."""
        found, labels = self.anything(), self.labels
        for t in range(self.start, self.end):
            row = labels.type_of == kind
            if t > self.start:
                row = row & labels.follows
            if t + 1 < self.end:
                row = row & labels.goes_on
            found[t - self.first] = row
        return found

    def _begins(self, base: Bools, kind: int, *, wanted: bool) -> Iterator[Bools]:
        """With `wanted` what begins at `start`, else what continues the position before."""
        labels, at = self.labels, self.start - self.first
        if at == 0:
            if wanted:
                yield base
            return
        going = (labels.type_of == kind) & labels.goes_on
        if wanted:
            yield self._with(base, at, base[at] & ~labels.follows)
            yield self._with(self._with(base, at, base[at] & labels.follows), at - 1, ~going)
        else:
            yield self._with(self._with(base, at, base[at] & labels.follows), at - 1, going)

    def _ends(self, base: Bools, kind: int, *, wanted: bool) -> Iterator[Bools]:
        """With `wanted` what ends before `end`, else what goes on there."""
        labels, at = self.labels, self.end - self.first
        if at == self.last - self.first:
            if wanted:
                yield base
            return
        following = (labels.type_of == kind) & labels.follows
        if wanted:
            yield self._with(base, at - 1, base[at - 1] & ~labels.goes_on)
            yield self._with(self._with(base, at - 1, base[at - 1] & labels.goes_on), at, ~following)
        else:
            yield self._with(self._with(base, at - 1, base[at - 1] & labels.goes_on), at, following)

    @staticmethod
    def _with(event: Bools, at: int, row: npt.NDArray[np.bool_]) -> Bools:
        found = event.copy()
        found[at] = row
        return found


def find_type(labels: SpanLabels, name: Any) -> int:
    """The number of a type of spans."""
    if name not in labels.types:
        raise LabelError(
            f"there are no spans of type {name!r}; the types are {', '.join(map(str, labels.types))}"
        )
    return labels.types.index(name)


def _read_type(ask: EncodedInput, window: _Window, label: Any) -> int:
    """The type that is given, or the likeliest one at this place."""
    if label is not None:
        return find_type(window.labels, label)
    events = [window.has_span(kind) for kind in range(len(window.labels.types))]
    found = ask.answerer.explain_windows(
        ask.design, 0, window.first, np.array([event for some in events for event in some])
    )
    ends = np.cumsum([len(some) for some in events]).tolist()
    sums = [
        float(np.logaddexp.reduce(found.log_partitions[begin:end], initial=-np.inf))
        for begin, end in zip([0, *ends], ends, strict=False)
    ]
    return int(np.argmax(sums))


def _join(found: WindowContexts, begin: int, end: int) -> _Side:
    """Means over the events begin … end − 1."""
    log_z = found.log_partitions[begin:end]
    total = float(np.logaddexp.reduce(log_z, initial=-np.inf))
    p = np.exp(log_z - total) if total > -math.inf else np.zeros(end - begin)
    entropy = math.fsum(-x * math.log(x) for x in p.tolist() if x > 0)
    means = ((p @ some[begin:end].reshape(len(p), -1)).reshape(some.shape[1:]) for some in found[1:])
    return _Side(total, entropy, *means)


def _constraint(a: _Side, b: _Side, name: Any) -> Iterator[ExplanationPart]:
    if a.log_partition == -math.inf:
        yield ExplanationPart(f"no allowed label sequence has the span {name}", -math.inf, "constraint")
    else:
        yield ExplanationPart(f"every allowed label sequence has the span {name}", math.inf, "constraint")


def _parts(
    ask: EncodedInput, weights: Float64s, window: _Window, a: _Side, b: _Side
) -> Iterator[ExplanationPart]:
    """Features of the span, its transitions, what comes from the left and from the right, and how free the labels are."""
    difference, own, arcs = a.marginals - b.marginals, a.own - b.own, (a.arcs - b.arcs).tolist()
    into, out = window.start - window.first, window.end - window.first
    features: list[ExplanationPart] = []
    others: list[ExplanationPart] = []
    for k in range(into, out):
        t, coefficients = window.first + k, np.ascontiguousarray(difference[k])
        some = feature_parts(ask, weights, t, coefficients, place=f" @ {t}")
        features += some
        rest = float(own[k]) - math.fsum(part.value for part in some)
        others += own_parts(ask, weights, t, coefficients, rest, place=f" @ {t}")
    features.sort(key=lambda part: -abs(part.value))
    yield from features
    yield from others
    free = [side.entropy + _freedom(side, into, out) for side in (a, b)]
    left = [side.beginnings[into] - side.own[into] - side.arcs[into] for side in (a, b)]
    right = [side.log_partition - side.entropy - side.beginnings[out - 1] - side.arcs[out] for side in (a, b)]
    for name, value, group in (
        ("into the span", arcs[into], "transition"),
        ("within the span", math.fsum(arcs[into + 1 : out]), "transition"),
        ("out of the span", arcs[out], "transition"),
        (LEFT, left[0] - left[1], "left"),
        (RIGHT, right[0] - right[1], "right"),
        ("number of alternatives", free[0] - free[1], "rest"),
    ):
        if abs(value) > ROUNDING:
            yield ExplanationPart(name, float(value), group)


def _freedom(side: _Side, into: int, out: int) -> float:
    """How much the labels within the span may vary: log F of its last position less that of its first, and less scores."""
    within = math.fsum([*side.own[into + 1 : out], *side.arcs[into + 1 : out]])
    return float(side.beginnings[out - 1] - side.beginnings[into]) - within
