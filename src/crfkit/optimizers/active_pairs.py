"""The curvature pairs of L-BFGS with an l1 penalty: kept for the weights that may move.

With l1 most weights are 0, and stay 0 as long as their pseudo-gradient is 0: what the direction says of them is not
used. So the pairs cover the active weights alone, which saves most of the time and memory that they take. A weight
that becomes active gets zeros in the older pairs, as if these said nothing of it; that is exact for the steps s,
which were 0 there, and leaves H symmetric and positive definite. Where many weights are active no more, these are
dropped: H is then that of the remaining weights.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from crfkit.optimizers.lbfgs_memory import Pairs
from crfkit.optimizers.protocols import Vector
from crfkit.optimizers.snapshot import Snapshot, SnapshotError

SLACK = 1.25  # columns there are for each one in use, so that few new weights make no copy
DROP_SHARE = 0.6  # weights are dropped where no more than this share of them is left


class ActivePairs:
    """Pairs (s, y) of C ≤ D weights: column j of them is weight ids[j]; as `Pairs` to its user."""

    def __init__(self, memory: int, n_weights: int, n_threads: int) -> None:
        self._memory, self._n_threads = memory, n_threads
        self._ids = np.zeros(0, np.int64)  # [C]
        self._is_active = np.zeros(n_weights, np.bool_)  # [D]
        self._pairs = Pairs(memory, 0, n_threads, is_half=False)
        self._last: tuple[Vector, Vector] | None = None  # the last v, and its columns

    def __len__(self) -> int:
        return len(self._pairs)

    def clear(self) -> None:
        """Forgets all pairs."""
        self._pairs.clear()

    def add(self, x: Vector, x_before: Vector, g: Vector, g_before: Vector, v: Vector) -> bool:
        """Puts s = x − x_before, y = g − g_before in place of the oldest pair; False when they are of no use.

        v is the pseudo-gradient that the next direction will be asked for.
        """
        active = (v != 0.0) | (x != 0.0)  # [D]
        self._drop(active)
        self._cover(active | (x_before != 0.0))
        is_useful = self._pairs.add(x, x_before, g, g_before, v, self._ids)
        columns = self._pairs.last_v
        self._last = None if columns is None else (v, columns)
        return is_useful

    def direction(self, v: Vector) -> tuple[Vector, float]:
        """d = −H v, [D], 0 for weights that are not active, and d·v."""
        return self._pairs.direction(self._columns(v), self._ids, len(v))

    def snapshot(self, v: Vector) -> tuple[list[int], dict[str, npt.NDArray[Any]]]:
        """The slots in use and all numbers, for `restore`; v is the pseudo-gradient that comes next."""
        order, arrays = self._pairs.snapshot(self._columns(v))
        return order, {**arrays, "pairs.ids": self._ids}

    def restore(self, snapshot: Snapshot, v: Vector) -> None:
        """Takes the pairs of a snapshot, so that the next direction has the same bits."""
        ids, n_weights = snapshot.any_array("pairs.ids", np.int64), len(self._is_active)
        shape = snapshot.any_array("pairs.rows", np.float32).shape
        if ids.ndim != 1 or len(shape) != 2 or not len(ids) <= shape[1] <= n_columns(n_weights):
            raise SnapshotError(f"it has pairs of {ids.size} of {n_weights} weights in rows {list(shape)}")
        if len(ids) and not (ids.min() >= 0 and ids.max() < n_weights and len(np.unique(ids)) == len(ids)):
            raise SnapshotError(f"array 'pairs.ids' does not number {n_weights} weights")
        self._is_active[:] = False
        self._is_active[ids] = True
        if (v[~self._is_active] != 0.0).any():
            raise SnapshotError("array 'pairs.ids' lacks weights that are active")
        self._ids = ids
        self._pairs = Pairs(self._memory, shape[1], self._n_threads, is_half=False)
        self._last = (v, self._gather(v))
        self._pairs.restore(snapshot, self._last[1])

    def _columns(self, v: Vector) -> Vector:
        """v in the columns of the pairs; the array of before where v is that of before."""
        if self._last is None or self._last[0] is not v:
            self._cover(v != 0.0)
            self._last = (v, self._gather(v))
        return self._last[1]

    def _gather(self, array: Vector) -> Vector:
        """The numbers [width] of the active weights, and zeros behind them."""
        columns = np.zeros(self._pairs.n_weights)
        np.take(array, self._ids, out=columns[: len(self._ids)], mode="clip")  # "raise" would take a copy
        return columns

    def _cover(self, needed: npt.NDArray[np.bool_]) -> None:
        """Makes these weights [D] active, beside those that are."""
        new = np.flatnonzero(needed & ~self._is_active)
        if not len(new):
            return
        self._is_active[new] = True
        self._ids = np.concatenate([self._ids, new])
        if len(self._ids) > self._pairs.n_weights:
            self._pairs.widen(n_columns(len(self._ids)))

    def _drop(self, active: npt.NDArray[np.bool_]) -> None:
        """Forgets weights that are active no more, where these are many."""
        if np.count_nonzero(active) > DROP_SHARE * len(self._ids):
            return
        kept = np.flatnonzero(active[self._ids])
        self._is_active[:] = False
        self._ids = self._ids[kept]
        self._is_active[self._ids] = True
        self._pairs.select(kept)


def n_columns(n_active: int) -> int:
    """How many columns are made for so many active weights."""
    return int(SLACK * n_active) + 64
