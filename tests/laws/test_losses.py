"""The laws of losses, for every structure: one table of rows × laws, checked against the enumeration of all outputs."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from crfkit import AveragedPerceptron
from tests.optimizers.passes import online_pass, sgd_pass
from tests.oracles.trained import L2, ROWS, Trained, trained

Law = Callable[[Trained], None]
LAWS: list[Law] = []


def law(check: Law) -> Law:
    """Enter a law in the table."""
    LAWS.append(check)
    return check


@pytest.mark.parametrize("check", LAWS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("row", ROWS)
def test_law(row: str, check: Law) -> None:
    if check.__name__.startswith("a_") and row.startswith("patterns"):
        pytest.skip("no steps along single sequences yet")
    check(trained(row))


@law
def value_gradient_and_hessian_vector_are_brute_force(problem: Trained) -> None:
    objective = problem.objective()
    value, gradient, product = problem.enumerated()
    found, slope = objective.value_and_gradient(problem.w)
    assert found == pytest.approx(value, rel=1e-11)
    np.testing.assert_allclose(slope, gradient, rtol=0, atol=1e-9)
    np.testing.assert_allclose(objective.hessian_vector(problem.w, problem.v), product, rtol=0, atol=1e-8)


@law
def far_scores_lose_no_digits(problem: Trained) -> None:
    """Where exp of them leaves the range of numbers."""
    near = problem.w
    try:
        for scale in (60.0, 1e4):
            problem.w = near * scale
            value, gradient, product = problem.enumerated()
            objective = problem.objective()
            found, slope = objective.value_and_gradient(problem.w)
            assert found == pytest.approx(value, rel=1e-11)
            np.testing.assert_allclose(slope, gradient, rtol=1e-9, atol=1e-9 * scale)
            moved = objective.hessian_vector(problem.w, problem.v)
            np.testing.assert_allclose(moved, product, rtol=1e-7, atol=1e-7 * scale)
    finally:
        problem.w = near


@law
def single_precision_is_near_and_is_refined(problem: Trained) -> None:
    objective = problem.objective(single_precision=True)
    value, gradient, product = problem.enumerated()
    found, slope = objective.value_and_gradient(problem.w)
    assert found == pytest.approx(value, rel=1e-5)
    np.testing.assert_allclose(slope, gradient, rtol=0, atol=2e-4)
    np.testing.assert_allclose(objective.hessian_vector(problem.w, problem.v), product, rtol=0, atol=2e-3)
    objective.refine()
    assert not objective.refine()
    np.testing.assert_allclose(objective.value_and_gradient(problem.w)[1], gradient, rtol=0, atol=1e-9)


@law
def the_same_bits_for_any_number_of_threads(problem: Trained) -> None:
    first = problem.objective()
    value, gradient = first.value_and_gradient(problem.w)
    product = first.hessian_vector(problem.w, problem.v)
    for n_threads in (2, 4):
        other = problem.objective(n_threads=n_threads)
        assert other.value_and_gradient(problem.w)[0] == value
        assert np.array_equal(other.value_and_gradient(problem.w)[1], gradient)
        assert np.array_equal(other.hessian_vector(problem.w, problem.v), product)


@law
def a_step_along_all_sequences_is_one_along_the_gradient(problem: Trained) -> None:
    objective, n, rate = problem.objective(l2=0.0), len(problem.outputs), 0.01
    value, gradient, _ = problem.enumerated()
    loss, moved, _ = sgd_pass(objective, problem.w, np.arange(n, dtype=np.int32), np.array([rate]), batch=n)
    assert loss == pytest.approx(value - 0.5 * L2 * float(problem.w @ problem.w), rel=1e-11)
    np.testing.assert_allclose(moved, problem.w - rate * (gradient - L2 * problem.w), rtol=0, atol=1e-11)


@law
def a_mistake_is_the_best_output_in_place_of_the_right_one(problem: Trained) -> None:
    """The perceptron moves by the difference of what they have of each weight."""
    objective = problem.objective()
    for n, (outputs, weight) in enumerate(zip(problem.outputs, problem.weight, strict=True)):
        scores = outputs.counts @ problem.w
        best, right = scores.argmax(), np.where(outputs.admitted, scores, -np.inf).argmax()
        loss, state = online_pass(objective, AveragedPerceptron(), problem.w, np.array([n], np.int32))
        assert loss == pytest.approx(weight * (scores[best] - scores[right]), rel=1e-9, abs=1e-9)
        step = weight * (outputs.counts[right] - outputs.counts[best])
        np.testing.assert_allclose(state["weights"] - problem.w, step, rtol=0, atol=1e-9)
