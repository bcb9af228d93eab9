"""log Z and log-likelihoods of a batch of chains as one differentiable operation.

The gradient of log Z is the marginals, so the backward pass needs no graph: whichever path made the sums gives them. A
second derivative (a backward pass with `create_graph=True`) differentiates the recursions themselves, in float64.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from functools import cache
from typing import Any, Protocol

import torch
from torch import Tensor

from crfkit.nn.backends import core as chain_core
from crfkit.nn.backends import torch_chain as chain_torch
from crfkit.nn.backends.torch_chain import Expectations, differentiable_log_partition
from crfkit.nn.problem.chain import ChainProblem, explicit, in_working_precision, working_dtype
from crfkit.nn.problem.gold_score import add_path, path_score, sums_at_ends


class _Path(Protocol):
    """What a way of summing over label sequences has to offer."""

    def log_partition(self, problem: ChainProblem) -> Tensor: ...
    def expectations(self, problem: ChainProblem, weights: Tensor | None = None) -> Expectations: ...


def path_for(problem: ChainProblem) -> _Path:
    """The native core for what lies in memory, where it is faster; plain PyTorch elsewhere."""
    return chain_core if chain_core.suits(problem) else chain_torch


def kernels_for(problem: ChainProblem) -> Any:
    """The module with the kernels for a GPU, where they answer for this problem; else None."""
    if not problem.emissions.is_cuda or not triton_is_there():
        return None
    if problem.bigrams is not None and not reads_table(problem):
        return _sparse_kernels()
    for kernels in _kernels():
        if kernels.suits(problem):
            return kernels
    return None


@cache
def _kernels() -> tuple[Any, ...]:
    """The modules with kernels."""
    from crfkit.nn.triton.dense import backend as chain_triton
    from crfkit.nn.triton.positional import backend as chain_positions
    from crfkit.nn.triton.wide import backend as chain_wide

    return chain_triton, chain_wide, chain_positions


@cache
def _sparse_kernels() -> Any:
    """The module with kernels over lists of bigrams."""
    from crfkit.nn.triton.sparse import backend as chain_sparse

    return chain_sparse


def reads_table(problem: ChainProblem) -> bool:
    """Whether kernels for all pairs take a table of bigrams with scores that are not `explicit`."""
    if problem.bigrams is None or not problem.emissions.is_cuda or not triton_is_there():
        return False
    kernels = _kernels()[0]
    return bool(kernels.suits(problem) and kernels.has_totals(problem))


def uses_lists(problem: ChainProblem) -> bool:
    """Whether a problem with a table of bigrams is answered by kernels over lists of them; else it has to be `explicit`."""
    if problem.bigrams is None or not problem.emissions.is_cuda or not triton_is_there():
        return False
    return bool(_sparse_kernels().suits(problem))


def without_unused_table(problem: ChainProblem) -> ChainProblem:
    """A problem of a compiled program, where arcs that do not exist are −inf: the table stays for lists alone."""
    return problem if uses_lists(problem) else problem._replace(bigrams=None)


@cache
def triton_is_there() -> bool:
    """Whether kernels can be compiled here."""
    return importlib.util.find_spec("triton") is not None


def log_partition(problem: ChainProblem) -> Tensor:
    """log Z [B], differentiable by all scores."""
    return _ChainValue.apply(*problem, None, False)


def log_likelihood(problem: ChainProblem, tags: Tensor, total: bool = False) -> Tensor:
    """score(y) − log Z [B] for labels at positions [B, T], or their sum [], differentiable by all scores."""
    if total and torch.is_grad_enabled():
        kernels = kernels_for(problem)
        if kernels is not None and kernels.has_totals(problem):
            return _ChainTotal.apply(*problem, tags, kernels)
    return _ChainValue.apply(*problem, tags, total)


def expectations(problem: ChainProblem) -> Expectations:
    """log Z and the marginals, without a graph."""
    with torch.no_grad():
        kernels = kernels_for(problem)
        if kernels is None:
            return path_for(problem).expectations(problem)
        return expectations_by(kernels, problem)


def expectations_by(kernels: Any, problem: ChainProblem) -> Expectations:
    """The same by a module with kernels; the arcs' are added up over what the arcs share."""
    # those by position make gradients in the working precision as it is, and their arcs may be views
    if problem.arcs.ndim < 4:
        problem = in_working_precision(problem)
    log_z, kept = kernels.value(problem, None, keep=True)
    states, arcs, _, _ = kernels.gradient(problem, None, None, kept)
    return Expectations(log_z.double(), states, arcs)


def value_with_kept(
    problem: ChainProblem, tags: Tensor | None, keep: bool, total: bool = False
) -> tuple[Tensor, tuple[Tensor, ...]]:
    """score(tags) − log Z [B], or log Z, or their sum []; and, if asked for, what the gradient will need."""
    kernels = kernels_for(problem)
    if kernels is not None:
        value, messages = kernels.value(problem, tags, keep, total=total)
        return value, messages or ()
    kept: tuple[Tensor, ...] = ()
    if keep:
        found = path_for(problem).expectations(problem)
        value, kept = found.log_partition, (found.states, found.arcs)
    else:
        value = path_for(problem).log_partition(problem)
    if tags is not None:
        value = path_score(problem, tags) - value
    return (value.sum() if total else value).to(working_dtype(problem.emissions.dtype)), kept


