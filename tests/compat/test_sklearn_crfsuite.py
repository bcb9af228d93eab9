"""sklearn-crfsuite's interface."""

from __future__ import annotations

import gc
import os
import pickle
import re
import subprocess
import sys
import tempfile
import types
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_predict
from sklearn.utils.validation import _is_fitted as is_fitted
from sklearn.utils.validation import check_is_fitted

from crfkit.compat import pycrfsuite, sklearn_crfsuite
from crfkit.compat.sklearn_crfsuite import metrics, scorers
from crfkit.compat.sklearn_crfsuite._fileresource import FileResource
from crfkit.errors import UnsupportedError
from tests.compat.test_crfsuite_file import random_corpus
from tests.compat.test_installation import stand_ins

X, Y = random_corpus(3, 40, 30)


@pytest.fixture(scope="module")
def crf() -> sklearn_crfsuite.CRF:
    return sklearn_crfsuite.CRF(
        "lbfgs", c1=0.05, c2=0.05, max_iterations=20, all_possible_transitions=True
    ).fit(X, Y)


def test_labels_and_probabilities_are_those_of_the_tagger(crf: sklearn_crfsuite.CRF) -> None:
    tagger = pycrfsuite.Tagger()
    tagger.open_inmemory(crf.modelfile.content or b"")
    assert list(crf.predict(X)) == [tagger.tag(x) for x in X]
    assert crf.predict_single(X[0]) == tagger.tag(X[0])
    [marginals] = crf.predict_marginals(X[:1])
    assert [set(position) for position in marginals] == [set(tagger.labels())] * len(X[0])
    assert all(sum(position.values()) == pytest.approx(1.0) for position in marginals)
    right = sum(a == b for y, p in zip(Y, crf.predict(X), strict=True) for a, b in zip(y, p, strict=True))
    assert crf.score(X, Y) == pytest.approx(right / sum(map(len, Y)))
    assert crf.predict(["ab"]).tolist() == [tagger.tag("ab")]  # items that only python-crfsuite knows


def test_arrays_of_objects_have_their_shapes(crf: sklearn_crfsuite.CRF, tmp_path: Path) -> None:
    theirs = pytest.importorskip("sklearn_crfsuite", reason="sklearn-crfsuite is not installed")
    path = tmp_path / "m"
    path.write_bytes(crf.modelfile.content or b"")
    other = theirs.CRF(model_filename=str(path))
    shapes: list[list[Any]] = [X, X[:1], [x[:1] for x in X], [X[0], X[0]], [], [[]], [[], X[0]]]
    for sequences in shapes:
        for ask in ("predict", "predict_marginals"):
            mine, expected = getattr(crf, ask)(sequences), getattr(other, ask)(sequences)
            assert isinstance(mine, np.ndarray)
            assert (mine.dtype, mine.shape) == (expected.dtype, expected.shape)
            if ask == "predict":
                assert mine.tolist() == expected.tolist()


def test_predictions_of_folds_are_joined() -> None:
    crf = sklearn_crfsuite.CRF(max_iterations=3)
    found = cross_val_predict(crf, X, Y, cv=3)
    assert [len(labels) for labels in found] == [len(labels) for labels in Y]
    last = X[-13:]  # of 40 sequences in three folds
    assert list(found[-13:]) == list(crf.fit(X[:-13], Y[:-13]).predict(last))


def test_it_is_an_estimator_of_scikit_learn(crf: sklearn_crfsuite.CRF) -> None:
    assert isinstance(crf, BaseEstimator)
    assert sklearn_crfsuite.compat.BaseEstimator is BaseEstimator
    assert is_fitted(crf)
    assert not is_fitted(clone(crf))
    assert "c1=0.05" in repr(crf)
    check_is_fitted(crf)


