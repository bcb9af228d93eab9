"""Spanning trees: determinants as a cross-check, 200 digits, best and k best trees, samples, errors in words."""

from __future__ import annotations

import itertools
import math
from typing import Any

import mpmath  # type: ignore[import-untyped]
import numpy as np
import pytest
from scipy import stats

from crfkit import SpanningTree, inference
from crfkit.inference import TreeBatch
from crfkit.structures import Evidence
from tests.oracle import Floats, TreeOracle, all_lead_to_the_root
from tests.tree_instances import draw_tree

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
        found = TreeBatch(structure, scores[possible]).best()
        known = {tuple(heads): number for number, heads in enumerate(trees.tolist())}
        for row, top, best in zip(of_trees[possible], highest[possible], found, strict=True):
            assert best.score == pytest.approx(top, rel=1e-12, abs=1e-12)
            assert row[known[tuple(best.output.tolist())]] == pytest.approx(top, rel=1e-12, abs=1e-12)
        for matrix in scores[~possible][:10]:
            assert inference.log_partition(structure, matrix) == -np.inf
            with pytest.raises(ValueError, match="no tree"):
                inference.best(structure, matrix)


@pytest.mark.parametrize("n_words", [500, 2000])
def test_long_sentences(n_words: int) -> None:
    random = np.random.default_rng(n_words)
    for structure in (ONE, MANY):
        scores = random.normal(size=(n_words + 1, n_words + 1))
        best = inference.best(structure, scores)
        assert np.isfinite(inference.score(structure, scores, best.output))
        tops = np.sort(np.where(np.eye(n_words + 1) > 0, -np.inf, scores)[:, 1:], axis=0)[-1]
        assert tops.sum() * 0.98 < best.score <= tops.sum()
    nested = np.full((n_words + 1, n_words + 1), -np.inf)  # cycles within cycles, as deep as they get
    nested[0, 1:] = -1e6
    for word in range(1, n_words):
        nested[word, word + 1], nested[word + 1, word] = float(word), float(-word)
    assert inference.best(ONE, nested).score == pytest.approx(-1e6 + n_words * (n_words - 1) / 2, rel=1e-12)


def test_log_partition_of_a_long_sentence() -> None:
    scores = np.random.default_rng(0).normal(size=(301, 301)) * 5
    log_partition, marginals = TreeBatch(ONE, [scores]).log_partition_and_marginals()
    np.testing.assert_allclose(marginals[0][:, 1:].sum(axis=0), 1.0, rtol=0, atol=1e-12)
    assert log_partition[0] > inference.best(ONE, scores).score


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


# ---- evidence, batches, threads


