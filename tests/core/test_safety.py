"""What the native core refuses or survives: foreign layouts, sizes that overflow, many threads, long sequences."""

from __future__ import annotations

import resource
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from crfkit import _core
from crfkit.features import Annotation, Dataset, FeatureList, FeatureMap
from crfkit.inference import Answerer, ChainPotentials
from crfkit.objective import Objective
from crfkit.structures import AllowedLabels, Chain

L = 3


def drawn(n_positions: int, n_features: int, lengths: list[int] | None = None) -> tuple[Dataset, Annotation]:
    """One feature a position, all of them in turn, and random labels."""
    sequence_ptr = np.concatenate([[0], np.cumsum(lengths or [n_positions])]).astype(np.int64)
    ids = (np.arange(n_positions) % n_features).astype(np.int32)
    states = FeatureList(np.arange(n_positions + 1, dtype=np.int64), ids, None)
    labels = np.random.default_rng(0).integers(0, L, n_positions).astype(np.int32)
    return Dataset(sequence_ptr, states), Annotation(labels)


def weights_of(dataset: Dataset, annotation: Annotation, n_features: int) -> FeatureMap:
    """Weights for all pairs and arcs."""
    return FeatureMap.build(
        dataset, annotation, Chain(), n_labels=L, n_features=n_features, all_possible_states=True
    )


def test_a_design_of_another_layout_is_refused() -> None:
    dataset, annotation = drawn(2000, 2000)
    foreign = weights_of(dataset, annotation, 2000).design(dataset, 1)
    small = weights_of(*drawn(5, 2), 2)
    answerer = Answerer(ChainPotentials(small.layout, np.zeros(small.n_weights)))
    questions: list[Any] = [
        lambda: answerer.decode(foreign),
        lambda: answerer.marginals(foreign),
        lambda: answerer.log_partitions(foreign),
        lambda: answerer.k_best(foreign, 2),
        lambda: answerer.sample(foreign, 1, np.zeros(2000)),
        lambda: _core.chain_loss(small.layout, foreign, annotation.labels, None, None, np.ones(1), True, 1),
    ]
    for question in questions:
        with pytest.raises(ValueError, match="compiled against another layout"):
            question()


def test_a_design_of_an_equal_layout_is_welcome() -> None:
    dataset, annotation = drawn(5, 2)
    one, other = (weights_of(dataset, annotation, 2) for _ in range(2))
    labels = Answerer(ChainPotentials(one.layout, np.zeros(one.n_weights))).decode(other.design(dataset, 1))
    assert labels.tolist() == [0] * 5


@pytest.mark.parametrize("columns", [[2**62], [2**31 - 1, 1], [-1]])
def test_dense_blocks_whose_size_would_overflow(columns: list[int]) -> None:
    none, start = np.zeros(0, dtype=np.int32), np.zeros(1, dtype=np.int64)
    with pytest.raises(ValueError, match="columns together"):
        _core.Layout(4, start, none, np.array(columns), none, none, start, none)


def test_scores_that_overflow_give_words_not_leftovers_of_memory() -> None:
    dataset, annotation = drawn(4, 1)
    feature_map = weights_of(dataset, annotation, 1)
    answerer = Answerer(ChainPotentials(feature_map.layout, np.full(feature_map.n_weights, -1e308)))
    with pytest.raises(ValueError, match="no label sequence is possible"):
        answerer.marginals(feature_map.design(dataset, 1))


def test_memory_is_allocated_only_for_threads_that_have_work() -> None:
    dataset, annotation = drawn(50, 2)
    feature_map = weights_of(dataset, annotation, 2)
    w = np.random.default_rng(1).normal(size=feature_map.n_weights)
    expected = Objective(feature_map.loss(dataset, annotation)).value_and_gradient(w)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for n_threads in (0, 10**6):
        value, gradient = Objective(
            feature_map.loss(dataset, annotation, n_threads=n_threads)
        ).value_and_gradient(w)
        assert value == expected[0]
        assert gradient.tobytes() == expected[1].tobytes()
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100_000


def test_two_threads_may_ask_one_objective() -> None:
    dataset, annotation = drawn(4000, 50, [40] * 100)
    feature_map = weights_of(dataset, annotation, 50)
    objective = Objective(feature_map.loss(dataset, annotation))
    points = np.random.default_rng(1).normal(size=(40, feature_map.n_weights))
    alone = [objective.value_and_gradient(w)[0] for w in points]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(lambda w: objective.value_and_gradient(w)[0], points))
    assert together == alone


def test_single_precision_keeps_its_digits_in_a_long_sequence() -> None:
    dataset, annotation = drawn(200_000, 1)
    feature_map = weights_of(dataset, annotation, 1)
    w = np.random.default_rng(1).normal(size=feature_map.n_weights)
    objective = Objective(feature_map.loss(dataset, annotation), l2=0.0)
    _, rough = objective.value_and_gradient(w)
    rough_product = objective.hessian_vector(w, w)
    assert objective.refine()
    _, exact = objective.value_and_gradient(w)
    np.testing.assert_allclose(rough, exact, rtol=0, atol=2e-5 * dataset.n_positions)
    exact_product = objective.hessian_vector(w, w)
    np.testing.assert_allclose(rough_product, exact_product, rtol=0, atol=2e-5 * dataset.n_positions)


def test_arcs_between_sets_of_labels_are_seen() -> None:
    dataset, _ = drawn(3, 1, [2, 0, 1])
    annotation = Annotation(
        np.array([-1, 0, -1], dtype=np.int32), AllowedLabels.from_sets([{1, 2}, None, {0, 1}])
    )
    feature_map = FeatureMap.build(
        dataset, annotation, Chain(), n_labels=L, n_features=1, all_possible_transitions=False
    )
    arcs = set(zip(feature_map.arc_before.tolist(), feature_map.arc_after.tolist(), strict=True))
    assert arcs == {(1, 0), (2, 0), (L, 0), (L, 1), (L, 2), (0, L), (1, L)}