def test_without_scikit_learn_it_has_its_parameters_all_the_same() -> None:
    code = """
import sys
sys.modules["sklearn"] = None
from crfkit.compat import sklearn_crfsuite
crf = sklearn_crfsuite.CRF(c2=0.5, max_iterations=3).fit([[["a"], ["b"]]], [["x", "y"]])
assert crf.get_params()["c2"] == 0.5
assert crf.set_params(c2=0.25).c2 == 0.25
assert isinstance(crf, sklearn_crfsuite.compat.BaseEstimator)
print(crf.predict([[["a"], ["b"]]]).tolist(), crf.score([[["a"], ["b"]]], [["x", "y"]]))
"""
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert result.stdout == "[['x', 'y']] 1.0\n", result.stderr


def test_attributes_tell_of_the_model(crf: sklearn_crfsuite.CRF) -> None:
    info = pycrfsuite.Tagger()
    info.open_inmemory(crf.modelfile.content or b"")
    parsed = info.info()
    assert crf.classes_ == list(parsed.labels)
    assert crf.size_ == len(crf.modelfile.content or b"")
    assert crf.attributes_ == list(parsed.attributes)
    assert crf.num_attributes_ == len(parsed.attributes)
    assert crf.state_features_ == parsed.state_features
    assert crf.transition_features_ == parsed.transitions
    assert crf.tagger_ is not None
    assert crf.training_log_ is not None
    assert crf.training_log_.last_iteration is not None
    fresh = sklearn_crfsuite.CRF()
    assert (fresh.tagger_, fresh.classes_, fresh.size_, fresh.attributes_) == (None,) * 4


def test_held_out_data_is_reported(capsys: Any) -> None:
    crf = sklearn_crfsuite.CRF(max_iterations=3, verbose=True).fit(X[:30], Y[:30], X[30:], Y[30:])
    assert crf.training_log_ is not None
    assert crf.training_log_.last_iteration is not None
    assert 0 <= crf.training_log_.last_iteration["avg_f1"] <= 1
    out = capsys.readouterr().out
    lines = [line for line in out.splitlines() if line.startswith("Iter ")]
    assert len(lines) == 3
    assert "F1=" in lines[0]
    assert re.search(r"\nLabel +Precision +Recall +F1 +Support\n-+\nL0 +\d\.\d{3} ", out)
    with pytest.raises(UnsupportedError):
        crf.fit(X, Y, X_dev=X)


def test_scikit_learn_takes_it(crf: sklearn_crfsuite.CRF) -> None:
    again = clone(crf)
    assert again.get_params() == crf.get_params()
    assert again.tagger_ is None
    search = GridSearchCV(
        sklearn_crfsuite.CRF(max_iterations=5), {"c2": [0.1, 10.0]}, cv=2, scoring=scorers.flat_accuracy
    ).fit(X, Y)
    assert search.best_params_["c2"] in (0.1, 10.0)
    assert scorers.sequence_accuracy(crf, X, Y) == metrics.sequence_accuracy_score(Y, list(crf.predict(X)))


def test_it_is_pickled_with_its_model(crf: sklearn_crfsuite.CRF) -> None:
    assert list(pickle.loads(pickle.dumps(crf)).predict(X)) == list(crf.predict(X))
    assert pickle.loads(pickle.dumps(sklearn_crfsuite.CRF(c2=3.0))).c2 == 3.0


def pickled_there(crf: sklearn_crfsuite.CRF, monkeypatch: pytest.MonkeyPatch) -> bytes:
    """What sklearn-crfsuite would write of the same model: an old version, which knew fewer parameters."""
    classes = {}
    monkeypatch.setitem(sys.modules, "sklearn_crfsuite", types.ModuleType("sklearn_crfsuite"))
    for name in ("estimator.CRF", "_fileresource.FileResource"):
        module, _, class_name = f"sklearn_crfsuite.{name}".rpartition(".")
        classes[class_name] = type(class_name, (), {"__module__": module})
        monkeypatch.setitem(sys.modules, module, types.ModuleType(module))
        setattr(sys.modules[module], class_name, classes[class_name])
    file, model = classes["FileResource"](), classes["CRF"]()
    vars(file).update(name=None, auto=True, keep_tempfiles=False, suffix=".crfsuite", prefix="model")
    vars(file).update({"_unlink": os.unlink, "__FILE_RESOURCE_DATA__": crf.modelfile.content})
    vars(model).update(algorithm="lbfgs", c1=0.05, c2=0.05, verbose=False, modelfile=file, trainer_cls=None)
    vars(model).update(training_log_=None, _tagger=None, _info_cached=None)
    return pickle.dumps(model)


