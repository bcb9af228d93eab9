"""Triton kernels for chains of up to 128 labels: messages, gradients, and the best labelling.

One program has one sequence (and one direction), with exp(arcs) on chip. Messages are kept in exp space, and every second
one is divided by a power of two near its largest number:

    V_i = (V_{i−1} W) ∘ exp(states_i − m_i) / 2^k_i,        W = exp(arcs − peak), m_i the largest emission of site i
    V_i = exp(−scale_i) exp(states_i) ∘ Σ_a V_{i−1}(a) exp(arcs(a, ·)),                  scale_i = m_i + k_i log 2 + peak
    log Z = Σ_i scale_i + log Σ V_{n−1}                      added up in float64

Where arcs do not exist or lie far apart, messages are logarithms, made in log space: every program is told by its arcs, and
nothing has to be asked from outside.
"""

from __future__ import annotations

import triton
import triton.language as tl

SAFE_SPREAD = tl.constexpr(30.0)
NEVER = tl.constexpr(float("-inf"))
LOG_2 = tl.constexpr(0.6931471805599453)


@triton.jit
def position_of(sites, row, t, T, HAS_SITES: tl.constexpr):
    """The position of site t of a sequence."""
    if HAS_SITES:
        position = tl.load(sites + row * T + tl.minimum(t, T - 1)).to(tl.int32)
    else:
        position = tl.minimum(t, T - 1)
    return position


@triton.jit
def _states(
    emissions, peaks, sites, row, t, n, T, L: tl.constexpr, label, start, end, top_end,
    HAS_SITES: tl.constexpr, REAL: tl.constexpr,
):  # fmt: skip
    """The scores of site t with start and end folded in [BLOCK], −inf in the padding; and a number near the largest."""
    p = row * T + position_of(sites, row, tl.maximum(t, 0), T, HAS_SITES)
    x = tl.load(emissions + p * L + label, mask=label < L, other=NEVER).to(REAL)
    x += tl.where(t == 0, start, 0.0)
    last = t == n - 1
    return x + tl.where(last, end, 0.0), tl.load(peaks + p) + tl.where(last, top_end, 0.0)


@triton.jit
def row_of(
    emissions,
    sites,
    row,
    t,
    n,
    T,
    L: tl.constexpr,
    label,
    start,
    end,
    HAS_SITES: tl.constexpr,
    REAL: tl.constexpr,
):
    """The scores of site t with start and end folded in [BLOCK], −inf in the padding."""
    p = row * T + position_of(sites, row, t, T, HAS_SITES)
    x = tl.load(emissions + p * L + label, mask=label < L, other=NEVER).to(REAL)
    return x + tl.where(t == 0, start, 0.0) + tl.where(t == n - 1, end, 0.0)


@triton.jit
def ends_of(scores, label, L: tl.constexpr, HAS: tl.constexpr, REAL: tl.constexpr):
    """Scores of the first or last label [BLOCK]."""
    if HAS:
        at_ends = tl.load(scores + label, mask=label < L, other=0.0).to(REAL)
    else:
        at_ends = tl.zeros_like(label).to(REAL)
    return at_ends


@triton.jit
def finite(x):
    """A peak that may be subtracted: 0 for −inf."""
    return tl.where(x == NEVER, 0.0, x)


@triton.jit
def _pushed_in_log_space(message, table):
    """log Σ_a exp(message(a) + table(a, b)) [BLOCK] of logarithms."""
    reached = message[:, None] + table
    top = finite(tl.max(reached, axis=0))
    return tl.log(tl.sum(tl.exp(reached - top[None, :]), axis=0)) + top


