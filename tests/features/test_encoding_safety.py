"""Reading objects that run code of their own, change while they are read, or must not be kept."""

from __future__ import annotations

import gc
import sys
import tracemalloc
from collections import UserDict
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from crfkit import _core
from crfkit.errors import FeatureError
from crfkit.features import Encoder, Vocabulary
from tests.features.test_encoding import Words, read_back


class TroubleError(Exception):
    pass


class Raising:
    def __iter__(self) -> Iterator[str]:
        yield "a"
        raise TroubleError

    def __float__(self) -> float:
        raise TroubleError


class RaisingMapping(UserDict[str, Any]):
    def __getitem__(self, key: str) -> Any:
        raise TroubleError


@pytest.mark.parametrize(
    "position",
    [Raising(), {"a": Raising()}, RaisingMapping(a=1), {"a": RaisingMapping(b=1)}, {"a": Words([Raising()])}],
)
def test_exceptions_of_the_users_objects_come_through(position: Any) -> None:
    if isinstance(position, dict) and isinstance(position.get("a"), Words):
        with pytest.raises(FeatureError):
            Encoder().fit_encode([[["x"], position]])
        return
    with pytest.raises(TroubleError):
        Encoder().fit_encode([[["x"], position]])
    with pytest.raises(TroubleError):
        Encoder().fit_encode([Words([["x"], position])])


class Clearing:
    """A number that empties a given list when it is read."""

    def __init__(self, *containers: Any) -> None:
        self.containers = containers

    def __float__(self) -> float:
        for container in self.containers:
            container.clear()
        gc.collect()
        return 2.0


def fresh_names(n: int) -> list[str]:
    """Strings that nobody else holds."""
    return [f"name {i} " + "x" * (i % 50) for i in range(n)]


def test_lists_emptied_while_they_are_read() -> None:
    vocabulary = Vocabulary()
    sequence: list[Any] = [fresh_names(100), fresh_names(50)]
    sequences: list[Any] = [sequence, [fresh_names(30)]]
    sequence.append({"n": Clearing(sequences, sequence)})
    sequence.append(fresh_names(10))
    sequence_ptr, position_ptr, _, values, _ = _core.encode_positions(sequences, vocabulary, True)
    assert sequence_ptr.tolist() == [0, 3]
    assert np.diff(position_ptr).tolist() == [100, 50, 1]
    assert values is not None
    assert values[-1] == 2.0
    assert len(vocabulary) == 101


def test_a_dict_that_changes_while_it_is_read() -> None:
    position: dict[str, Any] = {"a": "b"}
    position["n"] = Clearing(position)
    with pytest.raises(FeatureError, match="sequence 0, position 1"):
        Encoder().fit_encode([[fresh_names(100), position]])


class Emptying:
    """A position that empties the sequence it stands in, and gives names that live only as long as its list."""

    def __init__(self, sequence: list[Any]) -> None:
        self.sequence = sequence

    def __iter__(self) -> Iterator[str]:
        self.sequence.clear()
        return iter(fresh_names(40))


def test_a_position_that_empties_its_sequence() -> None:
    sequence: list[Any] = [fresh_names(3)]
    sequence += [Emptying(sequence), fresh_names(4)]
    encoder = Encoder()
    dataset = encoder.fit_encode([sequence])
    [positions] = read_back(dataset, encoder.vocabulary)
    assert [[name for name, _ in position] for position in positions] == [fresh_names(3), fresh_names(40)]


def test_a_dict_that_contains_itself() -> None:
    position: dict[str, Any] = {}
    position["self"] = position
    for _ in range(3):
        with pytest.raises(RecursionError):
            Encoder().fit_encode([[position]])
    deep: dict[str, Any] = {"leaf": "x"}
    for _ in range(20):
        deep = {"d": deep}
    encoder = Encoder()
    encoder.fit_encode([[deep]])
    assert encoder.vocabulary.names() == ["d:" * 20 + "leaf:x"]


def test_nothing_is_kept_of_what_was_read() -> None:
    row, name, key = np.ones(3), "".join(["shared", " name"]), "".join(["k", "ey"])
    word = Words([name])
    X = [
        [[name], {key: name}, {key: [name]}, {key: {key: name}}, word, {key: np.float32(1)}, row],
        Words([[name]]),
    ]
    watched = [row, name, key, word, X, X[0]]
    encoder = Encoder()
    before = [sys.getrefcount(thing) for thing in watched]
    for _ in range(50):
        encoder.fit_encode(X)
        encoder.encode(X)
        with pytest.raises(FeatureError):
            encoder.encode([*X, [[name, None]]])
        with pytest.raises(FeatureError):
            encoder.encode([*X, [{key: {key: [None]}}]])
    assert [sys.getrefcount(thing) for thing in watched] == before


def test_no_memory_is_left_behind() -> None:
    """Nor is a UTF-8 copy of each string, which CPython makes for whoever asks it for one."""
    X = [[["ä" * 500 + str(i), "plain"], {"é": "ü" * 500}] for i in range(20)]
    encoder = Encoder()
    encoder.fit_encode(X)
    tracemalloc.start()
    try:
        gc.collect()
        before = tracemalloc.get_traced_memory()[0]
        for _ in range(20):
            encoder.encode(X)
            Encoder().fit_encode(X)
        gc.collect()
        after = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert after - before < 5_000


def test_a_finalizer_that_reads_positions_after_a_complaint() -> None:
    vocabulary = Vocabulary()
    for i in range(5):
        vocabulary.add(f"name number {i}")
    found: list[list[int]] = []
    other: list[str] = []

    class Position:
        def __iter__(self) -> Iterator[str]:
            return (f"name number {i}" for i in range(5))

        def __del__(self) -> None:  # takes the memory of strings that are gone
            other.extend(f"name not {i:04}" for i in range(50))

    class Reading:
        def __del__(self) -> None:
            found.append(
                _core.encode_positions(((Position() for _ in range(1)),), vocabulary, False)[2].tolist()
            )

    with pytest.raises(_core.InvalidInput, match="expected strings"):
        _core.encode_positions(([(Reading() for _ in range(1))],), vocabulary, False)
    assert found == [[0, 1, 2, 3, 4]]
