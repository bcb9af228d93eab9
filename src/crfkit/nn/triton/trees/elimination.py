"""The Triton kernel for sums over spanning trees: elimination of words, which loses no digits whatever the spread of scores.

X[m, i] is the weight of the arc into word m from head i, rho_m that from the root. With word k taken out of the graph,

    d_k = Σ_i X[k, i] (+ rho_k),     q_i = X[k, i] / d_k,    q_0 = rho_k / d_k            (i among the words left)
    X[m, ·] += X[m, k] q,            rho_m += X[m, k] q_0,   and row k becomes q, q_0
    Z = Π_k d_k · rho of the last word left

where rho_k belongs to d_k unless exactly one word hangs on the root (Grassmann, Taksar and Heyman 1985; the Markov-chain
tree theorem). A word that only the root can be the head of (d_k = 0) is the root's only one: its arcs become those of the
root, and from there on rho_k belongs to d_k. Rows of eliminated words are kept up to date: they say where a walk from
word to head comes out, so that with only j left, rho_m is the probability that it ends at the root without passing j, and

    P(m → j) = weight(m → j) rho_m / rho_j,     P(0 → j) = weight(0 → j) / rho_j

To have every j left last once, the words are halved again and again: by their lowest bit, the next one, and so on.
Level by level there are twice as many branches c with half as many columns; a program has those of the even or of the
odd words. Only sums, products and quotients of numbers ≥ 0 are made, in float64; where these could fade, in log space
instead.

Letters: n words, padded to N = 2^LEVELS; C branches with M columns, C M = N. Column c M + p is, in branch c, a word
that it keeps (p < M / 2) or one that it takes out. Buffers of a program: vectors [N], then rho [n, C] with the stride
N, then X twice [n, N].
"""

import triton
import triton.language as tl

from crfkit.nn.triton.dense.tables import NEVER, finite, length_of
from crfkit.nn.triton.semiring import over, plus, times

# nats between arcs into a word, in float64
WIDEST, WIDEST_WITH_HOLES = tl.constexpr(600.0), tl.constexpr(100.0)
TOLERANCE = tl.constexpr(1e-9)  # of sums of probabilities
ONE_ROOT, MANY_ROOTS, NO_TREE = tl.constexpr(0.0), tl.constexpr(1.0), tl.constexpr(2.0)  # states of a branch
PIVOTS, MAXIMA, STATES, WORDS, SHARES, DROPS, N_VECTORS = (tl.constexpr(i) for i in range(7))


@triton.jit
def _is_left(p, k, low, high):
    """Which places p of a branch have words that are left once that at k is gone: below `low`, and from k to `high`."""
    return (p < low) | ((p > k) & (p < high))


@triton.jit
def _total(q, rows, k, low, high, level, STEP: tl.constexpr, LOG: tl.constexpr):
    """The sum of the weights of each branch [N]: of `q` [N] where there is one branch, else of what `rows` [N] points to."""
    ZERO: tl.constexpr = NEVER if LOG else 0.0
    total = tl.zeros_like(q)
    if level == 0:
        if LOG:
            maximum = finite(tl.max(q, axis=0))
            total += tl.log(tl.sum(tl.exp(q - maximum), axis=0)) + maximum
        else:
            total += tl.sum(q, axis=0)
    else:
        sums = tl.full([q.shape[0], STEP], ZERO, dtype=tl.float64)
        for first in range(0, high, STEP):
            p = first + tl.arange(0, STEP)
            x = tl.load(rows[:, None] + p[None, :], mask=_is_left(p, k, low, high)[None, :], other=ZERO)
            sums = plus(sums, x, LOG)
        if LOG:
            maxima = finite(tl.max(sums, axis=1))
            total += tl.log(tl.sum(tl.exp(sums - maxima[:, None]), axis=1)) + maxima
        else:
            total += tl.sum(sums, axis=1)
    return total


