"""log Z and the marginals of a problem, by the backend that suits it, or with a graph that is differentiated again."""

import torch
from torch import Tensor

from crfkit.nn.backends import choice, ops
from crfkit.nn.backends.base import Expectations
from crfkit.nn.backends.torch_chain import differentiable_log_partition
from crfkit.nn.problem.chain import ChainProblem


def expectations(problem: ChainProblem) -> Expectations:
    """log Z and the marginals without a graph, in a compiled program as well."""
    if torch.compiler.is_compiling():
        return ops.expectations(problem)
    with torch.no_grad():
        backend, problem = choice.choose(problem)
        return backend.expectations(problem)


def moments(problem: ChainProblem, differentiated: bool) -> tuple[Tensor, Tensor, Tensor]:
    """log Z [B], P(y_i) [B, T, L] and the marginals of transitions [B, L, L] or [B, T − 1, L, L] of a compact problem.

    In float64, with a graph where they are differentiated.
    """
    if problem.transitions.ndim == 2:
        each = (problem.shape[0], *problem.transitions.shape)
        problem = problem._replace(transitions=problem.transitions.expand(each))
    if not differentiated:
        return tuple(expectations(problem))
    if torch.compiler.is_compiling():  # a graph inside a compiled one would not be seen
        return torch.compiler.disable(_moments_with_graph)(problem)
    return _moments_with_graph(problem)


@torch.enable_grad()
def _moments_with_graph(problem: ChainProblem) -> tuple[Tensor, Tensor, Tensor]:
    """The same with a graph, which leads to the scores where they have one."""
    emissions, transitions = (
        part if part.requires_grad else part.detach().requires_grad_() for part in problem[:2]
    )
    log_z = differentiable_log_partition(problem._replace(emissions=emissions, transitions=transitions))
    by_emission, by_transition = torch.autograd.grad(
        log_z.sum(), (emissions, transitions), create_graph=True, materialize_grads=True
    )
    possible = torch.isfinite(log_z)
    by_emission = by_emission * possible[:, None, None]
    return log_z, by_emission, by_transition * possible.reshape(-1, *[1] * (by_transition.ndim - 1))
