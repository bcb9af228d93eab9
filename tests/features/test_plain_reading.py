"""Positions that several threads read at once, under the lock of the interpreter."""

from __future__ import annotations

import ctypes
import functools
import operator
import random
import signal
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any

import numpy as np
import pytest

from crfkit import CRF, _core
from crfkit.features import Encoder
from crfkit.optimizers import LBFGS

# ASCII, Latin 1, two and four bytes a character, a lone surrogate, the longest names that fit into a cache line and beyond.
NAMES = [
    "a",
    "é",
    "Žluťoučký",
    "字",
    "😀x",
    "\udc80",
    "",
    "w" * 15,
    "w" * 16,
    "w" * 17,
    "ü" * 40,
    "w" * 200,
    "\0",
]


class Name(str):
    """A string of another type."""


def known_names() -> list[str]:
    return [*NAMES, *(f"w{i}" for i in range(300))]


def sequences(n: int) -> list[list[list[str]]]:
    source = random.Random(n)
    names = [*known_names(), *(f"unknown{i}" for i in range(50))]

    def position() -> Any:
        drawn = source.choices(names, k=source.choice([0, 1, 3, 20, 150]))
        return source.choice([list, tuple])(Name(name) if source.random() < 0.1 else name for name in drawn)

    return [[position() for _ in range(source.randint(0, 12))] for _ in range(n)]


def encoder_of_names() -> Encoder:
    encoder = Encoder()
    encoder.fit_encode([[known_names()]])
    return encoder


@pytest.mark.parametrize("n_threads", [1, 2, 5])
def test_strings_of_every_kind(n_threads: int) -> None:
    encoder, X = encoder_of_names(), sequences(1500)
    ids = {name: i for i, name in enumerate(known_names())}
    expected = [[ids[name] for name in position if name in ids] for x in X for position in x]
    found = encoder.encode(X, n_threads)
    np.testing.assert_array_equal(np.diff(found.sequence_ptr), [len(x) for x in X])
    np.testing.assert_array_equal(np.diff(found.states.position_ptr), [len(names) for names in expected])
    np.testing.assert_array_equal(found.states.ids, [i for names in expected for i in names])
    assert found.states.values is None


@pytest.mark.parametrize("n_threads", [1, 2])
def test_dicts_have_the_features_that_are_read_one_by_one(n_threads: int) -> None:
    """A set is read in its own way, and everything beside it as well."""
    source = random.Random(0)
    values = [True, False, 1.0, -2.5, 7, 2**60 + 1, -(2**66), "é", "b", ["a", "字"], ("é",), []]
    X = [[{source.choice("abé"): source.choice(values) for _ in range(3)}] for _ in range(3000)]
    encoder = Encoder()
    encoder.fit_encode([*X, [{"a"}]])
    found, beside = encoder.encode(X, n_threads), encoder.encode([*X, [{"a"}]], n_threads)
    np.testing.assert_array_equal(found.states.position_ptr, beside.states.position_ptr[:-1])
    np.testing.assert_array_equal(found.states.ids, beside.states.ids[:-1])
    assert found.states.values is not None
    assert beside.states.values is not None
    np.testing.assert_array_equal(found.states.values, beside.states.values[:-1])


def clear(X: list[Any]) -> None:
    X.clear()


def empty_each(X: list[Any]) -> None:
    for x in X:
        x.clear()


def shorten(X: list[Any]) -> None:
    X[:] = [list(x) for x in X[:70_000]]


@pytest.mark.parametrize("n_threads", [1, 2])
@pytest.mark.parametrize("change", [clear, empty_each, shorten])
def test_lists_that_a_signal_handler_changes_while_they_are_read(
    change: Callable[[list[Any]], None], n_threads: int
) -> None:
    """A handler runs between rounds of positions: what is read is what is there behind it."""
    encoder = Encoder()
    encoder.fit_encode([[["a"], ["b"]]])
    X = [[["a"], ["b", "unknown"] * 20] for _ in range(150_000)]
    expected = encoder.encode(X).states.ids[:42]

    def handle(number: int, frame: FrameType | None) -> None:
        if frame is not None and frame.f_code.co_name == "_encode_positions":  # the caller of the core
            change(X)
            signal.setitimer(signal.ITIMER_REAL, 0)

    before = signal.signal(signal.SIGALRM, handle)
    signal.setitimer(signal.ITIMER_REAL, 0.005, 0.005)
    try:
        found = encoder.encode(X, n_threads)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    n = found.n_positions // 2
    assert len(found.states.position_ptr) == 2 * n + 1
    np.testing.assert_array_equal(found.states.ids.reshape(n, 21), np.tile(expected[:21], (n, 1)))


