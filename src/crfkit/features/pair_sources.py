"""Sequences with their labels as they come: where from, and shard by shard."""

import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from crfkit.data import ArrayFile, make_read_error
from crfkit.errors import ArgumentError
from crfkit.features.shards import ShardCutter

Pair = tuple[Any, Any]  # the positions of a sequence, and their labels


class PairSource(NamedTuple):
    """Something that gives sequences with their labels, as a file does; no shard has those of two."""

    name: str
    read: Callable[[], Iterable[Pair]]
    identity: Any = None  # JSON value that tells whether it is the same one when a killed run goes on
    parts: Callable[[], Iterable[ArrayFile]] | None = (
        None  # its sequences as another machine has encoded them
    )


def file_source(path: str | os.PathLike[str], read: Callable[[], Iterable[Pair]]) -> PairSource:
    """A file, which is the same one as long as its size and its time of change are."""
    try:
        found = Path(path).stat()
    except OSError as error:
        raise make_read_error(path, error) from None
    return PairSource(os.fspath(path), read, [found.st_size, found.st_mtime_ns])


def cut_pairs(pairs: Iterable[Pair], shard_size: int) -> Iterator[tuple[list[Pair], bool]]:
    """The sequences of each shard, and whether it is the last one."""
    cutter = ShardCutter(shard_size)
    chunk: list[Pair] = []
    for n, pair in enumerate(pairs):
        try:
            x, y = pair
            x, y = (list(part) if isinstance(part, Iterator) else part for part in (x, y))
            length = len(y)
        except (TypeError, ValueError):
            raise ArgumentError(
                f"item {n} is of type {type(pair).__name__}, expected a pair: a sequence and its labels"
            ) from None
        if cutter.begins(length):
            yield chunk, False
            chunk = []
        chunk.append((x, y))
    if chunk:
        yield chunk, True
