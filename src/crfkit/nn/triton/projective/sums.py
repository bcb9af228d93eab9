"""The Triton kernel for sums over projective trees: Eisner's algorithm inside and outside, one program for each sentence.

Items over nodes i ≤ j, 0 the root: complete ones C, incomplete ones I, → with the head on the left, ← on the right;
w are the weights of arcs (`charts`).

    B[i, j]  = Σ_k C→[i, k] C←[k + 1, j]       I→[i, j] = w(i → j) B[i, j],   I←[i, j] = w(j → i) B[i, j]
    C→[i, j] = Σ_k I→[i, k] C→[k, j]           C←[i, j] = Σ_k C←[i, k] I←[k, j]           Z = C→[0, n]

with C→[0, j] = 0 for 0 < j < n where exactly one word hangs on the root. Outside, a prime for ∂ Z / ∂ item:

    C→'[a, b] = Σ_{j>b} B'[a, j] C←[b + 1, j] + Σ_{i<a} C→'[i, b] I→[i, a]
    C←'[a, b] = Σ_{i<a} B'[i, b] C→[i, a − 1] + Σ_{j>b} C←'[a, j] I←[b, j]
    I→'[a, b] = Σ_{j≥b} C→'[a, j] C→[b, j]     I←'[a, b] = Σ_{i≤a} C←'[i, b] C←[i, a]
    B'[a, b]  = I→'[a, b] w(a → b) + I←'[a, b] w(b → a)
    P(a → b)  = I→[a, b] I→'[a, b] / Z,        P(b → a) = I←[a, b] I←'[a, b] / Z

Widths follow one another, upwards and downwards; the items of a width are made at once, their sums in tiles [ROWS, COLUMNS]
of k and i. Every sum is made in one order: the same bits in every run. Exp space in float64 first; what it cannot hold,
in log space.

Letters: n words, N = n + 1 nodes, d the width j − i. Areas of a program: complete items, incomplete ones, the same outside
(of incomplete ones B'), each (N + 1) N numbers, and the shifts [N].
"""

import triton
import triton.language as tl

from crfkit.nn.triton.dense.tables import NEVER, length_of
from crfkit.nn.triton.projective.charts import (
    MOST_UNLIKELY,
    first_chart,
    second_chart,
    weights_of,
    write_shifts,
)
from crfkit.nn.triton.semiring import add_to, over, plus, times, total_of


@triton.jit
def _add_product(top, total, x, y, there, LOG: tl.constexpr):
    """A running sum with the product of the items at x and y, where they are there."""
    ZERO: tl.constexpr = NEVER if LOG else 0.0
    a = tl.load(x, mask=there, other=ZERO)
    b = tl.load(y, mask=there, other=ZERO)
    return add_to(top, total, times(a, b, LOG), LOG)


