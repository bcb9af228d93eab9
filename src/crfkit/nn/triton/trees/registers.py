"""The elimination of `elimination`, with every word left last once and the numbers of a program in registers.

All of X lies in one tile [N, C, M] by word, branch and place; what a step needs of it, the row of the word to
eliminate and its column, is put into memory a step ahead, in two slots by turns, so that a step waits once. The
places of a branch are in the order of their reversed bits: the word at place t of the M that a branch of level l − 1
kept is lowest + 2^l reversed(t), and the next halving, by the next bit of the words, is one by the highest bit of the
places.

Where numbers pass between threads they do so through memory, and what is read in one half of a step is not written in it:
a thread may run ahead of others that hold the same.

Letters: as there. A slot has the row, its quotients, states, d, q_0 and whether rho starts anew, [C, M] each, the root's
weights and the column. Buffers of a program: vectors [N], two slots, rho [n, C] with the stride N, then X twice, [n, N].
"""

import triton
import triton.language as tl

from crfkit.nn.triton.dense.tables import length_of
from crfkit.nn.triton.trees.elimination import (
    MANY_ROOTS,
    MAXIMA,
    N_VECTORS,
    NO_TREE,
    ONE_ROOT,
    PIVOTS,
    STATES,
    TOLERANCE,
    WIDEST,
    fill_weights,
    log_partition_of,
    write_marginals,
)

# of a slot: [C, M], the last [C, 4]
ROW, QUOTIENT, STATE, PIVOT, SHARE, DROP, OWN = (tl.constexpr(i) for i in range(7))
COLUMN = tl.constexpr(9)  # behind them, [N, C] with neighbours
FLOAT32_WIDEST, FLOAT32_WIDEST_WITH_HOLES = tl.constexpr(60.0), tl.constexpr(12.0)  # nats, as there
FLOAT32_TOLERANCE = tl.constexpr(1e-5)  # of sums of probabilities


@triton.jit
def _reversed(x, BITS: tl.constexpr):
    """The lowest bits in the opposite order."""
    y = x * 0
    for i in tl.static_range(BITS):
        y = (y << 1) | ((x >> i) & 1)
    return y


