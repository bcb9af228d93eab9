"""Scores of given label sequences, and which parts they have."""

from typing import NamedTuple

import torch
from torch import Tensor

from crfkit.errors import LabelError
from crfkit.nn.problem.chain import ChainProblem, token_mask, token_positions, transition_positions


def tags_of_tokens(problem: ChainProblem, tags: Tensor) -> Tensor:
    """Labels at positions [B, T] moved to tokens; 0 in the padding."""
    if problem.positions is not None:
        tags = tags.gather(1, problem.positions)
    if problem.lengths is None:
        return tags
    return torch.where(token_mask(problem), tags, 0)


def has_unknown(problem: ChainProblem, tags: Tensor) -> bool:
    """Whether a label at a token is unknown; raises an error for those that do not exist. Reads the values."""
    if tags.numel() == 0:
        return False
    low, high = torch.stack(torch.aminmax(tags_of_tokens(problem, tags))).tolist()
    if high >= problem.shape[2]:
        raise LabelError(f"tags: there is a label {high}, expected ids from 0 to {problem.shape[2] - 1}.")
    return bool(low < 0)


class Term(NamedTuple):
    """sign · (score(tags) − log Z), or sign · log Z without tags: what log-likelihoods are added up from."""

    sign: int
    problem: ChainProblem
    tags: Tensor | None


def likelihood_terms(problem: ChainProblem, tags: Tensor, complete: bool | None) -> list[Term]:
    """The terms for tags [B, T]. Unknown labels make a difference of two log Z; None: look whether there are any."""
    if complete or (complete is None and not has_unknown(problem, tags)):
        return [Term(1, problem, tags)]
    labels = torch.arange(problem.shape[2], device=tags.device)
    return terms_within(problem, (tags[:, :, None] == labels) | (tags < 0)[:, :, None])


def terms_within(problem: ChainProblem, possible: Tensor) -> list[Term]:
    """The terms for all label sequences within sets of labels [B, T, L]."""
    within = problem._replace(emissions=problem.emissions.masked_fill(~possible, -torch.inf))
    return [Term(1, within, None), Term(-1, problem, None)]


def path_score(problem: ChainProblem, tags: Tensor) -> Tensor:
    """score(y) [B] in float64 of labels at positions [B, T]; differentiable."""
    B, T, _ = problem.shape
    if T == 0:
        return torch.zeros(B, dtype=torch.float64, device=problem.emissions.device)
    labels, is_token = tags_of_tokens(problem, tags), token_mask(problem)
    rows = torch.arange(B, device=tags.device)
    total = problem.emissions[rows[:, None], token_positions(problem), labels].double()  # [B, T]
    total = torch.where(is_token, total, 0.0).sum(1)
    total = total + _ends(problem, labels, is_token)
    if T > 1:
        transitions = _transition_scores(problem, labels, rows)
        total = total + torch.where(is_token[:, 1:], transitions.double(), 0.0).sum(1)
    return total


def _ends(problem: ChainProblem, labels: Tensor, is_token: Tensor) -> Tensor:
    """start[y_1] + end[y_n] [B], 0 for an empty sequence."""
    total = torch.zeros(len(labels), dtype=torch.float64, device=labels.device)
    if problem.start is not None:
        total = total + torch.where(is_token[:, 0], problem.start[labels[:, 0]].double(), 0.0)
    if problem.end is not None:
        last = labels.gather(1, (is_token.sum(1, keepdim=True) - 1).clamp_min(0))[:, 0]
        total = total + torch.where(is_token[:, 0], problem.end[last].double(), 0.0)
    return total


def _transition_scores(problem: ChainProblem, labels: Tensor, rows: Tensor) -> Tensor:
    """The scores of the transitions into tokens 1 … T − 1, [B, T − 1]."""
    before, after, transitions = labels[:, :-1], labels[:, 1:], problem.transitions
    if transitions.ndim == 2:
        return transitions[before, after]
    if transitions.ndim == 3:
        return transitions[rows[:, None], before, after]
    return transitions[rows[:, None], transition_positions(problem), before, after]


def add_path(
    problem: ChainProblem, tags: Tensor, weights: Tensor, emissions: Tensor, transitions: Tensor
) -> None:
    """Add weight_b [B] to the parts that the labels have: to emissions [B, T, L] and to transitions in their own shape."""
    B, T, L = problem.shape
    labels, is_token = tags_of_tokens(problem, tags), token_mask(problem)
    rows = torch.arange(B, device=tags.device)[:, None]
    parts = torch.where(is_token, weights[:, None].to(emissions.dtype), 0.0)  # [B, T]
    place = (rows * T + token_positions(problem)) * L + labels
    emissions.view(-1).index_add_(0, place.reshape(-1), parts.reshape(-1))
    if T > 1:
        place = labels[:, :-1] * L + labels[:, 1:]
        if transitions.ndim == 3:
            place = place + rows * (L * L)
        elif transitions.ndim == 4:
            place = place + (rows * (T - 1) + transition_positions(problem)) * (L * L)
        transitions.view(-1).index_add_(0, place.reshape(-1), parts[:, 1:].reshape(-1).to(transitions.dtype))


def sums_at_ends(problem: ChainProblem, emissions: Tensor) -> tuple[Tensor | None, Tensor | None]:
    """The gradient by start and end: the sums of that by emissions [B, T, L] over first and last tokens."""
    B, T, L = problem.shape

    def summed(end: Tensor | None, last: bool) -> Tensor | None:
        if end is None:
            return None
        if T == 0:
            return torch.zeros_like(end)
        token = (token_mask(problem).sum(1) - 1).clamp_min(0) * last  # [B]
        place = token_positions(problem).gather(1, token[:, None])
        return emissions.gather(1, place[:, :, None].expand(B, 1, L))[:, 0].sum(0).to(end.dtype)

    return summed(problem.start, False), summed(problem.end, True)
