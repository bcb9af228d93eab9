"""The Triton kernel that writes −inf for the transitions and ends that a table of bigrams forbids."""

import triton
import triton.language as tl

from crfkit.nn.triton.dense.tables import NEVER


@triton.jit
def explicit_kernel(
    transitions,
    start,
    end,
    bigrams,
    full_transitions,
    full_start,
    full_end,
    L: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Programs [blocks of the table]: transitions [L, L], start [L] and end [L] (absent: 0), −inf where forbidden.

    bigrams [L + 1, L + 1] has START in its last row and END in its last column.
    """
    place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    before, after = place // (L + 1), place % (L + 1)
    exists = tl.load(bigrams + place, mask=place < (L + 1) * (L + 1), other=0) != 0
    inside, first, last = (before < L) & (after < L), (before == L) & (after < L), (before < L) & (after == L)
    score = tl.load(transitions + before * L + after, mask=inside & exists, other=NEVER)
    tl.store(full_transitions + before * L + after, score, mask=inside)
    at_start = tl.where(exists, 0.0, NEVER)
    if start is not None:
        at_start = tl.load(start + after, mask=first & exists, other=NEVER)
    tl.store(full_start + after, at_start.to(full_start.dtype.element_ty), mask=first)
    at_end = tl.where(exists, 0.0, NEVER)
    if end is not None:
        at_end = tl.load(end + before, mask=last & exists, other=NEVER)
    tl.store(full_end + before, at_end.to(full_end.dtype.element_ty), mask=last)