@triton.jit
def _gold_role(
    emissions, arcs, sites, tags, row, n, T, L: tl.constexpr, start, end, gold,
    HAS_SITES: tl.constexpr, HAS_START: tl.constexpr, HAS_END: tl.constexpr,
):  # fmt: skip
    """score(tags) of one sequence."""
    STEP: tl.constexpr = 128
    place = tl.arange(0, STEP)
    total = tl.zeros([STEP], dtype=tl.float64)
    for first in range(0, n, STEP):
        t = first + place
        on = t < n
        p, q = t, t - 1
        if HAS_SITES:
            p = tl.load(sites + row * T + t, mask=on, other=0)
            q = tl.load(sites + row * T + t - 1, mask=on & (t > 0), other=0)
        y = tl.load(tags + row * T + p, mask=on, other=0)
        x = tl.load(tags + row * T + q, mask=on & (t > 0), other=0)
        total += tl.load(emissions + (row * T + p) * L + y, mask=on, other=0.0).to(tl.float64)
        total += tl.load(arcs + x * L + y, mask=on & (t > 0), other=0.0).to(tl.float64)
        if HAS_START:
            total += tl.load(start + y, mask=on & (t == 0), other=0.0).to(tl.float64)
        if HAS_END:
            total += tl.load(end + y, mask=on & (t == n - 1), other=0.0).to(tl.float64)
    tl.store(gold + row, tl.sum(total, axis=0))


@triton.jit(do_not_specialize=["B", "T", "n_tables"])
def tables_kernel(
    emissions, arcs, start, end, lengths, sites, tags, tables, peaks, gold, B, T, n_tables, L: tl.constexpr,
    HAS_START: tl.constexpr, HAS_END: tl.constexpr, HAS_LENGTHS: tl.constexpr, HAS_SITES: tl.constexpr,
    HAS_TAGS: tl.constexpr, BLOCK: tl.constexpr, STEP: tl.constexpr, REAL: tl.constexpr,
):  # fmt: skip
    """Programs [n_tables + B (with HAS_TAGS) + blocks of rows]: what the other kernels want to know beforehand.

    Arcs as tables [4 BLOCK² + 16] each: exp(arcs − peak) and its transpose, arcs and their transpose, with rows padded to
    BLOCK; then the peak, and 1 where exp space is safe. The score of the tags of each sequence, gold [B]. The largest
    emission of each position, peaks [B, T].
    """
    task = tl.program_id(0).to(tl.int64)
    label = tl.arange(0, BLOCK)
    if task < n_tables:
        pair = (label[:, None] < L) & (label[None, :] < L)
        place, turned = label[:, None] * BLOCK + label[None, :], label[None, :] * BLOCK + label[:, None]
        scores = tl.load(
            arcs + task * L * L + label[:, None] * L + label[None, :], mask=pair, other=NEVER
        ).to(REAL)
        peak = tl.max(tl.max(scores, axis=1), axis=0)
        low = tl.min(tl.min(tl.where(pair, scores, float("inf")), axis=1), axis=0)
        table = tables + task * (4 * BLOCK * BLOCK + 16)
        weights = tl.exp(scores - finite(peak))
        tl.store(table + place, weights)
        tl.store(table + BLOCK * BLOCK + turned, weights)
        tl.store(table + 2 * BLOCK * BLOCK + place, scores)
        tl.store(table + 3 * BLOCK * BLOCK + turned, scores)
        tl.store(table + 4 * BLOCK * BLOCK, peak)
        tl.store(table + 4 * BLOCK * BLOCK + 1, tl.where(peak - low <= SAFE_SPREAD, 1.0, 0.0).to(REAL))
    elif HAS_TAGS and task < n_tables + B:
        row = task - n_tables
        n = T
        if HAS_LENGTHS:
            n = tl.load(lengths + row).to(tl.int32)
        _gold_role(
            emissions, arcs + tl.where(n_tables > 1, row * L * L, 0), sites, tags, row, n, T, L, start, end, gold,
            HAS_SITES, HAS_START, HAS_END,
        )  # fmt: skip
    else:
        block = task - n_tables
        if HAS_TAGS:
            block -= B
        rows, n_rows = block * STEP + tl.arange(0, STEP), (task * 0 + B) * T
        here = (rows < n_rows)[:, None] & (label < L)[None, :]
        x = tl.load(emissions + rows[:, None] * L + label[None, :], mask=here, other=NEVER).to(REAL)
        tl.store(peaks + rows, finite(tl.max(x, axis=1)), mask=rows < n_rows)


@triton.jit
def square(table, which: tl.constexpr, BLOCK: tl.constexpr):
    """One of the four tables [BLOCK, BLOCK]."""
    label = tl.arange(0, BLOCK)
    return tl.load(table + which * BLOCK * BLOCK + label[:, None] * BLOCK + label[None, :])


