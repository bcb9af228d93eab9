"""States of span labels: the first, inside, last and single positions of spans, where the labels are those of BIO.

A user writes B-X, I-X and O. A model of the states of IOBES has weights of its own for each of

    B-X   the first position of two or more     written B-X
    S-X   the only one                          written B-X
    I-X   between the first and the last one    written I-X
    E-X   the last one                          written I-X
    O     outside                               written O

A label sequence of valid BIO has exactly one sequence of states, so that probabilities of label sequences are those of
states, and the probability of a label at a position is the sum over its states. An I-X that no B-X or I-X comes before
begins a span, as conlleval reads it: it is read as B-X. Where y has None or sets, labels stand for all of their states, of
which the valid bigrams leave those that fit together.

Shapes: T positions in all sequences together, L labels, S states.
"""

from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from crfkit.arrays import Bools, Float64s, Int32s, Int64s, offsets
from crfkit.errors import LabelError
from crfkit.features.dataset import Annotation
from crfkit.features.endings import distinct
from crfkit.features.labels import Labels
from crfkit.features.wording import shorten
from crfkit.structures import AllowedLabels, Bigrams, SpanLabels, find_scheme, label_place

IOBES = "iobes"
"""The value of `span_states` for the states of IOBES."""

SCHEME = "bio"  # of the labels as they are written
_OUTSIDE, _UNKNOWN = -1, -2  # beside the numbers of types


