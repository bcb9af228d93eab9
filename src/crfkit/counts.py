"""Whole numbers that users give: how many of something there are, or may be."""

import numpy as np

from crfkit.errors import ArgumentError

MOST = 2**31 - 1  # what the native core counts to


def check_count(name: str, value: object, most: float = MOST, *, least: int = 1) -> int:
    """A whole number from `least` to `most`."""
    if not isinstance(value, int | np.integer) or isinstance(value, bool) or value < least:
        raise ArgumentError(f"{name} is {value!r}, expected a whole number of at least {least}")
    if value > most:
        raise ArgumentError(f"{name} is {value:,}, expected at most {most:,}")
    return int(value)
