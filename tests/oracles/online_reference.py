"""Mistake-driven training as the papers have it, on dicts and by listing every label sequence; and data for it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from itertools import product
from math import sqrt
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from crfkit.features import Annotation, Dataset, Facets, FeatureList, FeatureMap
from crfkit.optimizers import AROW, AveragedPerceptron, PassiveAggressive
from crfkit.optimizers.online import OnlineLearner
from crfkit.structures import Chain
from tests.oracles.restricted import Problem

Float64s = npt.NDArray[np.float64]
Counts = Mapping[Any, float]
# Of five labels; two kinds, of which a label has the one or both.
FACETS = Facets(tuple("abcd"), np.array([[0, 2], [1, 3], [0, -1], [1, 2], [0, 3]], np.int32))


class Sequence(NamedTuple):
    """One sequence for the reference: every label sequence that exists, with what it has of each weight."""

    label_sequences: list[tuple[int, ...]]
    counts: list[Counts]
    admitted: list[bool]  # by the annotation
    weight: float


class Reference:
    """The methods as their papers have them, on dicts; the mean is taken over all weights after every sequence."""

    def __init__(self, learner: OnlineLearner, start: Counts) -> None:
        self.learner = learner
        self.w = dict(start)
        self.variances = {key: getattr(learner, "variance", 0.0) for key in start}
        self.sum, self.time = dict(start), 1.0
        self.losses = [0.0]

    def score(self, counts: Counts) -> float:
        return sum(self.w[key] * count for key, count in counts.items())

    def see(self, sequence: Sequence) -> None:
        if sequence.weight > 0 and sequence.label_sequences[0]:
            scores = np.array([self.score(counts) for counts in sequence.counts])
            best = int(scores.argmax())
            right = int(np.where(sequence.admitted, scores, -np.inf).argmax())
            if best != right:
                pair = zip(sequence.label_sequences[right], sequence.label_sequences[best], strict=True)
                n_wrong = sum(a != b for a, b in pair)
                d = Counter(sequence.counts[right])
                d.subtract(sequence.counts[best])
                self.move(d, scores[best] - scores[right], n_wrong, sequence.weight)
        for key, value in self.w.items():
            self.sum[key] += sequence.weight * value
        self.time += sequence.weight

    def move(self, d: Counts, deficit: float, n_wrong: int, weight: float) -> None:
        learner, norm = self.learner, sum(x * x for x in d.values())
        if isinstance(learner, AveragedPerceptron):
            self.losses.append(weight * deficit)
            for key, x in d.items():
                self.w[key] += weight * x
        elif isinstance(learner, PassiveAggressive):
            loss = deficit + (sqrt(n_wrong) if learner.error_sensitive else 1)
            self.losses.append(weight * loss)
            C = weight * learner.aggressiveness
            step = (lambda: loss / norm, lambda: min(C, loss / norm), lambda: loss / (norm + 1 / (2 * C)))
            tau = step[learner.variant]() if norm else 0.0
            for key, x in d.items():
                self.w[key] += tau * x
        elif isinstance(learner, AROW):
            loss, gamma = deficit + n_wrong, learner.gamma / weight
            self.losses.append(weight * loss)
            spread = sum(self.variances[key] * x * x for key, x in d.items())
            for key, x in d.items():
                v = self.variances[key]
                self.w[key] += loss / (spread + gamma) * v * x
                self.variances[key] = 1 / (1 / v + x * x / gamma)

    def learned(self) -> Float64s:
        mean = self.learner.averages()
        return np.array([self.sum[key] / self.time if mean else self.w[key] for key in sorted(self.w)])


def listed(problem: Problem) -> list[Sequence]:
    """Every label sequence of every sequence of a problem."""
    sequences = []
    for n in range(len(problem.lengths)):
        paths = problem.label_sequences(n)
        first = problem.ptr[n]
        counts = [problem.counts(n, y) for y in paths]
        sequences.append(
            Sequence(
                paths,
                [{int(i): float(phi[i]) for i in np.flatnonzero(phi)} for phi in counts],
                [all(b in problem.gold[first + i] for i, b in enumerate(y)) for y in paths],
                float(problem.sample_weight[n]),
            )
        )
    return sequences


def every_kind_of_feature(
    *, with_facets: bool = False
) -> tuple[Dataset, Annotation, FeatureMap, list[Sequence]]:
    """Features of positions with values, rare ones and common ones, features of arcs and a dense block."""
    rng = np.random.default_rng(3)
    L, lengths = 5, [3, 1, 4, 0, 2]
    ptr = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    T = int(ptr[-1])
    position_ptr = np.arange(0, 3 * T + 1, 3, dtype=np.int64)
    ids = np.stack([np.arange(T) % 4, 4 + np.arange(T), np.full(T, T + 4)], axis=1).ravel().astype(np.int32)
    values = rng.normal(size=len(ids))
    inner = ~np.isin(np.arange(T), ptr)
    arc_ptr = np.concatenate([[0], np.cumsum(inner)]).astype(np.int64)
    arcs = FeatureList(
        arc_ptr, rng.integers(0, 2, arc_ptr[-1]).astype(np.int32), rng.normal(size=arc_ptr[-1])
    )
    dense = rng.normal(size=(T, 2))
    dense[0, 0] = 0.0
    dataset = Dataset(ptr, FeatureList(position_ptr, ids, values), arcs=arcs, dense={"v": dense})
    labels = rng.integers(0, L, T).astype(np.int32)
    annotation = Annotation(labels)
    map_ = FeatureMap.build(
        dataset,
        annotation,
        Chain(),
        n_labels=L,
        n_features=T + 5,
        n_arc_features=2,
        all_possible_transitions=False,
        facets=FACETS if with_facets else None,
    )
    plain = list(zip(map_.arc_before.tolist(), map_.arc_after.tolist(), strict=True))
    facets_of = [[L + 1 + f for f in row if f >= 0] if with_facets else [] for row in FACETS.table.tolist()]
    states_of = [facets_of[b] or [b] for b in range(L)]  # what weights may name to score a label
    ends_of = [*([b, *facets_of[b]] for b in range(L)), [L]]

    def counts(n: int, y: tuple[int, ...]) -> Counts:
        phi: Counter[int] = Counter()
        for i, b in enumerate(y):
            t = int(ptr[n]) + i
            for k in range(3 * t, 3 * t + 3):
                for p in range(map_.pair_ptr[ids[k]], map_.pair_ptr[ids[k] + 1]):
                    phi[p] += values[k] * (map_.pair_labels[p] in states_of[b])
            for c in range(2):
                phi[map_.dense_begin("v") + c * L + b] += dense[t, c]
            for k in range(arc_ptr[t], arc_ptr[t + 1]):
                f = arcs.ids[k]
                for p in range(map_.arc_ptr[f], map_.arc_ptr[f + 1]):
                    assert arcs.values is not None
                    phi[map_.triples_begin + p] += arcs.values[k] * (map_.arc_triples[p] == y[i - 1] * L + b)
        for a, b in zip((L, *y), (*y, L), strict=True) if y else ():
            for arc in product(ends_of[a], ends_of[b]):
                if arc in plain:
                    phi[map_.arcs_begin + plain.index(arc)] += 1
        return phi

    sequences = []
    for n, length in enumerate(lengths):
        paths = [tuple(int(b) for b in y) for y in np.ndindex(*[L] * length)]
        gold = tuple(labels[ptr[n] : ptr[n + 1]].tolist())
        sequences.append(Sequence(paths, [counts(n, y) for y in paths], [y == gold for y in paths], 1.0))
    return dataset, annotation, map_, sequences
