"""The Triton kernel for best projective trees: Eisner's algorithm with maxima, one program for each sentence.

The items are those of `sums` with maxima in place of sums, in float64. With each of them lies the width of the first of the
two items that its maximum is made of, the smallest one where several are as good. Backtracking goes from the widest items
down: what an item of the best tree is made of is marked, width by width, for all items of a width at once.

Areas of a program: complete items, incomplete ones in float64; the widths of B and of complete items, and the marks of
incomplete and of complete ones in int32.
"""

import triton
import triton.language as tl

from crfkit.nn.triton.dense.tables import NEVER, length_of
from crfkit.nn.triton.projective.charts import first_chart, second_chart


@triton.jit
def _better(best, by, x, y, there, t):
    """The best products so far, and their widths t, with the items at x and y."""
    score = tl.load(x, mask=there, other=NEVER) + tl.load(y, mask=there, other=NEVER)
    return tl.maximum(best, score), tl.where(score > best, t, by)


@triton.jit
def _best_of(best, by):
    """The largest of scores [ROWS, COLUMNS] over the first axis, and the smallest width of those that are as large."""
    top = tl.max(best, axis=0)
    return top, tl.min(tl.where(best == top[None, :], by, 2**30), axis=0)


@triton.jit
def _fill(
    scores, complete, incomplete, widths_between, widths, marks_incomplete, marks, n, size, one_root, ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
):  # fmt: skip
    """Fills the charts, and clears the marks; whether all scores are numbers."""
    N = n + 1
    for first in range(0, N, COLUMNS):
        i = first + tl.arange(0, COLUMNS)
        nothing = tl.zeros([COLUMNS], dtype=tl.float64)
        tl.store(first_chart(complete, 0, i, N), nothing, mask=i < N)
        tl.store(second_chart(complete, 0, i, N), nothing, mask=i < N)
    tl.debug_barrier()
    undefined = tl.zeros([COLUMNS], dtype=tl.int32)
    for d in range(1, N):
        for first in range(0, N - d, COLUMNS):
            i = first + tl.arange(0, COLUMNS)
            on = i < N - d
            to_right = tl.load(scores + i * size + i + d, mask=on, other=NEVER).to(tl.float64)
            to_left = tl.load(scores + (i + d) * size + i, mask=on & (i > 0), other=NEVER).to(tl.float64)
            undefined |= ((to_right != to_right) | (to_left != to_left)).to(tl.int32)
            b = tl.full([ROWS, COLUMNS], NEVER, dtype=tl.float64)
            by_b = tl.zeros([ROWS, COLUMNS], dtype=tl.int32)
            r, by_r, left, by_l = b, by_b, b, by_b
            at = i[None, :]
            for start in range(0, d, ROWS):
                t = (start + tl.arange(0, ROWS))[:, None]
                there = (t < d) & on[None, :]
                inner = there & (t > 0)
                b, by_b = _better(
                    b,
                    by_b,
                    first_chart(complete, t, at, N),
                    second_chart(complete, d - 1 - t, at + t + 1, N),
                    there,
                    t,
                )
                r, by_r = _better(
                    r,
                    by_r,
                    first_chart(incomplete, t, at, N),
                    first_chart(complete, d - t, at + t, N),
                    inner,
                    t,
                )
                left, by_l = _better(
                    left,
                    by_l,
                    second_chart(complete, t, at, N),
                    second_chart(incomplete, d - t, at + t, N),
                    inner,
                    t,
                )
            both, by_both = _best_of(b, by_b)
            arc_right, arc_left = both + to_right, both + to_left
            right, by_right = _best_of(r, by_r)
            left_of, by_left = _best_of(left, by_l)
            by_right = tl.where(arc_right > right, d, by_right)
            by_left = tl.where(arc_left >= left_of, 0, by_left)
            right = tl.maximum(right, arc_right)
            right = tl.where((i == 0) & (d < n) & (one_root != 0), NEVER, right)
            tl.store(first_chart(incomplete, d, i, N), arc_right, mask=on)
            tl.store(second_chart(incomplete, d, i, N), arc_left, mask=on)
            tl.store(first_chart(complete, d, i, N), right, mask=on)
            tl.store(second_chart(complete, d, i, N), tl.maximum(left_of, arc_left), mask=on)
            tl.store(first_chart(widths_between, d, i, N), by_both, mask=on)
            tl.store(first_chart(widths, d, i, N), by_right, mask=on)
            tl.store(second_chart(widths, d, i, N), by_left, mask=on)
            no = tl.zeros([COLUMNS], dtype=tl.int32)
            tl.store(first_chart(marks_incomplete, d, i, N), no, mask=on)
            tl.store(second_chart(marks_incomplete, d, i, N), no, mask=on)
            tl.store(first_chart(marks, d, i, N), ((d == n) & (i == 0)).to(tl.int32), mask=on)
            tl.store(second_chart(marks, d, i, N), no, mask=on)
        tl.debug_barrier()
    return tl.sum(undefined, axis=0) == 0


