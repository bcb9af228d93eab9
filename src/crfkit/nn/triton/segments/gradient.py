"""Triton kernels for the gradient of log Z of semi-Markov chains: the probabilities of all parts, from the messages.

With the scales σ of position t from left to right and τ from right to left, and all logarithms of base 2,

    log P(s, e, c) = begins_s(c) + Σ_{s≤t<e} emissions_t(c) + duration(e − s, c) + after_e(c) + σ_s + τ_{e−1} − log Z

An open segment is followed with the scales of the positions that it passes, so that every number is near 0 whose segment is
probable: `steps_t` = emissions_t − (σ_t − σ_{t−1}), and `after` is relative to σ_{e−1} + τ_{e−1} − log Z.

A program has a chunk of positions. Segments that begin in it are followed over all their lengths, and counted. Those that
begin before and go on in it give the probability that a segment is open at its begin. From there on,

    P(c covers t) = P(open at the begin) + Σ_s P(begins at s) − Σ_e P(ends at e)

within the chunk: so no error grows with the length of the sequence. Everything is divided by the sum over all labels of what
is open or ends at the begin of the chunk, which is 1 but for rounding. Sums over positions are stored by chunks, and then
added up in one order.
"""

import triton
import triton.language as tl

from crfkit.nn.triton.dense.tables import NEVER, finite, length_of
from crfkit.nn.triton.segments.messages import LOG2_E


@triton.jit
def _offset(scales, log_z, row, t, on, T, B):
    """σ_t + τ_t − log Z of positions t [STEP]."""
    forward = tl.load(scales + row * T + t, mask=on, other=0.0)
    backward = tl.load(scales + (B + row) * T + t, mask=on, other=0.0)
    return forward + backward - finite(tl.load(log_z + row))


@triton.jit(do_not_specialize=["B", "T"])
def segment_steps_kernel(
    emissions, last, lengths, messages, scales, log_z, steps, B, T, L: tl.constexpr, BLOCK: tl.constexpr,
    STEP: tl.constexpr, REAL: tl.constexpr,
):  # fmt: skip
    """Programs [B, blocks of positions]: `steps` [B, T, L], then `after` [B, T, L]."""
    row = tl.program_id(0).to(tl.int64)
    n = length_of(lengths, row, T)
    t = tl.program_id(1) * STEP + tl.arange(0, STEP)
    label = tl.arange(0, BLOCK)
    on = t < n
    here = on[:, None] & (label < L)[None, :]
    place = (row * T + t)[:, None] * L + label[None, :]
    scale = tl.load(scales + row * T + t, mask=on, other=0.0)
    before = tl.load(scales + row * T + t - 1, mask=on & (t > 0), other=0.0)
    x = tl.load(emissions + place, mask=here, other=0.0).to(REAL) * LOG2_E
    tl.store(steps + place, x - (scale - before).to(REAL)[:, None], mask=here)
    size = tl.num_programs(0).to(tl.int64) * T * L
    y = tl.load(messages + size + place, mask=here, other=NEVER)
    if last is not None:
        y += tl.load(last + place, mask=here, other=0.0).to(REAL) * LOG2_E
    tl.store(steps + size + place, y + _offset(scales, log_z, row, t, on, T, B).to(REAL)[:, None], mask=here)


@triton.jit
def _opened(emissions, first, begins, row, s, on, T, L: tl.constexpr, label, REAL: tl.constexpr):
    """The logarithms [STEP, BLOCK] of segments that begin at s, after their first position, relative to its scale."""
    here = on[:, None] & (label < L)[None, :]
    place = (row * T + s)[:, None] * L + label[None, :]
    opened = tl.load(begins + place, mask=here, other=NEVER)
    opened += tl.load(emissions + place, mask=here, other=NEVER).to(REAL) * LOG2_E
    if first is not None:
        opened += tl.load(first + place, mask=here, other=0.0).to(REAL) * LOG2_E
    return opened


@triton.jit
def _closed(
    opened, after, segments, table, row, s, k, lowest, n, T, K, L: tl.constexpr, BLOCK: tl.constexpr, label,
    REAL: tl.constexpr,
):  # fmt: skip
    """P(s, s + k + 1, c) [STEP, BLOCK] of open segments that end after position `lowest` or later."""
    e = s + k
    here = ((s >= 0) & (e >= lowest) & (e < n))[:, None] & (label < L)[None, :]
    x = opened + tl.load(table + k * BLOCK + label)[None, :]
    x += tl.load(after + (row * T + e)[:, None] * L + label[None, :], mask=here, other=NEVER)
    if segments is not None:
        place = ((row * T + s) * K + k)[:, None] * L + label[None, :]
        x += tl.load(segments + place, mask=here, other=0.0).to(REAL) * LOG2_E
    return tl.exp2(x)


