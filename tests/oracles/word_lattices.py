"""Word lattices by enumeration: every path of a lattice, its score, and sums over all of them.

It shares no code with the library. A lattice is (length, arcs) with arcs (start, end, label, features), features a dict of
name → value or a list of names; weights are a dict: ("f", name, label), ("f", name) where features are not crossed with
labels, ("t", before, after), with None for the boundary.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

Arc = tuple[int, int, Hashable, Any]
Path = tuple[int, ...]
Weights = Mapping[tuple[Hashable, ...], float]


def all_paths(length: int, arcs: Sequence[Arc]) -> Iterator[Path]:
    """The numbers of the arcs of every path from 0 to `length`."""

    def extend(at: int, path: Path) -> Iterator[Path]:
        if at == length:
            yield path
        for i, arc in enumerate(arcs):
            if arc[0] == at:
                yield from extend(arc[1], (*path, i))

    yield from extend(0, ())


def active(features: Any) -> dict[str, float]:
    """name → value."""
    return dict(features) if isinstance(features, dict) else dict.fromkeys(features, 1.0)


def counts(arcs: Sequence[Arc], path: Path, *, crossed: bool = True) -> dict[tuple[Hashable, ...], float]:
    """How often each weight counts in the score of a path."""
    found: dict[tuple[Hashable, ...], float] = {}

    def add(key: tuple[Hashable, ...], value: float) -> None:
        found[key] = found.get(key, 0.0) + value

    before: Hashable = None
    for i in path:
        _, _, label, features = arcs[i]
        for name, value in active(features).items():
            add(("f", name, label) if crossed else ("f", name), value)
        add(("t", before, label), 1.0)
        before = label
    if path:
        add(("t", before, None), 1.0)
    return found


class Enumeration:
    """All paths of one lattice at some weights, and every question on them."""

    def __init__(self, length: int, arcs: Sequence[Arc], weights: Weights, *, crossed: bool = True) -> None:
        self.arcs = arcs
        self.paths = list(all_paths(length, arcs))
        self.counts = [counts(arcs, path, crossed=crossed) for path in self.paths]
        self.scores = [
            math.fsum(weights.get(key, 0.0) * value for key, value in found.items()) for found in self.counts
        ]

    def log_z(self, keep: Any = lambda path: True) -> float:
        """log Σ exp(score) over some paths."""
        scores = [score for path, score in zip(self.paths, self.scores, strict=True) if keep(path)]
        if not scores:
            return -math.inf
        highest = max(scores)
        return highest + math.log(math.fsum(math.exp(score - highest) for score in scores))

    def probabilities(self, keep: Any = lambda path: True) -> list[float]:
        """Of each path among some."""
        total = self.log_z(keep)
        return [
            math.exp(score - total) if keep(path) else 0.0
            for path, score in zip(self.paths, self.scores, strict=True)
        ]

    def arc_marginals(self) -> np.ndarray[Any, np.dtype[np.float64]]:
        """P(arc on the path), [arcs]."""
        out = np.zeros(len(self.arcs))
        for path, prob in zip(self.paths, self.probabilities(), strict=True):
            out[list(path)] += prob
        return out

    def expected(self, keep: Any = lambda path: True) -> dict[tuple[Hashable, ...], float]:
        """E[count of each weight] over some paths."""
        out: dict[tuple[Hashable, ...], float] = {}
        for found, prob in zip(self.counts, self.probabilities(keep), strict=True):
            for key, value in found.items():
                out[key] = out.get(key, 0.0) + prob * value
        return out

    def covariance_times(
        self, direction: Weights, keep: Any = lambda path: True
    ) -> dict[tuple[Hashable, ...], float]:
        """Cov(counts) · direction: the Hessian–vector product of log Z over some paths."""
        probs = self.probabilities(keep)
        along = [math.fsum(direction.get(k, 0.0) * v for k, v in found.items()) for found in self.counts]
        mean = math.fsum(p * a for p, a in zip(probs, along, strict=True))
        out: dict[tuple[Hashable, ...], float] = {}
        for found, prob, change in zip(self.counts, probs, along, strict=True):
            for key, value in found.items():
                out[key] = out.get(key, 0.0) + prob * (change - mean) * value
        return out


def random_lattice(random: np.random.Generator, length: int, n_more: int = 6) -> tuple[int, list[Arc]]:
    """A lattice with at least one path, in a random order of its arcs, with dead ends and equal arcs among them."""
    labels = "XYZ"

    def arc(start: int, end: int) -> Arc:
        names = random.choice(list("abcde"), size=int(random.integers(0, 4)), replace=False)
        features = {str(name): float(random.normal()) for name in names}
        return start, end, str(random.choice(list(labels))), features

    arcs, at = [], 0
    while at < length:
        end = int(random.integers(at + 1, min(length, at + 3) + 1))
        arcs.append(arc(at, end))
        at = end
    for _ in range(n_more if length else 0):
        start = int(random.integers(0, length))
        arcs.append(arc(start, int(random.integers(start + 1, min(length, start + 3) + 1))))
    random.shuffle(arcs)
    return length, arcs
