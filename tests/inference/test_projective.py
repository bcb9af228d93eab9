"""Projective trees: backends, agreement with spanning trees and factor graphs, long sentences, batches, errors."""

from __future__ import annotations

import itertools
import math
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from crfkit import ProjectiveTree, SpanningTree, TreeParts, _core, inference
from crfkit.errors import ArgumentError, InputError, NoOutputError, ShapeError, SizeLimitError
from crfkit.inference import SiblingTreeBatch, TreeBatch, tree_memory
from crfkit.structures import adjacent_siblings, is_projective, possible_siblings
from tests.oracles.oracle import Floats
from tests.oracles.projective_instances import ProjectiveOracle, all_between_are_below, sibling_of

ONE, MANY = ProjectiveTree(), ProjectiveTree(single_root=False)
ONE_2, MANY_2 = ProjectiveTree(order=2), ProjectiveTree(single_root=False, order=2)


# ---- faster backends are the engine

KINDS: dict[str, dict[str, Any]] = {
    "normal": {},
    "scores of 20": {"scale": 20.0},
    "scores of 700": {"scale": 700.0},
    "forbidden": {"forbidden": 0.4},
    "few arcs": {"forbidden": 0.8},
    "ties": {"whole": True},
    "labels": {"labels": 3, "forbidden": 0.2},
    "shifted": {"shift": 1e5},
}


def draw_batch(
    random: np.random.Generator,
    *,
    scale: float = 1.0,
    forbidden: float = 0.0,
    whole: bool = False,
    labels: int | None = None,
    shift: float = 0.0,
) -> list[Floats]:
    """Sentences of many lengths, around the widths of vectors."""
    sentences = []
    for length in (1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 33, 45):
        shape = (length + 1, length + 1) if labels is None else (length + 1, length + 1, labels)
        scores = random.normal(size=shape) * scale
        scores = np.rint(scores) if whole else scores
        scores[random.random(shape) < forbidden] = -np.inf
        for word in range(1, length + 1):
            scores[word - 1, word] = random.normal()
        scores[:, 1:] += shift * random.normal(size=(length, *shape[2:]))
        scores[:, 0] = scores[np.arange(length + 1), np.arange(length + 1)] = np.nan
        sentences.append(scores)
    return sentences


def in_core(kind: Any, scores: list[Floats], single_root: bool, siblings: list[Floats] | None = None) -> Any:
    """Sentences in the core."""
    return kind(
        np.concatenate([array.ravel() for array in scores]),
        np.array([len(array) - 1 for array in scores]),
        scores[0].shape[2] if scores[0].ndim == 3 else 1,
        single_root,
        1,
        None if siblings is None else np.concatenate([array.ravel() for array in siblings]),
    )


@pytest.mark.parametrize("single_root", [True, False])
@pytest.mark.parametrize("kind", list(KINDS))
def test_charts_are_the_engine(kind: str, single_root: bool) -> None:
    scores = draw_batch(np.random.default_rng(len(kind)), **KINDS[kind])
    fast = in_core(_core.ScoredProjectiveTrees, scores, single_root)
    engine = in_core(_core.ProjectiveTreesByEngine, scores, single_root)
    largest = max(1.0, *(np.abs(array[np.isfinite(array)]).max() for array in scores))
    np.testing.assert_allclose(fast.log_partition(), engine.log_partition(), rtol=1e-12, atol=1e-12 * largest)
    np.testing.assert_allclose(fast.marginals()[0], engine.marginals()[0], rtol=1e-12, atol=1e-12 * largest)
    np.testing.assert_allclose(fast.marginals()[1], engine.marginals()[1], rtol=0, atol=1e-10)
    for found, expected in zip(fast.decode(), engine.decode(), strict=True):
        np.testing.assert_array_equal(found, expected)


def draw_siblings(random: np.random.Generator, scores: list[Floats], scale: float = 1.0) -> list[Floats]:
    """Scores of siblings, some forbidden; what is no part of a tree holds NaN."""
    siblings = []
    for arcs in scores:
        n = len(arcs) - 1
        values = random.normal(size=(n + 1,) * 3) * scale
        values[random.random(values.shape) < 0.1] = -np.inf
        values[np.arange(n), np.arange(n), np.arange(n) + 1] = 0.0
        siblings.append(np.where(possible_siblings(n), values, np.nan))
    return siblings