@triton.jit
def _power(message):
    """The exponent of a power of two near the largest number."""
    return tl.ceil(tl.log2(tl.maximum(tl.max(message, axis=0), 1e-37)))


@triton.jit
def _forward_role(
    emissions, peaks, table, peak, safe, sites, row, n, T, L: tl.constexpr, label, start, end, forward, scale,
    out_value, gold, HAS_SITES: tl.constexpr, HAS_TAGS: tl.constexpr, KEEP: tl.constexpr,
    BLOCK: tl.constexpr, REAL: tl.constexpr,
):  # fmt: skip
    """Forward messages of one sequence, and log Z."""
    top_end = tl.max(end, axis=0)
    x = row_of(emissions, sites, row, 0, n, T, L, label, start, end, HAS_SITES, REAL)
    m = finite(tl.max(x, axis=0))
    total = m.to(tl.float64)
    out, into = forward + row * T * L + label, scale + row * T
    known = label < L
    if KEEP and n > 0:
        tl.store(into, m)
    if safe:
        weights = square(table, 0, BLOCK)
        v = tl.exp(x - m)
        if KEEP and n > 0:
            tl.store(out, v, mask=known)
        x1, m1 = _states(
            emissions, peaks, sites, row, 1, n, T, L, label, start, end, top_end, HAS_SITES, REAL
        )
        x2, m2 = _states(
            emissions, peaks, sites, row, 2, n, T, L, label, start, end, top_end, HAS_SITES, REAL
        )
        for t in range(1, n - 1, 2):
            x3, m3 = _states(
                emissions, peaks, sites, row, t + 2, n, T, L, label, start, end, top_end, HAS_SITES, REAL
            )
            x4, m4 = _states(
                emissions, peaks, sites, row, t + 3, n, T, L, label, start, end, top_end, HAS_SITES, REAL
            )
            power = _power(v)
            u1, u2 = tl.exp(x1 - m1) * tl.exp2(-power), tl.exp(x2 - m2)
            m1 += power * LOG_2 + peak
            m2 += peak
            v = tl.sum(v[:, None] * weights, axis=0) * u1
            total += m1.to(tl.float64) + m2.to(tl.float64)
            if KEEP:
                tl.store(into + t, m1)
                tl.store(into + t + 1, m2)
                tl.store(out + t * L, v, mask=known)
            v = tl.sum(v[:, None] * weights, axis=0) * u2
            if KEEP:
                tl.store(out + (t + 1) * L, v, mask=known)
            x1, x2, m1, m2 = x3, x4, m3, m4
        if (n > 1) & (n % 2 == 0):
            v = tl.sum(v[:, None] * weights, axis=0) * tl.exp(x1 - m1)
            total += (m1 + peak).to(tl.float64)
            if KEEP:
                tl.store(into + n - 1, m1 + peak)
                tl.store(out + (n - 1) * L, v, mask=known)
        total += tl.log(tl.sum(v, axis=0)).to(tl.float64)
    else:
        scores = square(table, 2, BLOCK)
        v = x - m
        if KEEP and n > 0:
            tl.store(out, v, mask=known)
        for t in range(1, n):
            x = row_of(emissions, sites, row, t, n, T, L, label, start, end, HAS_SITES, REAL)
            v = _pushed_in_log_space(v, scores) + x
            m = finite(tl.max(v, axis=0))
            v -= m
            total += m.to(tl.float64)
            if KEEP:
                tl.store(into + t, m)
                tl.store(out + t * L, v, mask=known)
        total += tl.log(tl.sum(tl.exp(v), axis=0)).to(tl.float64)
    total = tl.where(n > 0, total, 0.0)
    if HAS_TAGS:
        total = tl.load(gold + row) - total
    tl.store(out_value + row, total)


