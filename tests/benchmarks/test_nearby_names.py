"""Columns of a second tagger: what a first one finds nearby, and what training sentences know of each other."""

from __future__ import annotations

from benchmarks.chinese_names import with_found
from benchmarks.nearby_names import (
    FAR,
    KnownTypes,
    NamesNearby,
    TypesNearby,
    choose_spans,
    mean_spans,
    name_key,
    pairs_in_names,
    sure_labels,
    type_probabilities,
)

from crfkit import Span

ROME = Span(0, 1, "LOC", 0.8)


def test_probabilities_of_types_are_sums_over_spans() -> None:
    found = [Span(0, 2, "PER", 0.5), Span(1, 2, "PER", 0.25), Span(1, 3, "ORG", 0.125)]
    assert type_probabilities(3, found) == [{"PER": 0.5}, {"PER": 0.75, "ORG": 0.125}, {"ORG": 0.125}]
    assert type_probabilities(3, found, length=2) == [{"PER": 0.5}, {"ORG": 0.125}, {}]


def test_probabilities_of_models_are_averaged() -> None:
    first = [[Span(0, 2, "PER", 0.5), Span(0, 1, "PER", 0.25)], [ROME]]
    second = [[Span(0, 2, "PER", 0.25), Span(0, 2, "ORG", 0.5)], []]
    found = mean_spans([first, second])
    assert found[0] == [Span(0, 1, "PER", 0.125), Span(0, 2, "ORG", 0.25), Span(0, 2, "PER", 0.375)]
    assert found[1] == [Span(0, 1, "LOC", 0.4)]
    assert choose_spans(found, "spans") == [[found[0][2]], found[1]]
    assert choose_spans(found, "f1") == [[found[0][2]], found[1]]


def test_labels_say_how_sure_they_are() -> None:
    found = [Span(0, 2, "PER", 0.95), Span(1, 2, "LOC", 0.04), Span(3, 4, "ORG", 0.4), Span(4, 5, "LOC", 0.2)]
    assert sure_labels(6, found) == [
        ("B-PER", "B-PER 0"),
        ("E-PER", "E-PER 0"),
        ("O", "O"),
        ("S-ORG", "S-ORG 2"),
        ("O", "O LOC?"),
        ("O", "O"),
    ]


def test_words_see_their_types_elsewhere_within_so_many_sentences() -> None:
    types = TypesNearby([["Rome"], ["Rome"], [None], ["Rome"]], [[ROME], [], [], [Span(0, 1, "ORG", 0.94)]])
    assert [types.column(n, 1) for n in range(4)] == [["O 0 once"], ["LOC 1 once"], ["-"], ["-"]]
    assert types.column(0, 3) == ["ORG 2 some"]  # 0.47 of two places
    assert types.column(1, 3) == ["ORG 2 some"]  # 0.47 beside 0.4
    assert types.column(3, 3) == ["LOC 2 some"]


def test_a_word_sees_its_other_places_in_the_sentence() -> None:
    types = TypesNearby([["Rome", "Rome"]], [[ROME]])
    assert types.column(0, 0) == ["O 0 once", "LOC 1 once"]


def test_only_pairs_of_characters_in_names_are_looked_for() -> None:
    found = [[Span(0, 3, "LOC", 0.5)], []]
    keys = pairs_in_names(["北京市内", "市内北京"], found)
    assert keys == [["北京", "京市", None, None], [None, None, "北京", None]]
    assert TypesNearby(keys, found, length=2).column(1, 1) == ["-", "-", "LOC 2 once", "-"]


def test_capitalised_words_have_keys() -> None:
    words = ["ROMA", "Roma", "EFE", "USA", "roma", "A", "1990"]
    assert [name_key(word) for word in words] == ["Roma", "Roma", "EFE", "USA", None, None, None]


def test_whole_names_are_seen_except_at_their_own_place() -> None:
    sentences = [("New", "York"), ("in", "New", "York"), ("York",), *[("-",)] * 3, ("New", "York")]
    names = NamesNearby(sentences, [[Span(0, 2, "LOC", 0.95)], *[[]] * 6])
    assert names.column(0, 5) == ["-", "-"]
    assert names.column(1, 4) == ["-", "B LOC 0 once", "E LOC 0 once"]
    assert names.column(2, 5) == ["-"]
    assert names.column(6, 5) == ["-", "-"]  # too far away
    assert names.column(6, 6) == ["B LOC 2 once", "E LOC 2 once"]  # a name in one of two other places


def test_training_sentences_know_words_of_others_far_away() -> None:
    sentences = [("Rome",), *[("-",)] * FAR, ("Rome",)]
    known = KnownTypes(sentences, [["S-LOC"], *[["O"]] * FAR, ["S-ORG"]])
    assert known.columns(("Rome",), 0) == [("ORG 0 once", "S ORG 0")]
    assert known.columns(("Rome",), 1) == [("-", "-")]  # both are too near
    kinds, name = known.columns(("Rome",), None)[0]
    assert (kinds[3:], name[5:]) == (" 2 some", " 2")  # one of two types


def test_rows_of_chinese_characters_have_columns_for_what_is_found() -> None:
    texts = ["北京", "去北京"]
    X: list[list[tuple[str, ...]]] = [[(character,) for character in text] for text in texts]
    rows = with_found(X, texts, [[Span(0, 2, "LOC", 0.95)], []])
    assert [row[1:] for row in rows[0]] == [
        ("-", "-", "-", "B-LOC", "B-LOC 0", "O 0 once"),
        ("-", "-", "-", "E-LOC", "E-LOC 0", "-"),
    ]
    assert [(row[4], row[5], row[6]) for row in rows[1]] == [
        ("O", "O", "-"),
        ("O", "O", "LOC 0 once"),
        ("O", "O", "-"),
    ]
