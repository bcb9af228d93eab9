"""Triton kernels for chains with many labels: preparation, forward–backward, and values.

All programs of a batch go from token to token together. Each has a block of labels, a group of sequences and a
direction, with its part of exp(transitions) on chip. What the others found for the token before is read once all have
stored it: they wait for each other at a counter, which needs all of them to be on the device at once, or else every
token is a launch of its own.

    F_i = (F_{i−1} W) ∘ U_i / 2^k_i,     U_i = exp(emissions_i − m_i), W = exp(transitions), scale_i = m_i + k_i log 2
    Q_i = (Q_{i+1} Wᵀ) ∘ U_i / 2^k'_i    the backward message times U_i
    log Z = Σ_i scale_i + log Σ F_{n−1}  summed in float64

With forbidden or large transitions, messages are logarithms:

    F_i = emissions_i + log Σ exp(F_{i−1} + transitions) − scale_i
"""

import triton
import triton.language as tl

from crfkit.nn.triton.dense.tables import (
    LOG_2,
    NEVER,
    added_up,
    finite,
    gold_role,
    gold_score,
    length_of,
    lengths_of,
    maxima_role,
    positions_of,
)

SMALL = tl.constexpr(8.0)  # transitions up to this let messages be divided at every fourth token alone
LARGE = tl.constexpr(30.0)  # transitions and ends beyond this are done in log space
MODE, FINISHED, ARRIVALS = (
    tl.constexpr(i) for i in range(3)
)  # counters: how sums are made; sequences done; programs
DIVIDED, LOGARITHMS = tl.constexpr(1), tl.constexpr(2)  # modes


@triton.jit
def _mode(scores, place, size):
    """0, DIVIDED or LOGARITHMS, as the scores [size] at these places are small, not small or large, below 0 as well."""
    x = tl.abs(tl.load(scores + place, mask=place < size, other=0.0).to(tl.float32))
    return tl.max(tl.where(x <= SMALL, 0, tl.where(x <= LARGE, DIVIDED, LOGARITHMS)), axis=0)


@triton.jit(do_not_specialize=["B", "T", "n_transitions"])
def wide_tables_kernel(
    emissions, transitions, start, end, lengths, positions, tags, gold, maxima, counters, counts, B, T, n_transitions,
    L: tl.constexpr, BLOCK: tl.constexpr, STEP: tl.constexpr,
):  # fmt: skip
    """Programs [n_transitions + B (with tags) + blocks of rows].

    gold [B, 2]: the scores of the tags; maxima [B, T]: the largest emission of each position; counts [L, L]: how often
    the tags have a transition. counters[MODE] becomes DIVIDED where messages have to be divided at every token,
    LOGARITHMS where exp space is not safe.
    """
    task = tl.program_id(0).to(tl.int64)
    label = tl.arange(0, BLOCK)
    if task < n_transitions:
        mode = _mode(transitions, task * 4096 + tl.arange(0, 4096), L * L)
        if start is not None:
            mode = tl.maximum(mode, _mode(start, label, L))
        if end is not None:
            mode = tl.maximum(mode, _mode(end, label, L))
        if mode > 0:
            tl.atomic_max(counters + MODE, mode)
    elif tags is not None and task < n_transitions + B:
        row = task - n_transitions
        n = length_of(lengths, row, T)
        gold_role(
            emissions, transitions, None, positions, tags, row, n, T, L, start, end, gold, counts, tl.float32
        )
    else:
        block = task - n_transitions
        if tags is not None:
            block -= B
        maxima_role(
            emissions, maxima, block * STEP + tl.arange(0, STEP), (task * 0 + B) * T, L, label, tl.float32
        )


@triton.jit
def arrive(counter, WAIT: tl.constexpr):
    """Say that all that this program stored is there."""
    if WAIT:
        tl.debug_barrier()
        tl.atomic_add(counter, 1, sem="release")


@triton.jit
def _loaded(counter):
    """A counter as all programs of the device see it."""
    asm: tl.constexpr = "ld.acquire.gpu.global.u32 $0, [$1];"
    place = [counter.to(tl.int64)]
    return tl.inline_asm_elementwise(asm, "=r,l", place, dtype=tl.int32, is_pure=False, pack=1)


@triton.jit
def wait_for(counter, number, WAIT: tl.constexpr):
    """Wait until so many programs have arrived."""
    if WAIT:
        while _loaded(counter) < number:
            pass
        tl.debug_barrier()


