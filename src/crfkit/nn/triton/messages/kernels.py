"""The Triton kernels for belief propagation on graphs whose tables have at most two variables; log space.

    ν_{i→f}(x) = Σ_{g≠f} m_{g→i}(x)        m_{f→i}(x) = log Σ_y exp(score_f(x, y) + ν_{j→f}(y)), normalised

A program has some tables of one element of the batch, and updates the messages to both of their variables; one launch is one
iteration. Sums that leave one message out leave it out, so that −inf needs no care. A table of one variable counts as one
with a second axis of size 1, whose messages do not exist (their number is −1).

Messages [B, 2, E, L]: iteration t reads those with the number t % 2 and writes the others. Of each element the state is
[4, B] integers: in row t % 3 the largest change that iteration t makes, as the bits of a number ≥ 0, which are ordered as
the numbers are; in the last row, 1 more than the iteration whose change was within the tolerance. What iteration t changes
too little stays as it was before it, as in plain PyTorch: later iterations do nothing. Maxima do not depend on an order: the
same bits in every run.
"""

import triton
import triton.language as tl

from crfkit.nn.triton.dense.tables import NEVER, finite

BASE, SIZE_0, SIZE_1, MESSAGE_0, MESSAGE_1, VARIABLE_0, VARIABLE_1, N_FACTS = (
    tl.constexpr(i) for i in range(8)
)  # of a table: its first score, sizes, messages and variables
TOLERANCE, LOG_OLD, LOG_NEW = (
    tl.constexpr(i) for i in range(3)
)  # the logarithms of damping, and of 1 − damping
STOPPED = tl.constexpr(3)
MOST_UNROLLED = tl.constexpr(8)


@triton.jit
def _log_total(x, AXIS: tl.constexpr):
    """log Σ exp over an axis; −inf where all are."""
    top = finite(tl.max(x, axis=AXIS))
    return tl.log(tl.sum(tl.exp(x - tl.expand_dims(top, AXIS)), axis=AXIS)) + top


@triton.jit
def _with_message(total, messages, incoming, place, v, without, there, exists, x, E, L, MOST: tl.constexpr):
    """The totals with one more of the messages to the variables."""
    g = tl.load(incoming + v * MOST + place, mask=there, other=E)
    on = ((g < E) & (g != without))[:, None] & exists
    return total + tl.load(messages + g[:, None] * L + x, mask=on, other=0.0)


@triton.jit
def _sent(
    messages, incoming, allowed, v, without, there, k, E, L, MOST: tl.constexpr, VALUES: tl.constexpr
):  # fmt: skip
    """All messages to the variables v [M] of k values but those with the numbers `without`: [M, VALUES], −inf beyond k.

    0 for each of the k values where no variable is there.
    """
    x = tl.arange(0, VALUES)[None, :]
    exists = x < k[:, None]
    total = tl.where(exists, 0.0, NEVER).to(messages.dtype.element_ty)
    exists = exists & there[:, None]
    if allowed is not None:
        total += tl.load(allowed + v[:, None] * L + x, mask=exists, other=0.0)
    if MOST <= MOST_UNROLLED:
        for place in tl.static_range(MOST):
            total = _with_message(total, messages, incoming, place, v, without, there, exists, x, E, L, MOST)
    else:
        for place in range(MOST):
            total = _with_message(total, messages, incoming, place, v, without, there, exists, x, E, L, MOST)
    return total


@triton.jit
def _fact(tables, f, on, F, WHICH: tl.constexpr, other):
    """One of the facts of the tables f."""
    return tl.load(tables + WHICH * F + f, mask=on, other=other)


@triton.jit
def _write_messages(
    old, new, fresh, edge, k, settings, L, VALUES: tl.constexpr, DAMPED: tl.constexpr
):  # fmt: skip
    """Writes what tables answer, `fresh` [M, VALUES], normalised and damped; the change of each entry before damping."""
    x = tl.arange(0, VALUES)[None, :]
    exists = (edge >= 0)[:, None] & (x < k[:, None])
    fresh -= finite(_log_total(fresh, 1))[:, None]
    now = tl.load(old + edge[:, None] * L + x, mask=exists, other=NEVER)
    change = tl.where(exists, tl.abs(tl.exp(fresh) - tl.exp(now)), 0.0)
    if DAMPED:
        kept = now + tl.load(settings + LOG_OLD)
        added = fresh + tl.load(settings + LOG_NEW)
        top = finite(tl.maximum(kept, added))
        mixed = tl.log(tl.exp(kept - top) + tl.exp(added - top)) + top
        fresh = tl.where(fresh == NEVER, NEVER, mixed)  # the impossible remains so
    tl.store(new + edge[:, None] * L + x, fresh, mask=exists)
    return change


