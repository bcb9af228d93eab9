"""The words of positions: where a row or a dict has them, and as ids."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from crfkit._core import Vocabulary
from crfkit.arrays import Int32s
from crfkit.errors import ArgumentError, FeatureError, ShapeError
from crfkit.features.column_rows import ColumnRows
from crfkit.features.given_sequences import LIST_OF_POSITIONS, unusable_sequence
from crfkit.features.wording import describe_value

Column = int | str
"""Where a position has its word: a place in a row of columns, or a key of a dict."""


def words_of(X: Iterable[Any], column: Column) -> Iterable[str]:
    """The word of each position."""
    yield from (word for n, sequence in enumerate(X) for word in sequence_words(n, sequence, column))


def sequence_words(
    n: int, sequence: Any, column: Column, whose: str = "a tag dictionary needs"
) -> Iterator[str]:
    """The word of each position of sequence n."""
    if isinstance(sequence, str | bytes | Mapping) or not isinstance(sequence, Iterable):
        raise unusable_sequence(n, sequence, LIST_OF_POSITIONS)
    for i, position in enumerate(sequence):
        word = position if column in (0, -1) else None  # a bare word is a row of one column
        if not isinstance(position, str):
            try:
                word = position[column]
            except (IndexError, KeyError, TypeError):
                word = None
        if not isinstance(word, str):
            raise FeatureError(
                f"sequence {n}, position {i} is {describe_value(position)}: {whose} a word"
                f"{'' if column == 0 else f' in column {column!r}'}"
            )
        yield word


def read_once(X: Any) -> Any:
    """Sequences that can be read again: what can be read only once becomes a list."""
    if isinstance(X, Sequence) and all(isinstance(sequence, Sequence) for sequence in X):
        return X
    if isinstance(X, str | bytes | Mapping) or not isinstance(X, Iterable):
        return X
    return [list(sequence) if isinstance(sequence, Iterator) else sequence for sequence in X]


def check_word_column(column: object) -> Column | None:
    """A column of words, or None."""
    if (
        column is None
        or isinstance(column, str)
        or (isinstance(column, int) and not isinstance(column, bool))
    ):
        return column
    raise ArgumentError(f"word_column is {column!r}, expected None, a column from 0 on, or a key of dicts")


def number_words(X: Any, column: Column) -> tuple[Vocabulary, Int32s]:
    """The words of all positions in lower case, as a tag dictionary compares them, and which each position has, [T]."""
    distinct: Iterable[str]
    if isinstance(X, ColumnRows):
        if not isinstance(column, int) or not -X.n_columns <= column < X.n_columns:
            raise ShapeError(
                f"{X.place(0)}: there is no column {column!r} of words, found {X.n_columns} beside the label"
            )
        distinct, ids = X.column_ids(column)
    else:
        places: dict[str, int] = {}
        ids = np.array([places.setdefault(word, len(places)) for word in words_of(X, column)], np.int32)
        distinct = places
    words = Vocabulary()
    lower = np.array([words.add(word.lower()) for word in distinct], np.int32)
    return words, lower[ids] if len(lower) else ids
