"""Random chains, for the table of laws.

An instance is a structure with scores and allowed labels, the oracle that knows the answers, and equivalent
forms of itself: reversed, renamed, spelled out. A new structure is
one class with these methods and its rows in `tests/oracles/rows.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from crfkit.structures import END, START, Bigrams, Chain, ChainScores
from tests.oracles.oracle import Bools, ChainOracle, ChainParts, Floats, Output


@dataclass(frozen=True)
class ChainInstance:
    """A chain with scores, perhaps with allowed labels, and what brute force says about it."""

    structure: Chain
    scores: ChainScores
    allowed: Bools | None = None
    exists: Bools | None = None  # [L + 1, L + 1] the bigrams (before, after); L: START, END

    @cached_property
    def oracle(self) -> ChainOracle:
        """Brute force over the same scores."""
        scores, structure = self.scores, self.structure
        return ChainOracle(
            scores.emissions,
            scores.transitions,
            scores.start,
            scores.end,
            allowed=self.allowed,
            has_start=structure.start,
            has_end=structure.end,
            exists=None if structure.unseen == "soft" else self.exists,
        )

    @property
    def parts(self) -> ChainParts:
        """How the parts are numbered."""
        return ChainParts(self.n_positions, self.n_labels)

    @property
    def n_positions(self) -> int:
        """T."""
        return self.scores.n_positions

    @property
    def n_labels(self) -> int:
        """L."""
        return self.scores.n_labels

    @property
    def scale(self) -> float:
        """What rounding errors are relative to: the largest score of a part, at least 1."""
        finite = np.abs(self.flat(self.scores))
        return float(np.max(finite[np.isfinite(finite)], initial=1.0))

    def flat(self, parts: Any) -> Floats:
        """Numbers per part (scores, or marginals) as one vector [P], in the order of the oracle."""
        return self.parts.flat(parts.emissions, parts.transitions, parts.start, parts.end)

    def existing(self) -> Bools:
        """Which entries of the vector [P] can be given scores."""
        ones = np.ones(self.n_labels)
        start, end = ones * self.structure.start, ones * self.structure.end
        arcs = np.ones((max(self.n_positions - 1, 0), self.n_labels, self.n_labels))
        return self.parts.flat(np.ones((self.n_positions, self.n_labels)), arcs, start, end) > 0

    def part_scores(self, vector: Floats) -> ChainScores:
        """Scores of this instance's shape from a vector [P]."""
        states, arcs, start, end = self.parts.split(vector)
        return ChainScores(
            states, arcs, start if self.structure.start else None, end if self.structure.end else None
        )

    def with_scores(self, vector: Floats) -> ChainInstance:
        """The same question about other scores."""
        return replace(self, scores=self.part_scores(vector))

    def shifted(self, position: int, by: float) -> ChainInstance:
        """Every label of one position scores `by` more: so does every output."""
        states = self.scores.emissions.copy()
        states[position] += by
        return replace(self, scores=replace(self.scores, emissions=states))

    def reversed(self) -> ChainInstance:
        """The chain read from its end; its outputs are the reversed outputs."""
        scores = self.scores
        arcs = None if scores.transitions is None else np.swapaxes(scores.transitions, -1, -2)
        if arcs is not None and arcs.ndim == 3:
            arcs = arcs[::-1]
        exists = None if self.exists is None else self.exists.T
        return ChainInstance(
            chain_of(exists, self.structure.end, self.structure.start, self.structure.unseen),
            ChainScores(scores.emissions[::-1], arcs, scores.end, scores.start),
            None if self.allowed is None else self.allowed[::-1],
            exists,
        )

    def split(self, vector: Floats) -> tuple[Floats, Floats, Floats, Floats]:
        """Numbers per part [P] of the chain as states, arcs, start, end."""
        return self.parts.split(vector)

    def reversed_parts(self, vector: Floats) -> Floats:
        """Numbers per part [P] in the order of the reversed instance."""
        states, arcs, start, end = self.parts.split(vector)
        return self.parts.flat(states[::-1], arcs[::-1].transpose(0, 2, 1), end, start)

    def renamed_parts(self, vector: Floats, order: Any) -> Floats:
        """Numbers per part [P] in the order of the renamed instance."""
        states, arcs, start, end = self.parts.split(vector)
        return self.parts.flat(states[:, order], arcs[:, order][:, :, order], start[order], end[order])

    def renamed(self, order: Any) -> ChainInstance:
        """Label j of the new instance is label `order[j]` of this one."""
        scores, structure = self.scores, self.structure
        with_ends = [*order, self.n_labels]
        exists = None if self.exists is None else self.exists[with_ends][:, with_ends]
        return replace(
            self,
            structure=chain_of(exists, structure.start, structure.end, structure.unseen),
            exists=exists,
            scores=ChainScores(
                scores.emissions[:, order],
                None if scores.transitions is None else scores.transitions[..., order, :][..., order],
                None if scores.start is None else scores.start[order],
                None if scores.end is None else scores.end[order],
            ),
            allowed=None if self.allowed is None else self.allowed[:, order],
        )

    def draw_order(self, random: np.random.Generator) -> Any:
        """New names for the labels."""
        return random.permutation(self.n_labels)

    def everything(self) -> Bools:
        """AllowedLabels that allows all labels."""
        return np.ones((self.n_positions, self.n_labels), dtype=np.bool_)

    def allowing(self, output: Output) -> Bools:
        """AllowedLabels that leaves one output."""
        return np.asarray(np.arange(self.n_labels) == np.reshape(output, (-1, 1)))

    def allowed_of_one(self, random: np.random.Generator) -> tuple[Bools, float]:
        """AllowedLabels of the likeliest label of one position, and its probability."""
        position = int(random.integers(self.n_positions))
        probabilities = self.split(self.oracle.marginals)[0][position]  # [L]
        mask = self.everything() if self.allowed is None else self.allowed.copy()
        mask[position] = np.arange(self.n_labels) == probabilities.argmax()
        return mask, float(probabilities.max())

    def draw_outputs(self, random: np.random.Generator, n: int) -> Any:
        """Any labels, possible or not."""
        return random.integers(self.n_labels, size=(n, self.n_positions))

    def check_sums(self, vector: Floats) -> None:
        """The labels of a position have probability 1, and arcs add up to the labels at their ends."""
        states, arcs, start, end = self.split(vector)
        np.testing.assert_allclose(states.sum(axis=1), 1.0, rtol=0, atol=1e-9)
        np.testing.assert_allclose(arcs.sum(axis=2), states[:-1], rtol=0, atol=1e-9)
        np.testing.assert_allclose(arcs.sum(axis=1), states[1:], rtol=0, atol=1e-9)
        if self.n_positions:
            np.testing.assert_allclose(start, states[0] * self.structure.start, rtol=0, atol=1e-9)
            np.testing.assert_allclose(end, states[-1] * self.structure.end, rtol=0, atol=1e-9)

    def spelled_out(self) -> ChainInstance:
        """The same with nothing left to default: arcs by pair, allowed labels and bigrams as forbidden states and arcs."""
        states, arcs, start, end = self.parts.split(self.flat(self.scores).copy())
        if self.allowed is not None:
            states[~self.allowed] = -np.inf
        if self.exists is not None and self.structure.unseen != "soft":
            arcs[:, ~self.exists[:-1, :-1]] = -np.inf
            states[:1, ~self.exists[-1, :-1]] = states[-1:, ~self.exists[:-1, -1]] = -np.inf
        plain = replace(
            self, structure=Chain(start=self.structure.start, end=self.structure.end), exists=None
        )
        return replace(
            plain, scores=plain.part_scores(self.parts.flat(states, arcs, start, end)), allowed=None
        )