@pytest.mark.parametrize("single_root", [True, False])
@pytest.mark.parametrize("kind", list(KINDS))
def test_charts_of_siblings_are_the_engine(kind: str, single_root: bool) -> None:
    random = np.random.default_rng(len(kind))
    scores = draw_batch(random, **KINDS[kind])
    siblings = draw_siblings(random, scores, KINDS[kind].get("scale", 1.0))
    fast = in_core(_core.ScoredProjectiveTrees, scores, single_root, siblings)
    engine = in_core(_core.ProjectiveTreesByEngine, scores, single_root, siblings)
    largest = max(1.0, *(np.abs(array[np.isfinite(array)]).max() for array in scores))
    found, expected = fast.marginals(), engine.marginals()
    for log_z in (fast.log_partition(), found[0]):
        np.testing.assert_allclose(log_z, expected[0], rtol=1e-12, atol=1e-12 * largest)
    for part in (1, 2):
        np.testing.assert_allclose(found[part], expected[part], rtol=0, atol=1e-10)
    for best, other in zip(fast.decode(), engine.decode(), strict=True):
        np.testing.assert_array_equal(best, other)


def test_charts_of_siblings_far_apart() -> None:
    """Siblings that lie up to 40 · 600 nats below the best of each word."""
    random, n = np.random.default_rng(1), 40
    for depth in (1.0, 15.0, *np.linspace(30.0, 39.0, 10), 600.0):
        arcs, siblings = random.normal(size=(n + 1, n + 1)), random.normal(size=(n + 1, n + 1, n + 1))
        siblings[:, :, ::2] -= depth * random.random(siblings[:, :, ::2].shape)
        for word in range(1, n + 1, 2):  # a cycle is best
            arcs[word, word + 1] += depth
            arcs[word + 1, word] += depth
        for single_root in (True, False):
            fast = in_core(_core.ScoredProjectiveTrees, [arcs], single_root, [siblings]).marginals()
            engine = in_core(_core.ProjectiveTreesByEngine, [arcs], single_root, [siblings]).marginals()
            np.testing.assert_allclose(fast[0], engine[0], rtol=1e-12)
            np.testing.assert_allclose(fast[1], engine[1], rtol=0, atol=1e-10)
            np.testing.assert_allclose(fast[2], engine[2], rtol=0, atol=1e-10)


@pytest.mark.parametrize("single_root", [True, False])
@pytest.mark.parametrize("height", [3.0, 14.0, 40.0, 900.0])
def test_charts_of_siblings_far_above_first_dependents(height: float, single_root: bool) -> None:
    random, n = np.random.default_rng(int(height)), 30
    arcs, siblings = random.normal(size=(n + 1, n + 1)), random.normal(size=(n + 1, n + 1, n + 1))
    first = np.eye(n + 1, dtype=bool)[:, :, np.newaxis]  # (h, h, m): m has no sibling
    siblings = np.where(first, siblings, siblings + height)
    siblings[3, 3] = -np.inf  # 3 has no dependents
    fast = in_core(_core.ScoredProjectiveTrees, [arcs], single_root, [siblings]).marginals()
    engine = in_core(_core.ProjectiveTreesByEngine, [arcs], single_root, [siblings]).marginals()
    for found, expected in zip(fast, engine, strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-10)


