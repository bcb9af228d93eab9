"""Tag dictionaries: the labels that words may have, against a plain reading of the rules; files; complaints."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Hashable
from pathlib import Path

import numpy as np
import pytest

from crfkit.errors import ArgumentError, EmptyDataError, FeatureError, FileFormatError, ShapeError
from crfkit.features import Annotation, TagDictionary
from crfkit.structures import AllowedLabels

SYLLABLES = ["ba", "Ko", "lu", "sé", "ma", "x"]


def corpus(seed: int, n_sequences: int = 60) -> tuple[list[list[str]], list[list[str]]]:
    r = random.Random(seed)
    X = [
        ["".join(r.choices(SYLLABLES, k=r.randint(1, 3))) for _ in range(r.randint(0, 8))]
        for _ in range(n_sequences)
    ]
    return X, [[r.choice("NVA") + word.lower()[-1] for word in words] for words in X]


def by_the_rules(
    X: list[list[str]], y: list[list[str]], word: str, min_count: int, length: int, ending_count: int
) -> set[Hashable]:
    """What the documentation says, read literally."""
    positions = [
        (w.lower(), label) for ws, ls in zip(X, y, strict=True) for w, label in zip(ws, ls, strict=True)
    ]
    counts = Counter(w for w, _ in positions)
    word = word.lower()
    seen: set[Hashable] = {label for w, label in positions if w == word}
    if counts[word] >= min_count:
        return seen
    rare = [(w, label) for w, label in positions if counts[w] < min_count]
    for n in range(min(length, len(word)), -1, -1):
        alike = [(w, label) for w, label in rare if w.endswith(word[len(word) - n :])]
        if n == 0 or sum(w != word for w, _ in alike) >= ending_count:
            return seen | {label for _, label in alike}
    raise AssertionError


@pytest.mark.parametrize("seed", range(8))
def test_words_have_the_labels_that_the_rules_give(seed: int) -> None:
    X, y = corpus(seed)
    rules = (random.Random(seed).choice([1, 2, 4, 9]), seed % 5, 1 + seed % 4)
    dictionary = TagDictionary.from_data(
        X, y, min_count=rules[0], ending_length=rules[1], ending_count=rules[2]
    )
    known = {word for words in X for word in words}
    for word in [*known, "Zéba", "zzz", "kolulux", "É", ""]:
        expected = by_the_rules(X, y, word, *rules)
        assert set(dictionary.allowed_labels(word)) == (expected or set(dictionary.classes)), word
        assert (word in dictionary) == (word.lower() in {w.lower() for w in known})


def test_positions_and_gold_labels() -> None:
    X, y = corpus(1)
    dictionary = TagDictionary.from_data(X, y, min_count=3, ending_count=2)
    new = [["baKo", "zzz"], [], ["sé"]]
    allowed = dictionary.allowed(new)
    words = [word for sequence in new for word in sequence]
    assert allowed.n_positions == len(words)
    for i, word in enumerate(words):
        ids = allowed.between(i, i + 1).labels.tolist()
        assert tuple(dictionary.classes[k] for k in ids) == dictionary.allowed_labels(word)
    last = len(dictionary.classes) - 1
    gold = Annotation(np.array([0, -1, -1], np.int32), AllowedLabels.from_sets([None, None, [0, last]]))
    more = dictionary.allowed(new, gold)
    for i, named in enumerate([{0}, set[int](), {0, last}]):
        expected = set(allowed.between(i, i + 1).labels.tolist()) | named
        assert more.between(i, i + 1).labels.tolist() == sorted(expected)


def test_rows_and_dicts_have_words_in_a_column() -> None:
    words, y = [["the", "dogs"], ["the", "cats"]], [["D", "N"], ["D", "N"]]
    plain = TagDictionary.from_data(words, y, min_count=2)
    rows = [[("x", word) for word in sequence] for sequence in words]
    dicts = [[{"w": word, "n": 1.0} for word in sequence] for sequence in words]
    for X, column in ((rows, 1), (dicts, "w")):
        dictionary = TagDictionary.from_data(X, y, column, min_count=2)
        assert dictionary.words == plain.words
        assert dictionary.endings == plain.endings
        np.testing.assert_array_equal(dictionary.allowed(X).labels, plain.allowed(words).labels)
    with pytest.raises(FeatureError, match="sequence 0, position 0"):
        TagDictionary.from_data(rows, y, 2)
    with pytest.raises(FeatureError, match="sequence 1"):
        plain.allowed([["dogs"], "cats"])


def test_other_labels_are_dropped_and_ids_follow() -> None:
    dictionary = TagDictionary.from_lexicon({"a": ["N", "V"], "b": ["X"]}, ending_count=1)
    bound = dictionary.bind_labels(["V", "Z", "N"])
    assert bound.allowed_labels("a") == ("V", "N")
    assert bound.allowed_labels("b") == ("V", "Z", "N")  # nothing is left of its labels: all are allowed
    assert bound.allowed([["a", "b"]]).labels.tolist() == [0, 2]


def test_coverage() -> None:
    X, y = [["the", "dogs"], ["the", "cats"]], [["D", "N"], ["D", "N"]]
    dictionary = TagDictionary.from_data(X, y, min_count=2, ending_count=1)
    coverage = dictionary.coverage([["The", "birds", "sing"], ["the"]], [["D", "N", "V"], [None]])
    assert coverage[:4] == pytest.approx((3, 2 / 3, 1.0, 1 / 3))
    assert coverage[4:] == pytest.approx((1.0, 1.0, 0.5, 1.0))
    assert "66.67% of 3 positions" in str(coverage)
    with pytest.raises(ShapeError, match="X"):
        dictionary.coverage([["the", "dogs"]], [["D"]])


def test_lexicons(tmp_path: Path) -> None:
    path = tmp_path / "lexicon.tsv"
    path.write_text("dog\tN\ncan\tV\tN\n\nthe\tD\nran\tV\n", encoding="utf-8")
    dictionary = TagDictionary.from_lexicon(path, ending_count=2)
    assert dictionary.allowed_labels("CAN") == ("N", "V")
    assert dictionary.allowed_labels("the") == ("D",)
    assert dictionary.allowed_labels("fan") == ("N", "V")  # can and ran end alike
    assert dictionary.allowed_labels("xyz") == ("D", "N", "V")
    again = TagDictionary.from_lexicon(
        {"dog": ["N"], "can": ["V", "N"], "the": ["D"], "ran": ["V"]}, ending_count=2
    )
    assert again.words == dictionary.words
    assert again.labels.tolist() == dictionary.labels.tolist()
    path.write_text("dog\tN\ncat\n", encoding="utf-8")
    with pytest.raises(
        FileFormatError,
        match=r"lexicon\.tsv:2",
    ):
        TagDictionary.from_lexicon(path)
    with pytest.raises(ArgumentError, match="lexicon"):
        TagDictionary.from_lexicon({"dog": "N"})
    with pytest.raises(EmptyDataError):
        TagDictionary.from_lexicon({"dog": []})


def test_complaints() -> None:
    X, y = [["a"]], [["N"]]
    with pytest.raises(ArgumentError, match="min_count"):
        TagDictionary.from_data(X, y, min_count=0)
    with pytest.raises(ArgumentError, match="ending_length"):
        TagDictionary.from_data(X, y, ending_length=101)
    for name, least in (("min_count", 1), ("ending_length", 0), ("ending_count", 1), ("related", 0)):
        for value in (least - 1, True, 2.0, "2"):
            with pytest.raises(
                ArgumentError, match=f"{name} is .*, expected a whole number of at least {least}"
            ):
                TagDictionary.from_data(X, y, **{name: value})  # type: ignore[arg-type]
        TagDictionary.from_data(X, y, **{name: np.int64(least)})  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="ending_count"):
        TagDictionary.from_data(X, y, ending_count=True)
    with pytest.raises(EmptyDataError):
        TagDictionary.from_data(X, [[None]])
    with pytest.raises(ShapeError, match="X"):
        TagDictionary.from_data(X, [["N", "V"]])


def test_its_text_says_how_large_it_is() -> None:
    X, y = [["servus", "servum", "amicus", "amicum"]], [["n", "a", "n", "a"]]
    plain = TagDictionary.from_data(X, y, min_count=2, ending_count=1)
    assert repr(plain) == f"<TagDictionary of 4 words, {len(plain.endings)} endings and 2 labels>"
    related = TagDictionary.from_data(X, y, min_count=2, ending_count=1, related=2)
    assert related.related is not None
    assert repr(related).endswith(f" and 2 labels, {len(related.related.rules)} exchanges of endings>")


@pytest.mark.parametrize("kind", [np.int8, np.uint8, np.uint64])
def test_numbers_of_numpy_are_settings_as_others(kind: Callable[[int], int]) -> None:
    X, y = corpus(5)
    numbers = {"min_count": 2, "ending_length": 3, "ending_count": 1, "related": 2}
    known = TagDictionary.from_data(X, y, **numbers)
    found = TagDictionary.from_data(X, y, **{name: kind(number) for name, number in numbers.items()})
    for word in [*X[0], "balubalu", "x", "ba" * 150]:
        assert found.allowed_labels(word) == known.allowed_labels(word)
