"""The line searches keep what they promise."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import numpy as np
import pytest

from crfkit.optimizers import LBFGS, StopReason
from crfkit.optimizers.line_search import MOST_TRIALS
from crfkit.optimizers.more_thuente import C1, C2, MoreThuente, Sample
from tests.oracles.problems import Function, Problem, Vector, exact, logistic, quadratic, rosenbrock


@pytest.mark.parametrize(
    ("function", "start"),
    [
        (rosenbrock, np.tile([-1.2, 1.0], 10)),
        (quadratic(1e3, 30, 1)[0], np.ones(30)),
        (logistic(300, 40, 0.01, seed=1), np.zeros(40)),
        (lambda w: (float(np.log1p(w @ w)), 2 * w / (1 + w @ w)), np.array([30.0, -40.0])),
    ],
    ids=["rosenbrock", "quadratic", "logistic", "log1p"],
)
def test_strong_wolfe_conditions_at_every_step(function: Function, start: Vector) -> None:
    points = [start]
    outcome = exact(tolerance=1e-6).minimize(
        Problem(function, len(start)), start, callback=lambda step: points.append(step.weights)
    )
    assert outcome.converged
    assert len(points) > 3
    for x, z in pairwise(points):
        (value, gradient), (value_after, gradient_after) = function(x), function(z)
        slope, slope_after = gradient @ (z - x), gradient_after @ (z - x)
        assert slope < 0
        assert value_after <= value + C1 * slope + 1e-15 * abs(value)
        assert abs(slope_after) <= C2 * abs(slope) * (1 + 1e-6)


def wavy(t: float) -> tuple[float, float]:
    """The third test function of Moré and Thuente: |t − 1|, rounded at its bottom, under waves."""
    b, waves = 0.01, 39 * np.pi / 2
    if abs(t - 1) <= b:
        value, slope = (t - 1) ** 2 / (2 * b) + b / 2, (t - 1) / b
    else:
        value, slope = abs(t - 1), float(np.sign(t - 1))
    return float(value + (1 - b) / waves * np.sin(waves * t)), float(slope + (1 - b) * np.cos(waves * t))


def yanai(b1: float, b2: float) -> Callable[[float], tuple[float, float]]:
    """The fourth to sixth of their test functions, of Yanai, Ozawa and Kaneko."""
    g1, g2 = np.sqrt(1 + b1**2) - b1, np.sqrt(1 + b2**2) - b2

    def phi(t: float) -> tuple[float, float]:
        r1, r2 = np.sqrt((1 - t) ** 2 + b2**2), np.sqrt(t**2 + b1**2)
        return float(g1 * r1 + g2 * r2), float(-g1 * (1 - t) / r1 + g2 * t / r2)

    return phi


@pytest.mark.parametrize(
    ("phi", "c1", "c2", "trials"),
    [
        (lambda t: (-t / (t * t + 2), (t * t - 2) / (t * t + 2) ** 2), 0.001, 0.1, [6, 3, 1, 4]),
        (
            lambda t: ((t + 0.004) ** 5 - 2 * (t + 0.004) ** 4, 5 * (t + 0.004) ** 4 - 8 * (t + 0.004) ** 3),
            *(0.1, 0.1, [12, 8, 8, 11]),
        ),
        (wavy, 0.1, 0.1, [12, 12, 10, 13]),
        (yanai(0.001, 0.001), 0.001, 0.001, [4, 1, 3, 4]),
        (yanai(0.01, 0.001), 0.001, 0.001, [6, 3, 7, 8]),
        (yanai(0.001, 0.01), 0.001, 0.001, [13, 11, 8, 11]),
    ],
    ids=["1", "2", "3", "4", "5", "6"],
)
def test_more_thuente_functions(
    phi: Callable[[float], tuple[float, float]], c1: float, c2: float, trials: list[int]
) -> None:
    """As many trials as in tables I to VI of their paper, from four first steps."""
    value, slope = phi(0.0)
    for first_step, n_trials in zip([1e-3, 1e-1, 1e1, 1e3], trials, strict=True):
        search = MoreThuente(value, slope, first_step, c1=c1, c2=c2)
        for _ in range(n_trials - 1):
            trial = Sample(search.t, *phi(search.t))
            assert not search.accepts(trial)
            assert search.advance(trial)
        trial = Sample(search.t, *phi(search.t))
        assert search.accepts(trial)
        assert trial.value <= value + c1 * trial.t * slope
        assert abs(trial.slope) <= c2 * abs(slope)


def test_more_thuente_turns_back_where_the_fall_becomes_too_slow() -> None:
    """φ falls steeply, then by less than c₁ demands, down to a minimum at 25 that is no use: t is at most 1.8."""

    def phi(t: float) -> tuple[float, float]:
        steep = float(np.exp(-10 * t))
        return -0.05 * t - 0.1 * (1 - steep) + 0.001 * t * t, -0.05 - steep + 0.002 * t

    search = MoreThuente(*phi(0.0), 10.0, c1=0.1, c2=0.1)
    for _ in range(8):
        trial = Sample(search.t, *phi(search.t))
        if search.accepts(trial):
            break
        assert search.advance(trial)
    assert search.accepts(trial)


def test_steps_into_places_without_a_value_are_shortened() -> None:
    """−Σ log w_i + Σ w_i is NaN or infinite for w ≤ 0; its minimum is 1."""

    def barrier(w: Vector) -> tuple[float, Vector]:
        with np.errstate(all="ignore"):
            return float((w - np.log(w)).sum()), 1 - 1 / w

    for l1 in (0.0, np.array([0.0, 0.0, 1.0])):
        outcome = exact().minimize(Problem(barrier, 3, l1), np.array([1e-4, 5.0, 200.0]))
        assert outcome.converged
        assert outcome.weights == pytest.approx([1.0, 1.0, 1.0 if np.isscalar(l1) else 0.5], abs=1e-4)


@pytest.mark.parametrize("l1", [0.0, 1.0])
@pytest.mark.parametrize("call", [2, 3, 6])
def test_a_value_that_is_missing_once(call: int, l1: float) -> None:
    function = logistic(300, 40, 1.0, seed=1)
    n_calls = 0

    def gappy(w: Vector) -> tuple[float, Vector]:
        nonlocal n_calls
        n_calls += 1
        value, gradient = function(w)
        return (float("nan") if n_calls == call else value), gradient

    outcome = exact().minimize(Problem(gappy, 40, l1), np.zeros(40))
    assert outcome.converged
    plain = exact().minimize(Problem(function, 40, l1), np.zeros(40))
    assert outcome.weights == pytest.approx(plain.weights, abs=1e-5)


def test_a_failed_search_starts_again_from_the_steepest_way() -> None:
    function = logistic(300, 40, 1.0, seed=1)
    n_calls = 0

    def gappy(w: Vector) -> tuple[float, Vector]:
        nonlocal n_calls
        n_calls += 1
        value, gradient = function(w)
        return (float("nan") if 7 <= n_calls < 7 + MOST_TRIALS else value), gradient

    assert exact().minimize(Problem(gappy, 40), np.zeros(40)).converged


def test_no_minimum_ends_with_a_message() -> None:
    outcome = LBFGS().minimize(Problem(lambda w: (-w.sum(), -np.ones(2)), 2), np.zeros(2))
    assert not outcome.converged
    assert outcome.reason == StopReason.NO_DESCENT


def test_wrong_gradient_never_leads_uphill() -> None:
    outcome = LBFGS().minimize(Problem(lambda w: (float(w @ w), -2 * w), 2), np.ones(2))
    assert outcome.reason == StopReason.NO_DESCENT
    assert outcome.weights.tolist() == [1.0, 1.0]


def test_rounding_never_leads_uphill() -> None:
    """Each value is higher than the last by less than the noise, so that slopes alone are followed."""
    n_calls = 0

    def rising(w: Vector) -> tuple[float, Vector]:
        nonlocal n_calls
        n_calls += 1
        return 1e6 + 1e-7 * n_calls, 1e-5 * (w - 1)

    outcome = exact().minimize(Problem(rising, 3), np.zeros(3))
    assert outcome.converged
    assert len(outcome.history) > 1
    assert outcome.weights.tolist() == [0.0, 0.0, 0.0]
