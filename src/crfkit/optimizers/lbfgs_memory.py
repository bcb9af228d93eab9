"""The curvature pairs of L-BFGS and the direction they give.

A step s = x₁ − x₀ changed the gradient by y = g₁ − g₀, so the inverse Hessian H maps y to s, about. The last
m pairs define H (Nocedal 1980). Written with vectors, the usual two loops for H v go through memory 4m times.
But all they need are the products among the pairs and with v (Byrd, Nocedal and Schnabel 1994): so one pass
takes the products, the loops run over m numbers, and a second pass adds up the direction.

The pairs are stored in single precision, and in bfloat16 where there are many weights, since what these passes wait for
is memory then. All products are those of the rounded pairs, so H stays symmetric and positive definite, and as many
iterations are needed as in double precision. With bfloat16 two runs whose gradients differ in their last bits part sooner,
and end at other points within the tolerance.
"""

from math import isfinite, sqrt
from typing import Any

import numpy as np
import numpy.typing as npt

from crfkit import _core
from crfkit.optimizers.protocols import Vector
from crfkit.optimizers.snapshot import Snapshot, SnapshotError

FIRST_SLOTS = 32  # slots that there are from the start on; more are made when they are needed
LEAST_COSINE = 1e-10  # of the angle between s and y; below it the pair says nothing about curvature

MANY_WEIGHTS = 100_000  # from here on pairs are stored in bfloat16: below, they stay in the cache

Ids = npt.NDArray[np.int64]
BFloat16s = npt.NDArray[np.uint16]
Float32s = npt.NDArray[np.float32]


def widen_numbers(rows: npt.NDArray[Any]) -> Float32s:
    """Numbers in single precision, exactly."""
    if rows.dtype == np.float32:
        return rows.copy()
    return (rows.astype(np.uint32) << 16).view(np.float32)


def round_numbers(rows: Float32s) -> BFloat16s:
    """Numbers in bfloat16: the nearest, ties to even."""
    bits = rows.view(np.uint32)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(np.uint16)


