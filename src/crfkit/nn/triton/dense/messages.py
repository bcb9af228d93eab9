"""The Triton kernel for forward–backward with up to 128 labels, by the recursions of `tables`."""

import triton
import triton.language as tl

from crfkit.nn.triton.dense.tables import (
    APART,
    LOG_2,
    MAXIMUM,
    N_FACTS,
    NEVER,
    PERIOD,
    STEPS,
    added_up,
    ends_of,
    finite,
    gold_score,
    length_of,
    position_of,
    row_of,
    spread,
    square,
)
from crfkit.nn.triton.scaling import spread_of, tokens_per_division, widest_of


@triton.jit
def _pushed_in_log_space(message, table):
    """log Σ_a exp(message(a) + table(a, b)) [BLOCK] of logarithms."""
    reached = message[:, None] + table
    top = finite(tl.max(reached, axis=0))
    return tl.log(tl.sum(tl.exp(reached - top[None, :]), axis=0)) + top


@triton.jit
def _token(emissions, maxima, positions, row, t, T, L: tl.constexpr, label, REAL: tl.constexpr):
    """The emissions of token t of a sequence [BLOCK], −inf in the padding, and the largest, for each label.

    Numbers that are the same for all threads would be waited for as soon as they are loaded, so each label loads the
    largest.
    """
    p = position_of(positions, row, tl.maximum(t, 0), T)
    x = tl.load(emissions + p * L + label, mask=label < L, other=NEVER).to(REAL)
    return x, tl.load(maxima + p + tl.where(label + T < 0, label, 0))


@triton.jit
def _four_tokens(
    emissions, maxima, positions, row, t, T, L: tl.constexpr, label, STEP: tl.constexpr, REAL: tl.constexpr
):
    """The emissions of the tokens t, t + STEP, t + 2 STEP and t + 3 STEP, and their largest ones."""
    x1, m1 = _token(emissions, maxima, positions, row, t, T, L, label, REAL)
    x2, m2 = _token(emissions, maxima, positions, row, t + STEP, T, L, label, REAL)
    x3, m3 = _token(emissions, maxima, positions, row, t + 2 * STEP, T, L, label, REAL)
    x4, m4 = _token(emissions, maxima, positions, row, t + 3 * STEP, T, L, label, REAL)
    return x1, x2, x3, x4, m1, m2, m3, m4


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
def _keep(out, into, t, message, scale, L: tl.constexpr, label):
    """Store the message of token t, and its scale, where they are wanted."""
    if out is not None:
        tl.store(out + t * L, message, mask=label < L)
        tl.store(into + t + label, scale, mask=label == 0)


