"""Scores of given label sequences, and which parts they have."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from crfkit.nn.problem.chain import ChainProblem, alive_sites


def tags_at_sites(problem: ChainProblem, tags: Tensor) -> Tensor:
    """Labels at positions [B, T] moved to sites; 0 at places that are no sites."""
    if problem.sites is not None:
        tags = tags.gather(1, problem.sites)
    if problem.lengths is None:
        return tags
    return torch.where(alive_sites(problem), tags, 0)


def has_unknown(problem: ChainProblem, tags: Tensor) -> bool:
    """Whether a label at a site is unknown; refuses those that do not exist. Looks at the values."""
    if tags.numel() == 0:
        return False
    low, high = torch.stack(torch.aminmax(tags_at_sites(problem, tags))).tolist()
    if high >= problem.shape[2]:
        raise ValueError(f"tags: there is a label {high}, expected ids from 0 to {problem.shape[2] - 1}.")
    return bool(low < 0)


def labels_within(tags: Tensor, n_labels: int) -> Tensor:
    """Which labels agree with the tags [B, T]: bools [B, T, L], all of them where a tag is negative."""
    return (tags[:, :, None] == torch.arange(n_labels, device=tags.device)) | (tags < 0)[:, :, None]


class Term(NamedTuple):
    """sign · (score(tags) − log Z), or sign · log Z without tags: what log-likelihoods are added up from."""

    sign: int
    problem: ChainProblem
    tags: Tensor | None


def likelihood_terms(problem: ChainProblem, tags: Tensor, complete: bool | None) -> list[Term]:
    """The terms for tags [B, T]. Unknown labels make a difference of two log Z; None: look whether there are any."""
    if complete or (complete is None and not has_unknown(problem, tags)):
        return [Term(1, problem, tags)]
    return terms_within(problem, labels_within(tags, problem.shape[2]))


def terms_within(problem: ChainProblem, possible: Tensor) -> list[Term]:
    """The terms for all label sequences within sets of labels [B, T, L]."""
    within = problem._replace(emissions=problem.emissions.masked_fill(~possible, -torch.inf))
    return [Term(1, within, None), Term(-1, problem, None)]


def path_score(problem: ChainProblem, tags: Tensor) -> Tensor:
    """score(y) [B] in float64 of labels at positions [B, T]; differentiable."""
    B, T, _ = problem.shape
    if T == 0:
        return torch.zeros(B, dtype=torch.float64, device=problem.emissions.device)
    labels, alive = tags_at_sites(problem, tags), alive_sites(problem)
    positions = problem.sites if problem.sites is not None else torch.arange(T, device=tags.device)
    rows = torch.arange(B, device=tags.device)
    total = problem.emissions[rows[:, None], positions, labels].double()  # [B, T]
    total = torch.where(alive, total, 0.0).sum(1)
    total = total + _ends(problem, labels, alive)
    if T > 1:
        arcs = _arc_scores(problem, labels, rows)
        total = total + torch.where(alive[:, 1:], arcs.double(), 0.0).sum(1)
    return total


def _ends(problem: ChainProblem, labels: Tensor, alive: Tensor) -> Tensor:
    """start[y_1] + end[y_n] [B], 0 for an empty sequence."""
    total = torch.zeros(len(labels), dtype=torch.float64, device=labels.device)
    if problem.start is not None:
        total = total + torch.where(alive[:, 0], problem.start[labels[:, 0]].double(), 0.0)
    if problem.end is not None:
        last = labels.gather(1, (alive.sum(1, keepdim=True) - 1).clamp_min(0))[:, 0]
        total = total + torch.where(alive[:, 0], problem.end[last].double(), 0.0)
    return total


def _arc_scores(problem: ChainProblem, labels: Tensor, rows: Tensor) -> Tensor:
    """The scores of the arcs into sites 1 … T − 1, [B, T − 1]."""
    before, after, arcs = labels[:, :-1], labels[:, 1:], problem.arcs
    if arcs.ndim == 2:
        return arcs[before, after]
    if arcs.ndim == 3:
        return arcs[rows[:, None], before, after]
    return arcs[rows[:, None], arc_positions(problem), before, after]


def arc_positions(problem: ChainProblem) -> Tensor:
    """Where the arcs into sites 1 … T − 1 stand among those of all positions: [T − 1] or [B, T − 1]."""
    if problem.sites is not None:
        return (problem.sites[:, 1:] - 1).clamp_min(0)
    return torch.arange(problem.shape[1] - 1, device=problem.emissions.device)


def add_path(problem: ChainProblem, tags: Tensor, weights: Tensor, states: Tensor, arcs: Tensor) -> None:
    """Add weight_b [B] to the parts that the labels have: to states [B, T, L] and to arcs in their own shape."""
    B, T, L = problem.shape
    labels, alive = tags_at_sites(problem, tags), alive_sites(problem)
    positions = (
        problem.sites if problem.sites is not None else torch.arange(T, device=tags.device).expand(B, T)
    )
    rows = torch.arange(B, device=tags.device)[:, None]
    parts = torch.where(alive, weights[:, None].to(states.dtype), 0.0)  # [B, T]
    states.view(-1).index_add_(0, ((rows * T + positions) * L + labels).reshape(-1), parts.reshape(-1))
    if T > 1:
        place = labels[:, :-1] * L + labels[:, 1:]
        if arcs.ndim == 3:
            place = place + rows * (L * L)
        elif arcs.ndim == 4:
            place = place + (rows * (T - 1) + arc_positions(problem)) * (L * L)
        arcs.view(-1).index_add_(0, place.reshape(-1), parts[:, 1:].reshape(-1).to(arcs.dtype))


def sums_at_ends(problem: ChainProblem, states: Tensor) -> tuple[Tensor | None, Tensor | None]:
    """What the gradient at the first sites and at the last ones [B, T, L] makes of start and end."""
    B, T, L = problem.shape

    def summed(end: Tensor | None, last: bool) -> Tensor | None:
        if end is None:
            return None
        if T == 0:
            return torch.zeros_like(end)
        place = (
            alive_sites(problem).sum(1) - 1 if last else torch.zeros(B, dtype=torch.int64, device=end.device)
        )
        place = place.clamp_min(0)
        if problem.sites is not None:
            place = problem.sites.gather(1, place[:, None])[:, 0]
        return states.gather(1, place[:, None, None].expand(B, 1, L))[:, 0].sum(0).to(end.dtype)

    return summed(problem.start, False), summed(problem.end, True)