@triton.jit(do_not_specialize=["B", "N", "F", "V", "E", "L", "iteration"])
def update_kernel(
    scores, allowed, tables, incoming, messages, state, settings, B, N, F, V, E, L, iteration,
    TABLES: tl.constexpr, VALUES: tl.constexpr, MOST: tl.constexpr, DAMPED: tl.constexpr,
):  # fmt: skip
    """Programs [B · blocks of TABLES tables]: one iteration of what is not converged."""
    n_blocks = tl.cdiv(F, TABLES)
    row = (tl.program_id(0) // n_blocks).to(tl.int64)
    block = tl.program_id(0) % n_blocks
    stopped = tl.load(state + STOPPED * B + row)
    bits = tl.load(state + ((iteration + 2) % 3) * B + row)
    small = bits.to(scores.dtype.element_ty, bitcast=True) <= tl.load(settings + TOLERANCE)
    small = small & (iteration > 0)
    if (stopped == 0) & small:  # every program of this element finds that, and writes the same
        tl.store(state + STOPPED * B + row, iteration)
    if (stopped == 0) & (small == 0):
        if block == 0:  # the row of the next iteration, which no program of this one reads
            tl.store(state + ((iteration + 1) % 3) * B + row, 0)
        scores += row * N
        if allowed is not None:
            allowed += row * V * L
        old = messages + (2 * row + iteration % 2) * E * L
        new = messages + (2 * row + (iteration + 1) % 2) * E * L
        f = block * TABLES + tl.arange(0, TABLES)
        on = f < F
        k0, k1 = _fact(tables, f, on, F, SIZE_0, 0), _fact(tables, f, on, F, SIZE_1, 0)
        e0, e1 = _fact(tables, f, on, F, MESSAGE_0, -1), _fact(tables, f, on, F, MESSAGE_1, -1)
        v0, v1 = _fact(tables, f, on, F, VARIABLE_0, 0), _fact(tables, f, on, F, VARIABLE_1, 0)
        x = tl.arange(0, VALUES)
        inside = (x[None, :] < k0[:, None])[:, :, None] & (x[None, :] < k1[:, None])[:, None, :]
        at = _fact(tables, f, on, F, BASE, 0)[:, None, None] + x[None, None, :]
        at += x[None, :, None] * k1[:, None, None]
        table = tl.load(scores + at, mask=inside, other=NEVER)
        sent0 = _sent(old, incoming, allowed, v0, e0, e0 >= 0, k0, E, L, MOST, VALUES)
        sent1 = _sent(old, incoming, allowed, v1, e1, e1 >= 0, k1, E, L, MOST, VALUES)
        fresh0 = _log_total(table + sent1[:, None, :], 2)
        fresh1 = _log_total(table + sent0[:, :, None], 1)
        change0 = _write_messages(old, new, fresh0, e0, k0, settings, L, VALUES, DAMPED)
        change1 = _write_messages(old, new, fresh1, e1, k1, settings, L, VALUES, DAMPED)
        bits0 = change0.to(state.dtype.element_ty, bitcast=True)
        bits1 = change1.to(state.dtype.element_ty, bitcast=True)
        most = tl.maximum(tl.max(tl.max(bits0, axis=1), axis=0), tl.max(tl.max(bits1, axis=1), axis=0))
        tl.atomic_max(state + (iteration % 3) * B + row, most, sem="relaxed")


@triton.jit
def _iterate(state, settings, row, B, made, REAL: tl.constexpr):
    """How many of the `made` iterations changed the messages of an element, and whether these are converged."""
    stopped = tl.load(state + STOPPED * B + row).to(tl.int32)
    bits = tl.load(state + ((made + 2) % 3) * B + row)
    small = bits.to(REAL, bitcast=True) <= tl.load(settings + TOLERANCE)
    return tl.where(stopped > 0, stopped - 1, tl.where(small, made - 1, made)), (stopped > 0) | small


@triton.jit(do_not_specialize=["B", "F", "V", "E", "L", "made"])
def variable_kernel(
    allowed, cardinalities, incoming, messages, state, settings, values, terms, converged, B, F, V, E, L, made,
    VARIABLES: tl.constexpr, VALUES: tl.constexpr, MOST: tl.constexpr,
):  # fmt: skip
    """Programs [B · blocks of VARIABLES variables]: their beliefs [B, V, L], their terms of log Z, and what is converged."""
    n_blocks = tl.cdiv(V, VARIABLES)
    row = (tl.program_id(0) // n_blocks).to(tl.int64)
    block = tl.program_id(0) % n_blocks
    n, done = _iterate(state, settings, row, B, made, messages.dtype.element_ty)
    if block == 0:
        tl.store(converged + row, done.to(tl.int8))
    if allowed is not None:
        allowed += row * V * L
    v = block * VARIABLES + tl.arange(0, VARIABLES)
    on = v < V
    k = tl.load(cardinalities + v, mask=on, other=0)
    found = _sent(
        messages + (2 * row + n % 2) * E * L, incoming, allowed, v, E + tl.zeros_like(v), on, k, E, L, MOST, VALUES
    )  # fmt: skip
    total = _log_total(found, 1)
    x = tl.arange(0, VALUES)[None, :]
    p = tl.exp(found - finite(total)[:, None])
    tl.store(values + (row * V + v[:, None]) * L + x, p, mask=on[:, None] & (x < L))
    tl.store(terms + row * (V + F) + v, total, mask=on)


@triton.jit
def _normaliser(messages, sent, edge, k, L, VALUES: tl.constexpr):
    """log Σ exp(ν + m) [M], 0 where there is no message."""
    x = tl.arange(0, VALUES)[None, :]
    there = edge >= 0
    exists = there[:, None] & (x < k[:, None])
    back = tl.load(messages + edge[:, None] * L + x, mask=exists, other=0.0)
    return tl.where(there, _log_total(sent + back, 1), 0.0)


@triton.jit(do_not_specialize=["B", "N", "F", "V", "E", "L", "made"])
def table_kernel(
    scores, allowed, tables, incoming, messages, state, settings, entries, terms, B, N, F, V, E, L, made,
    TABLES: tl.constexpr, VALUES: tl.constexpr, MOST: tl.constexpr,
):  # fmt: skip
    """Programs [B · blocks of TABLES tables]: the beliefs of their entries [B, N], and their terms of log Z."""
    n_blocks = tl.cdiv(F, TABLES)
    row = (tl.program_id(0) // n_blocks).to(tl.int64)
    n, _ = _iterate(state, settings, row, B, made, messages.dtype.element_ty)
    now = messages + (2 * row + n % 2) * E * L
    if allowed is not None:
        allowed += row * V * L
    f = (tl.program_id(0) % n_blocks) * TABLES + tl.arange(0, TABLES)
    on = f < F
    k0, k1 = _fact(tables, f, on, F, SIZE_0, 0), _fact(tables, f, on, F, SIZE_1, 0)
    e0, e1 = _fact(tables, f, on, F, MESSAGE_0, -1), _fact(tables, f, on, F, MESSAGE_1, -1)
    v0, v1 = _fact(tables, f, on, F, VARIABLE_0, 0), _fact(tables, f, on, F, VARIABLE_1, 0)
    x = tl.arange(0, VALUES)
    inside = (x[None, :] < k0[:, None])[:, :, None] & (x[None, :] < k1[:, None])[:, None, :]
    at = _fact(tables, f, on, F, BASE, 0)[:, None, None] + x[None, None, :]
    at += x[None, :, None] * k1[:, None, None]
    sent0 = _sent(now, incoming, allowed, v0, e0, e0 >= 0, k0, E, L, MOST, VALUES)
    sent1 = _sent(now, incoming, allowed, v1, e1, e1 >= 0, k1, E, L, MOST, VALUES)
    joint = tl.load(scores + row * N + at, mask=inside, other=NEVER)
    joint = joint + sent0[:, :, None] + sent1[:, None, :]
    total = _log_total(_log_total(joint, 2), 1)
    p = tl.exp(joint - finite(total)[:, None, None])
    tl.store(entries + row * N + at, p, mask=inside)
    first = _normaliser(now, sent0, e0, k0, L, VALUES)
    second = _normaliser(now, sent1, e1, k1, L, VALUES)
    nothing = (total == NEVER) | (first == NEVER) | (second == NEVER)
    tl.store(terms + row * (V + F) + V + f, tl.where(nothing, NEVER, total - first - second), mask=on)
