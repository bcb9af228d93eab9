"""The features of whole segments: functions of (x, start, end), texts of columns, entries of dictionaries.

A cell is a pair (end, length): the segment of so many positions that ends with a position.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from crfkit.arrays import Float64s, Int32s, Int64s, offsets
from crfkit.errors import FunctionError
from crfkit.features.import_paths import NotLoaded
from crfkit.features.tag_dictionary import sequence_words
from crfkit.features.wording import shorten
from crfkit.structures import SegmentFeature, Segments, function_name

_LARGEST = 1e20
Named = Iterable[tuple[str, float]]
Reader = Callable[[int, int], Named]  # of (start, end): names and values


class SegmentCells(NamedTuple):
    """The features of segments, by the position they end at; lengths ascend within a position."""

    cell_ptr: Int64s  # [T + 1] the cells of each last position
    lengths: Int32s  # [cells]
    ptr: Int64s  # [cells + 1]
    ids: Int32s
    values: Float64s


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

    def names(self, n: int, x: Any, segments: Iterable[tuple[int, int]]) -> Iterator[list[tuple[str, float]]]:
        """Names and values of the features of some segments (start, end) of input n."""
        readers = [self._reader(n, x, feature) for feature in self._structure.segment_features]  # type: ignore[union-attr]
        entries = self._matches(n, x)
        for start, end in segments:
            found = list(entries.get((start, end), ()))
            for reader in readers:
                found.extend(reader(start, end))
            yield found

    def cells(self, X: Sequence[Any], ptr: Int64s, longest: int, find: Mapping[str, int]) -> SegmentCells:
        """The features that have an id, of all segments up to a length."""
        per_position = np.zeros(int(ptr[-1]), np.int64)
        lengths: list[int] = []
        counts: list[int] = []
        ids: list[int] = []
        values: list[float] = []
        for n, x in enumerate(X):
            begin, T = int(ptr[n]), int(ptr[n + 1] - ptr[n])
            listed = [(t - k + 1, t + 1) for t in range(T) for k in range(1, min(longest, t + 1) + 1)]
            for (start, end), named in zip(listed, self.names(n, x, listed), strict=True):
                known = [(find[name], value) for name, value in named if name in find]
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

    def _reader(self, n: int, x: Any, feature: SegmentFeature | int | str) -> Reader:
        if callable(feature):
            return lambda start, end: _named(n, x, feature, start, end)
        words = list(sequence_words(n, x, feature, "a segment feature needs"))
        return lambda start, end: ((f"{feature}={' '.join(words[start:end])}", 1.0),)

    def _matches(self, n: int, x: Any) -> dict[tuple[int, int], list[tuple[str, float]]]:
        """The segments that are entries of dictionaries."""
        found: dict[tuple[int, int], list[tuple[str, float]]] = {}
        if not self._trie:
            return found
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


def _named(n: int, x: Any, function: SegmentFeature, start: int, end: int) -> Named:
    """What a function gives for a segment; InputError for what is neither names nor {name: value}."""
    where = f"sequence {n}, positions {start} to {end - 1}: the segment feature {function_name(function)!r}"
    try:
        given = function(x, start, end)
    except Exception as error:
        raise FunctionError(f"{where} failed ({type(error).__name__}: {error})") from error
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
