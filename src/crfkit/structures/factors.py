"""The factors of a factor graph: tables, lists of configurations, numbers of variables with a value, equality."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from crfkit.arrays import Float64s, Int32s
from crfkit.errors import ArgumentError, ShapeError, SizeLimitError

LARGEST_TABLE = 1 << 24  # entries that a list with a score for all other configurations may become


@dataclass(frozen=True, eq=False)
class Factor:
    """Scores some variables together."""

    variables: tuple[int, ...]  # their numbers in the graph

    @property
    def scores(self) -> Float64s:
        """Its numbers; how they are read is up to the kind of factor."""
        return np.zeros(0)

    def place(self, values: Int32s) -> int | None:
        """Which of its numbers scores a configuration, given by the ids of its values; None: it is impossible."""
        raise NotImplementedError

    def score(self, values: Int32s) -> float:
        """The score of one configuration."""
        place = self.place(values)
        return -np.inf if place is None else float(self.scores.reshape(-1)[place])


@dataclass(frozen=True, eq=False)
class TableFactor(Factor):
    """A score for each configuration."""

    table: Float64s  # one axis for each variable

    @classmethod
    def checked(cls, scope: tuple[int, ...], shape: tuple[int, ...], scores: npt.ArrayLike) -> TableFactor:
        """From an array of this shape, without NaN and +inf."""
        table = _numbers(scores)
        if table.shape != shape:
            raise ShapeError(f"Factor: expected scores {list(shape)}, got {list(table.shape)}.")
        return cls(scope, table)

    @property
    def scores(self) -> Float64s:
        """The table."""
        return self.table

    def place(self, values: Int32s) -> int | None:
        """The entry of the configuration."""
        place = 0
        for value, count in zip(values, self.table.shape, strict=True):
            place = place * count + int(value)
        return place


@dataclass(frozen=True, eq=False)
class ListFactor(Factor):
    """Some configurations with their scores; no other is possible."""

    configurations: Int32s  # [n, variables] ids of values
    listed: Float64s  # [n]

    @classmethod
    def checked(cls, scope: tuple[int, ...], configurations: Int32s, scores: Float64s) -> ListFactor:
        """From ids of values that are known to be right."""
        if not len(scores):
            raise ArgumentError("Factor: it lists no configuration, expected at least one.")
        return cls(scope, configurations, _numbers(scores))

    def table(self, shape: tuple[int, ...], other: float) -> TableFactor:
        """The same as a table, in which all other configurations have this score."""
        size = 1
        for count in shape:
            size *= count
        if size > LARGEST_TABLE:
            raise SizeLimitError(
                f"Factor: a table of {size:,} configurations, expected at most {LARGEST_TABLE:,} where configurations "
                "that are not listed are possible."
            )
        table = np.full(shape, float(_numbers(other)))
        table[tuple(self.configurations.T)] = self.listed
        return TableFactor(self.variables, table)

    @property
    def scores(self) -> Float64s:
        """Those of the configurations [n]."""
        return self.listed

    def place(self, values: Int32s) -> int | None:
        """Where the configuration is listed."""
        found = np.flatnonzero((self.configurations == values).all(axis=1))
        return int(found[0]) if len(found) else None


@dataclass(frozen=True, eq=False)
class CountFactor(Factor):
    """Scores how many of its variables have a certain value each."""

    counted: tuple[int, ...]  # the ids of these values
    by_count: Float64s  # [variables + 1]

    @classmethod
    def checked(cls, scope: tuple[int, ...], counted: Sequence[int], scores: npt.ArrayLike) -> CountFactor:
        """From a score for each number."""
        by_count = _numbers(scores)
        if by_count.shape != (len(scope) + 1,):
            raise ShapeError(
                f"Factor over the number of {len(scope)} variables: expected scores [{len(scope) + 1}], "
                f"got {list(by_count.shape)}."
            )
        return cls(scope, tuple(counted), by_count)

    @property
    def scores(self) -> Float64s:
        """Those of the numbers [variables + 1]."""
        return self.by_count

    def place(self, values: Int32s) -> int | None:
        """The number of variables with their value."""
        return int(np.sum(np.asarray(values) == np.array(self.counted, dtype=np.int32)))


@dataclass(frozen=True, eq=False)
class EqualFactor(Factor):
    """All variables have values with the same id."""

    def place(self, values: Int32s) -> int | None:
        """0 for equal values; it has no number."""
        return 0 if len(set(np.asarray(values).tolist())) <= 1 else None

    def score(self, values: Int32s) -> float:
        """0 for equal values."""
        return -np.inf if self.place(values) is None else 0.0


def _numbers(scores: npt.ArrayLike) -> Float64s:
    """A read-only copy without NaN and +inf."""
    try:
        array = np.array(scores, dtype=np.float64, order="C")
    except (TypeError, ValueError) as error:
        raise ArgumentError(f"Factor: scores are no array of numbers: {error}.") from None
    if np.isnan(array).any() or (array == np.inf).any():
        wrong = array[np.isnan(array) | (array == np.inf)].flat[0]
        raise ArgumentError(f"Factor: got the score {wrong}, expected finite numbers or −inf.")
    array.flags.writeable = False
    return array
