"""Feature functions on a data set: slices of sequences, each with the values of all functions on its parts.

The data set is cut by its own size into slices of about 64 MB of values. Slices are cached while memory allows
(`FeatureFunctions.memory`); the others are made again in each pass. What is summed over slices is summed in their order,
so neither memory nor threads change a bit of a result.
"""

from bisect import bisect_right
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from crfkit import _core
from crfkit.arrays import Int32s, Int64s
from crfkit.errors import ArgumentError
from crfkit.features.dataset import Annotation, Dataset, sequence_weights
from crfkit.features.function_map import FunctionMap
from crfkit.features.function_values import Lists, Parts, Values, join_values
from crfkit.structures import END

_SLICE = 64 << 20  # bytes
_GROUP = 2048  # positions that are looked at together when slices are cut
_SPARSE = 16  # numbers that a part of a function with named outputs is taken to have


class Slice(NamedTuple):
    """The sequences `first` … `last` − 1 as the core reads them."""

    first: int
    last: int
    lattices: _core.Lattices
    active: list[_core.ActiveFeatures]


class _Arcs(NamedTuple):
    """The arcs of a slice, as label ids; L is START in `before` and END in `after`."""

    before: Int32s  # [A]
    after: Int32s  # [A]
    position: Int32s  # [A] of `after`, within its sequence
    ptr: Int64s  # [sequences + 1]


class _Draft(NamedTuple):
    """A slice whose weights are not numbered yet."""

    lattices: _core.Lattices
    values: list[Values]  # of each function
    arcs: Int32s | None  # [arcs] the weight of each plain arc, −1: none

    @property
    def n_bytes(self) -> int:
        total = self.lattices.labels.nbytes + (0 if self.arcs is None else self.arcs.nbytes)
        for values in self.values:
            total += sum(array.nbytes for array in (values if isinstance(values, Lists) else [values]))
        return total


