"""`CRF(span_states="iobes")`: answers in the labels as given, of a model of states, against enumeration."""

from __future__ import annotations

import math
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crfkit import CRF, LBFGS, Bigrams, Chain, Patterns, Segments, load
from crfkit.errors import ArgumentError, ImpossibleLabelsError, InputError, LabelError, UnsupportedError
from crfkit.features import FeatureFunctions, Labels, StateLabels
from crfkit.models import find_states, heaviest_features, transition_weights
from tests.oracles.span_states import Weights, fits, spans_of, valid_sequences, write

LABELS = ["B-LOC", "B-PER", "I-LOC", "I-PER", "O"]
STATES = ["B-LOC", "S-LOC", "B-PER", "S-PER", "I-LOC", "E-LOC", "I-PER", "E-PER", "O"]
BACK = {state: {"S": "B", "E": "I"}[state[0]] + state[1:] for state in STATES if state[0] in "SE"}
Data = tuple[list[list[list[str]]], list[list[str]]]


def corpus(n: int = 40, seed: int = 0) -> Data:
    """Words that say little of their labels; all lengths of spans from 1 to 4."""
    random = np.random.default_rng(seed)
    X, Y = [], []
    for _ in range(n):
        y: list[str] = []
        while len(y) < random.integers(1, 6):
            length = int(random.integers(1, 5))
            kind = random.choice(["LOC", "PER", ""])
            y += write([(0, length, str(kind))], length, "bio") if kind else ["O"] * length
        Y.append(y[:6])
        X.append([[f"w={random.choice([label, 'B-PER', 'O', 'I-LOC'])}", "bias"] for label in y[:6]])
    return X, Y


@pytest.fixture(scope="module")
def crf() -> CRF:
    return CRF(l2=0.1, span_states="iobes").fit(*corpus())


@pytest.fixture(scope="module")
def weights(crf: CRF) -> Weights:
    return Weights.of(crf)


SHORT = [x[:4] for x in corpus(8, seed=1)[0]]


def test_labels_and_states(crf: CRF) -> None:
    assert (crf.classes_, crf.states_, crf.span_states_) == (LABELS, STATES, "iobes")
    plain = CRF().fit(*corpus())
    assert (plain.classes_, plain.states_, plain.span_states_) == (LABELS, LABELS, None)


@pytest.mark.parametrize("x", SHORT)
def test_best_labels_and_their_probabilities(crf: CRF, weights: Weights, x: Any) -> None:
    p = weights.distribution(x, LABELS)
    ranked = sorted(p, key=p.__getitem__, reverse=True)
    assert crf.predict([x]) == [list(ranked[0])]
    [best] = crf.predict_nbest([x], len(p) + 5)
    assert [tuple(y) for _, y in best][:10] == ranked[:10]
    assert len(best) == len(p)
    np.testing.assert_allclose([q for q, _ in best], [p[tuple(y)] for _, y in best], rtol=1e-9)
    for y in ranked[:3] + ranked[-3:]:
        np.testing.assert_allclose(crf.log_probability([x], [list(y)]), [math.log(p[y])], rtol=1e-9)


@pytest.mark.parametrize("x", SHORT)
def test_marginals_are_sums_over_states(crf: CRF, weights: Weights, x: Any) -> None:
    p = weights.distribution(x, LABELS)
    expected = np.zeros((len(x), len(LABELS)))
    for y, q in p.items():
        expected[np.arange(len(x)), [LABELS.index(label) for label in y]] += q
    np.testing.assert_allclose(crf.predict_marginals([x])[0], expected, atol=1e-12)


@pytest.mark.parametrize("scheme", [None, "bio", "plain"])
@pytest.mark.parametrize("x", SHORT[:3])
def test_probabilities_of_spans(crf: CRF, weights: Weights, x: Any, scheme: str | None) -> None:
    expected: dict[Any, float] = {}
    for y, q in weights.distribution(x, LABELS).items():
        for span in spans_of(y) if scheme != "plain" else runs(y):
            expected[span] = expected.get(span, 0.0) + q
    found = {span[:3]: span.probability for span in crf.predict_spans([x], 1e-12, scheme=scheme)[0]}
    assert {span for span in expected if expected[span] > 1e-9} <= found.keys()
    for span, q in expected.items():
        assert found.get(span, 0.0) == pytest.approx(q, abs=1e-9)


