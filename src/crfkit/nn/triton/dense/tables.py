"""Triton kernels for chains of up to 128 labels: tables, and messages in both directions.

One program has one sequence (and one direction), with exp(arcs) on chip. Messages are kept in exp space, and are divided now
and then by a power of two near their largest number:

    V_i = (V_{i−1} W) ∘ exp(states_i − m_i) / 2^k_i,        W = exp(arcs − peak), m_i the largest emission of site i
    V_i = exp(states_i − scale_i) ∘ (V_{i−1} W),                                                scale_i = m_i + k_i log 2
    log Z = Σ_i scale_i + (n − 1) peak + log Σ V_{n−1}       added up in float64

How often: arcs whose scores lie s nats apart make numbers e^s times smaller from site to site at most, and 60 nats are well
within float32. Where arcs do not exist or lie farther apart than SAFE_SPREAD, the states of a sequence decide as well
(`exp_space`), and where they lie too far apart, messages are logarithms, made in log space. Programs find that out for
themselves, and nothing has to be asked from outside.
"""

from __future__ import annotations

import triton
import triton.language as tl

from crfkit.nn.triton.scaling import steps_to_all

SAFE_SPREAD = tl.constexpr(30.0)
UNDIVIDED_SPREAD = tl.constexpr(60.0)
NEVER = tl.constexpr(float("-inf"))
LOG_2 = tl.constexpr(0.6931471805599453)


@triton.jit
def length_of(lengths, row, T, HAS_LENGTHS: tl.constexpr):
    """The number of sites of a sequence."""
    n = T
    if HAS_LENGTHS:
        n = tl.load(lengths + row).to(tl.int32)
    return n


@triton.jit
def position_of(sites, row, t, T, HAS_SITES: tl.constexpr):
    """The position of site t of a sequence."""
    if HAS_SITES:
        position = tl.load(sites + row * T + tl.minimum(t, T - 1)).to(tl.int32)
    else:
        position = tl.minimum(t, T - 1)
    return position


@triton.jit
def row_of(
    emissions, sites, row, t, n, T, L: tl.constexpr, label, start, end,
    HAS_SITES: tl.constexpr, REAL: tl.constexpr,
):  # fmt: skip
    """The scores of site t of a sequence with start and end folded in [BLOCK], −inf in the padding."""
    p = position_of(sites, row, t, T, HAS_SITES)
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
def inverse(x):
    """1 / x, or 0 where x is 0."""
    return tl.where(x > 0, 1.0 / x, 0.0)


@triton.jit
def gold_role(
    emissions, arcs, bigrams, sites, tags, row, n, T, L: tl.constexpr, start, end, gold, counts,
    HAS_SITES: tl.constexpr, HAS_START: tl.constexpr, HAS_END: tl.constexpr, REAL: tl.constexpr,
):  # fmt: skip
    """score(tags) of one sequence, as a number and what its rounding took; its arcs are counted, if somebody counts.

    bigrams [L + 1, L + 1], where it is given, says which arcs exist: tags with others have −inf. Labels that do not exist
    make it NaN, and nothing is read or counted where they would stand.
    """
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
        total += tl.where((y < 0) | (y >= L), float("nan"), 0.0)
        x, y = tl.minimum(tl.maximum(x, 0), L - 1), tl.minimum(tl.maximum(y, 0), L - 1)
        total += tl.load(emissions + (row * T + p) * L + y, mask=on, other=0.0).to(tl.float64)
        arc = tl.load(arcs + x * L + y, mask=on & (t > 0), other=0.0).to(tl.float64)
        if bigrams is not None:
            arc = tl.where(tl.load(bigrams + x * (L + 1) + y, mask=on & (t > 0), other=1) != 0, arc, NEVER)
        total += arc
        if counts is not None:
            tl.atomic_add(counts + x * L + y, 1, mask=on & (t > 0))
        if HAS_START:
            total += tl.load(start + y, mask=on & (t == 0), other=0.0).to(tl.float64)
        if HAS_END:
            total += tl.load(end + y, mask=on & (t == n - 1), other=0.0).to(tl.float64)
    score = tl.sum(total, axis=0)
    high = score.to(REAL)
    tl.store(gold + 2 * row, high)
    tl.store(gold + 2 * row + 1, tl.where(high == NEVER, 0.0, score - high.to(tl.float64)).to(REAL))


