"""The laws of inference, for every structure: one table of rows × laws, checked against brute force."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from crfkit import inference
from tests.oracles.oracle import Floats, Output
from tests.oracles.rows import ROWS, Instance, instances

Law = Callable[[Instance, np.random.Generator], None]
LAWS: list[Law] = []


def law(check: Law) -> Law:
    """Enter a law in the table."""
    LAWS.append(check)
    return check


@pytest.mark.parametrize("check", LAWS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("row", ROWS)
def test_law(row: str, check: Law) -> None:
    for number, instance in enumerate(instances(row)):
        check(instance, np.random.default_rng(number))


def log_partition(instance: Instance) -> float:
    return inference.log_partition(instance.structure, instance.scores, allowed=instance.allowed)


def marginals(instance: Instance) -> Floats:
    """The marginals as one vector [P]."""
    return instance.flat(inference.marginals(instance.structure, instance.scores, allowed=instance.allowed))


def hessian_vector(instance: Instance, direction: Floats) -> Floats:
    """∇² log Z · direction as one vector [P]."""
    moved = inference.hessian_vector(
        instance.structure, instance.scores, instance.part_scores(direction), allowed=instance.allowed
    )
    return instance.flat(moved)


def draw_direction(instance: Instance, random: np.random.Generator) -> Floats:
    existing = instance.existing()
    return np.where(existing, random.normal(size=len(existing)), 0.0)


def some_outputs(instance: Instance, random: np.random.Generator, n: int = 5) -> list[Output]:
    outputs = instance.oracle.outputs
    return [outputs[i] for i in random.integers(len(outputs), size=n)]


def listed(output: Any) -> Any:
    """An output as the oracle lists it."""
    return tuple(tuple(entry) if isinstance(entry, list) else entry for entry in np.asarray(output).tolist())


def assert_log(value: float, expected: float, instance: Instance) -> None:
    """Equal to a relative 1e-12 of the number, or of the scores where it is a small difference of them."""
    assert value == pytest.approx(expected, rel=1e-12, abs=1e-12 * instance.scale)


@law
def log_partition_is_brute_force(instance: Instance, random: np.random.Generator) -> None:
    assert_log(log_partition(instance), instance.oracle.log_partition, instance)


@law
def marginals_are_brute_force(instance: Instance, random: np.random.Generator) -> None:
    np.testing.assert_allclose(marginals(instance), instance.oracle.marginals, rtol=0, atol=1e-9)


@law
def hessian_vector_is_brute_force(instance: Instance, random: np.random.Generator) -> None:
    direction = draw_direction(instance, random)
    expected = instance.oracle.hessian_vector(direction)
    np.testing.assert_allclose(hessian_vector(instance, direction), expected, rtol=0, atol=1e-9)


@law
def entropy_is_brute_force(instance: Instance, random: np.random.Generator) -> None:
    entropy = inference.entropy(instance.structure, instance.scores, allowed=instance.allowed)
    assert entropy == pytest.approx(instance.oracle.entropy, rel=0, abs=1e-9)
    assert entropy >= 0.0


@law
def best_is_brute_force(instance: Instance, random: np.random.Generator) -> None:
    best = inference.decode(instance.structure, instance.scores, allowed=instance.allowed)
    assert_log(best.score, instance.oracle.scores.max(), instance)
    assert listed(best.output) in instance.oracle.best_outputs(1e-12 * instance.scale)


@law
def best_scores_at_most_the_log_partition(instance: Instance, random: np.random.Generator) -> None:
    best = inference.decode(instance.structure, instance.scores, allowed=instance.allowed)
    assert best.score <= log_partition(instance) + 1e-12 * instance.scale


@law
def k_best_is_sorted_distinct_and_complete(instance: Instance, random: np.random.Generator) -> None:
    expected = instance.oracle.k_best
    for k in {1, 2, 7, len(expected), len(expected) + 3}:
        found = inference.k_best(instance.structure, instance.scores, k, allowed=instance.allowed)
        scores = [entry.score for entry in found]
        outputs = [listed(entry.output) for entry in found]
        assert len(found) == min(k, len(expected))
        assert len(set(outputs)) == len(outputs)
        assert scores == sorted(scores, reverse=True)
        np.testing.assert_allclose(
            scores, [score for score, _ in expected[:k]], rtol=1e-12, atol=1e-12 * instance.scale
        )
        known = [instance.oracle.score(output) for output in outputs]
        np.testing.assert_allclose(scores, known, rtol=1e-12, atol=1e-12 * instance.scale)


@law
def k_best_begins_with_best(instance: Instance, random: np.random.Generator) -> None:
    best = inference.decode(instance.structure, instance.scores, allowed=instance.allowed)
    [first] = inference.k_best(instance.structure, instance.scores, 1, allowed=instance.allowed)
    assert first.score == pytest.approx(best.score, rel=1e-12, abs=1e-12 * instance.scale)


@law
def an_output_scores_the_sum_of_its_parts(instance: Instance, random: np.random.Generator) -> None:
    vector = instance.flat(instance.scores)
    for output in some_outputs(instance, random):
        score = inference.score(instance.structure, instance.scores, output)
        assert_log(score, instance.oracle.score(output), instance)
        counts = instance.flat(inference.parts(instance.structure, output, instance.n_labels))
        known = instance.oracle.counts[instance.oracle.by_output[output]]
        np.testing.assert_allclose(counts, known, rtol=0, atol=1e-12)
        assert_log(score, math.fsum(vector[counts != 0] * counts[counts != 0]), instance)


@law
def log_probabilities_are_brute_force(instance: Instance, random: np.random.Generator) -> None:
    for output in some_outputs(instance, random):
        value = inference.log_probability(
            instance.structure, instance.scores, output, allowed=instance.allowed
        )
        assert_log(value, instance.oracle.log_probability(output), instance)


@law
def an_output_that_does_not_exist_has_no_probability(instance: Instance, random: np.random.Generator) -> None:
    for output in instance.draw_outputs(random, 20):
        if listed(output) not in instance.oracle.by_output:
            value = inference.log_probability(
                instance.structure, instance.scores, output, allowed=instance.allowed
            )
            assert value == -math.inf


@law
def samples_follow_the_marginals(instance: Instance, random: np.random.Generator) -> None:
    n = 2000
    samples = inference.sample(
        instance.structure, instance.scores, n, random_state=7, allowed=instance.allowed
    )
    assert samples.shape[:2] == (n, instance.n_positions)
    seen = Counter(listed(output) for output in samples)
    frequencies = np.zeros_like(instance.oracle.marginals)
    for output, times in seen.items():  # an output that does not exist is not in the list
        frequencies += instance.oracle.counts[instance.oracle.by_output[output]] * times / n
    oracle = instance.oracle
    variance = np.clip(oracle.probabilities @ oracle.counts**2 - oracle.marginals**2, 0.0, None)
    largest = np.abs(oracle.counts).max(axis=0, initial=1.0)
    assert np.all(np.abs(frequencies - oracle.marginals) <= 5.0 * np.sqrt(variance / n) + 5.0 * largest / n)


@law
def samples_of_one_seed_are_the_same(instance: Instance, random: np.random.Generator) -> None:
    question = (instance.structure, instance.scores, 20)
    by_seed = [inference.sample(*question, random_state=3, allowed=instance.allowed) for _ in range(2)]
    by_generator = inference.sample(
        *question, random_state=np.random.default_rng(3), allowed=instance.allowed
    )
    np.testing.assert_array_equal(by_seed[0], by_seed[1])
    np.testing.assert_array_equal(by_seed[0], by_generator)


@law
def a_shifted_position_shifts_log_partition_only(instance: Instance, random: np.random.Generator) -> None:
    for position in range(instance.n_positions):
        for by in (1.5, -30.0):
            shifted = instance.shifted(position, by)
            assert_log(log_partition(shifted), log_partition(instance) + by, shifted)
            np.testing.assert_allclose(marginals(shifted), marginals(instance), rtol=0, atol=1e-9)


@law
def reversing_changes_nothing(instance: Instance, random: np.random.Generator) -> None:
    backwards = instance.reversed()
    assert_log(log_partition(backwards), log_partition(instance), instance)
    expected = instance.reversed_parts(marginals(instance))
    np.testing.assert_allclose(marginals(backwards), expected, rtol=0, atol=1e-9)


@law
def renaming_changes_nothing(instance: Instance, random: np.random.Generator) -> None:
    order = instance.draw_order(random)
    renamed = instance.renamed(order)
    assert_log(log_partition(renamed), log_partition(instance), instance)
    expected = instance.renamed_parts(marginals(instance), order)
    np.testing.assert_allclose(marginals(renamed), expected, rtol=0, atol=1e-9)


@law
def spelling_out_changes_nothing(instance: Instance, random: np.random.Generator) -> None:
    spelled_out = instance.spelled_out()
    assert_log(log_partition(spelled_out), log_partition(instance), instance)
    np.testing.assert_allclose(marginals(spelled_out), marginals(instance), rtol=0, atol=1e-9)


@law
def allowed_that_allows_all_is_no_allowed(instance: Instance, random: np.random.Generator) -> None:
    everything = instance.everything()
    question = (instance.structure, instance.scores)
    assert inference.log_partition(*question, allowed=everything) == inference.log_partition(*question)
    allowed = instance.flat(inference.marginals(*question, allowed=everything))
    np.testing.assert_array_equal(allowed, instance.flat(inference.marginals(*question)))


@law
def allowed_of_one_part_conditions_on_it(instance: Instance, random: np.random.Generator) -> None:
    if instance.n_positions == 0:
        return
    mask, probability = instance.allowed_of_one(random)
    known = inference.log_partition(instance.structure, instance.scores, allowed=mask)
    assert_log(known - log_partition(instance), math.log(probability), instance)


@law
def allowed_of_everything_leaves_one_output(instance: Instance, random: np.random.Generator) -> None:
    [output] = some_outputs(instance, random, n=1)
    mask = instance.allowing(output)
    gold = inference.log_partition(instance.structure, instance.scores, allowed=mask)
    assert_log(gold, instance.oracle.score(output), instance)


@law
def marginals_of_a_position_sum_to_one(instance: Instance, random: np.random.Generator) -> None:
    instance.check_sums(marginals(instance))


@law
def marginals_are_the_gradient(instance: Instance, random: np.random.Generator) -> None:
    vector, step = instance.flat(instance.scores), 1e-4
    expected = marginals(instance)
    movable = np.flatnonzero(instance.existing())
    for part in random.choice(movable, size=min(12, len(movable)), replace=False):
        move = np.zeros_like(vector)
        move[part] = step
        above = log_partition(instance.with_scores(vector + move))
        below = log_partition(instance.with_scores(vector - move))
        assert (above - below) / (2 * step) == pytest.approx(expected[part], rel=0, abs=1e-6)


@law
def hessian_vector_is_the_derivative_of_the_marginals(
    instance: Instance, random: np.random.Generator
) -> None:
    vector, step = instance.flat(instance.scores), 2e-4
    direction = draw_direction(instance, random)
    direction /= np.linalg.norm(direction) or 1.0
    above = marginals(instance.with_scores(vector + step * direction))
    below = marginals(instance.with_scores(vector - step * direction))
    np.testing.assert_allclose(
        hessian_vector(instance, direction), (above - below) / (2 * step), rtol=0, atol=1e-6
    )


@law
def the_hessian_is_symmetric_and_not_negative(instance: Instance, random: np.random.Generator) -> None:
    one, other = draw_direction(instance, random), draw_direction(instance, random)
    assert one @ hessian_vector(instance, other) == pytest.approx(
        other @ hessian_vector(instance, one), rel=0, abs=1e-8
    )
    assert one @ hessian_vector(instance, one) >= -1e-9


@law
def no_question_changes_its_input(instance: Instance, random: np.random.Generator) -> None:
    before = instance.flat(instance.scores).copy()
    mask = None if instance.allowed is None else instance.allowed.copy()
    marginals(instance)
    hessian_vector(instance, draw_direction(instance, random))
    inference.decode(instance.structure, instance.scores, allowed=instance.allowed)
    np.testing.assert_array_equal(instance.flat(instance.scores), before)
    if mask is not None:
        np.testing.assert_array_equal(instance.allowed, mask)
