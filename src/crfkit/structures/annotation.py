"""Training outputs and a set of bigrams: which bigrams the outputs have, and where they are outside the set.

An output is its label ids [T], −1 where the label is unknown, or the `AllowedLabels` of the labels possible at each
position.
"""

from collections.abc import Hashable, Sequence
from itertools import pairwise, product
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from crfkit.arrays import Int32s, Int64s
from crfkit.errors import LabelError, ShapeError
from crfkit.structures.bigrams import END, START, Bigrams
from crfkit.structures.structure import AllowedLabels
from crfkit.structures.support import Support


class Outside(NamedTuple):
    """A training output that the bigrams exclude, and its first pair outside them.

    The pair is (None, None) where the output is not fully known: no completion of it is within the bigrams.
    """

    sequence: int
    position: int  # of `after`; T for END
    before: Hashable | None
    after: Hashable | None

    def __str__(self) -> str:
        where = f"sequence {self.sequence}, position {self.position}: "
        if self.before is None:
            return f"{where}no label fits between the known ones"
        if self.before is START and self.after is END:
            return f"sequence {self.sequence}: it has no positions"
        if self.after is END:
            return f"sequence {self.sequence}: {self.before} at its end"
        return f"{where}{self.after} {'at the start' if self.before is START else f'after {self.before}'}"


def observe_bigrams(labels: Sequence[Hashable], outputs: Sequence[npt.ArrayLike | AllowedLabels]) -> Bigrams:
    """The bigrams of the outputs; an unknown label gives none, a set of labels those of each of its labels."""
    n_labels = len(labels)
    listed = _Paths([output for output in outputs if not isinstance(output, AllowedLabels)], n_labels)
    known = (listed.before >= 0) & (listed.after >= 0)
    codes = [listed.before[known] * np.int64(n_labels + 1) + listed.after[known]]
    codes += (_codes_of_sets(output, n_labels) for output in outputs if isinstance(output, AllowedLabels))
    before, after = np.divmod(np.unique(np.concatenate(codes)), n_labels + 1)
    return Bigrams.from_ids(labels, before.astype(np.int32), after.astype(np.int32))


def _codes_of_sets(output: AllowedLabels, n_labels: int) -> Int64s:
    sets: list[Sequence[int]] = [
        output.labels[begin:end].tolist() for begin, end in pairwise(output.position_ptr)
    ]
    pairs = {pair for both in pairwise([[n_labels], *sets, [n_labels]]) for pair in product(*both)}
    return np.array([before * (n_labels + 1) + after for before, after in pairs], dtype=np.int64)


def outside(support: Support, outputs: Sequence[npt.ArrayLike | AllowedLabels]) -> list[Outside]:
    """The first pair outside the bigrams of each output that they exclude, in the order of the outputs."""
    labels = support.labels
    found: dict[int, Outside] = {}
    numbers = [n for n, output in enumerate(outputs) if not isinstance(output, AllowedLabels)]
    listed = _Paths([output for output in outputs if not isinstance(output, AllowedLabels)], len(labels))
    is_partial = np.zeros(len(numbers), dtype=np.bool_)
    is_partial[listed.sequence[listed.after < 0]] = True
    missing = ~support.exists[listed.before, listed.after] & ~is_partial[listed.sequence]
    breaks = np.flatnonzero(missing)
    _, firsts = np.unique(listed.sequence[breaks], return_index=True)
    for at in breaks[firsts].tolist():
        n = numbers[listed.sequence[at]]
        before, after = (*labels, START)[listed.before[at]], (*labels, END)[listed.after[at]]
        found[n] = Outside(n, int(listed.position[at]), before, after)
    partial = {numbers[i] for i in np.flatnonzero(is_partial).tolist()}
    for n, output in enumerate(outputs):
        if n in partial or isinstance(output, AllowedLabels):
            sets = output if isinstance(output, AllowedLabels) else AllowedLabels.from_labels(output)
            position = support.dead_end(sets.mask(len(labels)))
            if position is not None:
                found[n] = Outside(n, position, None, None)
    return [found[n] for n in sorted(found)]


class _Paths:
    """The adjacent pairs of all outputs, including START and END, concatenated: [T + N].

    `before` and `after` are label ids, −1 where unknown, L for START and END; `position` is that of `after`.
    """

    def __init__(self, outputs: Sequence[npt.ArrayLike], n_labels: int) -> None:
        arrays = [ids_of(output) for output in outputs]
        lengths = np.array([len(ids) for ids in arrays], dtype=np.int64)  # [N]
        flat = np.concatenate([np.zeros(0, np.int32), *arrays])
        if flat.size and not -1 <= flat.min() <= flat.max() < n_labels:
            raise LabelError(
                f"The outputs have label ids from {flat.min()} to {flat.max()}, expected 0 to {n_labels - 1}, or −1."
            )
        self.sequence = np.repeat(np.arange(len(arrays)), lengths + 1)  # [T + N]
        begins = np.cumsum(lengths + 1) - lengths - 1  # [N] where the pairs of a sequence begin
        self.position = np.arange(len(self.sequence)) - begins[self.sequence]
        self.before = np.full(len(self.sequence), n_labels, dtype=np.int64)
        self.after = self.before.copy()
        self.before[self.position > 0] = flat
        self.after[self.position < lengths[self.sequence]] = flat


def ids_of(output: Any) -> Int32s:
    """Label ids [T], −1 where unknown."""
    ids = np.asarray(output)
    if ids.ndim != 1 or (ids.size and ids.dtype.kind not in "iu"):
        raise ShapeError(f"An output is a list of label ids, got {ids.dtype} with shape {list(ids.shape)}.")
    return ids.astype(np.int32, copy=False)
