"""Exact sums over the assignments of a batch of factor graphs by variable elimination, in plain PyTorch.

The clique of a variable v adds all tables and messages that have v, in log space, and v is summed out:

    message(s) = log Σ_v exp(clique(v, s))        clique(v, s) = Σ_i table_i(v, s_i)

Then log Z is the sum of the messages without variables, and its gradient the probabilities of all entries. Given the values
of the variables that are summed out later, v has the distribution exp(clique(v, s) − message(s)): samples, and with maxima
the best assignment, are found in the reverse order. Everything is in the precision of the scores.
"""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from crfkit.nn.backends.decode import NOTHING, draw
from crfkit.nn.backends.torch_chain import log_sum
from crfkit.nn.problem.factor_graph import Clique, GraphProblem, Scope


class GraphExpectations(NamedTuple):
    """log Z and probabilities; 0 where no assignment is possible."""

    log_partition: Tensor  # [B]
    values: Tensor  # [B, V, L]
    scores: Tensor  # [B, N] of the entries of all tables


def log_partition(problem: GraphProblem) -> Tensor:
    """log Z [B]; −inf where no assignment is possible."""
    return _eliminate(problem, log_sum)[0]


def expectations(problem: GraphProblem, differentiated: bool) -> GraphExpectations:
    """log Z and its gradient, with a graph where they are differentiated."""
    shape = problem.shape
    scores = problem.scores if differentiated else problem.scores.detach()
    with torch.enable_grad():
        scores = scores if scores.requires_grad else scores.requires_grad_()
        allowed = scores.new_zeros(
            (len(scores), len(shape.cardinalities), max(shape.cardinalities, default=1))
        )
        allowed.requires_grad_()
        log_z = log_partition(GraphProblem(shape, scores, allowed))
        by_value, by_score = torch.autograd.grad(
            log_z.sum(), (allowed, scores), create_graph=differentiated, materialize_grads=True
        )
    possible = (log_z > -torch.inf) | log_z.isnan()
    found = GraphExpectations(log_z, by_value * possible[:, None, None], by_score * possible[:, None])
    return found if differentiated else GraphExpectations(*(part.detach() for part in found))


def argmax(problem: GraphProblem) -> Tensor:
    """The best assignment [B, V]; −1 where none is possible."""
    return _trace_back(problem, lambda values: values.amax(1), lambda rows: rows.argmax(2), 1)[0]


def sample(problem: GraphProblem, n: int, generator: torch.Generator | None) -> Tensor:
    """n independent assignments [n, B, V]; −1 where none is possible."""
    return _trace_back(problem, log_sum, lambda rows: draw(rows, generator), n)


def _eliminate(problem: GraphProblem, total: Callable[[Tensor], Tensor]) -> tuple[Tensor, list[Tensor]]:
    """log Z [B], or the best score, and the cliques [B, values of each variable]; `total` reduces axis 1."""
    shape = problem.shape
    scopes = [*shape.scopes, *(clique.scope[1:] for clique in shape.cliques)]
    tables = [problem.table(number) for number in range(len(shape.scopes))]
    made: list[Tensor] = []
    for clique in shape.cliques:
        v = clique.scope[0]
        sum_ = problem.scores.new_zeros((len(problem.scores), shape.cardinalities[v]))
        sum_ = sum_[(..., *[None] * (len(clique.scope) - 1))]
        if problem.allowed is not None:
            sum_ = sum_ + _aligned(problem.allowed[:, v, : shape.cardinalities[v]], (v,), clique)
        for number in clique.tables:
            sum_ = sum_ + _aligned(tables[number], scopes[number], clique)
        made.append(sum_)
        tables.append(total(sum_))
    ends = [table.flatten() for table, scope in zip(tables, scopes, strict=True) if not scope]
    return torch.stack(ends).sum(0), made


def _aligned(table: Tensor, scope: Scope, clique: Clique) -> Tensor:
    """A table [B, …] with one axis for each variable of a clique, of size 1 where it does not have it."""
    axes = [1 + scope.index(v) for v in clique.scope if v in scope]
    return table.permute(0, *axes)[
        (slice(None), *(slice(None) if v in scope else None for v in clique.scope))
    ]


@torch.no_grad()
def _trace_back(
    problem: GraphProblem, total: Callable[[Tensor], Tensor], choose: Callable[[Tensor], Tensor], n: int
) -> Tensor:
    """n assignments [n, B, V]; `choose` gives values [n, B] for the rows [n, B, L] of cliques."""
    shape = problem.shape
    log_z, made = _eliminate(problem, total)
    B = len(log_z)
    values = torch.zeros((n, B, len(shape.cardinalities)), dtype=torch.int64, device=log_z.device)
    rows = torch.arange(B, device=log_z.device)
    for clique, scores in zip(reversed(shape.cliques), reversed(made), strict=True):
        later = clique.scope[1:]
        chosen = (
            scores[(rows, slice(None), *(values[:, :, v] for v in later))]
            if later
            else scores.expand(n, -1, -1)
        )
        values[:, :, clique.scope[0]] = choose(chosen)
    return torch.where((log_z > -torch.inf)[:, None], values, NOTHING)[:, :, : shape.n_variables]
