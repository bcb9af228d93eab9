"""User input as flat arrays: every form against a plain encoder, and what is said about what cannot be read."""

from __future__ import annotations

import math
from collections import OrderedDict, UserDict
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st

from crfkit.errors import FeatureError
from crfkit.features import Dataset, Encoder, Vocabulary

STRING = st.text(st.characters(exclude_categories=()), max_size=20) | st.text("ab:\0é\ud800😀", max_size=3)
NUMBER = st.floats(-1e20, 1e20) | st.integers(-(10**20), 10**20) | st.booleans()
VALUE = st.recursive(
    STRING
    | NUMBER
    | NUMBER.map(np.float64)
    | st.lists(STRING, max_size=3)
    | st.lists(STRING, max_size=3).map(tuple),
    lambda value: st.dictionaries(STRING, value, max_size=3),
    max_leaves=6,
)
POSITION = (
    st.lists(STRING, max_size=5)
    | st.lists(STRING, max_size=5).map(tuple)
    | st.dictionaries(STRING, VALUE, max_size=4)
)
SEQUENCES = st.lists(st.lists(POSITION, max_size=4), max_size=4)

Pairs = list[tuple[str, float]]


def plain_features(position: Any, prefix: str = "") -> Pairs:
    """The features of a position, read the plain way."""
    if not isinstance(position, dict):
        return [(prefix + name, 1.0) for name in position]
    pairs: Pairs = []
    for key, value in position.items():
        if isinstance(value, str):
            pairs.append((f"{prefix}{key}:{value}", 1.0))
        elif isinstance(value, dict | list | tuple | set):
            pairs += plain_features(value, f"{prefix}{key}:")
        elif value is not False:
            pairs.append((prefix + key, float(value)))
    return pairs


def read_back(dataset: Dataset, vocabulary: Vocabulary) -> list[list[Pairs]]:
    """The features of each sequence and position, by name."""
    position_ptr, ids, values = dataset.states
    numbers = np.ones(len(ids)) if values is None else values
    names = vocabulary.names()
    pairs = [(names[f], value) for f, value in zip(ids.tolist(), numbers.tolist(), strict=True)]
    positions = [pairs[position_ptr[i] : position_ptr[i + 1]] for i in range(len(position_ptr) - 1)]
    ptr = dataset.sequence_ptr
    return [positions[ptr[n] : ptr[n + 1]] for n in range(dataset.n_sequences)]


@given(SEQUENCES, SEQUENCES)
@settings(max_examples=200, deadline=None)
def test_positions_are_read_as_a_plain_encoder_reads_them(train: list[Any], test: list[Any]) -> None:
    encoder = Encoder()
    expected = [[plain_features(position) for position in sequence] for sequence in train]
    dataset = encoder.fit_encode(train)
    assert read_back(dataset, encoder.vocabulary) == expected
    names = list(
        dict.fromkeys(name for sequence in expected for position in sequence for name, _ in position)
    )
    assert encoder.vocabulary.names() == names
    all_ones = all(value == 1 for sequence in expected for position in sequence for _, value in position)
    assert (dataset.states.values is None) == all_ones
    known = set(names)
    unseen = [
        [[pair for pair in plain_features(position) if pair[0] in known] for position in sequence]
        for sequence in test
    ]
    assert read_back(encoder.encode(test), encoder.vocabulary) == unseen
    assert encoder.vocabulary.names() == names


def test_many_features_at_many_positions() -> None:
    """More names than wait in one batch, positions without names, names that come again within a batch."""
    rng = np.random.default_rng(4)
    sequences = [
        [[f"f{k}" for k in rng.integers(0, 3000, size)] for size in rng.choice([0, 1, 5, 18, 400], 60)]
        for _ in range(20)
    ]
    encoder = Encoder()
    expected = [[plain_features(position) for position in sequence] for sequence in sequences]
    assert read_back(encoder.fit_encode(sequences), encoder.vocabulary) == expected
    assert read_back(encoder.encode(sequences), encoder.vocabulary) == expected


def test_types_and_shapes() -> None:
    dataset = Encoder().fit_encode([[["a", "b"], ["a"]], [], [{"n": 2}]])
    assert dataset.sequence_ptr.tolist() == [0, 2, 2, 3]
    assert dataset.states.position_ptr.tolist() == [0, 2, 3, 4]
    assert dataset.states.ids.tolist() == [0, 1, 0, 2]
    assert dataset.states.values is not None
    assert dataset.states.values.tolist() == [1, 1, 1, 2]
    assert dataset.sequence_ptr.dtype == dataset.states.position_ptr.dtype == np.int64
    assert dataset.states.ids.dtype == np.int32
    assert dataset.states.values.dtype == np.float64
    assert dataset.arcs is None
    assert dataset.dense == {}


