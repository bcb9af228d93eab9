"""Training data in shards, and the loss of each."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import NamedTuple, Protocol

from crfkit.arrays import Float64s, Int64s
from crfkit.features import Annotation, Dataset, cut_shards
from crfkit.models.potentials import FeaturePotentials, TrainingData
from crfkit.objective import Loss, sum_losses


class Shard(NamedTuple):
    """Some consecutive sequences in numbers."""

    dataset: Dataset
    annotation: Annotation
    sample_weight: Float64s | None  # [N]


class TrainingShards(Protocol):
    """Training data in shards, wherever they are."""

    @property
    def shard_ptr(self) -> Sequence[int] | Int64s:
        """The first sequence of each shard, and N."""

    @property
    def n_shards(self) -> int:
        """At least 1."""

    def shards(self, *, with_inputs: bool = False) -> Iterator[Shard]:
        """Shard after shard; `with_inputs` for potentials that look at the inputs themselves."""

    def loss(self, potentials: FeaturePotentials, n_threads: int, /) -> Loss:
        """The sum of the losses of all shards."""


class ShardedData(NamedTuple):
    """Training data in memory, and where it is cut."""

    data: TrainingData
    sample_weight: Float64s | None  # [N]
    shard_ptr: Int64s  # the first sequence of each shard, and N

    @classmethod
    def cut(cls, data: TrainingData, sample_weight: Float64s | None, shard_size: int) -> "ShardedData":
        """Shards of at most so many positions."""
        return cls(data, sample_weight, cut_shards(data.dataset.sequence_ptr, shard_size))

    @property
    def n_shards(self) -> int:
        """At least 1."""
        return len(self.shard_ptr) - 1

    def shards(self, *, with_inputs: bool = False) -> Iterator[Shard]:
        """The shards, as views of the data; `with_inputs` for potentials that look at the inputs themselves."""
        dataset, weight = self.data.dataset, self.sample_weight
        if with_inputs:
            dataset = replace(dataset, inputs=self.data.inputs)
        for first, last in pairwise(self.shard_ptr.tolist()):
            begin, end = dataset.sequence_ptr[[first, last]].tolist()
            yield Shard(
                dataset.between(first, last),
                self.data.annotation.between(begin, end),
                None if weight is None else weight[first:last],
            )

    def loss(self, potentials: FeaturePotentials, n_threads: int) -> Loss:
        """The sum of the losses of all shards."""
        if self.n_shards == 1:
            return potentials.training_loss(self.data, self.sample_weight, n_threads)
        shards = self.shards(with_inputs=potentials.reads_inputs)
        return sum_losses([potentials.shard_loss(*shard, n_threads, self.n_shards) for shard in shards])
