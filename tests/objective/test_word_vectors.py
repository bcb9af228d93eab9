"""Word vectors of parsers: scores of arcs and losses, said again from their definition."""

from __future__ import annotations

from itertools import product

import numpy as np
import numpy.typing as npt
import pytest

from crfkit import WordVectors
from crfkit.data import Sentence
from crfkit.features import encode_sentences
from crfkit.inference import TreeParser
from crfkit.objective import Objective
from tests.oracles.oracle import all_lead_to_the_root
from tests.oracles.parser_problems import ParserProblem
from tests.oracles.second_order_problems import SecondOrderProblem
from tests.oracles.treebanks import FORMS, random_treebank

Floats = npt.NDArray[np.float64]
K = 3
MASK = 2**64 - 1
TEMPLATES = [(90, "head"), (91, "dependent")]


def random_vectors(seed: int = 0) -> WordVectors:
    """Of all forms but one."""
    random = np.random.default_rng(seed)
    return WordVectors.build({form: random.normal(size=K) for form in FORMS[:-1]})


def extended(key: int, value: int) -> int:
    key = ((key ^ value) * 0x9E3779B97F4A7C15) & MASK
    return key ^ (key >> 29)


def key_of(text: str) -> int:
    """FNV-1a of the bytes of a text."""
    key, data = 0xCBF29CE484222325, text.encode()
    for byte in data:
        key = ((key ^ byte) * 0x100000001B3) & MASK
    return extended(key, len(data))


def signed(key: int) -> int:
    return key - 2**64 if key >= 2**63 else key


