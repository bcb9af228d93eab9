"""Arrays of scores, checked: numbers, or −inf to forbid a part."""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from crfkit.arrays import Float64s
from crfkit.errors import ArgumentError, ShapeError


def numeric(values: npt.ArrayLike, where: str) -> npt.NDArray[Any]:
    """`values` as an array of numbers; ValueError, which names `where`, for anything else."""
    try:
        given = np.asarray(values)
    except ValueError as error:
        raise ShapeError(f"{where}: expected an array of numbers, got rows of different length.") from error
    if given.dtype.kind not in "fiub":
        raise ShapeError(f"{where}: expected an array of numbers, got {given.dtype}.")
    return given


def refuse_unusable(
    scores: Float64s, where: str, matters: Callable[[tuple[int, ...]], bool] = lambda place: True
) -> None:
    """Raise an error for NaN and +inf, except in places that do not matter."""
    usable = scores < np.inf  # NaN compares false
    if usable.all():
        return
    for indices in np.argwhere(~usable):
        place = tuple(int(i) for i in indices)
        if matters(place):
            what = "NaN" if np.isnan(scores[place]) else "+inf"
            raise ArgumentError(
                f"{where}: {list(place)} is {what}, expected a finite number, or −inf to forbid."
            )
