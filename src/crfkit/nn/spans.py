"""Exact probabilities of spans under a batch of chains, on the device of the scores.

With labels read as spans (`crfkit.structures.SpanLabels`), the span (s, e, c) is there if a label of the type c begins one
at s, each next label up to e − 1 continues it, and that at e does not. Two neighbouring labels matter only where one
continues the other, which few pairs do. So the chain is written over L + n states: each label where it continues nothing,
and each of the n pairs (a, b) where b continues a, at the place of b. Its label sequences, their scores and backends are
those of the chain, and the marginals of its states are all that is needed:

    begins_t(b)  = P(y_t = b, which continues nothing)
    into_t(a, b) = P(y_{t−1} = a, y_t = b)                         b continues a
    goes_t(a, b) = into_{t+1}(a, b) / P(y_t = a)                   P(y_t = a) = begins_t(a) + Σ into_t(·, a)
    P(s, e, c)   = begins_s goes_s … goes_{e−2} (1 − Σ goes_{e−1}) over the M labels of the type c

In float64. Letters: B sequences, T tokens, L labels, S = L + n states, C types, M labels of a type (padded).
"""

from collections.abc import Callable, Hashable, Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from crfkit.errors import ShapeError
from crfkit.nn.problem.chain import ChainProblem, compact, kept_positions, token_positions
from crfkit.structures import Span, SpanLabels


class SpanStates(NamedTuple):
    """The states of a chain whose labels are read as spans; S in `begins` and `into` stands for none."""

    label: Tensor  # [S] int64, of each state
    before: Tensor  # [S] int64, the label that it continues; −1: none
    continues: Tensor  # [L, L] bool: the second label continues the first
    begins: Tensor  # [C, M] int64, the state of each label of a type that continues nothing
    into: Tensor  # [C, M, M] int64, the state of each pair of labels of a type, one continuing the other


def span_states(labels: SpanLabels, device: torch.device) -> SpanStates:
    """The states of all labels, and of all pairs in which one continues the other."""
    kinds, L, C = labels.type_of, len(labels.type_of), len(labels.types)
    same = (kinds[:, None] == kinds) & (kinds >= 0)
    continues = same & labels.goes_on[:, None] & labels.follows
    before, after = np.nonzero(continues)
    members = [np.flatnonzero(kinds == kind) for kind in range(C)]
    S, M = L + len(before), max(map(len, members))
    begins, slot = np.full((C, M), S), np.zeros(L, np.int64)
    for kind, some in enumerate(members):
        begins[kind, : len(some)], slot[some] = some, np.arange(len(some))
    into = np.full((C, M, M), S)
    into[kinds[before], slot[before], slot[after]] = L + np.arange(len(before))
    parts = (np.append(np.arange(L), after), np.append(np.full(L, -1), before), continues, begins, into)
    return SpanStates._make(torch.from_numpy(part).to(device) for part in parts)


def expand(problem: ChainProblem, states: SpanStates) -> ChainProblem:
    """The same chains over the states; transitions of the problem that do not exist have the score −inf."""
    label, before = states.label, states.before
    reached = torch.where(before < 0, ~states.continues[label][:, label], label[:, None] == before)  # [S, S]
    zero = problem.emissions.new_zeros(())
    return problem._replace(
        emissions=problem.emissions[..., label],
        transitions=torch.where(reached, problem.transitions[..., label, :][..., label], -torch.inf),
        start=torch.where(before < 0, zero if problem.start is None else problem.start[label], -torch.inf),
        end=None if problem.end is None else problem.end[label],
    )


