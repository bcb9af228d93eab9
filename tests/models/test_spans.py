"""`CRF.predict_spans`: which spans, their probabilities, the scheme of the labels, errors."""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import crfkit
from crfkit import CRF, Span, evaluation
from crfkit.errors import ArgumentError, LabelError
from crfkit.inference import best_expected_f1
from crfkit.structures import Arc, GraphStructure, SpanLabels
from tests.oracles.conlleval import names, probabilities, read

X = [[["w=Rio"], ["w=de"], ["w=Janeiro"], ["w=is"]], [["w=Ana"], ["w=de"]], [], [["w=is"]]]
Y = [["B-L", "I-L", "I-L", "O"], ["B-P", "O"], [], ["O"]]


@pytest.fixture(scope="module")
def trained() -> CRF:
    return CRF(l2=0.1).fit(X, Y)


def every_span(crf: CRF[Any], x: list[Any], scheme: str) -> dict[Any, float]:
    """P(start, end, label) from the probability of every label sequence."""
    outputs = list(itertools.product(crf.classes_, repeat=len(x)))
    p = np.exp(crf.log_probability([x] * len(outputs), outputs)).tolist()
    return probabilities(zip(outputs, p, strict=True), scheme)


@dataclass(frozen=True)
class SecondOrder(GraphStructure):
    """Every label depends on two before it."""

    def arcs(self, n_positions: int, labels: Sequence[Any]) -> Iterator[Arc]:
        """From pairs of labels to pairs of labels."""
        for t in range(n_positions):
            for a, b, c in itertools.product(labels if t > 1 else [None], labels if t else [None], labels):
                yield Arc(t, (a, b), (b, c), [c], [f"{a} {b} {c}"] if t > 1 else [])


def second(x: Any, label: str, i: int) -> dict[str, float]:
    """A feature function."""
    return {f"{x[i]} {label}": 1.0}


STRUCTURES: dict[str, dict[str, Any]] = {
    "chain": {},
    "observed": {"structure": crfkit.Chain(bigrams="observed")},
    "patterns": {"structure": crfkit.Patterns(["B-L I-L . O", "B-P O"])},
    "segments": {"structure": crfkit.Segments()},
    "graph": {"structure": SecondOrder()},
    "functions": {"features": crfkit.FeatureFunctions([second])},
    "dictionary": {"tag_dictionary": True, "features": "names"},
}


@pytest.mark.parametrize("name", STRUCTURES)
def test_spans_of_trained_models(name: str) -> None:
    words = name in ("functions", "dictionary")
    data: list[Any] = [[position[0][2:] for position in x] for x in X] if words else X
    crf = CRF(**STRUCTURES[name], l2=0.3).fit(data, Y)
    for x, found in zip(data, crf.predict_spans(data, 1e-9), strict=True):
        expected = {span: p for span, p in every_span(crf, x, "bio").items() if p >= 1e-9}
        assert {span[:3]: span.probability for span in found} == pytest.approx(expected, abs=1e-9)


def test_the_default_is_every_span_with_half_of_the_probability(trained: CRF) -> None:
    found = trained.predict_spans(X)
    assert found == trained.predict_spans(X, 0.5)
    assert found == [
        [span for span in spans if span.probability >= 0.5] for spans in trained.predict_spans(X, 0.01)
    ]
    assert [span[:3] for span in found[0]] == [(0, 3, "L")]
    assert found[0][0].probability == pytest.approx(every_span(trained, X[0], "bio")[0, 3, "L"], abs=1e-12)
    assert found[2] == []


def test_a_threshold_that_is_none(trained: CRF) -> None:
    """`threshold_for` gives None where no threshold is precise enough: no default takes its place."""
    curve = evaluation.span_precision_recall(Y, [[Span(3, 4, "L", 0.9)], [], [], []])
    assert curve.threshold_for(0.9) is None
    with pytest.raises(
        ArgumentError, match=r"threshold is None, expected a number above 0, up to 1 \(threshold_for"
    ):
        trained.predict_spans(X, curve.threshold_for(0.9))
    assert trained.predict_spans(X, "auto") == trained.predict_spans(X) == trained.predict_spans(X, 0.5)
    best = trained.predict_spans(X, decode="viterbi")
    assert trained.predict_spans(X, None, decode="viterbi") == best
    assert trained.predict_spans(X, "auto", decode="viterbi") == best
    for threshold in ("0.5", True, 0, 1.5, float("nan")):
        with pytest.raises(ArgumentError, match=r"threshold is .*, expected a number above 0, up to 1"):
            trained.predict_spans(X, threshold)  # type: ignore[arg-type]


