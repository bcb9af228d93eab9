"""The Triton kernel for Viterbi decoding with up to 128 labels.

Forward, it stores the scores of the best prefixes, V_i(b) = max_a V_{i−1}(a) + transitions(a, b) + emissions_i(b).
Backward, the label before y is argmax_a V_{i−1}(a) + transitions(a, y). That is one token after the other, so the
sequence is cut into chunks that are followed at the same time, each from the best label of a token a little behind
it: paths back soon join the right one. Where the chunk before a cut does not continue as the chunk behind it began,
it is followed again, until both paths join.
"""

import triton
import triton.language as tl

from crfkit.nn.triton.dense.tables import NEVER, ends_of, finite, length_of, position_of, positions_of, row_of


@triton.jit
def _table(
    transitions,
    L: tl.constexpr,
    BLOCK: tl.constexpr,
    REAL: tl.constexpr,
    WARPS: tl.constexpr,
    LANES: tl.constexpr,
):
    """Transitions [BLOCK, BLOCK], −inf in the padding, of which every thread has its columns in one piece, as in `spread`.

    Numbers that do not lie side by side in memory go to the threads one by one.
    """
    place = tl.arange(0, BLOCK * BLOCK)
    lanes: tl.constexpr = 32 // LANES
    turns: tl.constexpr = BLOCK // (4 * LANES)
    lane, warp, turn = place % 32, (place // 32) % WARPS, place // (32 * WARPS)
    k = (((turn // 4) % turns) * LANES + lane % LANES) * 4 + turn % 4
    j = ((turn // (4 * turns)) * WARPS + warp) * lanes + lane // LANES
    flat = tl.load(transitions + k * L + j, mask=(k < L) & (j < L), other=NEVER).to(REAL)
    parts = tl.reshape(flat, [BLOCK * LANES // (32 * WARPS), turns, 4, WARPS, lanes, LANES])
    return tl.reshape(tl.permute(parts, [1, 5, 2, 0, 3, 4]), [BLOCK, BLOCK])


@triton.jit
def _four_rows(emissions, positions, row, t, n, T, L: tl.constexpr, label, first, last, REAL: tl.constexpr):
    """The scores of the tokens t … t + 3."""
    x1 = row_of(emissions, positions, row, t, n, T, L, label, first, last, REAL)
    x2 = row_of(emissions, positions, row, t + 1, n, T, L, label, first, last, REAL)
    x3 = row_of(emissions, positions, row, t + 2, n, T, L, label, first, last, REAL)
    x4 = row_of(emissions, positions, row, t + 3, n, T, L, label, first, last, REAL)
    return x1, x2, x3, x4


@triton.jit
def _step(v, table, x, scores, t, L: tl.constexpr, label):
    """V_t(b) = max_a V_{t−1}(a) + transitions(a, b) + emissions_t(b), stored."""
    v = tl.max(v[:, None] + table, axis=0) + x
    tl.store(scores + t * L + label, v, mask=label < L)
    return v


@triton.jit
def _best_prefixes(
    emissions, transitions, positions, scores, row, n, T, L: tl.constexpr, label, first, last, BLOCK: tl.constexpr,
    REAL: tl.constexpr, WARPS: tl.constexpr, LANES: tl.constexpr,
):  # fmt: skip
    """Scores of the best prefixes by their last label, stored [T, L]."""
    table = _table(transitions, L, BLOCK, REAL, WARPS, LANES)
    v = row_of(emissions, positions, row, 0, n, T, L, label, first, last, REAL)
    tl.store(scores + label, v, mask=label < L)
    x1, x2, x3, x4 = _four_rows(emissions, positions, row, 1, n, T, L, label, first, last, REAL)
    for t in range(1, n - 3, 4):  # what the next four tokens need is loaded before these four are done
        x5, x6, x7, x8 = _four_rows(emissions, positions, row, t + 4, n, T, L, label, first, last, REAL)
        if (t & 4) == 0:  # every other turn, which keeps the scores small and their digits
            x1 -= finite(tl.max(v, axis=0))
        v = _step(v, table, x1, scores, t, L, label)
        v = _step(v, table, x2, scores, t + 1, L, label)
        v = _step(v, table, x3, scores, t + 2, L, label)
        v = _step(v, table, x4, scores, t + 3, L, label)
        x1, x2, x3, x4 = x5, x6, x7, x8
    for t in range(1 + 4 * ((n - 1) // 4), n):
        x = row_of(emissions, positions, row, t, n, T, L, label, first, last, REAL)
        v = _step(v, table, x, scores, t, L, label)


@triton.jit
def _before(transitions, scores, t, y, L: tl.constexpr, label):
    """The label before y [CHUNKS] on the best path, at tokens t [CHUNKS]."""
    known = (label < L)[None, :]
    begun = tl.load(scores + t[:, None] * L + label[None, :], mask=known, other=NEVER)
    column = tl.load(transitions + label[None, :] * L + y[:, None], mask=known, other=NEVER).to(begun.dtype)
    return tl.argmax(begun + column, axis=1, tie_break_left=True).to(tl.int32)


@triton.jit
def _follow_again(
    transitions, scores, labels, positions, row, n, T, L: tl.constexpr, label, length, CHUNKS: tl.constexpr
):
    """Follow chunk after chunk from the last to the first, each until its path joins the stored one."""
    for i in range(CHUNKS - 1):
        first = (CHUNKS - 2 - i) * length
        t = first + length - 1
        joined = t >= n - 1
        p = position_of(positions, row, tl.minimum(t + 1, n - 1), T)
        y = tl.load(labels + p).to(tl.int32)
        while (t >= first) & (joined == 0):
            place = t + tl.zeros_like(label)
            begun = tl.load(scores + place * L + label, mask=label < L, other=NEVER)
            column = tl.load(transitions + label * L + y, mask=label < L, other=NEVER).to(begun.dtype)
            y = tl.argmax(begun + column, axis=0, tie_break_left=True).to(tl.int32)
            p = position_of(positions, row, t, T)
            joined = tl.load(labels + p).to(tl.int32) == y
            tl.debug_barrier()
            tl.store(labels + p, y)
            tl.debug_barrier()
            t -= 1


@triton.jit(do_not_specialize=["T", "transitions_stride"])
def best_kernel(
    emissions, transitions, start, end, lengths, positions, scores, labels, T, transitions_stride, L: tl.constexpr,
    BLOCK: tl.constexpr, REAL: tl.constexpr, WARPS: tl.constexpr, LANES: tl.constexpr, CHUNKS: tl.constexpr,
    BEHIND: tl.constexpr,
):  # fmt: skip
    """Programs [B]: the best labels [B, T] by position, −1 at masked positions; scores [B, T, L] are for its own use.

    CHUNKS of a sequence are followed at the same time, from BEHIND tokens behind them.
    """
    row = tl.program_id(0).to(tl.int64)
    n = length_of(lengths, row, T)
    label = tl.arange(0, BLOCK)
    first, last = ends_of(start, label, L, REAL), ends_of(end, label, L, REAL)
    emissions += row * T * L
    scores += row * T * L
    transitions += row * transitions_stride
    labels += row * T
    for off in range(n, T):
        tl.store(labels + position_of(positions, row, off, T), -1)
    if n > 0:
        _best_prefixes(
            emissions,
            transitions,
            positions,
            scores,
            row,
            n,
            T,
            L,
            label,
            first,
            last,
            BLOCK,
            REAL,
            WARPS,
            LANES,
        )
        tl.debug_barrier()
        chunk = tl.arange(0, CHUNKS)
        length = (n + CHUNKS - 1) // CHUNKS
        bottom = chunk * length
        top = tl.minimum(bottom + length, n) - 1
        t = tl.minimum(top + BEHIND, n - 1)
        known = (label < L)[None, :]
        begun = tl.load(scores + t[:, None] * L + label[None, :], mask=known, other=NEVER)
        y = tl.argmax(begun, axis=1, tie_break_left=True).to(tl.int32)
        # all chunks go back at once; what is before `top` is a run-up, and is not stored
        for _ in range(length + BEHIND):
            inside = (t >= bottom) & (t <= top)
            tl.store(labels + positions_of(positions, row, t, inside, T), y, mask=inside)
            going = t > bottom
            t = tl.where(going, t - 1, t)
            y = tl.where(going, _before(transitions, scores, tl.maximum(t, 0), y, L, label), y)
        tl.debug_barrier()
        p, q = (
            position_of(positions, row, tl.maximum(top, 0), T),
            position_of(positions, row, tl.minimum(top + 1, n - 1), T),
        )
        cut = (top < n - 1) & (top >= bottom)
        y = _before(transitions, scores, tl.maximum(top, 0), tl.load(labels + q).to(tl.int32), L, label)
        wrong = cut & (y != tl.load(labels + p).to(tl.int32))
        ends = tl.load(scores + (n - 1) * L + label, mask=label < L, other=NEVER)
        if tl.max(ends, axis=0) == NEVER:  # there is no label sequence
            for off in range(n):
                tl.store(labels + position_of(positions, row, off, T), -1)
        elif tl.max(wrong.to(tl.int32), axis=0) > 0:
            _follow_again(transitions, scores, labels, positions, row, n, T, L, label, length, CHUNKS)
