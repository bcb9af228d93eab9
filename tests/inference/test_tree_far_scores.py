"""Trees whose scores are finite, and farther apart than doubles reach: beside all trees in exact arithmetic."""

from __future__ import annotations

import itertools
from fractions import Fraction
from functools import cache
from typing import Any, NamedTuple

import mpmath  # type: ignore[import-untyped]
import numpy as np
import numpy.typing as npt
import pytest

from crfkit import SpanningTree
from crfkit.inference import (
    TreeBatch,
    decode,
    entropy,
    hessian_vector,
    k_best,
    log_partition,
    marginals,
    sample,
)
from crfkit.structures import is_tree

Scores = npt.NDArray[np.float64]
mpmath.mp.dps = 60


@cache
def all_heads(n_words: int, *, single_root: bool) -> list[tuple[int, ...]]:
    choices = itertools.product(range(n_words + 1), repeat=n_words)
    return [heads for heads in choices if is_tree(np.array(heads), single_root=single_root)]


class Enumerated(NamedTuple):
    """All trees with their exact scores, and what follows from them."""

    outputs: list[tuple[tuple[int, int, int], ...]]  # (head, word, label) of each word
    scores: list[Fraction]

    @classmethod
    def of(cls, scores: Scores, *, single_root: bool) -> Enumerated:
        n, n_labels = len(scores) - 1, scores.shape[2]
        outputs, sums = [], []
        for heads in all_heads(n, single_root=single_root):
            for labels in itertools.product(range(n_labels), repeat=n):
                arcs = tuple((h, m, r) for m, (h, r) in enumerate(zip(heads, labels, strict=True), start=1))
                values = [scores[arc] for arc in arcs]
                if min(values) > -np.inf:
                    outputs.append(arcs)
                    sums.append(sum(map(Fraction, values), Fraction(0)))
        return cls(outputs, sums)

    def probabilities(self) -> list[Any]:
        top = max(self.scores)
        terms = [
            mpmath.exp(mpmath.mpf(float(score - top))) if score - top > -2000 else mpmath.mpf(0)
            for score in self.scores
        ]
        total = mpmath.fsum(terms)
        return [term / total for term in terms]

    def log_partition(self) -> float:
        top = max(self.scores)
        total = mpmath.fsum(
            mpmath.exp(mpmath.mpf(float(score - top))) for score in self.scores if score - top > -2000
        )
        return rounded(Fraction(str(mpmath.nstr(mpmath.log(total), 50))) + top)

    def marginals(self, shape: tuple[int, ...]) -> Scores:
        found = np.zeros(shape)
        for arcs, p in zip(self.outputs, self.probabilities(), strict=True):
            for arc in arcs:
                found[arc] += float(p)
        return found


def cancelling(random: np.random.Generator, n: int, n_labels: int, size: float) -> Scores:
    """Scores of which many are ± the same large number, so that small differences decide."""
    shape = (n + 1, n + 1, n_labels)
    large = random.choice([0.0, size, -size, size / 2, -size / 2], size=shape)
    return np.where(large == 0, random.normal(size=shape), large)


def spread(random: np.random.Generator, n: int, n_labels: int, size: float) -> Scores:
    """Scores of all sizes up to a large one, some of them −inf."""
    shape = (n + 1, n + 1, n_labels)
    scores = random.choice([-1.0, 1.0], size=shape) * np.exp(np.log(size) * random.random(shape))
    scores[random.random(shape) < 0.1] = -np.inf
    return scores


CASES = [
    (kind, size, n, n_labels, single_root, seed)
    for kind in (cancelling, spread)
    for size in (1e5, 1e9, 1e20, 1.7e308)
    for n, n_labels in ((2, 1), (3, 1), (4, 1), (2, 2), (3, 2))
    for single_root in (True, False)
    for seed in range(1)
]


