"""Steps along single sequences against the same steps written out plainly, for every kind of data set."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from crfkit import _core
from crfkit.features import Annotation, Dataset, FeatureMap
from crfkit.features.dataset import FeatureList
from crfkit.objective import Objective
from crfkit.structures import AllowedLabels, Chain
from tests.optimizers.passes import adagrad_pass, sgd_pass
from tests.oracles import stochastic_reference as reference
from tests.oracles.restricted import KINDS, Problem

Float64s = npt.NDArray[np.float64]
PENALTIES = [
    pytest.param(0.0, 0.3, id="l2"),
    pytest.param(0.4, 0.0, id="l1"),
    pytest.param(0.4, 0.3, id="both"),
    pytest.param("each", "each", id="each"),
]
FEW: list[dict[str, Any]] = [kind for kind in KINDS if kind["n_labels"] < 5][::3]


def name_of(kind: dict[str, Any]) -> str:
    return "-".join(f"{key}={value}" for key, value in kind.items())


def strengths(problem: Problem, l1: Any, l2: Any) -> tuple[Any, Any]:
    """The same for all weights, or one of few for each."""
    rng = np.random.default_rng(8)
    if l1 == "each":
        l1 = rng.choice([0.0, 0.2, 0.9], problem.map.n_weights)
        l2 = rng.choice([0.0, 0.5, 1.5], problem.map.n_weights)
    return l1, l2


def objective_of(problem: Problem, l1: Any = 0.0, l2: Any = 0.3, n_threads: int = 1) -> Objective:
    return Objective(
        problem.map.loss(
            problem.dataset,
            problem.annotation,
            sample_weight=problem.sample_weight,
            single_precision=False,
            n_threads=n_threads,
        ),
        l1=l1,
        l2=l2,
    )


def order_of(n: int, passes: int = 3) -> npt.NDArray[np.int32]:
    rng = np.random.default_rng(5)
    return np.concatenate([rng.permutation(n) for _ in range(passes)]).astype(np.int32)


def check_sgd(problem: Problem, l1: Any, l2: Any, batch: int) -> None:
    loss = reference.enumerated(problem)
    n = len(problem.lengths)
    order = order_of(n)
    rates = np.linspace(0.3, 0.1, -(-len(order) // batch))
    expected = reference.sgd(loss, n, problem.w, order, rates, l1=l1, l2=l2, batch=batch)
    objective = objective_of(problem, l1, l2)
    value, weights, total = sgd_pass(
        objective, problem.w, order, rates, batch=batch, total=np.zeros(len(problem.w))
    )
    np.testing.assert_allclose(value, expected.loss, rtol=1e-10)
    np.testing.assert_allclose(weights, expected.weights, atol=1e-10)
    assert total is not None
    np.testing.assert_allclose(total, expected.total, atol=1e-9)
    plain = sgd_pass(objective, problem.w, order, rates, batch=batch)
    np.testing.assert_allclose(plain[1], expected.weights, atol=1e-10)
    assert np.array_equal(weights == 0, expected.weights == 0)
    assert plain[2] is None


@pytest.mark.parametrize("kind", KINDS, ids=name_of)
def test_sgd_on_every_kind_of_data(kind: dict[str, Any]) -> None:
    check_sgd(Problem(4, **kind), 0.2, 0.3, 1)


@pytest.mark.parametrize(("l1", "l2"), PENALTIES)
@pytest.mark.parametrize("batch", [1, 4])
@pytest.mark.parametrize("kind", FEW, ids=name_of)
def test_sgd_with_every_penalty(kind: dict[str, Any], l1: Any, l2: Any, batch: int) -> None:
    problem = Problem(7, **kind)
    check_sgd(problem, *strengths(problem, l1, l2), batch)


def test_sgd_with_a_penalty_so_strong_that_factors_underflow() -> None:
    problem = Problem(7, **FEW[0])
    check_sgd(problem, 0.0, 1e5, 1)
    check_sgd(problem, 0.1, 1e5, 2)


@pytest.mark.parametrize("l1", [0.0, 0.05])
def test_the_sum_of_many_iterates_keeps_its_digits(l1: float) -> None:
    problem = Problem(7, **FEW[0])
    n = len(problem.lengths)
    order = order_of(n, 400)
    rates = np.full(len(order), 0.05)
    loss = reference.enumerated(problem)
    expected = reference.sgd(loss, n, problem.w, order, rates, l1=l1, l2=2.0, batch=1)
    zero = np.zeros(len(problem.w))
    total = sgd_pass(objective_of(problem, l1, 2.0), problem.w, order, rates, total=zero)[2]
    assert total is not None
    np.testing.assert_allclose(total / len(order), expected.total / len(order), rtol=0, atol=1e-13)


def test_steps_along_more_sequences_than_are_open_at_a_time() -> None:
    problem = Problem(7, **FEW[1])
    n, rate, batch = len(problem.lengths), 0.02, 150
    order, loss = order_of(n, 40), reference.enumerated(problem)
    rates = np.full(-(-len(order) // batch), rate)
    l1, l2 = 0.2, 0.3
    expected = reference.sgd(loss, n, problem.w, order, rates, l1=l1, l2=l2, batch=batch)
    objective = objective_of(problem, l1, l2)
    value, weights, _ = sgd_pass(objective, problem.w, order, rates, batch=batch)
    assert value == pytest.approx(expected.loss, rel=1e-10)
    np.testing.assert_allclose(weights, expected.weights, atol=1e-10)
    losses, leader = reference.adagrad(loss, n, problem.w, [order], rate, l1=l1, l2=l2, batch=batch)
    z, root = -problem.w / rate, np.ones(len(problem.w))
    value, weights, _, _ = adagrad_pass(objective, z, root, order, rate, 0.0, batch=batch)
    assert value == pytest.approx(losses[0], rel=1e-10)
    np.testing.assert_allclose(weights, leader, atol=1e-10)


MEMORY = """
import resource
import sys
import numpy as np
from tests.optimizers.passes import adagrad_pass, sgd_pass
from tests.oracles.restricted import Problem
from tests.optimizers.test_stochastic import objective_of

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024

