"""Triton kernels for the gradient of chains with many labels, from the messages of `messages`.

    P(y_i) = F_i ∘ Q_i / U_i / mass_i,                          mass_i = Σ F_i ∘ Q_i / U_i
    P(y_{i−1}, y_i) = F_{i−1} W pushed_i,                       pushed_i = Q_i exp(m_i − scale_i) / mass_i

The first kernel puts pushed in the place of Q. The sum of the second over all tokens is one matrix product, in three
passes of TF32 that keep the digits of float32. With logarithms pushed_i = Q_i − scale_i − log mass_i, and every
transition is an exp.
"""

import triton
import triton.language as tl

from crfkit.nn.triton.dense.tables import (
    NEVER,
    finite,
    inverse,
    length_of,
    lengths_of,
    position_of,
    positions_of,
    tags_of,
)
from crfkit.nn.triton.wide.messages import LOGARITHMS, MODE, token_scores


@triton.jit
def weight_of(upstream, tags, row, stride, on):
    """The factor of the marginals of sequences: the upstream gradient of their values, or 1; negative with tags."""
    weight = tl.where(on, 1.0, 0.0)
    if upstream is not None:
        weight = tl.load(upstream + row * stride, mask=on, other=0.0).to(tl.float32)
    if tags is not None:
        weight = -weight
    return weight


