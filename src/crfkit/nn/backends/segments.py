"""The backends of semi-Markov chains, and log Z as one differentiable operation."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from itertools import zip_longest
from typing import Any

import torch
from torch import Tensor

from crfkit.nn.backends import segment_decode
from crfkit.nn.backends.torch_segments import (
    Summed,
    by_length,
    differentiable_log_partition,
    expectations,
    log_partition_from,
    messages_of,
    span_scores,
    summed,
)
from crfkit.nn.problem.chain import working_dtype
from crfkit.nn.problem.segments import N_SCORES, SegmentProblem
from crfkit.nn.problem.segments import in_double as exactly

N_PARTS = len(SegmentProblem._fields)


class SegmentBackend(ABC):
    """log Z, its gradient and the best segmentation of the problems that it suits."""

    name: str

    @abstractmethod
    def value(
        self, problem: SegmentProblem, keep: bool, in_double: bool = False
    ) -> tuple[Tensor, tuple[Tensor, ...]]:
        """log Z [B] in the working precision, or in float64; with `keep`, also what `gradient` needs."""

    @abstractmethod
    def gradient(
        self, problem: SegmentProblem, upstream: Tensor | None, kept: Sequence[Tensor], sign: int = 1
    ) -> Sequence[Tensor | None]:
        """sign · Σ_b upstream_b ∇ log Z_b by each score, None by those that are absent; `upstream` [B], None for 1."""

    def value_and_gradient(
        self, problem: SegmentProblem, upstream: Tensor | None, sign: int, in_double: bool
    ) -> tuple[Tensor, tuple[Tensor, ...], Sequence[Tensor | None]]:
        """log Z [B], what `value` keeps, and what `gradient` gives."""
        value, kept = self.value(problem, True, in_double)
        return value, kept, self.gradient(problem, upstream, kept, sign)

    def is_early(self, problem: SegmentProblem) -> bool:
        """Whether the gradient is computed in the forward pass."""
        return False

    def summed(self, problem: SegmentProblem) -> Summed:
        """Messages in both directions in float64, which other questions start from; without a graph."""
        return summed(problem)

    def by_length(self, problem: SegmentProblem) -> Iterable[Tensor]:
        """The probability of each segment [B, T, L] by its begin, for the lengths 1 … K in turn; without a graph."""
        return by_length(self.summed(problem))

    def span_probabilities(
        self, problem: SegmentProblem, row: Tensor, start: Tensor, last: Tensor, label: Tensor
    ) -> Tensor:
        """The probabilities [n] of the segments from position `start` to position `last`; without a graph."""
        return torch.exp(span_scores(self.summed(problem), row, start, last, label))

    def argmax(self, problem: SegmentProblem) -> Tensor:
        """The tags of the best segmentation [B, T]; −1 in the padding, and where none is possible."""
        return segment_decode.viterbi(problem)


class TorchSegments(SegmentBackend):
    """Plain PyTorch in float64."""

    name = "torch"

    def value(
        self, problem: SegmentProblem, keep: bool, in_double: bool = False
    ) -> tuple[Tensor, tuple[Tensor, ...]]:
        """log Z; the probabilities of all parts are kept."""
        dtype = torch.float64 if in_double else working_dtype(problem.emissions.dtype)
        if keep:
            log_z, *found = expectations(summed(problem), problem.segments is not None)
            return log_z.to(dtype), tuple(part for part in found if part is not None)
        exact = exactly(problem)
        return log_partition_from(exact, messages_of(exact).ends).to(dtype), ()

    def gradient(
        self, problem: SegmentProblem, upstream: Tensor | None, kept: Sequence[Tensor], sign: int = 1
    ) -> Sequence[Tensor | None]:
        """The probabilities of all parts, weighted and summed as the scores are shared."""
        weights = kept[0].new_full((len(kept[0]),), sign) if upstream is None else sign * upstream.double()
        weighted: list[Tensor | None] = []
        for score, part in zip_longest(problem[:N_SCORES], kept):
            if score is None:
                weighted.append(None)
                continue
            by_sequence = part * weights.reshape(-1, *[1] * (part.ndim - 1))
            total = by_sequence if score.ndim == part.ndim else by_sequence.sum(0)
            weighted.append(total.to(score.dtype))
        return weighted


TORCH = TorchSegments()


def log_partition(backend: SegmentBackend, problem: SegmentProblem) -> Tensor:
    """log Z [B], differentiable by all scores."""
    if not _is_differentiated(problem):
        return backend.value(problem, False)[0]
    return _SegmentValue.apply(*problem, None, backend)


def log_likelihood(backend: SegmentBackend, problem: SegmentProblem, score: Tensor) -> Tensor:
    """score − log Z [B] for scores of segmentations [B] in float64, differentiable by these and by all scores."""
    if not _is_differentiated(problem):
        return _less(problem, score, backend.value(problem, False, in_double=True)[0])
    return _SegmentValue.apply(*problem, score, backend)


def _is_differentiated(problem: SegmentProblem) -> bool:
    """Whether a backward pass may follow."""
    return torch.is_grad_enabled() and any(
        part is not None and part.requires_grad for part in problem[:N_SCORES]
    )


def _less(problem: SegmentProblem, score: Tensor, log_z: Tensor) -> Tensor:
    """score − log Z, which is subtracted in float64, in the working precision."""
    return (score - log_z).to(working_dtype(problem.emissions.dtype))


class _SegmentValue(torch.autograd.Function):
    """log Z, or score − log Z, whose gradient is the probabilities of the parts.

    Where kernels take less time than PyTorch's engine, the gradient is computed in the forward pass, for an upstream
    gradient of 1. Where that of all sequences is one number, as in a loss, the backward pass multiplies by it.
    """

    @staticmethod
    def forward(ctx: Any, *given: Any) -> Tensor:
        *parts, score, backend = given
        problem = SegmentProblem(*parts)
        sign, in_double, early = 1 if score is None else -1, score is not None, None
        if backend.is_early(problem):
            value, kept, early = backend.value_and_gradient(problem, None, sign, in_double)
        else:
            value, kept = backend.value(problem, True, in_double)
        ctx.backend, ctx.sign, ctx.early = backend, sign, early
        ctx.save_for_backward(*parts, *kept)
        return value if score is None else _less(problem, score, value)

    @staticmethod
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor | None, ...]:
        again, is_one = torch.is_grad_enabled(), upstream.stride(0) == 0 or len(upstream) == 1
        if ctx.early is not None and is_one and not again:
            # if the graph was retained, this gradient belongs to its caller, and is computed again
            found, ctx.early = ctx.early, None
            torch._foreach_mul_([part for part in found if part is not None], upstream[0])
        else:
            parts, kept = ctx.saved_tensors[:N_PARTS], ctx.saved_tensors[N_PARTS:]
            problem = SegmentProblem(*parts)
            if again:
                found = _through_the_recursions(problem, ctx.sign * upstream)
            else:
                found = ctx.backend.gradient(problem, upstream, kept, ctx.sign)
        needed = ctx.needs_input_grad
        by_scores = [part if need else None for part, need in zip(found, needed, strict=False)]
        return *by_scores, None, upstream.double() if needed[N_PARTS] else None, None


def _through_the_recursions(problem: SegmentProblem, upstream: Tensor) -> Sequence[Tensor | None]:
    """The gradient as a graph of its own, which can be differentiated again."""
    # views: start and end, or first and last, may be one tensor, and each has a gradient of its own
    scores = [None if part is None else part.view_as(part) for part in problem[:N_SCORES]]
    value = differentiable_log_partition(SegmentProblem._make([*scores, problem.lengths]))
    upstream = torch.where(torch.isfinite(value), upstream.double(), 0.0)
    wanted = [part for part in scores if part is not None and part.requires_grad]
    found = iter(torch.autograd.grad(value, wanted, upstream, create_graph=True, allow_unused=True))
    return [None if part is None or not part.requires_grad else next(found) for part in scores]