@triton.jit
def fill_weights(
    scores, X, rho, maxima, n, size, head, N: tl.constexpr, TILE: tl.constexpr, LOG: tl.constexpr
):
    """Writes weights, the largest into each word being 1; columns are the words `head` [N].

    The spread of the scores into one word in nats, inf where float64 could not hold the weights, and NaN
    where a score is not a number; and how many arcs do not exist.
    """
    spread, holes = tl.zeros([TILE], dtype=tl.float64), tl.zeros([TILE], dtype=tl.int32)
    unknown = tl.zeros([TILE], dtype=tl.int32)
    for first in range(0, n, TILE):
        m = first + tl.arange(0, TILE)
        here = m < n
        exists = here[:, None] & (head < n)[None, :] & (m[:, None] != head[None, :])
        at = scores + (head[None, :] + 1) * size + m[:, None] + 1
        x = tl.load(at, mask=exists, other=NEVER).to(tl.float64)  # [TILE, N]
        root = tl.load(scores + m + 1, mask=here, other=NEVER).to(tl.float64)
        maximum = finite(tl.maximum(tl.max(x, axis=1), root))
        least = tl.minimum(
            tl.min(tl.where(x == NEVER, maximum[:, None], x), axis=1), tl.where(root == NEVER, maximum, root)
        )
        spread = tl.maximum(spread, maximum - least)
        holes += tl.sum((exists & (x == NEVER)).to(tl.int32), axis=1) + (here & (root == NEVER)).to(tl.int32)
        unknown += tl.sum((x != x).to(tl.int32), axis=1) + (root != root).to(tl.int32)
        x, root = x - maximum[:, None], root - maximum
        if not LOG:
            x, root = tl.exp(x), tl.exp(root)
        tl.store(X + m[:, None] * N + tl.arange(0, N)[None, :], x, mask=here[:, None])
        tl.store(rho + m * N, root, mask=here)
        tl.store(maxima + m, maximum, mask=here)
    widest, n_holes = tl.max(spread, axis=0), tl.sum(holes, axis=0)
    tl.debug_barrier()
    widest = tl.where(
        (widest > WIDEST) | ((n_holes > 0) & (widest > WIDEST_WITH_HOLES)), float("inf"), widest
    )
    return tl.where(tl.sum(unknown, axis=0) > 0, float("nan"), widest), n_holes