@triton.jit
def _inside(
    scores,
    shifts,
    complete,
    incomplete,
    n,
    size,
    one_root,
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
    LOG: tl.constexpr,
):
    """Fills the charts of complete and incomplete items; of each width, d, three sums over the width t of a first part."""
    ZERO: tl.constexpr = NEVER if LOG else 0.0
    N = n + 1
    for first in range(0, N, COLUMNS):
        i = first + tl.arange(0, COLUMNS)
        one = tl.full([COLUMNS], 0.0 if LOG else 1.0, dtype=tl.float64)
        tl.store(first_chart(complete, 0, i, N), one, mask=i < N)
        tl.store(second_chart(complete, 0, i, N), one, mask=i < N)
    tl.debug_barrier()
    for d in range(1, N):
        for first in range(0, N - d, COLUMNS):
            i = first + tl.arange(0, COLUMNS)
            on = i < N - d
            to_right, to_left = weights_of(scores, shifts, d, i, on, size, LOG)
            top_b = tl.full([ROWS, COLUMNS], NEVER, dtype=tl.float64)
            b = tl.zeros([ROWS, COLUMNS], dtype=tl.float64)
            top_r, r, top_l, left = top_b, b, top_b, b
            at = i[None, :]
            for start in range(0, d, ROWS):
                t = (start + tl.arange(0, ROWS))[:, None]
                there = (t < d) & on[None, :]
                inner = there & (t > 0)
                top_b, b = _add_product(
                    top_b,
                    b,
                    first_chart(complete, t, at, N),
                    second_chart(complete, d - 1 - t, at + t + 1, N),
                    there,
                    LOG,
                )
                top_r, r = _add_product(
                    top_r,
                    r,
                    first_chart(incomplete, t, at, N),
                    first_chart(complete, d - t, at + t, N),
                    inner,
                    LOG,
                )
                top_l, left = _add_product(
                    top_l,
                    left,
                    second_chart(complete, t, at, N),
                    second_chart(incomplete, d - t, at + t, N),
                    inner,
                    LOG,
                )
            both = total_of(top_b, b, LOG)
            arc_right, arc_left = times(both, to_right, LOG), times(both, to_left, LOG)
            right = plus(total_of(top_r, r, LOG), arc_right, LOG)
            right = tl.where((i == 0) & (d < n) & (one_root != 0), ZERO, right)
            tl.store(first_chart(incomplete, d, i, N), arc_right, mask=on)
            tl.store(second_chart(incomplete, d, i, N), arc_left, mask=on)
            tl.store(first_chart(complete, d, i, N), right, mask=on)
            tl.store(
                second_chart(complete, d, i, N), plus(total_of(top_l, left, LOG), arc_left, LOG), mask=on
            )
        tl.debug_barrier()


@triton.jit
def _sums_around(
    complete, incomplete, outer_complete, outer_between, a, d, on, n, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
    LOG: tl.constexpr,
):  # fmt: skip
    """What the items over a … a + d have outside from those that are s wider, [COLUMNS]: C→', C←', I→' and I←'."""
    N = n + 1
    top_cr = tl.full([ROWS, COLUMNS], NEVER, dtype=tl.float64)
    cr = tl.zeros([ROWS, COLUMNS], dtype=tl.float64)
    top_cl, cl, top_ir, ir, top_il, il = top_cr, cr, top_cr, cr, top_cr, cr
    at, end = a[None, :], a[None, :] + d
    for start in range(1, N - d, ROWS):
        s = (start + tl.arange(0, ROWS))[:, None]
        after = (end + s <= n) & on[None, :]  # an item that ends s nodes later
        before = (s <= at) & on[None, :]  # one that begins s nodes earlier
        x, y = first_chart(outer_between, d + s, at, N), second_chart(complete, s - 1, end + 1, N)
        top_cr, cr = _add_product(top_cr, cr, x, y, after, LOG)
        x, y = first_chart(outer_complete, d + s, at - s, N), first_chart(incomplete, s, at - s, N)
        top_cr, cr = _add_product(top_cr, cr, x, y, before, LOG)
        x, y = first_chart(outer_between, d + s, at - s, N), first_chart(complete, s - 1, at - s, N)
        top_cl, cl = _add_product(top_cl, cl, x, y, before, LOG)
        x, y = second_chart(outer_complete, d + s, at, N), second_chart(incomplete, s, end, N)
        top_cl, cl = _add_product(top_cl, cl, x, y, after, LOG)
        x, y = first_chart(outer_complete, d + s, at, N), first_chart(complete, s, end, N)
        top_ir, ir = _add_product(top_ir, ir, x, y, after, LOG)
        x, y = second_chart(outer_complete, d + s, at - s, N), second_chart(complete, s, at - s, N)
        top_il, il = _add_product(top_il, il, x, y, before, LOG)
    return (
        total_of(top_cr, cr, LOG),
        total_of(top_cl, cl, LOG),
        total_of(top_ir, ir, LOG),
        total_of(top_il, il, LOG),
    )