def test_an_empty_data_set() -> None:
    dataset = Encoder().fit_encode([])
    assert dataset.sequence_ptr.tolist() == [0]
    assert dataset.states.position_ptr.tolist() == [0]
    assert len(dataset.states.ids) == 0


class Words:
    """A position or sequence that is neither a list nor a tuple."""

    def __init__(self, items: list[Any]) -> None:
        self.items_given = items

    def __iter__(self) -> Iterator[Any]:
        return iter([*self.items_given])


class Text(str):
    __slots__ = ()


@pytest.mark.parametrize(
    ("position", "expected"),
    [
        ({"a"}, [("a", 1.0)]),
        (frozenset({"a"}), [("a", 1.0)]),
        ((name for name in "ab"), [("a", 1.0), ("b", 1.0)]),
        (Words(["a", "b"]), [("a", 1.0), ("b", 1.0)]),
        (np.array(["a", "b"]), [("a", 1.0), ("b", 1.0)]),
        (np.array(["a", "b"], dtype=object), [("a", 1.0), ("b", 1.0)]),
        ([Text("é"), np.str_("b")], [("é", 1.0), ("b", 1.0)]),
        (["a", "a"], [("a", 1.0), ("a", 1.0)]),
        (OrderedDict(a="b"), [("a:b", 1.0)]),
        (UserDict(a="b", c=2), [("a:b", 1.0), ("c", 2.0)]),
        ({"a": {"x"}}, [("a:x", 1.0)]),
        ({"a": Words(["x", "y"])}, [("a:x", 1.0), ("a:y", 1.0)]),
        ({"a": np.array(["x", "y"])}, [("a:x", 1.0), ("a:y", 1.0)]),
        ({"a": {"b": np.array(["x", "y"])}}, [("a:b:x", 1.0), ("a:b:y", 1.0)]),
        ({"a": UserDict(b=1.5)}, [("a:b", 1.5)]),
        ({Text("a"): Text("é")}, [("a:é", 1.0)]),
        (
            {"a": np.float32(0.5), "b": np.int64(3), "c": np.bool_(True), "d": np.bool_(False)},
            [("a", 0.5), ("b", 3.0), ("c", 1.0)],
        ),
        ({"a": np.array(2.0)}, [("a", 2.0)]),
        ({"a": 0.0, "b": 0}, [("a", 0.0), ("b", 0.0)]),
        ({"s": scipy.sparse.csr_matrix([[0, 2.0, 3.0]])}, [("s:1", 2.0), ("s:2", 3.0)]),
        ({"c": {"s": scipy.sparse.coo_array([[0, 2]])}}, [("c:s:1", 2.0)]),
        (scipy.sparse.csr_matrix([[0, 2.0, 3.0]]), [("x:1", 2.0), ("x:2", 3.0)]),
        ([], []),
        ({}, []),
    ],
)
def test_forms_of_a_position(position: Any, expected: Pairs) -> None:
    encoder = Encoder()
    assert read_back(encoder.fit_encode([[["first"], position, ["last"]]]), encoder.vocabulary) == [
        [[("first", 1.0)], expected, [("last", 1.0)]]
    ]


# Dense and sparse blocks, whole sequences at once


def test_forms_of_a_sequence() -> None:
    matrix = np.array([[1.0, 2.0], [3.0, 4.0]])
    sparse = scipy.sparse.csr_matrix([[0, 5.0], [6.0, 7.0]])
    encoder = Encoder()
    dataset = encoder.fit_encode(
        [
            [{"a": 2.0}],
            matrix,
            list(matrix.astype(np.float32)),
            sparse,
            {"tokens": [["a"], ["b", "a"]], "vectors": matrix + 10, "words": sparse},
            (position for position in (["c"], {"vectors": np.array([8, 9])})),
            Words([["a"]]),
            np.zeros((0, 2)),
            {"tokens": [{"b": 3.0}], "chars": [["d", "a"]]},
        ]
    )
    assert np.diff(dataset.sequence_ptr).tolist() == [1, 2, 2, 2, 2, 2, 1, 0, 1]
    assert read_back(dataset, encoder.vocabulary) == [
        [[("a", 2.0)]],
        [[], []],
        [[], []],
        [[("x:1", 5.0)], [("x:0", 6.0), ("x:1", 7.0)]],
        [[("a", 1.0), ("words:1", 5.0)], [("b", 1.0), ("a", 1.0), ("words:0", 6.0), ("words:1", 7.0)]],
        [[("c", 1.0)], []],
        [[("a", 1.0)]],
        [],
        [[("b", 3.0), ("d", 1.0), ("a", 1.0)]],
    ]
    assert encoder.dense_sizes == {"x": 2, "vectors": 2}
    x, vectors = dataset.dense["x"], dataset.dense["vectors"]
    np.testing.assert_array_equal(x[1:5], np.vstack([matrix, matrix]))
    np.testing.assert_array_equal(vectors[[7, 8, 10]], np.vstack([matrix + 10, [8, 9]]))
    assert not x[[0, *range(5, 13)]].any()
    assert not vectors[[*range(7), 9, 11, 12]].any()
    assert x.dtype == vectors.dtype == np.float64


