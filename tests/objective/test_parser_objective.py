"""The objective of a parser against the enumeration of all trees, and its derivatives against differences."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from crfkit import AveragedPerceptron, SpanningTree
from crfkit.data import Sentence
from crfkit.features import ArcMap, Treebank, known_trees, labels_of
from crfkit.inference import TreeParser, decode
from crfkit.objective import Objective
from tests.optimizers.passes import online_pass, sgd_pass
from tests.oracles.oracle import TreeOracle
from tests.oracles.treebanks import random_treebank

Floats = npt.NDArray[np.float64]

CASES = [
    pytest.param(single_root, unknown, id=f"{'one root' if single_root else 'roots'}, {unknown:.0%} unknown")
    for single_root in (True, False)
    for unknown in (0.0, 0.4)
]


class Problem:
    """A small treebank, its objective, and random weights."""

    def __init__(
        self, sentences: list[Sentence], *, single_root: bool = True, l2: float = 0.3, n_threads: int = 1
    ) -> None:
        self.sentences, self.single_root, self.l2 = sentences, single_root, l2
        self.labels = labels_of(sentences)
        self.treebank, self.trees = Treebank(sentences), known_trees(sentences, self.labels)
        self.map = ArcMap.learn(self.treebank, self.trees, self.labels, 1)
        random = np.random.default_rng(7)
        self.sample_weight = random.uniform(0.5, 2.0, len(sentences))
        self.objective = Objective(
            self.map.loss(
                self.treebank,
                self.trees,
                sample_weight=self.sample_weight,
                single_root=single_root,
                n_threads=n_threads,
            ),
            l2=l2,
        )
        self.weights = random.normal(0, 0.3, self.map.n_weights)

    def scores(self, weights: Floats) -> list[Floats]:
        """Of the labelled arcs of each sentence."""
        return TreeParser(self.map.layout, weights).scores(self.treebank.core)

    def enumerated(self, weights: Floats) -> float:
        """The objective by listing all trees."""
        value = 0.5 * self.l2 * float(weights @ weights)
        for n, (sentence, scores) in enumerate(zip(self.sentences, self.scores(weights), strict=True)):
            every = TreeOracle(_real_arcs(scores), self.single_root).log_partition
            allowed = self.allowed(sentence, scores.shape)
            agreeing = TreeOracle(_real_arcs(scores), self.single_root, allowed).log_partition
            value += self.sample_weight[n] * (every - agreeing)
        return value

    def allowed(self, sentence: Sentence, shape: tuple[int, ...]) -> npt.NDArray[np.bool_]:
        """Which arcs agree with what is known."""
        allowed = np.ones(shape, dtype=np.bool_)
        for m, word in enumerate(sentence.words, start=1):
            for h in range(shape[0]):
                for r, label in enumerate(self.labels):
                    allowed[h, m, r] = word.head in (None, h) and word.deprel in ("_", label)
        return allowed


def _real_arcs(scores: Floats) -> Floats:
    """−inf for arcs that do not exist."""
    scores = scores.copy()
    scores[:, 0] = -np.inf
    scores[np.arange(len(scores)), np.arange(len(scores))] = -np.inf
    return scores


@pytest.mark.parametrize(("single_root", "unknown"), CASES)
def test_value_is_that_of_all_trees(single_root: bool, unknown: float) -> None:
    sentences = random_treebank([1, 2, 3, 3, 4], 3, single_root=single_root, unknown=unknown)
    problem = Problem(sentences, single_root=single_root)
    value, _ = problem.objective.value_and_gradient(problem.weights)
    assert value == pytest.approx(problem.enumerated(problem.weights), rel=1e-12)


@pytest.mark.parametrize(("single_root", "unknown"), CASES)
def test_gradient_is_that_of_differences(single_root: bool, unknown: float) -> None:
    problem = Problem(
        random_treebank([1, 2, 4, 5], 5, single_root=single_root, unknown=unknown), single_root=single_root
    )
    _, gradient = problem.objective.value_and_gradient(problem.weights)
    random, step = np.random.default_rng(1), 1e-5
    for d in random.choice(len(gradient), 60, replace=False):
        ends = []
        for sign in (1, -1):
            moved = problem.weights.copy()
            moved[d] += sign * step
            ends.append(problem.objective.value_and_gradient(moved)[0])
        assert gradient[d] == pytest.approx((ends[0] - ends[1]) / (2 * step), abs=1e-7)


@pytest.mark.parametrize(("single_root", "unknown"), CASES)
def test_hessian_product_is_that_of_differences(single_root: bool, unknown: float) -> None:
    problem = Problem(
        random_treebank([1, 2, 4, 5], 6, single_root=single_root, unknown=unknown), single_root=single_root
    )
    direction = np.random.default_rng(2).normal(size=len(problem.weights))
    product = problem.objective.hessian_vector(problem.weights, direction)
    step = 1e-5
    ahead, behind = (
        problem.objective.value_and_gradient(problem.weights + sign * step * direction)[1] for sign in (1, -1)
    )
    assert product == pytest.approx((ahead - behind) / (2 * step), abs=1e-6)


def test_scores_add_up_weights_of_features() -> None:
    """Every weight counts where its feature is: the scores are linear, and labels differ by weights of labels alone."""
    problem = Problem(random_treebank([4, 6], 8))
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
    problem = Problem(random_treebank([4, 6], 12))
    weights = np.where(np.random.default_rng(5).random(problem.map.n_weights) < 0.5, 0.0, problem.weights)
    smaller, left = problem.map.without_zeros(weights)
    assert smaller.n_weights == len(left) == np.count_nonzero(weights)
    without = TreeParser(smaller.layout, left).scores(problem.treebank.core)
    for a, b in zip(problem.scores(weights), without, strict=True):
        assert a == pytest.approx(b, abs=1e-12)


def test_same_bits_for_any_number_of_threads() -> None:
    sentences = random_treebank(list(range(1, 16)) * 8, 9, unknown=0.1)
    answers = []
    for n_threads in (1, 2, 4):
        problem = Problem(sentences, n_threads=n_threads)
        value, gradient = problem.objective.value_and_gradient(problem.weights)
        product = problem.objective.hessian_vector(problem.weights, gradient)
        answers.append((value, gradient.tobytes(), product.tobytes()))
    assert answers[0] == answers[1] == answers[2]


def test_steps_go_along_the_gradient_of_single_sentences() -> None:
    """One step of SGD along all sentences at once is a step along the whole gradient, less its penalty."""
    problem = Problem(random_treebank([2, 5, 7], 10, unknown=0.2), l2=0.0)
    n, rate = len(problem.sentences), 0.1
    _, gradient = problem.objective.value_and_gradient(problem.weights)
    loss, moved, _ = sgd_pass(
        problem.objective, problem.weights, np.arange(n, dtype=np.int32), np.array([rate]), batch=n
    )
    assert loss == pytest.approx(problem.objective.value_and_gradient(problem.weights)[0], rel=1e-12)
    assert moved == pytest.approx(problem.weights - rate * gradient, abs=1e-12)


def test_a_step_after_a_mistake() -> None:
    """The perceptron moves by the features of the right tree less those of the best one, counted by scores."""
    problem = Problem(random_treebank([6], 11)[1:])
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
