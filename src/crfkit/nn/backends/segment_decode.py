"""Single segmentations of a batch of semi-Markov chains: the best, the k best, and samples, in plain PyTorch.

Segmentations are tags [B, T]: the label c where a segment begins, c + L at its other positions, −1 in the padding.
"""

import torch
from torch import Tensor

from crfkit.nn.backends.decode import NOTHING, draw
from crfkit.nn.backends.torch_segments import Summed
from crfkit.nn.problem.segments import SegmentProblem, in_double, lengths_of


def k_best(problem: SegmentProblem, k: int) -> tuple[Tensor, Tensor]:
    """The scores [B, k] in float64 of the k best segmentations, and their tags [B, k, T]; −inf and −1 where there are fewer.

    The recursion of `torch_segments` with the k largest of all sums in place of their total: each message [B, k, L] has
    its paths in order, and remembers for each the length of its segment, and the path it comes from.
    """
    exact = in_double(problem)
    B, T, K, L = exact.shape
    n = lengths_of(exact)
    paths = torch.where(torch.arange(k, device=n.device) == 0, 0.0, -torch.inf)[:, None]  # [k, 1]
    begins = (exact.emissions.new_zeros((B, L)) if exact.start is None else exact.start)[:, None] + paths
    open_segments = begins.new_full((B, K, k, L), -torch.inf)
    ages = torch.arange(K, device=n.device)
    best = begins.new_full((B, k, L), -torch.inf)  # of the ends of sequences that are over
    # by position, [B, k, L]: of the segment that ends there, (length − 1) · k + path at its begin; and of what begins after
    # it, path · L + label before
    ended, before = [], []
    for t in range(T):
        fresh = begins if exact.first is None else begins + exact.first[:, t, None]
        open_segments = (
            torch.cat([fresh[:, None], open_segments[:, :-1]], 1) + exact.emissions[:, t, None, None]
        )
        closed = open_segments + exact.durations[:, :, None]
        if exact.segments is not None:
            closed = closed + exact.segments[:, (t - ages).clamp_min(0), ages][:, :, None]
        if exact.last is not None:
            closed = closed + exact.last[:, t, None, None]
        ends, which = closed.reshape(B, K * k, L).topk(k, dim=1)
        ended.append(which)
        best = torch.where((n == t + 1)[:, None, None], ends, best)
        reached = ends[:, :, :, None] + exact.transitions[:, None]  # [B, k, L, L]
        begins, place = reached.reshape(B, k * L, L).topk(k, dim=1)
        before.append(place)
    return _traced(exact, best, ended, before, k)


def _traced(
    problem: SegmentProblem, best: Tensor, closed: list[Tensor], before: list[Tensor], k: int
) -> tuple[Tensor, Tensor]:
    """The k best of all last labels, and their segments, followed back from the end."""
    B, T, _, L = problem.shape
    n = lengths_of(problem)
    if problem.end is not None:
        best = best + problem.end[:, None]
    scores, place = best.reshape(B, k * L).topk(k, dim=1)  # [B, k]; place: path · L + label
    none_left = torch.where(torch.arange(k, device=n.device) == 0, 0.0, -torch.inf).double()
    scores = torch.where((n == 0)[:, None], none_left, scores)
    boundary = torch.where(scores > -torch.inf, n[:, None], 0)  # where the segment that is followed ends
    label = begin = origin = torch.zeros_like(place)
    tags = []
    for t in range(T - 1, -1, -1):
        ends = boundary == t + 1
        which = closed[t].flatten(1).gather(1, place)
        label = torch.where(ends, place % L, label)
        begin = torch.where(ends, t - which // k, begin)
        origin = torch.where(ends, which % k * L + place % L, origin)  # among those that begin there
        begins = begin == t
        tag = torch.where(begins, label, label + L)
        tags.append(torch.where(t < boundary, tag, NOTHING))
        if t:
            place = torch.where(begins, before[t - 1].flatten(1).gather(1, origin), place)
        boundary = torch.where(begins & (t < boundary), t, boundary)
    found = torch.stack(tags[::-1], 2) if T else n.new_zeros((B, k, 0))
    return scores, found


def viterbi(problem: SegmentProblem) -> Tensor:
    """The tags of the best segmentation [B, T]; −1 in the padding, and where none is possible."""
    return k_best(problem, 1)[1][:, 0]


def sample(sums: Summed, n_samples: int, generator: torch.Generator | None) -> Tensor:
    """n independent segmentations [n, B, T], by draws of segments from the last to the first.

    Given that one with the label c ends at e, its length is k with a probability ∝ begins_{e−k}(c) exp(score of it), and
    the label before c' with one ∝ ends_{e−k}(c') exp(transition(c', c)).
    """
    exact = sums.problem
    B, T, K, L = exact.shape
    tags = torch.full((n_samples, B, T), NOTHING, dtype=torch.int64, device=exact.emissions.device)
    if T == 0 or n_samples == 0 or B == 0:
        return tags
    row = torch.arange(B, device=tags.device).expand(n_samples, B)
    boundary = lengths_of(exact).expand(n_samples, B)
    at_end = sums.ends[row, (boundary - 1).clamp_min(0)]  # [n, B, L]
    scores = at_end if exact.end is None else at_end + exact.end
    boundary = torch.where(scores.amax(2) > -torch.inf, boundary, 0)
    label = draw(scores, generator)
    ages, places = torch.arange(K, device=tags.device), torch.arange(T, device=tags.device)
    while bool((boundary > 0).any()):
        begin = boundary[..., None] - 1 - ages  # [n, B, K]
        at = begin.clamp_min(0)
        rows, labels = row[..., None], label[..., None]
        scores = sums.begins[rows, at, labels] + exact.emissions[rows, at, labels].cumsum(2)
        scores = scores + exact.durations[rows, ages, labels]
        scores = scores if exact.first is None else scores + exact.first[rows, at, labels]
        scores = scores if exact.segments is None else scores + exact.segments[rows, at, ages, labels]
        length = draw(torch.where(begin >= 0, scores, -torch.inf), generator) + 1
        going = boundary > 0
        from_ = torch.where(going, boundary - length, 0)
        inner = (places >= from_[..., None]) & (places < boundary[..., None])
        written = torch.where(places == from_[..., None], label[..., None], label[..., None] + L)
        tags = torch.where(inner, written, tags)
        into = exact.transitions.mT[row, label]  # [n, B, L]: scores of the labels before
        label = draw(sums.ends[row, (from_ - 1).clamp_min(0)] + into, generator)
        boundary = from_
    return tags
