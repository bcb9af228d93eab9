"""Chains of up to 128 labels on a GPU: a value with its messages, its gradient, the best label sequence."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
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
from crfkit.nn.triton.dense.tables import tables_kernel
from crfkit.nn.triton.dense.viterbi import best_kernel
from crfkit.nn.triton.launch import Launch, addresses_of, on_its_device

MOST_LABELS = 128
BUSY = 528  # programs that keep a large device busy
CHUNKS = 16, 8  # of a sequence that are followed back at once, and sites behind one from which it is followed
SCALED = 4096  # numbers that a program multiplies at once
REAL = {torch.float64: tl.float64, torch.float32: tl.float32}  # the types that sums are made in
SHOWN = 1024  # numbers that a program makes explicit
ADDED = 16, 128  # numbers of a program that adds up parts, and parts that it reads at once


class Kept(NamedTuple):
    """What the gradient needs of the messages."""

    tables: Tensor  # of the arcs, see `tables_kernel`
    messages: Tensor  # forward [B, T, L], backward [B, T, L] and scale [B, T], one after the other


class _Shape(NamedTuple):
    """How programs share the work on BLOCK labels."""

    block: int  # labels, padded
    warps: int  # that share the arcs
    lanes: int  # threads that share a column of them
    step: int  # sites a turn of the gradient's kernel
    gradient_warps: int


class _Launches(NamedTuple):
    """The kernels for one shape."""

    tables: Launch
    messages: Launch
    gradient: Launch
    many_gradients: Launch  # for programs enough to keep a device busy with two warps each
    sums: Launch
    best: Launch


@cache
def _shape(n_labels: int) -> _Shape:
    block = max(16, triton.next_power_of_2(n_labels))
    warps, lanes = {16: (1, 2), 32: (1, 2), 64: (2, 2), 128: (4, 2)}[block]
    step, gradient_warps = (16, 8) if block == 128 else (32, 4)
    return _Shape(block, warps, lanes, step, gradient_warps)


@cache
def _launches(shape: _Shape) -> _Launches:
    # registers, for four programs at once: most of them just read rows
    most = 128 if shape.block < 128 else None
    return _Launches(
        Launch(tables_kernel, 4, maxnreg=most),
        Launch(messages_kernel, shape.warps),
        Launch(gradient_kernel, shape.gradient_warps, num_stages=1),
        Launch(gradient_kernel, 2, num_stages=1),
        Launch(sums_kernel, 4),
        Launch(best_kernel, shape.warps),
    )


@cache
def _prepared(n_labels: int) -> tuple[_Shape, _Launches]:
    """Both for a number of labels."""
    shape = _shape(n_labels)
    return shape, _launches(shape)


def _aligned(n: int) -> int:
    """n numbers, and as many more as it takes to begin the next ones where wide loads can."""
    return -(-n // 16) * 16


def _chunks(B: int, T: int, step: int) -> tuple[int, int]:
    """Into how many chunks the gradient's kernel cuts sequences, and the sites of one."""
    n_chunks = max(1, min(BUSY // B, -(-T // (2 * step))))
    chunk = -(-T // (n_chunks * step)) * step
    return -(-T // chunk), chunk


def _kind_of_sums(given: ChainProblem) -> tuple[Any, ...]:
    """What the kernel that adds up parts of gradients is compiled for."""
    emissions, arcs, start, end, _, _, table = given
    ends = (None if part is None else part.dtype for part in (start, end))
    return emissions.shape[2], emissions.dtype, arcs.dtype, *ends, table is None


def in_full(problem: ChainProblem) -> ChainProblem:
    """The same problem with −inf for arcs and ends that its table of bigrams forbids; the device is the current one."""
    _, arcs, start, end, _, _, table = problem
    if table is None:
        return problem
    L = len(arcs)
    full = (
        torch.empty_like(arcs),
        *(torch.empty_like(arcs[0] if part is None else part) for part in (start, end)),
    )
    kind = (L, *(None if part is None else part.dtype for part in (arcs, start, end)))
    _EXPLICIT((-(-((L + 1) ** 2) // SHOWN), 1, 1), kind, (arcs, start, end, table, *full), (), (L, SHOWN))
    return problem._replace(arcs=full[0], start=full[1], end=full[2], bigrams=None)


def plain(problem: ChainProblem) -> ChainProblem:
    """The same scores, without gaps in memory."""
    for part in problem:
        if part is not None and not part.is_contiguous():
            return ChainProblem(*(part if part is None else part.contiguous() for part in problem))
    return problem


def kind_of(problem: ChainProblem, tags: Tensor | None) -> tuple[Any, ...]:
    """What kernels are compiled for: labels, types of the scores, and which there are (start, end, lengths, sites, tags)."""
    emissions, arcs, start, end, lengths, sites, _ = problem
    return (
        emissions.shape[2],
        emissions.dtype,
        arcs.dtype,
        None if start is None else start.dtype,
        None if end is None else end.dtype,
        start is not None,
        end is not None,
        lengths is not None,
        sites is not None,
        tags is not None,
    )


_SCALE = Launch(scale_kernel, 4)
_EXPLICIT = Launch(explicit_kernel, 4)


def scale_gradient(gradient: Gradient, upstream: Tensor) -> None:
    """Multiply a gradient in place by a number on the device, which is the current one."""
    d_emissions, d_arcs, d_start, d_end = gradient
    size, L = d_emissions.numel(), len(d_arcs)
    kind = (L, *(None if part is None else part.dtype for part in gradient), upstream.dtype)
    grid = (min(2 * BUSY, -(-size // SCALED)), 1, 1)
    _SCALE(grid, kind, (d_emissions, d_arcs, d_start, d_end, upstream), (size,), (L, SCALED))


class DenseBackend(Backend):
    """Up to 128 labels, transitions shared by all positions of a sequence."""

    name = "dense"
    masks_gradient = True

    def suits(self, problem: ChainProblem) -> bool:
        """Whether the kernels answer for this problem."""
        B, T, L = problem.emissions.shape
        return (
            problem.emissions.is_cuda and problem.arcs.ndim < 4 and 1 < L <= MOST_LABELS and T > 0 and B > 0
        )

    def has_total(self, problem: ChainProblem) -> bool:
        """Whether `total` answers: one table of arcs, and gradients that can be scaled without losing digits."""
        return problem.arcs.ndim == 2 and problem.emissions.dtype in REAL

    @on_its_device
    def value(
        self, problem: ChainProblem, tags: Tensor | None, keep: bool, *, total: bool = False
    ) -> tuple[Tensor, tuple[Tensor, ...]]:
        """score(tags) − log Z, or log Z, [B] or their sum []; and what the gradient will need."""
        problem = in_full(plain(problem))
        emissions, arcs, start, end, lengths, sites, _ = problem
        B, T, L = emissions.shape
        shape, kind, real = _shape(L), kind_of(problem, tags), working_dtype(emissions.dtype)
        launches, flags = _launches(shape), kind[-5:]
        n_tables = 1 if arcs.ndim == 2 else B
        tables = emissions.new_empty(n_tables * (4 * shape.block**2 + 16) + 3 * B + 1 + B * T, dtype=real)
        rows = 4096 // shape.block
        n_programs = n_tables + (0 if tags is None else B) + -(-B * T // rows)
        layout = (shape.block, REAL[real], shape.warps, shape.lanes)
        launches.tables(
            (n_programs, 1, 1), kind, (emissions, arcs, start, end, lengths, sites, tags, tables), (B, T, n_tables),
            (L, *flags, shape.block, rows, *layout[1:]),
        )  # fmt: skip
        messages = emissions.new_empty(B * T * (2 * L + 1), dtype=real) if keep else None
        values = emissions.new_empty(B, dtype=real)
        added = emissions.new_empty((), dtype=real) if total else None
        launches.messages(
            (B, 1 + keep, 1), (kind, keep, total),
            (emissions, start, end, lengths, sites, tables, tables if messages is None else messages, values, added),
            (B, T, n_tables, 1), (L, *flags, keep, total, *layout),
        )  # fmt: skip
        return values if added is None else added, () if messages is None else Kept(tables, messages)

    @on_its_device
    def gradient(
        self, problem: ChainProblem, tags: Tensor | None, upstream: Tensor | None, kept: Sequence[Tensor]
    ) -> Gradient:
        """The gradient by emissions [B, T, L], arcs, start [L] and end [L], for what comes back to each value, or to all."""
        kept = Kept(*kept)
        if upstream is None:
            upstream = kept.messages.new_ones(())
        given = plain(problem)
        emissions, arcs, start, end, lengths, sites, _ = problem = in_full(given)
        B, T, L = emissions.shape
        shape, kind, real = _shape(L), kind_of(problem, tags), kept.messages.dtype
        n_chunks, chunk = _chunks(B, T, shape.step)
        launches, shared = _launches(shape), arcs.ndim == 2
        d_emissions = torch.empty_like(emissions)
        sums = emissions.new_empty((B, n_chunks, L + 2, L), dtype=real)
        launches.gradient(
            (B, n_chunks, 1), (kind, upstream.dtype),
            (emissions, end, lengths, sites, tags, *kept, upstream, d_emissions, sums),
            (B, T, int(not shared), n_chunks, chunk, upstream.stride(0) if upstream.ndim else 0, 1),
            (L, *kind[-4:], shape.block, shape.step, REAL[real], real == torch.float32),
        )  # fmt: skip
        if not shared:
            added = sums.sum(1)  # [B, L + 2, L]
            if lengths is not None:  # the arcs of sequences that have none may be no numbers
                added[:, :L].masked_fill_((lengths < 2)[:, None, None], 0.0)
            by_ends = ((start, added[:, L]), (end, added[:, L + 1]))
            return d_emissions, added[:, :L], *(None if part is None else by.sum(0) for part, by in by_ends)
        d_arcs = torch.empty_like(arcs)
        d_start, d_end = (None if part is None else torch.empty_like(part) for part in given[2:4])
        launches.sums(
            (-(-(L + 2) * L // ADDED[0]), 1, 1), _kind_of_sums(given), (sums, d_arcs, d_start, d_end, given.bigrams),
            (B * n_chunks,), (L, *ADDED),
        )  # fmt: skip
        return d_emissions, d_arcs, d_start, d_end

    @on_its_device
    def total(self, problem: ChainProblem, tags: Tensor | None, share: int = 1) -> tuple[Tensor, Gradient]:
        """Σ_b value_b / share, [], and its gradient: both at once, as launching costs more than computing."""
        if tags is None or not self.has_total(problem):
            return super().total(problem, tags, share)
        given = plain(problem)
        emissions, arcs, start, end, lengths, sites, _ = problem = in_full(given)
        B, T, L = emissions.shape
        kind, real, (shape, launches) = kind_of(problem, tags), emissions.dtype, _prepared(L)
        block, warps, lanes, step, _ = shape
        n_chunks, chunk = _chunks(B, T, step)
        tables = _aligned(B * T * (2 * L + 1))  # where these begin in a workspace that has the messages first
        sums = tables + _aligned(4 * block * block + 17 + 3 * B + B * T)
        values = sums + _aligned(B * n_chunks * (L + 2) * L)
        work = torch.empty(values + B, dtype=real, device=emissions.device)
        scores = [emissions, arcs, start, end, lengths, sites, tags]
        at_emissions, at_arcs, *others = addresses_of(scores)  # start, end, lengths, sites, tags
        base, width = work.data_ptr(), work.element_size()
        of_tables, of_sums, of_values = base + width * tables, base + width * sums, base + width * values
        rows, flags, layout = 4096 // block, kind[-5:], (REAL[real], warps, lanes)
        launches.tables.at(
            (1 + B - (-B * T // rows), 1, 1), kind, [at_emissions, at_arcs, *others, of_tables],
            lambda: (*scores, work[tables:]), (B, T, 1), (L, *flags, block, rows, *layout),
        )  # fmt: skip
        found = torch.empty((), dtype=real, device=emissions.device)  # the device works by now
        launches.messages.at(
            (B, 2, 1), (kind, True, True), [at_emissions, *others[:4], of_tables, base, of_values, found.data_ptr()],
            lambda: (emissions, start, end, lengths, sites, work[tables:], work, work[values:], found),
            (B, T, 1, share), (L, *flags, True, True, block, *layout),
        )  # fmt: skip
        d_emissions, d_arcs = torch.empty_like(emissions), torch.empty_like(arcs)
        d_start = None if given.start is None else torch.empty_like(given.start)
        d_end = None if given.end is None else torch.empty_like(given.end)
        kernel = launches.many_gradients if B * n_chunks >= BUSY // 2 and block == 64 else launches.gradient
        kernel.at(
            (B, n_chunks, 1), (kind, None), [at_emissions, *others[1:], of_tables, base, 0, d_emissions.data_ptr(), of_sums],
            lambda: (emissions, end, lengths, sites, tags, work[tables:], work, None, d_emissions, work[sums:]),
            (B, T, 0, n_chunks, chunk, 0, share), (L, *flags[1:], block, step, REAL[real], real == torch.float32),
        )  # fmt: skip
        parts = (d_arcs, d_start, d_end)
        launches.sums.at(
            (-(-(L + 2) * L // ADDED[0]), 1, 1), _kind_of_sums(given), [of_sums, *addresses_of((*parts, given.bigrams))],
            lambda: (work[sums:], *parts, given.bigrams), (B * n_chunks,), (L, *ADDED),
        )  # fmt: skip
        return found, (d_emissions, *parts)

    def scale(self, gradient: Gradient, upstream: Tensor) -> None:
        """Multiply a gradient in place by a number on the device, which is the current one."""
        scale_gradient(gradient, upstream)

    @on_its_device
    def argmax(self, problem: ChainProblem) -> Tensor:
        """The labels of the best label sequence [B, T] by position; −1 at positions that are off."""
        problem = in_full(plain(problem))
        emissions = problem.emissions
        B, T, L = emissions.shape
        shape, kind, real = _shape(L), kind_of(problem, None), working_dtype(emissions.dtype)
        scores = emissions.new_empty((B, T, L), dtype=real)
        labels = emissions.new_empty((B, T), dtype=torch.int64)
        stride = 0 if problem.arcs.ndim == 2 else L * L
        _launches(shape).best(
            (B, 1, 1), kind, (*problem[:6], scores, labels), (T, stride),
            (L, *kind[-5:-1], shape.block, REAL[real], shape.warps, shape.lanes, *CHUNKS),
        )  # fmt: skip
        return labels