@triton.jit
def added_up(values, total, counter, B, share, REAL: tl.constexpr):
    """The sum of values [B] / share, by the last program that comes here, in one order."""
    tl.debug_barrier()
    if tl.atomic_add(counter, 1, sem="acq_rel") == B - 1:
        tl.debug_barrier()
        STEP: tl.constexpr = 256
        added = tl.zeros([STEP], dtype=tl.float64)
        for begin in range(0, B, STEP):
            row = begin + tl.arange(0, STEP)
            added += tl.load(values + row, mask=row < B, other=0.0, cache_modifier=".cg").to(tl.float64)
        tl.store(total, (tl.sum(added, axis=0) / share).to(REAL))


@triton.jit
def _spread_place(k, j, BLOCK: tl.constexpr, WARPS: tl.constexpr, LANES: tl.constexpr):
    """Where a program that multiplies by a table finds [k, j], see `spread`."""
    lanes: tl.constexpr = 32 // LANES
    k_turn, k_lane, k_four = k // (4 * LANES), (k // 4) % LANES, k % 4
    j_turn, j_warp, j_lane = j // (WARPS * lanes), (j // lanes) % WARPS, j % lanes
    thread = (j_warp * lanes + j_lane) * LANES + k_lane
    return ((j_turn * (BLOCK // (4 * LANES)) + k_turn) * (32 * WARPS) + thread) * 4 + k_four


@triton.jit
def spread(table, BLOCK: tl.constexpr, WARPS: tl.constexpr, LANES: tl.constexpr):
    """A table [BLOCK, BLOCK] from memory where every thread finds its columns in one piece.

    Loaded as they lie in memory, four numbers go to a thread, the next four to the next one, and so on. So the order there
    says which thread has what: LANES neighbours share a column, which keeps the sums over rows within threads, or nearly.
    """
    flat = tl.load(table + tl.arange(0, BLOCK * BLOCK))
    turns: tl.constexpr = BLOCK * LANES // (32 * WARPS)
    parts = tl.reshape(flat, [turns, BLOCK // (4 * LANES), WARPS, 32 // LANES, LANES, 4])
    return tl.reshape(tl.permute(parts, [1, 4, 5, 0, 2, 3]), [BLOCK, BLOCK])


@triton.jit
def square(table, which: tl.constexpr, BLOCK: tl.constexpr):
    """One of the tables of scores [BLOCK, BLOCK]: 2, or 3 for its transpose."""
    label = tl.arange(0, BLOCK)
    return tl.load(table + which * BLOCK * BLOCK + label[:, None] * BLOCK + label[None, :])


@triton.jit
def _table_role(
    arcs, start, end, table, L: tl.constexpr, HAS_START: tl.constexpr, HAS_END: tl.constexpr,
    BLOCK: tl.constexpr, REAL: tl.constexpr, WARPS: tl.constexpr, LANES: tl.constexpr,
):  # fmt: skip
    """Arcs [L, L] as the other kernels want them."""
    label = tl.arange(0, BLOCK)
    k, j = label[:, None], label[None, :]
    pair = (k < L) & (j < L)
    scores = tl.load(arcs + k * L + j, mask=pair, other=NEVER).to(REAL)
    peak = tl.max(tl.max(scores, axis=1), axis=0)
    apart = peak - tl.min(tl.min(tl.where(pair, scores, float("inf")), axis=1), axis=0)
    weights = tl.exp(scores - finite(peak))
    tl.store(table + _spread_place(k, j, BLOCK, WARPS, LANES), weights)
    tl.store(table + BLOCK * BLOCK + _spread_place(j, k, BLOCK, WARPS, LANES), weights)
    tl.store(table + 2 * BLOCK * BLOCK + k * BLOCK + j, scores)
    tl.store(table + 3 * BLOCK * BLOCK + j * BLOCK + k, scores)
    period = tl.where(8 * apart <= UNDIVIDED_SPREAD, 8.0, tl.where(4 * apart <= UNDIVIDED_SPREAD, 4.0, 2.0))
    steps = tl.full([], 0, tl.int32)
    if not apart <= SAFE_SPREAD:
        exists, period = scores > NEVER, period * 0.0
        first, last = ends_of(start, label, L, HAS_START, REAL), ends_of(end, label, L, HAS_END, REAL)
        steps = steps_to_all(exists, (first > NEVER) & (label < L), (last > NEVER) & (label < L), L, label)
        apart = peak - tl.min(tl.min(tl.where(exists, scores, float("inf")), axis=1), axis=0)
    tl.store(table + 4 * BLOCK * BLOCK, peak)
    tl.store(table + 4 * BLOCK * BLOCK + 1, period.to(REAL))
    tl.store(table + 4 * BLOCK * BLOCK + 2, steps.to(REAL))
    tl.store(table + 4 * BLOCK * BLOCK + 3, apart)


@triton.jit(do_not_specialize=["B", "T", "n_tables"])
def tables_kernel(
    emissions, arcs, start, end, lengths, sites, tags, tables, B, T, n_tables, L: tl.constexpr,
    HAS_START: tl.constexpr, HAS_END: tl.constexpr, HAS_LENGTHS: tl.constexpr, HAS_SITES: tl.constexpr,
    HAS_TAGS: tl.constexpr, BLOCK: tl.constexpr, STEP: tl.constexpr, REAL: tl.constexpr, WARPS: tl.constexpr,
    LANES: tl.constexpr,
):  # fmt: skip
    """Programs [n_tables + B (with HAS_TAGS) + blocks of rows]: what the other kernels want to know beforehand.

    tables: n_tables times [4 BLOCK² + 16], W and its transpose in the order of `spread`, arcs and their transpose, with rows
    padded to BLOCK; then the peak, how many sites there are from division to division, 0 where the states decide; for these
    (`exp_space`), steps from every label to every label, and how far the arcs lie apart. Then the scores of the tags [B, 2],
    a counter, the largest emission of each position [B, T], and room for [B] that the messages' kernel finds.
    """
    task = tl.program_id(0).to(tl.int64)
    gold = tables + n_tables * (4 * BLOCK * BLOCK + 16)
    if task < n_tables:
        table = tables + task * (4 * BLOCK * BLOCK + 16)
        _table_role(arcs + task * L * L, start, end, table, L, HAS_START, HAS_END, BLOCK, REAL, WARPS, LANES)
        if task == 0:
            tl.store(gold + 2 * B, 0.0)
    elif HAS_TAGS and task < n_tables + B:
        row = task - n_tables
        n = length_of(lengths, row, T, HAS_LENGTHS)
        gold_role(
            emissions, arcs + tl.where(n_tables > 1, row * L * L, 0), None, sites, tags, row, n, T, L, start, end,
            gold, None, HAS_SITES, HAS_START, HAS_END, REAL,
        )  # fmt: skip
    else:
        block = task - n_tables
        if HAS_TAGS:
            block -= B
        label = tl.arange(0, BLOCK)
        rows, n_rows = block * STEP + tl.arange(0, STEP), (task * 0 + B) * T
        here = (rows < n_rows)[:, None] & (label < L)[None, :]
        x = tl.load(emissions + rows[:, None] * L + label[None, :], mask=here, other=NEVER).to(REAL)
        tl.store(gold + 2 * B + 1 + rows, finite(tl.max(x, axis=1)), mask=rows < n_rows)
