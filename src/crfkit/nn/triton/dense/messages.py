"""The Triton kernel that makes the messages of chains of up to 128 labels, with the recursions of `chain_kernels`."""

from __future__ import annotations

import triton
import triton.language as tl

from crfkit.nn.triton.dense.tables import (
    LOG_2,
    NEVER,
    added_up,
    ends_of,
    finite,
    length_of,
    position_of,
    row_of,
    spread,
    square,
)
from crfkit.nn.triton.scaling import sites_per_division, spread_of, widest_of


@triton.jit
def _pushed_in_log_space(message, table):
    """log Σ_a exp(message(a) + table(a, b)) [BLOCK] of logarithms."""
    reached = message[:, None] + table
    top = finite(tl.max(reached, axis=0))
    return tl.log(tl.sum(tl.exp(reached - top[None, :]), axis=0)) + top


@triton.jit
def _site(
    emissions, peaks, sites, row, t, T, L: tl.constexpr, label, HAS_SITES: tl.constexpr, REAL: tl.constexpr
):
    """The emissions of site t of a sequence [BLOCK], −inf in the padding, and the largest, for each label.

    Numbers that are the same for all threads would be waited for as soon as they are asked for, so the largest is not.
    """
    p = position_of(sites, row, tl.maximum(t, 0), T, HAS_SITES)
    x = tl.load(emissions + p * L + label, mask=label < L, other=NEVER).to(REAL)
    return x, tl.load(peaks + p + tl.where(label + T < 0, label, 0))


@triton.jit
def _pushed(message, weights):
    """message weights [BLOCK]."""
    return tl.sum(message[:, None] * weights, axis=0)


@triton.jit
def _power(message):
    """The exponent of a power of two near the largest number."""
    least = 1e-37 if message.dtype == tl.float32 else 1e-300
    return tl.ceil(tl.log2(tl.maximum(tl.max(message, axis=0), least)))


@triton.jit
def _divided(message, scale, due):
    """A message and its scale [BLOCK], after a division by a power of two near its largest number, if that is due."""
    if due:
        power = _power(message)
        message *= tl.exp2(-power)
        scale += power * LOG_2
    return message, scale


@triton.jit
def _keep(out, into, t, message, scale, L: tl.constexpr, label, KEEP: tl.constexpr):
    """Store the message of site t, and its scale."""
    if KEEP:
        tl.store(out + t * L, message, mask=label < L)
        tl.store(into + t + label, scale, mask=label == 0)


