"""Stochastic gradient descent: its steps are those of the gradient, and it comes near the minimum."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import crfkit
from crfkit.objective import Objective
from tests.restricted import KINDS, Problem

X = [
    [[f"w={w}", f"s={w[-1]}"] for w in words.split()]
    for words in ("the dog runs", "a cat sees the dog", "dogs run")
]
Y = [["D", "N", "V"], ["D", "N", "V", "D", "N"], ["N", "V"]]


def stochastic(problem: Problem) -> Objective:
    return Objective(
        problem.dataset,
        problem.annotation,
        problem.map,
        l2=0.3,
        sample_weight=problem.sample_weight,
        single_precision=False,
        stochastic=True,
    )


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: "-".join(f"{k}={v}" for k, v in kind.items()))
def test_tiny_steps_along_all_sequences_are_a_step_along_the_gradient(kind: dict[str, int | bool]) -> None:
    problem = Problem(4, **kind)  # type: ignore[arg-type]
    objective = stochastic(problem)
    n, rate = objective.n_sequences, 1e-8
    order = np.arange(n, dtype=np.int32)
    loss, moved = objective.stochastic_pass(problem.w, order, np.full(n, rate))
    value, gradient, _ = problem.expected()
    assert loss + 0.15 * problem.w @ problem.w == pytest.approx(value, rel=1e-6)
    np.testing.assert_allclose((problem.w - moved) / rate, gradient, atol=1e-5)


def test_sgd_comes_near_the_minimum_and_repeats_itself() -> None:
    best = crfkit.CRF(l2=0.5).fit(X, Y)
    model = crfkit.CRF(l2=0.5, optimizer=crfkit.SGD(max_iterations=300, rate=0.3)).fit(X, Y)
    np.testing.assert_allclose(model.weights_, best.weights_, atol=2e-2)
    again = crfkit.CRF(l2=0.5, optimizer=crfkit.SGD(max_iterations=300, rate=0.3)).fit(X, Y)
    assert np.array_equal(model.weights_, again.weights_)
    assert model.history_[-1].objective == pytest.approx(best.history_[-1].objective, rel=0.02)


def test_a_model_trained_by_sgd_can_be_saved(tmp_path: Path) -> None:
    model = crfkit.CRF(optimizer=crfkit.SGD(max_iterations=3)).fit(X, Y)
    model.save(f"{tmp_path}/m.crf")
    assert crfkit.load(f"{tmp_path}/m.crf").predict(X) == model.predict(X)


def test_what_sgd_cannot_do_is_refused_in_words() -> None:
    with pytest.raises(ValueError, match="SGD takes no l1 penalty"):
        crfkit.CRF(l1=0.1, optimizer=crfkit.SGD()).fit(X, Y)
    with pytest.raises(ValueError, match="one l2 for all weights"):
        crfkit.CRF(l2={"arcs": 0.1, "default": 1.0}, optimizer=crfkit.SGD()).fit(X, Y)
    with pytest.raises(ValueError, match="expected a positive number"):
        crfkit.SGD(rate=0.0)
    with pytest.raises(ValueError, match="max_iterations=-1"):
        crfkit.SGD(max_iterations=-1)
    with pytest.raises(ValueError, match="diverged in pass"):
        crfkit.CRF(optimizer=crfkit.SGD(rate=1e200)).fit(X, Y)


def test_a_callback_ends_it() -> None:
    model = crfkit.CRF(optimizer=crfkit.SGD(max_iterations=9)).fit(
        X, Y, callback=lambda step: step.iteration == 2
    )
    assert len(model.history_) == 3
    assert [record.passes for record in model.history_] == [0, 1, 2]


def test_sgd_goes_on_from_a_checkpoint_with_the_same_bits(tmp_path: Path) -> None:
    model = crfkit.CRF(optimizer=crfkit.SGD(max_iterations=9))
    whole = model.fit(X, Y).weights_.copy()
    path = tmp_path / "c"
    model.fit(X, Y, checkpoint=path, every=2, callback=lambda progress: progress.iteration == 5)
    assert model.fit(X, Y, checkpoint=path, resume=True).weights_.tobytes() == whole.tobytes()
    with pytest.raises(crfkit.InputError, match="with optimizer SGD"):  # the rate falls over all passes
        crfkit.CRF(optimizer=crfkit.SGD(max_iterations=10)).fit(X, Y, checkpoint=path, resume=True)


def test_a_file_in_single_precision_is_shorter_and_answers_the_same(tmp_path: Path) -> None:
    X = [[[f"w{i}", f"v{i % 7}"] for i in range(k, k + 9)] for k in range(0, 900, 9)]
    model = crfkit.CRF().fit(X, [["A", "B", "C"] * 3 for _ in X])
    model.save(tmp_path / "double.crf")
    model.save(tmp_path / "single.crf", single_precision=True)
    single = crfkit.load(tmp_path / "single.crf")
    assert single.predict(X) == model.predict(X)
    np.testing.assert_allclose(single.weights_, model.weights_, rtol=1e-6)
    assert not np.array_equal(single.weights_, model.weights_)
    sizes = [(tmp_path / name).stat().st_size for name in ("single.crf", "double.crf")]
    assert sizes[0] < sizes[1] - 3 * len(model.weights_)
