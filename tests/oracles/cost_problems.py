"""Losses with costs of mistakes, with all outputs of each sequence, what these have of each weight, and what they cost."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from typing import Any

import numpy as np
import numpy.typing as npt

from crfkit.features import Annotation, CostFeatures, Dataset, FeatureMap, PatternMap
from crfkit.models.kinds.segments import SegmentPotentials
from crfkit.objective import Loss
from crfkit.structures import Patterns
from tests.oracles import trained
from tests.oracles.online_reference import every_kind_of_feature
from tests.oracles.restricted import KINDS, Problem
from tests.oracles.segment_problems import SegmentProblem
from tests.oracles.trained import Trained

Float64s = npt.NDArray[np.float64]
Given = Callable[..., Loss]  # of a feature map and a data set, single_precision and n_threads


def random_costs(n_labels: int) -> Float64s:
    """Of gold and predicted labels; some pairs, and one gold label, cost nothing."""
    random = np.random.default_rng(n_labels)
    costs = random.uniform(0.0, 3.0, (n_labels, n_labels)) * (random.random((n_labels, n_labels)) < 0.7)
    np.fill_diagonal(costs, 0.0)
    costs[1] = 0.0
    return costs


def cost_of(costs: Float64s, gold: Sequence[set[int] | None], y: Sequence[int]) -> float:
    """Of a label sequence: each label costs what it does beside the gold label, or the nearest of several ones."""
    total = 0.0
    for known, label in zip(gold, y, strict=True):
        if known is not None and label not in known:
            total += min(costs[g, label] for g in known)
    return float(total)


def gold_sets(annotation: Annotation, begin: int, end: int) -> list[set[int] | None]:
    """The labels that an annotation allows at positions begin.. of a data set; None: all."""
    found: list[set[int] | None] = []
    for t in range(begin, end):
        known = {int(annotation.labels[t])} if annotation.labels[t] >= 0 else None
        if known is None and annotation.sets is not None:
            ptr = annotation.sets.position_ptr
            known = set(annotation.sets.labels[ptr[t] : ptr[t + 1]].tolist()) or None
        found.append(known)
    return found


def with_costs(
    base: Trained, loss: Given, feature_map: FeatureMap, dataset: Dataset, annotation: Annotation
) -> Trained:
    """A problem with costs of its mistakes."""
    costs = random_costs(feature_map.n_labels)
    features = CostFeatures.of(costs, feature_map, dataset, annotation)
    outputs = []
    for n, (found, label_sequences) in enumerate(zip(base.outputs, base.answers[2], strict=True)):
        gold = gold_sets(annotation, *dataset.sequence_ptr[n : n + 2].tolist())
        outputs.append(found._replace(costs=np.array([cost_of(costs, gold, y) for y in label_sequences])))

    def fixed(**settings: Any) -> Loss:
        return features.fix(loss(features.feature_map, features.dataset, **settings))

    problem = Trained(fixed, outputs, base.weight)
    problem.has_mistakes = False
    return problem


def of_chain(kind: Mapping[str, Any]) -> Trained:
    """Rows, lattices or batches."""
    problem = Problem(1, **kind)

    def loss(feature_map: FeatureMap, dataset: Dataset, **settings: Any) -> Loss:
        return feature_map.loss(dataset, problem.annotation, sample_weight=problem.sample_weight, **settings)

    return with_costs(trained.of_chain(kind), loss, problem.map, problem.dataset, problem.annotation)


def of_every_kind_of_feature(*, with_facets: bool) -> Trained:
    """Features of transitions and a dense block."""
    dataset, annotation, map_, _ = every_kind_of_feature(with_facets=with_facets)

    def loss(feature_map: FeatureMap, dataset: Dataset, **settings: Any) -> Loss:
        return feature_map.loss(dataset, annotation, **settings)

    base = trained.of_every_kind_of_feature(with_facets=with_facets)
    return with_costs(base, loss, map_, dataset, annotation)


def of_patterns(base: Trained, feature_map: FeatureMap, dataset: Dataset, annotation: Annotation) -> Trained:
    """Patterns beside other features."""
    map_ = PatternMap(Patterns(list(trained.WRITTEN)), tuple("abcdefgh"[: feature_map.n_labels]))
    starts = map_.data(dataset)

    def loss(feature_map: FeatureMap, dataset: Dataset, **settings: Any) -> Loss:
        return map_.loss(starts, feature_map, dataset, annotation, sample_weight=base.weight, **settings)

    return with_costs(base, loss, feature_map, dataset, annotation)


def of_patterns_and_labels(kind: Mapping[str, Any]) -> Trained:
    """Patterns beside features of facets."""
    problem = Problem(1, n_labels=4, facets=True, **kind)
    base = trained.of_patterns_with_facets(kind)
    return of_patterns(base, problem.map, problem.dataset, problem.annotation)


def of_patterns_and_every_kind(*, with_facets: bool) -> Trained:
    """Patterns beside features of transitions and a dense block."""
    dataset, annotation, map_, _ = every_kind_of_feature(with_facets=with_facets)
    base = trained.of_patterns_with_every_kind_of_feature(with_facets=with_facets)
    return of_patterns(base, map_, dataset, annotation)


def of_segments(**kind: Any) -> Trained:
    """Semi-Markov chains, whose positions cost."""
    problem = SegmentProblem(**kind)
    data, potentials = problem.found.data, problem.potentials
    assert isinstance(potentials, SegmentPotentials)

    def loss(feature_map: FeatureMap, dataset: Dataset, **settings: Any) -> Loss:
        given = feature_map, dataset, data.annotation, data.read.cells
        return potentials.segments.loss(*given, sample_weight=problem.weight, **settings)

    base = trained.of_segments(**kind)
    return with_costs(base, loss, potentials.feature_map, data.dataset, data.annotation)


SEGMENT_KINDS = [kind for kind in trained.SEGMENT_KINDS if "functions" not in kind]

ROWS: dict[str, Callable[[], Trained]] = {
    **{f"chain, {trained._named(kind)}": partial(of_chain, kind) for kind in KINDS},
    **{
        f"{name}, every kind of feature, {'facets' if facets else 'labels'}": partial(of, with_facets=facets)
        for name, of in (("chain", of_every_kind_of_feature), ("patterns", of_patterns_and_every_kind))
        for facets in (False, True)
    },
    **{
        f"patterns with facets, {trained._named(kind)}": partial(of_patterns_and_labels, kind)
        for kind in trained.FACET_KINDS
    },
    **{f"segments, {trained._named(kind)}": partial(of_segments, **kind) for kind in SEGMENT_KINDS},
}


@cache
def with_costs_of(row: str) -> Trained:
    """The problem of a row: the same one in every run."""
    return ROWS[row]()
