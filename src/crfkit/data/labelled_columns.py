"""Column files with labels, as pairs of rows and labels."""

import os
from collections.abc import Iterator

from crfkit.data.columns import AUTO, Row, read_columns
from crfkit.data.files import Source
from crfkit.errors import FileFormatError


def read_pairs(
    path: str | os.PathLike[str],
    *,
    label_column: int = -1,
    separator: str | None = None,
    comment: str | None = AUTO,
) -> Iterator[tuple[list[Row], list[str]]]:
    """The sequences of a column file, one at a time: the rows without the label column (−1: the last one), and the labels.

    `separator` and `comment` as in `read_columns`.
    """
    for sequence in read_columns(path, separator=separator, comment=comment):
        n_columns = len(sequence.rows[0])
        column = label_column + n_columns if label_column < 0 else label_column
        if n_columns < 2 or not 0 <= column < n_columns:
            raise FileFormatError(
                f"{sequence.place(0)}: found {n_columns} column{'s' * (n_columns != 1)}, "
                f"expected input columns and the label in column {label_column}"
            )
        labels = [row[column] for row in sequence.rows]
        if "" in labels:
            raise FileFormatError(
                f"{sequence.place(labels.index(''))}: the label is empty, expected one for every word"
            )
        yield [row[:column] + row[column + 1 :] for row in sequence.rows], labels


def find_separator(source: Source) -> str:
    """What separates the columns of a file or stream, by its first row: tabs or blanks."""
    return next(sequence.separator for sequence in read_columns(source))