problem = Problem(4, n_labels=20, hard=False, soft=False, restrict=False, partial=False)
objective = objective_of(problem, 0.0, np.arange(problem.map.n_weights) % 250 / 250)
n = 100_000
order = np.zeros(n, np.int32)
batch = int(sys.argv[1])
before = peak()
sgd_pass(objective, problem.w, order, np.full(-(-n // batch), 1e-6), batch=batch, total=np.zeros(len(problem.w)))
if batch > 1:
    adagrad_pass(objective, problem.w, np.ones(len(problem.w)), order, 1e-3, 0.0, batch=batch)
print(peak() - before)
"""


@pytest.mark.parametrize("batch", [1, 100_000])
def test_memory_grows_with_neither_steps_nor_batch(batch: int) -> None:
    command = [sys.executable, "-c", MEMORY, str(batch)]
    done = subprocess.run(command, cwd=Path(__file__).parents[2], capture_output=True, check=True)
    assert float(done.stdout) < 64  # MB


@pytest.mark.parametrize(("l1", "l2"), PENALTIES)
@pytest.mark.parametrize("batch", [1, 4])
@pytest.mark.parametrize("kind", FEW, ids=name_of)
def test_adagrad(kind: dict[str, Any], l1: Any, l2: Any, batch: int) -> None:
    problem = Problem(7, **kind)
    l1, l2 = strengths(problem, l1, l2)
    n, rate = len(problem.lengths), 0.4
    orders = np.split(order_of(n), 3)
    losses, expected = reference.adagrad(
        reference.enumerated(problem), n, problem.w, orders, rate, l1=l1, l2=l2, batch=batch
    )
    objective = objective_of(problem, l1, l2)
    z, root = -problem.w / rate, np.ones(len(problem.w))
    for passes, order in enumerate(orders):
        value, weights, z, root = adagrad_pass(objective, z, root, order, rate, float(passes), batch=batch)
        assert value == pytest.approx(losses[passes], rel=1e-10)
    np.testing.assert_allclose(weights, expected, atol=1e-10)
    assert np.array_equal(weights == 0, expected == 0)


@pytest.mark.parametrize("l2", [0.3, "each"])
@pytest.mark.parametrize("kind", FEW, ids=name_of)
def test_sag(kind: dict[str, Any], l2: Any) -> None:
    problem = Problem(7, **kind)
    _, l2 = strengths(problem, "each" if l2 == "each" else 0.0, l2)
    n = len(problem.lengths)
    plain = reference.SAGReference(reference.enumerated(problem), n, problem.w, l2)
    objective = objective_of(problem, 0.0, l2)
    visits = np.zeros(4 * n)
    state = {
        "weights": problem.w.copy(),
        "gradient_sum": np.zeros(len(problem.w)),
        "residuals": np.zeros(objective.n_residuals()),
        "visits": visits,
        "n_losses": np.zeros(1),
    }
    rng = np.random.default_rng(3)
    for k in range(6):
        uniforms = rng.random(2 * n)
        order = rng.permutation(n).astype(np.int32) if k == 0 else np.full(n, -1, np.int32)
        objective.run(_core.SAGRule(uniforms), state, order)
        for step in range(n):
            half, uniform = uniforms[2 * step : 2 * step + 2]
            plain.step(int(order[step]) if k == 0 else plain.drawn(half, uniform))
    np.testing.assert_allclose(visits[0::4], plain.lipschitz, rtol=1e-10)
    np.testing.assert_allclose(visits[1::4], plain.losses, atol=1e-10)
    np.testing.assert_allclose(state["gradient_sum"], plain.gradients.sum(axis=0), atol=1e-10)
    np.testing.assert_allclose(state["weights"], plain.w, atol=1e-10)
    assert state["n_losses"][0] >= 6 * n


class Rich:
    """A data set with features of arcs and dense blocks, some labels unknown; losses come from the batch objective."""

    def __init__(self, seed: int, *, partial: bool, hard: bool) -> None:
        rng = np.random.default_rng(seed)
        L, lengths = 4, np.array([5, 0, 3, 1, 6, 4])
        ptr = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        T, first = int(ptr[-1]), ptr[:-1][lengths > 0]
        positions = np.arange(T)
        arc_counts = np.where(np.isin(positions, first), 0, rng.integers(0, 3, T))
        states = FeatureList(
            np.arange(T + 1) * 2, rng.integers(0, 5, 2 * T).astype(np.int32), rng.random(2 * T)
        )
        arcs = FeatureList(
            np.concatenate([[0], np.cumsum(arc_counts)]).astype(np.int64),
            np.concatenate([rng.permutation(3)[:k] for k in arc_counts]).astype(np.int32),
            None,
        )
        right = rng.integers(0, L, T).astype(np.int32)
        labels = right.copy()
        sets = None
        if partial:
            sets = AllowedLabels.from_sets(
                [{0, 1, int(b)} if t % 3 == 0 else None for t, b in enumerate(right)]
            )
            labels[::3] = -1
        self.dataset = Dataset(
            ptr, states, arcs=arcs, dense={"x": rng.normal(size=(T, 3)), "y": rng.normal(size=(T, 1))}
        )
        self.annotation = Annotation(labels, sets)
        exists = rng.random((L + 1, L + 1)) < 0.6
        exists[-1] = exists[:, -1] = True
        exists[right[:-1], right[1:]] = True
        before, after = (ids.astype(np.int32) for ids in np.nonzero(exists))
        self.map = FeatureMap.build(
            self.dataset,
            self.annotation,
            Chain(),
            n_labels=L,
            n_features=5,
            n_arc_features=3,
            all_possible_states=True,
            bigrams=(before, after) if hard else None,
        )
        self.w = 0.3 * rng.normal(size=self.map.n_weights)
        self.sample_weight = rng.random(len(lengths)) + 0.5

    def objective(self, l1: Any, l2: Any, n_threads: int = 1) -> Objective:
        return Objective(
            self.map.loss(
                self.dataset,
                self.annotation,
                sample_weight=self.sample_weight,
                single_precision=False,
                n_threads=n_threads,
            ),
            l1=l1,
            l2=l2,
        )

    def loss(self, n: int, w: Float64s) -> tuple[float, Float64s]:
        """By the batch objective, which has tests of its own, with all other sequences weighing nothing."""
        weights = np.zeros(len(self.sample_weight))
        weights[n] = self.sample_weight[n]
        alone = Objective(
            self.map.loss(self.dataset, self.annotation, sample_weight=weights, single_precision=False),
            l2=0.0,
        )
        return alone.value_and_gradient(w)


@pytest.mark.parametrize("partial", [False, True])
@pytest.mark.parametrize("hard", [False, True])
@pytest.mark.parametrize("huge", [False, True])
def test_features_of_arcs_and_dense_blocks(partial: bool, hard: bool, huge: bool) -> None:
    problem = Rich(1, partial=partial, hard=hard)
    if huge:  # arcs so far apart that scaled messages would underflow
        begin = problem.map.arcs_begin
        problem.w[begin : begin + 4] = [400.0, -400.0, 300.0, 0.0]
    n = len(problem.sample_weight)
    order, batch = order_of(n, 2), 2
    rates = np.full(-(-len(order) // batch), 0.1)
    expected = reference.sgd(problem.loss, n, problem.w, order, rates, l1=0.1, l2=0.2, batch=batch)
    value, weights, total = sgd_pass(
        problem.objective(0.1, 0.2), problem.w, order, rates, batch=batch, total=np.zeros(len(problem.w))
    )
    assert value == pytest.approx(expected.loss, rel=1e-10)
    np.testing.assert_allclose(weights, expected.weights, atol=1e-9)
    assert total is not None
    np.testing.assert_allclose(total, expected.total, atol=1e-8)


@pytest.mark.parametrize("n_threads", [2, 4])
def test_the_same_bits_for_any_number_of_threads(n_threads: int) -> None:
    problem = Rich(2, partial=True, hard=False)
    order = order_of(6)
    rates = np.full(5, 0.1)
    z, root = -problem.w / 0.3, np.ones(len(problem.w))
    passes = []
    for threads in (1, n_threads):
        objective = problem.objective(0.05, 0.2, threads)
        passes.append(
            (
                sgd_pass(objective, problem.w, order, rates, batch=4, total=np.zeros(len(problem.w))),
                adagrad_pass(objective, z, root, order, 0.3, 0.0, batch=4),
            )
        )
    for one, other in zip(*passes, strict=True):
        assert one[0] == other[0]
        assert all(a.tobytes() == b.tobytes() for a, b in zip(one[1:], other[1:], strict=True))


def test_bad_arrays_are_refused() -> None:
    problem = Problem(4, **FEW[0])
    objective, n = objective_of(problem), len(problem.lengths)
    order = np.arange(n, dtype=np.int32)
    with pytest.raises(ValueError, match="order names sequence 9, expected 0 to 5"):
        sgd_pass(objective, problem.w, np.array([9], np.int32), np.ones(1))
    with pytest.raises(ValueError, match="there are 2 rates, expected 6: one for each step"):
        sgd_pass(objective, problem.w, order, np.ones(2))
    with pytest.raises(ValueError, match=f"weights has 1 numbers, expected {len(problem.w)}"):
        sgd_pass(objective, np.zeros(1), order, np.ones(n))
    with pytest.raises(ValueError, match="batch must be at least 1"):
        sgd_pass(objective, problem.w, order, np.ones(n), batch=0)
    many = Problem(4, **{**FEW[0], "n_labels": 20})
    uneven = objective_of(many, l2=np.random.default_rng(0).random(many.map.n_weights))
    with pytest.raises(ValueError, match="different strengths, expected at most 256"):
        sgd_pass(uneven, many.w, order, np.ones(n))
