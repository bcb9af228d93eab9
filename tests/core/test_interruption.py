"""Signals that end long work of the native core, and what can be asked afterwards."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from threading import Thread, Timer
from time import process_time
from typing import Any

import numpy as np
import pytest

from crfkit import (
    CRF,
    LBFGS,
    SAG,
    SGD,
    AdaGrad,
    AveragedPerceptron,
    Chain,
    Patterns,
    ProjectiveTree,
    SpanningTree,
    StopReason,
)
from crfkit.features import Annotation, Dataset, FeatureList, FeatureMap, Template, Vocabulary
from crfkit.inference import (
    Answerer,
    ChainBatch,
    ChainPotentials,
    SegmentBatch,
    TreeBatch,
    entropy,
    k_best,
    marginals,
    sample,
)
from crfkit.models import Parser, Progress, Terminated, TrainingInterrupted, terminable
from crfkit.objective import Objective
from crfkit.structures import ChainScores, SpanLabels
from tests.oracles.treebanks import random_treebank

SOON, BETWEEN = 0.05, 0.03  # seconds until the first signal and the next one; all work below takes longer
LATE = (
    1.0  # seconds of CPU time, whatever else the machine does: far above what it takes, below all of the work
)


class StopError(Exception):
    """What the handler of the signal raises."""


@contextmanager
def alarm(seconds: float, n_signals: int) -> Iterator[None]:
    left = n_signals

    def stop(*_: object) -> None:
        nonlocal left
        left -= 1
        if left <= 0:
            raise StopError

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds, BETWEEN)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def is_stopped(work: Callable[[], Any], seconds: float = SOON, n_signals: int = 2) -> bool:
    """Whether the exception of a handler ends some work, at the second signal.

    Work that does not look for signals has one pending when it is done, however many came: it is over before the second.
    """
    try:
        with alarm(seconds, n_signals):
            work()
    except StopError:
        return True
    return False


@cache
def data(n_labels: int, n_sequences: int, length: int) -> tuple[Dataset, Annotation, FeatureMap]:
    """One feature a position, and random labels."""
    n = n_sequences * length
    random = np.random.default_rng(0)
    states = FeatureList(np.arange(n + 1), random.integers(0, 50, n).astype(np.int32), None)
    dataset = Dataset(np.arange(0, n + 1, length), states)
    annotation = Annotation(random.integers(0, n_labels, n).astype(np.int32))
    features = FeatureMap.build(
        dataset, annotation, Chain(), n_labels=n_labels, n_features=50, all_possible_states=True
    )
    return dataset, annotation, features


def tagging(n_labels: int, n_sequences: int, length: int) -> tuple[Answerer, Any]:
    dataset, _, features = data(n_labels, n_sequences, length)
    weights = np.random.default_rng(1).normal(size=features.n_weights)
    return Answerer(ChainPotentials(features.layout, weights)), features.design(
        dataset, 1, purpose="questions"
    )


def far_scores(length: int, n_labels: int) -> ChainScores:
    """Too far apart for scaled messages."""
    random = np.random.default_rng(0)
    return ChainScores(
        random.normal(size=(length, n_labels)), 2000 * random.normal(size=(n_labels, n_labels))
    )


def trees(n_words: int, spread: float) -> TreeBatch:
    return TreeBatch(
        SpanningTree(), [spread * np.random.default_rng(0).normal(size=(n_words + 1, n_words + 1))]
    )


QUESTIONS: dict[str, Callable[[Answerer, Any, int], Any]] = {
    "best": lambda answerer, design, n: answerer.decode(design, n),
    "marginals": lambda answerer, design, n: answerer.marginals(design, n),
    "log Z": lambda answerer, design, n: answerer.log_partitions(design, n_threads=n),
    "k best": lambda answerer, design, n: answerer.k_best(design, 100_000, n),
}


@pytest.mark.parametrize("n_threads", [1, 2])
@pytest.mark.parametrize("question", QUESTIONS)
def test_questions_about_many_sequences(question: str, n_threads: int) -> None:
    answerer, design = tagging(200, 4000, 60)
    assert is_stopped(lambda: QUESTIONS[question](answerer, design, n_threads))


@pytest.mark.parametrize("question", QUESTIONS)
def test_questions_about_one_long_sequence(question: str) -> None:
    answerer, design = tagging(300, 1, 30_000)
    assert is_stopped(lambda: QUESTIONS[question](answerer, design, 1))


@pytest.mark.parametrize("n_labels", [2, 100])
def test_long_spans(n_labels: int) -> None:
    answerer, design = tagging(n_labels, 1, 20_000 if n_labels == 2 else 2000)
    runs = SpanLabels.of(range(n_labels))
    assert is_stopped(lambda: answerer.spans(design, runs, 1e-100))


def test_samples() -> None:
    answerer, design = tagging(200, 1, 1000)
    uniforms = np.random.default_rng(0).random(4000 * 1000)
    assert is_stopped(lambda: answerer.sample(design, 4000, uniforms))


@pytest.mark.parametrize("question", [entropy, marginals, lambda c, s: k_best(c, s, 10**6)])
def test_questions_about_scores(question: Callable[..., Any]) -> None:
    scores = far_scores(3000, 200)
    assert is_stopped(lambda: question(Chain(), scores))


def test_samples_by_scores() -> None:
    scores = far_scores(200, 100)
    assert is_stopped(lambda: sample(Chain(), scores, 20_000, 0))


def test_batches_of_chains() -> None:
    batch = ChainBatch(np.zeros((500, 200, 200), np.float32), np.zeros((200, 200), np.float32), n_threads=2)
    assert is_stopped(batch.expectations)


@pytest.mark.parametrize("question", [SegmentBatch.expectations, SegmentBatch.decode])
def test_batches_of_semi_markov_chains(question: Callable[[SegmentBatch], Any]) -> None:
    batch = SegmentBatch(np.zeros((20, 4000, 20)), np.zeros((400, 20)), np.zeros((20, 20)), n_threads=2)
    assert is_stopped(lambda: question(batch))


@pytest.mark.parametrize(
    ("n_words", "spread", "question"),
    [
        (2500, 1.0, TreeBatch.log_partition),
        (600, 1e4, TreeBatch.marginals),
        (300, 1e300, TreeBatch.marginals),
        (600, 1e4, TreeBatch.entropy),
        (60, 1.0, lambda batch: batch.k_best(10**6)),
        (100, 1.0, lambda batch: batch.sample(10**4, 0)),
    ],
)
def test_trees(n_words: int, spread: float, question: Callable[[TreeBatch], Any]) -> None:
    batch = trees(n_words, spread)
    assert is_stopped(lambda: question(batch))


@pytest.mark.parametrize(
    ("n_words", "question"),
    [
        (1500, TreeBatch.log_partition),
        (1500, TreeBatch.decode),
        (700, TreeBatch.marginals),
        (500, TreeBatch.entropy),
        (60, lambda batch: batch.k_best(10**6)),
        (100, lambda batch: batch.sample(10**4, 0)),
    ],
)
def test_projective_trees(n_words: int, question: Callable[[TreeBatch], Any]) -> None:
    scores = np.random.default_rng(0).normal(size=(n_words + 1, n_words + 1))
    assert is_stopped(lambda: question(TreeBatch(ProjectiveTree(), [scores])))


@pytest.mark.parametrize("single", [False, True])
def test_an_objective_answers_with_the_same_bits_afterwards(single: bool) -> None:
    dataset, annotation, features = data(100, 4800, 60)
    random = np.random.default_rng(0)
    w, v = random.normal(size=(2, features.n_weights))

    def opened() -> Objective:
        return Objective(features.loss(dataset, annotation, single_precision=single, n_threads=2))

    objective, untouched = opened(), opened()
    n_stopped = 0
    for seconds in (0.01, 0.03, 0.06, 0.1, 0.15):
        n_stopped += is_stopped(lambda: objective.value_and_gradient(w), seconds, 1)
        n_stopped += is_stopped(lambda: objective.hessian_vector(w, v), seconds, 1)
    assert n_stopped > 3
    value, gradient = objective.value_and_gradient(w)
    product = objective.hessian_vector(w, v)
    assert value == untouched.value_and_gradient(w)[0]
    assert np.array_equal(gradient, untouched.value_and_gradient(w)[1])
    assert np.array_equal(product, untouched.hessian_vector(w, v))


LONG_X = [[[f"w{i % 97}", f"v{i % 13}"] for i in range(n, n + 60)] for n in range(400)]
LONG_Y = [[f"l{(7 * i * i + n) % 120}" for i in range(60)] for n, _ in enumerate(LONG_X)]


@pytest.mark.parametrize(
    "settings",
    [
        {"optimizer": LBFGS(max_iterations=1000)},
        {"optimizer": SGD(rate=0.1, max_iterations=1000)},
        {"optimizer": AdaGrad(rate=0.1, max_iterations=1000)},
        {"optimizer": AveragedPerceptron(max_iterations=1000)},
        {"optimizer": "sag"},
        {"optimizer": "tron"},
        {"structure": Patterns(["l1 l2 l3", "l5 . l7"]), "optimizer": LBFGS(max_iterations=1000)},
        {"structure": Chain(bigrams="observed"), "optimizer": LBFGS(max_iterations=1000)},
    ],
    ids=lambda settings: repr(next(iter(settings.values())))[:20],
)
def test_training_ends_with_what_it_has_learned(settings: dict[str, Any]) -> None:
    begins: list[float] = []

    def interrupt(*_: object) -> None:
        begins.append(process_time())
        raise KeyboardInterrupt

    def first(progress: Progress) -> None:
        if progress.iteration == 1:
            signal.setitimer(signal.ITIMER_REAL, 0.15)

    crf = CRF(**settings)
    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        with pytest.warns(TrainingInterrupted):
            crf.fit(LONG_X, LONG_Y, callback=first)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert process_time() - begins[0] < LATE
    assert crf.stop_reason_ == StopReason.INTERRUPTED
    assert len(crf.predict(LONG_X[:2])) == 2


@pytest.mark.parametrize(
    "optimizer",
    [SGD(rate=0.1), SGD(rate=0.1, batch=4), AdaGrad(rate=0.1), SAG(), AveragedPerceptron()],
    ids=lambda optimizer: type(optimizer).__name__,
)
def test_a_first_pass_that_is_interrupted_leaves_what_it_has_learned(optimizer: Any) -> None:
    dataset, annotation, features = data(100, 16000, 60)
    objective: Any = Objective(features.loss(dataset, annotation))

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    def begin(*arguments: Any, **named: Any) -> Any:  # the first pass
        signal.setitimer(signal.ITIMER_REAL, 0.08)
        return passes(*arguments, **named)

    passes, objective.run = objective.run, begin
    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        outcome = optimizer.minimize(objective, np.zeros(features.n_weights))
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert outcome.reason == StopReason.INTERRUPTED
    assert len(outcome.history) == 1
    assert np.isfinite(outcome.weights).all()
    assert outcome.weights.any()


def test_parser() -> None:
    sentences = random_treebank([60] * 300, 0)
    assert is_stopped(lambda: Parser(n_threads=2).fit(sentences), 0.5)
    parser = Parser(optimizer=LBFGS(max_iterations=1)).fit(random_treebank([6] * 3, 0))
    assert is_stopped(lambda: parser.predict(sentences * 10), 0.5)


def test_the_search_for_pairs_of_features_and_labels() -> None:
    """Handlers run while it lasts, several times."""
    n, n_features = 6_000_000, 2_000_000
    random = np.random.default_rng(0)
    ids = random.integers(0, n_features, n).astype(np.int32)
    dataset = Dataset(np.array([0, n // 10]), FeatureList(np.arange(0, n + 1, 10), ids, None))
    annotation = Annotation(random.integers(0, 9, n // 10).astype(np.int32))
    seen: list[int] = []
    before = signal.signal(signal.SIGALRM, lambda number, _: seen.append(number))
    signal.setitimer(signal.ITIMER_REAL, 0.01, 0.01)
    try:
        FeatureMap.build(dataset, annotation, Chain(), n_labels=9, n_features=n_features)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert len(seen) > 4


def test_encoding() -> None:
    rows = [[("word", "tag")] * 1_000_000]
    template = Template("\n".join(f"U{i:02d}:%x[{i % 5},0]/%x[0,1]" for i in range(40)))
    assert is_stopped(lambda: CRF(features=template).fit(rows, [["a"] * 1_000_000]), 0.3)
    vocabulary = Vocabulary()
    assert len(vocabulary) == 0


def test_sigterm_ends_native_work_as_ctrl_c_does() -> None:
    answerer, design = tagging(200, 4000, 60)
    timer = Timer(SOON, os.kill, (os.getpid(), signal.SIGTERM))
    ended = False
    with terminable() as termination:
        begin = process_time()
        timer.start()
        try:
            answerer.marginals(design, 2)
        except Terminated:
            ended = process_time() - begin < LATE
        timer.join()
    assert ended
    assert termination.received
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


def test_work_in_other_threads_goes_on() -> None:
    """Handlers run in the main thread, and end nothing elsewhere."""
    answerer, design = tagging(50, 300, 60)
    expected, found = answerer.decode(design), []
    threads = [Thread(target=lambda: found.append(answerer.decode(design, 2))) for _ in range(3)]
    long_answerer, long_design = tagging(200, 4000, 60)
    for thread in threads:
        thread.start()
    assert is_stopped(lambda: long_answerer.marginals(long_design, 2))
    for thread in threads:
        thread.join()
    assert all(np.array_equal(expected, labels) for labels in found)
    assert len(found) == 3


def test_a_handler_that_raises_nothing_changes_nothing() -> None:
    answerer, design = tagging(100, 1500, 60)
    expected = answerer.decode(design, 2)
    seen: list[int] = []
    before = signal.signal(signal.SIGALRM, lambda number, _: seen.append(len(answerer.decode(design))))
    signal.setitimer(signal.ITIMER_REAL, 0.02)
    try:
        assert np.array_equal(answerer.decode(design, 2), expected)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
