"""The backend for semi-Markov chains on a GPU."""

from collections.abc import Sequence
from functools import cache, lru_cache
from math import prod
from typing import Any, NamedTuple

import torch
import triton
from torch import Tensor

from crfkit.nn.backends.segments import SegmentBackend
from crfkit.nn.backends.torch_segments import Summed
from crfkit.nn.problem.chain import working_dtype
from crfkit.nn.problem.segments import SegmentProblem, double, in_double, inside
from crfkit.nn.triton.dense.backend import REAL
from crfkit.nn.triton.launch import Launch, begins_of, on_its_device
from crfkit.nn.triton.segments.gradient import (
    segment_gradient_kernel,
    segment_steps_kernel,
    segment_sums_kernel,
)
from crfkit.nn.triton.segments.messages import LOG_2, segment_messages_kernel, tables_kernel
from crfkit.nn.triton.segments.viterbi import segment_best_kernel

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


class _Kernels(NamedTuple):
    """The kernels for K lengths and L labels, both padded."""

    block: int  # labels
    slots: int  # lengths
    tables: Launch
    messages: Launch
    steps: Launch
    gradient: Launch
    sums: Launch
    best: Launch


@cache
def _kernels(K: int, L: int) -> _Kernels:
    block, slots, warps = _sizes(K, L)
    most = 128 if warps == MOST_WARPS else None  # registers of a thread, where the compiler would take fewer
    of_ring = min(warps, WARPS_OF_RING) if slots > block else warps
    return _Kernels(
        block,
        slots,
        Launch(tables_kernel, 4),
        Launch(segment_messages_kernel, of_ring, maxnreg=128 if of_ring == MOST_WARPS else None),
        Launch(segment_steps_kernel, 4),
        Launch(segment_gradient_kernel, max(4, block // 16)),
        Launch(segment_sums_kernel, 4),
        Launch(segment_best_kernel, warps, maxnreg=most),
    )


@lru_cache(maxsize=1024)
def _sizes(K: int, L: int) -> tuple[int, int, int]:
    """Labels and lengths, padded, and the warps of a program."""
    block, slots = max(16, triton.next_power_of_2(L)), max(2, triton.next_power_of_2(K))
    warps = max(slots * block, block * block) // PER_WARP
    return block, slots, min(MOST_WARPS, max(1, warps))


class _Chunks(NamedTuple):
    """How the gradient of a sequence is cut."""

    size: int  # positions
    number: int
    turns: int  # chunks of a program
    parts: int  # programs


@lru_cache(maxsize=1024)
def _chunks(B: int, T: int, K: int, L: int, chunk: int, most_sums: int) -> _Chunks:
    size = chunk if K <= MANY_LENGTHS else 2 * chunk
    number = -(-T // size)
    turns = -(-number // max(1, min(number, most_sums // (B * (K + L + 2) * L))))
    return _Chunks(size, number, turns, -(-number // turns))


class _Pass:
    """The launches for one problem. What they hand on to each other is in few allocations, by addresses."""

    def __init__(self, problem: SegmentProblem) -> None:
        self.given, self.problem = problem, _plain(problem)
        self.B, self.T, self.K, self.L = problem.shape
        self.dtype = working_dtype(problem.emissions.dtype)
        self.real, self.kind = REAL[self.dtype], _kind(self.problem)
        self.launches = _kernels(self.K, self.L)
        self.n_tables = 1 if problem.transitions.ndim == 2 else self.B

    def begins(self, keep: bool) -> tuple[int, ...]:
        """Where the table, the messages [2, 2, B, T, L] and the end are, in numbers of the working precision."""
        block, slots = self.launches[:2]
        table = slots * block + 2 * self.n_tables * block * block
        return begins_of(table, 4 * self.B * self.T * self.L * keep)

    def exact_begins(self, keep: bool) -> tuple[int, ...]:
        """Where log₂ Z [B], the scales [2, B, T] and the end of all are among numbers of float64."""
        return begins_of(self.B, 2 * self.B * self.T * keep)

    def tables(self, memory: Tensor) -> int:
        """Durations and transitions as programs load them, at the begin of the memory."""
        block, slots, problem = self.launches.block, self.launches.slots, self.problem
        self.launches.tables(
            (1 + self.n_tables, 1, 1), self.kind, (problem.durations, problem.transitions, memory.data_ptr()), (self.K,),
            (self.L, block, slots, self.real), memory,
        )  # fmt: skip
        return memory.data_ptr()

    def forward(self, keep: bool, in_double: bool) -> tuple[Tensor, tuple[Tensor, ...]]:
        """log Z [B]; with `keep`, both memories."""
        emissions, _, _, start, end, first, last, segments, lengths = self.problem
        begins, exact_begins = self.begins(keep), self.exact_begins(keep)
        memory = torch.empty(begins[-1], dtype=self.dtype, device=emissions.device)
        table = self.tables(memory)
        exact = torch.empty(exact_begins[-1], dtype=torch.float64, device=emissions.device)
        values = (exact if in_double else memory).new_empty(self.B)
        log_z, width = exact.data_ptr(), memory.element_size()
        messages = scales = None
        if keep:
            messages, scales = table + begins[1] * width, log_z + exact_begins[1] * 8
        self.launches.messages(
            (self.B, 1 + keep, 1), (self.kind, keep, in_double),
            (emissions, start, end, first, last, segments, lengths, table, messages, scales, log_z, values),
            (self.T, self.K, self.n_tables), (self.L, *self.launches[:2], self.real), memory, exact,
        )  # fmt: skip
        return values, (memory, exact) if keep else ()

    def gradient(self, upstream: Tensor | None, kept: Sequence[Tensor], sign: int) -> Sequence[Tensor | None]:
        """sign · Σ_b upstream_b times the probabilities of the parts."""
        given, (memory, exact) = self.given, kept
        emissions, _, _, _, _, first, last, segments, lengths = self.problem
        B, T, K, L = self.B, self.T, self.K, self.L
        table, log_z, width = memory.data_ptr(), exact.data_ptr(), memory.element_size()
        messages, scales = table + self.begins(True)[1] * width, log_z + self.exact_begins(True)[1] * 8
        block, slots = self.launches[:2]
        chunks = _chunks(B, T, K, L, CHUNK, MOST_SUMS)
        _, at_sums, size = begins_of(2 * B * T * L, B * chunks.parts * (K + L + 2) * L)
        more = memory.new_empty(size)
        steps, sums = more.data_ptr(), more.data_ptr() + at_sums * width
        kind = (self.kind, given.first is None, given.last is None)
        self.launches.steps(
            (B, chunks.number, 1), kind, (emissions, last, lengths, messages, scales, log_z, steps), (B, T),
            (L, block, chunks.size, self.real), memory, exact, more,
        )  # fmt: skip
        d_emissions = torch.empty_like(emissions)
        d_first = None if given.first is None or first is None else torch.empty_like(first)
        d_last = None if given.last is None or last is None else torch.empty_like(last)
        d_segments = None if segments is None else torch.empty_like(segments)
        stride = 0 if upstream is None else upstream.stride(0)
        self.launches.gradient(
            (B, chunks.parts, 1), (kind, None if upstream is None else upstream.dtype),
            (emissions, first, segments, lengths, table, messages, scales, log_z, steps, upstream, d_emissions, d_first,
             d_last, d_segments, sums),
            (B, T, K, self.n_tables, chunks.turns, stride, sign), (L, block, slots, chunks.size, self.real),
            memory, exact, more,
        )  # fmt: skip
        return d_emissions, *self.added_up(more, sums, chunks.parts), d_first, d_last, d_segments

    def added_up(self, memory: Tensor, sums: int, n_parts: int) -> list[Tensor | None]:
        """The gradients by durations, transitions, start and end, of sums [B, parts, size]."""
        B, K, L, scores = self.B, self.K, self.L, self.problem[1:5]
        found = [None if part is None else torch.empty_like(part, dtype=self.dtype) for part in scores]
        durations, transitions, *ends = found
        shared = self.n_tables == 1 and self.problem.transitions.ndim == 2
        blocks, launch = -(-(K + L + 2) * L // NUMBERS), self.launches.sums
        kind = self.dtype, scores[2] is None, scores[3] is None, shared
        constants = (L, NUMBERS, PARTS)
        first = (sums, durations, transitions if shared else None, *ends)
        launch((blocks, 1, 1), kind, first, (B * n_parts, K), constants, memory)
        if not shared:
            own = (sums, None, transitions, None, None)
            launch((blocks, B, 1), (kind, B), own, (n_parts, K), constants, memory)
        return [
            part if part is None or score is None or part.dtype == score.dtype else part.to(score.dtype)
            for part, score in zip(found, scores, strict=True)
        ]


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
        """log Z [B]; with `keep`, the table and messages, and log₂ Z and scales."""
        return _Pass(problem).forward(keep, in_double)

    @on_its_device
    def gradient(
        self, problem: SegmentProblem, upstream: Tensor | None, kept: Sequence[Tensor], sign: int = 1
    ) -> Sequence[Tensor | None]:
        """sign · Σ_b upstream_b times the probabilities of the parts."""
        return _Pass(problem).gradient(upstream, kept, sign)

    @on_its_device
    def value_and_gradient(
        self, problem: SegmentProblem, upstream: Tensor | None, sign: int, in_double: bool
    ) -> tuple[Tensor, tuple[Tensor, ...], Sequence[Tensor | None]]:
        """log Z, what is kept, and the gradient."""
        run = _Pass(problem)
        value, kept = run.forward(True, in_double)
        return value, kept, run.gradient(upstream, kept, sign)

    def summed(self, problem: SegmentProblem) -> Summed:
        """The messages of the kernels in float64, as natural logarithms of weights."""
        exact, run = in_double(problem), _Pass(double(problem))
        log_z, (memory, more) = self.value(run.given, True)
        B, T, L = run.B, run.T, run.L
        messages = memory[run.begins(True)[1] :][: 4 * B * T * L].view(2, 2, B, T, L)
        scales = more[run.exact_begins(True)[1] :][: 2 * B * T].view(2, B, T)
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
        run = _Pass(problem)
        emissions, _, _, start, end, first, last, segments, lengths = run.problem
        B, T, L = run.B, run.T, run.L
        memory = torch.empty(run.begins(False)[-1], dtype=run.dtype, device=emissions.device)
        table = run.tables(memory)
        ages, before = emissions.new_empty((2, B, T, L), dtype=torch.int32)
        tags = emissions.new_empty((B, T), dtype=torch.int64)
        run.launches.best(
            (B, 1, 1), run.kind,
            (emissions, start, end, first, last, segments, lengths, table, ages, before, tags),
            (T, run.K, run.n_tables), (L, *run.launches[:2], run.real), memory,
        )  # fmt: skip
        return tags


def _plain(problem: SegmentProblem) -> SegmentProblem:
    """Scores without gaps in memory; zeros for scores of first or last positions, where only the others are given."""
    if not all(part is None or part.is_contiguous() for part in problem):
        parts: list[Any] = [part if part is None else part.contiguous() for part in problem]
        problem = SegmentProblem._make(parts)
    if (problem.first is None) == (problem.last is None):
        return problem
    nothing = torch.zeros_like(problem.emissions)
    return problem._replace(
        first=nothing if problem.first is None else problem.first,
        last=nothing if problem.last is None else problem.last,
    )


_KINDS: dict[tuple[Any, ...], int] = {}


def _kind(problem: SegmentProblem) -> int:
    """A number for what kernels are compiled for: the types of the scores, and which of them are there."""
    return _KINDS.setdefault(tuple([part if part is None else part.dtype for part in problem]), len(_KINDS))
