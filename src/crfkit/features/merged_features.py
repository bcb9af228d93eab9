"""Features that are active at the same positions, trained as one.

Rare words make many such: a word that occurs once, its prefix and its suffix are one column of Φ. Let k weights w_i
belong to equal columns. The loss depends on their sum alone, and their gradients are equal. So a descent that begins
with equal weights keeps them equal, and needs one coordinate for them: v = √k · w. Then v² = Σ w_i², and gradients,
norms and inner products in v are those in w. The l1 penalty of v is √k times that of w_i, the l2 penalty is the same.
"""

from dataclasses import dataclass, replace

import numpy as np

from crfkit import _core
from crfkit.arrays import Float64s, Int64s
from crfkit.features.dataset import Dataset, FeatureList
from crfkit.features.feature_map import FeatureMap

FEWER = 0.9  # share of the weights; merging pays off where no more than these are left


@dataclass(frozen=True)
class Coordinates:
    """M coordinates v of D weights w, some of which are equal."""

    of_weight: Int64s  # [D] the coordinate of each weight
    first: Int64s  # [M] the first weight of each coordinate
    root: Float64s  # [M] √k, where k weights are equal

    def fit(self, *vectors: Float64s | float) -> bool:
        """Whether vectors [D] have equal numbers for equal features; those of one number have."""
        numbers = map(np.atleast_1d, vectors)
        return all(len(w) == 1 or np.array_equal(w[self.first][self.of_weight], w) for w in numbers)

    def join(self, w: Float64s) -> Float64s:
        """The coordinates [M] of weights [D]."""
        return w[self.first] * self.root

    def split(self, v: Float64s) -> Float64s:
        """The weights [D] that have the coordinates [M]."""
        return (v / self.root)[self.of_weight]


@dataclass(frozen=True)
class MergedFeatures:
    """A data set and its features, equal ones merged. The weight of a merged feature is the sum of k: √k · v."""

    dataset: Dataset
    feature_map: FeatureMap
    coordinates: Coordinates

    @classmethod
    def of(cls, feature_map: FeatureMap, dataset: Dataset) -> "MergedFeatures | None":
        """None where too few features are equal."""
        pair_ptr, labels, states = feature_map.pair_ptr, feature_map.pair_labels, dataset.states
        first = _core.first_equals(*states, pair_ptr, labels)  # [F]
        is_first = first == np.arange(len(first))
        n_pairs = np.diff(pair_ptr)
        kept = np.flatnonzero(np.repeat(is_first, n_pairs))  # the pairs of merged features
        others = np.arange(len(labels), feature_map.n_weights)  # weights other than pairs
        if len(kept) + len(others) > FEWER * feature_map.n_weights:
            return None
        number = (np.cumsum(is_first, dtype=np.int32) - 1)[first]  # [F] of the merged feature
        merged_ptr = np.concatenate([np.zeros(1, np.int64), np.cumsum(n_pairs[is_first])])
        of_pair = np.arange(len(labels)) + np.repeat(merged_ptr[number] - pair_ptr[:-1], n_pairs)
        of_weight = np.concatenate([of_pair, others - len(labels) + len(kept)])
        remap = np.where(is_first, number, np.int32(-1))
        return cls(
            replace(dataset, states=FeatureList(*_core.renamed_features(*states, remap))),
            replace(feature_map, pair_ptr=merged_ptr, pair_labels=labels[kept]),
            Coordinates(of_weight, np.concatenate([kept, others]), np.sqrt(np.bincount(of_weight))),
        )
