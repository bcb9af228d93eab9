"""Sums and products of weights, or of their logarithms: one kernel for exp space and for log space."""

import triton
import triton.language as tl

from crfkit.nn.triton.dense.tables import finite


@triton.jit
def plus(x, y, LOG: tl.constexpr):
    """x + y of weights."""
    if LOG:
        top, low = tl.maximum(x, y), tl.minimum(x, y)
        result = top + tl.log(1.0 + tl.exp(low - finite(top)))
    else:
        result = x + y
    return result


@triton.jit
def times(x, y, LOG: tl.constexpr):
    """x y of weights."""
    return x + y if LOG else x * y


@triton.jit
def over(x, y, LOG: tl.constexpr):
    """x / y of weights."""
    return x - y if LOG else x / y


@triton.jit
def add_to(top, total, x, LOG: tl.constexpr):
    """A running sum with another weight: `total`, in log space times exp(top), `top` the largest logarithm so far."""
    if LOG:
        highest = tl.maximum(top, x)
        total = total * tl.exp(top - finite(highest)) + tl.exp(x - finite(highest))
        top = highest
    else:
        total += x
    return top, total


@triton.jit
def total_of(top, total, LOG: tl.constexpr):
    """The weights of running sums [M, N], summed over the first axis: [N]."""
    if LOG:
        highest = tl.max(top, axis=0)
        shares = total * tl.exp(top - finite(highest)[None, :])
        result = tl.log(tl.sum(shares, axis=0)) + finite(highest)
    else:
        result = tl.sum(total, axis=0)
    return result