def called_with_pending_signal(number: int, function: Callable[[], Any]) -> Any:
    """The result of a function of the core; the handler of the signal runs where the core first asks for signals."""
    arrive = functools.partial(ctypes.pythonapi.PyErr_SetInterruptEx, number)
    calls: list[Callable[[], Any]] = [arrive, function]
    return list(map(operator.call, calls))[1]  # no Python code runs between the two


def lengthen_first(X: list[Any]) -> None:
    X[0].append(["a"])


def lengthen_last(X: list[Any]) -> None:
    X[-1].append(["a"])


@pytest.mark.parametrize("n_threads", [1, 2])
@pytest.mark.parametrize(("change", "is_seen"), [(lengthen_first, False), (lengthen_last, True)])
def test_sequences_that_have_been_read_are_not_looked_at_again(
    change: Callable[[list[Any]], None], is_seen: bool, n_threads: int
) -> None:
    """Else the time between two rounds of positions grows with the number of sequences, and there are more rounds, too."""
    vocabulary = _core.Vocabulary()
    _core.encode_positions([[["a"], ["b"]]], vocabulary, True)
    X = [[["a"]], [["b"]] * 300_000, [["a"]]]

    def handle(number: int, frame: FrameType | None) -> None:
        change(X)

    before = signal.signal(signal.SIGUSR1, handle)
    encode = functools.partial(_core.encode_positions, X, vocabulary, False, n_threads)
    try:
        sequence_ptr, position_ptr, ids, values, _ = called_with_pending_signal(signal.SIGUSR1, encode)
    finally:
        signal.signal(signal.SIGUSR1, before)
    expected = [0] + [1] * 300_000 + [0] * (2 if is_seen else 1)
    assert sum(len(x) for x in X) == 300_003
    np.testing.assert_array_equal(np.diff(sequence_ptr), [1, 300_000, 2 if is_seen else 1])
    np.testing.assert_array_equal(position_ptr, np.arange(len(expected) + 1))
    np.testing.assert_array_equal(ids, expected)
    assert values is None


@pytest.mark.parametrize("n_threads", [1, 2])
def test_tasks_and_rounds_that_end_where_sequences_end(n_threads: int) -> None:
    """And empty sequences around these places, where a reader of the positions of a range stops."""
    encoder = encoder_of_names()
    ids = {name: i for i, name in enumerate(known_names())}
    for ends in [512, 1024, 65_536, 131_072]:
        X = [[], [["a"]] * (ends - 1), [], [["w7"]], [], [], [["w8"], ["b"]], [["w9"]] * ends, [], []]
        found = encoder.encode(X, n_threads)
        np.testing.assert_array_equal(np.diff(found.sequence_ptr), [len(x) for x in X])
        expected = [ids[name] for x in X for names in x for name in names if name in ids]
        np.testing.assert_array_equal(found.states.ids, expected)


def test_another_thread_that_has_the_pool_meanwhile() -> None:
    """It asks for the lock now and then, in calls that take long: nobody waits for the other one."""
    X, done = sequences(400), threading.Event()
    y = [[str(len(position) % 3) for position in x] for x in X]
    crf = CRF(n_threads=2, optimizer=LBFGS(max_iterations=2)).fit(X, y)

    def ask() -> None:
        crf.predict_nbest(X * 20, 30)
        done.set()

    encoder, more = encoder_of_names(), X * 3
    expected = encoder.encode(more).states.ids
    thread = threading.Thread(target=ask)
    thread.start()
    while not done.is_set():
        np.testing.assert_array_equal(encoder.encode(more, 2).states.ids, expected)
    thread.join()