def test_sums_that_leave_the_range_of_doubles() -> None:
    """The best arcs into the words form cycles: every tree is far below them, about as far as doubles reach or farther."""
    random, n = np.random.default_rng(0), 40
    for depth in (1.0, 30.0, *np.linspace(34.0, 39.0, 11), 600.0):
        scores = random.normal(size=(n + 1, n + 1))
        for word in range(1, n + 1, 2):
            scores[word, word + 1] += depth
            scores[word + 1, word] += depth
        for structure in (ONE, MANY):
            fast = in_core(_core.ScoredProjectiveTrees, [scores], structure.single_root)
            engine = in_core(_core.ProjectiveTreesByEngine, [scores], structure.single_root)
            np.testing.assert_allclose(fast.log_partition(), engine.log_partition(), rtol=1e-12)
            np.testing.assert_allclose(fast.marginals()[1], engine.marginals()[1], rtol=0, atol=1e-10)
            total = fast.marginals()[1].reshape(n + 1, n + 1)[:, 1:].sum(axis=0)
            np.testing.assert_allclose(total, 1.0, rtol=0, atol=1e-10)


def answers_of_many_lengths() -> list[Floats]:
    """Sums of both orders for lengths around the widths of vectors."""
    random = np.random.default_rng(2)
    scores = draw_batch(random)
    siblings = draw_siblings(random, scores)
    found = [
        in_core(_core.ScoredProjectiveTrees, scores, one, s)
        for one in (True, False)
        for s in (None, siblings)
    ]
    return [array for trees in found for array in (*trees.marginals(), *trees.decode()) if array is not None]


@pytest.mark.parametrize("instruction_set", ["baseline", "x86-64-v3"])
def test_every_instruction_set_gives_the_same_answers(tmp_path: Path, instruction_set: str) -> None:
    program = (
        "import sys, numpy, tests.inference.test_projective as projective\n"
        "numpy.savez(sys.argv[1], *projective.answers_of_many_lengths())"
    )
    file = tmp_path / "answers.npz"
    subprocess.run(
        [sys.executable, "-c", program, str(file)],
        check=True,
        cwd=Path(__file__).parents[2],
        env={**os.environ, "CRFKIT_INSTRUCTION_SET": instruction_set},
    )
    with np.load(file) as found:
        for expected, name in zip(answers_of_many_lengths(), found.files, strict=True):
            np.testing.assert_allclose(found[name], expected, rtol=0, atol=1e-10)


# ---- spanning trees


@pytest.mark.parametrize("single_root", [True, False])
@pytest.mark.parametrize("n_words", [1, 2])
def test_trees_of_two_words_are_projective(n_words: int, single_root: bool) -> None:
    random = np.random.default_rng(n_words)
    for labels in ((), (3,)):
        scores = random.normal(size=(n_words + 1, n_words + 1, *labels)) * 5
        ask = [(structure(single_root), scores) for structure in (ProjectiveTree, SpanningTree)]
        assert inference.log_partition(*ask[0]) == pytest.approx(inference.log_partition(*ask[1]), rel=1e-13)
        np.testing.assert_allclose(inference.marginals(*ask[0]), inference.marginals(*ask[1]), atol=1e-12)
        assert inference.entropy(*ask[0]) == pytest.approx(inference.entropy(*ask[1]), abs=1e-12)
        best, other = inference.decode(*ask[0]), inference.decode(*ask[1])
        np.testing.assert_array_equal(best.output, other.output)


@pytest.mark.parametrize("single_root", [True, False])
def test_arcs_that_cannot_cross(single_root: bool) -> None:
    """Where every possible arc is one of a projective tree, or parallel to it, all spanning trees are projective."""
    random = np.random.default_rng(3)
    n = 7
    for _ in range(20):
        scores = np.full((n + 1, n + 1), -np.inf)
        for word in range(
            1, n + 1
        ):  # neighbours, and the root for the first and the last word: no two arcs cross
            for head in (word - 1, word + 1):
                if head <= n:
                    scores[head, word] = random.normal() * 3
        scores[0, n] = random.normal()
        ask = [(structure(single_root), scores) for structure in (ProjectiveTree, SpanningTree)]
        assert inference.log_partition(*ask[0]) == pytest.approx(inference.log_partition(*ask[1]), rel=1e-12)
        np.testing.assert_allclose(inference.marginals(*ask[0]), inference.marginals(*ask[1]), atol=1e-11)
        best, other = inference.decode(*ask[0]), inference.decode(*ask[1])
        assert best.score == pytest.approx(other.score, rel=1e-12)


