"""Features by template: the native extractor against `Template.expand`, its memo, and its complaints."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crfkit import _core
from crfkit.errors import FeatureError
from crfkit.features import PRESETS, Encoder, FeatureList, Template, Vocabulary, preset
from tests.features.test_encoding import STRING, Words

Features = list[list[list[str]]]  # [N][T] lists of names

ROW = st.integers(-3, 3)
COLUMN = st.integers(0, 1)
MACRO = (
    st.builds("%x[{},{}]".format, ROW, COLUMN)
    | st.builds(
        "%{}[{},{}]".format, st.sampled_from(["lower", "shape", "has_digit", "is_title"]), ROW, COLUMN
    )
    | st.builds(
        "%{}[{},{},{}]".format, st.sampled_from(["prefix", "lower_suffix"]), ROW, COLUMN, st.integers(1, 3)
    )
)
LITERAL = st.text("a/é😀:", max_size=3)
LINE = st.builds(
    lambda kind, parts, tail: kind + "".join(literal + macro for literal, macro in parts) + tail,
    st.sampled_from("UB"),
    st.lists(st.tuples(LITERAL, MACRO), max_size=3),
    LITERAL,
)
CELL = STRING | st.sampled_from(["Rome", "McDonald-27", "ß", "İ", "1999", ""])


def names_of(features: FeatureList | None, sequence_ptr: Any, vocabulary: Vocabulary) -> Features:
    if features is None:
        return [[[] for _ in range(n)] for n in np.diff(sequence_ptr)]
    assert features.values is None
    ptr, names = features.position_ptr, vocabulary.names()
    positions = [[names[f] for f in features.ids[ptr[i] : ptr[i + 1]]] for i in range(len(ptr) - 1)]
    return [positions[sequence_ptr[n] : sequence_ptr[n + 1]] for n in range(len(sequence_ptr) - 1)]


def without(names: Sequence[str], plain: Sequence[str]) -> list[str]:
    """The names without one of each plain arc; a line with macros may have the same name where its cells are empty."""
    left = list(names)
    for name in plain:
        if name in left:
            left.remove(name)
    return left


def expanded(template: Template, sequences: Sequence[Any]) -> tuple[Features, Features]:
    """What the plain form gives, without the plain arcs."""
    plain = [line.tail for line in template.program().lines if line.kind == "B" and not line.macros]
    pairs = [[template.expand(rows, i) for i in range(len(rows))] for rows in sequences]
    states = [[on_labels for on_labels, _ in sequence] for sequence in pairs]
    arcs = [[without(on_arcs, plain) for _, on_arcs in sequence] for sequence in pairs]
    return states, arcs


def check(template: Template, train: Sequence[Any], test: Sequence[Any]) -> None:
    encoder = Encoder(template)
    states, arcs = expanded(template, train)
    dataset = encoder.fit_encode(train)
    assert dataset.dense == {}
    assert names_of(dataset.states, dataset.sequence_ptr, encoder.vocabulary) == states
    assert names_of(dataset.arcs, dataset.sequence_ptr, encoder.arc_vocabulary) == arcs
    assert encoder.vocabulary.names() == list(
        dict.fromkeys(f for rows in states for position in rows for f in position)
    )
    known, known_arcs = set(encoder.vocabulary.names()), set(encoder.arc_vocabulary.names())
    states, arcs = expanded(template, test)
    dataset = encoder.encode(test)
    assert names_of(dataset.states, dataset.sequence_ptr, encoder.vocabulary) == [
        [[f for f in position if f in known] for position in rows] for rows in states
    ]
    assert names_of(dataset.arcs, dataset.sequence_ptr, encoder.arc_vocabulary) == [
        [[f for f in position if f in known_arcs] for position in rows] for rows in arcs
    ]


@given(st.lists(LINE, min_size=1, max_size=5), st.data())
@settings(max_examples=150, deadline=None)
def test_any_template_on_any_rows(lines: list[str], data: Any) -> None:
    rows = st.lists(st.lists(st.tuples(CELL, CELL), max_size=5), max_size=3)
    check(Template.parse("\n".join(lines)), data.draw(rows), data.draw(rows))


@pytest.mark.parametrize("name", PRESETS)
def test_presets(name: str) -> None:
    words = ["In", "1999", ",", "McDonald's-27", "visited", "São", "Paulo", "(", "Łódź", "?", ")", "😀", "x"]
    rows = [(word, word[:2].upper(), str(len(word))) for word in words]
    check(preset(name).within_columns(3), [rows, rows[:1], [], rows[3:5]], [rows[::-1]])


def test_rows_of_every_kind() -> None:
    template = Template.parse("U:%x[0,0]")
    expected = Encoder(template).fit_encode([["a", "b"], [("c",)]])
    for X in (
        [[["a"], ("b",)], ["c"]],
        [("a", "b"), [Words(["c"])]],
        [np.array(["a", "b"]), np.array([["c"]])],
        [(word for word in "ab"), ["c"]],
        iter([["a", np.str_("b")], ["c"]]),
    ):
        encoder = Encoder(template)
        dataset = encoder.fit_encode(X)
        assert encoder.vocabulary.names() == ["U:a", "U:b", "U:c"]
        assert encoder.n_columns == 1
        np.testing.assert_array_equal(dataset.sequence_ptr, expected.sequence_ptr)
        np.testing.assert_array_equal(dataset.states.ids, expected.states.ids)


def test_plain_arcs_are_no_features() -> None:
    encoder = Encoder(Template.parse("U0\nB"))
    dataset = encoder.fit_encode([["a", "b"]])
    assert dataset.arcs is None
    assert len(encoder.arc_vocabulary) == 0
    assert dataset.states.ids.tolist() == [0, 0]


def test_cut_reaches_arc_features() -> None:
    encoder = Encoder(Template.parse("U:%x[0,0]\nB:%x[0,0]"))
    cut = encoder.cut(encoder.fit_encode([["a", "b", "b", "a"], ["b", "c"]]), 2)
    assert encoder.vocabulary.names() == ["U:a", "U:b"]
    assert encoder.arc_vocabulary.names() == ["B:b"]
    assert cut.arcs is not None
    assert cut.arcs.position_ptr.tolist() == [0, 0, 1, 2, 2, 2, 2]


class Counting:
    """A template that counts how often its transforms are asked for, and may do something then."""

    def __init__(self, text: str, action: Any = None) -> None:
        self.template = Template.parse(text)
        self.program = self.template.program
        self.check_columns = self.template.check_columns
        self.asked: Counter[tuple[int, str]] = Counter()
        self.action = action

    def transform(self, index: int, value: str) -> Any:
        self.asked[index, value] += 1
        return self.template.transform(index, value) if self.action is None else self.action(value)


def extract(template: Any, sequences: Any) -> list[str]:
    vocabulary = Vocabulary()
    _core.Extractor(template).extract(sequences, vocabulary, Vocabulary(), True)
    return vocabulary.names()


def test_a_transform_is_computed_once_for_each_value() -> None:
    counting = Counting("U0:%lower[0,0]\nU1:%lower[-1,0]\nU2:%x[0,0]\nU3:%shape[0,1]")
    extractor = _core.Extractor(counting)
    for _ in range(2):
        extractor.extract([[("A", "x"), ("B", "x"), ("A", "y")]] * 3, Vocabulary(), Vocabulary(), True)
    lower, shape = 0, 2
    assert counting.asked == {(lower, "A"): 1, (lower, "B"): 1, (shape, "x"): 1, (shape, "y"): 1}


def test_the_memo_does_not_grow_without_bounds() -> None:
    """After some 32 MB of values it is forgotten; a value that comes again then is computed again."""
    counting = Counting("U0:%lower[0,0]")
    values = [f"{i}{'X' * 1_000_000}" for i in range(40)]
    assert extract(counting, [*([value] for value in values), [values[0]]]) == [
        f"U0:{value.lower()}" for value in values
    ]
    assert counting.asked[0, values[0]] == 2
    assert counting.asked[0, values[1]] == 1


def test_an_exception_in_a_transform_comes_through() -> None:
    def fail(value: str) -> str:
        if value == "b":
            raise ZeroDivisionError
        return value

    counting = Counting("U0:%lower[0,0]", fail)
    extractor = _core.Extractor(counting)
    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            extractor.extract([["a", "b"]], Vocabulary(), Vocabulary(), True)
    with pytest.raises(TypeError, match="must give a string or None"):
        extract(Counting("U0:%lower[0,0]", len), [["a"]])


def test_rows_emptied_while_they_are_read() -> None:
    rows = [[f"word {i}"] for i in range(50)]
    sequences = [rows, [["read before"]]]

    def empty(value: str) -> str:
        for row in rows:
            row.clear()
        rows.clear()
        sequences.clear()
        return value.upper()

    words = [*(f"U0:WORD {i}" for i in range(50)), "U0:READ BEFORE"]
    assert extract(Counting("U0:%lower[0,0]", empty), sequences) == words


def test_an_extractor_within_itself_and_in_threads() -> None:
    extractor: Any = None
    depth = 0

    def again(value: str) -> str:
        nonlocal depth
        depth += 1
        if depth < 5:
            extractor.extract([[f"inner {depth}", value]], Vocabulary(), Vocabulary(), True)
        return value

    extractor = _core.Extractor(Counting("U0:%lower[0,0]", again))
    vocabulary = Vocabulary()
    extractor.extract([["a", "b", "a"]], vocabulary, Vocabulary(), True)
    assert vocabulary.names() == ["U0:a", "U0:b"]

    template = preset("names", 1)
    shared = _core.Extractor(template)
    results: list[list[str]] = []

    def work() -> None:
        vocabulary = Vocabulary()
        shared.extract([[f"word{i}"] for i in range(300)], vocabulary, Vocabulary(), True)
        results.append(vocabulary.names())

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [extract(template, [[f"word{i}"] for i in range(300)])] * 4


@pytest.mark.parametrize(
    ("X", "complaint"),
    [
        (["Rome is"], "sequence 0"),
        ([["a"], None], "sequence 1"),
        (
            [[("a", "b")], [("a", "b"), ("a",)]],
            "sequence 1, position 1",
        ),
        (
            [["a", ("b", "c")]],
            "sequence 0, position 1",
        ),
        (
            [["a", {"w": "b"}]],
            "sequence 0, position 1",
        ),
        ([["a", 5]], "sequence 0, position 1"),
        ([["a", None]], "sequence 0, position 1"),
        ([["a", b"b"]], "sequence 0, position 1"),
        ([["a", (5,)]], "sequence 0, position 1"),
        (
            [[()]],
            "template:1",
        ),
        ("Rome", "X"),
    ],
)
def test_what_is_said_about_rows(X: Any, complaint: str) -> None:
    encoder = Encoder(Template.parse("U:%lower[0,0]"))
    with pytest.raises(FeatureError, match=complaint):
        encoder.fit_encode(X)
    assert encoder.n_columns is None


def test_columns_that_the_template_does_not_find() -> None:
    encoder = Encoder(Template.parse("U:%x[0,0]\nU:%x[0,2]"))
    with pytest.raises(FeatureError, match="template:2"):
        encoder.fit_encode([[("a", "b")]])
    encoder.fit_encode([[("a", "b", "c")]])
    assert encoder.n_columns == 3


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ("a", "the row has 1 column,"),
        (("a",), "the row has 1 column,"),
        (("a", "b", "c"), "the row has 3 columns,"),
        ((), "the row has 0 columns,"),
    ],
)
def test_another_number_of_columns_than_in_training(row: Any, words: str) -> None:
    encoder = Encoder(Template.parse("U:%x[0,0]"))
    encoder.fit_encode([[("a", "b")]])
    for X, place in (
        ([[row]], "sequence 0, position 0"),
        ([[], [("a", "b"), row]], "sequence 1, position 1"),
    ):
        with pytest.raises(FeatureError, match=f"{place}: {words} expected 2 as in training"):
            encoder.encode(X)
    assert encoder.encode([[], [("a", "x")]]).n_positions == 1
