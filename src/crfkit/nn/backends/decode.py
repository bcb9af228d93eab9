"""Single label sequences of a batch of chains: the best, the k best, and samples, in plain PyTorch.

Every function works on a compact problem: states [B, T, L] with start and end folded in, arcs [L, L], [B, L, L] or
[B, T − 1, L, L], and which places are sites, alive [B, T].
"""

from __future__ import annotations

import torch
from torch import Tensor

NOTHING = -1  # the label of a position that is no site


def _at(arcs: Tensor, i: int) -> Tensor:
    """The arcs out of site i: [L, L] or [B, L, L]."""
    return arcs[:, i] if arcs.ndim == 4 else arcs


def viterbi(states: Tensor, arcs: Tensor, alive: Tensor) -> Tensor:
    """The labels of the best label sequence [B, T]; among equals the lower label, at the last site first."""
    B, T, L = states.shape
    if T == 0:
        return alive.long()
    score, pointers = states[:, 0], []
    identity = torch.arange(L, device=states.device).expand(B, L)
    for i in range(1, T):
        top, before = (score[:, :, None] + _at(arcs, i - 1)).max(1)
        going = alive[:, i, None]
        top = top + states[:, i]
        top = top - top.amax(1, keepdim=True).clamp_min(torch.finfo(top.dtype).min)
        score = torch.where(going, top, score)
        pointers.append(torch.where(going, before, identity))
    label = score.argmax(1, keepdim=True)
    labels = [label]
    for before in reversed(pointers):
        label = before.gather(1, label)
        labels.append(label)
    possible = score.amax(1, keepdim=True) > -torch.inf
    return torch.where(alive & possible, torch.cat(labels[::-1], 1), NOTHING)


def k_best(states: Tensor, arcs: Tensor, alive: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """The scores of the k best label sequences [B, k], best first, and their labels [B, k, T].

    All are distinct; where fewer than k exist, the others have the score −inf.
    """
    B, T, L = states.shape
    if T == 0:
        scores = states.new_full((B, k), -torch.inf)
        scores[:, 0] = 0
        return scores, states.new_zeros((B, k, 0), dtype=torch.int64)
    kept = states[:, 0, None, :]  # [B, paths, L]: the best ways to each label
    pointers: list[Tensor] = []  # [B, paths, L]: path · L + label before
    for i in range(1, T):
        paths = kept.shape[1]
        reached = kept[:, :, :, None] + _at(arcs, i - 1).reshape(-1, 1, L, L)  # [B, paths, L, L]
        new, before = reached.reshape(B, paths * L, L).topk(min(k, paths * L), dim=1)
        new = new + states[:, i, None]
        going = alive[:, i, None, None]
        stay = torch.arange(paths * L, device=states.device).reshape(1, paths, L).expand(B, paths, L)
        extra = new.shape[1] - paths
        kept = torch.nn.functional.pad(kept, (0, 0, 0, extra), value=-torch.inf)
        stay = torch.nn.functional.pad(stay, (0, 0, 0, extra))
        kept = torch.where(going, new, kept)
        pointers.append(torch.where(going, before, stay))
    return _ends_of(kept, pointers, alive, k)


def _ends_of(kept: Tensor, pointers: list[Tensor], alive: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """The k best of all last labels, and the ways to them."""
    B, paths, L = kept.shape
    scores, place = kept.reshape(B, paths * L).topk(min(k, paths * L), dim=1)  # [B, k]
    empty = ~alive[:, :1].expand_as(scores)
    first = torch.arange(scores.shape[1], device=kept.device) == 0
    scores = torch.where(empty, torch.where(first, 0.0, -torch.inf).to(scores.dtype), scores)
    labels = [place % L]
    for before in reversed(pointers):
        place = before.flatten(1).gather(1, place)
        labels.append(place % L)
    found = torch.stack(labels[::-1], 2)  # [B, k, T]
    found = torch.where(alive[:, None, :] & (scores > -torch.inf)[:, :, None], found, NOTHING)
    missing = k - scores.shape[1]
    scores = torch.nn.functional.pad(scores, (0, missing), value=-torch.inf)
    return scores, torch.nn.functional.pad(found, (0, 0, 0, missing), value=NOTHING)


def sample(states: Tensor, arcs: Tensor, alive: Tensor, n: int, generator: torch.Generator | None) -> Tensor:
    """n independent label sequences [n, B, T], by draws from the last site to the first."""
    B, T, L = states.shape
    if T == 0:
        return alive.long().expand(n, B, 0)
    forward = [states[:, 0]]
    for i in range(1, T):
        reached = torch.logsumexp(forward[-1][:, :, None] + _at(arcs, i - 1), 1) + states[:, i]
        forward.append(torch.where(alive[:, i, None], reached, forward[-1]))
    label = _drawn(forward[-1].expand(n, B, L), generator)
    labels = [label]
    rows = torch.arange(B, device=states.device).expand(n, B)
    for i in range(T - 1, 0, -1):
        into = _at(arcs, i - 1).mT  # [L, L] or [B, L, L]: row = label after
        column = into[label] if into.ndim == 2 else into[rows, label]  # [n, B, L]
        drawn = _drawn(forward[i - 1] + column, generator)
        label = torch.where(alive[:, i], drawn, label)
        labels.append(label)
    possible = forward[-1].amax(1, keepdim=True) > -torch.inf
    return torch.where(alive & possible, torch.stack(labels[::-1], 2), NOTHING)


def _drawn(scores: Tensor, generator: torch.Generator | None) -> Tensor:
    """One label [n, B] for each row of scores [n, B, L], with probability ∝ exp(score): the largest of score + noise."""
    noise = torch.empty(scores.shape, dtype=scores.dtype, device=scores.device)
    noise.exponential_(generator=generator)
    return (scores - noise.log()).argmax(2)
