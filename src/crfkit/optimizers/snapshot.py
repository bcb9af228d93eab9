"""Snapshots: a minimisation between two iterations, read with care when it goes on from one."""

from math import isfinite
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from crfkit.optimizers.protocols import Vector


class SnapshotError(ValueError):
    """A snapshot that no minimisation can go on from: a part is missing, or is not what it should be."""


class Snapshot(NamedTuple):
    """All that is needed to go on from an iteration: `minimize` then ends with the same bits as if never interrupted.

    The methods give its parts by name, and raise a `SnapshotError` for what is missing or has another type, shape or range.
    """

    numbers: dict[str, Any]  # JSON values
    arrays: dict[str, npt.NDArray[Any]]

    def vector(self, name: str, size: int) -> Vector:
        """An array [size] of finite numbers."""
        return self.array(name, (size,))

    def array(self, name: str, shape: tuple[int, ...], dtype: npt.DTypeLike = np.float64) -> npt.NDArray[Any]:
        """An array of finite numbers of this shape, contiguous."""
        found = self.any_array(name, dtype)
        if found.shape != shape:
            raise SnapshotError(f"array {name!r} has the shape {list(found.shape)}, expected {list(shape)}")
        if not np.isfinite(found).all():
            raise SnapshotError(f"array {name!r} holds a number that is not finite")
        return found

    def any_array(self, name: str, dtype: npt.DTypeLike = np.float64) -> npt.NDArray[Any]:
        """An array of any shape and of any numbers, contiguous."""
        found = self.arrays.get(name)
        if found is None or found.dtype != dtype:
            kind = "missing" if found is None else f"{found.dtype}"
            raise SnapshotError(f"array {name!r} is {kind}, expected {np.dtype(dtype)}")
        return np.ascontiguousarray(found)

    def number(self, name: str) -> float:
        """A finite number."""
        return float(self._check_number(name, self._value(name), whole=False))

    def count(self, name: str, least: int = 0) -> int:
        """A whole number of at least `least`."""
        value = int(self._check_number(name, self._value(name), whole=True))
        if value < least:
            raise SnapshotError(f"{name!r} is {value}, expected at least {least}")
        return value

    def flag(self, name: str) -> bool:
        """True or False."""
        return self._of_type(name, bool)  # type: ignore[no-any-return]

    def text(self, name: str) -> str:
        """A text."""
        return self._of_type(name, str)  # type: ignore[no-any-return]

    def series(self, name: str) -> list[float]:
        """A list of finite numbers."""
        return [float(self._check_number(name, entry, whole=False)) for entry in self._of_type(name, list)]

    def counts(self, name: str) -> list[int]:
        """A list of whole numbers."""
        return [int(self._check_number(name, entry, whole=True)) for entry in self._of_type(name, list)]

    def part(self, name: str) -> "Snapshot":
        """Numbers within numbers, with all arrays."""
        return Snapshot(self._of_type(name, dict), self.arrays)

    def _value(self, name: str) -> Any:
        if name not in self.numbers:
            raise SnapshotError(f"{name!r} is missing")
        return self.numbers[name]

    def _of_type(self, name: str, kind: type) -> Any:
        value = self._value(name)
        if not isinstance(value, kind):
            raise SnapshotError(f"{name!r} is {str(value)[:40]!r}, expected {kind.__name__}")
        return value

    @staticmethod
    def _check_number(name: str, value: Any, *, whole: bool) -> Any:
        kinds = (int,) if whole else (int, float)
        good = isinstance(value, kinds) and not isinstance(value, bool) and abs(value) < 1 << 1000
        if not good or not isfinite(value):
            what = "a whole number" if whole else "a finite number"
            raise SnapshotError(f"{name!r} is {str(value)[:40]!r}, expected {what}")
        return value
