"""Mistake-driven training: each step against a plain reference that lists every label sequence, and the whole
through `CRF`.
"""

from __future__ import annotations

from itertools import pairwise
from math import isnan, sqrt
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import crfkit
from crfkit.errors import ArgumentError, UnsupportedError
from crfkit.models import CheckpointMismatchError
from crfkit.objective import Objective
from crfkit.optimizers import AROW, AveragedPerceptron, PassiveAggressive, StopReason, Watch
from crfkit.optimizers.online import OnlineLearner
from crfkit.structures import Chain
from tests.optimizers.passes import online_pass, run
from tests.oracles.online_reference import Float64s, Reference, Sequence, every_kind_of_feature, listed
from tests.oracles.restricted import KINDS, Problem

LEARNERS: list[OnlineLearner] = [
    AveragedPerceptron(),
    *(PassiveAggressive(variant=variant, aggressiveness=0.3) for variant in (0, 1, 2)),
    PassiveAggressive(error_sensitive=False, average=False),
    AROW(variance=0.7, gamma=1.4),
]


def check(learner: OnlineLearner, objective: Objective, sequences: list[Sequence], w: Float64s) -> None:
    """Three passes in random order: losses, weights and what is kept beside them."""
    reference = Reference(learner, dict(enumerate(w)))
    rng = np.random.default_rng(1)
    state = learner.first_state(w)
    for _ in range(3):
        order = rng.permutation(len(sequences)).astype(np.int32)
        loss, state = run(objective, learner.rule(), state, order)
        reference.losses = [0.0]
        for n in order:
            reference.see(sequences[n])
        assert loss == pytest.approx(sum(reference.losses), rel=1e-9)
        np.testing.assert_allclose(state["weights"], [reference.w[i] for i in range(len(w))], atol=1e-9)
        assert state["time"][0] == pytest.approx(reference.time - 1)
        if isinstance(learner, AROW):
            expected = [reference.variances[i] for i in range(len(w))]
            np.testing.assert_allclose(state["variances"], expected, rtol=1e-9)
        else:
            np.testing.assert_allclose(learner.learned_weights(state), reference.learned(), atol=1e-9)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: "-".join(f"{k}={v}" for k, v in kind.items()))
def test_every_step_is_that_of_the_reference(kind: dict[str, int | bool]) -> None:
    problem = Problem(4, **kind)  # type: ignore[arg-type]
    problem.sample_weight[2] = 0.0
    objective = Objective(
        problem.map.loss(
            problem.dataset, problem.annotation, sample_weight=problem.sample_weight, single_precision=False
        )
    )
    sequences = listed(problem)
    for learner in LEARNERS:
        check(learner, objective, sequences, problem.w)


def test_features_of_arcs_and_dense_blocks() -> None:
    dataset, annotation, map_, sequences = every_kind_of_feature()
    objective = Objective(map_.loss(dataset, annotation, single_precision=False))
    w = np.random.default_rng(0).normal(size=map_.n_weights)
    for learner in LEARNERS:
        check(learner, objective, sequences, w)


@pytest.mark.parametrize("learner", LEARNERS, ids=repr)
def test_what_is_learned(learner: OnlineLearner) -> None:
    """The mean of the weights over all steps, or the last ones."""
    dataset, annotation, map_, sequences = every_kind_of_feature()
    w = np.random.default_rng(0).normal(size=map_.n_weights)
    reference, orders = Reference(learner, dict(enumerate(w))), np.random.default_rng(learner.random_state)
    for _ in range(learner.max_iterations):
        for n in orders.permutation(len(sequences)):
            reference.see(sequences[n])
    outcome = learner.minimize(Objective(map_.loss(dataset, annotation, single_precision=False)), w)
    np.testing.assert_allclose(outcome.weights, reference.learned(), atol=1e-9)


@pytest.mark.parametrize("learner", LEARNERS, ids=repr)
def test_single_precision_comes_to_the_same_decisions(learner: OnlineLearner) -> None:
    dataset, annotation, map_, _ = every_kind_of_feature()
    w = np.random.default_rng(0).normal(size=map_.n_weights)
    outcomes = [
        learner.minimize(Objective(map_.loss(dataset, annotation, single_precision=single)), w)
        for single in (True, False)
    ]
    assert np.array_equal(outcomes[0].weights, outcomes[1].weights)
    assert not np.array_equal(outcomes[0].weights, w)


