"""Precision and recall over the threshold, and calibration, of spans with probabilities."""

import numpy as np
import pytest

from crfkit import Span
from crfkit.errors import ArgumentError, ShapeError
from crfkit.evaluation import Counts, span_calibration, span_precision_recall, spans
from tests.oracles.conlleval import names, read

GOLD = [["B-X", "I-X", "O", "B-Y"], ["O"], ["B-X", "B-X"]]
FOUND = [
    [Span(0, 2, "X", 0.9), Span(3, 4, "X", 0.6), Span(3, 4, "Y", 0.4)],
    [Span(0, 1, "X", 0.6)],
    [Span(0, 1, "X", 0.95), Span(0, 2, "X", 0.05)],
]


def test_precision_and_recall_over_the_threshold() -> None:
    curve = span_precision_recall(GOLD, FOUND)
    assert curve.thresholds == (0.95, 0.9, 0.6, 0.4, 0.05)
    assert curve.counts == tuple(Counts(*c, 4) for c in [(1, 1), (2, 2), (2, 4), (3, 5), (3, 6)])
    assert curve.n_gold == 4
    assert curve.area == pytest.approx((1 + 1 + 3 / 5) / 4)
    assert curve.at(0.5) == Counts(2, 4, 4)
    assert curve.at(0.99) == Counts(0, 0, 4)
    assert (curve.threshold_for(1.0), curve.threshold_for(0.6), curve.threshold_for(0.1)) == (0.9, 0.4, 0.05)
    assert span_precision_recall(GOLD, [[], [Span(0, 1, "X", 0.5)], []]).threshold_for(0.5) is None
    assert "     0.50     50.00%  50.00%  50.00" in str(curve)
    assert "area under precision and recall:  65.00%" in str(curve)


def test_gold_may_be_spans_or_plain_labels() -> None:
    listed = [[(span.start, span.end, span.label) for span in spans(labels)] for labels in GOLD]
    assert span_precision_recall(listed, FOUND) == span_precision_recall(GOLD, FOUND)
    plain = [["X", "X", "O", "Y"], ["O"], ["X", "X"]]
    curve = span_precision_recall(plain, FOUND)
    assert curve.n_gold == 3
    assert curve.at(0.05) == Counts(3, 6, 3)


def test_calibration() -> None:
    found = span_calibration(GOLD, FOUND, n_bins=2)
    (low, high) = found.bins
    assert [*low] == pytest.approx([0.0, 0.5, 2, 0.225, 0.5])
    assert [*high] == pytest.approx([0.5, 1.0, 4, 0.7625, 0.5])
    assert found.error == pytest.approx((2 * 0.275 + 4 * 0.2625) / 6)
    assert found.n == 6
    assert "expected calibration error:  26.67%" in str(found)
    assert span_calibration([["O"]], [[Span(0, 1, "X", 1.0)]]).bins[0][:2] == (0.9, 1.0)


def test_probabilities_that_are_true_are_calibrated() -> None:
    random = np.random.default_rng(0)
    p = random.random(20_000)
    gold = [["B-X" if u < q else "O"] for q, u in zip(p, random.random(len(p)), strict=True)]
    assert span_calibration(gold, [[Span(0, 1, "X", q)] for q in p]).error < 0.02


def test_nothing_found_and_nothing_to_find() -> None:
    empty = span_precision_recall([], [])
    assert (empty.area, empty.thresholds) == (0.0, ())
    assert span_calibration([["O"]], [[]]).error == 0.0


def test_errors() -> None:
    with pytest.raises(ShapeError, match="3 gold sequences"):
        span_precision_recall(GOLD, FOUND[:1])
    with pytest.raises(ArgumentError, match="n_bins is 0"):
        span_calibration(GOLD, FOUND, n_bins=0)


@pytest.mark.parametrize("scheme", ["bio", "iob1", "iobes", "bilou", "bmes", "plain"])
def test_every_scheme_is_read_as_conlleval_does(scheme: str) -> None:
    label_names, random = names(scheme, 7), np.random.default_rng(0)
    for _ in range(500):
        y = random.choice(label_names, size=6).tolist()
        assert [span[:3] for span in spans(y, scheme)] == read(y, scheme)
