"""Objectives of factor graphs with tied weights, from their definitions: every assignment is listed.

A graph is a list of labels for each variable and factors (kind, variables, features); a weight is known by (kind, feature,
configuration of labels). Nothing of the library is used.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

Weights = Mapping[tuple[str, str, Any], float]
Factor = tuple[str, tuple[int, ...], Mapping[str, float]]


def log_sum(numbers: Sequence[float]) -> float:
    highest = max(numbers, default=-math.inf)
    if highest == -math.inf:
        return -math.inf
    return highest + math.log(math.fsum(math.exp(x - highest) for x in numbers))


class TiedGraph:
    """One input: its assignments, and what the criteria say of an annotation."""

    def __init__(
        self,
        labels: Sequence[Sequence[Any]],
        factors: Sequence[Factor],
        classes: Callable[[str, tuple[Any, ...]], Any] = lambda kind, configuration: configuration,
        possible: Callable[[tuple[Any, ...]], bool] = lambda y: True,
    ) -> None:
        self.labels, self.factors, self.classes, self.possible = labels, factors, classes, possible

    def factor_score(self, factor: Factor, y: Sequence[Any], w: Weights) -> float:
        kind, variables, features = factor
        key = self.classes(kind, tuple(y[v] for v in variables))
        return math.fsum(value * w.get((kind, name, key), 0.0) for name, value in features.items())

    def score(self, y: Sequence[Any], w: Weights) -> float:
        return math.fsum(self.factor_score(factor, y, w) for factor in self.factors)

    def admitted(self, gold: Sequence[Any]) -> list[tuple[Any, ...]]:
        """The assignments that an annotation allows: labels, sets of labels, None."""
        choices = [
            labels
            if value is None
            else [x for x in labels if x in value]
            if isinstance(value, set)
            else [value]
            for labels, value in zip(self.labels, gold, strict=True)
        ]
        return [y for y in itertools.product(*choices) if self.possible(y)]

    def likelihood(self, gold: Sequence[Any], w: Weights) -> float:
        everything = self.admitted([None] * len(self.labels))
        return log_sum([self.score(y, w) for y in everything]) - log_sum(
            [self.score(y, w) for y in self.admitted(gold)]
        )

    def pseudo_likelihood(self, gold: Sequence[Any], w: Weights) -> float:
        total = 0.0
        for v, labels in enumerate(self.labels):
            others = [self.score([*gold[:v], x, *gold[v + 1 :]], w) for x in labels]
            total += log_sum(others) - self.score(gold, w)
        return total

    def piecewise(self, gold: Sequence[Any], w: Weights) -> float:
        total = 0.0
        for factor in self.factors:
            scores: dict[tuple[Any, ...], float] = {}
            right: dict[tuple[Any, ...], float] = {}
            for y in itertools.product(*self.labels):
                scores[tuple(y[v] for v in factor[1])] = self.factor_score(factor, y, w)
            for y in self.admitted(gold):
                right[tuple(y[v] for v in factor[1])] = self.factor_score(factor, y, w)
            total += log_sum(list(scores.values())) - log_sum(list(right.values()))
        return total
