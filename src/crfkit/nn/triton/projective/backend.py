"""Projective trees on a GPU: one program for each sentence has all widths of its charts; no host–device synchronisation.

Sums are made in exp space in float64, and in log space for the sentences whose Z that cannot hold, which the first kernel
marks. Scores of siblings are left to plain PyTorch.
"""

from functools import cache

import torch
from torch import Tensor

from crfkit.nn.backends.tree import TreeBackend
from crfkit.nn.problem.tree import TreeProblem
from crfkit.nn.triton.launch import Launch, begins_of, on_its_device
from crfkit.nn.triton.projective.argmax import best_projective_kernel
from crfkit.nn.triton.projective.sums import projective_kernel

MOST_WORDS = 1024
MOST_REGISTERS = 128  # of a thread, so that two programs of 8 warps are on a multiprocessor
TILES = {1024: (8, 16, 32)}  # by the most nodes: warps, rows and columns of a tile
LOG_TILES = {1024: (8, 16, 32)}  # in log space


class EisnerKernels(TreeBackend):
    """Eisner's algorithm, inside and outside, and with maxima."""

    name = "triton"

    def suits(self, problem: TreeProblem) -> bool:
        """Whether there are kernels for this problem."""
        B, size = problem.scores.shape[:2]
        return problem.scores.is_cuda and problem.siblings is None and B > 0 and 1 < size <= MOST_WORDS + 1

    def log_partition(self, problem: TreeProblem, dtype: torch.dtype = torch.float64) -> Tensor:
        """log Z [B]."""
        return self._sum(problem, dtype, None)

    def marginals(self, problem: TreeProblem, dtype: torch.dtype = torch.float64) -> tuple[Tensor, Tensor]:
        """log Z [B] and the probability of every arc [B, n + 1, n + 1]."""
        found = problem.scores.new_zeros(problem.scores.shape, dtype=dtype)
        return self._sum(problem, dtype, found), found

    @on_its_device
    def _sum(self, problem: TreeProblem, dtype: torch.dtype, marginals: Tensor | None) -> Tensor:
        """log Z [B]; writes the marginals where they are wanted."""
        scores, lengths, single_root, _ = problem
        B, size = scores.shape[:2]
        gradient = marginals is not None
        log_z = scores.new_empty(B, dtype=dtype)
        each = (4 if gradient else 2) * (size + 1) * size + size  # numbers of a program
        _, flags, end = begins_of(B * each, -(-B // 8))  # behind them: which sentences are done
        work = torch.empty(end, dtype=torch.float64, device=scores.device)
        enough, found = work[flags:].view(torch.int8), log_z if marginals is None else marginals
        pointers = (scores.contiguous(), lengths, work, log_z, found, enough)
        for log in (False, True):
            launch, tile = _sums(_most_nodes(size), gradient, log)
            launch(
                (B, 1, 1), (scores.dtype, lengths is None, dtype), pointers, (size, int(single_root)),
                (*tile, gradient, log),
            )  # fmt: skip
        return log_z

    @on_its_device
    def argmax(self, problem: TreeProblem) -> Tensor:
        """The heads of the best tree [B, n]."""
        scores, lengths, single_root, _ = problem
        B, size = scores.shape[:2]
        heads = torch.empty((B, size - 1), dtype=torch.int64, device=scores.device)
        area = (size + 1) * size
        work = torch.empty(B * 2 * area, dtype=torch.float64, device=scores.device)
        numbers = torch.empty(B * 4 * area, dtype=torch.int32, device=scores.device)
        launch, tile = _best(_most_nodes(size))
        launch(
            (B, 1, 1), (scores.dtype, lengths is None), (scores.contiguous(), lengths, work, numbers, heads),
            (size, int(single_root)), tile,
        )  # fmt: skip
        return heads


def _most_nodes(size: int) -> int:
    """The size that kernels are made for."""
    return min((most for most in TILES if size <= most), default=max(TILES))


@cache
def _sums(most: int, gradient: bool, log: bool) -> tuple[Launch, tuple[int, int]]:
    """The kernel for sums over sentences of at most so many nodes, and its tile."""
    n_warps, *tile = (LOG_TILES if log else TILES)[most]
    return Launch(projective_kernel, n_warps, maxnreg=MOST_REGISTERS), (tile[0], tile[1])


@cache
def _best(most: int) -> tuple[Launch, tuple[int, int]]:
    """The kernel for best trees, and its tile."""
    n_warps, *tile = TILES[most]
    return Launch(best_projective_kernel, n_warps, maxnreg=MOST_REGISTERS), (tile[0], tile[1])
