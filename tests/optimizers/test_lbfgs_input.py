"""What L-BFGS says about settings, starts and objectives that it cannot use."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from crfkit.errors import ArgumentError
from crfkit.optimizers import LBFGS
from tests.oracles.problems import Function, Problem, Vector, rosenbrock


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"max_iterations": -1}, "max_iterations"),
        ({"max_iterations": 1.5}, "max_iterations"),
        ({"memory": 0}, "memory"),
        ({"memory": True}, "memory"),
        ({"period": 0}, "period"),
        ({"tolerance": -1e-3}, "tolerance"),
        ({"tolerance": float("nan")}, "tolerance"),
        ({"tolerance": "tight"}, "tolerance"),
        ({"change": float("inf")}, "change"),
        ({"change": True}, "change"),
    ],
)
def test_bad_settings(settings: dict[str, Any], words: str) -> None:
    with pytest.raises(ArgumentError, match=words):
        LBFGS(**settings)


@pytest.mark.parametrize(
    ("start", "words"),
    [
        (np.zeros(3), r"start has shape \(3,\), expected \(2,\)"),
        (np.zeros((2, 1)), r"start has shape \(2, 1\), expected \(2,\)"),
        ([0.0, float("nan")], "start has nan at weight 1, expected a finite number"),
    ],
)
def test_bad_start(start: npt.ArrayLike, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        LBFGS().minimize(Problem(rosenbrock, 2), start)


@pytest.mark.parametrize(
    ("l1", "words"),
    [
        (-1.0, "l1 has -1.0 at weight 0, expected a finite number that is not negative"),
        ([1.0, float("inf")], "l1 has inf at weight 1"),
        ([1.0, 2.0, 3.0], r"l1 has shape \(3,\), expected a number or one per weight: \(2,\)"),
    ],
)
def test_bad_l1(l1: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        LBFGS().minimize(Problem(rosenbrock, 2, l1), np.zeros(2))


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (
            lambda w: (float("nan"), w),
            "value nan and gradient norm 0.0 at the start, expected finite numbers",
        ),
        (lambda w: (float("inf"), w), "value inf"),
        (lambda w: (1.0, w + np.nan), "gradient norm nan at the start"),
        (lambda w: (1.0, np.zeros(3)), r"gradient has shape \(3,\), expected \(2,\)"),
    ],
)
def test_objectives_without_a_usable_answer(function: Function, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        LBFGS().minimize(Problem(function, 2), np.zeros(2))


def test_objective_that_overwrites_its_gradient() -> None:
    buffer = np.empty(2)

    def function(w: Vector) -> tuple[float, Vector]:
        buffer[:] = 2 * (w - 1)
        return float((w - 1) @ (w - 1)), buffer

    with pytest.raises(ArgumentError, match="gradient"):
        LBFGS().minimize(Problem(function, 2), np.zeros(2))


def test_mismatch_is_refused_with_a_message() -> None:
    class Batches:
        n_weights = 2

    with pytest.raises(TypeError, match="LBFGS needs value_and_gradient of an objective; Batches has none"):
        LBFGS().minimize(Batches(), np.zeros(2))
    with pytest.raises(TypeError, match="object cannot be minimised: it does not say n_weights"):
        LBFGS().minimize(object(), np.zeros(2))


def test_bad_number_of_threads() -> None:
    with pytest.raises(ArgumentError, match="n_threads"):
        LBFGS().minimize(Problem(rosenbrock, 2), np.zeros(2), n_threads=0)
