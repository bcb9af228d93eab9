"""From one model to the next: weights transferred by name, and feature maps that grow.

A weight is known by what it scores: (feature, label or facet), (column of a block, label), (before, after), (feature,
before, after), or the name of a pattern or of an output of a feature function. What both models have keeps its weight,
everything else begins at 0.
"""

from collections.abc import Hashable, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from crfkit.arrays import Bools, Float64s, Int32s, Int64s, offsets
from crfkit.features import Encoder, FeatureMap, Labels, Vocabulary


def transfer_features(
    old_encoder: Encoder,
    old: FeatureMap,
    old_labels: Labels,
    weights: Float64s,
    new_encoder: Encoder,
    new: FeatureMap,
    new_labels: Labels,
    linked: Sequence[int],
    out: Float64s,
) -> None:
    """Copies the weights [D] of a feature map to where another one has the same, in `out` [D'].

    `linked` [L] has the new label whose transitions those of each old label are, −1: none.
    """
    labels = _outcome_ids(old, old_labels, new, new_labels)
    of_arcs = np.concatenate([np.array(linked, np.int64), labels[old.n_labels :]])
    states = _feature_ids(old_encoder.vocabulary, new_encoder.vocabulary)
    arcs = _feature_ids(old_encoder.arc_vocabulary, new_encoder.arc_vocabulary)
    L = new.n_labels
    n_outcomes = len(_outcomes(new, new_labels))
    known = make_keys(_owners(old.pair_ptr, states), labels[old.pair_labels], n_outcomes)
    wanted = make_keys(_owners(new.pair_ptr), new.pair_labels, n_outcomes)
    copy_keyed(known, weights, wanted, out)
    for block, columns in old.dense.items():
        if new.dense.get(block) == columns:
            column, label = np.divmod(np.arange(columns * old.n_labels), old.n_labels)
            known = make_keys(column, labels[label], L)
            here, there = weights[old.dense_begin(block) :], out[new.dense_begin(block) :]
            copy_keyed(known, here, np.arange(columns * L), there)
    known = make_keys(of_arcs[old.arc_before], of_arcs[old.arc_after], n_outcomes)
    wanted = make_keys(new.arc_before, new.arc_after, n_outcomes)
    copy_keyed(known, weights[old.arcs_begin :], wanted, out[new.arcs_begin :])
    before, after = np.divmod(old.arc_triples, max(old.n_labels, 1))
    known = make_keys(_owners(old.arc_ptr, arcs), make_keys(of_arcs[before], of_arcs[after], L), L * L)
    wanted = make_keys(_owners(new.arc_ptr), new.arc_triples, L * L)
    copy_keyed(known, weights[old.triples_begin :], wanted, out[new.triples_begin :])


def copy_named(
    names: Sequence[Hashable], weights: Float64s, wanted: Sequence[Hashable], out: Float64s
) -> None:
    """Copies the weights of these names to where the same names are wanted."""
    place = {name: i for i, name in enumerate(wanted)}
    known = np.array([place.get(name, -1) for name in names], dtype=np.int64)
    copy_keyed(known, weights, np.arange(len(place)), out)


def copy_keyed(known: Int64s, weights: Float64s, wanted: Int64s, out: Float64s) -> None:
    """Copies the weights of the known keys, which are the first ones, to where the same keys are wanted."""
    place = find_keys(known, wanted)
    same = place >= 0
    out[place[same]] = weights[: len(known)][same]


def find_keys(known: Int64s, wanted: Int64s) -> Int64s:
    """Where each of the known keys is among the wanted ones, which are distinct; −1 where it is not."""
    if len(wanted) == 0:
        return np.full(len(known), -1, dtype=np.int64)
    order = np.argsort(wanted, kind="stable")
    place = order[np.minimum(np.searchsorted(wanted, known, sorter=order), len(wanted) - 1)]
    return np.where(wanted[place] == known, place, -1)


