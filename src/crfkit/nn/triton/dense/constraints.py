"""The Triton kernel that makes scores of arcs and ends explicit: −inf for what a table of bigrams forbids."""

from __future__ import annotations

import triton
import triton.language as tl

from crfkit.nn.triton.dense.tables import NEVER


@triton.jit
def explicit_kernel(
    arcs, start, end, bigrams, full_arcs, full_start, full_end, L: tl.constexpr, BLOCK: tl.constexpr
):
    """Programs [blocks of the table]: arcs [L, L], start [L] and end [L], 0 where they are absent, as the table has them.

    bigrams [L + 1, L + 1] has START in its last row and END in its last column.
    """
    place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    before, after = place // (L + 1), place % (L + 1)
    exists = tl.load(bigrams + place, mask=place < (L + 1) * (L + 1), other=0) != 0
    inside, first, last = (before < L) & (after < L), (before == L) & (after < L), (before < L) & (after == L)
    score = tl.load(arcs + before * L + after, mask=inside & exists, other=NEVER)
    tl.store(full_arcs + before * L + after, score, mask=inside)
    at_start = tl.where(exists, 0.0, NEVER)
    if start is not None:
        at_start = tl.load(start + after, mask=first & exists, other=NEVER)
    tl.store(full_start + after, at_start.to(full_start.dtype.element_ty), mask=first)
    at_end = tl.where(exists, 0.0, NEVER)
    if end is not None:
        at_end = tl.load(end + before, mask=last & exists, other=NEVER)
    tl.store(full_end + before, at_end.to(full_end.dtype.element_ty), mask=last)