@pytest.mark.parametrize("single_root", [True, False])
def test_the_best_of_all_trees_where_it_is_projective(single_root: bool) -> None:
    random, projective = np.random.default_rng(4), 0
    for _ in range(60):
        n = int(random.integers(3, 25))
        scores = random.normal(size=(n + 1, n + 1))
        for word in range(1, n + 1):  # near heads are likely
            scores[:, word] -= 2.0 * np.abs(np.arange(n + 1) - word)
        best = inference.decode(ProjectiveTree(single_root), scores)
        other = inference.decode(SpanningTree(single_root), scores)
        assert is_projective(best.output)
        assert best.score <= other.score + 1e-9
        if is_projective(other.output):
            projective += 1
            np.testing.assert_array_equal(best.output, other.output)
        assert inference.log_partition(ProjectiveTree(single_root), scores) <= inference.log_partition(
            SpanningTree(single_root), scores
        )
    assert projective >= 20


def test_how_many_there_are() -> None:
    zeros = [np.zeros((n + 1, n + 1)) for n in range(1, 8)]
    counts = np.exp(TreeBatch(ONE, zeros).log_partition())
    np.testing.assert_allclose(
        counts, [1, 2, 7, 30, 143, 728, 3876], rtol=1e-12
    )  # binomial(3n − 2, n − 1) / n
    counts = np.exp(TreeBatch(MANY, zeros).log_partition())
    np.testing.assert_allclose(
        counts, [1, 3, 12, 55, 273, 1428, 7752], rtol=1e-12
    )  # binomial(3n, n) / (2n + 1)


def test_siblings_without_scores_are_the_first_order() -> None:
    random = np.random.default_rng(5)
    for n, labels in itertools.product((1, 2, 9, 20), ((), (2,))):
        arcs = random.normal(size=(n + 1, n + 1, *labels)) * 3
        scores = TreeParts(arcs, np.zeros((n + 1, n + 1, n + 1)))
        for first, second in ((ONE, ONE_2), (MANY, MANY_2)):
            assert inference.log_partition(second, scores) == pytest.approx(
                inference.log_partition(first, arcs), rel=1e-12
            )
            found = inference.marginals(second, scores)
            np.testing.assert_allclose(found.arcs, inference.marginals(first, arcs), rtol=0, atol=1e-10)
            assert inference.entropy(second, scores) == pytest.approx(
                inference.entropy(first, arcs), abs=1e-9
            )
            np.testing.assert_array_equal(
                inference.decode(second, scores).output, inference.decode(first, arcs).output
            )


# ---- the words of structures


def test_projective_or_not() -> None:
    for n in range(1, 6):
        for heads in itertools.product(range(n + 1), repeat=n):
            if inference.score(SpanningTree(False), np.zeros((n + 1, n + 1)), heads) == 0.0:
                array = np.array(heads, dtype=np.int32)
                assert is_projective(array) == all_between_are_below(list(heads))
                siblings = [sibling_of(list(heads), word) for word in range(1, n + 1)]
                assert adjacent_siblings(array).tolist() == siblings


def test_possible_siblings() -> None:
    n = 5
    seen = np.zeros((n + 1, n + 1, n + 1), dtype=np.bool_)
    for heads in ProjectiveOracle(np.zeros((n + 1, n + 1)), None, single_root=False).outputs:
        seen |= inference.parts(MANY_2, heads).siblings > 0
    np.testing.assert_array_equal(possible_siblings(n), seen)


# ---- long sentences


@pytest.mark.parametrize("structure", [ONE, MANY])
def test_three_hundred_words(structure: ProjectiveTree) -> None:
    random, n = np.random.default_rng(6), 300
    scores = random.normal(size=(n + 1, n + 1)) * 3
    log_z, marginals = TreeBatch(structure, scores[None], [n]).log_partition_and_marginals()
    np.testing.assert_allclose(marginals[0][:, 1:].sum(axis=0), 1.0, rtol=0, atol=1e-9)
    best = inference.decode(structure, scores)
    assert is_projective(best.output)
    assert best.score <= log_z[0]
    assert inference.score(structure, scores, best.output) == pytest.approx(best.score, rel=1e-12)
    zeros = np.zeros((n + 1, n + 1))
    exact = math.comb(3 * n - 2, n - 1) // n if structure.single_root else math.comb(3 * n, n) // (2 * n + 1)
    assert inference.log_partition(structure, zeros) == pytest.approx(math.log(exact), rel=1e-12)
    assert inference.entropy(structure, zeros) == pytest.approx(math.log(exact), rel=1e-9)


