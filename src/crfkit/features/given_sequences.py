"""X as a list of sequences: what else people give, recognised, and what to write instead.

pandas and its kin are recognised by their protocols and never imported.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from crfkit.errors import FeatureError
from crfkit.features.wording import describe_value

WRAP = "X is a list of sequences: write [X] for a single one"
LIST_OF_POSITIONS = "a list of positions"
LIST_OF_ROWS = "a list of words or rows"
_PLAIN = (list, tuple, np.ndarray)
# letters of Thai and Lao, kana, Han
_UNSPACED = re.compile("[\u0e00-\u0eff\u3040-\u30ff\u3400-\u9fff\U00020000-\U0003ffff]")
_LONGEST_WORD = 4  # letters of such a script that are still taken for a word
_SHOWN = 8  # columns of a table that a message names


def list_sequences(X: Any) -> Sequence[Any]:
    """The sequences as a list; a generator is read once."""
    if isinstance(X, list | tuple):
        return X
    check_no_table(X, "X", "a list of sequences", "word")
    is_matrix = isinstance(X, np.ndarray) and X.ndim == 2 and X.dtype.kind != "O"
    one_sequence = isinstance(X, str | bytes | Mapping) or is_matrix or is_sparse(X)
    if one_sequence or not isinstance(X, Iterable):
        raise FeatureError(
            f"X is {describe_value(X)}, expected a list of sequences{_advice_for_all(X, one_sequence)}"
        )
    return list(X)


def check_sequences(sequences: Sequence[Any], *, rows: bool) -> None:
    """Refuse a string, a table or another thing that cannot be a sequence: of rows, or of positions that may be blocks."""
    for kind in set(map(type, sequences)).difference(_PLAIN):
        read = hasattr(kind, "__iter__") or hasattr(kind, "__getitem__") or hasattr(kind, "tocsr")
        unordered = issubclass(kind, set | frozenset) or (rows and issubclass(kind, Mapping))
        if issubclass(kind, str | bytes) or unordered or not read or _is_table(kind) or _is_grouping(kind):
            n = next(n for n, sequence in enumerate(sequences) if type(sequence) is kind)
            raise unusable_sequence(n, sequences[n], LIST_OF_ROWS if rows else LIST_OF_POSITIONS)


def unusable_sequence(n: int, sequence: Any, expected: str) -> FeatureError:
    """What is said about sequence n, which is none."""
    if _is_table(type(sequence)):
        return FeatureError(
            f"sequence {n} is {_describe_table(sequence)}, expected {expected}; write list(frame['word']) for one "
            "column, list(frame.itertuples(index=False, name=None)) for several, frame.to_numpy() for numbers"
        )
    advice = ""
    if isinstance(sequence, str) and len(sequence.split()) > 1:
        advice = "; split texts into words first: [text.split() for text in X]"
    elif isinstance(sequence, str) and _is_unspaced(sequence):
        advice = "; split texts into characters or words first: [list(text) for text in X]"
    elif isinstance(sequence, set | frozenset):
        advice = f"; a set has no order; {WRAP}"
    elif isinstance(sequence, str | Mapping | np.ndarray):
        advice = f"; {WRAP}"
    return FeatureError(f"sequence {n} is {describe_value(sequence)}, expected {expected}{advice}")


def check_no_table(value: Any, name: str, expected: str, column: str) -> None:
    """Refuse a data frame and its groups, and say how to make a list for each sequence of it."""
    if _is_table(type(value)):
        raise FeatureError(
            f"{name} is {_describe_table(value)}, expected {expected}; "
            "crfkit.data.from_frame(frame, sequence=…, features=…, label=…) reads one; "
            f"or take a column of each group of rows: [list(rows[{column!r}]) for _, rows in frame.groupby('sentence')]"
        )
    if _is_grouping(type(value)):
        raise FeatureError(
            f"{name} is a {type(value).__name__}, expected {expected}; make a list of each group: "
            f"[list(rows[{column!r}]) for _, rows in frame.groupby('sentence')]"
        )


def is_missing(value: Any) -> bool:
    """Whether this stands for a value that is not there: NaN, NaT, pandas' NA (None is not meant)."""
    try:
        return bool(value != value)
    except (TypeError, ValueError):  # NA does not say whether it is equal to itself
        return type(value).__name__ == "NAType"


def is_sparse(value: Any) -> bool:
    """Whether this is a matrix in SciPy's manner."""
    return hasattr(value, "tocsr") and hasattr(value, "shape")


def _advice_for_all(X: Any, one_sequence: bool) -> str:
    if isinstance(X, str) and len(X.split()) > 1:
        return "; split a text into words first: [X.split()]"
    if isinstance(X, str) and _is_unspaced(X):
        return "; split a text into characters or words first: [list(X)]"
    if isinstance(X, np.ndarray) and X.dtype.kind == "U":
        return "; write list(X) where each row is a sequence, [X] where all rows are one"
    return f"; {WRAP}" if one_sequence else ""


def _is_unspaced(text: str) -> bool:
    """Whether this is more than a word of a script that has no spaces: of Chinese, Japanese or Thai."""
    return len(_UNSPACED.findall(text)) > _LONGEST_WORD


def _is_table(kind: type) -> bool:
    """Data frames of pandas, polars, pyarrow and others."""
    return hasattr(kind, "__dataframe__") or (hasattr(kind, "columns") and hasattr(kind, "itertuples"))


def _is_grouping(kind: type) -> bool:
    """What pandas' and polars' `groupby` give."""
    return hasattr(kind, "__iter__") and hasattr(kind, "agg") and "GroupBy" in kind.__name__


def _describe_table(table: Any) -> str:
    names = list(map(str, getattr(table, "columns", ())))
    columns = ", ".join(names[:_SHOWN]) + ", …" * (len(names) > _SHOWN)
    return f"a {type(table).__name__} with the columns {columns}" if names else f"a {type(table).__name__}"
