"""Exact probabilities of spans under a batch of chains, on the device of the scores.

With labels read as spans (`crfkit.structures.SpanLabels`), the span (s, e, c) is there if a label of the type c begins one
at s, each next label up to e − 1 continues it, and that at e does not. Two neighbouring labels matter only where one
continues the other, which few pairs do. So the chain is written over states: a label, whether it continues the label before,
and which label continues it, if any. Its paths, their scores and its backends are those of the chain, and sums over the
marginals of its states are all that is needed; nothing is subtracted:

    begins_t(b)  = P(y_t = b, which continues nothing)
    goes_t(a, b) = P(y_t = a, which b continues) / P(y_t = a)
    stops_t(a)   = P(y_t = a, which nothing continues) / P(y_t = a)
    P(s, e, c)   = begins_s goes_s … goes_{e−2} stops_{e−1}                   over the M labels of the type c

All after the marginals is in float64. On a CPU, where nothing is differentiated, the core gives the same answers faster.
Letters: B sequences, T tokens, L labels, S states, C types, M labels of a type (padded). For a type, BIO has 6 states and
IOBES 12.
"""

from collections.abc import Callable, Hashable, Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from crfkit.errors import ShapeError
from crfkit.nn.backends import core
from crfkit.nn.backends.moments import expectations, moments
from crfkit.nn.problem.chain import (
    ChainProblem,
    compact_problem,
    kept_positions,
    token_positions,
    working_dtype,
)
from crfkit.structures import Span, SpanLabels, Threshold

# states; the marginals of more are in the precision of the scores on a GPU, as its kernels are
MOST_IN_DOUBLE = 128
ROUNDING = 1e-12  # what a span that is certain, or as likely as the threshold, may lose of its probability


class SpanStates(NamedTuple):
    """The states of a chain whose labels are read as spans."""

    label: Tensor  # [S] int64
    follows: Tensor  # [S] int64: 1 where it continues the label before, else 0
    after: Tensor  # [S] int64, the label that continues it; −1: none
    continues: Tensor  # [L, L] bool: the second label continues the first
    # [C, M, 2, M + 1] int64, the states of a label of a type, by `follows` and by the label after, M: none; S: no such state
    places: Tensor


def span_states(labels: SpanLabels, device: torch.device) -> SpanStates:
    """All states, label by label."""
    kinds, C = labels.type_of, len(labels.types)
    same = (kinds[:, None] == kinds) & (kinds >= 0)
    continues = same & labels.goes_on[:, None] & labels.follows
    members = [np.flatnonzero(kinds == kind) for kind in range(C)]
    slots = {int(b): slot for some in members for slot, b in enumerate(some)}
    M = max(map(len, members))
    states = [
        (a, follows, b)
        for a in range(len(kinds))
        for follows in range(1 + bool(continues[:, a].any()))
        for b in (*np.flatnonzero(continues[a]).tolist(), -1)
    ]
    places = np.full((C, M, 2, M + 1), len(states))
    for state, (a, follows, b) in enumerate(states):
        if kinds[a] >= 0:
            places[kinds[a], slots[a], follows, slots.get(b, M)] = state
    parts = (*np.array(states).T, continues, places)
    return SpanStates._make(torch.from_numpy(part.copy()).to(device) for part in parts)


def expand(problem: ChainProblem, states: SpanStates) -> ChainProblem:
    """The same chains over the states; the problem has −inf for transitions that do not exist."""
    label, begins, last = states.label, states.follows == 0, states.after < 0
    apart = begins & ~states.continues[label][:, label]  # [S, S]
    reached = torch.where(last[:, None], apart, ~begins & (states.after[:, None] == label))
    start, end = (
        problem.emissions.new_zeros(len(label)) if part is None else part[label]
        for part in (problem.start, problem.end)
    )
    return problem._replace(
        emissions=problem.emissions[..., label],
        transitions=torch.where(reached, problem.transitions[..., label, :][..., label], -torch.inf),
        start=torch.where(begins, start, -torch.inf),
        end=torch.where(last, end, -torch.inf),
    )


