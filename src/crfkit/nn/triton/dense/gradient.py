"""The Triton kernels for the gradient, from the messages of `messages`.

    P(y_i) = V_i ∘ B_i / mass_i,     mass_i = Σ V_i ∘ B_i                    V forward, B backward messages
    P(y_{i−1}, y_i) = V_{i−1} W exp(emissions_i − scale_i) ∘ B_i / mass_i

The sum over i of the second is one matrix product of V_{i−1} and what follows it, in three passes of TF32 that keep the
digits of float32.
"""

import triton
import triton.language as tl

from crfkit.nn.triton.dense.tables import (
    MAXIMUM,
    N_FACTS,
    NEVER,
    ends_of,
    finite,
    inverse,
    length_of,
    positions_of,
    square,
    tags_of,
)


@triton.jit
def _finished(
    gradient, weight, tags, d_emissions, at_start, at_end, row, t, p, n, on, inside, T, L: tl.constexpr, label,
):  # fmt: skip
    """Marginals [STEP, BLOCK] less what the tags have, weighted and stored; what they add to first and last labels."""
    if tags is not None:
        y = tl.load(tags + row * T + p, mask=on, other=-1).to(tl.int32)
        gradient -= tl.where(label[None, :] == y[:, None], 1.0, 0.0)
    gradient = tl.where(on[:, None], gradient * weight, 0.0)
    target = d_emissions + row * T * L + p[:, None] * L + label[None, :]
    tl.store(target, gradient.to(d_emissions.dtype.element_ty), mask=inside[:, None] & (label < L)[None, :])
    at_start += tl.sum(tl.where((t == 0)[:, None], gradient, 0.0), axis=0)
    at_end += tl.sum(tl.where((t == n - 1)[:, None], gradient, 0.0), axis=0)
    return at_start, at_end


@triton.jit
def _seen_transitions(tags, positions, row, begin, stop, T, L: tl.constexpr, label, BLOCK: tl.constexpr):
    """How often the tags of the tokens begin … stop − 1 have each transition [BLOCK, BLOCK]."""
    STEP: tl.constexpr = 64
    seen = tl.zeros([BLOCK, BLOCK], dtype=tl.float32)
    for first in range(begin, stop, STEP):
        t = first + tl.arange(0, STEP)
        linked = (t < stop) & (t > 0)
        after, before = (
            tags_of(tags, positions, row, t, linked, T),
            tags_of(tags, positions, row, t - 1, linked, T),
        )
        left = (label[:, None] == before[None, :]).to(tl.bfloat16)
        right = (label[None, :] == after[:, None]).to(tl.bfloat16)
        seen = tl.dot(left, right, seen)
    return seen


@triton.jit
def _chunk_scaled(
    emissions, last, positions, tags, scores, maximum, forward, backward, scale, d_emissions, weight, row, n, T, begin,
    stop, bound, L: tl.constexpr, label, BLOCK: tl.constexpr, STEP: tl.constexpr, REAL: tl.constexpr,
    DOT: tl.constexpr,
):  # fmt: skip
    """The gradient at the tokens from `begin` to `bound`, STEP at once, of messages in exp space; its sums over them."""
    known = label < L
    expected = tl.zeros([BLOCK, BLOCK], dtype=REAL)
    at_start, at_end = tl.zeros([BLOCK], dtype=REAL), tl.zeros([BLOCK], dtype=REAL)
    for first in range(begin, bound, STEP):
        t = first + tl.arange(0, STEP)
        inside, on = t < bound, t < stop
        linked, here = on & (t > 0), on[:, None] & known[None, :]
        p = positions_of(positions, row, t, inside, T)
        cell = t[:, None] * L + label[None, :]
        x = tl.load(emissions + p[:, None] * L + label[None, :], mask=here, other=NEVER).to(REAL)
        f = tl.load(forward + cell, mask=here, other=0.0)
        b = tl.load(backward + cell, mask=here & (t < n - 1)[:, None], other=1.0)
        before = tl.load(forward + cell - L, mask=linked[:, None] & known[None, :], other=0.0)
        shift = tl.load(scale + t, mask=linked, other=0.0)
        b = tl.where(known[None, :], b, 0.0)
        # messages have factors of their own, which cancel in V ∘ B / Σ V ∘ B: by these first, as both may be small or large
        by_f, by_b = inverse(tl.max(f, axis=1)), inverse(tl.max(b, axis=1))
        b *= by_b[:, None]
        f *= by_f[:, None] * b
        by_mass = inverse(tl.sum(f, axis=1))
        x += tl.where((t == n - 1)[:, None], last[None, :], 0.0) - shift[:, None]
        # exp(emissions_i − scale_i) ∘ B_i / mass_i, which follows V_{i−1} W
        pushed = tl.exp(tl.where(linked[:, None], x, NEVER)) * b * (by_mass * by_f)[:, None]
        at_start, at_end = _finished(
            f * by_mass[:, None], weight, tags, d_emissions, at_start, at_end, row, t, p, n, on, inside, T, L, label,
        )  # fmt: skip
        if DOT:
            expected = tl.dot(tl.trans(before), pushed, expected, input_precision="tf32x3")
        else:
            expected += tl.sum(before[:, :, None] * pushed[:, None, :], axis=0)
    return expected * tl.exp(square(scores, BLOCK) - finite(maximum)), at_start, at_end


