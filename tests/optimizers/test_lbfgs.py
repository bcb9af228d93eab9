"""L-BFGS against SciPy and a proximal-gradient oracle; when it stops and what it records."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import pytest

from crfkit.optimizers import LBFGS, Outcome, Step, StopReason
from crfkit.optimizers.more_thuente import C1
from tests.oracles.problems import (
    Problem,
    Vector,
    exact,
    logistic,
    proximal_minimum,
    quadratic,
    rosenbrock,
    scipy_minimum,
)


@pytest.mark.parametrize("n", [2, 10, 30])
def test_rosenbrock_as_scipy(n: int) -> None:
    start = np.tile([-1.2, 1.0], n // 2)
    outcome = exact(tolerance=1e-9).minimize(Problem(rosenbrock, n), start)
    rival = scipy_minimum(rosenbrock, start)
    assert outcome.converged
    assert outcome.reason == StopReason.CONVERGED
    assert outcome.weights == pytest.approx(rival.x, abs=1e-4)
    assert outcome.n_evaluations <= 1.3 * rival.nfev + 10


@pytest.mark.parametrize("condition", [1.0, 1e2, 1e4])
@pytest.mark.parametrize("seed", range(3))
def test_quadratic_minimum(condition: float, seed: int) -> None:
    function, minimum = quadratic(condition, 60, seed)
    problem = Problem(function, 60)
    outcome = exact().minimize(problem, np.ones(60))
    assert outcome.converged
    assert outcome.weights == pytest.approx(minimum, abs=1e-6 * condition**0.5)
    assert outcome.n_evaluations == problem.n_evaluations


def test_ill_conditioned_quadratic_beyond_the_reach_of_values() -> None:
    # the gradient is still 1e-8 of its start where the value has long stopped to change
    function, minimum = quadratic(1e5, 60, 0)
    outcome = exact().minimize(Problem(function, 60), np.ones(60))
    assert outcome.converged
    assert outcome.weights == pytest.approx(minimum, abs=2e-3)


@pytest.mark.parametrize("l2", [1.0, 1e-3])
def test_logistic_regression_as_scipy(l2: float) -> None:
    function = logistic(300, 40, l2, seed=1)
    outcome = exact().minimize(Problem(function, 40), np.zeros(40))
    rival = scipy_minimum(function, np.zeros(40))
    assert outcome.converged
    assert outcome.history[-1].objective == pytest.approx(rival.fun, rel=1e-12)
    assert outcome.weights == pytest.approx(rival.x, abs=1e-4)


@pytest.mark.parametrize("memory", [1, 2, 30])
def test_any_memory(memory: int) -> None:
    function, minimum = quadratic(100.0, 20, 0)
    outcome = exact(memory=memory).minimize(Problem(function, 20), np.zeros(20))
    assert outcome.converged
    assert outcome.weights == pytest.approx(minimum, abs=1e-6)


@pytest.mark.parametrize("strength", [0.5, 3.0, 10.0])
def test_l1_as_proximal_gradient(strength: float) -> None:
    function = logistic(200, 30, 0.1, seed=2)
    l1 = np.full(30, strength)
    l1[::7] = 0.0
    outcome = exact().minimize(Problem(function, 30, l1), np.zeros(30))
    oracle = proximal_minimum(function, l1, lipschitz=60.0)
    assert outcome.converged
    assert outcome.weights == pytest.approx(oracle, abs=1e-5)
    assert (outcome.weights == 0).tolist() == (oracle == 0).tolist()
    assert (outcome.weights == 0).any()
    assert (outcome.weights[::7] != 0).all()


def test_l1_optimality() -> None:
    """At the optimum the gradient is −l1·sign(w) where w ≠ 0, and within ±l1 where w = 0."""
    strength = 4.0
    function = logistic(200, 30, 0.0, seed=3)
    outcome = exact(tolerance=1e-9).minimize(Problem(function, 30, strength), np.full(30, 0.3))
    gradient = function(outcome.weights)[1]
    zero = outcome.weights == 0
    assert zero.any()
    assert not zero.all()
    assert gradient[~zero] == pytest.approx(-strength * np.sign(outcome.weights[~zero]), abs=1e-5)
    assert (np.abs(gradient[zero]) <= strength).all()


def test_l1_too_strong_for_any_weight() -> None:
    function = logistic(50, 10, 1.0, seed=4)
    strength = 1.01 * float(np.abs(function(np.zeros(10))[1]).max())
    for start in (np.zeros(10), np.full(10, 2.0)):
        outcome = exact().minimize(Problem(function, 10, strength), start)
        assert outcome.converged
        assert (outcome.weights == 0.0).all()


def test_l1_of_zeros_is_no_l1() -> None:
    function = logistic(100, 10, 1.0, seed=5)
    plain = exact().minimize(Problem(function, 10), np.zeros(10))
    zeros = exact().minimize(Problem(function, 10, np.zeros(10)), np.zeros(10))
    assert plain.weights.tobytes() == zeros.weights.tobytes()


def test_l1_objective_in_history_and_armijo() -> None:
    """Records hold f + Σ l1 |w|, and each step lowers it by c₁ times what the slope promises."""
    function = logistic(200, 30, 0.1, seed=2)
    seen: list[Step] = []
    outcome = exact(tolerance=1e-5).minimize(Problem(function, 30, 2.0), np.zeros(30), callback=seen.append)
    weights = [np.zeros(30), *(step.weights for step in seen)]
    for record, w in zip(outcome.history, weights, strict=True):
        assert record.objective == pytest.approx(function(w)[0] + 2.0 * np.abs(w).sum(), rel=1e-12)
    for before, after, w, z in zip(outcome.history, outcome.history[1:], weights, weights[1:], strict=False):
        gradient = function(w)[1]
        shrunk = np.sign(gradient) * np.maximum(np.abs(gradient) - 2.0, 0.0)
        pseudo = np.where(w == 0, shrunk, gradient + 2.0 * np.sign(w))
        assert before.gradient_norm == pytest.approx(np.linalg.norm(pseudo), rel=1e-9)
        assert after.objective <= before.objective + C1 * (pseudo @ (z - w))
        assert (w * z >= 0).all()  # no weight jumps over zero


def test_history_and_steps() -> None:
    seen: list[Step] = []
    start = np.tile([-1.2, 1.0], 5)
    outcome = exact().minimize(Problem(rosenbrock, 10), start, callback=seen.append)
    assert [record.iteration for record in outcome.history] == list(range(len(outcome.history)))
    assert [step[:6] for step in seen] == [tuple(record) for record in outcome.history[1:]]
    assert all(a.seconds <= b.seconds for a, b in pairwise(outcome.history))
    assert all(a.objective > b.objective for a, b in pairwise(outcome.history))
    for step in seen:  # kept weights stay what they were
        value, gradient = rosenbrock(step.weights)
        assert step.objective == value
        assert step.gradient_norm == pytest.approx(np.linalg.norm(gradient), rel=1e-12)
        assert not step.weights.flags.writeable
    assert outcome.weights.tobytes() == seen[-1].weights.tobytes()
    assert start.tolist() == [-1.2, 1.0] * 5


def test_callback_stops() -> None:
    outcome = exact().minimize(
        Problem(rosenbrock, 10), np.zeros(10), callback=lambda step: step.iteration == 3
    )
    assert outcome.reason == StopReason.CALLBACK
    assert not outcome.converged
    assert len(outcome.history) == 4


@pytest.mark.parametrize("limit", [0, 1, 5])
def test_iteration_limit(limit: int) -> None:
    outcome = exact(max_iterations=limit).minimize(Problem(rosenbrock, 10), np.zeros(10))
    assert outcome.reason == StopReason.MAX_ITERATIONS
    assert not outcome.converged
    assert len(outcome.history) == limit + 1


def test_small_changes_end_it() -> None:
    function = logistic(300, 40, 1e-3, seed=1)
    outcome = LBFGS(tolerance=0.0, change=1e-3, period=5).minimize(Problem(function, 40), np.zeros(40))
    values = [record.objective for record in outcome.history]
    assert outcome.converged
    assert outcome.reason == StopReason.NO_CHANGE
    assert values[-6] - values[-1] <= 1e-3 * values[-1]
    assert values[-7] - values[-2] > 1e-3 * values[-2]


def interrupted_at(call: int, l1: float = 0.0) -> tuple[Outcome, Sequence[Vector]]:
    function = logistic(300, 40, 1e-3, seed=1)
    seen: list[Vector] = []

    def until(w: Vector) -> tuple[float, Vector]:
        seen.append(w)
        if len(seen) == call:
            raise KeyboardInterrupt
        return function(w)

    return exact().minimize(Problem(until, 40, l1), np.zeros(40)), seen


@pytest.mark.parametrize("l1", [0.0, 1.0])
@pytest.mark.parametrize("call", [1, 2, 3, 10])
def test_interrupt_keeps_the_best_weights(call: int, l1: float) -> None:
    outcome, seen = interrupted_at(call, l1)
    assert outcome.reason == StopReason.INTERRUPTED
    assert not outcome.converged
    if call == 1:
        assert outcome.weights.tolist() == [0.0] * 40
        assert outcome.history == ()
        return
    values = [logistic(300, 40, 1e-3, seed=1)(w)[0] + l1 * np.abs(w).sum() for w in seen[:-1]]
    assert outcome.weights.tobytes() == seen[int(np.argmin(values))].tobytes()
    assert outcome.history[-1].objective == pytest.approx(min(values), rel=1e-12)


def test_interrupt_in_the_callback() -> None:
    def stop(step: Step) -> bool:
        raise KeyboardInterrupt

    outcome = exact().minimize(Problem(rosenbrock, 10), np.zeros(10), callback=stop)
    assert outcome.reason == StopReason.INTERRUPTED
    assert rosenbrock(outcome.weights)[0] == outcome.history[1].objective


def test_no_weights() -> None:
    outcome = LBFGS().minimize(Problem(lambda w: (1.5, np.zeros(0)), 0), np.zeros(0))
    assert outcome.converged
    assert outcome.weights.shape == (0,)
    assert outcome.history[0].objective == 1.5


@pytest.mark.parametrize("l1", [0.0, 3.0])
def test_one_weight(l1: float) -> None:
    outcome = exact().minimize(
        Problem(lambda w: (float((w[0] - 7) ** 2), 2 * (w - 7)), 1, l1), np.array([-3.0])
    )
    assert outcome.converged
    assert outcome.weights == pytest.approx([7 - l1 / 2], abs=1e-6)


def test_start_at_the_minimum() -> None:
    start = np.ones(4)
    outcome = LBFGS().minimize(Problem(rosenbrock, 4), start)
    assert outcome.converged
    assert outcome.n_evaluations == 1
    assert not np.shares_memory(outcome.weights, start)
    assert outcome.weights.tolist() == [1.0] * 4


@pytest.mark.parametrize("exponent", [-40, 40])
def test_scale_of_the_objective_changes_nothing(exponent: int) -> None:
    function = logistic(300, 40, 1e-3, seed=1)

    def scaled(w: Vector) -> tuple[float, Vector]:
        value, gradient = function(w)
        return value * 2.0**exponent, gradient * 2.0**exponent

    plain = LBFGS().minimize(Problem(function, 40), np.zeros(40))
    other = LBFGS().minimize(Problem(scaled, 40), np.zeros(40))
    assert other.weights.tobytes() == plain.weights.tobytes()


@pytest.mark.parametrize("exponent", [-150, 150])
def test_scales_beyond_single_precision(exponent: int) -> None:
    """The pairs do not fit into single precision; it is slower then, and still right."""
    function, minimum = quadratic(10.0, 20, 0)

    def scaled(w: Vector) -> tuple[float, Vector]:
        value, gradient = function(w)
        return value * 2.0**exponent, gradient * 2.0**exponent

    outcome = exact().minimize(Problem(scaled, 20), np.zeros(20))
    assert outcome.converged
    assert outcome.weights == pytest.approx(minimum, abs=1e-6)


@pytest.mark.parametrize("l1", [0.0, 0.02])
def test_same_bits_for_any_number_of_threads(l1: float) -> None:
    n = 50_003
    rng = np.random.default_rng(0)
    scales, target = rng.uniform(0.1, 10.0, n), rng.normal(size=n)

    def function(w: Vector) -> tuple[float, Vector]:
        residual = w - target
        return float((scales * np.sqrt(1 + residual**2)).sum()), scales * residual / np.sqrt(1 + residual**2)

    first, *others = (
        LBFGS(max_iterations=15, tolerance=0.0).minimize(
            Problem(function, n, l1), np.zeros(n), n_threads=n_threads
        )
        for n_threads in (1, 2, 4)
    )
    assert len(first.history) == 16
    for other in others:
        assert other.weights.tobytes() == first.weights.tobytes()
        assert [r.objective for r in other.history] == [r.objective for r in first.history]
