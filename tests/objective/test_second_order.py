"""Parsers of second order: every answer against the enumeration of all projective trees."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest

from crfkit.features import ArcMap, ArcPruner
from crfkit.inference import TreeParser
from tests.oracles.second_order_problems import SecondOrderProblem, Tree, parts_of
from tests.oracles.treebanks import random_treebank


def is_tree(heads: tuple[int, ...]) -> bool:
    """Whether one word hangs on the root, and all others on a word that does, or on one that does, and so on."""
    reached = {0}
    for _ in heads:
        reached |= {m for m, h in enumerate(heads, 1) if h in reached}
    return heads.count(0) == 1 and len(reached) == len(heads) + 1


PROBLEMS = [(True, 99), (False, 99), (True, 2)]


class Case:
    """The labelled trees of one sentence with their scores."""

    def __init__(self, problem: SecondOrderProblem, n: int) -> None:
        self.problem, self.n = problem, n
        parts = problem.parts(n, problem.weights)
        arcs = {(key[0], key[1]) for key in parts if len(key) == 3}
        self.trees: list[Tree] = problem.trees_of(n, arcs)
        self.scores = np.array([sum(parts[key] for key in parts_of(tree)) for tree in self.trees])
        self.log_z = np.logaddexp.reduce(self.scores)
        self.probs = np.exp(self.scores - self.log_z)


def problem_of(*, single_root: bool, most: int) -> SecondOrderProblem:
    return SecondOrderProblem(
        random_treebank([1, 2, 3, 4, 4], 5, single_root=single_root), single_root=single_root, most=most
    )


@pytest.mark.parametrize(("single_root", "most"), PROBLEMS)
def test_sums_are_those_over_all_projective_trees(single_root: bool, most: int) -> None:
    problem = problem_of(single_root=single_root, most=most)
    parser = problem.parser(problem.weights)
    log_z = parser.log_partitions(problem.treebank)
    marginals, labelled = (parser.marginals(problem.treebank, labelled=flag) for flag in (False, True))
    for n in range(len(problem.sentences)):
        case = Case(problem, n)
        assert log_z[n] == pytest.approx(case.log_z, rel=1e-12)
        expected = np.zeros_like(labelled[n])
        for tree, prob in zip(case.trees, case.probs, strict=True):
            for m, (h, r) in enumerate(tree, start=1):
                expected[h, m, r] += prob
        np.testing.assert_allclose(labelled[n], expected, rtol=0, atol=1e-12)
        np.testing.assert_allclose(marginals[n], expected.sum(axis=2), rtol=0, atol=1e-12)


@pytest.mark.parametrize(("single_root", "most"), PROBLEMS)
def test_best_trees(single_root: bool, most: int) -> None:
    problem = problem_of(single_root=single_root, most=most)
    parser = problem.parser(problem.weights)
    best = np.stack(parser.decode(problem.treebank), axis=1).tolist()
    careful = np.stack(parser.decode(problem.treebank, minimum_risk=True), axis=1).tolist()
    labelled = parser.marginals(problem.treebank, labelled=True)
    ranked = parser.k_best(problem.treebank, 7)
    for n in range(len(problem.sentences)):
        case, at = Case(problem, n), slice(problem.ptr[n], problem.ptr[n + 1])
        scores = dict(zip(case.trees, case.scores.tolist(), strict=True))
        order = sorted(scores.values(), reverse=True)
        assert scores[tuple(map(tuple, best[at]))] == pytest.approx(order[0], abs=1e-12)
        assert [score for score, _, _ in ranked[n]] == pytest.approx(order[:7], abs=1e-10)
        found = [tuple(zip(heads.tolist(), labels.tolist(), strict=True)) for _, heads, labels in ranked[n]]
        assert len(set(found)) == len(found) == min(7, len(order))
        assert [scores[tree] for tree in found] == pytest.approx(order[:7], abs=1e-10)

        def expected(tree: Tree, of: np.ndarray = labelled[n]) -> float:
            return float(sum(of[h, m, r] for m, (h, r) in enumerate(tree, start=1)))

        right = max(expected(tree) for tree in case.trees)
        assert expected(tuple(map(tuple, careful[at]))) == pytest.approx(right, abs=1e-12)


def test_likelihoods_of_given_trees() -> None:
    problem = problem_of(single_root=True, most=99)
    parser = problem.parser(problem.weights)
    found = parser.log_likelihoods(problem.treebank, problem.trees.heads, problem.trees.labels)
    for n in range(len(problem.sentences)):
        case = Case(problem, n)
        agreeing = [
            score for tree, score in zip(case.trees, case.scores, strict=True) if problem.admits(n, tree)
        ]
        assert len(agreeing) == 1
        assert found[n] == pytest.approx(agreeing[0] - case.log_z, abs=1e-10)
    heads = problem.trees.heads.copy()
    heads[problem.ptr[-3] :] = -1
    some = parser.log_likelihoods(problem.treebank, heads, np.full_like(heads, -1))
    assert (some >= found - 1e-12).all()
    assert some[-2:] == pytest.approx(0.0, abs=1e-10)


@pytest.mark.parametrize("single_root", [True, False])
def test_probabilities_of_all_trees_of_a_pruned_parser_sum_to_one(single_root: bool) -> None:
    """Trees with an arc that was left out have none, and those of the k best are theirs."""
    problem = SecondOrderProblem(random_treebank([4], 1)[:1], single_root=single_root, most=2)
    parser = problem.parser(problem.weights)
    kept = {(int(h), int(m)) for h, m in parser.parts(problem.treebank, 0)[0]}
    everything = {(h, m) for h in range(5) for m in range(1, 5) if h != m}
    assert kept < everything
    log_p = {}
    for tree in problem.trees_of(0, everything):
        heads, labels = (np.array(column, np.int32) for column in zip(*tree, strict=True))
        [log_p[tree]] = parser.log_likelihoods(problem.treebank, heads, labels)
        [added] = parser.log_likelihoods(problem.treebank, heads, labels, True)
        is_kept = all((h, m) in kept for m, (h, _) in enumerate(tree, start=1))
        assert np.isfinite(log_p[tree]) == is_kept
        assert np.isfinite(added)
    assert np.exp(list(log_p.values())).sum() == pytest.approx(1.0, abs=1e-10)
    [log_z] = parser.log_partitions(problem.treebank)
    for score, heads, labels in parser.k_best(problem.treebank, 5)[0]:
        tree = tuple(zip(heads.tolist(), labels.tolist(), strict=True))
        assert log_p[tree] == pytest.approx(score - log_z, abs=1e-10)


@pytest.mark.parametrize("most", [1, 3])
def test_the_likeliest_heads_are_candidates(most: int) -> None:
    """Of a model of few templates, whose features are some of all: scored by the same weights, and enumerated."""
    problem = SecondOrderProblem(random_treebank([2, 4, 5], 4), most=most)
    heads = problem.trees.heads
    coarse = ArcMap.learn_coarse(problem.treebank, problem.trees, 1)
    every = ArcMap.learn(problem.treebank, problem.trees, problem.labels, 1)
    place = {key: i for i, key in enumerate(every.layout.arc_keys.tolist())}
    places = [place[key] for key in coarse.layout.arc_keys.tolist()]
    assert 0 < len(places) < every.n_arc_features
    weights = np.random.default_rng(2).normal(size=coarse.n_weights)
    same = np.zeros(every.n_weights)
    same[places] = weights
    pruner = ArcPruner(coarse, weights, 0.0, most)
    free = pruner.model.candidates(problem.treebank, np.full_like(heads, -1), True, 1)
    for n, full in enumerate(TreeParser(every.layout, same).scores(problem.treebank)):
        scores = TreeParser(coarse.layout, weights).scores(problem.treebank)[n][:, :, 0]
        assert full.max(axis=2) == pytest.approx(scores, abs=1e-12)
        found = set(map(tuple, free.arcs[free.sentence_ptr[n] : free.sentence_ptr[n + 1]].tolist()))
        total = {
            tree: math.exp(sum(scores[h, m] for m, h in enumerate(tree, 1)))
            for tree in product(range(len(scores)), repeat=len(scores) - 1)
            if is_tree(tree)
        }
        for m in range(1, len(scores)):
            prob = {
                h: sum(p for tree, p in total.items() if tree[m - 1] == h)
                for h in range(len(scores))
                if h != m
            }
            likely = sorted(prob, key=lambda h: -prob[h])[:most]
            assert {(h, m) for h in likely} <= found


def test_known_arcs_are_candidates_and_a_projective_tree_always_is() -> None:
    problem = SecondOrderProblem(random_treebank([6, 9, 12] * 5, 3), most=1)
    arcs = problem.candidates()
    unknown = np.full(len(problem.trees.heads), -1, np.int32)
    free = problem.pruner.model.candidates(problem.treebank, unknown, True, 1)
    heads, labels = problem.parser(problem.weights).decode(problem.treebank)
    for n in range(len(problem.sentences)):
        known = set(map(tuple, arcs.arcs[arcs.sentence_ptr[n] : arcs.sentence_ptr[n + 1]].tolist()))
        at = slice(problem.ptr[n], problem.ptr[n + 1])
        assert {(h, m) for m, h in enumerate(problem.trees.heads[at].tolist(), start=1)} <= known
        some = set(map(tuple, free.arcs[free.sentence_ptr[n] : free.sentence_ptr[n + 1]].tolist()))
        assert {(h, m) for m, h in enumerate(heads[at].tolist(), start=1)} <= some
    assert (labels >= 0).all()
