"""Evaluation: spans by conlleval's rules, counts, ratios, confusions, and their texts."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crfkit.errors import ArgumentError, LabelError, ShapeError
from crfkit.evaluation import (
    SCHEMES,
    Span,
    SpanCounts,
    accuracy,
    confusion,
    evaluate,
    scheme_of,
    sequence_accuracy,
    span_report,
    spans,
)

# --- oracles ---
# conlleval decides by pairs of letters (before, here), whatever the types, and by a change of type.
ENDS = {"BB", "BO", "BS", "IB", "IO", "IS", "EE", "EI", "EO", "EB", "ES", "SS", "SB", "SI", "SE", "SO"}
STARTS = {"BB", "IB", "OB", "EB", "SB", "BS", "IS", "OS", "ES", "SS", "OI", "OE", "EE", "EI", "SE", "SI"}


def boundaries(labels: list[str]) -> tuple[list[bool], list[bool]]:
    """For each gap 0 … T: does a span end there, does one start there."""
    pairs = [(lb[0].replace("L", "E").replace("U", "S"), lb[2:]) for lb in ["O", *labels, "O"]]
    gaps = list(itertools.pairwise(pairs))
    ends = [p + t in ENDS or (p != "O" and kp != kt) for (p, kp), (t, kt) in gaps]
    starts = [p + t in STARTS or (t != "O" and kp != kt) for (p, kp), (t, kt) in gaps]
    return ends, starts


def spans_by_boundaries(labels: list[str]) -> list[tuple[int, int, str]]:
    ends, starts = boundaries(labels)
    found = []
    for i in (k for k, here in enumerate(starts) if here):
        j = next(k for k in range(i + 1, len(labels) + 1) if ends[k])
        found.append((i, j, labels[i][2:]))
    return found


def counts_of_a_running_comparison(gold: list[str], predicted: list[str]) -> tuple[int, int, int]:
    """conlleval's own way: walk once over both, remember whether both are in the same span so far."""
    (gold_ends, gold_starts), (ends, starts) = boundaries(gold), boundaries(predicted)
    correct = n_gold = n_predicted = 0
    together = False
    for k in range(len(gold) + 1):
        if together:
            if gold_ends[k] and ends[k]:
                correct += 1
                together = False
            elif gold_ends[k] != ends[k]:
                together = False
        if k < len(gold) and gold_starts[k] and starts[k] and gold[k][2:] == predicted[k][2:]:
            together = True
        n_gold += gold_starts[k]
        n_predicted += starts[k]
    return correct, n_predicted, n_gold


def encode(chunks: list[tuple[int, str]], scheme: str) -> list[str]:
    """Labels of consecutive pieces (length, type), type "" for outside, in a scheme."""
    labels: list[str] = []
    before = ""
    for length, kind in chunks:
        if not kind:
            labels += ["O"] * length
        elif scheme in ("IOB1", "IOB2", "BIO"):
            first = "B" if scheme != "IOB1" or kind == before else "I"
            labels += [f"{first}-{kind}"] + [f"I-{kind}"] * (length - 1)
        else:
            last, single = ("L", "U") if scheme == "BILOU" else ("E", "S")
            inside = "M" if scheme == "BMES" else "I"
            inner = ["B"] + [inside] * (length - 2) + [last] if length > 1 else [single]
            labels += [f"{letter}-{kind}" for letter in inner]
        before = kind
    return labels


TYPES = ["NP", "VP", "X-Y"]
pieces = st.lists(st.tuples(st.integers(1, 4), st.sampled_from(["", *TYPES])), max_size=8)
any_labels = st.lists(
    st.one_of(st.just("O"), st.builds("{}-{}".format, st.sampled_from("BIESLU"), st.sampled_from(TYPES))),
    max_size=9,
)


