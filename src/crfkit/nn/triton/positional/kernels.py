"""Triton kernels for chains of up to 128 labels whose transitions differ from position to position.

Nothing is shared by tokens, so that each number of the transitions is read once a direction: log space costs little
beside that.

    forward_i(b)  = log Σ_a exp(forward_{i−1}(a) + transitions_i(a, b)) + emissions_i(b)
    backward_{i−1}(a) = log Σ_b exp(transitions_i(a, b) + emissions_i(b) + backward_i(b))
    P(y_i) ∝ exp(forward_i + backward_i)
    P(y_{i−1}, y_i) ∝ exp(forward_{i−1} + transitions_i + emissions_i + backward_i)

The largest number of a message is subtracted from it; log Z is summed in float64. `transitions_of` gives the
transitions into a token by their strides, as they may be views of fewer numbers.
"""

import triton
import triton.language as tl

from crfkit.nn.triton.dense.tables import NEVER, ends_of, finite, inverse, length_of, position_of, row_of


@triton.jit
def transitions_of(
    transitions, row, p, by_row, by_position, by_before, by_after, L: tl.constexpr, label, REAL: tl.constexpr
):
    """The transitions into position p of a sequence [BLOCK before, BLOCK after], −inf in the padding and at position 0."""
    known = label < tl.where(p > 0, L, 0)
    place = transitions + row * by_row + (row * 0 + p - 1) * by_position
    place = place + label[:, None] * by_before + label[None, :] * by_after
    return tl.load(place, mask=known[:, None] & known[None, :], other=NEVER).to(REAL)


@triton.jit
def _log_sum(values, axis: tl.constexpr):
    """log Σ exp of values [BLOCK, BLOCK] over an axis."""
    top = finite(tl.max(values, axis=axis))
    return tl.log(tl.sum(tl.exp(values - tl.expand_dims(top, axis)), axis=axis)) + top


@triton.jit
def _forward(
    emissions, transitions, positions, messages, pointers, row, n, T, by_row, by_position, by_before, by_after,
    L: tl.constexpr, label, first, last, REAL: tl.constexpr,
):  # fmt: skip
    """The last forward message [BLOCK] and the sum of the subtracted maxima, in float64; or the best prefixes."""
    known = label < L
    v = row_of(emissions, positions, row, 0, n, T, L, label, first, last, REAL)
    m = finite(tl.max(v, axis=0))
    v -= m
    total = m.to(tl.float64)
    if messages is not None and n > 0:
        tl.store(messages + label, v, mask=known)
    p = position_of(positions, row, 1, T)
    table = transitions_of(transitions, row, p, by_row, by_position, by_before, by_after, L, label, REAL)
    for t in range(1, n):
        p = position_of(positions, row, t + 1, T)  # the next transitions are loaded before these are used
        following = transitions_of(
            transitions, row, p, by_row, by_position, by_before, by_after, L, label, REAL
        )
        x = row_of(emissions, positions, row, t, n, T, L, label, first, last, REAL)
        if pointers is not None:
            paths = v[:, None] + table
            before = tl.argmax(paths, axis=0, tie_break_left=True)
            tl.store(pointers + t * L + label, before.to(pointers.dtype.element_ty), mask=known)
            v = tl.max(paths, axis=0) + x
        else:
            v = _log_sum(v[:, None] + table, 0) + x
        m = finite(tl.max(v, axis=0))
        v -= m
        total += m.to(tl.float64)
        if messages is not None:
            tl.store(messages + t * L + label, v, mask=known)
        table = following
    return v, total


@triton.jit
def _backward(
    emissions, transitions, positions, messages, row, n, T, by_row, by_position, by_before, by_after, L: tl.constexpr,
    label, first, last, REAL: tl.constexpr,
):  # fmt: skip
    """The backward messages of tokens 0 … n − 2; those of the last token are zeros, which are not stored."""
    v = tl.where(label < L, 0.0, NEVER).to(REAL)
    p = position_of(positions, row, tl.maximum(n - 1, 0), T)
    table = transitions_of(transitions, row, p, by_row, by_position, by_before, by_after, L, label, REAL)
    for i in range(1, n):
        t = n - i
        p = position_of(positions, row, t - 1, T)
        following = transitions_of(
            transitions, row, p, by_row, by_position, by_before, by_after, L, label, REAL
        )
        x = row_of(emissions, positions, row, t, n, T, L, label, first, last, REAL)
        v = _log_sum(table + (v + x)[None, :], 1)
        v -= finite(tl.max(v, axis=0))
        tl.store(messages + (t - 1) * L + label, v, mask=label < L)
        table = following


