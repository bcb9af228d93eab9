"""Exact sums over the assignments of a batch of factor graphs by the C++ core's junction tree, in memory.

log Z of each element is differentiable twice: its gradient is the probability p of each entry of the tables, and that of
Σ v p is the Hessian–vector product ∇² log Z · v. Scores are read in float64.
"""

from typing import Any

import numpy as np
import torch
from torch import Tensor

from crfkit.arrays import Float64s
from crfkit.nn.backends.torch_elimination import GraphExpectations
from crfkit.nn.problem.factor_graph import GraphProblem, GraphShape


def suits(problem: GraphProblem) -> bool:
    """Whether the core can answer: scores in memory without NaN and +inf, all values allowed."""
    scores = problem.scores
    return (
        scores.device.type == "cpu"
        and problem.allowed is None
        and bool((scores.detach() < torch.inf).all())
        and problem.shape.junction_tree.complete
    )


def log_partition(problem: GraphProblem) -> Tensor:
    """log Z [B]; −inf where no assignment is possible."""
    found: Tensor = _LogPartition.apply(problem.scores, problem.shape)
    return found


def expectations(problem: GraphProblem) -> GraphExpectations:
    """log Z and its gradient, which are not differentiated."""
    scores, shape = problem.scores.detach(), problem.shape
    log_z, by_score, of_values = _expectations(scores, shape)
    sizes = np.array(shape.cardinalities, dtype=np.int64)
    there = np.arange(max(shape.cardinalities, default=1)) < sizes[:, None]  # [V, L]
    values = np.zeros((len(scores), *there.shape))
    values[:, there] = of_values
    return GraphExpectations(log_z, torch.from_numpy(values).to(scores.dtype), by_score)


class _LogPartition(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, scores: Tensor, shape: GraphShape) -> Tensor:
        ctx.shape = shape
        if not ctx.needs_input_grad[0]:
            ctx.save_for_backward(scores, scores)
            return _tensor([shape.junction_tree.log_partition(row) for row in _rows(scores)], scores)
        log_z, by_score, _ = _expectations(scores, shape)
        ctx.save_for_backward(scores, by_score)
        return log_z

    @staticmethod
    def backward(ctx: Any, *upstream: Tensor) -> Any:
        scores, by_score = ctx.saved_tensors
        return _Gradient.apply(scores, upstream[0], by_score, ctx.shape), None


class _Gradient(torch.autograd.Function):
    """upstream[b] p[b, n]."""

    @staticmethod
    def forward(ctx: Any, scores: Tensor, upstream: Tensor, by_score: Tensor, shape: GraphShape) -> Tensor:
        ctx.shape = shape
        ctx.save_for_backward(scores, upstream, by_score)
        return upstream[:, None] * by_score

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, direction: Tensor) -> Any:
        scores, upstream, by_score = ctx.saved_tensors
        products = []
        for row, move in zip(_rows(scores), _rows(direction), strict=True):
            log_z, _, product = ctx.shape.junction_tree.hessian_vector(row, move)
            products.append(product if log_z > -np.inf else np.zeros_like(row))
        by_scores = upstream[:, None] * _tensor(products, scores).reshape(scores.shape)
        return by_scores, (direction * by_score).sum(1), None, None


def _expectations(scores: Tensor, shape: GraphShape) -> tuple[Tensor, Tensor, Float64s]:
    """log Z [B], its gradient [B, N] and the probabilities of all values, 0 where no assignment is possible."""
    found, rows, values = [], [], np.zeros((len(scores), sum(shape.cardinalities)))
    for b, row in enumerate(_rows(scores)):
        log_z, of_values, by_score = shape.junction_tree.marginals(row)
        possible = log_z > -np.inf
        found.append(log_z)
        rows.append(by_score if possible else np.zeros_like(row))
        values[b] = of_values if possible else 0.0
    return _tensor(found, scores), _tensor(rows, scores).reshape(scores.shape), values


def _rows(scores: Tensor) -> Float64s:
    rows: Float64s = np.ascontiguousarray(scores.detach().numpy(), dtype=np.float64)
    return rows


def _tensor(numbers: list[Any], like: Tensor) -> Tensor:
    return torch.from_numpy(np.array(numbers)).to(like.dtype)
