"""Chinese names: words by a dictionary beside all cuts of a text, rows of characters, and names from elsewhere."""

from __future__ import annotations

import math
from collections.abc import Iterator

import pytest
from benchmarks.chinese_words import Word, WordCutter, character_rows
from benchmarks.gazetteers import BLOCK
from benchmarks.known_names import FoundNames, KnownNames
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


PERSON = ["B-PER", "I-PER", "E-PER"]


def test_training_sentences_know_names_of_others_far_away() -> None:
    texts = ["王小明说", *["说"] * 3 * BLOCK, "王小明"]
    known = KnownNames(texts, [[*PERSON, "O"], *[["O"]] * 3 * BLOCK, ["O"] * 3])
    assert known.column("王小明", 3 * BLOCK + 1) == ["B PER 0 once", "I PER 0 once", "E PER 0 once"]
    assert known.column("王小明", BLOCK) == ["-"] * 3  # too near
    assert known.column("见王小明", None) == ["-", "B PER 2 once", "I PER 2 once", "E PER 2 once"]


def test_the_longest_known_name_is_seen() -> None:
    known = KnownNames(["北京", "北京市"], [["B-LOC", "E-LOC"], ["B-LOC", "I-LOC", "E-LOC"]])
    assert known.column("北京市", None) == ["B LOC 0 once", "I LOC 0 once", "E LOC 0 once"]
    assert known.column("北京", None) == ["B LOC 2 once", "E LOC 2 once"]  # a name in half of its places


def test_names_found_nearby_are_seen_except_at_their_own_place() -> None:
    texts = ["王小明说", "说王小明", *["说"] * 20, "王小明", *["说"] * 101, "王小明"]
    labels = [[*PERSON, "O"], *(["O"] * len(text) for text in texts[1:])]
    found = FoundNames(texts, labels)
    assert found.columns(0) == [("-", "-", "-")] * 4
    place = [(f"{letter} PER 2 once", f"{letter} PER") for letter in "BIE"]
    assert found.columns(1) == [("-", "-", "-"), (*place[0], "1"), (*place[1], "-"), (*place[2], "-")]
    assert found.columns(22) == [(near, "-", "-") for near, _ in place]  # near, not very near
    assert found.columns(len(texts) - 1) == [("-", "-", "-")] * 3  # too far away


def test_parts_of_foreign_and_japanese_persons_are_seen() -> None:
    names = ["比尔·克林顿", "桥本龙太郎"]
    labels = [["B-PER", *["I-PER"] * (len(name) - 2), "E-PER"] for name in names]
    found = FoundNames([*names, "克林顿和桥本"], [*labels, ["O"] * 6])
    assert [near[0] for _, near, _ in found.columns(2)] == ["B", "I", "E", "-", "B", "E"]
    assert found.columns(1)[0] == ("-", "-", "-")  # not of itself