@triton.jit
def _followed(opened, steps, row, e, n, T, L: tl.constexpr, label):
    """The logarithms of open segments after one more position e."""
    here = ((e >= 0) & (e < n))[:, None] & (label < L)[None, :]
    return opened + tl.load(steps + (row * T + e)[:, None] * L + label[None, :], mask=here, other=NEVER)


@triton.jit
def _at_boundary(mine, others, scales, log_z, row, t, on, B, T, L: tl.constexpr, label, REAL: tl.constexpr):
    """The probabilities [STEP, BLOCK] that segments begin, or end, at a boundary of positions t."""
    here = on[:, None] & (label < L)[None, :]
    place = (row * T + t)[:, None] * L + label[None, :]
    x = tl.load(mine + place, mask=here, other=NEVER)
    x += tl.load(others + place, mask=here, other=NEVER)
    return tl.exp2(x + _offset(scales, log_z, row, t, on, T, B).to(REAL)[:, None])


@triton.jit
def _transitions(
    ends, scales, log_z, square, row, begin, stop, B, T, L: tl.constexpr, BLOCK: tl.constexpr, label,
    REAL: tl.constexpr,
):  # fmt: skip
    """The expected numbers of transitions [BLOCK, BLOCK] at the boundaries from `begin` to `stop`."""
    scores = tl.load(square + label[:, None] * BLOCK + label[None, :])
    counts = tl.zeros([BLOCK, BLOCK], dtype=REAL)
    total = finite(tl.load(log_z + row))
    for t in range(begin, stop):
        forward = tl.load(scales + row * T + t - 1)
        backward = tl.load(scales + (B + row) * T + t)
        x = tl.load(ends + (row * T + t - 1) * L + label, mask=label < L, other=NEVER)
        z = tl.load(ends + ((B + row) * T + t) * L + label, mask=label < L, other=NEVER)
        x += (forward + backward - total).to(REAL)
        counts += tl.exp2(x[:, None] + scores + z[None, :])
    return counts


