"""Sums over the spanning trees of a batch of sentences: log Z and its gradient, the probabilities of arcs.

In memory the native core makes them, on a GPU the kernels of `tree_triton`, both exactly for scores of any spread. Where
neither is, and for second derivatives, they come from a determinant in float64 (Koo et al. 2007): with weights
A = exp(scores − peaks), peak_m the largest score of an arc into word m, and r the weights of the root's arcs,

    K = diag(Σ_h A_hm) − A,  row 1 replaced by r,       Z = det K · exp Σ_m peak_m          with one word below the root
    K = diag(r_m + Σ_h A_hm) − A                        Z = det K · exp Σ_m peak_m          with any number
    ∂ log Z / ∂ K = K⁻ᵀ, and from it P(h → m) = A_hm ∂ log Z / ∂ A_hm

Letters: B sentences, n words; scores [B, n + 1, n + 1] by head and dependent, 0 is the root.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import torch
from torch import Tensor

from crfkit.nn.backends.chain_value import triton_is_there
from crfkit.nn.backends.core import core_is_there
from crfkit.nn.problem.chain import working_dtype
from crfkit.nn.problem.tree import TreeProblem, arcs_of, word_counts

MOST_ELIMINATED = {
    torch.float32: 128,
    torch.float64: 64,
}  # words; with more, a determinant is faster on a GPU
FEW_LOST = 1e-4  # nats that log Z by a determinant may be off, where it is differentiated
SAFE_SPREAD = 16.0  # nats between the scores into a word, up to which it loses at most half of the digits


def log_partition(problem: TreeProblem) -> Tensor:
    """log Z [B], differentiable; −inf where no tree exists, 0 for an empty sentence."""
    if torch.compiler.is_compiling():  # kernels are launched by addresses, which it does not have
        return torch.compiler.disable(log_partition)(problem)
    wanted = torch.is_grad_enabled() and problem.scores.requires_grad  # a gradient
    if not wanted and (kernels := kernels_for(problem)):
        return kernels.log_partition(problem, working_dtype(problem.scores.dtype))
    return _TreeValue.apply(*problem)


def marginals(problem: TreeProblem, dtype: torch.dtype = torch.float64) -> tuple[Tensor, Tensor]:
    """log Z [B] and the probability of every arc [B, n + 1, n + 1], without a graph."""
    with torch.no_grad():
        return _sums(problem, dtype)


def _sums(problem: TreeProblem, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """What `marginals` gives, where no graph is made anyway."""
    if kernels := kernels_for(problem):
        if is_eliminated(problem, dtype):
            return kernels.marginals(problem, dtype)
        log_z, found = _by_inverse(problem)
        kernels.correct(problem, _is_safe(problem), log_z, found)
    elif problem.scores.device.type == "cpu" and core_is_there():
        log_z, found = _by_core(problem)
    else:
        log_z, found = _by_inverse(problem)
    return log_z.to(dtype), found.to(dtype)


def kernels_for(problem: TreeProblem) -> Any:
    """The module with the kernels for a GPU, where they answer for this problem; else None."""
    if not problem.scores.is_cuda or not triton_is_there():
        return None
    kernels = _kernels()
    return kernels if kernels.suits(problem) else None


@cache
def _kernels() -> Any:
    from crfkit.nn.triton.trees import backend as tree_triton

    return tree_triton


def differentiable_log_partition(problem: TreeProblem) -> Tensor:
    """log Z [B] in float64 through a determinant that PyTorch differentiates as often as it likes.

    Where no tree exists, or the digits of float64 are too few for the determinant, the derivatives are 0.
    """
    kirchhoff, _, peaks = _kirchhoff(problem)
    if kirchhoff.shape[1] == 0:
        return problem.scores[:, :0].double().sum((1, 2))
    log_det = torch.linalg.slogdet(kirchhoff.detach()).logabsdet
    lost = (log_det + peaks.sum(1) - marginals(problem)[0]).abs()
    regular = (lost < FEW_LOST)[:, None, None]  # not where it is inf or NaN
    identity = torch.eye(kirchhoff.shape[1], dtype=torch.float64, device=kirchhoff.device)
    value = torch.linalg.slogdet(torch.where(regular, kirchhoff, identity)).logabsdet
    value = torch.where(regular[:, 0, 0], value, log_det) + peaks.sum(1)
    return torch.where(_empty(problem), 0.0, value)


def tree_batch(problem: TreeProblem) -> Any:
    """The problem as arrays of the core."""
    from crfkit.inference import TreeBatch
    from crfkit.structures import SpanningTree

    scores = problem.scores.detach().double().cpu().numpy()
    lengths = word_counts(problem).cpu().numpy()
    return TreeBatch(SpanningTree(problem.single_root), scores, lengths, n_threads=torch.get_num_threads())


def _empty(problem: TreeProblem) -> Tensor:
    return word_counts(problem) == 0


def _by_core(problem: TreeProblem) -> tuple[Tensor, Tensor]:
    """Exact for scores of any spread; NaN for sentences with an arc whose score is not a number, which the core refuses."""
    undefined = (problem.scores.isnan() & arcs_of(problem)).flatten(1).any(1)
    if undefined.any():
        rows = undefined[:, None, None]
        log_z, found = _by_core(problem._replace(scores=problem.scores.masked_fill(rows, 0.0)))
        return log_z.masked_fill(undefined, torch.nan), found.masked_fill(rows, torch.nan)
    batch = tree_batch(problem)
    try:
        log_z, found = map(torch.from_numpy, batch.log_partition_and_marginals())
        return log_z, found
    except ValueError:  # some sentence has no tree
        log_z = torch.from_numpy(batch.log_partition())
    possible = torch.isfinite(log_z)
    found = torch.zeros(problem.scores.shape, dtype=torch.float64)
    if possible.any():
        some = TreeProblem(problem.scores[possible], word_counts(problem)[possible], problem.single_root)
        found[possible] = torch.from_numpy(tree_batch(some).marginals())
    return log_z, found


def is_eliminated(problem: TreeProblem, dtype: torch.dtype) -> bool:
    """Whether a GPU makes marginals in this precision without a determinant, which loses digits."""
    return problem.scores.shape[1] <= MOST_ELIMINATED[dtype] + 1


def _is_safe(problem: TreeProblem) -> Tensor:
    """Whether a determinant loses few digits, [B]: all arcs exist, and the scores into a word lie close together."""
    exists = arcs_of(problem)
    scores = problem.scores.double()
    low, high = (scores.masked_fill(~exists, value) for value in (torch.inf, -torch.inf))
    spread = high.amax(1) - low.amin(1)  # −inf for words that are none, inf where an arc does not exist
    return (spread <= SAFE_SPREAD).all(1)


def _kirchhoff(problem: TreeProblem) -> tuple[Tensor, Tensor, Tensor]:
    """K [B, n, n], the weights [B, n + 1, n] by head and word, and the peaks [B, n]; in float64."""
    size = problem.scores.shape[1]
    words = torch.arange(1, size, device=problem.scores.device)
    exists = arcs_of(problem)[:, :, 1:]
    scores = problem.scores.double()[:, :, 1:].masked_fill(~exists, -torch.inf)
    peaks = scores.detach().amax(1)
    peaks = torch.where(torch.isinf(peaks), 0.0, peaks)  # [B, n]
    weights = torch.exp(scores - peaks[:, None])
    inner, root = weights[:, 1:], weights[:, 0]  # [B, n, n], [B, n]
    outside = (words > word_counts(problem)[:, None]).double()  # words that are none: 1 on the diagonal
    diagonal = inner.sum(1) + outside
    if not problem.single_root:
        return torch.diag_embed(diagonal + root) - inner, weights, peaks
    kirchhoff = torch.diag_embed(diagonal) - inner
    if size == 1:
        return kirchhoff, weights, peaks
    first = torch.where(_empty(problem)[:, None], kirchhoff[:, 0], root)
    return torch.cat([first[:, None], kirchhoff[:, 1:]], dim=1), weights, peaks


def _by_inverse(problem: TreeProblem) -> tuple[Tensor, Tensor]:
    """log Z and marginals from one factorisation."""
    kirchhoff, weights, peaks = _kirchhoff(problem)
    B, n = peaks.shape
    found = torch.zeros((B, n + 1, n + 1), dtype=torch.float64, device=peaks.device)
    if n == 0:
        return torch.zeros(B, dtype=torch.float64, device=peaks.device), found
    factors, pivots, _ = torch.linalg.lu_factor_ex(kirchhoff)
    log_det = factors.diagonal(dim1=1, dim2=2).abs().log().sum(1)
    identity = torch.eye(n, dtype=torch.float64, device=peaks.device).expand(B, n, n)
    turned = torch.linalg.lu_solve(factors, pivots, identity).mT  # ∂ log det / ∂ K
    own = turned.diagonal(dim1=1, dim2=2)  # [B, n]
    if problem.single_root:
        root = turned[:, 0]
        turned, own = turned.clone(), own.clone()
        turned[:, 0], own[:, 0] = 0.0, 0.0  # K has no arcs in its first row
    else:
        root = own
    found[:, 1:, 1:] = weights[:, 1:] * (own[:, None, :] - turned)
    found[:, 0, 1:] = weights[:, 0] * root
    log_z = torch.where(_empty(problem), 0.0, log_det + peaks.sum(1))
    possible = torch.isfinite(log_z)
    found = torch.where(possible[:, None, None], found.clamp(0.0, 1.0), 0.0)
    log_z = torch.where(possible, log_z, -torch.inf)
    undefined = weights.isnan().any(2).any(1)
    return log_z.masked_fill(undefined, torch.nan), found.masked_fill(undefined[:, None, None], torch.nan)


class _TreeValue(torch.autograd.Function):
    """log Z, whose gradient is the marginals."""

    @staticmethod
    def forward(ctx: Any, scores: Tensor, lengths: Tensor | None, single_root: bool) -> Tensor:
        problem, dtype = TreeProblem(scores, lengths, single_root), working_dtype(scores.dtype)
        log_z, found = _sums(problem, dtype)
        ctx.save_for_backward(scores, lengths, found)
        ctx.single_root = single_root
        return log_z

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, None, None]:
        scores, lengths, found = ctx.saved_tensors
        if torch.is_grad_enabled():
            value = differentiable_log_partition(TreeProblem(scores, lengths, ctx.single_root))
            [found] = torch.autograd.grad(value, [scores], gradient.double(), create_graph=True)
            return found, None, None
        return (found * gradient.view(-1, 1, 1)).to(scores.dtype), None, None
