"""The backend for chains of up to 128 labels on a GPU, with transitions of their own at each position."""

from collections.abc import Sequence

import torch
import triton
from torch import Tensor

from crfkit.nn.backends.base import Backend, Gradient
from crfkit.nn.problem.chain import ChainProblem, working_dtype
from crfkit.nn.problem.gold_score import path_score, sums_at_ends, tags_of_tokens
from crfkit.nn.triton.dense.backend import MOST_LABELS, REAL, kind_of
from crfkit.nn.triton.launch import on_its_device
from crfkit.nn.triton.positional.kernels import position_gradient_kernel, position_messages_kernel
from crfkit.nn.triton.wide.backend import follow, launch_of

FARTHEST = 2**31 - 1  # numbers between transitions in memory that kernels reach with 32 bits


def _block(n_labels: int) -> tuple[int, int]:
    """The labels, padded, and the warps of a program."""
    block = max(16, triton.next_power_of_2(n_labels))
    return block, block // 16


def are_near(transitions: Tensor) -> bool:
    """Whether kernels reach all transitions: one sequence or position further, or L labels."""
    by_row, by_position, by_before, by_after = transitions.stride()
    return max(by_row, by_position, transitions.shape[-1] * max(by_before, by_after)) <= FARTHEST


class PositionalBackend(Backend):
    """Up to 128 labels, transitions of their own at each position."""

    name = "positional"

    def suits(self, problem: ChainProblem) -> bool:
        """Whether there are kernels for this problem."""
        B, T, L = problem.shape
        usual = problem.emissions.is_cuda and problem.transitions.ndim == 4
        return usual and 1 < L <= MOST_LABELS and T > 1 and B > 0 and are_near(problem.transitions)

    @on_its_device
    def value(
        self, problem: ChainProblem, tags: Tensor | None, keep: bool, *, total: bool = False
    ) -> tuple[Tensor, tuple[Tensor, ...]]:
        """The values [B], or their sum []; with `keep`, forward and backward messages [2, B, T, L]."""
        problem = _plain(problem)
        B, T, L = problem.shape
        real, (block, warps) = working_dtype(problem.emissions.dtype), _block(L)
        messages = problem.emissions.new_empty((2, B, T, L), dtype=real) if keep else None
        log_z = problem.emissions.new_empty(B, dtype=torch.float64)
        launch_of(position_messages_kernel, warps)(
            (B, 1 + keep, 1), (kind_of(problem, None), keep, False), (*problem[:6], messages, log_z, None),
            (B, T, *problem.transitions.stride()), (L, block, REAL[real]),
        )  # fmt: skip
        values = log_z if tags is None else _scores(problem, tags) - log_z
        return (values.sum() if total else values).to(real), () if messages is None else (messages,)

    @on_its_device
    def gradient(
        self, problem: ChainProblem, tags: Tensor | None, upstream: Tensor | None, kept: Sequence[Tensor]
    ) -> Gradient:
        """The gradient by emissions [B, T, L], transitions [B, T − 1, L, L], start [L] and end [L]."""
        (messages,), problem = kept, _plain(problem)
        upstream = messages.new_ones(()) if upstream is None else upstream
        B, T, L = problem.shape
        block, warps = _block(L)
        d_emissions, d_transitions = messages.new_empty((B, T, L)), messages.new_empty((B, T - 1, L, L))
        launch_of(position_gradient_kernel, warps)(
            (B, T, 1), (kind_of(problem, tags), upstream.dtype),
            (*problem[:6], tags, messages, upstream, d_emissions, d_transitions),
            (B, T, *problem.transitions.stride(), upstream.stride(0) if upstream.ndim else 0),
            (L, block, REAL[messages.dtype]),
        )  # fmt: skip
        return d_emissions, d_transitions, *sums_at_ends(problem, d_emissions)

    @on_its_device
    def argmax(self, problem: ChainProblem) -> Tensor:
        """Viterbi decoding."""
        problem = _plain(problem)
        B, T, L = problem.shape
        kind, real, (block, warps) = kind_of(problem, None), working_dtype(problem.emissions.dtype), _block(L)
        scores = problem.emissions.new_empty((2, B, L), dtype=real)
        pointers = problem.emissions.new_empty((B, T, L), dtype=torch.int16)
        launch_of(position_messages_kernel, warps)(
            (B, 1, 1), (kind, False, True), (*problem[:6], None, scores, pointers), (B, T, *problem.transitions.stride()),
            (L, block, REAL[real]),
        )  # fmt: skip
        return follow(problem, kind, scores, pointers)


def _scores(problem: ChainProblem, tags: Tensor) -> Tensor:
    """score(tags) [B] in float64; NaN where a label does not exist."""
    labels, L = tags_of_tokens(problem, tags), problem.shape[2]
    wrong = ((labels < 0) | (labels >= L)).any(1)
    return path_score(problem, tags.clamp(0, L - 1)).masked_fill(wrong, torch.nan)


def _plain(problem: ChainProblem) -> ChainProblem:
    """The same scores, without gaps in memory except between the transitions."""
    parts = (part if part is None else part.contiguous() for part in problem)
    return ChainProblem(*parts)._replace(transitions=problem.transitions)