@triton.jit
def _take_out(
    X, rho, vectors, state, word, k, low, high, n, n_rows, level, N: tl.constexpr, LEVELS: tl.constexpr,
    TILE: tl.constexpr, LOG: tl.constexpr,
):  # fmt: skip
    """Takes `word` [N], at place k of each branch, out of the first `n_rows` rows; `_is_left` tells the columns left."""
    ZERO: tl.constexpr = NEVER if LOG else 0.0
    ONE: tl.constexpr = 0.0 if LOG else 1.0
    column, M = tl.arange(0, N), N >> level
    branch = column >> (LEVELS - level)
    left = _is_left(column & (M - 1), k, low, high)
    there = word < n
    row = tl.minimum(word, n - 1)
    q = tl.load(X + row * N + column, mask=left & there, other=ZERO)
    own = tl.load(rho + row * N + branch, mask=there, other=ZERO)
    d = tl.where(there, _total(q, X + row * N + branch * M, k, low, high, level, TILE, LOG), ZERO)
    forced = there & (state == ONE_ROOT) & (d == ZERO) & (own > ZERO)
    d = tl.where(state == MANY_ROOTS, plus(d, own, LOG), tl.where(forced, own, d))
    state = tl.where(forced, MANY_ROOTS, tl.where(there & (d == ZERO), NO_TREE, state))
    tl.store(vectors + PIVOTS * N + word, d, mask=there & (column == 0))
    d = tl.where(d == ZERO, ONE, d)
    q, q0 = over(q, d, LOG), tl.where(forced, ONE, over(own, d, LOG))
    first_one = column == branch * M
    tl.store(vectors + WORDS * N + branch, word.to(tl.float64), mask=first_one)
    tl.store(vectors + SHARES * N + branch, q0, mask=first_one)
    tl.store(vectors + DROPS * N + branch, forced.to(tl.float64), mask=first_one)
    tl.debug_barrier()
    for first in range(0, n_rows, TILE):
        m = first + tl.arange(0, TILE)
        some = (m < n_rows)[:, None] & left[None, :]
        itself = m[:, None] == word[None, :]
        through = tl.load(X + m[:, None] * N + (branch * M + k)[None, :], mask=some, other=ZERO)
        at = X + m[:, None] * N + column[None, :]
        x = tl.where(itself, ZERO, tl.load(at, mask=some, other=ZERO))
        x = plus(x, times(tl.where(itself, ONE, through), q[None, :], LOG), LOG)
        tl.store(at, x, mask=some)
    MANY: tl.constexpr = TILE * N // 4
    for first in range(0, n_rows << level, MANY):
        number = first + tl.arange(0, MANY)
        m, c = number >> level, number & ((1 << level) - 1)
        some = m < n_rows
        itself = m == tl.load(vectors + WORDS * N + c).to(tl.int32)
        through = tl.load(X + m * N + c * M + k, mask=some, other=ZERO)
        x = tl.load(rho + m * N + c, mask=some, other=ZERO)
        x = tl.where(itself | (tl.load(vectors + DROPS * N + c) > 0), ZERO, x)
        share = tl.load(vectors + SHARES * N + c)
        tl.store(rho + m * N + c, plus(x, times(tl.where(itself, ONE, through), share, LOG), LOG), mask=some)
    tl.debug_barrier()
    return state


@triton.jit
def _halves(c, level, side):
    """The lowest word of the branches before this level, and which of their halves each branch keeps."""
    half = tl.where(level == 0, side, c >> tl.maximum(level - 1, 0))
    lowest = tl.where(level == 0, 0, side + 2 * (c & ((1 << tl.maximum(level - 1, 0)) - 1)))
    return lowest, half


