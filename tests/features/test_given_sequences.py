"""What is said to somebody who gives a single sentence, texts, data frames or missing values."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from crfkit import CRF, InputError

WORDS = [["The", "dog", "runs"], ["A", "cat", "sees", "it"]] * 3
LISTS = [[["w=" + word] for word in words] for words in WORDS]
TAGS: list[list[Any]] = [["D", "N", "V"], ["D", "N", "V", "P"]] * 3
SPLIT = "split texts into words first: [text.split() for text in X]"
WRAP = "X is a list of sequences: write [X] for a single one"
FRAME = "crfkit.data.from_frame(frame, sequence=…, features=…, label=…) reads one"
GROUPS = "[list(rows['word']) for _, rows in frame.groupby('sentence')]"


class DataFrame:
    """Stands in for a table of pandas or of its kin: iterating over it gives names of columns."""

    columns = ("sentence", "word")

    def __dataframe__(self) -> None: ...

    def __iter__(self) -> Iterator[str]:
        return iter(self.columns)


class FrameGroupBy:
    """Stands in for the groups of a table: iterating over it gives pairs of key and table."""

    def agg(self) -> None: ...

    def __iter__(self) -> Iterator[tuple[str, DataFrame]]:
        return iter([("1", DataFrame())])


class NAType:
    """Stands in for pandas' NA, which does not say whether it is equal to itself."""

    def __eq__(self, other: object) -> Any:
        return self

    __ne__ = __eq__

    def __bool__(self) -> bool:
        raise TypeError("boolean value of NA is ambiguous")

    def __hash__(self) -> int:
        return 1

    def __repr__(self) -> str:
        return "<NA>"


NA = NAType()


@pytest.fixture(scope="module")
def tagger() -> CRF:
    return CRF(features="pos").fit(WORDS, TAGS)


@pytest.fixture(scope="module")
def lists() -> CRF:
    return CRF().fit(LISTS, TAGS)


