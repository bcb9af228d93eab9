"""Training data that workers read: column files, dask bags, delayed objects. What runs on workers, and what they are."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any, NoReturn

from dask.bag import Bag
from dask.delayed import Delayed

from crfkit.data import ArrayFile, find_separator, read_pairs
from crfkit.distributed.cluster import Cluster
from crfkit.distributed.errors import MissingDataError
from crfkit.distributed.sources import ArraysRecipe
from crfkit.distributed.worker import send_message
from crfkit.errors import MissingFileError
from crfkit.features import (
    PART_NAMES,
    EncodingSettings,
    JointParts,
    cut_pairs,
    describe_shard,
    encode_part,
    read_row_shards,
)
from distributed import get_worker

Pairs = list[tuple[Any, Any]]
Arrays = dict[str, Any]


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


def name_part(i: int, part: Any) -> str:
    """For people."""
    return os.fspath(part) if isinstance(part, Path) else f"part {i}"


def check_files(cluster: Cluster, parts: Sequence[Any]) -> None:
    """MissingDataError, where a worker does not have one of the files."""
    for worker, path in sorted(find_missing(cluster, parts).items()):
        if path is not None:
            _raise_missing(worker, f"{path}: there is no such file")


def find_missing(cluster: Cluster, parts: Sequence[Any]) -> dict[str, Path | None]:
    """For each worker, the first of the files that it does not have; None where it has all."""
    paths = [part for part in parts if isinstance(part, Path)]
    found = cluster.run_on_workers(partial(_find_missing, paths), cluster.workers())
    return {worker: path if isinstance(path, Path) else None for worker, path in found.items()}


def reading_of(cluster: Cluster, parts: Sequence[Any]) -> dict[str, Any] | None:
    """How the files are read, as a model of them says it; None where the parts are no files."""
    if not isinstance(parts[0], Path):
        return None
    (separator,) = cluster.map_tasks(find_separator, [(parts[0],)])
    return {"label_column": -1, "separator": separator}


def read_on_workers(cluster: Cluster, parts: Sequence[Any]) -> Iterator[tuple[Any, Any]]:
    """The pairs of all parts, in order."""
    for pairs in cluster.map_tasks(_read, [(part,) for part in parts]):
        yield from pairs


def _raise_missing(worker: str, what: Any) -> NoReturn:
    raise MissingDataError(
        f"the worker {worker} does not have a file that it is to read: {what}; expected on every worker, at the same path"
    ) from None


def _find_missing(paths: Sequence[Path]) -> Path | None:
    return next((path for path in paths if not path.exists()), None)


def _read(part: Any) -> Pairs:
    """The pairs of a part, on a worker."""
    if not isinstance(part, Path):
        return list(part)
    try:
        return list(read_pairs(part))
    except MissingFileError as error:
        _raise_missing(get_worker().address, error)


def encode(part: Any, settings: EncodingSettings, name: str, topic: str) -> list[ArrayFile]:
    """The shards of a part, each with a vocabulary of its own, on a worker."""
    began = perf_counter()
    try:
        shards: Iterable[Any]
        if isinstance(part, Path):
            shards = read_row_shards(part, settings.shard_size, 1)
        else:
            shards = (chunk for chunk, _ in cut_pairs(part, settings.shard_size))
        encoded = [encode_part(shard, settings) for shard in shards]
    except MissingFileError as error:
        _raise_missing(get_worker().address, error)
    n_sequences = sum(shard.metadata["n_sequences"] for shard in encoded)
    text = f"encoded {name}: {n_sequences:,} sequences, in {perf_counter() - began:.2f} seconds"
    send_message(topic, logging.INFO, text)
    return encoded


def summarize(encoded: Sequence[ArrayFile]) -> list[ArrayFile]:
    """What `join_parts` is to know of the shards of a part: the names of features and labels, and which arrays there are."""
    return [
        ArrayFile(
            part.metadata,
            {name: array if name in PART_NAMES else array[:0] for name, array in part.arrays.items()},
        )
        for part in encoded
    ]


def renumber(encoded: Sequence[ArrayFile], number: int, joint: JointParts) -> Arrays:
    """A shard of a part, with the ids of all."""
    return joint.renumber(encoded[number])


def describe(arrays: Arrays) -> dict[str, int]:
    """What the head of a data set says of a shard."""
    return describe_shard(arrays)


def apply(function: Callable[[str, Arrays], Any], name: str, arrays: Arrays) -> Any:
    """What a function gives for a shard."""
    return function(name, arrays)


def get(arrays: Arrays) -> Arrays:
    """A shard itself."""
    return arrays


def make_recipe(name: str, arrays: Arrays, n_shards: int) -> ArraysRecipe:
    """What makes the loss of a shard."""
    return ArraysRecipe(name, arrays, n_shards)
