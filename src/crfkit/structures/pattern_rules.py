"""Writes patterns and grams into a matcher, and records where each of them may begin.

All grams that may begin at the same positions form one trie, with one start state.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from crfkit.arrays import Int64s
from crfkit.structures.label_counts import FIRST, LAST, Gram
from crfkit.structures.pattern_automaton import Automaton, after_all, bits
from crfkit.structures.pattern_matcher import NO_WEIGHT, MatcherState, MatcherWriter


class Rule(NamedTuple):
    """A start state, and the positions of a sequence where it may begin, before any condition."""

    state: int
    least: int  # minimum length of a match
    first: bool = False  # only at the first position
    ends: int | None = None  # maximum length of a match that ends at the last position

    @property
    def everywhere(self) -> bool:
        """Whether it may begin at any position; a match that does not fit in the sequence fails anyway."""
        return not self.first and self.ends is None

    def positions(self, ptr: Int64s) -> Int64s:
        """Where it begins in sequences whose positions are ptr[n]:ptr[n + 1], ascending."""
        begins, ends = ptr[:-1], ptr[1:] - self.least + 1  # [N] from, and up to but without
        if self.first:
            ends = np.minimum(ends, begins + 1)
        if self.ends is not None:
            begins = np.maximum(begins, ptr[1:] - self.ends)
        counts = np.maximum(ends - begins, 0)
        shift = begins - np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)[:-1]])
        positions: Int64s = np.arange(counts.sum()) + np.repeat(shift, counts)
        return positions


def write_pattern(
    writer: MatcherWriter, automaton: Automaton, weight: int, *, first: bool, last: bool
) -> Rule:
    """A pattern with its weight; `first` and `last` anchor it at the ends of a sequence."""
    least, most = automaton.lengths()
    activates = [weight if accept else NO_WEIGHT for accept in automaton.accepts]
    at_end = [last and accept for accept in automaton.accepts]
    rule = Rule(0, least, first, most if last else None)
    order = list(after_all(automaton.arcs))
    if None in order:  # it has loops
        states = [
            MatcherState([(bits(labels), to) for labels, to in arcs], activates[q], at_end[q])
            for q, arcs in enumerate(automaton.arcs)
        ]
        return rule._replace(state=writer.automaton(states))
    number: dict[int | None, int] = {}
    for q in order:
        if q is not None:
            transitions = [(bits(labels), number[to]) for labels, to in automaton.arcs[q]]
            number[q] = writer.state(transitions, activates[q], last_only=at_end[q])
    return rule._replace(state=number[0])


def write_grams(writer: MatcherWriter, weights: Mapping[Gram, int]) -> list[Rule]:
    """Grams with their weights, as tries: one for those anywhere, one for the first positions, one by length for the
    last.
    """
    anywhere: dict[tuple[int, ...], int] = {}
    first: dict[tuple[int, ...], int] = {}
    last: dict[int, dict[tuple[int, ...], int]] = {}
    for gram, weight in weights.items():
        if gram.where == LAST:
            last.setdefault(len(gram.labels), {})[gram.labels] = weight
        else:
            (first if gram.where == FIRST else anywhere)[gram.labels] = weight
    rules = []
    for runs, is_first in ((anywhere, False), (first, True)):
        if runs:
            rules.append(Rule(_tree(writer, runs), min(map(len, runs)), is_first))
    for length, runs in sorted(last.items()):
        rules.append(Rule(_tree(writer, runs), length, ends=length))
    return rules


def _tree(writer: MatcherWriter, runs: Mapping[tuple[int, ...], int]) -> int:
    """The start state of a trie of runs of labels, each of which activates its weight."""
    children: dict[tuple[int, ...], dict[int, list[int]]] = {}  # prefix of a run → next state → labels
    by_length: dict[int, dict[tuple[int, ...], None]] = {}
    for run in runs:
        for length in range(len(run), 0, -1):
            beginnings = by_length.setdefault(length, {})
            if run[:length] in beginnings:
                break
            beginnings[run[:length]] = None
    for length in sorted(by_length, reverse=True):
        for run in by_length[length]:
            state = writer.state(_transitions(children.get(run, {})), runs.get(run, NO_WEIGHT))
            children.setdefault(run[:-1], {}).setdefault(state, []).append(run[-1])
    return writer.state(_transitions(children[()]))


def _transitions(children: Mapping[int, Sequence[int]]) -> Iterable[tuple[Sequence[int], int]]:
    return [(labels, state) for state, labels in children.items()]
