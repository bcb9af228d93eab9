"""Whether messages can be kept in exp space, and how often to rescale them, decided on the device.

Exp space loses numbers that are far smaller than the largest one of their token: those below `tiny`, 2^−126 in
float32. Where all transitions exist and lie s ≤ 30 nats apart, the largest one reaches every label at the next token,
with e^−s of its weight at least, so what is lost is lost beside it. Where some are forbidden it may take k
steps until it reaches every label: two with the labels of BIO, three with those of IOBES. Let

    W(a, b) ≤ 1, E_i(b) ≤ 1      exp of transitions and of emissions, each divided by the largest; L labels
    s, D                         spread of the allowed transitions, and of a token's emissions at most, with start and end
    p                            tokens from division to division; after one, the largest number is ½ or more

*Forward.* V_i(b) = E_i(b) Σ_a V_{i−1}(a) W(a, b) loses 2 (L + 1) tiny at most: of its products, and of itself. At
token j = i − 1 + k that has become 2 (L + 1) L^(k−1) tiny at most, for any label c. But the largest number of the
last division, k + p − 1 tokens before j or less, has come to c as well, by transitions and emissions of e^−s and e^−D
or more: with ½ e^(−(k + p − 1) (s + D)) at least. So each V_j(c), and with it Z, changes by a factor of at most

    1 + 5 L^k tiny e^((k + p − 1) (s + D))

which at a token is less than its rounding, 2^−24, if

    (k + p − 1) (s + D) + k log L  ≤  log(2^−24 / (5 tiny)) = 69        (670 in float64)

*Backward.* B_{i−1} = W (E_i ∘ B_i) is the same from the other side: weights of k + p − 1 tokens and transitions, as
above. A number of B_i that is lost cannot be seen in V_i ∘ B_i: k − 1 tokens before it, all labels that lead to it
lead to the largest one.

*Ends.* Less than k tokens before the last one the largest number need not reach all labels, but one with a finite
end: from every label there has to be such a walk of r transitions, r = 1 … k − 1; and one of r transitions to every
label from a finite start. What start and end forbid is 0 and not lost.

*Marginals* of transitions are V_{i−1}(a) W(a, c) U(c), U(c) = E_i(c) B_i(c) / Z, added up before they are multiplied
by W. Where W is 0 these sums mean nothing, and have to be finite. E_i(c) B_i(c) is at most L^(k−1) times the largest
E_j B_j, at j = i − 1 + k, and Z has a walk of k transitions from the largest V_{i−1}(a) to it: V_{i−1}(a) U(c) ≤
L^(k−1) e^(k (s + D)), and U(c) is at most 2 e^((p − 1) (s + D)) times as much: e^70.

All of this is found on the device: s and k by the program that has a table, D by the one that has a sequence. Everything
else (labels that tokens do not allow, two sets of labels that never meet, scores farther apart) is done in log space.
"""

import triton
import triton.language as tl

MOST_STEPS = tl.constexpr(4)
NATS_OF_LABELS = tl.constexpr(4.86)  # log 128
NATS_32, NATS_64 = tl.constexpr(69.0), tl.constexpr(670.0)
INFINITE = tl.constexpr(float("inf"))


@triton.jit
def _all(truths):
    """Whether all of a table are true, as a number."""
    return tl.min(tl.min(truths.to(tl.int32), axis=1), axis=0)


@triton.jit
def steps_to_all(exists, first, last, L: tl.constexpr, label):
    """The number k of transitions in which every label reaches every label, 0 if more than MOST_STEPS, or if ends forbid it.

    `exists` [BLOCK, BLOCK] says which transitions there are, none in the padding; `first` and `last` [BLOCK] which ends.
    """
    padding = (label[:, None] >= L) | (label[None, :] >= L)
    transitions = tl.where(exists, 1.0, 0.0).to(tl.float16)
    walks, found, open_ends = transitions, tl.full([], 0, tl.int32), tl.full([], 1, tl.int32)
    after, before = tl.where(last, 1.0, 0.0), tl.where(first, 1.0, 0.0)
    for steps in range(1, MOST_STEPS + 1):
        complete = _all((walks > 0) | padding) * open_ends
        found = tl.where((found == 0) & (complete > 0), steps, found)
        after = tl.max(tl.where(exists, after[None, :], 0.0), axis=1)
        before = tl.max(tl.where(exists, before[:, None], 0.0), axis=0)
        open_ends *= _all(((after[:, None] > 0) & (before[None, :] > 0)) | padding)
        walks = tl.where(tl.dot(walks, transitions) > 0, 1.0, 0.0).to(tl.float16)
    return found


@triton.jit
def spread_of(x):
    """How far the scores [BLOCK] that are not −inf lie apart."""
    return tl.max(x, axis=0) - tl.min(tl.where(x == -INFINITE, INFINITE, x), axis=0)


@triton.jit
def widest_of(
    emissions, maxima, positions, row, n, T, L: tl.constexpr, label, BLOCK: tl.constexpr, REAL: tl.constexpr
):
    """How far the emissions of a token of a sequence lie apart at most; `maxima` [T] are the largest of each position."""
    STEP: tl.constexpr = 32
    widest = tl.zeros([STEP, BLOCK], dtype=REAL)
    for begin in range(0, n, STEP):
        t = begin + tl.arange(0, STEP)
        p = t
        if positions is not None:
            p = tl.load(positions + row * T + t, mask=t < n, other=0).to(tl.int32)
        here = (t < n)[:, None] & (label < L)[None, :]
        x = tl.load(emissions + p[:, None] * L + label[None, :], mask=here, other=INFINITE).to(REAL)
        widest = tl.maximum(widest, tl.load(maxima + p, mask=t < n, other=0.0)[:, None] - x)
    return tl.max(tl.max(widest, axis=1), axis=0)


@triton.jit
def tokens_per_division(steps, apart):
    """The largest p of 8, 4, 2 and 1 that is safe, 0 if none: for k = `steps`, and s + D = `apart`."""
    nats = (NATS_64 if apart.dtype == tl.float64 else NATS_32) - steps * NATS_OF_LABELS
    period = 0
    for p in tl.static_range(4):
        period = tl.where((steps + (1 << p) - 1) * apart <= nats, 1 << p, period)
    return period
