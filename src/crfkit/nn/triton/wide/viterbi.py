"""Triton kernels for Viterbi decoding with many labels.

Programs go from token to token together, as in `messages`, and store for each label the best label before it. Another
kernel follows these back.
"""

import triton
import triton.language as tl

from crfkit.nn.triton.dense.tables import NEVER, finite, length_of, lengths_of, position_of
from crfkit.nn.triton.wide.messages import arrive, token_scores, wait_for


@triton.jit
def _begun(old, row, exists, begin, L: tl.constexpr, STEP: tl.constexpr):
    """The scores of the best paths to the labels from `begin`, at the token before [ROWS, STEP]."""
    k = begin + tl.arange(0, STEP)
    here = exists[:, None] & (k < L)[None, :]
    return tl.load(old + row[:, None] * L + k[None, :], mask=here, other=NEVER, cache_modifier=".cg")


@triton.jit(do_not_specialize=["B", "T", "first", "stop", "group"])
def wide_best_kernel(
    emissions, transitions, start, end, lengths, positions, counters, scores, pointers, B, T, first, stop, group,
    L: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr, STEP: tl.constexpr, WAIT: tl.constexpr,
):  # fmt: skip
    """Programs [blocks of labels, groups of rows from `group`]: turns first … stop − 1.

    scores [2, B, L]: of the best paths to each label at the last token and the one before it, less the best of all
    now and then; pointers [B, T, L]: the label before, among equals the lower one.
    """
    block, own_group = tl.program_id(0), group + tl.program_id(1)
    label = block * BLOCK + tl.arange(0, BLOCK)
    row = (own_group * ROWS + tl.arange(0, ROWS)).to(tl.int64)
    exists = row < B
    n = lengths_of(lengths, row, exists, T)
    counter = counters + 2 + own_group
    size = tl.cast(B, tl.int64) * L
    for turn in range(first, stop):
        on = exists & (turn < n)
        target = turn + row * 0
        new, _ = token_scores(emissions, None, positions, start, end, row, target, on, n, T, L, label)
        here = exists[:, None] & (label < L)[None, :]
        if turn > 0:
            wait_for(counter, turn * tl.num_programs(0), WAIT)
            old = scores + ((turn + 1) % 2) * size
            bests = tl.full([ROWS, STEP, BLOCK], NEVER, tl.float32)
            befores = tl.zeros([ROWS, STEP, BLOCK], dtype=tl.int32)
            tops = tl.full([ROWS, STEP], NEVER, tl.float32)
            v = _begun(old, row, exists, 0, L, STEP)
            for begin in range(0, L, STEP):
                k = begin + tl.arange(0, STEP)
                following = _begun(old, row, exists, begin + STEP, L, STEP)
                pair = (k < L)[:, None] & (label < L)[None, :]
                w = tl.load(transitions + k[:, None] * L + label[None, :], mask=pair, other=NEVER).to(
                    tl.float32
                )
                paths = v[:, :, None] + w[None, :, :]
                befores = tl.where(paths > bests, begin, befores)
                bests = tl.maximum(bests, paths)
                tops = tl.maximum(tops, v)
                v = following
            best = tl.max(bests, axis=1)
            befores += tl.arange(0, STEP)[None, :, None]
            pointer = tl.min(tl.where(bests == best[:, None, :], befores, L), axis=1)
            going = on[:, None] & here
            new += best - finite(tl.max(tops, axis=1))[:, None]
            stays = tl.load(
                old + row[:, None] * L + label[None, :], mask=here, other=NEVER, cache_modifier=".cg"
            )
            new = tl.where(on[:, None], new, stays)
            place = pointers + ((row * T + turn) * L)[:, None] + label[None, :]
            tl.store(place, pointer.to(pointers.dtype.element_ty), mask=going)
        tl.store(scores + (turn % 2) * size + row[:, None] * L + label[None, :], new, mask=here)
        arrive(counter, WAIT)


@triton.jit(do_not_specialize=["B", "T"])
def wide_follow_kernel(
    lengths, positions, scores, pointers, labels, B, T, L: tl.constexpr, BLOCK: tl.constexpr
):
    """Programs [B]: the best labels [B, T] by position, −1 at masked positions, or where no label sequence is
    possible.
    """
    row = tl.program_id(0).to(tl.int64)
    n = length_of(lengths, row, T)
    label = tl.arange(0, BLOCK)
    last = scores + (((T - 1) % 2) * tl.cast(B, tl.int64) + row) * L
    ends = tl.load(last + label, mask=label < L, other=NEVER)
    y = tl.argmax(ends, axis=0, tie_break_left=True).to(tl.int32)
    possible = tl.max(ends, axis=0) > NEVER
    for t in range(n, T):
        tl.store(labels + row * T + position_of(positions, row, t, T), -1)
    for i in range(n):
        t = n - 1 - i
        tl.store(labels + row * T + position_of(positions, row, t, T), tl.where(possible, y, -1))
        if t > 0:
            y = tl.load(pointers + (row * T + t) * L + y).to(tl.int32)
