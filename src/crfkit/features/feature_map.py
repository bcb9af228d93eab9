"""Which weights exist, and where each lies in the weight vector w[D].

    state pairs     (feature, label): only pairs seen in training, or all
    dense blocks    (column, label), block after block
    arcs            (before, after); before = L is the start of a sequence, after = L its end
    arc triples     (arc feature, before, after)

Letters: F features, L labels, P pairs, A arcs, D weights.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from crfkit import _core
from crfkit.arrays import Float64s, Int32s, Int64s, offsets
from crfkit.features.dataset import Annotation, Dataset, sequence_weights
from crfkit.features.facets import Facets
from crfkit.structures import Chain

Purpose = Literal["training", "patterns", "questions"]  # what a compiled data set is for


@dataclass(frozen=True, eq=False)
class FeatureMap:
    """The layout of the weights of a chain model. `layout` is the same in the native core, which checks it."""

    n_labels: int
    pair_ptr: Int64s  # [F + 1] feature f has the pairs pair_ptr[f]:pair_ptr[f + 1]
    pair_labels: Int32s  # [P]
    dense: Mapping[str, int]  # block name → number of columns
    arc_before: Int32s  # [A]
    arc_after: Int32s  # [A]
    arc_ptr: Int64s  # [arc features + 1]
    arc_triples: Int32s  # before · L + after
    bigrams: tuple[Int32s, Int32s] | None = None  # the only arcs that exist, as (before, after); None: all
    soft: bool = False  # with bigrams: all other arcs exist too, with score 0 and no weight
    facets: Facets | None = None  # then pairs name facets, and arcs facets beside labels, from L + 1 on
    # The first of L features that tell training which labels are right: a margin.
    right_labels: int | None = field(default=None, metadata={"later": True})
    layout: _core.Layout = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Build the native layout."""
        before, after = (None, None) if self.bigrams is None else self.bigrams
        layout = _core.Layout(
            self.n_labels,
            self.pair_ptr,
            self.pair_labels,
            np.array(list(self.dense.values()), dtype=np.int64),
            self.arc_before,
            self.arc_after,
            self.arc_ptr,
            self.arc_triples,
            before,
            after,
            self.soft,
            *((None, None, 0) if self.facets is None else (*self.facets.lists(), len(self.facets))),
        )
        object.__setattr__(self, "layout", layout)

    def __reduce__(self) -> tuple[Any, ...]:
        """For pickles: the native layout is made anew."""
        return type(self), tuple(getattr(self, field.name) for field in fields(self) if field.init)

    @classmethod
    def build(
        cls,
        dataset: Dataset,
        annotation: Annotation,
        structure: Chain,
        *,
        n_labels: int,
        n_features: int,
        n_arc_features: int = 0,
        all_possible_states: bool = False,
        all_possible_transitions: bool = True,
        bigrams: tuple[Int32s, Int32s] | None = None,
        soft: bool = False,
        facets: Facets | None = None,
    ) -> FeatureMap:
        """The weights that training data call for.

        `all_possible_states` gives every feature a weight for every label, and every arc feature one for every pair of
        labels; otherwise only what occurs in the annotation. `all_possible_transitions` does the same for plain arcs.
        With `bigrams` only these have weights, and unless `soft` only these exist. With `facets` features of positions have
        weights for these instead of whole labels; `all_possible_states` then gives one for every facet that a position
        may have where the feature is active.
        """
        set_ptr, set_labels = annotation.set_arrays
        arc_ptr, arc_triples = _everything(n_arc_features if all_possible_states else 0, n_labels * n_labels)
        if not all_possible_states and dataset.arcs is not None and n_arc_features:
            ptr, at, ids = dataset.sequence_ptr, dataset.arcs.position_ptr, dataset.arcs.ids
            known = (annotation.labels, n_arc_features, n_labels, set_ptr, set_labels)
            arc_ptr, arc_triples = _core.seen_pairs(at, ids, *known, sequence_ptr=ptr)
        if all_possible_states and facets is None:
            pair_ptr, pair_labels = _everything(n_features, n_labels)
        else:
            seen = (annotation.labels, n_features, n_labels, set_ptr, set_labels)
            if facets is not None:
                possible = _possible(dataset, facets) if all_possible_states else _known(annotation, facets)
                nothing = np.full(dataset.n_positions, -1, np.int32)
                seen = (nothing, n_features, len(facets.table) + 1 + len(facets), *possible)
            pair_ptr, pair_labels = _core.seen_pairs(dataset.states.position_ptr, dataset.states.ids, *seen)
        exists = _arcs(
            dataset, annotation, structure, n_labels, all_possible_transitions=all_possible_transitions
        )
        if bigrams is not None:
            listed = np.zeros_like(exists)
            listed[bigrams] = True
            exists &= listed
        before, after = (ids.astype(np.int32) for ids in np.nonzero(exists))
        if facets is not None:
            linked = _seen_arcs(dataset, annotation)
            first, second = facets.find_arcs(*linked)
            before, after = np.concatenate([before, first]), np.concatenate([after, second])
        return cls(
            n_labels=n_labels,
            pair_ptr=pair_ptr,
            pair_labels=pair_labels,
            dense={name: block.shape[1] for name, block in dataset.dense.items()},
            arc_before=before,
            arc_after=after,
            arc_ptr=arc_ptr,
            arc_triples=arc_triples,
            bigrams=bigrams,
            soft=soft,
            facets=facets,
        )

    @property
    def n_weights(self) -> int:
        """D."""
        return self.layout.n_weights

    @property
    def n_pairs(self) -> int:
        """P."""
        return len(self.pair_labels)

    def dense_begin(self, block: str) -> int:
        """Where the weights [columns, L] of a dense block begin."""
        names = list(self.dense)
        return self.n_pairs + self.n_labels * sum(self.dense[name] for name in names[: names.index(block)])

    @property
    def arcs_begin(self) -> int:
        """Where the weights of the arcs begin."""
        return self.n_pairs + self.n_labels * sum(self.dense.values())

    @property
    def triples_begin(self) -> int:
        """Where the weights of the arc features begin."""
        return self.arcs_begin + len(self.arc_before)

    def arc_weights(self, weights: Float64s) -> tuple[Float64s, Float64s, Float64s]:
        """Weights of the plain arcs as (arcs [L, L], start [L], end [L]); 0 where there is none."""
        square = np.zeros((self.n_labels + 1, self.n_labels + 1))
        whole = np.maximum(self.arc_before, self.arc_after) <= self.n_labels  # between labels, not facets
        of_arcs = weights[self.arcs_begin : self.triples_begin]
        square[self.arc_before[whole], self.arc_after[whole]] = of_arcs[whole]
        return square[:-1, :-1], square[-1, :-1], square[:-1, -1]

    def design(self, dataset: Dataset, n_threads: int, *, purpose: Purpose = "questions") -> _core.Design:
        """The data set compiled against this layout, for the native core.

        "training" prepares it for many passes; for "questions" it is ready sooner, and serves for these alone.
        """
        arcs = dataset.arcs
        return _core.Design(
            self.layout,
            dataset.sequence_ptr,
            dataset.states.position_ptr,
            dataset.states.ids,
            dataset.states.values,
            None if arcs is None else arcs.position_ptr,
            None if arcs is None else arcs.ids,
            None if arcs is None else arcs.values,
            [np.ascontiguousarray(dataset.dense[name], dtype=np.float64) for name in self.dense],
            n_threads,
            None if dataset.allowed is None else dataset.allowed.position_ptr,
            None if dataset.allowed is None else dataset.allowed.labels,
            purpose,
        )

    def loss(
        self,
        dataset: Dataset,
        annotation: Annotation,
        *,
        sample_weight: npt.ArrayLike | None = None,
        single_precision: bool = True,
        n_threads: int = 1,
    ) -> _core.DataLoss:
        """The loss of a chain over a data set, for `Objective`."""
        return _core.chain_loss(
            self.layout,
            self.design(dataset, n_threads, purpose="training"),
            annotation.labels,
            *annotation.set_arrays,
            sequence_weights(sample_weight, dataset.n_sequences),
            single_precision,
            n_threads,
        )


