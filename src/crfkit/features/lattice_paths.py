"""Paths through lattices: what y says of each arc, and arcs as paths again.

A path is a list whose entries follow each other from 0 to the length. An entry is

    3                        the arc with this number
    (4, 6, "NOUN")           the arc from 4 to 6 with this label; one of them where there are several
    (4, 6, None)             an arc from 4 to 6, whatever its label
    {3, (4, 6, "VERB")}      one of these, which have the same start and end
    None                     anything: arcs from where the entry before ends to where the next one begins
"""

from collections import defaultdict
from collections.abc import Hashable, Iterable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from crfkit.arrays import Float64s, Int32s, Int64s
from crfkit.errors import LabelError, ShapeError
from crfkit.features.dataset import Dataset
from crfkit.features.lattice_map import OFF_PATH, ON_PATH, UNKNOWN, LatticeDataset
from crfkit.structures import Span

Triple = tuple[int, int, Hashable]


def encode_paths(y: Any, dataset: LatticeDataset, which: str = "") -> Int32s:
    """What paths say of each arc [T]: on the path, not on it, or unknown."""
    paths = _lists(y, dataset, which)
    known = np.full(dataset.n_positions, UNKNOWN, np.int32)
    for n, path in enumerate(paths):
        if path is not None:
            _Sequence(dataset, n, which).encode(path, known)
    return known


def gold_triples(y: Any, dataset: LatticeDataset, which: str = "") -> list[list[Triple]]:
    """Full paths as lists of (start, end, label); InputError where one is not fully known."""
    encode_paths(y, dataset, which)
    return [
        _Sequence(dataset, n, which).triples([None] if path is None else path)
        for n, path in enumerate(_lists(y, dataset, which))
    ]


def path_numbers(on_path: Any, dataset: LatticeDataset, n: int = 1) -> list[list[int]]:
    """The numbers of the arcs on paths, in their order; n paths for each sequence, [n, arcs] for one after the other."""
    out = []
    flat = np.asarray(on_path)
    for begin, end in pairwise(dataset.sequence_ptr.tolist()):
        starts = dataset.starts[begin:end]
        for row in flat[n * begin : n * end].reshape(n, end - begin):
            arcs = np.flatnonzero(row)
            out.append(arcs[np.argsort(starts[arcs], kind="stable")].tolist())
    return out


def path_triples(paths: Sequence[Sequence[int]], dataset: LatticeDataset) -> list[list[Triple]]:
    """The arcs of a path of each sequence as (start, end, label)."""
    sequences = (_Sequence(dataset, n, "") for n in range(dataset.n_sequences))
    return [[one.triple(arc) for arc in path] for one, path in zip(sequences, paths, strict=True)]


def path_spans(on_path: Float64s, dataset: Dataset) -> list[list[Span]]:
    """The arcs of each sequence as spans with the probabilities [T] of these; equal ones are one."""
    assert isinstance(dataset, LatticeDataset)
    out = []
    for n in range(dataset.n_sequences):
        sequence, sums = _Sequence(dataset, n, ""), dict[Triple, float]()
        for arc, prob in enumerate(on_path[sequence.first : sequence.last].tolist()):
            triple = sequence.triple(arc)
            sums[triple] = sums.get(triple, 0.0) + prob
        spans = [Span(*triple, min(prob, 1.0)) for triple, prob in sums.items()]
        out.append(sorted(spans, key=lambda span: (span.start, span.end, str(span.label))))
    return out


def _lists(y: Any, dataset: LatticeDataset, which: str) -> list[list[Any] | None]:
    if isinstance(y, str | bytes) or not isinstance(y, Iterable):
        raise ShapeError(f"{which}y is {y!r}, expected a list with a path for each sequence")
    paths: list[list[Any] | None] = []
    for n, path in enumerate(y):
        if path is not None and (
            isinstance(path, str | bytes | set | dict) or not isinstance(path, Iterable)
        ):
            raise ShapeError(f"{which}y of sequence {n} is {path!r}, expected a path: a list of arcs")
        paths.append(None if path is None else list(path))
    if len(paths) != dataset.n_sequences:
        raise ShapeError(f"{which}X has {dataset.n_sequences} sequences but {which}y has {len(paths)}")
    return paths