# --- spans ---
@pytest.mark.parametrize(
    ("labels", "wanted"),
    [
        ("", []),
        ("O", []),
        ("B-A I-A O", [(0, 2, "A")]),
        ("I-A I-A O I-A", [(0, 2, "A"), (3, 4, "A")]),  # IOB1: I begins a span after O
        ("I-A B-A I-A", [(0, 1, "A"), (1, 3, "A")]),  # IOB1: B parts neighbours of one type
        ("B-A B-A", [(0, 1, "A"), (1, 2, "A")]),
        ("B-A I-B", [(0, 1, "A"), (1, 2, "B")]),  # another type begins another span
        ("I-A I-B I-A", [(0, 1, "A"), (1, 2, "B"), (2, 3, "A")]),
        ("B-A I-A E-A S-A", [(0, 3, "A"), (3, 4, "A")]),
        ("B-A E-A B-A E-A", [(0, 2, "A"), (2, 4, "A")]),
        ("B-A S-A", [(0, 1, "A"), (1, 2, "A")]),  # B without its E ends before S
        ("E-A E-A", [(0, 1, "A"), (1, 2, "A")]),
        ("S-A I-A E-A", [(0, 1, "A"), (1, 3, "A")]),
        ("B-A E-B", [(0, 1, "A"), (1, 2, "B")]),
        ("B-A I-A L-A U-B", [(0, 3, "A"), (3, 4, "B")]),
        ("B-A-1 I-A-1", [(0, 2, "A-1")]),  # the first dash parts letter and type
        ("B I O I", [(0, 2, ""), (3, 4, "")]),  # bare letters
    ],
)
def test_spans_by_hand(labels: str, wanted: list[tuple[int, int, str]]) -> None:
    assert [span[:3] for span in spans(labels.split())] == wanted


@given(pieces, st.sampled_from(sorted(SCHEMES)))
def test_spans_are_what_was_encoded(chunks: list[tuple[int, str]], scheme: str) -> None:
    wanted, start = [], 0
    for length, kind in chunks:
        if kind:
            wanted.append(Span(start, start + length, kind))
        start += length
    labels = encode(chunks, scheme)
    assert spans(labels, scheme) == spans(labels) == wanted
    assert scheme_of(labels) is None or spans(labels, scheme_of(labels)) == wanted


@given(any_labels)
def test_spans_of_any_labels(labels: list[str]) -> None:
    assert [span[:3] for span in spans(labels)] == spans_by_boundaries(labels)


@given(st.lists(st.tuples(any_labels, any_labels), max_size=4))
def test_counts_of_any_labels(both: list[tuple[list[str], list[str]]]) -> None:
    gold = [g[: min(len(g), len(p))] for g, p in both]
    predicted = [p[: min(len(g), len(p))] for g, p in both]
    report = span_report(gold, predicted)
    wanted = [counts_of_a_running_comparison(g, p) for g, p in zip(gold, predicted, strict=True)]
    columns: tuple[float, ...] = tuple(map(sum, zip(*wanted, strict=True))) or (0, 0, 0)
    total = report.overall
    assert (total.correct, total.predicted, total.gold) == columns
    for name in ("correct", "predicted", "gold"):
        assert sum(getattr(counts, name) for counts in report.types.values()) == getattr(total, name)


def test_scheme_of() -> None:
    assert scheme_of(["O", "B-A", "I-A"]) == scheme_of(["I-A"]) == "IOB2"
    assert scheme_of(["O", "B-A", "S-A"]) == "IOBES"
    assert scheme_of(["L-A", "O"]) == "BILOU"
    for labels in (["NN", "VB"], ["O"], [], ["B-A", 1], ["B-A", "NN"], ["E-A", "L-A"], ["B-A", "O-A"]):
        assert scheme_of(labels) is None


