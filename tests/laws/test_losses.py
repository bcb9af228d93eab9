"""The laws of losses, for every structure: one table of rows × laws, checked against the enumeration of all outputs."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from crfkit import AveragedPerceptron
from crfkit.objective import Objective, add_in_tree, sum_losses
from tests.optimizers.passes import online_pass, sgd_pass
from tests.oracles.cost_problems import ROWS as COST_ROWS
from tests.oracles.cost_problems import with_costs_of
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
    check(trained(row))


@pytest.mark.parametrize("check", LAWS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("row", COST_ROWS)
def test_law_with_costs(row: str, check: Law) -> None:
    check(with_costs_of(row))


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
    if not problem.has_mistakes:
        with pytest.raises(ValueError, match="no mistakes"):
            online_pass(objective, AveragedPerceptron(), problem.w, np.array([0], np.int32))
        return
    for n, (outputs, weight) in enumerate(zip(problem.outputs, problem.weight, strict=True)):
        scores = outputs.counts @ problem.w
        best, right = scores.argmax(), np.where(outputs.admitted, scores, -np.inf).argmax()
        loss, state = online_pass(objective, AveragedPerceptron(), problem.w, np.array([n], np.int32))
        assert loss == pytest.approx(weight * (scores[best] - scores[right]), rel=1e-9, abs=1e-9)
        step = weight * (outputs.counts[right] - outputs.counts[best])
        np.testing.assert_allclose(state["weights"] - problem.w, step, rtol=0, atol=1e-9)


@law
def shards_are_added_in_their_order(problem: Trained) -> None:
    """Shards of the same sequences, with the bits of plain NumPy; a pass over all of them is one over each."""
    n_shards = 3
    value, gradient, product = problem.enumerated()
    for single_precision, n_threads in ((False, 1), (False, 2), (True, 4)):
        exact = {"single_precision": single_precision, "n_threads": n_threads}
        one = Objective(problem.loss(**exact), l2=0.0)
        sharded = Objective(sum_losses([problem.loss(**exact) for _ in range(n_shards)]), l2=0.0)
        if single_precision:
            assert sharded.refine() == one.refine()
            assert not sharded.refine()
        found, slope = sharded.value_and_gradient(problem.w)
        moved = sharded.hessian_vector(problem.w, problem.v)
        part, part_slope = one.value_and_gradient(problem.w)
        assert found == add_in_tree([part] * n_shards)
        assert np.array_equal(slope, add_in_tree([part_slope] * n_shards))
        part_moved = one.hessian_vector(problem.w, problem.v)
        assert np.array_equal(moved, add_in_tree([part_moved] * n_shards))
        assert found == pytest.approx(n_shards * (value - 0.5 * L2 * problem.w @ problem.w), rel=1e-11)
        np.testing.assert_allclose(slope, n_shards * (gradient - L2 * problem.w), rtol=0, atol=1e-8)
        np.testing.assert_allclose(moved, n_shards * (product - L2 * problem.v), rtol=0, atol=1e-7)


@law
def passes_over_shards_visit_their_sequences(problem: Trained) -> None:
    """Sequence n of shard i is number i N + n, for steps along gradients and after mistakes."""
    n = len(problem.outputs)
    exact = {"single_precision": False, "n_threads": 2}
    one = Objective(problem.loss(**exact), l2=0.1)
    sharded = Objective(sum_losses([problem.loss(**exact) for _ in range(3)]), l2=0.3)
    assert sharded.shard_ptr == [0, n, 2 * n, 3 * n]
    order = np.random.default_rng(1).permutation(n).astype(np.int32)
    shards = order + n * (np.arange(n, dtype=np.int32) % 3)
    rates = np.full(n, 0.1)
    for batch in (1, 2):
        steps = rates[: (n + batch - 1) // batch]
        loss, moved, _ = sgd_pass(one, problem.w, order, steps, batch=batch)
        sharded_loss, sharded_moved, _ = sgd_pass(sharded, problem.w, shards, steps, batch=batch)
        assert sharded_loss == loss
        np.testing.assert_allclose(sharded_moved, moved, rtol=1e-13, atol=1e-14)  # the penalty is rounded
    if problem.has_mistakes:
        loss, state = online_pass(one, AveragedPerceptron(), problem.w, order)
        sharded_loss, sharded_state = online_pass(sharded, AveragedPerceptron(), problem.w, shards)
        assert (sharded_loss, sharded_state["weights"].tobytes()) == (loss, state["weights"].tobytes())
    assert sharded.n_residuals() == 3 * one.n_residuals()


@pytest.mark.parametrize(
    "row",
    [r for r in ROWS if r.startswith(("patterns with", "segments")) or r.endswith("every kind of feature")],
)
def test_answers_about_features_of_several_kinds(row: str) -> None:
    problem = trained(row)
    answerer, design, label_sequences = problem.answers
    lengths = [len(paths[0]) for paths in label_sequences]
    ptr = np.cumsum([0, *lengths])
    best, marginals = answerer.decode(design, 2), answerer.marginals(design, 2)
    log_z, k_best = answerer.log_partitions(design, n_threads=2), answerer.k_best(design, 3, 2)
    known = np.concatenate(
        [np.zeros(0, np.int32), *(np.array(paths[-1], np.int32) for paths in label_sequences)]
    )
    log_known = answerer.log_partitions(design, known, None, 2)
    samples = answerer.sample(design, 4, np.random.default_rng(0).random(4 * ptr[-1]), 2)
    for n, (paths, outputs) in enumerate(zip(label_sequences, problem.outputs, strict=True)):
        at = slice(ptr[n], ptr[n + 1])
        scores = dict(zip(paths, (outputs.counts @ problem.w).tolist(), strict=True))
        ranked = sorted(scores.values(), reverse=True)
        assert log_z[n] == pytest.approx(np.logaddexp.reduce(ranked), rel=1e-12, abs=1e-12)
        assert log_known[n] == pytest.approx(scores[paths[-1]], rel=1e-12, abs=1e-12)
        assert scores[tuple(best[at].tolist())] == pytest.approx(ranked[0], abs=1e-9)
        assert [score for score, _ in k_best[n]] == pytest.approx(ranked[:3], abs=1e-9)
        probs = np.zeros((lengths[n], marginals.shape[1]))
        for y, score in scores.items():
            probs[range(lengths[n]), list(y)] += np.exp(score - log_z[n])
        np.testing.assert_allclose(marginals[at], probs, rtol=0, atol=1e-9)
        drawn = samples[4 * ptr[n] : 4 * ptr[n + 1]].reshape(4, lengths[n])
        assert all(tuple(y) in scores for y in drawn.tolist())
