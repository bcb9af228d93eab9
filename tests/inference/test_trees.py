"""Sums over spanning trees beside determinants: of doubles where these are right, of 200 digits elsewhere."""

from __future__ import annotations

import itertools
import math
from typing import Any

import mpmath  # type: ignore[import-untyped]
import numpy as np
import pytest

from crfkit import SpanningTree, inference
from crfkit.inference import TreeBatch
from tests.oracles.oracle import Floats, TreeOracle

ONE, MANY = SpanningTree(), SpanningTree(single_root=False)


# ---- determinants: the matrix-tree theorem, readable and good for scores of a small spread


def laplacian(weights: Any) -> Any:
    """L_mm = Σ_h A_hm over the words h, L_hm = −A_hm."""
    between = weights[1:, 1:] * (1 - np.eye(len(weights) - 1, dtype=int))
    return np.diag(between.sum(axis=0)) - between


def log_determinant_by_roots(scores: Floats) -> float:
    """Z = Σ_m exp(root score of m) · det(L without row and column m): one determinant for each word as the root."""
    weights, words = np.exp(scores), range(len(scores) - 1)
    matrix = laplacian(weights)
    minors = [np.linalg.det(np.delete(np.delete(matrix, m, axis=0), m, axis=1)) for m in words]
    return math.log(sum(weights[0, m + 1] * minors[m] for m in words))


def log_determinant_of_koo(scores: Floats) -> float:
    """Z = det L̄, L with its first row replaced by exp(root scores)."""
    weights = np.exp(scores)
    matrix = laplacian(weights)
    matrix[0] = weights[0, 1:]
    return float(np.linalg.slogdet(matrix)[1])


def log_determinant_with_many_roots(scores: Floats) -> float:
    """Z = det(L + diag(exp(root scores)))."""
    weights = np.exp(scores)
    return float(np.linalg.slogdet(laplacian(weights) + np.diag(weights[0, 1:]))[1])


@pytest.mark.parametrize("n_words", [1, 2, 3, 7, 20, 41, 64])
def test_determinants_agree(n_words: int) -> None:
    scores = np.random.default_rng(n_words).normal(size=(n_words + 1, n_words + 1))
    one = inference.log_partition(ONE, scores)
    assert one == pytest.approx(log_determinant_by_roots(scores), rel=1e-10)
    assert one == pytest.approx(log_determinant_of_koo(scores), rel=1e-10)
    many = inference.log_partition(MANY, scores)
    assert many == pytest.approx(log_determinant_with_many_roots(scores), rel=1e-10)


@pytest.mark.parametrize("n_words", [2, 9, 40, 65])
def test_marginals_are_the_derivative_of_the_determinant(n_words: int) -> None:
    """∂ log det M / ∂ a_hm = (M⁻¹)_mm − (M⁻¹)_mh."""
    scores = np.random.default_rng(n_words).normal(size=(n_words + 1, n_words + 1))
    weights = np.exp(scores)
    inverse = np.linalg.inv(laplacian(weights) + np.diag(weights[0, 1:]))
    gradient = np.vstack([np.diag(inverse), np.diag(inverse)[None, :] - inverse.T])
    marginals = inference.marginals(MANY, scores)
    expected = gradient * weights[:, 1:]
    np.testing.assert_allclose(marginals[:, 1:], expected, rtol=0, atol=1e-10)
    log_partition, again = TreeBatch(MANY, [scores]).log_partition_and_marginals()
    assert log_partition[0] == inference.log_partition(MANY, scores)
    np.testing.assert_array_equal(again[0], marginals)


# ---- any spread of the scores


def exact_matrix(scores: Floats, single_root: bool) -> tuple[Any, Any]:
    """The weights of the arcs, and the matrix whose determinant is Z, in the precision at hand."""
    n = len(scores) - 1
    weights = [[mpmath.exp(mpmath.mpf(x)) for x in row] for row in scores.tolist()]
    matrix = mpmath.zeros(n)
    for h, m in itertools.permutations(range(n), 2):
        matrix[h, m] -= weights[h + 1][m + 1]
        matrix[m, m] += weights[h + 1][m + 1]
    for m in range(n):
        matrix[m, m] += 0 if single_root else weights[0][m + 1]
        matrix[0, m] = weights[0][m + 1] if single_root else matrix[0, m]
    return weights, matrix


