"""Warnings where a training run ends far from the minimum."""

from __future__ import annotations

import re
import warnings
from typing import Any

import numpy as np
import pytest

from crfkit import CRF, LBFGS, SGD, GraphCRF, StopReason
from crfkit.features import GraphInput
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
    model = CRF(optimizer=LBFGS(max_iterations=40, change=0.0, tolerance=0.0))
    assert not caught(model)
    assert model.n_iter_ == 40


def test_passes_and_dev_sets_do_not() -> None:
    X, y = corpus()
    assert not caught(CRF(optimizer=SGD(max_iterations=2)))
    assert not caught(CRF(optimizer=LBFGS(max_iterations=4)), dev=(X, y))


def grid(image: Any, graph: GraphInput) -> None:
    """Pixels that like to be as their neighbours are."""
    for i, j in np.ndindex(image.shape):
        graph.variable((i, j), labels=[0, 1])
        graph.factor("pixel", [(i, j)], {"brightness": float(image[i, j])})
        for other in ((i - 1, j), (i, j - 1)):
            if min(other) >= 0:
                graph.factor("neighbours", [other, (i, j)], tie="equal")


def test_messages_with_several_fixed_points_warn_and_convex_ones_do_not() -> None:
    random = np.random.default_rng(0)
    pictures = [np.full((5, 5), number % 2) for number in range(4)]
    for picture in pictures:
        picture[:, 0] = 0
    noisy = [picture - 0.5 + random.normal(scale=4.0, size=picture.shape) for picture in pictures]
    y = [dict(np.ndenumerate(picture)) for picture in pictures]
    settings: dict[str, Any] = {"inference": "belief_propagation", "l2": 0.1, "n_threads": 1}
    with pytest.warns(ConvergenceWarning, match="no step lowers the objective, but its gradient norm is"):
        GraphCRF(grid, "belief_propagation", **settings).fit(noisy, y)
    model = GraphCRF(grid, "tree_reweighted", **settings).fit(noisy, y)
    assert model.stop_reason_ == StopReason.CONVERGED
