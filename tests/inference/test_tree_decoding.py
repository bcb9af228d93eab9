"""Spanning trees one by one: the best, the k best, samples, the least risk, and how many there are."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from scipy import stats

from crfkit import SpanningTree, inference
from crfkit.errors import NoOutputError
from crfkit.inference import TreeBatch
from tests.oracles.oracle import Floats, TreeOracle, all_lead_to_the_root
from tests.oracles.tree_instances import draw_tree

ONE, MANY = SpanningTree(), SpanningTree(single_root=False)


# ---- best


def fast_enumeration(n_words: int, single_root: bool) -> Floats:
    """The heads of all trees over some words, [N, T]."""
    trees = [
        heads
        for heads in itertools.product(range(n_words + 1), repeat=n_words)
        if all_lead_to_the_root(list(heads)) and not (single_root and heads.count(0) > 1)
    ]
    return np.array(trees)


KINDS = ("positive", "negative", "mixed", "ties", "forbidden", "self-loops", "spread")


def draw_scores(kind: str, random: np.random.Generator, n: int, n_words: int) -> Floats:
    """Scores of n sentences, [n, T + 1, T + 1]."""
    scores = random.normal(size=(n, n_words + 1, n_words + 1))
    if kind == "positive":
        return np.abs(scores)
    if kind == "negative":
        return -np.abs(scores)
    if kind == "ties":
        return random.integers(-1, 2, size=scores.shape).astype(np.float64)
    if kind == "forbidden":
        return np.where(random.random(scores.shape) < 0.4, -np.inf, scores)
    if kind == "self-loops":
        scores[:, np.arange(n_words + 1), np.arange(n_words + 1)] = 1e9
        scores[:, :, 0] = 1e9
    return scores * 1e5 if kind == "spread" else scores


@pytest.mark.parametrize("structure", [ONE, MANY], ids=["one root", "many roots"])
@pytest.mark.parametrize("kind", KINDS)
def test_best_of_ten_thousand_graphs(kind: str, structure: SpanningTree) -> None:
    random = np.random.default_rng(len(kind))
    for n_words, n in ((1, 20), (2, 80), (3, 200), (4, 250), (5, 200)):  # 14 × 750 in all
        scores = draw_scores(kind, random, n, n_words)
        trees = fast_enumeration(n_words, structure.single_root)
        of_trees = scores[:, trees, np.arange(1, n_words + 1)].sum(axis=2)  # [n, N]
        highest = of_trees.max(axis=1)
        possible = highest > -np.inf
        found = TreeBatch(structure, scores[possible]).decode()
        known = {tuple(heads): number for number, heads in enumerate(trees.tolist())}
        for row, top, best in zip(of_trees[possible], highest[possible], found, strict=True):
            assert best.score == pytest.approx(top, rel=1e-12, abs=1e-12)
            assert row[known[tuple(best.output.tolist())]] == pytest.approx(top, rel=1e-12, abs=1e-12)
        for matrix in scores[~possible][:10]:
            assert inference.log_partition(structure, matrix) == -np.inf
            with pytest.raises(NoOutputError, match="no tree"):
                inference.decode(structure, matrix)


@pytest.mark.parametrize("n_words", [500, 2000])
def test_long_sentences(n_words: int) -> None:
    random = np.random.default_rng(n_words)
    for structure in (ONE, MANY):
        scores = random.normal(size=(n_words + 1, n_words + 1))
        best = inference.decode(structure, scores)
        assert np.isfinite(inference.score(structure, scores, best.output))
        tops = np.sort(np.where(np.eye(n_words + 1) > 0, -np.inf, scores)[:, 1:], axis=0)[-1]
        assert tops.sum() * 0.98 < best.score <= tops.sum()
    nested = np.full((n_words + 1, n_words + 1), -np.inf)  # cycles within cycles, as deep as they get
    nested[0, 1:] = -1e6
    for word in range(1, n_words):
        nested[word, word + 1], nested[word + 1, word] = float(word), float(-word)
    assert inference.decode(ONE, nested).score == pytest.approx(-1e6 + n_words * (n_words - 1) / 2, rel=1e-12)


def test_log_partition_of_a_long_sentence() -> None:
    scores = np.random.default_rng(0).normal(size=(301, 301)) * 5
    log_partition, marginals = TreeBatch(ONE, [scores]).log_partition_and_marginals()
    np.testing.assert_allclose(marginals[0][:, 1:].sum(axis=0), 1.0, rtol=0, atol=1e-12)
    assert log_partition[0] > inference.decode(ONE, scores).score


# ---- k best, samples, risk, counts


@pytest.mark.parametrize("structure", [ONE, MANY], ids=["one root", "many roots"])
@pytest.mark.parametrize("labels", [None, 2])
def test_k_best_of_longer_sentences(structure: SpanningTree, labels: int | None) -> None:
    """The k-th best is the best of the trees that are not among the first k − 1 (Lawler's partition, by hand)."""
    random = np.random.default_rng(3)
    scores = random.normal(size=(9, 9) if labels is None else (9, 9, labels))
    found = inference.k_best(structure, scores, 60)
    assert len({entry.output.tobytes() for entry in found}) == 60
    samples = inference.sample(structure, scores * 3, 3000, random_state=1)
    seen = {tree.tobytes(): inference.score(structure, scores, tree) for tree in samples}
    lowest, listed = found[-1].score, {entry.output.tobytes() for entry in found}
    better = [tree for tree, score in seen.items() if score > lowest + 1e-9]
    assert len(better) > 20
    assert set(better) <= listed


@pytest.mark.parametrize("structure", [ONE, MANY], ids=["one root", "many roots"])
@pytest.mark.parametrize("how", [{}, {"forbidden": 0.5}, {"labels": 2}, {"scale": 3.0, "forbidden": 0.3}])
def test_samples_by_chi_square(structure: SpanningTree, how: dict[str, Any]) -> None:
    for seed in range(3):
        words = (3, 3) if "labels" in how else (4, 4)
        instance = draw_tree(
            np.random.default_rng(seed), single_root=structure.single_root, words=words, **how
        )
        oracle, n = instance.oracle, 4000
        samples = inference.sample(structure, instance.scores, n, random_state=seed)
        seen = np.zeros(len(oracle.outputs))
        for tree in samples.reshape(n, words[0], -1).tolist():
            output: Any = tuple(map(tuple, tree)) if "labels" in how else tuple(head for [head] in tree)
            seen[oracle.by_output[output]] += 1
        expected = oracle.probabilities * n
        rare = expected < 5
        seen = np.append(seen[~rare], seen[rare].sum())
        expected = np.append(expected[~rare], expected[rare].sum())
        seen, expected = seen[expected > 0], expected[expected > 0]
        assert len(seen) < 2 or stats.chisquare(seen, expected).pvalue > 1e-4


def test_minimum_risk_has_the_most_expected_arcs() -> None:
    for seed in range(40):
        labels = None if seed % 2 else 2
        instance = draw_tree(
            np.random.default_rng(seed),
            words=(2, 4),
            single_root=seed % 3 > 0,
            labels=labels,
            forbidden=0.3,
        )
        oracle = instance.oracle
        expected = oracle.counts @ oracle.marginals  # [N] expected number of arcs that are right
        best = inference.minimum_risk(instance.structure, instance.scores)
        assert best.score == pytest.approx(expected.max(), rel=1e-12)
        parts = inference.parts(instance.structure, best.output, labels)
        assert parts.ravel() @ oracle.marginals == pytest.approx(best.score, rel=1e-12)


@pytest.mark.parametrize("structure", [ONE, MANY], ids=["one root", "many roots"])
@pytest.mark.parametrize("labels", [None, 2])
def test_counts(structure: SpanningTree, labels: int | None) -> None:
    random = np.random.default_rng(1)
    for n_words in (0, 1, 2, 3, 4):
        for share in (1.0, 0.6, 0.3):
            shape = (n_words + 1, n_words + 1) if labels is None else (n_words + 1, n_words + 1, labels)
            allowed = random.random(shape) < share
            trees = len(TreeOracle(np.where(allowed, 0.0, -np.inf), structure.single_root).outputs)
            assert inference.count(structure, allowed) == trees
            log_trees = math.log(trees) if trees else -math.inf
            assert inference.log_count(structure, allowed) == pytest.approx(log_trees, abs=1e-12)
    everything = np.ones((41, 41), dtype=np.bool_)
    assert (
        inference.count(ONE, everything) == 40**39
    )  # Cayley: n^(n − 2) trees, each with n words as the root
    assert inference.count(MANY, everything) == 41**39
    assert inference.log_count(ONE, np.ones((301, 301), dtype=np.bool_)) == pytest.approx(299 * math.log(300))