def test_the_step_of_variant_0_puts_the_mistake_right_with_its_margin() -> None:
    dataset, annotation, map_, sequences = every_kind_of_feature()
    objective = Objective(map_.loss(dataset, annotation, single_precision=False))
    w = np.random.default_rng(0).normal(size=map_.n_weights)
    learner = PassiveAggressive(variant=0)
    for n in (0, 1, 2, 4):
        moved = online_pass(objective, learner, w, np.array([n], np.int32))[1]["weights"]
        scores = [sum(float(w[i]) * x for i, x in phi.items()) for phi in sequences[n].counts]
        best, right = int(np.argmax(scores)), sequences[n].admitted.index(True)
        after = [sum(moved[i] * x for i, x in sequences[n].counts[k].items()) for k in (right, best)]
        pair = zip(sequences[n].label_sequences[right], sequences[n].label_sequences[best], strict=True)
        assert after[0] - after[1] == pytest.approx(sqrt(sum(a != b for a, b in pair)))


X = [
    [[f"w={w}", f"s={w[-1]}"] for w in words.split()]
    for words in ("the dog runs", "a cat sees the dog", "dogs run", "she sees a bird", "birds sing and fly")
]
Y = [list("DNV"), list("DNVDN"), list("NV"), list("PVDN"), list("NVCV")]
NOISY = [*Y[:-1], list("VNVN")]
NAMES: dict[str, type[OnlineLearner]] = {
    "averaged_perceptron": AveragedPerceptron,
    "ap": AveragedPerceptron,
    "passive_aggressive": PassiveAggressive,
    "pa": PassiveAggressive,
    "arow": AROW,
}


@pytest.mark.parametrize("name", NAMES)
def test_a_separable_problem_ends_without_mistakes(name: str) -> None:
    model = crfkit.CRF(optimizer=name).fit(X, Y)
    assert type(model.optimizer_) is NAMES[name]
    assert model.predict(X) == Y
    assert isnan(model.history_[0].objective)
    assert model.history_[-1].objective == 0
    assert all(isnan(record.gradient_norm) for record in model.history_)
    assert [record.passes for record in model.history_] == list(range(11))


@pytest.mark.parametrize("learner", LEARNERS, ids=repr)
def test_the_same_seed_gives_the_same_bits(learner: OnlineLearner) -> None:
    models = [crfkit.CRF(optimizer=learner, n_threads=n).fit(X, Y) for n in (1, 2)]
    assert models[0].weights_.tobytes() == models[1].weights_.tobytes()
    other = type(learner)(max_iterations=1, random_state=5)
    again = type(learner)(max_iterations=1, random_state=6)
    orders = [crfkit.CRF(optimizer=o).fit(X, Y).weights_.tobytes() for o in (other, again)]
    assert orders[0] != orders[1]


@pytest.mark.parametrize("learner", LEARNERS, ids=repr)
def test_a_checkpoint_leads_to_the_same_bits(learner: OnlineLearner, tmp_path: Path) -> None:
    model = crfkit.CRF(optimizer=learner)
    fit: dict[str, Any] = {"dev": (X, Y)}
    whole = model.fit(X * 3, NOISY + Y * 2, **fit)
    weights, history = whole.weights_.copy(), whole.history_
    path = tmp_path / "c"
    model.fit(
        X * 3,
        NOISY + Y * 2,
        **fit,
        checkpoint=crfkit.Checkpoint(path, every=2),
        callback=lambda progress: progress.iteration == 5,
    )
    model.fit(X * 3, NOISY + Y * 2, **fit, checkpoint=crfkit.Checkpoint(path, resume=True))
    assert model.weights_.tobytes() == weights.tobytes()
    np.testing.assert_equal(model.history_.to_array()[:, 2:], history.to_array()[:, 2:])


def test_more_passes_go_on_where_fewer_ended(tmp_path: Path) -> None:
    path = tmp_path / "c"
    data: Any = (X * 2, [*Y, *NOISY])
    crfkit.CRF(optimizer=AveragedPerceptron(max_iterations=2)).fit(
        *data, checkpoint=crfkit.Checkpoint(path, every=1)
    )
    longer = crfkit.CRF(optimizer=AveragedPerceptron(max_iterations=4))
    resumed = longer.fit(*data, checkpoint=crfkit.Checkpoint(path, resume=True)).weights_.tobytes()
    assert resumed == longer.fit(*data).weights_.tobytes()
    with pytest.raises(CheckpointMismatchError, check=lambda error: error.name == "optimizer"):
        crfkit.CRF(optimizer=AveragedPerceptron(random_state=1)).fit(
            *data, checkpoint=crfkit.Checkpoint(path, resume=True)
        )


