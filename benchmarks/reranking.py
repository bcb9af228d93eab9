"""The n best label sequences of a model, ordered anew by an averaged perceptron over features of whole label sequences."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Self

Candidates = Sequence[tuple[float, Sequence[Any]]]  # (probability, labels), best first
Features = Callable[[Sequence[Any]], Iterable[str]]  # what is seen in a whole label sequence


class Reranker:
    """score(y) = w₀ · log p(y | x) + Σ_features w; learned by an averaged perceptron (Collins 2002)."""

    def __init__(self, features: Features | Sequence[str], epochs: int = 10) -> None:
        """`features` of a label sequence, or affixes such as `^a b` and `b c$` to look for."""
        self._features = features if callable(features) else affixes(features)
        self._epochs = epochs
        self._weights: dict[str, float] = {}

    def fit(self, lists: Sequence[tuple[Candidates, Sequence[Any]]]) -> Self:
        """Learn from lists and the right labels; the target is the candidate with the fewest wrong labels."""
        weights, sums = defaultdict(float, {"log p": 1.0}), defaultdict[str, float](float)
        cases = [([self._seen(candidate) for candidate in found], _target(found, y)) for found, y in lists]
        now = 0
        for _ in range(self._epochs):
            for seen, target in cases:
                now += 1
                guess = max(range(len(seen)), key=lambda i: _dot(weights, seen[i]))
                if guess == target:
                    continue
                for sign, case in ((1.0, seen[target]), (-1.0, seen[guess])):
                    for name, value in case.items():
                        weights[name] += sign * value
                        sums[name] += sign * value * now
        self._weights = {name: weight - sums[name] / (now + 1) for name, weight in weights.items()}
        return self

    def best(self, candidates: Candidates) -> list[Any]:
        """The labels that come first now."""
        return list(max(candidates, key=lambda candidate: _dot(self._weights, self._seen(candidate)))[1])

    def _seen(self, candidate: tuple[float, Sequence[Any]]) -> dict[str, float]:
        probability, labels = candidate
        found = {"log p": math.log(max(probability, 1e-300))}
        for name in self._features(labels):
            found[name] = found.get(name, 0.0) + 1.0
        return found


def affixes(patterns: Sequence[str]) -> Features:
    """Which of these affixes a label sequence has."""
    prefixes = {tuple(p[1:].split()): p for p in patterns if p.startswith("^")}
    suffixes = {tuple(p[:-1].split()): p for p in patterns if p.endswith("$")}
    longest = max(map(len, (*prefixes, *suffixes)), default=0)

    def features(labels: Sequence[Any]) -> Iterable[str]:
        for length in range(1, min(longest, len(labels)) + 1):
            for table, run in ((prefixes, tuple(labels[:length])), (suffixes, tuple(labels[-length:]))):
                if run in table:
                    yield table[run]

    return features


def _target(candidates: Candidates, y: Sequence[Any]) -> int:
    """The candidate with the fewest wrong labels, the first of equals."""
    return min(
        range(len(candidates)),
        key=lambda i: sum(a != b for a, b in zip(candidates[i][1], y, strict=True)),
    )


def _dot(weights: dict[str, float], seen: dict[str, float]) -> float:
    return sum(weights.get(name, 0.0) * value for name, value in seen.items())
