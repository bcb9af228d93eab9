"""The charts of Eisner's algorithm in memory, and the weights of arcs.

An item over the nodes i … i + t lies at (t, i), so that those of one width lie side by side: whatever an item of width d is
made of, items of the widths t and d − t or so, is read in the order of i for each t. Two charts share an area of
(N + 1) N numbers, as items of width t have only N − t first nodes: one has the address t N + i in it, the other
N² − t (N − 1) + i.

Weights are divided by the sum of those of all arcs into a word:

    w(h → m) = exp(scores[h, m] − shift_m),    shift_m = log Σ_h exp(scores[h, m])

They are then probabilities of heads that are chosen independently, and every item, inside or outside, is the probability of
a set of choices: no number exceeds 1, and what float64 rounds to 0, less than 2^−1022, is nothing beside a Z that is not
smaller than exp(−MOST_UNLIKELY). Sentences with a smaller Z are left to log space.
"""

import triton
import triton.language as tl

from crfkit.nn.triton.dense.tables import NEVER
from crfkit.nn.triton.semiring import add_to, total_of

MOST_UNLIKELY = tl.constexpr(600.0)  # nats


@triton.jit
def first_chart(area, t, i, N):
    """Where the first chart of an area has the item over i … i + t."""
    return area + t * N + i


@triton.jit
def second_chart(area, t, i, N):
    """Where the second one has it."""
    return area + N * N - t * (N - 1) + i


@triton.jit
def write_shifts(scores, shifts, n, size, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    """Writes shift_m of the words [n + 1], 0 where there is no arc into a word; their sum."""
    total = tl.zeros([COLUMNS], dtype=tl.float64)
    for first in range(0, n + 1, COLUMNS):
        m = first + tl.arange(0, COLUMNS)
        word = (m > 0) & (m <= n)
        top = tl.full([ROWS, COLUMNS], NEVER, dtype=tl.float64)
        sums = tl.zeros([ROWS, COLUMNS], dtype=tl.float64)
        for start in range(0, n + 1, ROWS):
            h = start + tl.arange(0, ROWS)
            exists = (h <= n)[:, None] & word[None, :] & (h[:, None] != m[None, :])
            x = tl.load(scores + h[:, None] * size + m[None, :], mask=exists, other=NEVER).to(tl.float64)
            top, sums = add_to(top, sums, x, True)
        shift = total_of(top, sums, True)
        shift = tl.where(shift == NEVER, 0.0, shift)
        tl.store(shifts + m, shift, mask=m <= n)
        total += shift
    tl.debug_barrier()
    return tl.sum(total, axis=0)


@triton.jit
def weights_of(scores, shifts, d, i, on, size, LOG: tl.constexpr):
    """The weights of the arcs i → i + d and i + d → i, [I]; no arc leads to the root."""
    right = tl.load(scores + i * size + i + d, mask=on, other=NEVER).to(tl.float64)
    left = tl.load(scores + (i + d) * size + i, mask=on & (i > 0), other=NEVER).to(tl.float64)
    right -= tl.load(shifts + i + d, mask=on, other=0.0)
    left -= tl.load(shifts + i, mask=on, other=0.0)
    if not LOG:
        right, left = tl.exp(right), tl.exp(left)
    return right, left