@triton.jit
def _forward_scaled(
    emissions, peaks, table, period, sites, row, n, T, L: tl.constexpr, label, start, end, out, into,
    HAS_SITES: tl.constexpr, KEEP: tl.constexpr, BLOCK: tl.constexpr, REAL: tl.constexpr, WARPS: tl.constexpr,
    LANES: tl.constexpr,
):  # fmt: skip
    """Forward messages in exp space; their scales, and the logarithm of the last one's sum, added up in float64."""
    known = label < L
    weights = spread(table, BLOCK, WARPS, LANES)
    x = row_of(emissions, sites, row, 0, n, T, L, label, start, end, HAS_SITES, REAL)
    m = finite(tl.max(x, axis=0))
    v = tl.exp(x - m)
    total = tl.zeros([BLOCK], dtype=tl.float64) + m.to(tl.float64)
    if KEEP and n > 0:
        tl.store(into, m)
        tl.store(out, v, mask=known)
    x1, m1 = _site(emissions, peaks, sites, row, 1, T, L, label, HAS_SITES, REAL)
    x2, m2 = _site(emissions, peaks, sites, row, 2, T, L, label, HAS_SITES, REAL)
    x3, m3 = _site(emissions, peaks, sites, row, 3, T, L, label, HAS_SITES, REAL)
    x4, m4 = _site(emissions, peaks, sites, row, 4, T, L, label, HAS_SITES, REAL)
    in_fours = tl.where(period > 1, tl.maximum(n - 2, 0) // 4, 0)
    # what the next four sites need is asked for before these four are done
    for t in range(1, 4 * in_fours, 4):
        x5, m5 = _site(emissions, peaks, sites, row, t + 4, T, L, label, HAS_SITES, REAL)
        x6, m6 = _site(emissions, peaks, sites, row, t + 5, T, L, label, HAS_SITES, REAL)
        x7, m7 = _site(emissions, peaks, sites, row, t + 6, T, L, label, HAS_SITES, REAL)
        x8, m8 = _site(emissions, peaks, sites, row, t + 7, T, L, label, HAS_SITES, REAL)
        v = _pushed(v, weights) * tl.exp(x1 - m1)
        _keep(out, into, t, v, m1, L, label, KEEP)
        v, m2 = _divided(_pushed(v, weights) * tl.exp(x2 - m2), m2, period == 2)
        _keep(out, into, t + 1, v, m2, L, label, KEEP)
        v = _pushed(v, weights) * tl.exp(x3 - m3)
        _keep(out, into, t + 2, v, m3, L, label, KEEP)
        due = ((t + 3) & (period - 1)) == 0
        v, m4 = _divided(_pushed(v, weights) * tl.exp(x4 - m4), m4, due)
        _keep(out, into, t + 3, v, m4, L, label, KEEP)
        total += m1.to(tl.float64) + m2.to(tl.float64) + (m3.to(tl.float64) + m4.to(tl.float64))
        x1, x2, x3, x4, m1, m2, m3, m4 = x5, x6, x7, x8, m5, m6, m7, m8
    x = row_of(emissions, sites, row, 1 + 4 * in_fours, n, T, L, label, start, end, HAS_SITES, REAL)
    y = row_of(emissions, sites, row, 2 + 4 * in_fours, n, T, L, label, start, end, HAS_SITES, REAL)
    for t in range(1 + 4 * in_fours, n):  # one by one: the last ones, or all of them
        next_y = row_of(emissions, sites, row, t + 2, n, T, L, label, start, end, HAS_SITES, REAL)
        scale = finite(tl.max(x, axis=0)) + tl.zeros([BLOCK], dtype=REAL)
        v, scale = _divided(_pushed(v, weights) * tl.exp(x - scale), scale, True)
        total += scale.to(tl.float64)
        _keep(out, into, t, v, scale, L, label, KEEP)
        x, y = y, next_y
    return tl.max(total, axis=0) + tl.log(tl.sum(v, axis=0)).to(tl.float64)


@triton.jit
def _forward_in_log_space(
    emissions, table, peak, sites, row, n, T, L: tl.constexpr, label, start, end, out, into,
    HAS_SITES: tl.constexpr, KEEP: tl.constexpr, BLOCK: tl.constexpr, REAL: tl.constexpr,
):  # fmt: skip
    """The same with logarithms."""
    known = label < L
    scores = square(table, 2, BLOCK)
    x = row_of(emissions, sites, row, 0, n, T, L, label, start, end, HAS_SITES, REAL)
    m = finite(tl.max(x, axis=0))
    v = x - m
    total = m.to(tl.float64)
    if KEEP and n > 0:
        tl.store(into, m)
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
    return total + tl.log(tl.sum(tl.exp(v), axis=0)).to(tl.float64)


@triton.jit
def _backward_scaled(
    emissions, peaks, table, period, sites, row, n, T, L: tl.constexpr, label, start, end, out,
    HAS_SITES: tl.constexpr, BLOCK: tl.constexpr, REAL: tl.constexpr, WARPS: tl.constexpr, LANES: tl.constexpr,
):  # fmt: skip
    """Backward messages in exp space, of sites 0 … n − 2; they have no scales, as probabilities are divided by sums."""
    known = label < L
    weights = spread(table + BLOCK * BLOCK, BLOCK, WARPS, LANES)
    x = row_of(emissions, sites, row, n - 1, n, T, L, label, start, end, HAS_SITES, REAL)
    v, _ = _divided(_pushed(tl.exp(x - finite(tl.max(x, axis=0))), weights), x, True)
    tl.store(out + (n - 2) * L, v, mask=known)
    x1, m1 = _site(emissions, peaks, sites, row, n - 2, T, L, label, HAS_SITES, REAL)
    x2, m2 = _site(emissions, peaks, sites, row, n - 3, T, L, label, HAS_SITES, REAL)
    x3, m3 = _site(emissions, peaks, sites, row, n - 4, T, L, label, HAS_SITES, REAL)
    x4, m4 = _site(emissions, peaks, sites, row, n - 5, T, L, label, HAS_SITES, REAL)
    in_fours = tl.where(period > 1, tl.maximum(n - 2, 0) // 4, 0)
    for i in range(0, 4 * in_fours, 4):
        t = n - 2 - i  # from site t to the one before it, and so on
        x5, m5 = _site(emissions, peaks, sites, row, t - 4, T, L, label, HAS_SITES, REAL)
        x6, m6 = _site(emissions, peaks, sites, row, t - 5, T, L, label, HAS_SITES, REAL)
        x7, m7 = _site(emissions, peaks, sites, row, t - 6, T, L, label, HAS_SITES, REAL)
        x8, m8 = _site(emissions, peaks, sites, row, t - 7, T, L, label, HAS_SITES, REAL)
        v = _pushed(v * tl.exp(x1 - m1), weights)
        tl.store(out + (t - 1) * L, v, mask=known)
        v, _ = _divided(_pushed(v * tl.exp(x2 - m2), weights), m2, period == 2)
        tl.store(out + (t - 2) * L, v, mask=known)
        v = _pushed(v * tl.exp(x3 - m3), weights)
        tl.store(out + (t - 3) * L, v, mask=known)
        v, _ = _divided(_pushed(v * tl.exp(x4 - m4), weights), m4, ((i + 4) & (period - 1)) == 0)
        tl.store(out + (t - 4) * L, v, mask=known)
        x1, x2, x3, x4, m1, m2, m3, m4 = x5, x6, x7, x8, m5, m6, m7, m8
    t = n - 2 - 4 * in_fours
    x = row_of(emissions, sites, row, tl.maximum(t, 0), n, T, L, label, start, end, HAS_SITES, REAL)
    y = row_of(emissions, sites, row, tl.maximum(t - 1, 0), n, T, L, label, start, end, HAS_SITES, REAL)
    for i in range(4 * in_fours, n - 2):
        t = n - 2 - i
        next_y = row_of(
            emissions, sites, row, tl.maximum(t - 2, 0), n, T, L, label, start, end, HAS_SITES, REAL
        )
        v, _ = _divided(_pushed(v * tl.exp(x - finite(tl.max(x, axis=0))), weights), x, True)
        tl.store(out + (t - 1) * L, v, mask=known)
        x, y = y, next_y


@triton.jit
def _backward_in_log_space(
    emissions, table, sites, row, n, T, L: tl.constexpr, label, start, end, out,
    HAS_SITES: tl.constexpr, BLOCK: tl.constexpr, REAL: tl.constexpr,
):  # fmt: skip
    """The same with logarithms."""
    known = label < L
    scores = square(table, 3, BLOCK)
    v = tl.where(known, 0.0, NEVER).to(REAL)
    for i in range(1, n):
        t = n - i
        x = row_of(emissions, sites, row, t, n, T, L, label, start, end, HAS_SITES, REAL)
        v = _pushed_in_log_space(v + x, scores)
        v -= finite(tl.max(v, axis=0))
        tl.store(out + (t - 1) * L, v, mask=known)


@triton.jit
def _period_of_states(
    emissions, peaks, facts, sites, row, n, T, L: tl.constexpr, label, start, end,
    HAS_SITES: tl.constexpr, BLOCK: tl.constexpr, REAL: tl.constexpr,
):  # fmt: skip
    """How many sites there are from division to division in a sequence whose arcs alone do not decide, 0 for log space."""
    steps, period = tl.load(facts).to(tl.int32), tl.full([], 0, tl.int32)
    if (steps > 0) & (n > 0):
        apart = widest_of(emissions, peaks, sites, row, n, T, L, label, HAS_SITES, BLOCK, REAL)
        x = row_of(emissions, sites, row, 0, n, T, L, label, start, end, HAS_SITES, REAL)
        y = row_of(emissions, sites, row, n - 1, n, T, L, label, start, end, HAS_SITES, REAL)
        apart = tl.maximum(apart, tl.maximum(spread_of(x), spread_of(y)))
        period = sites_per_division(steps, tl.load(facts + 1) + apart)
    return period


@triton.jit(do_not_specialize=["B", "T", "n_tables", "share"])
def messages_kernel(
    emissions, start, end, lengths, sites, tables, messages, values, total, B, T, n_tables, share, L: tl.constexpr,
    HAS_START: tl.constexpr, HAS_END: tl.constexpr, HAS_LENGTHS: tl.constexpr, HAS_SITES: tl.constexpr,
    HAS_TAGS: tl.constexpr, KEEP: tl.constexpr, ADD_UP: tl.constexpr, BLOCK: tl.constexpr, REAL: tl.constexpr,
    WARPS: tl.constexpr, LANES: tl.constexpr,
):  # fmt: skip
    """Programs [B, roles]: forward messages and log Z; with KEEP, backward messages.

    messages: forward [B, T, L], backward [B, T, L] and scale [B, T], one after the other; backward messages of last sites
    are ones, which nobody stores. values [B]: log Z, or the score of the tags less log Z; with ADD_UP, total [] is their
    sum / share. At the end of the tables: sites from division to division [B], 0 where messages are logarithms.
    """
    row, role = tl.program_id(0).to(tl.int64), tl.program_id(1)
    n = length_of(lengths, row, T, HAS_LENGTHS)
    label = tl.arange(0, BLOCK)
    first, last = ends_of(start, label, L, HAS_START, REAL), ends_of(end, label, L, HAS_END, REAL)
    gold = tables + n_tables * (4 * BLOCK * BLOCK + 16)
    table = tables + tl.where(n_tables > 1, row, 0) * (4 * BLOCK * BLOCK + 16)
    size = (row * 0 + B) * T * L
    emissions += row * T * L
    peaks = gold + 2 * B + 1 + row * T
    facts, own = table + 4 * BLOCK * BLOCK, gold + 2 * B + 1 + (row * 0 + B) * T + row
    peak, place = tl.load(facts), facts + 1
    if tl.load(place) == 0:
        found = _period_of_states(
            emissions, peaks, facts + 2, sites, row, n, T, L, label, first, last, HAS_SITES, BLOCK, REAL
        )
        tl.store(own, found.to(REAL))
        tl.debug_barrier()
        # what is read from one place is the same for all threads, which keeps branches on it simple
        place = own
    period = tl.load(place).to(tl.int32)
    if role == 0:
        out, into = messages + row * T * L + label, messages + 2 * size + row * T
        tl.store(own, period.to(REAL))
        if period > 0:
            log_z = _forward_scaled(
                emissions, peaks, table, period, sites, row, n, T, L, label, first, last, out, into,
                HAS_SITES, KEEP, BLOCK, REAL, WARPS, LANES,
            ) + (n - 1).to(tl.float64) * peak.to(tl.float64)  # fmt: skip
        else:
            log_z = _forward_in_log_space(
                emissions, table, peak, sites, row, n, T, L, label, first, last, out, into,
                HAS_SITES, KEEP, BLOCK, REAL,
            )  # fmt: skip
        value = tl.where(n > 0, log_z, 0.0)
        if HAS_TAGS:
            score = tl.load(gold + 2 * row).to(tl.float64) + tl.load(gold + 2 * row + 1).to(tl.float64)
            value = score - value
        tl.store(values + row, value.to(REAL))
        if ADD_UP:
            added_up(values, total, gold + 2 * B, B, share, REAL)
    elif KEEP and n > 1:
        out = messages + size + row * T * L + label
        if period > 0:
            _backward_scaled(
                emissions, peaks, table, period, sites, row, n, T, L, label, first, last, out,
                HAS_SITES, BLOCK, REAL, WARPS, LANES,
            )  # fmt: skip
        else:
            _backward_in_log_space(
                emissions, table, sites, row, n, T, L, label, first, last, out, HAS_SITES, BLOCK, REAL
            )
