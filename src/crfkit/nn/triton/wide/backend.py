"""Chains with many labels on a GPU: a value with its messages, its gradient, the best label sequence."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple

import torch
import triton
from torch import Tensor

from crfkit.nn.backends.base import Backend, Gradient
from crfkit.nn.problem.chain import ChainProblem
from crfkit.nn.triton.dense.backend import kind_of, plain, scale_gradient
from crfkit.nn.triton.launch import Launch, n_processors, on_its_device
from crfkit.nn.triton.wide.gradient import wide_arcs_kernel, wide_gradient_kernel
from crfkit.nn.triton.wide.messages import wide_messages_kernel, wide_tables_kernel, wide_values_kernel
from crfkit.nn.triton.wide.viterbi import wide_best_kernel, wide_follow_kernel

FEW_LABELS = 128  # up to which `chain_triton` answers
MOST_LABELS = 8192
TILES = ((16, 16), (16, 32), (32, 32), (64, 32), (64, 64))  # sequences and labels of a program
BEST_TILES = ((8, 16), (16, 16), (16, 32))
SPLIT = 8  # parts of a product, and warps that make them
ON_CHIP = 16384  # numbers of exp(arcs) that a program can keep
ARCS = (64, 32, 32)  # a tile of the gradient by arcs, and places that it reads at once


class Kept(NamedTuple):
    """What the gradient needs of the messages."""

    known: Tensor  # see `wide_tables_kernel`
    counters: Tensor  # [2 + 2 B], and behind them, for totals, how often the tags have an arc [L, L]
    messages: Tensor  # [2, B, T, L]
    scale: Tensor  # [B, T]


@cache
def _launch(kernel: Any, n_warps: int, waits: bool = False) -> Launch:
    return Launch(kernel, n_warps, waits=waits, num_stages=4 if kernel is wide_arcs_kernel else 1)


def _head(B: int) -> int:
    """How many counters there are before those of arcs, which begin where wide loads can."""
    return -(-(2 + 2 * B) // 4) * 4


def _messages(
    problem: ChainProblem,
    kind: tuple[Any, ...],
    known: Tensor,
    counters: Tensor,
    messages: Tensor,
    scale: Tensor,
) -> None:
    """Forward messages, and backward ones where there is room for them."""
    B, T, L = problem.emissions.shape
    directions = len(messages)
    (rows, block), n_blocks, per_launch = _tile(TILES, B, L, directions, problem.emissions)
    width = max(16, triton.next_power_of_2(L) // SPLIT)
    n_pieces = 1
    if SPLIT * width * block > ON_CHIP:
        width = 16
        n_pieces = -(-L // (SPLIT * width))
    for group in range(0, -(-B // rows), max(per_launch, 1)):
        n_groups = min(max(per_launch, 1), -(-B // rows) - group)
        turns = [(0, T)] if per_launch else [(turn, turn + 1) for turn in range(T)]
        for first, stop in turns:
            _launch(wide_messages_kernel, SPLIT, per_launch > 0)(
                (n_blocks, directions, n_groups), (kind, rows, block, per_launch > 0),
                (*problem[:6], known, counters, messages, scale), (B, T, first, stop, group),
                (L, *kind[-5:-1], rows, block, SPLIT, width, n_pieces, per_launch > 0),
            )  # fmt: skip


def _tile(
    tiles: tuple[tuple[int, int], ...], B: int, L: int, directions: int, where: Tensor
) -> tuple[tuple[int, int], int, int]:
    """Sequences and labels of a program, blocks of labels, and groups of sequences that go together; 0: none can."""
    at_once = n_processors(where.device)
    for rows, block in tiles:
        n_blocks, n_groups = -(-L // block), -(-B // rows)
        if n_blocks * directions * n_groups <= at_once:
            return (rows, block), n_blocks, n_groups
    return tiles[-1], n_blocks, at_once // (n_blocks * directions)


class WideBackend(Backend):
    """More than 128 labels, one table of transitions, float32 or less."""

    name = "wide"
    uses_up_kept = True  # `gradient` puts its own numbers in the place of messages

    def suits(self, problem: ChainProblem) -> bool:
        """Whether the kernels answer for this problem: one table of arcs, float32 or less."""
        B, T, L = problem.emissions.shape
        usual = (
            problem.arcs.ndim == 2
            and FEW_LABELS < L <= MOST_LABELS
            and problem.emissions.dtype != torch.float64
        )
        return usual and B > 0 and T > 0

    def has_total(self, problem: ChainProblem) -> bool:
        """Whether `total` answers: for gradients that can be scaled without losing digits."""
        return problem.emissions.dtype == torch.float32

    @on_its_device
    def value(
        self, problem: ChainProblem, tags: Tensor | None, keep: bool, *, total: bool = False
    ) -> tuple[Tensor, tuple[Tensor, ...]]:
        """score(tags) − log Z, or log Z, [B] or their sum []; and what the gradient will need."""
        problem = plain(problem)
        emissions, _, _, _, lengths, _, _ = problem
        B, T, L = emissions.shape
        kind = kind_of(problem, tags)
        flags, block, device = kind[-5:], triton.next_power_of_2(L), emissions.device
        counted = total and keep
        counters = torch.zeros(_head(B) + (L * L if counted else 0), dtype=torch.int32, device=device)
        counts = counters[_head(B) :] if counted else None
        known = torch.empty(2 * B + B * T, dtype=torch.float32, device=device)
        n_arcs, rows = -(-L * L // 4096), max(1, 4096 // block)
        n_programs = n_arcs + (0 if tags is None else B) + -(-B * T // rows)
        _launch(wide_tables_kernel, 4)(
            (n_programs, 1, 1), (kind, counted), (*problem[:6], tags, known, counters, counts), (B, T, n_arcs),
            (L, *flags, block, rows),
        )  # fmt: skip
        messages = torch.empty((1 + keep, B, T, L), dtype=torch.float32, device=device)
        scale = torch.empty((B, T), dtype=torch.float32, device=device)
        _messages(problem, kind, known, counters, messages, scale)
        values = torch.empty(B, dtype=torch.float32, device=device)
        added = torch.empty((), dtype=torch.float32, device=device) if total else None
        _launch(wide_values_kernel, 4)(
            (B, 1, 1), (kind, total), (lengths, known, counters, messages, scale, values, added), (B, T),
            (L, lengths is not None, tags is not None, total, block),
        )  # fmt: skip
        kept = Kept(known, counters, messages, scale) if keep else ()
        return values if added is None else added, kept

    @on_its_device
    def gradient(
        self, problem: ChainProblem, tags: Tensor | None, upstream: Tensor | None, kept: Sequence[Tensor]
    ) -> Gradient:
        """The gradient by emissions [B, T, L], arcs, start [L] and end [L]; what was kept is used up."""
        kept, problem = Kept(*kept), plain(problem)
        emissions, arcs, start, end, lengths, sites, _ = problem
        B, T, L = emissions.shape
        kind, block = kind_of(problem, tags), triton.next_power_of_2(L)
        flags, rows = kind[-5:], max(1, 4096 // block)
        d_emissions, d_arcs = torch.empty_like(emissions), torch.empty_like(arcs)
        d_start = None if start is None else torch.empty_like(start)
        d_end = None if end is None else torch.empty_like(end)
        counts = kept.counters[_head(B) :] if upstream is None and tags is not None else None
        stride = upstream.stride(0) if upstream is not None and upstream.ndim else 0
        weighted = (kind, None if upstream is None else upstream.dtype)
        _launch(wide_gradient_kernel, 4)(
            (-(-B * T // rows), 1, 1), weighted, (emissions, start, end, lengths, sites, tags, *kept, upstream, d_emissions),
            (B, T, stride), (L, *flags, rows, block),
        )  # fmt: skip
        _launch(wide_arcs_kernel, 4)(
            (-(-L // ARCS[0]) + 1, -(-L // ARCS[1]), 1), weighted,
            (
                arcs, lengths, sites, tags, kept.counters, counts, kept.messages, upstream, d_emissions, d_arcs, d_start,
                d_end,
            ),
            (B, T, stride), (L, *flags[2:], *ARCS, block),
        )  # fmt: skip
        return d_emissions, d_arcs, d_start, d_end

    @on_its_device
    def total(self, problem: ChainProblem, tags: Tensor | None, share: int = 1) -> tuple[Tensor, Gradient]:
        """Σ_b value_b / share, [], and its gradient; arcs of the tags are counted once for all."""
        if tags is None or not self.has_total(problem):
            return super().total(problem, tags, share)
        found, kept = self.value(problem, tags, True, total=True)
        by_scores = self.gradient(problem, tags, None, kept)
        if share != 1:
            factor = found.new_full((), 1 / share)
            self.scale(by_scores, factor)
            found *= factor
        return found, by_scores

    def scale(self, gradient: Gradient, upstream: Tensor) -> None:
        """Multiply a gradient in place by a number on the device, which is the current one."""
        scale_gradient(gradient, upstream)

    @on_its_device
    def argmax(self, problem: ChainProblem) -> Tensor:
        """The labels of the best label sequence [B, T] by position; −1 at positions that are off."""
        problem = plain(problem)
        emissions, _, _, _, lengths, sites, _ = problem
        B, T, L = emissions.shape
        kind, device = kind_of(problem, None), emissions.device
        (rows, block), n_blocks, per_launch = _tile(BEST_TILES, B, L, 1, emissions)
        counters = torch.zeros(2 + B, dtype=torch.int32, device=device)
        scores = torch.empty((2, B, L), dtype=torch.float32, device=device)
        pointers = torch.empty((B, T, L), dtype=torch.int16, device=device)
        labels = torch.empty((B, T), dtype=torch.int64, device=device)
        for group in range(0, -(-B // rows), max(per_launch, 1)):
            n_groups = min(max(per_launch, 1), -(-B // rows) - group)
            turns = [(0, T)] if per_launch else [(turn, turn + 1) for turn in range(T)]
            for first, stop in turns:
                _launch(wide_best_kernel, 4, per_launch > 0)(
                    (n_blocks, n_groups, 1), (kind, rows, block, per_launch > 0),
                    (*problem[:6], counters, scores, pointers), (B, T, first, stop, group),
                    (L, *kind[-5:-1], rows, block, 32, per_launch > 0),
                )  # fmt: skip
        _launch(wide_follow_kernel, 4)(
            (B, 1, 1), kind, (lengths, sites, scores, pointers, labels), (B, T),
            (L, lengths is not None, sites is not None, triton.next_power_of_2(L)),
        )  # fmt: skip
        return labels
