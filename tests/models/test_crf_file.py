"""The rules of a CRF's file, broken one at a time: each raises an error that names it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from crfkit import CRF, LBFGS, Bigrams, Chain, InputError
from crfkit.errors import FileFormatError
from crfkit.models.files.loading import from_bytes
from crfkit.models.files.model_file import ModelFile, compress, decode, encode

TEMPLATE = "U00:%x[0,0]\nU01:%x[0,1]\nB\nB00:%x[0,1]\n"
ROWS = [[("the", "D"), ("dog", "N"), ("runs", "V")], [("a", "D"), ("dog", "N")]]
LABELS = [["x", "y", "z"], ["x", "z"]]

Change = Callable[[ModelFile], None]


@pytest.fixture(scope="module")
def columns() -> bytes:
    """A model with a template, state and arc features; L = 3."""
    return bytes(
        CRF(features=TEMPLATE, optimizer=LBFGS(max_iterations=3)).fit(ROWS, LABELS).__getstate__()["model"]
    )


@pytest.fixture(scope="module")
def numbers() -> bytes:
    """A model with a dense block of two columns and no template; all pairs, L = 2."""
    X = [[{"row": np.array([1.0, 2.0]), "w": "a"}, {"row": np.array([0.0, 1.0]), "w": "b"}]]
    return bytes(
        CRF(all_possible_states=True, optimizer=LBFGS(max_iterations=3))
        .fit(X, [["x", "y"]])
        .__getstate__()["model"]
    )


@pytest.fixture(scope="module")
def constrained() -> bytes:
    """A model with listed bigrams: x → y → z, and x → z; L = 3."""
    structure = Chain(bigrams=Bigrams.observed(LABELS))
    crf = CRF(structure=structure, features=TEMPLATE, optimizer=LBFGS(max_iterations=3)).fit(ROWS, LABELS)
    return bytes(crf.__getstate__()["model"])


def array(name: str, values: Any, dtype: Any = np.uint8) -> Change:
    return lambda file: file.arrays.update({name: np.array(values, dtype)})


def entry(name: str, at: int, value: float) -> Change:
    def change(file: ModelFile) -> None:
        file.arrays[name] = file.arrays[name].copy()
        file.arrays[name][at] = value

    return change


def setting(*path: str | int, value: Any) -> Change:
    def change(file: ModelFile) -> None:
        where: Any = file.settings
        for key in path[:-1]:
            where = where[key]
        where[path[-1]] = value

    return change


def without(name: str) -> Change:
    def change(file: ModelFile) -> None:
        del file.arrays[name]

    return change


def names(what: str, blob: bytes, lengths: list[int]) -> Change:
    def change(file: ModelFile) -> None:
        file.arrays[f"{what}.names"] = compress(blob)
        file.arrays[f"{what}.lengths"] = np.array(lengths, np.uint8)
        file.settings["bytes"][what] = len(blob)

    return change


def refused(data: bytes, change: Change, words: str) -> None:
    """The file with this change raises an error with this message."""
    file = decode(data)
    change(file)
    with pytest.raises(FileFormatError, match=f"m.crf: not a usable model: .*{words}"):
        from_bytes(encode(file), "m.crf")


def test_the_arrays_of_the_model_are_as_the_changes_below_suppose(columns: bytes, numbers: bytes) -> None:
    file = decode(columns)
    assert file.settings["labels"] == ["x", "y", "z"]
    assert file.arrays["state_features.counts"].tolist() == [1, 1, 2, 2, 1, 1, 1]  # the D dog N runs V a
    assert file.arrays["state_features.items"].tolist() == [0, 0, 1, 2, 1, 2, 2, 2, 0]
    assert len(file.arrays["arcs.before"]) == 3 * 3 + 3 + 3
    assert file.arrays["arc_features.counts"].tolist() == [2, 1]
    assert file.arrays["arc_features.items"].tolist() == [1, 2, 5]
    assert "state_features.items" not in decode(numbers).arrays


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (without("weights"), "array 'weights' is missing"),
        (without("state_features.counts"), "array 'state_features.counts' is missing"),
        (entry("weights", 0, np.nan), "array 'weights' holds a number that is not finite"),
        (entry("weights", 3, np.inf), "array 'weights' holds a number that is not finite"),
        (array("weights", [0.0] * 26, np.float64), "it has 26 weights, its features need 27"),
        (array("weights", [0.0] * 27, np.int32), "'weights' is int32 of shape .27., expected float64"),
        (
            array("weights", [[0.0]] * 27, np.float64),
            "'weights' is float64 of shape .27, 1., expected float64 with 1 axes",
        ),
        (array("history", [[0.0]], np.float64), "'history' has 1 columns, expected 5"),
        (entry("state_features.items", 0, 3), "'state_features.items' holds 3, expected numbers below 3"),
        (entry("state_features.items", 3, 1), "the items of its state_features are not ascending"),
        (
            array("state_features.items", [0, 0, 2, 1, 1, 2, 2, 2, 0]),
            "the items of its state_features are not ascending",
        ),
        (array("state_features.items", [0, 0]), "state_features, counts and items do not fit together"),
        (array("state_features.items", [0.0] * 9, np.float64), "expected a list of unsigned integers"),
        (array("state_features.items", [-1] * 9, np.int32), "expected a list of unsigned integers"),
        (entry("state_features.counts", 0, 2), "state_features, counts and items do not fit together"),
        (entry("state_features.counts", 0, 4), "'state_features.counts' holds 4, expected numbers below 4"),
        (array("state_features.counts", [9]), "'state_features.counts' holds 9"),
        (entry("arc_features.items", 0, 9), "'arc_features.items' holds 9, expected numbers below 9"),
        (entry("arc_features.items", 0, 2), "the items of its arc_features are not ascending"),
        (entry("arcs.before", 0, 4), "'arcs.before' holds 4, expected numbers below 4"),
        (array("arcs.before", [0]), "'arcs.before' has 1 entries, 'arcs.after' 15"),
        (entry("arcs.after", 0, 1), "its arcs are not distinct pairs of labels"),
        (names("arc_features", b"ab", [1]), "lengths of the names of its arc_features do not add up"),
        (names("arc_features", b"aa", [1, 1]), "names of features are damaged"),
        (names("arc_features", b"\xff\xfe", [1, 1]), "names of features are damaged .*UTF-8"),
        (names("arc_features", "ü".encode(), [1, 1]), "names of features are damaged .*UTF-8"),
        (array("state_features.names", [1, 2, 3]), "the names of its state_features: damaged"),
        (
            array("state_features.lengths", [255] * 7),
            "lengths of the names of its state_features do not add up",
        ),
        (setting("bytes", "state_features", value=2**40), "do not add up to the declared size"),
        (setting("bytes", value=None), "sizes of its vocabularies are missing"),
        (setting("labels", value=None), "no list of 1 to 8192 labels"),
        (setting("labels", value=[]), "no list of 1 to 8192 labels"),
        (
            setting("labels", value=[*"xyz", *range(8189)]),
            "it has 27 weights for 8,192 labels, expected at least 65,536",
        ),
        (setting("labels", value=["x", "y", "y"]), "labels are not distinct"),
        (setting("labels", value=["x", "y", None]), "None is not a label"),
        (setting("labels", value=["x", "y"]), "expected numbers below 3"),
        (setting("dense", value=[["row", 1]]), "it has 27 weights, its features need 30"),
        (setting("dense", value=[["row", -1]]), "dense blocks is damaged"),
        (setting("dense", value=[["row", 1], ["row", 1]]), "dense blocks is damaged"),
        (setting("n_columns", value=1), "its positions have 1 columns, its template reads 2"),
        (setting("n_columns", value=None), "its positions have None columns"),
        (setting("n_columns", value=2**60), "its positions have"),
        (setting("metadata", value=7), "its setting 'metadata' is '7', expected dict"),
        (setting("parameters", "features", value="U00:%nosuch[0,0]"), "unknown function %nosuch"),
        (setting("parameters", "structure", "start", value=1), "its setting 'start' is '1', expected bool"),
        (setting("parameters", "optimizer", value={"nosuch": 1}), "its optimizer is damaged"),
        (setting("parameters", "optimizer", "memory", value=-1), "its optimizer is damaged"),
        (setting("parameters", "min_count", value=0), "min_count is 0"),
        (setting("parameters", "l2", value=-1), "its setting 'l2' is damaged"),
        (setting("parameters", "l2", value={"w": "x"}), "its setting 'l2' is damaged"),
        (setting("parameters", "l1", value=10**400), "its setting 'l1' is damaged"),
        (setting("parameters", value=None), "its setting 'parameters' is 'None', expected dict"),
    ],
)
def test_each_rule_of_a_model_with_columns(columns: bytes, change: Change, words: str) -> None:
    refused(columns, change, words)


def test_the_bigrams_of_the_model_are_as_the_changes_below_suppose(constrained: bytes) -> None:
    file = decode(constrained)
    assert file.arrays["bigrams.before"].tolist() == [0, 0, 1, 2, 3]
    assert file.arrays["bigrams.after"].tolist() == [1, 2, 2, 3, 0]
    assert file.settings["parameters"]["structure"]["bigrams"] == "listed"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (without("bigrams.before"), "array 'bigrams.before' is missing"),
        (without("bigrams.after"), "array 'bigrams.after' is missing"),
        (entry("bigrams.after", 0, 4), "'bigrams.after' holds 4, expected numbers below 4"),
        (array("bigrams.after", [1, 2]), "'bigrams.before' has 5 entries, 'bigrams.after' 2"),
        (entry("bigrams.after", 0, 2), "its bigrams are not distinct and ascending"),
        (entry("bigrams.after", 1, 0), "its bigrams are not distinct and ascending"),
        (entry("bigrams.after", 3, 2), "a weight for an arc that is not among its bigrams"),
        (array("bigrams.after", [0.0] * 5, np.float64), "expected a list of unsigned integers"),
        (setting("parameters", "structure", "bigrams", value=None), "its bigrams and its setting 'bigrams'"),
        (
            setting("parameters", "structure", "bigrams", value="nosuch"),
            "its structure is damaged .*'nosuch'",
        ),
        (
            setting("parameters", "structure", "bigrams", value=3),
            "its setting 'bigrams' is '3', expected str",
        ),
        (setting("parameters", "structure", "unseen", value="nosuch"), "its structure is damaged .*'nosuch'"),
        (setting("parameters", "structure", "unseen", value=None), "its setting 'unseen' is 'None'"),
    ],
)
def test_each_rule_of_a_model_with_bigrams(constrained: bytes, change: Change, words: str) -> None:
    refused(constrained, change, words)


def test_bigrams_without_their_lists_are_refused(columns: bytes) -> None:
    refused(columns, setting("parameters", "structure", "bigrams", value="observed"), "do not go together")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (setting("n_columns", value=1), "it has columns but no template"),
        (setting("dense", value=[]), "weights, its features need"),
        (
            names("state_features", b"abc" * 20, [3] * 20),
            "its state_features need 40 weights, more than it has",
        ),
        (setting("labels", value=list(range(8192))), "more than it has"),
        (setting("labels", value=list(range(8193))), "no list of 1 to 8192 labels"),
    ],
)
def test_each_rule_of_a_model_with_all_pairs(numbers: bytes, change: Change, words: str) -> None:
    refused(numbers, change, words)


def test_another_type_of_model_is_refused(columns: bytes) -> None:
    for kind, words in (
        ("Parser", "not a usable parser"),
        ("X", "its type is 'X', expected 'CRF' or 'Parser'"),
    ):
        with pytest.raises(FileFormatError, match=words):
            from_bytes(encode(decode(columns)._replace(type=kind)), "m.crf")


def test_labels_nested_beyond_reason_are_refused(columns: bytes) -> None:
    deep: Any = "x"
    for _ in range(600):
        deep = [deep]
    file = decode(columns)
    file.settings["labels"][0] = deep
    try:
        from_bytes(encode(file), "m.crf")
    except InputError as error:
        assert str(error).startswith("m.crf: ")  # noqa: PT017  (a Python with a deeper stack may read it)


def test_a_preset_that_has_changed_since_is_kept_as_it_was(columns: bytes) -> None:
    file = decode(columns)
    file.settings["parameters"]["preset"] = "pos"
    crf = from_bytes(encode(file), "m.crf")
    assert crf.features.text == TEMPLATE


def test_a_penalty_of_transitions_in_a_file_of_an_earlier_version(columns: bytes) -> None:
    """Their block was called arcs."""
    file = decode(columns)
    file.settings["parameters"]["l2"] = {"arcs": 0.1, "default": 1.0}
    assert from_bytes(encode(file), "m.crf").l2 == {"transitions": 0.1, "default": 1.0}
