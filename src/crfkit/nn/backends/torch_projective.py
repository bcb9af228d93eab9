"""Eisner's algorithm for a batch of sentences in plain PyTorch: log space, float64, any device, differentiable twice.

Items over nodes i ≤ j, 0 the root. An incomplete item I has an arc between i and j, a complete one C all dependents of its
head on one side; → has the head i on the left, ← the head j on the right (Eisner 1996):

    I→[i, j] = scores[i, j] + B[i, j],   I←[i, j] = scores[j, i] + B[i, j],   B[i, j] = log Σ_k C→[i, k] C←[k + 1, j]
    C→[i, j] = log Σ_k I→[i, k] C→[k, j],    C←[i, j] = log Σ_k C←[i, k] I←[k, j],    log Z = C→[0, n]

(products of exponentials). With exactly one word below the root, C→[0, j] = −inf for 0 < j < n. With scores of adjacent
siblings (McDonald and Pereira 2006), B joins neighbours k and j below one head, and an arc follows that to its inner
sibling:

    I→[i, j] = scores[i, j] + log (siblings[i, i, j] C←[i + 1, j] + Σ_k siblings[i, k, j] I→[i, k] B[k, j]),  I← likewise

Items of one width j − i are made at once: [B, n + 1 − width], by their first node or, padded, by their last one. The best
tree is the gradient of the same sums with maxima in place of log Σ exp.
"""

from collections.abc import Callable
from typing import TypeAlias

import torch
from torch import Tensor

from crfkit.nn.backends.decode import NOTHING
from crfkit.nn.backends.torch_chain import log_sum
from crfkit.nn.backends.tree import TreeBackend
from crfkit.nn.problem.tree import TreeProblem, arcs_of, siblings_of, word_counts

Sum: TypeAlias = Callable[[Tensor], Tensor]  # over axis 1


class EisnerBackend(TreeBackend):
    """Sums over projective trees and best ones by the gradients of the recursions."""

    name = "torch"

    def log_partition(self, problem: TreeProblem, dtype: torch.dtype = torch.float64) -> Tensor:
        """log Z [B]."""
        with torch.no_grad():
            return differentiable_log_partition(problem).to(dtype)

    def marginals(self, problem: TreeProblem, dtype: torch.dtype = torch.float64) -> tuple[Tensor, ...]:
        """log Z [B], and the probability of every arc, and of every pair of siblings where these have scores."""
        log_z, found = _value_and_slopes(problem, log_sum)
        undefined = log_z.isnan()
        return (
            log_z.to(dtype),
            *(
                slope.masked_fill(undefined.view(-1, *[1] * (slope.ndim - 1)), torch.nan).to(dtype)
                for slope in found
            ),
        )

    def argmax(self, problem: TreeProblem) -> Tensor:
        """The heads of the best tree [B, n]: the arcs that its score depends on."""
        value, (arcs, *_) = _value_and_slopes(problem, _maximum)
        heads = arcs[:, :, 1:].argmax(1)  # [B, n]
        there = torch.arange(heads.shape[1], device=heads.device) < word_counts(problem)[:, None]
        return heads.masked_fill(~(there & torch.isfinite(value)[:, None]), NOTHING)


EISNER = EisnerBackend()


def differentiable_log_partition(problem: TreeProblem, _backend: TreeBackend = EISNER) -> Tensor:
    """log Z [B] in float64, which PyTorch differentiates as often as it likes; derivatives are 0 where no tree exists."""
    return _value(problem, log_sum)


def _maximum(values: Tensor) -> Tensor:
    """The largest number along axis 1, whose gradient is that of one of them."""
    return values.max(1).values


@torch.enable_grad()
def _value_and_slopes(problem: TreeProblem, total: Sum) -> tuple[Tensor, list[Tensor]]:
    """The value [B] and its derivative by the scores of all parts, without a graph; 0 where it is −inf."""
    parts = [part.detach().double().requires_grad_() for part in problem.parts]
    again = TreeProblem(parts[0], problem.lengths, problem.single_root, *parts[1:])
    value = _value(again, total)
    slopes = torch.autograd.grad(value.sum(), parts, materialize_grads=True)
    value = value.detach()
    possible = value != -torch.inf
    return value, [slope * possible.view(-1, *[1] * (slope.ndim - 1)) for slope in slopes]


