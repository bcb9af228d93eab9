"""y as lists of spans (start, end, type), for models of segments: turned into the labels of positions."""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any

import numpy as np

from crfkit.errors import ImpossibleLabelsError, InputError, LabelError, UnsupportedError, reword
from crfkit.features.position_words import read_once
from crfkit.features.wording import shorten
from crfkit.structures import PLAIN, Segments, iob1_to_bio, segment_labels

_DEFAULT = "bio"


def without_spans(X: Any, y: Any, structure: Segments, which: str = "") -> tuple[Any, Any]:
    """X and y, the latter as lists of labels. Labels stay as they are."""
    if _is_whole(y):
        return X, y
    X, y = read_once(X), [given if _is_whole(given) else list(given) for given in y]
    if not isinstance(X, Sequence) or len(X) != len(y) or not all(isinstance(given, list) for given in y):
        return X, y
    if not _has_spans([len(x) for x in X], y, which):
        return X, [
            _to_bio(f"{which}sequence {n}", labels) for n, labels in enumerate(y)
        ] if structure.reads_iob1 else y
    scheme = _DEFAULT if structure.reads_iob1 else (structure.scheme or _DEFAULT).lower()
    return X, [
        _labels(f"{which}sequence {n}", len(x), spans, scheme)
        for n, (x, spans) in enumerate(zip(X, y, strict=True))
    ]


def _is_whole(given: object) -> bool:
    """Whether something cannot be a list."""
    return isinstance(given, str | bytes | Mapping | AbstractSet) or not isinstance(given, Iterable)


def _has_spans(lengths: Sequence[int], y: Sequence[list[Any]], which: str) -> bool:
    """Whether y has spans; LabelError where it has spans and labels, or what looks like a span and is none."""
    entries = [(n, entry) for n, given in enumerate(y) for entry in given]
    spans = [entry for _, entry in entries if _is_span(entry)]
    as_labels = [len(given) for given in y] == [*lengths]  # one for each position
    if not entries:
        return not as_labels
    if len(spans) == len(entries):
        return True
    for n, entry in entries:
        is_label = not isinstance(entry, list | Mapping) and (as_labels or not isinstance(entry, tuple))
        if _is_span(entry) or (is_label and (not spans or (as_labels and not isinstance(entry, str)))):
            continue
        beside = f" beside the span {shorten(spans[0])}" if spans and is_label else ""
        raise LabelError(
            f"{which}sequence {n}: y has {shorten(entry)}{beside}, expected spans (start, end, type) with whole numbers in "
            "all sequences, or a label for each position"
        )
    return False


def _is_span(entry: object) -> bool:
    """Whether an entry of y is (start, end, type), or has a probability behind these."""
    if not isinstance(entry, tuple | list) or len(entry) not in (3, 4):
        return False
    return all(isinstance(place, int | np.integer) and not isinstance(place, bool) for place in entry[:2])


def _to_bio(where: str, labels: list[Any]) -> list[Any]:
    """Labels of IOB1 in BIO, which models have."""
    if any(label is None or isinstance(label, AbstractSet) for label in labels):
        raise UnsupportedError(
            f"{where}: None and sets of labels do not go with the scheme iob1, expected labels of bio"
        )
    try:
        return iob1_to_bio(labels)
    except InputError as error:
        joint = ", " if isinstance(error, ImpossibleLabelsError) else ": "
        raise reword(error, f"{where}{joint}{str(error).rstrip('.')}") from None


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
        if not (
            isinstance(kind, Hashable) and kind is not None if scheme == PLAIN else isinstance(kind, str)
        ):
            expected = (
                "a label" if scheme == PLAIN else f"a text as type: labels of the scheme {scheme} have one"
            )
            raise LabelError(f"{where}: the span {shorten((start, end, kind))}, expected {expected}")
        if scheme == PLAIN and (kind == "O" or (start == before and kind == kind_before)):
            raise LabelError(
                f"{where}: the span {shorten((start, end, kind))} is the same as its neighbours: {PLAIN} segments "
                f"are runs of equal labels; expected another scheme, such as {_DEFAULT!r}"
            )
        found[start:end] = segment_labels(kind, end - start, scheme)
        before, kind_before = end, kind
    return found
