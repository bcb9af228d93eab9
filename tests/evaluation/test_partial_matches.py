"""Partial matches of spans: equal to nervaluate's counts."""

from __future__ import annotations

import random
from typing import Any

import pytest
from benchmarks.corpora import find_corpus

from crfkit.data import read_columns
from crfkit.errors import ArgumentError, LabelError, ShapeError
from crfkit.evaluation import SCENARIOS, MatchCounts, PartialMatches, Span, partial_matches

Sequences = list[list[str]]


def random_labels(rng: random.Random, length: int, types: str = "XYZ") -> list[str]:
    """Labels of BIO, ill-formed ones among them; some sequences have long spans, others short ones."""
    found: list[str] = []
    stay = rng.choice([0.0, 0.5, 0.8])
    while len(found) < length:
        if found and found[-1] != "O" and rng.random() < stay:
            found.append(f"I{found[-1][1:]}")
        else:
            found.append(rng.choice(["O", *(f"{b}-{t}" for b in "BI" for t in types)]))
    return found


def disturbed(rng: random.Random, labels: list[str], types: list[str]) -> list[str]:
    """Labels as a mediocre model gives them: ends moved, types changed, spans lost and made up."""
    return [
        rng.choice(["O", *(f"{b}-{t}" for b in "BI" for t in types)]) if rng.random() < 0.15 else label
        for label in labels
    ]


def by_nervaluate(gold: Sequences, predicted: Sequences, types: list[str]) -> dict[str, Any]:
    nervaluate = pytest.importorskip("nervaluate")
    found: dict[str, Any] = nervaluate.Evaluator(gold, predicted, tags=types, loader="list").evaluate()
    return found


FIGURES = (
    "correct",
    "incorrect",
    "partial",
    "missed",
    "spurious",
    "possible",
    "actual",
    "precision",
    "recall",
    "f1",
)


def assert_equal(found: PartialMatches, expected: dict[str, Any]) -> None:
    assert set(found.types) == set(expected["entities"])
    pairs = [(found.overall, expected["overall"])]
    pairs += [(found.types[name], expected["entities"][name]) for name in found.types]
    for ours, theirs in pairs:
        for scenario in SCENARIOS:
            for figure in FIGURES:
                other = getattr(theirs["ent_type" if scenario == "type" else scenario], figure)
                assert getattr(ours[scenario], figure) == pytest.approx(other, rel=1e-12), (scenario, figure)


@pytest.mark.parametrize("seed", range(40))
def test_random_sequences_are_counted_as_nervaluate_counts(seed: int) -> None:
    rng = random.Random(seed)
    sizes = [rng.randrange(1, 15) for _ in range(100)]
    gold = [random_labels(rng, size) for size in sizes]
    predicted = [
        random_labels(rng, len(labels)) if rng.random() < 0.5 else disturbed(rng, labels, ["X", "Y"])
        for labels in gold
    ]
    assert_equal(partial_matches(gold, predicted), by_nervaluate(gold, predicted, ["X", "Y", "Z"]))


def test_long_spans_overlap_from_one_percent_on() -> None:
    for length in (99, 100, 101, 250):
        gold = [["B-X", *["I-X"] * (length - 1)]]
        for shared in (1, 2, 3):
            predicted = [["B-X", *["I-X"] * (shared - 1), *["O"] * (length - shared)]]
            assert_equal(partial_matches(gold, predicted), by_nervaluate(gold, predicted, ["X"]))


@pytest.mark.parametrize(
    "name", ["esp.train", "esp.testa", "esp.testb", "ned.train", "ned.testa", "ned.testb"]
)
def test_names_of_conll_2002_are_counted_as_nervaluate_counts(name: str) -> None:
    path = find_corpus("conll2002", name)
    if path is None:
        pytest.skip("CoNLL-2002 is not in the folder CRFKIT_DATA")
    gold = [[row[-1] for row in sentence.rows] for sentence in read_columns(path, comment=None)]
    types = sorted({label[2:] for labels in gold for label in labels if label != "O"})
    rng = random.Random(len(gold))
    predicted = [disturbed(rng, labels, types) for labels in gold]
    assert_equal(partial_matches(gold, predicted), by_nervaluate(gold, predicted, types))


def test_each_outcome() -> None:
    gold = [["B-PER", "I-PER", "O", "B-LOC", "O", "B-ORG", "I-ORG", "O"]]
    predicted = [["B-PER", "O", "O", "B-ORG", "O", "O", "O", "B-LOC"]]
    found = partial_matches(gold, predicted)
    assert found.overall["strict"] == MatchCounts(0, 2, 0, 1, 1)
    assert found.overall["exact"] == MatchCounts(1, 1, 0, 1, 1)
    assert found.overall["partial"] == MatchCounts(1, 0, 1, 1, 1)
    assert found.overall["type"] == MatchCounts(1, 1, 0, 1, 1)
    assert found.overall["partial"].precision == found.overall["partial"].recall == 0.5
    assert found.types["ORG"]["strict"] == MatchCounts(0, 0, 0, 1, 1)
    assert str(found).splitlines()[3].split() == [
        "partial",
        "1",
        "0",
        "1",
        "1",
        "1",
        "50.00",
        "50.00",
        "50.00",
    ]


def test_the_nearest_span_of_the_same_type_is_matched() -> None:
    gold = [["B-X", "O", "B-X", "I-X", "I-X", "I-X", "O"]]
    predicted = [["B-X", "I-X", "I-X", "I-X", "I-X", "B-X", "I-X"]]
    found = partial_matches(gold, predicted)
    assert found.overall["type"] == MatchCounts(
        1, 0, 0, 1, 1
    )  # the second one overlaps what is matched already
    assert found.overall["partial"] == MatchCounts(0, 0, 2, 0, 0)
    assert_equal(found, by_nervaluate(gold, predicted, ["X"]))


def test_spans_and_labels_are_counted_alike() -> None:
    gold, predicted = [["B-A", "I-A", "O", "B-B"]], [["B-A", "O", "O", "B-B"]]
    listed = [[Span(0, 1, "A", 0.9), Span(3, 4, "B", 0.4)]]
    assert partial_matches(gold, listed) == partial_matches(gold, predicted)
    assert partial_matches([[(0, 2, "A"), (3, 4, "B")]], listed) == partial_matches(gold, predicted)


def test_plain_labels_and_nothing_at_all() -> None:
    assert partial_matches([["A", "A", "O"]], [["A", "O", "O"]]).overall["partial"].partial == 1
    nothing = partial_matches([["O"]], [["O"]])
    assert nothing.overall["strict"] == MatchCounts()
    assert nothing.overall["strict"].f1 == 0.0
    assert nothing.types == {}


def test_bad_input() -> None:
    with pytest.raises(ShapeError):
        partial_matches([["O"]], [])
    with pytest.raises(LabelError):
        partial_matches([["B-X"]], [["E-X"]], "bio")
    with pytest.raises(ArgumentError):
        partial_matches([["B-X"]], [["B-X"]], min_overlap=0)
