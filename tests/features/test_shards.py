"""Shards: how data sets are cut."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from crfkit.features import Encoder, ShardCutter, cut_shards


def plainly(lengths: list[int], size: int, files: list[int]) -> list[list[int]]:
    """The sequences of each shard."""
    shards: list[list[int]] = [[]]
    for n, length in enumerate(lengths):
        filled = sum(lengths[m] for m in shards[-1])
        if shards[-1] and (filled + length > size or n in files):
            shards.append([])
        shards[-1].append(n)
    return shards


@pytest.mark.parametrize("seed", range(20))
def test_shards_are_consecutive_whole_sequences_of_one_file(seed: int) -> None:
    random = np.random.default_rng(seed)
    lengths = random.integers(0, 7, random.integers(0, 30)).tolist()
    files = sorted({0, *random.integers(0, len(lengths) + 1, 2 * (seed % 2)).tolist()})
    size = int(random.integers(1, 20))
    ptr = cut_shards(np.cumsum([0, *lengths]), size, files if seed % 2 else ())
    found = [list(range(first, last)) for first, last in pairwise(ptr)]
    assert found == plainly(lengths, size, files if seed % 2 else [])


def test_what_fits_is_one_shard() -> None:
    assert cut_shards(np.array([0, 3, 5])).tolist() == [0, 2]
    assert cut_shards(np.array([0])).tolist() == [0, 0]
    cutter = ShardCutter(3)
    assert [cutter.begins(length) for length in (9, 0, 3, 0, 1)] == [False, True, False, False, True]


def test_a_part_of_a_data_set_is_the_data_set_of_a_part() -> None:
    X = [[{"w": f"{t % 3}", "v": 0.5 * t, "d": np.arange(2.0) + t} for t in range(n)] for n in (2, 0, 3, 1)]
    encoder = Encoder()
    whole = encoder.fit_encode(X)
    part, expected = whole.between(1, 3), encoder.encode(X[1:3])
    assert part.sequence_ptr.tolist() == expected.sequence_ptr.tolist()
    assert part.dense["d"].tolist() == expected.dense["d"].tolist()
    for found, other in zip(part.states, expected.states, strict=True):
        assert np.asarray(found).tolist() == np.asarray(other).tolist()