def test_patience_a_budget_and_a_callback_end_it() -> None:
    model = crfkit.CRF(optimizer=AROW(max_iterations=50)).fit(X, Y, dev=(X, Y), patience=3)
    assert model.stop_reason_ == StopReason.NO_IMPROVEMENT
    assert len(model.history_) == model.n_iter_ + 4
    assert crfkit.CRF(optimizer="pa").fit(X, Y, time_budget=1e-9).n_iter_ == 0
    model.fit(X, Y, callback=lambda progress: progress.iteration == 2)
    assert model.n_iter_ == 2


def test_ctrl_c_keeps_the_last_whole_pass() -> None:
    dataset, annotation, map_, _ = every_kind_of_feature()

    class Interrupted(Objective):
        n_passes = 0

        def run(self, *args: Any) -> Any:
            self.n_passes += 1
            if self.n_passes == 3:
                raise KeyboardInterrupt
            return super().run(*args)

    start = np.zeros(map_.n_weights)
    outcome = AveragedPerceptron().minimize(Interrupted(map_.loss(dataset, annotation)), start)
    two = AveragedPerceptron(max_iterations=2).minimize(Objective(map_.loss(dataset, annotation)), start)
    assert outcome.reason == StopReason.INTERRUPTED
    assert np.array_equal(outcome.weights, two.weights)


def test_a_sequence_that_weighs_nothing_is_as_good_as_absent() -> None:
    dataset, annotation, map_, _ = every_kind_of_feature()
    weights = np.array([1.0, 0.0, 2.0, 1.0, 0.0])
    objective = Objective(map_.loss(dataset, annotation, sample_weight=weights))
    w, order = np.zeros(map_.n_weights), np.arange(5, dtype=np.int32)
    for learner in LEARNERS:
        some, rest = (online_pass(objective, learner, w, chosen) for chosen in (order, order[weights > 0]))
        assert some[0] == rest[0]
        for name, array in some[1].items():
            np.testing.assert_array_equal(array, rest[1][name])


@pytest.mark.parametrize("name", ["ap", "pa", "arow"])
def test_predictions_obey_the_bigrams_in_training_and_after(name: str) -> None:
    words = [[["w=a"], ["w=b"], ["w=c"]], [["w=c"], ["w=b"]], [["w=b"], ["w=a"], ["w=a"]]]
    tags = [["B-X", "I-X", "O"], ["O", "B-X"], ["B-X", "I-X", "I-X"]]
    chain = Chain(bigrams="observed")
    model = crfkit.CRF(structure=chain, optimizer=name).fit(words, tags)
    exists = {pair for y in tags for pair in pairwise(y)}
    for y in model.predict([[["w=a"], ["w=c"], ["w=b"], ["w=b"]], *words]):
        assert set(pairwise(y)) <= exists
    assert model.predict(words) == tags


@pytest.mark.parametrize("name", ["ap", "pa", "arow"])
def test_unknown_labels_take_the_best_that_agree(name: str) -> None:
    partial = [list(y) for y in Y]
    partial[0][1] = partial[1][4] = None  # type: ignore[call-overload]
    partial[3][1] = {"V", "N"}  # type: ignore[call-overload]
    model = crfkit.CRF(optimizer=name).fit(X, partial)
    assert model.history_[-1].objective == 0
    for gold, found in zip(partial, model.predict(X), strict=True):
        for label, b in zip(gold, found, strict=True):
            assert label is None or str(b) in label


def test_facets_and_a_tag_dictionary() -> None:
    words = [
        [(w,) for w in ["the", "dog", "sees", "the", "cats"]],
        [(w,) for w in ["dogs", "see", "a", "cat"]],
    ]
    tags = [["d-", "ns", "vs", "d-", "np"], ["np", "vp", "d-", "ns"]]
    for name in ("ap", "pa", "arow"):
        model = crfkit.CRF(
            features="pos",
            facets="characters",
            tag_dictionary=True,
            optimizer=name,
        ).fit(words, tags)
        assert model.predict(words) == tags


