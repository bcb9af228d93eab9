"""Sums over the label sequences of many chains at once, and their best labels, on several threads."""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from crfkit import _core
from crfkit.arrays import Float64s, Int64s
from crfkit.errors import ShapeError
from crfkit.inference.answerer import span_labels
from crfkit.structures import SpanLabels

Floats = npt.NDArray[Any]  # of float32 or of float64


class BatchExpectations(NamedTuple):
    """log Z [N], P(y_t) [N, T, L], and Σ_t P(y_{t−1}, y_t) in the shape of the arcs, added up where chains share them."""

    log_partition: Float64s
    states: Floats
    arcs: Floats


class ChainBatch:
    """Chains with scores in arrays of one precision, float32 or float64, in which the sums are made.

    `states` [N, T, L]; `arcs` [L, L] or [N, L, L]; `start` and `end` [L]; `lengths` [N] (None: all T). −inf forbids a label
    or an arc. The answers do not depend on `n_threads`. Scores are copied unless `copy` is False: then they must not
    change while the batch is used.

    >>> chains = ChainBatch(np.zeros((2, 3, 2)), np.zeros((2, 2)), lengths=np.array([3, 1]))
    >>> np.exp(chains.log_partition()).round(6)
    array([8., 2.])
    """

    def __init__(
        self,
        states: Floats,
        arcs: Floats,
        start: Floats | None = None,
        end: Floats | None = None,
        *,
        lengths: Int64s | None = None,
        n_threads: int = 1,
        copy: bool = True,
    ) -> None:
        if states.dtype not in (np.float32, np.float64) or states.ndim != 3 or states.shape[2] == 0:
            raise ShapeError(
                f"ChainBatch: states are {states.dtype} with shape {list(states.shape)}, expected float32 or float64 "
                "[N, T, L]."
            )
        n_chains, n_positions, n_labels = states.shape
        if arcs.shape not in ((n_labels, n_labels), (n_chains, n_labels, n_labels)):
            raise ShapeError(f"ChainBatch: arcs have shape {list(arcs.shape)}, expected [L, L] or [N, L, L].")
        if lengths is None:
            lengths = np.full(n_chains, n_positions)
        if lengths.shape != (n_chains,) or (
            len(lengths) and not 0 <= lengths.min() <= lengths.max() <= n_positions
        ):
            raise ShapeError(f"ChainBatch: expected {n_chains} lengths from 0 to {n_positions}.")
        kept = np.array if copy else np.asarray
        first, last = (None if end is None else kept(end, states.dtype, order="C") for end in (start, end))
        self._arcs_shape, self._n_threads = arcs.shape, n_threads
        self._scores = (
            kept(states, states.dtype, order="C"),
            kept(arcs, states.dtype, order="C"),
            first,
            last,
        )
        self._lengths = np.array(lengths, dtype=np.int64)

    def log_partition(self) -> Float64s:
        """log Z [N]; −inf where no label sequence is possible, 0 for an empty chain."""
        return _core.chain_batch_expectations(*self._scores, self._lengths, None, False, self._n_threads)[0]

    def expectations(self, weights: Floats | None = None) -> BatchExpectations:
        """log Z and the marginals; those of arcs are weighted by `weights` [N] (None: 1)."""
        if weights is not None:
            weights = np.ascontiguousarray(weights, dtype=self._scores[0].dtype)
        found = _core.chain_batch_expectations(*self._scores, self._lengths, weights, True, self._n_threads)
        return BatchExpectations(found[0], found[1], found[2].reshape(self._arcs_shape))

    def decode(self) -> Int64s:
        """The labels of the best label sequence [N, T]; −1 beyond the end, and where nothing is possible."""
        return _core.chain_batch_best(*self._scores, self._lengths, self._n_threads)

    def spans(self, labels: SpanLabels, threshold: float) -> tuple[Int64s, Int64s, Int64s, Int64s, Float64s]:
        """All spans of probability `threshold` > 0 or more: chains, starts, ends and types, in order; probabilities [n]."""
        ptr, starts, ends, types, probabilities = _core.chain_batch_spans(
            *self._in_double, span_labels(labels), threshold, self._n_threads
        )
        rows = np.repeat(np.arange(len(ptr) - 1), np.diff(ptr))
        return rows, starts, ends, types.astype(np.int64), probabilities

    def span_probabilities(
        self, labels: SpanLabels, rows: Int64s, starts: Int64s, ends: Int64s, types: Int64s
    ) -> Float64s:
        """The probabilities [n] of spans of the chains `rows`; each must lie within its chain."""
        return _core.chain_batch_span_probabilities(
            *self._in_double, span_labels(labels), rows, starts, ends, types, self._n_threads
        )

    def n_spans(self, labels: SpanLabels) -> Float64s:
        """The expected number of spans of each chain, [N]."""
        return _core.chain_batch_n_spans(*self._in_double, span_labels(labels), self._n_threads)

    @property
    def _in_double(self) -> tuple[Any, Any, Any, Any, Int64s]:
        """The scores in float64, in which probabilities of spans are computed, and the lengths."""
        states, arcs, start, end = (
            None if part is None else np.asarray(part, np.float64) for part in self._scores
        )
        return states, arcs, start, end, self._lengths
