"""Words of texts, gold and predicted ones compared."""

from __future__ import annotations

from typing import Any

import pytest

from crfkit.errors import ShapeError
from crfkit.evaluation import Counts, word_report

GOLD: list[Any] = [[("ab", ("N", "x")), ("c", ("V", "y")), ("d", ("N", "z"))], [("ef", ("N", "x"))]]


def test_counts_by_hand() -> None:
    found: list[Any] = [
        [
            ("ab", ("N", "q"), 0, 2, True),
            ("cd", ("N", "z"), 3, 5, False),
        ],  # as `WordSegmenter.predict` gives them
        [("ef", ("N", "x"), 0, 2, True)],
    ]
    report = word_report(GOLD, found)
    assert report.words == Counts(2, 3, 4)
    assert report.fields == (Counts(2, 3, 4), Counts(1, 3, 4))
    assert report.sentence_accuracy == 0.5
    assert word_report(GOLD, found, n_fields=1).fields == (Counts(2, 3, 4),)
    assert str(report).splitlines() == [
        "sentences: 2; wholly correct:  50.00%",
        "words: 4; found: 3; correct: 2",
        "            words: precision:  66.67%; recall:  50.00%; F1:  57.14",
        "     with 1 field: precision:  66.67%; recall:  50.00%; F1:  57.14",
        "    with 2 fields: precision:  33.33%; recall:  25.00%; F1:  28.57",
    ]


def test_spaces_do_not_count() -> None:
    gold: list[Any] = [[("New York", ("N",)), (" is", ("V",))]]
    assert word_report(gold, [[("NewYork", ("N",)), ("is", ("V",))]]).fields == (Counts(2, 2, 2),)
    assert word_report(gold, [[("NewYorki", ("N",)), ("s", ("V",))]]).words.correct == 0


def test_a_space_that_is_a_word() -> None:
    gold: list[Any] = [[("a", ("N",)), ("\u3000", ("S",)), ("b", ("N",))]]
    assert word_report(gold, gold).words == Counts(3, 3, 3)
    assert word_report(gold, [[("a\u3000", ("N",)), ("b", ("N",))]]).words == Counts(1, 2, 3)
    assert word_report(gold, [[("a", ("N",)), ("b", ("N",))]]).words == Counts(2, 2, 3)


def test_nothing() -> None:
    assert word_report([], []).words == Counts(0, 0, 0)
    assert word_report([[]], [[]]).sentence_accuracy == 1


def test_other_texts() -> None:
    with pytest.raises(ShapeError, match="2 gold sentences and 1 predicted"):
        word_report(GOLD, GOLD[:1])
    with pytest.raises(ShapeError, match="sentence 1 has the words of 'ef' in gold and of 'eg' predicted"):
        word_report(GOLD, [GOLD[0], [("eg", ("N", "x"))]])
