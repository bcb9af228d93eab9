"""L-BFGS on objectives that answer in single precision until they are refined."""

from __future__ import annotations

import numpy as np
import pytest

from crfkit.optimizers import LBFGS
from tests.oracles.problems import Problem, Vector, exact, logistic


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


@pytest.mark.parametrize("l1", [0.0, 0.1])
def test_no_search_is_worn_out_on_single_precision(l1: float) -> None:
    """Single precision sees the lowest value at the start, whatever the direction of the gradient."""

    class Pit(Problem):
        n_coarse = 0

        def refine(self) -> bool:
            self.n_coarse = self.n_evaluations
            self.function = lambda w: (float((w - 1) @ (w - 1)), 2 * (w - 1))
            return True

    pit = Pit(lambda w: (1.001 if w.any() else 1.0, np.full(2, -2.0)), 2, l1)
    outcome = exact().minimize(pit, np.zeros(2))
    assert outcome.converged
    assert pit.n_coarse <= 13
    assert outcome.weights == pytest.approx([1 - l1 / 2] * 2, abs=1e-6)


def test_start_is_kept_when_single_precision_sees_a_lower_place_nearby() -> None:
    """f = 1 + 1e-8 w² has its minimum at the start 0; single precision sees a value lower by 6e-7 at 1."""

    class Tilted(Problem):
        def refine(self) -> bool:
            self.function = lambda w: (float(1 + 1e-8 * w @ w), 2e-8 * w)
            return True

    def tilted(w: Vector) -> tuple[float, Vector]:
        bend = np.tanh(w)
        return float(1 + 1e-8 * w @ w - 8e-7 * bend.sum()), 2e-8 * w - 8e-7 * (1 - bend**2)

    problem = Tilted(tilted, 1)
    outcome = LBFGS(tolerance=0.5).minimize(problem, np.zeros(1))
    assert len(outcome.history) > 1
    assert outcome.weights.tolist() == [0.0]


def test_refine_that_changes_nothing_costs_no_evaluation() -> None:
    class Fine(Problem):
        def refine(self) -> bool:
            return False

    function = logistic(300, 40, 1.0, seed=1)
    plain = exact().minimize(Problem(function, 40), np.zeros(40))
    fine = exact().minimize(Fine(function, 40), np.zeros(40))
    assert fine.converged
    assert fine.n_evaluations <= plain.n_evaluations + 2
