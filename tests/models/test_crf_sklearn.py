"""scikit-learn's tools work with the estimator, which does not need them."""

from __future__ import annotations

import subprocess
import sys
import warnings

import numpy as np
import pytest
import sklearn.exceptions
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer

from crfkit import CRF, LBFGS, Chain
from crfkit.errors import ArgumentError
from tests.models.small_corpus import Sequences, corpus


def test_nothing_of_scikit_learn_is_imported_by_training_and_tagging() -> None:
    program = """
import sys
from crfkit import CRF
crf = CRF()
try:
    crf.predict([[["a"]]])
except (ValueError, AttributeError) as error:
    assert type(error).__module__ == "crfkit.models.estimator", type(error)
crf.fit([[["a"], ["b"]]], [["x", "y"]]).predict([[["a"]]])
assert not {"sklearn", "scipy", "click", "rich"} & set(sys.modules), sys.modules
"""
    subprocess.run([sys.executable, "-c", program], check=True)


def test_clone_and_params() -> None:
    crf = CRF(l2=0.5, optimizer=LBFGS(max_iterations=7), structure=Chain(end=False))
    copied = clone(crf.fit(*corpus(5)))
    assert copied is not crf
    assert not hasattr(copied, "weights_")
    assert copied.get_params() == crf.get_params()
    assert crf.get_params()["optimizer__max_iterations"] == 7
    crf.set_params(l2=0.1, optimizer__max_iterations=9, optimizer=LBFGS(memory=3))
    assert crf.l2 == 0.1
    assert crf.optimizer == LBFGS(max_iterations=9, memory=3)
    with pytest.raises(ArgumentError, match="C"):
        crf.set_params(C=1.0)
    assert repr(CRF()) == "CRF()"
    assert (
        repr(CRF(l2=0.5, structure=Chain(end=False))) == "CRF(structure=Chain(start=True, end=False), l2=0.5)"
    )


def test_grid_search() -> None:
    X, y = corpus(30)
    search = GridSearchCV(
        CRF(optimizer=LBFGS(max_iterations=20)), {"l2": [100.0, 1.0], "optimizer__memory": [3, 5]}, cv=3
    )
    search.fit(X, y)
    assert search.best_params_["l2"] == 1.0
    assert search.best_score_ > 0.8
    assert search.predict(X) == search.best_estimator_.predict(X)
    weighted = GridSearchCV(CRF(), {"l2": [1.0]}, cv=2).fit(X, y, sample_weight=np.ones(len(X)))
    assert weighted.best_score_ > 0.8


@pytest.mark.slow
def test_grid_search_in_other_processes() -> None:
    X, y = corpus(20)
    search = GridSearchCV(CRF(optimizer=LBFGS(max_iterations=5)), {"l2": [1.0, 2.0]}, cv=2, n_jobs=2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the workers' own making
        assert search.fit(X, y).best_score_ > 0.5


def test_cross_validation_uses_plain_folds() -> None:
    X, y = corpus(30)
    assert len(cross_val_score(CRF(), X, y, cv=3)) == 3
    assert not sklearn.base.is_classifier(CRF())
    assert not sklearn.base.is_regressor(CRF())


def test_pipeline() -> None:
    X, y = corpus(30)
    raw = [[position[0] for position in x] for x in X]

    def as_lists(X: Sequences) -> Sequences:
        return [[[word] for word in x] for x in X]

    pipe = Pipeline([("lists", FunctionTransformer(as_lists)), ("crf", CRF())])
    pipe.set_params(crf__l2=0.5).fit(raw, y, crf__sample_weight=np.ones(len(X)))
    assert pipe.score(raw, y) > 0.8
    assert clone(pipe).get_params()["crf__l2"] == 0.5
