"""Right labels that a model can never predict, against all label sequences one by one."""

from __future__ import annotations

from collections.abc import Hashable
from itertools import pairwise, product

import numpy as np
import pytest

from crfkit import CRF, LBFGS, Bigrams, Chain, TagDictionary
from crfkit.errors import ShapeError
from crfkit.structures import END, START

LEXICON = {"x": ["A", "B"], "y": ["C"], "z": ["A", "B", "C"], "u": ["B"]}
PAIRS = {(START, "A"), (START, "B"), ("A", "A"), ("A", "B"), ("B", "A"), ("B", "C"), ("A", END), ("C", END)}
DATA = [["x", "x", "u", "y"], ["x", "z", "z"]], [["A", "A", "B", "C"], ["A", "B", "C"]]


def dictionary() -> TagDictionary:
    return TagDictionary.from_lexicon(LEXICON, ending_length=0)


def possible_outputs(
    words: list[str], allowed: list[set[str] | None], pairs: set[tuple[Hashable, Hashable]] | None
) -> list[tuple[str, ...]]:
    """All label sequences within the lexicon, or what is allowed, which goes before it, and the pairs."""
    sets = [own or LEXICON[word] for word, own in zip(words, allowed, strict=True)]
    return [
        labels
        for labels in product(*sets)
        if pairs is None or all(pair in pairs for pair in pairwise((START, *labels, END)))
    ]


@pytest.mark.parametrize("pairs", [None, PAIRS])
def test_against_brute_force(pairs: set[tuple[Hashable, Hashable]] | None) -> None:
    chain = Chain() if pairs is None else Chain(bigrams=Bigrams(pairs))
    crf = CRF(chain, "pos", LBFGS(max_iterations=30), tag_dictionary=dictionary()).fit(*DATA)
    random = np.random.default_rng(0)
    n_asked, seen = 0, set[bool]()
    for _ in range(300):
        words = random.choice(list(LEXICON), random.integers(1, 6)).tolist()
        choices = [{"A", "B"}, {"B", "C"}, {"A"}, *[None] * 9]
        allowed = [choices[random.integers(len(choices))] for _ in words]
        outputs = possible_outputs(words, allowed, pairs)
        if not outputs:
            continue
        gold = random.choice(["A", "B", "C", "unknown"], len(words)).tolist()
        expected = [all(output[i] != label for output in outputs) for i, label in enumerate(gold)]
        found = crf.find_impossible([words], [gold], allowed=[allowed])
        assert [one.tolist() for one in found] == [expected]
        n_asked, seen = n_asked + 1, seen.union(expected)
    assert n_asked > 50
    assert seen == {True, False}


def test_sets_and_labels_that_are_not_given() -> None:
    crf = CRF(features="pos", tag_dictionary=dictionary()).fit(*DATA)
    found = crf.find_impossible([["x", "x", "x", "y", "y"]], [[None, {"A", "C"}, {"C", "Q"}, "Q", "C"]])
    assert found[0].tolist() == [False, False, True, True, False]
    assert crf.find_impossible([], []) == []
    with pytest.raises(ShapeError):
        crf.find_impossible([["x"]], [["A", "A"]])
