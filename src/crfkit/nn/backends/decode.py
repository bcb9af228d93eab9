"""Single label sequences of a batch of chains: the best, the k best, and samples, in plain PyTorch.

Every function works on a compact problem: emissions [B, T, L] with start and end folded in, transitions [L, L], [B,
L, L] or [B, T − 1, L, L], and is_token [B, T], False in the padding.
"""

import torch
from torch import Tensor

NOTHING = -1  # the label of a masked position


def transitions_from(transitions: Tensor, i: int) -> Tensor:
    """The transitions out of token i: [L, L] or [B, L, L]."""
    return transitions[:, i] if transitions.ndim == 4 else transitions


def viterbi(emissions: Tensor, transitions: Tensor, is_token: Tensor) -> Tensor:
    """The labels of the best label sequence [B, T]; among equals the lower label, at the last token first."""
    B, T, L = emissions.shape
    if T == 0:
        return is_token.long()
    score, pointers = emissions[:, 0], []
    identity = torch.arange(L, device=emissions.device).expand(B, L)
    for i in range(1, T):
        top, before = (score[:, :, None] + transitions_from(transitions, i - 1)).max(1)
        going = is_token[:, i, None]
        top = top + emissions[:, i]
        top = top - top.amax(1, keepdim=True).clamp_min(torch.finfo(top.dtype).min)
        score = torch.where(going, top, score)
        pointers.append(torch.where(going, before, identity))
    label = score.argmax(1, keepdim=True)
    labels = [label]
    for before in reversed(pointers):
        label = before.gather(1, label)
        labels.append(label)
    possible = score.amax(1, keepdim=True) > -torch.inf
    return torch.where(is_token & possible, torch.cat(labels[::-1], 1), NOTHING)


def k_best(emissions: Tensor, transitions: Tensor, is_token: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """The scores of the k best label sequences [B, k], best first, and their labels [B, k, T].

    All are distinct; where fewer than k exist, the others have the score −inf.
    """
    B, T, L = emissions.shape
    if T == 0:
        scores = emissions.new_full((B, k), -torch.inf)
        scores[:, 0] = 0
        return scores, emissions.new_zeros((B, k, 0), dtype=torch.int64)
    kept = emissions[:, 0, None, :]  # [B, paths, L]: the best paths to each label
    pointers: list[Tensor] = []  # [B, paths, L]: path · L + label before
    for i in range(1, T):
        paths = kept.shape[1]
        reached = kept[:, :, :, None] + transitions_from(transitions, i - 1).reshape(
            -1, 1, L, L
        )  # [B, paths, L, L]
        new, before = reached.reshape(B, paths * L, L).topk(min(k, paths * L), dim=1)
        new = new + emissions[:, i, None]
        going = is_token[:, i, None, None]
        stay = torch.arange(paths * L, device=emissions.device).reshape(1, paths, L).expand(B, paths, L)
        extra = new.shape[1] - paths
        kept = torch.nn.functional.pad(kept, (0, 0, 0, extra), value=-torch.inf)
        stay = torch.nn.functional.pad(stay, (0, 0, 0, extra))
        kept = torch.where(going, new, kept)
        pointers.append(torch.where(going, before, stay))
    return _ends_of(kept, pointers, is_token, k)


def _ends_of(kept: Tensor, pointers: list[Tensor], is_token: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """The k best of all last labels, and the paths to them."""
    B, paths, L = kept.shape
    scores, place = kept.reshape(B, paths * L).topk(min(k, paths * L), dim=1)  # [B, k]
    empty = ~is_token[:, :1].expand_as(scores)
    first = torch.arange(scores.shape[1], device=kept.device) == 0
    scores = torch.where(empty, torch.where(first, 0.0, -torch.inf).to(scores.dtype), scores)
    labels = [place % L]
    for before in reversed(pointers):
        place = before.flatten(1).gather(1, place)
        labels.append(place % L)
    found = torch.stack(labels[::-1], 2)  # [B, k, T]
    found = torch.where(is_token[:, None, :] & (scores > -torch.inf)[:, :, None], found, NOTHING)
    missing = k - scores.shape[1]
    scores = torch.nn.functional.pad(scores, (0, missing), value=-torch.inf)
    return scores, torch.nn.functional.pad(found, (0, 0, 0, missing), value=NOTHING)


def sample(
    emissions: Tensor, transitions: Tensor, is_token: Tensor, n: int, generator: torch.Generator | None
) -> Tensor:
    """n independent label sequences [n, B, T], by draws from the last token to the first."""
    B, T, L = emissions.shape
    if T == 0:
        return is_token.long().expand(n, B, 0)
    forward = [emissions[:, 0]]
    for i in range(1, T):
        reached = (
            torch.logsumexp(forward[-1][:, :, None] + transitions_from(transitions, i - 1), 1)
            + emissions[:, i]
        )
        forward.append(torch.where(is_token[:, i, None], reached, forward[-1]))
    label = draw(forward[-1].expand(n, B, L), generator)
    labels = [label]
    rows = torch.arange(B, device=emissions.device).expand(n, B)
    for i in range(T - 1, 0, -1):
        into = transitions_from(transitions, i - 1).mT  # [L, L] or [B, L, L]: row = label after
        column = into[label] if into.ndim == 2 else into[rows, label]  # [n, B, L]
        drawn = draw(forward[i - 1] + column, generator)
        label = torch.where(is_token[:, i], drawn, label)
        labels.append(label)
    possible = forward[-1].amax(1, keepdim=True) > -torch.inf
    return torch.where(is_token & possible, torch.stack(labels[::-1], 2), NOTHING)


def draw(scores: Tensor, generator: torch.Generator | None) -> Tensor:
    """An index of the last axis, with a probability ∝ exp(score): the largest of score + noise."""
    noise = torch.empty(scores.shape, dtype=scores.dtype, device=scores.device)
    noise.exponential_(generator=generator)
    return (scores - noise.log()).argmax(-1)
