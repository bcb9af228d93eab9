"""The estimator: what it learns, what it answers, and that scikit-learn's tools can work with it."""

from __future__ import annotations

import copy
import itertools
import math
import pickle
import subprocess
import sys
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sklearn.exceptions
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer

import crfkit
from crfkit import CRF, LBFGS, Chain, InputError, Template
from crfkit.models import Progress, TrainingInterrupted, arc_weights, heaviest_arc_features, heaviest_features

Sequences = list[list[Any]]

WORDS = {"N": ["dog", "cat", "house"], "V": ["runs", "sees", "eats"], "D": ["the", "a"]}
EXACT = LBFGS(max_iterations=2000, tolerance=1e-9, change=0.0)


def corpus(n: int = 40, seed: int = 0) -> tuple[Sequences, Sequences]:
    """Sentences D N V D N with words left out and now and then a wrong word, so that no label is certain."""
    random = np.random.default_rng(seed)
    X, y = [], []
    for _ in range(n):
        labels = [label for label in "DNVDN" if random.random() < 0.9]
        noisy = [label if random.random() < 0.9 else random.choice(list("DNV")) for label in labels]
        X.append([[f"w={random.choice(WORDS[label])}", "bias"] for label in noisy])
        y.append(labels)
    return X, y


@pytest.fixture(scope="module")
def trained() -> CRF:
    return CRF(random_state=0).fit(*corpus())


# ---- training


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


def test_at_the_start_every_labelling_is_equally_probable() -> None:
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
    noisy = [[[*site, f"noise={n}"] for site in x] for n, x in enumerate(X)]
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
    with pytest.raises(InputError, match=r"'nosuch'.*the blocks are: arcs, bias, end, start, w"):
        CRF(l2={"nosuch": 1.0}).fit(X, y)


def test_min_count_leaves_out_rare_features() -> None:
    X, y = corpus()
    X[0] = [[*site, "once"] for site in X[0][:1]] + X[0][1:]
    assert CRF(min_count=2).fit(X, y).n_features_ == CRF().fit(X, y).n_features_ - 1


def test_all_pairs_and_arcs() -> None:
    X, y = corpus()
    few = CRF(all_arcs=False, structure=Chain(start=False, end=False)).fit(X, y)
    many = CRF(all_pairs=True).fit(X, y)
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


def test_a_template_without_b_has_no_arcs_and_one_with_b_macros_has_arc_features() -> None:
    X, y = [[("the", "D"), ("dog", "N")], [("a", "D"), ("cat", "N")]], [["x", "y"], ["x", "y"]]
    free = Chain(start=False, end=False)
    alone = CRF(features="U00:%x[0,0]\n", structure=free).fit(X, y)
    assert arc_weights(alone) == []
    [p] = alone.predict_marginals([[("the", "D"), ("dog", "N")]])
    [q] = alone.predict_marginals([[("the", "D"), ("cat", "N")]])
    np.testing.assert_allclose(p[0], q[0])  # independent sites
    fired = CRF(features="U00:%x[0,0]\nB00:%x[0,1]\n", structure=free).fit(X, y)
    assert fired.n_features_ == alone.n_features_ + 1
    assert fired.log_probability(X, y).sum() > alone.log_probability(X, y).sum()


def test_sites_may_be_dicts_and_rows_of_numbers() -> None:
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
    crf = CRF().fit([[["a"], ["b"]]], [["x", "x"]])
    assert crf.predict([[["c"]]]) == [["x"]]
    assert crf.predict_marginals([[["c"]]])[0].tolist() == [[1.0]]


def test_the_number_of_threads_changes_no_bit() -> None:
    X, y = corpus(100)
    models = [CRF(n_threads=n).fit(X, y) for n in (1, 2, 4)]
    assert len({crf.weights_.tobytes() for crf in models}) == 1


# ---- questions


def all_labellings(crf: CRF, x: list[Any]) -> dict[tuple[Any, ...], float]:
    """The probability of every labelling of a short sequence."""
    outputs = list(itertools.product(crf.classes_, repeat=len(x)))
    return dict(zip(outputs, np.exp(crf.log_probability([x] * len(outputs), outputs)).tolist(), strict=True))