class ChainSpans:
    """The spans of a batch of chains, from the marginals of their states [B, T, S] by token, in float64."""

    @classmethod
    def of(
        cls,
        problem: ChainProblem,
        labels: Sequence[Hashable],
        scheme: str | None,
        moments: Callable[[ChainProblem], Sequence[Tensor]],
    ) -> "ChainSpans":
        """Those of a problem without a table of bigrams; `moments` gives log Z and the marginals of a chain, as tensors."""
        if len(labels) != problem.shape[2]:
            raise ShapeError(f"labels: got {len(labels)} of them, the scores have {problem.shape[2]}.")
        known = SpanLabels.of(labels, scheme)
        states = span_states(known, problem.emissions.device)
        scores = compact(expand(problem, states))
        found = moments(ChainProblem(*scores, None, None, problem.lengths, None))
        return cls(problem, known, states, found[1])

    def __init__(
        self, problem: ChainProblem, labels: SpanLabels, states: SpanStates, marginals: Tensor
    ) -> None:
        self.labels, self._continues = labels, states.continues
        self._kept, self._positions = kept_positions(problem), token_positions(problem)
        marginals = torch.nn.functional.pad(marginals, (0, 1))  # 0 for the state that is none
        into = marginals[..., states.into]  # [B, T, C, M, M]
        self.begins = marginals[..., states.begins]  # [B, T, C, M]
        here = self.begins + into.sum(-2)
        after = torch.cat([into[:, 1:], torch.zeros_like(into[:, :1])], 1)
        self.goes = after / torch.where(here > 0, here, 1.0)[..., None]  # [B, T, C, M, M]
        self.stops = (1.0 - self.goes.sum(-1)).clamp_min(0.0)  # [B, T, C, M]

    def probabilities(self, spans: Tensor) -> Tensor:
        """The probabilities [n] of spans [n, 4]: sequence, start, end, type; 0 for what cannot be a span."""
        (B, T), C = self._kept.shape, self.begins.shape[2]
        row, start, end, kind = spans.to(self._kept.device, torch.int64).unbind(1)
        if self._kept.numel() == 0 or len(spans) == 0:
            return self.begins.new_zeros(len(spans))
        known = (row >= 0) & (row < B) & (start >= 0) & (start < end) & (end <= T) & (kind >= 0) & (kind < C)
        row, start, last, kind = (torch.where(known, part, 0) for part in (row, start, end - 1, kind))
        known = known & self._kept[row, start] & self._kept[row, last]
        token = self._kept.long().cumsum(1) - 1
        start, last = (torch.where(known, token[row, part], 0) for part in (start, last))
        mass = self.begins[row, start, kind]  # [n, M]
        for k in range(int((last - start).max())):
            at = torch.minimum(start + k, last)
            moved = (mass[:, :, None] * self.goes[row, at, kind]).sum(1)
            mass = torch.where((at < last)[:, None], moved, mass)
        return torch.where(known, (mass * self.stops[row, last, kind]).sum(1), 0.0)

    def find(self, threshold: float) -> tuple[Tensor, Tensor]:
        """All spans of probability `threshold` > 0 or more: [n, 4] sequence, start, end, type, in order; probabilities [n].

        All begins are followed together, length by length. What is left of a span only falls with its length, so it is
        dropped once it is below the threshold.
        """
        row, start, kind = torch.nonzero(self.begins.sum(-1) >= threshold, as_tuple=True)
        mass, last = self.begins[row, start, kind], start  # [n, M]: up to the token `last`, by its label
        spans, found = list[Tensor](), list[Tensor]()
        while True:
            probability = (mass * self.stops[row, last, kind]).sum(1)
            ends = torch.stack([row, self._positions[row, start], self._positions[row, last] + 1, kind], 1)
            reached = probability >= threshold
            spans.append(ends[reached])
            found.append(probability[reached])
            mass = (mass[:, :, None] * self.goes[row, last, kind]).sum(1)
            (left,) = torch.nonzero(mass.sum(1) >= threshold, as_tuple=True)
            if len(left) == 0:
                break
            row, start, kind, mass, last = row[left], start[left], kind[left], mass[left], last[left] + 1
        order = in_order(torch.cat(spans), self._kept.shape[1], self.begins.shape[2])
        return torch.cat(spans)[order], torch.cat(found)[order]

    def select(
        self, argmax: Callable[[], Tensor], threshold: float | None, decode: str | None
    ) -> list[list[Span]]:
        """The spans of each sequence: all above a threshold, of the best labels [B, T], or with the highest expected F1."""
        from crfkit.inference import check_decoding, select_spans  # only where the core is

        check_decoding(threshold, decode)
        return select_spans(
            lambda least: self.to_lists(*self.find(least)),
            lambda: self.to_lists(best := self.read(argmax()), self.probabilities(best)),
            lambda: float(self.begins.sum()),
            threshold,
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
            found[row].append(Span(start, end, self.labels.types[kind], p))
        return found


def in_order(spans: Tensor, n_positions: int, n_types: int) -> Tensor:
    """The order of spans [n, 4] by sequence, start, end and type."""
    row, start, end, kind = spans.unbind(1)
    return torch.argsort(((row * (n_positions + 1) + start) * (n_positions + 1) + end) * n_types + kind)
