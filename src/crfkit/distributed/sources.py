"""Where the shards of training data come from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from crfkit.data import EncodedDataset, open_dataset
from crfkit.features import Encoder
from crfkit.models import FeaturePotentials, Shard, StoredData, TrainingShards
from crfkit.objective import Loss


@dataclass(frozen=True)
class ShardRecipe:
    """The data of one shard, of which a worker makes its loss."""

    shard: Shard
    n_shards: int

    def __call__(self, context: FeaturePotentials, n_threads: int) -> tuple[Loss, int]:
        """The loss, and the bytes of the data."""
        return context.shard_loss(*self.shard, n_threads, self.n_shards), count_bytes(self.shard)


@dataclass(frozen=True)
class StoredRecipe:
    """A shard of an encoded data set, which a worker reads."""

    path: Path
    shard: int

    def __call__(self, context: FeaturePotentials, n_threads: int) -> tuple[Loss, int]:
        """The loss, and the bytes of the data."""
        dataset = open_dataset(self.path)
        shard = StoredData(dataset).shard(self.shard)
        return context.shard_loss(*shard, n_threads, dataset.n_shards), count_bytes(shard)


class StoredShards:
    """The shards of an encoded data set that all workers can read: a `ShardSource`."""

    def __init__(self, potentials: FeaturePotentials, dataset: EncodedDataset) -> None:
        self.context = replace(potentials, encoder=Encoder())
        self._path = dataset.path.absolute()
        self.costs: Sequence[float] = [max(shard["n_positions"], 1) for shard in dataset.head["shards"]]

    def recipe(self, shard: int) -> StoredRecipe:
        """Where the data of a shard are."""
        return StoredRecipe(self._path, shard)

    def release(self) -> None:
        """Workers read their shards themselves."""


class ClientShards:
    """The shards of data that the client has: a `ShardSource`."""

    def __init__(self, potentials: FeaturePotentials, sharded: TrainingShards) -> None:
        self.context = replace(potentials, encoder=Encoder())  # shards have ids of features, not names
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
