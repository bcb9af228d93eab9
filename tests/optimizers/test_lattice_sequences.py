"""Steps along sequences with few candidates of many labels, against the gradient of the whole data set."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from crfkit import _core
from crfkit.features import Annotation, Dataset, Facets, FeatureMap
from crfkit.features.dataset import FeatureList
from crfkit.objective import Objective
from crfkit.structures import AllowedLabels, Chain
from tests.optimizers.passes import adagrad_pass, sgd_pass

N_LABELS = 150
LENGTHS = [6, 1, 0, 9, 4, 3] * 5
N_FEATURES = 40


def facets_of(kind: str) -> Facets | None:
    """None, two kinds, or these and whole labels."""
    if kind == "none":
        return None
    table = np.array([[b % 7, 7 + b % 11] for b in range(N_LABELS)], np.int32)
    facets = Facets(tuple(f"f{i}" for i in range(18)), table)
    return facets.with_labels() if kind == "labels" else facets


class ManyLabels:
    """Positions with 1 to 8 candidates; features that are active often have weights for most outcomes."""

    def __init__(self, kind: str, *, valued: bool, partial: bool) -> None:
        rng = np.random.default_rng(3)
        n_positions = sum(LENGTHS)
        counts = rng.integers(0, 6, n_positions)
        share = 1 / np.arange(1, N_FEATURES + 1)
        ids = [rng.choice(N_FEATURES, k, replace=False, p=share / share.sum()) for k in counts]
        features = FeatureList(
            np.concatenate([[0], np.cumsum(counts)]),
            np.concatenate(ids).astype(np.int32),
            rng.normal(size=counts.sum()) if valued else None,
        )
        sets = [
            sorted(rng.choice(N_LABELS, rng.integers(1, 9), replace=False).tolist())
            for _ in range(n_positions)
        ]
        labels = np.array([rng.choice(choice) for choice in sets], np.int32)
        unknown = None
        if partial:
            open_positions = rng.random(n_positions) < 0.3
            labels[open_positions] = -1
            unknown = AllowedLabels.from_sets(
                [set(sets[t][:3]) if open_positions[t] else None for t in range(n_positions)]
            )
        self.dataset = Dataset(
            np.concatenate([[0], np.cumsum(LENGTHS)]), features, allowed=AllowedLabels.from_sets(sets)
        )
        self.annotation = Annotation(labels, unknown)
        before, after = np.nonzero(rng.random((N_LABELS + 1, N_LABELS + 1)) < 0.3)
        known = before + after < 2 * N_LABELS
        self.map = FeatureMap.build(
            self.dataset,
            self.annotation,
            Chain(),
            n_labels=N_LABELS,
            n_features=N_FEATURES,
            all_possible_states=kind != "none",
            bigrams=(before[known].astype(np.int32), after[known].astype(np.int32)),
            soft=True,
            facets=facets_of(kind),
        )
        self.w = rng.normal(size=self.map.n_weights)
        self.sample_weight = rng.random(len(LENGTHS)) + 0.5

    def objective(self, n_threads: int = 1, l2: float | npt.NDArray[np.float64] = 0.0) -> Objective:
        """Without l1."""
        loss = self.map.loss(
            self.dataset,
            self.annotation,
            sample_weight=self.sample_weight,
            single_precision=False,
            n_threads=n_threads,
        )
        return Objective(loss, l1=0.0, l2=l2)


def step(problem: ManyLabels, n_threads: int = 1) -> tuple[float, npt.NDArray[np.float64]]:
    """The loss, and the gradient as one step along all sequences takes it."""
    order = np.arange(len(LENGTHS), dtype=np.int32)
    value, weights, _ = sgd_pass(
        problem.objective(n_threads), problem.w, order, np.ones(1), batch=len(LENGTHS)
    )
    return value, problem.w - weights


@pytest.mark.parametrize("kind", ["none", "facets", "labels"])
@pytest.mark.parametrize("valued", [False, True])
@pytest.mark.parametrize("partial", [False, True])
def test_the_sum_over_sequences(kind: str, valued: bool, partial: bool) -> None:
    problem = ManyLabels(kind, valued=valued, partial=partial)
    n_weights = np.diff(problem.map.pair_ptr)
    assert kind != "labels" or (n_weights.min() <= 16 < 50 < n_weights.max())  # few and many of a feature
    value, gradient = step(problem)
    expected, of_all = problem.objective().value_and_gradient(problem.w)
    assert value == pytest.approx(expected, rel=1e-12)
    np.testing.assert_allclose(gradient, of_all, atol=1e-11)


def test_the_same_bits_for_any_number_of_threads() -> None:
    problem = ManyLabels("labels", valued=True, partial=True)
    value, gradient = step(problem)
    for n_threads in (2, 5):
        again, others = step(problem, n_threads)
        assert again == value
        assert np.array_equal(others, gradient)


def test_what_all_candidates_share_is_left_alone() -> None:
    """Weights whose gradient is 0 whatever the others are stay exactly 0."""
    problem = ManyLabels("labels", valued=False, partial=False)
    nothing = np.zeros(len(problem.w))
    order = np.tile(np.arange(len(LENGTHS), dtype=np.int32), 3)
    weights = adagrad_pass(problem.objective(), nothing, np.ones(len(nothing)), order, 0.1, 0.0)[1]
    moved = problem.objective().value_and_gradient(weights)[1]
    alone = np.abs(moved[: problem.map.n_pairs]) < 1e-13
    assert alone.sum() > 10
    assert not weights[: problem.map.n_pairs][alone].any()


@pytest.mark.parametrize("n_strengths", [1, 3, 1000])
def test_penalties_of_one_strength_of_few_and_of_many(n_strengths: int) -> None:
    """A step of AdaGrad along all sequences, written out: many are more than 256, which are not kept in groups."""
    problem = ManyLabels("labels", valued=True, partial=False)
    rng = np.random.default_rng(1)
    l2 = rng.random(n_strengths)[rng.integers(n_strengths, size=len(problem.w))]
    rate, passes, before = 0.3, 2.0, 1 + rng.random(len(problem.w))
    z = -problem.w * (before / rate + l2 * passes)
    order = np.arange(len(LENGTHS), dtype=np.int32)
    objective = problem.objective(l2=l2)
    _, weights, new_z, root = adagrad_pass(objective, z, before, order, rate, passes, batch=len(LENGTHS))
    gradient = problem.objective().value_and_gradient(problem.w)[1]
    after = np.sqrt(before**2 + gradient**2)
    expected = z + gradient - (after - before) / rate * problem.w
    np.testing.assert_allclose(root, after, atol=1e-11)
    np.testing.assert_allclose(new_z, expected, atol=1e-10)
    np.testing.assert_allclose(weights, -expected / (after / rate + l2 * (passes + 1)), atol=1e-10)


@pytest.mark.parametrize("kind", ["none", "labels"])
@pytest.mark.parametrize(("begin", "n_fixed"), [(0, 5), (37, 150), (-40, 40), (100, 0)])
def test_fixed_weights_are_left_out(kind: str, begin: int, n_fixed: int) -> None:
    """Of single features, of several, and of the last arcs; the bits are those of any number of threads."""
    problem = ManyLabels(kind, valued=True, partial=False)
    begin %= len(problem.w)
    free = np.delete(problem.w, np.s_[begin : begin + n_fixed])

    def objective(n_threads: int) -> Objective:
        loss = problem.map.loss(
            problem.dataset, problem.annotation, single_precision=False, n_threads=n_threads
        )
        fixed = _core.fix_weights(loss, begin, problem.w[begin : begin + n_fixed])
        return Objective(fixed, l1=0.0, l2=0.0)

    order = np.arange(len(LENGTHS), dtype=np.int32)
    value, weights, _ = sgd_pass(objective(1), free, order, np.ones(1), batch=len(LENGTHS))
    expected, of_all = objective(1).value_and_gradient(free)
    assert value == pytest.approx(expected, rel=1e-12)
    np.testing.assert_allclose(free - weights, of_all, atol=1e-11)
    again = sgd_pass(objective(3), free, order, np.ones(1), batch=len(LENGTHS))
    assert again[0] == value
    assert np.array_equal(again[1], weights)
    root = np.ones(len(free))
    steps = adagrad_pass(objective(1), -free, root, order, 1.0, 0.0)  # one by one
    assert np.isfinite(steps[1]).all()
