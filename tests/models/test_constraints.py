"""Constrained models: bigrams and allowed labels in training, in every question, and in the model file.

The oracle is the same model without its constraints, taken from its file: it lists all label sequences with their
probabilities;
those that the constraints exclude are struck out, and the rest is normalised.
"""

from __future__ import annotations

import itertools
import math
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

import crfkit
from crfkit import CRF, END, LBFGS, START, Bigrams, Chain, InputError
from crfkit.errors import ArgumentError, EmptyDataError, ImpossibleLabelsError
from crfkit.models import ImpossibleSequenceError, SequencesSkipped
from crfkit.models.files.loading import from_bytes
from crfkit.models.files.model_file import decode, encode

Sequences = list[list[Any]]
LABELS = ("a", "b", "c")
EXACT = LBFGS(max_iterations=2000, tolerance=1e-9, change=0.0)
FEW = LBFGS(max_iterations=15)


def corpus(n: int = 30, seed: int = 0, lengths: tuple[int, int] = (1, 5)) -> tuple[Sequences, Sequences]:
    """Labels that keep to a < b < c < a …, or stay, with a noisy clue at each position."""
    random = np.random.default_rng(seed)
    X, y = [], []
    for _ in range(n):
        ids = [int(random.integers(3))]
        for _ in range(int(random.integers(*lengths))):
            ids.append((ids[-1] + int(random.integers(2))) % 3)
        clues = [i if random.random() < 0.6 else int(random.integers(3)) for i in ids]
        X.append([[f"clue={clue}", f"noise={random.integers(4)}"] for clue in clues])
        y.append([LABELS[i] for i in ids])
    return X, y


STEPS = Bigrams.observed(corpus(200)[1])  # a → a, b; b → b, c; c → c, a


def without_constraints(model: CRF) -> CRF:
    """The same weights, and all arcs."""
    file = decode(model.__getstate__()["model"])
    file.settings["parameters"]["structure"].update(bigrams=None)
    for name in ("bigrams.before", "bigrams.after"):
        del file.arrays[name]
    return from_bytes(encode(file), "free")


def listed(model: CRF, x: list[Any], allowed: list[Any] | None = None) -> dict[tuple[Any, ...], float]:
    """p(y | x) of every label sequence that bigrams and allowed labels leave."""
    free = without_constraints(model)
    bigrams = model.structure_.bigrams
    assert isinstance(bigrams, Bigrams)
    left = {
        tuple(y): p
        for p, y in free.predict_nbest([x], len(LABELS) ** len(x))[0]
        if (
            model.structure_.chain.unseen == "soft"
            or all(pair in bigrams for pair in itertools.pairwise((START, *y, END)))
        )
        and (allowed is None or all(s is None or label in s for label, s in zip(y, allowed, strict=True)))
    }
    total = math.fsum(left.values())
    return {y: p / total for y, p in left.items()}


def draw_allowed(y: Sequences, seed: int) -> Sequences:
    """About half of the labels at about half of the positions, the right one among them."""
    random = np.random.default_rng(seed)
    return [
        [None if random.random() < 0.5 else {label, LABELS[random.integers(3)]} for label in labels]
        for labels in y
    ]


@pytest.fixture(scope="module", params=["observed", "pairs", "soft"])
def trained(request: pytest.FixtureRequest) -> CRF:
    structure = {
        "observed": Chain(bigrams="observed"),
        "pairs": Chain(bigrams=STEPS, unseen="extend", start=False),
        "soft": Chain(bigrams=STEPS - {("a", "b"), (START, "c"), ("b", END)}, unseen="soft"),
    }[request.param]
    return CRF(structure=structure, optimizer=FEW, random_state=0, n_threads=1).fit(*corpus())


# ---- every question, against the label sequences written out