def runs(y: Any) -> list[tuple[int, int, str]]:
    found: list[tuple[int, int, str]] = []
    for i, label in enumerate(y):
        if label == "O":
            continue
        if found and found[-1][1:] == (i, label):
            found[-1] = (found[-1][0], i + 1, label)
        else:
            found.append((i, i + 1, label))
    return found


@pytest.mark.parametrize("decode", ["viterbi", "marginal", "spans", "f1"])
def test_every_output_is_valid(crf: CRF, decode: str) -> None:
    X = corpus(50, seed=2)[0]
    for y in crf.predict(X, decode=decode):
        assert write(spans_of(y), len(y), "bio") == y


def test_labels_by_marginals_where_they_are_valid(crf: CRF, weights: Weights) -> None:
    X = corpus(30, seed=3)[0]
    n_same = 0
    for x, y, table in zip(X, crf.predict(X, decode="marginal"), crf.predict_marginals(X), strict=True):
        by_position = [LABELS[k] for k in table.argmax(axis=1)]
        n_valid = by_position == write(spans_of(by_position), len(x), "bio")
        assert by_position == y or not n_valid
        n_same += n_valid
        if not n_valid:  # the valid sequence with the highest sum
            total = {z: sum(row[LABELS.index(label)] for row, label in zip(table, z, strict=True))
                     for z in valid_sequences(LABELS, len(x))}  # fmt: skip
            assert total[tuple(y)] == pytest.approx(max(total.values()))
    assert 0 < n_same < len(X)


@pytest.mark.parametrize("x", SHORT[:4])
def test_allowed_labels_allow_their_states(crf: CRF, weights: Weights, x: Any) -> None:
    allowed: list[Any] = [{"O", "B-PER"}, None, {"I-PER", "O", "B-LOC"}, None][: len(x)]
    p = weights.distribution(x, LABELS, allowed)
    assert crf.predict([x], allowed=[allowed]) == [list(sorted(p, key=p.__getitem__)[-1])]
    expected = np.zeros((len(x), len(LABELS)))
    for y, q in p.items():
        expected[np.arange(len(x)), [LABELS.index(label) for label in y]] += q
    np.testing.assert_allclose(crf.predict_marginals([x], allowed=[allowed])[0], expected, atol=1e-12)
    whole = weights.distribution(x, LABELS)
    partial = sum(q for y, q in whole.items() if fits(y, allowed))
    np.testing.assert_allclose(crf.log_probability([x], [allowed]), [math.log(partial)], rtol=1e-9)


def test_samples_are_label_sequences(crf: CRF, weights: Weights) -> None:
    x = next(x for x in SHORT if len(x) >= 3)[:3]
    p = weights.distribution(x, LABELS)
    drawn = crf.sample([x], 4000, random_state=1)[0]
    for y, q in p.items():
        assert drawn.count(list(y)) / 4000 == pytest.approx(q, abs=0.03)


@pytest.mark.parametrize(("label", "against"), [(None, None), ("O", "B-PER"), ("I-LOC", None), (None, "O")])
def test_explanations_add_up(crf: CRF, label: str | None, against: str | None) -> None:
    x = next(x for x in SHORT if len(x) == 4)
    for i in range(1, 4):
        if label == against == None:  # noqa: E711
            row = crf.predict_marginals([x])[0][i]
            assert crf.explain(x, i).label == LABELS[int(row.argmax())]
        why = crf.explain(x, i, label, against)
        table: dict[Any, float] = dict(zip(LABELS, crf.predict_marginals([x])[0][i].tolist(), strict=True))
        assert why.probability == pytest.approx(table[why.label])
        assert why.against_probability == pytest.approx(table[why.against])
        assert why.log_odds == pytest.approx(math.log(table[why.label] / table[why.against]))
        assert why.log_odds == pytest.approx(math.fsum(part.value for part in why.parts))


