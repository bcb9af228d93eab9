"""What every optimizer must do: one table, a row for each."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from crfkit.errors import ArgumentError, ShapeError, UnsupportedError
from crfkit.optimizers import LBFGS, OPTIMIZERS, TRON, Newton, Snapshot, Step, StopReason, Watch, choose
from tests.oracles.problems import Curved, Problem, Vector, logistic, quadratic, rosenbrock, scipy_minimum

EXACT: dict[str, Any] = {
    "lbfgs": LBFGS(tolerance=1e-7, change=0.0, max_iterations=3000),
    "newton": Newton(tolerance=1e-7, change=0.0),
    "tron": TRON(tolerance=1e-7),
}
SMOOTH = ("newton", "tron")


def test_every_optimizer_has_its_row() -> None:
    along_sequences = {"arow", "averaged_perceptron", "passive_aggressive"}  # tests/optimizers/test_online.py
    assert {*EXACT, *along_sequences, "adagrad", "sag", "sgd"} == set(
        OPTIMIZERS
    )  # tests/optimizers/test_sgd.py
    assert all(type(optimizer) is OPTIMIZERS[name] for name, optimizer in EXACT.items())


@pytest.mark.parametrize("name", EXACT)
@pytest.mark.parametrize("l2", [1.0, 1e-2])
def test_logistic_regression(name: str, l2: float) -> None:
    function = logistic(300, 40, l2, seed=1)
    outcome = EXACT[name].minimize(Curved(function, 40), np.zeros(40))
    assert outcome.converged
    assert outcome.history[-1].objective == pytest.approx(
        scipy_minimum(function, np.zeros(40)).fun, rel=1e-10
    )


@pytest.mark.parametrize("name", EXACT)
def test_quadratic(name: str) -> None:
    function, minimum = quadratic(100.0, 20, 0)
    outcome = EXACT[name].minimize(Curved(function, 20), np.zeros(20))
    assert outcome.converged
    assert outcome.weights == pytest.approx(minimum, abs=1e-5)


@pytest.mark.parametrize("name", EXACT)
def test_negative_curvature_on_the_way(name: str) -> None:
    """Rosenbrock's function is not convex."""
    outcome = EXACT[name].minimize(Curved(rosenbrock, 2), np.array([-1.2, 1.0]))
    assert outcome.converged
    assert all(a.objective >= b.objective for a, b in pairwise(outcome.history))
    assert outcome.weights == pytest.approx([1.0, 1.0], abs=1e-4)


@pytest.mark.parametrize("name", EXACT)
def test_a_saddle_at_the_start_is_left(name: str) -> None:
    """f = x² − y² + y⁴ / 4 + small slope: negative curvature right at the start."""

    def saddle(w: Vector) -> tuple[float, Vector]:
        x, y = w
        return float(x**2 - y**2 + 0.25 * y**4), np.array([2 * x, -2 * y + y**3])

    outcome = EXACT[name].minimize(Curved(saddle, 2), np.array([0.5, 1e-3]))
    assert outcome.weights == pytest.approx([0.0, np.sqrt(2)], abs=1e-5)


@pytest.mark.parametrize("name", EXACT)
def test_passes_count_gradients_and_products(name: str) -> None:
    problem = Curved(logistic(300, 40, 1.0, seed=1), 40)
    outcome = EXACT[name].minimize(problem, np.zeros(40))
    assert outcome.n_evaluations == problem.n_evaluations
    assert outcome.history[-1].passes <= problem.n_evaluations + problem.n_products
    assert all(a.passes < b.passes for a, b in pairwise(outcome.history))
    assert outcome.history[0].passes == 1


@pytest.mark.parametrize("name", EXACT)
def test_the_same_bits_for_any_number_of_threads(name: str) -> None:
    n = 50_003
    rng = np.random.default_rng(0)
    scales, target = rng.uniform(0.1, 10.0, n), rng.normal(size=n)

    class Bowl(Problem):
        def hessian_vector(self, w: Vector, v: Vector) -> Vector:
            return scales * v / (1 + (w - target) ** 2) ** 1.5

    def function(w: Vector) -> tuple[float, Vector]:
        r = w - target
        return float((scales * np.sqrt(1 + r**2)).sum()), scales * r / np.sqrt(1 + r**2)

    first, *others = (
        EXACT[name].minimize(
            Bowl(function, n), np.zeros(n), n_threads=n_threads, callback=lambda step: step.iteration == 6
        )
        for n_threads in (1, 2, 4)
    )
    for other in others:
        assert other.weights.tobytes() == first.weights.tobytes()


class Coarse(Curved):
    """Answers in single precision until it is refined."""

    def __init__(self) -> None:
        self.fine = logistic(300, 40, 1e-2, seed=1)
        super().__init__(logistic(300, 40, 1e-2, seed=1, dtype=np.float32), 40)
        self.n_refinements = 0

    def hessian_vector(self, weights: Vector, v: Vector) -> Vector:
        product = Curved(self.fine, 40).hessian_vector(weights, v)
        return product if self.n_refinements else product.astype(np.float32).astype(np.float64)

    def refine(self) -> bool:
        self.n_refinements += 1
        self.function = self.fine
        return self.n_refinements == 1


@pytest.mark.parametrize("name", EXACT)
def test_single_precision_first(name: str) -> None:
    coarse = Coarse()
    outcome = EXACT[name].minimize(coarse, np.zeros(40))
    assert outcome.converged
    assert coarse.n_refinements == 1
    assert outcome.history[-1].objective == pytest.approx(
        scipy_minimum(coarse.fine, np.zeros(40)).fun, rel=1e-10
    )