class ChainSpans:
    """The spans of a batch of chains, from the marginals of their states [B, T, S] by token, in float64."""

    @classmethod
    def of(
        cls,
        problem: ChainProblem,
        labels: Sequence[Hashable],
        scheme: str | None,
        differentiated: bool,
    ) -> "ChainSpans":
        """Those of a problem without a table of bigrams; with a graph where they are differentiated."""
        if len(labels) != problem.shape[2]:
            raise ShapeError(f"labels: got {len(labels)} of them, the scores have {problem.shape[2]}.")
        known = SpanLabels.of(labels, scheme)
        if not differentiated and core.answers(problem) and not core.has_undefined(problem):
            return CoreSpans(problem, known)
        states = span_states(known, problem.emissions.device)
        chains = compact_problem(expand(problem, states))
        if differentiated:
            return cls(problem, known, states, moments(chains, True)[1])
        if problem.emissions.is_cuda and len(states.label) > MOST_IN_DOUBLE:
            real = working_dtype(problem.emissions.dtype)
            emissions, transitions = chains.emissions.to(real), chains.transitions.to(real)
            chains = chains._replace(emissions=emissions, transitions=transitions)
        return cls(problem, known, states, expectations(chains).emissions.double())

    def __init__(
        self, problem: ChainProblem, labels: SpanLabels, states: SpanStates, marginals: Tensor
    ) -> None:
        self._set(problem, labels, states.continues)
        marginals = torch.nn.functional.pad(marginals, (0, 1))  # 0 for the state that is none
        of_label = marginals[..., states.places]  # [B, T, C, M, 2, M + 1]
        self.begins = of_label[..., 0, :].sum(-1)  # [B, T, C, M]
        onwards = of_label.sum(-2)  # [B, T, C, M, M + 1]
        here = onwards.sum(-1, keepdim=True)
        onwards = onwards / torch.where(here > 0, here, 1.0)
        self.goes, self.stops = onwards[..., :-1], onwards[..., -1]  # [B, T, C, M, M], [B, T, C, M]

    def _set(self, problem: ChainProblem, labels: SpanLabels, continues: Tensor) -> None:
        self.labels, self._continues = labels, continues
        self._kept, self._positions = kept_positions(problem), token_positions(problem)

    def expected_number(self) -> float:
        """The expected number of spans of all sequences."""
        return float(self.begins.sum())

    def _tokens(self, spans: Tensor) -> tuple[Tensor, ...]:
        """Which spans [n, 4] may be there, [n] bool; and sequence, first and last token and type, 0 for the others."""
        (B, T), C = self._kept.shape, len(self.labels.types)
        row, start, end, kind = spans.to(self._kept.device, torch.int64).unbind(1)
        known = (row >= 0) & (row < B) & (start >= 0) & (start < end) & (end <= T) & (kind >= 0) & (kind < C)
        row, start, last, kind = (torch.where(known, part, 0) for part in (row, start, end - 1, kind))
        known = known & self._kept[row, start] & self._kept[row, last]
        token = self._kept.long().cumsum(1) - 1
        start, last = (torch.where(known, token[row, part], 0) for part in (start, last))
        return known, row, start, last, kind

    def probabilities(self, spans: Tensor) -> Tensor:
        """The probabilities [n] of spans [n, 4]: sequence, start, end, type; 0 for what cannot be a span."""
        if self._kept.numel() == 0 or len(spans) == 0:
            return self._kept.new_zeros(len(spans), dtype=torch.float64)
        known, row, start, last, kind = self._tokens(spans)
        mass = self.begins[row, start, kind]  # [n, M]
        for k in range(int((last - start).max())):
            at = torch.minimum(start + k, last)
            moved = (mass[:, :, None] * self.goes[row, at, kind]).sum(1)
            mass = torch.where((at < last)[:, None], moved, mass)
        return torch.where(known, (mass * self.stops[row, last, kind]).sum(1), 0.0).clamp_max(1.0)

    def find(self, threshold: float) -> tuple[Tensor, Tensor]:
        """All spans of probability `threshold` > 0 or more: [n, 4] sequence, start, end, type, in order; probabilities [n].

        All begins are followed together, length by length. What is left of a span only falls with its length, so it is
        dropped once it is below the threshold.
        """
        least = threshold * (1 - ROUNDING)
        row, start, kind = torch.nonzero(self.begins.sum(-1) >= least, as_tuple=True)
        mass, last = self.begins[row, start, kind], start  # [n, M]: up to the token `last`, by its label
        spans, found = list[Tensor](), list[Tensor]()
        while True:
            probability = (mass * self.stops[row, last, kind]).sum(1)
            ends = torch.stack([row, self._positions[row, start], self._positions[row, last] + 1, kind], 1)
            reached = probability >= least
            spans.append(ends[reached])
            found.append(probability[reached])
            mass = (mass[:, :, None] * self.goes[row, last, kind]).sum(1)
            (left,) = torch.nonzero(mass.sum(1) >= least, as_tuple=True)
            if len(left) == 0:
                break
            row, start, kind, mass, last = row[left], start[left], kind[left], mass[left], last[left] + 1
        order = in_order(torch.cat(spans), self._kept.shape[1], self.begins.shape[2])
        return torch.cat(spans)[order], torch.cat(found)[order].clamp_max(1.0)

    def select(
        self, argmax: Callable[[], Tensor], threshold: Threshold, decode: str | None
    ) -> list[list[Span]]:
        """The spans of each sequence: all above a threshold, of the best labels [B, T], or with the highest expected F1."""
        from crfkit.inference import read_threshold, select_spans  # only where the core is

        least = read_threshold(threshold, decode)
        return select_spans(
            lambda above: self.to_lists(*self.find(above)),
            lambda: self.to_lists(best := self.read(argmax()), self.probabilities(best)),
            self.expected_number,
            least,
            decode,
        )

    def read(self, tags: Tensor) -> Tensor:
        """The spans [n, 4] of label ids [B, T] at positions, in order; negative ones at tokens are outside of spans."""
        at, (B, T) = self._positions, self._kept.shape
        ids = torch.where(self._kept, tags, -1).gather(1, at)  # [B, T] by token
        types = torch.from_numpy(self.labels.type_of).to(ids.device).long()
        kind = torch.where(ids >= 0, types[ids.clamp_min(0)], -1)
        held = (kind[:, :-1] >= 0) & (kind[:, 1:] >= 0)
        held = held & self._continues[ids[:, :-1].clamp_min(0), ids[:, 1:].clamp_min(0)]
        none = held.new_zeros((B, min(T, 1)))
        row, start = torch.nonzero((kind >= 0) & ~torch.cat([none, held], 1), as_tuple=True)
        _, last = torch.nonzero((kind >= 0) & ~torch.cat([held, none], 1), as_tuple=True)
        return torch.stack([row, at[row, start], at[row, last] + 1, kind[row, start]], 1)

    def to_lists(self, spans: Tensor, probabilities: Tensor) -> list[list[Span]]:
        """The spans of each sequence, with the names of their types."""
        found: list[list[Span]] = [[] for _ in range(len(self._kept))]
        for (row, start, end, kind), p in zip(spans.tolist(), probabilities.tolist(), strict=True):
            certain = p >= 1 - ROUNDING
            found[row].append(Span(start, end, self.labels.types[kind], 1.0 if certain else p))
        return found


