"""log Z and log-likelihoods of a batch of chains as one differentiable operation.

The gradient of log Z is the marginals, so the backward pass needs no graph: the backend that computed the value gives
them. A second derivative (a backward pass with `create_graph=True`) differentiates the recursions themselves, in float64.
"""

from typing import Any

import torch
from torch import Tensor

from crfkit.nn.backends.base import Backend, Gradient, cast_like
from crfkit.nn.backends.torch_chain import differentiable_log_partition
from crfkit.nn.problem.chain import ChainProblem, explicit
from crfkit.nn.problem.gold_score import path_score

N_PARTS = len(ChainProblem._fields)


def log_partition(backend: Backend, problem: ChainProblem) -> Tensor:
    """log Z [B], differentiable by all scores."""
    return _value(backend, problem, None, False)


def log_likelihood(backend: Backend, problem: ChainProblem, tags: Tensor, total: bool = False) -> Tensor:
    """score(y) − log Z [B] for labels at positions [B, T], or their sum [], differentiable by all scores."""
    return _value(backend, problem, tags, total)


def _value(backend: Backend, problem: ChainProblem, tags: Tensor | None, total: bool) -> Tensor:
    """The values; through PyTorch's graph, which takes time, only where a backward pass may follow."""
    if torch.is_grad_enabled() and any(part is not None and part.requires_grad for part in problem[:4]):
        return _ChainValue.apply(*problem, tags, backend, total)
    return backend.value(problem, tags, False, total=total)[0]


class _ChainValue(torch.autograd.Function):
    """score(tags) − log Z, or log Z where there are no tags: of each sequence [B], or their total [].

    Where the backend computes a total and its gradient together, the backward pass only multiplies that gradient by the
    upstream one, which for a loss is 1.
    """

    @staticmethod
    def forward(ctx: Any, *given: Any) -> Tensor:
        *parts, tags, ctx.backend, total = given
        problem = ChainProblem(*parts)
        ctx.together = total and tags is not None and ctx.backend.has_total(problem)
        ctx.gradient, ctx.is_used_up, kept = None, False, ()
        if ctx.together:
            value, ctx.gradient = ctx.backend.total(problem, tags)
        else:
            value, kept = ctx.backend.value(problem, tags, True, total=total)
        ctx.save_for_backward(*parts, tags, *kept)  # while the device works
        return value

    @staticmethod
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor | None, ...]:
        problem = ChainProblem(*ctx.saved_tensors[:N_PARTS])
        tags, *kept = ctx.saved_tensors[N_PARTS:]
        if torch.is_grad_enabled():
            found = _through_the_recursions(problem, tags, upstream.expand(len(problem.emissions)))
        elif ctx.together:
            # if the graph was retained, the first gradient belongs to its caller, and is computed again
            found = ctx.gradient or ctx.backend.total(problem, tags)[1]
            ctx.gradient = None
            ctx.backend.scale(found, upstream)
        else:
            if ctx.is_used_up:  # the graph was retained
                kept = ctx.backend.value(problem, tags, True)[1]
            found = cast_like(problem, ctx.backend.gradient(problem, tags, upstream, kept))
            ctx.is_used_up = ctx.backend.uses_up_kept
        needed = [part if need else None for part, need in zip(found, ctx.needs_input_grad[:4], strict=True)]
        return (*needed, *[None] * (N_PARTS - 1))  # for 4 scores, the other parts, tags, backend and total


def _through_the_recursions(problem: ChainProblem, tags: Tensor | None, gradient: Tensor) -> Gradient:
    """The gradient as a graph of its own, which can be differentiated again."""
    # views: start and end may be one tensor, and each has a gradient of its own
    scores = [None if part is None else part.view_as(part) for part in problem[:4]]
    in_full = explicit(ChainProblem(*(*scores, *problem[4:])))
    value = differentiable_log_partition(in_full)
    if tags is not None:
        value = path_score(in_full, tags) - value
    gradient = torch.where(torch.isfinite(value), gradient.double(), 0.0)
    wanted = [part for part in scores if part is not None and part.requires_grad]
    found = iter(torch.autograd.grad(value, wanted, gradient, create_graph=True, allow_unused=True))
    return [None if part is None or not part.requires_grad else next(found) for part in scores]