@triton.jit
def token_scores(emissions, maxima, positions, start, end, row, target, on, n, T, L: tl.constexpr, label):
    """The scores of tokens `target` [ROWS] with start and end folded in [ROWS, BLOCK], and the largest emissions [ROWS]."""
    p = positions_of(positions, row, target, on, T)
    here = on[:, None] & (label < L)[None, :]
    x = tl.load(emissions + ((row * T + p) * L)[:, None] + label[None, :], mask=here, other=NEVER).to(
        tl.float32
    )
    if start is not None:
        first = tl.load(start + label, mask=label < L, other=0.0).to(tl.float32)
        x += tl.where((target == 0)[:, None], first[None, :], 0.0)
    if end is not None:
        last = tl.load(end + label, mask=label < L, other=0.0).to(tl.float32)
        x += tl.where((target == n - 1)[:, None], last[None, :], 0.0)
    maximum = tl.zeros_like(row).to(tl.float32)
    if maxima is not None:
        maximum = tl.load(maxima + row * T + p, mask=on, other=0.0)
    return x, maximum


@triton.jit
def _weights(transitions, direction, label, begin, L: tl.constexpr, SPLIT: tl.constexpr, WIDTH: tl.constexpr):
    """The transitions between all labels, in SPLIT parts of WIDTH from `begin`, and a block [SPLIT, WIDTH, BLOCK]."""
    k = begin + tl.arange(0, SPLIT)[:, None] * WIDTH + tl.arange(0, WIDTH)[None, :]
    by_k, by_label = tl.where(direction == 0, L, 1), tl.where(direction == 0, 1, L)
    here = (k < L)[:, :, None] & (label < L)[None, None, :]
    place = k[:, :, None] * by_k + (label * by_label)[None, None, :]
    return tl.load(transitions + place, mask=here, other=NEVER).to(tl.float32)


@triton.jit
def _power(messages):
    """The exponent of a power of two near the largest number of each row of [SPLIT, ROWS, WIDTH], plus 127: above 0."""
    top = tl.max(tl.max(messages, axis=2), axis=0)
    return tl.ceil(tl.log2(tl.maximum(top, 1e-37))) + 127.0


@triton.jit
def _old(
    own, cell, on, begin, L: tl.constexpr, SPLIT: tl.constexpr, WIDTH: tl.constexpr, EMPTY: tl.constexpr
):
    """Messages of known tokens at `cell` [ROWS], in SPLIT parts of WIDTH labels [SPLIT, ROWS, WIDTH]."""
    k = begin + tl.arange(0, SPLIT)[:, None] * WIDTH + tl.arange(0, WIDTH)[None, :]
    here = (k < L)[:, None, :] & on[None, :, None]
    return tl.load(own + cell[None, :, None] + k[:, None, :], mask=here, other=EMPTY, cache_modifier=".cg")


@triton.jit
def _logarithms(
    own, transitions, direction, label, cell, on, L: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr
):
    """log Σ_a exp(message(a) + transitions(a, b)) less the largest message [ROWS, BLOCK], and that [ROWS]."""
    # log-sum-exp in three passes over the labels before: the largest message (which becomes the scale), the largest
    # message(a) + transition(a, b) of each label b, and the sum of exp of what lies below that
    STEP: tl.constexpr = 32
    tops = tl.full([ROWS, STEP], NEVER, tl.float32)
    for begin in range(0, L, STEP):
        tops = tl.maximum(tops, tl.reshape(_old(own, cell, on, begin, L, 1, STEP, NEVER), [ROWS, STEP]))
    top = finite(tl.max(tops, axis=1))
    maxima = tl.full([ROWS, STEP, BLOCK], NEVER, tl.float32)
    for begin in range(0, L, STEP):
        v = tl.reshape(_old(own, cell, on, begin, L, 1, STEP, NEVER), [ROWS, STEP])
        w = tl.reshape(_weights(transitions, direction, label, begin, L, 1, STEP), [STEP, BLOCK])
        maxima = tl.maximum(maxima, v[:, :, None] + w[None, :, :])
    maximum = finite(tl.max(maxima, axis=1))
    masses = tl.zeros([ROWS, STEP, BLOCK], dtype=tl.float32)
    for begin in range(0, L, STEP):
        v = tl.reshape(_old(own, cell, on, begin, L, 1, STEP, NEVER), [ROWS, STEP])
        w = tl.reshape(_weights(transitions, direction, label, begin, L, 1, STEP), [STEP, BLOCK])
        masses += tl.exp(v[:, :, None] + (w[None, :, :] - maximum[:, None, :]))
    return tl.log(tl.sum(masses, axis=1)) + (maximum - top[:, None]), top