def exact_marginals(weights: Any, matrix: Any, single_root: bool) -> Floats:
    """P(h → m) [T + 1, T]: weight times the derivative of log det; row 0 of the matrix may hold the root's arcs."""
    n, inverse = len(weights) - 1, matrix**-1
    marginals = np.zeros((n + 1, n))
    for m in range(n):
        on_diagonal = 0 if single_root and m == 0 else inverse[m, m]
        marginals[0, m] = float(weights[0][m + 1] * (inverse[m, 0] if single_root else on_diagonal))
        for h in range(n):
            if h != m:
                off_diagonal = 0 if single_root and h == 0 else inverse[m, h]
                marginals[h + 1, m] = float(weights[h + 1][m + 1] * (on_diagonal - off_diagonal))
    return marginals


def check_exact(seed: int, structure: SpanningTree, spread: float, n_words: int, *, all_arcs: bool) -> None:
    """Log Z, and the marginals on request, beside determinants of at least 200 digits."""
    scores = np.random.default_rng(seed).normal(size=(n_words + 1, n_words + 1)) * spread
    with mpmath.workdps(max(200, int(8 * spread))):
        weights, matrix = exact_matrix(scores, structure.single_root)
        log_partition = float(mpmath.log(mpmath.det(matrix)))
        marginals = exact_marginals(weights, matrix, structure.single_root) if all_arcs else None
    assert inference.log_partition(structure, scores) == pytest.approx(log_partition, rel=1e-13)
    if marginals is not None:
        found = inference.marginals(structure, scores)[:, 1:]
        np.testing.assert_allclose(found, marginals, rtol=0, atol=1e-11)
        likely = marginals > 1e-250
        np.testing.assert_allclose(
            found[likely], marginals[likely], rtol=1e-10
        )  # every digit of the smallest too


@pytest.mark.parametrize("structure", [ONE, MANY], ids=["one root", "many roots"])
@pytest.mark.parametrize(
    ("spread", "n_words", "n_graphs"), [(60, 40, 1), (60, 14, 3), (10, 9, 4), (250, 7, 4)]
)
def test_200_digits(structure: SpanningTree, spread: float, n_words: int, n_graphs: int) -> None:
    for seed in range(n_graphs):
        check_exact(seed, structure, spread, n_words, all_arcs=n_words < 40)


@pytest.mark.slow
@pytest.mark.parametrize("structure", [ONE, MANY], ids=["one root", "many roots"])
@pytest.mark.parametrize("seed", range(30))
def test_200_digits_of_many_graphs(structure: SpanningTree, seed: int) -> None:
    check_exact(seed + 100, structure, 60, 40, all_arcs=True)


def test_determinants_fail_where_elimination_does_not() -> None:
    """Otherwise all of this would not be needed: in doubles, a third of the graphs of this spread come out wrong."""
    wrong = 0
    for seed in range(60):
        scores = np.random.default_rng(seed).normal(size=(41, 41)) * 60
        scores -= scores.max(axis=0)  # the help that a careful library would give
        with np.errstate(all="ignore"):
            wrong += (
                not abs(log_determinant_with_many_roots(scores) - inference.log_partition(MANY, scores))
                < 0.01
            )
    assert wrong > 10


@pytest.mark.parametrize("structure", [ONE, MANY], ids=["one root", "many roots"])
def test_a_shift_of_all_scores_changes_no_marginal(structure: SpanningTree) -> None:
    scores = np.rint(np.random.default_rng(0).normal(size=(31, 31)) * 64) / 64  # shifts without rounding
    expected = inference.marginals(structure, scores)
    for shift in (1e4, -1e4, 1e8):
        np.testing.assert_array_equal(inference.marginals(structure, scores + shift), expected)
        log_partition = inference.log_partition(structure, scores) + 30 * shift
        assert inference.log_partition(structure, scores + shift) == pytest.approx(log_partition, rel=1e-15)


def test_a_cycle_of_any_depth() -> None:
    """Two words that are each other's best heads by 1e5 nats: a walk would never leave them."""
    scores = np.zeros((4, 4))
    scores[1, 2] = scores[2, 1] = 1e5
    found = inference.marginals(MANY, scores)
    oracle = TreeOracle(np.where(np.eye(4) > 0, -np.inf, scores), False)
    np.testing.assert_allclose(found[:, 1:], oracle.marginals.reshape(4, 4)[:, 1:], rtol=0, atol=1e-12)
    heads = inference.sample(MANY, scores, 50, random_state=0)
    assert np.all((heads[:, 0] == 2) != (heads[:, 1] == 1))
