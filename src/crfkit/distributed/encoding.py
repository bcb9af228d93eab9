"""Training data that workers read and encode: column files, dask bags, delayed objects."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from dask.bag import Bag
from dask.delayed import Delayed

from crfkit.data import ArrayFile, EncodedDataset, read_pairs
from crfkit.distributed.cluster import Cluster
from crfkit.distributed.errors import MissingDataError
from crfkit.errors import MissingFileError
from crfkit.features import EncodingSettings, PairSource, cut_pairs, encode_part, encode_sources
from distributed import get_worker

Pairs = list[tuple[Any, Any]]


def find_parts(X: Any) -> list[Any] | None:
    """Paths of files, or delayed lists of pairs (x, y); None where X is something else."""
    if isinstance(X, Bag):
        return list(X.to_delayed())
    if isinstance(X, Delayed):
        return [X]
    if isinstance(X, str | os.PathLike):
        return None if os.path.isdir(X) else [Path(X).absolute()]
    if isinstance(X, list | tuple) and X:
        if all(isinstance(part, Delayed) for part in X):
            return list(X)
        if all(isinstance(part, str | os.PathLike) for part in X):
            return [Path(part).absolute() for part in X]
    return None


def encode_on_workers(
    cluster: Cluster, parts: Sequence[Any], out: Path, settings: EncodingSettings
) -> EncodedDataset:
    """An encoded data set in a folder of the client; workers read the parts and give features and labels ids of their own.

    The client joins these in the order of the parts, so that ids are those of one process.
    """
    encoded = cluster.map_tasks(_encode, [(part, settings) for part in parts])
    sources = [PairSource(_name(i, part), list, None, lambda: next(encoded)) for i, part in enumerate(parts)]
    return encode_sources(sources, out, settings)


def read_on_workers(cluster: Cluster, parts: Sequence[Any]) -> Iterator[tuple[Any, Any]]:
    """The pairs of all parts, in order."""
    for pairs in cluster.map_tasks(_read, [(part,) for part in parts]):
        yield from pairs


def _name(i: int, part: Any) -> str:
    return os.fspath(part) if isinstance(part, Path) else f"part {i}"


def _read(part: Any) -> Pairs:
    """The pairs of a part, on a worker."""
    return list(_pairs(part))


def _encode(part: Any, settings: EncodingSettings) -> list[ArrayFile]:
    """The shards of a part, each with a vocabulary of its own, on a worker."""
    return [encode_part(chunk, settings) for chunk, _ in cut_pairs(_pairs(part), settings.shard_size)]


def _pairs(part: Any) -> Iterable[tuple[Any, Any]]:
    if not isinstance(part, Path):
        yield from part
        return
    try:
        yield from read_pairs(part)
    except MissingFileError as error:
        raise MissingDataError(
            f"the worker {get_worker().address} does not have a file that it is to read: {error}"
        ) from None
