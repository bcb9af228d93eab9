"""Random data with patterns, and what each label sequence has of each weight."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from crfkit import _core
from crfkit.structures import MatcherWriter
from tests.oracles.patterns import core_matcher

Float64s = npt.NDArray[np.float64]
L, F = 3, 4  # labels, features: all pairs have weights
ARCS = F * L  # where the weights of arcs begin: L·L of them, then those from the start and to the end
PATTERNS = ARCS + L * L + 2 * L


@dataclass
class PatternCase:
    """Random sequences with features, patterns, labels that may be partly known, and constraints."""

    seed: int
    partly: bool = False
    allowed: bool = False
    bigrams: bool = False
    together: bool = False  # all features come together, each with a value of 1
    lengths: list[int] = field(init=False)

    KINDS: ClassVar = [
        {"partly": partly, "allowed": allowed, "bigrams": bigrams}
        for partly, allowed, bigrams in itertools.product((False, True), repeat=3)
    ]

    def __post_init__(self) -> None:
        random = np.random.default_rng(self.seed)
        self.lengths = random.integers(0, 5, size=9).tolist() + [4] * 20  # more than one vector has lanes
        self.positions: list[list[tuple[int, float]]] = [
            [(int(f), float(random.choice([1.0, -0.5]))) for f in np.flatnonzero(random.random(F) < 0.6)]
            for _ in range(sum(self.lengths))
        ]
        if self.together:
            self.positions = [[(f, 1.0) for f in range(F)] if found else [] for found in self.positions]
        self.weight = random.uniform(0.5, 2.0, size=len(self.lengths))
        ptr = np.cumsum([0, *self.lengths])
        self.n_patterns = 4
        self.patterns: list[tuple[int, int, list[set[int]], int, float]] = []
        for n, length in enumerate(self.lengths):
            shared = np.random.default_rng(length) if n >= 9 else random  # those of the last twenty are alike
            for _ in range(6 if length else 0):
                first = int(shared.integers(0, length))
                size = int(shared.integers(1, length - first + 1))
                sets = [set(np.flatnonzero(shared.random(L) < 0.7).tolist()) or {0} for _ in range(size)]
                value = float(shared.choice([1.0, 2.0, -0.5]))
                self.patterns.append((n, first, sets, int(shared.integers(self.n_patterns)), value))
        self.pairs = {(a, b) for a in range(L) for b in range(L) if not (self.bigrams and (a, b) == (0, 1))}
        self.open = [
            {0, 2} if self.allowed and random.random() < 0.3 else set(range(L))
            for _ in range(sum(self.lengths))
        ]
        self.gold: list[set[int]] = []
        for n, length in enumerate(self.lengths):
            possible = self.outputs(n)
            path = possible[int(random.integers(len(possible)))] if length else ()
            for t, label in enumerate(path):
                wide = self.partly and random.random() < 0.4
                self.gold.append({label, int(random.integers(L))} if wide else {label})
                self.gold[-1] &= self.open[int(ptr[n]) + t]
        self.ptr = ptr

    def outputs(self, n: int) -> list[tuple[int, ...]]:
        """Every label sequence of sequence n that exists."""
        begin = sum(self.lengths[:n])
        every = itertools.product(*(sorted(self.open[begin + t]) for t in range(self.lengths[n])))
        return [y for y in every if all(pair in self.pairs for pair in itertools.pairwise(y))]

    def features(self, n: int, y: tuple[int, ...]) -> Float64s:
        """Φ of one label sequence, [D]."""
        phi = np.zeros(PATTERNS + self.n_patterns)
        for t, label in enumerate(y):
            for f, value in self.positions[int(self.ptr[n]) + t]:
                phi[f * L + label] += value
        for a, b in itertools.pairwise(y):
            phi[ARCS + a * L + b] += 1
        if y:
            phi[ARCS + L * L + y[0]] += 1
            phi[ARCS + L * L + L + y[-1]] += 1
        for sequence, first, sets, weight, value in self.patterns:
            if sequence == n and all(y[first + i] in labels for i, labels in enumerate(sets)):
                phi[PATTERNS + weight] += value
        return phi

    def trellises(
        self, n_threads: int = 1, purpose: str = "patterns"
    ) -> tuple[_core.Layout, _core.Trellises]:
        """The data for the core."""
        before, after = (
            np.array(x, dtype=np.int32) for x in zip(*itertools.product(range(L), repeat=2), strict=True)
        )
        ends = np.arange(L, dtype=np.int32)
        outside = np.full(L, L, np.int32)
        arcs = (np.concatenate([before, outside, ends]), np.concatenate([after, ends, outside]))
        exist: tuple[npt.NDArray[np.int32] | None, npt.NDArray[np.int32] | None] = (None, None)
        if self.bigrams:
            listed = [*sorted(self.pairs), *((L, b) for b in range(L)), *((a, L) for a in range(L)), (L, L)]
            exist = np.array([a for a, _ in listed], np.int32), np.array([b for _, b in listed], np.int32)
        none = np.zeros(0, np.int32)
        layout = _core.Layout(
            L, np.arange(0, F * L + 1, L), np.tile(ends, F), np.zeros(0, np.int64), *arcs, np.zeros(1, np.int64), none,
            *exist,
        )  # fmt: skip
        position_ptr = np.cumsum([0, *map(len, self.positions)])
        ids = np.array([f for position in self.positions for f, _ in position], dtype=np.int32)
        values = np.array([value for position in self.positions for _, value in position])
        if self.together:
            values = np.zeros(0)  # all are 1
        allowed: tuple[npt.NDArray[np.int64] | None, npt.NDArray[np.int32] | None] = (None, None)
        if self.allowed:
            lists = [sorted(labels) if len(labels) < L else [] for labels in self.open]
            allowed = np.cumsum([0, *map(len, lists)]), np.array([*itertools.chain(*lists)], dtype=np.int32)
        design = _core.Design(
            layout, self.ptr, position_ptr, ids, values, None, None, None, [], 1, *allowed, purpose=purpose
        )
        writer = MatcherWriter(L)
        starts = sorted(
            (int(self.ptr[n]) + first, writer.chain(sets, weight), value)
            for n, first, sets, weight, value in self.patterns
        )
        at = np.array([start[0] for start in starts], dtype=np.int64)
        return layout, _core.Trellises(
            layout,
            design,
            core_matcher(writer.matcher()),
            np.searchsorted(at, np.arange(len(self.positions) + 1)).astype(np.int64),
            np.array([start[1] for start in starts], dtype=np.int32),
            np.array([start[2] for start in starts]),
            PATTERNS,
            1000,
            100_000,
            n_threads,
        )

    def loss(self, *, single_precision: bool = False, n_threads: int = 1) -> _core.DataLoss:
        """The one to be tested."""
        known = np.array([next(iter(s)) if len(s) == 1 else -1 for s in self.gold], dtype=np.int32)
        sets = [sorted(s) if 1 < len(s) < L else [] for s in self.gold]
        partial: tuple[npt.NDArray[np.int64] | None, npt.NDArray[np.int32] | None] = (None, None)
        if self.partly:
            partial = np.cumsum([0, *map(len, sets)]), np.array([*itertools.chain(*sets)], dtype=np.int32)
        return _core.pattern_loss(
            self.trellises(n_threads)[1],
            None,
            known,
            *partial,
            self.weight,
            PATTERNS + self.n_patterns,
            single_precision,
            n_threads,
        )
