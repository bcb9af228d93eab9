"""Where the weights of feature functions lie, and which labels and pairs the functions look at."""

from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from crfkit import _core
from crfkit.arrays import Float64s, Int32s, Int64s
from crfkit.features.feature_map import FeatureMap, Purpose
from crfkit.features.function_values import Lists, Objects, Outputs, Parts
from crfkit.features.functions import FeatureFunctions
from crfkit.lazy import lazy_property
from crfkit.structures import END, START, AllowedLabels, Chain

Flags = npt.NDArray[np.uint8]


@dataclass(frozen=True, eq=False)
class FunctionMap:
    """Where the weights of feature functions lie: behind those of the feature map, function after function."""

    functions: FeatureFunctions
    outputs: tuple[Outputs, ...]  # of each function
    labels: tuple[Hashable, ...]  # [L]
    structure: Chain  # whether there are arcs from the start and into the end
    feature_map: FeatureMap  # the other weights: those of plain arcs
    pairs: tuple[Int32s, Int32s] | None = (
        None  # the only neighbours, where the structure has the plain arcs itself
    )

    @lazy_property
    def layout(self) -> _core.Layout:
        """Which pairs exist, for the core; where others exist too (`soft`), these score 0 and no function looks at them."""
        L, bigrams = len(self.labels), self._bigrams
        soft = self.feature_map.soft
        if bigrams is None or not (self.pairs is None or self._look_at_arcs):
            soft = not self._look_at_arcs  # then no pair needs to be listed
            codes = np.arange(0 if soft else (L + 1) ** 2)  # before · (L + 1) + after, start and end included
            bigrams = (codes // (L + 1)).astype(np.int32), (codes % (L + 1)).astype(np.int32)
        nothing, empty, zero = np.zeros(0, np.int64), np.zeros(0, np.int32), np.zeros(1, np.int64)
        return _core.Layout(L, zero, empty, nothing, empty, empty, zero, empty, *bigrams, soft)

    def design(
        self,
        sequence_ptr: Int64s,
        allowed: AllowedLabels | None,
        n_threads: int,
        *,
        purpose: Purpose = "training",
    ) -> _core.Design:
        """Sequences of so many positions, whose features are the outputs of the functions alone."""
        return _core.Design(
            self.layout,
            sequence_ptr,
            np.zeros(int(sequence_ptr[-1]) + 1, np.int64),
            np.zeros(0, np.int32),
            None,
            None,
            None,
            None,
            [],
            n_threads,
            None if allowed is None else allowed.position_ptr,
            None if allowed is None else allowed.labels,
            purpose,
        )

    @property
    def _look_at_arcs(self) -> bool:
        return self._has_plain_arcs or self.looks_at_pairs

    @property
    def looks_at_pairs(self) -> bool:
        """Whether some functions are of two labels."""
        return any(f.on_arcs for f in self.functions)

    @property
    def _bigrams(self) -> tuple[Int32s, Int32s] | None:
        return self.feature_map.bigrams if self.pairs is None else self.pairs

    @property
    def _has_plain_arcs(self) -> bool:
        return self.pairs is None and len(self.feature_map.arc_before) > 0

    @lazy_property
    def boundary(self) -> tuple[Flags, Flags]:
        """Which labels have an arc from the start and into the end that something may score, uint8 [L] each."""
        L, bigrams = len(self.labels), self._bigrams
        starts, ends = np.ones(L, np.uint8), np.ones(L, np.uint8)
        if bigrams is not None:
            before, after = bigrams
            starts, ends = np.zeros(L, np.uint8), np.zeros(L, np.uint8)
            starts[after[(before == L) & (after < L)]] = 1
            ends[before[(after == L) & (before < L)]] = 1
        starts *= self.structure.start and self._look_at_arcs
        ends *= self.structure.end and (self._has_plain_arcs or any(f.end for f in self.functions))
        return starts, ends

    @lazy_property
    def names(self) -> tuple[Objects, Objects]:
        """The labels as they come before and after, [L + 1] each: START or END stands at the end."""
        before, after = (np.empty(len(self.labels) + 1, dtype=object) for _ in range(2))
        for names, boundary in ((before, START), (after, END)):
            for i, label in enumerate((*self.labels, boundary)):
                names[i] = label
        return before, after

    @property
    def sizes(self) -> list[int]:
        """K of each function."""
        return [outputs.size or 0 for outputs in self.outputs]

    @property
    def n_weights(self) -> int:
        """D, with the weights of the feature map."""
        return self.feature_map.n_weights + sum(self.sizes)

    def first_weight(self, function: int) -> int:
        """Where the weights of a function begin."""
        return self.feature_map.n_weights + sum(self.sizes[:function])

    def output_names(self) -> list[str]:
        """The names of all outputs, in the order of their weights."""
        return [
            outputs.name(k)
            for outputs, size in zip(self.outputs, self.sizes, strict=True)
            for k in range(size)
        ]

    def label_scores(
        self, x: Any, i: int, coefficients: Float64s, weights: Float64s
    ) -> Iterator[tuple[str, float]]:
        """What each output of the functions of one label adds to Σ_b coefficients[b] · score(b) at position i of x."""
        labels = np.flatnonzero(coefficients)
        parts = Parts(0, x, np.full(len(labels), i, np.int32), self.names[1][labels], None)
        for number, (function, outputs) in enumerate(zip(self.functions, self.outputs, strict=True)):
            if function.on_arcs or not len(labels) or not outputs.size:
                continue
            values, first = outputs.evaluate(parts), self.first_weight(number)
            sums: Float64s
            if isinstance(values, Lists):
                rows = np.repeat(coefficients[labels], np.diff(values.ptr)) * values.values
                sums = np.bincount(values.ids, rows, minlength=outputs.size).astype(np.float64)
            else:
                sums = coefficients[labels] @ values
            scores = sums * weights[first : first + outputs.size]
            for k in np.flatnonzero(scores).tolist():
                yield outputs.name(k), float(scores[k])

    def arc_weights(self, before: Int32s, after: Int32s) -> Int32s | None:
        """The weight of each plain arc, counted from the first of them; −1 where it has none; None: none has any."""
        known = self.feature_map.arc_before, self.feature_map.arc_after
        if not self._has_plain_arcs:
            return None
        L = len(self.labels)
        codes, wanted = (
            first.astype(np.int64) * (L + 1) + second for first, second in (known, (before, after))
        )
        order = np.argsort(codes, kind="stable")
        at = np.minimum(np.searchsorted(codes[order], wanted), len(codes) - 1)
        found = order[at]
        return np.where(codes[found] == wanted, found, -1).astype(np.int32)
