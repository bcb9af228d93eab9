"""Stochastic gradient descent: its steps are those of the gradient, and it comes near the minimum."""

from __future__ import annotations

import numpy as np
import pytest

import crfkit
from crfkit.objective import Objective
from tests.restricted import KINDS, Problem

X = [
    [[f"w={w}", f"s={w[-1]}"] for w in words.split()]
    for words in ("the dog runs", "a cat sees the dog", "dogs run")
]
Y = [["D", "N", "V"], ["D", "N", "V", "D", "N"], ["N", "V"]]


def stochastic(problem: Problem) -> Objective:
    return Objective(
        problem.dataset,
        problem.annotation,
        problem.map,
        l2=0.3,
        sample_weight=problem.sample_weight,
        single_precision=False,
        stochastic=True,
    )


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: "-".join(f"{k}={v}" for k, v in kind.items()))
def test_tiny_steps_along_all_sequences_are_a_step_along_the_gradient(kind: dict[str, int | bool]) -> None:
    problem = Problem(4, **kind)  # type: ignore[arg-type]
    objective = stochastic(problem)
    n, rate = objective.n_sequences, 1e-8
    order = np.arange(n, dtype=np.int32)
    loss, moved = objective.stochastic_pass(problem.w, order, np.full(n, rate))
    value, gradient, _ = problem.expected()
    assert loss + 0.15 * problem.w @ problem.w == pytest.approx(value, rel=1e-6)
    np.testing.assert_allclose((problem.w - moved) / rate, gradient, atol=1e-5)


def test_sgd_comes_near_the_minimum_and_repeats_itself() -> None:
    best = crfkit.CRF(l2=0.5).fit(X, Y)
    model = crfkit.CRF(l2=0.5, optimizer=crfkit.SGD(max_iterations=300, rate=0.3)).fit(X, Y)
    np.testing.assert_allclose(model.weights_, best.weights_, atol=2e-2)
    again = crfkit.CRF(l2=0.5, optimizer=crfkit.SGD(max_iterations=300, rate=0.3)).fit(X, Y)
    assert np.array_equal(model.weights_, again.weights_)
    assert model.history_[-1].objective == pytest.approx(best.history_[-1].objective, rel=0.02)


def test_a_model_trained_by_sgd_can_be_saved(tmp_path: object) -> None:
    model = crfkit.CRF(optimizer=crfkit.SGD(max_iterations=3)).fit(X, Y)
    model.save(f"{tmp_path}/m.crf")
    assert crfkit.load(f"{tmp_path}/m.crf").predict(X) == model.predict(X)


def test_what_sgd_cannot_do_is_refused_in_words() -> None:
    with pytest.raises(ValueError, match="SGD knows no l1 penalty"):
        crfkit.CRF(l1=0.1, optimizer=crfkit.SGD()).fit(X, Y)
    with pytest.raises(ValueError, match="one l2 for all weights"):
        crfkit.CRF(l2={"arcs": 0.1, "default": 1.0}, optimizer=crfkit.SGD()).fit(X, Y)
    with pytest.raises(ValueError, match="expected a positive number"):
        crfkit.SGD(rate=0.0)
    with pytest.raises(ValueError, match="max_iterations=-1"):
        crfkit.SGD(max_iterations=-1)
    with pytest.raises(ValueError, match="diverged in pass"):
        crfkit.CRF(optimizer=crfkit.SGD(rate=1e200)).fit(X, Y)


def test_a_callback_ends_it() -> None:
    model = crfkit.CRF(optimizer=crfkit.SGD(max_iterations=9)).fit(
        X, Y, callback=lambda step: step.iteration == 2
    )
    assert len(model.history_) == 2
