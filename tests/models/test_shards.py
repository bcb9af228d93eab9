"""Training on data that are cut into shards."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from crfkit import CRF, LBFGS, Checkpoint
from crfkit.errors import ArgumentError
from crfkit.models.training.checkpoint import CheckpointMismatchError
from crfkit.models.training.crf_task import CRFTask
from crfkit.models.training.train import Plan
from crfkit.models.training.training_set import Examples
from crfkit.objective import Loss, Objective, add_in_tree, evaluate, hessian_vector, refine, sum_losses
from crfkit.optimizers.stochastic import shuffled
from tests.models.test_every_optimizer import OPTIMIZERS, STRUCTURES, made, of, words

pytestmark = pytest.mark.filterwarnings(
    "ignore::crfkit.models.ConvergenceWarning", "ignore::crfkit.models.UninformativeData"
)
ROWS = [name for name in STRUCTURES if not name.startswith("trees")]
SIZE = 11  # positions of a shard


def encoded(structure: str, shard_size: int) -> Any:
    """The training data of a row in shards."""
    model, found = made(structure, "LBFGS"), of(structure)
    assert isinstance(model, CRF)
    X, y = found.data
    examples = Examples(X, y, np.arange(len(X)) % 3 + 0.5, found.options.get("allowed"))
    return CRFTask(model._settings(), examples, shard_size=shard_size).encode(Plan(), 1)


def objective(structure: str, shard_size: int = SIZE, n_threads: int = 1) -> Objective:
    """What is minimised, in double precision."""
    found: Objective = encoded(structure, shard_size).objective(n_threads, None)
    found.refine()
    return found


@cache
def answers(structure: str, shard_size: int, n_threads: int = 1) -> tuple[Any, ...]:
    """Value, gradient and Hessian–vector product somewhere."""
    asked = objective(structure, shard_size, n_threads)
    w, v = np.random.default_rng(0).normal(size=(2, asked.n_weights))
    return *asked.value_and_gradient(w), asked.hessian_vector(w, v), len(asked.shard_ptr) - 1


@pytest.mark.parametrize("structure", ROWS)
def test_shards_are_the_whole(structure: str) -> None:
    value, gradient, product, n_shards = answers(structure, SIZE)
    assert n_shards > 3
    whole = answers(structure, 10**6)
    assert whole[3] == 1
    assert value == pytest.approx(whole[0], rel=1e-12)
    np.testing.assert_allclose(gradient, whole[1], rtol=1e-12, atol=1e-12 * np.abs(whole[1]).max())
    np.testing.assert_allclose(product, whole[2], rtol=1e-12, atol=1e-12 * np.abs(whole[2]).max())


@pytest.mark.parametrize("structure", ROWS)
def test_the_same_bits_for_any_number_of_threads(structure: str) -> None:
    value, gradient, product, _ = answers(structure, SIZE)
    for n_threads in (2, 3, 4):
        other = answers(structure, SIZE, n_threads)
        assert other[0] == value
        assert np.array_equal(other[1], gradient)
        assert np.array_equal(other[2], product)


@pytest.mark.parametrize("n_shards", [*range(1, 10), 16, 23])
def test_the_order_of_sums_is_that_of_the_tree(n_shards: int) -> None:
    """Plain NumPy on the losses of shards that were made one by one, with numbers whose sum depends on the order."""
    X, y = words(n_shards, 3)
    weight = 10.0 ** (np.random.default_rng(n_shards).integers(-3, 4, n_shards))
    task = CRFTask(CRF(l2=0.0)._settings(), Examples(X, y, weight, None), shard_size=1)
    found = task.encode(Plan(), 1)
    sharded = found.sharded
    assert sharded.n_shards == n_shards
    potentials = found.model.potentials
    parts = [Objective(potentials.shard_loss(*shard, 1), l2=0.0) for shard in sharded.shards()]
    whole = Objective(sharded.loss(potentials, 2), l2=0.0)
    w, v = np.random.default_rng(0).normal(size=(2, whole.n_weights))
    value, gradient = whole.value_and_gradient(w)
    of_parts = [part.value_and_gradient(w) for part in parts]
    assert value == add_in_tree([of_part[0] for of_part in of_parts])
    assert np.array_equal(gradient, add_in_tree([of_part[1] for of_part in of_parts]))
    products = [part.hessian_vector(w, v) for part in parts]
    assert np.array_equal(whole.hessian_vector(w, v), add_in_tree(products))


QUESTIONS = [
    (0, None),
    (1, None),
    (0, 0),
    (0, 1),
    (1, 1),
    (0, 1),
    (0, None),
    (1, 0),
]  # weights, and directions if any


@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize("structure", ROWS)
def test_shards_that_share_memory_answer_as_if_alone(structure: str, exact: bool) -> None:
    """Whatever was asked before, of whichever of them together: tables of weights go from one to the next."""
    data = encoded(structure, SIZE)
    potentials = data.model.potentials
    shards = list(data.sharded.shards(with_inputs=potentials.reads_inputs))[:5]
    w, v = np.random.default_rng(0).normal(size=(2, 2, potentials.n_weights))
    w[1, -2:] += [40.0, -40.0]  # transitions too far apart for single precision, where these are such

    def fresh(shard: Any) -> Loss:
        loss = potentials.shard_loss(*shard, 1, len(shards))
        if exact:
            refine(loss)
        return loss

    def ask(loss: Loss, at: int, along: int | None) -> Any:
        return evaluate(loss, w[at])[1] if along is None else hessian_vector(loss, w[at], v[along])

    alone = {asked: [ask(fresh(shard), *asked) for shard in shards] for asked in QUESTIONS}
    losses = [fresh(shard) for shard in shards]
    for group in ([0, 1, 2, 3, 4], [0, 1], [2, 3, 4], [0, 1, 2, 3, 4], [4, 0, 1]):
        together = sum_losses([losses[i] for i in group])
        for asked in QUESTIONS:
            expected = add_in_tree([alone[asked][i] for i in group])
            assert ask(together, *asked).tobytes() == expected.tobytes()


def test_answers_go_where_the_caller_wants_them() -> None:
    data = encoded("chain", SIZE)
    potentials = data.model.potentials
    loss = data.sharded.loss(potentials, 1)
    w, v, out = np.random.default_rng(0).normal(size=(3, potentials.n_weights))
    value, gradient = evaluate(loss, w)
    assert evaluate(loss, w, out) == (value, out)
    assert out.tobytes() == gradient.tobytes()
    assert hessian_vector(loss, w, v, out) is out
    assert out.tobytes() == hessian_vector(loss, w, v).tobytes()
    with pytest.raises(ValueError, match="gradient has 3 numbers, expected"):
        evaluate(loss, w, out[:3].copy())
    with pytest.raises(TypeError):  # a copy would be filled
        evaluate(loss, w, np.zeros(len(w), np.float32))


def test_the_tree_splits_in_the_middle() -> None:
    parts = (10.0 ** np.array([16, 0, -16, 3, 1, -3, 16])).tolist()
    a, b, c, d, e, f, g = parts
    assert add_in_tree(parts) == ((a + b) + (c + d)) + ((e + f) + g)
    assert add_in_tree(parts[:6]) == ((a + b) + c) + ((d + e) + f)
    assert add_in_tree(parts[:5]) == ((a + b) + c) + (d + e)
    assert add_in_tree(parts[:3]) == (a + b) + c


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_every_optimizer_trains_on_shards(optimizer: str) -> None:
    """A good model, the same one for any number of threads."""
    X, y = of("chain").data
    models = [made("chain", optimizer).set_params(n_threads=n) for n in (1, 2, 4)]
    for model in models:
        model.fit(X, y, shard_size=SIZE)
        assert model.weights_.tobytes() == models[0].weights_.tobytes()
    assert models[0].score(X, y) > 0.6


def test_stochastic_methods_visit_shard_after_shard() -> None:
    asked = objective("chain")
    ptr, order = asked.shard_ptr, shuffled(asked, np.random.default_rng(2))
    assert sorted(order.tolist()) == list(range(asked.n_sequences))
    shards = np.searchsorted(ptr, order, side="right") - 1
    assert np.count_nonzero(np.diff(shards)) == len(ptr) - 2
    assert shards.tolist() != sorted(shards.tolist())
    assert np.any(np.diff(order)[np.diff(shards) == 0] < 0)


def test_a_checkpoint_knows_the_shards(tmp_path: Path) -> None:
    X, y = words(12, 0)
    kept = Checkpoint(tmp_path / "c", every=1, resume=True)
    whole = CRF(optimizer=LBFGS(max_iterations=4)).fit(X, y, shard_size=SIZE)
    CRF(optimizer=LBFGS(max_iterations=2)).fit(X, y, shard_size=SIZE, checkpoint=kept)
    with pytest.raises(CheckpointMismatchError, match="shards"):
        CRF(optimizer=LBFGS(max_iterations=4)).fit(X, y, shard_size=SIZE + 3, checkpoint=kept)
    resumed = CRF(optimizer=LBFGS(max_iterations=4)).fit(X, y, shard_size=SIZE, checkpoint=kept)
    assert resumed.weights_.tobytes() == whole.weights_.tobytes()


@pytest.mark.parametrize("size", [0, -1, 2.5, True])
def test_a_shard_size_that_is_none_is_an_error(size: Any) -> None:
    with pytest.raises(ArgumentError, match="shard_size"):
        CRF().fit([[["a"]]], [["A"]], shard_size=size)
