"""The backend for chains with many labels and few allowed bigrams on a GPU.

Forbidden transitions are not read, and may have any score. Time and memory are proportional to the allowed bigrams
(`bigram_tiles`), except for the gradient by transitions, which has zeros for the others.
"""

from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple

import torch
import triton
from torch import Tensor

from crfkit.nn.backends.base import Backend, Gradient
from crfkit.nn.problem.bigram_tiles import SHORTEST
from crfkit.nn.problem.chain import ChainProblem
from crfkit.nn.triton.dense.backend import kind_of, plain
from crfkit.nn.triton.launch import n_processors, on_its_device
from crfkit.nn.triton.sparse.gradient import sparse_transitions_kernel
from crfkit.nn.triton.sparse.messages import sparse_best_kernel, sparse_messages_kernel, sparse_scores_kernel
from crfkit.nn.triton.wide.backend import WideBackend, launch_of
from crfkit.nn.triton.wide.messages import ARRIVALS

WARPS, REGISTERS = 16, 128  # of a program that has lists, all that a processor has, and of a thread
MOST_PARTS = 8  # programs that share the lists of a sequence
STEP = 128  # pairs whose scores a program gets
TRANSITIONS = (64, 16)  # transitions of a program of their gradient, and places that it reads at once


class _Cut(NamedTuple):
    """How the lists of a problem are cut."""

    n_tiles: int
    tile: int  # pairs of a tile
    powers: int  # widths that its lists may have
    block: int  # labels, rounded up to a power of two


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


class SparseBackend(WideBackend):
    """Many labels and few bigrams: lists of those allowed, float32 or less."""

    name = "sparse"

    def __init__(self, tiles: Tensor) -> None:
        """For the tiles of a table, see `bigram_tiles`."""
        self.tiles = tiles

    def _lists(self, problem: ChainProblem) -> tuple[Tensor, _Cut]:
        """The lists of the allowed bigrams."""
        _, rows, size = self.tiles.shape
        return self.tiles, _cut(rows - 1, size, problem.emissions.shape[2])

    def _scores(
        self, problem: ChainProblem, tags: Tensor | None, gold: Tensor | None, counters: Tensor | None
    ) -> Tensor:
        """The scores of the lists [2, n_tiles, TILE]; those of the tags are written to `gold`."""
        B, T, L = problem.emissions.shape
        lists, cut = self._lists(problem)
        scores = torch.empty((2, cut.n_tiles, cut.tile), dtype=torch.float32, device=lists.device)
        launch_of(sparse_scores_kernel, 4)(
            (scores.numel() // STEP + (0 if tags is None else B), 1, 1),
            (kind_of(problem, tags), cut, counters is None),
            (*problem, tags, lists, scores, gold, counters), (B, T, cut.n_tiles), (L, cut.tile, STEP),
        )  # fmt: skip
        return scores

    @on_its_device
    def value(
        self, problem: ChainProblem, tags: Tensor | None, keep: bool, *, total: bool = False
    ) -> tuple[Tensor, tuple[Tensor, ...]]:
        """The values [B], or their sum []; with `keep`, as the wide backend, and the scores of the lists."""
        problem = plain(problem)
        emissions, _, start, end, lengths, positions, _ = problem
        B, T, L = emissions.shape
        (lists, cut), device = self._lists(problem), emissions.device
        parts = _parts((1 + keep) * B, cut.n_tiles, device)
        waits = parts > 1 and emissions.is_cuda
        real: Any = {"dtype": torch.float32, "device": device}
        gold = None if tags is None else torch.empty((B, 2), **real)
        counters = torch.zeros(ARRIVALS.value + 2 * B, dtype=torch.int32, device=device)
        scores = self._scores(problem, tags, gold, counters)
        messages, scale = torch.empty((1 + keep, B, T, L), **real), torch.empty((B, T), **real)
        values, added = torch.empty(B, **real), torch.empty((), **real) if total else None
        launch_of(sparse_messages_kernel, WARPS, waits, maxnreg=REGISTERS)(
            (B * parts, 1 + keep, 1), (kind_of(problem, tags), cut, total, parts),
            (emissions, start, end, lengths, positions, lists, scores, gold, counters, messages, scale, values, added),
            (B, T, cut.n_tiles), (L, cut.block, cut.tile, cut.powers, parts, waits),
        )  # fmt: skip
        # the maxima of emissions are not used: messages are logarithms
        kept = (scale, counters, messages, scale, scores) if keep else ()
        return values if added is None else added, kept

    def _empty_transitions(self, transitions: Tensor) -> Tensor:
        return torch.zeros_like(transitions)

    def _gradient_by_transitions(
        self,
        problem: ChainProblem,
        tags: Tensor | None,
        kept: Sequence[Tensor],
        kind: Any,
        stride: int,
        found: Any,
    ) -> None:
        B, T, L = problem.emissions.shape
        (lists, cut), (_, _, messages, _, scores) = self._lists(problem), kept
        launch_of(sparse_transitions_kernel, 4)(
            (1 + cut.n_tiles * cut.tile // TRANSITIONS[0], 1, 1), (kind, cut),
            (problem.lengths, problem.positions, tags, lists, scores, messages, *found),
            (B, T, cut.n_tiles, stride), (L, *TRANSITIONS, cut.block, cut.tile),
        )  # fmt: skip

    def total(self, problem: ChainProblem, tags: Tensor | None, share: int = 1) -> tuple[Tensor, Gradient]:
        """Σ_b value_b / share, [], and its gradient."""
        return Backend.total(self, problem, tags, share)

    def _write_pointers(self, problem: ChainProblem, kind: Any, scores: Tensor, pointers: Tensor) -> None:
        emissions, _, start, end, lengths, positions, _ = problem
        B, T, L = emissions.shape
        lists, cut = self._lists(problem)
        parts = _parts(B, cut.n_tiles, emissions.device)
        waits = parts > 1 and emissions.is_cuda
        counters = torch.zeros(B, dtype=torch.int32, device=emissions.device)
        launch_of(sparse_best_kernel, WARPS, waits, maxnreg=REGISTERS)(
            (B * parts, 1, 1), (kind, cut, parts),
            (
                emissions, start, end, lengths, positions, lists, self._scores(problem, None, None, None), counters, scores,
                pointers,
            ),
            (B, T, cut.n_tiles), (L, cut.block, cut.tile, cut.powers, parts, waits),
        )  # fmt: skip
