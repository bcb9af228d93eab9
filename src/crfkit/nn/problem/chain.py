"""A batch of chains as every backend sees it: scores, lengths, and the positions of the tokens.

Masked positions are removed: the others are the tokens of a sequence, which become adjacent.

Letters: B sequences, T positions, L labels. Sequence b has `lengths[b]` tokens; its i-th token is at `positions[b, i]`.
"""

from typing import NamedTuple

import torch
from torch import Tensor


class ChainProblem(NamedTuple):
    """The scores of a batch of chains.

    score(y) = start[y_1] + Σ_i emissions[positions_i, y_i] + Σ_{i≥2} transitions[y_{i−1}, y_i] + end[y_n]

    With four axes, `transitions[b, t − 1]` holds the transitions into position t.
    """

    emissions: Tensor  # [B, T, L]
    transitions: Tensor  # [L, L], [B, L, L] or [B, T − 1, L, L]
    start: Tensor | None  # [L]
    end: Tensor | None  # [L]
    lengths: Tensor | None  # [B] int64; None: all T
    positions: (
        Tensor | None
    )  # [B, T] int64: those of the tokens in order, then the masked ones; None: 0 … T − 1
    # bool [L + 1, L + 1], START last row, END last column: allowed transitions and ends; scores of others are ignored
    bigrams: Tensor | None = None

    @property
    def shape(self) -> tuple[int, int, int]:
        """(B, T, L)."""
        B, T, L = self.emissions.shape
        return B, T, L


def explicit(problem: ChainProblem) -> ChainProblem:
    """The same problem with −inf for forbidden transitions and ends, as most backends take it."""
    if problem.bigrams is None:
        return problem
    transitions, start, end = constrain(problem.bigrams, problem.transitions, problem.start, problem.end)
    return problem._replace(transitions=transitions, start=start, end=end, bigrams=None)


def constrain(
    table: Tensor | None, transitions: Tensor, start: Tensor | None, end: Tensor | None
) -> tuple[Tensor, Tensor | None, Tensor | None]:
    """The scores of transitions, start and end, with −inf for what the table [L + 1, L + 1] forbids."""
    if table is None:
        return transitions, start, end
    return (
        torch.where(table[:-1, :-1], transitions, -torch.inf),
        *constrain_ends(table, transitions, start, end),
    )


def constrain_ends(
    table: Tensor, transitions: Tensor, start: Tensor | None, end: Tensor | None
) -> tuple[Tensor, Tensor]:
    """The scores of start and end, 0 where they are absent, with −inf for what the table forbids."""
    zero = transitions.new_zeros(()) if start is None or end is None else None
    return (
        torch.where(table[-1, :-1], zero if start is None else start, -torch.inf),
        torch.where(table[:-1, -1], zero if end is None else end, -torch.inf),
    )


def tokens_first(mask: Tensor) -> tuple[Tensor, Tensor]:
    """The number of kept positions [B], and the positions [B, T] with the kept ones first, in their order."""
    positions = torch.argsort((~mask).to(torch.uint8), dim=1, stable=True)
    return mask.sum(1), positions


def working_dtype(dtype: torch.dtype) -> torch.dtype:
    """The precision that sums are made in: float32 for half precision, else that of the scores."""
    return torch.float32 if dtype in (torch.float16, torch.bfloat16) else dtype


def in_working_precision(problem: ChainProblem) -> ChainProblem:
    """The same problem with scores in the precision of the sums, so that gradients in their type are not rounded."""
    dtype = working_dtype(problem.emissions.dtype)
    return problem._replace(emissions=problem.emissions.to(dtype), transitions=problem.transitions.to(dtype))


def token_mask(problem: ChainProblem) -> Tensor:
    """Which of T places are tokens of a sequence: bool [B, T], a prefix of each row."""
    B, T, _ = problem.shape
    places = torch.arange(T, device=problem.emissions.device)
    if problem.lengths is None:
        return torch.ones((B, T), dtype=torch.bool, device=places.device)
    return places < problem.lengths[:, None]