class StateLabels(Labels):
    """The S states of L labels of BIO; the id of a state is its place in `classes`, `written` are the labels."""

    def __init__(self, written: Labels) -> None:
        if not self.are_for(written):
            raise LabelError(
                f"span states are for labels of spans in BIO, such as B-PER, I-PER and O; the labels are those of "
                f"{find_scheme(written.classes)}: {shorten(list(written.classes))}; leave span_states out for these"
            )
        written = _with_beginnings(written)
        places = [label_place(SCHEME, label) for label in written.classes]
        longer = {place.type for place in places if place.role == "I"}  # types of spans of several positions
        names: list[Hashable] = []
        owners: list[int] = []  # the label of each state
        for b, (label, place) in enumerate(zip(written.classes, places, strict=True)):
            roles = {"O": ["O"], "B": ["B", "S"] if place.type in longer else ["S"], "I": ["I", "E"]}[
                place.role
            ]
            names += [label if role == "O" else f"{role}{str(label)[1:]}" for role in roles]
            owners += [b] * len(roles)
        super().__init__(names)
        self._written = written
        self._owner = np.array(owners, np.int32)  # [S]
        n_states = np.bincount(self._owner, minlength=len(written))  # [L]
        self._begin = offsets(n_states)  # [L + 1] the first state of each label
        self.names = tuple(written.classes[b] for b in owners)
        for s, label in enumerate(self.names):
            self._array[s] = label
        self._read_places([place.role for place in places], [place.type for place in places])

    @staticmethod
    def are_for(written: Labels) -> bool:
        """Whether labels are those of BIO."""
        return find_scheme(written.classes) == SCHEME

    def _read_places(self, roles: Sequence[str], types: Sequence[str]) -> None:
        """Tables by the ids of labels; their last entry is that of an unknown label, −1."""
        number = {kind: c for c, kind in enumerate(dict.fromkeys(types))}
        kinds = [_OUTSIDE if role == "O" else number[kind] for role, kind in zip(roles, types, strict=True)]
        self._type = np.array([*kinds, _UNKNOWN], np.int32)  # [L + 1]
        self._inside = np.array([*(role == "I" for role in roles), False], np.bool_)  # [L + 1]
        beginning = {kind: b for b, (role, kind) in enumerate(zip(roles, types, strict=True)) if role == "B"}
        # [L + 1] the label that begins a span of the type of each label
        self._first = np.array([*(beginning.get(kind, -1) for kind in types), -1], np.int32)
        first = np.append(self._begin[:-1], -1).astype(np.int32)
        last = np.append(self._begin[1:] - 1, -1).astype(np.int32)
        self._several = first != last  # [L + 1] labels of two states
        self._state = np.stack(
            [last, first], axis=1
        )  # [L + 1, 2] the state where the span ends, where it goes on

    @property
    def written(self) -> Labels:
        """The labels as the user writes them."""
        return self._written

    @property
    def bigrams(self) -> Bigrams:
        """The pairs of states that valid sequences have."""
        return Bigrams.scheme(IOBES, self.classes)

    def are_valid(self, before: Int32s, after: Int32s) -> bool:
        """Whether these are pairs of states that valid sequences have; S is the start and the end."""
        codes = [
            one.astype(np.int64) * (len(self) + 1) + other
            for one, other in (self.bigrams.ids(self.classes), (before, after))
        ]
        return bool(np.isin(codes[1], codes[0]).all())

    def ids_of(self, label: Hashable) -> Sequence[int]:
        """The states of a label; none for one that is not known."""
        found = self._written.ids_of(label)
        return range(int(self._begin[found[0]]), int(self._begin[found[0] + 1])) if found else ()

    def encode(self, y: Iterable[Any], lengths: npt.ArrayLike) -> Annotation:
        """The states of an annotation."""
        ptr = offsets(np.asarray(lengths, np.int64))
        return self.to_states(self.read_spans(self._written.encode(y, lengths), ptr), ptr)

    def id_of(self, n: int, i: int, label: Hashable) -> int:
        """Refused: a label may have several states."""
        raise LabelError(f"sequence {n}, position {i}: {label!r} has no single id among states")

    def unknown_in(self, y: Iterable[Any]) -> Iterator[tuple[int, int, Any]]:
        """Sequence, position and entry of each entry of which no label is known."""
        return self._written.unknown_in(y)

    def to_json(self) -> list[Any]:
        """The labels as JSON values."""
        return self._written.to_json()

    # ---- from labels to states

    def count_beginnings(self, annotation: Annotation, ptr: Int64s) -> tuple[int, int]:
        """How many spans of an annotation of labels begin with B-X, as in BIO, and how many with I-X."""
        ids = annotation.labels
        begins = self._begins_inside(ids, ptr)
        return int(np.count_nonzero((ids >= 0) & (self._first[ids] == ids))), int(np.count_nonzero(begins))

    def read_spans(self, annotation: Annotation, ptr: Int64s) -> Annotation:
        """An annotation of labels, with B-X for each I-X that begins a span: sequence n has positions ptr[n]:ptr[n + 1]."""
        ids = annotation.labels
        begins = self._begins_inside(ids, ptr)
        if not begins.any():
            return annotation
        return annotation._replace(labels=np.where(begins, self._first[ids], ids))

    def _begins_inside(self, ids: Int32s, ptr: Int64s) -> Bools:
        """Where [T] an I-X begins a span."""
        before = np.concatenate([[_OUTSIDE], self._type[ids[:-1]]])[: len(ids)]
        before[ptr[:-1][ptr[:-1] < len(ids)]] = _OUTSIDE
        begins: Bools = self._inside[ids] & (before != _UNKNOWN) & (before != self._type[ids])
        return begins

    def to_states(self, annotation: Annotation, ptr: Int64s) -> Annotation:
        """The states of an annotation of labels; a set where the next label, which decides, is not known."""
        ids = annotation.labels
        has_next = np.ones(len(ids), np.bool_)
        has_next[ptr[1:][np.diff(ptr) > 0] - 1] = False
        after = np.append(ids[1:], np.int32(-1))[: len(ids)]
        goes_on = has_next & self._inside[after] & (self._type[after] == self._type[ids])
        states = self._state[ids, goes_on.astype(np.int32)]
        several = has_next & (after < 0) & self._several[ids]
        sets = annotation.sets
        if sets is None and not several.any():
            return Annotation(states)
        states[several] = -1
        kept = np.where(several, ids, -1)  # labels of which all states are possible
        counts = (kept >= 0).astype(np.int64)
        members = kept[kept >= 0]
        if sets is not None:
            of_sets = np.where(ids < 0, np.diff(sets.position_ptr), 0)
            owned = np.repeat(ids < 0, np.diff(sets.position_ptr))
            merged = np.empty(int((counts + of_sets).sum()), np.int32)
            is_set = np.repeat(of_sets > 0, counts + of_sets)
            merged[is_set], merged[~is_set] = sets.labels[owned], members
            counts, members = counts + of_sets, merged
        return Annotation(states, self.allow_states(AllowedLabels(offsets(counts), members)))

    def find_states(self, ids: Int32s, ptr: Int64s) -> Int32s:
        """The states of label sequences; −1 for an I-X that begins a span."""
        annotation = Annotation(ids)
        read = self.read_spans(annotation, ptr)
        return np.where(read.labels == ids, self.to_states(read, ptr).labels, np.int32(-1))

    def allow_states(self, allowed: AllowedLabels) -> AllowedLabels:
        """All states of the labels that are allowed."""
        begin, end = self._begin[allowed.labels], self._begin[allowed.labels + 1]
        sizes = offsets(end - begin)
        states = np.arange(sizes[-1]) + np.repeat(begin - sizes[:-1], end - begin)
        return AllowedLabels(sizes[allowed.position_ptr], states.astype(np.int32))

    def complete_words(self, allowed: AllowedLabels) -> AllowedLabels:
        """Labels that a tag dictionary allows, with B-X for each I-X: a word that was always inside may begin a span."""
        inside = self._inside[allowed.labels]
        if not inside.any():
            return allowed
        n_positions, n_labels = len(allowed.position_ptr) - 1, len(self._written)
        position = np.repeat(np.arange(n_positions), np.diff(allowed.position_ptr))
        added = position[inside] * n_labels + self._first[allowed.labels[inside]]
        codes = distinct(np.concatenate([position * n_labels + allowed.labels, added]))
        counts = np.bincount(codes // n_labels, minlength=n_positions)
        return AllowedLabels(offsets(counts), (codes % n_labels).astype(np.int32))

    # ---- from states to labels

    def sum_states(self, marginals: Float64s) -> Float64s:
        """The probabilities [T, L] of labels, from those of states [T, S]."""
        summed: Float64s = np.minimum(np.add.reduceat(marginals, self._begin[:-1], axis=1), 1.0)
        return summed

    def spread(self, table: npt.NDArray[Any]) -> Any:
        """What an array says of labels in its last axis, for their states."""
        return table[..., self._owner]

    def spread_costs(self, costs: Float64s) -> Float64s:
        """Costs [L, L] of labels as those of their states, [S, S]."""
        return np.ascontiguousarray(costs[np.ix_(self._owner, self._owner)])

    def read_as_spans(self, labels: SpanLabels) -> SpanLabels:
        """How states are read as spans, where labels are read so."""
        return replace(
            labels,
            type_of=self.spread(labels.type_of),
            goes_on=self.spread(labels.goes_on),
            follows=self.spread(labels.follows),
        )


def _with_beginnings(labels: Labels) -> Labels:
    """The labels, with B-X beside each I-X: where spans begin with I-X, they are read as beginning with B-X."""
    begin = [f"B{str(label)[1:]}" for label in labels.classes if label_place(SCHEME, label).role == "I"]
    missing = [label for label in begin if label not in labels.classes]
    if not missing:
        return labels
    return Labels(sorted([*map(str, labels.classes), *missing]))
