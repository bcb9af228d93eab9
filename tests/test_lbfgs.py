"""L-BFGS against SciPy, a proximal-gradient oracle, and the promises in its docstrings."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import scipy.optimize

from crfkit.optimizers import LBFGS, Outcome, Step
from crfkit.optimizers.more_thuente import C1, C2, MoreThuente, Sample

Vector = npt.NDArray[np.float64]
Function = Callable[[Vector], tuple[float, Vector]]


class Problem:
    """A function as an objective; its evaluations are counted."""

    def __init__(self, function: Function, n_weights: int, l1: Any = 0.0) -> None:
        self.function = function
        self.n_weights = n_weights
        self.l1 = l1
        self.n_evaluations = 0

    def value_and_gradient(self, weights: Vector) -> tuple[float, Vector]:
        self.n_evaluations += 1
        return self.function(weights)


def rosenbrock(w: Vector) -> tuple[float, Vector]:
    return float(scipy.optimize.rosen(w)), np.asarray(scipy.optimize.rosen_der(w))


def quadratic(condition: float, n: int, seed: int) -> tuple[Function, Vector]:
    """½ w·A w − b·w with eigenvalues 1 … condition in random directions, and its minimum."""
    rng = np.random.default_rng(seed)
    basis = np.linalg.qr(rng.normal(size=(n, n)))[0]
    eigenvalues = np.logspace(0, np.log10(condition), n)
    A = (basis * eigenvalues) @ basis.T
    b = rng.normal(size=n)

    def function(w: Vector) -> tuple[float, Vector]:
        Aw = A @ w
        return float(0.5 * w @ Aw - b @ w), Aw - b

    return function, basis @ ((basis.T @ b) / eigenvalues)


def logistic(n_samples: int, n_weights: int, l2: float, seed: int, dtype: Any = np.float64) -> Function:
    """Negative log-likelihood of a logistic regression + ½ l2 |w|²; computed in dtype."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_samples, n_weights)) * np.logspace(0, -1.5, n_weights)
    truth = rng.normal(size=n_weights) * (rng.random(n_weights) < 0.5)
    signs = np.where(rng.random(n_samples) < 1 / (1 + np.exp(-3 * X @ truth)), 1.0, -1.0)
    X = (X * signs[:, None]).astype(dtype)

    def function(w: Vector) -> tuple[float, Vector]:
        margins = X @ w.astype(dtype)
        losses = np.logaddexp(dtype(0), -margins)
        slopes = -1 / (1 + np.exp(margins))
        value = losses.sum(dtype=dtype) + dtype(0.5 * l2 * w @ w)
        return float(value), (slopes @ X).astype(np.float64) + l2 * w

    return function


def scipy_minimum(function: Function, start: Vector) -> Any:
    options = {"maxiter": 2000, "maxfun": 4000, "gtol": 1e-8, "ftol": 0.0}
    return scipy.optimize.minimize(function, start, jac=True, method="L-BFGS-B", options=options)


def proximal_minimum(function: Function, l1: Vector, lipschitz: float, n_steps: int = 10_000) -> Vector:
    """The slow oracle for f + Σ l1_i |w_i|: accelerated proximal gradient steps with restarts."""
    w = z = np.zeros(len(l1))
    momentum = 1.0
    for _ in range(n_steps):
        moved = z - function(z)[1] / lipschitz
        new = np.sign(moved) * np.maximum(np.abs(moved) - l1 / lipschitz, 0.0)
        if (z - new) @ (new - w) > 0:
            momentum, z = 1.0, w
            continue
        following = 0.5 * (1 + np.sqrt(1 + 4 * momentum**2))
        z = new + (momentum - 1) / following * (new - w)
        w, momentum = new, following
    return w


def exact(**settings: Any) -> LBFGS:
    return LBFGS(**{"tolerance": 1e-8, "change": 0.0, "max_iterations": 5000, **settings})


# ------------------------------------------------------------------------------------------- against SciPy


