"""Where the shards of training data come from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from crfkit.data import open_dataset
from crfkit.features import Encoder
from crfkit.models import (
    AS_STORED,
    FeaturePotentials,
    Shard,
    ShardReading,
    StoredData,
    TrainingShards,
    open_shard,
)
from crfkit.objective import Loss


class ShardContext(NamedTuple):
    """What all shards of a data set have in common."""

    potentials: FeaturePotentials  # where the weights are
    reading: ShardReading = AS_STORED

    @classmethod
    def of(cls, potentials: FeaturePotentials, reading: ShardReading = AS_STORED) -> ShardContext:
        """Without the names of features: shards have ids."""
        return cls(replace(potentials, encoder=Encoder()), reading)


@dataclass(frozen=True)
class ShardRecipe:
    """The data of one shard, of which a worker makes its loss."""

    shard: Shard
    n_shards: int

    def __call__(self, context: ShardContext, n_threads: int) -> tuple[Loss, int]:
        """The loss, and the bytes of the data."""
        loss = context.potentials.shard_loss(*self.shard, n_threads, self.n_shards)
        return loss, count_bytes(self.shard)


@dataclass(frozen=True)
class ArraysRecipe:
    """The same of the arrays of a shard."""

    name: str
    arrays: dict[str, Any]
    n_shards: int

    def __call__(self, context: ShardContext, n_threads: int) -> tuple[Loss, int]:
        """The loss, and the bytes of the data."""
        shard = open_shard(self.name, self.arrays, context.reading)
        return ShardRecipe(shard, self.n_shards)(context, n_threads)


@dataclass(frozen=True)
class StoredRecipe:
    """A shard of an encoded data set, which a worker reads."""

    path: Path
    shard: int

    def __call__(self, context: ShardContext, n_threads: int) -> tuple[Loss, int]:
        """The loss, and the bytes of the data."""
        dataset = open_dataset(self.path)
        shard = StoredData(dataset, context.reading).shard(self.shard)
        return ShardRecipe(shard, dataset.n_shards)(context, n_threads)


class StoredShards:
    """The shards of an encoded data set that all workers can read: a `ShardSource`."""

    def __init__(self, potentials: FeaturePotentials, stored: StoredData) -> None:
        self.context = ShardContext.of(potentials, stored.reading)
        self._path = stored.dataset.path.absolute()
        shards = stored.dataset.head["shards"]
        self.costs: Sequence[float] = [max(shard["n_positions"], 1) for shard in shards]

    def recipe(self, shard: int) -> StoredRecipe:
        """Where the data of a shard are."""
        return StoredRecipe(self._path, shard)

    def release(self) -> None:
        """Workers read their shards themselves."""


class ClientShards:
    """The shards of data that the client has: a `ShardSource`."""

    def __init__(self, potentials: FeaturePotentials, sharded: TrainingShards) -> None:
        self.context = ShardContext.of(potentials)
        self._shards = list(
            sharded.shards(with_inputs=potentials.reads_inputs)
        )  # views, or parts of mapped files
        self.costs: Sequence[float] = [max(shard.dataset.n_positions, 1) for shard in self._shards]

    def recipe(self, shard: int) -> ShardRecipe:
        """The data of a shard."""
        return ShardRecipe(self._shards[shard], len(self._shards))

    def release(self) -> None:
        """The client keeps all of them."""


def count_bytes(thing: Any) -> int:
    """The bytes of all arrays in a nest of tuples, dicts and data classes."""
    if isinstance(thing, np.ndarray):
        return thing.nbytes
    if isinstance(thing, tuple):
        return sum(map(count_bytes, thing))
    if isinstance(thing, dict):
        return sum(map(count_bytes, thing.values()))
    if is_dataclass(thing):
        return sum(count_bytes(getattr(thing, field.name)) for field in fields(thing))
    return 0
