"""Spanning trees: forms of allowed labels, batches, threads, and error messages."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from crfkit import SpanningTree, inference
from crfkit.inference import TreeBatch
from crfkit.structures import AllowedLabels, is_tree
from tests.oracles.oracle import Floats

ONE, MANY = SpanningTree(), SpanningTree(single_root=False)


# ---- allowed labels, batches, threads


def test_forms_of_allowed_agree() -> None:
    scores = np.random.default_rng(0).normal(size=(5, 5))
    heads = [2, -1, -1, 3]
    mask = np.ones((5, 5), dtype=np.bool_)
    mask[:, 1], mask[:, 4] = np.arange(5) == 2, np.arange(5) == 3
    forms: list[Any] = [heads, np.array(heads), mask, AllowedLabels.from_sets([[2], None, None, [3]])]
    expected = inference.marginals(ONE, np.where(mask, scores, -np.inf))
    for form in forms:
        np.testing.assert_array_equal(inference.marginals(ONE, scores, allowed=form), expected)
    labelled = np.random.default_rng(1).normal(size=(5, 5, 3))
    pairs = [[2, 1], [-1, -1], [-1, 2], [3, -1]]
    by_label = np.repeat(mask[:, :, None], 3, axis=2)
    by_label[:, 1] &= np.arange(3) == 1
    by_label[:, 3] &= np.arange(3) == 2
    expected = inference.marginals(ONE, np.where(by_label, labelled, -np.inf))
    np.testing.assert_array_equal(inference.marginals(ONE, labelled, allowed=pairs), expected)
    np.testing.assert_array_equal(
        inference.marginals(ONE, labelled, allowed=heads), inference.marginals(ONE, labelled, allowed=mask)
    )


def batch(labels: int | None) -> tuple[list[Floats], Floats, list[int]]:
    """Sentences of many lengths as a list and padded."""
    random, lengths = np.random.default_rng(5), [3, 0, 12, 1, 7, 30, 2, 19]
    tail = () if labels is None else (labels,)
    padded = np.full((len(lengths), 31, 31, *tail), np.nan)
    listed = []
    for n, length in enumerate(lengths):
        scores = random.normal(size=(length + 1, length + 1, *tail)) * (1 + n * 30)
        scores[random.random(scores.shape) < 0.1] = -np.inf
        scores[0] = 0.0  # there is a tree, and often many
        padded[n, : length + 1, : length + 1] = scores
        listed.append(scores)
    return listed, padded, lengths


@pytest.mark.parametrize("labels", [None, 3])
def test_batches_are_single_sentences(labels: int | None) -> None:
    listed, padded, lengths = batch(labels)
    by_list = TreeBatch(ONE, listed)
    by_padding = TreeBatch(ONE, padded, lengths, n_threads=2)
    for one, other in (
        (by_list.log_partition(), by_padding.log_partition()),
        (by_list.entropy(), by_padding.entropy()),
    ):
        np.testing.assert_array_equal(one, other)
    np.testing.assert_array_equal(
        by_list.log_partition(), [inference.log_partition(ONE, scores) for scores in listed]
    )
    padded_marginals = by_padding.marginals()
    assert isinstance(padded_marginals, np.ndarray)
    moved = by_padding.hessian_vector(np.ones(padded.shape) * 0.5)
    for n, (scores, found) in enumerate(zip(listed, by_list.marginals(), strict=True)):
        side = len(scores)
        np.testing.assert_array_equal(found, inference.marginals(ONE, scores))
        np.testing.assert_array_equal(padded_marginals[n, :side, :side], found)
        assert not padded_marginals[n, side:].any()
        assert not padded_marginals[n, :, side:].any()
        np.testing.assert_allclose(moved[n], 0.0, rtol=0, atol=1e-9)  # all trees gain the same
    for best, scores in zip(by_padding.decode(), listed, strict=True):
        np.testing.assert_array_equal(best.output, inference.decode(ONE, scores).output)
    drawn = by_list.sample(4, random_state=2)
    assert [tree.shape[:2] for tree in drawn] == [(4, length) for length in lengths]
    assert len(by_list) == len(lengths)
    known: list[Any] = [None if len(s) < 2 else inference.decode(ONE, s).output for s in listed]
    gold = TreeBatch(ONE, listed, allowed=known).log_partition()
    np.testing.assert_allclose(gold, [best.score for best in by_list.decode()], rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("labels", [None, 3])
@pytest.mark.parametrize("kind", ["doubles", "turned", "whole numbers", "single precision", "ignored NaN"])
def test_a_batch_without_padding(kind: str, labels: int | None) -> None:
    tail = () if labels is None else (labels,)
    scores: Any = np.random.default_rng(1).normal(size=(4, 6, 6, *tail)) * 3
    if kind == "turned":
        scores = scores.swapaxes(1, 2)
    elif kind == "whole numbers":
        scores = scores.astype(np.int32)
    elif kind == "single precision":
        scores = scores.astype(np.float32)
    elif kind == "ignored NaN":
        scores[:, range(6), range(6)] = np.nan
        scores[:, :, 0] = np.inf
    before = scores.copy()
    full, listed = TreeBatch(ONE, scores, [5] * 4), TreeBatch(ONE, list(scores))
    for one, other in zip(
        full.log_partition_and_marginals(), listed.log_partition_and_marginals(), strict=True
    ):
        np.testing.assert_array_equal(np.asarray(one), np.asarray(other))
    direction = np.cos(np.arange(scores.size, dtype=float)).reshape(scores.shape)
    np.testing.assert_array_equal(
        np.asarray(full.hessian_vector(direction)), np.asarray(listed.hessian_vector(list(direction)))
    )
    for found, expected in zip(full.decode(), listed.decode(), strict=True):
        np.testing.assert_array_equal(found.output, expected.output)
    np.testing.assert_array_equal(scores, before)


@pytest.mark.parametrize(
    ("scores", "words"),
    [
        (np.full((2, 3, 3), np.nan), r"Scores of sentence 0: \[0, 1\] is NaN"),
        (np.zeros((2, 3, 3, 0)), r"Scores of sentence 0: expected \[T \+ 1, T \+ 1\]"),
    ],
)
def test_a_batch_without_padding_is_checked(scores: Floats, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        TreeBatch(ONE, scores, [2, 2])


def test_no_sentences_at_all() -> None:
    log_partition, marginals = TreeBatch(
        ONE, np.zeros((0, 3, 3)), np.zeros(0, np.int64)
    ).log_partition_and_marginals()
    assert log_partition.shape == (0,)
    assert np.asarray(marginals).shape == (0, 3, 3)


@pytest.mark.parametrize("labels", [None, 3])
def test_the_same_bits_for_any_number_of_threads(labels: int | None) -> None:
    listed, _, _ = batch(labels)
    one, many = (TreeBatch(MANY, listed * 3, n_threads=n) for n in (1, 5))
    np.testing.assert_array_equal(one.log_partition(), many.log_partition())
    np.testing.assert_array_equal(one.entropy(), many.entropy())
    answers: list[Any] = [
        lambda trees: trees.marginals(),
        lambda trees: trees.hessian_vector([np.sin(np.nan_to_num(s)) for s in listed * 3]),
        lambda trees: [best.output for best in trees.decode()],
        lambda trees: [best.output for best in trees.minimum_risk()],
        lambda trees: [best.output for found in trees.k_best(3) for best in found],
        lambda trees: trees.sample(2, random_state=0),
    ]
    for answer in answers:
        for left, right in zip(answer(one), answer(many), strict=True):
            np.testing.assert_array_equal(left, right)


def test_an_empty_batch() -> None:
    trees = TreeBatch(ONE, [])
    assert trees.log_partition().shape == (0,)
    assert trees.marginals() == []
    assert trees.decode() == []
    assert trees.sample(3) == []


# ---- what is refused


def graph(*arcs: tuple[int, int], n_words: int) -> Floats:
    """Scores 0 for these arcs, −inf for all others."""
    scores = np.full((n_words + 1, n_words + 1), -np.inf)
    for head, word in arcs:
        scores[head, word] = 0.0
    return scores


NO_TREE = {
    "word 2 has no possible head": (ONE, graph((0, 1), (1, 3), n_words=3)),
    "word 2 cannot be reached from the root": (MANY, graph((0, 1), (2, 3), (3, 2), n_words=3)),
    "words 1 and 2 cannot be reached from each other": (ONE, graph((0, 1), (0, 2), (1, 3), n_words=3)),
}


@pytest.mark.parametrize("message", NO_TREE)
def test_a_graph_without_a_tree(message: str) -> None:
    structure, scores = NO_TREE[message]
    assert inference.log_partition(structure, scores) == -math.inf
    assert inference.k_best(structure, scores, 2) == []
    assert inference.count(structure, scores == 0) == 0
    output = [0, 1, 1]
    questions: list[Any] = [
        lambda: inference.marginals(structure, scores),
        lambda: inference.hessian_vector(structure, scores, np.zeros((4, 4))),
        lambda: inference.decode(structure, scores),
        lambda: inference.minimum_risk(structure, scores),
        lambda: inference.sample(structure, scores),
        lambda: inference.entropy(structure, scores),
        lambda: inference.log_probability(structure, scores, output),
    ]
    for question in questions:
        with pytest.raises(ValueError, match=message):
            question()
    with pytest.raises(ValueError, match=f"sentence 1: no tree.*{message}"):
        TreeBatch(structure, [np.zeros((2, 2)), scores]).decode()


FIVE = np.zeros((5, 5))


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda: inference.decode(ONE, np.zeros((3, 4))), r"expected \[T \+ 1, T \+ 1\].* got \[3, 4\]"),
        (lambda: inference.decode(ONE, np.zeros((0, 0))), r"got \[0, 0\]"),
        (lambda: inference.decode(ONE, [[0.0], [0.0, 1.0]]), "rows of different length"),
        (lambda: inference.decode(ONE, [["a", "b"], ["c", "d"]]), "expected an array of numbers, got <U1"),
        (lambda: inference.decode(ONE, FIVE + np.nan), r"\[0, 1\] is NaN"),
        (lambda: inference.decode(ONE, FIVE + np.inf), r"\[0, 1\] is \+inf"),
        (lambda: inference.k_best(ONE, FIVE, 0), "k is 0, expected 1 or more"),
        (lambda: inference.sample(ONE, FIVE, -1), "n is -1, expected 0 or more"),
        (lambda: inference.score(ONE, FIVE, [0, 1]), "has 2 words, the scores have 4"),
        (lambda: inference.score(ONE, FIVE, [0, 1, 1, 5]), "Word 4 has head 5, expected numbers from 0 to 4"),
        (lambda: inference.score(ONE, FIVE, [0.0, 1, 1, 1]), r"given by heads \[T\], got float64"),
        (lambda: inference.parts(ONE, [[0, 3]], 3), "Word 1 has label 3, expected numbers from 0 to 2"),
        (lambda: inference.hessian_vector(ONE, FIVE, np.zeros((4, 4))), "the direction has shapes"),
        (lambda: inference.hessian_vector(ONE, FIVE, FIVE - np.inf), "direction holds −inf"),
        (
            lambda: inference.decode(ONE, FIVE, allowed=np.ones((4, 4), dtype=np.bool_)),
            r"have shape \[4, 4\]",
        ),
        (lambda: inference.decode(ONE, FIVE, allowed=[0, 1]), r"heads \[T\] = \[4\]"),
        (
            lambda: inference.decode(ONE, FIVE, allowed=[0, 1, 9, -1]),
            "Word 3 has the head 9, expected 0 to 4",
        ),
        (lambda: inference.decode(ONE, FIVE, allowed=AllowedLabels.from_labels([0])), "are of 1 words"),
        (
            lambda: inference.decode(ONE, np.zeros((2, 2, 2)), allowed=[[0, 5]]),
            "the label 5, expected 0 to 1",
        ),
        (lambda: inference.count(ONE, FIVE), "expected bools"),
        (lambda: TreeBatch(ONE, [FIVE, np.zeros((2, 2, 3))]), r"have \[0, 3\] labels"),
        (lambda: TreeBatch(ONE, [FIVE], allowed=[]), "allowed labels for 0 sentences, scores for 1"),
        (lambda: TreeBatch(ONE, np.zeros((2, 3, 3)), [2, 3]), "sentence 1 has length 3, expected 0 to 2"),
        (lambda: TreeBatch(ONE, np.zeros((2, 3, 3)), [2]), r"expected integers \[N\] = \[2\]"),
        (lambda: SpanningTree("no"), "single_root is 'no', expected True or False"),  # type: ignore[arg-type]
    ],
)
def test_what_is_refused(ask: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ask()


@pytest.mark.parametrize("structure", [ONE, MANY])
@pytest.mark.parametrize("low", [-1e19, -1e30, float(np.finfo(np.float32).min), -1e100, -1.7e308])
def test_very_low_scores_are_as_good_as_none(structure: SpanningTree, low: float) -> None:
    random = np.random.default_rng(3)
    scores = random.normal(size=(7, 7))
    absent = random.random((7, 7)) < 0.25
    faint, none = np.where(absent, low, scores), np.where(absent, -np.inf, scores)
    for question in (inference.log_partition, inference.marginals, inference.entropy):
        np.testing.assert_allclose(
            question(structure, faint), question(structure, none), rtol=1e-12, atol=1e-13
        )
    np.testing.assert_array_equal(
        inference.sample(structure, faint, 20, 0), inference.sample(structure, none, 20, 0)
    )
    moved = inference.hessian_vector(structure, faint, scores)
    np.testing.assert_allclose(moved, inference.hessian_vector(structure, none, scores), rtol=0, atol=1e-12)


def test_scores_of_all_sizes_at_once() -> None:
    random = np.random.default_rng(0)
    for _ in range(300):
        shape = (6, 6, 2)
        scores = random.normal(size=shape) * 10.0 ** random.choice([1, 15, 19, 30, 100], size=shape)
        assert math.isfinite(inference.log_partition(MANY, scores))
        heads = inference.sample(MANY, scores, 3, 0)[..., 0]
        assert all(is_tree(tree, single_root=False) for tree in heads)


def test_outputs_that_are_no_trees_score_nothing() -> None:
    assert inference.score(ONE, FIVE, [0, 1, 1, 2]) == 0.0
    assert inference.score(ONE, FIVE, [0, 0, 1, 2]) == -math.inf
    assert inference.score(MANY, FIVE, [0, 0, 1, 2]) == 0.0
    for circle in ([0, 3, 2, 1], [2, 1, 0, 3], [0, 2, 1, 1]):
        assert inference.score(MANY, FIVE, circle) == -math.inf
        assert inference.log_probability(MANY, FIVE, circle) == -math.inf


def test_binding_changes_nothing() -> None:
    assert ONE.bind(["nsubj"], []) is ONE
