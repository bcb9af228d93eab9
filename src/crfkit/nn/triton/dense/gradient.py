"""The Triton kernel that makes a gradient of the messages of a chain (`chain_kernels`).

    P(y_i) = V_i ∘ B_i / mass_i,     mass_i = Σ V_i ∘ B_i                    V forward, B backward messages
    P(y_{i−1}, y_i) = V_{i−1} W exp(states_i − scale_i) ∘ B_i / mass_i

The sum over i of the second is one matrix product of V_{i−1} and what follows it, in three passes of TF32 that keep the
digits of float32.
"""

from __future__ import annotations

import triton
import triton.language as tl

from crfkit.nn.triton.dense.tables import NEVER, ends_of, finite, inverse, length_of, square


@triton.jit
def _finished(
    gradient, weight, tags, d_emissions, at_start, at_end, row, t, p, n, on, inside, T, L: tl.constexpr, label,
    HAS_TAGS: tl.constexpr,
):  # fmt: skip
    """Marginals [STEP, BLOCK] less what the tags have, weighted and stored; what they add to first and last labels."""
    if HAS_TAGS:
        y = tl.load(tags + row * T + p, mask=on, other=-1).to(tl.int32)
        gradient -= tl.where(label[None, :] == y[:, None], 1.0, 0.0)
    gradient = tl.where(on[:, None], gradient * weight, 0.0)
    target = d_emissions + row * T * L + p[:, None] * L + label[None, :]
    tl.store(target, gradient.to(d_emissions.dtype.element_ty), mask=inside[:, None] & (label < L)[None, :])
    at_start += tl.sum(tl.where((t == 0)[:, None], gradient, 0.0), axis=0)
    at_end += tl.sum(tl.where((t == n - 1)[:, None], gradient, 0.0), axis=0)
    return at_start, at_end


@triton.jit
def _seen_arcs(
    tags, sites, row, begin, stop, T, L: tl.constexpr, label, HAS_SITES: tl.constexpr, BLOCK: tl.constexpr
):
    """How often the tags of the sites begin … stop − 1 have each arc [BLOCK, BLOCK]."""
    STEP: tl.constexpr = 64
    seen = tl.zeros([BLOCK, BLOCK], dtype=tl.float32)
    for first in range(begin, stop, STEP):
        t = first + tl.arange(0, STEP)
        linked = (t < stop) & (t > 0)
        p, q = t, t - 1
        if HAS_SITES:
            p = tl.load(sites + row * T + t, mask=linked, other=0)
            q = tl.load(sites + row * T + t - 1, mask=linked, other=0)
        after = tl.load(tags + row * T + p, mask=linked, other=-1).to(tl.int32)
        before = tl.load(tags + row * T + q, mask=linked, other=-1).to(tl.int32)
        left = (label[:, None] == before[None, :]).to(tl.bfloat16)
        right = (label[None, :] == after[:, None]).to(tl.bfloat16)
        seen = tl.dot(left, right, seen)
    return seen


