"""Trees on a GPU: sums by the elimination of words, best trees by contraction; no host–device synchronisation.

Sums with marginals are made in registers up to 128 words (`registers`): in float32 where they are wanted
in it and its range allows, else in float64. Beyond, and for log Z alone, they are made through memory in float64, and
what float64 cannot hold in log space, through memory as well (`elimination`). Each kernel marks what it
leaves to the next.
"""

from functools import cache
from typing import Any, NamedTuple

import torch
from torch import Tensor

from crfkit.nn.backends.torch_tree import is_safe, sums_by_inverse
from crfkit.nn.backends.tree import TreeBackend
from crfkit.nn.problem.tree import TreeProblem
from crfkit.nn.triton.launch import Launch, on_its_device
from crfkit.nn.triton.trees.argmax import best_tree_kernel
from crfkit.nn.triton.trees.elimination import N_VECTORS, elimination_kernel
from crfkit.nn.triton.trees.registers import COLUMN, register_kernel

MOST_WORDS = 1024
MOST_ELIMINATED = {torch.float32: 128, torch.float64: 64}  # words; with more, a determinant is faster
MOST_SMALL = 256  # up to here two programs that work through memory fit on one multiprocessor
MOST_IN_REGISTERS = 128  # words, padded
TILE = 32  # words at a time while weights and marginals are made there
REGISTERS: dict[tuple[int, torch.dtype], tuple[int, int | None]] = {  # by N: warps, most registers
    (16, torch.float32): (1, None),
    (16, torch.float64): (1, None),
    (32, torch.float32): (4, None),
    (32, torch.float64): (4, None),
    (64, torch.float32): (8, 64),
    (64, torch.float64): (8, 128),
    (128, torch.float32): (16, 128),
    (128, torch.float64): (16, 128),
}


class _Step(NamedTuple):
    """A kernel, the precision that it works in, and the last of its constants."""

    launch: Launch
    real: torch.dtype
    constants: tuple[Any, ...]


class KernelTreeBackend(TreeBackend):
    """Sums by elimination, by a determinant where that is faster and safe; Chu–Liu–Edmonds."""

    name = "triton"

    def suits(self, problem: TreeProblem) -> bool:
        """Whether there are kernels for this problem."""
        B, size = problem.scores.shape[:2]
        return problem.scores.is_cuda and B > 0 and 1 < size <= MOST_WORDS + 1

    def is_eliminated(self, problem: TreeProblem, dtype: torch.dtype) -> bool:
        """Whether marginals in this precision are computed without a determinant, which loses digits."""
        return problem.scores.shape[1] <= MOST_ELIMINATED[dtype] + 1

    def log_partition(self, problem: TreeProblem, dtype: torch.dtype = torch.float64) -> Tensor:
        """log Z [B] by elimination."""
        log_z = problem.scores.new_empty(len(problem.scores), dtype=dtype)
        self._eliminate(problem, log_z, None)
        return log_z

    def marginals(self, problem: TreeProblem, dtype: torch.dtype = torch.float64) -> tuple[Tensor, Tensor]:
        """log Z [B] and the probability of every arc [B, n + 1, n + 1]."""
        if self.is_eliminated(problem, dtype):
            log_z = problem.scores.new_empty(len(problem.scores), dtype=dtype)
            found = problem.scores.new_empty(problem.scores.shape, dtype=dtype)
            self._eliminate(problem, log_z, found)
            return log_z, found
        log_z, found = sums_by_inverse(problem)
        self._eliminate(problem, log_z, found, is_safe(problem).to(torch.int8)[:, None].repeat(1, 2))
        return log_z.to(dtype), found.to(dtype)

    @on_its_device
    def argmax(self, problem: TreeProblem) -> Tensor:
        """The heads of the best tree [B, n]."""
        scores, lengths, single_root, _ = problem
        B, size = scores.shape[:2]
        N = _padded(size)
        heads = torch.empty((B, size - 1), dtype=torch.int64, device=scores.device)
        work = torch.empty(B * (size - 1) * N, dtype=torch.float64, device=scores.device)
        nodes = torch.empty(B * 6 * N, dtype=torch.int32, device=scores.device)
        _best(N)(
            (B, 1, 1), (scores.dtype, lengths is None), (scores.contiguous(), lengths, work, nodes, heads),
            (size, int(single_root)), (N, max(1, 1024 // N)),
        )  # fmt: skip
        return heads

    @on_its_device
    def _eliminate(
        self, problem: TreeProblem, log_z: Tensor, marginals: Tensor | None, done: Tensor | None = None
    ) -> None:
        """Writes log Z [B], and the marginals where they are wanted. What is `done` [B, 2] is left as it is."""
        scores, lengths, single_root, _ = problem
        B, size = scores.shape[:2]
        N, gradient = _padded(size), marginals is not None
        sides, n_buffers = (2, 3) if gradient else (1, 2)
        n_rows = n_buffers * (size - 1) + N_VECTORS.value  # of N numbers, for each program
        if gradient and N <= MOST_IN_REGISTERS:
            n_rows += 2 * (COLUMN.value + N)
        flags = B * sides * n_rows * N  # where those of the sentences that are done begin, behind the numbers
        work = torch.empty(
            flags + (-(-B // 4) if done is None else 0), dtype=torch.float64, device=scores.device
        )
        kind = (scores.dtype, lengths is None, log_z.dtype)
        numbers, constants = (size, int(single_root), n_rows), (N, N.bit_length() - 1)
        enough, flagged = work[flags:].view(torch.int8) if done is None else done, int(done is not None)
        scores, marginals = scores.contiguous(), log_z if marginals is None else marginals
        for launch, real, others in _steps(N, gradient, log_z.dtype):
            numbers_in = work if real == torch.float64 else work.view(real)
            pointers = (scores, lengths, numbers_in, log_z, marginals, enough)
            launch((B, sides, 1), kind, pointers, (*numbers, flagged), (*constants, *others))
            flagged = 1


@cache
def _steps(N: int, gradient: bool, dtype: torch.dtype) -> tuple[_Step, ...]:
    """The kernels for N words, each of which does what those before it could not; with `gradient`, marginals in `dtype`."""
    most = 128 if 16 < N <= MOST_SMALL else None
    linear, log = (Launch(elimination_kernel, {16: 1, 32: 4}.get(N, 8), maxnreg=most) for _ in range(2))
    in_log_space = _Step(log, torch.float64, (max(1, min(4, 1024 // N)), gradient, True))
    if not gradient or N > MOST_IN_REGISTERS:
        return _Step(linear, torch.float64, (max(1, min(16, 1024 // N)), gradient, False)), in_log_space
    in_registers = []
    for real in (torch.float32, torch.float64) if dtype == torch.float32 else (torch.float64,):
        n_warps, most = REGISTERS[N, real]
        launch = Launch(register_kernel, n_warps, maxnreg=most)
        in_registers.append(_Step(launch, real, (min(N, TILE), real == torch.float32)))
    return *in_registers, in_log_space


@cache
def _best(N: int) -> Launch:
    """The kernel for the best trees of N words."""
    return Launch(best_tree_kernel, 1 if N < 256 else 4)


def _padded(size: int) -> int:
    """The words of a sentence, padded to a power of 2."""
    return max(16, 1 << (size - 2).bit_length())
