"""SGD, AdaGrad and SAG as optimizers: they come near the minimum, repeat themselves, resume, refuse."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import crfkit
from crfkit import CRF, LBFGS, SAG, SGD, AdaGrad, Checkpoint
from crfkit.errors import ArgumentError, UnsupportedError
from crfkit.models import CheckpointMismatchError
from crfkit.objective import Objective
from crfkit.optimizers import DivergenceError, OptimizationError, Snapshot, StopReason, Watch
from crfkit.optimizers.rate_search import search_rate
from tests.models.test_training import data
from tests.optimizers.passes import sgd_pass
from tests.oracles.restricted import Problem

X = [
    [[f"w={w}", f"s={w[-1]}"] for w in words.split()]
    for words in ("the dog runs", "a cat sees the dog", "dogs run")
]
Y = [["D", "N", "V"], ["D", "N", "V", "D", "N"], ["N", "V"]]

OPTIMIZERS: dict[str, Any] = {
    "sgd": SGD(max_iterations=9),
    "averaged": SGD(max_iterations=9, average=True, batch=4),
    "adagrad": AdaGrad(max_iterations=9, batch=2),
    "sag": SAG(max_iterations=9, tolerance=0.0),
}


def problem() -> Objective:
    drawn = Problem(4, n_labels=3, hard=False, soft=False, restrict=True, partial=False)
    return Objective(drawn.map.loss(drawn.dataset, drawn.annotation), l2=0.5)


@pytest.mark.parametrize(
    "optimizer",
    [
        SGD(max_iterations=400, rate=0.3),
        SGD(max_iterations=400, rate=0.05, average=0.5),
        SGD(max_iterations=400, rate=0.2, batch=2),
        AdaGrad(max_iterations=600, rate=1.0),
    ],
    ids=repr,
)
@pytest.mark.parametrize("l1", [0.0, 0.3])
def test_it_comes_near_the_minimum(optimizer: Any, l1: float) -> None:
    X, y = data()
    best = CRF(l1=l1, l2=0.5, optimizer=LBFGS(tolerance=1e-8, change=0.0)).fit(X, y)
    model = CRF(l1=l1, l2=0.5, optimizer=optimizer).fit(X, y)
    there = CRF(l1=l1, l2=0.5, optimizer=LBFGS(max_iterations=0)).fit(X, y, start=model)
    assert there.history_[0].objective == pytest.approx(best.history_[-1].objective, rel=0.002)
    assert np.linalg.norm(model.predict_marginals(X)[0] - best.predict_marginals(X)[0]) < 0.02


@pytest.mark.parametrize(
    "optimizer", [SGD(max_iterations=900, rate=0.1), AdaGrad(max_iterations=300, rate=1.0)], ids=repr
)
def test_l1_leaves_zeros_where_the_slope_is_small(optimizer: Any) -> None:
    """At the minimum |∇loss_d + l2 w_d| ≤ l1 where w_d = 0, and = −l1 sign(w_d) elsewhere."""
    drawn = Problem(4, n_labels=3, hard=False, soft=False, restrict=True, partial=False)
    l1, l2 = 0.25, 0.5
    objective = Objective(
        drawn.map.loss(drawn.dataset, drawn.annotation, single_precision=False), l1=l1, l2=l2
    )
    w = optimizer.minimize(objective, np.zeros(objective.n_weights)).weights
    slope = objective.value_and_gradient(w)[1]
    zero = np.abs(w) < (
        1e-3 if isinstance(optimizer, SGD) else 1e-300
    )  # those touched by the last steps of SGD are not 0
    assert 0.2 < np.mean(zero) < 0.9
    assert np.all(np.abs(slope[zero]) <= l1 + 0.02)
    np.testing.assert_allclose(slope[~zero], -l1 * np.sign(w[~zero]), atol=0.02)


def test_sag_reaches_the_minimum() -> None:
    X, y = data(n=60)
    best = CRF(l2=0.5, optimizer=LBFGS(tolerance=1e-9, change=0.0)).fit(X, y)
    model = CRF(l2=0.5, optimizer=SAG(max_iterations=3000, tolerance=1e-6)).fit(X, y)
    assert model.stop_reason_ == StopReason.CONVERGED
    assert model.history_[-1].objective == pytest.approx(best.history_[-1].objective, rel=1e-8)
    assert model.history_[-1].gradient_norm <= 1e-6 * model.history_[0].gradient_norm
    assert re.search(r"it keeps 0\.\d MB of marginals", model.optimizer_reason_)


def test_sag_believes_the_true_gradient_alone() -> None:
    objective = problem()
    outcome = SAG(max_iterations=2000, tolerance=1e-5).minimize(objective, np.zeros(objective.n_weights))
    gradient = objective.value_and_gradient(outcome.weights)[1]
    assert outcome.converged
    assert outcome.history[-1].gradient_norm == np.linalg.norm(gradient)
    assert outcome.n_evaluations >= 2
    assert outcome.history[-1].passes > len(outcome.history)


def test_sag_takes_a_penalty_beside_which_no_loss_counts() -> None:
    X, y = data()
    model = CRF(l2=1e20, optimizer=SAG(max_iterations=60)).fit(X, y)
    best = CRF(l2=1e20, optimizer=LBFGS(tolerance=1e-9, change=0.0)).fit(X, y)
    assert model.history_[-1].objective == pytest.approx(best.history_[-1].objective, rel=1e-12)
    assert 0 < np.abs(model.weights_).max() < 1e-18


def test_sag_says_what_it_would_keep() -> None:
    with pytest.raises(OptimizationError):
        CRF(optimizer=SAG(memory=100)).fit(X, Y)


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_it_repeats_itself_for_any_number_of_threads(name: str) -> None:
    X, y = data()
    one, two, four = (CRF(optimizer=OPTIMIZERS[name], n_threads=n).fit(X, y) for n in (1, 2, 4))
    assert one.weights_.tobytes() == two.weights_.tobytes() == four.weights_.tobytes()
    assert one.optimizer_reason_ == four.optimizer_reason_


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_it_goes_on_from_a_checkpoint_with_the_same_bits(name: str, tmp_path: Path) -> None:
    X, y = data()
    dev = data(1, 10)
    model = CRF(optimizer=OPTIMIZERS[name], l2=0.1)
    whole = model.fit(X, y, dev=dev)
    weights, history, reason = whole.weights_.copy(), whole.history_, whole.optimizer_reason_
    path = tmp_path / "c"
    model.fit(
        X, y, dev=dev, checkpoint=Checkpoint(path, every=2), callback=lambda progress: progress.iteration == 5
    )
    model.fit(X, y, dev=dev, checkpoint=Checkpoint(path, resume=True))
    assert model.weights_.tobytes() == weights.tobytes()
    assert model.optimizer_reason_ == reason
    np.testing.assert_equal(
        [r._replace(seconds=0.0) for r in model.history_], [r._replace(seconds=0.0) for r in history]
    )


@pytest.mark.parametrize("name", OPTIMIZERS)
@pytest.mark.parametrize("at", [1, 4])
def test_a_snapshot_is_not_changed_by_what_follows(name: str, at: int) -> None:
    snapshots: list[Snapshot] = []
    start = np.zeros(problem().n_weights)
    whole = OPTIMIZERS[name].minimize(problem(), start, watch=Watch(every=at, save=snapshots.append))
    again = OPTIMIZERS[name].minimize(problem(), start, watch=Watch(resume=snapshots[0]))
    assert again.weights.tobytes() == whole.weights.tobytes()
    assert again.note == whole.note


def test_the_schedule_is_part_of_a_checkpoint(tmp_path: Path) -> None:
    path = tmp_path / "c"
    CRF(optimizer=SGD(max_iterations=9)).fit(X, Y, checkpoint=Checkpoint(path, every=2))
    with pytest.raises(
        CheckpointMismatchError, check=lambda error: error.name == "optimizer"
    ):  # the rate falls over all passes
        CRF(optimizer=SGD(max_iterations=10)).fit(X, Y, checkpoint=Checkpoint(path, resume=True))


def test_more_passes_of_adagrad_go_on(tmp_path: Path) -> None:
    path = tmp_path / "c"
    CRF(optimizer=AdaGrad(max_iterations=4)).fit(X, Y, checkpoint=Checkpoint(path, every=1))
    longer = CRF(optimizer=AdaGrad(max_iterations=9)).fit(X, Y, checkpoint=Checkpoint(path, resume=True))
    assert longer.weights_.tobytes() == CRF(optimizer=AdaGrad(max_iterations=9)).fit(X, Y).weights_.tobytes()


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_ctrl_c_keeps_the_last_whole_pass(name: str) -> None:
    class Interrupted:
        def __init__(self) -> None:
            self.objective, self.n_passes = problem(), 0

        def __getattr__(self, name: str) -> Any:
            return getattr(self.objective, name)

    class Stopped(Interrupted):
        def run(self, *args: Any) -> Any:
            self.n_passes += 1
            if self.n_passes == 4:
                raise KeyboardInterrupt
            return self.objective.run(*args)

    optimizer = OPTIMIZERS[name]
    if name != "sag":
        optimizer = type(optimizer)(max_iterations=9, rate=0.1)
    seen: list[Any] = []
    outcome = optimizer.minimize(Stopped(), np.zeros(problem().n_weights), callback=seen.append)
    assert outcome.reason == StopReason.INTERRUPTED
    assert len(seen) == 3
    assert outcome.weights.tobytes() == seen[-1].weights.tobytes()


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_ctrl_c_before_the_first_step_keeps_the_start(name: str) -> None:
    class Stopped:
        objective = problem()

        def __getattr__(self, name: str) -> Any:
            return getattr(self.objective, name)

        def run(self, *args: Any) -> Any:
            raise KeyboardInterrupt

    optimizer = OPTIMIZERS[name]
    if name != "sag":
        optimizer = type(optimizer)(max_iterations=9, rate=0.1)
    start = np.arange(1.0, problem().n_weights + 1)
    outcome = optimizer.minimize(Stopped(), start)
    assert outcome.reason == StopReason.INTERRUPTED
    assert outcome.weights.tobytes() == start.tobytes()


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_dev_score_and_time_budget(name: str) -> None:
    X, y = data()
    model = CRF(optimizer=OPTIMIZERS[name]).fit(X, y, dev=data(1, 10), patience=2)
    assert all(record.dev_score is not None for record in model.history_[1:])
    model.fit(X, y, time_budget=1e-9)
    assert model.stop_reason_ == StopReason.TIME_BUDGET


@pytest.mark.parametrize("name", ["adagrad", "sag", "sgd"])
def test_models_can_be_saved(name: str, tmp_path: Path) -> None:
    model = CRF(optimizer=name).fit(X, Y)
    model.save(tmp_path / "m.crf")
    loaded = crfkit.load(tmp_path / "m.crf")
    assert loaded.predict(X) == model.predict(X)
    assert loaded.optimizer == name


def test_the_mean_of_the_weights_is_kept() -> None:
    """From the second pass on; by hand from passes whose weights are known."""
    objective, optimizer = problem(), SGD(max_iterations=4, rate=0.1, average=True)
    last = optimizer.minimize(objective, np.zeros(objective.n_weights)).weights
    w, total, n = np.zeros(objective.n_weights), np.zeros(objective.n_weights), 0
    for k in range(4):
        order = np.random.default_rng((0, k + 1)).permutation(objective.n_sequences).astype(np.int32)
        for i in order:
            w = sgd_pass(objective, w, np.array([i], np.int32), np.array([0.1]))[1]
            if k > 0:
                total, n = total + w, n + 1
    np.testing.assert_allclose(last, total / n, atol=1e-12)


def test_a_switch_of_numpy_is_a_switch() -> None:
    switches: list[Any] = [True, np.True_]
    one, other = (CRF(optimizer=SGD(max_iterations=4, rate=0.1, average=on)).fit(X, Y) for on in switches)
    assert one.weights_.tobytes() == other.weights_.tobytes()


@pytest.mark.parametrize("kind", [SGD, AdaGrad])
def test_a_batch_of_more_than_all_is_all(kind: Any) -> None:
    one, other = (
        CRF(optimizer=kind(max_iterations=3, rate=0.1, batch=batch)).fit(X, Y) for batch in (len(X), 2**70)
    )
    assert one.weights_.tobytes() == other.weights_.tobytes()


def test_the_rate_is_searched_for() -> None:
    """Against values by hand: up while it helps, else down; the search counts as passes and is the same each time."""
    objective = problem()
    zero = np.zeros(objective.n_weights)
    n = objective.n_sequences
    for best in (0.0625, 0.1, 0.8):
        tried: list[float] = []

        def run(rate: float, order: Any, best: float = best, tried: list[float] = tried) -> Any:
            tried.append(rate)
            return np.full(len(zero), 100.0 * abs(np.log2(rate / best)))

        found = search_rate(objective, run, 0.1, 0)
        assert found.rate == tried[int(np.argmin([abs(np.log2(rate / best)) for rate in tried]))]
        assert found.passes == 2 * len(tried)
        assert f"of {len(tried)} on {n} sequences" in found.note
    first, second = (SGD(max_iterations=2).minimize(objective, zero) for _ in range(2))
    assert first.note == second.note
    assert first.history[0].passes >= 6
    assert first.history[2].passes == first.history[0].passes + 2


def test_rates_that_lead_nowhere_lose() -> None:
    objective = problem()
    assert (
        search_rate(objective, lambda rate, order: np.full(objective.n_weights, np.nan), 0.1, 0).rate == 0.1
    )


@pytest.mark.parametrize(
    ("kind", "settings", "words"),
    [
        (SGD, {"rate": 0.0}, 'SGD got rate=0.0, expected a positive number or "auto"'),
        (SGD, {"rate": "high"}, "SGD got rate='high'"),
        (SGD, {"rate": True}, "SGD got rate=True"),
        (SGD, {"batch": 0}, "SGD got batch=0, expected a whole number of at least 1"),
        (SGD, {"average": 1.0}, "SGD got average=1.0, expected True, False or a number between 0 and 1"),
        (SGD, {"average": 2}, "SGD got average=2"),
        (SGD, {"max_iterations": -1}, "max_iterations=-1"),
        (AdaGrad, {"rate": -1.0}, "AdaGrad got rate=-1.0"),
        (AdaGrad, {"batch": 1.5}, "AdaGrad got batch=1.5"),
        (SAG, {"tolerance": -1.0}, "SAG got tolerance=-1.0"),
        (SAG, {"memory": -1}, "SAG got memory=-1"),
    ],
)
def test_bad_settings(kind: Any, settings: dict[str, Any], words: str) -> None:
    with pytest.raises(ArgumentError, match=re.escape(words)):
        kind(**settings)


def test_what_it_cannot_do_is_refused_with_a_message() -> None:
    with pytest.raises(UnsupportedError, match="l1"):
        CRF(l1=0.1, optimizer="sag").fit(X, Y)
    with pytest.raises(DivergenceError, match="expected a rate below 1e"):
        CRF(l2=0.0, optimizer=SGD(rate=1e308)).fit(X, Y)


def test_weights_that_new_data_has_no_say_in_stay() -> None:
    model = CRF(optimizer=SGD(max_iterations=3, rate=0.1)).fit(X, Y)
    names = {f: i for i, f in enumerate(model._model.potentials.encoder.vocabulary.names())}
    before = model.weights_[model.feature_map_.pair_ptr[names["w=cat"]]]
    model.partial_fit([[["w=dog"], ["w=new"]]], [["N", "V"]])
    names = {f: i for i, f in enumerate(model._model.potentials.encoder.vocabulary.names())}
    assert model.weights_[model.feature_map_.pair_ptr[names["w=cat"]]] == before


def test_a_file_in_single_precision_is_shorter_and_answers_the_same(tmp_path: Path) -> None:
    X = [[[f"w{i}", f"v{i % 7}"] for i in range(k, k + 9)] for k in range(0, 900, 9)]
    model = CRF().fit(X, [["A", "B", "C"] * 3 for _ in X])
    model.save(tmp_path / "double.crf")
    model.save(tmp_path / "single.crf", single_precision=True)
    single = crfkit.load(tmp_path / "single.crf")
    assert single.predict(X) == model.predict(X)
    np.testing.assert_allclose(single.weights_, model.weights_, rtol=1e-6)
    assert not np.array_equal(single.weights_, model.weights_)
    sizes = [(tmp_path / name).stat().st_size for name in ("single.crf", "double.crf")]
    assert sizes[0] < sizes[1] - 3 * len(model.weights_)
