"""Random chains in which patterns begin, for the table of laws."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from crfkit.structures import Chain, MatcherState, MatcherWriter, PatternChain, PatternScores, PatternStarts
from tests.oracles.instances import ChainInstance
from tests.oracles.oracle import Bools, Floats, PatternOracle, PatternState, StartedPattern


@dataclass(frozen=True)
class PatternInstance(ChainInstance):
    """A chain with patterns: `chain` is what it would be without them."""

    structure: Any
    scores: Any
    patterns: tuple[StartedPattern, ...] = ()

    @classmethod
    def of(cls, plain: ChainInstance, patterns: Sequence[StartedPattern], weights: Floats) -> PatternInstance:
        """A chain instance with patterns that begin in it."""
        scores = plain.scores
        with_weights = PatternScores(scores.emissions, scores.transitions, scores.start, scores.end, weights)
        structure = pattern_chain(plain.structure, patterns, plain.n_positions, plain.n_labels, len(weights))
        return cls(structure, with_weights, plain.allowed, plain.exists, tuple(patterns))

    @property
    def plain(self) -> ChainInstance:
        """The chain alone."""
        return ChainInstance(self.structure.chain, self.scores, self.allowed, self.exists)

    @cached_property
    def oracle(self) -> PatternOracle:
        """Brute force over the same scores."""
        scores, chain = self.scores, self.structure.chain
        return PatternOracle(
            self.patterns,
            scores.weights,
            scores.emissions,
            scores.transitions,
            scores.start,
            scores.end,
            allowed=self.allowed,
            has_start=chain.start,
            has_end=chain.end,
            exists=None if chain.unseen == "soft" else self.exists,
        )

    @property
    def n_weights(self) -> int:
        """W."""
        return len(self.scores.weights)

    def flat(self, parts: Any) -> Floats:
        """Numbers per part as one vector, those of the weights last."""
        return np.concatenate([super().flat(parts), parts.weights])

    def existing(self) -> Bools:
        """Which entries of the vector can be given scores."""
        return np.concatenate([super().existing(), np.ones(self.n_weights, dtype=np.bool_)])

    def part_scores(self, vector: Floats) -> PatternScores:
        """Scores of this instance's shape from a vector."""
        chain, weights = self._cut(vector)
        plain = super().part_scores(chain)
        return PatternScores(plain.emissions, plain.transitions, plain.start, plain.end, weights)

    def reversed(self) -> PatternInstance:
        """The chain and its patterns read from the end."""
        T = self.n_positions
        turned = [
            line(T - pattern.position - len(sets), sets[::-1], weight, pattern.value)
            for pattern in self.patterns
            for sets, weight in spelled_out(pattern, T)
        ]
        return PatternInstance.of(self.plain.reversed(), turned, self.scores.weights)

    def split(self, vector: Floats) -> tuple[Floats, Floats, Floats, Floats]:
        """Numbers per part of the chain as states, arcs, start, end."""
        return super().split(self._cut(vector)[0])

    def reversed_parts(self, vector: Floats) -> Floats:
        """Numbers per part in the order of the reversed instance."""
        chain, weights = self._cut(vector)
        return np.concatenate([super().reversed_parts(chain), weights])

    def renamed(self, order: Any) -> PatternInstance:
        """Label j of the new instance is label `order[j]` of this one."""
        new = {int(old): j for j, old in enumerate(order)}
        patterns = [
            pattern._replace(
                states=tuple(
                    state._replace(
                        transitions=tuple(
                            (frozenset(new[b] for b in labels), to) for labels, to in state.transitions
                        )
                    )
                    for state in pattern.states
                )
            )
            for pattern in self.patterns
        ]
        return PatternInstance.of(self.plain.renamed(order), patterns, self.scores.weights)

    def renamed_parts(self, vector: Floats, order: Any) -> Floats:
        """Numbers per part in the order of the renamed instance."""
        chain, weights = self._cut(vector)
        return np.concatenate([super().renamed_parts(chain, order), weights])

    def spelled_out(self) -> PatternInstance:
        """The same with nothing left to default, and every pattern as lines without loops."""
        lines = [
            line(pattern.position, sets, weight, pattern.value)
            for pattern in self.patterns
            for sets, weight in spelled_out(pattern, self.n_positions)
        ]
        return PatternInstance.of(self.plain.spelled_out(), lines, self.scores.weights)

    def _cut(self, vector: Floats) -> tuple[Floats, Floats]:
        """The numbers of the chain's parts, and of the weights."""
        n = len(vector) - self.n_weights
        return vector[:n], vector[n:]


