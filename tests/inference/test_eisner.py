"""Eisner's algorithm of the benchmarks against all projective trees of few words."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from benchmarks.eisner import best_projective, is_projective

from crfkit import SpanningTree
from crfkit.inference import decode


def dominates(heads: tuple[int, ...], head: int, word: int) -> bool:
    while word and word != head:
        word = heads[word - 1]
    return word == head


def projective_trees(n_words: int) -> list[tuple[int, ...]]:
    """With one root: every word reaches it, and a head dominates all words between it and its dependent."""
    return [
        heads
        for heads in product(range(n_words + 1), repeat=n_words)
        if heads.count(0) == 1
        and all(reaches_the_root(heads, word) for word in range(1, n_words + 1))
        and all(
            dominates(heads, head, between)
            for word, head in enumerate(heads, 1)
            for between in range(min(word, head) + 1, max(word, head))
        )
    ]


def reaches_the_root(heads: tuple[int, ...], word: int) -> bool:
    for _ in heads:
        word = heads[word - 1] if word else 0
    return word == 0


TREES = {n_words: projective_trees(n_words) for n_words in range(1, 6)}


def score(
    scores: np.ndarray[tuple[int, ...], np.dtype[np.float64]], heads: tuple[int, ...] | list[int]
) -> float:
    return sum(float(scores[head, word]) for word, head in enumerate(heads, 1))


def test_how_many_there_are() -> None:
    assert [len(TREES[n]) for n in TREES] == [1, 2, 7, 30, 143]  # binomial(3n − 2, n − 1) / n


@pytest.mark.parametrize("n_words", list(TREES))
@pytest.mark.parametrize("kind", ["normal", "whole numbers", "forbidden"])
def test_the_best_of_all(n_words: int, kind: str) -> None:
    random = np.random.default_rng(n_words)
    for _ in range(30):
        scores = random.normal(size=(n_words + 1, n_words + 1))
        if kind == "whole numbers":  # many ties
            scores = np.round(scores)
        possible = TREES[n_words]
        if kind == "forbidden":
            scores[random.random(scores.shape) < 0.3] = -np.inf
            keep = possible[random.integers(len(possible))]
            scores[list(keep), np.arange(n_words) + 1] = random.normal(size=n_words)
        found = best_projective(scores)
        assert tuple(found) in possible
        assert score(scores, found) == pytest.approx(
            max(score(scores, heads) for heads in possible), rel=1e-12
        )


def test_projective_or_not() -> None:
    for n_words, trees in TREES.items():
        projective = set(trees)
        for heads in product(range(n_words + 1), repeat=n_words):
            if heads.count(0) == 1 and all(reaches_the_root(heads, word) for word in range(1, n_words + 1)):
                assert is_projective(heads) == (heads in projective)


def test_never_above_the_best_tree_of_all() -> None:
    random = np.random.default_rng(0)
    for n_words in (10, 25):
        scores = random.normal(size=(n_words + 1, n_words + 1))
        heads = best_projective(scores)
        assert is_projective(heads)
        assert score(scores, heads) <= decode(SpanningTree(), scores).score + 1e-9