@triton.jit(do_not_specialize=["B", "T", "K", "n_tables", "n_turns", "stride", "sign"])
def segment_gradient_kernel(
    emissions, first, segments, lengths, table, messages, scales, log_z, steps, upstream, d_emissions, d_first, d_last,
    d_segments, sums, B, T, K, n_tables, n_turns, stride, sign, L: tl.constexpr, BLOCK: tl.constexpr,
    SLOTS: tl.constexpr, STEP: tl.constexpr, REAL: tl.constexpr,
):  # fmt: skip
    """Programs [B, parts of n_turns chunks]: the gradient by positions, and sums [B, parts, K + L + 2, L] of the others.

    Of the others, the durations come first, then transitions, start and end.
    """
    row, part = tl.program_id(0).to(tl.int64), tl.program_id(1)
    n = length_of(lengths, row, T)
    label = tl.arange(0, BLOCK)
    known = label < L
    weight = (tl.zeros([], dtype=tl.int32) + sign).to(REAL)
    if upstream is not None:
        weight *= tl.load(upstream + row * stride).to(REAL)
    size = tl.num_programs(0).to(tl.int64) * T * L
    begins, ends, after = messages, messages + 2 * size, steps + size
    out = sums + (row * tl.num_programs(1) + part) * (K + L + 2) * L
    square = table + SLOTS * BLOCK + tl.where(n_tables > 1, row, 0) * 2 * BLOCK * BLOCK
    counts = tl.zeros([BLOCK, BLOCK], dtype=REAL)
    at_start, at_end = tl.zeros([BLOCK], dtype=REAL), tl.zeros([BLOCK], dtype=REAL)
    for turn in range(n_turns):
        begin = (part * n_turns + turn) * STEP
        t = begin + tl.arange(0, STEP)
        on = t < n
        crossing = tl.zeros([STEP, BLOCK], dtype=REAL)
        for back in range(0, tl.where(begin < n, tl.minimum(K - 1, begin), 0), STEP):
            s = begin - 1 - back - tl.arange(0, STEP)
            opened = _opened(emissions, first, begins, row, s, s >= 0, T, L, label, REAL)
            for k in range(1, K):
                opened = _followed(opened, steps, row, s + k, n, T, L, label)
                crossing += _closed(
                    opened, after, segments, table, row, s, k, begin, n, T, K, L, BLOCK, label, REAL
                )
        is_open = tl.sum(crossing, axis=0)
        start = _at_boundary(begins, ends + size, scales, log_z, row, t, on, B, T, L, label, REAL)
        end = _at_boundary(ends, begins + size, scales, log_z, row, t, on, B, T, L, label, REAL)
        over = _at_boundary(
            ends, begins + size, scales, log_z, row, t - 1, on & (t > 0), B, T, L, label, REAL
        )
        inner = (t > begin)[:, None]
        beside = tl.where(inner | (begin == 0), 0.0, over) + tl.where(inner | (begin > 0), 0.0, start)
        total = tl.sum(tl.sum(beside, axis=0) + is_open, axis=0)
        factor = tl.where(total == 0, 0.0, weight / total)
        covered = tl.cumsum(start - tl.where(inner, over, 0.0), axis=0) + is_open[None, :]
        here = (t < T)[:, None] & known[None, :]
        place = (row * T + t)[:, None] * L + label[None, :]
        covered = tl.where(on[:, None], tl.maximum(covered, 0.0, propagate_nan=tl.PropagateNan.ALL), 0.0)
        tl.store(d_emissions + place, (covered * factor).to(d_emissions.dtype.element_ty), mask=here)
        if d_first is not None:
            tl.store(d_first + place, (start * factor).to(d_first.dtype.element_ty), mask=here)
        if d_last is not None:
            tl.store(d_last + place, (end * factor).to(d_last.dtype.element_ty), mask=here)
        at_start += tl.sum(tl.where((t == 0)[:, None], start, 0.0), axis=0) * factor
        at_end += tl.sum(tl.where((t == n - 1)[:, None], end, 0.0), axis=0) * factor
        stop = tl.minimum(begin + STEP, n)
        counts += factor * _transitions(
            ends, scales, log_z, square, row, tl.maximum(begin, 1), stop, B, T, L, BLOCK, label, REAL
        )
        opened = _opened(emissions, first, begins, row, t, on, T, L, label, REAL)
        for k in range(K):
            if k > 0:
                opened = _followed(opened, steps, row, t + k, n, T, L, label)
            p = factor * _closed(opened, after, segments, table, row, t, k, 0, n, T, K, L, BLOCK, label, REAL)
            if d_segments is not None:
                whole = ((row * T + t) * K + k)[:, None] * L + label[None, :]
                tl.store(d_segments + whole, p.to(d_segments.dtype.element_ty), mask=here)
            found = tl.sum(p, axis=0)
            if turn > 0:
                found += tl.load(out + k * L + label, mask=known, other=0.0)
            tl.store(out + k * L + label, found, mask=known)
    out += K * L
    tl.store(out + label[:, None] * L + label[None, :], counts, mask=known[:, None] & known[None, :])
    tl.store(out + L * L + label, at_start, mask=known)
    tl.store(out + (L + 1) * L + label, at_end, mask=known)


@triton.jit(do_not_specialize=["n_parts", "K"])
def segment_sums_kernel(
    sums, d_durations, d_transitions, d_start, d_end, n_parts, K, L: tl.constexpr, BLOCK: tl.constexpr,
    STEP: tl.constexpr,
):  # fmt: skip
    """Programs [blocks of numbers, groups]: sums [groups, n_parts, K + L + 2, L] added up over the parts of each group.

    Any of the results may be absent; with more than one group, all but the transitions are.
    """
    place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    group = tl.program_id(1).to(tl.int64)
    size = (K + L + 2) * L
    added = tl.zeros([STEP, BLOCK], dtype=tl.float64)
    for first in range(0, n_parts, STEP):
        part = first + tl.arange(0, STEP)
        here = (part < n_parts)[:, None] & (place < size)[None, :]
        at = (group * n_parts + part)[:, None] * size + place[None, :]
        added += tl.load(sums + at, mask=here, other=0.0).to(tl.float64)
    found = tl.sum(added, axis=0).to(sums.dtype.element_ty)
    if d_durations is not None:
        tl.store(d_durations + place, found, mask=place < K * L)
    if d_transitions is not None:
        inner = place - K * L
        tl.store(d_transitions + group * L * L + inner, found, mask=(inner >= 0) & (inner < L * L))
    if d_start is not None:
        inner = place - (K + L) * L
        tl.store(d_start + inner, found, mask=(inner >= 0) & (inner < L))
    if d_end is not None:
        inner = place - (K + L + 1) * L
        tl.store(d_end + inner, found, mask=(inner >= 0) & (inner < L))
