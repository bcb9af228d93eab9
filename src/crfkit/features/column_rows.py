"""The rows of a column file in the memory of the core, without a Python object for each of them."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import IO, Any, overload

import numpy as np

from crfkit import _core
from crfkit.arrays import Int32s, Int64s
from crfkit.data import AUTO, read_byte_pieces, read_part, source_name
from crfkit.errors import ArgumentError, FileFormatError, ShapeError

Row = tuple[str, ...]

_LARGEST = (1 << 63) - 1


class ColumnRows(Sequence[list[Row]]):
    """The sequences of a column file, for models with a template or a preset: what a list of lists of tuples is.

    `fit`, `predict` and all other methods of `CRF` take it as X. Features are then made of the bytes of the file, on
    several threads. With `label_column`, one column is `labels`, and the others are the rows.

    >>> import io
    >>> rows = ColumnRows.read(io.BytesIO(b"the D\\ndog N\\n\\nit P\\n"), label_column=-1)
    >>> len(rows), rows[0], rows.labels
    (2, [('the',), ('dog',)], [['D', 'N'], ['P']])
    """

    def __init__(self, rows: _core.ColumnRows, source: str, label_column: int | None = None) -> None:
        self._rows = rows
        self.source = source
        n = rows.n_columns
        if label_column is not None and not -n <= label_column < n:
            raise ShapeError(
                f"{source}:{self._rows.line(0, 0)}: there is no label column {label_column}, found {n} "
                f"column{'s' * (n != 1)}"
            )
        self.label_column = None if label_column is None else label_column % n
        self.input_columns = [k for k in range(n) if k != self.label_column]

    @classmethod
    def read(
        cls,
        source: str | os.PathLike[str] | IO[bytes],
        *,
        label_column: int | None = None,
        separator: str | None = None,
        comment: str | None = AUTO,
        n_threads: int | None = None,
    ) -> ColumnRows:
        """Read a column file, which may be packed (.gz, .xz, .bz2), or a stream of bytes.

        Lines, `separator` and `comment` are as for `crfkit.data.read_columns`, and so are the errors. `label_column` counts
        from 0; −1 is the last one.
        """
        options: dict[str, Any] = {"separator": separator, "comment": comment, "n_threads": n_threads}
        return next(cls.read_shards(source, _LARGEST, label_column=label_column, **options))

    @classmethod
    def read_shards(
        cls,
        source: str | os.PathLike[str] | IO[bytes],
        shard_size: int,
        *,
        label_column: int | None = None,
        separator: str | None = None,
        comment: str | None = AUTO,
        n_threads: int | None = None,
    ) -> Iterator[ColumnRows]:
        """The same, shard by shard, as the file is read: each has at most `shard_size` positions, or one sequence.

        There is at least one. Shards before a part that cannot be read are given before its error.
        """
        if separator == "" or comment == "":
            raise ArgumentError(
                "separator and comment must not be empty strings: leave them out, or give None for no comments"
            )
        name = source_name(source)
        prefix = "#" if comment == AUTO else comment or ""
        threads = n_threads or _core.available_threads()
        shards = _core.ColumnShards(separator or "", prefix, comment == AUTO, shard_size, threads)
        for piece in read_byte_pieces(source):
            shards.add(piece)
            while (rows := shards.take()) is not None:
                yield cls(rows, name, label_column)
            if shards.failed is not None:
                break
        else:
            shards.end()
        while (rows := shards.take()) is not None:
            yield cls(rows, name, label_column)
        if shards.failed is not None:
            _complain(name, *shards.failed, shards.first_row, separator=separator, comment=comment)

    def with_labels(self, label_column: int) -> ColumnRows:
        """The same rows, with another column as the labels."""
        return ColumnRows(self._rows, self.source, label_column)

    def all_columns(self, n: int) -> list[Row]:
        """The rows of sequence n with all columns of the file, the label too."""
        return self._rows.rows(n, [*range(self._rows.n_columns)])

    @property
    def separator(self) -> str:
        """What separates the columns: a tab, a blank (for runs of blanks and tabs), or the one asked for."""
        return self._rows.separator

    @property
    def n_columns(self) -> int:
        """Columns of a row, the label apart."""
        return len(self.input_columns)

    @property
    def n_positions(self) -> int:
        """Positions of all sequences."""
        return self._rows.n_positions

    @property
    def sequence_ptr(self) -> Int64s:
        """[N + 1] the positions of sequence n are sequence_ptr[n]:sequence_ptr[n + 1]."""
        return self._rows.sequence_ptr()

    @property
    def labels(self) -> list[list[str]] | None:
        """The labels of each sequence; None where no column has them. Made anew each time; equal labels are one object."""
        if self.label_column is None:
            return None
        values, ids = self.label_ids
        names = np.empty(len(values), dtype=object)
        names[:] = values
        labels = names[ids].tolist()
        return [labels[begin:end] for begin, end in pairwise(self.sequence_ptr.tolist())]

    @property
    def label_ids(self) -> tuple[list[str], Int32s]:
        """The distinct labels by first occurrence, and which of them each position has, [T]; for rows with labels."""
        assert self.label_column is not None
        values, ids = self._rows.column(self.label_column)
        return values, ids

    def column_ids(self, column: int) -> tuple[list[str], Int32s]:
        """The same for an input column."""
        values, ids = self._rows.column(self.input_columns[column])
        return values, ids

    def find_label(self, label: str) -> tuple[int, int] | None:
        """Sequence and position of the first such label, for rows with labels."""
        values, ids = self.label_ids
        if label not in values:
            return None
        first, ptr = int(np.argmax(ids == values.index(label))), self.sequence_ptr
        n = int(np.searchsorted(ptr, first, side="right")) - 1
        return n, first - int(ptr[n])

    def place(self, n: int, i: int = 0) -> str:
        """Where position i of sequence n was read, as `file:line`."""
        return f"{self.source}:{self._rows.line(n, i)}"

    def extract(
        self,
        extractor: _core.Extractor,
        states: _core.Vocabulary,
        arcs: _core.Vocabulary,
        *,
        grow: bool,
        n_threads: int,
    ) -> Any:
        """What the extractor of a template gives for these rows, as `_core.Extractor.extract`."""
        return self._rows.extract(extractor, self.input_columns, states, arcs, grow, n_threads)

    def __len__(self) -> int:
        return self._rows.n_sequences

    def __iter__(self) -> Iterator[list[Row]]:
        return map(self.__getitem__, range(len(self)))

    @overload
    def __getitem__(self, n: int) -> list[Row]: ...
    @overload
    def __getitem__(self, n: slice) -> list[list[Row]]: ...
    def __getitem__(self, n: int | slice) -> list[Row] | list[list[Row]]:
        if isinstance(n, slice):
            return [self[k] for k in range(*n.indices(len(self)))]
        if not -len(self) <= n < len(self):
            raise IndexError(f"sequence {n} of {len(self)}")
        return self._rows.rows(n % len(self), self.input_columns)

    def __repr__(self) -> str:
        label = "" if self.label_column is None else f", labels in column {self.label_column}"
        return f"ColumnRows({self.source!r}, {len(self):,} sequences, {self.n_columns} columns{label})"


def _complain(name: str, part: bytes, first_line: int, first_row: bytes, **options: Any) -> None:
    """Raise the error of a part of a file that the core cannot read."""
    fixed = first_row.decode() if first_line > 1 else None  # else it is in this part
    for _ in read_part(part, name, first_line=first_line, first_row=fixed, **options):
        pass
    raise FileFormatError(f"{name}: the file cannot be read")  # not reached: the part has an error
