"""The parser: training, answers, files, and what is refused."""

from __future__ import annotations

import io
import pickle
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from crfkit import (
    AROW,
    LBFGS,
    SAG,
    SGD,
    TRON,
    AdaGrad,
    AveragedPerceptron,
    InputError,
    Parser,
    PassiveAggressive,
    SpanningTree,
    load,
)
from crfkit.data import EmptyNode, Multiword, Sentence, Word, read_conllu
from crfkit.errors import ArgumentError, TreeError, UnsupportedError
from crfkit.inference import decode, log_partition, marginals
from crfkit.models import Progress, TrainingInterrupted, model_type
from tests.models.first_order import first_order
from tests.oracles.treebanks import random_treebank

TREES = random_treebank([1, 3, 5, 8, 13, 4, 6] * 3, 0)
NEW = random_treebank([2, 7, 9], 1)


def words_of(sentences: list[Sentence]) -> list[tuple[int | None, str]]:
    return [(word.head, word.deprel) for sentence in sentences for word in sentence.words]


@pytest.fixture(scope="module")
def parser() -> Parser:
    return first_order(l2=0.01, n_threads=1).fit(TREES)


def test_training_trees_are_learned(parser: Parser) -> None:
    assert parser.score(TREES) > 0.95
    assert parser.classes_ == ["a", "b:x", "c"]
    assert len(parser.history_) == parser.n_iter_ + 1


@pytest.mark.parametrize("optimizer", [TRON(), SAG(max_iterations=400), AdaGrad(max_iterations=400)])
def test_all_optimizers_reach_the_same_minimum(optimizer: Any) -> None:
    few = TREES[:8]
    found = {}
    for one in (LBFGS(), optimizer):
        parser = first_order(optimizer=one, l2=1.0).fit(few)
        found[type(one).__name__] = float(
            -parser.log_likelihood(few).sum() + 0.5 * float(parser.weights_ @ parser.weights_)
        )
    assert found[type(optimizer).__name__] == pytest.approx(found["LBFGS"], rel=2e-3)


@pytest.mark.parametrize(
    "optimizer", [AveragedPerceptron(20), PassiveAggressive(20), AROW(20)], ids=lambda one: type(one).__name__
)
def test_parsers_learn_from_mistakes(optimizer: Any) -> None:
    assert first_order(optimizer=optimizer).fit(TREES).score(TREES) > 0.95
    partial = random_treebank([3, 5, 8, 6] * 4, 2, unknown=0.5)
    parser = first_order(optimizer=optimizer).fit(partial)
    assert parser.history_[-1].objective < 0.1 * parser.history_[1].objective


def test_same_bits_for_any_number_of_threads() -> None:
    weights = [
        first_order(optimizer=AdaGrad(max_iterations=2, rate=0.3, batch=5), n_threads=n)
        .fit(TREES)
        .weights_.tobytes()
        for n in (1, 2, 4)
    ]
    assert weights[0] == weights[1] == weights[2]


def test_answers_are_those_of_inference_on_the_scores(parser: Parser) -> None:
    tree = SpanningTree()
    nbest = parser.predict_nbest(NEW, 3)
    likelihood = parser.log_likelihood(NEW)
    for n, scores in enumerate(parser.arc_scores(NEW)):
        output = decode(tree, scores).output
        parsed = parser.predict([NEW[n]])[0]
        assert [[word.head, parser.classes_.index(word.deprel)] for word in parsed.words] == output.tolist()
        labelled = parser.arc_probabilities([NEW[n]], labelled=True)[0]
        assert labelled == pytest.approx(marginals(tree, scores), abs=1e-12)
        assert parser.arc_probabilities([NEW[n]])[0] == pytest.approx(labelled.sum(axis=2), abs=1e-12)
        gold = np.array([(word.head, parser.classes_.index(word.deprel)) for word in NEW[n].words])
        log_p = log_partition(tree, scores, allowed=gold) - log_partition(tree, scores)
        assert likelihood[n] == pytest.approx(log_p, abs=1e-9)
        assert nbest[n][0].sentence == parsed
        assert [one.probability for one in nbest[n]] == sorted(
            (one.probability for one in nbest[n]), reverse=True
        )


def test_minimum_risk_has_the_most_arcs_in_expectation() -> None:
    parser = first_order(optimizer=AdaGrad(max_iterations=1, rate=0.05), l2=3.0, decode="mbr").fit(TREES)
    differ = 0
    for sentence in NEW + TREES:
        p = parser.arc_probabilities([sentence], labelled=True)[0]
        expected = {}
        for method in ("best", "mbr"):
            [parsed] = parser.predict([sentence], decode=method)
            expected[method] = sum(
                p[word.head, m, parser.classes_.index(word.deprel)]
                for m, word in enumerate(parsed.words, start=1)
            )
        assert expected["mbr"] >= expected["best"] - 1e-9
        differ += int(expected["mbr"] > expected["best"] + 1e-9)
    assert differ
    assert parser.predict(NEW) == parser.predict(NEW, decode="mbr")