def test_explanation_of_what_cannot_be(crf: CRF) -> None:
    why = crf.explain(SHORT[0], 0, "I-PER", "O")
    assert (why.probability, why.log_odds) == (0.0, -math.inf)
    assert why.parts[0].name == "no allowed label sequence has I-PER here"
    with pytest.raises(LabelError, match="label and against are both 'O'"):
        crf.explain(SHORT[0], 0, "O", "O")


def test_explanation_of_a_span(crf: CRF) -> None:
    x = next(x for x in SHORT if len(x) == 4)
    why = crf.explain_span(x, 1, 3, "PER")
    p = {span[:3]: span.probability for span in crf.predict_spans([x], 1e-12)[0]}[1, 3, "PER"]
    assert why.probability == pytest.approx(p)
    assert why.log_odds == pytest.approx(math.fsum(part.value for part in why.parts))


def test_impossible_positions(crf: CRF) -> None:
    x = SHORT[0][:1] * 3
    y = ["I-PER", "I-PER", "B-ORG"]
    assert [found.tolist() for found in crf.find_impossible([x], [y])] == [[True, False, True]]
    assert not crf.find_impossible([x], [[{"I-PER", "B-PER"}, None, "I-LOC"]])[0].any()


def test_weights_by_name(crf: CRF, weights: Weights) -> None:
    found = heaviest_features(crf, "B-PER", 3)
    for feature, weight in found:
        name, _, state = feature.rstrip("]").rpartition(" [")
        assert state in ("B-PER", "S-PER")
        assert weights.of_features[name, state] == weight
    with pytest.raises(LabelError):
        heaviest_features(crf, "S-PER")
    pairs = {(before, after) for before, after, _ in transition_weights(crf)}
    assert ("B-PER", "E-PER") in pairs
    assert ("B-PER", "O") not in pairs
    assert find_states(crf, ["B-PER", "I-PER", "I-PER", "B-LOC"]) == ["B-PER", "I-PER", "E-PER", "S-LOC"]
    assert find_states(crf, ["O", "I-PER"]) is find_states(crf, ["B-ORG"]) is None
    assert find_states(CRF().fit(*corpus()), ["O", "I-PER"]) == ["O", "I-PER"]


def test_files_and_pickles(crf: CRF, tmp_path: Path) -> None:
    X, y = corpus(20, seed=4)
    crf.save(tmp_path / "model.crf")
    for copy in (load(tmp_path / "model.crf"), pickle.loads(pickle.dumps(crf))):
        assert (copy.span_states, copy.span_states_, copy.states_) == ("iobes", "iobes", STATES)
        assert copy.structure == Chain()
        np.testing.assert_array_equal(copy.log_probability(X, y), crf.log_probability(X, y))
        assert copy.predict(X) == crf.predict(X)
        again = copy.fit(*corpus())
        np.testing.assert_array_equal(again.weights_, crf.weights_)


def test_a_damaged_file_is_refused(crf: CRF) -> None:
    from crfkit.models.files.crf_file import unpack

    file = crf._pack({"parameters": {}}, np.zeros((0, 5)), single_precision=False)
    for wrong in ({"span_states": "bilou"}, {"labels": ["A", "B", "C", "D", "E"]}):
        with pytest.raises(InputError):
            unpack(file._replace(settings=file.settings | wrong))
    arrays = {name: array for name, array in file.arrays.items() if not name.startswith("bigrams")}
    with pytest.raises(InputError, match="states of spans without the bigrams"):
        unpack(file._replace(arrays=arrays))


# ---- which labels, which settings


def test_single_positions_alone_have_one_state() -> None:
    crf = CRF(span_states="iobes").fit([[["a"], ["b"]]], [["B-X", "O"]])
    assert (crf.classes_, crf.states_) == (["B-X", "O"], ["S-X", "O"])
    with pytest.warns(UserWarning, match="all labels are 'B-X'"):
        CRF(span_states="iobes").fit([[["a"], ["b"]]], [["B-X", "B-X"]])
    assert crf.predict([[["a"], ["b"]]]) == [["B-X", "O"]]


