"""Parsers of second order over all trees: belief propagation, and trees without crossing arcs."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from crfkit.features import ArcMap, lift_crossing_arcs
from crfkit.inference import SecondOrderParser, TreeParser
from tests.oracles.oracle import all_lead_to_the_root
from tests.oracles.second_order_problems import SecondOrderProblem, second_order_parts
from tests.oracles.treebanks import random_treebank


def crosses(heads: list[int]) -> bool:
    spans = [(min(h, m), max(h, m)) for m, h in enumerate(heads, start=1)]
    return any(a < c < b < d for a, b in spans for c, d in spans)


def problem_of(seed: int) -> SecondOrderProblem:
    return SecondOrderProblem(random_treebank([1, 2, 3, 4, 4], seed))


def spanning(
    problem: SecondOrderProblem, weights: np.ndarray, layout: ArcMap | None = None
) -> SecondOrderParser:
    of = (problem.map if layout is None else layout).layout
    return SecondOrderParser(problem.pruner.model, of, weights, projective=False)


def test_belief_propagation_is_exact_without_scores_of_second_order() -> None:
    problem = problem_of(3)
    first = ArcMap.learn(problem.treebank, problem.trees, problem.labels, 1)
    weights = np.random.default_rng(1).normal(0, 0.5, first.n_weights)
    exact, found = TreeParser(first.layout, weights), spanning(problem, weights, first)
    np.testing.assert_allclose(
        found.log_partitions(problem.treebank), exact.log_partitions(problem.treebank), rtol=1e-9
    )
    for a, b in zip(
        found.marginals(problem.treebank, True), exact.marginals(problem.treebank, True), strict=True
    ):
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-9)
    assert (
        found.decode(problem.treebank, True)[0].tolist() == exact.decode(problem.treebank, True)[0].tolist()
    )


@pytest.mark.parametrize("scale", [0.1, 0.5])
def test_belief_propagation_is_near_the_sum_over_all_trees(scale: float) -> None:
    """Nearer than the probabilities without scores of second order are."""
    problem = problem_of(4)
    weights = problem.weights * scale / 0.3
    parser = spanning(problem, weights)
    log_z, marginals = parser.log_partitions(problem.treebank), parser.marginals(problem.treebank)
    for n in range(len(problem.sentences)):
        n_words = problem.ptr[n + 1] - problem.ptr[n]
        arcs, others, numbers = parser.parts(problem.treebank, n)
        R = len(problem.labels)
        scores = {
            (h, m): np.logaddexp.reduce(numbers[i * R : i * R + R]) for i, (h, m) in enumerate(arcs.tolist())
        }
        second = dict(zip(map(tuple, others.tolist()), numbers[len(arcs) * R :].tolist(), strict=True))
        trees = [
            heads
            for heads in product(range(n_words + 1), repeat=n_words)
            if all(h != m for m, h in enumerate(heads, start=1))
            and all_lead_to_the_root(list(heads))
            and heads.count(0) == 1
        ]
        of_arcs = np.array([sum(scores[h, m] for m, h in enumerate(heads, start=1)) for heads in trees])
        total = of_arcs + [sum(second[part] for part in second_order_parts(heads)) for heads in trees]

        def probabilities(
            values: np.ndarray, trees: list[tuple[int, ...]] = trees, n_words: int = n_words
        ) -> np.ndarray:
            p, found = np.exp(values - np.logaddexp.reduce(values)), np.zeros((n_words + 1, n_words + 1))
            for heads, prob in zip(trees, p, strict=True):
                for m, h in enumerate(heads, start=1):
                    found[h, m] += prob
            return found

        exact = probabilities(total)
        error, plain = np.abs(marginals[n] - exact).max(), np.abs(probabilities(of_arcs) - exact).max()
        assert error < max(0.5 * plain, 1e-6)
        assert log_z[n] == pytest.approx(np.logaddexp.reduce(total), abs=scale)


def test_gradients_are_slopes_along_directions_where_beliefs_converge() -> None:
    """Hessian–vector products are differences of these gradients."""
    problem = problem_of(6)
    loss = problem.map.second_order_loss(
        problem.treebank, problem.trees, problem.candidates(), projective=False
    )
    from crfkit.objective import Objective

    objective, w = Objective(loss, l2=0.1), problem.weights * 0.2
    random = np.random.default_rng(2)
    value, gradient = objective.value_and_gradient(w)
    assert np.isfinite(value)
    for _ in range(3):
        v = random.normal(size=len(w))
        slope = (
            objective.value_and_gradient(w + 1e-4 * v)[0] - objective.value_and_gradient(w - 1e-4 * v)[0]
        ) / 2e-4
        assert float(gradient @ v) == pytest.approx(slope, rel=0.02, abs=0.05)
        moved = (
            objective.value_and_gradient(w + 1e-5 * v)[1] - objective.value_and_gradient(w - 1e-5 * v)[1]
        ) / 2e-5
        np.testing.assert_allclose(objective.hessian_vector(w, v), moved, rtol=0.05, atol=0.05)


def test_lifted_trees_do_not_cross_and_heads_go_up() -> None:
    problem = SecondOrderProblem(random_treebank([5, 8, 11, 14] * 5, 9))
    from crfkit.features import known_trees

    given = known_trees(problem.sentences, problem.labels)
    lifted = lift_crossing_arcs(problem.treebank, given)
    assert (lifted.heads != given.heads).any()
    for n in range(len(problem.sentences)):
        at = slice(problem.ptr[n], problem.ptr[n + 1])
        before, after = given.heads[at].tolist(), lifted.heads[at].tolist()
        assert not crosses(after)
        assert before == after or crosses(before)
        for old, new in zip(before, after, strict=True):
            above = [old]
            while above[-1]:
                above.append(before[above[-1] - 1])
            assert new in above