@triton.jit(do_not_specialize=["B", "T", "stride"])
def wide_gradient_kernel(
    emissions, start, end, lengths, positions, tags, maxima, counters, messages, scale, upstream, d_emissions, B, T,
    stride, L: tl.constexpr, STEP: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Programs [blocks of places]: the gradient by emissions, and pushed (weighted, but for logarithms) instead of Q.

    In the padding F becomes 0, and pushed such that it adds nothing.
    """
    place = (tl.program_id(0) * STEP + tl.arange(0, STEP)).to(tl.int64)
    inside = place < tl.cast(B, tl.int64) * T
    row, t = place // T, place % T
    n = lengths_of(lengths, row, inside, T)
    on = inside & (t < n)
    label = tl.arange(0, BLOCK)
    is_label = (label < L)[None, :]
    safe = tl.load(counters + MODE) < LOGARITHMS
    x, m = token_scores(emissions, maxima, positions, start, end, row, t, on, n, T, L, label)
    weight = weight_of(upstream, tags, row, stride, on)
    shift = tl.load(scale + place, mask=on, other=0.0)
    cell = place[:, None] * L + label[None, :]
    forward, backward = messages + cell, messages + tl.cast(B, tl.int64) * T * L + cell
    here = on[:, None] & is_label
    empty = tl.where(safe, 0.0, NEVER)
    f, q = tl.load(forward, mask=here, other=empty), tl.load(backward, mask=here, other=empty)
    linked = (on & (t > 0))[:, None]
    if safe:
        # Q_i = B_i ∘ U_i, so B_i = Q_i / U_i; factors of messages cancel in F ∘ B / Σ F ∘ B
        u = tl.exp(x - m[:, None])
        b = tl.where(u > 0, q / u, 0.0)
        by_f, by_b = inverse(tl.max(f, axis=1)), inverse(tl.max(b, axis=1))  # both may be small or large
        both = (f * by_f[:, None]) * (b * by_b[:, None])
        by_mass = inverse(tl.sum(both, axis=1))
        gradient = both * by_mass[:, None]
        pushed = q * by_b[:, None] * (tl.exp(m - shift) * by_mass * by_f * weight)[:, None]
        pushed = tl.where(linked, pushed, 0.0)
    else:
        # log F_i + log B_i = f + q − x, and its log-sum-exp is the logarithm of mass_i
        both = tl.where(x == NEVER, NEVER, f + q - x)
        top = finite(tl.max(both, axis=1))
        mass = tl.sum(tl.exp(both - top[:, None]), axis=1)
        top += tl.where(mass > 0, tl.log(mass), 0.0)
        gradient = tl.exp(both - top[:, None])
        pushed = tl.where(linked & (mass > 0)[:, None], q - (shift + top)[:, None], NEVER)
    p = positions_of(positions, row, t, inside, T)
    if tags is not None:
        y = tags_of(tags, positions, row, t, on, T)
        gradient -= tl.where(label[None, :] == y[:, None], 1.0, 0.0)
    gradient = tl.where(on[:, None], gradient * weight[:, None], 0.0)
    written = inside[:, None] & is_label
    target = d_emissions + ((row * T + p) * L)[:, None] + label[None, :]
    tl.store(target, gradient.to(d_emissions.dtype.element_ty), mask=written)
    tl.store(backward, pushed, mask=written)
    tl.store(forward, tl.zeros_like(f), mask=written & (on == 0)[:, None])


@triton.jit
def _seen(
    lengths, positions, tags, upstream, stride, before, after, B, T, ROWS: tl.constexpr, COLUMNS: tl.constexpr
):
    """How often the tags have the transitions of one tile, weighted [ROWS, COLUMNS]."""
    STEP: tl.constexpr = 32
    seen = tl.zeros([ROWS, COLUMNS], dtype=tl.float32)
    for begin in range(0, B * T, STEP):
        place = begin + tl.arange(0, STEP)
        row, t = place // T, place % T
        linked = (place < B * T) & (t > 0) & (t < lengths_of(lengths, row, place < B * T, T))
        y, x = tags_of(tags, positions, row, t, linked, T), tags_of(tags, positions, row, t - 1, linked, T)
        weight = weight_of(upstream, tags, row, stride, linked)
        left = tl.where(before[:, None] == x[None, :], weight[None, :], 0.0)
        right = tl.where(after[None, :] == y[:, None], 1.0, 0.0)
        seen = tl.dot(left, right, seen, input_precision="tf32x3")
    return seen


@triton.jit
def added_ends(lengths, positions, d_emissions, d_start, d_end, B, T, L: tl.constexpr, BLOCK: tl.constexpr):
    """The gradient by start and end: what first and last tokens have together."""
    label = tl.arange(0, BLOCK)
    first, last = tl.zeros([BLOCK], dtype=tl.float32), tl.zeros([BLOCK], dtype=tl.float32)
    for row in range(B):
        n = length_of(lengths, row, T)
        p, q = position_of(positions, row, 0, T), position_of(positions, row, tl.maximum(n - 1, 0), T)
        base = d_emissions + tl.cast(row, tl.int64) * T * L + label
        here = (label < L) & (label * 0 + n > 0)
        first += tl.load(base + p * L, mask=here, other=0.0).to(tl.float32)
        last += tl.load(base + q * L, mask=here, other=0.0).to(tl.float32)
    if d_start is not None:
        tl.store(d_start + label, first.to(d_start.dtype.element_ty), mask=label < L)
    if d_end is not None:
        tl.store(d_end + label, last.to(d_end.dtype.element_ty), mask=label < L)


@triton.jit(do_not_specialize=["B", "T", "stride"])
def wide_transitions_kernel(
    transitions, lengths, positions, tags, counters, counts, messages, upstream, d_emissions, d_transitions, d_start,
    d_end, B, T, stride, L: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr, STEP: tl.constexpr,
    BLOCK: tl.constexpr,
):  # fmt: skip
    """Programs [tiles of labels before + 1, tiles of labels after]: the gradient by transitions; one more, by the ends.

    counts [L, L], of the transitions that the tags have, may stand for the tags where all weights are 1.
    """
    last_row: tl.constexpr = (L + ROWS - 1) // ROWS
    if tl.program_id(0) == last_row:
        if tl.program_id(1) == 0:
            added_ends(lengths, positions, d_emissions, d_start, d_end, B, T, L, BLOCK)
    else:
        before = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
        after = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
        is_before, is_after = before < L, after < L
        pair = is_before[:, None] & is_after[None, :]
        place = before[:, None] * L + after[None, :]
        w = tl.load(transitions + place, mask=pair, other=NEVER).to(tl.float32)
        found = tl.zeros([ROWS, COLUMNS], dtype=tl.float32)
        n_places = tl.cast(B, tl.int64) * T
        pushed = messages + n_places * L
        if tl.load(counters + MODE) < LOGARITHMS:
            for begin in range(1, n_places, STEP):
                k = begin + tl.arange(0, STEP).to(tl.int64)
                here = k < n_places
                f = tl.load(
                    messages + (k[None, :] - 1) * L + before[:, None],
                    mask=is_before[:, None] & here[None, :],
                    other=0.0,
                )
                q = tl.load(
                    pushed + k[:, None] * L + after[None, :],
                    mask=here[:, None] & is_after[None, :],
                    other=0.0,
                )
                found = tl.dot(f, q, found, input_precision="tf32x3")
            found *= tl.exp(w)
        else:
            for k in range(1, n_places):
                f = tl.load(messages + (k - 1) * L + before, mask=is_before, other=NEVER)
                q = tl.load(pushed + k * L + after, mask=is_after, other=NEVER)
                on = tl.full([1], True, tl.int1)
                row = k // T + tl.zeros([1], dtype=tl.int64)
                weight = tl.sum(weight_of(upstream, tags, row, stride, on), axis=0)
                found += weight * tl.exp(f[:, None] + w + q[None, :])
        if tags is not None and counts is not None:
            found += tl.load(counts + place, mask=pair, other=0).to(tl.float32)
        elif tags is not None:
            found -= _seen(lengths, positions, tags, upstream, stride, before, after, B, T, ROWS, COLUMNS)
        tl.store(d_transitions + place, found.to(d_transitions.dtype.element_ty), mask=pair)