def _known(annotation: Annotation, facets: Facets) -> tuple[Int64s, Int32s]:
    """The facets of the label of each position, where it is known, as lists (pointers [T + 1], facets)."""
    ptr, ids = facets.lists()
    known = np.flatnonzero(annotation.labels >= 0)
    labels = annotation.labels[known]
    counts = np.zeros(len(annotation.labels) + 1, np.int64)
    counts[known + 1] = np.diff(ptr)[labels]
    set_ptr = np.cumsum(counts)
    places = np.arange(set_ptr[-1]) - np.repeat(set_ptr[known], counts[known + 1])
    return set_ptr, ids[np.repeat(ptr[labels], counts[known + 1]) + places]


def _possible(dataset: Dataset, facets: Facets) -> tuple[Int64s, Int32s]:
    """The facets of the labels that each position may have, as lists (pointers [T + 1], facets)."""
    n, first = len(facets), len(facets.table) + 1
    has = np.zeros((len(facets.table) + 1, n), np.bool_)  # [L + 1, facets]; the last row is for any label
    for column in facets.table.T:
        has[np.flatnonzero(column >= 0), column[column >= 0]] = True
    has[-1] = has.any(axis=0)
    allowed = dataset.allowed
    position_ptr = np.zeros(dataset.n_positions + 1, np.int64) if allowed is None else allowed.position_ptr
    labels = np.zeros(0, np.int32) if allowed is None else allowed.labels
    of_positions = np.zeros((dataset.n_positions, n), np.bool_)
    some = np.flatnonzero(np.diff(position_ptr) > 0)
    if len(some):
        of_positions[some] = np.logical_or.reduceat(has[labels], position_ptr[some])
    of_positions[np.diff(position_ptr) == 0] = has[-1]
    set_ptr = offsets(of_positions.sum(axis=1))
    return set_ptr, (np.nonzero(of_positions)[1] + first).astype(np.int32)


