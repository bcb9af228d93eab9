"""Sums over the segmentations of a batch of semi-Markov chains in plain PyTorch: log space, float64, any device.

Segments and transitions are summed in turn, T · (K · L + L²) operations for a sequence. With boundaries t = 0 … n,

    begins_t(c) = Σ_c' ends_t(c') exp(transition(c', c)),                  begins_0 = exp(start)
    ends_t(c)   = Σ_k begins_{t−k}(c) exp(score of the segment (t − k, t, c))
    Z = Σ_c ends_n(c) exp(end(c))

The open segments of a boundary are a window [B, K, L] by age, which moves on by one place and takes in one emission at
every position, so no difference of long sums of emissions is ever taken. Backward messages are the forward messages of
the reversed problem. From both come the probabilities of all parts (`Expectations`):

    P(s, e, c) = begins_s(c) exp(score(s, e, c)) after_e(c) / Z
    P(label c at position t) = Σ_{s≤t} P(begins at s) − Σ_{e≤t} P(ends at e)
"""

from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import Tensor

from crfkit.nn.backends.torch_chain import finite, log_sum
from crfkit.nn.problem.segments import SegmentProblem, flip, in_double, inside, lengths_of, reverse

NUMBERS_AT_ONCE = 2**20  # of the transitions of some positions


class Messages(NamedTuple):
    """Logarithms [B, T, L]: `begins` at boundary t of position t, `ends` at boundary t + 1, without and with last scores."""

    begins: Tensor
    ends: Tensor


class SegmentExpectations(NamedTuple):
    """log Z [B] and the probabilities of all parts, or their expected numbers in each sequence, in float64."""

    log_partition: Tensor
    emissions: Tensor  # [B, T, L]: a segment with this label covers the position
    durations: Tensor  # [B, K, L]
    transitions: Tensor  # [B, L, L]
    start: Tensor  # [B, L]
    end: Tensor  # [B, L]
    first: Tensor  # [B, T, L]: a segment begins here
    last: Tensor  # [B, T, L]: one ends here
    segments: Tensor | None  # [B, T, K, L], where these were asked for


def windows(problem: SegmentProblem) -> Iterator[tuple[Tensor, Messages]]:
    """For each position, the logarithms [B, K, L] of the segments that end there, by length, and the messages [B, L]."""
    B, T, K, L = problem.shape
    begins = problem.emissions.new_zeros((B, L)) if problem.start is None else problem.start
    open_segments = problem.emissions.new_full((B, K, L), -torch.inf)
    ages = torch.arange(K, device=begins.device)
    for t in range(T):
        fresh = begins if problem.first is None else begins + problem.first[:, t]
        open_segments = torch.cat([fresh[:, None], open_segments[:, :-1]], 1) + problem.emissions[:, t, None]
        closed = open_segments + problem.durations
        if problem.segments is not None:
            closed = closed + problem.segments[:, (t - ages).clamp_min(0), ages]
        if problem.last is not None:
            closed = closed + problem.last[:, t, None]
        ends = log_sum(closed)
        yield closed, Messages(begins, ends)
        begins = log_sum(ends[:, :, None] + problem.transitions)


def messages_of(problem: SegmentProblem) -> Messages:
    """The forward messages of a problem `in_double`."""
    B, T, _, L = problem.shape
    if T == 0:
        nothing = problem.emissions.new_zeros((B, 0, L))
        return Messages(nothing, nothing)
    found = [messages for _, messages in windows(problem)]
    return Messages(*(torch.stack(part, 1) for part in zip(*found, strict=True)))


def log_partition_from(problem: SegmentProblem, ends: Tensor) -> Tensor:
    """log Z [B]; 0 for an empty sequence."""
    n = lengths_of(problem)
    if ends.shape[1] == 0:
        return problem.emissions.sum((1, 2))
    last = ends.gather(1, (n - 1).clamp_min(0)[:, None, None].expand(-1, 1, ends.shape[2]))[:, 0]
    return torch.where(n > 0, log_sum(last if problem.end is None else last + problem.end), 0.0)


def differentiable_log_partition(problem: SegmentProblem) -> Tensor:
    """log Z [B] in float64 through operations that PyTorch differentiates as often as it likes."""
    problem = in_double(problem)
    return log_partition_from(problem, messages_of(problem).ends)


