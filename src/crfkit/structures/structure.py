"""The interface of structures, and the allowed labels of an output.

A structure is a specification of the outputs that exist. `bind` fixes what depends on the training set, once. It does not
look at weights or scores.

Letters: T positions, L labels, nnz entries of a list of lists.
"""

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol, Self, TypeVar

import numpy as np
import numpy.typing as npt

from crfkit.arrays import Bools, Int32s, Int64s, offsets
from crfkit.errors import ArgumentError, LabelError, ShapeError

Kind = TypeVar("Kind", np.int32, np.int64)


class Structure(Protocol):
    """A specification of the outputs that exist."""

    def bind(self, labels: Sequence[Hashable], outputs: "Iterable[npt.ArrayLike | AllowedLabels]") -> Self:
        """The structure with everything fixed that training decides.

        `labels` are the L labels in the order of their ids; `outputs` the training outputs, one per sequence: label
        ids, −1 where unknown, or the labels that are possible at each position.
        """


@dataclass(frozen=True, eq=False)
class AllowedLabels:
    """The labels allowed at each position: position i allows `labels[position_ptr[i]:position_ptr[i + 1]]`, ascending.

    A position with an empty list is not restricted, so a position without any possible label cannot be represented:
    the constructors below raise an error for it.
    """

    position_ptr: Int64s  # [T + 1]
    labels: Int32s  # [nnz]

    def __post_init__(self) -> None:
        """Raise an error for anything but ascending lists of labels."""
        position_ptr = _integers("position_ptr", self.position_ptr, np.int64)
        labels = _integers("labels", self.labels, np.int32)
        if (
            len(position_ptr) == 0
            or position_ptr[0] != 0
            or position_ptr[-1] != len(labels)
            or np.any(np.diff(position_ptr) < 0)
        ):
            raise ArgumentError(
                f"AllowedLabels.position_ptr must rise from 0 to the number of labels listed, which is {len(labels)}."
            )
        if len(labels) and labels.min() < 0:
            raise LabelError(f"AllowedLabels.labels holds {labels.min()}, expected label ids from 0 on.")
        rises = np.diff(labels) > 0  # [nnz − 1]
        borders = position_ptr[(position_ptr > 0) & (position_ptr < len(labels))]
        rises[borders - 1] = True  # no order across positions
        if not np.all(rises):
            raise ArgumentError("AllowedLabels.labels must be ascending and distinct within each position.")
        object.__setattr__(self, "position_ptr", position_ptr)
        object.__setattr__(self, "labels", labels)

    @classmethod
    def from_mask(cls, mask: npt.ArrayLike) -> "AllowedLabels":
        """AllowedLabels from a bool array [T, L] that is True where a label is allowed."""
        allowed = np.asarray(mask)
        if allowed.dtype != np.bool_ or allowed.ndim != 2:
            raise ShapeError(
                f"AllowedLabels mask: expected bools [T, L], got {allowed.dtype} with shape {list(allowed.shape)}."
            )
        counts = allowed.sum(axis=1)  # [T]
        nothing = np.flatnonzero(counts == 0)
        if len(nothing):
            raise ArgumentError(
                f"AllowedLabels mask: position {nothing[0]} allows no label, expected at least one."
            )
        open_positions = counts == allowed.shape[1]  # all labels allowed: same as an empty list
        restricted = allowed & ~open_positions[:, None]
        labels = np.nonzero(restricted)[1].astype(np.int32)
        return cls(offsets(np.where(open_positions, 0, counts)), labels)

    @classmethod
    def from_sets(cls, sets: Iterable[Iterable[int] | None]) -> "AllowedLabels":
        """AllowedLabels from one set of label ids per position; None where nothing is known."""
        lists = []
        for position, allowed in enumerate(sets):
            ids = [] if allowed is None else sorted(set(allowed))
            if allowed is not None and not ids:
                raise ArgumentError(
                    f"AllowedLabels sets: position {position} allows no label, expected at least one (or None)."
                )
            lists.append(ids)
        counts = np.array([len(ids) for ids in lists], dtype=np.int64)
        return cls(offsets(counts), np.array([label for ids in lists for label in ids]))

    @classmethod
    def from_labels(cls, labels: npt.ArrayLike) -> "AllowedLabels":
        """AllowedLabels from one label id per position; −1 where nothing is known."""
        ids = _integers("labels", labels, np.int32)
        if len(ids) and ids.min() < -1:
            raise LabelError(
                f"AllowedLabels labels: got {ids.min()}, expected label ids from 0 on, or −1 for unknown."
            )
        known = ids >= 0
        return cls(offsets(known.astype(np.int64)), ids[known])

    @property
    def n_positions(self) -> int:
        """T."""
        return len(self.position_ptr) - 1

    @property
    def key(self) -> Hashable:
        """Equal keys mean the same lists."""
        return (self.position_ptr.tobytes(), self.labels.tobytes())

    def between(self, begin: int, end: int) -> "AllowedLabels":
        """The allowed labels of the positions `begin`, …, `end` − 1 alone."""
        ptr = self.position_ptr[begin : end + 1]
        return AllowedLabels(ptr - ptr[0], self.labels[ptr[0] : ptr[-1]])

    def mask(self, n_labels: int) -> Bools:
        """The same as a bool array [T, L]."""
        if len(self.labels) and self.labels.max() >= n_labels:
            raise LabelError(
                f"AllowedLabels allows label {self.labels.max()}, expected ids below L = {n_labels}."
            )
        counts = np.diff(self.position_ptr)  # [T]
        allowed = np.repeat((counts == 0)[:, None], n_labels, axis=1)
        allowed[np.repeat(np.arange(self.n_positions), counts), self.labels] = True
        return allowed


def _integers(name: str, values: npt.ArrayLike, kind: type[Kind]) -> npt.NDArray[Kind]:
    """`values` as a read-only array [·] of this integer type; raises an error for anything but integers."""
    array = np.asarray(values)
    if array.ndim != 1 or (array.dtype.kind not in "iu" and array.size):
        raise ShapeError(
            f"AllowedLabels.{name}: expected a list of integers, got {array.dtype} with shape {list(array.shape)}."
        )
    if array.size and not np.iinfo(kind).min <= array.min() <= array.max() <= np.iinfo(kind).max:
        raise ArgumentError(
            f"AllowedLabels.{name} holds {array.max()}, expected numbers that fit {kind.__name__}."
        )
    copy = np.array(array, dtype=kind)  # what was checked stays as it is
    copy.flags.writeable = False
    return copy
