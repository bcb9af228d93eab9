"""Sums over the segmentations of many semi-Markov chains at once, and the best ones, on several threads."""

from typing import Any, NamedTuple

import numpy as np

from crfkit import _core
from crfkit.arrays import Bools, Float64s, Int64s


class SegmentExpectations(NamedTuple):
    """log Z [N] and the probabilities of all parts of N sequences, or their expected numbers.

    Sequences for which scaled sums in exp space may not be exact, or which have no segmentation, are left out: log Z is
    not known, and the rest is 0.
    """

    log_partition: Float64s
    left_out: Bools  # [N]
    emissions: Float64s  # [N, T, L] a segment with this label covers the position
    durations: Float64s  # [N, K, L]
    transitions: Float64s  # [N, L, L]
    start: Float64s  # [N, L]
    end: Float64s  # [N, L]
    first: Float64s  # [N, T, L] a segment begins here; empty where first positions have no scores
    last: Float64s  # likewise, of ends
    segments: Float64s  # [N, T, K, L], likewise


class SegmentBatch:
    """Semi-Markov chains with scores in arrays of float64, which must not change while the batch is used.

    `emissions` [N, T, L], `durations` [K, L] for the lengths 1 … K, `transitions` [L, L] or [N, L, L], `start` and `end`
    [L], `first` and `last` [N, T, L], `segments` [N, T, K, L] by begin and length; `lengths` [N] of the sequences (None: all
    T). −inf forbids. The answers do not depend on `n_threads`.

    >>> chains = SegmentBatch(np.zeros((1, 3, 1)), np.zeros((2, 1)), np.zeros((1, 1)))  # 1 + 1 + 1, 1 + 2, 2 + 1
    >>> np.exp(chains.expectations().log_partition).round(6)
    array([3.])
    """

    def __init__(
        self,
        emissions: Float64s,
        durations: Float64s,
        transitions: Float64s,
        start: Float64s | None = None,
        end: Float64s | None = None,
        first: Float64s | None = None,
        last: Float64s | None = None,
        segments: Float64s | None = None,
        *,
        lengths: Int64s | None = None,
        n_threads: int = 1,
    ) -> None:
        scores = (emissions, durations, transitions, start, end, first, last, segments)
        N, T = emissions.shape[:2]
        sizes = np.full(N, T) if lengths is None else np.ascontiguousarray(lengths, np.int64)
        rows = (None if part is None else np.ascontiguousarray(part, np.float64) for part in scores)
        self._given: Any = (*rows, sizes, n_threads)  # the arguments of the core

    def expectations(self) -> SegmentExpectations:
        """log Z and the probabilities of all parts by forward–backward: T · (K · L + L²) operations for a sequence."""
        log_z, left_out, *parts = _core.segment_batch_expectations(*self._given)
        return SegmentExpectations(log_z, left_out.astype(bool), *parts)

    def decode(self) -> Int64s:
        """The best segmentations as tags [N, T] (Viterbi): the label c where a segment begins, c + L at its other positions.

        −1 beyond the end, and where no segmentation is possible.
        """
        return _core.segment_batch_best(*self._given)
