"""Training and tagging where only some arcs and labels exist, against the enumeration of all label sequences."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from crfkit.features import Annotation, Dataset, FeatureMap
from crfkit.features.dataset import FeatureList
from crfkit.inference import Answerer, ChainPotentials
from crfkit.objective import Objective
from crfkit.structures import Chain
from tests.oracles.restricted import KINDS, Problem

Float64s = npt.NDArray[np.float64]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: "-".join(f"{k}={v}" for k, v in kind.items()))
def test_tagging_is_that_of_the_enumeration(kind: dict[str, int | bool]) -> None:
    problem = Problem(7, **kind)  # type: ignore[arg-type]
    answerer, design = (
        Answerer(ChainPotentials(problem.map.layout, problem.w)),
        problem.map.design(problem.dataset, 1),
    )
    best, marginals = answerer.decode(design), answerer.marginals(design)
    log_z = answerer.log_partitions(design)
    log_gold = answerer.log_partitions(design, problem.annotation.labels, problem.annotation.sets)
    k_best = answerer.k_best(design, 3)
    samples = answerer.sample(design, 4, np.random.default_rng(0).random(4 * problem.dataset.n_positions))
    for n, length in enumerate(problem.lengths):
        positions = slice(problem.ptr[n], problem.ptr[n + 1])
        paths = problem.label_sequences(n)
        scores = {y: float(problem.counts(n, y) @ problem.w) for y in paths}
        ranked = sorted(scores.values(), reverse=True)
        assert scores[tuple(best[positions].tolist())] == pytest.approx(ranked[0], abs=1e-9)
        right = [score for y, score in scores.items() if problem.admits(n, y)]
        assert log_z[n] == pytest.approx(np.logaddexp.reduce(ranked), rel=1e-12, abs=1e-12)
        assert log_gold[n] == pytest.approx(np.logaddexp.reduce(right), rel=1e-12, abs=1e-12)
        assert [s for s, _ in k_best[n]] == pytest.approx(ranked[:3], abs=1e-9)
        assert all(scores[tuple(y.tolist())] == pytest.approx(s, abs=1e-9) for s, y in k_best[n])
        probs = np.zeros((length, problem.n_labels))
        for y, score in scores.items():
            probs[range(length), list(y)] += np.exp(score - log_z[n])
        np.testing.assert_allclose(marginals[positions], probs, atol=1e-9)
        drawn = samples[4 * problem.ptr[n] : 4 * problem.ptr[n + 1]].reshape(4, length)
        assert all(tuple(y) in scores for y in drawn.tolist())


@pytest.mark.parametrize("n_labels", [3, 70])
def test_impossible_sequences_are_named(n_labels: int) -> None:
    problem = Problem(2, n_labels=n_labels, hard=True, soft=False, restrict=True, partial=False)
    none = (np.zeros(1, np.int32), np.zeros(1, np.int32))  # 0 → 0, and nothing may start
    narrow = FeatureMap.build(
        problem.dataset, problem.annotation, Chain(), n_labels=n_labels, n_features=5, bigrams=none
    )
    with pytest.raises(ValueError, match="sequence 0 with 1 position: its labels are not possible"):
        Objective(narrow.loss(problem.dataset, problem.annotation))
    answerer = Answerer(ChainPotentials(narrow.layout, np.zeros(narrow.n_weights)))
    with pytest.raises(ValueError, match="sequence 0 with 1 position: no label sequence is possible"):
        answerer.decode(narrow.design(problem.dataset, 1))


def chain_of_scores(
    states: Float64s, bigrams: tuple[list[int], list[int]], gold: list[int], arc: float, *, soft: bool
) -> tuple[Dataset, Annotation, FeatureMap, Float64s]:
    """One sequence whose position t has the scores states[t], its arcs between labels all the score `arc`."""
    n_positions, n_labels = states.shape
    positions = np.arange(n_positions + 1)
    features = FeatureList(positions.astype(np.int64), positions[:-1].astype(np.int32), None)
    dataset = Dataset(np.array([0, n_positions], np.int64), features)
    annotation = Annotation(np.array(gold, np.int32), None)
    before, after = (np.array(ids, np.int32) for ids in bigrams)
    feature_map = FeatureMap.build(
        dataset,
        annotation,
        Chain(),
        n_labels=n_labels,
        n_features=n_positions,
        all_possible_states=True,
        bigrams=(before, after),
        soft=soft,
    )
    w = np.zeros(feature_map.n_weights)
    w[: states.size] = states.ravel()
    between = (feature_map.arc_before < n_labels) & (feature_map.arc_after < n_labels)
    w[feature_map.arcs_begin : feature_map.triples_begin][between] = arc
    return dataset, annotation, feature_map, w


@pytest.mark.parametrize("n_labels", [2, 70])
@pytest.mark.parametrize(("ends", "middle"), [(60.0, 50.0), (400.0, 640.0)])
@pytest.mark.parametrize("single_precision", [False, True])
def test_a_path_that_underflows_at_both_ends_is_not_lost(
    n_labels: int, ends: float, middle: float, single_precision: bool
) -> None:
    states = np.zeros(
        (14, n_labels)
    )  # label 1 is unlikely in the first and last two positions, label 0 between
    states[[0, 1, 12, 13], 1] = -ends
    states[2:12, 0] = -middle
    bigrams = ([0, 1, 0, 1, n_labels, n_labels], [0, 1, n_labels, n_labels, 0, 1])  # no way from 0 to 1
    dataset, annotation, feature_map, w = chain_of_scores(states, bigrams, [1] * 14, 0.0, soft=False)
    log_z = np.logaddexp(states[:, 0].sum(), states[:, 1].sum())
    answerer, design = Answerer(ChainPotentials(feature_map.layout, w)), feature_map.design(dataset, 1)
    assert answerer.log_partitions(design)[0] == pytest.approx(log_z, rel=1e-12)
    np.testing.assert_allclose(answerer.marginals(design)[:, :2], [[0.0, 1.0]] * 14, atol=1e-9)
    objective = Objective(feature_map.loss(dataset, annotation, single_precision=single_precision), l2=0.0)
    value, gradient = objective.value_and_gradient(w)
    assert value == pytest.approx(log_z - states[:, 1].sum(), abs=1e-6)
    np.testing.assert_allclose(gradient, 0.0, atol=1e-6)


@pytest.mark.parametrize("arc", [-15.0, -34.0])
@pytest.mark.parametrize("single_precision", [False, True])
def test_a_soft_arc_far_below_the_others_keeps_its_digits(arc: float, single_precision: bool) -> None:
    states = np.full((6, 70), -60.0)  # position t wants label t, though the arc there is unlikely
    states[range(6), range(6)] = 0.0
    dataset, annotation, feature_map, w = chain_of_scores(
        states, ([*range(5)], [*range(1, 6)]), [*range(6)], arc, soft=True
    )
    arcs = np.zeros((70, 70))
    arcs[range(5), range(1, 6)] = arc
    forward = states[0]
    for row in states[1:]:
        forward = np.logaddexp.reduce(forward[:, None] + arcs, axis=0) + row
    objective = Objective(feature_map.loss(dataset, annotation, single_precision=single_precision), l2=0.0)
    expected = np.logaddexp.reduce(forward) - 5 * arc
    assert objective.value_and_gradient(w)[0] == pytest.approx(expected, rel=1e-6, abs=1e-6)
