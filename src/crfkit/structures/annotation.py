"""Training outputs beside a set of bigrams: which bigrams they have, and where they leave the set.

An output is its label ids [T], −1 where the label is unknown, or the `Evidence` of the labels possible at each site.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from itertools import pairwise, product
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from crfkit.structures.bigrams import END, START, Bigrams
from crfkit.structures.structure import Evidence, Int32s, Int64s
from crfkit.structures.support import Support

Break = tuple[int, Hashable | None, Hashable | None]  # site, before, after


class Outside(NamedTuple):
    """A training output that the bigrams exclude: where the first pair stands that they do not have.

    The pair is (None, None) where the output is not fully known: then no completion of it lies within the bigrams.
    """

    sequence: int
    site: int  # of `after`; T for END
    before: Hashable | None
    after: Hashable | None

    def __str__(self) -> str:
        where = f"sequence {self.sequence}, site {self.site}: "
        if self.before is None:
            return f"{where}no label fits between the known ones"
        if self.after is END:
            return f"sequence {self.sequence}: {self.before} at its end"
        return f"{where}{self.after} {'at the start' if self.before is START else f'after {self.before}'}"


def observed(labels: Sequence[Hashable], outputs: Iterable[npt.ArrayLike | Evidence]) -> Bigrams:
    """The bigrams that the outputs name; next to an unknown label there is none, a set stands for each of its labels."""
    n_labels = len(labels)
    codes = [np.zeros(0, dtype=np.int64)]  # before · (L + 1) + after
    ends = np.array([n_labels])
    for output in outputs:
        if isinstance(output, Evidence):
            codes.append(_codes_of_sets(output, n_labels))
        else:
            path = np.concatenate([ends, ids_of(output, n_labels), ends])
            before, after = path[:-1], path[1:]
            known = (before >= 0) & (after >= 0)
            codes.append(before[known] * np.int64(n_labels + 1) + after[known])
    before, after = np.divmod(np.unique(np.concatenate(codes)), n_labels + 1)
    return Bigrams.from_ids(labels, before.astype(np.int32), after.astype(np.int32))


def _codes_of_sets(output: Evidence, n_labels: int) -> Int64s:
    sets: list[Sequence[int]] = [
        output.labels[begin:end].tolist() for begin, end in pairwise(output.site_ptr)
    ]
    pairs = {pair for both in pairwise([[n_labels], *sets, [n_labels]]) for pair in product(*both)}
    return np.array([before * (n_labels + 1) + after for before, after in pairs], dtype=np.int64)


def first_break(support: Support, output: npt.ArrayLike | Evidence) -> Break | None:
    """Where an output first leaves the bigrams; None when it does not."""
    labels = support.labels
    if not isinstance(output, Evidence):
        ids = ids_of(output, len(labels))
        if not np.any(ids < 0):
            site = support.first_break(ids)
            if site is None:
                return None
            path = (START, *(labels[i] for i in ids), END)
            return site, path[site], path[site + 1]
        output = Evidence.from_labels(ids)
    site = support.dead_end(output.mask(len(labels)))
    return None if site is None else (site, None, None)


def ids_of(output: Any, n_labels: int) -> Int32s:
    """Label ids [T], −1 where unknown, checked."""
    ids = np.asarray(output)
    if ids.ndim != 1 or (ids.size and ids.dtype.kind not in "iu"):
        raise ValueError(f"An output is a list of label ids, got {ids.dtype} with shape {list(ids.shape)}.")
    if ids.size and not -1 <= ids.min() <= ids.max() < n_labels:
        raise ValueError(
            f"An output has label ids from {ids.min()} to {ids.max()}, expected 0 to {n_labels - 1}, or −1."
        )
    return ids.astype(np.int32)
