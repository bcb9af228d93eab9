"""Counts of label n-grams and affixes in training data or a list of words, which become patterns.

A gram is a run of labels, anywhere or only at the start or the end of a sequence.
"""

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from crfkit.arrays import Float64s, Int32s, Int64s
from crfkit.errors import ArgumentError
from crfkit.structures.pattern_language import quote

ANYWHERE = 0
"""A gram that may occur anywhere."""
FIRST = 1
"""A gram of the first labels of a sequence."""
LAST = 2
"""A gram of the last labels of a sequence."""
LONGEST = 1000
ByLength = int | Mapping[int, int]


class Gram(NamedTuple):
    """A run of labels: their ids, and where it may occur."""

    where: int
    labels: tuple[int, ...]

    def text(self, names: Sequence[Hashable]) -> str:
        """The pattern that matches it, over labels with these names."""
        run = " ".join(quote(str(names[label])) for label in self.labels)
        return f"{'^' * (self.where == FIRST)}{run}{'$' * (self.where == LAST)}"


@dataclass(frozen=True)
class Ngrams:
    """The label n-grams of the training data, each a pattern with its own weight.

    lengths : number of labels of an n-gram, or several such numbers
    min_count : drop those that occur less often; a dict gives it by length
    most : keep at most this many of each length, the most frequent; a dict gives it by length, None: all

    >>> Ngrams(3, min_count=2)
    Ngrams(lengths=(3,), min_count=2, most=None)
    """

    lengths: int | Iterable[int]
    min_count: ByLength = 1
    most: ByLength | None = None

    def __post_init__(self) -> None:
        """Check the arguments."""
        object.__setattr__(self, "lengths", _lengths("Ngrams", self.lengths))
        _check_limits("Ngrams", self.min_count, self.most)

    def grams(self, ids: Int32s, ptr: Int64s) -> list[Gram]:
        """Those of label ids [T] (−1: unknown), the positions of sequence n being ptr[n]:ptr[n + 1]."""
        found: list[Gram] = []
        for length in self.lengths:  # type: ignore[union-attr]
            runs, which, _ = places(ids, ptr, length)
            counts = np.bincount(which, minlength=len(runs)).astype(np.int64)
            found += _choose([(ANYWHERE, runs, counts)], length, self.min_count, self.most)
        return found


@dataclass(frozen=True)
class Affixes:
    """The first and the last labels of sequences, as patterns anchored at the start and at the end.

    lengths : number of labels: a number for all lengths from 1 up to it, or several lengths
    of : the sequences to take them from, None: the training data. A string is the sequence of its characters; a dict has
        sequences and how often each counts. Sequences with labels that the model does not have count for as far as they go.
    min_count : drop those that occur less often; a dict gives it by length
    most : keep at most this many of each length, prefixes and suffixes together, the most frequent; a dict gives it by
        length
    prefixes, suffixes : whether to use each of the two

    >>> Affixes(2, of=["in", "on"], suffixes=False).lengths
    (1, 2)
    """

    lengths: int | Iterable[int]
    of: Iterable[Sequence[Hashable]] | Mapping[Sequence[Hashable], int] | None = None
    min_count: ByLength = 1
    most: ByLength | None = None
    prefixes: bool = True
    suffixes: bool = True

    def __post_init__(self) -> None:
        """Check the arguments; read the sequences once."""
        lengths = self.lengths
        if isinstance(lengths, int | np.integer) and not isinstance(lengths, bool):
            lengths = range(1, max(int(lengths), 0) + 1)
        object.__setattr__(self, "lengths", _lengths("Affixes", lengths))
        _check_limits("Affixes", self.min_count, self.most)
        if not (self.prefixes or self.suffixes):
            raise ArgumentError("Affixes: prefixes and suffixes are both False, expected at least one True.")
        if self.of is not None and not isinstance(self.of, Mapping):
            if isinstance(self.of, str) or not isinstance(self.of, Iterable):
                raise ArgumentError(f"Affixes.of is {self.of!r}, expected a list of sequences of labels.")
            object.__setattr__(self, "of", tuple(map(_hashable, self.of)))
        for word in self.of or ():
            _check_word(word, self.of[word] if isinstance(self.of, Mapping) else 1)

    def __repr__(self) -> str:
        given = [f"{name}={getattr(self, name)!r}" for name in ("min_count", "most", "prefixes", "suffixes")]
        source = "" if self.of is None else f", of={len(self.of)} sequences"  # type: ignore[arg-type]
        return f"Affixes({self.lengths}{source}, {', '.join(given)})"

    def grams(self, ids: Int32s, ptr: Int64s, labels: Sequence[Hashable]) -> list[Gram]:
        """Those of label ids [T] as for `Ngrams`, or of the sequences that were given."""
        counts = np.ones(len(ptr) - 1)
        if self.of is not None:
            ids, ptr, counts = self._encode(labels)
        found: list[Gram] = []
        for length in self.lengths:  # type: ignore[union-attr]
            long = np.flatnonzero(np.diff(ptr) >= length)  # sequences that are long enough
            ends = []
            for where, wanted, begins in (
                (FIRST, self.prefixes, ptr[:-1][long]),
                (LAST, self.suffixes, ptr[1:][long] - length),
            ):
                if wanted:
                    runs = ids[begins[:, None] + np.arange(length)]
                    known = (runs >= 0).all(axis=1)
                    distinct, which = _distinct(runs[known])
                    sums = np.bincount(which, counts[long][known], len(distinct))
                    ends.append((where, distinct, sums.astype(np.int64)))
            found += _choose(ends, length, self.min_count, self.most)
        return found

    def _encode(self, labels: Sequence[Hashable]) -> tuple[Int32s, Int64s, Float64s]:
        """The given sequences: label ids (−1: unknown to the model), their offsets, and their counts."""
        known = {label: i for i, label in enumerate(labels)}
        counted = dict(self.of) if isinstance(self.of, Mapping) else Counter(self.of or ())
        lengths = np.fromiter(map(len, counted), np.int64, len(counted))
        every = (known.get(label, -1) for word in counted for label in word)
        ids = np.fromiter(every, np.int32, int(lengths.sum()))
        ptr = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])
        return ids, ptr, np.fromiter(counted.values(), np.float64, len(counted))


