"""Which features of arcs have weights, and where these lie.

    score(h, m, r) = Σ_{f of the arc h → m} w_f + Σ_{g of its label} w_{g, r} + Σ_{b of its blocks} (w_b + w_{b, r}) · v

Features are made in the native core from words, tags and morphology of head and dependent, of their neighbours and of what
stands between them, with direction and distance; each is known by a key of 64 bits. Those of arcs have one weight each;
those of labels have one for each label that they were seen with. Blocks of word vectors v [K] of head or dependent have K
weights for all labels alike, or for each label; their weights come last.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from crfkit import _core
from crfkit._core import VectorLayout as VectorLayout
from crfkit.arrays import Float64s, Int32s, Int64s, offsets
from crfkit.features.dataset import sequence_weights
from crfkit.features.treebank import KnownTrees

ANY_LABEL = "_"  # the one label of a model that knows none
FEATURE_SET = 1
"""The number of this set of arc features: a model file with another number cannot be used."""


@dataclass(frozen=True)
class ArcMap:
    """The features of arcs that have weights, and the labels of arcs."""

    labels: tuple[str, ...]  # [R]
    layout: _core.ArcLayout

    @classmethod
    def learn(
        cls, treebank: _core.Treebank, trees: KnownTrees, labels: list[str], min_count: int, order: int = 1
    ) -> ArcMap:
        """Features of the arcs that are known, if they are seen `min_count` times.

        Of order 2: those of siblings and grandparents too, where all heads of a sentence are known.
        """
        layout = _core.ArcLayout.learn(treebank, trees.heads, trees.labels, len(labels), min_count, order)
        return cls(tuple(labels), layout)

    @classmethod
    def of(
        cls,
        labels: Sequence[str],
        arc_keys: Int64s,
        label_keys: Int64s,
        pair_ptr: Int64s,
        pair_labels: Int32s,
        vectors: VectorLayout | None = None,
    ) -> ArcMap:
        """From keys, ascending as unsigned numbers, and the labels of each feature of labels, ascending too."""
        layout = _core.ArcLayout(
            len(labels), arc_keys, label_keys, pair_ptr, pair_labels, coarse=False, vectors=vectors
        )
        return cls(tuple(labels), layout)

    @classmethod
    def learn_coarse(cls, treebank: _core.Treebank, trees: KnownTrees, min_count: int) -> ArcMap:
        """The features of a model that prunes arcs: of few templates, and none of labels."""
        return cls((ANY_LABEL,), _core.ArcLayout.learn_coarse(treebank, trees.heads, min_count))

    @classmethod
    def of_coarse(cls, arc_keys: Int64s) -> ArcMap:
        """The same from keys, ascending as unsigned numbers."""
        none = np.zeros(0, dtype=np.int64)
        layout = _core.ArcLayout(
            1, arc_keys, none, np.zeros(1, dtype=np.int64), none.astype(np.int32), coarse=True
        )
        return cls((ANY_LABEL,), layout)

    @property
    def is_coarse(self) -> bool:
        """Whether it has the features of few templates."""
        return self.layout.is_coarse

    @property
    def n_weights(self) -> int:
        """D."""
        return self.layout.n_weights

    @property
    def n_arc_features(self) -> int:
        """Features of arcs; their weights come first."""
        return len(self.layout.arc_keys)

    @property
    def vector_size(self) -> int:
        """K, the size of the word vectors that it has weights for; 0: it has none."""
        return self.layout.vectors.size

    def loss(
        self,
        treebank: _core.Treebank,
        trees: KnownTrees,
        *,
        sample_weight: npt.ArrayLike | None = None,
        single_root: bool = True,
        n_threads: int = 1,
    ) -> _core.DataLoss:
        """The loss of the trees of a treebank, for `Objective`; always in double precision.

        Z sums over all trees and labels, Z_gold over those that agree with the heads and labels that are known.
        """
        return _core.tree_loss(
            self.layout,
            treebank,
            trees.heads,
            trees.labels,
            sequence_weights(sample_weight, treebank.n_sentences),
            single_root,
            n_threads,
        )

    def second_order_loss(
        self,
        treebank: _core.Treebank,
        trees: KnownTrees,
        candidates: _core.CandidateArcs,
        *,
        projective: bool = True,
        sample_weight: npt.ArrayLike | None = None,
        single_root: bool = True,
        n_threads: int = 1,
    ) -> _core.DataLoss:
        """The loss of trees of these arcs, which are scored by siblings and grandparents too.

        Where all heads of a sentence are known, they are such a tree. Of projective trees the sums are exact; else they
        are those of belief propagation.
        """
        return _core.second_order_loss(
            self.layout,
            treebank,
            trees.heads,
            trees.labels,
            sequence_weights(sample_weight, treebank.n_sentences),
            candidates,
            projective,
            single_root,
            n_threads,
        )

    def without_zeros(self, weights: Float64s) -> tuple[ArcMap, Float64s]:
        """The same scores with no weight that is 0, but for those of vectors, of which whole rows are left out."""
        layout, vectors = self.layout, self.layout.vectors
        n_arcs, n_sparse = self.n_arc_features, self.n_weights - vectors.n_weights
        kept = weights != 0
        rows = kept[n_sparse:].reshape(len(vectors.labels), vectors.size).any(axis=1)
        kept[n_sparse:] = np.repeat(rows, vectors.size)
        if kept.all():
            return self, weights
        label_keys, pair_ptr = _kept_lists(layout.label_keys, layout.pair_ptr, kept[n_arcs:n_sparse])
        smaller = ArcMap.of(
            self.labels,
            layout.arc_keys[kept[:n_arcs]],
            label_keys,
            pair_ptr,
            layout.pair_labels[kept[n_arcs:n_sparse]],
            VectorLayout(
                vectors.size,
                *_kept_lists(vectors.keys, vectors.ptr, rows),
                vectors.labels[rows],
                len(self.labels),
            ),
        )
        return smaller, weights[kept]


def _kept_lists(keys: Int64s, ptr: Int64s, kept: npt.NDArray[np.bool_]) -> tuple[Int64s, Int64s]:
    """Keys and offsets of the lists that are left of given ones, whose items are kept or not."""
    counts = np.diff(np.concatenate([[0], np.cumsum(kept)])[ptr])
    return keys[counts > 0], offsets(counts[counts > 0])
