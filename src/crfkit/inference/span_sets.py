"""Which spans are predicted, given their probabilities: the likely ones, or a set with the highest expected F1."""

from bisect import bisect_right
from collections.abc import Callable, Sequence
from operator import attrgetter

import numpy as np

from crfkit.errors import ArgumentError
from crfkit.structures import Span, Threshold

SpanLists = list[list[Span]]  # of each sequence
Ask = Callable[[float], SpanLists]  # the spans with a probability of at least this much

DECODINGS = ("viterbi", "f1", "spans")
DEFAULT_THRESHOLD = 0.5
SPAN_COST = 0.3  # of each span that is chosen: F1 / 2 where F1 is 0.6

_FIRST = 0.25  # the first threshold; most data need no other
_LAST = 1e-9


def read_threshold(threshold: Threshold, decode: object) -> float | None:
    """The threshold that counts: "auto" is 0.5, and none with a decoding; ArgumentError for what is none, or no decoding."""
    if decode is not None and decode not in DECODINGS:
        expected = ", ".join(map(repr, DECODINGS))
        raise ArgumentError(f"decode is {decode!r}, expected None or one of {expected}")
    if isinstance(threshold, str) and threshold == "auto":
        return DEFAULT_THRESHOLD if decode is None else None
    if threshold is None:
        if decode is None:
            raise ArgumentError(
                "threshold is None, expected a number above 0, up to 1 (threshold_for gives None where no threshold has the "
                "precision), or decode= with it"
            )
        return None
    if (
        not isinstance(threshold, int | float | np.number)
        or isinstance(threshold, bool)
        or not 0 < threshold <= 1
    ):
        raise ArgumentError(f"threshold is {threshold!r}, expected a number above 0, up to 1")
    return float(threshold)


def select_spans(
    ask: Ask,
    decoded: Callable[[], SpanLists],
    n_gold: Callable[[], float],
    threshold: float | None,
    decode: str | None,
) -> SpanLists:
    """The spans above a threshold, those of the best labels (`decoded`), or those with the highest expected F1.

    "f1" maximises F1 over all sequences, whose ratio λ = F1 makes a span cost λ / 2. "spans" takes that cost as given, so
    that each sequence is decoded on its own.

    `n_gold` gives the expected number of spans of all sequences. With `decode`, spans below a threshold are left out;
    without one there is a threshold, as `read_threshold` sees to it.
    """
    if decode is None:
        assert threshold is not None
        return ask(threshold)
    if decode == "viterbi":
        found = decoded()
    elif decode == "spans":
        found = [heaviest(spans, SPAN_COST) for spans in ask(SPAN_COST)]
    else:
        found = best_expected_f1(ask, n_gold())
    return found if threshold is None else likely_spans(found, threshold)


def likely_spans(found: SpanLists, least: float) -> SpanLists:
    """Those with a probability of at least `least`."""
    return [[span for span in spans if span.probability >= least] for spans in found]


def best_expected_f1(ask: Ask, n_gold: float) -> SpanLists:
    """The spans of each sequence, none overlapping, that maximise F = 2 · E[correct] / (predicted + E[gold]) over all.

    E[correct] is the sum of their probabilities, and `n_gold` = E[gold] the expected number of spans of all sequences.
    Spans with a probability up to F / 2 are in no best set: they lower F. So the candidates of a threshold are enough
    once F / 2 has reached it.
    """
    threshold = _FIRST
    while True:
        chosen, f = _maximise(ask(threshold), n_gold)
        if f >= 2 * threshold or threshold <= _LAST:
            return chosen
        threshold = max(min(f / 2, threshold) if f > 0 else threshold / 16, _LAST)


def _maximise(candidates: Sequence[Sequence[Span]], n_gold: float) -> tuple[list[list[Span]], float]:
    """The best set and its F, by Dinkelbach's iteration for ratios.

    The best set for F = λ maximises Σ (2 p − λ) over its spans, which each sequence does on its own. The λ of the set
    that is found is never smaller than the one before, and equal only at the maximum.
    """
    chosen: list[list[Span]] = [[] for _ in candidates]
    ratio = 0.0
    while True:
        found = [heaviest(spans, ratio / 2) for spans in candidates]
        total = sum(map(len, found)) + n_gold
        reached = 2 * sum(span.probability for spans in found for span in spans) / total if total > 0 else 0.0
        if reached <= ratio:
            return chosen, ratio
        chosen, ratio = found, reached


def heaviest(spans: Sequence[Span], cost: float) -> list[Span]:
    """The spans, none overlapping, with the largest Σ (probability − cost): weighted interval scheduling."""
    order = sorted((span for span in spans if span.probability > cost), key=attrgetter("end"))
    ends = [span.end for span in order]
    weights, taken = (
        [0.0],
        list[int | None](),
    )  # of the best set among the first i; the set that span i goes on from
    for span in order:
        before = bisect_right(ends, span.start)
        weight = weights[before] + span.probability - cost
        taken.append(before if weight > weights[-1] else None)
        weights.append(max(weight, weights[-1]))
    chosen, i = [], len(order)
    while i > 0:
        previous = taken[i - 1]
        if previous is not None:
            chosen.append(order[i - 1])
        i = i - 1 if previous is None else previous
    return chosen[::-1]
