"""The Triton kernel that finds the best labelling of a chain."""

from __future__ import annotations

import triton
import triton.language as tl

from crfkit.nn.chain_kernels import NEVER, ends_of, finite, position_of, row_of


@triton.jit(do_not_specialize=["T", "arcs_stride"])
def best_kernel(
    emissions, arcs, start, end, lengths, sites, scores, labels, T, L: tl.constexpr, arcs_stride,
    HAS_START: tl.constexpr, HAS_END: tl.constexpr, HAS_LENGTHS: tl.constexpr, HAS_SITES: tl.constexpr,
    BLOCK: tl.constexpr, REAL: tl.constexpr,
):  # fmt: skip
    """Programs [B]: the best labels. Scores of best beginnings are stored, and asked again on the way back."""
    row = tl.program_id(0).to(tl.int64)
    n = T
    if HAS_LENGTHS:
        n = tl.load(lengths + row).to(tl.int32)
    label = tl.arange(0, BLOCK)
    known = label < L
    first, last = ends_of(start, label, L, HAS_START, REAL), ends_of(end, label, L, HAS_END, REAL)
    pair = known[:, None] & known[None, :]
    table = tl.load(
        arcs + row * arcs_stride + label[:, None] * L + label[None, :], mask=pair, other=NEVER
    ).to(REAL)
    x = row_of(emissions, sites, row, 0, n, T, L, label, first, last, HAS_SITES, REAL)
    v = x - finite(tl.max(x, axis=0))
    tl.store(scores + row * T * L + label, v, mask=known)
    x1 = row_of(emissions, sites, row, 1, n, T, L, label, first, last, HAS_SITES, REAL)
    x2 = row_of(emissions, sites, row, 2, n, T, L, label, first, last, HAS_SITES, REAL)
    x3 = row_of(emissions, sites, row, 3, n, T, L, label, first, last, HAS_SITES, REAL)
    for t in range(1, n):
        x4 = row_of(emissions, sites, row, t + 3, n, T, L, label, first, last, HAS_SITES, REAL)
        x1 -= finite(tl.max(v, axis=0))
        v = tl.max(v[:, None] + table, axis=0) + x1
        tl.store(scores + (row * T + t) * L + label, v, mask=known)
        x1, x2, x3 = x2, x3, x4
    tl.debug_barrier()
    y = tl.argmax(v, axis=0, tie_break_left=True).to(tl.int32)
    for t in range(n, T):
        tl.store(labels + row * T + position_of(sites, row, t, T, HAS_SITES), -1)
    if n > 0:
        tl.store(labels + row * T + position_of(sites, row, n - 1, T, HAS_SITES), y)
    v1 = tl.load(scores + (row * T + tl.maximum(n - 2, 0)) * L + label, mask=known, other=NEVER)
    v2 = tl.load(scores + (row * T + tl.maximum(n - 3, 0)) * L + label, mask=known, other=NEVER)
    v3 = tl.load(scores + (row * T + tl.maximum(n - 4, 0)) * L + label, mask=known, other=NEVER)
    for i in range(1, n):
        t = n - 1 - i
        v4 = tl.load(scores + (row * T + tl.maximum(t - 3, 0)) * L + label, mask=known, other=NEVER)
        column = tl.load(arcs + row * arcs_stride + label * L + y, mask=known, other=NEVER).to(REAL)
        y = tl.argmax(v1 + column, axis=0, tie_break_left=True).to(tl.int32)
        tl.store(labels + row * T + position_of(sites, row, t, T, HAS_SITES), y)
        v1, v2, v3 = v2, v3, v4