def test_large_maxima_that_cancel_leave_their_digits() -> None:
    """State scores near −1e4 and arc scores near +1e4 over many positions: log Z keeps a relative 1e-12."""
    rng = np.random.default_rng(0)
    states, arcs = -1e4 + rng.normal(size=(20_000, 3)), 1e4 + rng.normal(size=(3, 3))
    chain = _core.ScoredChain(states, arcs)
    assert chain.log_partition() == pytest.approx(chain.log_partition(in_log_space=True), rel=1e-12)


FEW_THREADS = """
import os, resource
import numpy as np
from crfkit import CRF, LBFGS

def fitted(n_threads):
    random = np.random.default_rng(0)
    X = [[[f"{w}"] for w in random.integers(0, 500, 20)] for _ in range(400)]
    y = [[int(w[0]) % 7 for w in x] for x in X]
    return CRF(n_threads=n_threads, optimizer=LBFGS(max_iterations=5)).fit(X, y).weights_

size = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (size + (500 << 20), -1))  # less than the stack of one thread
alone = fitted(1)
assert (fitted(4) == alone).all()
n_before = len(os.listdir("/proc/self/task"))
resource.setrlimit(resource.RLIMIT_AS, (-1, -1))
assert (fitted(4) == alone).all()
print(n_before, len(os.listdir("/proc/self/task")))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="limits as Linux has them")
def test_fewer_threads_than_asked_for_do_the_same_work() -> None:
    def large_stacks() -> None:
        resource.setrlimit(resource.RLIMIT_STACK, (1 << 30, resource.getrlimit(resource.RLIMIT_STACK)[1]))

    environment = {"OPENBLAS_NUM_THREADS": "1", "PATH": ""}
    program = [sys.executable, "-c", FEW_THREADS]
    done = subprocess.run(program, preexec_fn=large_stacks, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["1", "4"]


def locally_normalised(bigrams: list[tuple[int, int]], weight: float = 0.0) -> tuple[Answerer, _core.Design]:
    """Three positions with two labels: label 0 begins, both may end."""
    dataset = Dataset(np.array([0, 3]), FeatureList(np.arange(4), np.zeros(3, np.int32), None))
    before, after = np.array([(2, 0), *bigrams, (0, 2), (1, 2)], np.int32).T.copy()
    feature_map = FeatureMap.build(
        dataset,
        Annotation(np.array([0, 0, 1], np.int32)),
        Chain(),
        n_labels=2,
        n_features=1,
        bigrams=(before, after),
    )
    potentials = ChainPotentials(feature_map.layout, np.full(feature_map.n_weights, weight), local=True)
    return Answerer(potentials), feature_map.design(dataset, 1)


def test_a_label_that_none_may_follow_leaves_the_others_of_a_locally_normalised_chain() -> None:
    answerer, design = locally_normalised([(0, 0), (0, 1)])
    assert answerer.decode(design).tolist() == [0, 0, 0]
    np.testing.assert_allclose(answerer.marginals(design), [[1.0, 0.0], [1.0, 0.0], [0.5, 0.5]])
    assert {tuple(y.tolist()) for _, y in answerer.k_best(design, 9)[0]} == {(0, 0, 0), (0, 0, 1)}


def test_scores_that_leave_the_range_of_numbers_have_no_labels() -> None:
    answerer, design = locally_normalised([(0, 0), (0, 1)], weight=1e308)
    with pytest.raises(ValueError, match="no label sequence is possible"):
        answerer.decode(design)


def test_equal_features_are_found_in_lists_that_fit_together() -> None:
    ids = np.zeros(1, np.int32)
    for feature_ptr in ([], [0], [0, 9], [0, -1, 1], [5, 1]):
        with pytest.raises(ValueError, match="feature_ptr"):
            _core.first_equals(np.array([0, 1]), ids, None, np.array(feature_ptr, np.int64), ids)


@pytest.mark.parametrize(
    ("graphs", "graph_of", "what"), [([None], 0, "missing"), ([], 0, "graph_of"), ([], -1, "graph_of")]
)
def test_every_sequence_has_a_graph(graphs: list[Any], graph_of: int, what: str) -> None:
    dataset, annotation = drawn(1, 1)
    feature_map = weights_of(dataset, annotation, 1)
    design, numbers = feature_map.design(dataset, 1), np.full(1, graph_of, np.int32)
    data = _core.GraphData(feature_map.layout, design, None, feature_map.n_weights, graphs, numbers)
    with pytest.raises(ValueError, match=what):
        data.score(np.zeros(feature_map.n_weights), 1)
    with pytest.raises(ValueError, match="must follow all others"):
        data.score(np.zeros(feature_map.n_weights - 1), 1)


@pytest.mark.parametrize("first", [-1, 0, 1, 1 << 40])
def test_slices_of_feature_functions_must_exist(first: int) -> None:
    def make(_: int) -> Any:
        return first, first + 1, None, []

    slices, labels, one = _core.FunctionSlices(1, make, make), np.zeros(2, np.int32), np.ones(1)
    loss = _core.function_loss(slices, np.array([0, 2]), labels, None, None, one, 3, 1)
    with pytest.raises(ValueError, match="a slice must have the lattices of its sequences"):
        Objective(loss).value_and_gradient(np.zeros(3))
    for sequence_ptr in ([], [2], [0, 3, 2]):
        with pytest.raises(ValueError, match="sequence_ptr"):
            _core.function_loss(
                slices, np.array(sequence_ptr, np.int64), labels, None, None, np.ones(2), 3, 1
            )