class _Chart:
    """Items by width: [B, widths, n + 1] by their first node, and by their last one; −inf where there is none."""

    def __init__(self, size: int, from_width: int) -> None:
        self.size, self.from_width = size, from_width
        self.firsts: list[Tensor] = []
        self.lasts: list[Tensor] = []

    def append(self, items: Tensor) -> None:
        """Add those of the next width, [B, n + 1 − width]."""
        missing = self.size - items.shape[1]
        self.firsts.append(torch.nn.functional.pad(items, (0, missing), value=-torch.inf))
        self.lasts.append(torch.nn.functional.pad(items, (missing, 0), value=-torch.inf))

    def starting(self, low: int, high: int, count: int) -> Tensor:
        """Of the widths from `low` to below `high`, those of the first `count` nodes: [B, widths, count]."""
        return torch.stack(self.firsts[low - self.from_width : high - self.from_width], 1)[:, :, :count]

    def ending(self, low: int, high: int, count: int) -> Tensor:
        """The same by the last node, widest first: those of the last `count` nodes."""
        widths = self.lasts[low - self.from_width : high - self.from_width]
        return torch.stack(widths[::-1], 1)[:, :, self.size - count :]


def _value(problem: TreeProblem, total: Sum) -> Tensor:
    """The value [B] of all trees of each sentence, with the sum over alternatives as given."""
    scores = problem.scores.double().masked_fill(~arcs_of(problem), -torch.inf)
    B, size = scores.shape[:2]
    lengths = word_counts(problem)
    if problem.siblings is not None:
        pairs = problem.siblings.double().masked_fill(~siblings_of(problem), -torch.inf)
        problem = problem._replace(siblings=pairs)
    right, left = _Chart(size, 0), _Chart(size, 0)  # complete
    open_right, open_left, between = (_Chart(size, 1) for _ in range(3))  # incomplete, and B
    right.append(scores.new_zeros(B, size))
    left.append(scores.new_zeros(B, size))
    from_root = [right.firsts[0][:, 0]]
    for width in range(1, size):
        count = size - width  # items of this width
        middle = total(right.starting(0, width, count) + left.ending(0, width, count))
        if problem.siblings is None:
            inner_right = inner_left = middle
        else:
            between.append(middle)
            inner_right = _after_siblings(problem, width, left, open_right, between, total)
            inner_left = _before_siblings(problem, width, right, open_left, between, total)
        open_right.append(scores.diagonal(width, 1, 2) + inner_right)
        open_left.append(scores.diagonal(-width, 1, 2) + inner_left)
        done = total(open_right.starting(1, width + 1, count) + right.ending(0, width, count))
        from_root.append(done[:, 0])
        if problem.single_root:
            whole = torch.nn.functional.pad((lengths == width)[:, None], (0, count - 1), value=True)
            done = torch.where(whole, done, -torch.inf)
        right.append(done)
        left.append(total(left.starting(0, width, count) + open_left.ending(1, width + 1, count)))
    value = torch.stack(from_root, 1).gather(1, lengths[:, None])[:, 0]
    for part in problem.parts:  # a graph that leads to all of them, also where there are no words
        value = value + part[:, :0].double().flatten(1).sum(1)
    return torch.where(scores.detach().isnan().flatten(1).any(1), torch.nan, value)


def _after_siblings(
    problem: TreeProblem, width: int, left: _Chart, arcs: _Chart, between: _Chart, total: Sum
) -> Tensor:
    """What lies below an arc from i to j = i + width: nothing but j's left half, or the arc to j's inner sibling and B."""
    assert problem.siblings is not None
    size = problem.scores.shape[1]
    count = size - width
    pairs = problem.siblings.diagonal(width, 1, 3)  # [B, sibling, i]
    i = torch.arange(count, device=pairs.device)
    first = pairs[:, i, i] + left.ending(width - 1, width, count)[:, 0]
    if width == 1:
        return first
    k = i + torch.arange(1, width, device=pairs.device)[:, None]  # [width − 1, i]
    more = pairs.gather(1, k.expand(len(pairs), -1, -1))
    more = more + arcs.starting(1, width, count) + between.ending(1, width, count)
    if problem.single_root:
        more = torch.where(i == 0, -torch.inf, more)
    return total(torch.cat([first[:, None], more], 1))


def _before_siblings(
    problem: TreeProblem, width: int, right: _Chart, arcs: _Chart, between: _Chart, total: Sum
) -> Tensor:
    """The same for an arc from j to i = j − width."""
    assert problem.siblings is not None
    size = problem.scores.shape[1]
    count = size - width
    pairs = problem.siblings.diagonal(-width, 1, 3)  # [B, sibling, i]
    i = torch.arange(count, device=pairs.device)
    first = pairs[:, i + width, i] + right.starting(width - 1, width, count)[:, 0]
    if width == 1:
        return first
    k = i + torch.arange(1, width, device=pairs.device)[:, None]  # [width − 1, i]
    more = pairs.gather(1, k.expand(len(pairs), -1, -1))
    more = more + between.starting(1, width, count) + arcs.ending(1, width, count)
    return total(torch.cat([first[:, None], more], 1))