def test_more_words_than_charts_hold() -> None:
    n = 345
    zeros = np.zeros((n + 1, n + 1))
    assert inference.log_partition(ONE, zeros) == pytest.approx(
        math.log(math.comb(3 * n - 2, n - 1) // n), rel=1e-12
    )


@pytest.mark.parametrize("scale", [1e9, 1e15, 1e300])
@pytest.mark.parametrize("structure", [ONE, MANY, ONE_2, MANY_2])
def test_scores_of_any_size(structure: ProjectiveTree, scale: float) -> None:
    """One tree is so much better than all others that it has the probability 1."""
    random = np.random.default_rng(10)
    for n in (1, 5, 30):
        arcs = random.normal(size=(n + 1, n + 1)) * scale
        scores = TreeParts(arcs, random.normal(size=(n + 1,) * 3) * scale) if structure.order == 2 else arcs
        best = inference.decode(structure, scores)
        assert inference.log_partition(structure, scores) == pytest.approx(best.score, rel=1e-12)
        found, expected = inference.marginals(structure, scores), inference.parts(structure, best.output)
        for probabilities, parts in zip(found, expected, strict=True):
            np.testing.assert_allclose(probabilities, parts, rtol=0, atol=1e-6)
        np.testing.assert_array_equal(inference.sample(structure, scores, 2, 0), [best.output] * 2)
        assert inference.entropy(structure, scores) == pytest.approx(0.0, abs=1e-6)


def test_memory_is_predicted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tree_memory, "default_memory_limit", lambda: 1e6)
    scores = np.zeros((401, 401))
    for ask in (inference.log_partition, inference.marginals, inference.decode, inference.entropy):
        with pytest.raises(SizeLimitError, match="400 words takes"):
            ask(ONE, scores)
    assert tree_memory.memory("marginals", 5000, 1) == pytest.approx(1.9e9, rel=0.02)
    assert inference.log_partition(ONE, np.zeros((31, 31))) > 0


# ---- batches, threads, errors


@pytest.mark.parametrize("labels", [None, 3])
def test_batches_are_single_sentences(labels: int | None) -> None:
    random, lengths = np.random.default_rng(7), [3, 0, 12, 1, 30, 2]
    tail = () if labels is None else (labels,)
    arcs = random.normal(size=(6, 31, 31, *tail))
    siblings = random.normal(size=(6, 31, 31, 31))
    listed = [a[: n + 1, : n + 1] for a, n in zip(arcs, lengths, strict=True)]
    parts = [
        TreeParts(a[: n + 1, : n + 1], s[: n + 1, : n + 1, : n + 1])
        for a, s, n in zip(arcs, siblings, lengths, strict=True)
    ]
    for n_threads in (1, 3):
        first = TreeBatch(MANY, arcs, lengths, n_threads=n_threads)
        second = SiblingTreeBatch(ONE_2, TreeParts(arcs, siblings), lengths, n_threads=n_threads)
        other = SiblingTreeBatch(ONE_2, parts, n_threads=n_threads)
        found, found_2, found_list = first.marginals(), second.marginals(), other.marginals()
        moved, moved_list = second.hessian_vector(TreeParts(arcs, siblings)), other.hessian_vector(parts)
        for i, n in enumerate(lengths):
            one = inference.marginals(MANY, listed[i])
            np.testing.assert_array_equal(found[i][: n + 1, : n + 1], one)
            assert np.count_nonzero(found[i]) == np.count_nonzero(one)
            two = inference.marginals(ONE_2, parts[i])
            np.testing.assert_array_equal(two.arcs, found_list[i].arcs)
            np.testing.assert_array_equal(two.siblings, found_list[i].siblings)
            np.testing.assert_array_equal(two.arcs, found_2.arcs[i][: n + 1, : n + 1])
            np.testing.assert_array_equal(two.siblings, found_2.siblings[i][: n + 1, : n + 1, : n + 1])
            np.testing.assert_array_equal(moved.arcs[i][: n + 1, : n + 1], moved_list[i].arcs)
            risky = second.minimum_risk()[i]
            again = inference.minimum_risk(ONE_2, parts[i])
            np.testing.assert_array_equal(risky.output, again.output)
            assert first.decode()[i].score == inference.decode(MANY, listed[i]).score
            assert second.k_best(2)[i][0].score == inference.k_best(ONE_2, parts[i], 1)[0].score
    samples = [SiblingTreeBatch(ONE_2, parts, n_threads=t).sample(4, random_state=1) for t in (1, 2)]
    for a, b in zip(*samples, strict=True):
        np.testing.assert_array_equal(a, b)


