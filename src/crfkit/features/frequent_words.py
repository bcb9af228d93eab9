"""How often words occur in training data: what the macro `%rare` of templates asks.

`%rare[0,0,10]` holds for values of column 0 that the training data have fewer than 10 times, so also for unknown ones. Only
values that occur as often as some macro asks are kept, and they are counted as far as the macros ask.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import Any

import numpy as np

from crfkit.arrays import offsets
from crfkit.errors import FileFormatError
from crfkit.features.column_rows import ColumnRows

FREQUENT_WORD_ARRAYS = ("names", "lengths", "columns", "counts")
"""The names of the arrays that hold counts of words in files."""


class FrequentWords:
    """The values of columns that are not rare, with their counts; none that is not here occurs often."""

    def __init__(self, columns: Mapping[int, Mapping[str, int]]) -> None:
        self._columns = {column: dict(counts) for column, counts in columns.items()}

    def is_rare(self, column: int, value: str, count: int) -> bool:
        """Whether a value of a column occurs fewer than `count` times."""
        return self._columns.get(column, {}).get(value, 0) < count

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FrequentWords) and self._columns == other._columns

    __hash__ = None  # type: ignore[assignment]

    def to_arrays(self) -> dict[str, Any]:
        """As files hold them, by the names `FREQUENT_WORD_ARRAYS`."""
        entries = [
            (column, value.encode("utf-8", "surrogatepass"), count)
            for column, counts in sorted(self._columns.items())
            for value, count in counts.items()
        ]
        return {
            "names": np.frombuffer(b"".join(name for _, name, _ in entries), np.uint8),
            "lengths": np.array([len(name) for _, name, _ in entries], np.int64),
            "columns": np.array([column for column, _, _ in entries], np.int64),
            "counts": np.array([count for _, _, count in entries], np.int64),
        }

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, Any]) -> FrequentWords:
        """The inverse of `to_arrays`; FileFormatError where they are damaged."""
        given = [arrays.get(name) for name in FREQUENT_WORD_ARRAYS]
        if any(not isinstance(array, np.ndarray) or array.dtype.kind not in "iu" for array in given):
            raise FileFormatError("its counts of words are damaged")
        names, lengths, columns, counts = given
        blob = names.astype(np.uint8).tobytes()  # type: ignore[union-attr]
        ends = offsets(lengths)  # type: ignore[arg-type]
        same = len(lengths) == len(columns) == len(counts)  # type: ignore[arg-type]
        if not same or np.any(np.diff(ends) < 0) or ends[-1] != len(blob):
            raise FileFormatError("its counts of words do not add up")
        found: dict[int, dict[str, int]] = {}
        try:
            texts = [
                blob[begin:end].decode("utf-8", "surrogatepass") for begin, end in pairwise(ends.tolist())
            ]
        except UnicodeDecodeError:
            raise FileFormatError("its counts of words are damaged") from None
        for column, text, count in zip(columns.tolist(), texts, counts.tolist(), strict=True):  # type: ignore[union-attr]
            found.setdefault(int(column), {})[text] = int(count)
        return cls(found)


class WordCounter:
    """Counts the values of some columns, sequence after sequence."""

    def __init__(self, asked: Mapping[int, Iterable[int]]) -> None:
        """`asked`: the counts that macros ask for, by column."""
        self._asked = {column: sorted(counts) for column, counts in asked.items()}
        self._counts: dict[int, Counter[str]] = {column: Counter() for column in asked}

    def add(self, sequences: Iterable[Iterable[Any]]) -> None:
        """Count the rows of sequences; what is no row, or lacks a column, is refused where it is encoded."""
        if isinstance(sequences, ColumnRows):
            for column, counts in self._counts.items():
                if column < sequences.n_columns:
                    values, ids = sequences.column_ids(column)
                    counts.update(dict(zip(values, np.bincount(ids).tolist(), strict=True)))
            return
        for column, counts in self._counts.items():
            counts.update(
                value
                for sequence in sequences
                for row in sequence
                if isinstance(value := _cell(row, column), str)
            )

    def finish(self) -> FrequentWords:
        """What was counted, as far as it was asked for."""
        return FrequentWords(
            {
                column: {
                    value: min(count, self._asked[column][-1])
                    for value, count in counts.items()
                    if count >= self._asked[column][0]
                }
                for column, counts in self._counts.items()
            }
        )


def _cell(row: Any, column: int) -> Any:
    if isinstance(row, str):
        return row if column == 0 else None
    return row[column] if isinstance(row, list | tuple) and len(row) > column else None
