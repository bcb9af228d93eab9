"""The backend for semi-Markov chains on a GPU."""

from collections.abc import Sequence
from typing import Any

import torch
import triton
from torch import Tensor

from crfkit.nn.backends.segments import SegmentBackend
from crfkit.nn.problem.chain import working_dtype
from crfkit.nn.problem.segments import SegmentProblem
from crfkit.nn.triton.dense.backend import REAL
from crfkit.nn.triton.launch import on_its_device
from crfkit.nn.triton.segments.gradient import (
    segment_gradient_kernel,
    segment_steps_kernel,
    segment_sums_kernel,
)
from crfkit.nn.triton.segments.messages import LOG_2, segment_messages_kernel, tables_kernel
from crfkit.nn.triton.wide.backend import launch_of

MOST_LABELS = 128
MOST_OPEN = 32768  # open segments of a program, padded: what its registers hold
PER_WARP = 1024  # numbers of the ring and of the transitions
CHUNK = 64  # positions of a turn of the gradient
MOST_SUMS = 2**26  # numbers that chunks leave to be added up
NUMBERS, PARTS = 32, 32  # of a program that adds them up


class SegmentKernels(SegmentBackend):
    """Up to 128 labels, and as many lengths as registers hold."""

    name = "triton"

    def suits(self, problem: SegmentProblem) -> bool:
        """Whether there are kernels for this problem."""
        B, T, K, L = problem.shape
        block, slots, _ = _sizes(K, L)
        return (
            problem.emissions.is_cuda and B > 0 and T > 0 and L <= MOST_LABELS and slots * block <= MOST_OPEN
        )

    @on_its_device
    def value(self, problem: SegmentProblem, keep: bool) -> tuple[Tensor, tuple[Tensor, ...]]:
        """log Z [B]; with `keep`, log₂ Z, the tables, the messages [2, 2, B, T, L] and their scales [2, B, T]."""
        problem = _plain(problem)
        B, T, K, L = problem.shape
        block, slots, warps = _sizes(K, L)
        dtype = working_dtype(problem.emissions.dtype)
        real, kind = REAL[dtype], _kind(problem)
        n_tables = 1 if problem.transitions.ndim == 2 else B
        new = problem.emissions.new_empty
        table = new(slots * block + 2 * n_tables * block * block, dtype=dtype)
        launch_of(tables_kernel, 4)(
            (1 + n_tables, 1, 1), kind, (problem.durations, problem.transitions, table), (K,), (L, block, slots, real)
        )  # fmt: skip
        log_z = new(B, dtype=torch.float64)
        messages = new((2, 2, B, T, L), dtype=dtype) if keep else None
        begins, ends = (None, None) if messages is None else messages
        scales = new((2, B, T), dtype=torch.float64) if keep else None
        launch_of(segment_messages_kernel, warps)(
            (B, 1 + keep, 1), (kind, keep),
            (problem.emissions, problem.start, problem.end, problem.first, problem.last, problem.segments,
             problem.lengths, table, begins, ends, scales, log_z),
            (T, K, n_tables), (L, block, slots, real),
        )  # fmt: skip
        kept = () if messages is None or scales is None else (log_z, table, messages, scales)
        return (log_z * LOG_2.value).to(dtype), kept

    @on_its_device
    def gradient(
        self, problem: SegmentProblem, upstream: Tensor, kept: Sequence[Tensor]
    ) -> Sequence[Tensor | None]:
        """Σ_b upstream_b times the probabilities of the parts."""
        given, problem = problem, _plain(problem)
        log_z, table, (begins, ends), scales = kept
        B, T, K, L = problem.shape
        block, slots, _ = _sizes(K, L)
        real, kind = REAL[begins.dtype], (_kind(problem), given.first is None, given.last is None)
        n_tables = 1 if problem.transitions.ndim == 2 else B
        steps, after = torch.empty((2, B, T, L), dtype=begins.dtype, device=begins.device)
        n_chunks = triton.cdiv(T, CHUNK)
        launch_of(segment_steps_kernel, 4)(
            (B, n_chunks, 1), kind,
            (problem.emissions, problem.last, problem.lengths, begins, scales, log_z, steps, after), (B, T),
            (L, block, CHUNK, real),
        )  # fmt: skip
        size = (K + L + 2) * L
        n_turns = triton.cdiv(n_chunks, max(1, min(n_chunks, MOST_SUMS // (B * size))))
        n_parts = triton.cdiv(n_chunks, n_turns)
        sums = torch.empty((B, n_parts, size), dtype=begins.dtype, device=begins.device)
        by_position = [
            None if part is None else torch.empty_like(part, memory_format=torch.contiguous_format)
            for part in (given.emissions, given.first, given.last)
        ]
        d_segments = None if problem.segments is None else torch.empty_like(problem.segments)
        launch_of(segment_gradient_kernel, max(4, block // 16))(
            (B, n_parts, 1), kind,
            (problem.emissions, problem.first, problem.segments, problem.lengths, table, begins, ends, scales, log_z,
             steps, after, upstream.contiguous(), *by_position, d_segments, sums),
            (B, T, K, n_tables, n_turns), (L, block, slots, CHUNK, real),
        )  # fmt: skip
        d_emissions, d_first, d_last = by_position
        shared = (problem.durations, problem.transitions, problem.start, problem.end)
        begins_at = (0, K * L, (K + L) * L, (K + L + 1) * L)
        found = (_added_up(sums, part, begin) for part, begin in zip(shared, begins_at, strict=True))
        return d_emissions, *found, d_first, d_last, d_segments


def _added_up(sums: Tensor, scores: Tensor | None, begin: int) -> Tensor | None:
    """The gradient by scores whose sums lie from `begin` on, of sums [B, parts, size]."""
    if scores is None:
        return None
    B, n_parts, size = sums.shape
    groups = B if scores.ndim == 3 else 1
    out = torch.empty_like(scores, dtype=sums.dtype)
    n = scores.numel() // groups
    launch_of(segment_sums_kernel, 4)(
        (triton.cdiv(n, NUMBERS), groups, 1), sums.dtype, (sums, out),
        (B * n_parts // groups, size, begin, n), (NUMBERS, PARTS),
    )  # fmt: skip
    return out.to(scores.dtype)


def _sizes(K: int, L: int) -> tuple[int, int, int]:
    """Labels and lengths, padded, and the warps of a program."""
    block, slots = max(16, triton.next_power_of_2(L)), max(2, triton.next_power_of_2(K))
    warps = max(slots * block, block * block) // PER_WARP
    return block, slots, min(8, max(1, warps))


def _plain(problem: SegmentProblem) -> SegmentProblem:
    """Scores without gaps in memory; zeros for scores of first or last positions, where only the others are given."""
    parts: list[Any] = [part if part is None else part.contiguous() for part in problem]
    problem = SegmentProblem._make(parts)
    if (problem.first is None) == (problem.last is None):
        return problem
    nothing = torch.zeros_like(problem.emissions)
    return problem._replace(
        first=nothing if problem.first is None else problem.first,
        last=nothing if problem.last is None else problem.last,
    )


def _kind(problem: SegmentProblem) -> tuple[Any, ...]:
    """What kernels are compiled for: the types of the scores, which of them are there, and the sizes."""
    return tuple(part if part is None else part.dtype for part in problem), *problem.shape[2:]