def widen(feature_map: FeatureMap, labels: Labels, old: FeatureMap, old_labels: Labels) -> FeatureMap:
    """A feature map of grown vocabularies and labels, with all the weights of an old one beside its own.

    Features of the old one keep their ids in grown vocabularies; its labels are among `labels`.
    """
    L, n_outcomes = feature_map.n_labels, len(_outcomes(feature_map, labels))
    ids = _outcome_ids(old, old_labels, feature_map, labels)
    pair_ptr, pair_labels = _union(
        make_keys(_owners(feature_map.pair_ptr), feature_map.pair_labels, n_outcomes),
        make_keys(_owners(old.pair_ptr), ids[old.pair_labels], n_outcomes),
        len(feature_map.pair_ptr) - 1,
        n_outcomes,
    )
    before, after = np.divmod(old.arc_triples, max(old.n_labels, 1))
    arc_ptr, arc_triples = _union(
        make_keys(_owners(feature_map.arc_ptr), feature_map.arc_triples, L * L),
        make_keys(_owners(old.arc_ptr), make_keys(ids[before], ids[after], L), L * L),
        len(feature_map.arc_ptr) - 1,
        L * L,
    )
    bigrams = feature_map.bigrams
    if bigrams is not None and old.bigrams is not None:
        bigrams = _union_of_arcs(bigrams, (ids[old.bigrams[0]], ids[old.bigrams[1]]), n_outcomes)
    arcs = _union_of_arcs(
        (feature_map.arc_before, feature_map.arc_after),
        (ids[old.arc_before], ids[old.arc_after]),
        n_outcomes,
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


def join_maps(
    maps: Sequence[tuple[Encoder, FeatureMap, Labels]], encoder: Encoder, labels: Labels
) -> FeatureMap:
    """A feature map with the weights of all these, without facets, for an encoder and labels that have all of theirs."""
    L = len(labels)
    pairs, triples, arcs, bigrams = ([np.zeros(0, np.int64)] for _ in range(4))
    place = {label: b for b, label in enumerate(labels.classes)}
    for old_encoder, old, old_labels in maps:
        ids = np.array([*(place[label] for label in old_labels.classes), L])
        states = _feature_ids(old_encoder.vocabulary, encoder.vocabulary)
        of_arcs = _feature_ids(old_encoder.arc_vocabulary, encoder.arc_vocabulary)
        pairs.append(make_keys(_owners(old.pair_ptr, states), ids[old.pair_labels], L))
        before, after = np.divmod(old.arc_triples, max(old.n_labels, 1))
        triples.append(make_keys(_owners(old.arc_ptr, of_arcs), make_keys(ids[before], ids[after], L), L * L))
        arcs.append(make_keys(ids[old.arc_before], ids[old.arc_after], L + 1))
        if old.bigrams is not None:
            bigrams.append(make_keys(ids[old.bigrams[0]], ids[old.bigrams[1]], L + 1))
    none = np.zeros(0, np.int64)
    pair_ptr, pair_labels = _union(np.concatenate(pairs), none, len(encoder.vocabulary), L)
    arc_ptr, arc_triples = _union(np.concatenate(triples), none, len(encoder.arc_vocabulary), L * L)
    before, after = (ids.astype(np.int32) for ids in np.divmod(np.unique(np.concatenate(arcs)), L + 1))
    listed = None
    if all(old.bigrams is not None for _, old, _ in maps):  # else all transitions exist
        found = np.divmod(np.unique(np.concatenate(bigrams)), L + 1)
        listed = found[0].astype(np.int32), found[1].astype(np.int32)
    return replace(
        maps[0][1],
        n_labels=L,
        pair_ptr=pair_ptr,
        pair_labels=pair_labels,
        arc_before=before,
        arc_after=after,
        arc_ptr=arc_ptr,
        arc_triples=arc_triples,
        bigrams=listed,
        soft=listed is not None and any(old.soft for _, old, _ in maps),
    )


def _outcomes(feature_map: FeatureMap, labels: Labels) -> list[Hashable]:
    """What features and transitions score, in the order of their ids: labels, the start and end, then facets."""
    facets = () if feature_map.facets is None else feature_map.facets.names
    return [*((False, label) for label in labels.classes), None, *((True, name) for name in facets)]


def _outcome_ids(old: FeatureMap, old_labels: Labels, new: FeatureMap, new_labels: Labels) -> Int64s:
    """The id in `new` of each outcome of `old`, −1 where it has none."""
    place = {outcome: i for i, outcome in enumerate(_outcomes(new, new_labels))}
    return np.array([place.get(outcome, -1) for outcome in _outcomes(old, old_labels)], dtype=np.int64)


def _feature_ids(old: Vocabulary, new: Vocabulary) -> Int64s:
    """The same for features. [F]"""
    return np.array([new.get(name) for name in old.names()], dtype=np.int64)


def _owners(ptr: Int64s, ids: Int64s | None = None) -> Int64s:
    """The feature of each item of its lists, by these ids (None: its number)."""
    ids = np.arange(len(ptr) - 1) if ids is None else ids
    return np.repeat(ids, np.diff(ptr))


def make_keys(first: npt.NDArray[np.integer], second: npt.NDArray[np.integer], size: int) -> Int64s:
    """One number for each pair; −1 where either is −1."""
    keys = first.astype(np.int64) * size + second
    return np.where((first < 0) | (second < 0), -1, keys)


def _union(some: Int64s, others: Int64s, n_lists: int, size: int) -> tuple[Int64s, Int32s]:
    """Lists with the items of both; an item is known by list · size + item."""
    lists, items = np.divmod(np.union1d(some, others[others >= 0]), size)
    counts = np.bincount(lists, minlength=n_lists)
    return offsets(counts), items.astype(np.int32)


def _union_of_arcs(
    some: tuple[Int32s, Int32s], others: tuple[Int64s, Int64s], size: int
) -> tuple[Int32s, Int32s]:
    known = make_keys(*others, size)
    before, after = np.divmod(np.union1d(make_keys(*some, size), known[known >= 0]), size)
    return before.astype(np.int32), after.astype(np.int32)


def without_unused(ptr: Int64s, used: Bools) -> tuple[Int64s, Bools]:
    """Offsets of the lists without unused items and empty lists, and which lists are left."""
    before = offsets(used)[ptr]  # used items before list f
    left = np.diff(before) > 0
    return np.concatenate([np.zeros(1, np.int64), before[1:][left]]), left
