"""Types of the package's arrays, and offsets into flat ones."""

import numpy as np
import numpy.typing as npt

Bools = npt.NDArray[np.bool_]
Float64s = npt.NDArray[np.float64]
Int32s = npt.NDArray[np.int32]
Int64s = npt.NDArray[np.int64]


def offsets(lengths: npt.ArrayLike) -> Int64s:
    """Where lists of these lengths [N] begin and end in one array: list n is offsets[n]:offsets[n + 1]. [N + 1]"""
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths, dtype=np.int64)])
