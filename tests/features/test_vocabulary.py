"""Names and their ids, against a plain dict; and which features were seen with which labels."""

from __future__ import annotations

from collections import defaultdict
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crfkit import _core
from crfkit.features import Vocabulary, block_of

# Any string at all: lone surrogates, NULs, astral characters, the empty string, long ones.
ANY_STRING = st.text(st.characters(exclude_categories=()), max_size=40)
FEW_STRINGS = st.text("ab\0é\ud800😀", max_size=3)


def filled(names: list[str]) -> Vocabulary:
    vocabulary = Vocabulary()
    for name in names:
        vocabulary.add(name)
    return vocabulary


@given(st.lists(ANY_STRING | FEW_STRINGS, max_size=100))
@settings(deadline=None)
def test_ids_are_ranks_of_first_occurrence(names: list[str]) -> None:
    vocabulary = Vocabulary()
    expected: dict[str, int] = {}
    for name in names:
        assert vocabulary.get(name) == expected.get(name, -1)
        assert vocabulary.add(name) == expected.setdefault(name, len(expected))
    assert len(vocabulary) == len(expected)
    assert vocabulary.names() == list(expected)
    assert [vocabulary.name(i) for i in range(len(expected))] == list(expected)
    assert all(name in vocabulary for name in names)
    assert "not there" not in vocabulary


def test_growing_through_many_table_sizes() -> None:
    names = [f"feature {i * 7919 % 50_021}" for i in range(60_000)]
    expected = {name: i for i, name in enumerate(dict.fromkeys(names))}
    vocabulary = filled(names)
    assert vocabulary.names() == list(expected)
    assert [vocabulary.get(name) for name in names] == [expected[name] for name in names]


@pytest.mark.parametrize("length", [*range(40), 100, 1000])
def test_names_that_differ_in_one_byte_are_different(length: int) -> None:
    names = ["x" * i + "y" + "x" * (length - i - 1) for i in range(length)] + ["x" * length]
    assert len(filled(names)) == len(names)


@pytest.mark.parametrize("i", [-1, 2, 2**31, -(2**40)])
def test_a_name_that_is_not_there(i: int) -> None:
    with pytest.raises(IndexError):
        filled(["a", "b"]).name(i)


@given(st.lists(ANY_STRING, unique=True, max_size=50), st.data())
@settings(deadline=None)
def test_keep(names: list[str], data: Any) -> None:
    mask = np.array(data.draw(st.lists(st.booleans(), min_size=len(names), max_size=len(names))), dtype=bool)
    vocabulary = filled(names)
    kept, remap = vocabulary.keep(mask)
    assert kept.names() == [name for name, keep in zip(names, mask, strict=True) if keep]
    assert remap.tolist() == [kept.get(name) if keep else -1 for name, keep in zip(names, mask, strict=True)]
    assert vocabulary.names() == names


def test_keep_needs_one_entry_for_each_name() -> None:
    with pytest.raises(ValueError, match="the mask has 1 entries, the vocabulary 2 names"):
        filled(["a", "b"]).keep(np.array([True]))


@given(st.lists(ANY_STRING, unique=True, max_size=50))
@settings(deadline=None)
def test_bytes_and_back(names: list[str]) -> None:
    blob, lengths = filled(names).to_bytes()
    assert blob.tobytes() == b"".join(name.encode("utf-8", "surrogatepass") for name in names)
    assert lengths.tolist() == [len(name.encode("utf-8", "surrogatepass")) for name in names]
    assert Vocabulary.from_bytes(blob, lengths).names() == names


def from_bytes(blob: bytes, lengths: list[int]) -> Vocabulary:
    return Vocabulary.from_bytes(np.frombuffer(blob, np.uint8), np.array(lengths, dtype=np.uint32))


