"""Lists of features encoded on several threads: the numbers and the errors of one thread."""

from __future__ import annotations

import random
import threading
from typing import Any

import numpy as np
import pytest

from crfkit import CRF
from crfkit.errors import FeatureError
from crfkit.features import Dataset, Encoder


def position(source: random.Random) -> Any:
    """A position in one of the forms that there are; many of its names are unknown to a small vocabulary."""
    name = f"w{source.randrange(300)}é" if source.random() < 0.3 else f"w{source.randrange(300)}"
    return source.choice(
        [
            [name, f"{name}|x", "bias"],
            (name,),
            [],
            {"w": name, "up": True, "low": False, "len": source.choice([1.0, 2.5])},
            {"ctx": {"w": name}, "flags": {"b", "a"}, name: 0},
            {"w": name, "v": np.array([1.0, source.random()])},
        ]
    )


def sequences(n: int, seed: int) -> list[list[Any]]:
    source = random.Random(seed)
    return [[position(source) for _ in range(source.randint(0, 12))] for _ in range(n)]


def assert_equal(one: Dataset, other: Dataset) -> None:
    np.testing.assert_array_equal(one.sequence_ptr, other.sequence_ptr)
    np.testing.assert_array_equal(one.states.position_ptr, other.states.position_ptr)
    np.testing.assert_array_equal(one.states.ids, other.states.ids)
    assert (one.states.values is None) == (other.states.values is None)
    if one.states.values is not None and other.states.values is not None:
        np.testing.assert_array_equal(one.states.values, other.states.values)
    assert one.dense.keys() == other.dense.keys()
    for name, block in one.dense.items():
        np.testing.assert_array_equal(block, other.dense[name])


@pytest.mark.parametrize("n_threads", [2, 5])
def test_features_of_every_form(n_threads: int) -> None:
    encoder = Encoder()
    train, test = sequences(300, 0), sequences(5000, 1)  # several rounds of blocks for two threads
    assert_equal(Encoder().fit_encode(train, n_threads), encoder.fit_encode(train))
    assert_equal(encoder.encode(test, n_threads), encoder.encode(test))
    assert_equal(encoder.encode(tuple(test), n_threads), encoder.encode(test))
    assert_equal(encoder.encode(iter(test[:90]), n_threads), encoder.encode(test[:90]))


def test_values_of_unknown_features_alone_are_no_values() -> None:
    encoder = Encoder()
    encoder.fit_encode([[["a"]]])
    X = [[["a"], {"b": 2.5}]] * 100
    assert encoder.encode(X).states.values is None
    assert_equal(encoder.encode(X, 3), encoder.encode(X))


@pytest.mark.parametrize("bad", [3, ["a", 4], {"a": float("nan")}, {"a": b"b"}, "word", None])
def test_errors_are_those_of_one_thread(bad: Any) -> None:
    encoder = Encoder()
    encoder.fit_encode([[["a"]]])
    X = [*sequences(2500, 2)[:2400], [["a"], bad], [["a"]]]
    X = [[[p] if isinstance(p, str) else [] if isinstance(p, dict) else p for p in x] for x in X[:-2]] + X[
        -2:
    ]
    with pytest.raises(FeatureError) as one:
        encoder.encode(X)
    with pytest.raises(FeatureError) as several:
        encoder.encode(X, 3)
    assert str(several.value) == str(one.value)
    assert str(one.value).startswith("sequence 2400, position 1: ")


def test_a_list_that_another_thread_empties_meanwhile() -> None:
    """Nothing points into its strings; what was read before counts."""
    encoder = Encoder()
    encoder.fit_encode([[["a"], ["b"]]])
    for _ in range(20):
        X = [[["a"], [f"{n}b"[-1:]]] for n in range(9000)]
        thread = threading.Thread(target=X.clear)
        thread.start()
        dataset = encoder.encode(X, 2)
        thread.join()
        assert dataset.n_positions % 2 == 0
        np.testing.assert_array_equal(dataset.states.ids, [0, 1] * (dataset.n_positions // 2))


def test_predictions_do_not_depend_on_the_number_of_threads() -> None:
    source = random.Random(3)
    X = [[[f"w{source.randrange(50)}", f"s{source.randrange(9)}"] for _ in range(9)] for _ in range(800)]
    y = [[names[1][1:] for names in x] for x in X]
    crf = CRF(n_threads=1, optimizer="averaged_perceptron").fit(X[:100], y[:100])
    expected = crf.predict(X)
    for n_threads in (2, 4):
        assert crf.set_params(n_threads=n_threads).predict(X) == expected
