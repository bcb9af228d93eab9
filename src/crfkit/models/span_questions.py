"""Spans of new input with their exact probabilities, as `CRF.predict_spans` gives them."""

from collections.abc import Hashable, Sequence

from crfkit.errors import ArgumentError
from crfkit.features import path_spans
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
    check_decoding(threshold, decode)
    return SpanLabels.of(classes, scheme)


def check_decoding(threshold: object, decode: object) -> None:
    """InputError for what is no probability or decoding."""
    if threshold is not None:
        check_probability("threshold", threshold)
    if decode is not None and decode not in DECODINGS:
        expected = ", ".join(map(repr, DECODINGS))
        raise ArgumentError(f"decode is {decode!r}, expected None or one of {expected}")


def find_spans(
    ask: EncodedInput, labels: SpanLabels, threshold: float | None, decode: str | None
) -> list[list[Span]]:
    """The spans of each sequence: above a threshold, of the best labels, or with the highest expected F1."""
    with ask.explain_impossible():
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


def find_arcs(ask: EncodedInput, threshold: float | None, decode: str | None) -> list[list[Span]]:
    """The same of word lattices: arcs with equal ends and labels are one span."""
    with ask.explain_impossible():
        on_path = ask.answerer.marginals(ask.design, ask.n_threads)[:, 1]
        best = ask.answerer.decode(ask.design, ask.n_threads) if decode == "viterbi" else None
    everything = path_spans(on_path, ask.dataset)
    if decode == "f1":
        spans = best_expected_f1(lambda least: _likely(everything, least), float(on_path.sum()))
        return _likely(spans, threshold or 0.0)
    if best is None:
        return _likely(everything, DEFAULT_THRESHOLD if threshold is None else threshold)
    paths = [
        set(path) for path in ask.model.convert_outputs(ask.model.decode(best, ask.dataset), ask.dataset)
    ]
    spans = [
        [span for span in some if span[:3] in path] for some, path in zip(everything, paths, strict=True)
    ]
    return _likely(spans, threshold or 0.0)


def _likely(found: list[list[Span]], least: float) -> list[list[Span]]:
    return [[span for span in spans if span.probability >= least] for spans in found]