@triton.jit
def _forward_scaled(
    emissions, maxima, weights, period, positions, row, n, T, L: tl.constexpr, label, start, end, out, into,
    BLOCK: tl.constexpr, REAL: tl.constexpr, WARPS: tl.constexpr, LANES: tl.constexpr,
):  # fmt: skip
    """Forward messages in exp space; their scales, and the logarithm of the last one's sum, summed in float64."""
    w = spread(weights, BLOCK, WARPS, LANES)
    x = row_of(emissions, positions, row, 0, n, T, L, label, start, end, REAL)
    m = finite(tl.max(x, axis=0)) + tl.zeros([BLOCK], dtype=REAL)
    v = tl.exp(x - m)
    total = m.to(tl.float64)
    if n > 0:
        _keep(out, into, 0, v, m, L, label)
    x1, x2, x3, x4, m1, m2, m3, m4 = _four_tokens(emissions, maxima, positions, row, 1, T, L, label, 1, REAL)
    in_fours = tl.where(period > 1, tl.maximum(n - 2, 0) // 4, 0)
    # Four tokens a turn, with one division of the four where the period is 4 or 8, and two where it is 2. What the next
    # four need is loaded before these four are done, which hides the latency of memory.
    for t in range(1, 4 * in_fours, 4):
        x5, x6, x7, x8, m5, m6, m7, m8 = _four_tokens(
            emissions, maxima, positions, row, t + 4, T, L, label, 1, REAL
        )
        v = _pushed(v, w) * tl.exp(x1 - m1)
        _keep(out, into, t, v, m1, L, label)
        v, m2 = _divided(_pushed(v, w) * tl.exp(x2 - m2), m2, period == 2)
        _keep(out, into, t + 1, v, m2, L, label)
        v = _pushed(v, w) * tl.exp(x3 - m3)
        _keep(out, into, t + 2, v, m3, L, label)
        due = ((t + 3) & (period - 1)) == 0  # of periods 2, 4 and 8: at tokens that they divide
        v, m4 = _divided(_pushed(v, w) * tl.exp(x4 - m4), m4, due)
        _keep(out, into, t + 3, v, m4, L, label)
        total += m1.to(tl.float64) + m2.to(tl.float64) + (m3.to(tl.float64) + m4.to(tl.float64))
        x1, x2, x3, x4, m1, m2, m3, m4 = x5, x6, x7, x8, m5, m6, m7, m8
    x = row_of(emissions, positions, row, 1 + 4 * in_fours, n, T, L, label, start, end, REAL)
    y = row_of(emissions, positions, row, 2 + 4 * in_fours, n, T, L, label, start, end, REAL)
    for t in range(1 + 4 * in_fours, n):  # one by one: the last ones, or all of them
        next_y = row_of(emissions, positions, row, t + 2, n, T, L, label, start, end, REAL)
        m = finite(tl.max(x, axis=0)) + tl.zeros([BLOCK], dtype=REAL)
        v, m = _divided(_pushed(v, w) * tl.exp(x - m), m, True)
        total += m.to(tl.float64)
        _keep(out, into, t, v, m, L, label)
        x, y = y, next_y
    # log Z but for the maximum of the transitions: Σ_i scale_i + log Σ V_{n−1}
    return tl.max(total, axis=0) + tl.log(tl.sum(v, axis=0)).to(tl.float64)


@triton.jit
def _forward_in_log_space(
    emissions, scores, positions, row, n, T, L: tl.constexpr, label, start, end, out, into, BLOCK: tl.constexpr,
    REAL: tl.constexpr,
):  # fmt: skip
    """The same with logarithms: scale_i is the largest of V_i before it is subtracted."""
    table = square(scores, BLOCK)
    x = row_of(emissions, positions, row, 0, n, T, L, label, start, end, REAL)
    m = finite(tl.max(x, axis=0))
    v = x - m
    total = m.to(tl.float64)
    if n > 0:
        _keep(out, into, 0, v, m, L, label)
    for t in range(1, n):
        x = row_of(emissions, positions, row, t, n, T, L, label, start, end, REAL)
        v = _pushed_in_log_space(v, table) + x
        m = finite(tl.max(v, axis=0))
        v -= m
        total += m.to(tl.float64)
        _keep(out, into, t, v, m, L, label)
    return total + tl.log(tl.sum(tl.exp(v), axis=0)).to(tl.float64)


@triton.jit
def _backward_scaled(
    emissions, maxima, weights, period, positions, row, n, T, L: tl.constexpr, label, start, end, out,
    BLOCK: tl.constexpr, REAL: tl.constexpr, WARPS: tl.constexpr, LANES: tl.constexpr,
):  # fmt: skip
    """Backward messages in exp space, of tokens 0 … n − 2; they have no scales, as probabilities are divided by sums."""
    known = label < L
    w = spread(weights + BLOCK * BLOCK, BLOCK, WARPS, LANES)
    x = row_of(emissions, positions, row, n - 1, n, T, L, label, start, end, REAL)
    v, _ = _divided(_pushed(tl.exp(x - finite(tl.max(x, axis=0))), w), x, True)
    tl.store(out + (n - 2) * L, v, mask=known)
    x1, x2, x3, x4, m1, m2, m3, m4 = _four_tokens(
        emissions, maxima, positions, row, n - 2, T, L, label, -1, REAL
    )
    in_fours = tl.where(period > 1, tl.maximum(n - 2, 0) // 4, 0)
    for i in range(0, 4 * in_fours, 4):
        t = n - 2 - i  # B_{t−1} = W (E_t ∘ B_t), and so on
        x5, x6, x7, x8, m5, m6, m7, m8 = _four_tokens(
            emissions, maxima, positions, row, t - 4, T, L, label, -1, REAL
        )
        v = _pushed(v * tl.exp(x1 - m1), w)
        tl.store(out + (t - 1) * L, v, mask=known)
        v, _ = _divided(_pushed(v * tl.exp(x2 - m2), w), m2, period == 2)
        tl.store(out + (t - 2) * L, v, mask=known)
        v = _pushed(v * tl.exp(x3 - m3), w)
        tl.store(out + (t - 3) * L, v, mask=known)
        v, _ = _divided(_pushed(v * tl.exp(x4 - m4), w), m4, ((i + 4) & (period - 1)) == 0)
        tl.store(out + (t - 4) * L, v, mask=known)
        x1, x2, x3, x4, m1, m2, m3, m4 = x5, x6, x7, x8, m5, m6, m7, m8
    t = n - 2 - 4 * in_fours
    x = row_of(emissions, positions, row, tl.maximum(t, 0), n, T, L, label, start, end, REAL)
    y = row_of(emissions, positions, row, tl.maximum(t - 1, 0), n, T, L, label, start, end, REAL)
    for i in range(4 * in_fours, n - 2):
        t = n - 2 - i
        next_y = row_of(emissions, positions, row, tl.maximum(t - 2, 0), n, T, L, label, start, end, REAL)
        v, _ = _divided(_pushed(v * tl.exp(x - finite(tl.max(x, axis=0))), w), x, True)
        tl.store(out + (t - 1) * L, v, mask=known)
        x, y = y, next_y


@triton.jit
def _backward_in_log_space(
    emissions, scores, positions, row, n, T, L: tl.constexpr, label, start, end, out, BLOCK: tl.constexpr,
    REAL: tl.constexpr,
):  # fmt: skip
    """The same with logarithms."""
    known = label < L
    table = square(scores + BLOCK * BLOCK, BLOCK)
    v = tl.where(known, 0.0, NEVER).to(REAL)
    for i in range(1, n):
        t = n - i
        x = row_of(emissions, positions, row, t, n, T, L, label, start, end, REAL)
        v = _pushed_in_log_space(v + x, table)
        v -= finite(tl.max(v, axis=0))
        tl.store(out + (t - 1) * L, v, mask=known)


@triton.jit
def _period_of_emissions(
    emissions, maxima, facts, positions, row, n, T, L: tl.constexpr, label, start, end, BLOCK: tl.constexpr,
    REAL: tl.constexpr,
):  # fmt: skip
    """Tokens from division to division in a sequence whose transitions alone do not decide; 0 for log space."""
    steps, period = tl.load(facts + STEPS).to(tl.int32), tl.full([], 0, tl.int32)
    if (steps > 0) & (n > 0):
        apart = widest_of(emissions, maxima, positions, row, n, T, L, label, BLOCK, REAL)
        x = row_of(emissions, positions, row, 0, n, T, L, label, start, end, REAL)
        y = row_of(emissions, positions, row, n - 1, n, T, L, label, start, end, REAL)
        apart = tl.maximum(apart, tl.maximum(spread_of(x), spread_of(y)))
        period = tokens_per_division(steps, tl.load(facts + APART) + apart)
    return period


@triton.jit(do_not_specialize=["B", "T", "own_transitions", "share"])
def messages_kernel(
    emissions, start, end, lengths, positions, weights, scores, facts, gold, counter, maxima, periods, forward,
    backward, scale, values, total, B, T, own_transitions, share, L: tl.constexpr, BLOCK: tl.constexpr,
    REAL: tl.constexpr, WARPS: tl.constexpr, LANES: tl.constexpr,
):  # fmt: skip
    """Programs [B, roles]: forward messages and log Z; backward messages, which for last tokens are ones and not stored.

    See `Workspace`. Messages are stored where `forward` is given, values are less log Z where `gold` is, and total [] is
    their sum / share.
    """
    row, role = tl.program_id(0).to(tl.int64), tl.program_id(1)
    n = length_of(lengths, row, T)
    label = tl.arange(0, BLOCK)
    first, last = ends_of(start, label, L, REAL), ends_of(end, label, L, REAL)
    weights += row * own_transitions * (2 * BLOCK * BLOCK)
    scores += row * own_transitions * (2 * BLOCK * BLOCK)
    facts += row * own_transitions * N_FACTS
    emissions += row * T * L
    maxima += row * T
    place = facts + PERIOD
    if tl.load(place) == 0:
        found = _period_of_emissions(
            emissions, maxima, facts, positions, row, n, T, L, label, first, last, BLOCK, REAL
        )
        tl.store(periods + row, found.to(REAL))
        tl.debug_barrier()
        # what is read from one place is the same for all threads, which keeps branches on it simple
        place = periods + row
    period = tl.load(place).to(tl.int32)
    if role == 0:
        out, into = forward, scale
        if forward is not None:
            out, into = forward + row * T * L + label, scale + row * T
        tl.store(periods + row, period.to(REAL))
        if period > 0:
            log_z = _forward_scaled(
                emissions, maxima, weights, period, positions, row, n, T, L, label, first, last, out, into, BLOCK,
                REAL, WARPS, LANES,
            ) + (n - 1).to(tl.float64) * tl.load(facts + MAXIMUM).to(tl.float64)  # fmt: skip
        else:
            log_z = _forward_in_log_space(
                emissions, scores, positions, row, n, T, L, label, first, last, out, into, BLOCK, REAL
            )
        value = tl.where(n > 0, log_z, 0.0)
        if gold is not None:
            value = gold_score(gold, row) - value
        tl.store(values + row, value.to(REAL))
        if total is not None:
            added_up(values, total, counter, B, share, REAL)
    elif backward is not None and n > 1:
        out = backward + row * T * L + label
        if period > 0:
            _backward_scaled(
                emissions, maxima, weights, period, positions, row, n, T, L, label, first, last, out, BLOCK, REAL,
                WARPS, LANES,
            )  # fmt: skip
        else:
            _backward_in_log_space(
                emissions, scores, positions, row, n, T, L, label, first, last, out, BLOCK, REAL
            )
