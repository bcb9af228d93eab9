"""The trust region of TRON: its rules on numbers worked out by hand, its steps, and how fast it ends."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from benchmarks import corpora
from crfkit import CRF, LBFGS, TRON, Newton
from crfkit.data import read_columns
from crfkit.errors import UnsupportedError
from crfkit.optimizers import Step, StopReason
from crfkit.optimizers.counted_objective import CountedObjective
from crfkit.optimizers.tron import Trial, model_step, new_radius, to_edge
from tests.oracles.problems import Curved, Problem, Vector, quadratic


def trial(
    fall: float, *, promised: float = 1.0, slope: float = -2.0, length: float = 1.0, at_edge: bool = True
) -> Trial:
    return Trial(promised, fall, slope, length, at_edge)


# Δ = 1, |s| = 1, g·s = −2: α = max(¼, 1 / (2 − fall)), 4 where fall ≥ 2.
@pytest.mark.parametrize(
    ("what", "expected"),
    [
        (trial(-6.0), 0.25),  # refused: α = 1/8 → ¼; min(¼, ½)
        (trial(0.0), 0.5),  # refused: α = ½
        (trial(0.1), 0.5),  # poor: α = 1/1.9 → max(¼, min(0.526, ½))
        (trial(-0.5, promised=-10.0), 0.4),  # by an odd model, poor: α = 1/2.5
        (trial(0.5), 1 / 1.5),  # fair: max(¼, min(0.667, 4))
        (trial(0.8), 4.0),  # good, at the edge
        (trial(0.8, at_edge=False), 1.0),  # good inside: max(1, min(0.833, 4))
        (trial(1.9, at_edge=False), 4.0),  # α = 10: as far as 4 Δ
        (trial(2.5, at_edge=False), 4.0),  # f bends downwards: α = 4
        (trial(0.9, length=0.1, at_edge=False), 1.0),  # a short step leaves Δ as it is
    ],
)
def test_the_radius_follows_the_rules(what: Trial, expected: float) -> None:
    assert new_radius(1.0, what) == pytest.approx(expected)


class Trace(Problem):
    """f along one axis as a list of values says, whatever x is; the model is always ½ s² − s at gradient −1."""

    def __init__(self, values: list[float]) -> None:
        self.values = values
        super().__init__(lambda w: (0.0, np.zeros(1)), 1)

    def value_and_gradient(self, weights: Vector) -> tuple[float, Vector]:
        self.n_evaluations += 1
        return self.values[self.n_evaluations - 1], np.array([-1.0])

    def hessian_vector(self, weights: Vector, v: Vector) -> Vector:
        return v.copy()


def test_steps_are_accepted_refused_and_stretched_as_the_rules_say() -> None:
    """Δ₀ = |g| = 1 and the Newton step is 1, promising ½ where it fits.

    1. f falls by 1 = 2 · promised, α = 4 (f bends downwards by nothing: fall = −slope): taken. s = 1 ends inside: Δ = 4.
    2. s = 1, f rises by 10: refused; α = max(¼, ½ / 11) = ¼: Δ = min(¼, 2) = ¼.
       s = ¼ at the edge promises ¼ − 1/32; f falls by 0.2: taken, fall / promised = 0.914: Δ = 1.
    3. s = 1: f falls by 0.1: ratio 0.2, poor, taken; α = ½ / 0.9 = 0.556: Δ = max(¼, min(0.556, ½)) = ½.
    4. s = ½ at the edge.
    """
    problem = Trace([100.0, 99.0, 109.0, 98.8, 98.7, 98.3])
    places: list[float] = [0.0]

    def note(step: Step) -> None:
        places.append(float(step.weights[0]))

    TRON(tolerance=0.0, max_iterations=4).minimize(problem, np.zeros(1), callback=note)
    assert np.diff(places) == pytest.approx([1.0, 0.25, 1.0, 0.5])
    assert problem.n_evaluations == 6


def land_of(matrix: Any, gradient: Any) -> tuple[CountedObjective, Any]:
    A, b = np.asarray(matrix, dtype=float), np.asarray(gradient, dtype=float)

    class Model(Problem):
        def hessian_vector(self, w: Vector, v: Vector) -> Vector:
            return A @ v

    objective = CountedObjective(Model(lambda w: (float(b @ w + 0.5 * w @ A @ w), b + A @ w), len(b)), 1)
    return objective, objective.at(np.zeros(len(b)))


def test_a_step_inside_solves_the_system() -> None:
    rng = np.random.default_rng(0)
    root = rng.normal(size=(8, 8))
    A, g = root @ root.T + np.eye(8), rng.normal(size=8)
    step = model_step(*land_of(A, g), radius=1e9, tolerance=1e-12)
    assert not step.at_edge
    assert step.s == pytest.approx(-np.linalg.solve(A, g))
    assert step.residual == pytest.approx(-g - A @ step.s, abs=1e-12)


def test_the_residual_belongs_to_the_step_at_the_edge() -> None:
    A, g = np.diag([1.0, 4.0, 9.0]), np.array([1.0, -2.0, 3.0])
    step = model_step(*land_of(A, g), radius=0.6, tolerance=1e-12)
    assert step.at_edge
    assert np.linalg.norm(step.s) == pytest.approx(0.6)
    assert step.residual == pytest.approx(-g - A @ step.s, abs=1e-12)


def test_negative_curvature_goes_to_the_edge_along_the_direction() -> None:
    """The first direction −g = (−1, −1) has curvature 1 − 3 < 0."""
    step = model_step(*land_of(np.diag([1.0, -3.0]), np.array([1.0, 1.0])), radius=2.0, tolerance=1e-12)
    assert step.at_edge
    assert step.s == pytest.approx([-np.sqrt(2), -np.sqrt(2)])


@pytest.mark.parametrize("tau", [0.0, 1e-9, 0.3, 7.0])
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_the_way_to_the_edge_does_not_cancel(tau: float, sign: float) -> None:
    s, d = np.array([1.0, 2.0, -0.5]), sign * np.array([0.3, 0.1, -0.2])
    if sign < 0:
        tau += -2 * float(s @ d) / float(d @ d)  # the far side: at τ = 0 it would be the edge already
    radius = float(np.linalg.norm(s + tau * d))
    assert to_edge(s, d, radius, 1) == pytest.approx(tau, rel=1e-6, abs=1e-15)


def test_rounding_that_hides_the_fall_of_f_stops_nothing() -> None:
    """f = 1e7 + a quadratic: f no longer changes long before the gradient is small."""
    function, minimum = quadratic(1e3, 20, 3)

    def lifted(w: Vector) -> tuple[float, Vector]:
        value, gradient = function(w)
        return value + 1e7, gradient

    class Lifted(Curved):
        def hessian_vector(self, weights: Vector, v: Vector) -> Vector:
            return function(v)[1] - function(np.zeros(20))[1]

    for optimizer in (TRON(tolerance=1e-10), Newton(tolerance=1e-10, change=0.0)):
        outcome = optimizer.minimize(Lifted(lifted, 20), np.zeros(20))
        assert outcome.converged
        assert outcome.weights == pytest.approx(minimum, abs=1e-7)


@pytest.fixture(scope="module")
def sentences() -> tuple[list[Any], list[Any]]:
    path = corpora.find_corpus("conll2000", "train.txt")
    if path is None:
        pytest.skip("the corpus conll2000 is not here")
    rows = [sequence.rows for _, sequence in zip(range(150), read_columns(path), strict=False)]
    return [[row[:-1] for row in s] for s in rows], [[row[-1] for row in s] for s in rows]


@pytest.fixture(scope="module")
def minimum(sentences: tuple[list[Any], list[Any]]) -> CRF:
    return CRF(features="chunks", optimizer=LBFGS(tolerance=1e-9, change=0.0)).fit(*sentences)


def test_the_end_is_faster_than_linear(sentences: tuple[list[Any], list[Any]], minimum: CRF) -> None:
    crf = CRF(features="chunks", optimizer=TRON(tolerance=1e-8)).fit(*sentences)
    norms = np.array([record.gradient_norm for record in crf.history_])
    falls = norms[-4:-1] / norms[-3:]
    assert norms[-1] <= 1e-8 * norms[0]
    assert falls[0] < falls[1] < falls[2]
    assert crf.history_[-1].objective == pytest.approx(minimum.history_[-1].objective, rel=1e-12)
    np.testing.assert_allclose(crf.weights_, minimum.weights_, atol=1e-6)


def test_newton_finds_the_same_minimum(sentences: tuple[list[Any], list[Any]], minimum: CRF) -> None:
    crf = CRF(features="chunks", optimizer=Newton(tolerance=1e-8)).fit(*sentences)
    np.testing.assert_allclose(crf.weights_, minimum.weights_, atol=1e-5)


@pytest.mark.parametrize("optimizer", [TRON(tolerance=1e-6), Newton(tolerance=1e-6, change=0.0)])
def test_partial_labels(sentences: tuple[list[Any], list[Any]], optimizer: Any) -> None:
    """With half of the labels unknown the Hessian is indefinite; the gradient vanishes all the same."""
    X, y = sentences
    rng = np.random.default_rng(0)
    partial = [[None if rng.random() < 0.5 else label for label in labels] for labels in y]
    crf = CRF(features="chunks", optimizer=optimizer).fit(X[:60], partial[:60])
    norms = [record.gradient_norm for record in crf.history_]
    assert crf.stop_reason_ == StopReason.CONVERGED
    assert norms[-1] <= 1e-6 * norms[0]
    assert crf.score(X[:60], y[:60]) > 0.9


def test_l1_is_refused_before_any_work() -> None:

    for optimizer in (TRON(), "newton"):
        with pytest.raises(UnsupportedError, match="l1"):
            CRF(optimizer=optimizer, l1=0.5).fit(None, None)  # type: ignore[arg-type]
