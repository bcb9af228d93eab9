"""The Triton kernel for the best segmentation: the recursion of `messages` from left to right, with maxima for sums."""

import triton
import triton.language as tl

from crfkit.nn.triton.dense.tables import NEVER, ends_of, finite, length_of
from crfkit.nn.triton.segments.messages import LOG2_E, edge, whole


@triton.jit
def _best(x, which):
    """The largest numbers of axis 0, and the smallest `which` that has them."""
    top = tl.max(x, axis=0)
    return top, tl.min(tl.where(x == top[None, :], which[:, None], 2**30), axis=0)


@triton.jit(do_not_specialize=["T", "K", "n_tables"])
def segment_best_kernel(
    emissions, start, end, first, last, segments, lengths, table, ages, before, tags, T, K, n_tables, L: tl.constexpr,
    BLOCK: tl.constexpr, SLOTS: tl.constexpr, REAL: tl.constexpr,
):  # fmt: skip
    """Programs [B]: tags [B, T] of the best segmentation; −1 beyond its end, and where none is possible.

    ages [B, T, L] are the lengths − 1 of the best segments that end after each position, before [B, T, L] the labels of the
    segments in front of those that begin after it.
    """
    row = tl.program_id(0).to(tl.int64)
    n = length_of(lengths, row, T)
    label, slot = tl.arange(0, BLOCK), tl.arange(0, SLOTS)
    known = label < L
    square = table + SLOTS * BLOCK + tl.where(n_tables > 1, row, 0) * 2 * BLOCK * BLOCK
    transitions = tl.load(square + label[:, None] * BLOCK + label[None, :])
    y = tl.where(known, ends_of(start, label, L, REAL) * LOG2_E, NEVER)
    z = y
    ring = tl.full([SLOTS, BLOCK], NEVER, dtype=REAL)
    x = tl.load(emissions + row * T * L + label, mask=label < tl.where(n > 0, L, 0), other=NEVER).to(REAL)
    for t in range(n):
        place = (row * T + t) * L + label
        following = (row * T + tl.minimum(t + 1, n - 1)) * L + label
        coming = tl.load(emissions + following, mask=known, other=NEVER).to(REAL)
        age = (t - slot) & (SLOTS - 1)
        closing = tl.load(table + age[:, None] * BLOCK + label[None, :])
        shift = finite(tl.max(z, axis=0))
        if first is not None:
            y += edge(first, last, 0, place, known, REAL)
        ring = tl.where((age == 0)[:, None], y[None, :], ring) + (x * LOG2_E - shift)[None, :]
        closed = ring + closing
        if segments is not None:
            closed += whole(segments, row, t - age, age, n, T, K, L, label, REAL)
        z, length = _best(closed, age)
        if first is not None:
            z += edge(last, first, 0, place, known, REAL)
        tl.store(ages + place, length, mask=known)
        y, came = _best(z[:, None] + transitions, label)
        tl.store(before + place, came, mask=known)
        x = coming
    z += tl.where(known, ends_of(end, label, L, REAL) * LOG2_E, 0.0)
    top = tl.max(z, axis=0)
    chosen = tl.min(tl.where((z == top) & known, label, BLOCK), axis=0)
    tl.debug_barrier()  # what other threads stored is followed back
    _follow(ages, before, tags, row, n, T, L, chosen, top > NEVER)


@triton.jit
def _follow(ages, before, tags, row, n, T, L: tl.constexpr, chosen, possible):
    """Write the tags of a sequence from its last segment to its first."""
    STEP: tl.constexpr = 128
    for begin in range(0, T, STEP):
        t = begin + tl.arange(0, STEP)
        tl.store(tags + row * T + t, tl.full([STEP], -1, tl.int64), mask=t < T)
    tl.debug_barrier()
    end = tl.where(possible, n, 0)
    while end > 0:
        begin = end - 1 - tl.load(ages + (row * T + end - 1) * L + chosen)
        for first in range(begin, end, STEP):
            t = first + tl.arange(0, STEP)
            tag = tl.where(t > begin, chosen + L, chosen).to(tl.int64)
            tl.store(tags + row * T + t, tag, mask=t < end)
        if begin > 0:
            chosen = tl.load(before + (row * T + begin - 1) * L + chosen)
        end = begin