def gradient_from_kept(
    problem: ChainProblem, tags: Tensor | None, gradient: Tensor, kept: Sequence[Tensor]
) -> list[Tensor | None]:
    """Σ_b gradient_b ∇ value_b, for a gradient [B] or [], by emissions, arcs, start and end, from what was kept."""
    kernels = kernels_for(problem)
    if kernels is not None:
        return _by_kernels(kernels, problem, tags, gradient, kept)
    return _analytic(problem, tags, gradient.expand(len(problem.emissions)), *kept)


def total_and_gradient(
    problem: ChainProblem, tags: Tensor | None, share: int = 1
) -> tuple[Tensor, Sequence[Tensor | None]]:
    """Σ_b value_b / share [], and its gradient by emissions, arcs, start and end, without a graph."""
    kernels = kernels_for(problem)
    if tags is not None and kernels is not None and kernels.has_totals(problem):
        found: tuple[Tensor, Sequence[Tensor | None]] = kernels.total(problem, tags, share)
        return found
    value, kept = value_with_kept(problem, tags, True, total=True)
    return value / share, gradient_from_kept(problem, tags, value.new_full((), 1 / share), kept)


class _ChainValue(torch.autograd.Function):
    """score(tags) − log Z, or log Z where there are no tags: of each sequence [B], or their total []."""

    @staticmethod
    def forward(
        ctx: Any,
        emissions: Tensor,
        arcs: Tensor,
        start: Tensor | None,
        end: Tensor | None,
        lengths: Tensor | None,
        sites: Tensor | None,
        bigrams: Tensor | None,
        tags: Tensor | None,
        total: bool,
    ) -> Tensor:
        problem = ChainProblem(emissions, arcs, start, end, lengths, sites, bigrams)
        value, kept = value_with_kept(problem, tags, any(ctx.needs_input_grad), total)
        ctx.save_for_backward(*problem, tags, *kept)
        ctx.is_used_up = False
        return value

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        n_parts = len(ChainProblem._fields)
        problem = ChainProblem(*ctx.saved_tensors[:n_parts])
        tags, *kept = ctx.saved_tensors[n_parts:]
        if torch.is_grad_enabled():
            found = _through_the_recursions(problem, tags, gradient.expand(len(problem.emissions)))
        else:
            if ctx.is_used_up:  # the graph was retained
                kept = value_with_kept(problem, tags, True)[1]
            found = gradient_from_kept(problem, tags, gradient, kept)
            ctx.is_used_up = getattr(kernels_for(problem), "KEPT_FOR_ONE", False)
        needed = [part if need else None for part, need in zip(found, ctx.needs_input_grad[:4], strict=True)]
        return (*needed, None, None, None, None, None)


class _ChainTotal(torch.autograd.Function):
    """Σ_b score(tags_b) − log Z_b by kernels that make its gradient at the same time.

    What is left for the backward pass is to multiply it by what comes back, which for a loss is 1.
    """

    @staticmethod
    def forward(ctx: Any, *given: Any) -> Tensor:
        *scores, tags, ctx.implementation = given
        if not any(ctx.needs_input_grad):
            return ctx.implementation.value(ChainProblem(*scores), tags, False, total=True)[0]
        value, ctx.gradient = ctx.implementation.total(ChainProblem(*scores), tags)
        ctx.save_for_backward(*scores, tags)  # while the device works
        return value

    @staticmethod
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor | None, ...]:
        found, ctx.gradient = ctx.gradient, None
        if found is None or torch.is_grad_enabled():
            *scores, tags = ctx.saved_tensors
            problem = ChainProblem(*scores)
            if torch.is_grad_enabled():
                ctx.gradient = found
                found = _through_the_recursions(problem, tags, upstream.expand(len(problem.emissions)))
                return (*found, None, None, None, None, None)
            # the graph was retained, and what was kept belongs to whom it was given
            _, found = ctx.implementation.total(problem, tags)
        ctx.implementation.scale(found, upstream)
        return (*found, None, None, None, None, None)


def _through_the_recursions(
    problem: ChainProblem, tags: Tensor | None, gradient: Tensor
) -> list[Tensor | None]:
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


def _by_kernels(
    kernels: Any, problem: ChainProblem, tags: Tensor | None, gradient: Tensor, kept: Sequence[Tensor]
) -> list[Tensor | None]:
    """The same as `_analytic`, from the messages that the kernels kept."""
    found = kernels.gradient(problem, tags, gradient, kernels.Kept(*kept))
    return [
        part if score is None or part.dtype == score.dtype else part.to(score.dtype)
        for score, part in zip(problem, found, strict=False)
    ]


def _analytic(
    problem: ChainProblem, tags: Tensor | None, gradient: Tensor, states: Tensor, arcs: Tensor
) -> list[Tensor | None]:
    """Σ_b gradient_b (parts of the tags − marginals), or its negative without the tags."""
    sign = 1.0 if tags is None else -1.0
    if problem.arcs.ndim == 2:
        if len(gradient) and not bool((gradient == gradient[0]).all()):
            states, arcs = path_for(problem).expectations(problem, gradient)[1:]
            d_arcs = sign * arcs
        else:
            d_arcs = arcs * (sign * gradient[:1].sum())
    else:
        d_arcs = arcs * (sign * gradient).reshape(-1, *[1] * (arcs.ndim - 1))
    d_states = states * (sign * gradient)[:, None, None]
    if tags is not None:
        d_states, d_arcs = d_states.contiguous(), d_arcs.contiguous()
        add_path(problem, tags, gradient, d_states, d_arcs)
    d_start, d_end = sums_at_ends(problem, d_states)
    emissions, transitions = problem.emissions, problem.arcs
    return [d_states.to(emissions.dtype), d_arcs.to(transitions.dtype), d_start, d_end]
