"""The questions on a whole data set, at the weights of a trained model, on several threads."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from crfkit import _core
from crfkit.structures import ChainScores

Float64s = npt.NDArray[np.float64]
Int32s = npt.NDArray[np.int32]
Int64s = npt.NDArray[np.int64]


class Sets(Protocol):
    """Allowed labels per position, as lists (`crfkit.structures.AllowedLabels`)."""

    @property
    def position_ptr(self) -> Int64s:
        """[T + 1]."""
        ...

    @property
    def labels(self) -> Int32s:
        """[nnz]."""
        ...


class BetweenSets(Sets, Protocol):
    """Allowed labels that can be cut."""

    def between(self, begin: int, end: int) -> Sets:
        """Those of the positions `begin`, …, `end` − 1."""
        ...


class LatticeSlice(Protocol):
    """Some sequences as lattices, with what fires on their parts (`crfkit.features.Slice`)."""

    @property
    def lattices(self) -> _core.Lattices:
        """Nodes and arcs."""
        ...

    @property
    def active(self) -> list[_core.ActiveFeatures]:
        """Features of each node and of each arc."""
        ...


class LatticeSlices(Protocol):
    """A data set, slice after slice (`crfkit.features.FunctionData`)."""

    def slices(self) -> Iterator[LatticeSlice]:
        """One pass over the data."""
        ...


Compiled = Any  # a data set for the native core: _core.Design, or _core.Trellises for a chain with patterns


class Tagger:
    """A layout of weights and their values, ready to answer. Designs come from `FeatureMap.design`."""

    def __init__(self, layout: _core.Layout, weights: Float64s) -> None:
        if not np.isfinite(weights).all():
            raise ValueError("Tagger: a weight is NaN or infinite, expected finite numbers.")
        w = np.ascontiguousarray(weights, dtype=np.float64)
        self._core: _core.Tagger | _core.PatternTagger = _core.Tagger(layout, w)

    def best(self, design: Compiled, n_threads: int = 1) -> Int32s:
        """The best label of every position, [T] over all sequences."""
        return self._core.best(design, n_threads)

    def marginals(self, design: Compiled, n_threads: int = 1) -> Float64s:
        """P(y_t = b), [T, L] over all sequences."""
        return self._core.marginals(design, n_threads)

    def log_partitions(
        self,
        design: Compiled,
        labels: Int32s | None = None,
        sets: Sets | None = None,
        n_threads: int = 1,
    ) -> Float64s:
        """log Z of every sequence, [N]; with labels (−1: unknown) and sets, over the label sequences they allow.

        log p(labels) of a sequence is the second less the first.
        """
        set_ptr, set_labels = (None, None) if sets is None else (sets.position_ptr, sets.labels)
        return self._core.log_partitions(design, labels, set_ptr, set_labels, n_threads)

    def scores(self, design: Compiled, n: int) -> ChainScores:
        """The scores of the parts of sequence n, whatever its allowed labels are; those of start and end are in the states.

        ValueError where labels have facets.
        """
        assert isinstance(self._core, _core.Tagger)
        return ChainScores(*self._core.scores(design, n))

    def k_best(self, design: Compiled, k: int, n_threads: int = 1) -> list[list[tuple[float, Int32s]]]:
        """The k best (score, labels) of every sequence, best first."""
        return self._core.k_best(design, k, n_threads)

    def sample(self, design: Compiled, n: int, uniforms: Float64s, n_threads: int = 1) -> Int32s:
        """n samples of every sequence from n · T uniform numbers: [n, length] for one sequence after the other."""
        return self._core.sample(design, n, uniforms, n_threads)


class PatternTagger(Tagger):
    """The same questions for chains with patterns, whose data sets are trellises (`PatternMap.trellises`)."""

    def __init__(self, layout: _core.Layout, weights: Float64s) -> None:
        if not np.isfinite(weights).all():
            raise ValueError("PatternTagger: a weight is NaN or infinite, expected finite numbers.")
        w = np.ascontiguousarray(weights, dtype=np.float64)
        self._core = _core.PatternTagger(layout, w, layout.n_weights)


class LatticeTagger:
    """The same questions for data sets that come as slices of lattices, with weights [D]."""

    def __init__(self, weights: Float64s) -> None:
        if not np.isfinite(weights).all():
            raise ValueError("LatticeTagger: a weight is NaN or infinite, expected finite numbers.")
        self._weights = np.array(weights, dtype=np.float64)

    def best(self, design: LatticeSlices, n_threads: int = 1) -> Int32s:
        """The best label of every position, [T] over all sequences."""
        found = [
            _core.active_best(part.lattices, part.active, self._weights, n_threads)
            for part in design.slices()
        ]
        return np.concatenate([np.zeros(0, np.int32), *found])

    def marginals(self, design: LatticeSlices, n_threads: int = 1) -> Float64s:
        """P(y_t = b), [T, L] over all sequences."""
        found = [
            _core.active_marginals(part.lattices, part.active, self._weights, n_threads)
            for part in design.slices()
        ]
        return np.concatenate(found) if found else np.zeros((0, 0))

    def log_partitions(
        self,
        design: LatticeSlices,
        labels: Int32s | None = None,
        sets: BetweenSets | None = None,
        n_threads: int = 1,
    ) -> Float64s:
        """log Z of every sequence, [N]; with labels (−1: unknown) and sets, over the label sequences they allow."""
        found, begin = [np.zeros(0)], 0
        for part in design.slices():
            end = begin + len(part.lattices.position_ptr) - 1
            some = None if sets is None else sets.between(begin, end)
            found.append(
                _core.active_log_partitions(
                    part.lattices,
                    part.active,
                    self._weights,
                    None if labels is None else labels[begin:end],
                    None if some is None else some.position_ptr,
                    None if some is None else some.labels,
                    n_threads,
                )
            )
            begin = end
        return np.concatenate(found)

    def k_best(self, design: LatticeSlices, k: int, n_threads: int = 1) -> list[list[tuple[float, Int32s]]]:
        """The k best (score, labels) of every sequence, best first."""
        return [
            best
            for part in design.slices()
            for best in _core.active_k_best(part.lattices, part.active, self._weights, k, n_threads)
        ]

    def sample(self, design: LatticeSlices, n: int, uniforms: Float64s, n_threads: int = 1) -> Int32s:
        """n samples of every sequence from n · T uniform numbers: [n, length] for one sequence after the other."""
        found, begin = [np.zeros(0, np.int32)], 0
        for part in design.slices():
            end = begin + n * (len(part.lattices.position_ptr) - 1)
            some = uniforms[begin:end]
            found.append(_core.active_sample(part.lattices, part.active, self._weights, n, some, n_threads))
            begin = end
        return np.concatenate(found)