def test_pickles_of_sklearn_crfsuite_are_opened(
    crf: sklearn_crfsuite.CRF, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = pickled_there(crf, monkeypatch)
    with stand_ins():
        opened = pickle.loads(data)
    assert list(opened.predict(X)) == list(crf.predict(X))
    assert opened.get_params()["keep_tempfiles"] is False
    assert opened.fit(X, Y).c1 == 0.05


def test_a_model_file_is_kept_where_it_is_asked_for(tmp_path: Path) -> None:
    path = str(tmp_path / "m.crfsuite")
    Path(path).touch()  # as a temporary file that is there before
    first = sklearn_crfsuite.CRF(max_iterations=2, model_filename=path)
    with pytest.raises(NotFittedError):
        first.predict(X)
    first.fit(X, Y)
    assert first.modelfile.name == path
    assert list(sklearn_crfsuite.CRF(model_filename=path).predict(X)) == list(first.predict(X))


def test_the_file_name_may_be_set_later(crf: sklearn_crfsuite.CRF, tmp_path: Path) -> None:
    path = tmp_path / "m"
    path.write_bytes(crf.modelfile.content or b"")
    later = sklearn_crfsuite.CRF()
    later.model_filename = str(path)
    assert list(later.predict(X)) == list(crf.predict(X))
    assert later.get_params()["model_filename"] == clone(later).model_filename == str(path)
    assert list(sklearn_crfsuite.CRF().set_params(model_filename=str(path)).predict(X)) == list(
        crf.predict(X)
    )
    again = pickle.loads(pickle.dumps(later))
    assert (again.model_filename, again.modelfile.name) == (str(path), str(path))
    trained = sklearn_crfsuite.CRF(max_iterations=2).fit(X, Y)
    expected = list(trained.predict(X))
    trained.model_filename = str(tmp_path / "next")
    assert list(trained.predict(X)) == expected  # it is where the next training writes
    assert not (tmp_path / "next").exists()
    trained.fit(X, Y)
    assert trained.modelfile.name == str(tmp_path / "next")
    assert (tmp_path / "next").exists()


def test_a_model_without_a_file_name_has_a_temporary_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    crf = sklearn_crfsuite.CRF(max_iterations=2)
    before = crf.modelfile.name
    assert before is None
    crf.fit(X, Y)
    assert list(tmp_path.iterdir()) == []  # nobody asked for it
    name = crf.modelfile.name
    assert name is not None
    assert Path(name).read_bytes() == crf.modelfile.content
    again = pickle.loads(pickle.dumps(crf))
    assert again.modelfile.name != crf.modelfile.name
    del crf, again
    gc.collect()
    assert list(tmp_path.iterdir()) == []
    sklearn_crfsuite.CRF(max_iterations=2, keep_tempfiles=True).fit(X, Y)
    gc.collect()
    assert len(list(tmp_path.iterdir())) == 1


def test_a_model_file_is_handled_as_theirs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    file = FileResource(suffix=".crfsuite", prefix="model")
    assert (file.auto, file.name, file.content, file.exists()) == (True, None, None, False)
    file.refresh()
    first = file.name
    assert first is not None
    assert (Path(first).parent, Path(first).suffix, Path(first).stat().st_size) == (tmp_path, ".crfsuite", 0)
    assert not file.exists()
    os.write(file.fd, b"ab")
    assert file.content == b"ab"
    Path(first).write_bytes(b"abc")  # as a trainer does
    assert file.content == b"abc"
    again = pickle.loads(pickle.dumps(file))
    assert (again.content, again.auto) == (b"abc", True)
    assert again.name != first
    assert Path(again.name).read_bytes() == b"abc"
    os.close(file.fd)  # programs do that where they have many models
    file.refresh()
    assert not Path(first).exists()
    file.cleanup()
    file.cleanup()
    assert not file.exists()
    file.ensure_name()
    assert isinstance(file.name, str)
    del file, again
    gc.collect()
    assert list(tmp_path.iterdir()) == []
    named = FileResource(str(tmp_path / "m"))
    named.ensure_name()
    assert (named.auto, named.name, named.exists()) == (False, str(tmp_path / "m"), False)
    Path(tmp_path / "m").write_bytes(b"abc")
    named.refresh()
    assert named.content == b"abc"
    named.name = None
    with pytest.raises(ValueError, match="has no name"):
        named.refresh()


def test_a_descriptor_that_is_closed_and_used_again_stays_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    file = FileResource()
    file.refresh()
    os.close(file.fd)
    with (tmp_path / "other").open("w") as other:
        assert other.fileno() == file.fd
        file.cleanup()
        other.write("still open")
    assert (tmp_path / "other").read_text() == "still open"


def test_a_model_trained_into_its_file_by_hand_is_opened(crf: sklearn_crfsuite.CRF) -> None:
    """What subclasses do that train by themselves."""
    by_hand = sklearn_crfsuite.CRF(max_iterations=3)
    by_hand.modelfile.refresh()
    trainer = by_hand._get_trainer()
    for x, y in zip(X, Y, strict=True):
        trainer.append(x, y)
    assert by_hand.modelfile.name is not None
    trainer.train(by_hand.modelfile.name)
    assert list(by_hand.predict(X)) == list(sklearn_crfsuite.CRF(max_iterations=3).fit(X, Y).predict(X))
    assert by_hand.size_ == Path(by_hand.modelfile.name).stat().st_size


def test_metrics_are_those_of_all_labels_together() -> None:
    gold, found = [["a", "b"], ["a"]], [["a", "a"], ["a"]]
    assert metrics.flat_accuracy_score(gold, found) == pytest.approx(2 / 3)
    assert metrics.flat_precision_score(gold, found, pos_label="a") == pytest.approx(2 / 3)
    assert metrics.flat_recall_score(gold, found, pos_label="a") == 1.0
    assert metrics.flat_f1_score(gold, found, pos_label="a") == pytest.approx(0.8)
    assert metrics.flat_fbeta_score(gold, found, beta=1.0, pos_label="a") == pytest.approx(0.8)
    assert "precision" in metrics.flat_classification_report(gold, found, labels=["a", "b"], zero_division=0)
    assert metrics.sequence_accuracy_score(gold, found) == 0.5


def test_every_algorithm_takes_its_parameters() -> None:
    for algorithm, params in {
        "lbfgs": {"epsilon": 0.1, "num_memories": 3, "delta": 0.01, "linesearch": "Backtracking"},
        "l2sgd": {"calibration_eta": 0.05, "calibration_samples": 20, "c2": 0.1},
        "ap": {"min_freq": 2.0},
        "pa": {"pa_type": 2, "c": 0.5, "averaging": False, "error_sensitive": False},
        "arow": {"variance": 2.0, "gamma": 0.5},
    }.items():
        crf = sklearn_crfsuite.CRF(algorithm, max_iterations=3, **params).fit(X, Y)  # type: ignore[arg-type]
        assert crf.score(X, Y) > 0.3
    with pytest.raises(ValueError, match="Parameter not found: c1"):
        sklearn_crfsuite.CRF("pa", c1=1.0).fit(X, Y)