def test_the_answers_agree_with_the_probability_of_every_labelling(trained: CRF) -> None:
    x: list[Any] = [["w=dog"], ["w=new", "bias"], ["w=sees"], []]
    probability = all_labellings(trained, x)
    assert sum(probability.values()) == pytest.approx(1.0, abs=1e-12)
    ranked = sorted(probability.items(), key=lambda item: -item[1])
    assert trained.predict([x]) == [list(ranked[0][0])]
    [nbest] = trained.predict_nbest([x], 5)
    assert [labels for _, labels in nbest] == [list(labels) for labels, _ in ranked[:5]]
    np.testing.assert_allclose([p for p, _ in nbest], [p for _, p in ranked[:5]], rtol=1e-9)
    assert len(trained.predict_nbest([x], 1000)[0]) == 3**4
    [marginals] = trained.predict_marginals([x])
    for site, k in itertools.product(range(4), range(3)):
        expected = sum(p for labels, p in probability.items() if labels[site] == trained.classes_[k])
        assert marginals[site, k] == pytest.approx(expected, abs=1e-12)
    known: list[Any] = ["N", None, {"V", "D"}, None]
    expected = sum(p for labels, p in probability.items() if labels[0] == "N" and labels[2] in "VD")
    assert trained.log_probability([x], [known])[0] == pytest.approx(math.log(expected), abs=1e-10)


def test_samples_follow_the_distribution_and_the_seed(trained: CRF) -> None:
    x: list[Any] = [["w=dog"], ["w=new"]]
    [drawn] = trained.sample([x], 4000, random_state=1)
    counts = Counter(map(tuple, drawn))
    for labels, p in all_labellings(trained, x).items():
        assert counts[labels] / 4000 == pytest.approx(p, abs=0.03)
    assert trained.sample([x], 5, random_state=3) == trained.sample([x], 5, random_state=3)
    assert trained.sample([x], 5) == trained.sample([x], 5)  # random_state=0 of the estimator
    assert trained.sample([x], 50, random_state=3) != trained.sample([x], 50, random_state=4)
    for source in (np.random.default_rng(0), np.random.RandomState(0), np.int64(3)):
        assert len(trained.sample([x], 2, random_state=source)[0]) == 2
    with pytest.raises(InputError, match="random_state is 'x'"):
        trained.sample([x], 1, random_state="x")  # type: ignore[arg-type]


def test_score_counts_sites_with_known_labels_by_weight(trained: CRF) -> None:
    X: Sequences = [[["w=the"], ["w=dog"]], [["w=the"]]]
    assert trained.predict(X) == [["D", "N"], ["D"]]
    assert trained.score(X, [["D", "N"], ["V"]]) == pytest.approx(2 / 3)
    assert trained.score(X, [["D", "N"], ["V"]], sample_weight=[1, 3]) == pytest.approx(2 / 5)
    assert trained.score(X, [["D", None], [{"V", "D"}]]) == 1.0
    assert trained.score(X, [["D", "unseen"], ["D"]]) == pytest.approx(2 / 3)


def test_heaviest_features_and_arcs_have_names(trained: CRF) -> None:
    names = [name for name, _ in heaviest_features(trained, "D", 2)]
    assert set(names) == {"w=the", "w=a"}
    arcs = {(before, after): weight for before, after, weight in arc_weights(trained)}
    assert len(arcs) == 3 * 3 + 3 + 3
    assert arcs["D", "N"] > arcs["D", "D"]
    assert arcs[None, "D"] > arcs[None, "V"]
    with pytest.raises(InputError, match="no label 'x'"):
        heaviest_features(trained, "x")


def test_features_on_arcs_have_names() -> None:
    X = [["the", "dog", "runs"], ["a", "cat", "runs"], ["dogs", "run"]]
    y = [["D", "N", "V"], ["D", "N", "V"], ["N", "V"]]
    crf = CRF(features="U00:%x[0,0]\nB01:%x[0,0]\nB").fit(X, y)
    found = heaviest_arc_features(crf, 10)
    assert {(feature, before, after) for feature, before, after, _ in found} == {
        ("B01:dog", "D", "N"),
        ("B01:cat", "D", "N"),
        ("B01:runs", "N", "V"),
        ("B01:run", "N", "V"),
    }
    assert [abs(arc.weight) for arc in found] == sorted((abs(arc.weight) for arc in found), reverse=True)
    assert found[0].feature == "B01:runs"
    assert heaviest_arc_features(crf, 2) == found[:2]


# ---- dev set, callbacks, Ctrl-C


def test_a_set_is_no_list_of_labels_to_score(trained: CRF) -> None:
    with pytest.raises(InputError, match=r"y of sequence 0 is \{'D'\}, expected a list of labels"):
        trained.score([[["w=the"]]], [{"D"}])


