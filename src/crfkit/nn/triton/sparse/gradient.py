"""The Triton kernel for the gradient by transitions with few bigrams, from what `wide_gradient_kernel` left.

    P(y_{i−1} = a, y_i = b) = exp(F_{i−1}(a) + transitions(a, b) + pushed_i(b))

summed over all tokens for the allowed bigrams, each by one program and in a fixed order.
"""

import triton
import triton.language as tl

from crfkit.nn.triton.dense.tables import NEVER, length_of, tags_of
from crfkit.nn.triton.sparse.messages import listed
from crfkit.nn.triton.wide.gradient import added_ends, weight_of


@triton.jit(do_not_specialize=["B", "T", "n_tiles", "stride"])
def sparse_transitions_kernel(
    lengths, positions, tags, neighbours, scores, messages, upstream, d_emissions, d_transitions, d_start, d_end, B,
    T, n_tiles, stride, L: tl.constexpr, TRANSITIONS: tl.constexpr, STEP: tl.constexpr, BLOCK: tl.constexpr,
    TILE: tl.constexpr,
):  # fmt: skip
    """Programs [1 + n_tiles TILE / TRANSITIONS]: by the ends, then by the allowed bigrams; d_transitions has zeros."""
    task = tl.program_id(0) - 1
    if task < 0:
        added_ends(lengths, positions, d_emissions, d_start, d_end, B, T, L, BLOCK)
    else:
        parts: tl.constexpr = TILE // TRANSITIONS
        before, after = listed(neighbours, task // parts, (task % parts) * TRANSITIONS, TILE, TRANSITIONS)
        exists = before >= 0
        w = tl.load(scores + task * TRANSITIONS + tl.arange(0, TRANSITIONS))
        found = tl.zeros([STEP, TRANSITIONS], dtype=tl.float32)
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
                    y = tags_of(tags, positions, tl.cast(row, tl.int64), t, t < n, T)
                    x = tags_of(tags, positions, tl.cast(row, tl.int64), t - 1, t < n, T)
                    seen = here & (x[:, None] == before[None, :]) & (y[:, None] == after[None, :])
                    share -= tl.where(seen, 1.0, 0.0)
                found += weight * share
        added = tl.sum(found, axis=0)
        tl.store(d_transitions + before * L + after, added.to(d_transitions.dtype.element_ty), mask=exists)
