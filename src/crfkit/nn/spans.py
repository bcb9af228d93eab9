"""Exact probabilities of spans under a chain, for a batch on any device.

A chain is a Markov process given its scores. With the labels of positions read as spans (`crfkit.structures.SpanLabels`),
the span (s, e, c) is there if a label of the type c begins one at s, each next label up to e − 1 continues it, and the one
at e does not:

    begins_s(b)  = Σ_{a: b does not continue a} P(y_{s−1} = a, y_s = b),        P(y_0 = b) at the first position
    goes_t(a, b) = P(y_{t+1} = b | y_t = a) where b continues a, else 0
    stops_t(a)   = Σ_{b: b does not continue a} P(y_{t+1} = b | y_t = a),       1 at the last position
    P(s, e, c)   = begins_s goes_s … goes_{e−2} stops_{e−1}                     over the labels of the type c

Nothing is subtracted. In float64. Letters: B sequences, T tokens, L labels.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from crfkit.structures import SpanLabels


class SpanSteps(NamedTuple):
    """The probabilities that spans are made of."""

    begins: Tensor  # [B, T, L], 0 for labels outside of all spans, and in the padding
    goes: Tensor  # [B, T − 1, L, L]
    stops: Tensor  # [B, T, L]
    types: Tensor  # [L] int64; −1: outside of all spans


def span_steps(labels: SpanLabels, marginals: Tensor, pairs: Tensor, is_token: Tensor) -> SpanSteps:
    """From P(y_t) [B, T, L], P(y_t, y_{t+1}) [B, T − 1, L, L], and which places are tokens [B, T]."""
    device = marginals.device
    types = torch.from_numpy(labels.type_of).to(device).long()
    goes_on, follows = (torch.from_numpy(part).to(device) for part in (labels.goes_on, labels.follows))
    same = (types[:, None] == types) & (types >= 0)
    continues = same & goes_on[:, None] & follows
    begins = marginals * is_token[:, :, None] * (types >= 0)
    begins[:, 1:] = (pairs * ~continues).sum(2) * is_token[:, 1:, None] * (types >= 0)
    given = pairs / marginals[:, :-1, :, None].clamp_min(torch.finfo(torch.float64).tiny)
    linked = is_token[:, 1:, None]
    stops = torch.ones_like(marginals)
    stops[:, :-1] = torch.where(linked, (given * ~continues).sum(3), 1.0)
    return SpanSteps(begins, torch.where(linked[..., None], given * continues, 0.0), stops, types)


def probabilities_of(steps: SpanSteps, spans: Tensor, kept: Tensor) -> Tensor:
    """The probabilities [n] of spans [n, 4]: sequence, start, end, type; `kept` [B, T] are the unmasked positions."""
    (B, T), device = kept.shape, kept.device
    row, start, end, kind = spans.to(device, torch.int64).unbind(1)
    known = (row >= 0) & (row < B) & (start >= 0) & (start < end) & (end <= T)
    if kept.numel() == 0 or len(spans) == 0:
        return torch.zeros(len(spans), dtype=torch.float64, device=device)
    row, start, last = (torch.where(known, part, 0) for part in (row, start, end - 1))
    known = known & kept[row, start] & kept[row, last]
    token = kept.long().cumsum(1) - 1
    start, last = (torch.where(known, token[row, part], 0) for part in (start, last))
    found = torch.where(steps.types == kind[:, None], steps.begins[row, start], 0.0)  # [n, L]
    for k in range(int((last - start).max())):
        going = start + k < last
        moved = (found[:, :, None] * steps.goes[row, torch.where(going, start + k, 0)]).sum(1)
        found = torch.where(going[:, None], moved, found)
    return torch.where(known, (found * steps.stops[row, last]).sum(1), 0.0)


def likely(steps: SpanSteps, positions: Tensor, threshold: float) -> tuple[Tensor, Tensor]:
    """All spans of probability `threshold` or more: [n, 4] sequence, start, end, type, in order; probabilities [n].

    All begins are followed together, length by length, until none of them reaches the threshold any more. `positions`
    [B, T] are those of the tokens.
    """
    B, T, _ = steps.begins.shape
    n_types = int(steps.types.max()) + 1
    of_type = (steps.types[:, None] == torch.arange(n_types, device=positions.device)).double()  # [L, C]
    spans, found = [positions.new_zeros((0, 4))], [steps.begins.new_zeros(0)]
    mass = steps.begins  # [B, T − k, L]: of spans from each begin on, at their last label
    for k in range(T if B else 0):
        by_type = (mass * steps.stops[:, k:]) @ of_type  # [B, T − k, C]
        row, start, kind = torch.nonzero(by_type >= threshold, as_tuple=True)
        spans.append(torch.stack([row, positions[row, start], positions[row, start + k] + 1, kind], 1))
        found.append(by_type[row, start, kind])
        mass = (mass[:, : T - k - 1, None] @ steps.goes[:, k:])[:, :, 0]
        if not bool((mass @ of_type >= threshold).any()):
            break
    order = in_order(torch.cat(spans), T, n_types)
    return torch.cat(spans)[order], torch.cat(found)[order]


def in_order(spans: Tensor, n_positions: int, n_types: int) -> Tensor:
    """The order of spans [n, 4] by sequence, start, end and type."""
    row, start, end, kind = spans.unbind(1)
    return torch.argsort(((row * (n_positions + 1) + start) * (n_positions + 1) + end) * n_types + kind)
