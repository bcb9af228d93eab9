"""Features of arcs, and steps after mistakes of a parser."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from crfkit import AveragedPerceptron, SpanningTree, WordVectors
from crfkit.inference import TreeParser, decode
from crfkit.objective import Objective
from tests.optimizers.passes import online_pass
from tests.oracles.parser_problems import ParserProblem
from tests.oracles.treebanks import VECTORS, random_treebank

Floats = npt.NDArray[np.float64]


def test_scores_add_up_weights_of_features() -> None:
    """Every weight counts where its feature is: the scores are linear, and labels differ by weights of labels alone."""
    problem = ParserProblem(random_treebank([4, 6], 8))
    random = np.random.default_rng(3)
    first, second = random.normal(size=(2, problem.map.n_weights))
    for a, b, both in zip(
        problem.scores(first), problem.scores(second), problem.scores(first + 2 * second), strict=True
    ):
        assert both == pytest.approx(a + 2 * b, abs=1e-10)
    only_arcs = first.copy()
    only_arcs[problem.map.n_arc_features :] = 0
    for scores in problem.scores(only_arcs):
        assert np.ptp(scores, axis=2).max() == 0
        assert np.ptp(scores) > 0


def test_weights_of_zero_may_leave() -> None:
    problem = ParserProblem(random_treebank([4, 6], 12))
    weights = np.where(np.random.default_rng(5).random(problem.map.n_weights) < 0.5, 0.0, problem.weights)
    smaller, left = problem.map.without_zeros(weights)
    assert smaller.n_weights == len(left) == np.count_nonzero(weights)
    without = TreeParser(smaller.layout, left).scores(problem.treebank)
    for a, b in zip(problem.scores(weights), without, strict=True):
        assert a == pytest.approx(b, abs=1e-12)


def test_same_bits_for_any_number_of_threads() -> None:
    sentences = random_treebank(list(range(1, 16)) * 8, 9, unknown=0.1)
    answers = []
    for n_threads in (1, 2, 4):
        problem = ParserProblem(sentences)
        objective = Objective(problem.loss(n_threads))
        value, gradient = objective.value_and_gradient(problem.weights)
        product = objective.hessian_vector(problem.weights, gradient)
        answers.append((value, gradient.tobytes(), product.tobytes()))
    assert answers[0] == answers[1] == answers[2]


@pytest.mark.parametrize("vectors", [None, VECTORS], ids=["words", "vectors"])
def test_a_step_after_a_mistake(vectors: WordVectors | None) -> None:
    """The perceptron moves by the features of the right tree less those of the best one, counted by scores."""
    problem = ParserProblem(random_treebank([6], 11)[1:], vectors=vectors)
    [scores] = problem.scores(problem.weights)
    predicted = decode(SpanningTree(), scores).output
    right = np.stack([problem.trees.heads, problem.trees.labels], axis=1)
    assert (predicted != right).any()
    mistakes = Objective(problem.map.loss(problem.treebank, problem.trees))
    loss, state = online_pass(mistakes, AveragedPerceptron(), problem.weights, np.zeros(1, dtype=np.int32))
    step = state["weights"] - problem.weights
    probe = np.random.default_rng(4).normal(size=len(step))
    [probed] = problem.scores(probe)
    words = np.arange(1, len(right) + 1)

    def score(of: Floats, tree: npt.NDArray[np.int32]) -> float:
        return float(of[tree[:, 0], words, tree[:, 1]].sum())

    assert float(step @ probe) == pytest.approx(score(probed, right) - score(probed, predicted), abs=1e-9)
    assert loss == pytest.approx(score(scores, predicted) - score(scores, right), abs=1e-9)
