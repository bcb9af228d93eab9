"""Triton kernels for chains of up to 128 labels: tables, and messages in both directions.

One program has one sequence (and one direction), with exp(transitions) on chip. Messages are kept in exp space, and
are rescaled periodically by a power of two near their largest number, which costs no digits:

    V_i = (V_{i−1} W) ∘ exp(emissions_i − m_i) / 2^k_i,    W = exp(transitions − maximum), m_i = max emissions_i
        = (V_{i−1} W) ∘ exp(emissions_i − scale_i),        scale_i = m_i + k_i log 2
    log Z = Σ_i scale_i + (n − 1) maximum + log Σ V_{n−1}       summed in float64

How often: transitions whose scores lie s nats apart make numbers at most e^s times smaller from token to token, and
60 nats are well within float32. With transitions that are forbidden or lie farther apart than SAFE_SPREAD, the
emissions of a sequence decide as well (`scaling`), and where these lie too far apart, messages are logarithms. All
this is decided on the device.
"""

import triton
import triton.language as tl

from crfkit.nn.triton.scaling import steps_to_all

SAFE_SPREAD = tl.constexpr(30.0)
UNDIVIDED_SPREAD = tl.constexpr(60.0)
NEVER = tl.constexpr(float("-inf"))
LOG_2 = tl.constexpr(0.6931471805599453)
# facts of a table of transitions: its largest score; tokens from division to division, 0 where emissions decide; in that
# case, the steps from every label to every label; and the spread of the allowed scores
MAXIMUM, PERIOD, STEPS, APART, N_FACTS = (tl.constexpr(i) for i in range(5))


@triton.jit
def length_of(lengths, row, T):
    """The number of tokens of a sequence."""
    n = T
    if lengths is not None:
        n = tl.load(lengths + row).to(tl.int32)
    return n


@triton.jit
def position_of(positions, row, t, T):
    """The position of token t of a sequence."""
    if positions is not None:
        position = tl.load(positions + row * T + tl.minimum(t, T - 1)).to(tl.int32)
    else:
        position = tl.minimum(t, T - 1)
    return position


@triton.jit
def positions_of(positions, row, t, on, T):
    """The positions of tokens t [STEP] of the sequences `row`, where they are `on`."""
    position = t
    if positions is not None:
        position = tl.load(positions + row * T + t, mask=on, other=0).to(tl.int32)
    return position


@triton.jit
def tags_of(tags, positions, row, t, on, T):
    """The tags at tokens t [STEP] of the sequences `row`; −1 where they are not `on`."""
    return tl.load(tags + row * T + positions_of(positions, row, t, on, T), mask=on, other=-1).to(tl.int32)


@triton.jit
def lengths_of(lengths, row, exists, T):
    """The numbers of tokens of sequences `row` [ROWS], 0 where one does not exist."""
    n = tl.zeros_like(row) + T
    if lengths is not None:
        n = tl.load(lengths + row, mask=exists, other=0)
    return n


@triton.jit
def row_of(emissions, positions, row, t, n, T, L: tl.constexpr, label, start, end, REAL: tl.constexpr):
    """The scores of token t of a sequence with start and end folded in [BLOCK], −inf in the padding."""
    p = position_of(positions, row, t, T)
    x = tl.load(emissions + p * L + label, mask=label < L, other=NEVER).to(REAL)
    return x + tl.where(t == 0, start, 0.0) + tl.where(t == n - 1, end, 0.0)


@triton.jit
def ends_of(scores, label, L: tl.constexpr, REAL: tl.constexpr):
    """Scores of the first or last label [BLOCK]."""
    if scores is not None:
        at_ends = tl.load(scores + label, mask=label < L, other=0.0).to(REAL)
    else:
        at_ends = tl.zeros_like(label).to(REAL)
    return at_ends


@triton.jit
def finite(x):
    """A maximum that may be subtracted: 0 for −inf."""
    return tl.where(x == NEVER, 0.0, x)


@triton.jit
def inverse(x):
    """1 / x, or 0 where x is 0."""
    return tl.where(x > 0, 1.0 / x, 0.0)


@triton.jit
def gold_role(
    emissions, transitions, bigrams, positions, tags, row, n, T, L: tl.constexpr, start, end, gold, counts,
    REAL: tl.constexpr,
):  # fmt: skip
    """score(tags) of one sequence, as a number and what its rounding took; its transitions are added to `counts`.

    bigrams [L + 1, L + 1], where it is given, says which transitions exist: tags with others have −inf. Labels that
    do not exist make it NaN, and are neither read nor counted.
    """
    STEP: tl.constexpr = 128
    place = tl.arange(0, STEP)
    total = tl.zeros([STEP], dtype=tl.float64)
    for first in range(0, n, STEP):
        t = first + place
        on = t < n
        linked = on & (t > 0)
        p = positions_of(positions, row, t, on, T)
        y = tl.load(tags + row * T + p, mask=on, other=0)  # in 64 bits, as any number may stand there
        total += tl.where((y < 0) | (y >= L), float("nan"), 0.0)
        x, y = (
            tl.minimum(tl.maximum(tags_of(tags, positions, row, t - 1, linked, T), 0), L - 1),
            tl.minimum(tl.maximum(y, 0), L - 1),
        )
        total += tl.load(emissions + (row * T + p) * L + y, mask=on, other=0.0).to(tl.float64)
        transition = tl.load(transitions + x * L + y, mask=linked, other=0.0).to(tl.float64)
        if bigrams is not None:
            transition = tl.where(
                tl.load(bigrams + x * (L + 1) + y, mask=linked, other=1) != 0, transition, NEVER
            )
        total += transition
        if counts is not None:
            tl.atomic_add(counts + x * L + y, 1, mask=linked)
        if start is not None:
            total += tl.load(start + y, mask=on & (t == 0), other=0.0).to(tl.float64)
        if end is not None:
            total += tl.load(end + y, mask=on & (t == n - 1), other=0.0).to(tl.float64)
    score = tl.sum(total, axis=0)
    high = score.to(REAL)
    tl.store(gold + 2 * row, high)
    tl.store(gold + 2 * row + 1, tl.where(high == NEVER, 0.0, score - high.to(tl.float64)).to(REAL))