def test_words_of_characters_have_no_types() -> None:
    X = [[["a"], ["b"], ["c"]], [["c"], ["a"], ["b"]]]
    crf = CRF(l2=0.1, span_states="iobes").fit(X, [["B", "I", "B"], ["B", "B", "I"]])
    assert crf.states_ == ["B", "S", "I", "E"]
    assert crf.predict(X) == [["B", "I", "B"], ["B", "B", "I"]]


def test_spans_that_begin_with_inside_are_read_as_conlleval_reads_them() -> None:
    X, y = corpus()
    iob1 = [["I" + label[1:] if label[0] == "B" and (i == 0 or labels[i - 1][2:] != label[2:]) else label
             for i, label in enumerate(labels)] for labels in y]  # fmt: skip
    assert iob1 != y
    one, other = (CRF(span_states="iobes").fit(X, labels) for labels in (y, iob1))
    np.testing.assert_array_equal(one.weights_, other.weights_)
    crf = CRF(l2=0.1, span_states="iobes").fit([[["a"], ["b"]]], [["I-X", "I-X"]])
    assert (crf.classes_, crf.predict([[["a"], ["b"]]])) == (["B-X", "I-X"], [["B-X", "I-X"]])


def test_bigrams_of_labels_are_those_of_their_states() -> None:
    X, y = corpus()
    pairs = Bigrams.all(LABELS) - {("O", "O")}
    crf = CRF(Chain(bigrams=pairs, unseen="skip"), span_states="iobes")
    with pytest.warns(UserWarning, match="were left out"):
        crf.fit(X, y)
    found = crf.structure_.chain.bigrams
    assert isinstance(found, Bigrams)
    assert ("O", "O") not in found
    assert ("S-PER", "B-PER") in found
    assert ("S-PER", "E-PER") not in found
    copy = pickle.loads(pickle.dumps(crf))
    assert copy.structure_.bigrams == found
    assert ("B-PER", "I-PER") in copy.structure.bigrams
    assert ("O", "O") not in copy.structure.bigrams
    with pytest.raises(ImpossibleLabelsError, match="lie outside the bigrams"):
        CRF(Chain(bigrams=pairs), span_states="iobes").fit(X, y)
    same = CRF(Chain(bigrams="bio"), span_states="iobes").fit(X, y)
    np.testing.assert_array_equal(same.weights_, CRF(span_states="iobes").fit(X, y).weights_)


def test_bigrams_are_extended_by_pairs_of_labels(tmp_path: Path) -> None:
    """A pair that is seen allows all pairs of its states, so that a file, which names pairs of labels, keeps them."""
    X, y = corpus()
    crf = CRF(Chain(bigrams=Bigrams([("O", "O")]), unseen="extend"), span_states="iobes").fit(X[:8], y[:8])
    seen = Bigrams.observed(y[:8]) | Bigrams([("O", "O")])
    found = crf.structure_.chain.bigrams
    expected = Bigrams.where(lambda a, b: (BACK.get(a, a), BACK.get(b, b)) in seen, STATES)
    assert found == expected & Bigrams.scheme("iobes", STATES)
    crf.save(tmp_path / "m.crf")
    copy = load(tmp_path / "m.crf")
    assert copy.structure_ == crf.structure_
    for one in (copy, crf):
        one.partial_fit(X[8:], y[8:])
    assert copy.structure_ == crf.structure_
    np.testing.assert_array_equal(copy.weights_, crf.weights_)


def test_observed_bigrams_are_valid_ones() -> None:
    X, y = corpus()
    some: list[Any] = [["O" if label == "O" else {label, "O"} for label in own] for own in y]
    found = CRF(Chain(bigrams="observed"), span_states="iobes").fit(X, some).structure_.chain.bigrams
    assert isinstance(found, Bigrams)
    assert found <= Bigrams.scheme("iobes", STATES)