@triton.jit
def _backward_role(
    emissions, peaks, table, safe, sites, row, n, T, L: tl.constexpr, label, start, end, backward,
    HAS_SITES: tl.constexpr, BLOCK: tl.constexpr, REAL: tl.constexpr,
):  # fmt: skip
    """Backward messages of one sequence."""
    top_end = tl.max(end, axis=0)
    out = backward + row * T * L + label
    known = label < L
    v = tl.where(known, 1.0, 0.0).to(REAL)
    if safe:
        if n > 0:
            tl.store(out + (n - 1) * L, v, mask=known)
        weights = square(table, 1, BLOCK)
        x1, m1 = _states(
            emissions, peaks, sites, row, n - 1, n, T, L, label, start, end, top_end, HAS_SITES, REAL
        )
        x2, m2 = _states(
            emissions, peaks, sites, row, n - 2, n, T, L, label, start, end, top_end, HAS_SITES, REAL
        )
        for i in range(1, n - 1, 2):
            t = n - i  # from site t to the one before it, and from there to the one before that
            x3, m3 = _states(
                emissions, peaks, sites, row, t - 2, n, T, L, label, start, end, top_end, HAS_SITES, REAL
            )
            x4, m4 = _states(
                emissions, peaks, sites, row, t - 3, n, T, L, label, start, end, top_end, HAS_SITES, REAL
            )
            u1, u2 = tl.exp(x1 - m1) * tl.exp2(-_power(v)), tl.exp(x2 - m2)
            w = v * u1
            v = tl.sum(w[:, None] * weights, axis=0)
            tl.store(out + (t - 1) * L, v, mask=known)
            w = v * u2
            v = tl.sum(w[:, None] * weights, axis=0)
            tl.store(out + (t - 2) * L, v, mask=known)
            x1, x2, m1, m2 = x3, x4, m3, m4
        if (n > 1) & (n % 2 == 0):
            w = v * tl.exp(x1 - m1)
            tl.store(out, tl.sum(w[:, None] * weights, axis=0), mask=known)
    else:
        scores = square(table, 3, BLOCK)
        v = tl.where(known, 0.0, NEVER).to(REAL)
        if n > 0:
            tl.store(out + (n - 1) * L, v, mask=known)
        for i in range(1, n):
            t = n - i
            x = row_of(emissions, sites, row, t, n, T, L, label, start, end, HAS_SITES, REAL)
            v = _pushed_in_log_space(v + x, scores)
            v -= finite(tl.max(v, axis=0))
            tl.store(out + (t - 1) * L, v, mask=known)


@triton.jit(do_not_specialize=["B", "T", "own_arcs"])
def messages_kernel(
    emissions, start, end, lengths, sites, tables, peaks, messages, out, B, T, L: tl.constexpr, own_arcs,
    HAS_START: tl.constexpr, HAS_END: tl.constexpr, HAS_LENGTHS: tl.constexpr, HAS_SITES: tl.constexpr,
    HAS_TAGS: tl.constexpr, KEEP: tl.constexpr, BLOCK: tl.constexpr, REAL: tl.constexpr,
):  # fmt: skip
    """Programs [B, roles]: forward messages and log Z; with KEEP, backward messages.

    messages: forward [B, T, L], backward [B, T, L] and scale [B, T], one after the other. out [B]: log Z, or the score of
    the tags, which stands behind it [B], less log Z.
    """
    row, role = tl.program_id(0).to(tl.int64), tl.program_id(1)
    n = T
    if HAS_LENGTHS:
        n = tl.load(lengths + row).to(tl.int32)
    label = tl.arange(0, BLOCK)
    first, last = ends_of(start, label, L, HAS_START, REAL), ends_of(end, label, L, HAS_END, REAL)
    table = tables + row * own_arcs * (4 * BLOCK * BLOCK + 16)
    peak, safe = tl.load(table + 4 * BLOCK * BLOCK), tl.load(table + 4 * BLOCK * BLOCK + 1) > 0
    size = (row * 0 + B) * T * L
    if role == 0:
        _forward_role(
            emissions, peaks, table, peak, safe, sites, row, n, T, L, label, first, last, messages,
            messages + 2 * size, out, out + B, HAS_SITES, HAS_TAGS, KEEP, BLOCK, REAL,
        )  # fmt: skip
    elif KEEP:
        _backward_role(
            emissions, peaks, table, safe, sites, row, n, T, L, label, first, last, messages + size,
            HAS_SITES, BLOCK, REAL,
        )  # fmt: skip
