"""The backend for chains of up to 128 labels on a GPU."""

from collections.abc import Sequence
from functools import cache, lru_cache
from typing import Any, NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor

from crfkit.nn.backends.base import Backend, Gradient
from crfkit.nn.problem.chain import ChainProblem, working_dtype
from crfkit.nn.triton.dense.constraints import explicit_kernel
from crfkit.nn.triton.dense.gradient import gradient_kernel, scale_kernel, sums_kernel
from crfkit.nn.triton.dense.messages import messages_kernel
from crfkit.nn.triton.dense.tables import N_FACTS, tables_kernel
from crfkit.nn.triton.dense.viterbi import best_kernel
from crfkit.nn.triton.launch import Launch, begins_of, on_its_device

MOST_LABELS = 128
BUSY = 528  # programs that keep a large device busy
CHUNKS = (
    16,
    8,
)  # of a sequence that are followed back at once, and tokens behind one from which it is followed
SCALED = 4096  # numbers that a program multiplies at once
REAL = {torch.float64: tl.float64, torch.float32: tl.float32}  # the types that sums are made in
SHOWN = 1024  # numbers that a program makes explicit
ADDED = 16, 128  # numbers of a program that adds up parts, and parts that it reads at once


class Workspace(NamedTuple):
    """What the kernels hand on to each other, in one allocation: where each array begins, as an address."""

    weights: int  # [n_tables, 2, BLOCK²] W = exp(transitions − maximum) and its transpose, in the order of `spread`
    scores: int  # [n_tables, 2, BLOCK²] the transitions and their transpose, with rows padded to BLOCK
    facts: int  # [n_tables, N_FACTS] what is known of the transitions, see `tables`
    counter: int  # [1] sequences that are done
    gold: int  # [B, 2] the scores of the tags, each as a number and what its rounding took
    maxima: int  # [B, T] the largest emission of each position
    periods: int  # [B] tokens from division to division, 0 where messages are logarithms
    values: int  # [B]
    forward: int  # [B, T, L] messages
    backward: int  # [B, T, L]
    scale: int  # [B, T] of the forward messages
    sums: int  # [B, n_chunks, L + 2, L] parts of a gradient


@lru_cache(maxsize=1024)
def _begins(n_tables: int, B: int, T: int, L: int, block: int, n_kept: int, n_parts: int) -> tuple[int, ...]:
    """Where the arrays of a workspace begin, in numbers, and its size; without messages, n_kept is 0."""
    squares, messages = n_tables * 2 * block**2, n_kept * T * L
    tables = squares, squares, n_tables * N_FACTS.value, 1, 2 * B, B * T, B, B
    return begins_of(*tables, messages, messages, n_kept * T, n_parts * (L + 2) * L)


def in_memory(memory: Tensor, begins: tuple[int, ...]) -> Workspace:
    """The workspace that begins where `memory` does."""
    base, width = memory.data_ptr(), memory.element_size()
    return Workspace._make([base + width * begin for begin in begins[:-1]])


class _Kernels(NamedTuple):
    """The kernels for BLOCK labels, and how their programs share the work."""

    block: int  # labels, padded
    warps: int  # that share the transitions
    lanes: int  # threads that share a column of them
    step: int  # tokens a turn of the gradient's kernel
    tables: Launch
    messages: Launch
    gradient: Launch
    many_gradients: Launch  # for programs enough to keep a device busy with two warps each
    sums: Launch
    best: Launch


@cache
def _kernels(n_labels: int) -> _Kernels:
    block = max(16, triton.next_power_of_2(n_labels))
    warps, lanes = {16: (1, 2), 32: (1, 2), 64: (2, 2), 128: (4, 2)}[block]
    step, gradient_warps = (16, 8) if block == 128 else (32, 4)
    # registers, for four programs at once: most of them just read rows
    most = 128 if block < 128 else None
    return _Kernels(
        *(block, warps, lanes, step),
        Launch(tables_kernel, 4, maxnreg=most),
        Launch(messages_kernel, warps),
        Launch(gradient_kernel, gradient_warps, num_stages=1),
        Launch(gradient_kernel, 2, num_stages=1),
        Launch(sums_kernel, 4),
        Launch(best_kernel, warps),
    )


_SCALE = Launch(scale_kernel, 4)
_EXPLICIT = Launch(explicit_kernel, 4)