def test_bad_labels_and_schemes() -> None:
    with pytest.raises(ArgumentError, match="scheme"):
        spans(["O"], "IOE")
    wanted = "position 1"
    with pytest.raises(LabelError, match=wanted):
        spans(["O", "E-A"], "IOB2")
    for label in ("NN", "", "O-A", "b-A", 7, None):
        with pytest.raises(LabelError, match="position 0"):
            spans([label])
    with pytest.raises(LabelError, match="sequence 1, position 0"):
        span_report([["O"], ["O"]], [["O"], ["NN"]])
    with pytest.raises(ArgumentError, match="single string 'BIO'"):
        spans("BIO")


# --- figures ---
GOLD = [["B-NP", "I-NP", "O", "B-VP"], ["B-NP", "B-NP", "O"], ["O"]]
GUESS = [["B-NP", "I-NP", "O", "B-NP"], ["B-NP", "I-NP", "O"], ["O"]]


def test_worked_example() -> None:
    # gold: NP(0,2) VP(3,4) | NP(0,1) NP(1,2); guess: NP(0,2) NP(3,4) | NP(0,2); one is right.
    report = span_report(GOLD, GUESS)
    assert report.overall == SpanCounts(correct=1, predicted=3, gold=4)
    assert report.types == {"NP": SpanCounts(1, 3, 3), "VP": SpanCounts(0, 0, 1)}
    assert report.overall.precision == pytest.approx(1 / 3)
    assert report.overall.recall == pytest.approx(1 / 4)
    assert report.overall.f1 == pytest.approx(2 / 7)
    assert report.accuracy == accuracy(GOLD, GUESS) == 6 / 8
    assert sequence_accuracy(GOLD, GUESS) == 1 / 3
    assert str(report) == (
        "processed 8 tokens with 4 phrases; found: 3 phrases; correct: 1.\n"
        "accuracy:  75.00%; precision:  33.33%; recall:  25.00%; FB1:  28.57\n"
        "               NP: precision:  33.33%; recall:  33.33%; FB1:  33.33  3\n"
        "               VP: precision:   0.00%; recall:   0.00%; FB1:   0.00  0"
    )


def test_confusion() -> None:
    table = confusion([["a", "a", "b"], ["a", "c"]], [["a", "b", "b"], ["d", "a"]])
    assert table.labels == ("a", "b", "c", "d")
    assert table.counts == {("a", "a"): 1, ("a", "b"): 1, ("a", "d"): 1, ("b", "b"): 1, ("c", "a"): 1}
    assert table.errors() == [("a", "b", 1), ("a", "d", 1), ("c", "a", 1)]
    assert table.errors(1) == [("a", "b", 1)]
    assert (
        str(table)
        == "gold  a  b  c  d\na     1  1  ·  1\nb     ·  1  ·  ·\nc     1  ·  ·  ·\nd     ·  ·  ·  ·"
    )
    assert table.table(1) == "gold  a\na     1"


def test_columns_of_long_labels_have_numbers() -> None:
    """A table of twenty joint tags would else have lines of a thousand characters."""
    long = "NOUN Case=Acc|Number=Sing"
    table = confusion([[long, "X"]], [[long, long]])
    assert str(table).splitlines() == [
        "gold                         1  2",
        "1 NOUN Case=Acc|Number=Sing  1  ·",
        "2 X                          1  ·",
    ]


def test_confusion_columns_are_as_wide_as_their_counts() -> None:
    assert str(confusion([["x"] * 1000], [["x"] * 1000])) == "gold     x\nx     1000"


def test_evaluation_of_spans_and_of_tags() -> None:
    both = evaluate(GOLD, GUESS)
    assert both.spans == span_report(GOLD, GUESS, "IOB2")
    assert (both.n_positions, both.n_sequences, both.accuracy, both.sequence_accuracy) == (8, 3, 6 / 8, 1 / 3)
    assert str(both) == (
        "tokens: 8; accuracy:  75.00%\n"
        "sequences: 3; wholly correct:  33.33%\n"
        f"{both.spans}\n"
        "most frequent confusions (gold → predicted):\n"
        "       1  B-NP → I-NP\n"
        "       1  B-VP → B-NP"
    )
    tags = evaluate([["NN", "VB"]], [["NN", "VB"]])
    assert tags.spans is None
    assert str(tags) == "tokens: 2; accuracy: 100.00%\nsequences: 1; wholly correct: 100.00%"
    with pytest.raises(LabelError):
        evaluate([["NN"]], [["NN"]], "IOB2")