def test_padded_batches_of_one_length() -> None:
    random = np.random.default_rng(9)
    arcs, siblings = random.normal(size=(3, 7, 7)), random.normal(size=(3, 7, 7, 7))
    padded = SiblingTreeBatch(MANY_2, TreeParts(arcs, siblings), [6, 6, 6])
    listed = SiblingTreeBatch(MANY_2, [TreeParts(a, s) for a, s in zip(arcs, siblings, strict=True)])
    log_z, marginals = padded.log_partition_and_marginals()
    np.testing.assert_array_equal(log_z, listed.log_partition())
    for i, parts in enumerate(listed.marginals()):
        np.testing.assert_array_equal(marginals.arcs[i], parts.arcs)
        np.testing.assert_array_equal(marginals.siblings[i], parts.siblings)
    siblings[1, 2, 4, 3] = np.nan  # no tree has it
    np.testing.assert_array_equal(padded.log_partition(), log_z)
    for bad, name in ((np.nan, "NaN"), (np.inf, r"\+inf")):
        siblings[1, 2, 2, 3] = bad
        batch = SiblingTreeBatch(MANY_2, TreeParts(arcs, siblings), [6, 6, 6])
        for question in (batch.log_partition, batch.marginals, batch.decode, lambda: batch.k_best(2)):  # noqa: B023
            with pytest.raises(ArgumentError, match=rf"sentence 1: \[2, 2, 3\] is {name}"):
                question()


@pytest.mark.parametrize("structure", [ONE_2, MANY_2])
def test_batches_larger_than_caches(structure: ProjectiveTree) -> None:
    """Their marginals are written past the caches."""
    random = np.random.default_rng(10)
    arcs, siblings = random.normal(size=(31, 34, 34)), random.normal(size=(31, 34, 34, 34))
    assert siblings.size > 2**20
    for n_threads in (1, 2):
        batch = SiblingTreeBatch(structure, TreeParts(arcs, siblings), [33] * 31, n_threads=n_threads)
        log_z, found = batch.log_partition_and_marginals()
        for i in range(31):
            alone = SiblingTreeBatch(structure, [TreeParts(arcs[i], siblings[i])])
            assert alone.log_partition()[0] == log_z[i]
            np.testing.assert_array_equal(found.arcs[i], alone.marginals()[0].arcs)
            np.testing.assert_array_equal(found.siblings[i], alone.marginals()[0].siblings)


@pytest.mark.parametrize("structure", [ONE, MANY, ONE_2, MANY_2])
def test_minimum_risk(structure: ProjectiveTree) -> None:
    random = np.random.default_rng(8)
    for _ in range(10):
        arcs = random.normal(size=(5, 5)) * 2
        siblings = random.normal(size=(5, 5, 5)) * 2 if structure.order == 2 else None
        if siblings is not None:
            siblings[random.random(siblings.shape) < 0.2] = -np.inf
            siblings[np.arange(4), np.arange(4), np.arange(4) + 1] = 0.0
        oracle = ProjectiveOracle(arcs, siblings, structure.single_root)
        marginals = oracle.marginals[: arcs.size].reshape(arcs.shape)
        expected = max(
            sum(marginals[head, word] for word, head in enumerate(heads, 1)) for heads in oracle.outputs
        )
        scores = arcs if siblings is None else TreeParts(arcs, siblings)
        best = inference.minimum_risk(structure, scores)
        assert best.score == pytest.approx(expected, abs=1e-9)
        assert tuple(best.output.tolist()) in oracle.by_output


