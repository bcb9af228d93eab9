"""Chinese names: words by a dictionary beside all cuts of a text, rows of characters, and names that are found again."""

from __future__ import annotations

import math
from collections.abc import Iterator

import pytest
from benchmarks.chinese_names import repeated
from benchmarks.chinese_words import Word, WordCutter, character_rows
from hypothesis import given
from hypothesis import strategies as st

ENTRIES = {"ab": (5, "n"), "b": (20, "v"), "abc": (1, "nr"), "ca": (7, "n"), "c": (2, "p"), "bcab": (1, "nt")}


def cuts(text: str) -> Iterator[list[str]]:
    """All segmentations of a text."""
    if not text:
        yield []
    for n in range(1, len(text) + 1):
        for rest in cuts(text[n:]):
            yield [text[:n], *rest]


@given(st.text("abcd", max_size=8))
def test_the_cut_is_the_most_probable_one(text: str) -> None:
    total = sum(count for count, _ in ENTRIES.values())

    def score(words: list[str]) -> float:
        known = [ENTRIES[word][0] if word in ENTRIES else 1 if len(word) == 1 else 0 for word in words]
        return math.prod(count / total for count in known)

    found = [word.text for word in WordCutter(ENTRIES).cut(text)]
    assert "".join(found) == text
    assert score(found) == pytest.approx(max(map(score, cuts(text))))


def test_rows_say_where_a_character_is_in_its_word() -> None:
    words = [Word("欧阳", "nr"), Word("说", "v")]
    assert character_rows("欧阳说", words, frozenset({"欧阳", "阳"})) == [
        ("欧", "B2", "B-nr", "欧阳", "-", "说", "2"),
        ("阳", "E2", "E-nr", "欧阳", "-", "说", "1"),
        ("说", "S1", "S-v", "说", "欧阳", "-", "0"),
    ]


def test_names_are_found_again_nearby_where_nothing_else_is() -> None:
    name, two = ["B-PER", "I-PER", "E-PER"], ["B-LOC", "E-LOC"]
    texts = ["王小明说", "说王小明", "王小明", "北京说北京", *["说"] * 100, "王小明"]
    labels = [[*name, "O"], ["O"] * 4, [*two, "O"], [*two, "O", "O", "O"], *[["O"]] * 100, ["O"] * 3]
    found = repeated(texts, labels)
    assert found[1] == ["O", *name]
    assert found[2] == labels[2]  # a part is in another name
    assert found[3] == labels[3]  # too short
    assert found[-1] == labels[-1]  # too far away