def test_the_weights_with_the_best_dev_score_are_kept() -> None:
    X, y = corpus()
    seen: list[Progress] = []
    scores = iter([0.1, 0.5, 0.5, 0.4, 0.3, 0.2, 0.1])
    crf = CRF().fit(
        X,
        y,
        dev=corpus(5, seed=2),
        metric=lambda gold, predicted: next(scores),
        patience=3,
        callback=seen.append,
    )
    assert [progress.dev_score for progress in seen] == [0.1, 0.5, 0.5, 0.4, 0.3]
    assert [progress.improved for progress in seen] == [True, True, False, False, False]
    assert crf.n_iter_ == 2
    assert crf.stop_reason_ == "no better dev score in 3 iterations"
    assert len(crf.history_) == 6
    np.testing.assert_array_equal(crf.weights_, CRF(optimizer=LBFGS(max_iterations=2)).fit(X, y).weights_)


def test_without_a_metric_the_dev_score_is_accuracy() -> None:
    seen: list[Progress] = []
    X, y = corpus(20, seed=2)
    crf = CRF().fit(*corpus(), dev=(X, y), callback=seen.append)
    assert crf.score(X, y) == max(progress.dev_score or 0.0 for progress in seen)


def test_a_callback_ends_the_training() -> None:
    crf = CRF().fit(*corpus(), callback=lambda progress: progress.iteration == 3)
    assert crf.n_iter_ == 3


def test_ctrl_c_keeps_the_best_weights_and_warns() -> None:
    def interrupt(progress: Progress) -> None:
        if progress.iteration == 4:
            raise KeyboardInterrupt

    with pytest.warns(
        TrainingInterrupted, match="interrupted; the model has the best weights so far, of iteration 4"
    ):
        crf = CRF().fit(*corpus(), callback=interrupt)
    assert crf.stop_reason_ == "interrupted"
    assert crf.score(*corpus()) > 0.8


def test_a_failed_fit_leaves_the_old_model() -> None:
    X, y = corpus()
    crf = CRF().fit(X, y)
    before = crf.predict(X)
    with pytest.raises(InputError):
        crf.fit(X, y[:-1])
    assert crf.predict(X) == before


# ---- bad input


@pytest.mark.parametrize(
    ("params", "words"),
    [
        ({"structure": "chain"}, "structure is 'chain', expected crfkit.Chain"),
        (
            {"optimizer": "bfgs"},
            "optimizer is 'bfgs', expected adagrad, arow, averaged_perceptron, lbfgs, newton, ",
        ),
        ({"features": 3}, "features is 3, expected None"),
        ({"l1": -1.0}, "l1 is -1.0, expected a finite number"),
        ({"l2": float("nan")}, "l2 is nan, expected a finite number"),
        ({"l2": "1"}, "l2 is '1', expected a number"),
        ({"l2": {"w": -1.0}}, r"l2\['w'\] is -1.0"),
        ({"min_count": 0}, "min_count is 0, expected a whole number of at least 1"),
        ({"min_count": 1.5}, "min_count is 1.5"),
        ({"min_count": True}, "min_count is True"),
        ({"n_threads": 0}, "n_threads is 0"),
        ({"all_pairs": "yes"}, "all_pairs is 'yes', expected True or False"),
    ],
)
def test_parameters_are_stored_untouched_and_refused_by_fit(params: dict[str, Any], words: str) -> None:
    crf = CRF(**params)
    [(name, value)] = params.items()
    assert getattr(crf, name) is value
    with pytest.raises(InputError, match=words):
        crf.fit(*corpus(5))
    assert not hasattr(crf, "weights_")


@pytest.mark.parametrize(
    ("X", "y", "words"),
    [
        ([], [], "nothing to learn"),
        ([[]], [[]], "nothing to learn"),
        ([[["a"]]], [[None]], "nothing to learn"),
        ([[["a"]]], [], "X has 1 sequences but y has 0"),
        ([[["a"], ["b"]]], [["x"]], "sequence 0: 2 sites but 1 labels"),
        ([[["a"]], [["a"]]], [["x"], "x"], "y of sequence 1 is 'x', expected a list of labels"),
        ("text", [["x"]], "X is the string 'text', expected a list of sequences"),
        (3, [["x"]], "X is 3"),
        ([["word"]], [["x"]], "sequence 0, site 0"),
        ([[{"a": float("nan")}]], [["x"]], "sequence 0, site 0"),
        ([[{"a": float("inf")}]], [["x"]], "sequence 0, site 0"),
        ([[["a"]]], [[["x"]]], "sequence 0, site 0: the label"),
        ([[["a"]]], [[set()]], "sequence 0, site 0: the set of labels is empty"),
    ],
)
def test_bad_training_data_is_refused_in_words(X: Any, y: Any, words: str) -> None:
    with pytest.raises(InputError, match=words):
        CRF().fit(X, y)