def test_gold_sequences_that_the_model_cannot_give_are_counted() -> None:
    report = evaluate([["NN"], ["VB"], []], [["NN"], ["NN"], []], possible=[True, False, True])
    assert report.n_outside == 1
    assert str(report).splitlines()[2] == "gold sequences outside the constraints: 1 (33.33%)"
    report = evaluate([["NN", "VB"], ["VB"]], [["NN", "NN"], ["VB"]], possible=[False, True], n_impossible=1)
    assert str(report).splitlines()[3] == "gold labels that cannot be predicted: 1 (33.33% of tokens)"
    assert evaluate([], [], possible=[]).n_outside == 0
    assert evaluate([["NN"]], [["NN"]]).n_outside is None
    with pytest.raises(ShapeError):
        evaluate([["NN"]], [["NN"]], possible=[True, True])


def test_reports_on_lists_of_spans() -> None:
    """As `CRF.predict_spans` gives them: their probabilities do not count, and either side may be labels."""
    right = [[span._replace(probability=0.7) for span in spans(labels)] for labels in GOLD]
    found = [[tuple(span[:3]) for span in spans(labels)] for labels in GUESS]
    of_labels = span_report(GOLD, GUESS)
    for gold, predicted in ((right, found), (GOLD, found), (right, GUESS)):
        report = span_report(gold, predicted)
        assert (report.overall, report.types) == (of_labels.overall, of_labels.types)
        assert (report.n_positions, report.accuracy) == (0, 0)
        assert "tokens" not in str(report)
        assert "accuracy" not in str(report)
    nothing = span_report(GOLD, [[] for _ in GOLD])
    assert nothing.overall == SpanCounts(0, 0, of_labels.overall.gold)
    with pytest.raises(ShapeError, match="gold sequences and 1 predicted"):
        span_report(GOLD, found[:1])
    with pytest.raises(
        LabelError, match=r"predicted sequence 0, 'O' is no span, expected \(start, end, label\)"
    ):
        span_report([["O"]], [[Span(0, 1, "X"), "O"]])


def test_one_type_of_spans() -> None:
    import crfkit

    assert crfkit.Span is Span
    assert spans(["B-A", "I-A"]) == [crfkit.Span(0, 2, "A")]


def test_nothing_to_compare() -> None:
    assert accuracy([], []) == sequence_accuracy([], []) == accuracy([[]], [[]]) == 0.0
    assert sequence_accuracy([[]], [[]]) == 1.0
    report = span_report([["O"]], [["O"]])
    assert (report.overall.precision, report.overall.recall, report.overall.f1) == (0.0, 0.0, 0.0)
    assert span_report([], []).accuracy == 0.0
    assert str(confusion([], [])) == "gold"


@pytest.mark.parametrize("compare", [accuracy, sequence_accuracy, confusion, span_report, evaluate])
def test_what_cannot_be_compared(compare: object) -> None:
    assert callable(compare)
    with pytest.raises(ShapeError):
        compare([["O"]], [["O"], ["O"]])
    with pytest.raises(ShapeError, match="sequence 1"):
        compare([["O"], ["O", "O"]], [["O"], ["O"]])
    with pytest.raises(ArgumentError, match="sequence 0"):
        compare(["OO"], [["O", "O"]])
    with pytest.raises(ArgumentError, match="sequence 0, position 1"):
        compare([["O", None]], [["O", "O"]])
    with pytest.raises(ArgumentError, match="sequence 1, position 0"):
        compare([["O"], [{"B-A"}]], [["O"], ["O"]])
