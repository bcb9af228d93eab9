"""A factor graph by dense tables alone, which is what the core reads.

Factors that are no tables are written with variables that are added for them, so that no table grows with the number of
variables:

- a list of n configurations over many variables: one more variable, the configuration, with n values; a table of zeros and
  −inf for it and each variable;
- a list of n configurations where others are possible: which of the listed ones the first 1, 2, 3, … variables begin, or
  none, each given the one before;
- the number of variables with a value: the numbers among the first 1, 2, 3, … of them, each given the one before;
- equality: each variable equals the one before.

Every assignment of the graph belongs to exactly one of the tables with a score above −inf, so log Z, marginals and all other
answers are the same.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from crfkit.arrays import Float64s, Int32s, Int64s, offsets
from crfkit.errors import ArgumentError, ShapeError, SizeLimitError
from crfkit.structures.factors import CountFactor, EqualFactor, Factor, ListFactor, TableFactor

SMALL_TABLE = 4096  # entries up to which a list of configurations is written as a table
LARGEST_PREFIX_TABLE = 1 << 24  # entries
LARGEST_TABLES = (
    1 << 27
)  # entries of all tables of a graph, if some of them are made for factors that are no tables: 1 GiB


@dataclass(frozen=True, eq=False)
class FactorTables:
    """Variables with cardinalities and tables of scores, the last variable of a table the fastest.

    Factor f of the graph has its scores at `places[f]` of the flat `scores`; −1 marks one that no assignment has.
    """

    n_variables: int  # of the graph: the first ones; the rest are added
    cardinalities: Int32s  # [V]
    scope_ptr: Int64s  # [F + 1]
    scopes: Int32s  # variables of each table
    table_ptr: Int64s  # [F + 1] where each table begins among the scores
    scores: Float64s
    places: Sequence[Int64s]
    begins: Sequence[int]  # where the scores of a factor begin that lie side by side; −1: they do not
    plans: dict[tuple[Hashable, ...], Any] = field(
        default_factory=dict
    )  # what inference prepares, kept as long as these tables

    def read(self, scores: Any, what: str) -> list[Float64s]:
        """Numbers for each factor of the graph, in a list of arrays."""
        if isinstance(scores, str | Mapping) or not isinstance(scores, Iterable):
            raise ShapeError(
                f"Factor graph: {what} is {scores!r}, expected a list with one array for each factor."
            )
        arrays = []
        for number, given in enumerate(scores):
            try:
                arrays.append(np.asarray(given, dtype=np.float64))
            except (TypeError, ValueError) as error:
                raise ArgumentError(
                    f"Factor graph: {what}[{number}] is no array of numbers: {error}."
                ) from None
        return arrays

    def with_scores(self, scores: Sequence[Float64s], other: float | None = None) -> Float64s:
        """The flat scores where each factor of the graph has the given numbers instead of its own.

        `other` replaces the numbers of tables that were added: 0 for a direction of the scores.
        """
        if len(scores) != len(self.places):
            raise ShapeError(f"Factor graph: scores of {len(scores)} factors, expected {len(self.places)}.")
        flat = self.scores.copy() if other is None else np.full_like(self.scores, other)
        for number, (places, array) in enumerate(zip(self.places, scores, strict=True)):
            if array.shape != places.shape:
                raise ShapeError(
                    f"Factor {number}: expected scores {list(places.shape)}, got {list(array.shape)}."
                )
            begin = self.begins[number]
            if begin >= 0:
                flat[begin : begin + array.size] = array.reshape(-1)
            else:
                flat[places[places >= 0]] = array[places >= 0]
        return flat

    def of_factors(self, flat: Float64s) -> list[Float64s]:
        """Numbers of the tables, such as marginals, for each factor of the graph."""
        return [
            flat[begin : begin + places.size].reshape(places.shape)
            if begin >= 0
            else np.where(places >= 0, flat[np.maximum(places, 0)], 0.0)
            for places, begin in zip(self.places, self.begins, strict=True)
        ]


@dataclass
class _Writer:
    cardinalities: list[int]
    scopes: list[tuple[int, ...]] = field(default_factory=list)
    tables: list[Float64s] = field(default_factory=list)
    size: int = 0

    def variable(self, count: int) -> int:
        self.cardinalities.append(count)
        return len(self.cardinalities) - 1

    def reserve(self, entries: int, what: str) -> None:
        """Refuse tables with so many entries, before they are made, if all of them would be too many."""
        if self.size + entries > LARGEST_TABLES:
            raise SizeLimitError(
                f"Factor graph: {what} makes tables of {entries:,} entries"
                + (f" beside {self.size:,} others" if self.size else "")
                + f", expected at most {LARGEST_TABLES:,} together."
            )

    def table(self, scope: tuple[int, ...], scores: Float64s) -> Int64s:
        """Adds a table; returns the places of its scores."""
        self.scopes.append(scope)
        self.tables.append(scores.reshape(-1))
        self.size += scores.size
        return np.arange(self.size - scores.size, self.size, dtype=np.int64).reshape(scores.shape)


def expand(cardinalities: Sequence[int], factors: Sequence[Factor]) -> FactorTables:
    """The tables of these factors."""
    writer = _Writer(list(cardinalities))
    places, begins = [], []
    for factor in factors:
        begins.append(writer.size if isinstance(factor, TableFactor) else -1)
        places.append(_write(writer, factor))
    return FactorTables(
        n_variables=len(cardinalities),
        cardinalities=np.array(writer.cardinalities, dtype=np.int32),
        scope_ptr=offsets([len(scope) for scope in writer.scopes]),
        scopes=np.array([v for scope in writer.scopes for v in scope], dtype=np.int32),
        table_ptr=offsets([table.size for table in writer.tables]),
        scores=np.concatenate([np.zeros(0), *writer.tables]),
        places=places,
        begins=begins,
    )


def _write(writer: _Writer, factor: Factor) -> Int64s:
    match factor:
        case TableFactor():
            return writer.table(factor.variables, factor.table)
        case ListFactor():
            return _write_list(writer, factor)
        case CountFactor():
            return _write_count(writer, factor)
        case EqualFactor():
            n_values = writer.cardinalities[factor.variables[0]] if factor.variables else 0
            entries = max(0, len(factor.variables) - 1) * n_values**2
            writer.reserve(entries, f"equality of {len(factor.variables):,} variables of {n_values:,} values")
            for before, variable in zip(factor.variables, factor.variables[1:], strict=False):
                same = np.where(np.eye(writer.cardinalities[variable], dtype=bool), 0.0, -np.inf)
                writer.table((before, variable), same)
            return np.zeros(0, dtype=np.int64)
        case _:
            raise TypeError(f"Factor graph: a factor of the kind {type(factor).__name__}.")


def _write_list(writer: _Writer, factor: ListFactor) -> Int64s:
    shape = tuple(writer.cardinalities[v] for v in factor.variables)
    size = 1
    for count in shape:
        size *= count
    if factor.has_other:
        return _write_prefixes(writer, factor, shape)
    if size <= SMALL_TABLE:
        places = writer.table(factor.variables, factor.table(shape).table)
        return places[tuple(factor.configurations.T)] if shape else places.reshape(1)
    n = len(factor.listed)
    writer.reserve(n * (1 + sum(shape)), f"a list of {n:,} configurations of {len(shape):,} variables")
    listed = writer.variable(n)
    for place, variable in enumerate(factor.variables):
        table = np.full((len(factor.listed), shape[place]), -np.inf)
        table[np.arange(len(table)), factor.configurations[:, place]] = 0.0
        writer.table((listed, variable), table)
    return writer.table((listed,), factor.listed)


def _write_prefixes(writer: _Writer, factor: ListFactor, shape: tuple[int, ...]) -> Int64s:
    """prefix_i = which beginning of a listed configuration the first i variables have; the last value: none."""
    rows = factor.configurations
    n = len(rows)
    of_row, count = np.zeros(n, dtype=np.int64), 1  # the prefix that each row has, and how many there are
    before: int | None = None
    for i, variable in enumerate(factor.variables):
        pairs, longer = np.unique(of_row * shape[i] + rows[:, i], return_inverse=True)
        entries = (count + 1) * shape[i] * (len(pairs) + 1)
        if entries > LARGEST_PREFIX_TABLE:
            raise SizeLimitError(
                f"Factor over {len(shape)} variables: a list of {n:,} configurations, of which others are possible, makes a "
                f"table of {entries:,} entries, expected at most {LARGEST_PREFIX_TABLE:,}."
            )
        table = np.full((count + 1, shape[i], len(pairs) + 1), -np.inf)
        nexts = np.full((count + 1, shape[i]), len(pairs))
        nexts[pairs // shape[i], pairs % shape[i]] = np.arange(len(pairs))
        np.put_along_axis(table, nexts[:, :, None], 0.0, axis=2)
        prefix = writer.variable(len(pairs) + 1)
        if before is None:
            writer.table((variable, prefix), table[0])
        else:
            writer.table((before, variable, prefix), table)
        before, of_row, count = prefix, longer.reshape(-1).astype(np.int64), len(pairs)
    own = np.empty(n + 1)
    own[[*of_row, n]] = factor.listed
    assert before is not None  # without variables it is a table
    return writer.table((before,), own)[[*of_row, n]]


def _write_count(writer: _Writer, factor: CountFactor) -> Int64s:
    """count_i = count_{i−1} + [variable i has its value]. Counts above the largest possible one are one value of it."""
    possible = np.flatnonzero(factor.by_count > -np.inf)
    # with no possible number, one value that scores −inf; counts beyond `most` are one value, "too many"
    most = int(possible[-1]) if len(possible) else 0
    sizes = [min(i, most + 1) + 1 for i in range(len(factor.variables) + 1)]
    entries = sum(
        size * writer.cardinalities[v] * after
        for size, v, after in zip(sizes, factor.variables, sizes[1:], strict=False)
    )
    writer.reserve(entries, f"counting up to {most:,} of {len(factor.variables):,} variables")
    before: int | None = None
    for i, (variable, value) in enumerate(zip(factor.variables, factor.counted, strict=True)):
        count = writer.variable(sizes[i + 1])
        table = np.full((sizes[i], writer.cardinalities[variable], sizes[i + 1]), -np.inf)
        for old in range(sizes[i]):
            table[old, :, min(old, sizes[i + 1] - 1)] = 0.0
            table[old, value, :] = -np.inf
            table[old, value, min(old + 1, sizes[i + 1] - 1)] = 0.0
        writer.table(
            (variable, count) if before is None else (before, variable, count),
            table[0] if before is None else table,
        )
        before = count
    own = np.full(sizes[-1], -np.inf)
    own[: most + 1] = factor.by_count[: most + 1]
    places = writer.table(() if before is None else (before,), own if before is not None else own[0])
    full = np.full(len(factor.by_count), -1, dtype=np.int64)
    full[: most + 1] = places.reshape(-1)[: most + 1]
    return full