def test_dense_blocks_of_training_are_always_there() -> None:
    encoder = Encoder()
    encoder.fit_encode([np.ones((2, 3)), [{"v": np.ones(2)}]])
    dataset = encoder.encode([[["a"], {"v": np.array([1, 2])}]])
    assert list(dataset.dense) == list(encoder.dense_sizes) == ["x", "v"]
    np.testing.assert_array_equal(dataset.dense["x"], np.zeros((2, 3)))
    np.testing.assert_array_equal(dataset.dense["v"], [[0, 0], [1, 2]])


def test_matrices_alone_have_no_features() -> None:
    dataset = Encoder().fit_encode([np.ones((2, 3)), np.ones((1, 3))])
    assert dataset.states.position_ptr.tolist() == [0, 0, 0, 0]
    assert dataset.states.ids.tolist() == []
    assert dataset.states.values is None


def test_an_array_of_sequences() -> None:
    dataset = Encoder().fit_encode(np.ones((4, 3, 2)))
    assert dataset.sequence_ptr.tolist() == [0, 3, 6, 9, 12]
    np.testing.assert_array_equal(dataset.dense["x"], np.ones((12, 2)))
    objects = np.empty(2, dtype=object)
    objects[:] = [[["a"]], [["b"], ["c"]]]
    assert Encoder().fit_encode(objects).sequence_ptr.tolist() == [0, 1, 3]


