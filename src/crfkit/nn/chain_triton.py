"""Chains on a GPU, by the kernels of `chain_kernels`: a value with its messages, its gradient, the best labelling."""

from __future__ import annotations

from typing import NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor

from crfkit.nn.best_kernel import best_kernel
from crfkit.nn.chain_kernels import messages_kernel, tables_kernel
from crfkit.nn.chain_torch import Expectations
from crfkit.nn.gradient_kernel import gradient_kernel
from crfkit.nn.problem import ChainProblem, working_dtype

MOST_LABELS = 128


class Kept(NamedTuple):
    """What the gradient needs of the messages."""

    tables: Tensor  # of the arcs, see `tables_kernel`
    messages: Tensor  # forward [B, T, L], backward [B, T, L] and scale [B, T], one after the other


def suits(problem: ChainProblem) -> bool:
    """Whether the kernels answer for this problem."""
    _, T, L = problem.shape
    some = T > 0 and len(problem.emissions) > 0
    return problem.emissions.is_cuda and problem.arcs.ndim < 4 and 1 < L <= MOST_LABELS and some


def value(problem: ChainProblem, tags: Tensor | None, keep: bool) -> tuple[Tensor, Kept | None]:
    """score(tags) − log Z, or log Z, [B] in float64; and what the gradient will need."""
    B, T, L = problem.shape
    problem = _plain(problem)
    emissions = problem.emissions
    dtype = working_dtype(emissions.dtype)
    device, block, real = emissions.device, _block(L), _real(dtype)
    n_tables = 1 if problem.arcs.ndim == 2 else B
    work = torch.empty(B * T + n_tables * (4 * block * block + 16), dtype=dtype, device=device)
    tables, peaks = work[B * T :], work
    step, flags = 4096 // block, {**_flags(problem), "HAS_TAGS": tags is not None}
    out = torch.empty((2, B), dtype=torch.float64, device=device)
    n_programs = n_tables + (0 if tags is None else B) + triton.cdiv(B * T, step)
    tables_kernel[(n_programs,)](
        *problem, tags, tables, peaks, out[1], B, T, n_tables, L,
        **flags, BLOCK=block, STEP=step, REAL=real, num_warps=4,
    )  # fmt: skip
    messages = torch.empty(B * T * (2 * L + 1), dtype=dtype, device=device) if keep else None
    messages_kernel[(B, 1 + keep)](
        emissions, *problem[2:], tables, peaks, work if messages is None else messages, out, B, T, L,
        int(n_tables > 1), **flags, KEEP=keep, BLOCK=block, REAL=real, num_warps=_warps(block),
    )  # fmt: skip
    return out[0], None if messages is None else Kept(tables, messages)


def gradient(
    problem: ChainProblem, tags: Tensor | None, upstream: Tensor, kept: Kept
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The gradient by emissions [B, T, L], arcs, start [L] and end [L]."""
    B, T, L = problem.shape
    shared = problem.arcs.ndim == 2
    problem = _plain(problem)
    block = _block(L)
    step, warps, programs = _tuned(block)
    n_chunks = max(1, min(triton.cdiv(programs, B), triton.cdiv(T, 2 * step)))
    chunk = triton.cdiv(triton.cdiv(T, n_chunks), step) * step
    n_chunks = triton.cdiv(T, chunk)
    dtype = kept.messages.dtype
    d_emissions = torch.empty_like(problem.emissions)
    sums = torch.empty((B, n_chunks, L + 2, L), dtype=dtype, device=d_emissions.device)
    gradient_kernel[(B, n_chunks)](
        *problem, tags, kept.tables, kept.messages, upstream.contiguous(), d_emissions, sums,
        B, T, L, int(not shared), n_chunks, chunk, 1.0 if tags is None else -1.0,
        **_flags(problem), HAS_TAGS=tags is not None, BLOCK=block, STEP=step, REAL=_real(dtype),
        DOT=dtype == torch.float32, num_warps=warps, num_stages=1,
    )  # fmt: skip
    if shared:
        added = sums.sum((0, 1))
        return d_emissions, added[:L], added[L], added[L + 1]
    added = sums.sum(1)  # [B, L + 2, L]
    return d_emissions, added[:, :L], added[:, L].sum(0), added[:, L + 1].sum(0)


def expectations(problem: ChainProblem) -> Expectations:
    """log Z and the marginals, the arcs' added up over what the arcs share."""
    log_z, kept = value(problem, None, keep=True)
    assert kept is not None
    states, arcs, _, _ = gradient(problem, None, torch.ones_like(log_z), kept)
    return Expectations(log_z, states.to(kept.messages.dtype), arcs)


def best(problem: ChainProblem) -> Tensor:
    """The labels of the best labelling [B, T] by position; −1 at positions that are off."""
    B, T, L = problem.shape
    problem = _plain(problem)
    dtype = working_dtype(problem.emissions.dtype)
    scores = problem.emissions.new_empty((B, T, L), dtype=dtype)
    labels = problem.emissions.new_empty((B, T), dtype=torch.int64)
    block = _block(L)
    best_kernel[(B,)](
        *problem,
        scores,
        labels,
        T,
        L,
        _stride(problem),
        **_flags(problem),
        BLOCK=block,
        REAL=_real(dtype),
        num_warps=_warps(block),
    )
    return labels


def _plain(problem: ChainProblem) -> ChainProblem:
    """The same scores, without gaps in memory."""
    return ChainProblem(*(part if part is None else part.contiguous() for part in problem))


def _stride(problem: ChainProblem) -> int:
    """From the arcs of one sequence to those of the next."""
    return 0 if problem.arcs.ndim == 2 else problem.shape[2] ** 2


def _flags(problem: ChainProblem) -> dict[str, bool]:
    """Which scores there are."""
    return {
        "HAS_START": problem.start is not None,
        "HAS_END": problem.end is not None,
        "HAS_LENGTHS": problem.lengths is not None,
        "HAS_SITES": problem.sites is not None,
    }


def _block(n_labels: int) -> int:
    """The labels of a row, padded."""
    return max(16, triton.next_power_of_2(n_labels))


def _warps(block: int) -> int:
    """How many warps share the arcs of a program."""
    return {16: 1, 32: 1, 64: 1, 128: 4}[block]


def _tuned(block: int) -> tuple[int, int, int]:
    """Sites a turn of the gradient's kernel, its warps, and how many programs keep the device busy."""
    return (16, 8, 264) if block == 128 else (32, 4, 264)


def _real(dtype: torch.dtype) -> tl.dtype:
    """The precision of the messages."""
    return tl.float64 if dtype == torch.float64 else tl.float32