@pytest.mark.parametrize("n", [2, 10, 30])
def test_rosenbrock_as_scipy(n: int) -> None:
    start = np.tile([-1.2, 1.0], n // 2)
    outcome = exact(tolerance=1e-9).minimize(Problem(rosenbrock, n), start)
    rival = scipy_minimum(rosenbrock, start)
    assert outcome.converged
    assert outcome.reason == "the gradient norm fell below the tolerance"
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


# ------------------------------------------------------------------------------------------------------ l1


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


# --------------------------------------------------------------------------------------------- line search


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


def yanai(b1: float, b2: float) -> Callable[[float], tuple[float, float]]:
    """The fourth to sixth test functions of Moré and Thuente (their equation 5.4)."""
    g1, g2 = np.sqrt(1 + b1**2) - b1, np.sqrt(1 + b2**2) - b2

    def phi(t: float) -> tuple[float, float]:
        r1, r2 = np.sqrt((1 - t) ** 2 + b2**2), np.sqrt(t**2 + b1**2)
        return float(g1 * r1 + g2 * r2), float(-g1 * (1 - t) / r1 + g2 * t / r2)

    return phi


@pytest.mark.parametrize(
    "phi",
    [
        lambda t: (-t / (t * t + 2), (t * t - 2) / (t * t + 2) ** 2),
        lambda t: ((t + 0.004) ** 5 - 2 * (t + 0.004) ** 4, 5 * (t + 0.004) ** 4 - 8 * (t + 0.004) ** 3),
        yanai(0.001, 0.001),
        yanai(0.01, 0.001),
        yanai(0.001, 0.01),
    ],
)
@pytest.mark.parametrize("first_step", [1e-3, 1e-1, 1e1, 1e3])
def test_more_thuente_functions(phi: Callable[[float], tuple[float, float]], first_step: float) -> None:
    value, slope = phi(0.0)
    search = MoreThuente(value, slope, first_step, noise=0.0)
    for _ in range(15):
        trial = Sample(search.t, *phi(search.t))
        if search.accepts(trial):
            break
        assert search.advance(trial)
    assert trial.value <= value + C1 * trial.t * slope
    assert abs(trial.slope) <= C2 * abs(slope)


def test_steps_into_places_without_a_value_are_shortened() -> None:
    """−Σ log w_i + Σ w_i is NaN or infinite for w ≤ 0; its minimum is 1."""

    def barrier(w: Vector) -> tuple[float, Vector]:
        with np.errstate(all="ignore"):
            return float((w - np.log(w)).sum()), 1 - 1 / w

    for l1 in (0.0, np.array([0.0, 0.0, 1.0])):
        outcome = exact().minimize(Problem(barrier, 3, l1), np.array([1e-4, 5.0, 200.0]))
        assert outcome.converged
        assert outcome.weights == pytest.approx([1.0, 1.0, 1.0 if np.isscalar(l1) else 0.5], abs=1e-4)


def test_no_minimum_ends_in_words() -> None:
    outcome = LBFGS().minimize(Problem(lambda w: (-w.sum(), -np.ones(2)), 2), np.zeros(2))
    assert not outcome.converged
    assert outcome.reason == "no step lowers the objective any further"


def test_wrong_gradient_never_leads_uphill() -> None:
    outcome = LBFGS().minimize(Problem(lambda w: (float(w @ w), -2 * w), 2), np.ones(2))
    assert outcome.reason == "no step lowers the objective any further"
    assert outcome.weights.tolist() == [1.0, 1.0]


# ---------------------------------------------------------------------------------- single precision first


class Coarse(Problem):
    """Answers in single precision until it is refined."""

    def __init__(self, n_weights: int, l1: float = 0.0) -> None:
        self.fine = logistic(300, n_weights, 1e-3, seed=1)
        super().__init__(logistic(300, n_weights, 1e-3, seed=1, dtype=np.float32), n_weights, l1)
        self.n_refinements = 0

    def refine(self) -> bool:
        self.n_refinements += 1
        self.function = self.fine
        return self.n_refinements == 1


@pytest.mark.parametrize("l1", [0.0, 2.0])
def test_single_precision_is_refined_when_it_no_longer_helps(l1: float) -> None:
    coarse = Coarse(40, l1)
    outcome = exact().minimize(coarse, np.zeros(40))
    fine = exact().minimize(Problem(coarse.fine, 40, l1), np.zeros(40))
    assert coarse.n_refinements == 1
    assert outcome.converged
    assert outcome.weights == pytest.approx(fine.weights, abs=1e-4)
    assert outcome.history[-1].objective == pytest.approx(fine.history[-1].objective, rel=1e-12)
    assert outcome.n_evaluations < 1.5 * fine.n_evaluations + 10


def test_nothing_converges_on_the_word_of_single_precision() -> None:
    coarse = Coarse(40)
    outcome = LBFGS(tolerance=0.1).minimize(coarse, np.zeros(40))
    assert outcome.converged
    assert coarse.n_refinements == 1
    norm = np.linalg.norm(coarse.fine(outcome.weights)[1])
    assert norm <= 0.1 * outcome.history[0].gradient_norm


def test_noisy_start_at_the_optimum_is_kept() -> None:
    coarse = Coarse(40)
    best = exact().minimize(Problem(coarse.fine, 40), np.zeros(40)).weights
    outcome = exact(tolerance=0.5).minimize(coarse, best)
    assert coarse.fine(outcome.weights)[0] <= coarse.fine(best)[0]


def test_refine_that_changes_nothing_costs_no_evaluation() -> None:
    class Fine(Problem):
        def refine(self) -> bool:
            return False

    function = logistic(300, 40, 1.0, seed=1)
    plain = exact().minimize(Problem(function, 40), np.zeros(40))
    fine = exact().minimize(Fine(function, 40), np.zeros(40))
    assert fine.n_evaluations == plain.n_evaluations
    assert fine.weights.tobytes() == plain.weights.tobytes()


# ------------------------------------------------------------------------------------ stopping and records


def test_history_and_steps() -> None:
    seen: list[Step] = []
    start = np.tile([-1.2, 1.0], 5)
    outcome = exact().minimize(Problem(rosenbrock, 10), start, callback=seen.append)
    assert [record.iteration for record in outcome.history] == list(range(len(outcome.history)))
    assert [step[:4] for step in seen] == [tuple(record) for record in outcome.history[1:]]
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
    assert outcome.reason == "the callback asked to stop"
    assert not outcome.converged
    assert len(outcome.history) == 4


@pytest.mark.parametrize("limit", [0, 1, 5])
def test_iteration_limit(limit: int) -> None:
    outcome = exact(max_iterations=limit).minimize(Problem(rosenbrock, 10), np.zeros(10))
    assert outcome.reason == "the iteration limit was reached"
    assert not outcome.converged
    assert len(outcome.history) == limit + 1


def test_small_changes_end_it() -> None:
    function = logistic(300, 40, 1e-3, seed=1)
    outcome = LBFGS(tolerance=0.0, change=1e-3, period=5).minimize(Problem(function, 40), np.zeros(40))
    values = [record.objective for record in outcome.history]
    assert outcome.converged
    assert outcome.reason == "the objective no longer changes"
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
    assert outcome.reason == "interrupted"
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
    assert outcome.reason == "interrupted"
    assert rosenbrock(outcome.weights)[0] == outcome.history[1].objective


# ------------------------------------------------------------------------------------------ small and same


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
    outcome = LBFGS().minimize(Problem(rosenbrock, 4), np.ones(4))
    assert outcome.converged
    assert outcome.n_evaluations == 1
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


# ----------------------------------------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"max_iterations": -1}, "max_iterations=-1, expected a whole number of at least 0"),
        ({"max_iterations": 1.5}, "max_iterations=1.5, expected a whole number"),
        ({"memory": 0}, "memory=0, expected a whole number of at least 1"),
        ({"memory": True}, "memory=True, expected a whole number"),
        ({"period": 0}, "period=0, expected"),
        ({"tolerance": -1e-3}, "tolerance=-0.001, expected a finite number that is not negative"),
        ({"tolerance": float("nan")}, "tolerance=nan, expected a finite number"),
        ({"tolerance": "tight"}, "tolerance='tight', expected a finite number"),
        ({"change": float("inf")}, "change=inf, expected a finite number"),
        ({"change": True}, "change=True, expected a finite number"),
    ],
)
def test_bad_settings(settings: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
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

    with pytest.raises(ValueError, match="the same gradient array twice"):
        LBFGS().minimize(Problem(function, 2), np.zeros(2))


def test_mismatch_is_refused_in_words() -> None:
    class Batches:
        n_weights = 2

    with pytest.raises(TypeError, match="LBFGS needs value_and_gradient of an objective; Batches has none"):
        LBFGS().minimize(Batches(), np.zeros(2))  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="object cannot be minimised: it does not say n_weights"):
        LBFGS().minimize(object(), np.zeros(2))  # type: ignore[arg-type]


def test_bad_number_of_threads() -> None:
    with pytest.raises(ValueError, match="n_threads=0, expected a whole number of at least 1"):
        LBFGS().minimize(Problem(rosenbrock, 2), np.zeros(2), n_threads=0)