@given(st.lists(st.lists(st.lists(st.integers(0, 9), max_size=4), max_size=3), max_size=3))
@settings(deadline=None)
def test_a_sparse_matrix_is_the_dict_of_its_entries(columns: list[list[list[int]]]) -> None:
    sparse, dicts = [], []
    for sequence in columns:
        dense = np.zeros((len(sequence), 10))
        for i, position in enumerate(sequence):
            dense[i, position] = [column + 1.5 for column in position]
        sparse.append(scipy.sparse.csr_array(dense))
        dicts.append([{f"x:{j}": row[j] for j in np.flatnonzero(row)} for row in dense])
    one, other = Encoder(), Encoder()
    assert read_back(one.fit_encode(sparse), one.vocabulary) == read_back(
        other.fit_encode(dicts), other.vocabulary
    )
    assert one.vocabulary.names() == other.vocabulary.names()
    half, other_half = sparse[: len(sparse) // 2], dicts[: len(dicts) // 2]
    one, other = Encoder(), Encoder()
    one.fit_encode(half)
    other.fit_encode(other_half)
    assert read_back(one.encode(sparse), one.vocabulary) == read_back(other.encode(dicts), other.vocabulary)


def test_frequency_cut() -> None:
    encoder = Encoder()
    dataset = encoder.fit_encode(
        [[["a", "b", "b"], {"c": 2.0, "a": 1.0}], [["a"], ["c"]], {"v": np.ones((1, 2))}]
    )
    cut = encoder.cut(dataset, 2)
    assert encoder.vocabulary.names() == ["a", "c"]
    assert read_back(cut, encoder.vocabulary) == [
        [[("a", 1.0)], [("c", 2.0), ("a", 1.0)]],
        [[("a", 1.0)], [("c", 1.0)]],
        [[]],
    ]
    assert cut.dense is dataset.dense
    assert encoder.cut(cut, 1) == cut
    assert read_back(encoder.encode([[["b", "c"]]]), encoder.vocabulary) == [[[("c", 1.0)]]]


def test_fitting_again_forgets_and_a_failed_fit_changes_nothing() -> None:
    encoder = Encoder()
    encoder.fit_encode([[["a"]]])
    encoder.fit_encode([[["b"]]])
    with pytest.raises(FeatureError):
        encoder.fit_encode([[["c"], None]])
    assert encoder.vocabulary.names() == ["b"]


# Complaints


@pytest.mark.parametrize(
    ("position", "complaint"),
    [
        (
            "Rome",
            "expected a list of strings or a dict, got the string 'Rome'; words need a preset or a template, such as ",
        ),
        (None, "expected a list of strings or a dict, got None"),
        (b"Rome", r"expected a list of strings or a dict, got b'Rome' \(bytes\)"),
        (5, r"expected a list of strings or a dict, got 5 \(int\)"),
        (
            ["a", 4],
            r"expected strings as features, got 4 \(int\); a feature with a value is written {'name': value}",
        ),
        (["a", None], "expected strings as features, got None"),
        (["a", ["b"]], r"expected strings as features, got \['b'\] \(list\)"),
        ({1: "a"}, r"expected strings as names of features, got 1 \(int\)"),
        (
            {"a": None},
            "expected a string, a number, a list of strings, a dict or a row as the value of 'a', got None",
        ),
        ({"a": b"x"}, "as the value of 'a', got b'x'"),
        ({"a": object}, "as the value of 'a', got <class 'object'>"),
        ({"a": ["x", 1]}, r"expected strings in the list of 'a', got 1 \(int\)"),
        ({"c": {"a": [None]}}, "expected strings in the list of 'c:a', got None"),
        ({"a": math.nan}, r"feature 'a' has the value nan \(float\); expected a finite number"),
        ({"c": {"a": -math.inf}}, r"feature 'c:a' has the value -inf \(float\); expected a finite number"),
        ({"a": np.float32("nan")}, "feature 'a' has the value .*nan.*; expected a finite number"),
        ({"a": 10**400}, r"feature 'a' has the value 10{59}… \(int\); expected a finite number"),
        ({"a\ud800\n": None}, r"the value of 'a\\ud800\\n', got None"),
        ({"s": scipy.sparse.csr_matrix([[math.nan]])}, r"feature 's' has the value nan \(float\)"),
        ({"s": scipy.sparse.csr_matrix([[1], [2]])}, "expected one row of block 's', got "),
        ({"v": np.ones((2, 2))}, "expected one row of block 'v', got "),
        (np.array(1.0), "expected one row of block 'x', got "),
        ({"v": np.array([1, math.inf])}, "column 1 of block 'v' has the value inf, expected a finite number"),
        ({"v": np.array([1j])}, "block 'v' holds values of type complex128, expected numbers"),
    ],
)
def test_what_is_said_about_a_position(position: Any, complaint: str) -> None:
    with pytest.raises(FeatureError, match="sequence 1, position 2: .*" + complaint):
        Encoder().fit_encode([[["x"]], [["a"], {"b": "c"}, position]])


@pytest.mark.parametrize(
    ("X", "complaint"),
    [
        (
            "Rome",
            "X",
        ),
        (
            ["Rome", "is"],
            "sequence 0",
        ),
        ([{"w": "Rome"}], "sequence 0"),
        ({"tokens": [["a"]]}, "X"),
        (np.ones((2, 3)), "X"),
        (
            scipy.sparse.eye(3),
            "X",
        ),
        (None, "X"),
        (3, "X"),
        ([[["a"]], None], "sequence 1"),
        ([[["a"]], 3], "sequence 1"),
        ([np.ones(3)], "sequence 0"),
        ([{}], "sequence 0"),
        ([{1: [["a"]]}], "sequence 0"),
        ([{"t": [["a"]], "v": np.ones((2, 3))}], "sequence 0"),
        (
            [np.ones((1, 2)), np.ones((1, 3))],
            "sequence 1, position 0",
        ),
        (
            [np.ones((1, 2)), scipy.sparse.csr_matrix([[1.0], [math.inf]])],
            "sequence 1, position 1",
        ),
        ([np.array([[1.0], [math.nan]])], "sequence 0, position 1"),
        ([np.array([["a"]])], "sequence 0, position 0"),
    ],
)
def test_what_is_said_about_sequences(X: Any, complaint: str) -> None:
    with pytest.raises(FeatureError, match=complaint):
        Encoder().fit_encode(X)


@pytest.mark.parametrize(
    ("X", "complaint"),
    [
        (
            [[["a"]], np.ones((1, 4))],
            "sequence 1, position 0",
        ),
        (
            [[{"y": np.ones(3)}]],
            "sequence 0, position 0",
        ),
    ],
)
def test_blocks_that_differ_from_training(X: Any, complaint: str) -> None:
    encoder = Encoder()
    encoder.fit_encode([np.ones((2, 3))])
    with pytest.raises(FeatureError, match=complaint):
        encoder.encode(X)
