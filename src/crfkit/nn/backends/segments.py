"""The backends of semi-Markov chains, and log Z as one differentiable operation."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from itertools import zip_longest
from typing import Any

import torch
from torch import Tensor

from crfkit.nn.backends import segment_decode
from crfkit.nn.backends.torch_segments import (
    differentiable_log_partition,
    expectations,
    log_partition_from,
    messages_of,
)
from crfkit.nn.problem.chain import working_dtype
from crfkit.nn.problem.segments import N_SCORES, SegmentProblem, in_double

N_PARTS = len(SegmentProblem._fields)


class SegmentBackend(ABC):
    """log Z, its gradient and the best segmentation of the problems that it suits."""

    name: str

    @abstractmethod
    def value(self, problem: SegmentProblem, keep: bool) -> tuple[Tensor, tuple[Tensor, ...]]:
        """log Z [B] in the working precision; with `keep`, also what `gradient` needs."""

    @abstractmethod
    def gradient(
        self, problem: SegmentProblem, upstream: Tensor, kept: Sequence[Tensor]
    ) -> Sequence[Tensor | None]:
        """Σ_b upstream_b ∇ log Z_b by each score, None by those that are absent; `upstream` [B]."""

    def argmax(self, problem: SegmentProblem) -> Tensor:
        """The tags of the best segmentation [B, T]; −1 in the padding, and where none is possible."""
        return segment_decode.viterbi(problem)


class TorchSegments(SegmentBackend):
    """Plain PyTorch in float64."""

    name = "torch"

    def value(self, problem: SegmentProblem, keep: bool) -> tuple[Tensor, tuple[Tensor, ...]]:
        """log Z; the probabilities of all parts are kept."""
        dtype = working_dtype(problem.emissions.dtype)
        if keep:
            log_z, *found = expectations(problem, segments=problem.segments is not None)
            return log_z.to(dtype), tuple(part for part in found if part is not None)
        exact = in_double(problem)
        return log_partition_from(exact, messages_of(exact).ends).to(dtype), ()

    def gradient(
        self, problem: SegmentProblem, upstream: Tensor, kept: Sequence[Tensor]
    ) -> Sequence[Tensor | None]:
        """The probabilities of all parts, weighted and summed as the scores are shared."""
        weighted: list[Tensor | None] = []
        for score, part in zip_longest(problem[:N_SCORES], kept):
            if score is None:
                weighted.append(None)
                continue
            by_sequence = part * upstream.double().reshape(-1, *[1] * (part.ndim - 1))
            total = by_sequence if score.ndim == part.ndim else by_sequence.sum(0)
            weighted.append(total.to(score.dtype))
        return weighted


TORCH = TorchSegments()


def log_partition(backend: SegmentBackend, problem: SegmentProblem) -> Tensor:
    """log Z [B], differentiable by all scores."""
    keep = torch.is_grad_enabled() and any(
        part is not None and part.requires_grad for part in problem[:N_SCORES]
    )
    if not keep:
        return backend.value(problem, False)[0]
    return _SegmentValue.apply(*problem, backend)


class _SegmentValue(torch.autograd.Function):
    """log Z, whose gradient is the probabilities of the parts."""

    @staticmethod
    def forward(ctx: Any, *given: Any) -> Tensor:
        *parts, ctx.backend = given
        value, kept = ctx.backend.value(SegmentProblem(*parts), True)
        ctx.save_for_backward(*parts, *kept)
        return value

    @staticmethod
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor | None, ...]:
        problem = SegmentProblem(*ctx.saved_tensors[:N_PARTS])
        if torch.is_grad_enabled():
            found = _through_the_recursions(problem, upstream)
        else:
            found = ctx.backend.gradient(problem, upstream, ctx.saved_tensors[N_PARTS:])
        needed = ctx.needs_input_grad[:N_SCORES]
        return (*(part if need else None for part, need in zip(found, needed, strict=True)), None, None)


def _through_the_recursions(problem: SegmentProblem, upstream: Tensor) -> Sequence[Tensor | None]:
    """The gradient as a graph of its own, which can be differentiated again."""
    # views: start and end, or first and last, may be one tensor, and each has a gradient of its own
    scores = [None if part is None else part.view_as(part) for part in problem[:N_SCORES]]
    value = differentiable_log_partition(SegmentProblem._make([*scores, problem.lengths]))
    upstream = torch.where(torch.isfinite(value), upstream.double(), 0.0)
    wanted = [part for part in scores if part is not None and part.requires_grad]
    found = iter(torch.autograd.grad(value, wanted, upstream, create_graph=True, allow_unused=True))
    return [None if part is None or not part.requires_grad else next(found) for part in scores]
