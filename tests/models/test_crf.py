"""The estimator: what it learns, from what input and with which parameters."""

from __future__ import annotations

import copy
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import crfkit
from crfkit import CRF, Chain, InputError, Template
from crfkit.models import UninformativeData, heaviest_features, transition_weights
from tests.models.small_corpus import EXACT, Sequences, corpus


def test_it_learns_and_predicts_the_users_own_labels(trained: CRF) -> None:
    X, y = corpus(seed=1)
    predicted = trained.predict(X)
    assert [len(labels) for labels in predicted] == [len(x) for x in X]
    assert all(type(labels) is list for labels in predicted)
    assert trained.classes_ == ["D", "N", "V"]
    assert {label for labels in predicted for label in labels} == set(trained.classes_)
    assert trained.score(X, y) > 0.9


@pytest.mark.parametrize(
    "labels",
    [(0, 1, 2), ("a", "b", "c"), ((1, "x"), (2, "y"), (3, "z")), (0.5, 1.5, 2.5), (0, "O", (1,))],
)
def test_labels_may_be_any_hashable_objects(labels: tuple[Any, ...], tmp_path: Path) -> None:
    X, y = corpus()
    named = [[labels["DNV".index(label)] for label in sequence] for sequence in y]
    crf = CRF().fit(X, named)
    assert set(crf.classes_) == set(labels)
    crf.save(tmp_path / "m.crf")
    loaded = crfkit.load(tmp_path / "m.crf")
    assert loaded.classes_ == crf.classes_
    assert loaded.predict(X) == crf.predict(X)
    assert crf.score(X, named) > 0.9


def test_the_history_records_a_falling_objective(trained: CRF) -> None:
    first, *_, last = trained.history_
    assert first.iteration == 0
    assert last.iteration == trained.n_iter_ == len(trained.history_) - 1
    assert last.objective < first.objective
    assert last.gradient_norm < first.gradient_norm
    assert 0 <= first.seconds <= last.seconds


def test_at_the_start_every_label_sequence_is_equally_probable() -> None:
    X, y = corpus()
    history = CRF().fit(X, y).history_
    assert history[0].objective == pytest.approx(sum(map(len, y)) * math.log(3), rel=1e-6)


def test_the_objective_is_minus_the_log_probability_and_the_penalty() -> None:
    X, y = corpus()
    crf = CRF(l2=0.5, optimizer=EXACT).fit(X, y)
    penalty = 0.25 * float(crf.weights_ @ crf.weights_)
    assert crf.history_[-1].objective == pytest.approx(penalty - crf.log_probability(X, y).sum(), rel=1e-9)


def test_weight_two_is_the_sequence_twice() -> None:
    X, y = corpus(12)
    repeats = [1 + n % 3 for n in range(len(X))]
    once = CRF(optimizer=EXACT).fit(X, y, sample_weight=repeats)
    twice = CRF(optimizer=EXACT).fit(
        [x for x, n in zip(X, repeats, strict=True) for _ in range(n)],
        [labels for labels, n in zip(y, repeats, strict=True) for _ in range(n)],
    )
    np.testing.assert_allclose(once.log_probability(X, y), twice.log_probability(X, y), atol=1e-6)
    assert once.history_[-1].objective == pytest.approx(twice.history_[-1].objective, rel=1e-9)


def test_weight_zero_is_no_sequence() -> None:
    X, y = corpus(12)
    weighted = CRF(optimizer=EXACT).fit(
        [*X, [["w=new"]] * 3], [*y, ["D"] * 3], sample_weight=[1.0] * 12 + [0.0]
    )
    plain = CRF(optimizer=EXACT).fit(X, y)
    np.testing.assert_allclose(weighted.log_probability(X, y), plain.log_probability(X, y), atol=1e-6)
    assert weighted.n_features_ == plain.n_features_


def test_unknown_labels_and_sets_are_partial_annotation() -> None:
    X, y = corpus(60)
    partial: Sequences = copy.deepcopy(y)
    for sequence in partial[:30]:
        for i in range(len(sequence)):
            sequence[i] = [sequence[i], None, {sequence[i], "V"}][i % 3]
    crf = CRF().fit(X, partial)
    assert crf.classes_ == ["D", "N", "V"]
    assert crf.score(X, y) > 0.85
    assert crf.score(X, partial) > 0.85


def test_a_set_of_one_label_is_that_label_and_a_set_of_all_is_unknown() -> None:
    X, y = corpus(12)
    singletons = CRF(optimizer=EXACT).fit(X, [[{label} for label in sequence] for sequence in y])
    plain = CRF(optimizer=EXACT).fit(X, y)
    np.testing.assert_allclose(singletons.weights_, plain.weights_, atol=1e-7)
    anything: Sequences = [[{"D", "N", "V"}] * len(x) for x in X]
    np.testing.assert_allclose(plain.log_probability(X, anything), 0.0, atol=1e-12)
    np.testing.assert_allclose(plain.log_probability(X, [[None] * len(x) for x in X]), 0.0, atol=1e-12)


def test_l1_drops_features_without_weight() -> None:
    X, y = corpus()
    noisy = [[[*position, f"noise={n}"] for position in x] for n, x in enumerate(X)]
    dense, sparse = CRF(l1=0.0).fit(noisy, y), CRF(l1=2.0, l2=0.0).fit(noisy, y)
    assert sparse.n_features_ < dense.n_features_ / 3
    assert len(sparse.weights_) < len(dense.weights_) / 3
    assert sparse.score(noisy, y) > 0.85


