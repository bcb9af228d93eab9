"""Whole numbers that users give: how many of something there are, or may be."""

import numpy as np

from crfkit.errors import ArgumentError

MOST = 2**31 - 1  # what the native core counts to


def check_count(name: str, value: object, most: int = MOST) -> int:
    """A whole number from 1 to `most`."""
    if not isinstance(value, int | np.integer) or isinstance(value, bool) or value < 1:
        raise ArgumentError(f"{name} is {value!r}, expected a whole number of at least 1")
    if value > most:
        raise ArgumentError(f"{name} is {value:,}, expected at most {most:,}")
    return int(value)
