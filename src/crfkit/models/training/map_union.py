"""The weights that a data set calls for, from those that each of its shards calls for."""

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from crfkit.arrays import Int32s, Int64s, offsets
from crfkit.features import Facets, FeatureMap

_MERGED_AT_ONCE = 1 << 23  # keys of weights that are collected before equal ones are dropped


def join_maps(maps: Iterable[FeatureMap], *, complete: bool = False) -> FeatureMap:
    """All weights of the maps of shards, in the order in which one map of all data has them.

    The maps have the same labels, facets and dense blocks, and ids of features. `complete`: each of them has all weights
    that there are.
    """
    some: FeatureMap | None = None
    pairs, arcs, triples = _Keys(), _Keys(), _Keys()
    for some in maps:
        if complete:
            return some
        n, L = _n_outcomes(some), some.n_labels
        features = np.repeat(np.arange(len(some.pair_ptr) - 1), np.diff(some.pair_ptr))
        pairs.add(features * n + some.pair_labels)
        arcs.add(some.arc_before.astype(np.int64) * n + some.arc_after)
        owners = np.repeat(np.arange(len(some.arc_ptr) - 1), np.diff(some.arc_ptr))
        triples.add(owners * L * L + some.arc_triples)
    assert some is not None
    n, L = _n_outcomes(some), some.n_labels
    pair_ptr, pair_labels = _lists(pairs.unique(), len(some.pair_ptr) - 1, n)
    before, after = (ids.astype(np.int32) for ids in np.divmod(arcs.unique(), n))
    if some.facets is not None:  # arcs of labels come first, then those of facets, kind after kind
        order = np.lexsort((after, before, _kinds(some.facets)[before]))
        before, after = before[order], after[order]
    arc_ptr, arc_triples = _lists(triples.unique(), len(some.arc_ptr) - 1, L * L)
    return replace(
        some,
        pair_ptr=pair_ptr,
        pair_labels=pair_labels,
        arc_before=before,
        arc_after=after,
        arc_ptr=arc_ptr,
        arc_triples=arc_triples,
    )


def _n_outcomes(found: FeatureMap) -> int:
    """Labels, START or END, and facets, which are numbered from L + 1 on."""
    return found.n_labels + 1 + (0 if found.facets is None else len(found.facets))


def _kinds(facets: Facets) -> Int64s:
    """The kind of each facet, −1 for labels. [L + 1 + facets]"""
    n_labels, n_kinds = facets.table.shape
    kinds = np.full(n_labels + 1 + len(facets), -1, np.int64)
    for kind in range(n_kinds):
        values = facets.table[:, kind]
        kinds[n_labels + 1 + values[values >= 0]] = kind
    return kinds


class _Keys:
    """Numbers of which each is kept once."""

    def __init__(self) -> None:
        self._pieces: list[Int64s] = []
        self._n = 0

    def add(self, keys: Int64s) -> None:
        self._pieces.append(keys)
        self._n += len(keys)
        if self._n > _MERGED_AT_ONCE:
            self.unique()

    def unique(self) -> Int64s:
        """Ascending."""
        found = np.unique(np.concatenate(self._pieces))
        self._pieces, self._n = [found], 0
        return found


def _lists(keys: Int64s, n_lists: int, size: int) -> tuple[Int64s, Int32s]:
    """Lists of numbers below `size` from keys list · size + number."""
    lists, numbers = np.divmod(keys, max(size, 1))
    return offsets(np.bincount(lists, minlength=n_lists)), numbers.astype(np.int32)
