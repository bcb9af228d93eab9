"""Labels of many sequences, by the workers of a cluster."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from dask.bag import Bag
from dask.delayed import Delayed

from crfkit.data import read_columns
from crfkit.distributed.cluster import Cluster
from crfkit.distributed.errors import MissingDataError
from crfkit.errors import ArgumentError, MissingFileError, ShapeError
from crfkit.models import CRF
from distributed import Client, get_worker

CHUNKS = 4  # parts of the input for each thread of the workers


def predict(client: Client, model: CRF[Any], data: Any, *, timeout: float = 60.0) -> list[list[Any]]:
    """The best labels of each sequence, in order, as `CRF.predict` gives them.

    `data` is a list of sequences; a list of paths of column files, which workers read, with or without a last column of
    labels; a dask bag of sequences; or a list of delayed objects, each a list of sequences. `timeout` as for `fit`.
    """
    if not isinstance(model, CRF):
        raise ArgumentError(f"model is of type {type(model).__name__}, expected a CRF")
    model.weights_  # noqa: B018  (an untrained model raises)
    cluster = Cluster(client, timeout)
    n_threads = sum(cluster.workers().values())
    parts = list(_cut(data, n_threads * CHUNKS))
    found = cluster.map_tasks(_predict_part, [(part,) for part in parts], shared=model)
    return [labels for part in found for labels in part]


def _cut(data: Any, n_parts: int) -> Iterator[Any]:
    """Parts of the data: lists of sequences, paths, or delayed objects."""
    if isinstance(data, Bag):
        yield from data.to_delayed()
        return
    data = [data] if isinstance(data, Delayed) else data
    if isinstance(data, str | os.PathLike):
        raise ArgumentError(f"data is {data!r}, expected a list of files: [{str(data)!r}]")
    if not isinstance(data, Sequence):
        data = list(data)
    if len(data) and all(isinstance(part, Delayed) for part in data):
        yield from data
    elif len(data) and all(isinstance(part, str | os.PathLike) for part in data):
        yield from (Path(part).absolute() for part in data)
    else:
        size = max(-(-len(data) // n_parts), 1)
        yield from (data[i : i + size] for i in range(0, len(data), size))


def _predict_part(model: CRF[Any], part: Any) -> list[list[Any]]:
    """On a worker."""
    if not isinstance(part, Path):
        return model.predict(list(part))
    try:
        return model.predict(list(_read_inputs(part, model.n_columns_)))
    except MissingFileError as error:
        raise MissingDataError(
            f"the worker {get_worker().address} does not have a file that it is to read: {error}"
        ) from None


def _read_inputs(path: Path, n_columns: int | None) -> Iterator[list[tuple[str, ...]]]:
    """The sequences of a column file, without a column of labels behind those that the model reads."""
    if n_columns is None:
        raise ArgumentError(
            "the model was trained on features made in Python, which column files do not have"
        )
    for sequence in read_columns(path):
        if len(sequence.rows[0]) not in (n_columns, n_columns + 1):
            raise ShapeError(
                f"{sequence.place(0)}: {len(sequence.rows[0])} columns, expected {n_columns}, or one more with labels"
            )
        yield [row[:n_columns] for row in sequence.rows]
