"""Labels and their ids, partial annotations, and what is said about those that cannot be used."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from crfkit.data import InputError
from crfkit.errors import LabelError, UnsavableError
from crfkit.features import Annotation, Labels


def sets_of(annotation: Annotation) -> list[list[int]] | None:
    if annotation.sets is None:
        return None
    ptr, labels = annotation.sets.position_ptr, annotation.sets.labels
    return [labels[ptr[i] : ptr[i + 1]].tolist() for i in range(len(ptr) - 1)]


@pytest.mark.parametrize(
    ("y", "classes"),
    [
        ([["b", "a"], ["c"]], ("a", "b", "c")),
        ([[3, 1], [2]], (1, 2, 3)),
        ([[("b", 1), ("a", 2)]], (("a", 2), ("b", 1))),
        ([["b", 1, "a"]], ("b", 1, "a")),  # not sortable
        ([["b", None], [{"a", "b"}]], ("a", "b")),
        ([[frozenset({2}), 1]], (1, 2)),
        ([[True, False]], (False, True)),
        ([[0.5, -0.5]], (-0.5, 0.5)),
        (np.array([["b", "a"], ["a", "c"]]), ("a", "b", "c")),
        ([np.array([2, 1]), np.array([], dtype=int)], (1, 2)),
        (iter([["b"], ["a"]]), ("a", "b")),
    ],
)
def test_labels_seen(y: Any, classes: tuple[Any, ...]) -> None:
    labels = Labels.learn(y)
    assert labels.classes == classes
    assert [type(label) for label in labels.classes] == [type(label) for label in classes]
    assert len(labels) == len(classes)


def test_full_annotation() -> None:
    labels = Labels(["a", "b", "c"])
    annotation = labels.encode([["c", "a"], [], ["b"]], [2, 0, 1])
    assert annotation.labels.tolist() == [2, 0, 1]
    assert annotation.labels.dtype == np.int32
    assert annotation.sets is None
    assert labels.decode(annotation.labels) == ["c", "a", "b"]


def test_partial_annotation() -> None:
    labels = Labels(["a", "b", "c"])
    annotation = labels.encode([["c", None], [{"c", "a"}, {"b"}], [frozenset("abc")]], [2, 2, 1])
    assert annotation.labels.tolist() == [2, -1, -1, 1, -1]
    assert sets_of(annotation) == [[], [], [0, 2], [], [0, 1, 2]]


def test_unknown_labels_alone_need_no_sets() -> None:
    annotation = Labels(["a", "b"]).encode([["a", None]], [2])
    assert annotation.labels.tolist() == [0, -1]
    assert annotation.sets is None


def test_the_fast_way_and_the_general_way_agree() -> None:
    labels = Labels(["a", 1, ("b", 2)])
    y: list[list[Any]] = [["a", 1, ("b", 2)], [], [1]]
    fast, general = labels.encode(y, [3, 0, 1]), labels._encode_positions(y)
    np.testing.assert_array_equal(fast.labels, general.labels)
    assert general.sets is None


def test_numpy_labels_become_plain_ones() -> None:
    labels = Labels.learn([[np.int64(3), np.str_("x")]])
    assert [type(label) for label in labels.classes] == [int, str]
    assert labels.encode([np.array([3, 3])], [2]).labels.tolist() == [0, 0]


def test_labels_with_equal_tuples_decode_as_tuples() -> None:
    labels = Labels([("a", 1), ("b", 2)])
    assert labels.decode(np.array([1, 0], dtype=np.int32)) == [("b", 2), ("a", 1)]


@pytest.mark.parametrize("classes", [["a", "b"], [1, 2.5, "x"], [("a", 1), ("b", (2, "c"))], [True, "é"]])
def test_json_and_back(classes: list[Any]) -> None:
    text = json.dumps(Labels(classes).to_json())
    assert Labels.from_json(json.loads(text)).classes == tuple(classes)


@pytest.mark.parametrize(
    ("values", "complaint"),
    [
        ("ab", "the labels are 'ab', expected a list"),
        ([None], "None"),
        ([{"a": 1}], "is not a label"),
        (["a", "a"], "the labels are not distinct"),
        ([[[[[[[[[[["deep"]]]]]]]]]]], "is not a label"),
    ],
)
def test_json_that_is_no_list_of_labels(values: Any, complaint: str) -> None:
    with pytest.raises(LabelError, match=complaint):
        Labels.from_json(values)


def nested(depth: int) -> Any:
    return (nested(depth - 1),) if depth else "a"


@pytest.mark.parametrize("label", [None, ("a", None), float("inf"), b"x", frozenset("a"), nested(9)])
def test_labels_that_cannot_be_saved(label: Any) -> None:
    with pytest.raises(UnsavableError):
        Labels([label]).to_json()


def test_labels_at_the_border_of_what_can_be_saved() -> None:
    assert Labels.from_json(Labels([nested(8)]).to_json()).classes == (nested(8),)
    with pytest.raises(UnsavableError):
        Labels([("é\ud800",)]).to_json()


@pytest.mark.parametrize(
    ("y", "complaint"),
    [
        ([], "y names no label at any position: there is nothing to learn from"),
        ([[None, None], []], "y names no label at any position"),
        (
            [["a"], ["a", {}]],
            "sequence 1, position 1: the label {} is not hashable; expected a string, a number",
        ),
        ([["a", ["b"]]], r"sequence 0, position 1: the label \['b'\] is not hashable"),
        ([["a", ("b", [])]], "sequence 0, position 1: the label .* is not hashable"),
        (
            [["a", set()]],
            "sequence 0, position 1: the set of labels is empty; expected None where nothing is known",
        ),
        ([["a", {"a", None}]], "sequence 0, position 1: None in a set of labels"),
        (
            [[1.0, float("nan")]],
            "sequence 0, position 1: the label is nan, a missing value; expected a label, or None",
        ),
        (["BIO"], "y of sequence 0 is 'BIO', expected a list of labels"),
        ([{"a", "b"}], "y of sequence 0 is {.*}, expected a list of labels"),
        ([["a"], None], "y of sequence 1 is None, expected a list of labels"),
        ([3], "y of sequence 0 is 3, expected a list of labels"),
        ("BIO", "y is 'BIO', expected a list with a list of labels for each sequence"),
        ({"a": 1}, "y is {'a': 1}, expected a list"),
        (None, "y is None, expected a list"),
    ],
)
def test_annotations_without_usable_labels(y: Any, complaint: str) -> None:
    with pytest.raises(InputError, match=complaint):
        Labels.learn(y)


@pytest.mark.parametrize(
    ("y", "complaint"),
    [
        ([["a"]], "X has 2 sequences but y has 1"),
        ([["a"], ["a"], []], "X has 2 sequences but y has 3"),
        ([["a"], ["a", "b", "a", "b"]], "sequence 1: 5 positions but 4 labels"),
        ([["a"], list("abxab")], "sequence 1, position 2: unknown label 'x'; the labels are a, b"),
        (
            [["a"], ["a", None, {"b", "x"}, "a", "a"]],
            "sequence 1, position 2: unknown label 'x'; the labels are a, b",
        ),
        ([["a"], ["a", [], "b", "a", "a"]], r"sequence 1, position 1: the label \[\] is not hashable"),
        ([["a"], "ababa"], "y of sequence 1 is 'ababa', expected a list of labels"),
    ],
)
def test_annotations_that_do_not_fit(y: Any, complaint: str) -> None:
    with pytest.raises(InputError, match=complaint):
        Labels(["a", "b"]).encode(y, [1, 5])


def test_only_some_of_many_labels_are_named() -> None:
    with pytest.raises(InputError, match=r"the labels are 0, 1, .*, 39, …$"):
        Labels(range(100)).encode([[100]], [1])


def test_ids_become_the_very_labels_of_each_sequence() -> None:
    labels = Labels([("a", 2), "b", None])
    ids, ptr = np.array([2, 0, 1, 1], np.int32), np.array([0, 0, 3, 4, 4])
    found = labels.decode_sequences(ids, ptr)
    assert found == [[], [None, ("a", 2), "b"], ["b"], []]
    assert found[1][1] is labels.classes[0]


@pytest.mark.parametrize(("ids", "ptr"), [([3], [0, 1]), ([-1], [0, 1]), ([0], [0, 2]), ([0, 0], [0, 2, 1])])
def test_ids_that_are_none(ids: list[int], ptr: list[int]) -> None:
    with pytest.raises(ValueError, match=r"ids|sequence_ptr"):
        Labels("abc").decode_sequences(np.array(ids, np.int32), np.array(ptr))
