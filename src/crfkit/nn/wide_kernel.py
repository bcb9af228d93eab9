"""The Triton kernel for the messages of chains with many labels: all programs go from site to site together.

Each program has a block of labels, a group of sequences and a direction; the recursions are those of `chain_kernels`. What
the others found for the site before is read once all have stored it: they wait for each other at a counter, which needs all
of them to be on the device at once, or else every site is a launch of its own.
"""

from __future__ import annotations

import triton
import triton.language as tl

LOG_2 = tl.constexpr(0.6931471805599453)


@triton.jit
def _begin(states, peaks, lengths, messages, scale, row, on, block, label, direction, size, T, L):
    """Messages of the first site forward and of the last site backward, for one block of labels."""
    here = on[:, None] & (label < L)[None, :]
    if direction == 0:
        x = tl.load(states + (row * T * L)[:, None] + label[None, :], mask=here, other=0.0)
        m = tl.load(peaks + row * T, mask=on, other=0.0)
        tl.store(messages + (row * T * L)[:, None] + label[None, :], tl.exp(x - m[:, None]), mask=here)
        tl.store(scale + row * T, m, mask=on & (row * 0 + block == 0))
    else:
        last = row * T + tl.load(lengths + row, mask=on, other=1) - 1
        ones = tl.where(here, 1.0, 0.0)
        tl.store(messages + size + (last * L)[:, None] + label[None, :], ones, mask=here)


@triton.jit(do_not_specialize=["B", "T", "first", "stop"])
def wide_kernel(
    states, peaks, lengths, weights, messages, scale, counters, B, T, L, first, stop,
    ROWS: tl.constexpr, BLOCK: tl.constexpr, STEP: tl.constexpr, WAIT: tl.constexpr,
):  # fmt: skip
    """Programs [blocks of labels, 2, groups of rows]: turns first … stop − 1 of a batch; turn 0 begins.

    weights [2, L, L]: exp(arcs − peak) and its transpose; messages [2, B, T, L]; scale [B, T]; counters [2, groups] zeros.
    """
    block, direction, group = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    label = block * BLOCK + tl.arange(0, BLOCK)
    row = (group * ROWS + tl.arange(0, ROWS)).to(tl.int64)
    exists = row < B
    n = tl.load(lengths + row, mask=exists, other=0)
    size = tl.cast(B, tl.int64) * T * L
    own = messages + direction * size
    table = weights + direction * L * L
    counter = counters + direction * tl.num_programs(2) + group
    for turn in range(first, stop):
        if turn == 0:
            on = exists & (n > 0)
            _begin(states, peaks, lengths, messages, scale, row, on, block, label, direction, size, T, L)
        else:
            on = exists & (turn < n)
            source = tl.where(direction == 0, turn - 1, n - turn)  # [ROWS] the site that is known
            target = tl.where(direction == 0, source + 1, source - 1)
            reached = tl.zeros([ROWS, BLOCK], dtype=tl.float32)
            mass = tl.zeros([ROWS], dtype=tl.float32)
            m = tl.load(peaks + row * T + tl.where(direction == 0, target, source), mask=on, other=0.0)
            for begin in range(0, L, STEP):
                k = begin + tl.arange(0, STEP)
                here = on[:, None] & (k < L)[None, :]
                cell = ((row * T + source) * L)[:, None] + k[None, :]
                v = tl.load(own + cell, mask=here, other=0.0, cache_modifier=".cg")
                if direction == 1:
                    v *= tl.exp(tl.load(states + cell, mask=here, other=0.0) - m[:, None])
                mass = tl.maximum(mass, tl.max(v, axis=1))
                w = tl.load(
                    table + k[:, None] * L + label[None, :],
                    mask=(k < L)[:, None] & (label < L)[None, :],
                    other=0.0,
                )
                reached = tl.dot(v, w, reached, input_precision="tf32x3")
            power = tl.ceil(tl.log2(tl.maximum(mass, 1e-37)))
            reached *= tl.exp2(-power)[:, None]
            here = on[:, None] & (label < L)[None, :]
            cell = ((row * T + target) * L)[:, None] + label[None, :]
            if direction == 0:
                reached *= tl.exp(tl.load(states + cell, mask=here, other=0.0) - m[:, None])
                tl.store(scale + row * T + target, m + power * LOG_2, mask=on & (row * 0 + block == 0))
            tl.store(own + cell, reached, mask=here)
        if WAIT:
            tl.debug_barrier()
            tl.atomic_add(counter, 1, sem="release")
            while tl.atomic_add(counter, 0, sem="acquire") < (turn + 1) * tl.num_programs(0):
                pass
            tl.debug_barrier()
