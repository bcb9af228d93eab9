"""The features of whole segments: functions of (x, start, end) or of x, templates, texts of columns, dictionaries.

A cell is a pair (end, length): the segment of so many positions that ends with a position.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from crfkit.arrays import Float64s, Int32s, Int64s, offsets
from crfkit.errors import FunctionError
from crfkit.features.import_paths import NotLoaded
from crfkit.features.position_words import sequence_words
from crfkit.features.wording import shorten
from crfkit.structures import SegmentExtractor, SegmentFeature, SegmentMatches, Segments, function_name

_LARGEST = 1e20
Named = Iterable[tuple[str, float]]
Reader = Callable[[int, int], Named]  # of (start, end): names and values
Found = dict[tuple[int, int], list[tuple[str, float]]]  # (start, end) → names and values


class SegmentCells(NamedTuple):
    """The features of segments, by the position they end at; lengths ascend within a position."""

    cell_ptr: Int64s  # [T + 1] the cells of each last position
    lengths: Int32s  # [cells]
    ptr: Int64s  # [cells + 1]
    ids: Int32s
    values: Float64s


class InputReader(NamedTuple):
    """Reads the features of the segments of one input."""

    readers: list[Reader]
    some: set[tuple[int, int]] | None  # the only segments that have features; None: all may have some
    unseen: list[Found]  # whose names have weights where no segment of the training data has them

    def names(self, start: int, end: int) -> list[tuple[str, float]]:
        """Names and values of the features of a segment."""
        return [pair for reader in self.readers for pair in reader(start, end)]

    def segments(self, T: int, longest: int) -> list[tuple[int, int]]:
        """The segments up to a length that may have features, by end and length."""
        if self.some is None:
            return [(t - k + 1, t + 1) for t in range(T) for k in range(1, min(longest, t + 1) + 1)]
        listed = [segment for segment in self.some if segment[1] - segment[0] <= longest]
        return sorted(listed, key=lambda segment: (segment[1], -segment[0]))


class SegmentReader:
    """Reads the features of the segments of inputs."""

    def __init__(self, structure: Segments) -> None:
        self._structure = structure
        self._trie: dict[
            Any, Any
        ] = {}  # word → the next level; None → names of the dictionaries that end here
        for name, entries in structure.dictionaries.items():
            for entry in entries:
                level = self._trie
                for word in entry:
                    level = level.setdefault(word, {})
                level.setdefault(None, []).append((f"in {name}", 1.0))
        for feature in structure.functions:
            if isinstance(feature, NotLoaded):
                feature()
        given: Any = structure.segment_features
        for feature in given:
            if isinstance(feature, SegmentExtractor):
                feature.check_resources()

    def read(self, n: int, x: Any) -> "InputReader":
        """The features of the segments of input n."""
        features: Any = self._structure.segment_features
        tables = [self._matches(n, x)] if self._trie else []
        readers = [_look_up(table) for table in tables]
        unseen = []
        for feature in features:
            if isinstance(feature, SegmentMatches):
                tables.append(_found(n, x, feature.function))
                readers.append(_look_up(tables[-1]))
                unseen += [tables[-1]] * feature.unseen
            else:
                readers.append(self._reader(n, x, feature))
        sparse = len(tables) == len(readers)
        return InputReader(readers, {*chain.from_iterable(tables)} if sparse else None, unseen)

    def cells(self, X: Sequence[Any], ptr: Int64s, longest: int, find: Mapping[str, int]) -> SegmentCells:
        """The features that have an id, of all segments up to a length."""
        per_position = np.zeros(int(ptr[-1]), np.int64)
        lengths: list[int] = []
        counts: list[int] = []
        ids: list[int] = []
        values: list[float] = []
        for n, x in enumerate(X):
            begin, T = int(ptr[n]), int(ptr[n + 1] - ptr[n])
            reader = self.read(n, x)
            for start, end in reader.segments(T, longest):
                known = [(find[name], value) for name, value in reader.names(start, end) if name in find]
                if known:
                    per_position[begin + end - 1] += 1
                    lengths.append(end - start)
                    counts.append(len(known))
                    ids.extend(i for i, _ in known)
                    values.extend(value for _, value in known)
        return SegmentCells(
            offsets(per_position),
            np.array(lengths, np.int32),
            offsets(counts),
            np.array(ids, np.int32),
            np.array(values, np.float64),
        )

    def _reader(self, n: int, x: Any, feature: SegmentFeature | SegmentExtractor | int | str) -> Reader:
        if isinstance(feature, SegmentExtractor):
            return feature.open(n, x)
        if callable(feature):
            return lambda start, end: _named(n, x, feature, start, end)
        words = list(sequence_words(n, x, feature, "a segment feature needs"))
        return lambda start, end: ((f"{feature}={' '.join(words[start:end])}", 1.0),)

    def _matches(self, n: int, x: Any) -> Found:
        """The segments that are entries of dictionaries."""
        found: Found = {}
        words = list(sequence_words(n, x, self._structure.column, "a dictionary needs"))
        for start in range(len(words)):
            level = self._trie
            for end in range(start, len(words)):
                level = level.get(words[end], {})
                if not level:
                    break
                if None in level:
                    found[start, end + 1] = level[None]
        return found


def _look_up(table: Found) -> Reader:
    return lambda start, end: table.get((start, end), ())


def _found(n: int, x: Any, function: Callable[[Any], Iterable[tuple[int, int, Any]]]) -> Found:
    """What a function gives for the segments that it yields; FunctionError for what are none of the input."""
    where = f"sequence {n}: the segment feature {function_name(function)!r}"
    found: Found = {}
    try:
        for start, end, given in function(x):
            whole = all(isinstance(place, int | np.integer) for place in (start, end))
            if not (whole and 0 <= start < end <= len(x)):
                raise FunctionError(
                    f"{where} gives the segment {shorten((start, end))}, expected a start and an end within its "
                    f"{len(x)} positions"
                )
            found.setdefault((int(start), int(end)), []).extend(_pairs(given, where))
    except FunctionError:
        raise
    except Exception as error:
        raise FunctionError(f"{where} failed ({type(error).__name__}: {error})") from error
    return found


def _named(n: int, x: Any, function: SegmentFeature, start: int, end: int) -> Named:
    """What a function gives for a segment."""
    where = f"sequence {n}, positions {start} to {end - 1}: the segment feature {function_name(function)!r}"
    try:
        given = function(x, start, end)
    except Exception as error:
        raise FunctionError(f"{where} failed ({type(error).__name__}: {error})") from error
    return _pairs(given, where)


def _pairs(given: Any, where: str) -> Named:
    """Names and values; FunctionError for what is neither names nor {name: value}."""
    if given is None:
        return ()
    if isinstance(given, str):
        return ((given, 1.0),)
    if not isinstance(given, Iterable):
        raise FunctionError(f"{where} gives {shorten(given)}, expected names or {{name: number}}")
    pairs = given.items() if isinstance(given, Mapping) else ((name, 1.0) for name in given)
    found = []
    for name, value in pairs:
        number = isinstance(value, int | float | np.number | np.bool_) and abs(float(value)) <= _LARGEST
        if not isinstance(name, str) or not number:
            raise FunctionError(f"{where} gives {shorten(given)}, expected names or {{name: number}}")
        found.append((name, float(value)))
    return found