@pytest.mark.parametrize("restricted", [False, True])
def test_every_question_is_brute_force(trained: CRF, restricted: bool) -> None:
    X, y = corpus(8, seed=5, lengths=(0, 4))
    sets: list[Any] = draw_allowed(y, 1) if restricted else [None] * len(X)
    allowed = sets if restricted else None
    best = trained.predict(X, allowed=allowed)
    marginals = trained.predict_marginals(X, allowed=allowed)
    nbest = trained.predict_nbest(X, 100, allowed=allowed)
    samples = trained.sample(X, 20, allowed=allowed)
    for n, x in enumerate(X):
        p = listed(trained, x, sets[n])
        assert p[tuple(best[n])] == pytest.approx(max(p.values()), rel=1e-9)
        assert len(nbest[n]) == len(p)
        for probability, labels in nbest[n]:
            assert probability == pytest.approx(p[tuple(labels)], rel=1e-9)
        expected = np.zeros((len(x), 3))
        for output, probability in p.items():
            expected[np.arange(len(x)), [LABELS.index(label) for label in output]] += probability
        np.testing.assert_allclose(marginals[n], expected, rtol=0, atol=1e-9)
        assert {tuple(labels) for labels in samples[n]} <= set(p)
        every = [list(labels) for labels in itertools.product(LABELS, repeat=len(x))]
        found = trained.log_probability(
            [x] * len(every), every, allowed=None if allowed is None else [sets[n]] * len(every)
        )
        np.testing.assert_allclose(
            np.exp(found), [p.get(tuple(labels), 0.0) for labels in every], rtol=1e-9, atol=0
        )


def test_no_forbidden_label_sequence_ever_comes_out() -> None:
    X, y = corpus(60, seed=2)
    astray = [[["clue=0"], ["clue=2"], ["clue=1"], ["clue=0"]]] * 3
    free = CRF(all_possible_transitions=False, optimizer=FEW).fit(X, y)
    constrained = CRF(structure=Chain(bigrams=STEPS), optimizer=FEW).fit(X, y)
    for model, well_formed in ((free, False), (constrained, True)):
        drawn = itertools.chain.from_iterable(model.sample(astray, 50, random_state=0))
        assert all(STEPS.allows(labels) for labels in drawn) == well_formed
    for labels in constrained.predict(astray):
        assert STEPS.allows(labels)


def test_many_labels() -> None:
    """Above 64 labels the native core works on the labels and arcs that exist."""
    random = np.random.default_rng(3)
    names = [f"t{k:02}" for k in range(80)]
    y = [[names[i] for i in random.integers(80, size=random.integers(2, 8))] for _ in range(60)]
    X = [[[label if random.random() < 0.7 else "?"] for label in labels] for labels in y]
    crf = CRF(structure=Chain(bigrams="observed"), optimizer=FEW).fit(X, y)
    bigrams = crf.structure_.bigrams
    assert isinstance(bigrams, Bigrams)
    assert all(bigrams.allows(labels) for labels in crf.predict(X))
    free = without_constraints(crf)
    for x, labels in zip(X[:10], y[:10], strict=True):
        sets = [{label, *random.choice(names, 3)} for label in labels[:2]] + [{label} for label in labels[2:]]
        every = [list(other) for other in itertools.product(*sets)]
        inside = np.array([bigrams.allows(other) for other in every])
        question = [x] * len(every), every
        found = crf.log_probability(*question, allowed=[sets] * len(every))
        expected = np.where(inside, free.log_probability(*question), -np.inf)
        expected -= np.logaddexp.reduce(expected)
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)
        [best] = crf.predict([x], allowed=[sets])
        assert expected[every.index(best)] == pytest.approx(expected.max(), abs=1e-9)
        [marginals] = crf.predict_marginals([x], allowed=[sets])
        for i, row in enumerate(marginals):
            by_label: dict[Any, float] = dict.fromkeys(names, 0.0)
            for other, log_p in zip(every, expected, strict=True):
                by_label[other[i]] += math.exp(log_p)
            expected_row = np.array([by_label[label] for label in crf.classes_])
            np.testing.assert_allclose(row, expected_row, rtol=0, atol=1e-9)


