"""The backend for semi-Markov chains on a GPU."""

from collections.abc import Iterator, Sequence
from functools import cache
from math import prod
from typing import Any

import torch
import triton
from torch import Tensor

from crfkit.nn.backends.segments import SegmentBackend
from crfkit.nn.backends.torch_segments import Summed
from crfkit.nn.problem.chain import working_dtype
from crfkit.nn.problem.segments import SegmentProblem, double, in_double, inside
from crfkit.nn.triton.dense.backend import REAL
from crfkit.nn.triton.launch import on_its_device
from crfkit.nn.triton.segments.gradient import (
    segment_gradient_kernel,
    segment_steps_kernel,
    segment_sums_kernel,
)
from crfkit.nn.triton.segments.messages import LOG_2, segment_messages_kernel, tables_kernel
from crfkit.nn.triton.segments.viterbi import segment_best_kernel
from crfkit.nn.triton.wide.backend import launch_of

MOST_LABELS = 128
MOST_OPEN = 32768  # open segments of a program, padded: what its registers hold
PER_WARP, MOST_WARPS = 1024, 16  # numbers of the ring and of the transitions
WARPS_OF_RING = 8  # where that is larger than the transitions: sums need more registers than maxima
CHUNK, MANY_LENGTHS = 64, 32  # positions of a turn of the gradient; twice as many with more lengths
FEW_SEGMENTS = (
    2**22
)  # of all begins, lengths and labels, up to which gradients are computed in the forward pass
MOST_SUMS = 2**26  # numbers that chunks leave to be added up
NUMBERS, PARTS = 32, 32  # of a program that adds them up