def kept_positions(problem: ChainProblem) -> Tensor:
    """Which positions belong to a sequence: bool [B, T]."""
    return to_positions(problem, token_mask(problem))


def token_emissions(problem: ChainProblem, dtype: torch.dtype) -> Tensor:
    """The scores of labels at tokens [B, T, L], start and end folded in; 0 in the padding."""
    B, T, L = problem.shape
    emissions = problem.emissions
    if problem.positions is not None:
        emissions = emissions.gather(1, problem.positions[:, :, None].expand(B, T, L))
    emissions = emissions.to(dtype)
    if T == 0 or (problem.lengths is None and problem.start is None and problem.end is None):
        return emissions
    if problem.lengths is None:
        emissions = emissions.clone()
    else:
        emissions = emissions.masked_fill(~token_mask(problem)[:, :, None], 0.0)
    if problem.start is not None:
        emissions[:, 0] += problem.start.to(dtype)
    if problem.end is not None and problem.lengths is None:
        emissions[:, -1] += problem.end.to(dtype)
    elif problem.end is not None and problem.lengths is not None:
        last = (problem.lengths - 1)[:, None] == torch.arange(T, device=emissions.device)  # [B, T]
        emissions = torch.where(last[:, :, None], emissions + problem.end.to(dtype), emissions)
    return emissions


def token_transitions(problem: ChainProblem, dtype: torch.dtype) -> Tensor:
    """The transitions [L, L], [B, L, L] or [B, T − 1, L, L]; with four axes, [b, i − 1] are those into token i."""
    transitions = problem.transitions.to(dtype)
    if transitions.ndim < 4 or problem.positions is None:
        return transitions
    return transitions.gather(1, transition_positions(problem)[:, :, None, None].expand(transitions.shape))


def token_positions(problem: ChainProblem) -> Tensor:
    """The positions of the tokens, then the masked ones [B, T]."""
    B, T, _ = problem.shape
    if problem.positions is not None:
        return problem.positions
    return torch.arange(T, device=problem.emissions.device).expand(B, T)


def transition_positions(problem: ChainProblem) -> Tensor:
    """Where the transitions into tokens 1 … T − 1 stand among those of all positions: [B, T − 1]."""
    return (token_positions(problem)[:, 1:] - 1).clamp_min(0)


def compact(problem: ChainProblem) -> tuple[Tensor, Tensor]:
    """Emissions [B, T, L] with start and end folded in, and transitions, of tokens, in float64; 0 in the padding."""
    emissions = token_emissions(problem, torch.float64)
    transitions = token_transitions(problem, torch.float64)
    if problem.lengths is None or transitions.ndim == 2:
        return emissions, transitions
    used = token_mask(problem)[:, 1:]  # [B, T − 1]
    used = used[:, :, None, None] if transitions.ndim == 4 else used.any(1)[:, None, None]
    return emissions, torch.where(used, transitions, 0.0)


def compact_problem(problem: ChainProblem) -> ChainProblem:
    """The same chains without masked positions, in float64; start and end are folded in."""
    return ChainProblem(*compact(problem), None, None, problem.lengths, None)


def to_positions(problem: ChainProblem, values: Tensor) -> Tensor:
    """Values at tokens [B, T, …] moved back to their positions."""
    if problem.positions is None:
        return values
    places = problem.positions.reshape(*problem.positions.shape, *[1] * (values.ndim - 2)).expand(
        values.shape
    )
    return torch.zeros_like(values).scatter(1, places, values)


def transitions_to_positions(problem: ChainProblem, values: Tensor) -> Tensor:
    """Values of the transitions into tokens [B, T − 1, L, L], 0 in the padding, moved back to their positions."""
    if problem.positions is None:
        return values
    places = transition_positions(problem)[:, :, None, None].expand(values.shape)
    return torch.zeros_like(values).scatter_add(1, places, values)