@pytest.mark.parametrize("name", EXACT)
@pytest.mark.parametrize("at", [1, 3, 7])
@pytest.mark.parametrize("coarse", [False, True])
def test_a_snapshot_leads_to_the_same_bits(name: str, at: int, coarse: bool) -> None:
    def problem() -> Curved:
        return Coarse() if coarse else Curved(logistic(300, 40, 1e-2, seed=1), 40)

    snapshots: list[Snapshot] = []
    dev = Watch(score=lambda w: -float(np.abs(w - 0.1).sum()), every=at, save=snapshots.append)
    whole = EXACT[name].minimize(problem(), np.zeros(40), watch=dev)
    again = EXACT[name].minimize(problem(), np.zeros(40), watch=Watch(score=dev.score, resume=snapshots[0]))
    assert again.weights.tobytes() == whole.weights.tobytes()
    assert again.reason == whole.reason
    assert again.n_evaluations == whole.n_evaluations
    assert [r._replace(seconds=0) for r in again.history] == [r._replace(seconds=0) for r in whole.history]
    assert again.best is not None
    assert whole.best is not None
    assert again.best.iteration == whole.best.iteration
    assert again.best.weights.tobytes() == whole.best.weights.tobytes()


@pytest.mark.parametrize("name", EXACT)
def test_a_dev_score_with_patience(name: str) -> None:
    seen: list[Step] = []
    watch = Watch(score=lambda w: -abs(float(np.linalg.norm(w)) - 0.3), patience=2)
    outcome = EXACT[name].minimize(
        Curved(logistic(300, 40, 1e-2, seed=1), 40), np.zeros(40), watch=watch, callback=seen.append
    )
    scores = [step.dev_score if step.dev_score is not None else np.nan for step in seen]
    assert outcome.reason == StopReason.NO_IMPROVEMENT
    assert not outcome.converged
    assert outcome.best is not None
    assert outcome.best.iteration == 1 + int(np.argmax(np.array(scores)))
    assert outcome.best.iteration == len(seen) - 2
    assert [record.dev_score for record in outcome.history] == [None, *scores]
    assert [step.improved for step in seen] == [
        all(score > earlier for earlier in scores[:i]) for i, score in enumerate(scores)
    ]


@pytest.mark.parametrize("name", EXACT)
def test_a_time_budget(name: str) -> None:
    problem = Curved(logistic(300, 40, 1e-2, seed=1), 40)
    outcome = EXACT[name].minimize(problem, np.zeros(40), watch=Watch(seconds=1e-9))
    assert outcome.reason == StopReason.TIME_BUDGET
    assert len(outcome.history) == 1


@pytest.mark.parametrize("name", EXACT)
@pytest.mark.parametrize("call", [1, 4])
def test_ctrl_c_keeps_the_best(name: str, call: int) -> None:
    function = logistic(300, 40, 1e-2, seed=1)

    class Interrupted(Curved):
        def value_and_gradient(self, weights: Vector) -> tuple[float, Vector]:
            if self.n_evaluations == call:
                raise KeyboardInterrupt
            return super().value_and_gradient(weights)

    outcome = EXACT[name].minimize(Interrupted(function, 40), np.zeros(40))
    assert outcome.reason == StopReason.INTERRUPTED
    assert function(outcome.weights)[0] == min(record.objective for record in outcome.history)


@pytest.mark.parametrize("name", SMOOTH)
def test_l1_is_refused(name: str) -> None:
    problem = Curved(rosenbrock, 2, l1=0.5)
    with pytest.raises(UnsupportedError):
        EXACT[name].minimize(problem, np.zeros(2))
    assert problem.n_evaluations == 0


@pytest.mark.parametrize("name", SMOOTH)
def test_an_objective_without_products_is_refused(name: str) -> None:
    with pytest.raises(TypeError, match=r"needs hessian_vector of an objective; Problem has none"):
        EXACT[name].minimize(Problem(rosenbrock, 2), np.zeros(2))


@pytest.mark.parametrize("name", SMOOTH)
@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"max_iterations": -1}, "max_iterations"),
        ({"tolerance": float("nan")}, "tolerance"),
        ({"period": 0}, "period"),
    ],
)
def test_bad_settings(name: str, settings: dict[str, Any], words: str) -> None:
    with pytest.raises(ArgumentError, match=words):
        OPTIMIZERS[name](**settings)


def test_a_product_of_another_shape_is_refused() -> None:
    class Wrong(Curved):
        def hessian_vector(self, weights: Vector, v: Vector) -> Vector:
            return v[:1]

    with pytest.raises(ShapeError):
        TRON().minimize(Wrong(rosenbrock, 2), np.zeros(2))


@pytest.mark.parametrize(
    ("l1", "words"),
    [(True, "LBFGS: with an l1 penalty"), (False, "LBFGS: a smooth objective of 10 weights")],
)
def test_the_choice_says_why(l1: bool, words: str) -> None:
    choice = choose(10, l1=l1)
    assert isinstance(choice.optimizer, LBFGS)
    assert re.match(words, choice.reason)


@pytest.mark.parametrize(
    ("n_weights", "n_pairs", "with_l1"),
    [(10, 30, 60), (2_000_000, 30, 16), (4_000_000, 16, 10), (10_000_000, 10, 10)],
)
def test_the_pairs_that_lbfgs_keeps(n_weights: int, n_pairs: int, with_l1: int) -> None:
    assert LBFGS().n_pairs(n_weights) == n_pairs
    assert LBFGS().n_pairs(n_weights, l1=True) == with_l1
    assert LBFGS(memory=7).n_pairs(n_weights) == 7
