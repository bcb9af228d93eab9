"""Semi-Markov chains from the definition: every segmentation is listed, and what it has of each weight is counted.

Nothing of the library is used but the names and places of its weights.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

Float64s = npt.NDArray[np.float64]
Segment = tuple[int, int, str]
# first, inside, last, single
LETTERS = {"bio": [*"BIIB"], "iobes": [*"BIES"], "bilou": [*"BILU"], "bmes": [*"BMES"]}


def segmentations(
    n: int, types: Sequence[str], scheme: str, limits: Mapping[str, int], start: int = 0, before: str = ""
) -> Iterator[list[Segment]]:
    """All segmentations of positions start … n − 1; O is a segment of one position unless labels are plain."""
    if start == n:
        yield []
        return
    for kind in types:
        if scheme == "plain" and kind == before:
            continue
        longest = 1 if kind == "O" and scheme != "plain" else limits.get(kind, n)
        for end in range(start + 1, min(start + longest, n) + 1):
            for rest in segmentations(n, types, scheme, limits, end, kind):
                yield [(start, end, kind), *rest]


def labels_of(segments: Sequence[Segment], scheme: str) -> list[str]:
    """The label of each position."""
    found = []
    for start, end, kind in segments:
        n = end - start
        if scheme == "plain" or kind == "O":
            found += [kind] * n
            continue
        first, inside, last, single = LETTERS[scheme]
        letters = [single] if n == 1 else [first, *[inside] * (n - 2), last]
        found += [f"{letter}-{kind}" for letter in letters]
    return found


def type_of(label: str, scheme: str) -> str:
    """The type of the segment of a position."""
    return label if scheme == "plain" or label == "O" else label[2:]


class SegmentWeights:
    """Where the weights of a trained model are, by what they score."""

    def __init__(self, potentials: Any, classes: Sequence[str], scheme: str) -> None:
        map_, L = potentials.feature_map, len(classes)
        names, arc_names = potentials.encoder.vocabulary.names(), potentials.encoder.arc_vocabulary.names()
        kinds = [*(type_of(label, scheme) for label in classes), None]
        facets = [] if map_.facets is None else [("facet", name) for name in map_.facets.names]
        outcomes, ends = [*classes, None, *facets], [*kinds, *facets]
        keys: list[Any] = [
            (name, outcomes[b])
            for name, b in zip(np.repeat(names, np.diff(map_.pair_ptr)), map_.pair_labels, strict=True)
        ]
        keys += [
            ("transition", ends[a], ends[b]) for a, b in zip(map_.arc_before, map_.arc_after, strict=True)
        ]
        keys += [
            (name, kinds[pair // L], kinds[pair % L])
            for name, pair in zip(np.repeat(arc_names, np.diff(map_.arc_ptr)), map_.arc_triples, strict=True)
        ]
        self.place = {
            key: i for i, key in enumerate([*keys, *potentials.output_names, *potentials.structure_names])
        }
        assert len(self.place) == potentials.n_weights
        self.classes, self.scheme = classes, scheme
        own = [name.rsplit(" ", 1) for name in potentials.structure_names if " length " in name]
        self.n_lengths = dict.fromkeys((name for name, _ in own), 0)
        for name, k in own:
            self.n_lengths[name] = max(self.n_lengths[name], int(k))

    def counts(
        self,
        segments: Sequence[Segment],
        names: Sequence[Sequence[str]],
        arc_names: Sequence[Sequence[str]],
        of_segments: Mapping[tuple[int, int], Mapping[str, float]] | None = None,
        facets: Callable[[str], Mapping[str, str]] = lambda label: {},
        outputs: Callable[[int, Any, Any], Mapping[str, float]] = lambda t, before, label: {},
    ) -> Float64s:
        """What a segmentation has of each weight [D]; `names` and `arc_names` are those of each position.

        `outputs` are those of feature functions for a position, the label before (None: the start) and its label (None: the
        end).
        """
        found = np.zeros(len(self.place))

        def add(key: Any, value: float = 1.0) -> None:
            if key in self.place:
                found[self.place[key]] += value

        labels = [None, *labels_of(segments, self.scheme), None]
        for t, (previous, following) in enumerate(pairwise(labels)):
            for key, number in outputs(t, previous, following).items():
                add(key, number)
        for position, label in zip(names, labels_of(segments, self.scheme), strict=True):
            for name in position:
                add((name, label))
                for pair in facets(label).items():
                    add((name, ("facet", "=".join(pair))))
        before = None
        for start, end, kind in segments:
            add(("transition", before, kind))
            if before is not None:
                first, second = (facets(labels_of([(0, 2, k)], self.scheme)[0]) for k in (before, kind))
                for what in first.keys() & second.keys():
                    add(("transition", *(("facet", f"{what}={both[what]}") for both in (first, second))))
            for name in arc_names[start] if start else ():
                add((name, before, kind))
            n, known = end - start, self.n_lengths.get(f"{kind} length", 1)
            add(f"{kind} length {n}")
            if n > known:
                add(f"{kind} longer", n - known)
            elif of_segments is not None:
                for name, value in of_segments.get((start, end), {}).items():
                    add(f"{kind} {name}", value)
            before = kind
        add(("transition", before, None))
        return found
