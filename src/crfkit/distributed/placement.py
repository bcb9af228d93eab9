"""Which worker has which shards, and how their sums are added.

The order of additions is a fixed binary tree, whoever computes what:

    sum[0, n) = sum[0, m) + sum[m, n)        m: half of n, rounded up

So workers of equal speed, of which there are 2^k, have one node of the tree each.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate, pairwise
from typing import NamedTuple

Slot = tuple[str, int]  # the address of a worker, and the number of one of its threads
TOLERANCE = (
    0.02  # of the share of a worker: so much more may it have where a cut is moved to where the tree has one
)


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

    @property
    def worker(self) -> str:
        """Who gives its sum: the worker of its first shard."""
        return self.children[0].worker if self.slot is None else self.slot[0]

    def split(self, n_parts: int) -> list[Node]:
        """Nodes that it is the sum of, at most so many: those with the most shards are split as far as that goes."""
        parts = [self]
        while len(parts) < n_parts and any(part.children for part in parts):
            largest = max((part for part in parts if part.children), key=lambda part: part.end - part.begin)
            i = parts.index(largest)
            parts[i : i + 1] = largest.children
        return parts


def sum_tree(owners: Sequence[Slot]) -> Node:
    """The tree over shards, of which slot `owners[i]` has shard i; shards of one slot are one leaf where the tree allows."""
    return _subtree(owners, 0, len(owners))


def _middle(begin: int, end: int) -> int:
    return begin + (end - begin + 1) // 2


def _subtree(owners: Sequence[Slot], begin: int, end: int) -> Node:
    if all(owners[i] == owners[begin] for i in range(begin + 1, end)):
        return Node(begin, end, owners[begin])
    middle = _middle(begin, end)
    return Node(begin, end, None, (_subtree(owners, begin, middle), _subtree(owners, middle, end)))


def _depth(cut: int, n_shards: int) -> int:
    """How deep in the tree the node is whose halves a cut before this shard separates."""
    begin, end, depth = 0, n_shards, 0
    while end - begin > 1 and cut != (middle := _middle(begin, end)):
        begin, end = (begin, middle) if cut < middle else (middle, end)
        depth += 1
    return depth


def assign(
    costs: Sequence[float], threads: Mapping[str, int], owners: Mapping[int, str]
) -> dict[int, str]:  # shard → worker
    """Shards to workers, in proportion to their threads; `owners` keep theirs as far as that is balanced.

    Runs of neighbouring shards go to one worker, so that most of their sums are added there.
    """
    if not owners:
        parts = _cut(range(len(costs)), costs, list(threads.values()))
        return {shard: worker for worker, part in zip(threads, parts, strict=True) for shard in part}
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


def _cut(shards: Sequence[int], costs: Sequence[float], shares: Sequence[float]) -> list[Sequence[int]]:
    """Ascending shards in consecutive parts of costs in proportion to `shares`, cut where the tree is, if that is near.

    No part then takes longer, by more than `TOLERANCE`, than the longest one of the cuts that are nearest to the shares: a
    pass ends with the longest part, and every further leaf of the tree in a part costs a vector and an addition.
    """
    ends = [0.0, *accumulate(costs[shard] for shard in shards)]
    per_share = ends[-1] / sum(shares)
    targets = [before * per_share for before in accumulate(shares)]
    nearest = [0, *(_nearest(ends, target) for target in targets[:-1]), len(shards)]
    loads = ((ends[b] - ends[a]) / share for (a, b), share in zip(pairwise(nearest), shares, strict=True))
    longest = (1 + TOLERANCE) * max(loads)  # of a part, for each share
    lowest = [len(shards)]  # cuts, from the last one: so few shards may be before it
    for share in reversed(shares[1:]):
        lowest.append(bisect_left(ends, ends[lowest[-1]] - longest * share))
    largest = max((costs[shard] for shard in shards), default=0.0)
    cuts = [0]
    for target, share, low in zip(targets[:-1], shares, reversed(lowest[1:]), strict=False):
        tolerance = max(largest, TOLERANCE * share * per_share)
        first = max(bisect_left(ends, target - tolerance), low, cuts[-1])
        last = min(target + tolerance, ends[cuts[-1]] + longest * share)
        near = range(first, bisect_right(ends, last)) or [max(low, cuts[-1])]
        cuts.append(min(near, key=lambda i: (_cut_depth(shards, i, len(costs)), abs(ends[i] - target))))
    return [shards[begin:end] for begin, end in pairwise([*cuts, len(shards)])]


def _nearest(ends: Sequence[float], target: float) -> int:
    """The cut whose costs before it are nearest to the target."""
    after = bisect_left(ends, target)
    return min(range(max(after - 1, 0), min(after + 1, len(ends))), key=lambda i: abs(ends[i] - target))


def _cut_depth(shards: Sequence[int], i: int, n_shards: int) -> int:
    return _depth(shards[i] if i < len(shards) else shards[-1] + 1, n_shards)


def slots_of(placed: Mapping[int, str], costs: Sequence[float], threads: Mapping[str, int]) -> list[Slot]:
    """The slot of each shard: a worker's shards, in order, in as many parts as it has threads."""
    shards: dict[str, list[int]] = {worker: [] for worker in threads}
    for shard in range(len(costs)):
        shards[placed[shard]].append(shard)
    slots: dict[int, Slot] = {}
    for worker, mine in shards.items():
        parts = _cut(mine, costs, [1.0] * threads[worker]) if mine else []
        slots.update((shard, (worker, i)) for i, part in enumerate(parts) for shard in part)
    return [slots[shard] for shard in range(len(costs))]