def test_partly_known_trees_teach_what_they_say() -> None:
    """Heads that are left out change the weights, and the trees that agree count together."""
    partial = random_treebank([3, 5, 8, 6] * 4, 2, unknown=0.5)
    parser = first_order(optimizer=LBFGS(max_iterations=60), l2=0.01).fit(partial)
    parsed = parser.predict(partial)
    known = [
        (word.head == gold.head or gold.head is None) and (word.deprel == gold.deprel or gold.deprel == "_")
        for one, right in zip(parsed, partial, strict=True)
        for word, gold in zip(one.words, right.words, strict=True)
    ]
    assert np.mean(known) > 0.95
    assert (parser.log_likelihood(partial) <= 0).all()


def test_roots() -> None:
    forest = random_treebank([5, 8, 6] * 4, 3, single_root=False)
    with pytest.raises(TreeError, match=r"<stream>:\d+"):
        first_order().fit(forest)
    parser = first_order(single_root=False, l2=0.01).fit(forest)
    assert max(sum(word.head == 0 for word in one.words) for one in parser.predict(forest)) > 1
    assert all(
        record.objective > 0 for record in parser.history_[1:]
    )  # the right trees are among those summed
    single = first_order(l2=0.01).fit(TREES)
    assert all(sum(word.head == 0 for word in one.words) == 1 for one in single.predict(forest))


def test_all_but_heads_and_labels_is_kept(parser: Parser) -> None:
    words = [Word("du", "de", "ADP", "_", "_", None, "_", "4:x", "A=b")] * 3
    given = Sentence(
        words,
        [Multiword(1, 2, "du", "_")],
        [EmptyNode(2, 1, "x", "x", "_", "_", "_", "_", "_")],
        ["# text = du"],
        7,
        "f.conllu",
    )
    [parsed] = parser.predict([given])
    assert all(word.head is not None and word.deprel in parser.classes_ for word in parsed.words)
    without = [word._replace(head=None, deprel="_") for word in parsed.words]
    assert without == words
    assert (parsed.multiwords, parsed.empty_nodes, parsed.comments) == (
        given.multiwords,
        given.empty_nodes,
        given.comments,
    )
    assert (parsed.line, parsed.source) == (7, "f.conllu")
    assert given.words == words


@pytest.mark.parametrize("n_words", [0, 1, 500])
def test_lengths(parser: Parser, n_words: int) -> None:
    [long] = random_treebank([n_words], 5)[1:]
    [parsed] = parser.predict([long])
    heads = [word.head for word in parsed.words]
    assert len(heads) == n_words
    assert heads.count(0) == (n_words > 0)
    [p] = parser.arc_probabilities([long])
    assert p[:, 1:].sum(axis=0) == pytest.approx(np.ones(n_words), abs=1e-9)
    if n_words < 500:
        assert np.isfinite(parser.log_likelihood([long])).all()


def test_training_on_a_long_sentence() -> None:
    trained = first_order(optimizer=SGD(max_iterations=1, rate=0.01)).fit(random_treebank([150], 6))
    assert np.isfinite(trained.weights_).all()


def test_files(parser: Parser, tmp_path: Path) -> None:
    path = tmp_path / "parser.model"
    parser.save(path)
    assert model_type(path) == "Parser"
    read = load(path)
    assert read.weights_.tobytes() == parser.weights_.tobytes()
    assert read.get_params() == parser.get_params() | {"n_threads": None}
    assert read.predict(NEW) == parser.predict(NEW)
    assert (read.n_iter_, read.stop_reason_) == (parser.n_iter_, parser.stop_reason_)
    untimed = parser.history_.to_array(seconds=False)
    assert np.array_equal(read.history_.to_array(seconds=False), untimed, equal_nan=True)
    assert all(np.isnan(record.seconds) for record in read.history_)
    again = pickle.loads(pickle.dumps(parser))
    assert np.array_equal(again.history_.to_array(), parser.history_.to_array(), equal_nan=True)
    assert again.predict(NEW) == parser.predict(NEW)
    parser.save(path, single_precision=True)
    assert load(path).weights_ == pytest.approx(parser.weights_, rel=1e-6)
    with pytest.raises(ArgumentError, match="functions"):
        load(path, [len])


