"""A batch of chains as every path through this room sees it: scores, lengths, and which positions are sites.

Letters: B sequences, T positions, L labels. Sequence b has `lengths[b]` sites; its i-th site is position `sites[b, i]`.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor


class ChainProblem(NamedTuple):
    """The scores of a batch of chains.

    score(y) = start[y_1] + Σ_i emissions[site_i, y_i] + Σ_{i≥2} arcs[y_{i−1}, y_i] + end[y_n]

    With four axes, `arcs[b, t − 1]` holds the arcs into position t.
    """

    emissions: Tensor  # [B, T, L]
    arcs: Tensor  # [L, L], [B, L, L] or [B, T − 1, L, L]
    start: Tensor | None  # [L]
    end: Tensor | None  # [L]
    lengths: Tensor | None  # [B] int64; None: all T
    sites: Tensor | None  # [B, T] int64, a permutation of the positions; None: 0 … T − 1
    bigrams: Tensor | None = (
        None  # bool [L + 1, L + 1]: the arcs and ends that exist, whatever the others score
    )

    @property
    def shape(self) -> tuple[int, int, int]:
        """(B, T, L)."""
        B, T, L = self.emissions.shape
        return B, T, L


def explicit(problem: ChainProblem) -> ChainProblem:
    """The same problem with −inf for arcs and ends that do not exist: all but the kernels for tables want it so."""
    if problem.bigrams is None:
        return problem
    arcs, start, end = constrained(problem.bigrams, problem.arcs, problem.start, problem.end)
    return problem._replace(arcs=arcs, start=start, end=end, bigrams=None)


def constrained(
    table: Tensor | None, arcs: Tensor, start: Tensor | None, end: Tensor | None
) -> tuple[Tensor, Tensor | None, Tensor | None]:
    """The scores of arcs, start and end, with −inf for what the table [L + 1, L + 1] forbids."""
    if table is None:
        return arcs, start, end
    return (torch.where(table[:-1, :-1], arcs, -torch.inf), *constrained_ends(table, arcs, start, end))


def constrained_ends(
    table: Tensor, arcs: Tensor, start: Tensor | None, end: Tensor | None
) -> tuple[Tensor, Tensor]:
    """The scores of start and end, 0 where they are absent, with −inf for what the table forbids."""
    zero = arcs.new_zeros(()) if start is None or end is None else None
    return (
        torch.where(table[-1, :-1], zero if start is None else start, -torch.inf),
        torch.where(table[:-1, -1], zero if end is None else end, -torch.inf),
    )


def sites_of(mask: Tensor) -> tuple[Tensor, Tensor]:
    """The number of kept positions [B], and the positions [B, T] with the kept ones first, in their order."""
    sites = torch.argsort((~mask).to(torch.uint8), dim=1, stable=True)
    return mask.sum(1), sites


def working_dtype(dtype: torch.dtype) -> torch.dtype:
    """The precision that sums are made in: float32 for half precision, else that of the scores."""
    return torch.float32 if dtype in (torch.float16, torch.bfloat16) else dtype


def in_working_precision(problem: ChainProblem) -> ChainProblem:
    """The same problem with emissions and arcs as sums are made of them: what is made in their type is not rounded."""
    dtype = working_dtype(problem.emissions.dtype)
    return problem._replace(emissions=problem.emissions.to(dtype), arcs=problem.arcs.to(dtype))


def alive_sites(problem: ChainProblem) -> Tensor:
    """Which of T places are sites of a sequence: bool [B, T], a prefix of each row."""
    B, T, _ = problem.shape
    places = torch.arange(T, device=problem.emissions.device)
    if problem.lengths is None:
        return torch.ones((B, T), dtype=torch.bool, device=places.device)
    return places < problem.lengths[:, None]


def kept_positions(problem: ChainProblem) -> Tensor:
    """Which positions belong to a sequence: bool [B, T]."""
    return to_positions(problem, alive_sites(problem))


def site_states(problem: ChainProblem, dtype: torch.dtype) -> Tensor:
    """The scores of labels at sites [B, T, L], start and end folded in; 0 at places that are no sites."""
    B, T, L = problem.shape
    states = problem.emissions
    if problem.sites is not None:
        states = states.gather(1, problem.sites[:, :, None].expand(B, T, L))
    states = states.to(dtype)
    if T == 0 or (problem.lengths is None and problem.start is None and problem.end is None):
        return states
    if problem.lengths is None:
        states = states.clone()
    else:
        states = states.masked_fill(~alive_sites(problem)[:, :, None], 0.0)
    if problem.start is not None:
        states[:, 0] += problem.start.to(dtype)
    if problem.end is not None and problem.lengths is None:
        states[:, -1] += problem.end.to(dtype)
    elif problem.end is not None and problem.lengths is not None:
        last = (problem.lengths - 1)[:, None] == torch.arange(T, device=states.device)  # [B, T]
        states = torch.where(last[:, :, None], states + problem.end.to(dtype), states)
    return states


def site_arcs(problem: ChainProblem, dtype: torch.dtype) -> Tensor:
    """The arcs [L, L], [B, L, L] or [B, T − 1, L, L]; with four axes, [b, i − 1] are those into site i."""
    arcs = problem.arcs.to(dtype)
    if arcs.ndim < 4 or problem.sites is None:
        return arcs
    return arcs.gather(1, _arc_places(problem, arcs))


def _arc_places(problem: ChainProblem, arcs: Tensor) -> Tensor:
    """Where the arcs into sites 1 … T − 1 stand: [B, T − 1, L, L]."""
    assert problem.sites is not None
    places = (problem.sites[:, 1:] - 1).clamp_min(0)
    return places[:, :, None, None].expand(arcs.shape)


def compact(problem: ChainProblem) -> tuple[Tensor, Tensor]:
    """States [B, T, L] with start and end folded in, and arcs, at sites, in float64; 0 where nothing comes of them."""
    states, arcs = site_states(problem, torch.float64), site_arcs(problem, torch.float64)
    if problem.lengths is None or arcs.ndim == 2:
        return states, arcs
    used = alive_sites(problem)[:, 1:]  # [B, T − 1]
    used = used[:, :, None, None] if arcs.ndim == 4 else used.any(1)[:, None, None]
    return states, torch.where(used, arcs, 0.0)


def to_positions(problem: ChainProblem, values: Tensor) -> Tensor:
    """Values at sites [B, T, …] moved back to their positions."""
    if problem.sites is None:
        return values
    places = problem.sites.reshape(*problem.sites.shape, *[1] * (values.ndim - 2)).expand(values.shape)
    return torch.zeros_like(values).scatter(1, places, values)


def arcs_to_positions(problem: ChainProblem, values: Tensor) -> Tensor:
    """Values of the arcs into sites [B, T − 1, L, L], 0 where there is no site, moved back to their positions."""
    if problem.sites is None:
        return values
    return torch.zeros_like(values).scatter_add(1, _arc_places(problem, values), values)