def test_span_labels_are_well_formed() -> None:
    random = np.random.default_rng(1)
    X, y = [], []
    for _ in range(60):
        labels: list[str] = []
        while len(labels) < 6:
            kind = random.choice(["PER", "LOC", ""])
            labels += [f"B-{kind}", *[f"I-{kind}"] * int(random.integers(3))] if kind else ["O"]
        X.append([[label if random.random() < 0.5 else "?", f"n={random.integers(3)}"] for label in labels])
        y.append(labels)
    X_new = [[["?"], [f"I-{kind}"], ["?"], ["I-PER"]] for kind in ("PER", "LOC")] * 3
    bio = CRF(structure=Chain(bigrams="bio"), optimizer=FEW).fit(X, y)
    for model, well_formed in (
        (bio, True),
        (CRF(all_possible_transitions=False, optimizer=FEW).fit(X, y), False),
    ):
        invalid = [
            str(after).startswith("I-") and str(before)[2:] != str(after)[2:]
            for labels in model.sample(X_new, 40, random_state=0)
            for sequence in labels
            for before, after in itertools.pairwise(["O", *sequence])
        ]
        assert any(invalid) != well_formed
    assert bio.score(X, y) >= CRF(optimizer=FEW).fit(X, y).score(X, y) - 0.02


# ---- training


@pytest.mark.parametrize(
    "structure", [Chain(bigrams=Bigrams.all(LABELS)), Chain(bigrams=STEPS, unseen="soft")]
)
def test_all_bigrams_are_no_constraint(structure: Chain) -> None:
    X, y = corpus()
    settings: dict[str, Any] = {"optimizer": EXACT, "n_threads": 1}
    free = CRF(**settings, all_possible_transitions=structure.unseen != "soft").fit(X, y)
    same = CRF(structure=structure, **settings).fit(X, y)
    assert len(same.weights_) == len(free.weights_)
    assert same.history_[-1].objective == pytest.approx(free.history_[-1].objective, rel=1e-9)
    np.testing.assert_allclose(same.weights_, free.weights_, atol=1e-5)
    X_new, y_new = corpus(20, seed=9)
    assert same.predict(X_new) == free.predict(X_new)
    np.testing.assert_allclose(
        same.log_probability(X_new, y_new), free.log_probability(X_new, y_new), atol=1e-6
    )


def test_the_objective_counts_only_what_exists() -> None:
    X, y = corpus()
    allowed = draw_allowed(y, 3)
    for sets in (None, allowed):
        crf = CRF(structure=Chain(bigrams="observed"), l2=0.5, optimizer=EXACT).fit(X, y, allowed=sets)
        penalty = 0.25 * float(crf.weights_ @ crf.weights_)
        log_p = sum(
            math.log(listed(crf, x, None if sets is None else sets[n])[tuple(y[n])]) for n, x in enumerate(X)
        )
        assert crf.history_[-1].objective == pytest.approx(penalty - log_p, rel=1e-9)
        np.testing.assert_allclose(crf.log_probability(X, y, allowed=sets).sum(), log_p, rtol=1e-9)
    free = CRF(l2=0.5, optimizer=EXACT).fit(X, y)
    assert crf.history_[-1].objective < free.history_[-1].objective


def test_nothing_is_learnt_where_nothing_else_is_allowed() -> None:
    X, y = corpus()
    crf = CRF(optimizer=EXACT).fit(X, y, allowed=[[{label} for label in labels] for labels in y])
    np.testing.assert_allclose(crf.weights_, 0.0, atol=1e-9)
    assert crf.history_[0].objective == pytest.approx(0.0, abs=1e-9)


