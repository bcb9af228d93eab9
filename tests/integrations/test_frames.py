"""Data frames: the same model from every library, answers back in the rows that they are for, clear errors."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from crfkit import CRF, Chain, Span, errors
from crfkit.data import SequenceFrame, from_frame

pytest.importorskip("narwhals", reason='needs narwhals: pip install ".[dataframe]"')
pandas = pytest.importorskip("pandas")
polars = pytest.importorskip("polars")
pyarrow = pytest.importorskip("pyarrow")

DATA: dict[str, list[Any]] = {
    "document": ["a", "a", "a", "b", "b", "a", "b", "b"],
    "sentence": [1, 1, 2, 1, 1, 1, 2, 2],
    "word": ["Ann", "met", "Bob", "She", "saw", "Tom", "in", "Rome"],
    "title": [True, False, True, True, False, True, False, True],
    "length": [3, 3, None, 3, 3, 3, 2, 4],
    "flag": [None, "verb", None, None, "verb", None, None, "place"],
    "tag": ["B-PER", "O", "B-PER", "O", None, "B-PER", "O", "B-LOC"],
    "weight": [1.0, 1.0, 2.0, 3.0, 3.0, 1.0, 0.5, 0.5],
}
SEQUENCE, FEATURES = ["document", "sentence"], ["word", "title", "length", "flag"]
ROWS = [[0, 1, 5], [2], [3, 4], [6, 7]]  # of the sequences, in the order of their first rows


def nullable(data: dict[str, list[Any]]) -> Any:
    """pandas with its own types of missing values, and an index that says nothing of the order."""
    frame = pandas.DataFrame(data).convert_dtypes()
    return frame.set_axis([7, 7, 3, 1, 0, 5, 2, 2][: len(frame)], axis=0)


def categorical(data: dict[str, list[Any]]) -> Any:
    return polars.DataFrame(data).with_columns(
        polars.col("word").cast(polars.Categorical), polars.col("tag").cast(polars.Categorical)
    )


LIBRARIES: dict[str, Callable[[dict[str, list[Any]]], Any]] = {
    "pandas": pandas.DataFrame,
    "pandas, nullable": nullable,
    "polars": polars.DataFrame,
    "polars, categorical": categorical,
    "pyarrow": pyarrow.table,
}
every_library = pytest.mark.parametrize("make", LIBRARIES.values(), ids=LIBRARIES)


def read(make: Callable[[dict[str, list[Any]]], Any], **options: Any) -> SequenceFrame:
    given: dict[str, Any] = {
        "sequence": SEQUENCE,
        "features": FEATURES,
        "label": "tag",
        "weight": "weight",
    }
    return from_frame(make(DATA), **{**given, **options})


def column(frame: Any, name: str) -> list[Any]:
    values = frame[name]
    return values.to_pylist() if hasattr(values, "to_pylist") else values.to_list()


@every_library
def test_sequences_are_those_of_the_rows(make: Any) -> None:
    frame = read(make)
    assert len(frame) == 4
    assert frame.ids == [("a", 1), ("a", 2), ("b", 1), ("b", 2)]
    assert frame.y == [[DATA["tag"][row] for row in rows] for rows in ROWS]
    expected = [
        [{name: DATA[name][row] for name in FEATURES if DATA[name][row] is not None} for row in rows]
        for rows in ROWS
    ]
    assert expected == frame.X
    assert frame.rows[1:] == [
        [("Bob", "True", "", "")],
        [("She", "True", "3", ""), ("saw", "False", "3", "verb")],
        [("in", "False", "2", ""), ("Rome", "True", "4", "place")],
    ]
    assert frame.sample_weight.tolist() == [1.0, 2.0, 3.0, 0.5]
    assert "4 sequences with 8 positions" in repr(frame)


@every_library
@pytest.mark.parametrize("features", [None, "names"])
def test_every_library_gives_the_same_model(make: Any, features: str | None) -> None:
    """Bit for bit that of lists: dicts, or columns of text for a preset."""
    names = ["word", "flag"] if features else FEATURES
    frame = read(make, features=names)
    crf = CRF(Chain(), features=features, l2=0.1).fit(frame)
    positions: list[Any] = [
        [
            tuple(DATA[name][row] or "" for name in names)
            if features
            else {name: DATA[name][row] for name in names if DATA[name][row] is not None}
            for row in rows
        ]
        for rows in ROWS
    ]
    labels = [[DATA["tag"][row] for row in rows] for rows in ROWS]
    direct = CRF(Chain(), features=features, l2=0.1).fit(positions, labels, sample_weight=[1, 2, 3, 0.5])
    assert crf.weights_.tobytes() == direct.weights_.tobytes()
    assert crf.classes_ == direct.classes_ == ["B-LOC", "B-PER", "O"]
    assert crf.predict(frame) == direct.predict(positions)
    for a, b in zip(crf.predict_marginals(frame), direct.predict_marginals(positions), strict=True):
        np.testing.assert_array_equal(a, b)
    assert crf.score(frame) == direct.score(positions, labels, [1, 2, 3, 0.5])
    np.testing.assert_array_equal(crf.log_probability(frame), direct.log_probability(positions, labels))
    assert crf.predict_spans(frame) == direct.predict_spans(positions)


@every_library
def test_predictions_come_back_in_their_rows(make: Any) -> None:
    frame = read(make)
    answers = [[f"{row}" for row in rows] for rows in ROWS]
    given = make(DATA)
    found = frame.with_predictions(answers)
    assert type(found) is type(given)
    assert column(found, "predicted") == [str(row) for row in range(8)]
    assert column(found, "document") == DATA["document"]
    if hasattr(given, "index"):
        assert found.index.tolist() == given.index.tolist()
    numbers = [np.array(rows, dtype=np.float64) / 8 for rows in ROWS]
    both = frame.with_columns(row=ROWS, share=numbers)
    assert column(both, "row") == list(range(8))
    assert column(both, "share") == [row / 8 for row in range(8)]
    assert "predicted" not in list(getattr(given, "columns", [])) + list(getattr(given, "column_names", []))


@every_library
def test_spans_are_a_frame_of_their_own(make: Any) -> None:
    spans = [[Span(0, 1, "PER", 0.9), Span(1, 3, "MISC", 0.25)], [], [], [Span(1, 2, "LOC", 0.75)]]
    table = read(make).span_table(spans, text="word")
    assert type(table) is type(make(DATA))
    assert column(table, "sentence") == [1, 1, 2]
    assert column(table, "label") == ["PER", "MISC", "LOC"]
    assert column(table, "probability") == [0.9, 0.25, 0.75]
    assert column(table, "text") == ["Ann", "met Tom", "Rome"]


def test_dev_sets_and_more_training() -> None:
    frame = read(polars.DataFrame)
    by_frame = CRF().fit(frame, dev=frame, patience=5)
    by_lists = CRF().fit(frame.X, frame.y, frame.sample_weight, dev=(frame.X, frame.y), patience=5)
    assert by_frame.weights_.tobytes() == by_lists.weights_.tobytes()
    assert (
        by_frame.partial_fit(frame).weights_.tobytes()
        == by_lists.partial_fit(frame.X, frame.y, frame.sample_weight).weights_.tobytes()
    )
    words = read(polars.DataFrame, features="word", weight=None)
    dev = CRF(features="names").fit(words, dev=(words, words.y))
    assert dev.history_[-1].dev_score is not None


def test_labels_may_be_numbers_and_the_whole_frame_one_sequence() -> None:
    data: dict[str, list[Any]] = {"x": ["a", "b", "a", "b"], "state": [1, 2, None, 2]}
    for make in LIBRARIES["pandas"], polars.DataFrame:
        frame = from_frame(make(data), sequence=None, features="x", label="state")
        assert frame.y == [[1, 2, None, 2]]
        assert [type(label) for label in frame.y[0]] == [int, int, type(None), int]
        assert column(frame.with_predictions(CRF[int]().fit(frame).predict(frame)), "predicted") == [
            1,
            2,
            1,
            2,
        ]


def test_lists_are_several_features() -> None:
    frame = polars.DataFrame({"s": [1, 1], "flags": [["a", "b"], []], "y": ["A", "B"]})
    crf = CRF().fit(from_frame(frame, sequence="s", features="flags", label="y"))
    assert sorted(crf.encoder_.vocabulary.names()) == ["flags:a", "flags:b"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"sequence": "sentense"},
            "sequence: the frame has no column 'sentense', only 'document', 'sentence', 'word'",
        ),
        ({"features": ["word", "pos"]}, "features: the frame has no column 'pos'"),
        ({"label": "ner"}, "label: the frame has no column 'ner'"),
        ({"weight": "w"}, "weight: the frame has no column 'w'"),
        ({"features": []}, "features is empty"),
        ({"features": ["word", "word"]}, "features has a column twice"),
        ({"features": ["word", "tag"]}, "the label 'tag' is among the features"),
        ({"sequence": "flag"}, "sequence: the column 'flag' has no value in row 0"),
        ({"weight": "word"}, "weight: the column 'word' is of type String, expected numbers"),
        ({"weight": "length"}, r"weight: the column 'length' has no value in sequence 1 \(\('a', 2\)\)"),
        (
            {"sequence": "sentence"},
            r"weight: the column 'weight' has 1.0 and other values in sequence 0 \(1\)",
        ),
        ({"label": "weight", "weight": None}, "label: the column 'weight' has 0.5 in row 6"),
    ],
)
@pytest.mark.parametrize("make", [pandas.DataFrame, polars.DataFrame])
def test_errors_name_the_column(make: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(errors.InputError, match=message):
        CRF().fit(read(make, **options))


@pytest.mark.parametrize("make", [pandas.DataFrame, polars.DataFrame])
def test_columns_of_other_types(make: Any) -> None:
    frame = make({"s": [1], "when": [datetime.datetime(2020, 1, 1)], "y": ["A"]})
    with pytest.raises(errors.ArgumentError, match="features: the column 'when' is of type Datetime"):
        CRF().fit(from_frame(frame, sequence="s", features="when", label="y"))
    with pytest.raises(errors.ArgumentError, match="label: the column 'when' is of type Datetime"):
        CRF().fit(from_frame(frame, sequence="s", features="y", label="when"))


def test_what_is_no_frame() -> None:
    with pytest.raises(errors.ArgumentError, match="frame is of type dict, expected a data frame of pandas"):
        from_frame(DATA, sequence="sentence", features="word")
    with pytest.raises(errors.ArgumentError, match=r"frame is a lazy polars frame: call .collect\(\)"):
        from_frame(polars.DataFrame(DATA).lazy(), sequence="sentence", features="word")
    with pytest.raises(errors.EmptyDataError, match="the frame has no row"):
        from_frame(polars.DataFrame(DATA).clear(), sequence="sentence", features="word")


def test_frames_without_labels() -> None:
    frame = read(polars.DataFrame, label=None)
    assert not frame.has_labels
    with pytest.raises(errors.ArgumentError, match="without labels"):
        CRF().fit(frame)
    crf = CRF().fit(read(polars.DataFrame))
    assert crf.predict(frame) == crf.predict(frame.X)
    with pytest.raises(errors.UnsupportedError, match="sample_weight was given"):
        CRF().fit(read(polars.DataFrame), sample_weight=[1, 1, 1, 1])
    with pytest.raises(errors.InputError, match="y is None, expected a list with a list of labels"):
        CRF().fit([[["a"]]])


def test_answers_that_do_not_fit() -> None:
    frame = read(polars.DataFrame)
    with pytest.raises(errors.ShapeError, match=r"an array of shape \(2,\) at a position of sequence 0"):
        frame.with_predictions([list(np.zeros((len(x), 2))) for x in frame.X])
    with pytest.raises(errors.ShapeError, match="predicted has values for 1 sequences, expected 4"):
        frame.with_predictions([["A"]])
    with pytest.raises(
        errors.ShapeError, match=r"predicted has 2 values for sequence 1 \(\('a', 2\)\), expected 1"
    ):
        frame.with_predictions([["A"] * 3, ["A"] * 2, ["A"] * 2, ["A"] * 2])


def test_spans_beside_columns_of_the_same_name() -> None:
    frame = from_frame(
        polars.DataFrame({"start": [1, 1], "word": ["a", "b"]}), sequence="start", features="word"
    )
    with pytest.raises(errors.ArgumentError, match=r"'start'.*rename it"):
        frame.span_table([[Span(0, 1, "A", 0.5)]])
    answer = frame.with_predictions([["A", "B"]], "self")
    assert answer["self"].to_list() == ["A", "B"]


def test_columns_that_tell_no_sequences_apart() -> None:
    lists = polars.DataFrame({"s": [[1], [2]], "word": ["a", "b"]})
    with pytest.raises(errors.ArgumentError, match="sequence: the column 's' is of type List"):
        from_frame(lists, sequence="s", features="word")
    with pytest.raises(errors.ArgumentError, match=r"features has \['word'\], expected the name"):
        from_frame(lists, sequence=None, features=[["word"]])  # type: ignore[list-item]
    numbered = pandas.DataFrame([[1, "a"], [1, "b"], [2, "c"]])  # pandas numbers columns without names
    for wrong in ({"sequence": 0}, {"features": 1}, {"label": 1}, {"weight": 0}):
        given = {"sequence": None, "features": "word", **wrong}
        with pytest.raises(errors.ArgumentError, match=f"{next(iter(wrong))} has [01], expected the name"):
            from_frame(numbered.assign(word="x"), **given)  # type: ignore[arg-type]
    twice = pandas.DataFrame([[1, "a", "b"]], columns=["s", "word", "word"])
    with pytest.raises(errors.ArgumentError, match="several columns of the same name"):
        from_frame(twice, sequence="s", features="word")