def said(ask: Any, *arguments: Any, **settings: Any) -> str:
    with pytest.raises(InputError) as raised:
        ask(*arguments, **settings)
    return str(raised.value)


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (["The", "dog"], f"sequence 0 is the string 'The', expected a list of words or rows; {WRAP}"),
        (("The", "dog"), f"sequence 0 is the string 'The', expected a list of words or rows; {WRAP}"),
        (["The dog"], f"sequence 0 is the string 'The dog', expected a list of words or rows; {SPLIT}"),
        ("The dog", "X is the string 'The dog', expected a list of sequences; split a text into words first: [X.split()]"),
        (
            ["李明在北京"],
            "sequence 0 is the string '李明在北京', expected a list of words or rows; "
            "split texts into characters or words first: [list(text) for text in X]",
        ),
        (
            "กรุงเทพ",
            "X is the string 'กรุงเทพ', expected a list of sequences; "
            "split a text into characters or words first: [list(X)]",
        ),
        (["李明", "在"], f"sequence 0 is the string '李明', expected a list of words or rows; {WRAP}"),
        ([["The"], None], "sequence 1 is None, expected a list of words or rows"),
        ([{"The"}], f"sequence 0 is {{'The'}} (set), expected a list of words or rows; a set has no order; {WRAP}"),
        ([{"w": "The"}], f"sequence 0 is {{'w': 'The'}} (dict), expected a list of words or rows; {WRAP}"),
        (
            [[{"w": "The"}]],
            "sequence 0, position 0: expected a word or a tuple of columns, got {'w': 'The'} (dict); "
            "dicts of features need CRF(features=None)",
        ),
        (
            np.array([["The", "dog"], ["A", "cat"]]),
            "X is an array of shape [2, 2], expected a list of sequences; "
            "write list(X) where each row is a sequence, [X] where all rows are one",
        ),
        (
            [["The", NA]],
            "sequence 0, position 1: expected a word or a tuple of columns, got <NA> (NAType); "
            "missing values have to be left out or replaced",
        ),
        (
            [["The", float("nan")]],
            "sequence 0, position 1: expected a word or a tuple of columns, got nan (float); "
            "missing values have to be left out or replaced",
        ),
        (
            [[("The", None)]],
            "sequence 0, position 0: expected strings as columns, got None; missing values have to be left out or replaced",
        ),
        (
            DataFrame(),
            "X is a DataFrame with the columns sentence, word, expected a list of sequences; "
            f"{FRAME}; or take a column of each group of rows: {GROUPS}",
        ),
        (FrameGroupBy(), f"X is a FrameGroupBy, expected a list of sequences; make a list of each group: {GROUPS}"),
        (
            [DataFrame()],
            "sequence 0 is a DataFrame with the columns sentence, word, expected a list of words or rows; "
            "write list(frame['word']) for one column, list(frame.itertuples(index=False, name=None)) for several, "
            "frame.to_numpy() for numbers",
        ),
    ],
)  # fmt: skip
def test_no_list_of_sentences(tagger: CRF, X: Any, message: str) -> None:
    assert said(tagger.predict, X) == message
    assert said(tagger.predict_marginals, X) == message
    assert said(CRF(features="pos").fit, X, TAGS) == message


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (["The", "dog"], f"sequence 0 is the string 'The', expected a list of positions; {WRAP}"),
        ([{"w=The"}], f"sequence 0 is {{'w=The'}} (set), expected a list of positions; a set has no order; {WRAP}"),
        (
            LISTS[0],
            "sequence 0, position 0: expected a list of strings or a dict, got the string 'w=The'; words need a preset or "
            'a template, such as CRF(features="pos"); features are a list or a dict for each word, and [X] is written '
            "for a single sequence of these",
        ),
        ([[{"w": "The"}], DataFrame()], "sequence 1 is a DataFrame with the columns sentence, word, expected a list of"),
        (
            [[{"w": NA}]],
            "sequence 0, position 0: expected a string, a number, a list of strings, a dict or a row as the value of 'w', "
            "got <NA> (NAType); missing values have to be left out or replaced",
        ),
        (
            [[{"w": float("nan")}]],
            "sequence 0, position 0: feature 'w' has the value nan (float); expected a finite number, at most 1e20 in size: "
            "leave the feature out where it has none",
        ),
    ],
)  # fmt: skip
def test_no_list_of_sequences_of_features(lists: CRF, X: Any, message: str) -> None:
    assert said(lists.predict, X).startswith(message)
    assert said(CRF().fit, X, TAGS).startswith(message)


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (
            ["D", "N", "V"],
            "y of sequence 0 is 'D', expected a list of labels; y has a list for each sequence: write [y] for a single one",
        ),
        ([None, *TAGS[1:]], "y of sequence 0 is None, expected a list of labels, with None where a label is unknown"),
        (None, "y is None, expected a list with a list of labels for each sequence"),
        (
            DataFrame(),
            "y is a DataFrame with the columns sentence, word, expected a list with a list of labels for each sequence; "
            f"{FRAME}; or take a column of each group of rows: {GROUPS.replace('word', 'label')}",
        ),
        (FrameGroupBy(), "y is a FrameGroupBy, expected a list with a list of labels for each sequence; make"),
        (
            [["D", NA, "V"], *TAGS[1:]],
            "sequence 0, position 1: the label is <NA>, a missing value; expected a label, or None",
        ),
        ([["D", {"N", NA}, "V"], *TAGS[1:]], "sequence 0, position 1: the label is <NA>, a missing value; expected a label"),
        ([["D", float("nan"), "V"], *TAGS[1:]], "sequence 0, position 1: the label is nan, a missing value; expected"),
        ([["D", ["N"], "V"], *TAGS[1:]], "sequence 0, position 1: the label ['N'] is not hashable; expected a string"),
    ],
)  # fmt: skip
def test_no_lists_of_labels(tagger: CRF, y: Any, message: str) -> None:
    for ask in (CRF(features="pos").fit, tagger.score, tagger.log_probability):
        assert said(ask, WORDS, y).startswith(message)
    assert said(CRF(features="pos").fit, WORDS, TAGS, dev=(WORDS, y)).startswith("dev " + message)


