"""Which worker has which shards, and the order in which their sums are added."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from crfkit.distributed.placement import Node, assign, slots_of, sum_tree


def tree_text(begin: int, end: int) -> str:
    """The order of additions by its definition."""
    if end - begin == 1:
        return f"{begin}"
    m = -(-(end - begin) // 2)
    return f"({tree_text(begin, begin + m)}+{tree_text(begin + m, end)})"


def node_text(node: Node) -> str:
    """The same as nodes have it; a leaf adds its shards as a whole data set of so many shards does."""
    if node.slot is None:
        first, second = node.children
        return f"({node_text(first)}+{node_text(second)})"
    n = node.end - node.begin
    numbers = iter(range(node.begin, node.end))
    text = tree_text(0, n)
    return "".join(str(next(numbers)) if part.isdigit() else part for part in split_numbers(text))


def split_numbers(text: str) -> list[str]:
    parts: list[str] = []
    for character in text:
        if character.isdigit() and parts and parts[-1].isdigit():
            parts[-1] += character
        else:
            parts.append(character)
    return parts


@pytest.mark.parametrize("n", [1, 2, 3, 5, 8, 13, 31, 64, 100])
def test_sums_are_added_in_the_same_order_whoever_has_the_shards(n: int) -> None:
    random = np.random.default_rng(n)
    for n_slots in (1, 2, 3, 7):
        for sort in (True, False):
            owners = random.integers(0, n_slots, n).tolist()
            slots = [(f"w{owner}", 0) for owner in (sorted(owners) if sort else owners)]
            tree = sum_tree(slots)
            assert node_text(tree) == tree_text(0, n)
            for leaf in tree.leaves():
                assert {slots[i] for i in range(leaf.begin, leaf.end)} == {leaf.slot}
            assert [leaf.begin for leaf in tree.leaves()] == sorted(leaf.begin for leaf in tree.leaves())


def loads(placed: Mapping[int, str], costs: list[float], threads: Mapping[str, int]) -> dict[str, float]:
    return {
        worker: sum(costs[shard] for shard, owner in placed.items() if owner == worker) / n
        for worker, n in threads.items()
    }


def test_shards_are_balanced_and_contiguous() -> None:
    costs = [1.0] * 20
    placed = assign(costs, {"a": 1, "b": 1, "c": 2}, {})
    assert [placed[i] for i in range(20)] == ["a"] * 5 + ["b"] * 5 + ["c"] * 10


def test_who_leaves_is_replaced_and_who_joins_gets_a_share() -> None:
    random = np.random.default_rng(0)
    for trial in range(50):
        costs: list[float] = random.integers(50, 100, random.integers(1, 60)).astype(float).tolist()
        owners: dict[int, str] = {}
        for _ in range(6):
            names = random.choice(list("abcdef"), random.integers(1, 6), replace=False).tolist()
            threads = {name: int(random.integers(1, 4)) for name in sorted(names)}
            placed = assign(costs, threads, owners)
            assert sorted(placed) == list(range(len(costs))), trial
            assert set(placed.values()) <= set(threads)
            found = loads(placed, costs, threads)
            even = sum(costs) / sum(threads.values())
            assert max(found.values()) <= even + 1.5 * max(costs)
            again = assign(costs, threads, placed)
            moved = sum(placed[shard] != again[shard] for shard in placed)
            assert moved <= len(threads)  # no more than rounding
            owners = placed


def test_survivors_keep_their_shards() -> None:
    placed = assign([1.0] * 12, {"a": 1, "b": 1, "c": 1}, {})
    after = assign([1.0] * 12, {"a": 1, "c": 1}, placed)
    assert all(after[shard] == worker for shard, worker in placed.items() if worker != "b")


def test_threads_of_a_worker_have_equal_parts() -> None:
    costs = [1.0] * 9
    placed = dict.fromkeys(range(9), "a")
    slots: list[Any] = slots_of(placed, costs, {"a": 3})
    assert slots == [("a", i // 3) for i in range(9)]


@pytest.mark.parametrize(
    ("n_shards", "n_workers"), [(8, 2), (26, 1), (26, 2), (26, 4), (100, 4), (100, 8), (1000, 16)]
)
@pytest.mark.parametrize("last", [1.0, 0.85])  # the positions that are left for the last shard
def test_workers_of_equal_speed_have_one_node_each(n_shards: int, n_workers: int, last: float) -> None:
    threads = {f"w{i}": 1 for i in range(n_workers)}
    costs = [1.0] * (n_shards - 1) + [last]
    tree = sum_tree(slots_of(assign(costs, threads, {}), costs, threads))
    leaves = list(tree.leaves())
    assert [leaf.slot for leaf in leaves] == [(worker, 0) for worker in threads]
    assert max(leaf.end - leaf.begin for leaf in leaves) == -(-n_shards // n_workers)
    assert [part.worker for part in tree.split(4)] == list(threads)[:: max(n_workers // 4, 1)]


def test_shards_that_end_with_a_sentence_are_cut_as_equal_ones() -> None:
    random = np.random.default_rng(2)
    threads = {f"w{i}": 1 for i in range(4)}
    for _ in range(100):
        costs: list[float] = [*(65536.0 - random.integers(0, 60, 25)), 55416.0 + 700]
        tree = sum_tree(slots_of(assign(costs, threads, {}), costs, threads))
        assert [(leaf.begin, leaf.end) for leaf in tree.leaves()] == [(0, 7), (7, 13), (13, 20), (20, 26)]


def test_no_part_is_longer_than_with_the_nearest_cuts() -> None:
    random = np.random.default_rng(1)
    for trial in range(200):
        costs: list[float] = random.integers(1, 100, random.integers(1, 60)).astype(float).tolist()
        threads = {f"w{i}": int(random.integers(1, 4)) for i in range(random.integers(1, 6))}
        even, ends = sum(costs) / sum(threads.values()), np.cumsum([0.0, *costs])
        targets = even * np.cumsum(list(threads.values()))[:-1]
        cuts = [0, *(int(np.argmin(abs(ends - target))) for target in targets), len(costs)]
        nearest = [(ends[b] - ends[a]) / n for a, b, n in zip(cuts, cuts[1:], threads.values(), strict=False)]
        placed = assign(costs, threads, {})
        found = loads(placed, costs, threads)
        assert max(found.values()) <= 1.02 * max(nearest) * (1 + 1e-6), trial
        assert list(placed.values()) == sorted(placed.values())


def test_a_node_is_split_where_most_shards_are() -> None:
    tree = sum_tree([("a", 0), ("b", 0), ("c", 0), ("c", 0), ("d", 0)])
    assert [(part.begin, part.end) for part in tree.split(3)] == [(0, 2), (2, 3), (3, 5)]
    assert [(part.begin, part.end) for part in tree.split(9)] == [(0, 1), (1, 2), (2, 3), (3, 4), (4, 5)]
    assert [part.worker for part in tree.split(2)] == ["a", "c"]
    assert tree.split(1) == [tree]
