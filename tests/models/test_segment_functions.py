"""Feature functions of labels beside segments. The numbers are those of tests/laws/test_losses.py."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from crfkit import CRF, START, FeatureFunctions, Segments, load
from crfkit.errors import NotLoadedError
from tests.oracles.segmentations import labels_of, segmentations

X = [["we", "flew", "to", "New", "York"], ["York", "is", "old"], ["Paris", "and", "New", "York"], []]
SPANS: list[list[tuple[int, int, str]]] = [
    [(3, 5, "LOC")],
    [(0, 1, "LOC")],
    [(0, 1, "LOC"), (2, 4, "LOC")],
    [],
]


def capital(x: Any, label: Any, i: int) -> float:
    """A name has a capital letter."""
    return float((label != "O") == x[i].istitle())


def word(x: Any, label: Any, i: int) -> dict[str, float]:
    """One weight for a word and a letter."""
    return {f"{x[i].lower()} {label[0]}": 1.0}


def shape(x: Any, start: int, end: int) -> str:
    """A feature of segments."""
    return " ".join("X" if w.istitle() else "x" for w in x[start:end])


seen: set[tuple[Any, Any]] = set()


def same(x: Any, before: Any, label: Any, i: int) -> bool:
    """Of two labels."""
    seen.add((before, label))
    return bool(before == label)


def _model(**options: Any) -> CRF[Any]:
    structure = Segments(4, segment_features=[shape], dictionaries={"cities": ["New York"]})
    return CRF(structure, FeatureFunctions([capital, word]), l2=0.1, **options)


def test_questions_and_files(tmp_path: Path) -> None:
    crf = _model().fit(X, SPANS, dev=(X, SPANS))
    assert crf.output_names_[:2] == ["capital", "word:we B"]
    assert {"LOC in cities", "LOC X X", "LOC length 2"} <= {*crf.structure_names_}
    assert len(crf.weights_) == crf.feature_map_.n_weights + len(crf.output_names_) + len(
        crf.structure_names_
    )
    assert crf.score(X, SPANS) == 1.0
    best = crf.predict_nbest(X[1:2], 1000)[0]
    every = segmentations(3, ["O", "LOC"], "bio", {"LOC": 4})
    assert sorted(y for _, y in best) == sorted(labels_of(segments, "bio") for segments in every)
    spans = {(s.start, s.end): s.probability for s in crf.predict_spans(X[1:2], 1e-9)[0]}
    assert spans[0, 2] == pytest.approx(
        sum(p for p, y in best if y[:2] == ["B-LOC", "I-LOC"] and y[2] != "I-LOC")
    )
    crf.save(tmp_path / "m")
    with pytest.raises(NotLoadedError):
        load(tmp_path / "m").predict(X)
    for copy in (
        load(tmp_path / "m", [capital, word, shape]),
        load(tmp_path / "m", [FeatureFunctions([capital, word]), shape]),
        load(tmp_path / "m", trust_functions=True),
        pickle.loads(pickle.dumps(crf)),
    ):
        assert copy.structure == crf.structure
        assert copy.predict_nbest(X, 3) == crf.predict_nbest(X, 3)
        assert np.array_equal(
            copy._get_model().transfer_weights(crf._get_model(), crf.weights_), crf.weights_
        )


def test_models_that_grow_and_shrink() -> None:
    crf = _model().partial_fit(X[:2], SPANS[:2])
    n_outputs = len(crf.output_names_)
    crf.partial_fit([*X[2:], ["Oslo"]], [*SPANS[2:], [(0, 1, "LOC")]])
    assert len(crf.output_names_) > n_outputs
    assert crf.predict([["Oslo"]]) == [["B-LOC"]]
    sparse = _model(l1={"segments": 5.0, "default": 0.0}).fit(X, SPANS)
    assert len(sparse.structure_names_) < len(_model().fit(X, SPANS).structure_names_)
    assert sparse.output_names_ == _model().fit(X, SPANS).output_names_


def test_transitions_are_those_of_types() -> None:
    plain: CRF[Any] = CRF(Segments(), FeatureFunctions([capital], transitions=False), l2=0.1).fit(X, SPANS)
    assert plain.feature_map_.n_weights == 0
    linked: CRF[Any] = CRF(Segments(), FeatureFunctions([capital]), l2=0.1).fit(X, SPANS)
    assert linked.feature_map_.n_weights == 8  # two types, the start and the end


@pytest.mark.parametrize("scheme", ["bio", "iobes", "plain"])
def test_functions_of_two_labels(scheme: str, tmp_path: Path) -> None:
    """They see neighbouring labels of segmentations, within segments and between them, and no others."""
    seen.clear()
    crf: CRF[Any] = CRF(Segments(scheme=scheme), FeatureFunctions([capital, same]), l2=0.1).fit(X, SPANS)
    if scheme != "plain":
        assert (START, "I-LOC") not in seen
        assert ("O", "I-LOC") not in seen
    assert {(START, "O"), ("O", "O")} <= seen
    crf.save(tmp_path / "m")
    copy = load(tmp_path / "m", [capital, same])
    assert copy.predict_nbest(X, 5) == crf.predict_nbest(X, 5)
    assert crf.predict(X) == [found[0][1] for found in crf.predict_nbest(X, 1)]


def test_same_bits_for_any_number_of_threads() -> None:
    weights = [_model(n_threads=n).fit(X * 10, SPANS * 10).weights_ for n in (1, 3)]
    assert np.array_equal(weights[0], weights[1])
