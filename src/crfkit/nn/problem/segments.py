"""A batch of semi-Markov chains as every backend sees it: scores of segments and of transitions between their labels.

Positions are those of the tokens, without masked ones in between. Boundary t lies before position t: a segment (s, e, c)
begins at boundary s and ends at boundary e, with the label c and the length e − s.

Letters: B sequences, T positions, L labels, K the longest segment.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

N_SCORES = 8  # of the fields of a problem


class SegmentProblem(NamedTuple):
    """The scores of a batch of segmentations.

    score(y) = start[first label] + end[last label] + Σ transitions[label before, label]
             + Σ_(s, e, c) (Σ_{s≤t<e} emissions[t, c] + durations[e − s − 1, c] + first[s, c] + last[e − 1, c]
                            + segments[s, e − s − 1, c])
    """

    emissions: Tensor  # [B, T, L]
    durations: Tensor  # [K, L], or [B, K, L] of a problem `in_double`
    transitions: Tensor  # [L, L] or [B, L, L]
    start: Tensor | None  # [L]
    end: Tensor | None  # [L]
    first: Tensor | None  # [B, T, L]
    last: Tensor | None  # [B, T, L]
    segments: Tensor | None  # [B, T, K, L] by begin and length
    lengths: Tensor | None  # [B] int64; None: all T

    @property
    def shape(self) -> tuple[int, int, int, int]:
        """(B, T, K, L)."""
        B, T, L = self.emissions.shape
        return B, T, self.durations.shape[-2], L


def lengths_of(problem: SegmentProblem) -> Tensor:
    """The number of positions of each sequence [B]."""
    B, T, _, _ = problem.shape
    if problem.lengths is not None:
        return problem.lengths
    return torch.full((B,), T, dtype=torch.int64, device=problem.emissions.device)


def inside(problem: SegmentProblem) -> Tensor:
    """Which of T positions belong to a sequence: bool [B, T], a prefix of each row."""
    return torch.arange(problem.shape[1], device=problem.emissions.device) < lengths_of(problem)[:, None]


def double(problem: SegmentProblem) -> SegmentProblem:
    """The same scores in float64."""
    scores = [part if part is None else part.double() for part in problem[:N_SCORES]]
    return SegmentProblem._make([*scores, problem.lengths])


def in_double(problem: SegmentProblem) -> SegmentProblem:
    """The same problem in float64, with transitions and durations by sequence, and 0 beyond the ends."""
    B, T, K, L = problem.shape
    emissions, durations, transitions, start, end, first, last, segments, _ = double(problem)
    if problem.lengths is not None:
        exists = inside(problem)[:, :, None]
        emissions = torch.where(exists, emissions, 0.0)
        first, last = (part if part is None else torch.where(exists, part, 0.0) for part in (first, last))
    if segments is not None:
        place = torch.arange(T, device=segments.device)[:, None] + torch.arange(K, device=segments.device)
        segments = torch.where((place < lengths_of(problem)[:, None, None])[..., None], segments, 0.0)
    return SegmentProblem(
        emissions,
        durations.expand(B, K, L) if durations.ndim == 2 else durations,
        transitions.expand(B, L, L),
        start if start is None else start.expand(B, L),
        end if end is None else end.expand(B, L),
        first,
        last,
        segments,
        problem.lengths,
    )


def flip(problem: SegmentProblem, values: Tensor) -> Tensor:
    """Values at positions [B, T, …] in the reverse order of each sequence; the padding stays."""
    T = values.shape[1]
    place, n = torch.arange(T, device=values.device), lengths_of(problem)[:, None]
    source = torch.where(place < n, n - 1 - place, place).reshape(*values.shape[:2], *[1] * (values.ndim - 2))
    return values.gather(1, source.expand(values.shape))


def reverse(problem: SegmentProblem) -> SegmentProblem:
    """The same problem read from right to left; of one `in_double`."""
    segments = problem.segments
    if segments is not None:  # the one of length k + 1 that begins at s ends at position s + k
        shifted = torch.stack([part.roll(k, 1) for k, part in enumerate(segments.unbind(2))], 2)
        segments = flip(problem, shifted)
    first, last = (None if part is None else flip(problem, part) for part in (problem.first, problem.last))
    return problem._replace(
        emissions=flip(problem, problem.emissions),
        transitions=problem.transitions.mT,
        start=problem.end,
        end=problem.start,
        first=last,
        last=first,
        segments=segments,
    )


class Parts(NamedTuple):
    """Numbers [B, T] of the segments in tags: of each position, which segment it lies in, and where that begins and ends."""

    label: Tensor  # int64, 0 in the padding
    begins: Tensor  # bool
    ends: Tensor  # bool
    length: Tensor  # int64: positions from the begin of its segment to this one
    valid: Tensor  # bool [B]: whether the tags are a segmentation


def parts_of(problem: SegmentProblem, tags: Tensor) -> Parts:
    """The segments in tags [B, T]: the label c where one begins, c + L at its other positions."""
    B, T, _, L = problem.shape
    exists = inside(problem)
    known = (tags >= 0) & (tags < 2 * L)
    label = torch.where(exists & known, tags % L, 0)
    begins = exists & (tags < L)
    place = torch.arange(T, device=tags.device).expand(B, T)
    length = place - torch.cummax(torch.where(begins, place, 0), 1).values + 1 if T else place
    after = torch.nn.functional.pad(begins[:, 1:], (0, min(T, 1)), value=True)
    ends = exists & (after | (place == lengths_of(problem)[:, None] - 1))
    goes_on = exists & ~begins
    same = torch.nn.functional.pad(label[:, :-1] == label[:, 1:], (min(T, 1), 0), value=False)
    valid = ((known | ~exists) & (same | ~goes_on)).all(1)
    return Parts(label, begins, ends, length, valid)


def segmentation_score(problem: SegmentProblem, tags: Tensor) -> Tensor:
    """score(tags) [B] in float64, differentiable; −inf for what is no segmentation, or has a segment that is too long."""
    B, T, K, _ = problem.shape
    if T == 0:
        return problem.emissions.double().sum((1, 2))
    label, begins, ends, length, valid = parts_of(problem, tags)
    row = torch.arange(B, device=tags.device)[:, None].expand(B, T)
    place = torch.arange(T, device=tags.device).expand(B, T)
    k = length.clamp(1, K) - 1

    def added(scores: Tensor, where: Tensor) -> Tensor:
        return torch.where(where, scores.double(), 0.0).sum(1)

    total = added(problem.emissions[row, place, label], inside(problem))
    total = total + added(problem.durations[k, label], ends)
    before, after = label[:, :-1], label[:, 1:]
    moved = problem.transitions[before, after] if problem.transitions.ndim == 2 else (
        problem.transitions[row[:, 1:], before, after]
    )  # fmt: skip
    total = total + added(moved, begins[:, 1:])
    if problem.start is not None:
        total = total + added(problem.start[label[:, :1]], inside(problem)[:, :1])
    if problem.end is not None:
        total = total + added(
            problem.end[label], inside(problem) & (place == lengths_of(problem)[:, None] - 1)
        )
    if problem.first is not None:
        total = total + added(problem.first[row, place, label], begins)
    if problem.last is not None:
        total = total + added(problem.last[row, place, label], ends)
    if problem.segments is not None:
        total = total + added(problem.segments[row, (place - k), k, label], ends)
    possible = valid & ~(ends & (length > K)).any(1)
    return torch.where(possible, total, -torch.inf)


def add_parts(problem: SegmentProblem, tags: Tensor, gradient: Sequence[Any], weight: float) -> None:
    """Add the gradient of weight · Σ_b score(tags_b) to one by all scores, in place: the weight for each use of a score."""
    B, T, K, L = problem.shape
    if T == 0 or B == 0:
        return
    label, begins, ends, length, _ = parts_of(problem, tags)
    d_emissions, d_durations, d_transitions, d_start, d_end, d_first, d_last, d_segments = gradient
    exists, n = inside(problem), lengths_of(problem)
    place = torch.arange(T, device=tags.device).expand(B, T)
    k = length.clamp(1, K) - 1

    def at_labels(out: Tensor | None, where: Tensor) -> None:  # out [B, T, L]; every place is there once
        if out is not None:
            out.scatter_add_(2, label[..., None], weight * where[..., None].to(out.dtype))

    def counted(out: Tensor | None, which: Tensor, where: Tensor) -> None:  # in one order on any device
        if out is not None:
            flat = which[where].reshape(-1)
            out.view(-1).index_put_((flat,), out.new_full((), weight), accumulate=True)

    at_labels(d_emissions, exists)
    at_labels(d_first, begins)
    at_labels(d_last, ends)
    counted(d_durations, k * L + label, ends)
    pair = label[:, :-1] * L + label[:, 1:]
    if d_transitions is not None and d_transitions.ndim == 3:
        pair = pair + torch.arange(B, device=tags.device)[:, None] * L * L
    counted(d_transitions, pair, begins[:, 1:])
    counted(d_start, label[:, :1], exists[:, :1])
    counted(d_end, label, place == n[:, None] - 1)
    if d_segments is not None:
        whole = ((torch.arange(B, device=tags.device)[:, None] * T + place - k) * K + k) * L + label
        counted(d_segments, whole, ends)