class FunctionData:
    """A data set with feature functions. `slices` goes through it once."""

    def __init__(
        self,
        function_map: FunctionMap,
        dataset: Dataset,
        n_threads: int,
        *,
        learn: bool = False,
        memory: int | None = None,  # bytes for slices that are kept; None: what the functions say
    ) -> None:
        if dataset.inputs is None:
            raise ArgumentError("the data set has no inputs that feature functions could look at")
        self.map = function_map
        self.dataset = dataset
        self.inputs = dataset.inputs
        self.n_threads = n_threads
        self._kept: list[_Draft | Slice] = []
        self._memory_left = function_map.functions.memory if memory is None else memory
        self._ranges = list(self._cut())
        if learn:
            self._learn()

    def _learn(self) -> None:
        """Call all functions once: what they give is checked, and named outputs become known."""
        for outputs in self.map.outputs:
            outputs.growing = True
        for first, last in self._ranges:
            self._keep(self._draft(first, last))
        for outputs in self.map.outputs:
            outputs.growing = False

    def slices(self) -> Iterator[Slice]:
        """Slice after slice."""
        return map(self.slice, range(len(self._ranges)))

    def slice(self, number: int) -> Slice:
        """One of the slices; made again unless it is kept."""
        first, last = self._ranges[number]
        kept = self._kept[number] if number < len(self._kept) else None
        if kept is None:
            kept = self._draft(first, last)
            if number == len(self._kept):
                self._keep(kept)
        if isinstance(kept, _Draft):
            kept = Slice(first, last, kept.lattices, self._active(kept))
            if number < len(self._kept):
                self._kept[number] = kept
        return kept

    def slice_of(self, sequence: int) -> Slice:
        """A slice that has this sequence: one that is kept, or one of this sequence alone."""
        number = bisect_right(self._ranges, sequence, key=lambda found: found[0]) - 1
        if number < len(self._kept):
            return self.slice(number)
        draft = self._draft(sequence, sequence + 1)
        return Slice(sequence, sequence + 1, draft.lattices, self._active(draft))

    def native(self) -> _core.FunctionSlices:
        """The slices for the native core, which asks for them one by one."""
        return _core.FunctionSlices(len(self._ranges), self.slice, self.slice_of)

    def loss(
        self, annotation: Annotation, *, sample_weight: npt.ArrayLike | None = None, n_threads: int = 1
    ) -> _core.DataLoss:
        """The loss of feature functions over this data set, slice by slice, for `Objective`; always in double precision."""
        return _core.function_loss(
            self.native(),
            self.dataset.sequence_ptr,
            annotation.labels,
            *annotation.set_arrays,
            sequence_weights(sample_weight, self.dataset.n_sequences),
            self.map.n_weights,
            n_threads,
        )

    def occurring(self) -> npt.NDArray[np.bool_]:
        """Which outputs of the functions have a value other than 0 somewhere, in the order of their weights."""
        found = [np.zeros(size, np.bool_) for size in self.map.sizes]
        for of_functions in self.values():
            for seen, values in zip(found, of_functions, strict=True):
                if isinstance(values, Lists):
                    seen[values.ids[values.values != 0]] = True
                elif values.shape[1] == len(seen):
                    seen |= (values != 0).any(axis=0)
        return np.concatenate([np.zeros(0, np.bool_), *found])

    def values(self) -> Iterator[list[Values]]:
        """What the functions give, slice after slice; what is not kept is asked for again."""
        for number, (first, last) in enumerate(self._ranges):
            kept = self._kept[number] if number < len(self._kept) else None
            yield (kept if isinstance(kept, _Draft) else self._draft(first, last)).values

    def _keep(self, draft: _Draft) -> None:
        """Keep a slice for the next pass if memory allows; the first one that does not fit ends it."""
        self._memory_left -= draft.n_bytes
        if self._memory_left >= 0:
            self._kept.append(draft)

    def _lattices(self, first: int, last: int) -> _core.Lattices:
        ptr = self.dataset.sequence_ptr[first : last + 1]
        begin, end = int(ptr[0]), int(ptr[-1])
        allowed = None if self.dataset.allowed is None else self.dataset.allowed.between(begin, end)
        design = self.map.design(ptr - begin, allowed, self.n_threads)
        return _core.Lattices(self.map.layout, design, *self.map.boundary, self.n_threads)

    def _cut(self) -> Iterator[tuple[int, int]]:
        """The slices, as ranges of sequences."""
        ptr = self.dataset.sequence_ptr
        n, first, filled = self.dataset.n_sequences, 0, 0
        lengths = np.diff(ptr)
        per_node, per_arc = self._widths(int(lengths.argmax())) if lengths.any() else (0, 0)
        begin = 0
        while begin < n:
            end = max(begin + 1, int(np.searchsorted(ptr, ptr[begin] + _GROUP, side="right")) - 1)
            lattices = self._lattices(begin, end)
            n_nodes = np.diff(lattices.position_ptr[ptr[begin : end + 1] - ptr[begin]])
            n_arcs = np.diff(lattices.arc_ptr)
            for i, size in enumerate((8 * (n_nodes * per_node + n_arcs * per_arc)).tolist(), begin):
                if filled and filled + size > _SLICE:
                    yield first, i
                    first, filled = i, 0
                filled += size
            begin = end
        if first < n:
            yield first, n

    def _widths(self, n: int) -> tuple[int, int]:
        """Numbers that a node and an arc are taken to need; a function not known yet is called once, for sequence n."""
        lattices = self._lattices(n, n + 1)
        arcs = _Arcs(*lattices.arcs(self.n_threads), lattices.arc_ptr)
        widths = [1, 1]
        for function, outputs in zip(self.map.functions, self.map.outputs, strict=True):
            parts = self._parts(lattices, arcs if function.on_arcs else None, 0, n)
            if outputs.size is None and len(parts.positions) and parts.labels[0] is not END:
                outputs.evaluate(parts.until(1))
            sparse = outputs.size is None or outputs.vocabulary is not None
            widths[function.on_arcs] += _SPARSE if sparse else outputs.size or 0
        return widths[0], widths[1]

    def _draft(self, first: int, last: int) -> _Draft:
        """All values of a slice."""
        lattices = self._lattices(first, last)
        arcs = _Arcs(*lattices.arcs(self.n_threads), lattices.arc_ptr)
        values = []
        for function, outputs in zip(self.map.functions, self.map.outputs, strict=True):
            pieces: list[Values | int] = []
            for n in range(first, last):
                parts = self._parts(lattices, arcs if function.on_arcs else None, n - first, n)
                n_parts = len(parts.positions)
                if function.on_arcs and not function.end:  # arcs into the end come last
                    parts = parts.until(int(np.searchsorted(parts.positions, self._length(n))))
                if len(parts.positions):
                    pieces.append(outputs.evaluate(parts))
                if len(parts.positions) < n_parts:
                    pieces.append(n_parts - len(parts.positions))
            values.append(join_values(pieces, outputs.size or 0))
        return _Draft(lattices, values, self.map.arc_weights(arcs.before, arcs.after))

    def _parts(self, lattices: _core.Lattices, arcs: _Arcs | None, i: int, n: int) -> Parts:
        """Where functions are called for sequence n, which is number i of these lattices."""
        before, after = self.map.names
        if arcs is not None:
            of_sequence = slice(*arcs.ptr[i : i + 2].tolist())
            ids = arcs.after[of_sequence]
            return Parts(
                n, self.inputs[n], arcs.position[of_sequence], after[ids], before[arcs.before[of_sequence]]
            )
        start = int(self.dataset.sequence_ptr[n] - self.dataset.sequence_ptr[n - i])
        position_ptr = lattices.position_ptr[start : start + self._length(n) + 1]
        positions = np.repeat(np.arange(self._length(n), dtype=np.int32), np.diff(position_ptr))
        return Parts(
            n, self.inputs[n], positions, after[lattices.labels[position_ptr[0] : position_ptr[-1]]], None
        )

    def _length(self, n: int) -> int:
        return int(self.dataset.sequence_ptr[n + 1] - self.dataset.sequence_ptr[n])

    def _active(self, draft: _Draft) -> list[_core.ActiveFeatures]:
        """The values of a slice with the weights that they belong to."""
        n_nodes, n_arcs = int(draft.lattices.position_ptr[-1]), int(draft.lattices.arc_ptr[-1])
        blocks = []
        for i, (function, values) in enumerate(zip(self.map.functions, draft.values, strict=True)):
            n_parts = n_arcs if function.on_arcs else n_nodes
            size = self.map.sizes[i]
            where = (function.on_arcs, self.map.first_weight(i), size, n_parts)
            if isinstance(values, Lists):
                blocks.append(_core.ActiveFeatures(*where, None, *values))
            elif values.shape[1] == size:  # otherwise it was never called in this slice
                blocks.append(_core.ActiveFeatures(*where, values))
        if draft.arcs is not None:
            n_weights = len(self.map.feature_map.arc_before)
            first = self.map.feature_map.arcs_begin
            blocks.append(_core.ActiveFeatures(True, first, n_weights, n_arcs, ids=draft.arcs))
        return blocks
