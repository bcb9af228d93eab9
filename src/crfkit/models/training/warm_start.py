"""From one model to the next: weights carried over by name, models that learn more features, models without idle ones.

A weight is known by what it scores: (feature, label or facet), (column of a block, label), (before, after), (arc feature,
before, after), the output of a feature function, or a pattern. What both models have keeps its weight, everything else
begins at 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from crfkit.data import fewest_weights
from crfkit.features import FeatureMap, Labels, Vocabulary

if TYPE_CHECKING:
    from crfkit.models.chain_model import ChainModel
    from crfkit.models.training.training_set import Lesson

Bools = npt.NDArray[np.bool_]
Float64s = npt.NDArray[np.float64]
Int32s = npt.NDArray[np.int32]
Int64s = npt.NDArray[np.int64]


def carried(old: ChainModel, weights: Float64s, new: ChainModel) -> Float64s:
    """The weights [D] of `new` to begin with: those that `old` has too, and 0."""
    here, there = old.feature_map, new.feature_map
    labels = _label_ids(old.labels, new.labels)
    outcomes = _outcome_ids(labels, here, there)
    states = _feature_ids(old.encoder.vocabulary, new.encoder.vocabulary)
    arcs = _feature_ids(old.encoder.arc_vocabulary, new.encoder.arc_vocabulary)
    start = np.zeros(new.n_weights)
    L, M = there.n_labels, _n_outcomes(there)
    pairs = _keys(_owners(here.pair_ptr, states), outcomes[here.pair_labels], M)
    _carry(pairs, weights, 0, _keys(_owners(there.pair_ptr), there.pair_labels, M), start, 0)
    for block, columns in here.dense.items():
        if there.dense.get(block) == columns:
            column, label = np.divmod(np.arange(columns * here.n_labels), here.n_labels)
            known = _keys(column, labels[label], L)
            _carry(
                known,
                weights,
                here.dense_begin(block),
                np.arange(columns * L),
                start,
                there.dense_begin(block),
            )
    plain = _keys(outcomes[here.arc_before], outcomes[here.arc_after], M)
    wanted = _keys(there.arc_before, there.arc_after, M)
    _carry(plain, weights, here.arcs_begin, wanted, start, there.arcs_begin)
    before, after = np.divmod(here.arc_triples, max(here.n_labels, 1))
    triples = _keys(_owners(here.arc_ptr, arcs), _keys(labels[before], labels[after], L), L * L)
    wanted = _keys(_owners(there.arc_ptr), there.arc_triples, L * L)
    _carry(triples, weights, here.triples_begin, wanted, start, there.triples_begin)
    if old.functions is not None and new.functions is not None:
        _carry_named(old.functions.output_names(), weights, here, new.functions.output_names(), start, there)
    if old.patterns is not None and new.patterns is not None:
        _carry_named(old.patterns.names, weights, here, new.patterns.names, start, there)
    return start


def _carry_named(
    names: Sequence[str],
    weights: Float64s,
    here: FeatureMap,
    wanted: Sequence[str],
    out: Float64s,
    there: FeatureMap,
) -> None:
    """Copies what lies behind the weights of the feature maps, by name."""
    place = {name: i for i, name in enumerate(wanted)}
    known = np.array([place.get(name, -1) for name in names], dtype=np.int64)
    _carry(known, weights, here.n_weights, np.arange(len(place)), out, there.n_weights)


def widened(feature_map: FeatureMap, base: ChainModel, labels: Labels) -> FeatureMap:
    """A feature map of grown vocabularies and labels, with all the weights of `base` beside its own.

    Features of `base` keep their ids in grown vocabularies; its labels are among `labels`.
    """
    old, L, M = base.feature_map, feature_map.n_labels, _n_outcomes(feature_map)
    ids = _label_ids(base.labels, labels)
    outcomes = _outcome_ids(ids, old, feature_map)
    pair_ptr, pair_labels = _union(
        _keys(_owners(feature_map.pair_ptr), feature_map.pair_labels, M),
        _keys(_owners(old.pair_ptr), outcomes[old.pair_labels], M),
        len(feature_map.pair_ptr) - 1,
        M,
    )
    before, after = np.divmod(old.arc_triples, max(old.n_labels, 1))
    arc_ptr, arc_triples = _union(
        _keys(_owners(feature_map.arc_ptr), feature_map.arc_triples, L * L),
        _keys(_owners(old.arc_ptr), _keys(ids[before], ids[after], L), L * L),
        len(feature_map.arc_ptr) - 1,
        L * L,
    )
    bigrams = feature_map.bigrams
    if bigrams is not None and old.bigrams is not None:
        bigrams = _union_of_arcs(bigrams, (ids[old.bigrams[0]], ids[old.bigrams[1]]), M)
    arcs = _union_of_arcs(
        (feature_map.arc_before, feature_map.arc_after),
        (outcomes[old.arc_before], outcomes[old.arc_after]),
        M,
    )
    return replace(
        feature_map,
        pair_ptr=pair_ptr,
        pair_labels=pair_labels,
        arc_before=arcs[0],
        arc_after=arcs[1],
        arc_ptr=arc_ptr,
        arc_triples=arc_triples,
        bigrams=bigrams,
    )


def touched(lesson: Lesson) -> Bools:
    """Which weights [D] the data of a lesson have a say in: those of features that occur, and all arcs."""
    dataset, map_ = lesson.dataset, lesson.model.feature_map
    out = np.ones(lesson.model.n_weights, dtype=np.bool_)
    n_features = len(map_.pair_ptr) - 1
    occurs = np.bincount(dataset.states.ids, minlength=n_features)[:n_features] > 0
    out[: map_.n_pairs] = np.repeat(occurs, np.diff(map_.pair_ptr))
    n_arc_features = len(map_.arc_ptr) - 1
    arc_ids = np.zeros(0, np.int32) if dataset.arcs is None else dataset.arcs.ids
    occurs = np.bincount(arc_ids, minlength=n_arc_features)[:n_arc_features] > 0
    out[map_.triples_begin : map_.n_weights] = np.repeat(occurs, np.diff(map_.arc_ptr))
    if lesson.values is not None:
        out[map_.n_weights : map_.n_weights + sum(lesson.values.map.sizes)] = lesson.values.occurring()
    if lesson.starts is not None:
        out[map_.n_weights :] = lesson.starts.reachable(len(out) - map_.n_weights)
    return out


def pruned(model: ChainModel, weights: Float64s) -> tuple[ChainModel, Float64s]:
    """The same model without the features, pairs and triples whose weights are exactly zero, as l1 leaves many."""
    if model.functions is not None:
        return model, weights
    map_ = model.feature_map
    used_pairs = weights[: map_.n_pairs] != 0.0
    used_triples = weights[map_.triples_begin : map_.n_weights] != 0.0
    triples, behind = np.split(weights[map_.triples_begin :], [len(used_triples)])
    used_behind = np.ones(len(behind), dtype=np.bool_)
    patterns = model.patterns
    if patterns is not None:
        patterns, used_behind = patterns.kept(behind != 0.0)
    n_unused = sum(int(np.count_nonzero(~used)) for used in (used_pairs, used_triples, used_behind))
    if n_unused == 0 or len(weights) - n_unused < fewest_weights(map_.n_labels):
        return model, weights
    pair_ptr, used_features = _without_unused(map_.pair_ptr, used_pairs)
    arc_ptr, used_arc_features = _without_unused(map_.arc_ptr, used_triples)
    smaller = replace(
        map_,
        pair_ptr=pair_ptr,
        pair_labels=map_.pair_labels[used_pairs],
        arc_ptr=arc_ptr,
        arc_triples=map_.arc_triples[used_triples],
    )
    between = weights[map_.n_pairs : map_.triples_begin]
    first = weights[: map_.n_pairs][used_pairs]
    kept = np.concatenate([first, between, triples[used_triples], behind[used_behind]])
    encoder = replace(
        model.encoder,
        vocabulary=model.encoder.vocabulary.keep(used_features)[0],
        arc_vocabulary=model.encoder.arc_vocabulary.keep(used_arc_features)[0],
    )
    return replace(model, encoder=encoder, feature_map=smaller, patterns=patterns), kept


def _n_outcomes(map_: FeatureMap) -> int:
    """M, how many outcomes pairs and arcs may name: labels, start or end, facets."""
    return map_.n_labels + 1 + (0 if map_.facets is None else len(map_.facets))


def _outcome_ids(labels: Int64s, old: FeatureMap, new: FeatureMap) -> Int64s:
    """The id in `new` of each label, of start and end, and of each facet of `old`; −1 where it has none."""
    if old.facets is None:
        return labels
    names = () if new.facets is None else new.facets.names
    place = {name: new.n_labels + 1 + i for i, name in enumerate(names)}
    return np.concatenate([labels, [place.get(name, -1) for name in old.facets.names]]).astype(np.int64)


def _label_ids(old: Labels, new: Labels) -> Int64s:
    """The id in `new` of each label of `old`, −1 where it has none; start and end last. [L + 1]"""
    place = {label: i for i, label in enumerate(new.classes)}
    return np.array([*(place.get(label, -1) for label in old.classes), len(new)], dtype=np.int64)


def _feature_ids(old: Vocabulary, new: Vocabulary) -> Int64s:
    """The same for features. [F]"""
    return np.array([new.get(name) for name in old.names()], dtype=np.int64)


def _owners(ptr: Int64s, ids: Int64s | None = None) -> Int64s:
    """The feature of each item of its lists, by these ids (None: its number)."""
    ids = np.arange(len(ptr) - 1) if ids is None else ids
    return np.repeat(ids, np.diff(ptr))


def _keys(first: npt.NDArray[np.integer], second: npt.NDArray[np.integer], size: int) -> Int64s:
    """One number for each pair; −1 where either is −1."""
    keys = first.astype(np.int64) * size + second
    return np.where((first < 0) | (second < 0), -1, keys)


def _carry(
    known: Int64s, weights: Float64s, begin: int, wanted: Int64s, out: Float64s, out_begin: int
) -> None:
    """Copies the weights of the known keys to where these are wanted."""
    if len(wanted) == 0:
        return
    order = np.argsort(wanted, kind="stable")
    place = order[np.minimum(np.searchsorted(wanted, known, sorter=order), len(wanted) - 1)]
    same = wanted[place] == known
    out[out_begin + place[same]] = weights[begin : begin + len(known)][same]


def _union(some: Int64s, others: Int64s, n_lists: int, size: int) -> tuple[Int64s, Int32s]:
    """Lists with the items of both; an item is known by list · size + item."""
    lists, items = np.divmod(np.union1d(some, others[others >= 0]), size)
    counts = np.bincount(lists, minlength=n_lists)
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)]), items.astype(np.int32)


def _union_of_arcs(
    some: tuple[Int32s, Int32s], others: tuple[Int64s, Int64s], size: int
) -> tuple[Int32s, Int32s]:
    known = _keys(*others, size)
    before, after = np.divmod(np.union1d(_keys(*some, size), known[known >= 0]), size)
    return before.astype(np.int32), after.astype(np.int32)


def _without_unused(ptr: Int64s, used: npt.NDArray[np.bool_]) -> tuple[Int64s, npt.NDArray[np.bool_]]:
    """Offsets of the lists without unused items and empty lists, and which lists are left."""
    before = np.concatenate([np.zeros(1, np.int64), np.cumsum(used, dtype=np.int64)])[
        ptr
    ]  # used items before list f
    left = np.diff(before) > 0
    return np.concatenate([np.zeros(1, np.int64), before[1:][left]]), left
