"""A data set as flat arrays: what the core reads.

Shapes: N sequences, T positions in all sequences together, K columns of a dense block.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from crfkit.arrays import Float64s, Int32s, Int64s
from crfkit.structures import AllowedLabels


class FeatureList(NamedTuple):
    """The features seen at each position: position i has `ids[position_ptr[i]:position_ptr[i + 1]]`."""

    position_ptr: Int64s  # [T + 1]
    ids: Int32s  # [nnz]
    values: Float64s | None  # [nnz], or None when every value is 1


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


class Annotation(NamedTuple):
    """What is known of the right labels, position by position."""

    labels: Int32s  # [T] the label id, −1 where not exactly one label is known
    sets: AllowedLabels | None = None  # where labels is −1: those that are possible (empty or None: all)

    @property
    def set_arrays(self) -> tuple[Int64s | None, Int32s | None]:
        """The sets as the core takes them: where those of each position begin, [T + 1], and their labels."""
        return (None, None) if self.sets is None else (self.sets.position_ptr, self.sets.labels)


def sequence_weights(given: npt.ArrayLike | None, n: int) -> Float64s:
    """The weight of each of n sequences, [n]; 1 where none are given."""
    return np.ones(n) if given is None else np.ascontiguousarray(given, dtype=np.float64)