class Pairs:
    """The last m pairs (s, y), in up to m slots; rows 2k and 2k + 1 hold s and y of slot k.

    There are c ≤ m slots: as many as were ever in use at once, rounded up, so that a large m takes no memory by itself.
    """

    def __init__(self, memory: int, n_weights: int, n_threads: int, *, is_half: bool | None = None) -> None:
        """`is_half`: whether numbers are stored in bfloat16; None: where there are many weights."""
        self._memory = memory
        half = n_weights >= MANY_WEIGHTS if is_half is None else is_half
        self._rows: npt.NDArray[Any] = np.empty((0, n_weights), np.uint16 if half else np.float32)  # [2c, D]
        self._sy = np.zeros((0, 0))  # [c, c]  s_i · y_j, valid where pair i is not newer than pair j
        self._yy = np.zeros((0, 0))  # [c, c]  y_i · y_j
        self._order: list[int] = []  # the slots in use, oldest pair first
        self._n_slots = 0  # slots written so far: rows 0 … 2·n_slots − 1 hold numbers
        self._n_used = n_weights  # columns that are not 0
        self._products: tuple[Vector, Vector] | None = None  # the last v, and rows · v
        self._n_threads = n_threads
        self._grow(min(memory, FIRST_SLOTS))

    def __len__(self) -> int:
        return len(self._order)

    @property
    def n_weights(self) -> int:
        """D, the length of the vectors."""
        return int(self._rows.shape[1])

    def clear(self) -> None:
        """Forgets all pairs."""
        self._rows[: 2 * self._n_slots] = 0  # what is not written again, in columns that are not in use yet
        self._order, self._n_slots, self._products = [], 0, None

    def add(
        self, x: Vector, x_before: Vector, g: Vector, g_before: Vector, v: Vector, ids: Ids | None = None
    ) -> bool:
        """Puts s = x − x_before, y = g − g_before in place of the oldest pair; False when they are of no use.

        v is the gradient that the next direction will be asked for. With `ids`, column j of the pairs is weight ids[j] of
        these vectors; `last_v` then is v in these columns.
        """
        slot = self._slot_to_write()
        n = self._n_slots
        self._n_used = self.n_weights if ids is None else len(ids)
        with_y, with_v, ss, columns = _core.pairs_write(
            self._rows, 2 * n, 2 * slot, x, x_before, g, g_before, v, self._n_threads, ids
        )
        sy, yy = float(with_y[2 * slot]), float(with_y[2 * slot + 1])
        if not isfinite(ss * yy):  # beyond the precision of the rows: no row may keep such numbers
            self.clear()
            return False
        self._products = (v if ids is None else columns, with_v)
        if sy <= LEAST_COSINE * sqrt(ss * yy):
            return False
        self._sy[:n, slot] = with_y[0::2]
        self._yy[:n, slot] = self._yy[slot, :n] = with_y[1::2]
        self._order.append(slot)
        return True

    @property
    def last_v(self) -> Vector | None:
        """The vector whose products with the pairs are known."""
        return None if self._products is None else self._products[0]

    def direction(self, v: Vector, ids: Ids | None = None, n_weights: int = 0) -> tuple[Vector, float]:
        """d = −H v, [D], and d·v. With `ids`, d has n_weights numbers, and column j is that of weight ids[j]."""
        coefficients, factor = self._coefficients(v)
        return _core.pairs_combine(self._rows, coefficients, v, factor, self._n_threads, ids, n_weights)

    def snapshot(self, v: Vector) -> tuple[list[int], dict[str, npt.NDArray[Any]]]:
        """The slots in use and all numbers, for `restore`; v is the gradient that comes next."""
        return list(self._order), {
            "pairs.rows": widen_numbers(self._rows[: 2 * self._n_slots]),
            "pairs.sy": self._sy.copy(),
            "pairs.yy": self._yy.copy(),
            "pairs.products": self._products_with(v),
        }

    def restore(self, snapshot: Snapshot, v: Vector) -> None:
        """Takes the pairs of a snapshot, so that the next direction has the same bits."""
        order, n_capacity = snapshot.counts("pairs"), len(snapshot.any_array("pairs.sy"))
        n_slots = len(snapshot.any_array("pairs.rows", np.float32)) // 2
        if not len(self._sy) <= n_capacity <= self._memory or not len(order) <= n_slots <= n_capacity:
            raise SnapshotError(
                f"it has {n_slots} pairs in {n_capacity} slots, expected {self._memory} at most"
            )
        if len(set(order)) < len(order) or not set(order).issubset(range(n_slots)):
            raise SnapshotError("the order of its pairs is damaged")
        square, n_rows = (n_capacity, n_capacity), 2 * n_slots
        sy, yy = (snapshot.array(f"pairs.{name}", square) for name in ("sy", "yy"))
        rows = snapshot.array("pairs.rows", (n_rows, self._rows.shape[1]), np.float32)
        if not (sy.diagonal()[order] > 0).all() or not (yy.diagonal()[order] > 0).all():
            raise SnapshotError("its pairs have no curvature")
        self._grow(n_capacity)
        self._n_slots, self._order, self._n_used = n_slots, order, self.n_weights
        self._rows[:n_rows] = rows if self._rows.dtype == np.float32 else round_numbers(rows)
        self._sy[:], self._yy[:] = sy, yy
        self._products = (v, snapshot.vector("pairs.products", n_rows))

    def widen(self, n_weights: int) -> None:
        """Makes the vectors longer: the pairs have zeros at the end."""
        rows = np.zeros((len(self._rows), n_weights), self._rows.dtype)
        used = np.s_[: 2 * self._n_slots, : self._n_used]
        rows[used] = self._rows[used]
        self._rows, self._products = rows, None

    def select(self, columns: npt.NDArray[np.int64]) -> None:
        """Keeps these weights alone, with zeros behind them; pairs that are of no use then go."""
        n, n_rows = self._n_slots, 2 * self._n_slots
        for row in self._rows[:n_rows, : self._n_used]:
            kept = row[columns]
            row[: len(kept)], row[len(kept) :] = kept, 0
        self._products = None
        gram = _core.pairs_gram(self._rows, n_rows, len(columns), self._n_threads)  # [n, 2n, 2]
        self._sy[:n, :n], self._yy[:n, :n] = gram[:, 0::2, 0].T, gram[:, 1::2, 0].T
        for slot in list(self._order):
            ss = float(gram[slot, 2 * slot, 1])
            if self._sy[slot, slot] <= LEAST_COSINE * sqrt(ss * self._yy[slot, slot]):
                self._order.remove(slot)

    def _products_with(self, v: Vector) -> Vector:
        """The products of all rows with v, [2·n_slots]."""
        if self._products is None or self._products[0] is not v:
            self._products = (v, _core.pairs_products(self._rows, 2 * self._n_slots, v, self._n_threads))
        return self._products[1]

    def _slot_to_write(self) -> int:
        """A slot not in use, freed of the oldest pair when all are; rows of lower slots hold numbers."""
        if len(self._order) == self._memory:
            return self._order.pop(0)
        if len(self._order) == len(self._sy):
            self._grow(min(self._memory, 2 * len(self._sy)))
        slot = min(set(range(len(self._sy))).difference(self._order))
        self._n_slots = max(self._n_slots, slot + 1)
        return slot

    def _grow(self, n: int) -> None:
        """Makes it n slots, if there are fewer."""
        n_now = len(self._sy)
        if n <= n_now:
            return
        rows = np.zeros((2 * n, self._rows.shape[1]), self._rows.dtype)
        used = np.s_[: 2 * self._n_slots, : self._n_used]
        rows[used] = self._rows[used]
        self._rows = rows
        self._sy, self._yy = (np.pad(table, (0, n - n_now)) for table in (self._sy, self._yy))

    def _coefficients(self, v: Vector) -> tuple[Vector, float]:
        """The two loops: −H v = Σ_k coefficients_k rows_k + factor·v."""
        products = self._products_with(v)
        sv, yv = products[0::2], products[1::2]  # [n_slots]
        a = np.zeros(self._n_slots)  # q = v − Σ a_j y_j
        c = np.zeros(self._n_slots)  # H v = γ q + Σ c_j s_j
        for i in reversed(self._order):  # newest first: a_i = s_i·q / s_i·y_i, with q of the newer pairs
            a[i] = (sv[i] - self._sy[i, : len(a)] @ a) / self._sy[i, i]
        newest = self._order[-1] if self._order else None
        gamma = 1.0 if newest is None else self._sy[newest, newest] / self._yy[newest, newest]
        yq = yv - self._yy[: len(a), : len(a)] @ a
        for i in (
            self._order
        ):  # oldest first: c_i = a_i − y_i·r / s_i·y_i, with r = γ q + Σ c_j s_j of the older pairs
            c[i] = a[i] - (gamma * yq[i] + self._sy[: len(c), i] @ c) / self._sy[i, i]
        coefficients = np.empty(2 * self._n_slots)
        coefficients[0::2], coefficients[1::2] = -c, gamma * a
        return coefficients, -gamma
