"""A data set as flat arrays: what the core reads.

Shapes: N sequences, T positions in all sequences together, K columns of a dense block.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from crfkit.arrays import Float64s, Int32s, Int64s, offsets
from crfkit.structures import AllowedLabels


class FeatureList(NamedTuple):
    """The features seen at each position: position i has `ids[position_ptr[i]:position_ptr[i + 1]]`."""

    position_ptr: Int64s  # [T + 1]
    ids: Int32s  # [nnz]
    values: Float64s | None  # [nnz], or None when every value is 1

    def between(self, begin: int, end: int) -> "FeatureList":
        """The features of the positions `begin`, …, `end` − 1 alone; nothing but the pointers is copied."""
        ptr = self.position_ptr[begin : end + 1]
        first, last = int(ptr[0]), int(ptr[-1])
        return FeatureList(
            ptr - first, self.ids[first:last], None if self.values is None else self.values[first:last]
        )


@dataclass(frozen=True)
class Dataset:
    """N encoded input sequences; the positions of sequence n are `sequence_ptr[n]:sequence_ptr[n + 1]`."""

    sequence_ptr: Int64s  # [N + 1]
    states: FeatureList  # features on labels
    arcs: FeatureList | None = None  # features on the transition into a position; none at the first one
    dense: Mapping[str, Float64s] = field(default_factory=dict)  # block name → [T, K]
    allowed: AllowedLabels | None = None  # the labels that each position may have; None: all
    inputs: Sequence[Any] | None = None  # [N] the inputs themselves, for feature functions

    @property
    def n_sequences(self) -> int:
        """N."""
        return len(self.sequence_ptr) - 1

    @property
    def n_positions(self) -> int:
        """T, over all sequences."""
        return int(self.sequence_ptr[-1])

    def between(self, first: int, last: int) -> Self:
        """The sequences `first`, …, `last` − 1 alone, as views."""
        ptr = self.sequence_ptr[first : last + 1]
        begin, end = int(ptr[0]), int(ptr[-1])
        return replace(
            self,
            sequence_ptr=ptr - begin,
            states=self.states.between(begin, end),
            arcs=None if self.arcs is None else self.arcs.between(begin, end),
            dense={name: block[begin:end] for name, block in self.dense.items()},
            allowed=None if self.allowed is None else self.allowed.between(begin, end),
            inputs=None if self.inputs is None else self.inputs[first:last],
        )


class Annotation(NamedTuple):
    """What is known of the right labels, position by position."""

    labels: Int32s  # [T] the label id, −1 where not exactly one label is known
    sets: AllowedLabels | None = None  # where labels is −1: those that are possible (empty or None: all)

    @property
    def set_arrays(self) -> tuple[Int64s | None, Int32s | None]:
        """The sets as the core takes them: where those of each position begin, [T + 1], and their labels."""
        return (None, None) if self.sets is None else (self.sets.position_ptr, self.sets.labels)

    def between(self, begin: int, end: int) -> "Annotation":
        """That of the positions `begin`, …, `end` − 1 alone."""
        return Annotation(
            self.labels[begin:end], None if self.sets is None else self.sets.between(begin, end)
        )

    @classmethod
    def join(cls, parts: "Sequence[Annotation]") -> "Annotation":
        """Those of several data sets, one after the other."""
        labels = np.concatenate([part.labels for part in parts])
        if all(part.sets is None for part in parts):
            return cls(labels)
        sizes = [
            np.zeros(len(part.labels), np.int64) if part.sets is None else np.diff(part.sets.position_ptr)
            for part in parts
        ]
        members = [part.sets.labels for part in parts if part.sets is not None]
        return cls(labels, AllowedLabels(offsets(np.concatenate(sizes)), np.concatenate(members)))


def sequence_weights(given: npt.ArrayLike | None, n: int) -> Float64s:
    """The weight of each of n sequences, [n]; 1 where none are given."""
    return np.ones(n) if given is None else np.ascontiguousarray(given, dtype=np.float64)
