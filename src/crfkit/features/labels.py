"""Labels and their ids, and annotations that may be partial.

In y, the labels of a sequence, an entry is a label, None (unknown), or a set of labels (one of these).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence, Sized
from collections.abc import Set as AbstractSet
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt

from crfkit.data import InputError
from crfkit.features.dataset import Annotation, Int32s
from crfkit.features.wording import shown
from crfkit.structures import Evidence

_SHOWN = 40  # labels named in a message at most
_DEEPEST = 8  # tuples inside tuples that are saved


class Labels:
    """L distinct labels; the id of a label is its place in `classes`."""

    def __init__(self, classes: Iterable[Hashable]) -> None:
        self.classes: tuple[Hashable, ...] = tuple(classes)
        self._ids = {label: i for i, label in enumerate(self.classes)}
        if len(self._ids) != len(self.classes):
            raise InputError("the labels are not distinct")
        self._array = np.empty(len(self.classes), dtype=object)  # [L]
        for i, label in enumerate(self.classes):
            self._array[i] = label

    @classmethod
    def seen_in(cls, y: Iterable[Any]) -> Labels:
        """The labels of an annotation, sorted where they can be, otherwise in the order of their first occurrence."""
        sequences = [_sequence(n, labels) for n, labels in enumerate(listed(y))]
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
                for label in _alternatives(n, i, entry)
            )
        if not seen:
            raise InputError("y names no label at any site: there is nothing to learn from")
        try:
            return cls(sorted(seen))
        except TypeError:
            return cls(seen)

    def __len__(self) -> int:
        return len(self.classes)

    def encode(self, y: Iterable[Any], lengths: npt.ArrayLike) -> Annotation:
        """The annotation of sequences of `lengths` [N] sites as ids; a label that is not in `classes` is refused."""
        sequences = listed(y)
        _check_lengths(sequences, np.asarray(lengths))
        try:
            ids = np.fromiter(map(self._ids.__getitem__, chain.from_iterable(sequences)), np.int32)
        except (KeyError, TypeError):  # something that is not one known label
            return self._encode_sites(sequences)
        return Annotation(ids)

    def _encode_sites(self, sequences: Sequence[Sequence[Any]]) -> Annotation:
        """The general form of `encode`, site by site."""
        ids: list[int] = []
        sets: list[list[int] | None] = []
        for n, labels in enumerate(sequences):
            for i, entry in enumerate(labels):
                found = [self.id_of(n, i, label) for label in _alternatives(n, i, entry)]
                ids.append(found[0] if len(found) == 1 else -1)
                sets.append(found if len(found) > 1 else None)
        some_sets = any(found is not None for found in sets)
        return Annotation(np.array(ids, dtype=np.int32), Evidence.from_sets(sets) if some_sets else None)

    def id_of(self, n: int, i: int, label: Hashable) -> int:
        """The id of a label, met at site i of sequence n; one that is not known is refused."""
        found = self._ids.get(label)
        if found is None:
            known = ", ".join(map(str, self.classes[:_SHOWN])) + ", …" * (len(self) > _SHOWN)
            raise InputError(f"sequence {n}, site {i}: unknown label {label!r}; the labels are {known}")
        return found

    def unknown_in(self, y: Iterable[Any]) -> Iterator[tuple[int, int, Any]]:
        """Sequence, site and entry wherever no label that an entry names is known; None names none and is passed over."""
        for n, labels in enumerate(listed(y)):
            for i, entry in enumerate(_sequence(n, labels)):
                named = list(_alternatives(n, i, entry))
                if named and not any(label in self._ids for label in named):
                    yield n, i, entry

    def decode(self, ids: Int32s) -> list[Hashable]:
        """The labels with these ids."""
        labels: list[Hashable] = self._array[ids].tolist()
        return labels

    def to_json(self) -> list[Any]:
        """The labels as JSON values, a tuple as a list; InputError where a label cannot be saved."""
        return [_to_json(label) for label in self.classes]

    @classmethod
    def from_json(cls, values: object) -> Labels:
        """The inverse of `to_json`."""
        if not isinstance(values, list):
            raise InputError(f"the labels are {shown(values)}, expected a list")
        return cls(_from_json(value) for value in values)


def listed(y: Iterable[Any]) -> Sequence[Any]:
    """Annotations as a list, read once."""
    if isinstance(y, list | tuple):
        return y
    if isinstance(y, str | bytes | Mapping | AbstractSet) or not isinstance(y, Iterable):
        raise InputError(f"y is {shown(y)}, expected a list with a list of labels for each sequence")
    return list(y)


def _check_lengths(sequences: Sequence[Any], lengths: npt.NDArray[Any]) -> None:
    if len(sequences) != len(lengths):
        raise InputError(f"X has {len(lengths)} sequences but y has {len(sequences)}")
    for n, (labels, length) in enumerate(zip(sequences, lengths.tolist(), strict=True)):
        if len(_sequence(n, labels)) != length:
            raise InputError(f"sequence {n}: {length} sites but {len(labels)} labels")


def _sequence(n: int, labels: Any) -> Sequence[Any]:
    """The labels of one sequence, if they can be that."""
    unordered = isinstance(labels, str | bytes | Mapping | AbstractSet)
    if unordered or not isinstance(labels, Sized) or not isinstance(labels, Iterable):
        raise InputError(f"y of sequence {n} is {shown(labels)}, expected a list of labels")
    return labels  # type: ignore[return-value]


def _alternatives(n: int, i: int, entry: Any) -> Iterator[Hashable]:
    """The labels that an entry of y names: one, several for a set, none for None."""
    if entry is None:
        return
    if not isinstance(entry, set | frozenset):
        yield _checked(n, i, entry)
        return
    if not entry:
        raise InputError(
            f"sequence {n}, site {i}: the set of labels is empty; expected None where nothing is known"
        )
    for label in entry:
        if label is None:
            raise InputError(f"sequence {n}, site {i}: None in a set of labels")
        yield _checked(n, i, label)


def _checked(n: int, i: int, label: Any) -> Hashable:
    """A label that can be found again; NumPy's scalars become Python's."""
    if isinstance(label, np.generic):
        label = label.item()
    try:
        hash(label)
    except TypeError:
        raise InputError(
            f"sequence {n}, site {i}: the label {shown(label)} is not hashable; "
            "expected a string, a number, a tuple, a set of labels or None"
        ) from None
    if label != label:
        raise InputError(f"sequence {n}, site {i}: the label is not a number (NaN)")
    return label  # type: ignore[no-any-return]


def _to_json(label: Hashable, depth: int = 0) -> Any:
    if isinstance(label, str):
        try:
            label.encode()
        except UnicodeEncodeError as error:
            piece = label[error.start : error.end]
            raise InputError(
                f"the label {shown(label)} cannot be saved; {piece!r} is no character of a file"
            ) from None
        return label
    if isinstance(label, int) or (isinstance(label, float) and np.isfinite(label)):
        return label
    if isinstance(label, tuple) and depth < _DEEPEST:
        return [_to_json(part, depth + 1) for part in label]
    raise InputError(
        f"the label {shown(label)} cannot be saved; expected a string, a number or a tuple of these"
    )


def _from_json(value: object, depth: int = 0) -> Hashable:
    if isinstance(value, str | int | float):
        return value
    if isinstance(value, list) and depth < _DEEPEST:
        return tuple(_from_json(part, depth + 1) for part in value)
    raise InputError(f"{shown(value)} is not a label; expected a string, a number or a list of these")
