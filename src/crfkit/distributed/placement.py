"""Which worker has which shards, and how their sums are added.

The order of additions is a fixed binary tree, whoever computes what:

    sum[0, n) = sum[0, m) + sum[m, n)        m: the largest power of two below n
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate
from typing import NamedTuple

Slot = tuple[str, int]  # the address of a worker, and the number of one of its threads


class Node(NamedTuple):
    """A node of the tree of sums: shards begin, …, end − 1, of which one slot has all, or two nodes are added."""

    begin: int
    end: int
    slot: Slot | None  # None: the sum of two nodes
    children: tuple[Node, ...] = ()

    def leaves(self) -> Iterator[Node]:
        """The nodes that slots compute, in order."""
        if self.slot is not None:
            yield self
        for child in self.children:
            yield from child.leaves()


def sum_tree(owners: Sequence[Slot]) -> Node:
    """The tree over shards, of which slot `owners[i]` has shard i; shards of one slot are one leaf where the tree allows."""
    return _subtree(owners, 0, len(owners))


def _subtree(owners: Sequence[Slot], begin: int, end: int) -> Node:
    if all(owners[i] == owners[begin] for i in range(begin + 1, end)):
        return Node(begin, end, owners[begin])
    middle = begin + (1 << (end - begin - 1).bit_length() - 1)
    return Node(begin, end, None, (_subtree(owners, begin, middle), _subtree(owners, middle, end)))


def assign(
    costs: Sequence[float], threads: Mapping[str, int], owners: Mapping[int, str]
) -> dict[int, str]:  # shard → worker
    """Shards to workers, in proportion to their threads; `owners` keep theirs as far as that is balanced.

    Runs of neighbouring shards go to one worker, so that most of their sums are added there.
    """
    total = sum(costs)
    n_threads = sum(threads.values())
    share = {worker: total * n / n_threads for worker, n in threads.items()}
    placed: dict[int, str] = {}
    load = dict.fromkeys(threads, 0.0)
    for shard, worker in sorted(owners.items()):
        if worker in load and load[worker] + costs[shard] / 2 <= share[worker]:
            placed[shard] = worker
            load[worker] += costs[shard]
    free = [shard for shard in range(len(costs)) if shard not in placed]
    order = sorted(threads, key=lambda worker: _first_shard(worker, owners, len(costs)))
    for worker in order:
        while free and load[worker] + costs[free[0]] / 2 <= share[worker]:
            placed[free[0]] = worker
            load[worker] += costs[free.pop(0)]
    for shard in free:  # what rounding has left
        worker = min(order, key=lambda worker: load[worker] / threads[worker])
        placed[shard] = worker
        load[worker] += costs[shard]
    return placed


def _first_shard(worker: str, owners: Mapping[int, str], n_shards: int) -> tuple[int, str]:
    """New workers come after those that have shards."""
    return min((shard for shard, owner in owners.items() if owner == worker), default=n_shards), worker


def slots_of(placed: Mapping[int, str], costs: Sequence[float], threads: Mapping[str, int]) -> list[Slot]:
    """The slot of each shard: a worker's shards, in order, in as many parts as it has threads."""
    slots: dict[int, Slot] = {}
    for worker, n in threads.items():
        mine = [shard for shard in range(len(costs)) if placed[shard] == worker]
        total = sum(costs[shard] for shard in mine)
        before = [0.0, *accumulate(costs[shard] for shard in mine)]
        for shard, cost in zip(mine, before, strict=False):
            part = int((cost + costs[shard] / 2) * n / total) if total else 0
            slots[shard] = (worker, min(part, n - 1))
    return [slots[shard] for shard in range(len(costs))]
