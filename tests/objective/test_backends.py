"""Each fast backend against the path engine on the same rows: dense rows, batches, pattern batches, segments."""

from __future__ import annotations

import itertools

import numpy as np
import numpy.typing as npt
import pytest

from crfkit import CRF, _core, inference
from crfkit.features import Annotation, Dataset, FeatureList, FeatureMap, Template
from crfkit.models.kinds.segments import SegmentPotentials
from crfkit.models.training.training_set import TrainingInput
from crfkit.objective import Objective
from crfkit.structures import AllowedLabels, Chain, ChainScores, Segments, segment_labels
from tests.objective.test_pattern_objective import point
from tests.oracles.pattern_cases import ARCS, PATTERNS, L, PatternCase


@pytest.mark.parametrize("n_labels", [1, 2, 5, 8, 17, 33, 70])
def test_dense_rows(n_labels: int) -> None:
    """The kernels for whole rows of labels, and the chain in log space, against the same chain given by its arcs."""
    random, T = np.random.default_rng(n_labels), 6
    emissions, moves = random.normal(size=(2, T, n_labels)) * 3
    emissions[:, 1:][random.random((T, n_labels - 1)) < 0.2] = -np.inf
    transitions, arc_moves = random.normal(size=(2, n_labels, n_labels)) * 3
    first, at = 1 + np.arange(T + 1) * n_labels, np.arange(n_labels)
    pairs = [(first[t - 1] + a, first[t] + b) for t in range(1, T) for a in at for b in at]
    ends = [*((0, b + 1) for b in at), *pairs, *((first[T - 1] + a, first[T]) for a in at)]

    def of_arcs(rows: npt.NDArray[np.float64], table: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        return np.concatenate([rows[0], *((table + row).ravel() for row in rows[1:]), np.zeros(n_labels)])

    graph = _core.PathGraph(int(first[T]) + 1, *(np.array(ids) for ids in zip(*ends, strict=True)))
    scores, direction = of_arcs(emissions, transitions), of_arcs(moves, arc_moves)
    scores_of = ChainScores(emissions, transitions)
    paths, chain = _core.ScoredPaths(graph, scores), _core.ScoredChain(emissions, transitions)
    for slow in (False, True):
        assert chain.log_partition(slow) == pytest.approx(paths.log_partition(), rel=1e-13)
        states, arcs = chain.marginals(slow)
        by_arc, by_node = paths.marginals()
        np.testing.assert_allclose(states.ravel(), by_node[1:-1], rtol=0, atol=1e-12)
        np.testing.assert_allclose(arcs.ravel(), by_arc[n_labels:-n_labels], rtol=0, atol=1e-12)
        _, changes = chain.hessian_vector(_core.ScoredChain(moves, arc_moves), slow)
        expected = paths.hessian_vector(_core.ScoredPaths(graph, direction))[0][n_labels:-n_labels]
        np.testing.assert_allclose(changes.ravel(), expected, rtol=0, atol=1e-11)
    score, path = paths.decode()
    decoded = inference.decode(Chain(), scores_of)
    assert decoded.score == pytest.approx(score, rel=1e-13)
    labels = [(ends[arc][1] - 1) % n_labels for arc in path[:-1]]
    assert decoded.output.tolist() == labels
    k_best = [score for score, _ in paths.k_best(9)]
    assert [found.score for found in inference.k_best(Chain(), scores_of, 9)] == pytest.approx(k_best)


@pytest.mark.parametrize("scale", [0.3, 3.0, 40.0])
@pytest.mark.parametrize("unseen", ["hard", "soft"])
def test_batches_in_lanes(unseen: str, scale: float) -> None:
    """Sequences in the lanes of vectors against one lattice after the other, which a list of all labels asks for."""
    random, n_labels, n_features = np.random.default_rng(5), 80, 6
    lengths = random.integers(0, 12, size=40)
    ptr = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    n = int(ptr[-1])
    features = FeatureList(
        np.arange(0, 2 * n + 1, 2),
        np.sort(random.integers(0, n_features, (n, 2)), axis=1).ravel().astype(np.int32),
        None,
    )
    exists = random.random((n_labels + 1, n_labels + 1)) < 0.08
    exists[:, 0] = exists[0] = True
    exists[-1, -1] = True
    labels = np.zeros(n, np.int32)
    for begin, end in itertools.pairwise(ptr):  # sequences of bigrams that exist
        for t in range(begin, end - 1):
            last = n_labels if t == begin else labels[t - 1]
            labels[t] = random.choice(np.flatnonzero(exists[last, :-1]))
    annotation = Annotation(labels)
    everywhere = np.full(n + 1, n_labels, np.int64)
    everywhere[0] = 0
    listed = AllowedLabels(
        everywhere, np.arange(n_labels, dtype=np.int32)
    )  # at the first position, all others open
    before, after = np.nonzero(exists)
    objectives = []
    for allowed in (None, listed):
        dataset = Dataset(ptr, features, allowed=allowed)
        feature_map = FeatureMap.build(
            dataset,
            annotation,
            Chain(),
            n_labels=n_labels,
            n_features=n_features,
            bigrams=(before.astype(np.int32), after.astype(np.int32)),
            soft=unseen == "soft",
        )
        assert feature_map.design(dataset, 1, purpose="training").as_batches == (allowed is None)
        objectives.append(Objective(feature_map.loss(dataset, annotation, single_precision=False)))
    w, v = random.normal(scale=scale, size=(2, objectives[0].n_weights))
    (value, gradient), (expected, slope) = (objective.value_and_gradient(w) for objective in objectives)
    assert value == pytest.approx(expected, rel=1e-12)
    np.testing.assert_allclose(gradient, slope, rtol=0, atol=1e-10 * scale)
    product, other = (objective.hessian_vector(w, v) for objective in objectives)
    np.testing.assert_allclose(product, other, rtol=0, atol=1e-9 * scale)


@pytest.mark.parametrize("scale", [1.0, 20.0])
def test_pattern_batches(scale: float) -> None:
    """Sequences that share a trellis, in the lanes of vectors, against the engine on each trellis."""
    case = PatternCase(2)
    w = point(case, scale)
    value, gradient = _core.Objective(case.loss(), np.zeros(1)).value_and_gradient(w)
    _, trellises = case.trellises()
    linked = trellises.arcs()  # (labels before, labels after) in the order of the core
    arcs = np.ascontiguousarray(w[ARCS:][: L * L].reshape(L, L)[linked])
    start, end = w[ARCS + L * L :][:L], w[ARCS + L * L + L :][:L]
    expected, slope = 0.0, np.zeros_like(w)
    for n, length in enumerate(case.lengths):
        if length == 0:
            continue
        rows = np.zeros((length, len(w[:ARCS]) // L))  # the values of features [T, F]
        for t, position in enumerate(case.positions[case.ptr[n] : case.ptr[n + 1]]):
            for feature, number in position:
                rows[t, feature] = number
        emissions = rows @ w[:ARCS].reshape(-1, L)
        emissions[0] += start
        emissions[-1] += end
        asked = _core.ScoredTrellis(trellises, n, emissions, arcs, w[PATTERNS:])
        [gold] = itertools.product(*case.gold[case.ptr[n] : case.ptr[n + 1]])
        features = case.features(n, gold)
        expected += case.weight[n] * (asked.log_partition() - features @ w)
        probs, pairs, counts = asked.marginals()
        table = np.zeros((L, L))
        table[linked] = pairs.sum(axis=0)
        by_weight = [(rows.T @ probs).ravel(), table.ravel(), probs[0], probs[-1], counts]
        slope += case.weight[n] * (np.concatenate(by_weight) - features)
    assert value == pytest.approx(expected, rel=1e-12)
    np.testing.assert_allclose(gradient, slope, rtol=0, atol=1e-10 * scale)


@pytest.mark.parametrize("scale", [0.3, 3.0, 9.0, 40.0])
@pytest.mark.parametrize(
    ("n_types", "structure"), [(1, Segments(3)), (4, Segments()), (20, Segments(longest_weighted=4))]
)
def test_segments_in_lanes(n_types: int, structure: Segments, scale: float) -> None:
    """All types at once in scaled messages against the path engine; some positions are forced to be inside."""
    random = np.random.default_rng(n_types)
    X, Y, allowed = [], [], []
    for _ in range(40):
        kinds = [str(random.integers(n_types)) for _ in range(random.integers(1, 6))]
        longest = structure.limit("0") or 9
        lengths = random.integers(1, longest + 1, len(kinds)).tolist()
        y = [b for kind, n in zip(kinds, lengths, strict=True) for b in segment_labels(kind, n, "iobes")]
        X.append([(str(random.integers(4)),) for _ in y])
        Y.append([None if random.random() < 0.1 else b for b in y] if random.random() < 0.5 else y)
        allowed.append([{b} if random.random() < 0.1 else None for b in y])
    settings = CRF(structure, features="U:%x[0,0]\nB")._settings()
    found = TrainingInput(X, Y, allowed, settings, Template.parse("U:%x[0,0]\nB", "words"), 1).learn()
    potentials, dataset = found.model.potentials, found.data.dataset
    assert isinstance(potentials, SegmentPotentials)
    given = potentials.feature_map, dataset, None, 2
    annotation = (found.data.annotation.labels, *found.data.annotation.set_arrays, np.ones(len(X)))
    fast, slow = (
        _core.segment_loss(potentials.segments.data(*given, purpose=purpose), *annotation, False, 2)
        for purpose in ("patterns", "questions")
    )
    w = random.normal(size=potentials.n_weights) * scale
    value, gradient = Objective(slow, l2=0.0).value_and_gradient(w)
    found_value, found_gradient = Objective(fast, l2=0.0).value_and_gradient(w)
    assert found_value == pytest.approx(value, rel=1e-12)
    np.testing.assert_allclose(found_gradient, gradient, rtol=0, atol=1e-10)