def line(position: int, sets: Sequence[frozenset[int]], weight: int, value: float) -> StartedPattern:
    """A pattern of these label sets one after the other."""
    states = [PatternState(((labels, i + 1),)) for i, labels in enumerate(sets)]
    return StartedPattern(position, (*states, PatternState((), weight)), value)


def spelled_out(
    pattern: StartedPattern, n_positions: int
) -> Iterator[tuple[tuple[frozenset[int], ...], int]]:
    """Every path to a state that activates a weight, as (label sets of its positions, weight)."""
    open_paths: list[tuple[tuple[frozenset[int], ...], int]] = [((), 0)]
    while open_paths:
        sets, here = open_paths.pop()
        end = pattern.position + len(sets)  # the position after the last one read
        state = pattern.states[here]
        if sets and state.activates >= 0 and (end == n_positions or not state.last_only):
            yield sets, state.activates
        if end < n_positions:
            open_paths += [((*sets, labels), after) for labels, after in state.transitions]


def pattern_chain(
    chain: Chain, patterns: Sequence[StartedPattern], n_positions: int, n_labels: int, n_weights: int
) -> PatternChain:
    """The structure with these patterns."""
    writer = MatcherWriter(n_labels)
    starts = []
    for pattern in patterns:
        lasts = pattern.states[-1]
        linear = all(
            len(state.transitions) == 1 and state.transitions[0][1] == i + 1 and state.activates < 0
            for i, state in enumerate(pattern.states[:-1])
        )
        if linear and len(pattern.states) > 1 and not lasts.transitions and lasts.activates >= 0:
            sets = [state.transitions[0][0] for state in pattern.states[:-1]]
            number = writer.chain(sets, lasts.activates, last_only=lasts.last_only)
        else:
            number = writer.automaton([MatcherState(*state) for state in pattern.states])
        starts.append((pattern.position, number, pattern.value))
    writer.chain([range(n_labels)], n_weights - 1)  # begins nowhere: the matcher has all weights
    return PatternChain(chain, writer.matcher(), PatternStarts.at(n_positions, starts))


def draw_line(random: np.random.Generator, n_positions: int, n_labels: int, n_weights: int) -> StartedPattern:
    """Label sets, single labels and wildcards one after the other, perhaps anchored at the end."""
    position = int(random.integers(n_positions))
    length = int(random.integers(1, n_positions - position + 2))  # now and then too long
    sets = []
    for _ in range(length):
        kind = random.integers(3)
        size = (1, n_labels, int(random.integers(1, n_labels + 1)))[kind]
        sets.append(frozenset(random.choice(n_labels, size=size, replace=False).tolist()))
    value = float(random.choice([1.0, 1.0, 0.5, -1.3]))
    drawn = line(position, sets, int(random.integers(n_weights)), value)
    if random.random() < 0.2:
        drawn = drawn._replace(states=(*drawn.states[:-1], drawn.states[-1]._replace(last_only=True)))
    return drawn


def draw_loop(random: np.random.Generator, n_positions: int, n_labels: int, n_weights: int) -> StartedPattern:
    """An automaton of up to three states with any transitions between them."""
    n = int(random.integers(1, 4))
    states = []
    for _ in range(n):
        order = random.permutation(n_labels).tolist()
        cut = int(random.integers(n_labels + 1))
        groups = [group for group in (order[:cut], order[cut:]) if group and random.random() < 0.8]
        transitions = tuple((frozenset(group), int(random.integers(n))) for group in groups)
        states.append(
            PatternState(transitions, int(random.integers(-1, n_weights)), bool(random.random() < 0.2))
        )
    return StartedPattern(int(random.integers(n_positions)), tuple(states), float(random.choice([1.0, 0.7])))


def with_patterns(
    random: np.random.Generator,
    plain: ChainInstance,
    *,
    lines: int = 8,
    loops: int = 0,
    weights: int = 4,
    scale: float = 1.0,
    tied: bool = False,
    endings: bool = False,
) -> PatternInstance:
    """Patterns that begin in a chain: up to so many lines and loops, with weights of this size."""
    T, L = plain.n_positions, plain.n_labels
    patterns: list[StartedPattern] = []
    if T:
        patterns += [draw_line(random, T, L, weights) for _ in range(lines)]
        patterns += [draw_loop(random, T, L, weights) for _ in range(loops)]
    if tied and T:  # the same ones at several positions: what is alive becomes equal
        patterns = [
            pattern._replace(position=int(position), value=1.0)
            for pattern in patterns[:3]
            for position in random.integers(T, size=4)
        ]
    if endings:
        patterns = [
            pattern._replace(position=max(T + 1 - len(pattern.states), 0)) for pattern in patterns
        ]  # all end at the last position: fewer arcs when it is read first
    return PatternInstance.of(plain, patterns, random.normal(size=weights) * scale)
