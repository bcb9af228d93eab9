"""The segments that training data have, from the list of all segmentations that an annotation allows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from crfkit import CRF, Segments
from tests.oracles.segmentations import labels_of, segmentations

TYPES = {"bio": ["O", "P", "Q"], "iobes": ["O", "P"], "plain": ["A", "B", "C"]}


def _place(x: Any, start: int, end: int) -> str:
    """A name of its own for each segment of the training data."""
    return f"{x[0][0]} {start} {end}"


def _allows(y: list[Any], labels: list[str]) -> bool:
    return all(a is None or b == a or (isinstance(a, set) and b in a) for a, b in zip(y, labels, strict=True))


def _expected(y: list[Any], types: list[str], scheme: str, longest: int) -> set[tuple[int, int, str]]:
    """The segments of all segmentations that y allows, if y says something of one of their positions."""
    return {
        (start, end, kind)
        for segments in segmentations(len(y), types, scheme, {})
        if _allows(y, labels_of(segments, scheme))
        for start, end, kind in segments
        if end - start <= longest and any(entry is not None for entry in y[start:end])
    }


def _found(y: list[list[Any]], structure: Segments) -> list[set[tuple[int, int, str]]]:
    """The segments that have weights of features, sequence by sequence; the last sequences name all labels."""
    x = [[(str(n),)] * len(labels) for n, labels in enumerate(y)]
    crf: CRF[Any] = CRF(structure, "U:%x[0,0]\nB", l2=1.0)
    names = crf.fit(x, y).structure_names_
    seen: list[set[tuple[int, int, str]]] = [set() for _ in y]
    for name in names:
        match name.split():
            case [kind, n, start, end]:
                seen[int(n)].add((int(start), int(end), kind))
    return seen


@pytest.mark.parametrize("scheme", TYPES)
@pytest.mark.parametrize("longest", [2, 20])
def test_segments_of_partial_labels(scheme: str, longest: int) -> None:
    random, types = np.random.default_rng(3), TYPES[scheme]
    classes = sorted({b for s in segmentations(4, types, scheme, {}) for b in labels_of(s, scheme)})
    y: list[list[Any]] = []
    for _ in range(20):
        every = [*segmentations(5, types, scheme, {})]
        gold = labels_of(every[random.integers(len(every))], scheme)
        hidden = random.random(5)
        y.append(
            [
                None if h < 0.3 else {label, *random.choice(classes, 2).tolist()} if h < 0.7 else label
                for label, h in zip(gold, hidden, strict=True)
            ]
        )
    whole = [labels_of([(0, n, kind)], scheme) for kind in types for n in (1, 2, 3)]
    whole = [labels for labels in whole if scheme == "plain" or labels.count("O") < 2]
    structure = Segments(scheme=scheme, longest_weighted=longest, segment_features=_place)
    for entries, found in zip(y, _found([*y, *whole], structure), strict=False):
        assert found == _expected(entries, types, scheme, longest)


def test_a_set_has_weights_for_each_of_its_labels() -> None:
    y: list[list[Any]] = [[{"B-X", "O"}, {"I-X", "O"}, "O"], ["B-Y", None, None], [None, None, None]]
    found = _found(y, Segments(segment_features=_place))
    assert found[0] == {(0, 1, "X"), (0, 1, "O"), (0, 2, "X"), (1, 2, "O"), (2, 3, "O")}
    assert found[1] == {(0, 1, "Y")}  # no label I-Y exists
    assert found[2] == set()
