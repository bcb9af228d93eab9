"""Sums over the spanning trees of a batch of sentences by a determinant in float64 (Koo et al. 2007).

With weights A = exp(scores − maxima), max_m the largest score of an arc into word m, and r the weights of the root's
arcs,

    K = diag(Σ_h A_hm) − A,  row 1 replaced by r,       Z = det K · exp Σ_m max_m          with one word below the root
    K = diag(r_m + Σ_h A_hm) − A                        Z = det K · exp Σ_m max_m          with any number
    ∂ log Z / ∂ K = K⁻ᵀ, and from it P(h → m) = A_hm ∂ log Z / ∂ A_hm

A determinant loses digits where scores lie far apart, so the C++ core (in memory) and the Triton kernels (on a GPU) come
first; this backend is for other devices, for long sentences on a GPU where it is safe, and for second derivatives.

Letters: B sentences, n words; scores [B, n + 1, n + 1] by head and dependent, 0 is the root.
"""

import torch
from torch import Tensor

from crfkit.nn.backends.core_trees import CORE
from crfkit.nn.backends.tree import TreeBackend
from crfkit.nn.problem.tree import TreeProblem, arcs_of, word_counts

FEW_LOST = 1e-4  # nats that log Z by a determinant may be off, where it is differentiated
SAFE_SPREAD = 16.0  # nats between the scores into a word, up to which it loses at most half of the digits


class DeterminantBackend(TreeBackend):
    """Sums by one factorisation of K; best trees by the core."""

    name = "determinant"

    def marginals(self, problem: TreeProblem, dtype: torch.dtype = torch.float64) -> tuple[Tensor, Tensor]:
        """log Z [B] and the probability of every arc [B, n + 1, n + 1]."""
        log_z, found = sums_by_inverse(problem)
        return log_z.to(dtype), found.to(dtype)

    def argmax(self, problem: TreeProblem) -> Tensor:
        """The heads of the best tree [B, n], found in memory."""
        return CORE.argmax(problem)


DETERMINANT = DeterminantBackend()


def differentiable_log_partition(problem: TreeProblem, backend: TreeBackend) -> Tensor:
    """log Z [B] in float64 through a determinant that PyTorch differentiates as often as it likes.

    Where no tree exists, or the determinant misses the log Z of `backend`, the derivatives are 0.
    """
    kirchhoff, _, maxima = _kirchhoff(problem)
    if kirchhoff.shape[1] == 0:
        return problem.scores[:, :0].double().sum((1, 2))
    with torch.no_grad():
        log_det = torch.linalg.slogdet(kirchhoff).logabsdet
        lost = (log_det + maxima.sum(1) - backend.marginals(problem)[0]).abs()
    regular = (lost < FEW_LOST)[:, None, None]  # not where it is inf or NaN
    identity = torch.eye(kirchhoff.shape[1], dtype=torch.float64, device=kirchhoff.device)
    value = torch.linalg.slogdet(torch.where(regular, kirchhoff, identity)).logabsdet
    value = torch.where(regular[:, 0, 0], value, log_det) + maxima.sum(1)
    return torch.where(_empty(problem), 0.0, value)


def _empty(problem: TreeProblem) -> Tensor:
    return word_counts(problem) == 0


def is_safe(problem: TreeProblem) -> Tensor:
    """Whether a determinant loses few digits, [B]: all arcs exist, and the scores into a word lie close together."""
    exists = arcs_of(problem)
    scores = problem.scores.double()
    low, high = (scores.masked_fill(~exists, value) for value in (torch.inf, -torch.inf))
    spread = high.amax(1) - low.amin(1)  # −inf beyond the end, inf where an arc does not exist
    return (spread <= SAFE_SPREAD).all(1)


def _kirchhoff(problem: TreeProblem) -> tuple[Tensor, Tensor, Tensor]:
    """K [B, n, n], the weights [B, n + 1, n] by head and word, and the maxima [B, n]; in float64."""
    size = problem.scores.shape[1]
    words = torch.arange(1, size, device=problem.scores.device)
    exists = arcs_of(problem)[:, :, 1:]
    scores = problem.scores.double()[:, :, 1:].masked_fill(~exists, -torch.inf)
    maxima = scores.detach().amax(1)
    maxima = torch.where(torch.isinf(maxima), 0.0, maxima)  # [B, n]
    weights = torch.exp(scores - maxima[:, None])
    inner, root = weights[:, 1:], weights[:, 0]  # [B, n, n], [B, n]
    outside = (words > word_counts(problem)[:, None]).double()  # beyond the end: 1 on the diagonal
    diagonal = inner.sum(1) + outside
    if not problem.single_root:
        return torch.diag_embed(diagonal + root) - inner, weights, maxima
    kirchhoff = torch.diag_embed(diagonal) - inner
    if size == 1:
        return kirchhoff, weights, maxima
    first = torch.where(_empty(problem)[:, None], kirchhoff[:, 0], root)
    return torch.cat([first[:, None], kirchhoff[:, 1:]], dim=1), weights, maxima


def sums_by_inverse(problem: TreeProblem) -> tuple[Tensor, Tensor]:
    """log Z and marginals from one factorisation."""
    kirchhoff, weights, maxima = _kirchhoff(problem)
    B, n = maxima.shape
    found = torch.zeros((B, n + 1, n + 1), dtype=torch.float64, device=maxima.device)
    if n == 0:
        return torch.zeros(B, dtype=torch.float64, device=maxima.device), found
    factors, pivots, _ = torch.linalg.lu_factor_ex(kirchhoff)
    log_det = factors.diagonal(dim1=1, dim2=2).abs().log().sum(1)
    identity = torch.eye(n, dtype=torch.float64, device=maxima.device).expand(B, n, n)
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
    log_z = torch.where(_empty(problem), 0.0, log_det + maxima.sum(1))
    possible = torch.isfinite(log_z)
    found = torch.where(possible[:, None, None], found.clamp(0.0, 1.0), 0.0)
    log_z = torch.where(possible, log_z, -torch.inf)
    undefined = weights.isnan().any(2).any(1)
    return log_z.masked_fill(undefined, torch.nan), found.masked_fill(undefined[:, None, None], torch.nan)
