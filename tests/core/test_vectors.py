"""The native vector kernels of the optimizers against plain NumPy."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from crfkit import _core

Vector = npt.NDArray[np.float64]
SIZES = [0, 1, 7, 8, 17, 1000, 1024, 1025, 16_384, 16_385, 40_011]  # around lanes, tiles and blocks


def vectors(n: int, count: int, seed: int = 0) -> list[Vector]:
    """Random numbers, a third of them 0."""
    rng = np.random.default_rng(seed)
    return [rng.normal(size=n) * (rng.random(n) < 2 / 3) for _ in range(count)]


HALF = [False, True]  # whether rows of pairs are in bfloat16, or in single precision


def rounded(numbers: npt.NDArray[Any], is_half: bool) -> npt.NDArray[Any]:
    """Numbers as rows have them; bfloat16: 8 significant bits, the nearest, ties to even."""
    if not is_half:
        return np.asarray(numbers, np.float32)
    fraction, exponent = np.frexp(np.asarray(numbers, np.float32))
    nearest = np.asarray(np.ldexp(np.rint(fraction * 256), exponent - 8), np.float32)
    found = np.frombuffer(nearest.tobytes(), np.uint16)[1::2]  # the upper halves, of little-endian numbers
    return found.reshape(nearest.shape).copy()


def exactly(rows: npt.NDArray[Any]) -> Vector:
    """Numbers of rows in double precision."""
    if rows.dtype == np.float32:
        return rows.astype(np.float64)
    whole = np.stack([np.zeros_like(rows), rows], axis=-1)
    return np.frombuffer(whole.tobytes(), np.float32).astype(np.float64).reshape(rows.shape)


def random_rows(n_rows: int, n: int, is_half: bool) -> npt.NDArray[Any]:
    return rounded(np.random.default_rng(1).normal(size=(n_rows, n)), is_half)


def strengths(n: int) -> list[Vector]:
    """l1 as one number for all, and as one for each with zeros among them."""
    return [np.array([0.3]), np.abs(vectors(n, 1, seed=9)[0])]


@pytest.mark.parametrize("n", SIZES)
def test_products_and_step(n: int) -> None:
    a, b = vectors(n, 2)
    assert _core.vector_products(a, b, 1) == pytest.approx((a @ b, a @ a), rel=1e-12, abs=1e-12)
    np.testing.assert_allclose(_core.vector_step(a, b, -0.25, 1), a - 0.25 * b, rtol=1e-15, atol=1e-15)


@pytest.mark.parametrize("n", SIZES)
def test_pseudo_gradient(n: int) -> None:
    x, gradient = vectors(n, 2)
    for l1 in strengths(n):
        shrunk = np.sign(gradient) * np.maximum(np.abs(gradient) - l1, 0.0)
        expected = np.where(x == 0.0, shrunk, gradient + l1 * np.sign(x))
        pseudo, square = _core.vector_pseudo_gradient(x, gradient, l1, 1)
        np.testing.assert_allclose(pseudo, expected, rtol=1e-15, atol=1e-15)
        assert square == pytest.approx(expected @ expected, rel=1e-12)
        assert _core.vector_penalty(x, l1, 1) == pytest.approx((l1 * np.abs(x)).sum(), rel=1e-12)


@pytest.mark.parametrize("aligned", [False, True])
@pytest.mark.parametrize("n", SIZES)
def test_orthant_step(n: int, aligned: bool) -> None:
    x, direction, pseudo = vectors(n, 3)
    for l1 in strengths(n):
        kept = np.where((l1 > 0.0) & (direction * pseudo >= 0.0), 0.0, direction) if aligned else direction
        moved = x + 0.7 * kept
        side = np.where(x == 0.0, -np.sign(pseudo), np.sign(x))
        expected = np.where((l1 > 0.0) & (moved * side <= 0.0), 0.0, moved)
        z, penalty, promise = _core.vector_orthant_step(x, direction, pseudo, l1, 0.7, aligned, 1)
        np.testing.assert_allclose(z, expected, rtol=1e-15, atol=1e-15)
        assert ((z == 0.0) == (expected == 0.0)).all()
        assert penalty == pytest.approx((l1 * np.abs(expected)).sum(), rel=1e-12)
        assert promise == pytest.approx(pseudo @ (expected - x), rel=1e-11, abs=1e-11)


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize(("n_rows", "s_row"), [(2, 0), (6, 4), (8, 2), (22, 12)])
@pytest.mark.parametrize("is_half", HALF)
def test_pairs(n: int, n_rows: int, s_row: int, is_half: bool) -> None:
    x, x_before, g, g_before, v = vectors(n, 5)
    rows = random_rows(max(8, n_rows), n, is_half)
    written = rows.copy()
    written[s_row], written[s_row + 1] = rounded(x - x_before, is_half), rounded(g - g_before, is_half)
    with_y, with_v, ss, _ = _core.pairs_write(rows, n_rows, s_row, x, x_before, g, g_before, v, 1)
    assert (rows == written).all()
    exact = exactly(written)
    np.testing.assert_allclose(with_y, exact[:n_rows] @ exact[s_row + 1], rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(with_v, exact[:n_rows] @ v, rtol=1e-10, atol=1e-10)
    assert ss == pytest.approx(exact[s_row] @ exact[s_row], rel=1e-12)
    assert _core.pairs_products(rows, n_rows, v, 1).tobytes() == with_v.tobytes()

    coefficients = np.linspace(-1, 1, n_rows)
    combined = coefficients @ exact[:n_rows] - 0.6 * v
    direction, slope = _core.pairs_combine(rows, coefficients, v, -0.6, 1)
    np.testing.assert_allclose(direction, combined, rtol=1e-10, atol=1e-12)
    assert slope == pytest.approx(combined @ v, rel=1e-10, abs=1e-10)


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("is_half", HALF)
def test_pairs_of_some_weights(n: int, is_half: bool) -> None:
    r = np.random.default_rng(2)
    ids = r.permutation(n)[: (2 * n + 2) // 3]
    width = len(ids) + 5
    x, x_before, g, g_before, v = vectors(n, 5)

    def columns(array: Vector) -> Vector:
        return np.concatenate([array[ids], np.zeros(width - len(ids))])

    rows = random_rows(6, width, is_half)
    rows[:, len(ids) :] = 0  # columns that are not in use
    expected_rows = rows.copy()
    expected = _core.pairs_write(
        expected_rows, 6, 2, columns(x), columns(x_before), columns(g), columns(g_before), columns(v), 1
    )
    with_y, with_v, ss, v_columns = _core.pairs_write(rows, 6, 2, x, x_before, g, g_before, v, 1, ids)
    assert rows.tobytes() == expected_rows.tobytes()
    assert v_columns.tobytes() == columns(v).tobytes()
    np.testing.assert_allclose(with_y, expected[0], rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(with_v, expected[1], rtol=1e-12, atol=1e-12)
    assert ss == pytest.approx(expected[2], rel=1e-12)
    coefficients = np.linspace(-1, 1, 6)
    found, slope = _core.pairs_combine(rows, coefficients, v_columns, -0.6, 1, ids, n)
    d, expected_slope = _core.pairs_combine(rows, coefficients, columns(v), -0.6, 1)
    whole = np.zeros(n)
    whole[ids] = d[: len(ids)]
    np.testing.assert_allclose(found, whole, rtol=1e-12, atol=1e-12)
    assert slope == pytest.approx(expected_slope, rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("is_half", HALF)
def test_products_among_pairs(n: int, is_half: bool) -> None:
    rows = random_rows(8, n, is_half)
    gram = _core.pairs_gram(rows, 6, rows.shape[1], 1)
    fewer = rows.shape[1] // 2
    first = np.ascontiguousarray(rows[:, :fewer])
    assert _core.pairs_gram(rows, 6, fewer, 1).tobytes() == _core.pairs_gram(first, 6, fewer, 1).tobytes()
    exact = exactly(rows[:6])
    assert gram.shape == (3, 6, 2)
    np.testing.assert_allclose(gram[:, :, 0], exact[1::2] @ exact.T, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(gram[:, :, 1], exact[0::2] @ exact.T, rtol=1e-10, atol=1e-10)


def everything(n: int, n_threads: int = 1) -> Vector:
    """What all kernels make of the same random input, one after the other."""
    x, x_before, g, g_before, v = vectors(n, 5)
    l1 = strengths(n)[1]
    results: list[Any] = []
    for rows in (random_rows(8, n, is_half) for is_half in HALF):
        results += [
            *_core.pairs_write(rows, 8, 2, x, x_before, g, g_before, v, n_threads),
            rows,
            *_core.pairs_combine(rows, np.linspace(-1, 1, 8), v, -0.6, n_threads),
            _core.pairs_products(rows, 8, g, n_threads),
            _core.pairs_gram(rows, 8, rows.shape[1], n_threads).ravel(),
        ]
    results += [
        *_core.vector_products(x, g, n_threads),
        _core.vector_step(x, g, 0.3, n_threads),
        _core.vector_penalty(x, l1, n_threads),
        *_core.vector_pseudo_gradient(x, g, l1, n_threads),
        *_core.vector_orthant_step(x, v, g, l1, 0.3, True, n_threads),
    ]
    return np.concatenate([np.ravel(result).astype(np.float64) for result in results])


def test_same_bits_for_any_number_of_threads() -> None:
    one = everything(100_003).tobytes()
    assert all(everything(100_003, n_threads).tobytes() == one for n_threads in (2, 3, 4))


def test_not_a_number_is_not_hidden() -> None:
    x, g = np.zeros(40), np.zeros(40)
    g[37] = np.nan
    assert np.isnan(_core.vector_products(g, x, 1)[0])
    assert np.isnan(_core.vector_pseudo_gradient(x, g, np.array([1.0]), 1)[1])
    zeros, rows = np.zeros(40), np.zeros((2, 40), np.uint16)
    assert np.isnan(_core.pairs_write(rows, 2, 0, x, zeros, g, zeros, zeros, 1)[0][1])
    g[37] = 3.4e38  # rounds to infinity
    assert np.isinf(_core.pairs_write(rows, 2, 0, x, zeros, g, zeros, zeros, 1)[0][1])
    g[37] = np.inf
    assert np.isinf(_core.vector_pseudo_gradient(x, g, np.array([1.0]), 1)[1])


@pytest.mark.parametrize("instruction_set", ["baseline", "x86-64-v3"])
def test_lower_instruction_sets(instruction_set: str) -> None:
    """The kernels that older processors get say the same, up to rounding."""
    script = "import sys; from tests.core.test_vectors import everything; "
    script += "sys.stdout.buffer.write(everything(20_003).tobytes())"
    environment = {**os.environ, "CRFKIT_INSTRUCTION_SET": instruction_set}
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-c", script], env=environment, cwd=root, capture_output=True, check=True
    )
    np.testing.assert_allclose(np.frombuffer(done.stdout), everything(20_003), rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda x: _core.vector_products(x, x[1:], 1), "b has 4 numbers, expected 5"),
        (lambda x: _core.vector_step(x, x[1:], 1.0, 1), "direction has 4 numbers, expected 5"),
        (lambda x: _core.vector_penalty(x, x[:2], 1), "l1 has 2 numbers, expected 5"),
        (lambda x: _core.vector_products(x, x, 0), "n_threads must be at least 1"),
        (lambda x: _core.pairs_products(np.zeros((4, 5), np.uint16), 6, x, 1), "n_rows must be even"),
        (
            lambda x: _core.pairs_write(np.zeros((4, 6), np.uint16), 2, 0, x, x, x, x, x, 1),
            "6 columns for 5 weights",
        ),
        (
            lambda x: _core.pairs_write(np.zeros((4, 1), np.uint16), 2, 0, x, x, x, x, x, 1, np.arange(2)),
            "2 ids for 1 columns",
        ),
        (
            lambda x: _core.pairs_combine(np.zeros((2, 5), np.uint16), x[:2], x, 1.0, 1, np.array([0, 7]), 6),
            "id 7 is none of 6 weights",
        ),
        (
            lambda x: _core.pairs_products(np.zeros((4, 6), np.uint16), 2, x, 1),
            "v has 5 numbers, expected 6",
        ),
        (
            lambda x: _core.pairs_write(np.zeros((4, 5), np.uint16), 2, 2, x, x, x, x, x, 1),
            "s_row must be even and below n_rows",
        ),
    ],
)
def test_arrays_that_do_not_fit(call: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        call(np.zeros(5))


def test_arrays_of_another_kind_are_refused() -> None:
    with pytest.raises(TypeError):
        _core.pairs_products(np.zeros((4, 10), np.uint16)[:, ::2], 4, np.zeros(5), 1)
    with pytest.raises(TypeError):
        _core.pairs_products(np.zeros((4, 5), np.float64), 4, np.zeros(5), 1)
