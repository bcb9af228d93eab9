"""Every question on a whole data set, at the weights of a trained model of any structure, on several threads."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np

from crfkit import _core
from crfkit.arrays import Bools, Float64s, Int32s, Int64s
from crfkit.errors import ArgumentError
from crfkit.structures import ChainScores, Span, SpanLabels

Answers = TypeVar("Answers", Int32s, Float64s)


class LabelContext(NamedTuple):
    """Where log Z(b) comes from, the sum over the label sequences that have label b at a position.

    log Z(b) = own + before + after + left + right, up to a number that is the same for all labels of the position. See
    core/paths/label_context.hpp.
    """

    log_probability: float  # of the label; −inf: it is impossible, and all else means nothing
    own: float  # E[score of the position itself]
    before: float  # E[score of the arcs into the position]
    after: float  # E[score of the arcs to the next position]
    left: float  # what the positions before add
    right: float  # what the positions behind add
    label_before: int  # the likeliest label of the position before, −1: there is none
    label_after: int


class WindowContexts(NamedTuple):
    """Where log Z of each of E events comes from, which differ by the labels that K positions in a row may have.

    Where an event has no label sequence, log Z is −inf and all else 0.
    """

    log_partitions: Float64s  # [E]
    beginnings: Float64s  # [E, K] log F, of the sum over all beginnings up to each position
    own: Float64s  # [E, K] E[score of each position]
    arcs: Float64s  # [E, K + 1] E[score of the arcs into each position, and out of the last]
    marginals: Float64s  # [E, K, L]


class Sets(Protocol):
    """Allowed labels per position, as lists that can be cut (`crfkit.structures.AllowedLabels`)."""

    @property
    def position_ptr(self) -> Int64s:
        """[T + 1]."""

    @property
    def labels(self) -> Int32s:
        """[nnz]."""

    def between(self, begin: int, end: int) -> Sets:
        """Those of the positions `begin`, …, `end` − 1."""


class LatticeSlice(Protocol):
    """Some sequences as lattices, with the features that are active on their parts (`crfkit.features.Slice`)."""

    @property
    def lattices(self) -> _core.Lattices:
        """Nodes and arcs."""

    @property
    def active(self) -> list[_core.ActiveFeatures]:
        """Features of each node and of each arc."""


class Potentials(Protocol):
    """The weights of a trained model, which give the parts of a data set their scores."""

    def score(self, data: Any, n_threads: int) -> Iterable[_core.ScoredSequences]:
        """The sequences with their scores, in one or more parts."""


class ChainPotentials:
    """A chain whose data sets are designs (`FeatureMap.design`).

    With `local`, it is normalised at each position: a maximum entropy Markov model (McCallum et al. 2000).
    """

    def __init__(self, layout: _core.Layout, weights: Float64s, *, local: bool = False) -> None:
        self._core = _core.ChainPotentials(layout, _finite(weights), local)

    def score(self, data: _core.Design, n_threads: int) -> Iterable[_core.ScoredSequences]:
        """The sequences with their scores."""
        return (self._core.score(data, n_threads),)

    def scores(self, data: _core.Design, n: int) -> ChainScores:
        """The scores of the parts of sequence n, whatever its allowed labels are; start and end are in the emissions.

        ValueError where labels have facets.
        """
        return ChainScores(*self._core.scores(data, n))

    def tag_chunk(self, layout: _core.Layout, *arguments: Any) -> tuple[bytes, int] | None:
        """A chunk of a column file with its best labels, as `_core.tag_chunk` gives it."""
        return _core.tag_chunk(self._core, layout, *arguments)


class Trellises(Protocol):
    """Trellises, and the feature functions beside their patterns, if there are any (`crfkit.features.PatternDesign`)."""

    @property
    def trellises(self) -> _core.Trellises:
        """All label sequences of each sequence."""

    @property
    def functions(self) -> _core.FunctionSlices | None:
        """In place of features."""


class PatternPotentials:
    """A chain with patterns, whose weights are the last `n_patterns`; data sets are trellises (`PatternMap.design`)."""

    def __init__(self, layout: _core.Layout, weights: Float64s, n_patterns: int) -> None:
        self._core = _core.PatternPotentials(layout, _finite(weights), len(weights) - n_patterns)

    def score(self, data: Trellises, n_threads: int) -> Iterable[_core.ScoredSequences]:
        """The sequences with their scores."""
        return (self._core.score(data.trellises, data.functions),)


class GraphData(Protocol):
    """A data set whose sequences are graphs: `data` of a `GraphMap`, `SegmentMap` or `LatticeMap` of `crfkit.features`."""

    def score(self, w: Float64s, n_threads: int) -> _core.ScoredSequences:
        """The sequences at weights [D]."""


class GraphPotentials:
    """Weights [D] of a structure whose data sets are graphs."""

    def __init__(self, weights: Float64s) -> None:
        self._weights = np.array(_finite(weights))

    def score(self, data: GraphData, n_threads: int) -> Iterable[_core.ScoredSequences]:
        """The sequences with their scores."""
        return (data.score(self._weights, n_threads),)


class LatticeSlices(Protocol):
    """A data set, slice after slice (`crfkit.features.FunctionData`)."""

    def slices(self) -> Iterator[LatticeSlice]:
        """One pass over the data."""


class FunctionPotentials:
    """Weights [D] of feature functions, whose data sets come as slices of lattices."""

    def __init__(self, weights: Float64s) -> None:
        self._weights = np.array(_finite(weights))

    def score(self, data: LatticeSlices, n_threads: int) -> Iterable[_core.ScoredSequences]:
        """The sequences with their scores, slice by slice."""
        return (part.lattices.score(part.active, self._weights) for part in data.slices())


def _finite(weights: Float64s) -> Float64s:
    if not np.isfinite(weights).all():
        raise ArgumentError("a weight of the model is NaN or infinite, expected finite numbers")
    return np.ascontiguousarray(weights, dtype=np.float64)


class Answerer:
    """The potentials of a trained model, and every question on data sets for them."""

    def __init__(self, potentials: Potentials) -> None:
        self.potentials = potentials

    def decode(self, data: Any, n_threads: int = 1) -> Int32s:
        """The label sequence with the highest score of every sequence (Viterbi), [T] over all sequences."""
        return _join([part.decode(n_threads) for part in self._parts(data, n_threads)], np.zeros(0, np.int32))

    def marginals(self, data: Any, n_threads: int = 1) -> Float64s:
        """P(y_t = b), [T, L] over all sequences."""
        return _join([part.marginals(n_threads) for part in self._parts(data, n_threads)], np.zeros((0, 0)))

    def log_partitions(
        self, data: Any, labels: Int32s | None = None, sets: Sets | None = None, n_threads: int = 1
    ) -> Float64s:
        """log Z of every sequence, [N]; with labels (−1: unknown) and sets, over the label sequences they allow.

        log p(labels) of a sequence is the second less the first.
        """
        found, begin = [], 0
        for part in self._parts(data, n_threads):
            end = begin + part.n_positions
            some = None if sets is None else sets.between(begin, end)
            ptr, listed = (None, None) if some is None else (some.position_ptr, some.labels)
            given = None if labels is None else labels[begin:end]
            found.append(part.log_partitions(given, ptr, listed, n_threads))
            begin = end
        return _join(found, np.zeros(0))

    def k_best(self, data: Any, k: int, n_threads: int = 1) -> list[list[tuple[float, Int32s]]]:
        """The k best (score, labels) of every sequence, best first."""
        return [best for part in self._parts(data, n_threads) for best in part.k_best(k, n_threads)]

    def sample(self, data: Any, n: int, uniforms: Float64s, n_threads: int = 1) -> Int32s:
        """n samples of every sequence from n · T uniform numbers: [n, length] for one sequence after the other."""
        found, begin = [], 0
        for part in self._parts(data, n_threads):
            end = begin + n * part.n_positions
            found.append(part.sample(n, uniforms[begin:end], n_threads))
            begin = end
        return _join(found, np.zeros(0, np.int32))

    def spans(self, data: Any, labels: SpanLabels, threshold: float, n_threads: int = 1) -> list[list[Span]]:
        """The spans of every sequence with a probability of at least `threshold` > 0, sorted."""
        core = span_labels(labels)
        return [
            spans
            for part in self._parts(data, n_threads)
            for spans in _span_lists(labels, *part.spans(core, threshold, n_threads))
        ]

    def decoded_spans(self, data: Any, labels: SpanLabels, n_threads: int = 1) -> list[list[Span]]:
        """The spans of the label sequence with the highest score of every sequence (Viterbi)."""
        core = span_labels(labels)
        return [
            spans
            for part in self._parts(data, n_threads)
            for spans in _span_lists(labels, *part.decoded_spans(core, n_threads))
        ]

    def explain(
        self, data: Any, n: int, i: int, label: int = -1, against: int = -1
    ) -> tuple[int, int, LabelContext, LabelContext]:
        """Two labels of position i of sequence n, and where their log-odds come from.

        −1: the likeliest label, and the likeliest other one.
        """
        part, n = self._part_of(data, n)
        label, against, *contexts = part.explain(n, i, label, against)
        first, second = map(LabelContext._make, contexts)
        return label, against, first, second

    def explain_arcs(self, data: Any, n: int, arc: int, against: int) -> tuple[LabelContext, LabelContext]:
        """The same for two arcs of word lattice n to be on its path."""
        part, n = self._part_of(data, n)
        first, second = map(LabelContext._make, part.explain_arcs(n, arc, against))
        return first, second

    def explain_windows(self, data: Any, n: int, first: int, allowed: Bools) -> WindowContexts:
        """The same of K positions of sequence n from `first` on, for E events: which labels are allowed there, [E, K, L]."""
        part, n = self._part_of(data, n)
        masks = np.ascontiguousarray(allowed, dtype=np.uint8)
        return WindowContexts(*part.explain_windows(n, first, masks.shape[1], masks.ravel()))

    def _part_of(self, data: Any, n: int) -> tuple[_core.ScoredSequences, int]:
        """The part that has sequence n, and its number there."""
        for part in self._parts(data, 1):
            if n < part.n_sequences:
                return part, n
            n -= part.n_sequences
        raise ArgumentError("there is no such sequence")

    def n_spans(self, data: Any, labels: SpanLabels, n_threads: int = 1) -> Float64s:
        """The expected number of spans of every sequence, [N]."""
        core = span_labels(labels)
        return _join([part.n_spans(core, n_threads) for part in self._parts(data, n_threads)], np.zeros(0))

    def _parts(self, data: Any, n_threads: int) -> Iterable[_core.ScoredSequences]:
        return self.potentials.score(data, n_threads)


def span_labels(labels: SpanLabels) -> _core.SpanLabels:
    """The same labels for the core."""
    return _core.SpanLabels(labels.type_of, labels.goes_on.astype(np.uint8), labels.follows.astype(np.uint8))


def _span_lists(
    labels: SpanLabels, ptr: Int64s, starts: Int64s, ends: Int64s, types: Int32s, probabilities: Float64s
) -> list[list[Span]]:
    """The spans of each sequence, from those of all sequences in arrays."""
    names = [labels.types[kind] for kind in types.tolist()]
    numbers = zip(starts.tolist(), ends.tolist(), names, probabilities.tolist(), strict=True)
    spans = list(map(Span._make, numbers))
    return [spans[begin:end] for begin, end in pairwise(ptr.tolist())]


def _join(parts: list[Answers], nothing: Answers) -> Answers:
    """The answers of all parts in one array, without a copy where there is one part only."""
    if len(parts) == 1:
        return parts[0]
    return np.concatenate(parts) if parts else nothing