def test_spans_of_the_best_labels(trained: CRF) -> None:
    found = trained.predict_spans(X, decode="viterbi")
    assert [[span[:3] for span in spans] for spans in found] == [
        [span[:3] for span in evaluation.spans(y)] for y in trained.predict(X)
    ]
    exact = every_span(trained, X[0], "bio")
    assert [span.probability for span in found[0]] == pytest.approx([exact[s[:3]] for s in found[0]])
    high = trained.predict_spans(X, found[0][0].probability, decode="viterbi")
    assert high == [[s for s in spans if s.probability >= found[0][0].probability] for spans in found]


def test_allowed_labels_restrict_the_spans(trained: CRF) -> None:
    allowed = [[["O"], None, None, None], None, None, None]
    [found, *_] = trained.predict_spans(X, 1e-9, allowed=allowed)
    outputs = [y for y in itertools.product(trained.classes_, repeat=4) if y[0] == "O"]
    p = np.exp(trained.log_probability([X[0]] * len(outputs), outputs))
    expected = probabilities(zip(outputs, (p / p.sum()).tolist(), strict=True), "bio")
    assert {s[:3]: s.probability for s in found} == pytest.approx(
        {s: p for s, p in expected.items() if p >= 1e-9}, abs=1e-9
    )


@pytest.mark.parametrize("structure", [crfkit.Chain(), crfkit.Chain(bigrams="bio"), crfkit.Segments()])
def test_spans_that_are_certain_reach_the_threshold_of_1(structure: Any) -> None:
    random = np.random.default_rng(0)
    X = random.choice([*"abc"], (10, 40)).tolist()
    Y = [["O", *random.choice(["O", "B-X", "B-X I-X", "B-X I-X I-X"], 40)] for _ in X]
    Y = [" ".join(y).split()[:40] for y in Y]
    crf: CRF = CRF(structure, features="U:%x[0,0]\nU:%x[-1,0]\nB", l2=0.01).fit(X, Y)
    allowed = [[[label] for label in y] for y in Y]
    expected = [evaluation.spans(y) for y in Y]
    for decode in (None, "viterbi", "f1"):
        assert crf.predict_spans(X, 1.0, decode=decode, allowed=allowed) == expected


def test_plain_labels_are_runs_of_equal_labels() -> None:
    crf = CRF().fit(X, [["a", "a", "b", "O"], ["b", "O"], [], ["O"]])
    expected = every_span(crf, X[0], "plain")
    assert {s[:3]: s.probability for s in crf.predict_spans(X, 1e-9)[0]} == pytest.approx(expected, abs=1e-9)
    numbers = CRF[int]().fit(X, [[7, 7, 8, 9], [8, 9], [], [9]])
    assert {span.label for span in numbers.predict_spans(X, 0.01)[0]} == {7, 8, 9}


def test_a_scheme_may_be_given(trained: CRF) -> None:
    assert trained.predict_spans(X, scheme="IOB2") == trained.predict_spans(X)
    runs = trained.predict_spans(X, 1e-9, scheme="plain")[0]
    assert {s[:3]: s.probability for s in runs} == pytest.approx(every_span(trained, X[0], "plain"), abs=1e-9)


@pytest.mark.parametrize("value", [0, -0.1, 1.5, float("nan"), "0.5", True])
def test_a_threshold_is_a_probability(trained: CRF, value: Any) -> None:
    with pytest.raises(ArgumentError, match="threshold"):
        trained.predict_spans(X, value)