@triton.jit
def _chunk_in_log_space(
    emissions, last, positions, tags, scores, forward, backward, scale, d_emissions, weight, row, n, T, begin, stop,
    bound, L: tl.constexpr, label, BLOCK: tl.constexpr, REAL: tl.constexpr,
):  # fmt: skip
    """The same of messages that are logarithms, token by token."""
    known = label < L
    expected = tl.zeros([BLOCK, BLOCK], dtype=REAL)
    at_start, at_end = tl.zeros([BLOCK], dtype=REAL), tl.zeros([BLOCK], dtype=REAL)
    table = square(scores, BLOCK)
    for i in range(begin, bound):
        t = i + tl.arange(0, 1)
        on = t < stop
        p = positions_of(positions, row, t, t < bound, T)
        here = tl.broadcast_to(on, [BLOCK]) & known
        b = tl.load(backward + i * L + label, mask=here & tl.broadcast_to(t < n - 1, [BLOCK]), other=0.0)
        f = tl.load(forward + i * L + label, mask=here, other=NEVER) + b
        top = finite(tl.max(f, axis=0))
        mass = tl.sum(tl.exp(f - top), axis=0)
        top += tl.where(mass > 0, tl.log(mass), 0.0)
        if (i > 0) & (i < stop) & (mass > 0):
            x = tl.load(emissions + tl.sum(p, axis=0) * L + label, mask=known, other=NEVER).to(REAL)
            x += tl.where(i == n - 1, last, 0.0) + b - (tl.load(scale + i) + top)
            before = tl.load(forward + (i - 1) * L + label, mask=known, other=NEVER)
            expected += tl.exp(before[:, None] + table + x[None, :])
        at_start, at_end = _finished(
            tl.exp(f - top)[None, :], weight, tags, d_emissions, at_start, at_end, row, t, p, n, on, t < bound, T, L,
            label,
        )  # fmt: skip
    return expected, at_start, at_end