@pytest.mark.parametrize(
    ("weight", "words"),
    [
        ([1.0], r"shape \[1\], expected \[5\]"),
        ([1, 1, 1, 1, -1], r"sample_weight\[4\] is -1.0"),
        ([0] * 5, "all weights are zero"),
        ("x", "expected one number"),
    ],
)
def test_bad_sample_weights_are_refused_in_words(weight: Any, words: str) -> None:
    with pytest.raises(InputError, match=words):
        CRF().fit(*corpus(5), sample_weight=weight)


def test_bad_questions_are_refused_in_words(trained: CRF) -> None:
    X: Sequences = [[["w=dog"]]]
    with pytest.raises(InputError, match="sequence 0, site 0: unknown label 'x'; the labels are D, N, V"):
        trained.log_probability(X, [["x"]])
    with pytest.raises(InputError, match="1 sequences but y has 2"):
        trained.score(X, [["D"], ["D"]])
    with pytest.raises(InputError, match="sequence 0: 1 sites but 2 labels"):
        trained.score(X, [["D", "D"]])
    with pytest.raises(InputError, match="n is 0"):
        trained.predict_nbest(X, 0)
    with pytest.raises(InputError, match="dev sequence 0: 1 sites but 2 labels"):
        CRF().fit(*corpus(5), dev=(X, [["D", "D"]]))


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"dev": [[["w=dog"]]] * 3}, r"dev is of type list, of length 3, expected the pair \(X, y\)"),
        ({"dev": 5}, r"dev is of type int, expected the pair \(X, y\)"),
        ({"patience": 3}, "patience was given without dev"),
        ({"metric": lambda gold, predicted: 0.5}, "metric was given without dev"),
    ],
)
def test_bad_dev_settings_are_refused_in_words(settings: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        CRF().fit(*corpus(5), **settings)


# ---- files and pickles


@pytest.mark.parametrize(
    "params",
    [
        {},
        {"l1": 0.5, "l2": {"w": 0.1, "default": 2.0}, "all_pairs": True},
        {"structure": Chain(start=False, end=False), "all_arcs": False, "min_count": 2},
        {"optimizer": LBFGS(max_iterations=3, tolerance=1e-3), "n_threads": 1},
    ],
)
def test_a_loaded_model_answers_like_the_saved_one(params: dict[str, Any], tmp_path: Path) -> None:
    X, y = corpus()
    crf = CRF(**params).fit(X, y)
    crf.save(tmp_path / "m.crf")
    for other in (crfkit.load(tmp_path / "m.crf"), pickle.loads(pickle.dumps(crf)), copy.deepcopy(crf)):
        assert other.predict(X) == crf.predict(X)
        np.testing.assert_array_equal(other.weights_, crf.weights_)
        assert other.history_ == crf.history_
        assert (other.n_iter_, other.stop_reason_) == (crf.n_iter_, crf.stop_reason_)
        assert other.n_features_ == crf.n_features_
        np.testing.assert_array_equal(other.predict_marginals(X)[0], crf.predict_marginals(X)[0])
        assert {**other.get_params(), "n_threads": 1} == {**crf.get_params(), "n_threads": 1}


def test_a_model_with_a_template_arc_features_and_dense_rows_survives_its_file(tmp_path: Path) -> None:
    X, y = [[("the", "D"), ("dog", "N")], [("a", "D"), ("cat", "N")]], [["x", "y"], ["x", "y"]]
    crf = CRF(features="U00:%x[0,0]\nU01:%x[0,1]\nB\nB00:%x[0,1]\n").fit(X, y)
    crf.save(tmp_path / "m.crf")
    loaded = crfkit.load(tmp_path / "m.crf")
    np.testing.assert_array_equal(loaded.log_probability(X, y), crf.log_probability(X, y))
    assert (loaded.n_columns_, loaded.label_column_) == (2, -1)
    rows = [np.arange(6.0).reshape(3, 2), np.ones((1, 2))]
    numbers = CRF().fit(rows, [["x", "y", "x"], ["y"]])
    numbers.save(tmp_path / "n.crf")
    assert crfkit.load(tmp_path / "n.crf").predict(rows) == numbers.predict(rows)
    assert CRF(features="pos").fit([["a"]], [["x"]]).features == "pos"


def test_saving_twice_gives_the_same_bytes(trained: CRF, tmp_path: Path) -> None:
    trained.save(tmp_path / "a.crf")
    crfkit.load(tmp_path / "a.crf").save(tmp_path / "b.crf")
    assert (tmp_path / "a.crf").read_bytes() == (tmp_path / "b.crf").read_bytes()


def test_an_untrained_model_says_so(tmp_path: Path) -> None:
    crf = CRF()
    for ask in (lambda: crf.predict([[["a"]]]), lambda: crf.save(tmp_path / "m.crf"), lambda: crf.classes_):
        with pytest.raises(sklearn.exceptions.NotFittedError, match="is not trained: call fit"):
            ask()
    assert pickle.loads(pickle.dumps(CRF(l2=0.3))).l2 == 0.3


def test_nothing_of_scikit_learn_is_imported_by_training_and_tagging() -> None:
    program = """
import sys
from crfkit import CRF
crf = CRF()
try:
    crf.predict([[["a"]]])
except (ValueError, AttributeError) as error:
    assert type(error).__module__ == "crfkit.models.estimator", type(error)
crf.fit([[["a"], ["b"]]], [["x", "y"]]).predict([[["a"]]])
assert not {"sklearn", "scipy", "click", "rich"} & set(sys.modules), sys.modules
"""
    subprocess.run([sys.executable, "-c", program], check=True)


# ---- scikit-learn's tools


def test_clone_and_params() -> None:
    crf = CRF(l2=0.5, optimizer=LBFGS(max_iterations=7), structure=Chain(end=False))
    copied = clone(crf.fit(*corpus(5)))
    assert copied is not crf
    assert not hasattr(copied, "weights_")
    assert copied.get_params() == crf.get_params()
    assert crf.get_params()["optimizer__max_iterations"] == 7
    crf.set_params(l2=0.1, optimizer__max_iterations=9, optimizer=LBFGS(memory=3))
    assert crf.l2 == 0.1
    assert crf.optimizer == LBFGS(max_iterations=9, memory=3)
    with pytest.raises(ValueError, match="CRF has no parameter 'C', expected one of all_arcs"):
        crf.set_params(C=1.0)
    assert repr(CRF()) == "CRF()"
    assert (
        repr(CRF(l2=0.5, structure=Chain(end=False))) == "CRF(structure=Chain(start=True, end=False), l2=0.5)"
    )


def test_grid_search() -> None:
    X, y = corpus(30)
    search = GridSearchCV(
        CRF(optimizer=LBFGS(max_iterations=20)), {"l2": [100.0, 1.0], "optimizer__memory": [3, 5]}, cv=3
    )
    search.fit(X, y)
    assert search.best_params_["l2"] == 1.0
    assert search.best_score_ > 0.8
    assert search.predict(X) == search.best_estimator_.predict(X)
    weighted = GridSearchCV(CRF(), {"l2": [1.0]}, cv=2).fit(X, y, sample_weight=np.ones(len(X)))
    assert weighted.best_score_ > 0.8


@pytest.mark.slow
def test_grid_search_in_other_processes() -> None:
    X, y = corpus(20)
    search = GridSearchCV(CRF(optimizer=LBFGS(max_iterations=5)), {"l2": [1.0, 2.0]}, cv=2, n_jobs=2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the workers' own making
        assert search.fit(X, y).best_score_ > 0.5


def test_cross_validation_uses_plain_folds() -> None:
    X, y = corpus(30)
    assert len(cross_val_score(CRF(), X, y, cv=3)) == 3
    assert not sklearn.base.is_classifier(CRF())
    assert not sklearn.base.is_regressor(CRF())


def test_pipeline() -> None:
    X, y = corpus(30)
    raw = [[site[0] for site in x] for x in X]

    def as_lists(X: Sequences) -> Sequences:
        return [[[word] for word in x] for x in X]

    pipe = Pipeline([("lists", FunctionTransformer(as_lists)), ("crf", CRF())])
    pipe.set_params(crf__l2=0.5).fit(raw, y, crf__sample_weight=np.ones(len(X)))
    assert pipe.score(raw, y) > 0.8
    assert clone(pipe).get_params()["crf__l2"] == 0.5
