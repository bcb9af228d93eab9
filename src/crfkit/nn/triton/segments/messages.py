"""Triton kernels for semi-Markov chains: tables, and messages in both directions.

One program has one sequence and one direction. Its open segments are a ring [SLOTS, BLOCK] of logarithms on chip: the slot
i mod SLOTS takes those that begin at step i, every step adds one emission to all of them, and a segment of age k is closed
by the duration of row k. With boundaries t = 0 … n,

    begins_t(c) = Σ_c' ends_t(c') exp(transition(c', c)),      ends_t(c) = Σ_k begins_{t−k}(c) exp(score of (t − k, t, c))

and the same from right to left, with the transitions the other way around: a step costs K · L + L² exponentials. All
logarithms are of base 2. They are kept near 0, where float32 has most digits: the largest of the `ends` of one step is
subtracted from all numbers of the next, and added to a scale in float64. What is stored for position t is `begins` of
boundary t and `ends` of boundary t + 1 (from right to left: of boundaries t + 1 and t), relative to the scale of position t.
"""

import triton
import triton.language as tl

from crfkit.nn.triton.dense.tables import NEVER, ends_of, finite, length_of

LOG2_E = tl.constexpr(1.4426950408889634)
LOG_2 = tl.constexpr(0.6931471805599453)


@triton.jit(do_not_specialize=["K"])
def tables_kernel(
    durations, transitions, table, K, L: tl.constexpr, BLOCK: tl.constexpr, SLOTS: tl.constexpr, REAL: tl.constexpr
):  # fmt: skip
    """Programs [1 + tables]: durations [SLOTS, BLOCK], each table [BLOCK, BLOCK] and its transpose; −inf in the padding."""
    label = tl.arange(0, BLOCK)
    task = tl.program_id(0).to(tl.int64)
    if task == 0:
        ROWS: tl.constexpr = 16
        for begin in range(0, SLOTS, ROWS):
            k = begin + tl.arange(0, ROWS)
            here = (k < K)[:, None] & (label < L)[None, :]
            x = tl.load(durations + k[:, None] * L + label[None, :], mask=here, other=NEVER).to(REAL)
            tl.store(table + k[:, None] * BLOCK + label[None, :], x * LOG2_E, mask=(k < SLOTS)[:, None])
    else:
        before, after = label[:, None], label[None, :]
        here = (before < L) & (after < L)
        place = transitions + (task - 1) * L * L + before * L + after
        x = tl.load(place, mask=here, other=NEVER).to(REAL) * LOG2_E
        out = table + SLOTS * BLOCK + (task - 1) * 2 * BLOCK * BLOCK
        tl.store(out + before * BLOCK + after, x)
        tl.store(out + BLOCK * BLOCK + after * BLOCK + before, x)


@triton.jit
def log_sum(x):
    """log₂ Σ 2^x over axis 0."""
    top = finite(tl.max(x, axis=0))
    return tl.log2(tl.sum(tl.exp2(x - top[None, :]), axis=0)) + top


@triton.jit
def edge(ours, theirs, direction, place, known, REAL: tl.constexpr):
    """Scores of first or last positions, which change their roles from right to left."""
    if direction == 0:
        x = tl.load(ours + place, mask=known, other=0.0).to(REAL)
    else:
        x = tl.load(theirs + place, mask=known, other=0.0).to(REAL)
    return x * LOG2_E


@triton.jit
def whole(segments, row, begin, age, n, T, K, L: tl.constexpr, label, REAL: tl.constexpr):
    """Scores [SLOTS, BLOCK] of the segments from `begin` on with the lengths age + 1, 0 where there is none."""
    here = ((begin >= 0) & (age < K) & (begin + age < n))[:, None] & (label < L)[None, :]
    place = ((row * T + begin) * K + age)[:, None] * L + label[None, :]
    return tl.load(segments + place, mask=here, other=0.0).to(REAL) * LOG2_E


@triton.jit(do_not_specialize=["T", "K", "n_tables"])
def segment_messages_kernel(
    emissions, start, end, first, last, segments, lengths, table, messages, scales, log_z, values, T, K, n_tables,
    L: tl.constexpr, BLOCK: tl.constexpr, SLOTS: tl.constexpr, REAL: tl.constexpr,
):  # fmt: skip
    """Programs [B, 1 or 2]: log₂ Z in float64, log Z [B]; where they are wanted, messages and their scales.

    messages [2, 2, B, T, L] are `begins` from left to right and from right to left, then `ends`; scales [2, B, T].
    """
    row, direction = tl.program_id(0).to(tl.int64), tl.program_id(1)
    n = length_of(lengths, row, T)
    label, slot = tl.arange(0, BLOCK), tl.arange(0, SLOTS)
    known = label < L
    side = direction.to(tl.int64) * tl.num_programs(0) + row
    own = tl.where(n_tables > 1, row, 0) * 2 + direction
    square = table + SLOTS * BLOCK + own * BLOCK * BLOCK
    transitions = tl.load(square + label[:, None] * BLOCK + label[None, :])
    emissions += row * T * L
    at_start, at_end = ends_of(start, label, L, REAL) * LOG2_E, ends_of(end, label, L, REAL) * LOG2_E
    y = tl.where(known, tl.where(direction == 0, at_start, at_end), NEVER)
    z = y
    ring = tl.full([SLOTS, BLOCK], NEVER, dtype=REAL)
    scale = tl.zeros([], dtype=tl.float64)
    way = 1 - 2 * direction
    t = direction * tl.maximum(n - 1, 0)
    x = tl.load(emissions + t * L + label, mask=label < tl.where(n > 0, L, 0), other=NEVER).to(REAL)
    for i in range(n):
        after = tl.minimum(tl.maximum(t + way, 0), n - 1)
        coming = tl.load(emissions + after * L + label, mask=known, other=NEVER).to(REAL)
        age = (i - slot) & (SLOTS - 1)
        closing = tl.load(table + age[:, None] * BLOCK + label[None, :])
        shift = finite(tl.max(z, axis=0))
        scale += shift.to(tl.float64)
        if messages is not None:
            tl.store(messages + (side * T + t) * L + label, y - shift, mask=known)
            tl.store(scales + side * T + t, scale)
        place = (row * T + t) * L + label
        if first is not None:
            y += edge(first, last, direction, place, known, REAL)
        ring = tl.where((age == 0)[:, None], y[None, :], ring) + (x * LOG2_E - shift)[None, :]
        closed = ring + closing
        if segments is not None:
            closed += whole(segments, row, t - tl.where(direction == 0, age, 0), age, n, T, K, L, label, REAL)
        z = log_sum(closed)
        if first is not None:
            z += edge(last, first, direction, place, known, REAL)
        if messages is not None:
            tl.store(messages + ((2 * tl.num_programs(0) + side) * T + t) * L + label, z, mask=known)
        y = log_sum(z[:, None] + transitions)
        x = coming
        t += way
    if direction == 0:
        z += tl.where(known, at_end, 0.0)
        top = finite(tl.max(z, axis=0))
        total = tl.log2(tl.sum(tl.exp2(z - top), axis=0)) + top
        total = tl.where(n > 0, total.to(tl.float64) + scale, 0.0)
        tl.store(log_z + row, total)
        tl.store(values + row, (total * LOG_2).to(values.dtype.element_ty))