@triton.jit(do_not_specialize=["B", "T", "first", "stop", "group"])
def wide_messages_kernel(
    emissions, transitions, start, end, lengths, positions, maxima, counters, messages, scale, B, T, first, stop,
    group, L: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr, SPLIT: tl.constexpr, WIDTH: tl.constexpr,
    TURNS: tl.constexpr, WAIT: tl.constexpr,
):  # fmt: skip
    """Programs [blocks of labels, directions, groups of rows from `group`]: turns first … stop − 1; turn 0 begins.

    messages: F [B, T, L], then Q [B, T, L]; scale [B, T]; counters zeros [ARRIVALS + 2 groups]. The labels before
    are read in TURNS pieces of SPLIT · WIDTH; where one is enough, W stays on chip.
    """
    block, direction, own_group = tl.program_id(0), tl.program_id(1), group + tl.program_id(2)
    label = block * BLOCK + tl.arange(0, BLOCK)
    row = (own_group * ROWS + tl.arange(0, ROWS)).to(tl.int64)
    exists = row < B
    n = lengths_of(lengths, row, exists, T)
    own = messages + direction * (tl.cast(B, tl.int64) * T * L)
    counter = counters + ARRIVALS + own_group * 2 + direction
    mode = tl.load(counters + MODE)
    safe = mode < LOGARITHMS
    weights = _weights(transitions, direction, label, 0, L, SPLIT, WIDTH)
    if safe:
        weights = tl.exp(weights)
    for turn in range(first, stop):
        on = exists & (turn < n)
        target = tl.where(direction == 0, turn, n - 1 - turn)
        x, m = token_scores(emissions, maxima, positions, start, end, row, target, on, n, T, L, label)
        if turn == 0:
            new = tl.where(safe, tl.exp(x - m[:, None]), x - m[:, None])
        else:
            wait_for(counter, turn * tl.num_programs(0), WAIT)
            cell = (row * T + tl.where(direction == 0, turn - 1, n - turn)) * L
            if safe:
                # (F_{i−1} W)(b) as SPLIT products of parts of the labels before, one per warp, which are added up. Every
                # fourth turn, or every one with larger transitions, 2^k near the largest number of F_{i−1} divides it
                reached = tl.zeros([SPLIT, ROWS, BLOCK], dtype=tl.float32)
                power = tl.zeros([ROWS], dtype=tl.float32)
                for piece in range(TURNS):
                    if TURNS > 1:
                        weights = tl.exp(
                            _weights(transitions, direction, label, piece * SPLIT * WIDTH, L, SPLIT, WIDTH)
                        )
                    v = _old(own, cell, on, piece * SPLIT * WIDTH, L, SPLIT, WIDTH, 0.0)
                    if (turn % 4 == 0) | (mode == DIVIDED):
                        power = tl.maximum(power, _power(v))
                    reached = tl.dot(v, weights, reached, input_precision="tf32x3")
                power -= tl.where((turn % 4 == 0) | (mode == DIVIDED), 127.0, 0.0)
                new = tl.sum(reached, axis=0) * tl.exp2(-power)[:, None] * tl.exp(x - m[:, None])
                m += power * LOG_2
            else:
                pushed, top = _logarithms(own, transitions, direction, label, cell, on, L, ROWS, BLOCK)
                new = pushed + x
                m = top
        here = on[:, None] & (label < L)[None, :]
        tl.store(own + ((row * T + target) * L)[:, None] + label[None, :], new, mask=here)
        tl.store(scale + row * T + target, m, mask=on & (row * 0 + block + direction == 0))
        arrive(counter, WAIT)


@triton.jit(do_not_specialize=["B", "T"])
def wide_values_kernel(
    lengths, gold, counters, messages, scale, values, total, B, T, L: tl.constexpr, BLOCK: tl.constexpr
):
    """Programs [B]: values [B], log Z, or with `gold` the score of the tags less log Z; total [] is their sum."""
    row = tl.program_id(0).to(tl.int64)
    n = length_of(lengths, row, T)
    label = tl.arange(0, BLOCK)
    value = tl.zeros([BLOCK], dtype=tl.float64)
    for begin in range(0, n, BLOCK):
        t = begin + label
        value += tl.load(scale + row * T + t, mask=t < n, other=0.0).to(tl.float64)
    safe = tl.load(counters + MODE) < LOGARITHMS
    here = (label < L) & (label * 0 + n > 0)
    last = tl.load(messages + (row * T + n - 1) * L + label, mask=here, other=tl.where(safe, 0.0, NEVER))
    top = tl.where(safe, 0.0, finite(tl.max(last, axis=0)))
    mass = tl.sum(tl.where(safe, last, tl.exp(last - top)), axis=0)
    log_z = tl.sum(value, axis=0) + (tl.log(mass) + top).to(tl.float64)
    log_z = tl.where(n > 0, log_z, 0.0)
    if gold is not None:
        log_z = gold_score(gold, row) - log_z
    tl.store(values + row, log_z.to(tl.float32))
    if total is not None:
        added_up(values, total, counters + FINISHED, B, 1.0, tl.float32)