@pytest.mark.parametrize(("kind", "size", "n", "n_labels", "single_root", "seed"), CASES)
def test_beside_all_trees(
    kind: Any, size: float, n: int, n_labels: int, single_root: bool, seed: int
) -> None:
    scores = kind(np.random.default_rng((seed, n, n_labels)), n, n_labels, size)
    exact = Enumerated.of(scores, single_root=single_root)
    if not exact.outputs:
        return
    tree = SpanningTree(single_root=single_root)
    given = scores if n_labels > 1 else scores[:, :, 0]
    p = exact.probabilities()
    assert log_partition(tree, given) == pytest.approx(exact.log_partition(), rel=1e-12, abs=1e-12)
    expected = exact.marginals(scores.shape)
    assert marginals(tree, given).reshape(scores.shape) == pytest.approx(expected, rel=1e-9, abs=1e-12)
    assert entropy(tree, given) == pytest.approx(
        float(-mpmath.fsum(q * mpmath.log(q) for q in p if q > 0)), rel=1e-9, abs=1e-12
    )
    direction = np.random.default_rng(seed).normal(size=scores.shape)
    gains = [sum(direction[arc] for arc in arcs) for arcs in exact.outputs]
    mean = mpmath.fsum(q * gain for q, gain in zip(p, gains, strict=True))
    moved = np.zeros(scores.shape)
    for arcs, q, gain in zip(exact.outputs, p, gains, strict=True):
        for arc in arcs:
            moved[arc] += float(q * (gain - mean))
    found = hessian_vector(tree, given, direction.reshape(given.shape)).reshape(scores.shape)
    assert found == pytest.approx(moved, rel=1e-8, abs=1e-11)
    order = sorted(exact.scores, reverse=True)[:7]
    assert score_of(decode(tree, given).output, scores) == order[0]
    listed = k_best(tree, given, 7)
    assert [one.score for one in listed] == pytest.approx([rounded(score) for score in order], rel=1e-12)
    assert [score_of(one.output, scores) for one in listed] == order
    assert len({one.output.tobytes() for one in listed}) == len(order)
    likely = {arcs for arcs, q in zip(exact.outputs, p, strict=True) if q > 0}
    for drawn in sample(tree, given, 5, seed):
        assert arcs_of(drawn) in likely


def rounded(score: Fraction) -> float:
    try:
        return float(score)
    except OverflowError:
        return np.inf if score > 0 else -np.inf


def arcs_of(output: npt.NDArray[np.int32]) -> tuple[tuple[int, int, int], ...]:
    pairs = output.reshape(len(output), -1).tolist()
    return tuple((pair[0], m, pair[1] if len(pair) > 1 else 0) for m, pair in enumerate(pairs, start=1))


def score_of(output: npt.NDArray[np.int32], scores: Scores) -> Fraction:
    return sum((Fraction(scores[arc]) for arc in arcs_of(output)), Fraction(0))


def test_samples_follow_the_marginals_where_small_differences_decide() -> None:
    scores = np.array(
        [[0, 1e308, -1e308, 0.5], [0, 0, 1e308, 1.0], [0, 1e308, 0, 0.0], [0, -1e308, 1e308, 0]], dtype=float
    )
    tree = SpanningTree()
    expected = marginals(tree, scores)
    drawn = sample(tree, scores, 4000, 0)
    for m in range(1, 4):
        frequencies = np.bincount(drawn[:, m - 1], minlength=4) / len(drawn)
        assert frequencies == pytest.approx(expected[:, m], abs=0.05)


@pytest.mark.parametrize("size", [1e5, 1e16, 1e100, 1.7e308])
def test_a_single_root_among_large_scores_that_are_close(size: float) -> None:
    """The trees 0 → 1 → 2 and 0 → 2 → 1 differ by 3."""
    scores = np.array([[0, -size, 0], [0, 0, -3], [0, -size, 0]])
    expected = np.array([[0, 1, np.exp(3)], [0, 0, 1], [0, np.exp(3), 0]]) / (1 + np.exp(3))
    assert marginals(SpanningTree(single_root=True), scores) == pytest.approx(expected, rel=1e-12)


def test_minimum_risk() -> None:
    scores = np.array([[0, 1e308, 0], [0, 0, 1e308], [0, -1e308, 0]])
    assert TreeBatch(SpanningTree(), [scores]).minimum_risk()[0].output.tolist() == [0, 1]


@pytest.mark.parametrize("lengths", [None, [2]])
def test_a_batch_copies_its_scores(lengths: list[int] | None) -> None:
    scores = np.zeros((1, 3, 3))
    batch = TreeBatch(SpanningTree(), scores, lengths)
    before = batch.log_partition()
    scores.fill(np.nan)
    assert batch.log_partition() == before
    assert np.isfinite(batch.marginals()[0]).all()
    assert len(batch.sample(3, 0)[0]) == 3
    assert len(batch.k_best(5)[0]) == 2
