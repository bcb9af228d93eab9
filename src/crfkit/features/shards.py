"""How a data set is cut into shards: whole sequences, consecutive, by the data alone.

The loss of a data set is the sum of the losses of its shards, in the order of `crfkit.objective.add_in_tree`. So its bits
depend on the shards, and never on threads, on machines or on where the data lie.
"""

from collections.abc import Iterable

import numpy as np

from crfkit.arrays import Int64s

SHARD_SIZE = 1 << 20
"""Positions that a shard has at most, unless a single sequence is longer, where nothing else is asked for."""


class ShardCutter:
    """Cuts sequences as they come, by their lengths: a shard ends before the sequence that it has no place for."""

    def __init__(self, shard_size: int = SHARD_SIZE) -> None:
        self.shard_size = shard_size
        self._filled = 0  # positions of the shard that is being filled
        self._some = False  # whether it has sequences

    def begins(self, length: int) -> bool:
        """Whether a sequence of this length, which comes next, begins another shard."""
        new = self._some and self._filled + length > self.shard_size
        self._filled = length if new else self._filled + length
        self._some = True
        return new

    def break_here(self) -> None:
        """The next sequence begins a shard, as the first one of a file does."""
        if self._some:
            self._filled = self.shard_size + 1


def cut_shards(sequence_ptr: Int64s, shard_size: int = SHARD_SIZE, file_starts: Iterable[int] = ()) -> Int64s:
    """The first sequence of each shard, and N, [shards + 1]; none spans two of the files that begin at `file_starts`.

    There is always one shard at least.

    >>> cut_shards(np.array([0, 3, 5, 9, 10]), 5)
    array([0, 2, 4])
    """
    cutter, ptr, breaks = ShardCutter(shard_size), [0], set(file_starts)
    lengths = np.diff(sequence_ptr)
    if not breaks and int(sequence_ptr[-1]) <= shard_size:
        return np.array([0, len(lengths)])
    for n, length in enumerate(lengths.tolist()):
        if n in breaks:
            cutter.break_here()
        if cutter.begins(length):
            ptr.append(n)
    return np.array([*ptr, len(lengths)])