@triton.jit
def gold_score(gold, row):
    """score(tags) of a sequence in float64, as `gold_role` stored it."""
    return tl.load(gold + 2 * row).to(tl.float64) + tl.load(gold + 2 * row + 1).to(tl.float64)


@triton.jit
def maxima_role(emissions, maxima, rows, n_rows, L: tl.constexpr, label, REAL: tl.constexpr):
    """The largest emission of each of the positions `rows` [STEP] of all n_rows, 0 where all are −inf."""
    here = (rows < n_rows)[:, None] & (label < L)[None, :]
    x = tl.load(emissions + rows[:, None] * L + label[None, :], mask=here, other=NEVER).to(REAL)
    tl.store(maxima + rows, finite(tl.max(x, axis=1)), mask=rows < n_rows)


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

    Loaded as they lie in memory, four numbers go to a thread, the next four to the next one, and so on. So the order
    there says which thread has what: LANES neighbours share a column, which keeps the sums over rows within threads,
    or nearly.
    """
    flat = tl.load(table + tl.arange(0, BLOCK * BLOCK))
    turns: tl.constexpr = BLOCK * LANES // (32 * WARPS)
    parts = tl.reshape(flat, [turns, BLOCK // (4 * LANES), WARPS, 32 // LANES, LANES, 4])
    return tl.reshape(tl.permute(parts, [1, 4, 5, 0, 2, 3]), [BLOCK, BLOCK])


@triton.jit
def square(table, BLOCK: tl.constexpr):
    """A table [BLOCK, BLOCK] of scores."""
    label = tl.arange(0, BLOCK)
    return tl.load(table + label[:, None] * BLOCK + label[None, :])


@triton.jit
def _table_role(
    transitions, start, end, weights, scores, facts, L: tl.constexpr, BLOCK: tl.constexpr, REAL: tl.constexpr,
    WARPS: tl.constexpr, LANES: tl.constexpr,
):  # fmt: skip
    """Weights, scores and facts of transitions [L, L], see `Workspace`."""
    label = tl.arange(0, BLOCK)
    k, j = label[:, None], label[None, :]
    pair = (k < L) & (j < L)
    x = tl.load(transitions + k * L + j, mask=pair, other=NEVER).to(REAL)
    maximum = tl.max(tl.max(x, axis=1), axis=0)
    apart = maximum - tl.min(tl.min(tl.where(pair, x, float("inf")), axis=1), axis=0)
    w = tl.exp(x - finite(maximum))
    tl.store(weights + _spread_place(k, j, BLOCK, WARPS, LANES), w)
    tl.store(weights + BLOCK * BLOCK + _spread_place(j, k, BLOCK, WARPS, LANES), w)
    tl.store(scores + k * BLOCK + j, x)
    tl.store(scores + BLOCK * BLOCK + j * BLOCK + k, x)
    period = tl.where(8 * apart <= UNDIVIDED_SPREAD, 8.0, tl.where(4 * apart <= UNDIVIDED_SPREAD, 4.0, 2.0))
    steps = tl.full([], 0, tl.int32)
    if not apart <= SAFE_SPREAD:  # the emissions of each sequence decide as well
        exists, period = x > NEVER, period * 0.0
        first, last = ends_of(start, label, L, REAL), ends_of(end, label, L, REAL)
        steps = steps_to_all(exists, (first > NEVER) & (label < L), (last > NEVER) & (label < L), L, label)
        apart = maximum - tl.min(tl.min(tl.where(exists, x, float("inf")), axis=1), axis=0)
    tl.store(facts + MAXIMUM, maximum)
    tl.store(facts + PERIOD, period.to(REAL))
    tl.store(facts + STEPS, steps.to(REAL))
    tl.store(facts + APART, apart)


@triton.jit(do_not_specialize=["B", "T", "n_tables"])
def tables_kernel(
    emissions, transitions, start, end, lengths, positions, tags, weights, scores, facts, gold, counter, maxima, B, T,
    n_tables, L: tl.constexpr, BLOCK: tl.constexpr, STEP: tl.constexpr, REAL: tl.constexpr, WARPS: tl.constexpr,
    LANES: tl.constexpr,
):  # fmt: skip
    """Programs [n_tables + B (with tags) + blocks of rows]: fill in the first part of the workspace, see `Workspace`."""
    task = tl.program_id(0).to(tl.int64)
    if task < n_tables:
        SIZE: tl.constexpr = 2 * BLOCK * BLOCK
        _table_role(
            transitions + task * L * L, start, end, weights + task * SIZE, scores + task * SIZE,
            facts + task * N_FACTS, L, BLOCK, REAL, WARPS, LANES,
        )  # fmt: skip
        if task == 0:
            tl.store(counter, 0.0)
    elif tags is not None and task < n_tables + B:
        row = task - n_tables
        n = length_of(lengths, row, T)
        gold_role(
            emissions, transitions + tl.where(n_tables > 1, row * L * L, 0), None, positions, tags, row, n, T, L,
            start, end, gold, None, REAL,
        )  # fmt: skip
    else:
        block = task - n_tables
        if tags is not None:
            block -= B
        label = tl.arange(0, BLOCK)
        maxima_role(emissions, maxima, block * STEP + tl.arange(0, STEP), (task * 0 + B) * T, L, label, REAL)
