"""The segments that training data have: those of label sequences, and all that a partial annotation allows.

Where y has sets of labels or None, a segment counts as seen if y says something of at least one of its positions, each of
its positions may have its label, the position before may end a segment, and the one behind may begin one. So a run of
positions of which nothing is known gives no segments, as it gives features of positions no weights.

Letters: T positions, L labels, C types, K lengths.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from crfkit.arrays import Bools, Int32s, Int64s
from crfkit.errors import ImpossibleLabelsError
from crfkit.features.dataset import Annotation, Dataset
from crfkit.structures import END, IOB1_HINT, OBSERVED, START, AllowedLabels, Bigrams, Segments, SegmentTypes


class SeenSegments(NamedTuple):
    """The segments of training data, by their first positions."""

    starts: Int64s
    lengths: Int64s
    types: Int32s

    @classmethod
    def find(
        cls,
        structure: Segments,
        types: SegmentTypes,
        labels: Sequence[Hashable],
        dataset: Dataset,
        annotation: Annotation,
    ) -> SeenSegments:
        """Refuses labels that make no segments, and segments too long."""
        ids, ptr = annotation.labels, dataset.sequence_ptr
        _check_whole(types, labels, ids, ptr)
        starts = types.starts(ids, ptr)
        lengths = np.diff(np.append(starts, len(ids)))
        known = ids[starts] >= 0
        starts, lengths = starts[known], lengths[known]
        found = types.type_of[ids[starts]]
        _check_lengths(structure, types, cls(starts, lengths, found), ptr)
        gaps = np.unique(np.searchsorted(ptr, np.flatnonzero(ids < 0), side="right") - 1)  # sequences
        whole = ~np.isin(np.searchsorted(ptr, starts, side="right") - 1, gaps)
        parts = [cls(starts[whole], lengths[whole], found[whole])]
        parts += (_find_allowed(structure, types, dataset, annotation, n) for n in gaps.tolist())
        joined = [np.concatenate(column) for column in zip(*parts, strict=True)]
        order = np.argsort(joined[0], kind="stable")
        return cls(*(column[order] for column in joined))

    def bigrams(self, names: Sequence[Hashable], ptr: Int64s) -> Bigrams:
        """The types that follow each other, those at the start and at the end of sequences included."""
        edges = {*ptr.tolist()}
        found: set[tuple[Hashable, Hashable]] = set()
        ended: dict[int, set[Hashable]] = {}
        begun: dict[int, set[Hashable]] = {}
        for start, length, c in zip(*(column.tolist() for column in self), strict=True):
            if start in edges:
                found.add((START, names[c]))
            else:
                begun.setdefault(start, set()).add(names[c])
            if start + length in edges:
                found.add((names[c], END))
            else:
                ended.setdefault(start + length, set()).add(names[c])
        for t in begun.keys() & ended.keys():
            found.update((before, after) for before in ended[t] for after in begun[t])
        return Bigrams(found)

    def check_bigrams(
        self, bigrams: Bigrams, names: Sequence[Hashable], annotation: Annotation, ptr: Int64s
    ) -> None:
        """Refuse sequences whose labels are known that have other types after each other."""
        for start, end in pairwise(ptr.tolist()):
            first, last = np.searchsorted(self.starts, (start, end))
            if first == last or (annotation.labels[start:end] < 0).any():
                continue
            path = [names[c] for c in self.types[first:last].tolist()]
            for i, before, after in bigrams.missing(path):
                what = f"a segment of type {after!r}"
                if after is END:
                    what, i = f"a segment of type {before!r} at the end", i - 1
                where = (
                    ""
                    if after is END
                    else " at the start"
                    if before is START
                    else f" after one of type {before!r}"
                )
                raise ImpossibleLabelsError(
                    f"{_place(ptr, int(self.starts[first + i]))}: {what}{where}, which the bigrams of Segments do not have"
                )

    def by_sequence(self, dataset: Dataset, kept: Bools) -> Iterator[tuple[Any, list[tuple[int, int, int]]]]:
        """Each input with those of its segments that are kept, as (start, end, type)."""
        assert dataset.inputs is not None
        ptr = dataset.sequence_ptr
        starts, lengths, types = self.starts[kept], self.lengths[kept], self.types[kept]
        bounds = np.searchsorted(starts, ptr)
        for x, begin, (first, last) in zip(dataset.inputs, ptr, pairwise(bounds), strict=False):
            here = starts[first:last] - begin
            ends = here + lengths[first:last]
            yield x, [*zip(here.tolist(), ends.tolist(), types[first:last].tolist(), strict=True)]


def _find_allowed(
    structure: Segments, types: SegmentTypes, dataset: Dataset, annotation: Annotation, n: int
) -> SeenSegments:
    """The segments of sequence n that the annotation allows and says something of.

    Those longer than all that have weights are left out, unless bigrams are those that are observed.
    """
    begin, end = dataset.sequence_ptr[n : n + 2].tolist()
    T, L = end - begin, len(types.type_of)
    ids = annotation.labels[begin:end]
    open_ = AllowedLabels.from_labels(ids).mask(L)  # [T, L]
    said = ids >= 0  # [T]
    if annotation.sets is not None:
        open_ &= annotation.sets.between(begin, end).mask(L)
        said |= np.diff(annotation.sets.position_ptr[begin : end + 1]) > 0
    if dataset.allowed is not None:
        open_ &= dataset.allowed.between(begin, end).mask(L)
    first, inside, last, single = (
        open_[:, role] & (role >= 0) for role in (types.first, types.inside, types.last, types.single)
    )  # [T, C]
    begins, ends = _find_boundaries(types, open_)
    said_before = np.append(0, np.cumsum(said))  # [T + 1]
    limits = np.array([min(structure.limit(name) or T, T) for name in types.names])
    weighted = max(structure.limit(name) or structure.longest_weighted for name in types.names)
    if structure.bigrams == OBSERVED:
        weighted = T  # longer ones have no weights of their own, but types follow them too
    starts, lengths, kinds = [], [], []
    going = first & begins[:-1]
    for k in range(1, min(T, weighted) + 1):
        n_starts = T - k + 1
        here = single & begins[:-1] if k == 1 else going[:n_starts] & last[k - 1 :]
        here = here & ends[k:] & (said_before[k:] > said_before[:n_starts])[:, None] & (k <= limits)
        at, kind = np.nonzero(here)
        starts.append(begin + at)
        lengths.append(np.full(len(at), k))
        kinds.append(kind.astype(np.int32))
        if k > 1:
            going = going[:n_starts] & inside[k - 1 :]
        if not going.any():
            break
    return SeenSegments(np.concatenate(starts), np.concatenate(lengths), np.concatenate(kinds))


def _find_boundaries(types: SegmentTypes, open_: Bools) -> tuple[Bools, Bools]:
    """Whether a segment of each type may begin before a position, and end there: both [T + 1, C]."""
    T, C = len(open_), len(types.names)
    begins, ends = np.ones((T + 1, C), np.bool_), np.ones((T + 1, C), np.bool_)
    if types.repeats:
        closing = np.isin(np.arange(open_.shape[1]), [*types.last, *types.single])
        begins[1:] = (open_ & closing).any(axis=1, keepdims=True)
        ends[:-1] = (open_ & types.begins).any(axis=1, keepdims=True)
    else:
        other = open_.sum(axis=1)[:, None] > open_[:, types.single]  # a label beside that of the type
        begins[1:], ends[:-1] = other, other
    return begins, ends


def _place(ptr: Int64s, t: int) -> str:
    sequence = int(np.searchsorted(ptr, t, side="right")) - 1
    return f"sequence {sequence}, position {t - int(ptr[sequence])}"


def _check_lengths(structure: Segments, types: SegmentTypes, found: SeenSegments, ptr: Int64s) -> None:
    longest = int(found.lengths.max(initial=0))
    limits = np.array([min(structure.limit(name) or longest, longest) for name in types.names], np.int64)
    long = found.lengths > limits[found.types]
    if long.any():
        i = int(long.argmax())
        raise ImpossibleLabelsError(
            f"{_place(ptr, int(found.starts[i]))}: a segment of type {types.names[found.types[i]]!r} has "
            f"{found.lengths[i]} positions, expected at most {limits[found.types[i]]}, its max_length"
        )


def _check_whole(types: SegmentTypes, labels: Sequence[Hashable], ids: Int32s, ptr: Int64s) -> None:
    wrong = _broken(types, ids, ptr)
    if wrong.any():
        t = int(wrong.argmax())
        raise ImpossibleLabelsError(
            f"{_place(ptr, t)}: the label {labels[ids[t]]!r} is not part of a whole segment of the scheme {types.scheme}"
            + IOB1_HINT * (types.scheme == "bio")
        )


def _broken(types: SegmentTypes, ids: Int32s, ptr: Int64s) -> Bools:
    """Which labels [T] do not go on from the label before, or end too soon. Unknown labels (−1) may be any."""
    n, wrong = len(ids), np.zeros(len(ids), np.bool_)
    if not types.repeats or n == 0:
        return wrong
    known = ids >= 0
    follows = np.ones(n, np.bool_)  # whether a position has one before it in its sequence
    follows[ptr[:-1][ptr[:-1] < n]] = False
    goes_on = known & ~types.begins[ids]
    opens = np.isin(ids, [*types.first, *types.inside]) & known
    closes = np.isin(ids, [*types.last, *types.single]) | ~known
    joined = ~known[:-1] | (opens[:-1] & (types.type_of[ids[:-1]] == types.type_of[ids[1:]]))
    wrong |= goes_on & ~(follows & np.append(False, joined))
    ended = ~follows[1:] | (known[1:] & ~goes_on[1:])
    return wrong | (np.append(ended, True) & ~closes)