@triton.jit
def _backtrack(widths_between, widths, marks_incomplete, marks, heads, n, COLUMNS: tl.constexpr):
    """Writes the heads; items of width 0 have no parts and need no marks."""
    N = n + 1
    yes = tl.full([COLUMNS], 1, dtype=tl.int32)
    for less in range(n):
        d = n - less
        for first in range(0, N - d, COLUMNS):
            i = first + tl.arange(0, COLUMNS)
            on = i < N - d
            right = on & (tl.load(first_chart(marks, d, i, N), mask=on, other=0) != 0)
            t = tl.load(first_chart(widths, d, i, N), mask=right, other=1)
            tl.store(first_chart(marks_incomplete, t, i, N), yes, mask=right)
            tl.store(first_chart(marks, d - t, i + t, N), yes, mask=right & (t < d))
            left = on & (tl.load(second_chart(marks, d, i, N), mask=on, other=0) != 0)
            t = tl.load(second_chart(widths, d, i, N), mask=left, other=0)
            tl.store(second_chart(marks_incomplete, d - t, i + t, N), yes, mask=left)
            tl.store(second_chart(marks, t, i, N), yes, mask=left & (t > 0))
        tl.debug_barrier()
        for first in range(0, N - d, COLUMNS):
            i = first + tl.arange(0, COLUMNS)
            on = i < N - d
            right = on & (tl.load(first_chart(marks_incomplete, d, i, N), mask=on, other=0) != 0)
            left = on & (tl.load(second_chart(marks_incomplete, d, i, N), mask=on, other=0) != 0)
            tl.store(heads + i + d - 1, i.to(tl.int64), mask=right)
            tl.store(heads + i - 1, (i + d).to(tl.int64), mask=left)
            t = tl.load(first_chart(widths_between, d, i, N), mask=right | left, other=0)
            tl.store(first_chart(marks, t, i, N), yes, mask=(right | left) & (t > 0))
            tl.store(second_chart(marks, d - 1 - t, i + t + 1, N), yes, mask=(right | left) & (t < d - 1))
        tl.debug_barrier()


@triton.jit(do_not_specialize=["size", "one_root"])
def best_projective_kernel(
    scores, lengths, work, numbers, heads, size, one_root, ROWS: tl.constexpr, COLUMNS: tl.constexpr
):
    """Programs [B]: the heads of the best tree [B, n]; −1 beyond the end of a sentence, and where no tree exists."""
    row = tl.program_id(0).to(tl.int64)
    n = length_of(lengths, row, size - 1)
    area = (size + 1) * size
    scores += row * size * size
    heads += row * (size - 1)
    complete = work + row * 2 * area
    widths_between = numbers + row * 4 * area
    widths, marks_incomplete, marks = (
        widths_between + area, widths_between + 2 * area, widths_between + 3 * area,
    )  # fmt: skip
    for first in range(0, size - 1, COLUMNS):
        m = first + tl.arange(0, COLUMNS)
        tl.store(heads + m, tl.full([COLUMNS], -1, dtype=tl.int64), mask=m < size - 1)
    defined = _fill(
        scores, complete, complete + area, widths_between, widths, marks_incomplete, marks, n, size, one_root, ROWS, COLUMNS,
    )  # fmt: skip
    if defined & (tl.load(first_chart(complete, n, 0, n + 1)) > NEVER):
        _backtrack(widths_between, widths, marks_incomplete, marks, heads, n, COLUMNS)