def test_errors_name_what_was_given(trained: CRF) -> None:
    with pytest.raises(ArgumentError, match="decode is 'best'"):
        trained.predict_spans(X, decode="best")
    with pytest.raises(ArgumentError, match="'bioo'"):
        trained.predict_spans(X, scheme="bioo")
    with pytest.raises(LabelError, match="'I-L'"):
        trained.predict_spans(X, scheme="bmes")
    with pytest.warns(UserWarning, match="all labels are 'O'"):
        outside = CRF().fit(X, [["O"] * len(y) for y in Y])
    with pytest.raises(LabelError, match="only 'O'"):
        outside.predict_spans(X)
    mixed = CRF().fit(X, [["B-L", "I-L", "x", "O"], ["x", "O"], [], ["O"]])
    with pytest.raises(LabelError, match="'B-L' is one of spans and 'x' is not"):
        mixed.predict_spans(X)
    assert mixed.predict_spans(X, scheme="plain")


def test_offsets_in_characters() -> None:
    span = Span(1, 3, "LOC", 0.5)
    assert span.in_characters([(0, 3), (4, 6), (7, 14)]) == Span(4, 14, "LOC", 0.5)


@pytest.mark.parametrize("scheme", ["bio", "iob1", "iobes", "bilou", "plain"])
def test_labels_are_read_as_the_evaluation_reads_them(scheme: str) -> None:
    label_names = names(scheme, 7)
    labels = SpanLabels.of(label_names, scheme)
    for ids in itertools.product(range(7), repeat=3):
        y = [label_names[b] for b in ids]
        assert [span[:3] for span in labels.read(ids)] == read(y, scheme)
        if scheme != "plain":
            assert [span[:3] for span in evaluation.spans(y)] == read(y, scheme)


@pytest.mark.parametrize("seed", range(30))
def test_expected_f1_against_all_sets_of_spans(seed: int) -> None:
    random = np.random.default_rng(seed)
    data = []
    for _ in range(2):
        places = {tuple(sorted(random.choice(5, 2, replace=False).tolist())) for _ in range(4)}
        data.append([Span(a, b, "x", float(random.random() ** 3)) for a, b in sorted(places)])
    n_gold = float(random.random() * 3)

    def f1(chosen: Sequence[Span]) -> float:
        return 2 * sum(span.probability for span in chosen) / (len(chosen) + n_gold)

    def sets(spans: list[Span]) -> Iterator[tuple[Span, ...]]:
        for size in range(len(spans) + 1):
            for some in itertools.combinations(spans, size):
                if all(a.end <= b.start or b.end <= a.start for a, b in itertools.combinations(some, 2)):
                    yield some

    best = max(f1([*first, *second]) for first in sets(data[0]) for second in sets(data[1]))
    found = best_expected_f1(
        lambda least: [[span for span in spans if span.probability >= least] for spans in data], n_gold
    )
    assert f1([*found[0], *found[1]]) == pytest.approx(best, abs=1e-12)
    assert all(tuple(chosen) in set(sets(spans)) for chosen, spans in zip(found, data, strict=True))


def test_decoding_for_f1_takes_the_expected_number_of_spans(trained: CRF) -> None:
    found = trained.predict_spans(X, decode="f1")
    n_gold = sum(sum(every_span(trained, x, "bio").values()) for x in X)
    candidates = trained.predict_spans(X, 1e-9)
    expected = best_expected_f1(
        lambda least: [[s for s in spans if s.probability >= least] for spans in candidates], n_gold
    )
    assert found == expected
    assert found[0]


@pytest.mark.parametrize("kind", [{}, {"structure": crfkit.Chain(bigrams="observed")}])
def test_the_number_of_threads_changes_no_bit(kind: dict[str, Any]) -> None:
    random = np.random.default_rng(0)
    data = [[[f"w={random.integers(9)}"] for _ in range(n)] for n in random.integers(0, 20, size=60)]
    labels = [random.choice(["B-a", "I-a", "B-b", "I-b", "O"], size=len(x)).tolist() for x in data]
    crf = CRF(**kind).fit(data, labels)
    answers = []
    for n_threads in (1, 2, 5):
        crf.n_threads = n_threads
        answers.append([crf.predict_spans(data, 1e-3), crf.predict_spans(data, decode="f1")])
    assert answers[0] == answers[1] == answers[2]
