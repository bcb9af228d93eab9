"""y as lists of spans."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from crfkit import CRF, InputError, Segments
from crfkit.errors import LabelError

WORDS = [["we", "flew", "to", "New", "York"], ["York", "is", "old"], ["Paris", "and", "New", "York"]]
SPANS: list[list[tuple[int, int, str]]] = [[(3, 5, "LOC")], [(0, 1, "LOC")], [(2, 4, "LOC"), (0, 1, "LOC")]]


def test_spans_are_labels() -> None:
    crf = CRF(Segments(scheme="iobes"), features="names").fit(WORDS, SPANS, dev=(WORDS, SPANS))
    assert crf.predict(WORDS)[0] == ["O", "O", "O", "B-LOC", "E-LOC"]
    assert crf.score(WORDS, SPANS) == 1.0
    assert (
        crf.log_probability(WORDS[:1], SPANS[:1]) == crf.log_probability(WORDS[:1], crf.predict(WORDS[:1]))
    ).all()
    with pytest.raises(InputError, match="dev sequence 0: the span"):
        crf.fit(WORDS, SPANS, dev=(WORDS, [[(0, 9, "LOC")], [], []]))
    with pytest.raises(InputError, match=r"sequence 2: the span \(1, 3, 'LOC'\) of 4 positions"):
        crf.fit(WORDS, [[], [], [(0, 2, "LOC"), (1, 3, "LOC")]])


def test_spans_may_be_lists() -> None:
    listed = [[[*span] for span in spans] for spans in SPANS]
    first, second = (CRF(Segments(), features="pos").fit(WORDS, y) for y in (SPANS, listed))
    assert np.array_equal(first.weights_, second.weights_)


@pytest.mark.parametrize(
    ("y", "message"),
    [
        ([[(0, 1, "A")], ["O", "O"]], r"sequence 1: y has 'O' beside the span \(0, 1, 'A'\), expected spans"),
        ([["O", "O"], [[0, 1, "A"]]], r"sequence 0: y has 'O' beside the span \[0, 1, 'A'\], expected spans"),
        ([[("A", 0, 1)], []], r"sequence 0: y has \('A', 0, 1\), expected spans \(start, end, type\)"),
        ([[["A", 0, 1]], []], r"sequence 0: y has \['A', 0, 1\], expected spans"),
        ([[(0.0, 1.0, "A")], []], r"sequence 0: y has \(0.0, 1.0, 'A'\), expected spans"),
        ([[{"start": 0, "end": 1}], []], "sequence 0: y has {'start': 0, 'end': 1}, expected spans"),
        ([[(0, 1, "A"), None], ["O", "O"]], r"sequence 1: y has 'O' beside the span"),
        ([[(0, 1, 7)], []], r"sequence 0: the span \(0, 1, 7\), expected a text as type"),
        ([[(0, 1, None)], []], r"sequence 0: the span \(0, 1, None\), expected a text as type"),
        ([[(0, 1, "O")], []], "type of the label 'B-O' is O, which is what positions outside are called"),
        (["OO", ["O", "O"]], "y of sequence 0 is 'OO', expected a list of labels"),
    ],
)
def test_what_is_neither_spans_nor_labels(y: Any, message: str) -> None:
    with pytest.raises(LabelError, match=message):
        CRF(Segments(), features="pos").fit([["a", "b"], ["c", "d"]], y)


def test_labels_of_any_kind() -> None:
    x = [["a", "b"], ["c", "d"]]
    spans = [[(0, 1, 7)], [(0, 2, (8,))]]
    assert {*CRF(Segments(scheme="plain"), features="pos").fit(x, spans).classes_} == {"O", 7, (8,)}
    labels = [[(0, 1, "a"), ("b",)], [("b",), None]]  # the first looks like a span
    crf: CRF[Any] = CRF(Segments(), features="pos")
    assert {*crf.fit(x, labels).classes_} == {(0, 1, "a"), ("b",)}


def test_spans_join_a_model_in_its_scheme() -> None:
    labels = [["O", "O", "O", "B-LOC", "E-LOC"], ["S-LOC", "O", "O"], ["S-LOC", "O", "B-LOC", "E-LOC"]]
    crf = CRF(Segments(), features="pos").fit(WORDS, labels)
    assert crf.partial_fit(WORDS, SPANS).classes_ == ["B-LOC", "E-LOC", "O", "S-LOC"]


@pytest.mark.parametrize("spans", [[(0, 1, "A"), (1, 2, "A")], [(0, 2, "O"), (2, 3, "A")]])
def test_spans_without_plain_labels_of_their_own_are_refused(spans: list[tuple[int, int, str]]) -> None:
    x = [["a", "b", "c"]]
    with pytest.raises(InputError, match=r"sequence 0: the span .* are runs of equal labels"):
        CRF(Segments(scheme="plain"), features="pos").fit(x, [spans])
    assert CRF(Segments(), features="pos").fit(x, [spans]).classes_
    apart = [(0, 1, "A"), (1, 2, "B"), (2, 3, "A")]
    assert CRF(Segments(scheme="plain"), features="pos").fit(x, [apart]).classes_ == ["A", "B"]


def test_spans_are_read_as_training_read_labels() -> None:
    crf = CRF(Segments(), features="pos", l2=0.01).fit(WORDS, SPANS)
    found = crf.predict_spans(WORDS)
    crf.set_params(structure=Segments(scheme="plain"))
    assert crf.predict_spans(WORDS) == found
    assert [[span[:3] for span in spans] for spans in found] == [sorted(spans) for spans in SPANS]
