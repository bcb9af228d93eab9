"""Brown clusters against a plain implementation, which computes the information of every merge anew."""

from __future__ import annotations

import math
from itertools import combinations, pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crfkit import Clusters, _core
from crfkit.errors import ArgumentError, EmptyDataError
from crfkit.features import learn_clusters
from crfkit.features.knowledge.brown import number_words, tree_paths


def plain_merges(sentences: list[list[int]], n_words: int, n_classes: int) -> list[tuple[int, int]]:
    """The merges of words numbered by falling frequency; classes are sets of words."""
    bits = 30
    n_tokens = sum(map(len, sentences))
    needed = math.ceil(math.log2(4 * (n_tokens + 2) * math.log2(n_tokens + 2)))
    bits = max(0, min(30, 61 - needed))

    def information(classes: list[frozenset[int]]) -> int:
        """N times the average mutual information of neighbouring classes, but for F(N); n log n to a fixed point."""
        number = {word: k for k, words in enumerate(classes) for word in words}
        counts: dict[tuple[int, int], int] = {}
        left, right = [0] * len(classes), [0] * len(classes)
        for sentence in sentences:
            for a, b in pairwise(sentence):
                if a in number and b in number:
                    pair = (number[a], number[b])
                    counts[pair] = counts.get(pair, 0) + 1
                    left[pair[0]] += 1
                    right[pair[1]] += 1
        return sum(map(fixed, counts.values())) - sum(map(fixed, left)) - sum(map(fixed, right))

    def fixed(n: int) -> int:
        return round(math.ldexp(n * math.log2(n), bits)) if n > 1 else 0

    classes = [frozenset([word]) for word in range(min(n_classes, n_words))]
    waiting = list(range(len(classes), n_words))
    merges = []
    while len(classes) > 1 or waiting:
        if waiting:
            classes.append(frozenset([waiting.pop(0)]))
        before = information(classes)
        options = []
        for one, other in combinations(sorted(classes, key=min), 2):
            rest = [words for words in classes if words not in (one, other)]
            options.append((before - information([*rest, one | other]), min(one), min(other), one, other))
        _, kept, gone, one, other = min(options, key=lambda option: option[:3])
        merges.append((kept, gone))
        classes = [words for words in classes if words not in (one, other)] + [one | other]
    return merges


def core_merges(
    sentences: list[list[int]], n_words: int, n_classes: int, at_once: int
) -> list[tuple[int, int]]:
    tokens = np.array([word for sentence in sentences for word in sentence], dtype=np.int32)
    ptr = np.cumsum([0, *map(len, sentences)], dtype=np.int64)
    learner = _core.BrownClusters(tokens, ptr, n_words, n_classes)
    while learner.run(at_once):
        pass
    return [(kept, gone) for kept, gone in learner.merges().tolist()]


@given(st.lists(st.lists(st.integers(0, 9), max_size=12), max_size=6), st.integers(1, 12), st.integers(1, 4))
@settings(max_examples=120, deadline=None)
def test_merges_are_those_of_a_plain_implementation(
    sentences: list[list[int]], n_classes: int, at_once: int
) -> None:
    assert core_merges(sentences, 10, n_classes, at_once) == plain_merges(sentences, 10, n_classes)


def test_merges_of_a_text() -> None:
    random = np.random.default_rng(5)
    sentences = [random.zipf(1.6, size=12).clip(1, 30).tolist() for _ in range(60)]
    words, _, tokens, ptr = number_words(
        [list(map(str, sentence)) for sentence in sentences], 1, fold_case=False
    )
    numbered = [tokens[begin:end].tolist() for begin, end in pairwise(ptr.tolist())]
    for n_classes in (3, 8):
        expected = plain_merges(numbered, len(words), n_classes)
        assert core_merges(numbered, len(words), n_classes, 64) == expected


def test_words_are_numbered_by_frequency_and_rare_ones_end_a_piece() -> None:
    text = [["b", "x", "a", "a"], ["y"], [], ["a", "b", "z"]]
    words, counts, tokens, ptr = number_words(text, 2, fold_case=False)
    assert (words, counts) == (["a", "b"], [3, 2])
    pieces = [tokens[begin:end].tolist() for begin, end in pairwise(ptr.tolist())]
    assert [piece for piece in pieces if piece] == [[1], [0, 0], [0, 1]]


def test_paths_are_those_of_the_tree() -> None:
    # 4 words, 3 classes: 3 joins 1; then 2 joins 1, and 1 joins 0
    assert tree_paths([(1, 3), (1, 2), (0, 1)], 4, 3) == ["0", "10", "11", "10"]
    assert tree_paths([], 1, 5) == [""]
    assert tree_paths([(0, 2), (0, 1)], 3, 1) == ["", "", ""]


def test_clusters_of_a_text() -> None:
    text = ["the cat sleeps", "the dog sleeps", "The cat runs", "the dog runs", "the mouse sleeps"]
    said: list[tuple[int, int]] = []
    clusters = learn_clusters(
        [line.split() for line in text * 50], 2, fold_case=True, callback=lambda *report: said.append(report)
    )
    assert clusters["cat"] == clusters["dog"] == clusters["CAT"] == clusters["mouse"] != clusters["runs"]
    assert sorted(clusters.paths) == ["0", "1"]
    assert max(word.frequency for word in clusters.words()) == 250
    assert all(done <= total for done, total in said)


def test_errors() -> None:
    with pytest.raises(ArgumentError, match="n_classes is 0"):
        learn_clusters([["a"]], 0)
    with pytest.raises(ArgumentError, match="expected a list of words"):
        learn_clusters(["a b"], 2)
    with pytest.raises(EmptyDataError):
        learn_clusters([["a"]], 2, min_count=2)
    with pytest.raises(ValueError, match="a token is no word"):
        _core.BrownClusters(np.array([5], np.int32), np.array([0, 1], np.int64), 3, 2)
    for min_count in (0, -1, 1.5, None):
        with pytest.raises(ArgumentError, match="min_count is"):
            learn_clusters([["a"]], 2, min_count=min_count)  # type: ignore[arg-type]


@pytest.mark.parametrize(("text", "n_classes"), [("a b a c", 1), ("a a", 5)])
def test_a_single_class_has_a_path_that_files_can_hold(text: str, n_classes: int, tmp_path: Path) -> None:
    clusters = learn_clusters([text.split()], n_classes)
    clusters.write(tmp_path / "paths")
    assert clusters.paths == ("0",)
    assert Clusters.read(tmp_path / "paths").words() == clusters.words()


@pytest.mark.parametrize("fold_case", [False, True])
def test_a_text_file_of_clusters_is_the_resource_that_was_learnt(tmp_path: Path, fold_case: bool) -> None:
    """A model that was trained with the clusters takes the file that was written of them."""
    random = np.random.default_rng(0)
    text = [[f"W{word}" for word in random.integers(0, 30, 8)] for _ in range(200)]
    clusters = learn_clusters(text, 5, fold_case=fold_case)
    clusters.write(tmp_path / "paths")
    assert Clusters.read(tmp_path / "paths", fold_case=fold_case).digest == clusters.digest