def test_partial_labels_within_bigrams() -> None:
    X, y = corpus()
    partial = [
        [label if i % 3 else {label, "a"} if i % 2 else None for i, label in enumerate(labels)]
        for labels in y
    ]
    crf = CRF(structure=Chain(bigrams=STEPS), optimizer=FEW, random_state=0).fit(X, partial)
    p = listed(crf, X[0])
    agree = [
        probability
        for labels, probability in p.items()
        if all(k is None or label in k for label, k in zip(labels, partial[0], strict=True))
    ]
    assert math.exp(crf.log_probability(X[:1], partial[:1])[0]) == pytest.approx(math.fsum(agree), rel=1e-9)


def test_the_same_model_for_any_number_of_threads() -> None:
    X, y = corpus(50)
    models = [
        CRF(structure=Chain(bigrams="observed"), optimizer=FEW, n_threads=n).fit(
            X, y, allowed=draw_allowed(y, 0)
        )
        for n in (1, 3)
    ]
    np.testing.assert_array_equal(models[0].weights_, models[1].weights_)


# ---- gold labels outside


def with_strangers() -> tuple[Sequences, Sequences]:
    X, y = corpus(12)
    for n in (3, 7):
        X[n], y[n] = [["clue=0"], ["clue=2"], ["only here"]], ["a", "c", "b"]
    return X, y


def test_labels_outside_are_refused_with_their_places() -> None:
    with pytest.raises(ImpossibleLabelsError) as refused:
        CRF(structure=Chain(bigrams=STEPS)).fit(*with_strangers())
    assert str(refused.value).startswith(
        "2 of 12 training sequences lie outside the bigrams: "
        "sequence 3, position 1: c after a; sequence 7, position 1: c after a"
    )


def test_labels_outside_extend_the_bigrams() -> None:
    X, y = with_strangers()
    crf = CRF(structure=Chain(bigrams=STEPS, unseen="extend"), optimizer=FEW).fit(X, y)
    assert crf.structure_.bigrams == STEPS | {("a", "c"), ("c", "b")}
    assert crf.structure.bigrams == STEPS
    assert crf.log_probability(X[3:4], y[3:4])[0] > -math.inf


def test_sequences_outside_are_left_out() -> None:
    X, y = with_strangers()
    weights = np.arange(1.0, 13.0)
    allowed: list[Any] = [None] * 12
    allowed[0] = [{label} for label in y[0]]
    inside = [n for n in range(12) if n not in (3, 7)]
    skip = Chain(bigrams=STEPS, unseen="skip")
    once: Any = iter(X)
    with pytest.warns(
        SequencesSkipped, match="2 of 12 training sequences lie outside the bigrams and were left out"
    ):
        crf = CRF(structure=skip, optimizer=EXACT).fit(once, y, weights, allowed=allowed)
    rest = CRF(structure=skip, optimizer=EXACT).fit(
        [X[n] for n in inside], [y[n] for n in inside], weights[inside], allowed=[allowed[n] for n in inside]
    )
    np.testing.assert_array_equal(crf.weights_, rest.weights_)
    assert "only here" not in crf.encoder_.vocabulary
    assert crf.log_probability(X[3:4], y[3:4])[0] == -math.inf
    only_strangers = ([X[3]], [y[3]])
    with pytest.raises(EmptyDataError):
        CRF(structure=skip).fit(*only_strangers)


def test_soft_bigrams_leave_everything_possible() -> None:
    X, y = with_strangers()
    crf = CRF(structure=Chain(bigrams=STEPS, unseen="soft"), optimizer=FEW).fit(X, y)
    assert crf.structure_.bigrams == STEPS
    assert crf.log_probability(X[3:4], y[3:4])[0] > -math.inf
    arcs = crf.feature_map_
    assert set(zip(arcs.arc_before.tolist(), arcs.arc_after.tolist(), strict=True)) <= set(
        zip(*(ids.tolist() for ids in STEPS.ids(LABELS)), strict=True)
    )


def test_bigrams_may_name_labels_that_training_does_not_have() -> None:
    X, y = corpus()
    crf = CRF(structure=Chain(bigrams=STEPS | {("a", "z"), ("z", END)}), optimizer=FEW).fit(X, y)
    assert crf.classes_ == list(LABELS)
    assert crf.structure_.bigrams == STEPS