@triton.jit
def _word_at(p, side, N: tl.constexpr, BITS: tl.constexpr):
    """The words of the places of the first branch: those that it keeps, then those that it takes out."""
    kept = p < N // 2
    return tl.where(kept, side, 1 - side) + 2 * _reversed(tl.where(kept, p, p - N // 2), BITS - 1)


@triton.jit
def _offer(x, r, slot, word, k, N: tl.constexpr, C: tl.constexpr, M: tl.constexpr, CELL: tl.constexpr):
    """Puts what the next step takes out into a slot: `word` [C], at place k of each branch; x [N, C, M], r [C, N].

    Beside a number lie its neighbours, so that threads write what they hold in the order in which they hold it.
    """
    m, c, p = tl.arange(0, N), tl.arange(0, C), tl.arange(0, M)
    rows = slot + ROW * N + c[None, :, None] * M + p[None, None, :] + 0 * m[:, None, None]
    tl.store(rows, x, mask=(m[:, None, None] == word[None, :, None]) & (p[None, None, :] >= 0))
    own = slot + OWN * N + c[:, None] * 4 + m[None, :] % 4
    tl.store(own, r, mask=(m // 4)[None, :] == (word // 4)[:, None])
    columns = slot + COLUMN * N + (m[:, None, None] * C + c[None, :, None]) * CELL + p[None, None, :] % CELL
    tl.store(columns, x, mask=(p // CELL == k // CELL)[None, None, :] & (m[:, None, None] >= 0))


@triton.jit
def _divide(slot, after, word, left, n, N: tl.constexpr, C: tl.constexpr, M: tl.constexpr):
    """Makes quotients of the row in a slot: d, q, q_0, whether rho starts anew, each [C, M]; the states go to the next."""
    c, p = tl.arange(0, C)[:, None], tl.arange(0, M)[None, :]
    at = c * M + p
    there = (word < n)[:, None] & (p >= 0)
    q = tl.load(slot + ROW * N + at, mask=left & there, other=0.0)
    own = tl.load(slot + OWN * N + c * 4 + (word % 4)[:, None] + 0 * p, mask=there, other=0.0)
    state = tl.load(slot + STATE * N + at)
    if C == 1:
        total = tl.sum(q) + tl.zeros_like(q)
    else:
        total = tl.broadcast_to(tl.sum(q, axis=1)[:, None], [C, M])
    forced = there & (state == ONE_ROOT) & (total == 0.0) & (own > 0.0)
    d = tl.where(state == MANY_ROOTS, total + own, tl.where(forced, own, total))
    whole = tl.where(d == 0.0, 1.0, d)
    tl.store(slot + PIVOT * N + at, d)
    tl.store(slot + QUOTIENT * N + at, q / whole)
    tl.store(slot + SHARE * N + at, tl.where(forced, 1.0, own / whole))
    tl.store(slot + DROP * N + at, tl.where(forced, 1.0, 0.0))
    tl.store(
        after + STATE * N + at, tl.where(forced, MANY_ROOTS, tl.where(there & (d == 0.0), NO_TREE, state))
    )


@triton.jit
def _take_out(x, r, slot, word, k, N: tl.constexpr, C: tl.constexpr, M: tl.constexpr, CELL: tl.constexpr):
    """x and r without `word` [C], at place k of each branch."""
    m, c, p = tl.arange(0, N), tl.arange(0, C), tl.arange(0, M)
    column = slot + COLUMN * N + k % CELL
    q = tl.load(slot + QUOTIENT * N + c[:, None] * M + p[None, :])
    itself = m[:, None] == word[None, :]
    through = tl.where(itself, 1.0, tl.load(column + (m[:, None] * C + c[None, :]) * CELL))
    x = tl.where(itself[:, :, None], 0.0, x)
    x = tl.fma(tl.broadcast_to(through[:, :, None], [N, C, M]), tl.broadcast_to(q[None, :, :], [N, C, M]), x)
    share, drop = tl.load(slot + SHARE * N + c * M), tl.load(slot + DROP * N + c * M)
    itself = m[None, :] == word[:, None]
    through = tl.where(itself, 1.0, tl.load(column + (m[None, :] * C + c[:, None]) * CELL))
    r = tl.where(itself | (drop > 0.0)[:, None], 0.0, r)
    return x, tl.fma(through, tl.broadcast_to(share[:, None], [C, N]), r)


@triton.jit
def _places(p, side, LEVEL: tl.constexpr, N: tl.constexpr):
    """Of the branches of a level [C]: the one before, the first word to eliminate; where places p [M] lie in it, [C, M]."""
    C: tl.constexpr = 1 << LEVEL
    HALF: tl.constexpr = (N >> LEVEL) // 2
    c = tl.arange(0, C)
    if LEVEL == 0:
        parent, lost = c, c + 1 - side
        at = c[:, None] + p[None, :]
    else:
        parent, half = c & (C // 2 - 1), c >> (LEVEL - 1)
        lost = side + 2 * parent + ((1 - half) << LEVEL)
        other = (p >= HALF)[None, :] ^ (half > 0)[:, None]
        at = (
            parent[:, None] * (2 * HALF)
            + other.to(tl.int32) * HALF
            + tl.where(p < HALF, p, p - HALF)[None, :]
        )
        if HALF > 1:
            at = tl.max_contiguous(tl.multiple_of(at, [1, min(HALF, 4)]), [1, min(HALF, 4)])
    return parent, lost, at


@triton.jit(noinline=True)
def _halve(
    before, after, rho, vectors, slots, n, side, LEVEL: tl.constexpr, N: tl.constexpr, BITS: tl.constexpr
):
    """Takes half of the columns out of every branch of a level; `before` has what the branches of the last one kept.

    Each level is a function of its own, which the compiler sees alone: that halves its time.
    """
    C: tl.constexpr = 1 << LEVEL
    M: tl.constexpr = N >> LEVEL
    HALF: tl.constexpr = M // 2
    CELL: tl.constexpr = min(M, 4)
    STEP: tl.constexpr = 2 << LEVEL  # between the words of a half
    SLOT: tl.constexpr = COLUMN * N + N * N
    m, c, p = tl.arange(0, N), tl.arange(0, C), tl.arange(0, M)
    parent, lost, at = _places(p, side, LEVEL, N)
    x = tl.load(before + m[:, None, None] * N + at[None, :, :], mask=(m < n)[:, None, None], other=0.0)
    r = tl.load(rho + m[None, :] * N + parent[:, None], mask=(m < n)[None, :], other=0.0)  # [C, N]
    state = tl.load(vectors + STATES * N + parent[:, None] + 0 * p[None, :])
    tl.store(slots + STATE * N + c[:, None] * M + p[None, :], state)
    _offer(x, r, slots, lost, HALF, N, C, M, CELL)
    tl.debug_barrier()
    order = _reversed(tl.where(p < HALF, p, p - HALF), BITS - LEVEL - 1)
    most = tl.cdiv(n, STEP)
    for e in range(most):
        slot, following = slots + (e & 1) * SLOT, slots + ((e + 1) & 1) * SLOT
        word, k = lost + e * STEP, HALF + _reversed(e, BITS - LEVEL - 1)
        _divide(slot, following, word, ((p < HALF) | (order > e))[None, :], n, N, C, M)
        tl.debug_barrier()
        x, r = _take_out(x, r, slot, word, k, N, C, M, CELL)
        first = (1 - side if LEVEL == 0 else side + (1 << LEVEL)) + e * STEP
        tl.store(vectors + PIVOTS * N + first, tl.load(slot + PIVOT * N), mask=first < n)
        _offer(x, r, following, word + STEP, HALF + _reversed(e + 1, BITS - LEVEL - 1), N, C, M, CELL)
        tl.debug_barrier()
    if HALF > 1:
        kept = after + m[:, None, None] * N + c[None, :, None] * HALF + p[None, None, :]
        tl.store(kept, x, mask=(m < n)[:, None, None] & (p < HALF)[None, None, :])
    tl.store(rho + m[None, :] * N + c[:, None], r, mask=(m < n)[None, :])
    tl.store(vectors + STATES * N + c, tl.load(slots + (most & 1) * SLOT + STATE * N + c * M))
    tl.debug_barrier()


@triton.jit
def _sums(
    scores, X, rho, vectors, slots, marginals, n, size, side, one_root, spread, N: tl.constexpr, BITS: tl.constexpr,
    TILE: tl.constexpr, FLOAT32: tl.constexpr,
):  # fmt: skip
    """Writes the marginals; log Z, and whether the precision was wide enough."""
    p = tl.arange(0, N)
    tl.store(vectors + STATES * N + p, tl.where(one_root + 0 * p > 0, ONE_ROOT, MANY_ROOTS))
    tl.debug_barrier()
    for level in tl.static_range(BITS):
        before = X + (level % 2) * (size - 1) * N
        after = X + (1 - level % 2) * (size - 1) * N
        _halve(before, after, rho, vectors, slots, n, side, level, N, BITS)
    right, some = write_marginals(
        scores, rho, vectors, marginals, n, size, side, one_root, N, TILE, False, 1,
        FLOAT32_TOLERANCE if FLOAT32 else TOLERANCE,
    )  # fmt: skip
    good = right & (some | (spread * n < (FLOAT32_WIDEST if FLOAT32 else WIDEST)))
    return log_partition_of(rho, vectors, n, N, False), good


@triton.jit(do_not_specialize=["size", "one_root", "n_rows", "flagged"])
def register_kernel(
    scores, lengths, work, log_z, marginals, enough, size, one_root, n_rows, flagged, N: tl.constexpr,
    BITS: tl.constexpr, TILE: tl.constexpr, FLOAT32: tl.constexpr,
):  # fmt: skip
    """Programs [B, 2] for log Z and marginals, in the precision of `work`, which has `n_rows` rows of N numbers for each.

    Whether that was wide enough is written to `enough` [B, 2]. With `flagged`, only what has a 0 there is done.
    """
    row, side = tl.program_id(0).to(tl.int64), tl.program_id(1)
    n = length_of(lengths, row, size - 1)
    scores += row * size * size
    marginals += row * size * size
    enough += 2 * row + side
    work += (row * 2 + side) * n_rows * N
    vectors, slots = work, work + N_VECTORS * N
    rho = slots + 2 * (COLUMN * N + N * N)
    X = rho + (size - 1) * N
    if (flagged == 0) | (tl.load(enough) == 0):
        head = _word_at(tl.arange(0, N), side, N, BITS)
        spread, n_holes = fill_weights(scores, X, rho, vectors + MAXIMA * N, n, size, head, N, TILE, False)
        good = spread < float("inf")
        if FLOAT32:
            good = spread < tl.where(n_holes > 0, FLOAT32_WIDEST_WITH_HOLES, FLOAT32_WIDEST)
        if good:
            total, good = _sums(
                scores, X, rho, vectors, slots, marginals, n, size, side, one_root, spread, N, BITS, TILE, FLOAT32,
            )  # fmt: skip
            if side == 0:
                tl.store(log_z + row, total)
        tl.store(enough, good.to(tl.int8))
