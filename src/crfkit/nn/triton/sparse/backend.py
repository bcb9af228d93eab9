"""Chains with many labels and few bigrams on a GPU: a value with its messages, its gradient, the best label sequence.

Arcs that do not exist are not looked at, and may have any score. Time and memory go with the bigrams that exist
(`neighbours`), but for the gradient by arcs, which has zeros for the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple

import torch
import triton
from torch import Tensor

from crfkit.nn.backends.base import Backend, Gradient
from crfkit.nn.problem.bigram_tiles import SHORTEST
from crfkit.nn.problem.chain import ChainProblem
from crfkit.nn.triton.dense.backend import kind_of, plain, scale_gradient
from crfkit.nn.triton.launch import Launch, n_processors, on_its_device
from crfkit.nn.triton.sparse.gradient import sparse_arcs_kernel
from crfkit.nn.triton.sparse.messages import sparse_best_kernel, sparse_messages_kernel, sparse_scores_kernel
from crfkit.nn.triton.wide.gradient import wide_gradient_kernel
from crfkit.nn.triton.wide.viterbi import wide_follow_kernel

WARPS, REGISTERS = 16, 128  # of a program that has lists, all that a processor has, and of a thread
MOST_PARTS = 8  # programs that share the lists of a sequence
STEP = 128  # pairs whose scores a program gets
ARCS = (64, 16)  # arcs of a program of their gradient, and places that it reads at once


class Kept(NamedTuple):
    """What the gradient needs of the messages."""

    known: Tensor  # the scores of the tags [B, 2], and room [B, T]
    counters: Tensor  # [2 + 2 B]
    messages: Tensor  # [2, B, T, L]
    scale: Tensor  # [B, T]
    scores: Tensor  # of the lists [2, n_tiles, TILE]


class _Cut(NamedTuple):
    """How the lists of a problem are cut."""

    n_tiles: int
    tile: int  # pairs of a tile
    powers: int  # widths that its lists may have
    block: int  # labels, rounded up to a power of two


@cache
def _launch(kernel: Any, n_warps: int, waits: bool = False) -> Launch:
    options = {"maxnreg": REGISTERS} if n_warps == WARPS else {}
    return Launch(kernel, n_warps, waits=waits, **options)


@cache
def _cut(n_tiles: int, size: int, L: int) -> _Cut:
    block = triton.next_power_of_2(L)
    powers = (max(SHORTEST, block) // SHORTEST).bit_length()
    return _Cut(n_tiles, size * SHORTEST // (SHORTEST + 1), powers, block)


def _parts(n_chains: int, n_tiles: int, device: torch.device) -> int:
    """How many programs share the lists of each of n_chains, all of them being on the device at once."""
    parts, at_once = 1, n_processors(device)
    while 2 * parts <= min(MOST_PARTS, n_tiles) and 2 * parts * n_chains <= at_once:
        parts *= 2
    return parts


class SparseBackend(Backend):
    """Many labels and few bigrams: lists of those that exist, float32 or less."""

    name = "sparse"
    uses_up_kept = True  # `gradient` puts its own numbers in the place of messages

    def __init__(self, tiles: Tensor) -> None:
        """For the tiles of a table, see `bigram_tiles`."""
        self.tiles = tiles

    def _lists(self, problem: ChainProblem) -> tuple[Tensor, _Cut]:
        """The lists of the bigrams that exist."""
        _, rows, size = self.tiles.shape
        return self.tiles, _cut(rows - 1, size, problem.emissions.shape[2])

    def _scores(
        self,
        problem: ChainProblem,
        lists: Tensor,
        cut: _Cut,
        tags: Tensor | None,
        known: Tensor | None = None,
        counters: Tensor | None = None,
    ) -> Tensor:
        """The scores of the lists [2, n_tiles, TILE]; those of the tags become known."""
        B, T, L = problem.emissions.shape
        kind = kind_of(problem, tags)
        scores = torch.empty((2, cut.n_tiles, cut.tile), dtype=torch.float32, device=lists.device)
        _launch(sparse_scores_kernel, 4)(
            (scores.numel() // STEP + (0 if tags is None else B), 1, 1), (kind, cut, counters is None),
            (*problem, tags, lists, scores, known, counters),
            (B, T, cut.n_tiles), (L, *kind[-5:], cut.tile, STEP),
        )  # fmt: skip
        return scores

    @on_its_device
    def value(
        self, problem: ChainProblem, tags: Tensor | None, keep: bool, *, total: bool = False
    ) -> tuple[Tensor, tuple[Tensor, ...]]:
        """score(tags) − log Z, or log Z, [B] or their sum []; and what the gradient will need."""
        problem = plain(problem)
        emissions, _, start, end, lengths, sites, _ = problem
        B, T, L = emissions.shape
        kind, (lists, cut), device = kind_of(problem, tags), self._lists(problem), emissions.device
        parts = _parts((1 + keep) * B, cut.n_tiles, device)
        waits = parts > 1 and emissions.is_cuda
        known = torch.empty(2 * B + B * T, dtype=torch.float32, device=device)
        counters = torch.zeros(2 + 2 * B, dtype=torch.int32, device=device)
        scores = self._scores(problem, lists, cut, tags, known, counters)
        messages = torch.empty((1 + keep, B, T, L), dtype=torch.float32, device=device)
        scale = torch.empty((B, T), dtype=torch.float32, device=device)
        values = torch.empty(B, dtype=torch.float32, device=device)
        added = torch.empty((), dtype=torch.float32, device=device) if total else None
        _launch(sparse_messages_kernel, WARPS, waits)(
            (B * parts, 1 + keep, 1), (kind, cut, total, parts),
            (emissions, start, end, lengths, sites, lists, scores, known, counters, messages, scale, values, added),
            (B, T, cut.n_tiles),
            (L, *kind[-5:], total, cut.block, cut.tile, cut.powers, parts, waits),
        )  # fmt: skip
        kept = Kept(known, counters, messages, scale, scores) if keep else ()
        return values if added is None else added, kept

    @on_its_device
    def gradient(
        self, problem: ChainProblem, tags: Tensor | None, upstream: Tensor | None, kept: Sequence[Tensor]
    ) -> Gradient:
        """The gradient by emissions [B, T, L], arcs, start [L] and end [L]; what was kept is used up."""
        problem = plain(problem)
        emissions, arcs, start, end, lengths, sites, _ = problem
        B, T, L = emissions.shape
        kept = Kept(*kept)
        kind, (lists, cut) = kind_of(problem, tags), self._lists(problem)
        flags, rows, block = kind[-5:], max(1, 4096 // cut.block), cut.block
        d_emissions, d_arcs = torch.empty_like(emissions), torch.zeros_like(arcs)
        d_start = None if start is None else torch.empty_like(start)
        d_end = None if end is None else torch.empty_like(end)
        stride = upstream.stride(0) if upstream is not None and upstream.ndim else 0
        weighted = (kind, cut, None if upstream is None else upstream.dtype)
        *messages, scores = kept
        _launch(wide_gradient_kernel, 4)(
            (-(-B * T // rows), 1, 1), weighted,
            (emissions, start, end, lengths, sites, tags, *messages, upstream, d_emissions),
            (B, T, stride), (L, *flags, rows, block),
        )  # fmt: skip
        _launch(sparse_arcs_kernel, 4)(
            (1 + cut.n_tiles * cut.tile // ARCS[0], 1, 1), weighted,
            (lengths, sites, tags, lists, scores, kept.messages, upstream, d_emissions, d_arcs, d_start, d_end),
            (B, T, cut.n_tiles, stride), (L, *flags[2:], *ARCS, block, cut.tile),
        )  # fmt: skip
        return d_emissions, d_arcs, d_start, d_end

    def has_total(self, problem: ChainProblem) -> bool:
        """For gradients that can be scaled without losing digits."""
        return problem.emissions.dtype == torch.float32

    def scale(self, gradient: Gradient, upstream: Tensor) -> None:
        """Multiply a gradient in place by a number on the device, which is the current one."""
        scale_gradient(gradient, upstream)

    @on_its_device
    def argmax(self, problem: ChainProblem) -> Tensor:
        """The labels of the best label sequence [B, T] by position; −1 at positions that are off."""
        problem = plain(problem)
        emissions, _, start, end, lengths, sites, _ = problem
        B, T, L = emissions.shape
        kind, (lists, cut), device = kind_of(problem, None), self._lists(problem), emissions.device
        block, parts = cut.block, _parts(B, cut.n_tiles, device)
        waits = parts > 1 and emissions.is_cuda
        counters = torch.zeros(B, dtype=torch.int32, device=device)
        scores = self._scores(problem, lists, cut, None)
        ways = torch.empty((2, B, L), dtype=torch.float32, device=device)
        pointers = torch.empty((B, T, L), dtype=torch.int16, device=device)
        labels = torch.empty((B, T), dtype=torch.int64, device=device)
        _launch(sparse_best_kernel, WARPS, waits)(
            (B * parts, 1, 1), (kind, cut, parts),
            (emissions, start, end, lengths, sites, lists, scores, counters, ways, pointers), (B, T, cut.n_tiles),
            (L, *kind[-5:-1], block, cut.tile, cut.powers, parts, waits),
        )  # fmt: skip
        _launch(wide_follow_kernel, 4)(
            (B, 1, 1), kind, (lengths, sites, ways, pointers, labels), (B, T),
            (L, lengths is not None, sites is not None, block),
        )  # fmt: skip
        return labels
