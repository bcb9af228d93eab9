"""Chains with many labels on a GPU: messages by `wide_kernel`, the rest by PyTorch's matrix products."""

from __future__ import annotations

from typing import NamedTuple

import torch
import triton
from torch import Tensor

from crfkit.nn.chain_torch import Expectations, is_safe
from crfkit.nn.gold import add_path, path_score
from crfkit.nn.problem import ChainProblem, alive_sites, site_states, to_positions
from crfkit.nn.wide_kernel import wide_kernel

FEW_LABELS = 128  # up to which `chain_triton` answers
ROWS, BLOCK, STEP = 16, 16, 64  # sequences and labels of a program, labels that it reads at once


class Kept(NamedTuple):
    """What the gradient needs of the messages, at sites."""

    states: Tensor  # [B, T, L] scores, start and end folded in
    weights: Tensor  # [L, L] exp(arcs − peak)
    forward: Tensor  # [B, T, L]
    backward: Tensor  # [B, T, L]
    scale: Tensor  # [B, T]: forward_i = exp(states_i − scale_i) ∘ (forward_{i−1} exp(arcs))
    peak: Tensor  # []


def suits(problem: ChainProblem) -> bool:
    """Whether the kernel answers for this problem: one table of arcs that all exist, float32 or less."""
    B, T, L = problem.shape
    usual = problem.arcs.ndim == 2 and L > FEW_LABELS and problem.emissions.dtype != torch.float64
    return usual and B > 0 and T > 0 and is_safe(problem.arcs)


def value(
    problem: ChainProblem, tags: Tensor | None, keep: bool, *, total: bool = False
) -> tuple[Tensor, Kept | None]:
    """score(tags) − log Z, or log Z, [B] or their sum []; and what the gradient will need."""
    kept = _messages(problem)
    alive = alive_sites(problem)
    lengths = alive.sum(1)
    last = kept.forward.gather(1, (lengths - 1).clamp_min(0)[:, None, None].expand(-1, 1, problem.shape[2]))
    sums = torch.where(alive, kept.scale.double(), 0.0).sum(1) + last.sum((1, 2)).double().log()
    log_z = torch.where(lengths > 0, sums, 0.0)
    values = log_z if tags is None else path_score(problem, tags) - log_z
    return (values.sum() if total else values).float(), kept if keep else None


def gradient(
    problem: ChainProblem, tags: Tensor | None, upstream: Tensor, kept: Kept
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The gradient by emissions [B, T, L], arcs [L, L], start [L] and end [L]."""
    B, _, L = problem.shape
    upstream = upstream.expand(B)
    alive = alive_sites(problem)
    sign = (upstream.float() * (1.0 if tags is None else -1.0))[:, None, None]
    both = torch.where(alive[:, :, None], kept.forward * kept.backward, 0.0)
    inverse = sign / both.sum(2, keepdim=True).clamp_min(1e-37)
    states = both * inverse
    pushed = torch.exp(kept.states - (kept.scale - kept.peak)[:, :, None]) * kept.backward * inverse
    pushed = torch.where(alive[:, 1:, None], pushed[:, 1:], 0.0)
    before = torch.where(alive[:, 1:, None], kept.forward[:, :-1], 0.0)
    arcs = kept.weights * (before.reshape(-1, L).T @ pushed.reshape(-1, L))
    states = to_positions(problem, states)
    if tags is not None:
        add_path(problem, tags, upstream, states, arcs)
    rows = torch.arange(B, device=states.device)
    first, last = torch.zeros_like(rows), (alive.sum(1) - 1).clamp_min(0)
    if problem.sites is not None:
        first, last = problem.sites[rows, first], problem.sites[rows, last]
    return states, arcs, states[rows, first].sum(0), states[rows, last].sum(0)


def expectations(problem: ChainProblem) -> Expectations:
    """log Z and the marginals, the arcs' added up."""
    log_z, kept = value(problem, None, keep=True)
    assert kept is not None
    states, arcs, _, _ = gradient(problem, None, torch.ones_like(log_z), kept)
    return Expectations(log_z.double(), states, arcs)


def _messages(problem: ChainProblem) -> Kept:
    """Forward and backward messages side by side."""
    B, T, L = problem.shape
    states = site_states(problem, torch.float32).contiguous()
    peaks = states.amax(2)
    peaks = torch.where(torch.isinf(peaks), 0.0, peaks)
    peak = problem.arcs.max().float()
    weights = torch.exp(problem.arcs.float() - peak)
    both = torch.stack([weights, weights.T])
    messages = torch.empty((2, B, T, L), dtype=torch.float32, device=states.device)
    scale = torch.empty((B, T), dtype=torch.float32, device=states.device)
    grid = (triton.cdiv(L, BLOCK), 2, triton.cdiv(B, ROWS))
    counters = torch.zeros(2 * grid[2], dtype=torch.int32, device=states.device)
    lengths = alive_sites(problem).sum(1)
    given = (states, peaks, lengths, both, messages, scale, counters, B, T, L)
    together = states.is_cuda and grid[0] * grid[1] * grid[2] <= _processors(states.device)
    for first, stop in [(0, T)] if together else [(turn, turn + 1) for turn in range(T)]:
        wide_kernel[grid](
            *given, first, stop, ROWS=ROWS, BLOCK=BLOCK, STEP=STEP, WAIT=together, num_warps=4, num_stages=1
        )
    scale[:, 1:] += peak
    return Kept(states, weights, messages[0], messages[1], scale, peak)


def _processors(device: torch.device) -> int:
    """How many programs are certain to be on the device at once."""
    return int(torch.cuda.get_device_properties(device).multi_processor_count)
