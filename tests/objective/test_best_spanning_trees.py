"""The best of all trees of a second-order parser, and the bound that proves it, against all trees."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from crfkit.inference import SecondOrderParser
from tests.oracles.oracle import all_lead_to_the_root
from tests.oracles.second_order_problems import SecondOrderProblem, second_order_parts
from tests.oracles.treebanks import random_treebank


def highest_score(problem: SecondOrderProblem, parser: SecondOrderParser, n: int) -> float:
    """Of all trees of sentence n."""
    arcs, others, numbers = parser.parts(problem.treebank, n)
    R, n_words = len(problem.labels), problem.ptr[n + 1] - problem.ptr[n]
    scores = {(h, m): max(numbers[i * R : i * R + R]) for i, (h, m) in enumerate(arcs.tolist())}
    second = dict(zip(map(tuple, others.tolist()), numbers[len(arcs) * R :].tolist(), strict=True))
    return max(
        sum(scores[h, m] for m, h in enumerate(heads, start=1))
        + sum(second[part] for part in second_order_parts(heads))
        for heads in product(range(n_words + 1), repeat=n_words)
        if all((h, m) in scores for m, h in enumerate(heads, start=1))
        and all_lead_to_the_root(list(heads))
        and (not problem.single_root or heads.count(0) == 1)
    )


@pytest.mark.parametrize("scale", [1.0, 4.0])
@pytest.mark.parametrize("single_root", [True, False])
@pytest.mark.parametrize("most", [3, 99])
@pytest.mark.parametrize("seed", range(4))
def test_the_best_tree_is_found_and_proved(seed: int, most: int, single_root: bool, scale: float) -> None:
    problem = SecondOrderProblem(random_treebank([1, 2, 3, 5, 5], seed), single_root=single_root, most=most)
    parser = SecondOrderParser(
        problem.pruner.model,
        problem.map.layout,
        problem.weights * scale,
        projective=False,
        single_root=single_root,
    )
    decoded, _ = parser.decode(problem.treebank)
    first = [heads.tolist() for [(_, heads, _)] in parser.k_best(problem.treebank, 1)]
    few = parser.bounded_decode(problem.treebank, 1)
    for n, (score, bound, _, heads, _) in enumerate(parser.bounded_decode(problem.treebank, 3000)):
        best = highest_score(problem, parser, n)
        assert score == pytest.approx(best, abs=1e-9)
        assert best - 1e-9 <= bound <= best + 1e-7
        assert decoded[problem.ptr[n] : problem.ptr[n + 1]].tolist() == heads.tolist() == first[n]
        assert few[n][0] <= best + 1e-9
        assert few[n][1] >= best - 1e-9


def test_bounds_of_longer_sentences_fall_with_more_iterations() -> None:
    problem = SecondOrderProblem(random_treebank([14, 18, 22], 8), most=6)
    weights = np.random.default_rng(3).normal(0, 2.0, problem.map.n_weights)
    parser = SecondOrderParser(problem.pruner.model, problem.map.layout, weights, projective=False)
    runs = [parser.bounded_decode(problem.treebank, most) for most in (1, 50, 4000)]
    for few, some, many in zip(*runs, strict=True):
        assert few[0] <= some[0] <= many[0] <= many[1] <= some[1] <= few[1]
        assert many[1] < few[1]