# ---- what is impossible


def test_a_length_that_is_impossible_is_named() -> None:
    pairs = Bigrams([(START, "a"), ("a", "b"), ("b", "a"), ("b", END)])
    X = [[["x"], ["y"]], [["x"], ["y"], ["x"], ["y"]]]
    crf = CRF(structure=Chain(bigrams=pairs), optimizer=FEW).fit(X, [["a", "b"], ["a", "b", "a", "b"]])
    odd = [X[0], [["x"], ["y"], ["x"]]]
    words = "^sequence 1"
    for ask in (
        crf.predict,
        crf.predict_marginals,
        lambda X: crf.predict_nbest(X, 2),
        crf.sample,
        lambda X: crf.log_probability(X, [["a", "b"], ["a", "b", "a"]]),
        lambda X: crf.score(X, [["a", "b"], ["a", "b", "a"]]),
    ):
        with pytest.raises(ImpossibleSequenceError, match=words):
            ask(odd)
    with pytest.raises(ImpossibleSequenceError, match="sequence 0"):
        crf.predict([[]])
    with pytest.raises(ImpossibleSequenceError, match="sequence 0"):
        crf.predict(X[:1], allowed=[[None, {"a"}]])
    with pytest.raises(ImpossibleSequenceError, match=r"^dev sequence 1"):
        CRF(structure=Chain(bigrams=pairs)).fit(
            X, [["a", "b"], ["a", "b", "a", "b"]], dev=(odd, [["a", "b"], ["a"] * 3])
        )


def test_an_empty_sequence_exists_where_training_had_one() -> None:
    X, y = corpus(10)
    crf = CRF(structure=Chain(bigrams="observed"), optimizer=FEW).fit([*X, []], [*y, []])
    assert crf.predict([[], X[0]])[0] == []
    assert crf.log_probability([[]], [[]])[0] == 0.0


# ---- allowed labels


@pytest.mark.parametrize(
    ("allowed", "words"),
    [
        ("abc", "allowed is 'abc', expected an entry for each sequence"),
        ([None], "X has 2 sequences but allowed has 1"),
        ([None, ["a"]], "sequence 1: 2 positions but 1 entries in allowed"),
        ([None, "ab"], "allowed of sequence 1 is 'ab', expected None or a list"),
        ([None, {"a", "b"}], "allowed of sequence 1 is .* expected None or a list"),
        (
            [None, [None, "a"]],
            "sequence 1, position 1: allowed has 'a', expected None or a collection of labels",
        ),
        ([None, [None, 3]], "sequence 1, position 1: allowed has 3, expected None or a collection"),
        ([None, [None, []]], "sequence 1, position 1: allowed has no label; expected None where all are"),
        ([None, [None, ["z"]]], "sequence 1, position 1: unknown label 'z'; the labels are a, b"),
        ([None, [None, frozenset("az")]], "sequence 1, position 1: unknown label 'z'"),
        (
            [None, [None, [["a"]]]],
            "sequence 1, position 1: allowed has \\[\\[.a.\\]\\], expected labels in it",
        ),
    ],
)
def test_allowed_labels_are_refused_with_a_message(allowed: Any, words: str) -> None:
    X, y = [[["x"]], [["x"], ["y"]]], [["a"], ["a", "b"]]
    crf = CRF(optimizer=FEW).fit(X, y)
    for ask in (lambda: crf.predict(X, allowed=allowed), lambda: CRF().fit(X, y, allowed=allowed)):
        with pytest.raises(InputError, match=words):
            ask()


