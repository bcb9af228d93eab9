"""A trained estimator survives its file and its pickle, and an untrained one has none to save."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sklearn.exceptions

import crfkit
from crfkit import CRF, LBFGS, Chain
from crfkit.features import presets
from crfkit.models import heaviest_features
from tests.models.small_corpus import corpus


@pytest.mark.parametrize(
    "params",
    [
        {},
        {"l1": 0.5, "l2": {"w": 0.1, "default": 2.0}, "all_possible_states": True},
        {"structure": Chain(start=False, end=False), "all_possible_transitions": False, "min_count": 2},
        {"optimizer": LBFGS(max_iterations=3, tolerance=1e-3), "n_threads": 1},
    ],
)
def test_a_loaded_model_answers_like_the_saved_one(params: dict[str, Any], tmp_path: Path) -> None:
    X, y = corpus()
    crf = CRF(**params).fit(X, y)
    crf.save(tmp_path / "m.crf")
    copies = pickle.loads(pickle.dumps(crf)), copy.deepcopy(crf)
    assert all(other.history_ == crf.history_ for other in copies)
    for other in (crfkit.load(tmp_path / "m.crf"), *copies):
        assert other.predict(X) == crf.predict(X)
        np.testing.assert_array_equal(other.weights_, crf.weights_)
        for record, saved in zip(other.history_, crf.history_, strict=True):  # a file holds no seconds
            assert record._replace(seconds=0.0) == saved._replace(seconds=0.0)
        assert (other.n_iter_, other.stop_reason_) == (crf.n_iter_, crf.stop_reason_)
        assert other.n_features_ == crf.n_features_
        np.testing.assert_array_equal(other.predict_marginals(X)[0], crf.predict_marginals(X)[0])
        assert {**other.get_params(), "n_threads": 1} == {**crf.get_params(), "n_threads": 1}


def test_a_model_with_a_template_arc_features_and_dense_rows_survives_its_file(tmp_path: Path) -> None:
    X, y = [[("the", "D"), ("dog", "N")], [("a", "D"), ("cat", "N")]], [["x", "y"], ["x", "y"]]
    crf = CRF(features="U00:%x[0,0]\nU01:%x[0,1]\nB\nB00:%x[0,1]\n").fit(X, y)
    crf.save(tmp_path / "m.crf")
    loaded = crfkit.load(tmp_path / "m.crf")
    np.testing.assert_array_equal(loaded.log_probability(X, y), crf.log_probability(X, y))
    assert loaded.n_columns_ == 2
    rows = [np.arange(6.0).reshape(3, 2), np.ones((1, 2))]
    numbers = CRF().fit(rows, [["x", "y", "x"], ["y"]])
    numbers.save(tmp_path / "n.crf")
    assert crfkit.load(tmp_path / "n.crf").predict(rows) == numbers.predict(rows)
    assert CRF(features="pos").fit([["a", "b"]], [["x", "y"]]).features == "pos"


def test_a_model_of_an_earlier_preset_keeps_its_features(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    X, y = [["the", "dog", "runs"], ["a", "cat", "runs"]], [["D", "N", "V"]] * 2
    with monkeypatch.context() as patched:
        patched.setattr(presets, "PRESETS", {"pos": "U00:%lower[0,0]\nU14:%lower_suffix[0,0,2]\nB\n"})
        crf = CRF(features="pos").fit(X, y)
        crf.save(tmp_path / "m.crf")
    loaded = crfkit.load(tmp_path / "m.crf")
    assert isinstance(loaded.features, crfkit.Template)
    assert loaded.features.text.startswith("U00:")
    assert heaviest_features(loaded, "D") == heaviest_features(crf, "D")
    assert heaviest_features(loaded, "D", 1)[0].feature.startswith("U")
    np.testing.assert_array_equal(loaded.predict_marginals(X)[0], crf.predict_marginals(X)[0])


def test_saving_twice_gives_the_same_bytes(trained: CRF, tmp_path: Path) -> None:
    trained.save(tmp_path / "a.crf")
    crfkit.load(tmp_path / "a.crf").save(tmp_path / "b.crf")
    assert (tmp_path / "a.crf").read_bytes() == (tmp_path / "b.crf").read_bytes()


def test_an_untrained_model_says_so(tmp_path: Path) -> None:
    crf = CRF()
    for ask in (lambda: crf.predict([[["a"]]]), lambda: crf.save(tmp_path / "m.crf"), lambda: crf.classes_):
        with pytest.raises(sklearn.exceptions.NotFittedError, match="is not trained: call fit"):
            ask()
    assert pickle.loads(pickle.dumps(CRF(l2=0.3))).l2 == 0.3