class Reference:
    """The features that an arc with a label has of word vectors, [weights of vectors]."""

    def __init__(self, problem: ParserProblem | SecondOrderProblem, vectors: WordVectors) -> None:
        layout = problem.map.layout.vectors
        self.vectors, self.n_labels, self.n_weights = vectors, len(problem.labels), layout.n_weights
        ptr, labels = layout.ptr.tolist(), layout.labels.tolist()
        self.rows = {
            (key, labels[i]): i
            for b, key in enumerate(layout.keys.tolist())
            for i in range(ptr[b], ptr[b + 1])
        }
        assert layout.size == K

    def counts(self, sentence: Sentence, head: int, dependent: int, label: int) -> Floats:
        found = np.zeros((self.n_weights // K, K))
        tags = ["<root>", *(word.upos for word in sentence.words)]
        for number, whose in TEMPLATES:
            word = head if whose == "head" else dependent
            if word == 0 or (form := sentence.words[word - 1].form) not in self.vectors:
                continue
            key = extended((number * 0xD6E8FEB86659FD93) & MASK, 2 if dependent > head else 1)
            key = extended(extended(key, key_of(tags[head])), key_of(tags[dependent]))
            for of_label in (label, self.n_labels):  # of this label, and of all labels alike
                row = self.rows.get((signed(key), of_label))
                if row is not None:
                    found[row] += np.asarray(self.vectors[form], dtype=np.float64)
        return found.ravel()


@pytest.fixture(scope="module")
def problem() -> ParserProblem:
    return ParserProblem(random_treebank([4, 6, 3, 3], 8), vectors=random_vectors())


def test_scores_are_products_of_weights_and_vectors(problem: ParserProblem) -> None:
    reference = Reference(problem, random_vectors())
    only_sparse, only_vectors = problem.weights.copy(), problem.weights.copy()
    only_sparse[-reference.n_weights :] = 0
    only_vectors[: -reference.n_weights] = 0
    for sentence, dense, sparse, both in zip(
        problem.sentences,
        problem.scores(only_vectors),
        problem.scores(only_sparse),
        problem.scores(problem.weights),
        strict=True,
    ):
        assert both == pytest.approx(sparse + dense, abs=1e-12)
        n = len(sentence.words)
        for h, m, r in product(range(n + 1), range(1, n + 1), range(reference.n_labels)):
            if h != m:
                expected = reference.counts(sentence, h, m, r) @ only_vectors[-reference.n_weights :]
                assert dense[h, m, r] == pytest.approx(expected, abs=1e-12)


def test_the_loss_is_that_of_all_trees(problem: ParserProblem) -> None:
    """Value and gradient of enumerated trees, with features by their definition; the gradient by differences too."""
    reference = Reference(problem, random_vectors())
    value, gradient = 0.0, np.zeros(reference.n_weights)
    short = [n for n, one in enumerate(problem.sentences) if len(one.words) <= 3]
    sparse = problem.weights.copy()
    sparse[-reference.n_weights :] = 0
    scores = problem.scores(sparse)
    for n in short:
        sentence, of_arcs = problem.sentences[n], scores[n]
        n_words = len(sentence.words)
        counts, totals = [], []
        for heads in product(range(n_words + 1), repeat=n_words):
            if not all_lead_to_the_root(list(heads)) or heads.count(0) > 1:
                continue
            for labels in product(range(reference.n_labels), repeat=n_words):
                arcs = [(h, m, r) for m, (h, r) in enumerate(zip(heads, labels, strict=True), start=1)]
                counts.append(sum(reference.counts(sentence, *arc) for arc in arcs))
                totals.append(sum(of_arcs[arc] for arc in arcs))
        every = np.array(counts)
        scored = np.array(totals) + every @ problem.weights[-reference.n_weights :]
        log_z = np.logaddexp.reduce(scored)
        right = [
            (word.head or 0, m, problem.labels.index(word.deprel)) for m, word in enumerate(sentence.words, 1)
        ]
        of_right = sum(reference.counts(sentence, *arc) for arc in right)
        weight = problem.sample_weight[n]
        score = sum(of_arcs[arc] for arc in right) + of_right @ problem.weights[-reference.n_weights :]
        value += weight * (log_z - score)
        gradient += weight * (np.exp(scored - log_z) @ every - of_right)
    others = np.where(np.isin(np.arange(len(problem.sentences)), short), problem.sample_weight, 0.0)
    loss = problem.map.loss(problem.treebank, problem.trees, sample_weight=others)
    objective = Objective(loss, l2=0.0)
    found, slope = objective.value_and_gradient(problem.weights)
    assert found == pytest.approx(value, abs=1e-9)
    np.testing.assert_allclose(slope[-reference.n_weights :], gradient, rtol=0, atol=1e-9)
    step = np.zeros_like(problem.weights)
    step[-reference.n_weights :] = np.random.default_rng(1).normal(size=reference.n_weights)
    ahead, behind = (objective.value_and_gradient(problem.weights + s * 1e-5 * step)[0] for s in (1, -1))
    assert (ahead - behind) / 2e-5 == pytest.approx(slope @ step, abs=1e-7)


def test_parts_of_pruned_parsers_have_the_same_scores() -> None:
    vectors = random_vectors(3)
    problem = SecondOrderProblem(random_treebank([4, 5], 2), most=2, vectors=vectors)
    reference = Reference(problem, vectors)
    weights = np.zeros(problem.map.n_weights)
    weights[-reference.n_weights :] = np.random.default_rng(0).normal(size=reference.n_weights)
    for n, sentence in enumerate(problem.sentences):
        for key, score in problem.parts(n, weights).items():
            expected = 0.0
            if len(key) == 3:
                expected = float(reference.counts(sentence, *key) @ weights[-reference.n_weights :])
            assert score == pytest.approx(expected, abs=1e-12)


def test_many_tags_in_one_sentence() -> None:
    """Tags beyond the 63rd of a sentence have no blocks; the others are as they were."""
    vectors = random_vectors()
    [one] = random_treebank([80], 4)[1:]
    words = [word._replace(upos=f"T{i}") for i, word in enumerate(one.words)]
    problem = ParserProblem([Sentence(words)], vectors=vectors)
    reference = Reference(problem, vectors)
    weights = np.zeros(problem.map.n_weights)
    weights[-reference.n_weights :] = 1.0
    [scores] = problem.scores(weights)
    expected = np.array(
        [
            [reference.counts(Sentence(words), h, m, 0).sum() if h != m else 0.0 for m in range(1, 81)]
            for h in range(81)
        ]
    )
    np.testing.assert_allclose(scores[:64, 1:64, 0], expected[:64, :63], atol=1e-12)
    assert not scores[64:, 64:].any()


def test_same_bits_for_any_number_of_threads() -> None:
    sentences = random_treebank(list(range(1, 16)) * 4, 9, unknown=0.1)
    answers = []
    for n_threads in (1, 2, 4):
        problem = ParserProblem(sentences, vectors=random_vectors())
        objective = Objective(problem.loss(n_threads))
        value, gradient = objective.value_and_gradient(problem.weights)
        answers.append(
            (value, gradient.tobytes(), objective.hessian_vector(problem.weights, gradient).tobytes())
        )
    assert answers[0] == answers[1] == answers[2]


def test_weights_of_zero_may_leave(problem: ParserProblem) -> None:
    n_vectors = problem.map.layout.vectors.n_weights
    weights = problem.weights.copy()
    weights[-n_vectors:][::2] = 0
    weights[-n_vectors:].reshape(-1, K)[::3] = 0
    smaller, left = problem.map.without_zeros(weights)
    assert smaller.layout.vectors.n_weights == n_vectors - K * -(-(n_vectors // K) // 3)
    for a, b in zip(
        problem.scores(weights), TreeParser(smaller.layout, left).scores(problem.treebank), strict=True
    ):
        assert a == pytest.approx(b, abs=1e-12)


def test_vectors_of_another_size(problem: ParserProblem) -> None:
    other = WordVectors.build({"ab": [1.0, 2.0]})
    for vectors, size in ((None, 0), (other, 2)):
        treebank = encode_sentences(problem.sentences, vectors=vectors)
        with pytest.raises(ValueError, match=f"word vectors have {size} numbers, expected {K}"):
            TreeParser(problem.map.layout, problem.weights).scores(treebank)


def test_rows_are_checked() -> None:
    treebank = type(encode_sentences([]))
    words = [list(random_treebank([2], 0)[1].words)]
    rows = np.zeros((2, K))
    for ids, message in (([0], "for each of the 2 words"), ([0, 2], "ids has the value 2")):
        with pytest.raises(ValueError, match=message):
            treebank(words, None, rows, np.array(ids, dtype=np.int32))
    with pytest.raises(ValueError, match="at least one number"):
        treebank(words, None, np.zeros((2, 0)), np.array([0, 1], dtype=np.int32))
