"""Dropout of features in SGD and AdaGrad, against the same steps written out plainly."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from crfkit import CRF, SAG, SGD, AdaGrad, Checkpoint, Patterns, Segments, _core
from crfkit.errors import ArgumentError, UnsupportedError
from crfkit.models.potentials import FeaturePotentials
from crfkit.objective import Objective
from tests.models.test_costs import corpus
from tests.optimizers.passes import run
from tests.optimizers.test_stochastic import FEW, name_of, objective_of, order_of
from tests.oracles import stochastic_reference as reference
from tests.oracles.restricted import KINDS, Problem

RATE, SEED = 0.4, 12345678901234567


def features_of(problem: Problem) -> npt.NDArray[np.int32]:
    """The feature of each weight; transitions have none."""
    found = np.full(problem.map.n_weights, -1, np.int32)
    for f in range(len(problem.map.pair_ptr) - 1):
        found[problem.map.pair_ptr[f] : problem.map.pair_ptr[f + 1]] = f
    return found


def noisy_objective(problem: Problem, n_threads: int = 1) -> Objective:
    objective = objective_of(problem, 0.2, 0.3, n_threads)
    objective.features = lambda: features_of(problem)
    return objective


@pytest.mark.parametrize("batch", [1, 4])
@pytest.mark.parametrize("kind", [*KINDS[::4], *FEW], ids=name_of)
def test_sgd_and_adagrad_are_the_plain_steps(kind: dict[str, Any], batch: int) -> None:
    problem = Problem(4, **kind)
    n, features = len(problem.lengths), features_of(problem)
    loss = reference.dropped(reference.enumerated(problem), features, RATE, SEED)
    order = order_of(n)
    rates = np.linspace(0.3, 0.1, -(-len(order) // batch))
    expected = reference.sgd(loss, n, problem.w, order, rates, l1=0.2, l2=0.3, batch=batch)
    objective, state = noisy_objective(problem), {"weights": problem.w}
    value, after = run(objective, _core.SGDRule(rates, batch), state, order, dropout=(RATE, SEED))
    assert value == pytest.approx(expected.loss, rel=1e-10)
    np.testing.assert_allclose(after["weights"], expected.weights, rtol=0, atol=1e-10)
    losses, weights = reference.adagrad(loss, n, problem.w, [order], 0.5, l1=0.2, l2=0.3, batch=batch)
    root = np.ones(len(problem.w))
    state |= {"z": -problem.w / 0.5, "root": root}
    value, after = run(objective, _core.AdaGradRule(0.5, 0.0, batch), state, order, dropout=(RATE, SEED))
    assert value == pytest.approx(losses[0], rel=1e-10)
    np.testing.assert_allclose(after["weights"], weights, rtol=0, atol=1e-10)


def test_the_share_of_features_that_is_dropped() -> None:
    """Of the reference, which the test above compares; each of sequence, feature and seed matters."""
    every = np.arange(500, dtype=np.int32)
    found = np.array([reference.factors(every, n, RATE, SEED) for n in range(40)])
    assert np.mean(found == 0) == pytest.approx(RATE, abs=0.01)
    assert np.mean(found) == pytest.approx(1.0, abs=0.02)
    assert np.abs(np.corrcoef(found) - np.eye(40)).max() < 0.25
    assert not np.array_equal(found[0], reference.factors(every, 0, RATE, SEED + 1000))


@pytest.mark.parametrize("structure", [None, Patterns(["B-PER I-PER O"]), Segments()])
@pytest.mark.parametrize(
    "optimizer", [SGD(5, rate=0.1, batch=4, dropout=0.3), AdaGrad(5, rate=0.5, dropout=0.3)]
)
def test_the_same_bits_for_any_number_of_threads_and_after_a_resume(
    structure: Any, optimizer: Any, tmp_path: Path
) -> None:
    X, y = corpus()
    settings = {"optimizer": optimizer} | ({} if structure is None else {"structure": structure})
    one, four = (CRF(**settings, n_threads=n).fit(X, y).weights_ for n in (1, 4))
    assert np.array_equal(one, four)
    path = tmp_path / "run"
    CRF(**settings).fit(X, y, checkpoint=Checkpoint(path, every=1), callback=lambda step: step.iteration == 2)
    resumed = CRF(**settings).fit(X, y, checkpoint=Checkpoint(path, resume=True)).weights_
    assert np.array_equal(resumed, one)
    assert not np.array_equal(one, CRF(**settings).set_params(optimizer__dropout=0.0).fit(X, y).weights_)
    assert not np.array_equal(one, CRF(**settings).set_params(optimizer__random_state=1).fit(X, y).weights_)


def test_passes_drop_different_features() -> None:
    """A feature that is alone would be dropped for good otherwise."""
    X, y = [[["a"]], [["b"]]] * 30, [["A"], ["B"]] * 30
    crf = CRF(optimizer=SGD(20, rate=0.1, dropout=0.9), l2=1e-6).fit(X, y)
    assert crf.predict(X[:2]) == y[:2]


def test_which_weights_are_those_of_a_feature() -> None:
    """Features of positions and of transitions, and columns of dense blocks; not transitions."""
    X = [[{"w": "a", "v": np.array([1.0, 2.0])}, {"w": "b", "v": np.array([0.5, 1.0])}]]
    potentials: FeaturePotentials = CRF(optimizer=SGD(1)).fit(X, [["A", "B"]])._model.potentials
    map_, found = potentials.feature_map, potentials.number_features()
    assert len(found) == potentials.n_weights
    assert found[: map_.n_pairs].tolist() == features_of_map(map_)
    columns = found[map_.n_pairs : map_.arcs_begin].reshape(2, map_.n_labels)
    assert (columns == columns[:, :1]).all()
    assert len({*columns[:, 0].tolist(), *found[: map_.n_pairs].tolist()}) == 2 + len(map_.pair_ptr) - 1
    assert (found[map_.arcs_begin :] == -1).all()


def features_of_map(map_: Any) -> list[int]:
    return [
        f
        for f, (a, b) in enumerate(zip(map_.pair_ptr[:-1], map_.pair_ptr[1:], strict=True))
        for _ in range(b - a)
    ]


@pytest.mark.parametrize("dropout", [-0.1, 1.0, float("nan"), "0.5", True, None])
def test_what_is_no_dropout(dropout: Any) -> None:
    for kind in (SGD, AdaGrad):
        with pytest.raises(
            ArgumentError, match=f"{kind.__name__} got dropout=.*, expected a number from 0 on"
        ):
            kind(dropout=dropout)


def test_what_has_no_dropout() -> None:
    with pytest.raises(TypeError):
        SAG(dropout=0.5)  # type: ignore[call-arg]
    problem = Problem(4, **FEW[0])
    with pytest.raises(UnsupportedError, match="does not know which weights are those of one feature"):
        SGD(1, rate=0.1, dropout=0.5).minimize(objective_of(problem), problem.w)
    objective = noisy_objective(problem)
    objective.features = lambda: np.zeros(1, np.int32)
    with pytest.raises(ValueError, match="features of weights, expected"):
        SGD(1, rate=0.1, dropout=0.5).minimize(objective, problem.w)
