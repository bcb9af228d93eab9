"""Trees on a GPU: sums by the elimination of words, best trees by contraction; nothing is waited for or looked at."""

from __future__ import annotations

import torch
import triton
from torch import Tensor

from crfkit.nn.launch import on_its_device
from crfkit.nn.tree_best_kernel import best_tree_kernel
from crfkit.nn.tree_elimination_kernel import N_VECTORS, elimination_kernel
from crfkit.nn.tree_problem import TreeProblem

MOST_WORDS = 1024
MOST_SMALL = 256  # up to here two programs fit on one multiprocessor


def suits(problem: TreeProblem) -> bool:
    """Whether the kernels answer for this problem."""
    B, size = problem.scores.shape[:2]
    return problem.scores.is_cuda and B > 0 and 1 < size <= MOST_WORDS + 1


def log_partition(problem: TreeProblem) -> Tensor:
    """log Z [B] in float64; −inf where no tree exists, 0 for an empty sentence."""
    return _eliminated(problem, None, None)


def marginals(problem: TreeProblem, dtype: torch.dtype = torch.float64) -> tuple[Tensor, Tensor]:
    """log Z [B] in float64 and the probability of every arc [B, n + 1, n + 1]."""
    found = torch.empty(problem.scores.shape, dtype=dtype, device=problem.scores.device)
    return _eliminated(problem, found, None), found


def correct(problem: TreeProblem, safe: Tensor, log_z: Tensor, marginals: Tensor) -> None:
    """Write log Z [B] and the probabilities of arcs of the sentences that are not `safe` [B]."""
    _eliminated(problem, marginals, log_z, safe.to(torch.int8)[:, None].repeat(1, 2))


@on_its_device
def best(problem: TreeProblem) -> Tensor:
    """The heads of the best tree [B, n]; −1 for words that are none, and where no tree exists."""
    scores, lengths, single_root = problem
    B, size = scores.shape[:2]
    N = _padded(size)
    heads = torch.empty((B, size - 1), dtype=torch.int64, device=scores.device)
    work = torch.empty(B * (size - 1) * N, dtype=torch.float64, device=scores.device)
    nodes = torch.empty(B * 6 * N, dtype=torch.int32, device=scores.device)
    best_tree_kernel[(B,)](
        scores.contiguous(), lengths, work, nodes, heads, size, int(single_root),
        HAS_LENGTHS=lengths is not None, N=N, TILE=max(1, 1024 // N), num_warps=1 if N < 256 else 4,
    )  # fmt: skip
    return heads


@on_its_device
def _eliminated(
    problem: TreeProblem, marginals: Tensor | None, log_z: Tensor | None, done: Tensor | None = None
) -> Tensor:
    """log Z [B]; writes the marginals where they are wanted. What is `done` [B, 2] is left as it is."""
    scores, lengths, single_root = problem
    B, size = scores.shape[:2]
    N = _padded(size)
    sides, n_buffers = (1, 2) if marginals is None else (2, 3)
    room = (n_buffers * (size - 1) + N_VECTORS.value) * N
    work = torch.empty(B * sides * room, dtype=torch.float64, device=scores.device)
    if log_z is None:
        log_z = torch.empty(B, dtype=torch.float64, device=scores.device)
    enough = torch.empty((B, 2), dtype=torch.int8, device=scores.device) if done is None else done
    scores = scores.contiguous()
    for log, tile in ((False, max(1, min(16, 1024 // N))), (True, max(1, min(4, 1024 // N)))):
        elimination_kernel[(B, sides)](
            scores, lengths, work, log_z, log_z if marginals is None else marginals, enough, size, int(single_root), room,
            HAS_LENGTHS=lengths is not None, N=N, LEVELS=N.bit_length() - 1, TILE=tile,
            GRADIENT=marginals is not None, FLAGGED=log or done is not None,
            LOG=log, num_warps=_warps(N), maxnreg=128 if 16 < N <= MOST_SMALL else None,
        )  # fmt: skip
    return log_z


def _padded(size: int) -> int:
    """The words of a sentence, padded."""
    return max(16, triton.next_power_of_2(size - 1))


def _warps(N: int) -> int:
    """How many warps share a sentence."""
    return {16: 1, 32: 4}.get(N, 8)
