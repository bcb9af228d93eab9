"""Columns of data frames as features, labels and weights: the same values for every library.

Libraries differ in what a missing value is (None, NaN, NA), and pandas turns whole numbers into floats where one is missing.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from crfkit.arrays import Float64s
from crfkit.errors import ArgumentError


def read_features(frame: Any, names: Sequence[str], *, as_text: bool = False) -> dict[str, list[Any]]:
    """The values of columns, None where they are missing; as texts, an empty one there."""
    return {name: _read_texts(frame, name) if as_text else _read_values(frame, name) for name in names}


def read_labels(frame: Any, name: str) -> list[Any]:
    """The labels of all rows; None: unknown."""
    series = frame[name]
    dtype = series.dtype
    if not (_is_text(dtype) or dtype.is_integer() or dtype.is_float() or _is(dtype, "Boolean", "Object")):
        raise ArgumentError(f"label: the column {name!r} is of type {dtype}, expected text or whole numbers")
    values = _values(series)
    for row, value in enumerate(values):
        if isinstance(value, float):
            if not value.is_integer():
                raise ArgumentError(
                    f"label: the column {name!r} has {value} in row {row}, expected text or whole numbers"
                )
            values[row] = int(value)
    return values


def read_weights(frame: Any, name: str, rows: Sequence[Sequence[int]], ids: Sequence[Any]) -> Float64s:
    """The weight of each sequence, float64[N]: the same in all of its rows."""
    dtype = frame[name].dtype
    if not dtype.is_numeric():
        raise ArgumentError(f"weight: the column {name!r} is of type {dtype}, expected numbers")
    values = _values(frame[name])
    for n, own in enumerate(rows):
        given = {values[row] for row in own}
        if len(given) > 1 or None in given:
            found = "no value" if None in given else f"{values[own[0]]} and other values"
            raise ArgumentError(
                f"weight: the column {name!r} has {found} in sequence {n} ({ids[n]!r}), expected one number for all rows"
            )
    return np.array([values[own[0]] for own in rows], dtype=np.float64)


def _read_values(frame: Any, name: str) -> list[Any]:
    """The values of a column of features."""
    series = frame[name]
    dtype = series.dtype
    if _is(dtype, "Decimal"):
        return [None if value is None else float(value) for value in _values(series)]
    if not (
        _is_text(dtype) or dtype.is_numeric() or _is(dtype, "Boolean", "List", "Array", "Struct", "Object")
    ):
        raise ArgumentError(
            f"features: the column {name!r} is of type {dtype}, expected text, numbers, booleans or lists of texts"
        )
    return _values(series)


def _read_texts(frame: Any, name: str) -> list[str]:
    """The values of a column of features as texts: a whole number without a fraction, whatever its type."""
    texts = []
    for row, value in enumerate(_read_values(frame, name)):
        if value is None:
            texts.append("")
        elif isinstance(value, str):
            texts.append(value)
        elif isinstance(value, bool | int | float):
            whole = isinstance(value, float) and value.is_integer()
            texts.append(str(int(value)) if whole else str(value))
        else:
            raise ArgumentError(
                f"features: the column {name!r} has a {type(value).__name__} in row {row}, templates read text"
            )
    return texts


def _values(series: Any) -> list[Any]:
    """The values of a column; None where one is missing."""
    missing = series.is_null().to_list()
    return [
        None if gone or (isinstance(value, float) and math.isnan(value)) else value
        for value, gone in zip(series.to_list(), missing, strict=True)
    ]


def _is_text(dtype: Any) -> bool:
    return _is(dtype, "String", "Categorical", "Enum")


def _is(dtype: Any, *names: str) -> bool:
    """Whether a type of narwhals has one of these names."""
    return type(dtype).__name__ in names or getattr(dtype, "__name__", "") in names
