"""The backend for chains with more than 128 labels on a GPU."""

from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

import torch
import triton
from torch import Tensor

from crfkit.nn.backends.base import Gradient
from crfkit.nn.problem.chain import ChainProblem
from crfkit.nn.triton.dense.backend import KernelBackend, kind_of, plain
from crfkit.nn.triton.launch import Launch, n_processors, on_its_device
from crfkit.nn.triton.wide.gradient import wide_gradient_kernel, wide_transitions_kernel
from crfkit.nn.triton.wide.messages import (
    ARRIVALS,
    wide_messages_kernel,
    wide_tables_kernel,
    wide_values_kernel,
)
from crfkit.nn.triton.wide.viterbi import wide_best_kernel, wide_follow_kernel

FEW_LABELS = 128  # up to which the dense backend is faster
MOST_LABELS = 8192
TILES = ((16, 16), (16, 32), (32, 32), (64, 32), (64, 64))  # sequences and labels of a program
BEST_TILES = ((8, 16), (16, 16), (16, 32))
SPLIT = 8  # parts of a product, and warps that make them
ON_CHIP = 16384  # numbers of exp(transitions) that a program can keep
TRANSITIONS = (64, 32, 32)  # a tile of the gradient by transitions, and places that it reads at once
AT_ONCE = 4096  # numbers of a program that goes through rows of labels


@cache
def launch_of(kernel: Any, n_warps: int, waits: bool = False, **options: Any) -> Launch:
    """The launches of a kernel."""
    return Launch(kernel, n_warps, waits=waits, **options)