@triton.jit(do_not_specialize=["T", "own_transitions", "n_chunks", "chunk", "upstream_stride", "share"])
def gradient_kernel(
    emissions, end, lengths, positions, tags, scores, facts, periods, forward, backward, scale, upstream, d_emissions,
    sums, T, own_transitions, n_chunks, chunk, upstream_stride, share, L: tl.constexpr, BLOCK: tl.constexpr,
    STEP: tl.constexpr, REAL: tl.constexpr, DOT: tl.constexpr,
):  # fmt: skip
    """Programs [B, n_chunks]: the gradient at the positions of one chunk of tokens, and its sums over them.

    It is weighted by the upstream gradient of each value, `upstream` with its stride, or by 1 / share where this is
    absent. sums [B, n_chunks, L + 2, L]: of the transitions, and of the scores of first and of last labels. The
    others: see `Workspace`.
    """
    row, part = tl.program_id(0).to(tl.int64), tl.program_id(1)
    n = length_of(lengths, row, T)
    label = tl.arange(0, BLOCK)
    known = label < L
    scores += row * own_transitions * (2 * BLOCK * BLOCK)
    emissions += row * T * L
    forward += row * T * L
    backward += row * T * L
    scale += row * T
    last = ends_of(end, label, L, REAL)
    weight = 1.0 / share.to(REAL)
    if upstream is not None:
        weight = tl.load(upstream + row * upstream_stride).to(REAL)
    if tags is not None:
        weight = -weight
    begin, bound = part * chunk, tl.minimum((part + 1) * chunk, T)
    stop = tl.minimum(n, bound)
    if tl.load(periods + row) > 0:
        maximum = tl.load(facts + row * own_transitions * N_FACTS + MAXIMUM)
        expected, at_start, at_end = _chunk_scaled(
            emissions, last, positions, tags, scores, maximum, forward, backward, scale, d_emissions, weight, row, n, T,
            begin, stop, bound, L, label, BLOCK, STEP, REAL, DOT,
        )  # fmt: skip
    else:
        expected, at_start, at_end = _chunk_in_log_space(
            emissions, last, positions, tags, scores, forward, backward, scale, d_emissions, weight, row, n, T, begin,
            stop, bound, L, label, BLOCK, REAL,
        )  # fmt: skip
    if tags is not None:
        expected -= _seen_transitions(tags, positions, row, begin, stop, T, L, label, BLOCK)
    out = sums + (row * n_chunks + part) * (L + 2) * L
    pair = known[:, None] & known[None, :]
    tl.store(out + label[:, None] * L + label[None, :], expected * weight, mask=pair)
    tl.store(out + L * L + label, at_start, mask=known)
    tl.store(out + (L + 1) * L + label, at_end, mask=known)


@triton.jit(do_not_specialize=["n_parts"])
def sums_kernel(
    sums,
    d_transitions,
    d_start,
    d_end,
    bigrams,
    n_parts,
    L: tl.constexpr,
    BLOCK: tl.constexpr,
    STEP: tl.constexpr,
):
    """Programs [blocks of numbers]: sums [n_parts, L + 2, L] added up to d_transitions [L, L], d_start [L] and d_end [L].

    Any of these three may be absent. They are 0 for what bigrams [L + 1, L + 1], where it is given, forbids.
    """
    size: tl.constexpr = (L + 2) * L
    place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    added = tl.zeros([STEP, BLOCK], dtype=sums.dtype.element_ty)
    for begin in range(0, n_parts, STEP):
        part = (begin + tl.arange(0, STEP)).to(tl.int64)
        here = (part < n_parts)[:, None] & (place < size)[None, :]
        added += tl.load(sums + part[:, None] * size + place[None, :], mask=here, other=0.0)
    found = tl.sum(added, axis=0)
    if bigrams is not None:
        row, column = place // L, place % L
        at_end = row > L
        there = tl.where(at_end, column, row) * (L + 1) + tl.where(at_end, L, column)
        found = tl.where(tl.load(bigrams + there, mask=place < size, other=0) != 0, found, 0.0)
    if d_transitions is not None:
        tl.store(d_transitions + place, found.to(d_transitions.dtype.element_ty), mask=place < L * L)
    if d_start is not None:
        at_start = (place >= L * L) & (place < L * L + L)
        tl.store(d_start + place - L * L, found.to(d_start.dtype.element_ty), mask=at_start)
    if d_end is not None:
        at_end = (place >= L * L + L) & (place < size)
        tl.store(d_end + place - (L * L + L), found.to(d_end.dtype.element_ty), mask=at_end)


@triton.jit
def _scale(numbers, size, factor, STEP: tl.constexpr):
    """Multiply numbers [size], a part of them in each program."""
    for begin in range(tl.program_id(0).to(tl.int64) * STEP, size, tl.num_programs(0) * STEP):
        place = begin + tl.arange(0, STEP)
        x = tl.load(numbers + place, mask=place < size, other=0.0)
        tl.store(numbers + place, (x * factor).to(numbers.dtype.element_ty), mask=place < size)


@triton.jit(do_not_specialize=["size"])
def scale_kernel(
    d_emissions, d_transitions, d_start, d_end, upstream, size, L: tl.constexpr, STEP: tl.constexpr
):
    """Programs [any]: gradients multiplied in place by one number, where it is not 1; d_emissions has `size` numbers."""
    factor = tl.load(upstream)
    if factor != 1.0:
        _scale(d_emissions, size, factor, STEP)
        _scale(d_transitions, L * L, factor, STEP)
        if d_start is not None:
            _scale(d_start, L, factor, STEP)
        if d_end is not None:
            _scale(d_end, L, factor, STEP)
