"""Which label sequence is predicted: the likeliest, or one with the lowest expected risk by a metric.

    viterbi     the label sequence with the highest score: most sequences right as a whole
    marginal    at each position the label with the highest marginal: most positions right
    f1          the spans with the highest expected F1 over all sequences, as labels
    spans       the spans with the highest Σ (probability − 0.3) in each sequence, as labels

The last three choose part by part, so what they choose may be no label sequence of a constrained model. Such a sequence gets
the existing one with the highest sum of marginals, or its best one.
"""

from collections.abc import Hashable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from crfkit.arrays import Bools, Float64s, Int32s
from crfkit.errors import ArgumentError, UnsupportedError
from crfkit.evaluation import scheme_of
from crfkit.inference import ChainBatch
from crfkit.models.checks import check_model_decoding
from crfkit.models.encoded_input import EncodedInput
from crfkit.models.span_questions import find_spans
from crfkit.optimizers import AUTO
from crfkit.structures import Span, SpanLabels, segment_labels

DECODINGS = ("viterbi", "marginal", "f1", "spans")
SPAN_DECODINGS = ("f1", "spans")


def check_decoding(decode: object) -> None:
    """Refuse what is no decoding of label sequences."""
    if decode not in DECODINGS:
        raise ArgumentError(f"decode is {decode!r}, expected {', '.join(map(repr, DECODINGS))}")


def find_decoding(decode: str, classes: Sequence[Hashable]) -> str:
    """The decoding of a model with these labels: "auto" is "spans" where they are those of spans, otherwise "viterbi"."""
    check_model_decoding(decode)
    if decode != AUTO:
        return decode
    return "viterbi" if scheme_of(classes) is None else "spans"


def decode_labels(ask: EncodedInput, decode: str, spans: SpanLabels | None) -> list[list[Any]]:
    """The labels of each sequence; `spans` says how labels are read as spans, for "f1" and "spans"."""
    with ask.explain_impossible():
        return ask.model.decode(decode_ids(ask, decode, spans), ask.dataset)


def decode_ids(ask: EncodedInput, decode: str, spans: SpanLabels | None = None) -> Int32s:
    """The same as ids [T], over all sequences."""
    if decode != "viterbi" and not ask.model.potentials.labels_positions:
        raise UnsupportedError(
            f"decode is {decode!r}, but outputs are paths of word lattices, expected 'viterbi', or predict_spans"
        )
    if decode == "marginal":
        marginals = ask.model.read_marginals(ask.answerer.marginals(ask.design, ask.n_threads))
        labels = ask.model.labels
        ids = labels.find_states(marginals.argmax(axis=1).astype(np.int32), ask.ptr)
        return _repair(ask, ids, labels.spread(marginals))
    if decode in SPAN_DECODINGS:
        assert spans is not None
        return _repair(ask, _write_spans(ask, spans, decode), None)
    return ask.answerer.decode(ask.design, ask.n_threads)


def _repair(ask: EncodedInput, ids: Int32s, marginals: Float64s | None) -> Int32s:
    """With other labels for sequences whose labels are impossible: −1, or no label sequence of the model."""
    bad = _find_impossible(ask, ids)
    if marginals is not None and bad.any() and (pairs := ask.model.potentials.existing_pairs()) is not None:
        L = marginals.shape[1]
        exists = np.full((L + 1, L + 1), -np.inf)
        exists[pairs] = 0.0
        for n in np.flatnonzero(bad).tolist():
            at = slice(*ask.ptr[n : n + 2].tolist())
            states = np.where(marginals[at] > 0, marginals[at], -np.inf)
            ids[at] = ChainBatch(states[None], exists[:-1, :-1], exists[-1, :-1], exists[:-1, -1]).decode()[0]
        bad = _find_impossible(ask, ids)
    if bad.any():
        best = ask.answerer.decode(ask.design, ask.n_threads)
        ids = np.where(np.repeat(bad, np.diff(ask.ptr)), best, ids)
    return ids


def _find_impossible(ask: EncodedInput, ids: Int32s) -> Bools:
    """The sequences [N] whose labels [T] do not exist."""
    impossible: Bools = ~np.isfinite(
        ask.answerer.log_partitions(ask.design, np.maximum(ids, 0), None, ask.n_threads)
    )
    impossible[np.searchsorted(ask.ptr, np.flatnonzero(ids < 0), side="right") - 1] = True
    return impossible


def _write_spans(ask: EncodedInput, labels: SpanLabels, decode: str) -> Int32s:
    """The labels [T] of the spans that a decoding chooses; −1 where there is no such label."""
    number = {label: b for b, label in enumerate(ask.model.labels.classes)}
    scheme = ask.model.written_scheme(labels.scheme)
    ids = np.full(int(ask.ptr[-1]), number.get("O", -1), np.int32)
    for (begin, _), found in zip(
        pairwise(ask.ptr.tolist()), find_spans(ask, labels, None, decode), strict=True
    ):
        before: Span | None = None
        for span in found:
            adjacent = before is not None and before.end == span.start and before.label == span.label
            names = _span_names(span, scheme, adjacent=adjacent)
            ids[begin + span.start : begin + span.end] = [number.get(name, -1) for name in names]
            before = span
    return ids


def _span_names(span: Span, scheme: str, *, adjacent: bool) -> list[Any]:
    """The labels of a span, which may be adjacent to one of the same type before it."""
    length = span.end - span.start
    if scheme != "iob1":
        return segment_labels(span.label, length, scheme)
    names = segment_labels(
        span.label, length + 1, "bio"
    )  # I throughout, but for the first after an equal type
    return names[:-1] if adjacent else names[1:]
