"""The Triton kernel that makes the gradient by arcs of a chain with few bigrams, from what `wide_gradient_kernel` left.

    P(y_{i−1} = a, y_i = b) = exp(F_{i−1}(a) + arcs(a, b) + pushed_i(b))

added up over all places for the bigrams that exist, each by one program and in one order.
"""

from __future__ import annotations

import triton
import triton.language as tl

from crfkit.nn.triton.dense.tables import NEVER, length_of, tags_of
from crfkit.nn.triton.sparse.messages import listed
from crfkit.nn.triton.wide.gradient import added_ends, weight_of


@triton.jit(do_not_specialize=["B", "T", "n_tiles", "stride"])
def sparse_arcs_kernel(
    lengths, sites, tags, neighbours, scores, messages, upstream, d_emissions, d_arcs, d_start, d_end, B, T, n_tiles,
    stride, L: tl.constexpr, ARCS: tl.constexpr, STEP: tl.constexpr, BLOCK: tl.constexpr, TILE: tl.constexpr,
):  # fmt: skip
    """Programs [1 + n_tiles TILE / ARCS]: by the ends, then by the bigrams that exist; d_arcs [L, L] are zeros."""
    task = tl.program_id(0) - 1
    if task < 0:
        added_ends(lengths, sites, d_emissions, d_start, d_end, B, T, L, BLOCK)
    else:
        parts: tl.constexpr = TILE // ARCS
        before, after = listed(neighbours, task // parts, (task % parts) * ARCS, TILE, ARCS)
        exists = before >= 0
        w = tl.load(scores + task * ARCS + tl.arange(0, ARCS))
        found = tl.zeros([STEP, ARCS], dtype=tl.float32)
        for row in range(tl.where(tl.max(before, axis=0) >= 0, B, 0)):
            n = length_of(lengths, row, T)
            first = tl.cast(row, tl.int64) * T
            forward, pushed = messages + first * L, messages + (tl.cast(B, tl.int64) * T + first) * L
            weight = weight_of(upstream, tags, row, stride, row >= 0)
            for begin in range(1, n, STEP):
                t = begin + tl.arange(0, STEP)
                here = (t < n)[:, None] & exists[None, :]
                f = tl.load(forward + (t[:, None] - 1) * L + before[None, :], mask=here, other=NEVER)
                q = tl.load(pushed + t[:, None] * L + after[None, :], mask=here, other=NEVER)
                share = tl.exp(f + w[None, :] + q)
                if tags is not None:
                    y = tags_of(tags, sites, first // T, t, t < n, T)
                    x = tags_of(tags, sites, first // T, t - 1, t < n, T)
                    seen = here & (x[:, None] == before[None, :]) & (y[:, None] == after[None, :])
                    share -= tl.where(seen, 1.0, 0.0)
                found += weight * share
        added = tl.sum(found, axis=0)
        tl.store(d_arcs + before * L + after, added.to(d_arcs.dtype.element_ty), mask=exists)