def chain_of(exists: Bools | None, start: bool, end: bool, unseen: str = "error") -> Chain:
    """A chain with these bigrams [L + 1, L + 1], bound to labels a, b, c …"""
    if exists is None:
        return Chain(start=start, end=end)
    labels = "abcdefgh"[: len(exists) - 1]
    pairs = [((*labels, START)[i], (*labels, END)[j]) for i, j in np.argwhere(exists).tolist()]
    return Chain(start, end, Bigrams(pairs), unseen).bind(labels, [])


def draw_bigrams(random: np.random.Generator, alive: Any, n_labels: int, share: float) -> Bools:
    """About this share of all pairs, and those of one output that is to exist."""
    exists = random.random((n_labels + 1, n_labels + 1)) < share
    path = [n_labels, *alive, n_labels]
    exists[path[:-1], path[1:]] = True
    return exists


def bio_bigrams(n_types: int) -> Bools:
    """The rule written out for the labels O, B-1, I-1, B-2, I-2 …: I-t stands only after B-t and I-t."""
    exists = np.ones((2 * n_types + 2, 2 * n_types + 2), dtype=np.bool_)
    for kind in range(n_types):
        begin, inside = 2 * kind + 1, 2 * kind + 2
        exists[:, inside] = False
        exists[[begin, inside], inside] = True
    return exists