def test_no_tree() -> None:
    scores = np.zeros((4, 4))
    scores[:, 2] = -np.inf
    for structure in (ONE, MANY):
        assert inference.log_partition(structure, scores) == -math.inf
        assert inference.k_best(structure, scores, 3) == []
        for ask in (inference.marginals, inference.decode, inference.entropy, inference.sample):
            with pytest.raises(NoOutputError, match="word 2 has no possible head"):
                ask(structure, scores)
    crossing = np.full((5, 5), -np.inf)  # 1 → 3 and 4 → 2 must be, and cross
    crossing[0, 1] = crossing[1, 3] = crossing[3, 4] = crossing[4, 2] = 0.0
    assert inference.decode(SpanningTree(), crossing).score == 0.0
    assert inference.log_partition(ONE, crossing) == -math.inf
    with pytest.raises(
        NoOutputError, match="no projective tree with a single root exists: every tree has crossing"
    ):
        inference.decode(ONE, crossing)
    with pytest.raises(NoOutputError, match="sentence 1: no projective tree exists"):
        TreeBatch(MANY, [np.zeros((5, 5)), crossing]).marginals()
    forbidden = TreeParts(np.zeros((3, 3)), np.full((3, 3, 3), -np.inf))
    with pytest.raises(NoOutputError, match="or siblings of score"):
        inference.marginals(ONE_2, forbidden)


@pytest.mark.parametrize(
    ("structure", "scores", "error"),
    [
        (ONE, np.zeros((3, 4)), ShapeError),
        (ONE, TreeParts(np.zeros((3, 3)), np.zeros((3, 3, 3))), InputError),
        (ONE_2, np.zeros((3, 3)), ArgumentError),
        (ONE_2, TreeParts(np.zeros((3, 3)), np.zeros((3, 3, 4))), ShapeError),
        (ONE_2, TreeParts(np.zeros((3, 3)), np.full((3, 3, 3), np.nan)), ArgumentError),
        (ONE_2, TreeParts(np.zeros((3, 3)), np.full((3, 3, 3), np.inf)), ArgumentError),
    ],
)
def test_bad_scores(structure: ProjectiveTree, scores: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        inference.log_partition(structure, scores)


def test_bad_arguments() -> None:
    for bad in (0, 3, True, "2", None):
        with pytest.raises(ArgumentError, match="order"):
            ProjectiveTree(order=bad)  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="single_root"):
        ProjectiveTree(single_root="yes")  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="SiblingTreeBatch"):
        TreeBatch(ONE_2, [np.zeros((3, 3))])
    with pytest.raises(ArgumentError, match="TreeBatch"):
        SiblingTreeBatch(ONE, [TreeParts(np.zeros((3, 3)), np.zeros((3, 3, 3)))])
    with pytest.raises(ArgumentError, match="lengths"):
        SiblingTreeBatch(ONE_2, TreeParts(np.zeros((1, 3, 3)), np.zeros((1, 3, 3, 3))))
    batch = SiblingTreeBatch(ONE_2, [TreeParts(np.zeros((3, 3)), np.zeros((3, 3, 3)))])
    with pytest.raises(ArgumentError, match="siblings holds"):
        batch.hessian_vector([TreeParts(np.zeros((3, 3)), np.full((3, 3, 3), -np.inf))])
    with pytest.raises(ShapeError):
        batch.hessian_vector([TreeParts(np.zeros((3, 3)), np.zeros((2, 3, 3)))])
    assert inference.score(ONE, np.zeros((5, 5)), [0, 4, 1, 3]) == -math.inf  # crosses