class SegmentKernels(SegmentBackend):
    """Up to 128 labels, and as many lengths as registers hold."""

    name = "triton"

    def suits(self, problem: SegmentProblem) -> bool:
        """Whether there are kernels for this problem."""
        B, T, K, L = problem.shape
        if not problem.emissions.is_cuda or L > MOST_LABELS or B == 0 or T == 0:
            return False
        block, slots, _ = _sizes(K, L)
        return slots * block <= MOST_OPEN

    def is_early(self, problem: SegmentProblem) -> bool:
        """For small batches, whose time is that of the host."""
        return prod(problem.shape) <= FEW_SEGMENTS

    @on_its_device
    def value(
        self, problem: SegmentProblem, keep: bool, in_double: bool = False
    ) -> tuple[Tensor, tuple[Tensor, ...]]:
        """log Z [B]; with `keep`, log₂ Z, the tables, the messages [2, 2, B, T, L] and their scales [2, B, T]."""
        problem = _plain(problem)
        B, T, K, L = problem.shape
        new, dtype = problem.emissions.new_empty, working_dtype(problem.emissions.dtype)
        kind, table, n_tables = _kind(problem), *_tables(problem, dtype)
        log_z, values = new(B, dtype=torch.float64), new(B, dtype=torch.float64 if in_double else dtype)
        messages = new((2, 2, B, T, L), dtype=dtype) if keep else None
        scales = new((2, B, T), dtype=torch.float64) if keep else None
        block, slots, warps = _sizes(K, L)
        warps = min(warps, WARPS_OF_RING) if slots > block else warps
        launch_of(segment_messages_kernel, warps, maxnreg=_most_registers(warps))(
            (B, 1 + keep, 1), (kind, keep, in_double),
            (problem.emissions, problem.start, problem.end, problem.first, problem.last, problem.segments,
             problem.lengths, table, messages, scales, log_z, values),
            (T, K, n_tables), (L, block, slots, REAL[dtype]),
        )  # fmt: skip
        return values, () if messages is None or scales is None else (log_z, table, messages, scales)

    @on_its_device
    def gradient(
        self, problem: SegmentProblem, upstream: Tensor | None, kept: Sequence[Tensor], sign: int = 1
    ) -> Sequence[Tensor | None]:
        """sign · Σ_b upstream_b times the probabilities of the parts."""
        given, problem = problem, _plain(problem)
        log_z, table, messages, scales = kept
        B, T, K, L = problem.shape
        block, slots, _ = _sizes(K, L)
        new, real = messages.new_empty, REAL[messages.dtype]
        kind = (_kind(problem), given.first is None, given.last is None)
        stride = 0 if upstream is None else upstream.stride(0)
        chunk = CHUNK if K <= MANY_LENGTHS else 2 * CHUNK
        steps, n_chunks = new((2, B, T, L)), -(-T // chunk)
        launch_of(segment_steps_kernel, 4)(
            (B, n_chunks, 1), kind,
            (problem.emissions, problem.last, problem.lengths, messages, scales, log_z, steps), (B, T),
            (L, block, chunk, real),
        )  # fmt: skip
        size = (K + L + 2) * L
        n_turns = -(-n_chunks // max(1, min(n_chunks, MOST_SUMS // (B * size))))
        n_parts = -(-n_chunks // n_turns)
        sums = new((B, n_parts, size))
        d_emissions, d_first, d_last, d_segments = (
            None if part is None else torch.empty_like(part, memory_format=torch.contiguous_format)
            for part in (given.emissions, given.first, given.last, given.segments)
        )
        n_tables = 1 if problem.transitions.ndim == 2 else B
        launch_of(segment_gradient_kernel, max(4, block // 16))(
            (B, n_parts, 1), (kind, None if upstream is None else upstream.dtype),
            (problem.emissions, problem.first, problem.segments, problem.lengths, table, messages, scales, log_z,
             steps, upstream, d_emissions, d_first, d_last, d_segments, sums),
            (B, T, K, n_tables, n_turns, stride, sign), (L, block, slots, chunk, real),
        )  # fmt: skip
        return d_emissions, *_added_up(problem, sums), d_first, d_last, d_segments

    def summed(self, problem: SegmentProblem) -> Summed:
        """The messages of the kernels in float64, as natural logarithms of weights."""
        exact = in_double(problem)
        log_z, (_, _, messages, scales) = self.value(double(problem), True)
        exists = inside(problem)[:, :, None]
        forward, backward = (torch.where(exists, part[..., None] * LOG_2.value, 0.0) for part in scales)
        (begins, after_end), (ends, from_begin) = (
            torch.where(exists, part * LOG_2.value, 0.0) for part in messages
        )
        return Summed(
            exact, begins + forward, ends + forward, from_begin + backward, after_end + backward, log_z
        )

    @on_its_device
    def argmax(self, problem: SegmentProblem) -> Tensor:
        """Viterbi decoding, with backtracking on the device."""
        problem = _plain(problem)
        B, T, K, L = problem.shape
        new, dtype = problem.emissions.new_empty, working_dtype(problem.emissions.dtype)
        table, n_tables = _tables(problem, dtype)
        ages, before = new((B, T, L), dtype=torch.int32), new((B, T, L), dtype=torch.int32)
        tags = new((B, T), dtype=torch.int64)
        block, slots, warps = _sizes(K, L)
        launch_of(segment_best_kernel, warps, maxnreg=_most_registers(warps))(
            (B, 1, 1), _kind(problem),
            (problem.emissions, problem.start, problem.end, problem.first, problem.last, problem.segments,
             problem.lengths, table, ages, before, tags),
            (T, K, n_tables), (L, block, slots, REAL[dtype]),
        )  # fmt: skip
        return tags


def _tables(problem: SegmentProblem, dtype: torch.dtype) -> tuple[Tensor, int]:
    """Durations and transitions as programs load them, and the number of tables of the latter."""
    B, _, K, L = problem.shape
    block, slots, _ = _sizes(K, L)
    n_tables = 1 if problem.transitions.ndim == 2 else B
    table = problem.emissions.new_empty(slots * block + 2 * n_tables * block * block, dtype=dtype)
    launch_of(tables_kernel, 4)(
        (1 + n_tables, 1, 1), _kind(problem), (problem.durations, problem.transitions, table), (K,),
        (L, block, slots, REAL[dtype]),
    )  # fmt: skip
    return table, n_tables


def _added_up(problem: SegmentProblem, sums: Tensor) -> Iterator[Tensor | None]:
    """The gradients by durations, transitions, start and end, of sums [B, parts, size]."""
    B, _, K, L = problem.shape
    scores = problem[1:5]
    found = [None if part is None else sums.new_empty(part.shape) for part in scores]
    durations, transitions, *ends = found
    shared = problem.transitions.ndim == 2
    blocks, n_parts = -(-sums.shape[2] // NUMBERS), sums.shape[1]
    launch = launch_of(segment_sums_kernel, 4)
    kind = sums.dtype, problem.start is None, problem.end is None, shared, L
    first = (sums, durations, transitions if shared else None, *ends)
    launch((blocks, 1, 1), kind, first, (B * n_parts, K), (L, NUMBERS, PARTS))
    if not shared:
        launch(
            (blocks, B, 1),
            (kind, B),
            (sums, None, transitions, None, None),
            (n_parts, K),
            (L, NUMBERS, PARTS),
        )
    return (
        None if part is None or score is None else part.to(score.dtype)
        for part, score in zip(found, scores, strict=True)
    )


@cache
def _sizes(K: int, L: int) -> tuple[int, int, int]:
    """Labels and lengths, padded, and the warps of a program."""
    block, slots = max(16, triton.next_power_of_2(L)), max(2, triton.next_power_of_2(K))
    warps = max(slots * block, block * block) // PER_WARP
    return block, slots, min(MOST_WARPS, max(1, warps))


def _most_registers(warps: int) -> int | None:
    """What a thread can have, where the compiler would take fewer."""
    return 128 if warps == MOST_WARPS else None


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
