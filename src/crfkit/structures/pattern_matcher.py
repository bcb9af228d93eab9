"""All patterns of a model as one automaton over labels.

A pattern begins at a position in its start state and reads the labels from there on. A state has transitions (set of labels,
next state) with disjoint sets: at most one of them reads a label; if none does, the match fails. Entering a state may
activate a weight, and the match may continue. The pattern of the sets Z_1 × … × Z_k is a chain of k + 1 states, of which
the last one activates a weight; loops make patterns of any length.

    score(y) = … + Σ_{starts (position, state, value)} Σ_{states q reached by y from there} value · w[activates[q]]

States with the same future should be merged: then fewer distinct sets of states are alive at a position, and the trellis is
smaller. `MatcherWriter` does so for chains.

Letters: L labels, S label sets, Q states, E transitions.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from crfkit.arrays import Float64s, Int32s, Int64s, offsets
from crfkit.errors import ArgumentError

NO_WEIGHT = -1


@dataclass(frozen=True, eq=False)
class PatternMatcher:
    """The automaton as flat arrays. Set s has the labels `set_labels[set_ptr[s]:set_ptr[s + 1]]`, ascending."""

    n_labels: int
    set_ptr: Int64s  # [S + 1]
    set_labels: Int32s
    out_ptr: Int64s  # [Q + 1] the transitions of state q are out_ptr[q], …, out_ptr[q + 1] − 1
    out_set: Int32s  # [E] the label set that a transition reads
    out_next: Int32s  # [E] the state it leads to
    activates: Int32s  # [Q] the weight activated on entering; −1: none
    last_only: npt.NDArray[np.uint8]  # [Q] 1: only at the last position of a sequence

    @classmethod
    def linear(
        cls, n_labels: int, configurations: Iterable[tuple[Sequence[Iterable[int]], int]]
    ) -> "tuple[PatternMatcher, Int32s]":
        """The matcher of some configurations (label sets of consecutive positions, weight), and the start state of each.

        >>> matcher, starts = PatternMatcher.linear(3, [([{0}, {1, 2}], 0), ([{2}, {1, 2}], 0)])
        >>> matcher.n_states, starts.tolist()  # both end alike
        (4, [2, 3])
        """
        writer = MatcherWriter(n_labels)
        starts = [writer.chain(sets, weight) for sets, weight in configurations]
        return writer.matcher(), np.array(starts, dtype=np.int32)

    @property
    def n_states(self) -> int:
        """Q."""
        return len(self.activates)

    @property
    def n_weights(self) -> int:
        """One more than the highest weight."""
        return int(self.activates.max(initial=NO_WEIGHT)) + 1

    def next_state(self, state: int, label: int) -> int:
        """The next state after reading a label; −1: the match fails."""
        for edge in range(self.out_ptr[state], self.out_ptr[state + 1]):
            begin, end = self.set_ptr[self.out_set[edge] : self.out_set[edge] + 2]
            if label in self.set_labels[begin:end]:
                return int(self.out_next[edge])
        return -1

    def counts(
        self, output: Sequence[int], start_ptr: Int64s, start_states: Int32s, start_values: Float64s
    ) -> Float64s:
        """Pattern counts of one label sequence, [n_weights]; position t has the starts start_ptr[t]:start_ptr[t + 1]."""
        active = np.zeros(self.n_weights)
        last = len(output) - 1
        for begin in range(len(output)):
            for start in range(start_ptr[begin], start_ptr[begin + 1]):
                state = int(start_states[start])
                for position in range(begin, len(output)):
                    state = self.next_state(state, int(output[position]))
                    if state < 0:
                        break
                    if self.activates[state] != NO_WEIGHT and (position == last or not self.last_only[state]):
                        active[self.activates[state]] += start_values[start]
        return active


class MatcherState(NamedTuple):
    """A state of a pattern with loops, whose states are numbered from 0."""

    transitions: Sequence[tuple[Iterable[int], int]] = ()  # (labels, next state), with disjoint labels
    activates: int = NO_WEIGHT
    last_only: bool = False


class MatcherWriter:
    """Collects patterns into a matcher. Equal suffixes of chains are merged, and so are equal patterns.

    >>> writer = MatcherWriter(n_labels=2)
    >>> start = writer.chain([{0}, {0, 1}, {1}], weight=0)
    >>> loop = writer.automaton([MatcherState([({0}, 1)]), MatcherState([({0}, 1)], activates=1)])  # one 0 or more
    >>> writer.matcher().n_weights
    2
    """

    def __init__(self, n_labels: int) -> None:
        self._n_labels = n_labels
        self._sets: dict[tuple[int, ...], int] = {}
        self._states: list[
            tuple[tuple[tuple[int, int], ...], int, bool]
        ] = []  # (set, next) pairs, weight, last_only
        self._known: dict[object, int] = {}  # equal states and equal automata → the first state

    def chain(self, sets: Sequence[Iterable[int]], weight: int, *, last_only: bool = False) -> int:
        """The start state of Z_1 × … × Z_k, which activates `weight`; with `last_only` only if the match ends at the last
        position.
        """
        if len(sets) == 0:
            raise ArgumentError("A pattern has no label sets, expected at least one.")
        state = self._state((), weight, last_only)
        for labels in reversed(sets):
            state = self._state(((self._set(labels), state),), NO_WEIGHT, False)
        return state

    def state(
        self,
        transitions: Iterable[tuple[Iterable[int], int]] = (),
        activates: int = NO_WEIGHT,
        *,
        last_only: bool = False,
    ) -> int:
        """The state with these transitions, created if it is new; for patterns without loops, from the last state on."""
        return self._state(
            tuple(sorted((self._set(labels), after) for labels, after in transitions)), activates, last_only
        )

    def automaton(self, states: Sequence[MatcherState]) -> int:
        """The start state of a pattern with loops: the first of its states, numbered from 0."""
        spelled = tuple(
            (
                tuple((self._set(labels), after) for labels, after in state.transitions),
                state.activates,
                state.last_only,
            )
            for state in states
        )
        first = len(self._states)
        known = self._known.setdefault(("automaton", spelled), first)
        if known == first:
            for transitions, activates, last_only in spelled:
                shifted = tuple((labels, after + first) for labels, after in transitions)
                self._states.append((shifted, activates, last_only))
        return known

    def copy(self) -> "MatcherWriter":
        """A copy of this writer."""
        other = MatcherWriter(self._n_labels)
        other._sets, other._states, other._known = dict(self._sets), list(self._states), dict(self._known)
        return other

    def matcher(self) -> PatternMatcher:
        """What has been collected so far."""
        transitions = [edge for outs, _, _ in self._states for edge in outs]
        labels = [label for labels in self._sets for label in labels]
        return PatternMatcher(
            self._n_labels,
            offsets([len(labels) for labels in self._sets]),
            np.array(labels, dtype=np.int32),
            offsets([len(outs) for outs, _, _ in self._states]),
            np.array([labels for labels, _ in transitions], dtype=np.int32),
            np.array([after for _, after in transitions], dtype=np.int32),
            np.array([activates for _, activates, _ in self._states], dtype=np.int32),
            np.array([last_only for _, _, last_only in self._states], dtype=np.uint8),
        )

    def _set(self, labels: Iterable[int]) -> int:
        """The number of a label set."""
        key = tuple(sorted({int(label) for label in labels}))
        if not key or key[0] < 0 or key[-1] >= self._n_labels:
            raise ArgumentError(
                f"A pattern has the label set {list(key)}, expected labels from 0 to {self._n_labels - 1}, at least one."
            )
        return self._sets.setdefault(key, len(self._sets))

    def _state(self, transitions: tuple[tuple[int, int], ...], activates: int, last_only: bool) -> int:
        """The state with these transitions, created if it is new."""
        key = (transitions, activates, last_only)
        number = self._known.setdefault(key, len(self._states))
        if number == len(self._states):
            self._states.append(key)
        return number
