"""Labels and their ids, and annotations that may be partial.

In y, the labels of a sequence, an entry is a label, None (unknown), or a set of labels (one of these).
"""

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence, Sized
from collections.abc import Set as AbstractSet
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt

from crfkit import _core
from crfkit.arrays import Float64s, Int32s, Int64s
from crfkit.errors import EmptyDataError, LabelError, ShapeError, UnsavableError
from crfkit.features.dataset import Annotation
from crfkit.features.given_sequences import check_no_table, is_missing
from crfkit.features.wording import shorten
from crfkit.structures import AllowedLabels, Bigrams, SpanLabels

_SHOWN = 40  # labels named in a message at most
_DEEPEST = 8  # tuples inside tuples that are saved


class Labels:
    """L distinct labels; the id of a label is its place in `classes`.

    A model may tell states apart that are written as one label (`span_states.StateLabels`): then ids are those of states.
    Here each label is a state of its own.
    """

    def __init__(self, classes: Iterable[Hashable]) -> None:
        self.classes: tuple[Hashable, ...] = tuple(classes)
        self.names = self.classes  # what is written for each id
        self._ids = {label: i for i, label in enumerate(self.classes)}
        if len(self._ids) != len(self.classes):
            raise LabelError("the labels are not distinct")
        self._array = np.empty(len(self.classes), dtype=object)  # [L]
        for i, label in enumerate(self.classes):
            self._array[i] = label

    @classmethod
    def learn(cls, y: Iterable[Any]) -> "Labels":
        """The labels of an annotation, sorted where they can be, otherwise in the order of their first occurrence."""
        sequences = label_lists(y)
        try:
            seen = dict.fromkeys(chain.from_iterable(sequences))
            plain = all(type(entry) in (str, int, bool) for entry in seen)
        except TypeError:  # a set
            plain = False
        if not plain:
            seen = dict.fromkeys(
                label
                for n, labels in enumerate(sequences)
                for i, entry in enumerate(labels)
                for label in alternatives(n, i, entry)
            )
        if not seen:
            raise EmptyDataError("y names no label at any position: there is nothing to learn from")
        try:
            return cls(sorted(seen))
        except TypeError:
            return cls(seen)

    def __len__(self) -> int:
        return len(self.classes)

    def encode(self, y: Iterable[Any], lengths: npt.ArrayLike) -> Annotation:
        """The annotation of sequences of `lengths` [N] positions as ids; a label that is not in `classes` is refused."""
        sequences = label_lists(y, np.asarray(lengths).tolist())
        try:
            ids = np.fromiter(map(self._ids.__getitem__, chain.from_iterable(sequences)), np.int32)
        except (KeyError, TypeError):  # something that is not one known label
            return self._encode_positions(sequences)
        return Annotation(ids)

    def _encode_positions(self, sequences: Sequence[Sequence[Any]]) -> Annotation:
        """The general form of `encode`, position by position."""
        ids: list[int] = []
        sets: list[list[int] | None] = []
        for n, labels in enumerate(sequences):
            for i, entry in enumerate(labels):
                found = [self.id_of(n, i, label) for label in alternatives(n, i, entry)]
                ids.append(found[0] if len(found) == 1 else -1)
                sets.append(found if len(found) > 1 else None)
        some_sets = any(found is not None for found in sets)
        return Annotation(np.array(ids, dtype=np.int32), AllowedLabels.from_sets(sets) if some_sets else None)

    def id_of(self, n: int, i: int, label: Hashable) -> int:
        """The id of a label, met at position i of sequence n; one that is not known is refused."""
        found = self._ids.get(label)
        if found is None:
            known = ", ".join(map(str, self.classes[:_SHOWN])) + ", …" * (len(self) > _SHOWN)
            raise LabelError(f"sequence {n}, position {i}: unknown label {label!r}; the labels are {known}")
        return found

    def ids_of(self, label: Hashable) -> Sequence[int]:
        """The ids that are written as this label; none where it is not known."""
        found = self._ids.get(label)
        return () if found is None else (found,)

    def unknown_in(self, y: Iterable[Any]) -> Iterator[tuple[int, int, Any]]:
        """Sequence, position and entry of each entry of which no label is known."""
        for n, labels in enumerate(label_lists(y)):
            for i, entry in enumerate(labels):
                named = list(alternatives(n, i, entry))
                if named and not any(label in self._ids for label in named):
                    yield n, i, entry

    def decode(self, ids: Int32s) -> list[Any]:
        """The labels with these ids."""
        labels: list[Any] = self._array[ids].tolist()
        return labels

    def decode_sequences(self, ids: Int32s, sequence_ptr: Int64s) -> list[list[Any]]:
        """The same as a list for each sequence."""
        return _core.label_lists(self.names, ids, sequence_ptr)

    # ---- labels and states: here they are the same

    @property
    def written(self) -> "Labels":
        """The labels as the user writes them."""
        return self

    @property
    def bigrams(self) -> Bigrams | None:
        """The pairs of states that valid sequences have; None: all."""
        return None

    def read_spans(self, annotation: Annotation, ptr: Int64s) -> Annotation:
        """An annotation of written labels, ill-formed ones as they are read; sequence n has positions ptr[n]:ptr[n + 1]."""
        return annotation

    def to_states(self, annotation: Annotation, ptr: Int64s) -> Annotation:
        """The states of an annotation of written labels, as `read_spans` gives them."""
        return annotation

    def find_states(self, ids: Int32s, ptr: Int64s) -> Int32s:
        """The states of sequences of written labels; −1 where a label cannot stand."""
        return ids

    def allow_states(self, allowed: AllowedLabels) -> AllowedLabels:
        """The states of written labels that are allowed."""
        return allowed

    def complete_words(self, allowed: AllowedLabels) -> AllowedLabels:
        """Written labels that a tag dictionary allows, with those that the ones that cannot stand are read as."""
        return allowed

    def sum_states(self, marginals: Float64s) -> Float64s:
        """The probabilities of written labels, from those of states [T, L]."""
        return marginals

    def spread(self, table: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """What an array says of written labels in its last axis, for their states."""
        return table

    def spread_costs(self, costs: Float64s) -> Float64s:
        """Costs [L, L] of written labels as those of their states."""
        return costs

    def read_as_spans(self, labels: SpanLabels) -> SpanLabels:
        """How states are read as spans, where written labels are read so."""
        return labels

    # ---- files

    def to_json(self) -> list[Any]:
        """The labels as JSON values, a tuple as a list; InputError where a label cannot be saved."""
        return [_to_json(label) for label in self.classes]

    @classmethod
    def from_json(cls, values: object) -> "Labels":
        """The inverse of `to_json`."""
        if not isinstance(values, list):
            raise LabelError(f"the labels are {shorten(values)}, expected a list")
        return cls(_from_json(value) for value in values)


def label_lists(y: Any, lengths: Sequence[int] | None = None, which: str = "") -> list[Sequence[Any]]:
    """y as a list with the labels of each sequence; with `lengths` [N], one for each of its positions.

    Iterators are read once. `which` stands before what is named in a message: "dev ".
    """
    expected = "a list with a list of labels for each sequence"
    check_no_table(y, f"{which}y", expected, "label")
    if _unordered(y) or not isinstance(y, Iterable):
        raise LabelError(f"{which}y is {shorten(y)}, expected {expected}")
    lists = [_sequence(n, labels, which) for n, labels in enumerate(y)]
    if lengths is None:
        return lists
    if len(lists) != len(lengths):
        raise ShapeError(f"{which}X has {len(lengths)} sequences but {which}y has {len(lists)}")
    for n, (labels, length) in enumerate(zip(lists, lengths, strict=True)):
        if len(labels) != length:
            raise ShapeError(f"{which}sequence {n}: {length} positions but {len(labels)} labels")
    return lists


def check_lists(y: Any, ptr: Int64s, which: str = "") -> list[Sequence[Any]]:
    """`label_lists` of the positions ptr[n]:ptr[n + 1]; entries that are no label, set of labels or None are refused."""
    lists = label_lists(y, np.diff(ptr).tolist(), which)
    for n, labels in enumerate(lists):
        for i, entry in enumerate(labels):
            if type(entry) is not str:
                for _ in alternatives(n, i, entry, which):
                    pass
    return lists


def _unordered(y: Any) -> bool:
    return isinstance(y, str | bytes | Mapping | AbstractSet)


def _sequence(n: int, labels: Any, which: str) -> Sequence[Any]:
    """The labels of one sequence, if they can be that."""
    if type(labels) is list:
        return labels
    if isinstance(labels, Iterator):
        return list(labels)
    check_no_table(labels, f"{which}y of sequence {n}", "a list of labels", "label")
    if _unordered(labels) or not isinstance(labels, Sized) or not isinstance(labels, Iterable):
        advice = "; y has a list for each sequence: write [y] for a single one"
        if labels is None:
            advice = ", with None where a label is unknown"
        raise LabelError(f"{which}y of sequence {n} is {shorten(labels)}, expected a list of labels{advice}")
    return labels  # type: ignore[return-value]


def alternatives(n: int, i: int, entry: Any, which: str = "") -> Iterator[Hashable]:
    """The labels that an entry of y names: one, several for a set, none for None."""
    if entry is None:
        return
    place = f"{which}sequence {n}, position {i}"
    if not isinstance(entry, set | frozenset):
        yield _check_label(place, entry)
        return
    if not entry:
        raise LabelError(f"{place}: the set of labels is empty; expected None where nothing is known")
    for label in entry:
        if label is None:
            raise LabelError(f"{place}: None in a set of labels")
        yield _check_label(place, label)


def _check_label(place: str, label: Any) -> Hashable:
    """A label that can be found again; NumPy's scalars become Python's."""
    if isinstance(label, np.generic):
        label = label.item()
    try:
        hash(label)
    except TypeError:
        raise LabelError(
            f"{place}: the label {shorten(label)} is not hashable; "
            "expected a string, a number, a tuple, a set of labels or None"
        ) from None
    if is_missing(label):
        raise LabelError(
            f"{place}: the label is {shorten(label)}, a missing value; expected a label, or None where it is unknown"
        )
    return label  # type: ignore[no-any-return]


def _to_json(label: Hashable, depth: int = 0) -> Any:
    if isinstance(label, str):
        try:
            label.encode()
        except UnicodeEncodeError as error:
            piece = label[error.start : error.end]
            raise UnsavableError(
                f"the label {shorten(label)} cannot be saved; {piece!r} is no character of a file"
            ) from None
        return label
    if isinstance(label, int) or (isinstance(label, float) and np.isfinite(label)):
        return label
    if isinstance(label, tuple) and depth < _DEEPEST:
        return [_to_json(part, depth + 1) for part in label]
    raise UnsavableError(
        f"the label {shorten(label)} cannot be saved; expected a string, a number or a tuple of these"
    )


def _from_json(value: object, depth: int = 0) -> Hashable:
    if isinstance(value, str | int | float):
        return value
    if isinstance(value, list) and depth < _DEEPEST:
        return tuple(_from_json(part, depth + 1) for part in value)
    raise LabelError(f"{shorten(value)} is not a label; expected a string, a number or a list of these")
