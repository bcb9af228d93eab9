"""Sequences whose attributes are looked up later have the ids that they have when looked up at once."""

from __future__ import annotations

import pickle
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from crfkit import _core
from crfkit.compat.pycrfsuite import ItemSequence
from crfkit.features import FeatureMap, Vocabulary

PROJECT = Path(__file__).parents[2]
NAMES = [
    "a",
    "bb",
    "w:Rome",
    "a longer name than sixteen bytes",
    "größe",
    "中文",
    "\U0001f600",
    "",
    "x" * 300,
]

FOR_EVER = """
import threading, time
from crfkit import _core
from tests.features.test_named_positions import potentials_of

layout, vocabulary, potentials = potentials_of(["a", "b"], 30)
labels = [str(label) for label in range(30)]
positions = _core.NamedPositions([["a", "b"]] * 100)
design = _core.design_of_names(layout, vocabulary, positions)

def work():
    while True:
        {call}

for _ in range(4):
    threading.Thread(target=work, daemon=True).start()
time.sleep(0.1)
"""


def random_position(draw: random.Random, dicts: bool) -> Any:
    # More than the 128 names that are looked up at once, now and then, and none at all.
    names = [draw.choice(NAMES) + draw.choice(["", "1", "?"]) for _ in range(draw.choice([0, 1, 3, 200]))]
    if not dicts:
        return names
    values = [1.0, 1, True, False, 0.5, -2.0, "Rome", "é", ["p", "q"], {"in": 2.0}]
    return {name: draw.choice(values) for name in names}


def numbered(position: Any) -> Any:
    """The same with 0 for False, which gives no feature where names are looked up at once."""
    if not isinstance(position, dict):
        return position
    return {name: 0.0 if value is False else value for name, value in position.items()}


def potentials_of(names: list[str], n_labels: int) -> tuple[_core.Layout, Vocabulary, _core.ChainPotentials]:
    """A model with weights for every name and label, and for every arc."""
    vocabulary = Vocabulary()
    for name in names:
        vocabulary.add(name)
    pair_ptr = np.arange(len(names) + 1) * n_labels
    pair_labels = np.tile(np.arange(n_labels, dtype=np.int32), len(names))
    before, after = np.divmod(np.arange(n_labels**2, dtype=np.int32), n_labels)
    none = (np.zeros(1, np.int64), np.zeros(0, np.int32))
    layout = FeatureMap(n_labels, pair_ptr, pair_labels, {}, before, after, *none).layout
    weights = np.random.default_rng(3).normal(size=layout.n_weights)
    return layout, vocabulary, _core.ChainPotentials(layout, weights)


@pytest.mark.parametrize("seed", range(12))
def test_names_are_looked_up_as_they_are_when_read(seed: int) -> None:
    draw = random.Random(seed)
    x = [random_position(draw, dicts=seed % 2 == 1) for _ in range(draw.choice([0, 1, 5, 300]))]
    known = [name + end for name in NAMES for end in ("", "1", ":Rome", ":p", ":in")][::2]
    layout, vocabulary, potentials = potentials_of(known, 3)
    labels = ["B", "I", "O"]
    _, position_ptr, ids, values, _ = _core.encode_positions((x,), vocabulary, False)
    states = (position_ptr, ids, values, None, None, None)
    expected = _core.Design(layout, np.array([0, len(x)]), *states, [], 1, None, None, "questions")
    positions = _core.NamedPositions(x)
    assert len(positions) == len(x)
    design, best = _core.tag_names(potentials, layout, vocabulary, positions, labels)
    assert best == [labels[label] for label in potentials.score(expected, 1).decode(1)]
    for found in (design, _core.design_of_names(layout, vocabulary, positions)):
        assert np.array_equal(
            potentials.score(found, 1).marginals(1), potentials.score(expected, 1).marginals(1)
        )
        assert np.array_equal(
            potentials.score(found, 1).log_partitions(None, None, None, 1),
            potentials.score(expected, 1).log_partitions(None, None, None, 1),
        )


@pytest.mark.parametrize("seed", range(12))
def test_a_vocabulary_grows_as_it_does_when_names_are_read(seed: int) -> None:
    draw = random.Random(seed)
    read, added = Vocabulary(), Vocabulary()
    for n in (5, 0, 300):
        x = [random_position(draw, dicts=seed % 2 == 1) for _ in range(n)]
        expected = _core.encode_positions(([numbered(position) for position in x],), read, True)[1:4]
        found = _core.NamedPositions(x).add_to(added)
        for ours, theirs in zip(found, expected, strict=True):
            assert (ours is None) == (theirs is None)
            np.testing.assert_array_equal(ours, theirs)
        assert [part.tobytes() for part in added.to_bytes()] == [part.tobytes() for part in read.to_bytes()]


def test_what_names_cannot_be_is_refused() -> None:
    for x in ([np.ones(2)], [{"v": np.ones(2)}], ["word"], "word", [[1]], [None], [{"a": float("nan")}]):
        with pytest.raises(_core.InvalidInput):
            _core.NamedPositions(x)
    with pytest.raises(_core.InvalidInput, match="position 1: expected strings as features, got array"):
        _core.NamedPositions([["a"], np.ones(2), ["a"]])
    layout, vocabulary, potentials = potentials_of(["a"], 2)
    with pytest.raises(ValueError, match="one name for each label"):
        _core.tag_names(potentials, layout, vocabulary, _core.NamedPositions([["a"]]), ["B"])
    other = potentials_of(["a", "b"], 2)[0]
    with pytest.raises(ValueError, match="layout"):
        _core.tag_names(potentials, other, vocabulary, _core.NamedPositions([["a"]]), ["B", "I"])


def test_an_object_that_vanishes_when_it_is_shown() -> None:
    class Vanishing:
        def __repr__(self) -> str:
            names.clear()
            return "gone"

    names: list[Any] = []
    for position in (names, {"k": names}):
        names.append(Vanishing())
        with pytest.raises(_core.InvalidInput, match=r"got gone \(Vanishing\)"):
            _core.NamedPositions([position])


def test_the_end_of_the_program_finds_threads_at_work() -> None:
    for call in (
        "_core.tag_names(potentials, layout, vocabulary, positions, labels)",
        "potentials.score(design, 1).marginals(1)",
    ):
        command = [sys.executable, "-c", FOR_EVER.format(call=call)]
        result = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True)
        assert result.returncode == 0, result.stderr


def test_an_item_sequence_is_pickled_with_all_its_attributes() -> None:
    layout, vocabulary, potentials = potentials_of(["a", "b"], 2)
    items = ItemSequence([["a", "a", "b"], {"b": 0.5}])
    labels = ["B", "I"]
    design, best = _core.tag_names(potentials, layout, vocabulary, items.names(), labels)
    again, same = _core.tag_names(
        potentials, layout, vocabulary, pickle.loads(pickle.dumps(items)).names(), labels
    )
    assert best == same
    assert np.array_equal(potentials.score(design, 1).marginals(1), potentials.score(again, 1).marginals(1))