@triton.jit
def _split(
    before, X, rho, vectors, state, n, level, N: tl.constexpr, LEVELS: tl.constexpr, TILE: tl.constexpr
):
    """Makes two branches of each: the columns that it kept, in the order of the next halving; their states."""
    column, M = tl.arange(0, N), N >> level
    c, p = column >> (LEVELS - level), column & (M - 1)
    parent, half = c & ((1 << (level - 1)) - 1), c >> (level - 1)
    source = parent * (2 * M) + tl.where(p < M // 2, 2 * p + half, 2 * (p - M // 2) + 1 - half)
    tl.store(vectors + STATES * N + column, state)
    for first in range(0, n, TILE):
        m = first + tl.arange(0, TILE)
        here = (m < n)[:, None]
        x = tl.load(before + m[:, None] * N + source[None, :], mask=here, other=0.0)
        tl.store(X + m[:, None] * N + column[None, :], x, mask=here)
    n_before = 1 << (level - 1)
    MANY: tl.constexpr = TILE * N // 4
    for first in range(0, n << (level - 1), MANY):
        number = first + tl.arange(0, MANY)
        at = rho + (number >> (level - 1)) * N + (number & (n_before - 1))
        some = number < (n << (level - 1))
        tl.store(at + n_before, tl.load(at, mask=some, other=0.0), mask=some)
    tl.debug_barrier()
    state = tl.load(vectors + STATES * N + source)
    tl.debug_barrier()
    return state


@triton.jit
def _halve(
    X, rho, vectors, state, n, side, level, N: tl.constexpr, LEVELS: tl.constexpr, TILE: tl.constexpr,
    LOG: tl.constexpr,
):  # fmt: skip
    """Takes half of the columns out of every branch."""
    column, M = tl.arange(0, N), N >> level
    c = column >> (LEVELS - level)
    lowest, half = _halves(c, level, side)
    step = 2 << level  # between the words of a half
    lost = lowest + ((1 - half) << level)
    most = tl.cdiv(n, step)  # words of a half
    for e in range(most):
        k, high = M // 2 + e, M // 2 + most
        state = _take_out(
            X, rho, vectors, state, lost + e * step, k, most, high, n, n, level, N, LEVELS, TILE, LOG
        )
    return state


@triton.jit
def write_marginals(
    scores, rho, vectors, marginals, n, size, side, one_root, N: tl.constexpr, TILE: tl.constexpr, LOG: tl.constexpr,
    PLACES: tl.constexpr, TOLERANCE: tl.constexpr,
):  # fmt: skip
    """Writes P(m → j) of the words j of a program, one in each branch; whether the words that have heads have them with the
    probability Σ_m P(m → j) = 1, and whether all have one."""
    ZERO: tl.constexpr = NEVER if LOG else 0.0
    c = tl.arange(0, N // 2)
    j = side + 2 * c
    there, inside = j < n, j + 1 < size
    end = tl.load(rho + j * N + c, mask=there, other=ZERO).to(tl.float64)
    state = tl.load(vectors + STATES * N + PLACES * c)
    maximum = tl.load(vectors + MAXIMA * N + j, mask=there, other=0.0).to(tl.float64)
    end_is_zero = end <= ZERO
    possible = there & (end > ZERO) & (state != NO_TREE)
    end = tl.where((end > ZERO) & there, end, 0.0 if LOG else 1.0)
    root = tl.load(scores + j + 1, mask=there, other=NEVER).to(tl.float64) - maximum
    root = tl.exp(root - end) if LOG else tl.exp(root) / end
    root = tl.where(possible & ((state == ONE_ROOT) | (one_root == 0)), root, 0.0)
    tl.store(marginals + j + 1, root, mask=inside)
    total = root
    for first in range(0, size - 1, TILE):
        m = first + tl.arange(0, TILE)
        exists = (m < n)[:, None] & possible[None, :] & (m[:, None] != j[None, :])
        x = tl.load(scores + (m[:, None] + 1) * size + j[None, :] + 1, mask=exists, other=NEVER).to(
            tl.float64
        )
        x -= maximum[None, :]
        escape = tl.load(rho + m[:, None] * N + c[None, :], mask=exists, other=ZERO)
        p = tl.exp(x + escape - end[None, :]) if LOG else tl.exp(x) * (escape / end[None, :])
        p = tl.where(exists, p, 0.0)
        total += tl.sum(p, axis=0)
        tl.store(
            marginals + (m[:, None] + 1) * size + j[None, :] + 1,
            p,
            mask=(m + 1 < size)[:, None] & inside[None, :],
        )
        if side == 0:
            tl.store(marginals + (m + 1) * size, tl.zeros([TILE], dtype=tl.float64), mask=m + 1 < size)
    if side == 0:
        tl.store(marginals, 0.0)
    wrong = possible & ((total > 1.0 + TOLERANCE) | (total < 1.0 - TOLERANCE) | (total != total))
    lost = there & (end_is_zero | (state == NO_TREE))
    return tl.sum(wrong.to(tl.int32), axis=0) == 0, tl.sum(lost.to(tl.int32), axis=0) == 0


@triton.jit
def log_partition_of(rho, vectors, n, N: tl.constexpr, LOG: tl.constexpr):
    """log Z from the first branch, in which the first word is left."""
    word = tl.arange(0, N)
    d = tl.load(vectors + PIVOTS * N + word, mask=(word < n) & (word > 0), other=0.0 if LOG else 1.0).to(
        tl.float64
    )
    end = tl.load(rho).to(tl.float64)
    total = tl.sum(d, axis=0) + end if LOG else tl.sum(tl.log(d), axis=0) + tl.log(end)
    total += tl.sum(tl.load(vectors + MAXIMA * N + word, mask=word < n, other=0.0).to(tl.float64), axis=0)
    ruled_out = tl.load(vectors + STATES * N) == NO_TREE
    return tl.where(n == 0, 0.0, tl.where(ruled_out | (total != total), NEVER, total))


@triton.jit
def _every_word_last(
    scores, X, rho, vectors, marginals, state, n, size, side, one_root, N: tl.constexpr, LEVELS: tl.constexpr,
    TILE: tl.constexpr, LOG: tl.constexpr,
):  # fmt: skip
    """Halves the words until every one was left last, and writes the marginals; what `gradient` says of them."""
    half = (size - 1) * N
    for level in range(LEVELS):
        here = X + (level % 2) * half
        if level > 0:
            state = _split(X + (1 - level % 2) * half, here, rho, vectors, state, n, level, N, LEVELS, TILE)
        state = _halve(here, rho, vectors, state, n, side, level, N, LEVELS, TILE, LOG)
    tl.store(vectors + STATES * N + tl.arange(0, N), state)
    tl.debug_barrier()
    return write_marginals(
        scores, rho, vectors, marginals, n, size, side, one_root, N, TILE, LOG, 2, TOLERANCE
    )


@triton.jit
def _first_word_last(
    X, rho, vectors, state, n, N: tl.constexpr, LEVELS: tl.constexpr, TILE: tl.constexpr, LOG: tl.constexpr
):
    """Takes out all words but the first."""
    nothing = tl.zeros([N], dtype=tl.int32)
    for i in range(1, n):
        k = n - i
        state = _take_out(X, rho, vectors, state, nothing + k, k, k, 0, n, k, 0, N, LEVELS, TILE, LOG)
    tl.store(vectors + STATES * N + tl.arange(0, N), state)
    tl.debug_barrier()


@triton.jit(do_not_specialize=["size", "one_root", "n_rows", "flagged"])
def elimination_kernel(
    scores, lengths, work, log_z, marginals, enough, size, one_root, n_rows, flagged, N: tl.constexpr,
    LEVELS: tl.constexpr, TILE: tl.constexpr, GRADIENT: tl.constexpr, LOG: tl.constexpr,
):  # fmt: skip
    """Programs [B, 2] for log Z and marginals, [B, 1] for log Z alone. `work` has `n_rows` rows of N numbers for each.

    Whether float64 was wide enough is written to `enough` [B, 2]. With `flagged`, only what has a 0 there is done.
    """
    row, side = tl.program_id(0).to(tl.int64), tl.program_id(1)
    n = length_of(lengths, row, size - 1)
    scores += row * size * size
    marginals += row * size * size
    enough += 2 * row + side
    work += (row * tl.num_programs(1) + side) * n_rows * N
    vectors, rho, X = work, work + N_VECTORS * N, work + (N_VECTORS + size - 1) * N
    if (flagged == 0) | (tl.load(enough) == 0):
        p = tl.arange(0, N)
        head = tl.where(p < N // 2, 2 * p + side, 2 * (p - N // 2) + 1 - side) if GRADIENT else p
        spread, _ = fill_weights(scores, X, rho, vectors + MAXIMA * N, n, size, head, N, TILE, LOG)
        good = spread < float("inf")
        if LOG | good:
            state = tl.where(one_root + tl.zeros_like(p) > 0, ONE_ROOT, MANY_ROOTS).to(tl.float64)
            if GRADIENT:
                right, some = _every_word_last(
                    scores, X, rho, vectors, marginals, state, n, size, side, one_root, N, LEVELS, TILE, LOG
                )
            else:
                _first_word_last(X, rho, vectors, state, n, N, LEVELS, TILE, LOG)
            total = log_partition_of(rho, vectors, n, N, LOG)
            if not GRADIENT:
                right, some = n >= 0, total > NEVER
            good = right & (some | (spread * n < WIDEST))
            if side == 0:
                tl.store(log_z + row, tl.where(spread != spread, spread, total))
        if not LOG:
            tl.store(enough, good.to(tl.int8))
