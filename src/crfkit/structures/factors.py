"""The factors of a factor graph: tables, lists of configurations, numbers of variables with a value, equality."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from crfkit.arrays import Float64s, Int32s
from crfkit.errors import ArgumentError, ShapeError

LARGEST_TABLE = (
    1 << 16
)  # entries up to which a list with a score for all other configurations becomes a table


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
            raise ShapeError(f"expected scores {list(shape)}, got {list(table.shape)}.")
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
    """Some configurations with their scores; all others are impossible, or have one score."""

    configurations: Int32s  # [n, variables] ids of values
    listed: Float64s  # [n], or [n + 1] where the last one is the score of all other configurations
    has_other: bool = False

    @classmethod
    def checked(
        cls,
        scope: tuple[int, ...],
        configurations: Int32s,
        scores: Sequence[float],
        other: float = -math.inf,
    ) -> ListFactor:
        """From ids of values that are known to be right; `other` is the score of all other configurations."""
        if not len(scores):
            raise ArgumentError("it lists no configuration, expected at least one.")
        has_other = other != -math.inf
        return cls(scope, configurations, _numbers([*scores, other] if has_other else scores), has_other)

    def table(self, shape: tuple[int, ...]) -> TableFactor:
        """The same as a table."""
        table = np.full(shape, self.listed[-1] if self.has_other else -np.inf)
        listed = self.listed[: len(self.configurations)]
        table[tuple(self.configurations.T)] = listed if shape else listed[0]
        return TableFactor(self.variables, table)

    @property
    def scores(self) -> Float64s:
        """Those of the configurations [n], and of all others together [n + 1] where these are possible."""
        return self.listed

    def place(self, values: Int32s) -> int | None:
        """Where the configuration is listed."""
        found = np.flatnonzero((self.configurations == values).all(axis=1))
        if len(found):
            return int(found[0])
        return len(self.configurations) if self.has_other else None


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
                f"expected scores [{len(scope) + 1}], one for each number 0 … {len(scope)}, "
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
        if np.iscomplexobj(scores):
            raise TypeError("they are complex")
        array = np.array(scores, dtype=np.float64, order="C")
    except (TypeError, ValueError) as error:
        raise ArgumentError(f"scores are no array of numbers: {error}.") from None
    if np.isnan(array).any() or (array == np.inf).any():
        wrong = array[np.isnan(array) | (array == np.inf)].flat[0]
        raise ArgumentError(f"got the score {wrong}, expected finite numbers or −inf.")
    array.flags.writeable = False
    return array