class CoreSpans(ChainSpans):
    """The same by the core, which needs no marginals of states: without a graph, in float64."""

    def __init__(self, problem: ChainProblem, labels: SpanLabels) -> None:
        same = labels.type_of[:, None] == labels.type_of
        continues = same & (labels.type_of >= 0) & labels.goes_on[:, None] & labels.follows
        self._set(problem, labels, torch.from_numpy(continues))
        self._batch = core.batch_of(problem, torch.float64)

    def expected_number(self) -> float:
        """The expected number of spans of all sequences."""
        return float(self._batch.n_spans(self.labels).sum())

    def probabilities(self, spans: Tensor) -> Tensor:
        """The probabilities [n] of spans [n, 4]: sequence, start, end, type; 0 for what cannot be a span."""
        found = torch.zeros(len(spans), dtype=torch.float64)
        if self._kept.numel() == 0 or len(spans) == 0:
            return found
        known, *parts = self._tokens(spans)
        row, start, last, kind = (part[known].numpy() for part in parts)
        answers = self._batch.span_probabilities(self.labels, row, start, last + 1, kind)
        found[known] = torch.from_numpy(answers)
        return found.clamp_max(1.0)

    def find(self, threshold: float) -> tuple[Tensor, Tensor]:
        """All spans of probability `threshold` > 0 or more, in order: [n, 4] sequence, start, end, type; and [n]."""
        found = self._batch.spans(self.labels, threshold * (1 - ROUNDING))
        row, start, end, kind, probability = map(torch.from_numpy, found)
        at = self._positions
        return torch.stack([row, at[row, start], at[row, end - 1] + 1, kind], 1), probability.clamp_max(1.0)


def in_order(spans: Tensor, n_positions: int, n_types: int) -> Tensor:
    """The order of spans [n, 4] by sequence, start, end and type."""
    row, start, end, kind = spans.unbind(1)
    return torch.argsort(((row * (n_positions + 1) + start) * (n_positions + 1) + end) * n_types + kind)
