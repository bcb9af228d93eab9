"""Which types of segments follow each other. The numbers are those of tests/laws/test_losses.py."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from crfkit import CRF, END, START, Bigrams, InputError, Segments, load
from crfkit.cli.inspect import as_text
from crfkit.errors import ImpossibleLabelsError
from crfkit.models import describe, transition_weights

X = [[["a"], ["b"], ["c"]], [["b"], ["a"]], [["c"], ["b"], ["b"], ["a"]], []]
Y = [["B-X", "I-X", "O"], ["O", "B-X"], ["B-Y", "B-X", "I-X", "O"], []]
PAIRS = {(START, "X"), (START, "O"), (START, "Y"), ("X", "O"), ("O", "X"), ("Y", "X"), ("O", END), ("X", END)}


def _pairs(crf: CRF[Any]) -> Bigrams:
    bigrams = crf.structure_.bigrams
    assert isinstance(bigrams, Bigrams)
    return bigrams


def _types(labels: list[Any]) -> list[str]:
    return [label[2:] or label for label in labels if not label.startswith("I")]


@pytest.mark.parametrize("bigrams", ["observed", Bigrams(PAIRS), Bigrams(PAIRS | {("Z", "X")})])
def test_other_types_do_not_follow_each_other(bigrams: Any, tmp_path: Path) -> None:
    crf: CRF[Any] = CRF(Segments(bigrams=bigrams), l2=0.1).fit(X, Y)
    assert {*_pairs(crf)} == PAIRS
    assert {
        (START if a is None else a, END if b is None else b) for a, b, _ in transition_weights(crf)
    } == PAIRS
    x = [[["b"]] * 4]
    crf.save(tmp_path / "m")
    copy = load(tmp_path / "m")
    assert copy.structure.bigrams == (bigrams if bigrams == "observed" else Bigrams(PAIRS))
    for model in (crf, copy):
        best = model.predict_nbest(x, 10_000)[0]
        assert sum(p for p, _ in best) == pytest.approx(1.0)
        assert all(_pairs(crf).allows(_types(labels)) for _, labels in best)
        assert len(best) == len({*map(tuple, (labels for _, labels in best))}) > 5
        assert model.predict(x)[0] == best[0][1]
        spans = {(s.start, s.end, s.label): s.probability for s in model.predict_spans(x, 1e-9)[0]}
        assert spans[0, 1, "Y"] == pytest.approx(sum(p for p, labels in best if labels[:2] == ["B-Y", "B-X"]))
    with pytest.raises(InputError, match="there is no segmentation"):
        crf.predict(x, allowed=[[None, ["B-Y"], None, None]])
    assert "START" not in as_text(describe(crf)).split("bigrams")[0]
    assert describe(crf)["bigrams"]["pairs"]


def test_pairs_join_a_model() -> None:
    crf: CRF[Any] = CRF(Segments(bigrams="observed"), l2=0.1).partial_fit(X[:2], Y[:2])
    assert ("Y", "X") not in _pairs(crf)
    crf.partial_fit(X[2:], Y[2:])
    assert {*_pairs(crf)} == PAIRS


def test_pairs_of_partial_labels() -> None:
    y: list[list[Any]] = [[{"B-X", "O"}, None, "O"], ["O", "B-X"], ["O", "B-Y", "O", "O"], []]
    crf: CRF[Any] = CRF(Segments(bigrams="observed"), l2=0.1).fit(X, y)
    assert {*_pairs(crf)} == {
        *((START, kind) for kind in ("X", "O")),
        *((kind, END) for kind in ("X", "O")),
        *(("O", "X"), ("O", "Y"), ("Y", "O"), ("O", "O")),
    }


def test_types_follow_segments_that_are_longer_than_those_with_weights() -> None:
    X: list[Any] = [[["a"]] * 5, [["b"]] * 2]
    y: list[list[Any]] = [["B-X", "I-X", "I-X", "O", None], ["O", "O"]]
    crf: CRF[Any] = CRF(Segments(longest_weighted=2, bigrams="observed")).fit(X, y)
    assert {(START, "X"), ("X", "O")} <= {*_pairs(crf)}
    assert crf.structure_names_ == ["X length 1", "X length 2", "X longer"]


@pytest.mark.parametrize(
    ("absent", "message"),
    [
        (
            ("Y", "X"),
            r"sequence 2, position 1: a segment of type 'X' after one of type 'Y', which the bigrams",
        ),
        ((START, "O"), r"sequence 1, position 0: a segment of type 'O' at the start, which"),
        (("X", END), r"sequence 1, position 1: a segment of type 'X' at the end, which"),
    ],
)
def test_labels_outside_the_bigrams_are_refused(absent: Any, message: str) -> None:
    with pytest.raises(ImpossibleLabelsError, match=message):
        CRF(Segments(bigrams=Bigrams(PAIRS - {absent}))).fit(X, Y)


def test_what_is_no_bigrams_is_refused() -> None:
    with pytest.raises(
        InputError, match=r"Segments.bigrams is 'bio', expected None, 'observed' or a Bigrams"
    ):
        Segments(bigrams="bio")


def test_same_bits_for_any_number_of_threads() -> None:
    weights = [CRF(Segments(bigrams="observed"), n_threads=n).fit(X * 30, Y * 30).weights_ for n in (1, 3)]
    assert np.array_equal(weights[0], weights[1])