def _seen_arcs(dataset: Dataset, annotation: Annotation) -> tuple[Int32s, Int32s]:
    """The pairs of neighbouring labels, where both are known."""
    before, after = annotation.labels[:-1], annotation.labels[1:]
    linked = (before >= 0) & (after >= 0)
    starts = dataset.sequence_ptr[1:-1]
    # Not from one sequence to the next.
    linked[starts[(starts > 0) & (starts < dataset.n_positions)] - 1] = False
    return before[linked], after[linked]


def _everything(n_features: int, n_items: int) -> tuple[Int64s, Int32s]:
    """Every feature with every item."""
    return (
        np.arange(n_features + 1, dtype=np.int64) * n_items,
        np.tile(np.arange(n_items, dtype=np.int32), n_features),
    )


def _arcs(
    dataset: Dataset,
    annotation: Annotation,
    structure: Chain,
    n_labels: int,
    *,
    all_possible_transitions: bool,
) -> npt.NDArray[np.bool_]:
    """Which plain arcs have weights: [L + 1, L + 1], (before, after), start and end last."""
    exists = np.zeros((n_labels + 1, n_labels + 1), dtype=bool)
    if all_possible_transitions:
        exists[:-1, :-1] = True
        exists[-1, :-1] = exists[:-1, -1] = True
    else:
        set_ptr, set_labels = annotation.set_arrays
        first, last = dataset.sequence_ptr[:-1], dataset.sequence_ptr[1:] - 1
        filled = last >= first
        first, last = first[filled], last[filled]
        # What any arc feature would meet active at every position, and a state feature at first or at last positions.
        everywhere = np.arange(dataset.n_positions + 1, dtype=np.int64)
        always = np.zeros(dataset.n_positions, dtype=np.int32)
        seen = _core.seen_pairs(
            everywhere, always, annotation.labels, 1, n_labels, set_ptr, set_labels, dataset.sequence_ptr
        )[1]
        exists[np.divmod(seen, n_labels)] = True
        for positions, arcs in ((first, exists[-1]), (last, exists[:, -1])):
            active = np.zeros(dataset.n_positions + 1, dtype=np.int64)
            active[positions + 1] = 1
            known = (annotation.labels, 1, n_labels, set_ptr, set_labels)
            arcs[_core.seen_pairs(np.cumsum(active), always[: len(positions)], *known)[1]] = True
    if not structure.start:
        exists[-1, :] = False
    if not structure.end:
        exists[:, -1] = False
    exists[-1, -1] = False
    return exists