def test_damaged_files_are_refused(parser: Parser, tmp_path: Path) -> None:
    path = tmp_path / "parser.model"
    parser.save(path)
    data, random = path.read_bytes(), np.random.default_rng(0)
    refused = 0
    for _ in range(200):
        damaged = bytearray(data)
        for at in random.integers(0, len(data) if random.random() < 0.3 else 2000, 3):
            damaged[at] = int(random.integers(256))
        path.write_bytes(
            bytes(damaged[: int(random.integers(len(data)))] if random.random() < 0.1 else damaged)
        )
        complaint = ""
        try:
            load(path).predict(NEW)
        except InputError as error:
            complaint = str(error)
            refused += 1
        assert not complaint or str(path) in complaint
    assert refused > 20


def test_l1_leaves_weights_out() -> None:
    dense = first_order(optimizer=AdaGrad(max_iterations=5, rate=0.3), l2=0.1).fit(TREES)
    sparse = first_order(optimizer=AdaGrad(max_iterations=5, rate=0.3), l1=0.5, l2=0.1).fit(TREES)
    assert 0 < len(sparse.weights_) < 0.5 * len(dense.weights_)
    assert (sparse.weights_ != 0).all()
    assert sparse.score(TREES) > 0.5


def test_dev_sentences_choose_the_weights() -> None:
    seen: list[Progress] = []

    def note(progress: Progress) -> None:
        seen.append(progress)

    parser = first_order(optimizer=AdaGrad(max_iterations=12, rate=0.5), l2=0.01).fit(
        TREES, dev=NEW, patience=3, callback=note
    )
    scores = [step.dev_score for step in seen]
    assert parser.score(NEW) == max(score for score in scores if score is not None)
    assert scores.index(max(scores)) + 1 == parser.n_iter_  # type: ignore[type-var]


@pytest.mark.parametrize(
    ("dev", "complaint"),
    [
        ([], "dev: no word has a head and a label, expected trees to compare with"),
        ([Sentence([word._replace(head=None) for word in NEW[0].words])], "no word has a head and a label"),
        ([Sentence([word._replace(deprel="_") for word in NEW[0].words])], "no word has a head and a label"),
        (
            [Sentence([word._replace(head=2 - i) for i, word in enumerate(NEW[1].words[:2])])],
            "the heads form a cycle",
        ),
    ],
)
def test_dev_sentences_need_trees(dev: list[Sentence], complaint: str) -> None:
    with pytest.raises(InputError, match=complaint):
        first_order().fit(TREES, dev=dev)


def test_words_that_are_partly_known_do_not_count(parser: Parser) -> None:
    [right] = parser.predict(NEW[2:3])
    first, second, *others = right.words
    unseen = first._replace(deprel="new")
    assert parser.score([right]) == 1.0
    for half in (second._replace(deprel="_"), second._replace(head=None)):
        n_counted = len(others) + 1
        assert parser.score([Sentence([unseen, half, *others])]) == pytest.approx(1 - 1 / n_counted)


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"head": 10**12}, "<stream>:1: the HEAD is 1000000000000, but the sentence has 2 words"),
        ({"head": -1}, "<stream>:1: the HEAD is -1"),
        ({"head": "0"}, "<stream>:1: the HEAD is '0', expected a whole number or None"),
        ({"head": 0.0}, "<stream>:1: the HEAD is 0.0, expected a whole number or None"),
        ({"head": False}, "<stream>:1: the HEAD is False, expected a whole number or None"),
        ({"deprel": None}, "<stream>:1: the DEPREL is None, expected a string"),
    ],
)
def test_words_made_by_hand_are_checked(parser: Parser, change: dict[str, Any], complaint: str) -> None:
    first, second = NEW[1].words[:2]
    wrong = [Sentence([first._replace(**change), second._replace(head=1)])]
    questions: list[Any] = [
        first_order().fit,
        lambda sentences: first_order().fit(TREES, dev=sentences),
        parser.score,
        parser.log_likelihood,
    ]
    for question in questions:
        with pytest.raises(InputError, match=complaint):
            question(wrong)


def test_roots_that_are_set_after_training(tmp_path: Path) -> None:
    three = [Sentence([word._replace(head=0, deprel="a") for word in NEW[2].words[:3]])]
    parser = first_order(single_root=False, l2=0.01).fit(three)
    assert [head for head, _ in words_of(parser.predict(three))] == [0, 0, 0]
    parser.set_params(single_root=True)
    parser.save(tmp_path / "one.parser")
    found = words_of(parser.predict(three))
    assert [head for head, _ in found].count(0) == 1
    assert found == words_of(load(tmp_path / "one.parser").predict(three))


def test_weights_count_sentences() -> None:
    twice = first_order(optimizer=LBFGS(), l2=1.0).fit([*TREES[:6], TREES[0]])
    weighted = first_order(optimizer=LBFGS(), l2=1.0).fit(TREES[:6], sample_weight=[2, 1, 1, 1, 1, 1])
    assert twice.log_likelihood(NEW) == pytest.approx(weighted.log_likelihood(NEW), abs=1e-3)


