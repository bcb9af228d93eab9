"""Sequences with their labels as they come: where from, and shard by shard."""

import os
import pickle
import re
import stat
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sized
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, TypeVar, cast

from crfkit.data import make_read_error
from crfkit.errors import ArgumentError, FileFormatError, InputError, LabelError, reword
from crfkit.features.column_rows import ColumnRows
from crfkit.features.frequent_words import WordCounter
from crfkit.features.shards import ShardCutter
from crfkit.features.wording import shorten

T = TypeVar("T")
_KEPT_AT_ONCE = 1 << 16  # positions

Pair = tuple[Any, Any]  # the positions of a sequence, and their labels


class PairSource(NamedTuple):
    """Something that gives sequences with their labels, as a file does; no shard has those of two.

    One of `read` and `rows` says how.
    """

    name: str
    read: Callable[[], Iterable[Pair]] = tuple
    identity: Any = None  # JSON value that tells whether it is the same one when a killed run goes on
    rows: Callable[[int, int], Iterable[ColumnRows]] | None = (
        None  # those of a column file, by the shard size and the number of threads: see `read_row_shards`
    )


def file_source(path: str | os.PathLike[str], rows: Callable[[int, int], Iterable[ColumnRows]]) -> PairSource:
    """A column file, which is the same one as long as its size and its time of change are."""
    try:
        found = Path(path).stat()
    except OSError as error:
        raise make_read_error(path, error) from None
    if not stat.S_ISREG(found.st_mode):
        raise FileFormatError(f"{os.fspath(path)}: not a file, expected one that can be read again")
    return PairSource(os.fspath(path), identity=[found.st_size, found.st_mtime_ns], rows=rows)


def read_row_shards(
    path: str | os.PathLike[str],
    shard_size: int,
    n_threads: int | None = None,
    *,
    label_column: int = -1,
    separator: str | None = None,
) -> Iterator[ColumnRows]:
    """The shards of a column file with labels, read by the core; the errors are those of `crfkit.data.read_pairs`."""
    for rows in ColumnRows.read_shards(path, shard_size, separator=separator, n_threads=n_threads):
        n_columns = rows.n_columns
        if n_columns < 2 or not -n_columns <= label_column < n_columns:
            raise FileFormatError(
                f"{rows.place(0)}: found {n_columns} column{'s' * (n_columns != 1)}, "
                f"expected input columns and the label in column {label_column}"
            )
        labelled = rows.with_labels(label_column)
        if (empty := labelled.find_label("")) is not None:
            raise FileFormatError(f"{rows.place(*empty)}: the label is empty, expected one for every word")
        yield labelled


def keep_pairs(source: PairSource, path: Path, counter: WordCounter) -> PairSource:
    """The pairs of a source that can be read only once, written to a file, which is removed as they are read again.

    The words of their sequences are counted.
    """
    with path.open("wb") as stream:
        for pairs, _ in cut_pairs(source.read(), _KEPT_AT_ONCE):
            counter.add([x for x, _ in pairs])
            pickle.dump(pairs, stream, pickle.HIGHEST_PROTOCOL)

    def read() -> Iterator[Pair]:
        try:
            with path.open("rb") as stream:
                while stream.peek(1):
                    yield from pickle.load(stream)
        finally:
            path.unlink()

    return source._replace(read=read)


def mark_last(items: Iterable[T]) -> Iterator[tuple[T, bool]]:
    """The items, and whether each is the last one."""
    some, held = False, None
    for item in items:
        if some:
            yield cast(T, held), False
        some, held = True, item
    if some:
        yield cast(T, held), True


@contextmanager
def number_from(first: int) -> Iterator[None]:
    """Errors in this block name sequences by their numbers in all data; the block counts from the first one on."""
    try:
        yield
    except InputError as error:
        found = re.search(r"\bsequence ([0-9]+)", str(error))
        if found is None or not first:
            raise
        text = f"{error}"
        number = int(found[1]) + first
        raise reword(error, f"{text[: found.start(1)]}{number}{text[found.end(1) :]}") from None


def cut_pairs(pairs: Iterable[Any], shard_size: int) -> Iterator[tuple[list[Pair], bool]]:
    """The sequences of each shard, and whether it is the last one."""
    cutter = ShardCutter(shard_size)
    chunk: list[Pair] = []
    for n, pair in enumerate(pairs):
        if isinstance(pair, str | bytes | Mapping) or not isinstance(pair, Collection) or len(pair) != 2:
            length = f" of length {len(pair)}" if isinstance(pair, Sized) else ""
            raise ArgumentError(
                f"item {n} is of type {type(pair).__name__}{length}, expected a pair: a sequence and its labels"
            )
        given: list[Any] = [list(part) if isinstance(part, Iterator) else part for part in pair]
        x, y = given
        if not isinstance(y, Sized):
            raise LabelError(f"item {n}: the labels are {shorten(y)}, expected a list of labels")
        if cutter.begins(len(y)):
            yield chunk, False
            chunk = []
        chunk.append((x, y))
    if chunk:
        yield chunk, True
