"""The distribution over the segmentations of a batch of sequences: a semi-Markov chain."""

from collections.abc import Iterable, Sequence
from typing import Any

import torch
from torch import Tensor

from crfkit.errors import ArgumentError, ShapeError
from crfkit.nn.backends import choice, segment_decode, torch_segments
from crfkit.nn.backends import segments as backends
from crfkit.nn.backends.decode import NOTHING
from crfkit.nn.distribution import Distribution, break_graph
from crfkit.nn.problem.checks import (
    check_device,
    check_ends,
    check_integers,
    check_segment_scores,
    check_spans,
    check_threshold,
    fill_transitions,
    read_places,
)
from crfkit.nn.problem.segment_tags import agreeing, check_tags, has_unknown, within
from crfkit.nn.problem.segments import (
    N_SCORES,
    SegmentProblem,
    add_parts,
    in_double,
    inside,
    lengths_of,
    segmentation_score,
)
from crfkit.nn.spans import in_order


class SegmentDistribution(Distribution):
    """p(y) = exp(score(y)) / Z over the segmentations y of each of B sequences into labelled segments; exact.

    score(y) is the sum, over the segments of y, of the `emissions` [B, T, L] of its positions, of `durations` [K, L] for
    its length (1 … K; none is longer), and, where they are given, of `first` and `last` [B, T, L] at its first and last
    position and of `segments` [B, T, K, L] by its begin and length; and of `transitions` [L, L] or [B, L, L] between the
    labels of neighbouring segments, `start` and `end` [L]. Neighbours may have the same label; a transition of −inf
    forbids it. Time and memory grow as T · (K · L + L²) and T · L (`segments` alone is larger).

    Segmentations are tags [B, T]: the label c where a segment begins, and c + L at its other positions. `tags` and
    `segments_of` convert lists of (start, end, label). Which positions belong to a sequence is said by `lengths` [B] or by
    `mask` [B, T]: masked positions are removed, and the positions on either side become adjacent. `allowed` [B, T, L] are
    the allowed labels of each position.

    >>> scores = torch.zeros(1, 3, 1)  # 3 positions, one label: 1 + 1 + 1, 1 + 2, 2 + 1
    >>> SegmentDistribution(scores, durations=torch.zeros(2, 1)).log_partition().exp().round()
    tensor([3.])
    """

    def __init__(
        self,
        emissions: Tensor,
        durations: Tensor,
        transitions: Tensor | None = None,
        start: Tensor | None = None,
        end: Tensor | None = None,
        *,
        first: Tensor | None = None,
        last: Tensor | None = None,
        segments: Tensor | None = None,
        mask: Tensor | None = None,
        lengths: Tensor | None = None,
        allowed: Tensor | None = None,
    ) -> None:
        check_segment_scores(emissions, durations, first, last, segments)
        if transitions is not None and isinstance(transitions, Tensor) and transitions.ndim > 3:
            raise ShapeError(
                f"transitions: got shape {list(transitions.shape)}, expected [L, L] or [B, L, L]."
            )
        transitions = fill_transitions(transitions, emissions)
        check_ends(start, end, emissions)
        lengths, self._positions = read_places(emissions, mask, lengths)
        if allowed is not None:
            if allowed.dtype != torch.bool or allowed.shape != emissions.shape:
                raise ShapeError(
                    f"allowed: got {allowed.dtype} with shape {list(allowed.shape)}, expected bools "
                    f"[B, T, L] = {list(emissions.shape)}."
                )
            check_device("allowed", allowed, emissions.device)
            emissions = emissions.masked_fill(~allowed, -torch.inf)
        self._given = SegmentProblem(
            emissions, durations, transitions, start, end, first, last, segments, lengths
        )
        self._choice: backends.SegmentBackend | None = None

    @property
    def _problem(self) -> SegmentProblem:
        """The scores of the tokens, without masked positions in between; gathered anew, as a graph serves once."""
        if self._positions is None:
            return self._given
        first, last, segments = (
            part if part is None else self._tokens(part) for part in self._given[5:N_SCORES]
        )
        emissions = self._tokens(self._given.emissions)
        return self._given._replace(emissions=emissions, first=first, last=last, segments=segments)

    def _tokens(self, values: Tensor) -> Tensor:
        """Values at positions [B, T, …], those of the tokens first."""
        if self._positions is None:
            return values
        places = self._positions.reshape(*self._positions.shape, *[1] * (values.ndim - 2))
        return values.gather(1, places.expand(values.shape))

    def _spread(self, values: Tensor, nothing: float = 0) -> Tensor:
        """Values at tokens [B, T, …] moved back to their positions."""
        if self._positions is None:
            return values
        places = self._positions.reshape(*self._positions.shape, *[1] * (values.ndim - 2))
        return torch.full_like(values, nothing).scatter(1, places.expand(values.shape), values)

    @property
    def _backend(self) -> backends.SegmentBackend:
        """The backend, chosen once."""
        if self._choice is None:
            self._choice = choice.choose_segments(self._given)
        return self._choice

    @property
    def _scores(self) -> tuple[Tensor, ...]:
        return tuple(part for part in self._given[:N_SCORES] if part is not None)

    @property
    def lengths(self) -> Tensor:
        """The number of positions that belong to each sequence, [B]."""
        return lengths_of(self._given)

    def log_partition(self) -> Tensor:
        """log Z [B]; −inf where no segmentation is possible, 0 for an empty sequence."""
        return break_graph(backends.log_partition)(self._backend, self._problem)

    def score(self, tags: Tensor) -> Tensor:
        """score(tags) [B] in float64, before it is normalised; −inf for what is no segmentation; differentiable."""
        return segmentation_score(self._problem, self._tags_of_tokens(tags))

    def _tags_of_tokens(self, tags: Tensor) -> Tensor:
        """Tags of the right shape and place, by token."""
        check_integers("tags", tags, tuple(self._given.shape[:2]), "tags")
        check_device("tags", tags, self._given.emissions.device)
        return self._tokens(tags.long())

    def log_prob(self, tags: Tensor, *, complete: bool | None = None) -> Tensor:
        """log p(tags) [B], or the logarithm of what all segmentations that agree with the tags have together.

        `tags` are integers [B, T], negative (such as −100) where unknown, or the possible labels as bools [B, T, L].
        `complete=True` says that none is unknown, which avoids inspecting them (and, on a GPU, a synchronisation; an
        unknown one then has −inf). −inf for what is no segmentation, NaN where no segmentation is possible at all.
        """
        problem = self._problem
        part = self._agreeing(problem, tags, complete)
        if part is None:
            return break_graph(backends.log_likelihood)(self._backend, problem, self.score(tags))
        value = break_graph(backends.log_partition)
        return value(self._backend, part) - value(self._backend, problem)

    def _agreeing(
        self, problem: SegmentProblem, tags: Tensor, complete: bool | None
    ) -> SegmentProblem | None:
        """The problem of all segmentations that agree with the tags; None where all tags are known."""
        if isinstance(tags, Tensor) and tags.dtype == torch.bool:
            if tags.shape != self._given.emissions.shape:
                expected = list(self._given.emissions.shape)
                raise ShapeError(f"tags: got bools with shape {list(tags.shape)}, expected {expected}.")
            check_device("tags", tags, self._given.emissions.device)
            return within(problem, self._tokens(tags))
        tokens = self._tags_of_tokens(tags)
        if complete or (complete is None and not break_graph(has_unknown)(problem, tokens)):
            return None
        return agreeing(problem, tokens)

    def check_tags(self, tags: Tensor, bigrams: Tensor | None = None) -> bool:
        """Whether a tag [B, T] is unknown; raises an error that says where, if no segmentation has these tags.

        `bigrams` [L + 1, L + 1] are the labels that may be neighbours, START and END last.
        """
        return check_tags(self._given, self._tags_of_tokens(tags), bigrams, self._positions)

    @torch.no_grad()
    def value_and_gradient(
        self, tags: Tensor | None = None, *, share: int = 1, complete: bool | None = None
    ) -> tuple[Tensor, tuple[Tensor | None, ...]]:
        """Σ_b log p(tags_b) / share, [], or Σ_b log Z_b / share without tags; and its gradient by all scores.

        By emissions, durations, transitions, start, end, first, last and segments; None by those that were not given. What
        `log_prob(tags).sum()` or `log_partition().sum()` and a backward pass give, without a graph: on a GPU most of the
        time of small batches goes into PyTorch's.
        """
        problem, part = self._problem, None
        emissions = problem.emissions
        upstream = None
        if share != 1:
            upstream = emissions.new_full((1,), 1 / share, dtype=torch.float64).expand(len(emissions))
        sign = 1 if tags is None else -1
        log_z, _, gradient = self._backend.value_and_gradient(problem, upstream, sign, True)
        found, values = list(gradient), log_z
        if tags is not None:
            part = self._agreeing(problem, tags, complete)
        if part is not None:
            log_part, _, others = self._backend.value_and_gradient(part, upstream, 1, True)
            values = log_part - log_z
            for mine, more in zip(found, others, strict=True):
                if mine is not None and more is not None:
                    mine.add_(more)
        elif tags is not None:
            values = self.score(tags) - log_z
            add_parts(problem, self._tokens(tags.long()), found, 1.0 / share)
        if self._positions is not None:
            for i in (0, 5, 6, 7):
                found[i] = None if found[i] is None else self._spread(found[i])
        total = values.sum()
        return (total if share == 1 else total / share).to(self._dtype), tuple(found)

    def marginals(self) -> Tensor:
        """P(a segment with this label covers the position) [B, T, L]; differentiable where a gradient is wanted."""
        if self._differentiated:
            return self._spread(self._moments()[1].to(self._dtype))
        return self._spread(break_graph(self._gradient)()[0].to(self._dtype))

    @torch.no_grad()
    def _gradient(self) -> Sequence[Any]:
        """The gradient of Σ_b log Z_b, in the working precision."""
        scores = [part if part is None else part.to(self._dtype) for part in self._problem[:N_SCORES]]
        problem = SegmentProblem._make([*scores, self._given.lengths])
        _, kept = self._backend.value(problem, True)
        return self._backend.gradient(problem, None, kept)

    @torch.no_grad()
    def segment_marginals(self) -> Tensor:
        """P(the segment of this begin, length and label) [B, T, K, L]: as large as that."""
        found = torch.stack(list(break_graph(self._backend.by_length)(self._problem)), 2)
        return self._spread(found.to(self._dtype))

    @torch.no_grad()
    def span_probabilities(self, spans: Tensor) -> Tensor:
        """The probability [n] that a segment is exactly each of the spans [n, 4]: sequence, start, end, label.

        `end` is exclusive. A span that cannot be a segment has the probability 0.
        """
        check_spans(spans)
        row, start, end, label = spans.to(self._given.emissions.device, torch.int64).unbind(1)
        B, T, K, L = self._given.shape
        known = (
            (row >= 0) & (row < B) & (start >= 0) & (end <= T) & (start < end) & (label >= 0) & (label < L)
        )
        row, start, last, label = (torch.where(known, part, 0) for part in (row, start, end - 1, label))
        exists, token = self._places_of_tokens()
        if T == 0 or B == 0:
            return torch.zeros(len(spans), dtype=self._dtype, device=row.device)
        known = known & exists[row, start] & exists[row, last]
        start, last = token[row, start], token[row, last]
        known = known & (last - start < K)
        last = torch.where(known, last, start)
        found = break_graph(self._backend.span_probabilities)(self._problem, row, start, last, label)
        return torch.where(known, found, 0.0).to(self._dtype)

    @torch.no_grad()
    def _sums(self) -> torch_segments.Summed:
        """The messages in both directions, in float64."""
        return break_graph(self._backend.summed)(self._problem)

    def _places_of_tokens(self) -> tuple[Tensor, Tensor]:
        """Which positions [B, T] belong to a sequence, and as which of its tokens."""
        exists = self._spread(inside(self._given), False)
        return exists, exists.long().cumsum(1) - 1

    @torch.no_grad()
    def spans(self, threshold: float = 0.5) -> tuple[Tensor, Tensor]:
        """All segments of probability `threshold` or more: [n, 4] sequence, start, end, label, and probabilities [n].

        In the order of sequences, starts, ends and labels. Those of 0.5 or more never overlap.
        """
        check_threshold(threshold)
        _, T, _, L = self._given.shape
        at = self._spread_positions()
        found = []
        for k, probability in enumerate(break_graph(self._backend.by_length)(self._problem)):
            row, begin, label = torch.nonzero(probability >= threshold, as_tuple=True)
            span = torch.stack([row, at[row, begin], at[row, begin + k] + 1, label], 1)
            found.append((span, probability[row, begin, label]))
        spans, probabilities = (torch.cat(part) for part in zip(*found, strict=True))
        order = in_order(spans, T, L)
        return spans[order], probabilities[order].to(self._dtype)

    def _spread_positions(self) -> Tensor:
        """The position of each token [B, T]."""
        B, T, _, _ = self._given.shape
        if self._positions is not None:
            return self._positions
        return torch.arange(T, device=self._given.emissions.device).expand(B, T)

    def argmax(self) -> Tensor:
        """The tags of the best segmentation [B, T] (Viterbi); −1 at masked positions, and where none is possible."""
        with torch.no_grad():
            return self._spread(break_graph(self._backend.argmax)(self._problem), NOTHING)

    def tags(self, segments: Iterable[Iterable[tuple[int, int, int]]]) -> Tensor:
        """The tags [B, T] of segments (start, end, label), listed for each sequence; −1 where there is none."""
        B, T, _, L = self._given.shape
        found = torch.full((B, T), NOTHING, dtype=torch.int64)
        for row, listed in zip(found, segments, strict=True):
            for begin, stop, label in listed:
                if not (0 <= begin < stop <= T and 0 <= label < L):
                    raise ArgumentError(
                        f"tags: got the segment {(begin, stop, label)}, expected 0 ≤ start < end ≤ {T} and a label "
                        f"from 0 to {L - 1}."
                    )
                row[begin:stop] = label + L
                row[begin] = label
        return found.to(self._given.emissions.device)

    def segments_of(self, tags: Tensor) -> list[list[tuple[int, int, int]]]:
        """The segments (start, end, label) of tags [B, T], for each sequence."""
        L = self._given.shape[3]
        found = []
        for row in tags.tolist():
            listed: list[list[int]] = []
            for t, tag in enumerate(row):
                if 0 <= tag < L:
                    listed.append([t, t + 1, tag])
                elif tag >= L and listed:
                    listed[-1][1] = t + 1
            found.append([(begin, stop, label) for begin, stop, label in listed])
        return found

    def _k_best(self, k: int) -> tuple[Tensor, Tensor]:
        scores, tags = break_graph(segment_decode.k_best)(self._problem, k)
        return scores, self._spread(tags.transpose(1, 2), NOTHING).transpose(1, 2)

    def _sample(self, n: int, generator: torch.Generator | None) -> Tensor:
        tags = break_graph(segment_decode.sample)(self._sums(), n, generator)
        return self._spread(tags.permute(1, 2, 0), NOTHING).permute(2, 0, 1)

    def _moments(self) -> tuple[Tensor, ...]:
        return break_graph(self._moments_of_parts)()

    def _moments_of_parts(self) -> tuple[Tensor, ...]:
        if not self._differentiated:
            found = torch_segments.expectations(self._sums(), self._given.segments is not None)
            return tuple(part for part in found if part is not None)
        exact = self._exact()
        leaves = [part if part.requires_grad else part.detach().requires_grad_() for part in exact]
        problem = SegmentProblem._make([*leaves, *[None] * (N_SCORES - len(leaves)), self._given.lengths])
        log_z = torch_segments.differentiable_log_partition(problem)
        found = torch.autograd.grad(log_z.sum(), leaves, create_graph=True, materialize_grads=True)
        possible = torch.isfinite(log_z)
        return log_z, *(part * possible.reshape(-1, *[1] * (part.ndim - 1)) for part in found)

    def _exact(self) -> list[Tensor]:
        """All scores by sequence in float64, 0 where they are absent; those of whole segments only where they are given."""
        exact = in_double(self._problem)
        B, T, _, L = exact.shape
        shapes = ((B, L), (B, L), (B, T, L), (B, T, L))
        rest = [
            exact.emissions.new_zeros(shape) if part is None else part
            for part, shape in zip(exact[3:7], shapes, strict=True)
        ]
        return [*exact[:3], *rest, *([] if exact.segments is None else [exact.segments])]

    def _part_scores(self) -> tuple[Tensor, ...]:
        return tuple(self._exact())

    def _log_partition_in_double(self) -> Tensor:
        return break_graph(torch_segments.differentiable_log_partition)(self._problem)

    def kl(self, other: "SegmentDistribution") -> Tensor:
        """Σ_y p(y) (log p(y) − log q(y)) [B] for a distribution q over the same outputs; inf where q(y) = 0 < p(y)."""
        self._check_same_outputs(other)
        mine, theirs = self, other
        if (mine._given.segments is None) != (theirs._given.segments is None):
            mine, theirs = mine._with_segments(), theirs._with_segments()
        return super(SegmentDistribution, mine).kl(theirs)

    def _with_segments(self) -> "SegmentDistribution":
        """The same distribution, with scores of whole segments that are 0 where they were absent."""
        if self._given.segments is not None:
            return self
        B, T, K, L = self._given.shape
        found = object.__new__(SegmentDistribution)
        found._positions, found._choice = self._positions, None
        found._given = self._given._replace(segments=self._given.emissions.new_zeros((B, T, K, L)))
        return found

    def _check_same_outputs(self, other: "SegmentDistribution") -> None:
        mine, theirs = list(self._given.shape), list(other._given.shape)
        if mine != theirs:
            raise ShapeError(f"kl: the other distribution has [B, T, K, L] = {theirs}, expected {mine}.")
        if not torch.equal(self._places_of_tokens()[0], other._places_of_tokens()[0]):
            raise ShapeError("kl: the other distribution has another mask, expected the same.")