class WideBackend(KernelBackend):
    """More than 128 labels, one table of transitions, float32 or less."""

    name = "wide"
    uses_up_kept = True  # `gradient` puts its own numbers in the place of messages

    def suits(self, problem: ChainProblem) -> bool:
        """Whether there are kernels for this problem."""
        B, T, L = problem.emissions.shape
        usual = problem.transitions.ndim == 2 and problem.emissions.dtype != torch.float64
        return usual and FEW_LABELS < L <= MOST_LABELS and B > 0 and T > 0

    def has_total(self, problem: ChainProblem) -> bool:
        """For gradients that can be scaled without losing digits."""
        return problem.emissions.dtype == torch.float32

    @on_its_device
    def value(
        self, problem: ChainProblem, tags: Tensor | None, keep: bool, *, total: bool = False
    ) -> tuple[Tensor, tuple[Tensor, ...]]:
        """The values [B], or their sum []; with `keep`, maxima [B, T], counters, messages [2, B, T, L], scale [B, T].

        Behind the counters, with `keep` and `total`, is how often the tags have a transition [L, L].
        """
        problem = plain(problem)
        emissions, _, _, _, lengths, _, _ = problem
        B, T, L = emissions.shape
        kind, block, counted = kind_of(problem, tags), triton.next_power_of_2(L), total and keep
        real: Any = {"dtype": torch.float32, "device": emissions.device}
        counters = torch.zeros(_head(B) + counted * L * L, dtype=torch.int32, device=emissions.device)
        gold = None if tags is None else torch.empty((B, 2), **real)
        maxima, scale = torch.empty((B, T), **real), torch.empty((B, T), **real)
        n_transitions, rows = -(-L * L // AT_ONCE), max(1, AT_ONCE // block)
        launch_of(wide_tables_kernel, 4, num_stages=1)(
            (n_transitions + (0 if tags is None else B) + -(-B * T // rows), 1, 1), (kind, counted),
            (*problem[:6], tags, gold, maxima, counters, counters[_head(B) :] if counted else None), (B, T, n_transitions),
            (L, block, rows),
        )  # fmt: skip
        messages = torch.empty((1 + keep, B, T, L), **real)
        width = max(16, block // SPLIT)
        for tile, waits, grid, turns in _grids(TILES, problem, 1 + keep):
            w, n_pieces = width, 1
            if SPLIT * width * tile[1] > ON_CHIP:
                w, n_pieces = 16, -(-L // (SPLIT * 16))
            launch_of(wide_messages_kernel, SPLIT, waits, num_stages=1)(
                grid, (kind, *tile, waits), (*problem[:6], maxima, counters, messages, scale), (B, T, *turns),
                (L, *tile, SPLIT, w, n_pieces, waits),
            )  # fmt: skip
        values, added = torch.empty(B, **real), torch.empty((), **real) if total else None
        launch_of(wide_values_kernel, 4, num_stages=1)(
            (B, 1, 1),
            (kind, total),
            (lengths, gold, counters, messages, scale, values, added),
            (B, T),
            (L, block),
        )
        return values if added is None else added, (maxima, counters, messages, scale) if keep else ()

    @on_its_device
    def gradient(
        self, problem: ChainProblem, tags: Tensor | None, upstream: Tensor | None, kept: Sequence[Tensor]
    ) -> Gradient:
        """The gradient by emissions [B, T, L], transitions, start [L] and end [L]; what was kept is used up."""
        problem = plain(problem)
        emissions, transitions, start, end, lengths, positions, _ = problem
        B, T, L = emissions.shape
        block = triton.next_power_of_2(L)
        rows = max(1, AT_ONCE // block)
        maxima, counters, messages, scale = kept[:4]
        d_emissions, d_transitions = torch.empty_like(emissions), self._empty_transitions(transitions)
        d_start, d_end = (None if part is None else torch.empty_like(part) for part in (start, end))
        stride = upstream.stride(0) if upstream is not None and upstream.ndim else 0
        kind = (kind_of(problem, tags), None if upstream is None else upstream.dtype)
        launch_of(wide_gradient_kernel, 4, num_stages=1)(
            (-(-B * T // rows), 1, 1), kind,
            (
                emissions, start, end, lengths, positions, tags, maxima, counters, messages, scale, upstream, d_emissions,
            ),
            (B, T, stride), (L, rows, block),
        )  # fmt: skip
        found = (upstream, d_emissions, d_transitions, d_start, d_end)
        self._gradient_by_transitions(problem, tags, kept, kind, stride, found)
        return found[1:]

    def _empty_transitions(self, transitions: Tensor) -> Tensor:
        """Where the gradient by transitions is written."""
        return torch.empty_like(transitions)

    def _gradient_by_transitions(
        self,
        problem: ChainProblem,
        tags: Tensor | None,
        kept: Sequence[Tensor],
        kind: Any,
        stride: int,
        found: Any,
    ) -> None:
        """Write the gradient by transitions and ends; `found` has the upstream gradient, then those by the four scores."""
        _, transitions, _, _, lengths, positions, _ = problem
        B, T, L = problem.emissions.shape
        _, counters, messages, _ = kept
        counts = counters[_head(B) :] if found[0] is None and tags is not None else None
        launch_of(wide_transitions_kernel, 4, num_stages=4)(
            (-(-L // TRANSITIONS[0]) + 1, -(-L // TRANSITIONS[1]), 1), kind,
            (transitions, lengths, positions, tags, counters, counts, messages, *found),
            (B, T, stride), (L, *TRANSITIONS, triton.next_power_of_2(L)),
        )  # fmt: skip

    @on_its_device
    def total(self, problem: ChainProblem, tags: Tensor | None, share: int = 1) -> tuple[Tensor, Gradient]:
        """Σ_b value_b / share, [], and its gradient; transitions of the tags are counted once for all."""
        if tags is None or not self.has_total(problem):
            return super().total(problem, tags, share)
        found, kept = self.value(problem, tags, True, total=True)
        by_scores = self.gradient(problem, tags, None, kept)
        if share != 1:
            factor = found.new_full((), 1 / share)
            self.scale(by_scores, factor)
            found *= factor
        return found, by_scores

    @on_its_device
    def argmax(self, problem: ChainProblem) -> Tensor:
        """Viterbi decoding: best scores with pointers to the label before, then backtracking."""
        problem = plain(problem)
        B, T, L = problem.emissions.shape
        kind, device = kind_of(problem, None), problem.emissions.device
        scores = torch.empty((2, B, L), dtype=torch.float32, device=device)
        pointers = torch.empty((B, T, L), dtype=torch.int16, device=device)
        self._write_pointers(problem, kind, scores, pointers)
        return follow(problem, kind, scores, pointers)

    def _write_pointers(self, problem: ChainProblem, kind: Any, scores: Tensor, pointers: Tensor) -> None:
        """Write the label before each label on the best path to it, and the scores of paths to the last two tokens."""
        B, T, L = problem.emissions.shape
        counters = torch.zeros(ARRIVALS.value + B, dtype=torch.int32, device=scores.device)
        for tile, waits, (n_blocks, _, n_groups), turns in _grids(BEST_TILES, problem, 1):
            launch_of(wide_best_kernel, 4, waits, num_stages=1)(
                (n_blocks, n_groups, 1), (kind, *tile, waits), (*problem[:6], counters, scores, pointers), (B, T, *turns),
                (L, *tile, 32, waits),
            )  # fmt: skip


def follow(problem: ChainProblem, kind: Any, scores: Tensor, pointers: Tensor) -> Tensor:
    """The best label sequence [B, T] by position, from scores [2, B, L] and pointers [B, T, L]."""
    B, T, L = problem.shape
    labels = torch.empty((B, T), dtype=torch.int64, device=scores.device)
    launch_of(wide_follow_kernel, 4, num_stages=1)(
        (B, 1, 1), kind, (problem.lengths, problem.positions, scores, pointers, labels), (B, T),
        (L, max(16, triton.next_power_of_2(L))),
    )  # fmt: skip
    return labels


def _head(B: int) -> int:
    """How many counters there are before those of transitions, which begin where wide loads can."""
    return -(-(ARRIVALS.value + 2 * B) // 4) * 4


def _grids(
    tiles: tuple[tuple[int, int], ...], problem: ChainProblem, directions: int
) -> Iterator[tuple[tuple[int, int], bool, tuple[int, int, int], tuple[int, int, int]]]:
    """The launches of programs that go from token to token together.

    For each: sequences and labels of a program; whether programs wait for each other; the grid, blocks of labels by
    directions by groups of sequences; and the first turn, the turn after the last one, and the first group.
    """
    B, T, L = problem.shape
    (rows, block), n_blocks, per_launch = _tile(tiles, B, L, directions, problem.emissions)
    step = max(per_launch, 1)
    for group in range(0, -(-B // rows), step):
        n_groups = min(step, -(-B // rows) - group)
        turns = [(0, T)] if per_launch else [(turn, turn + 1) for turn in range(T)]
        for first, stop in turns:
            yield (rows, block), per_launch > 0, (n_blocks, directions, n_groups), (first, stop, group)


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
