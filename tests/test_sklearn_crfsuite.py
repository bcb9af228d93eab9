"""sklearn-crfsuite's interface."""

from __future__ import annotations

import gc
import os
import pickle
import re
import sys
import tempfile
import types
from pathlib import Path
from typing import Any

import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV

from crfkit import compat
from crfkit.compat import pycrfsuite, sklearn_crfsuite
from crfkit.compat.sklearn_crfsuite import metrics, scorers
from tests.test_crfsuite_file import random_corpus

X, Y = random_corpus(3, 40, 30)


@pytest.fixture(scope="module")
def crf() -> sklearn_crfsuite.CRF:
    return sklearn_crfsuite.CRF(
        "lbfgs", c1=0.05, c2=0.05, max_iterations=20, all_possible_transitions=True
    ).fit(X, Y)


def test_labels_and_probabilities_are_those_of_the_tagger(crf: sklearn_crfsuite.CRF) -> None:
    tagger = pycrfsuite.Tagger()
    tagger.open_inmemory(crf.modelfile.content or b"")
    assert crf.predict(X) == [tagger.tag(x) for x in X]
    assert crf.predict_single(X[0]) == tagger.tag(X[0])
    [marginals] = crf.predict_marginals(X[:1])
    assert [set(site) for site in marginals] == [set(tagger.labels())] * len(X[0])
    assert all(sum(site.values()) == pytest.approx(1.0) for site in marginals)
    right = sum(a == b for y, p in zip(Y, crf.predict(X), strict=True) for a, b in zip(y, p, strict=True))
    assert crf.score(X, Y) == pytest.approx(right / sum(map(len, Y)))
    assert crf.predict(["ab"]) == [tagger.tag("ab")]  # items that only python-crfsuite knows


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
    with pytest.raises(ValueError, match="go together"):
        crf.fit(X, Y, X_dev=X)


def test_scikit_learn_takes_it(crf: sklearn_crfsuite.CRF) -> None:
    again = clone(crf)
    assert again.get_params() == crf.get_params()
    assert again.tagger_ is None
    search = GridSearchCV(
        sklearn_crfsuite.CRF(max_iterations=5), {"c2": [0.1, 10.0]}, cv=2, scoring=scorers.flat_accuracy
    ).fit(X, Y)
    assert search.best_params_["c2"] in (0.1, 10.0)
    assert scorers.sequence_accuracy(crf, X, Y) == metrics.sequence_accuracy_score(Y, crf.predict(X))


def test_it_is_pickled_with_its_model(crf: sklearn_crfsuite.CRF) -> None:
    assert pickle.loads(pickle.dumps(crf)).predict(X) == crf.predict(X)
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
    kept = {name: module for name, module in sys.modules.items() if "crfsuite" in name}
    try:
        compat.install()
        opened = pickle.loads(data)
    finally:
        for name in [name for name in sys.modules if "crfsuite" in name]:
            del sys.modules[name]
        sys.modules.update(kept)
    assert opened.predict(X) == crf.predict(X)
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
    assert sklearn_crfsuite.CRF(model_filename=path).predict(X) == first.predict(X)


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