@pytest.mark.parametrize(
    ("blob", "lengths", "complaint"),
    [
        (b"ab", [1], "add up to 1 bytes, but 2 are there"),
        (b"ab", [1, 2], "add up to 3 bytes, but 2 are there"),
        (b"", [2**32 - 1] * 3, "add up to 12884901885 bytes, but 0 are there"),
        (b"aba", [1, 1, 1], "name 2 of the vocabulary is the same as name 0"),
        (b"", [0, 0], "name 1 of the vocabulary is the same as name 0"),
        (b"\xff", [1], "name 0 of the vocabulary is not UTF-8"),
        (b"\xc3\xa9", [1, 1], "name 0 of the vocabulary is not UTF-8"),  # é torn apart
        (b"a\xc0\x80", [1, 2], "name 1 of the vocabulary is not UTF-8"),  # NUL in two bytes
        (b"\xe0\x80\x80", [3], "not UTF-8"),
        (b"\xf0\x8f\xbf\xbf", [4], "not UTF-8"),
        (b"\xf4\x90\x80\x80", [4], "not UTF-8"),  # above U+10FFFF
        (b"\xf0\x9f\x98", [3], "not UTF-8"),
    ],
)
def test_bytes_that_are_no_vocabulary(blob: bytes, lengths: list[int], complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        from_bytes(blob, lengths)


@given(st.binary(max_size=12), st.lists(st.integers(0, 6) | st.integers(0, 2**32 - 1), max_size=6))
@settings(max_examples=300, deadline=None)
def test_hostile_bytes_are_read_as_python_reads_them_or_refused(blob: bytes, lengths: list[int]) -> None:
    names: list[str] | None = None
    if sum(lengths) == len(blob):
        ends = np.cumsum([0, *lengths])
        pieces = [blob[start:end] for start, end in pairwise(ends)]
        try:
            names = [piece.decode("utf-8", "surrogatepass") for piece in pieces]
        except UnicodeDecodeError:
            names = None
    if names is None or len(set(names)) < len(names):
        with pytest.raises(ValueError):
            from_bytes(blob, lengths)
    else:
        assert from_bytes(blob, lengths).names() == names


@pytest.mark.parametrize(
    ("feature", "block"),
    [
        ("w:Rome", "w"),
        ("suffix=me", "suffix"),
        ("a=b:c", "a"),
        ("a:b=c", "a"),
        ("bias", "bias"),
        ("", ""),
        (":x", ""),
    ],
)
def test_block_of(feature: str, block: str) -> None:
    assert block_of(feature) == block


# Which features were seen with which labels


def drawn_instance(data: Any) -> dict[str, Any]:
    """Random sequences with features, labels and sets of labels."""
    n_features, n_labels = data.draw(st.integers(1, 6)), data.draw(st.integers(1, 4))
    position = st.tuples(
        st.lists(st.integers(0, n_features - 1), max_size=4),
        st.integers(-1, n_labels - 1),
        st.sets(st.integers(0, n_labels - 1)).map(sorted),
    )
    sequences = data.draw(st.lists(st.lists(position, max_size=5), max_size=4))
    positions = [position for sequence in sequences for position in sequence]
    return {
        "sequences": sequences,
        "sequence_ptr": np.cumsum([0, *map(len, sequences)], dtype=np.int64),
        "position_ptr": np.cumsum([0, *(len(features) for features, _, _ in positions)], dtype=np.int64),
        "ids": np.array([f for features, _, _ in positions for f in features], dtype=np.int32),
        "labels": np.array([label for _, label, _ in positions], dtype=np.int32),
        "set_ptr": np.cumsum([0, *(len(labels) for _, _, labels in positions)], dtype=np.int64),
        "set_labels": np.array([k for _, _, labels in positions for k in labels], dtype=np.int32),
        "n_features": n_features,
        "n_labels": n_labels,
    }


def possible(position: tuple[list[int], int, list[int]], *, with_sets: bool) -> list[int]:
    _, label, labels = position
    return [label] if label >= 0 else labels if with_sets else []


def as_lists(feature_ptr: npt.NDArray[np.int64], items: npt.NDArray[np.int32]) -> list[list[int]]:
    return [items[start:end].tolist() for start, end in pairwise(feature_ptr)]


@given(st.data(), st.booleans())
@settings(deadline=None)
def test_seen_pairs(data: Any, with_sets: bool) -> None:
    instance = drawn_instance(data)
    pairs = defaultdict(set)
    arcs = defaultdict(set)
    for sequence in instance["sequences"]:
        for i, position in enumerate(sequence):
            for label in possible(position, with_sets=with_sets):
                for feature in position[0]:
                    pairs[feature].add(label)
                    for before in possible(sequence[i - 1], with_sets=with_sets) if i else []:
                        arcs[feature].add(before * instance["n_labels"] + label)
    names = ["position_ptr", "ids", "labels", "n_features", "n_labels"]
    given = {name: instance[name] for name in [*names, *(["set_ptr", "set_labels"] if with_sets else [])]}
    every = range(instance["n_features"])
    assert as_lists(*_core.seen_pairs(**given)) == [sorted(pairs[f]) for f in every]
    found = _core.seen_pairs(**given, sequence_ptr=instance["sequence_ptr"])
    assert as_lists(*found) == [sorted(arcs[f]) for f in every]


@given(st.data())
@settings(deadline=None)
def test_position_counts_and_renaming(data: Any) -> None:
    instance = drawn_instance(data)
    position_ptr, ids, n_features = instance["position_ptr"], instance["ids"], instance["n_features"]
    positions = [position for sequence in instance["sequences"] for position in sequence]
    counts = _core.position_counts(position_ptr, ids, n_features)
    assert counts.tolist() == [sum(f in features for features, _, _ in positions) for f in range(n_features)]
    remap = np.array([f - 2 if f >= 2 else -1 for f in range(n_features)], dtype=np.int32)
    values = ids + 0.5
    new_ptr, new_ids, new_values = _core.renamed_features(position_ptr, ids, values, remap)
    kept = [[f for f in features if f >= 2] for features, _, _ in positions]
    assert np.diff(new_ptr).tolist() == [len(features) for features in kept]
    assert new_ids.tolist() == [f - 2 for features in kept for f in features]
    assert new_values is None or new_values.tolist() == [f + 0.5 for features in kept for f in features]


PTR = np.array([0, 1, 2], dtype=np.int64)
IDS = np.array([0, 1], dtype=np.int32)
LABELS = np.array([0, -1], dtype=np.int32)


@pytest.mark.parametrize(
    ("changed", "complaint"),
    [
        ({"position_ptr": np.array([], dtype=np.int64)}, "position_ptr must rise"),
        (
            {"position_ptr": np.array([0, 2, 1], dtype=np.int64)},
            "position_ptr must rise from 0 to the number of its items, which is 2",
        ),
        ({"position_ptr": np.array([0, 3, 2], dtype=np.int64)}, "position_ptr must rise"),
        ({"position_ptr": np.array([-1, 0, 2], dtype=np.int64)}, "position_ptr must rise"),
        ({"ids": np.array([0, 2], dtype=np.int32)}, "ids has the value 2, expected 0 to 1"),
        ({"ids": np.array([0, -1], dtype=np.int32)}, "ids has the value -1"),
        ({"labels": np.array([0, 3], dtype=np.int32)}, "labels has the value 3, expected -1 to 2"),
        ({"labels": np.array([0], dtype=np.int32)}, "labels for 1 positions, but there are 2"),
        ({"n_features": -1}, "n_features must not be negative"),
        ({"n_labels": -1}, "n_labels must not be negative"),
        ({"set_ptr": PTR[:2], "set_labels": IDS}, "set_ptr has 2 entries, expected 3"),
        ({"set_ptr": PTR, "set_labels": LABELS}, "set_labels has the value -1"),
    ],
)
def test_arrays_that_do_not_fit_are_refused(changed: dict[str, Any], complaint: str) -> None:
    arguments: dict[str, Any] = {
        "position_ptr": PTR,
        "ids": IDS,
        "labels": LABELS,
        "n_features": 2,
        "n_labels": 3,
    } | changed
    with pytest.raises(ValueError, match=complaint):
        _core.seen_pairs(**arguments)
    with pytest.raises(ValueError, match=complaint):
        _core.seen_pairs(sequence_ptr=np.array([0, 2], dtype=np.int64), **arguments)


def test_a_sequence_offset_that_does_not_fit_is_refused() -> None:
    with pytest.raises(ValueError, match=r"sequence_ptr must rise from 0 to .* 2"):
        _core.seen_pairs(PTR, IDS, LABELS, 2, 3, sequence_ptr=np.array([0, 3], dtype=np.int64))
    with pytest.raises(ValueError, match="pairs of more than 46340 labels do not fit"):
        _core.seen_pairs(PTR, IDS, LABELS, 2, 50_000, sequence_ptr=np.array([0, 2], dtype=np.int64))
    with pytest.raises(ValueError, match="ids has the value 1"):
        _core.renamed_features(PTR, IDS, None, np.array([0], dtype=np.int32))
    with pytest.raises(ValueError, match="values must have one entry for each id"):
        _core.renamed_features(PTR, IDS, np.ones(1), np.array([0, 1], dtype=np.int32))
