"""`Parser.explain_arc` against sums over all trees, of first and second order, with all trees and projective ones."""

from __future__ import annotations

import math
from itertools import permutations

import numpy as np
import pytest

import crfkit
from crfkit.errors import ArgumentError, UnsupportedError
from crfkit.models import Parser
from tests.oracles.treebanks import random_treebank

KINDS = [("spanning", 1), ("projective", 1), ("projective", 2), ("spanning", 2)]


def trained(structure: str, order: int) -> tuple[Parser, list[crfkit.data.Sentence]]:
    sentences = random_treebank([2, 3, 4, 4], 3, single_root=True, unknown=0.0)
    parser = Parser(structure=structure, order=order, l2=0.1, optimizer=crfkit.AdaGrad(max_iterations=10))
    parser.fit(sentences)
    return parser, sentences


@pytest.mark.parametrize(("structure", "order"), KINDS)
def test_against_enumeration(structure: str, order: int) -> None:
    parser, sentences = trained(structure, order)
    approximate = (structure, order) == ("spanning", 2)  # belief propagation
    for sentence in sentences:
        T = len(sentence.words)
        probs = np.zeros((T + 1, T + 1))  # [head, dependent]
        for p, tree in parser.predict_nbest([sentence], 10**6)[0]:
            for m, word in enumerate(tree.words, start=1):
                probs[word.head, m] += p
        for m in range(1, T + 1):
            for h, g in permutations([h for h in range(T + 1) if h != m], 2):
                if probs[h, m] == 0.0 or probs[g, m] == 0.0:
                    continue
                found = parser.explain_arc(sentence, m, h, g)
                assert math.fsum(part.value for part in found.parts) == pytest.approx(
                    found.log_odds, abs=1e-9
                )
                if approximate:
                    continue
                assert found.log_odds == pytest.approx(math.log(probs[h, m] / probs[g, m]), abs=1e-9)
                assert found.probability == pytest.approx(probs[h, m], abs=1e-9)


def test_features_add_up_to_the_scores_of_arcs() -> None:
    parser, sentences = trained("spanning", 1)
    for sentence, scores in zip(sentences, parser.arc_scores(sentences), strict=True):
        sums = np.logaddexp.reduce(scores, axis=2)
        for m in range(1, len(sentence.words) + 1):
            found = parser.explain_arc(sentence, m)
            groups = found.by_group
            exact = sums[found.label, m] - sums[found.against, m]
            assert groups.get("feature", 0.0) + groups.get("relation", 0.0) == pytest.approx(exact, abs=1e-9)
            assert set(groups) <= {"feature", "relation", "tree"}


def test_second_order_has_siblings_and_grandparents() -> None:
    parser, sentences = trained("projective", 2)
    groups = {group for m in range(1, 5) for group in parser.explain_arc(sentences[-1], m).by_group}
    assert {"sibling", "grandparent"} <= groups


def test_defaults_are_the_likeliest_heads() -> None:
    parser, sentences = trained("spanning", 1)
    sentence = sentences[-1]
    [probs] = parser.arc_probabilities([sentence])
    for m in range(1, len(sentence.words) + 1):
        order = [h for h in np.argsort(-probs[:, m]).tolist() if h != m]
        found = parser.explain_arc(sentence, m)
        assert (found.kind, found.position, found.label, found.against) == ("arc", m, *order[:2])
        assert parser.explain_arc(sentence, m, against=order[0]).label == order[1]
        assert parser.explain_arc(sentence, m, order[-1]).against == order[0]
        assert str(found).startswith(f"head of word {m}: {order[0]}")


def test_bad_questions() -> None:
    parser, sentences = trained("spanning", 1)
    sentence = sentences[-1]
    with pytest.raises(ArgumentError, match="dependent is 0"):
        parser.explain_arc(sentence, 0)
    with pytest.raises(ArgumentError, match="head is 9"):
        parser.explain_arc(sentence, 1, 9)
    with pytest.raises(ArgumentError, match="the dependent itself"):
        parser.explain_arc(sentence, 1, 1)
    with pytest.raises(ArgumentError, match="both 2"):
        parser.explain_arc(sentence, 1, 2, 2)
    with pytest.raises(UnsupportedError, match="one word"):
        parser.explain_arc(crfkit.data.Sentence(sentence.words[:1]), 1)
