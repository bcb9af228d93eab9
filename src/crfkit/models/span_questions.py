"""Spans of new input with their exact probabilities, as `CRF.predict_spans` gives them."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from crfkit.errors import ArgumentError
from crfkit.inference import best_expected_f1
from crfkit.models.checks import check_probability
from crfkit.models.encoded_input import EncodedInput
from crfkit.structures import Span, SpanLabels

DECODINGS = ("viterbi", "f1")
DEFAULT_THRESHOLD = 0.5


def check_spans(
    classes: Sequence[Hashable], scheme: str | None, threshold: object, decode: object
) -> SpanLabels:
    """How the labels of a model are read as spans; InputError for what is no scheme, probability or decoding."""
    if threshold is not None:
        check_probability("threshold", threshold)
    if decode is not None and decode not in DECODINGS:
        expected = ", ".join(map(repr, DECODINGS))
        raise ArgumentError(f"decode is {decode!r}, expected None or one of {expected}")
    return SpanLabels.of(classes, scheme)


def find_spans(
    ask: EncodedInput, labels: SpanLabels, threshold: float | None, decode: str | None
) -> list[list[Span]]:
    """The spans of each sequence: above a threshold, of the best labels, or with the highest expected F1."""
    with ask.explained():
        if decode is None:
            least = DEFAULT_THRESHOLD if threshold is None else threshold
            return ask.answerer.spans(ask.design, labels, least, ask.n_threads)
        if decode == "viterbi":
            found = ask.answerer.decoded_spans(ask.design, labels, ask.n_threads)
        else:
            n_gold = float(ask.answerer.n_spans(ask.design, labels, ask.n_threads).sum())
            found = best_expected_f1(
                lambda least: ask.answerer.spans(ask.design, labels, least, ask.n_threads), n_gold
            )
    if threshold is None:
        return found
    return [[span for span in spans if span.probability >= threshold] for spans in found]
