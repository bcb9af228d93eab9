"""y as lists of spans (start, end, type), for models of segments: turned into the labels of positions."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from crfkit.errors import LabelError
from crfkit.features.tag_dictionary import read_once
from crfkit.features.wording import shorten
from crfkit.structures import PLAIN, Segments, segment_labels

_DEFAULT = "bio"


def without_spans(X: Any, y: Any, structure: object, which: str = "") -> tuple[Any, Any]:
    """X and y, the latter as lists of labels. Labels stay as they are, and so does all that is not for segments."""
    if (
        not isinstance(structure, Segments)
        or isinstance(y, str | bytes | Mapping)
        or not isinstance(y, Iterable)
    ):
        return X, y
    X, y = read_once(X), [list(given) if isinstance(given, Iterable) else given for given in y]
    if not isinstance(X, Sequence) or len(X) != len(y) or not all(isinstance(given, list) for given in y):
        return X, y
    some = any(given if given else len(x) for x, given in zip(X, y, strict=True))
    if not some or not all(_is_span(entry) for given in y for entry in given):
        return X, y
    scheme = (structure.scheme or _DEFAULT).lower()
    return X, [
        _labels(f"{which}sequence {n}", len(x), spans, scheme)
        for n, (x, spans) in enumerate(zip(X, y, strict=True))
    ]


def _is_span(entry: object) -> bool:
    """Whether an entry of y is (start, end, type), or has a probability behind these."""
    if not isinstance(entry, tuple) or len(entry) not in (3, 4):
        return False
    return all(isinstance(place, int | np.integer) and not isinstance(place, bool) for place in entry[:2])


def _labels(where: str, length: int, spans: Iterable[Any], scheme: str) -> list[Any]:
    """The labels of the positions of one sequence."""
    found: list[Any] = ["O"] * length
    before, kind_before = 0, None
    for start, end, kind in sorted((span[:3] for span in spans), key=lambda span: (span[0], span[1])):
        if not before <= start < end <= length:
            raise LabelError(
                f"{where}: the span {shorten((start, end, kind))} of {length} positions, expected spans that do not "
                "overlap, with 0 ≤ start < end ≤ the number of positions"
            )
        if scheme == PLAIN and (kind == "O" or (start == before and kind == kind_before)):
            raise LabelError(
                f"{where}: the span {shorten((start, end, kind))} is the same as its neighbours: {PLAIN} segments "
                f"are runs of equal labels; expected another scheme, such as {_DEFAULT!r}"
            )
        found[start:end] = segment_labels(kind, end - start, scheme)
        before, kind_before = end, kind
    return found