def test_blocks_may_have_penalties_of_their_own() -> None:
    X, y = corpus()
    loose, tight = (
        CRF(l2={"w": 0.01, "default": 1.0}).fit(X, y),
        CRF(l2={"w": 100.0, "default": 1.0}).fit(X, y),
    )
    heaviest = [max(abs(weight) for _, weight in heaviest_features(crf, "V", 3)) for crf in (loose, tight)]
    assert heaviest[0] > 3 * heaviest[1]
    with pytest.raises(InputError, match=r"'nosuch'.*the blocks are: bias, end, start, transitions, w"):
        CRF(l2={"nosuch": 1.0}).fit(X, y)


def test_min_count_leaves_out_rare_features() -> None:
    X, y = corpus()
    X[0] = [[*position, "once"] for position in X[0][:1]] + X[0][1:]
    assert CRF(min_count=2).fit(X, y).n_features_ == CRF().fit(X, y).n_features_ - 1


def test_all_pairs_and_arcs() -> None:
    X, y = corpus()
    few = CRF(all_possible_transitions=False, structure=Chain(start=False, end=False)).fit(X, y)
    many = CRF(all_possible_states=True).fit(X, y)
    n_features, n_labels = many.n_features_, 3
    assert len(many.weights_) == n_features * n_labels + n_labels**2 + 2 * n_labels
    assert len(few.weights_) < len(many.weights_)


def test_presets_templates_and_their_texts() -> None:
    sentences = [["The", "dog", "runs"], [("A",), ("cat",), ("sees",)]] * 5
    labels = [["D", "N", "V"]] * 10
    text = "U00:%x[0,0]\nU01:%x[-1,0]\nB\n"
    for features in ("pos", "names", text, Template.parse(text)):
        crf = CRF(features=features).fit(sentences, labels)
        assert crf.predict([["The", "cat", "sees"]]) == [["D", "N", "V"]]
        assert crf.n_columns_ == 1


@pytest.mark.filterwarnings("ignore::crfkit.models.UnreadColumns")
def test_a_template_without_b_has_no_arcs_and_one_with_b_macros_has_arc_features() -> None:
    X, y = [[("the", "D"), ("dog", "N")], [("a", "D"), ("cat", "N")]], [["x", "y"], ["x", "y"]]
    free = Chain(start=False, end=False)
    alone = CRF(features="U00:%x[0,0]\n", structure=free).fit(X, y)
    assert transition_weights(alone) == []
    [p] = alone.predict_marginals([[("the", "D"), ("dog", "N")]])
    [q] = alone.predict_marginals([[("the", "D"), ("cat", "N")]])
    np.testing.assert_allclose(p[0], q[0])  # independent positions
    active = CRF(features="U00:%x[0,0]\nB00:%x[0,1]\n", structure=free).fit(X, y)
    assert active.n_features_ == alone.n_features_ + 1
    assert active.log_probability(X, y).sum() > alone.log_probability(X, y).sum()


def test_positions_may_be_dicts_and_rows_of_numbers() -> None:
    random = np.random.default_rng(0)
    X = [random.normal(size=(n, 3)) for n in (3, 5, 1, 4) * 5]
    y = [["+" if row[0] > 0 else "-" for row in x] for x in X]
    crf = CRF(l2=0.1).fit(X, y)
    assert crf.score(X, y) > 0.95
    assert heaviest_features(crf, "+", 1)[0].feature == "x[0]"
    dicts = [[{"sign": float(row[0]), "big": bool(abs(row[0]) > 1), "row": row[1:]} for row in x] for x in X]
    assert CRF(l2=0.1).fit(dicts, y).score(dicts, y) > 0.95


def test_empty_sequences_are_sequences() -> None:
    X, y = corpus(10)
    crf = CRF().fit([*X, []], [*y, []])
    assert crf.predict([[], X[0], []]) == [[], crf.predict(X[:1])[0], []]
    assert [marginals.shape for marginals in crf.predict_marginals([[], X[0]])] == [(0, 3), (len(X[0]), 3)]
    assert crf.predict_nbest([[]], 3) == [[(1.0, [])]]
    assert crf.sample([[]], 2) == [[[], []]]
    assert crf.log_probability([[]], [[]]).tolist() == [0.0]
    assert crf.predict([]) == []
    assert crf.predict_marginals([]) == []
    assert crf.predict_nbest([], 2) == []
    assert crf.sample([], 2) == []
    assert crf.log_probability([], []).shape == (0,)


def test_one_label_is_enough() -> None:
    with pytest.warns(UninformativeData, match="all labels are 'x': the model can give no other one"):
        crf = CRF().fit([[["a"], ["b"]]], [["x", "x"]])
    assert crf.predict([[["c"]]]) == [["x"]]
    assert crf.predict_marginals([[["c"]]])[0].tolist() == [[1.0]]


def test_the_number_of_threads_changes_no_bit() -> None:
    X, y = corpus(100)
    models = [CRF(n_threads=n).fit(X, y) for n in (1, 2, 4)]
    assert len({crf.weights_.tobytes() for crf in models}) == 1
