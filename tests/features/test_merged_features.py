"""Equal features, merged: found as brute force finds them, with the objective and the optimum of the others."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from crfkit import CRF, Checkpoint
from crfkit.features import Annotation, Dataset, FeatureList, FeatureMap, MergedFeatures
from crfkit.models import MergedObjective
from crfkit.objective import Objective
from crfkit.optimizers import LBFGS, TRON
from crfkit.structures import Chain

N_LABELS, N_FEATURES = 3, 40


def problem(seed: int, *, valued: bool, everything: bool) -> tuple[FeatureMap, Dataset, Annotation]:
    """Short sequences whose features are copies of few columns, some at a single position."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, 6, 12)
    n = int(lengths.sum())
    active = rng.random((n, 8)) < np.array([0.5, 0.3, 0.2, 0.1, 1 / n, 1 / n, 0.0, 1.0])
    columns = rng.integers(0, 8, N_FEATURES)
    scale = rng.choice([0.5, 2.0], N_FEATURES)
    lists = [np.flatnonzero(active[t, columns]).astype(np.int32) for t in range(n)]
    ids = np.concatenate(lists)
    states = FeatureList(np.cumsum([0, *map(len, lists)]), ids, scale[ids] if valued else None)
    dataset = Dataset(np.cumsum([0, *lengths]), states)
    annotation = Annotation(rng.integers(0, N_LABELS, n, dtype=np.int32))
    feature_map = FeatureMap.build(
        dataset, annotation, Chain(), n_labels=N_LABELS, n_features=N_FEATURES, all_possible_states=everything
    )
    return feature_map, dataset, annotation


@pytest.mark.parametrize("everything", [False, True])
@pytest.mark.parametrize("valued", [False, True])
def test_features_are_equal_when_positions_values_and_labels_are(valued: bool, everything: bool) -> None:
    feature_map, dataset, _ = problem(1, valued=valued, everything=everything)
    merged = MergedFeatures.of(feature_map, dataset)
    assert merged is not None
    columns: dict[int, list[tuple[int, float]]] = defaultdict(list)
    for t in range(dataset.n_positions):
        for i in range(dataset.states.position_ptr[t], dataset.states.position_ptr[t + 1]):
            value = 1.0 if dataset.states.values is None else dataset.states.values[i]
            columns[int(dataset.states.ids[i])].append((t, value))
    groups = defaultdict(list)
    for f in range(N_FEATURES):
        pairs = range(feature_map.pair_ptr[f], feature_map.pair_ptr[f + 1])
        labels = tuple(feature_map.pair_labels[pairs.start : pairs.stop])
        for p in pairs:
            groups[tuple(columns[f]), labels, feature_map.pair_labels[p]].append(p)
    found = defaultdict(list)
    for p, coordinate in enumerate(merged.coordinates.of_weight[: feature_map.n_pairs]):
        found[coordinate].append(p)
    assert sorted(found.values()) == sorted(groups.values())
    assert merged.feature_map.n_weights == len(groups) + feature_map.n_weights - feature_map.n_pairs


@pytest.mark.parametrize("valued", [False, True])
def test_the_merged_objective_is_the_same(valued: bool) -> None:
    feature_map, dataset, annotation = problem(2, valued=valued, everything=False)
    merged = MergedFeatures.of(feature_map, dataset)
    assert merged is not None
    c, rng = merged.coordinates, np.random.default_rng(3)
    plain = Objective(feature_map.loss(dataset, annotation, single_precision=False), l2=0.3)
    loss = merged.feature_map.loss(merged.dataset, annotation, single_precision=False)
    joined = MergedObjective(loss, c, l1=0.1, l2=0.3)
    v, direction = rng.normal(size=(2, joined.n_weights))
    w = c.split(v)
    assert c.fit(w)
    assert not c.fit(rng.normal(size=len(w)))
    np.testing.assert_allclose(c.join(w), v, rtol=1e-14)
    value, gradient = plain.value_and_gradient(w)
    joined_value, joined_gradient = joined.value_and_gradient(v)
    np.testing.assert_allclose(joined_value, value, rtol=1e-12)
    np.testing.assert_allclose(joined_gradient, c.join(gradient), rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(np.abs(v) @ joined.l1, 0.1 * np.abs(w).sum(), rtol=1e-12)
    product = plain.hessian_vector(w, c.split(direction))
    np.testing.assert_allclose(joined.hessian_vector(v, direction), c.join(product), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize(
    ("optimizer", "l1"), [(LBFGS(change=0), 0.0), (LBFGS(change=0), 0.05), (TRON(), 0.0)]
)
def test_training_ends_where_it_does_without_merging(optimizer: LBFGS | TRON, l1: float) -> None:
    feature_map, dataset, annotation = problem(4, valued=False, everything=False)
    merged = MergedFeatures.of(feature_map, dataset)
    assert merged is not None
    start, seen = np.zeros(feature_map.n_weights), []
    plain = Objective(feature_map.loss(dataset, annotation, single_precision=False), l1=l1, l2=0.1)
    loss = merged.feature_map.loss(merged.dataset, annotation, single_precision=False)
    joined = MergedObjective(loss, merged.coordinates, l1=l1, l2=0.1)
    expected = plain.minimize(optimizer, start)
    outcome = joined.minimize(optimizer, start, callback=lambda step: seen.append(step.weights))
    for before, after in zip(expected.history[:8], outcome.history[:8], strict=True):
        np.testing.assert_allclose(after.objective, before.objective, rtol=1e-6)
        np.testing.assert_allclose(after.gradient_norm, before.gradient_norm, rtol=1e-3)
    np.testing.assert_allclose(outcome.weights, expected.weights, atol=1e-4)
    np.testing.assert_array_equal(seen[-1], outcome.weights)


@pytest.mark.parametrize("merged_first", [True, False])
def test_a_run_goes_on_as_it_began(merged_first: bool, tmp_path: Path) -> None:
    """Whether equal features are merged depends on the start, which a resumed run has in its checkpoint."""
    rng = np.random.default_rng(0)
    words = [rng.integers(0, 40, 5).tolist() for _ in range(20)]
    y = [[str(word % 3) for word in sentence] for sentence in words]
    here = [[[f"w{word}", f"u{word}"] for word in sentence] for sentence in words]
    apart = [[[f"w{word}", f"u{word // 2}"] for word in sentence] for sentence in words]
    other = CRF().fit(apart, y)
    first, second = (None, other) if merged_first else (other, None)

    def train(start: CRF | None, callback: Any = None, **checkpoint: Any) -> CRF:
        path = Checkpoint(tmp_path / "run", every=1, **checkpoint)
        return CRF(optimizer=LBFGS(max_iterations=8, tolerance=0)).fit(
            here, y, start=start, callback=callback, checkpoint=path
        )

    expected = train(first)
    train(first, lambda step: step.iteration == 3)
    resumed = train(second, resume=True)
    np.testing.assert_array_equal(resumed.weights_, expected.weights_)
