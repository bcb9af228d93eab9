"""Random problems where only some arcs and labels exist, with everything about them by enumeration."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from crfkit.features import Annotation, Dataset, Facets, FeatureMap
from crfkit.features.dataset import FeatureList
from crfkit.structures import AllowedLabels, Chain

Float64s = npt.NDArray[np.float64]
NEVER = -np.inf


class Problem:
    """A random data set with its weights, and everything about it by enumeration.

    `n_labels` above 64 selects the lattice backend, or the batched one when no position is restricted; few labels the dense
    one.
    """

    def __init__(
        self,
        seed: int,
        *,
        n_labels: int,
        hard: bool,
        soft: bool,
        restrict: bool,
        partial: bool,
        facets: bool = False,
        together: bool = False,  # each feature comes with four others
    ) -> None:
        rng = np.random.default_rng(seed)
        in_batches = n_labels > 64 and not restrict
        longest = 2 if in_batches and soft else 4
        self.n_labels, self.lengths = n_labels, rng.integers(0, longest + 1, 6)
        self.lengths[0], self.lengths[1] = 1, longest
        n_features, n_positions = 5, int(self.lengths.sum())
        self.ptr = np.concatenate([[0], np.cumsum(self.lengths)]).astype(np.int64)
        counts = rng.integers(0, 4, n_positions)
        ids = np.concatenate([rng.choice(n_features, k, replace=False) for k in counts] + [np.zeros(0, int)])
        values = rng.normal(size=len(ids)).round(1)
        if together:
            n_features, counts = 5 * n_features, 5 * counts
            ids, values = (5 * ids[:, None] + np.arange(5)).ravel(), np.ones(5 * len(ids))
        position_ptr = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        self.values = values
        self.features = FeatureList(position_ptr, ids.astype(np.int32), None if together else values)
        pool = rng.choice(n_labels, min(n_labels, 4), replace=False)  # the labels that are allowed somewhere
        self.sets: list[list[int]] = [
            sorted(rng.choice(pool, rng.integers(1, len(pool) + 1), replace=False).tolist())
            if restrict
            else list(range(n_labels))
            for _ in range(n_positions)
        ]
        self.exists = rng.random((n_labels + 1, n_labels + 1)) < (0.03 if in_batches else 0.7)
        self.exists[-1, :3] = self.exists[:3, -1] = True
        if not hard or soft:
            listed = self.exists.copy()
            self.exists[:] = True
        else:
            listed = self.exists
        self.exists[-1, -1] = listed[-1, -1] = True
        self.gold: list[set[int]] = [set() for _ in range(n_positions)]
        for n, length in enumerate(self.lengths):
            while not (paths := self.label_sequences(n)):  # open arcs until there is a label sequence
                a, b = rng.integers(0, n_labels + 1, 2)
                self.exists[a, b] = True
                for t in range(self.ptr[n], self.ptr[n + 1]):
                    self.sets[t] = sorted({*self.sets[t], int(rng.integers(n_labels))})
            path = paths[rng.integers(len(paths))]
            for i in range(length):
                position = self.ptr[n] + i
                self.gold[position] = {path[i]}
                if partial and rng.random() < 0.6:
                    self.gold[position] |= set(rng.choice(self.sets[position], 2).tolist())
        labels = [min(g) if len(g) == 1 else -1 for g in self.gold]
        some = (
            None if all(len(g) == 1 for g in self.gold) else [None if len(g) == 1 else g for g in self.gold]
        )
        self.annotation = Annotation(
            np.array(labels, np.int32), None if some is None else AllowedLabels.from_sets(some)
        )
        self.dataset = Dataset(
            self.ptr,
            self.features,
            allowed=AllowedLabels.from_sets(self.sets) if restrict else None,
        )
        self.facets = None
        if facets:  # two kinds, of which a label has the one, the other, or both
            self.facets = Facets(
                tuple("abcd"), np.array([[i % 2, (2, 3, -1)[i % 3]] for i in range(n_labels)], np.int32)
            )
        bigrams = None
        if hard or soft:
            before, after = np.nonzero(listed if soft else self.exists)
            bigrams = before.astype(np.int32), after.astype(np.int32)
        self.map = FeatureMap.build(
            self.dataset,
            self.annotation,
            Chain(),
            n_labels=n_labels,
            n_features=n_features,
            bigrams=bigrams,
            soft=soft,
            facets=self.facets,
        )
        # What weights may name to score label b as a state, and the arcs that score it as their first or second end.
        L = n_labels
        self.states_of = {b: [b] for b in range(L + 1)}
        ends = self.states_of
        if self.facets is not None:
            table = self.facets.table
            self.states_of = {b: [L + 1 + int(f) for f in table[b] if f >= 0] for b in range(L)}
            ends = {b: [b, *self.states_of.get(b, [])] for b in range(L + 1)}
        self.arcs_out_of = {b: np.isin(self.map.arc_before, ends[b]) for b in range(L + 1)}
        self.arcs_into = {b: np.isin(self.map.arc_after, ends[b]) for b in range(L + 1)}
        self.sample_weight = rng.random(len(self.lengths)) + 0.5
        self.w = rng.normal(size=self.map.n_weights)

    def label_sequences(self, n: int) -> list[tuple[int, ...]]:
        """Every label sequence of sequence n that exists."""
        paths: list[tuple[int, ...]] = [()]
        for t in range(self.ptr[n], self.ptr[n + 1]):
            paths = [(*y, b) for y in paths for b in self.sets[t] if self.exists[y[-1] if y else -1, b]]
        return [y for y in paths if self.exists[y[-1] if y else -1, -1]]

    def admits(self, n: int, y: tuple[int, ...]) -> bool:
        """Whether the annotation of sequence n admits these labels."""
        return all(b in self.gold[self.ptr[n] + i] for i, b in enumerate(y))

    def counts(self, n: int, y: tuple[int, ...]) -> Float64s:
        """How often label sequence y of sequence n has each weight, [D]."""
        m, phi, L = self.map, np.zeros(self.map.n_weights), self.n_labels
        for i, label in enumerate(y):
            position = self.ptr[n] + i
            for k in range(self.features.position_ptr[position], self.features.position_ptr[position + 1]):
                f = self.features.ids[k]
                for p in range(m.pair_ptr[f], m.pair_ptr[f + 1]):
                    if m.pair_labels[p] in self.states_of[label]:
                        phi[p] += self.values[k]
        for a, b in zip((L, *y), (*y, L), strict=True) if y else ():
            phi[m.arcs_begin : m.triples_begin] += self.arcs_out_of[a] & self.arcs_into[b]
        return phi


KINDS = [
    {
        "n_labels": n_labels,
        "hard": hard,
        "soft": soft,
        "restrict": restrict,
        "partial": partial,
        "facets": facets,
    }
    for n_labels, restrict, facets in (
        (3, False, False),
        (3, True, False),
        (70, True, False),
        (4, True, True),
        (4, False, True),
        (70, False, False),
    )
    for hard, soft in ((False, False), (True, False), (False, True))
    for partial in (False, True)
    if restrict or hard or soft or facets
]