@triton.jit(do_not_specialize=["B", "T", "own_arcs", "n_chunks", "chunk", "upstream_stride", "share"])
def gradient_kernel(
    emissions, end, lengths, sites, tags, tables, messages, upstream, d_emissions, sums,
    B, T, own_arcs, n_chunks, chunk, upstream_stride, share, L: tl.constexpr,
    HAS_END: tl.constexpr, HAS_LENGTHS: tl.constexpr, HAS_SITES: tl.constexpr, HAS_TAGS: tl.constexpr,
    BLOCK: tl.constexpr, STEP: tl.constexpr, REAL: tl.constexpr, DOT: tl.constexpr,
):  # fmt: skip
    """Programs [B, n_chunks]: the gradient at the positions of one chunk of sites, and its sums over them.

    It is weighted by what comes back to each value, `upstream` with its stride, or by 1 / share where this is absent.
    sums [B, n_chunks, L + 2, L]: of the arcs, and of the scores of first and of last labels.
    """
    row, part = tl.program_id(0).to(tl.int64), tl.program_id(1)
    n = length_of(lengths, row, T, HAS_LENGTHS)
    label = tl.arange(0, BLOCK)
    known = label < L
    table = tables + row * own_arcs * (4 * BLOCK * BLOCK + 16)
    peak, size = tl.load(table + 4 * BLOCK * BLOCK), (row * 0 + B) * T * L
    n_tables = 1 + own_arcs * (row * 0 + B - 1)
    periods = tables + n_tables * (4 * BLOCK * BLOCK + 16) + 2 * B + 1 + (row * 0 + B) * T
    in_exp_space = tl.load(periods + row) > 0
    emissions += row * T * L
    forward, backward, scale = (
        messages + row * T * L,
        messages + size + row * T * L,
        messages + 2 * size + row * T,
    )
    last = ends_of(end, label, L, HAS_END, REAL)
    weight = 1.0 / share.to(REAL)
    if upstream is not None:
        weight = tl.load(upstream + row * upstream_stride).to(REAL)
    if HAS_TAGS:
        weight = -weight
    expected = tl.zeros([BLOCK, BLOCK], dtype=REAL)
    at_start, at_end = tl.zeros([BLOCK], dtype=REAL), tl.zeros([BLOCK], dtype=REAL)
    bound = tl.minimum((part + 1) * chunk, T)
    stop = tl.minimum(n, bound)
    if in_exp_space:
        for begin in range(part * chunk, bound, STEP):
            t = begin + tl.arange(0, STEP)
            inside, on = t < bound, t < stop
            linked, here = on & (t > 0), on[:, None] & known[None, :]
            p = t
            if HAS_SITES:
                p = tl.load(sites + row * T + t, mask=inside, other=0).to(tl.int32)
            cell = t[:, None] * L + label[None, :]
            x = tl.load(emissions + p[:, None] * L + label[None, :], mask=here, other=NEVER).to(REAL)
            f = tl.load(forward + cell, mask=here, other=0.0)
            b = tl.load(backward + cell, mask=here & (t < n - 1)[:, None], other=1.0)
            before = tl.load(forward + cell - L, mask=linked[:, None] & known[None, :], other=0.0)
            shift = tl.load(scale + t, mask=linked, other=0.0)
            b = tl.where(known[None, :], b, 0.0)
            by_f, by_b = inverse(tl.max(f, axis=1)), inverse(tl.max(b, axis=1))  # both may be small or large
            b *= by_b[:, None]
            f *= by_f[:, None] * b
            by_mass = inverse(tl.sum(f, axis=1))
            x += tl.where((t == n - 1)[:, None], last[None, :], 0.0) - shift[:, None]
            pushed = tl.exp(tl.where(linked[:, None], x, NEVER)) * b * (by_mass * by_f)[:, None]
            at_start, at_end = _finished(
                f * by_mass[:, None], weight, tags, d_emissions, at_start, at_end, row, t, p, n, on, inside,
                T, L, label, HAS_TAGS,
            )  # fmt: skip
            if DOT:
                expected = tl.dot(tl.trans(before), pushed, expected, input_precision="tf32x3")
            else:
                expected += tl.sum(before[:, :, None] * pushed[:, None, :], axis=0)
        expected *= tl.exp(square(table, 2, BLOCK) - finite(peak))
    else:
        scores = square(table, 2, BLOCK)
        for begin in range(part * chunk, bound):
            t = begin + tl.arange(0, 1)
            on = t < stop
            p = t
            if HAS_SITES:
                p = tl.load(sites + row * T + t).to(tl.int32)
            here = tl.broadcast_to(on, [BLOCK]) & known
            b = tl.load(
                backward + begin * L + label, mask=here & tl.broadcast_to(t < n - 1, [BLOCK]), other=0.0
            )
            f = tl.load(forward + begin * L + label, mask=here, other=NEVER) + b
            top = finite(tl.max(f, axis=0))
            mass = tl.sum(tl.exp(f - top), axis=0)
            top += tl.where(mass > 0, tl.log(mass), 0.0)
            if (begin > 0) & (begin < stop) & (mass > 0):
                place = tl.sum(p, axis=0)
                x = tl.load(emissions + place * L + label, mask=known, other=NEVER).to(REAL)
                x += tl.where(begin == n - 1, last, 0.0) + b - (tl.load(scale + begin) + top)
                before = tl.load(forward + (begin - 1) * L + label, mask=known, other=NEVER)
                expected += tl.exp(before[:, None] + scores + x[None, :])
            at_start, at_end = _finished(
                tl.exp(f - top)[None, :], weight, tags, d_emissions, at_start, at_end, row, t, p, n, on, t < bound,
                T, L, label, HAS_TAGS,
            )  # fmt: skip
    if HAS_TAGS:
        expected -= _seen_arcs(tags, sites, row, part * chunk, stop, T, L, label, HAS_SITES, BLOCK)
    out = sums + (row * n_chunks + part) * (L + 2) * L
    pair = known[:, None] & known[None, :]
    tl.store(out + label[:, None] * L + label[None, :], expected * weight, mask=pair)
    tl.store(out + L * L + label, at_start, mask=known)
    tl.store(out + (L + 1) * L + label, at_end, mask=known)


@triton.jit(do_not_specialize=["n_parts"])
def sums_kernel(
    sums, d_arcs, d_start, d_end, bigrams, n_parts, L: tl.constexpr, BLOCK: tl.constexpr, STEP: tl.constexpr
):
    """Programs [blocks of numbers]: sums [n_parts, L + 2, L] added up to d_arcs [L, L], d_start [L] and d_end [L].

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
    if d_arcs is not None:
        tl.store(d_arcs + place, found.to(d_arcs.dtype.element_ty), mask=place < L * L)
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
def scale_kernel(d_emissions, d_arcs, d_start, d_end, upstream, size, L: tl.constexpr, STEP: tl.constexpr):
    """Programs [any]: gradients multiplied in place by one number, where it is not 1; d_emissions has `size` numbers."""
    factor = tl.load(upstream)
    if factor != 1.0:
        _scale(d_emissions, size, factor, STEP)
        _scale(d_arcs, L * L, factor, STEP)
        if d_start is not None:
            _scale(d_start, L, factor, STEP)
        if d_end is not None:
            _scale(d_end, L, factor, STEP)