def _hashable(word: Sequence[Hashable]) -> Sequence[Hashable]:
    return word if isinstance(word, str) or not isinstance(word, Iterable) else tuple(word)


def _check_word(word: object, count: object) -> None:
    """Raise an error for something that is not a sequence of labels, or not a count."""
    if not isinstance(word, str) and not (
        isinstance(word, tuple) and all(isinstance(label, Hashable) for label in word)
    ):
        raise ArgumentError(f"Affixes.of has {word!r}, expected sequences of labels.")
    if not isinstance(count, int | float | np.number) or not 0 <= count < np.inf:
        raise ArgumentError(f"Affixes.of: {word!r} counts {count!r} times, expected a number of at least 0.")


def places(ids: Int32s, ptr: Int64s, length: int) -> tuple[Int32s, Int64s, Int64s]:
    """The distinct runs of `length` known labels within sequences, [n, length], ascending, and their occurrences.

    For each occurrence: the index of the run, and the sequence.
    """
    n_positions = len(ids)
    sequence = np.repeat(np.arange(len(ptr) - 1), np.diff(ptr))  # [T]
    begins = np.arange(max(n_positions - length + 1, 0))
    inside = sequence[begins] == sequence[begins + length - 1]
    unknown = np.concatenate([np.zeros(1, np.int64), np.cumsum(ids < 0)])
    begins = begins[inside & (unknown[begins + length] == unknown[begins])]
    runs: npt.NDArray[np.int32] = ids[begins[:, None] + np.arange(length)]
    return *_distinct(runs), sequence[begins]


def _distinct(runs: Int32s) -> tuple[Int32s, Int64s]:
    """The distinct ones among runs of labels [n, length], ascending, and the index of each, [n]."""
    which = np.zeros(len(runs), np.int64)
    for labels in runs.T:  # ranks by the labels read so far
        keys = which * (int(labels.max(initial=0)) + 1) + labels
        which = np.unique(keys, return_inverse=True)[1].ravel()
    _, first = np.unique(which, return_index=True)
    return runs[first], which


def _choose(
    counted: Sequence[tuple[int, Int32s, Int64s]], length: int, min_count: ByLength, most: ByLength | None
) -> list[Gram]:
    """The grams of one length that the limits keep, of (where, runs, counts), the most frequent first."""
    least = min_count.get(length, 1) if isinstance(min_count, Mapping) else min_count
    limit = most.get(length) if isinstance(most, Mapping) else most
    where = np.concatenate([np.full(len(runs), place) for place, runs, _ in counted])
    runs = np.concatenate([runs for _, runs, _ in counted])
    counts = np.concatenate([counts for _, _, counts in counted])
    order = np.argsort(-counts, kind="stable")
    order = order[counts[order] >= least][:limit]
    return [
        Gram(place, tuple(run))
        for place, run in zip(where[order].tolist(), runs[order].tolist(), strict=True)
    ]


def _lengths(what: str, given: object) -> tuple[int, ...]:
    numbers = (given,) if isinstance(given, int | np.integer) else given
    if isinstance(numbers, str) or not isinstance(numbers, Iterable):
        raise ArgumentError(
            f"{what}: lengths is {given!r}, expected how many labels, or several such numbers."
        )
    lengths = tuple(numbers)
    for length in lengths:
        if not isinstance(length, int | np.integer) or isinstance(length, bool) or not 1 <= length <= LONGEST:
            raise ArgumentError(
                f"{what}: the length {length!r}, expected a whole number from 1 to {LONGEST}."
            )
    if not lengths:
        raise ArgumentError(f"{what}: no length is given, expected at least one.")
    return tuple(dict.fromkeys(int(length) for length in lengths))


def _check_limits(what: str, min_count: object, most: object) -> None:
    for name, limit in (("min_count", min_count), ("most", most)):
        numbers = limit.values() if isinstance(limit, Mapping) else () if limit is None else (limit,)
        for number in numbers:
            if not isinstance(number, int | np.integer) or isinstance(number, bool) or number < 0:
                raise ArgumentError(f"{what}.{name} is {limit!r}, expected whole numbers of at least 0.")
