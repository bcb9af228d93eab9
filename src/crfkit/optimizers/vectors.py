"""Passes over vectors of D weights: everything an optimizer does whose cost grows with D.

l1 strengths are float64[1] (one for all weights) or float64[D]. n_threads never changes a bit of a result.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Vector = npt.NDArray[np.float64]
Rows = npt.NDArray[np.float32]


def products(a: Vector, b: Vector, n_threads: int) -> tuple[float, float]:
    """a·b and a·a."""
    return float(a @ b), float(a @ a)


def step(x: Vector, direction: Vector, t: float, n_threads: int) -> Vector:
    """x + t·direction, [D]."""
    return x + t * direction


def penalty(x: Vector, l1: Vector, n_threads: int) -> float:
    """Σ l1_i |x_i|."""
    return float((l1 * np.abs(x)).sum())


def pseudo_gradient(x: Vector, gradient: Vector, l1: Vector, n_threads: int) -> tuple[Vector, float]:
    """p, [D], the smallest subgradient of f + Σ l1_i |x_i|, and p·p; −p is the steepest way down."""
    shrunk = np.sign(gradient) * np.maximum(np.abs(gradient) - l1, 0.0)
    pseudo = np.where(x == 0.0, shrunk, gradient + l1 * np.sign(x))
    return pseudo, float(pseudo @ pseudo)


def orthant_step(
    x: Vector, direction: Vector, pseudo: Vector, l1: Vector, t: float, n_threads: int
) -> tuple[Vector, float, float]:
    """z = x + t·direction, [D], where a penalised weight stops at 0 instead of changing its sign.

    A weight that is 0 may only go against the pseudo-gradient. Also Σ l1_i |z_i| and pseudo·(z − x).
    """
    z = x + t * direction
    side = np.where(x == 0.0, -np.sign(pseudo), np.sign(x))
    z[(l1 > 0.0) & (z * side <= 0.0)] = 0.0
    return z, penalty(z, l1, n_threads), float(pseudo @ (z - x))


def write_pair(
    rows: Rows,
    n_rows: int,
    s_row: int,
    x: Vector,
    x_before: Vector,
    g: Vector,
    g_before: Vector,
    v: Vector,
    n_threads: int,
) -> tuple[Vector, Vector, float]:
    """Writes s = x − x_before to row s_row and y = g − g_before to the row after it.

    Returns the products of the first n_rows rows with y, [n_rows], and with v, [n_rows], and s·s.
    """
    rows[s_row] = x - x_before
    rows[s_row + 1] = g - g_before
    used = rows[:n_rows].astype(np.float64)
    return used @ used[s_row + 1], used @ v, float(used[s_row] @ used[s_row])


def row_products(rows: Rows, n_rows: int, v: Vector, n_threads: int) -> Vector:
    """The products of the first n_rows rows with v, [n_rows]."""
    product: Vector = rows[:n_rows].astype(np.float64) @ v
    return product


def combine(
    rows: Rows, coefficients: Vector, v: Vector, factor: float, l1: Vector | None, n_threads: int
) -> tuple[Vector, float]:
    """d = Σ_k coefficients_k rows_k + factor·v, [D], over the first rows; and d·v.

    Elements of d that are penalised (l1_i > 0) and do not point against v (d_i v_i ≥ 0) become 0.
    """
    d = coefficients @ rows[: len(coefficients)].astype(np.float64) + factor * v
    if l1 is not None:
        d[(l1 > 0.0) & (d * v >= 0.0)] = 0.0
    return d, float(d @ v)
