"""The weights of segments by what they score: names, warm starts, what inspection shows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from crfkit import CRF, Segments, load
from crfkit.cli.inspect import as_text
from crfkit.models import describe, heaviest_transition_features, transition_weights

WORDS = [["we", "flew", "to", "New", "York"], ["York", "is", "old"], ["Paris", "and", "New", "York"]]
SPANS: list[list[tuple[int, int, str]]] = [[(3, 5, "LOC")], [(0, 1, "LOC")], [(2, 4, "LOC"), (0, 1, "LOC")]]


def counted(x: Any, start: int, end: int) -> Any:
    """Names that lengths have too."""
    return {f"length {end - start}": 0.5, "longer": float(end - start > 1)}


def _weights(crf: CRF[Any]) -> dict[str, float]:
    own = crf.weights_[-len(crf.structure_names_) :]
    return dict(zip(crf.structure_names_, own.tolist(), strict=True))


def test_names_of_features_that_lengths_have_too() -> None:
    crf = CRF(Segments(segment_features=counted), "U:%x[0,0]\nB", l2=0.1).fit(WORDS, SPANS)
    weights = _weights(crf)
    assert len(weights) == len(crf.structure_names_)
    assert {"LOC length 2", "LOC 'length 2'", "LOC longer", "LOC 'longer'"} <= weights.keys()
    start = crf._get_model().transfer_weights(crf._get_model(), crf.weights_)
    assert np.array_equal(start, crf.weights_)
    without = CRF(Segments(), "U:%x[0,0]\nB", l2=0.1).fit(WORDS, SPANS)
    passed = dict(
        zip(
            crf.structure_names_,
            crf._get_model()
            .transfer_weights(without._get_model(), without.weights_)[-len(weights) :]
            .tolist(),
            strict=True,
        )
    )
    assert passed["LOC length 2"] == _weights(without)["LOC length 2"] != 0
    assert passed["LOC 'length 2'"] == 0


def test_transitions_of_a_type_whose_labels_grow() -> None:
    """Of single positions at first, then of several: its transitions are those of another label, and stay."""
    small = CRF(Segments(scheme="iobes"), l2=0.1).fit([[["a"], ["b"]]] * 2, [["S-X", "O"], ["O", "S-X"]])
    large = CRF(Segments(scheme="iobes"), l2=0.1).fit(
        [[["a"], ["b"]]] * 3, [["S-X", "O"], ["O", "S-X"], ["B-X", "E-X"]]
    )
    start = large._get_model().transfer_weights(small._get_model(), small.weights_)
    begin, end = large.feature_map_.arcs_begin, large.feature_map_.triples_begin
    assert (
        np.count_nonzero(start[begin:end]) == np.count_nonzero([w for *_, w in transition_weights(small)]) > 0
    )


@pytest.mark.parametrize("scheme", ["bio", "iobes", "plain"])
def test_transitions_are_those_of_types(scheme: str) -> None:
    crf = CRF(Segments(scheme=scheme), "U:%x[0,0]\nB\nB:%x[0,0]", l2=0.1).fit(WORDS, SPANS)
    kinds = {"LOC", "O", None}
    found = {(before, after) for before, after, _ in transition_weights(crf)}
    assert {kind for pair in found for kind in pair} == kinds
    assert {
        kind for _, before, after, _ in heaviest_transition_features(crf, 99) for kind in (before, after)
    } <= kinds
    shown = as_text(describe(crf))
    assert "O → LOC" in shown
    assert "→ B-LOC" not in shown


def test_a_lower_limit_ends_the_lengths_of_a_model(tmp_path: Path) -> None:
    crf = CRF(Segments(4), "U:%x[0,0]\nB").fit(WORDS, SPANS)
    assert "LOC length 3" in crf.structure_names_
    crf.set_params(structure=Segments(2)).partial_fit(WORDS, SPANS)
    assert crf.structure_names_ == ["LOC length 1", "LOC length 2"]
    crf.save(tmp_path / "m")
    assert load(tmp_path / "m").predict(WORDS) == crf.predict(WORDS)