class _Sequence:
    """The arcs of one lattice."""

    def __init__(self, dataset: LatticeDataset, n: int, which: str) -> None:
        self.dataset, self.n, self.which = dataset, n, which
        self.first, self.last = (int(a) for a in dataset.sequence_ptr[n : n + 2])
        self.starts: Int64s = dataset.starts[self.first : self.last]
        self.ends: Int64s = dataset.ends[self.first : self.last]
        self._by_ends: dict[tuple[int, int], list[int]] | None = None

    def triple(self, arc: int) -> Triple:
        a = self.first + int(arc)
        data = self.dataset
        return int(data.starts[a]), int(data.ends[a]), data.arc_labels[data.label_ids[a]]

    def encode(self, path: Sequence[Any], known: Int32s) -> None:
        """Write what a path says of these arcs."""
        here = known[self.first : self.last]
        length = int(self.dataset.lengths[self.n])
        at, anything = 0, False
        for i, entry in enumerate(path):
            if entry is None:
                anything = True
                continue
            arcs = sorted(self._find(i, entry))
            start, end = int(self.starts[arcs[0]]), int(self.ends[arcs[0]])
            self._check_follows(i, at, start, anything)
            here[(self.starts < end) & (self.ends > start)] = OFF_PATH
            here[arcs] = ON_PATH if len(arcs) == 1 else UNKNOWN
            at, anything = end, False
        self._check_follows(len(path), at, length, anything)

    def triples(self, path: Sequence[Any]) -> list[Triple]:
        """The arcs of a path that is fully known."""
        out: list[Triple] = []
        for i, entry in enumerate(path):
            found = set() if entry is None else {self.triple(arc) for arc in self._find(i, entry)}
            if len(found) != 1:
                raise self._error(i, f"{entry!r} is not one arc", ", expected a path that is fully known")
            out += found
        return out

    def _check_follows(self, i: int, at: int, start: int, anything: bool) -> None:
        if start < at:
            raise self._error(i, f"it begins at {start}, before the end of the arc before it, {at}", "")
        if start > at and not anything:
            raise self._error(
                i, f"nothing is said of {at} to {start}", ", expected arcs, or None where they are unknown"
            )

    def _find(self, i: int, entry: Any) -> set[int]:
        """The arcs that an entry names, which have the same ends."""
        entries = entry if isinstance(entry, set | frozenset) else [entry]
        found: set[int] = set()
        for one in entries:
            found.update(self._find_one(i, one))
        if not found:
            raise self._error(i, "the set of arcs is empty", "; expected None where nothing is known")
        if len({(int(self.starts[arc]), int(self.ends[arc])) for arc in found}) > 1:
            raise self._error(
                i, f"{entry!r} has arcs with different ends", ", expected one start and one end"
            )
        return found

    def _find_one(self, i: int, entry: Any) -> list[int]:
        if isinstance(entry, int | np.integer) and not isinstance(entry, bool):
            if not 0 <= entry < self.last - self.first:
                raise self._error(
                    i, f"there is no arc {entry}", f", expected 0 to {self.last - self.first - 1}"
                )
            return [int(entry)]
        try:
            start, end, label, *_ = entry
            arcs = self._between(int(start), int(end))
        except (TypeError, ValueError):
            raise self._error(
                i, f"{entry!r} is no arc", ", expected its number or (start, end, label)"
            ) from None
        named = arcs if label is None else [arc for arc in arcs if self.triple(arc)[2] == label]
        if not named:
            raise self._error(i, f"the lattice has no arc {(start, end, label)!r}", "")
        return named

    def _between(self, start: int, end: int) -> list[int]:
        if self._by_ends is None:
            self._by_ends = defaultdict(list)
            for arc, ends in enumerate(zip(self.starts.tolist(), self.ends.tolist(), strict=True)):
                self._by_ends[ends].append(arc)
        return self._by_ends.get((start, end), [])

    def _error(self, i: int, what: str, expected: str) -> LabelError:
        return LabelError(f"{self.which}sequence {self.n}, entry {i} of its path: {what}{expected}")