@pytest.mark.parametrize(
    ("allowed", "message"),
    [
        (["D", None, None], "allowed of sequence 0 is 'D', expected None or a list with an entry for each position; write"),
        ([None, {"N"}, None], "allowed of sequence 1 is {'N'}, expected None or a list with an entry for each position; "),
        (
            [["D", None, None]],
            "sequence 0, position 0: allowed has 'D', expected None or a collection of labels, such as {'D'}",
        ),
        (DataFrame(), "allowed is a DataFrame with the columns sentence, word, expected an entry for each sequence; "),
    ],
)  # fmt: skip
def test_no_lists_of_allowed_labels(tagger: CRF, allowed: Any, message: str) -> None:
    assert said(tagger.predict, WORDS[:1], allowed=allowed).startswith(message)


def test_sample_weights_that_are_missing() -> None:
    message = said(CRF().fit, LISTS, TAGS, sample_weight=[NA] * 6)
    assert message.startswith("sample_weight is [<NA>, <NA>,")
    assert message.endswith("expected one number for each sequence")


def test_generators_and_arrays_are_lists_too(tagger: CRF) -> None:
    arrays = [np.array(words) for words in WORDS]
    labels = [np.array(tags, dtype=object) for tags in TAGS]
    for X in (arrays, iter(WORDS), (iter(words) for words in WORDS), tuple(map(tuple, WORDS))):
        assert tagger.predict(X) == TAGS  # type: ignore[arg-type]
    for y in (labels, iter(TAGS), (iter(tags) for tags in TAGS), tuple(map(tuple, TAGS))):
        assert CRF(features="pos").fit(WORDS, y).predict(WORDS) == TAGS  # type: ignore[arg-type]
    assert tagger.score(WORDS, (iter(tags) for tags in TAGS)) == 1.0  # type: ignore[arg-type]


# ---- pandas itself


def test_columns_of_groups_are_sequences_and_frames_are_not(tagger: CRF) -> None:
    pandas = pytest.importorskip("pandas", reason="needs pandas: pip install pandas")
    rows = [
        (n, *pair)
        for n, (X, y) in enumerate(zip(WORDS, TAGS, strict=True))
        for pair in zip(X, y, strict=True)
    ]
    frame = pandas.DataFrame(rows, columns=["sentence", "word", "label"])
    groups = frame.groupby("sentence")
    X = [list(rows["word"]) for _, rows in groups]  # as the messages say
    y = [list(rows["label"]) for _, rows in groups]
    assert CRF(features="pos").fit(X, y).predict(X) == TAGS
    assert tagger.predict([rows["word"] for _, rows in groups]) == TAGS
    assert tagger.predict(groups["word"].apply(list)) == TAGS
    pairs = [list(rows[["word", "label"]].itertuples(index=False, name=None)) for _, rows in groups]
    assert CRF(features="chunks").fit(pairs, y).n_columns_ == 2
    for table in (frame, groups, groups["word"], frame.groupby("sentence", sort=False)):
        assert said(tagger.predict, table).startswith(f"X is a {type(table).__name__}")
        assert said(tagger.score, WORDS, table).startswith(f"y is a {type(table).__name__}")
    assert said(tagger.predict, [rows for _, rows in groups]).startswith(
        "sequence 0 is a DataFrame with the columns s"
    )
    assert said(tagger.predict, frame["word"]).startswith(
        "sequence 0 is the string 'The', expected a list of words"
    )
    for missing in (pandas.NA, pandas.NaT):
        assert "a missing value; expected a label, or None" in said(
            tagger.score, WORDS, [["D", missing, "V"], *TAGS[1:]]
        )
        assert "missing values have to be left out or replaced" in said(tagger.predict, [["The", missing]])