def test_interruption_keeps_what_was_learned() -> None:
    def interrupt(progress: Progress) -> bool:
        if progress.iteration == 2:
            signal.raise_signal(signal.SIGINT)
        return False

    with pytest.warns(TrainingInterrupted, match="of iteration 2"):
        parser = first_order(optimizer=AdaGrad(max_iterations=50, rate=0.3)).fit(TREES, callback=interrupt)
    assert parser.n_iter_ == 2
    assert parser.score(TREES) > 0.3


def conllu(*rows: tuple[str, str]) -> list[Sentence]:
    lines = [
        f"{i}\tw{i}\tw\tNOUN\t_\t_\t{head}\t{label}\t_\t_" for i, (head, label) in enumerate(rows, start=1)
    ]
    stream = io.StringIO("# comment\n" + "\n".join(lines) + "\n\n")
    return list(read_conllu(stream))


@pytest.mark.parametrize(
    ("sentences", "complaint"),
    [
        (conllu(("2", "a"), ("1", "a"), ("0", "b")), r"<stream>:2: the heads form a cycle, 1 'w1' → 2 'w2'"),
        (conllu(("0", "a"), ("1", "a"), ("0", "b")), r"<stream>:4: there are 2 roots \(1 'w1', 3 'w3'\)"),
        (conllu(("0", "a"), ("2", "a")), r"<stream>:3: 2 'w2' is its own head"),
        ([Sentence([Word("w", "w", "X", "_", "_", 5, "a", "_", "_")])], r"<stream>:1: the HEAD is 5, but"),
        (conllu(("_", "_"), ("_", "_")), "no word has a label"),
        (conllu(("_", "a"), ("_", "_")), "no word has a head"),
        ([], "no word has a label"),
        ("file.conllu", "sentences: got str, expected sentences as read_conllu gives them"),
        (
            Sentence([]),
            r"sentences: got Sentence, expected sentences .*: write \[sentence\] for a single one",
        ),
        ([["a", "word"]], r"sentences\[0\] is of type list, expected a Sentence; of words it is made"),
        ([Sentence([("w",)])], r"sentences\[0\] has \('w',\) among its words, expected a Word"),  # type: ignore[list-item]
    ],
)
def test_what_cannot_be_learned_from_is_refused(sentences: Any, complaint: str) -> None:
    with pytest.raises(InputError, match=complaint):
        first_order().fit(sentences)


@pytest.mark.parametrize(
    ("params", "complaint"),
    [
        ({"optimizer": "fast"}, "optimizer is 'fast', expected"),
        ({"optimizer": "averaged_perceptron", "l1": 1.0}, "takes no l1 penalty"),
        ({"optimizer": TRON(), "l1": 1.0}, "takes no l1 penalty"),
        ({"l2": -1}, "l2 is -1, expected a number from 0 on"),
        ({"l1": "much"}, "l1 is 'much'"),
        ({"single_root": 1}, "single_root is 1, expected True or False"),
        ({"decode": "fast"}, "decode is 'fast', expected 'best' or 'mbr'"),
        ({"min_count": 0}, "min_count is 0"),
        ({"n_threads": 0}, "n_threads is 0"),
    ],
)
def test_parameters_that_make_no_sense_are_refused(params: dict[str, Any], complaint: str) -> None:
    with pytest.raises(InputError, match=complaint):
        first_order(**params).fit(TREES)


def test_questions_without_a_model(parser: Parser) -> None:
    with pytest.raises(ValueError, match="not trained"):
        first_order().predict(NEW)
    with pytest.raises(ArgumentError, match="decode"):
        parser.predict(NEW, decode="x")
    with pytest.raises(UnsupportedError, match="patience"):
        first_order().fit(TREES, patience=2)
    unknown = [Sentence([word._replace(deprel="new") for word in NEW[0].words])]
    assert parser.log_likelihood(unknown) == [-np.inf]


@pytest.mark.slow
@pytest.mark.parametrize("order", [1, 2])
def test_memory_of_long_sentences_is_that_of_arcs(order: int) -> None:
    """Neither the features of arcs nor the scores of their labels are kept: 30 relations would take 240 MB alone."""
    program = f"""
import resource
from dataclasses import replace
from crfkit import Parser
from tests.oracles.treebanks import random_treebank

def numbered(sentence):
    words = [word._replace(deprel=f"{{word.deprel}}:{{i % 10}}") for i, word in enumerate(sentence.words)]
    return replace(sentence, words=words)

treebank = [numbered(sentence) for sentence in random_treebank([12] * 60, 1)]
parser = Parser(order={order}, structure="spanning", n_threads=1).fit(treebank)
[long] = random_treebank([1000], 2)[1:]
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
[parsed] = parser.predict([long])
assert sum(word.head == 0 for word in parsed.words) == 1
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    unit = 1 if sys.platform == "darwin" else 1024
    assert int(done.stdout) * unit < 400e6
