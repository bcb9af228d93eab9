"""Encoded data sets in the memory of workers.

1. Workers read the parts (files, partitions) and encode the shards of each, with ids of their own. Shards stay there.
2. The client gets the names of features and labels, and joins them in the order of the parts: ids are those of one process.
3. Workers give the shards these ids, find which weights they call for, and make their losses.

Then shards are forgotten. Those of workers that leave are made again, from the parts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, overload

from crfkit.data import EncodedDataset
from crfkit.distributed.cluster import BAD, Cluster
from crfkit.distributed.encoding import (
    Arrays,
    apply,
    check_files,
    describe,
    encode,
    get,
    make_recipe,
    name_part,
    reading_of,
    renumber,
    summarize,
)
from crfkit.distributed.sources import ShardContext
from crfkit.errors import EmptyDataError, ShapeError
from crfkit.features import EncodingSettings, JointParts, join_parts, make_head
from crfkit.models import AS_STORED, FeaturePotentials, ShardReading
from distributed import Future

Place = tuple[int, int]  # of a shard: the number of its part, and its number there


class WorkerDataset(EncodedDataset):
    """An encoded data set whose shards workers have; the client has the names of its features."""

    def __init__(self, cluster: Cluster, parts: Sequence[Any], settings: EncodingSettings) -> None:
        check_files(cluster, parts)
        self._cluster, self._parts = cluster, list(parts)
        self._encoding = replace(settings, reading=reading_of(cluster, parts))
        self._encoded: dict[int, Future] = {}
        self._shards: dict[int, Future] = {}
        self._sent: Future | None = None  # self._joint
        found = list(cluster.map_tasks(summarize, _Lazily(len(parts), lambda i: (self._encode(i),))))
        self._places: list[Place] = [(i, k) for i, own in enumerate(found) for k in range(len(own))]
        self._check([found[i][k].metadata["n_columns"] for i, k in self._places])
        known = join_parts(lambda: (part for own in found for part in own), self._encoding)
        self._joint = JointParts(known)
        facts = list(cluster.map_tasks(describe, _Lazily(len(self._places), lambda i: (self.future(i),))))
        self._encoded.clear()
        super().__init__(Path("data of workers"), make_head(known, facts, settings.shard_size))

    def _check(self, n_columns: Sequence[int | None]) -> None:
        """There must be sequences, with equally many columns."""
        if not n_columns:
            raise EmptyDataError("there is no sequence to encode, expected at least one")
        expected = next((n for n in n_columns if n is not None), None)  # None: sequences without a row
        for (i, _), n in zip(self._places, n_columns, strict=True):
            if n not in (None, expected):
                name = name_part(i, self._parts[i])
                raise ShapeError(f"{name}: rows have {n} columns, expected {expected} as before")

    def _encode(self, i: int) -> Future:
        """The shards of a part, as workers encode them."""
        future = self._encoded.get(i)
        if future is None or future.status in BAD:
            part, topic = self._parts[i], self._cluster.topic
            future = self._cluster.submit(encode, part, self._encoding, name_part(i, part), topic)
            self._encoded[i] = future
        return future

    def future(self, i: int) -> Future:
        """The arrays of a shard, on a worker."""
        future = self._shards.get(i)
        if future is None or future.status in BAD:
            if self._sent is None or self._sent.status in BAD:
                self._sent = self._cluster.send(self._joint, next(iter(self._cluster.workers())))
            part, number = self._places[i]
            future = self._cluster.submit(renumber, self._encode(part), number, self._sent)
            self._shards[i] = future
        return future

    def name(self, i: int) -> str:
        """Of a shard, for people."""
        part, number = self._places[i]
        return f"{name_part(part, self._parts[part])}, shard {number}"

    def release(self) -> None:
        """Workers may forget the shards; they are made again when they are asked for."""
        self._encoded.clear()
        self._shards.clear()
        self._sent = None

    def shard(self, i: int) -> Arrays:
        """The arrays of shard i, from its worker."""
        (arrays,) = self._cluster.map_tasks(get, _Lazily(1, lambda _: (self.future(i),)))
        return dict(arrays)

    def expect(self, i: int) -> None:
        """Workers have all of them already."""

    def map_shards(self, function: Callable[[str, Arrays], Any]) -> Iterator[Any]:
        """What a function gives for the name and the arrays of each shard, in order, on the workers."""
        arguments = _Lazily(self.n_shards, lambda i: (self.name(i), self.future(i)))
        return self._cluster.map_tasks(apply, arguments, shared=function)

    def vocabulary(self) -> Arrays:
        """The names of the features."""
        return self._joint.known.arrays


class WorkerShards:
    """The shards of a `WorkerDataset`: a `ShardSource`."""

    def __init__(
        self,
        potentials: FeaturePotentials,
        dataset: WorkerDataset,
        cluster: Cluster,
        reading: ShardReading = AS_STORED,
    ) -> None:
        self.context = ShardContext.of(potentials, reading)
        self._dataset, self._cluster = dataset, cluster
        self.costs: Sequence[float] = [max(shard["n_positions"], 1) for shard in dataset.head["shards"]]

    def recipe(self, shard: int) -> Future:
        """The data of a shard, where they are."""
        data = self._dataset
        return self._cluster.submit(make_recipe, data.name(shard), data.future(shard), data.n_shards)

    def release(self) -> None:
        """All shards are loaded."""
        self._dataset.release()


class _Lazily(Sequence[tuple[Any, ...]]):
    """Arguments of tasks that are made when a task is submitted, again where workers were lost."""

    def __init__(self, n: int, make: Callable[[int], tuple[Any, ...]]) -> None:
        self._n, self._make = n, make

    def __len__(self) -> int:
        return self._n

    @overload
    def __getitem__(self, i: int) -> tuple[Any, ...]: ...
    @overload
    def __getitem__(self, i: slice) -> Sequence[tuple[Any, ...]]: ...
    def __getitem__(self, i: int | slice) -> Any:
        return [self._make(k) for k in range(*i.indices(self._n))] if isinstance(i, slice) else self._make(i)
