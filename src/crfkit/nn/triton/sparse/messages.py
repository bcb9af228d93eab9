"""Triton kernels for chains with many labels and few bigrams: scores of the lists, messages with values, Viterbi.

PARTS programs have a sequence and a direction, and go through the lists of `bigram_tiles` at every token, each through
every PARTS-th tile. What they found for the token before lies in memory, where all see it once they have waited for
each other. Messages are logarithms: where few bigrams exist, labels that hardly count at one token may be all that is
left at another, which no common factor allows for.

    F_i(b) = emissions_i(b) + log Σ_{a before b} exp(F_{i−1}(a) + transitions(a, b)) − scale_i,    scale_i = max F_{i−1}
    Q_i(a) = emissions_i(a) + log Σ_{b after a} exp(Q_{i+1}(b) + transitions(a, b)) − max Q_{i+1}
    log Z = Σ_i scale_i + log Σ exp F_{n−1}                                               summed in float64
"""

import triton
import triton.language as tl

from crfkit.nn.triton.dense.tables import (
    NEVER,
    added_up,
    finite,
    gold_role,
    gold_score,
    length_of,
    position_of,
)
from crfkit.nn.triton.wide.messages import ARRIVALS, FINISHED, LOGARITHMS, MODE, arrive, wait_for


@triton.jit
def listed(lists, tile, begin, TILE: tl.constexpr, STEP: tl.constexpr):
    """STEP pairs of a tile: the labels in lists, −1 in the padding, and the labels that have these lists."""
    shift = 3 + tl.sum(tl.where(tile >= tl.load(lists + 1 + tl.arange(0, 16)).to(tl.int32), 1, 0), axis=0)
    place = begin + tl.arange(0, STEP)
    own = lists + (1 + tile) * (TILE + TILE // 8)
    return tl.load(own + place).to(tl.int32), tl.load(own + TILE + (place >> shift)).to(tl.int32)


@triton.jit(do_not_specialize=["B", "T", "n_tiles"])
def sparse_scores_kernel(
    emissions, transitions, start, end, lengths, positions, bigrams, tags, neighbours, scores, gold, counters, B, T,
    n_tiles, L: tl.constexpr, TILE: tl.constexpr, STEP: tl.constexpr,
):  # fmt: skip
    """Programs [2 n_tiles TILE / STEP + B (with tags)]: scores of the lists [2, n_tiles, TILE], of the tags [B, 2].

    counters[MODE], where there are some, becomes LOGARITHMS.
    """
    task = tl.program_id(0).to(tl.int64)
    parts: tl.constexpr = TILE // STEP
    if counters is not None:
        tl.store(counters + MODE, LOGARITHMS, mask=task == 0)
    if task < 2 * parts * n_tiles:
        tile = (task // parts).to(tl.int32)
        direction = tl.where(tile >= n_tiles, 1, 0)
        lists = neighbours + direction * (n_tiles + 1) * (TILE + TILE // 8)
        begin = (task % parts).to(tl.int32) * STEP
        other, owner = listed(lists, tile - direction * n_tiles, begin, TILE, STEP)
        before, after = tl.where(direction == 0, other, owner), tl.where(direction == 0, owner, other)
        w = tl.load(transitions + before * L + after, mask=other >= 0, other=NEVER).to(tl.float32)
        tl.store(scores + task * STEP + tl.arange(0, STEP), w)
    elif tags is not None:
        row = task - 2 * parts * n_tiles
        n = length_of(lengths, row, T)
        gold_role(
            emissions, transitions, bigrams, positions, tags, row, n, T, L, start, end, gold, None, tl.float32
        )


@triton.jit
def _emissions(emissions, start, end, position, t, n, L: tl.constexpr, label, here):
    """The scores of labels at token t of a sequence, with start and end folded in; −inf where not `here`."""
    x = tl.load(emissions + position * L + label, mask=here, other=NEVER).to(tl.float32)
    if start is not None:
        x += tl.load(start + label, mask=here & (label * 0 + t == 0), other=0.0).to(tl.float32)
    if end is not None:
        x += tl.load(end + label, mask=here & (label * 0 + t == n - 1), other=0.0).to(tl.float32)
    return x


@triton.jit
def _push_tiles(
    emissions, start, end, lists, scores, new, pointers, v, top, part, position, t, n, L: tl.constexpr, TILE: tl.constexpr,
    WIDTH: tl.constexpr, POWER: tl.constexpr, PARTS: tl.constexpr,
):  # fmt: skip
    """One step for the labels whose lists have WIDTH labels, of every PARTS-th tile: sums, or with `pointers` maxima.

    A tile has TILE / WIDTH labels and their lists, one after the other: `other` [TILE] are the labels in these, and the
    scores of paths over them are v(other) + transition, of which each row is reduced.
    """
    first = tl.load(lists + POWER).to(tl.int32)
    first += (part + PARTS - first % PARTS) % PARTS
    for tile in range(first, tl.load(lists + POWER + 1).to(tl.int32), PARTS):
        own = lists + (1 + tile) * (TILE + TILE // 8)
        label = tl.load(own + TILE + tl.arange(0, TILE // WIDTH)).to(tl.int32)
        other = tl.load(own + tl.arange(0, TILE)).to(tl.int32)
        w = tl.load(scores + tile * TILE + tl.arange(0, TILE))
        x = _emissions(emissions, start, end, position, t, n, L, label, label >= 0)
        paths = tl.reshape(tl.gather(v, tl.maximum(other, 0), 0) + w, [TILE // WIDTH, WIDTH])
        best = tl.max(paths, axis=1)
        if pointers is None:
            maximum = finite(best)
            mass = tl.sum(tl.exp(paths - maximum[:, None]), axis=1)
            tl.store(new + label, x + (tl.log(mass) + (maximum - top)), mask=label >= 0)
        else:
            other = tl.reshape(other, [TILE // WIDTH, WIDTH])
            chosen = (paths == best[:, None]) & (other >= 0)
            pointer = tl.minimum(
                tl.min(tl.where(chosen, other, L), axis=1), L - 1
            )  # among equals the lower label
            tl.store(new + label, x + (best - top), mask=label >= 0)
            tl.store(pointers + label, pointer.to(pointers.dtype.element_ty), mask=label >= 0)


@triton.jit(do_not_specialize=["B", "T", "n_tiles"])
def sparse_messages_kernel(
    emissions, start, end, lengths, positions, neighbours, scores, gold, counters, messages, scale, values, total, B,
    T, n_tiles, L: tl.constexpr, BLOCK: tl.constexpr, TILE: tl.constexpr, POWERS: tl.constexpr, PARTS: tl.constexpr,
    WAIT: tl.constexpr,
):  # fmt: skip
    """Programs [B PARTS, directions]: messages F [B, T, L], then Q [B, T, L]; scale [B, T]; values [B].

    values: log Z, or with `gold` the score of the tags less log Z; total [] is their sum. counters zeros [2 + 2 B]. All
    programs of a sequence store what they find for the first token, which is the same.
    """
    row, direction = (tl.program_id(0) // PARTS).to(tl.int64), tl.program_id(1)
    part = tl.program_id(0) % PARTS
    n = length_of(lengths, row, T)
    label = tl.arange(0, BLOCK)
    here = (label < L) & (label * 0 + n > 0)
    emissions += row * T * L
    own = messages + (direction * tl.cast(B, tl.int64) + row) * T * L
    counter = counters + ARRIVALS + 2 * row + direction
    lists = neighbours + direction * (n_tiles + 1) * (TILE + TILE // 8)
    scores += direction * n_tiles * TILE
    first = tl.where(direction == 0, 0, tl.maximum(n - 1, 0))
    position = position_of(positions, row, first, T)
    x = _emissions(emissions, start, end, position, first, n, L, label, here)
    top = finite(tl.max(x, axis=0))
    tl.store(own + first * L + label, x - top, mask=here)
    tl.store(scale + row * T, top, mask=direction + part == 0)
    added = top.to(tl.float64)
    for turn in range(1, n):
        tl.debug_barrier()
        wait_for(counter, (turn - 1) * PARTS, WAIT)
        t = tl.where(direction == 0, turn, n - 1 - turn)
        old = own + tl.where(direction == 0, t - 1, t + 1) * L
        v = tl.load(old + label, mask=label < L, other=NEVER, cache_modifier=".cg")
        top = finite(tl.max(v, axis=0))
        position = position_of(positions, row, t, T)
        for power in tl.static_range(POWERS):
            _push_tiles(
                emissions, start, end, lists, scores, own + t * L, None, v, top, part, position, t, n, L, TILE, 8 << power,
                power, PARTS,
            )  # fmt: skip
        tl.store(scale + row * T + t, top, mask=direction + part == 0)
        added += top.to(tl.float64)
        arrive(counter, WAIT)
    if (direction == 0) & (part == PARTS - 1):
        tl.debug_barrier()
        wait_for(counter, (n - 1) * PARTS, WAIT)
        last = tl.load(own + (n - 1) * L + label, mask=here, other=NEVER, cache_modifier=".cg")
        top = finite(tl.max(last, axis=0))
        mass = tl.sum(tl.exp(last - top), axis=0)
        log_z = tl.where(n > 0, added + (tl.log(mass) + top).to(tl.float64), 0.0)
        if gold is not None:
            log_z = gold_score(gold, row) - log_z
        tl.store(values + row, log_z.to(tl.float32))
        if total is not None:
            added_up(values, total, counters + FINISHED, B, 1.0, tl.float32)


@triton.jit(do_not_specialize=["B", "T", "n_tiles"])
def sparse_best_kernel(
    emissions, start, end, lengths, positions, neighbours, scores, counters, paths, pointers, B, T, n_tiles,
    L: tl.constexpr, BLOCK: tl.constexpr, TILE: tl.constexpr, POWERS: tl.constexpr, PARTS: tl.constexpr,
    WAIT: tl.constexpr,
):  # fmt: skip
    """Programs [B PARTS]: paths [2, B, L], those to the last token at (T − 1) mod 2; pointers [B, T, L]; counters zeros [B].

    See `wide_best_kernel`.
    """
    row, part = (tl.program_id(0) // PARTS).to(tl.int64), tl.program_id(0) % PARTS
    n = length_of(lengths, row, T)
    label = tl.arange(0, BLOCK)
    emissions += row * T * L
    pointers += row * T * L
    paths += row * L
    size = tl.cast(B, tl.int64) * L
    position = position_of(positions, row, 0, T)
    x = _emissions(emissions, start, end, position, 0, n, L, label, label < L)
    tl.store(paths + ((T - n) % 2) * size + label, x, mask=label < L)
    for t in range(1, n):
        tl.debug_barrier()
        wait_for(counters + row, (t - 1) * PARTS, WAIT)
        old = paths + ((T - n + t - 1) % 2) * size
        v = tl.load(old + label, mask=label < L, other=NEVER, cache_modifier=".cg")
        top = finite(tl.max(v, axis=0))
        position = position_of(positions, row, t, T)
        for power in tl.static_range(POWERS):
            _push_tiles(
                emissions, start, end, neighbours, scores, paths + ((T - n + t) % 2) * size, pointers + t * L, v, top,
                part, position, t, n, L, TILE, 8 << power, power, PARTS,
            )  # fmt: skip
        arrive(counters + row, WAIT)