class Summed(NamedTuple):
    """What all probabilities are computed from: the messages of both directions at the same places, and log Z [B]."""

    problem: SegmentProblem  # in float64
    begins: Tensor  # [B, T, L]: of boundary t at t
    ends: Tensor  # of boundary t + 1 at t
    from_begin: Tensor  # all that may follow a begin at boundary t, the segment itself included
    after_end: Tensor  # all that may follow an end at boundary t + 1
    log_partition: Tensor  # [B]

    @property
    def shift(self) -> Tensor:
        """What is added to logarithms [B, T, L] of weights to make them probabilities: −inf in the padding."""
        possible = inside(self.problem) & (self.log_partition != -torch.inf)[:, None]
        return torch.where(possible, -finite(self.log_partition)[:, None], -torch.inf)[:, :, None]


def summed(problem: SegmentProblem) -> Summed:
    """Messages in both directions, without a graph."""
    with torch.no_grad():
        exact = in_double(problem)
        forward = messages_of(exact)
        backward = messages_of(reverse(exact))
        from_begin, after_end = flip(exact, backward.ends), flip(exact, backward.begins)
        return Summed(exact, *forward, from_begin, after_end, log_partition_from(exact, forward.ends))


def by_length(sums: Summed) -> Iterator[Tensor]:
    """The probability of each segment [B, T, L] by its begin, for the lengths 1 … K in turn."""
    problem = sums.problem
    B, T, K, L = problem.shape
    weight = sums.begins + sums.shift
    weight = weight if problem.first is None else weight + problem.first
    after = sums.after_end if problem.last is None else sums.after_end + problem.last
    after = torch.where(inside(problem)[:, :, None], after, -torch.inf)
    for k in range(min(K, T)):
        reached = T - k  # begins from which a segment of this length ends within T positions
        weight = weight[:, :reached] + problem.emissions[:, k:]
        scores = weight + after[:, k:] + problem.durations[:, k, None]
        if problem.segments is not None:
            scores = scores + problem.segments[:, :reached, k]
        yield torch.nn.functional.pad(torch.exp(scores), (0, 0, 0, k))
    for _ in range(min(K, T), K):
        yield torch.zeros_like(weight).new_zeros((B, T, L))


def span_scores(sums: Summed, row: Tensor, start: Tensor, last: Tensor, label: Tensor) -> Tensor:
    """log P [n] of the segments from position `start` to position `last`."""
    problem, k = sums.problem, last - start
    never = torch.isinf(problem.emissions)
    total = torch.cumsum(torch.where(never, 0.0, problem.emissions), 1)
    holes = torch.cumsum(never.long(), 1)
    own = problem.emissions[row, start, label]
    scores = own + total[row, last, label] - total[row, start, label]
    scores = torch.where(holes[row, last, label] > holes[row, start, label], -torch.inf, scores)
    scores = scores + sums.begins[row, start, label] + problem.durations[row, k, label]
    scores = scores + sums.after_end[row, last, label] + sums.shift[row, start, 0]
    scores = scores if problem.first is None else scores + problem.first[row, start, label]
    scores = scores if problem.last is None else scores + problem.last[row, last, label]
    return scores if problem.segments is None else scores + problem.segments[row, start, k, label]


@torch.no_grad()
def expectations(sums: Summed, segments: bool = False) -> SegmentExpectations:
    """log Z and the probabilities of all parts."""
    problem = sums.problem
    B, T, _, L = problem.shape
    begin = torch.exp(sums.begins + sums.from_begin + sums.shift)
    end = torch.exp(sums.ends + sums.after_end + sums.shift)
    over = torch.nn.functional.pad(end, (0, 0, 1, 0))[:, :-1]  # those that end before the position
    covered = torch.cumsum(begin - over, 1).clamp_min(0.0)
    each = list(by_length(sums)) if segments else by_length(sums)
    durations = torch.stack([part.sum(1) for part in each], 1)
    n = lengths_of(problem)
    last = end.gather(1, (n - 1).clamp_min(0)[:, None, None].expand(B, 1, L)) if T else end.sum(1, True)
    return SegmentExpectations(
        sums.log_partition,
        torch.where(inside(problem)[:, :, None], covered, 0.0),
        durations,
        _transition_counts(sums),
        begin[:, :1].sum(1),
        last[:, 0],
        begin,
        end,
        torch.stack(list(each), 2) if segments else None,
    )


def _transition_counts(sums: Summed) -> Tensor:
    """The expected number of each transition [B, L, L], added up from blocks of positions."""
    B, T, _, L = sums.problem.shape
    counts = sums.ends.new_zeros((B, L, L))
    after = (sums.from_begin + sums.shift)[:, 1:, None, :]
    before = sums.ends[:, :-1, :, None]
    step = max(1, NUMBERS_AT_ONCE // max(1, B * L * L))
    for t in range(0, T - 1, step):
        block = before[:, t : t + step] + sums.problem.transitions[:, None] + after[:, t : t + step]
        counts += torch.exp(block).sum(1)
    return counts