@triton.jit
def _outside(
    scores, shifts, complete, incomplete, outer_complete, outer_between, marginals, n, size, one_root, z,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr, LOG: tl.constexpr,
):  # fmt: skip
    """Writes the probabilities of all arcs, the widest first."""
    ZERO: tl.constexpr = NEVER if LOG else 0.0
    ONE: tl.constexpr = 0.0 if LOG else 1.0
    N = n + 1
    for less in range(n):
        d = n - less
        for first in range(0, N - d, COLUMNS):
            a = first + tl.arange(0, COLUMNS)
            on = a < N - d
            to_right, to_left = weights_of(scores, shifts, d, a, on, size, LOG)
            cr, cl, ir, il = _sums_around(
                complete, incomplete, outer_complete, outer_between, a, d, on, n, ROWS, COLUMNS, LOG
            )
            cr = tl.where((a == 0) & (one_root != 0), ZERO, cr)
            cr = tl.where(d == n, ONE, cr)
            ir, il = plus(ir, cr, LOG), plus(il, cl, LOG)
            between = plus(times(ir, to_right, LOG), times(il, to_left, LOG), LOG)
            tl.store(first_chart(outer_complete, d, a, N), cr, mask=on)
            tl.store(second_chart(outer_complete, d, a, N), cl, mask=on)
            tl.store(first_chart(outer_between, d, a, N), between, mask=on)
            p = times(tl.load(first_chart(incomplete, d, a, N), mask=on, other=ZERO), ir, LOG)
            q = times(tl.load(second_chart(incomplete, d, a, N), mask=on, other=ZERO), il, LOG)
            p, q = over(p, z, LOG), over(q, z, LOG)
            if LOG:
                p, q = tl.exp(p), tl.exp(q)
            tl.store(marginals + a * size + a + d, p, mask=on)
            tl.store(marginals + (a + d) * size + a, q, mask=on & (a > 0))
        tl.debug_barrier()


@triton.jit
def _write_no_numbers(marginals, size, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    """NaN for every entry of a sentence [size, size], also where there can be no arc."""
    for first in range(0, size, ROWS):
        h = (first + tl.arange(0, ROWS))[:, None]
        for start in range(0, size, COLUMNS):
            m = (start + tl.arange(0, COLUMNS))[None, :]
            nothing = tl.full([ROWS, COLUMNS], float("nan"), dtype=tl.float64)
            tl.store(marginals + h * size + m, nothing, mask=(h < size) & (m < size))


@triton.jit(do_not_specialize=["size", "one_root"])
def projective_kernel(
    scores, lengths, work, log_z, marginals, enough, size, one_root, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
    GRADIENT: tl.constexpr, LOG: tl.constexpr,
):  # fmt: skip
    """Programs [B]: log Z [B] and, with `GRADIENT`, the probability of every arc there is.

    `work` has 4 areas of (size + 1) size numbers for each, 2 without a gradient, and `size` numbers. Whether exp space was
    enough is written to `enough` [B]; log space does what was not. Where the score of an arc is not a number, neither is
    log Z nor any entry of the marginals, as in the other backends: also on the diagonal, in column 0, beyond the end.
    """
    row = tl.program_id(0).to(tl.int64)
    n = length_of(lengths, row, size - 1)
    N_AREAS: tl.constexpr = 4 if GRADIENT else 2
    area = (size + 1) * size
    scores += row * size * size
    marginals += row * size * size
    complete = work + row * (N_AREAS * area + size)
    incomplete = complete + area
    shifts = complete + N_AREAS * area
    wanted = True
    if LOG:
        wanted = tl.load(enough + row) == 0
    if wanted:
        shift = write_shifts(scores, shifts, n, size, ROWS, COLUMNS)
        _inside(scores, shifts, complete, incomplete, n, size, one_root, ROWS, COLUMNS, LOG)
        z = tl.load(first_chart(complete, n, 0, n + 1))
        if LOG:
            z = tl.where(shift != shift, shift, z)  # where a score is not a number, nothing is
            tl.store(log_z + row, z + shift)
            good = (z == z) & (z != NEVER)
            if GRADIENT and z != z:
                _write_no_numbers(marginals, size, ROWS, COLUMNS)
        else:
            logarithm = tl.log(z)
            tl.store(log_z + row, logarithm + shift)
            good = logarithm > -MOST_UNLIKELY
            tl.store(enough + row, good.to(tl.int8))
        if GRADIENT and good:
            outer = complete + 2 * area
            _outside(
                scores, shifts, complete, incomplete, outer, outer + area, marginals, n, size, one_root, z,
                ROWS, COLUMNS, LOG,
            )  # fmt: skip