@pytest.mark.parametrize(
    ("y", "words"),
    [
        ([["a"], ["a", "b"]], "sequence 1, position 1"),
        ([["c"], ["a", {"b", "d"}]], "sequence 1, position 1"),
    ],
)
def test_gold_labels_that_are_not_allowed_are_refused(y: Any, words: str) -> None:
    X = [[["x"]], [["x"], ["y"]], [["z"]]]
    with pytest.raises(ImpossibleLabelsError, match=words):
        CRF().fit(X, [*y, ["c"]], allowed=[None, [None, ("a", "c")], None])
    partial = [["a"], ["a", {"b", "c"}], [None]]
    CRF(optimizer=FEW).fit(X, partial, allowed=[None, [None, ("a", "c")], [["a", "b"]]])


def test_held_out_data_may_have_allowed_labels() -> None:
    X, y = corpus()
    only = [[{label} for label in labels] for labels in y]
    scores: list[float | None] = []
    CRF(optimizer=FEW).fit(
        X, y, dev=(X, y, only), callback=lambda progress: scores.append(progress.dev_score)
    )
    assert set(scores) == {1.0}


def test_allowed_labels_without_bigrams() -> None:
    X, y = corpus(8, seed=4, lengths=(0, 3))
    crf = CRF(optimizer=FEW).fit(*corpus())
    allowed = draw_allowed(y, 2)
    free = crf.predict_nbest(X, 100)
    for n, best in enumerate(crf.predict_nbest(X, 100, allowed=allowed)):
        left = [
            (p, labels)
            for p, labels in free[n]
            if all(s is None or label in s for label, s in zip(labels, allowed[n], strict=True))
        ]
        total = math.fsum(p for p, _ in left)
        assert [labels for _, labels in best] == [labels for _, labels in left]
        np.testing.assert_allclose([p for p, _ in best], [p / total for p, _ in left], rtol=1e-9)
    assert crf.score(X, y, allowed=[[{label} for label in labels] for labels in y]) == 1.0


# ---- files and parameters


@pytest.mark.parametrize(
    "structure",
    [
        Chain(bigrams="observed"),
        Chain(bigrams=STEPS, unseen="skip", end=False),
        Chain(bigrams=STEPS, unseen="soft"),
        Chain(bigrams=Bigrams.all([*LABELS, "z"]), unseen="extend"),
    ],
)
def test_constraints_are_saved(structure: Chain, tmp_path: Path) -> None:
    X, y = corpus()
    crf = CRF(structure=structure, optimizer=FEW).fit(X, y)
    crf.save(tmp_path / "m.crf")
    for again in (crfkit.load(tmp_path / "m.crf"), pickle.loads(pickle.dumps(crf))):
        assert again.structure_ == crf.structure_
        assert again.structure_.bigrams == crf.structure_.bigrams
        np.testing.assert_array_equal(again.log_probability(X, y), crf.log_probability(X, y))
        assert again.predict(X, allowed=draw_allowed(y, 0)) == crf.predict(X, allowed=draw_allowed(y, 0))
    loaded = crfkit.load(tmp_path / "m.crf").structure
    assert (loaded.start, loaded.end, loaded.unseen) == (structure.start, structure.end, structure.unseen)
    if structure.bigrams == "observed":
        assert loaded == structure
    else:  # pairs of labels that training did not have are not in the file
        assert loaded.bigrams == crf.structure_.bigrams


def test_structures_are_parameters() -> None:
    crf = CRF(structure=Chain(bigrams=STEPS))
    assert clone(crf).structure == crf.structure
    crf.set_params(structure__unseen="soft", structure__bigrams="observed")
    assert crf.structure == Chain(bigrams="observed", unseen="soft")
    with pytest.raises(ArgumentError, match=r"Chain\.unseen"):
        crf.set_params(structure__unseen="no")
    assert CRF().fit(*corpus(5)).structure_ == Chain()


def test_pruning_keeps_the_constraints() -> None:
    X, y = corpus()
    crf = CRF(structure=Chain(bigrams="observed"), l1=3.0, optimizer=FEW).fit(X, y)
    assert (crf.weights_ == 0.0).sum() < 20
    assert all(
        STEPS.allows(labels) for labels in itertools.chain.from_iterable(crf.sample(X, 20, random_state=0))
    )