def test_the_settings_are_in_the_model_file(tmp_path: Path) -> None:
    learners: list[Any] = [*LEARNERS, "ap"]
    for learner in learners:
        crfkit.CRF(optimizer=learner).fit(X, Y).save(tmp_path / "m.crf")
        assert crfkit.load(tmp_path / "m.crf").get_params()["optimizer"] == learner


def test_l2_is_ignored() -> None:
    plain = crfkit.CRF(optimizer="ap", l2=0.0).fit(X, Y).weights_
    for l2 in (7.0, {"transitions": 0.1, "default": 1.0}):
        assert np.array_equal(crfkit.CRF(optimizer="ap", l2=l2).fit(X, Y).weights_, plain)


def test_training_goes_on_from_a_model() -> None:
    first = crfkit.CRF(optimizer=AROW(max_iterations=3)).fit(X, Y)
    again = crfkit.CRF(optimizer=AROW(max_iterations=1)).fit(X, Y, start=first)
    assert again.history_[-1].objective == 0
    grown = crfkit.CRF(optimizer="pa").fit(X[:3], Y[:3]).partial_fit(X[3:], Y[3:])
    assert grown.predict(X[3:]) == Y[3:]


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: AveragedPerceptron(max_iterations=-1), "max_iterations"),
        (lambda: AROW(random_state=0.5), "random_state"),  # type: ignore[arg-type]
        (lambda: PassiveAggressive(variant=3), "variant"),
        (lambda: PassiveAggressive(variant=True), "variant"),
        (lambda: PassiveAggressive(aggressiveness=0.0), "aggressiveness"),
        (lambda: PassiveAggressive(average=1), "average"),  # type: ignore[arg-type]
        (lambda: AROW(variance=float("inf")), "variance"),
        (lambda: AROW(gamma=-1.0), "gamma"),
    ],
)
def test_bad_settings_are_refused(make: Any, words: str) -> None:
    with pytest.raises(ArgumentError, match=words):
        make()


def test_l1_is_refused() -> None:
    with pytest.raises(UnsupportedError, match="l1"):
        crfkit.CRF(l1=0.1, optimizer="ap").fit(X, Y)
    dataset, annotation, map_, _ = every_kind_of_feature()
    with pytest.raises(UnsupportedError):
        AROW().minimize(Objective(map_.loss(dataset, annotation), l1=0.5), np.zeros(map_.n_weights))


def test_what_does_not_fit_the_data_is_refused() -> None:
    dataset, annotation, map_, _ = every_kind_of_feature()
    objective = Objective(map_.loss(dataset, annotation))
    w = np.zeros(map_.n_weights)
    order = np.zeros(1, np.int32)
    arow, perceptron = AROW(), AveragedPerceptron()
    with pytest.raises(ValueError, match="order names sequence 5, expected 0 to 4"):
        online_pass(objective, arow, w, order + 5)
    with pytest.raises(ValueError, match="the state has no array variances"):
        run(objective, arow.rule(), perceptron.first_state(w), order)
    with pytest.raises(ValueError, match=f"variances has 3 numbers, expected {len(w)}"):
        run(objective, arow.rule(), {**arow.first_state(w), "variances": w[:3]}, order)
    with pytest.raises(ValueError, match=f"weights has 3 numbers, expected {len(w)}"):
        online_pass(objective, perceptron, w[:3], order)
    with pytest.raises(TypeError):  # arrays that would have to be copied cannot be changed in place
        run(objective, perceptron.rule(), {"weights": w.astype(np.float32), "time": np.zeros(1)}, order)
    with pytest.raises(OverflowError, match="left the range of numbers"):
        online_pass(objective, perceptron, w + 1e300, order)
    assert np.isfinite(online_pass(objective, perceptron, w, order)[0])


def test_a_watch_sees_the_weights_that_are_learned() -> None:
    dataset, annotation, map_, _ = every_kind_of_feature()
    seen: list[Float64s] = []

    def score(w: Float64s) -> float:
        seen.append(w.copy())
        return 1.0

    outcome = AveragedPerceptron(max_iterations=3).minimize(
        Objective(map_.loss(dataset, annotation)), np.zeros(map_.n_weights), watch=Watch(score=score)
    )
    assert np.array_equal(seen[-1], outcome.weights)
    assert outcome.best is not None
    assert outcome.best.iteration == 1