def draw_chain(
    random: np.random.Generator,
    *,
    positions: tuple[int, int] = (1, 6),
    labels: tuple[int, int] = (1, 4),
    arcs: str = "shared",
    start: bool = True,
    end: bool = True,
    scale: float = 1.0,
    forbidden: float = 0.0,
    restricted: float = 0.0,
    whole: bool = False,
    bigrams: float | str | None = None,
    unseen: str = "error",
) -> ChainInstance:
    """A random chain on which at least one output exists.

    `arcs` are "shared", "pairs" (other scores for every pair of positions) or "none"; `forbidden` is the
    share of parts with score −inf, `restricted` the share of labels that the allowed labels excludes; `whole`
    scores often tie. `bigrams` is the share of pairs that exist, or "bio".
    """
    T = int(random.integers(positions[0], positions[1] + 1))
    L = int(random.integers(labels[0], labels[1] + 1))
    alive = random.integers(L, size=T)  # an output that is never forbidden
    exists = None
    if bigrams == "bio":
        exists = bio_bigrams((L - 1) // 2)
        alive[:] = 0  # all outside
    elif isinstance(bigrams, float):
        exists = draw_bigrams(random, alive, L, bigrams)

    def numbers(shape: tuple[int, ...], kept: Any) -> Floats:
        values = np.rint(random.normal(size=shape)) if whole else random.normal(size=shape) * scale
        kept_values = values[kept]
        values[random.random(shape) < forbidden] = -np.inf
        values[kept] = kept_values
        return values

    states = numbers((T, L), (np.arange(T), alive))
    before, after = alive[:-1], alive[1:]  # [max(T − 1, 0)]
    arc_scores = None
    if arcs == "shared":
        arc_scores = numbers((L, L), (before, after))
    elif arcs == "pairs":
        arc_scores = numbers((len(before), L, L), (np.arange(len(before)), before, after))
    mask = None
    if restricted:
        mask = random.random((T, L)) >= restricted
        mask[np.arange(T), alive] = True
    with_start = start and random.random() < 0.8  # else: start arcs exist and score 0
    with_end = end and random.random() < 0.8
    scores = ChainScores(
        states,
        arc_scores,
        numbers((L,), alive[:1]) if with_start else None,
        numbers((L,), alive[-1:]) if with_end else None,
    )
    return ChainInstance(chain_of(exists, start, end, unseen), scores, mask, exists)


CHAINS: Mapping[str, Mapping[str, Any]] = {
    "chain": {},
    "chain, arcs by pair": {"arcs": "pairs"},
    "chain, no arcs": {"arcs": "none"},
    "chain, no start": {"start": False},
    "chain, no end": {"end": False},
    "chain, neither": {"start": False, "end": False, "arcs": "pairs"},
    "chain, allowed labels": {"restricted": 0.5},
    "chain, allowed labels and forbidden arcs by pair": {
        "restricted": 0.3,
        "forbidden": 0.3,
        "arcs": "pairs",
    },
    "chain, forbidden": {"forbidden": 0.4},
    "chain, forbidden by pair": {"forbidden": 0.5, "arcs": "pairs"},
    "chain, ties": {"whole": True},
    "chain, all equal": {"scale": 0.0},
    "chain, scores of 30": {"scale": 30.0},
    "chain, scores of 400": {"scale": 400.0, "positions": (3, 6)},
    "chain, scores of 400 by pair": {"scale": 400.0, "arcs": "pairs", "positions": (3, 6)},
    "chain, scores of 1e4": {"scale": 1e4},
    "chain, scores of 1e4, forbidden": {"scale": 1e4, "forbidden": 0.3, "restricted": 0.2},
    "chain, one position": {"positions": (1, 1)},
    "chain, one label": {"labels": (1, 1)},
    "chain, empty": {"positions": (0, 0)},
    "chain, empty by pair": {"positions": (0, 0), "arcs": "pairs", "restricted": 0.5},
    "bigrams": {"bigrams": 0.5},
    "bigrams, few": {"bigrams": 0.1, "positions": (3, 6), "labels": (3, 4)},
    "bigrams, all": {"bigrams": 1.0},
    "bigrams, arcs by pair, allowed labels": {"bigrams": 0.5, "arcs": "pairs", "restricted": 0.4},
    "bigrams, forbidden, neither": {"bigrams": 0.6, "forbidden": 0.3, "start": False, "end": False},
    "bigrams, scores of 1e4": {"bigrams": 0.5, "scale": 1e4},
    "bigrams, bio": {"bigrams": "bio", "labels": (5, 5), "positions": (2, 4)},
    "bigrams, soft": {"bigrams": 0.3, "unseen": "soft", "restricted": 0.2},
    "bigrams, empty": {"bigrams": 0.5, "positions": (0, 0)},
}
