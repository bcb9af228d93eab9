"""Warnings where the iteration limit ends a training run far from the minimum."""

from __future__ import annotations

import re
import warnings
from typing import Any

import pytest

from crfkit import CRF, LBFGS, SGD
from crfkit.models import ConvergenceWarning
from tests.models.small_corpus import corpus


def caught(model: CRF, **settings: Any) -> list[warnings.WarningMessage]:
    X, y = corpus()
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        model.fit(X, y, **settings)
    return [warning for warning in said if issubclass(warning.category, ConvergenceWarning)]


def test_a_limit_far_from_the_minimum_warns() -> None:
    [warning] = caught(CRF(optimizer=LBFGS(max_iterations=4), l1=0.1))
    assert "in the last 4 of 4 iterations" in str(warning.message)
    assert "LBFGS(max_iterations=…)" in str(warning.message)
    share = re.search(r"fell by ([\d.]+)%", str(warning.message))
    assert share is not None
    assert 0 < float(share[1]) < 100  # of what it was
    assert warning.filename == __file__


def test_it_is_scikit_learns_warning_too() -> None:
    exceptions = pytest.importorskip("sklearn.exceptions")
    [warning] = caught(CRF(optimizer=LBFGS(max_iterations=4)))
    assert issubclass(warning.category, exceptions.ConvergenceWarning)


def test_a_minimum_that_is_reached_does_not() -> None:
    assert not caught(CRF(optimizer=LBFGS()))


def test_a_limit_near_the_minimum_does_not() -> None:
    model = CRF(optimizer=LBFGS(max_iterations=60, change=0.0, tolerance=0.0))
    assert not caught(model)
    assert model.n_iter_ == 60


def test_passes_and_dev_sets_do_not() -> None:
    X, y = corpus()
    assert not caught(CRF(optimizer=SGD(max_iterations=2)))
    assert not caught(CRF(optimizer=LBFGS(max_iterations=4)), dev=(X, y))