def place(x: Any, label: str, i: int) -> float:
    return float(i)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"structure": Segments()}, r"does not go with crfkit.Segments"),
        ({"structure": Patterns(["B-PER I-PER"])}, r"does not go with crfkit.Patterns"),
        ({"structure": Chain(bigrams="observed", unseen="soft")}, "unseen='soft'"),
        ({"features": FeatureFunctions([place])}, "does not go with feature functions"),
        ({"facets": "characters"}, "does not go with facets"),
    ],
)
def test_what_does_not_go_with_states(parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(UnsupportedError, match=message):
        CRF(span_states="iobes", **parameters).fit(*corpus())


@pytest.mark.parametrize("labels", [["A", "B", "C"], ["S-PER", "O", "B-PER"], ["O", "O", "O"]])
def test_labels_that_are_not_bio(labels: list[str]) -> None:
    with pytest.raises(LabelError, match="span states are for labels of spans in BIO"):
        CRF(span_states="iobes").fit([[["a"], ["b"], ["c"]]], [labels])


def test_values_that_are_none() -> None:
    with pytest.raises(ArgumentError, match="span_states is 'bilou', expected None, False, 'iobes'"):
        CRF(span_states="bilou").fit(*corpus())


# ---- from labels to states and back


@st.composite
def label_lists(draw: st.DrawFn) -> list[list[str]]:
    return draw(st.lists(st.lists(st.sampled_from([*LABELS, "B-X"]), max_size=8), min_size=1, max_size=4))


@given(label_lists())
def test_states_of_label_sequences(y: list[list[str]]) -> None:
    labels = StateLabels(Labels(sorted({*LABELS, "B-X"})))
    lengths = [len(own) for own in y]
    annotation = labels.encode(y, lengths)
    assert annotation.sets is None
    ptr = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])
    expected = [label for own in y for label in write(spans_of(own), len(own), "iobes")]
    assert [labels.classes[k] for k in annotation.labels] == expected
    written = labels.decode_sequences(annotation.labels, ptr)
    assert written == [write(spans_of(own), len(own), "bio") for own in y]


@given(label_lists(), st.data())
def test_partial_labels_have_the_states_of_what_they_allow(y: list[list[str]], data: st.DataObject) -> None:
    """The valid paths of states within the sets are those of the label sequences that agree with the entries."""
    labels = StateLabels(Labels(LABELS))
    own = write(spans_of([label if label != "B-X" else "O" for label in y[0]][:4]), min(len(y[0]), 4), "bio")
    entries: list[Any] = [data.draw(st.sampled_from([label, None, {label, "O", "I-PER"}])) for label in own]
    entries = [entry if not isinstance(entry, set) or len(entry) > 1 else None for entry in entries]
    annotation = labels.encode([entries], [len(entries)])
    sets = [{STATES[k]} if k >= 0 else set(STATES) for k in annotation.labels]
    if annotation.sets is not None:
        for i in range(len(own)):
            named = annotation.sets.between(i, i + 1).labels
            sets[i] = {STATES[k] for k in named} if len(named) else sets[i]
    for z in valid_sequences(LABELS, len(own)):
        states = write(spans_of(z), len(z), "iobes")
        assert all(state in known for state, known in zip(states, sets, strict=True)) == fits(z, entries)


def test_exact_optimum_is_that_of_states_written_by_hand() -> None:
    """The same model as one of labels in IOBES with the bigrams of that scheme."""
    X, y = corpus()
    by_hand = [write(spans_of(labels), len(labels), "iobes") for labels in y]
    exact = LBFGS(max_iterations=500, tolerance=1e-8)
    one = CRF(span_states="iobes", optimizer=exact).fit(X, y)
    other = CRF(Chain(bigrams="iobes"), optimizer=exact).fit(X, by_hand)
    assert sorted(one.states_) == other.classes_
    np.testing.assert_allclose(one.log_probability(X, y), other.log_probability(X, by_hand), rtol=1e-4)