@triton.jit(do_not_specialize=["B", "T", "by_row", "by_position", "by_before", "by_after"])
def position_messages_kernel(
    emissions, transitions, start, end, lengths, positions, messages, values, pointers, B, T, by_row, by_position,
    by_before, by_after, L: tl.constexpr, BLOCK: tl.constexpr, REAL: tl.constexpr,
):  # fmt: skip
    """Programs [B, roles]: forward messages and log Z; backward messages.

    messages: forward [B, T, L], then backward [B, T, L]. values [B]: log Z in float64. Or pointers [B, T, L] to the best
    label before, and values [2, B, L]: the scores of best label sequences by their last label, at (T − 1) % 2.
    """
    row, role = tl.program_id(0).to(tl.int64), tl.program_id(1)
    n = length_of(lengths, row, T)
    label = tl.arange(0, BLOCK)
    first, last = ends_of(start, label, L, REAL), ends_of(end, label, L, REAL)
    emissions += row * T * L
    if role == 0:
        out, here = messages, pointers
        if messages is not None:
            out = messages + row * T * L
        if pointers is not None:
            here = pointers + row * T * L
        v, total = _forward(
            emissions, transitions, positions, out, here, row, n, T, by_row, by_position, by_before, by_after, L,
            label, first, last, REAL,
        )  # fmt: skip
        if pointers is not None:
            place = values + (((T - 1) % 2) * tl.cast(B, tl.int64) + row) * L
            tl.store(place + label, v, mask=label < L)
        else:
            log_z = total + tl.log(tl.sum(tl.exp(v), axis=0)).to(tl.float64)
            tl.store(values + row, tl.where(n > 0, log_z, 0.0))
    elif messages is not None:
        _backward(
            emissions, transitions, positions, messages + (tl.cast(B, tl.int64) + row) * T * L, row, n, T, by_row,
            by_position, by_before, by_after, L, label, first, last, REAL,
        )  # fmt: skip


@triton.jit(do_not_specialize=["B", "T", "by_row", "by_position", "by_before", "by_after", "upstream_stride"])
def position_gradient_kernel(
    emissions, transitions, start, end, lengths, positions, tags, messages, upstream, d_emissions, d_transitions, B,
    T, by_row, by_position, by_before, by_after, upstream_stride, L: tl.constexpr, BLOCK: tl.constexpr,
    REAL: tl.constexpr,
):  # fmt: skip
    """Programs [B, T]: the gradient by the emissions of one token and by the transitions into it."""
    row, t = tl.program_id(0).to(tl.int64), tl.program_id(1)
    n = length_of(lengths, row, T)
    label = tl.arange(0, BLOCK)
    known, on = label < L, t < n
    is_token, linked = label < tl.where(on, L, 0), label < tl.where(on & (t > 0), L, 0)
    p, q = (position_of(positions, row, t, T), position_of(positions, row, tl.maximum(t - 1, 0), T))
    weight = tl.load(upstream + row * upstream_stride).to(REAL)
    forward = messages + (row * T + t) * L + label
    f = tl.load(forward, mask=is_token, other=NEVER)
    b = tl.load(forward + tl.cast(B, tl.int64) * T * L, mask=label < tl.where(t < n - 1, L, 0), other=0.0)
    marginals = tl.exp(f + b - finite(tl.max(f + b, axis=0)))
    marginals *= inverse(tl.sum(marginals, axis=0))
    y = row * 0
    if tags is not None:
        y = tl.load(tags + row * T + p)
        marginals -= tl.where(label == y, 1.0, 0.0)
        weight = -weight
    tl.store(d_emissions + (row * T + p) * L + label, tl.where(is_token, marginals * weight, 0.0), mask=known)
    if p > 0:
        first, last = ends_of(start, label, L, REAL), ends_of(end, label, L, REAL)
        x = row_of(emissions + row * T * L, positions, row, t, n, T, L, label, first, last, REAL) + b
        before = tl.load(forward - L, mask=linked, other=NEVER)
        paths = before[:, None] + transitions_of(
            transitions, row, p, by_row, by_position, by_before, by_after, L, label, REAL
        )
        paths += x[None, :]
        # P(y_{i−1}, y_i) of one token is normalised by its own sum, so messages need no scales
        pairs = tl.exp(paths - finite(tl.max(paths)))
        pairs *= inverse(tl.sum(pairs))
        if tags is not None:
            z = tl.load(tags + row * T + q)
            pairs -= tl.where((label == z)[:, None] & (label == y)[None, :], 1.0, 0.0)
        place = d_transitions + ((row * (T - 1) + p - 1) * L + label[:, None]) * L + label[None, :]
        tl.store(place, tl.where(linked[:, None], pairs * weight, 0.0), mask=known[:, None] & known[None, :])