def test_forms_of_evidence_agree() -> None:
    scores = np.random.default_rng(0).normal(size=(5, 5))
    heads = [2, -1, -1, 3]
    mask = np.ones((5, 5), dtype=np.bool_)
    mask[:, 1], mask[:, 4] = np.arange(5) == 2, np.arange(5) == 3
    forms: list[Any] = [heads, np.array(heads), mask, Evidence.from_sets([[2], None, None, [3]])]
    expected = inference.marginals(ONE, np.where(mask, scores, -np.inf))
    for form in forms:
        np.testing.assert_array_equal(inference.marginals(ONE, scores, evidence=form), expected)
    labelled = np.random.default_rng(1).normal(size=(5, 5, 3))
    pairs = [[2, 1], [-1, -1], [-1, 2], [3, -1]]
    by_label = np.repeat(mask[:, :, None], 3, axis=2)
    by_label[:, 1] &= np.arange(3) == 1
    by_label[:, 3] &= np.arange(3) == 2
    expected = inference.marginals(ONE, np.where(by_label, labelled, -np.inf))
    np.testing.assert_array_equal(inference.marginals(ONE, labelled, evidence=pairs), expected)
    np.testing.assert_array_equal(
        inference.marginals(ONE, labelled, evidence=heads), inference.marginals(ONE, labelled, evidence=mask)
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
    moved = by_padding.tangent(np.ones(padded.shape) * 0.5)
    for n, (scores, found) in enumerate(zip(listed, by_list.marginals(), strict=True)):
        side = len(scores)
        np.testing.assert_array_equal(found, inference.marginals(ONE, scores))
        np.testing.assert_array_equal(padded_marginals[n, :side, :side], found)
        assert not padded_marginals[n, side:].any()
        assert not padded_marginals[n, :, side:].any()
        np.testing.assert_allclose(moved[n], 0.0, rtol=0, atol=1e-9)  # all trees gain the same
    for best, scores in zip(by_padding.best(), listed, strict=True):
        np.testing.assert_array_equal(best.output, inference.best(ONE, scores).output)
    drawn = by_list.sample(4, random_state=2)
    assert [tree.shape[:2] for tree in drawn] == [(4, length) for length in lengths]
    assert len(by_list) == len(lengths)
    known: list[Any] = [None if len(s) < 2 else inference.best(ONE, s).output for s in listed]
    gold = TreeBatch(ONE, listed, evidence=known).log_partition()
    np.testing.assert_allclose(gold, [best.score for best in by_list.best()], rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("labels", [None, 3])
def test_the_same_bits_for_any_number_of_threads(labels: int | None) -> None:
    listed, _, _ = batch(labels)
    one, many = (TreeBatch(MANY, listed * 3, n_threads=n) for n in (1, 5))
    np.testing.assert_array_equal(one.log_partition(), many.log_partition())
    np.testing.assert_array_equal(one.entropy(), many.entropy())
    answers: list[Any] = [
        lambda trees: trees.marginals(),
        lambda trees: trees.tangent([np.sin(np.nan_to_num(s)) for s in listed * 3]),
        lambda trees: [best.output for best in trees.best()],
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
    assert trees.best() == []
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
        lambda: inference.tangent(structure, scores, np.zeros((4, 4))),
        lambda: inference.best(structure, scores),
        lambda: inference.minimum_risk(structure, scores),
        lambda: inference.sample(structure, scores),
        lambda: inference.entropy(structure, scores),
        lambda: inference.log_probability(structure, scores, output),
    ]
    for question in questions:
        with pytest.raises(ValueError, match=message):
            question()
    with pytest.raises(ValueError, match=f"sentence 1: no tree.*{message}"):
        TreeBatch(structure, [np.zeros((2, 2)), scores]).best()


FIVE = np.zeros((5, 5))


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda: inference.best(ONE, np.zeros((3, 4))), r"expected \[T \+ 1, T \+ 1\].* got \[3, 4\]"),
        (lambda: inference.best(ONE, np.zeros((0, 0))), r"got \[0, 0\]"),
        (lambda: inference.best(ONE, [[0.0], [0.0, 1.0]]), "rows of different length"),
        (lambda: inference.best(ONE, [["a", "b"], ["c", "d"]]), "expected an array of numbers, got <U1"),
        (lambda: inference.best(ONE, FIVE + np.nan), r"\[0, 1\] is NaN"),
        (lambda: inference.best(ONE, FIVE + np.inf), r"\[0, 1\] is \+inf"),
        (lambda: inference.k_best(ONE, FIVE, 0), "k is 0, expected 1 or more"),
        (lambda: inference.sample(ONE, FIVE, -1), "n is -1, expected 0 or more"),
        (lambda: inference.score(ONE, FIVE, [0, 1]), "has 2 words, the scores have 4"),
        (lambda: inference.score(ONE, FIVE, [0, 1, 1, 5]), "Word 4 has head 5, expected numbers from 0 to 4"),
        (lambda: inference.score(ONE, FIVE, [0.0, 1, 1, 1]), r"given by heads \[T\], got float64"),
        (lambda: inference.parts(ONE, [[0, 3]], 3), "Word 1 has label 3, expected numbers from 0 to 2"),
        (lambda: inference.tangent(ONE, FIVE, np.zeros((4, 4))), "the direction has shapes"),
        (lambda: inference.tangent(ONE, FIVE, FIVE - np.inf), "direction holds −inf"),
        (lambda: inference.best(ONE, FIVE, evidence=np.ones((4, 4), dtype=np.bool_)), r"has shape \[4, 4\]"),
        (lambda: inference.best(ONE, FIVE, evidence=[0, 1]), r"heads \[T\] = \[4\]"),
        (
            lambda: inference.best(ONE, FIVE, evidence=[0, 1, 9, -1]),
            "gives word 3 the head 9, expected 0 to 4",
        ),
        (lambda: inference.best(ONE, FIVE, evidence=Evidence.from_labels([0])), "speaks of 1 words"),
        (lambda: inference.best(ONE, np.zeros((2, 2, 2)), evidence=[[0, 5]]), "the label 5, expected 0 to 1"),
        (lambda: inference.count(ONE, FIVE), "expected bools"),
        (lambda: TreeBatch(ONE, [FIVE, np.zeros((2, 2, 3))]), r"have \[0, 3\] labels"),
        (lambda: TreeBatch(ONE, [FIVE], evidence=[]), "evidence for 0 sentences, scores for 1"),
        (lambda: TreeBatch(ONE, np.zeros((2, 3, 3)), [2, 3]), "sentence 1 has length 3, expected 0 to 2"),
        (lambda: TreeBatch(ONE, np.zeros((2, 3, 3)), [2]), r"expected integers \[N\] = \[2\]"),
        (lambda: ONE.compile(-1), "n_sites is -1"),
        (lambda: ONE.compile(2, Evidence.from_labels([0])), "speaks of 1 words, the input has 2"),
        (lambda: ONE.compile(2, fired=3), "no parts that an input could switch on"),
    ],
)
def test_what_is_refused(ask: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ask()


def test_outputs_that_are_no_trees_score_nothing() -> None:
    assert inference.score(ONE, FIVE, [0, 1, 1, 2]) == 0.0
    assert inference.score(ONE, FIVE, [0, 0, 1, 2]) == -math.inf
    assert inference.score(MANY, FIVE, [0, 0, 1, 2]) == 0.0
    for circle in ([0, 3, 2, 1], [2, 1, 0, 3], [0, 2, 1, 1]):
        assert inference.score(MANY, FIVE, circle) == -math.inf
        assert inference.log_probability(MANY, FIVE, circle) == -math.inf


def test_compiled_trees_are_compared_by_what_they_allow() -> None:
    assert ONE.compile(3).key == SpanningTree().compile(3).key != MANY.compile(3).key
    known = Evidence.from_labels([0, -1, 1])
    assert ONE.compile(3, known).key == ONE.compile(3, Evidence.from_labels([0, -1, 1])).key
    assert ONE.compile(3, known).key != ONE.compile(3).key
    assert ONE.bind(["nsubj"], []) is ONE