@lru_cache(maxsize=1024)
def _chunks(B: int, T: int, step: int) -> tuple[int, int]:
    """How many programs of the gradient's kernel a sequence has, and the tokens of each."""
    n_chunks = max(1, min(BUSY // B, -(-T // (2 * step))))
    chunk = -(-T // (n_chunks * step)) * step
    return -(-T // chunk), chunk


class _Pass:
    """The launches for one problem: values with messages, then their gradient."""

    def __init__(self, problem: ChainProblem, tags: Tensor | None) -> None:
        self.given = plain(problem)
        self.problem, self.tags = in_full(self.given), tags
        self.B, self.T, self.L = problem.emissions.shape
        self.kind, self.real = kind_of(self.problem, tags), working_dtype(problem.emissions.dtype)
        self.own_transitions = int(problem.transitions.ndim > 2)
        self.launches = _kernels(self.L)
        self.block, self.warps, self.lanes, self.step = self.launches[:4]
        self.n_chunks, self.chunk = _chunks(self.B, self.T, self.step)

    def begins(self, keep: bool, gradient: bool) -> tuple[int, ...]:
        """The arrays of the workspace: with messages, if they are kept, and with parts of a gradient."""
        n_tables, n_parts = self.B if self.own_transitions else 1, self.B * self.n_chunks * gradient
        return _begins(n_tables, self.B, self.T, self.L, self.block, self.B * keep, n_parts)

    def forward(
        self, keep: bool, total: bool, share: int = 1, gradient: bool = False
    ) -> tuple[Tensor, Tensor]:
        """The values [B], or their sum / share, [], and the memory of the workspace."""
        emissions, transitions, start, end, lengths, positions, _ = self.problem
        B, T, L, tags, real = self.B, self.T, self.L, self.tags, REAL[self.real]
        begins = self.begins(keep, gradient)
        memory = torch.empty(begins[-1], dtype=self.real, device=emissions.device)
        work = in_memory(memory, begins)
        n_tables, rows = B if self.own_transitions else 1, 4096 // self.block
        n_programs = n_tables + (0 if tags is None else B) + -(-B * T // rows)
        gold = None if tags is None else work.gold
        self.launches.tables(
            (n_programs, 1, 1), self.kind,
            (emissions, transitions, start, end, lengths, positions, tags, *work[:3], gold, work.counter, work.maxima),
            (B, T, n_tables), (L, self.block, rows, real, self.warps, self.lanes), memory,
        )  # fmt: skip
        found = memory.new_empty(() if total else B)  # the device works by now
        values, added = (work.values, found) if total else (found, None)
        messages = (work.forward, work.backward, work.scale) if keep else (None, None, None)
        self.launches.messages(
            (B, 1 + keep, 1), (self.kind, keep, total),
            (
                emissions, start, end, lengths, positions, *work[:3], gold, work.counter, work.maxima, work.periods,
                *messages, values, added,
            ),
            (B, T, self.own_transitions, share), (L, self.block, real, self.warps, self.lanes), memory,
        )  # fmt: skip
        return found, memory

    def gradient(
        self, memory: Tensor, begins: tuple[int, ...], upstream: Tensor | None, share: int = 1
    ) -> Gradient:
        """The gradient by emissions, transitions, start and end, weighted by `upstream`, or by 1 / share."""
        emissions, transitions, _, end, lengths, positions, _ = self.problem
        B, T, L, real = self.B, self.T, self.L, REAL[self.real]
        work, n_parts = in_memory(memory, begins), B * self.n_chunks
        sums: Any = work.sums
        if upstream is not None:
            sums = memory.new_empty((B, self.n_chunks, L + 2, L))
        d_emissions = torch.empty_like(emissions)
        many = n_parts >= BUSY // 2 and self.block == 64
        launch = self.launches.many_gradients if many else self.launches.gradient
        launch(
            (B, self.n_chunks, 1), (self.kind, None if upstream is None else upstream.dtype),
            (
                emissions, end, lengths, positions, self.tags, work.scores, work.facts, work.periods, work.forward,
                work.backward, work.scale, upstream, d_emissions, sums,
            ),
            (
                T, self.own_transitions, self.n_chunks, self.chunk,
                upstream.stride(0) if upstream is not None and upstream.ndim else 0, share,
            ),
            (L, self.block, self.step, real, self.real == torch.float32), memory,
        )  # fmt: skip
        if self.own_transitions:
            return d_emissions, *self._sums_by_sequence(sums.sum(1))
        d_transitions = torch.empty_like(transitions)
        d_start, d_end = (None if part is None else torch.empty_like(part) for part in self.given[2:4])
        kind = (
            self.kind,
            *(None if part is None else part.dtype for part in (d_start, d_end, self.given.bigrams)),
        )
        self.launches.sums(
            (-(-(L + 2) * L // ADDED[0]), 1, 1), kind, (sums, d_transitions, d_start, d_end, self.given.bigrams),
            (n_parts,), (L, *ADDED), memory,
        )  # fmt: skip
        return d_emissions, d_transitions, d_start, d_end

    def _sums_by_sequence(self, sums: Tensor) -> Gradient:
        """The gradient by transitions of their own, start and end, from its sums [B, L + 2, L] over each sequence."""
        L, lengths = self.L, self.problem.lengths
        if lengths is not None:  # the transitions of sequences that have none may be no numbers
            sums[:, :L].masked_fill_((lengths < 2)[:, None, None], 0.0)
        by_ends = zip(self.problem[2:4], (sums[:, L], sums[:, L + 1]), strict=True)
        return sums[:, :L], *(None if part is None else by.sum(0) for part, by in by_ends)


class KernelBackend(Backend):
    """What all backends of a GPU share."""

    def scale(self, gradient: Gradient, upstream: Tensor) -> None:
        """Multiply a gradient in place by a number on the device, which is the current one; 1 is not multiplied by."""
        size, L = gradient[0].numel(), len(gradient[1])
        kind = (L, *(None if part is None else part.dtype for part in gradient), upstream.dtype)
        grid = (min(2 * BUSY, -(-size // SCALED)), 1, 1)
        _SCALE(grid, kind, (*gradient, upstream), (size,), (L, SCALED))


class DenseBackend(KernelBackend):
    """Up to 128 labels, transitions shared by all positions of a sequence."""

    name = "dense"
    masks_gradient = True

    def suits(self, problem: ChainProblem) -> bool:
        """Whether there are kernels for this problem."""
        B, T, L = problem.emissions.shape
        usual = problem.emissions.is_cuda and problem.transitions.ndim < 4
        return usual and 1 < L <= MOST_LABELS and T > 0 and B > 0

    def has_total(self, problem: ChainProblem) -> bool:
        """With one table of transitions, and gradients that can be scaled without losing digits."""
        return problem.transitions.ndim == 2 and problem.emissions.dtype in REAL

    @on_its_device
    def value(
        self, problem: ChainProblem, tags: Tensor | None, keep: bool, *, total: bool = False
    ) -> tuple[Tensor, tuple[Tensor, ...]]:
        """The values [B], or their sum []; with `keep`, the workspace."""
        value, memory = _Pass(problem, tags).forward(keep, total)
        return value, (memory,) if keep else ()

    @on_its_device
    def gradient(
        self, problem: ChainProblem, tags: Tensor | None, upstream: Tensor | None, kept: Sequence[Tensor]
    ) -> Gradient:
        """The gradient by emissions [B, T, L], transitions, start [L] and end [L]."""
        (memory,), run = kept, _Pass(problem, tags)
        upstream = memory.new_ones(()) if upstream is None else upstream
        return run.gradient(memory, run.begins(True, False), upstream)

    @on_its_device
    def total(self, problem: ChainProblem, tags: Tensor | None, share: int = 1) -> tuple[Tensor, Gradient]:
        """Σ_b value_b / share, [], and its gradient: both at once, as launching costs more than computing."""
        if not self.has_total(problem):
            return super().total(problem, tags, share)
        run = _Pass(problem, tags)
        value, memory = run.forward(True, True, share, gradient=True)
        return value, run.gradient(memory, run.begins(True, True), None, share)

    @on_its_device
    def argmax(self, problem: ChainProblem) -> Tensor:
        """Viterbi decoding, with backtracking in parallel over chunks."""
        problem = in_full(plain(problem))
        emissions = problem.emissions
        B, T, L = emissions.shape
        launches = _kernels(L)
        real = working_dtype(emissions.dtype)
        scores = emissions.new_empty((B, T, L), dtype=real)
        labels = emissions.new_empty((B, T), dtype=torch.int64)
        stride = 0 if problem.transitions.ndim == 2 else L * L
        launches.best(
            (B, 1, 1), kind_of(problem, None), (*problem[:6], scores, labels), (T, stride),
            (L, launches.block, REAL[real], launches.warps, launches.lanes, *CHUNKS),
        )  # fmt: skip
        return labels


def in_full(problem: ChainProblem) -> ChainProblem:
    """The same problem with −inf for what its table of bigrams forbids; the device is the current one."""
    _, transitions, start, end, _, _, table = problem
    if table is None:
        return problem
    L = len(transitions)
    full = [
        torch.empty_like(part)
        for part in (transitions, *(transitions[0] if end is None else end for end in (start, end)))
    ]
    kind = (L, *(None if part is None else part.dtype for part in (transitions, start, end)))
    _EXPLICIT(
        (-(-((L + 1) ** 2) // SHOWN), 1, 1), kind, (transitions, start, end, table, *full), (), (L, SHOWN)
    )
    return problem._replace(transitions=full[0], start=full[1], end=full[2], bigrams=None)


def plain(problem: ChainProblem) -> ChainProblem:
    """The same scores, without gaps in memory."""
    for part in problem:
        if part is not None and not part.is_contiguous():
            return ChainProblem(*(part if part is None else part.contiguous() for part in problem))
    return problem


def kind_of(problem: ChainProblem, tags: Tensor | None) -> tuple[Any, ...]:
    """What kernels are compiled for: the number of labels, the types of the scores, and which parts there are."""
    emissions, transitions, start, end, lengths, positions, _ = problem
    return (
        emissions.shape[2],
        emissions.dtype,
        transitions.dtype,
        None if start is None else start.dtype,
        None if end is None else end.dtype,
        lengths is None,
        positions is None,
        tags is None,
    )
