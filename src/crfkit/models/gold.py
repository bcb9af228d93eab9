"""Annotations that predictions are compared with."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from crfkit.features import check_entries, label_lists

Float64s = npt.NDArray[np.float64]
Int64s = npt.NDArray[np.int64]
Metric = Callable[[Sequence[Sequence[Hashable]], Sequence[Sequence[Hashable]]], float]


def checked_lists(y: Any, ptr: Int64s, which: str = "") -> list[Any]:
    """y as a list that has one label for each site ptr[n]:ptr[n + 1] of each sequence n."""
    lists = label_lists(y, np.diff(ptr).tolist(), which)
    check_entries(lists, which)
    return lists


def accuracy(
    gold: Sequence[Sequence[Any]],
    predicted: Sequence[Sequence[Hashable]],
    sample_weight: Sequence[float] | Float64s | None = None,
) -> float:
    """Share of the sites with a known label that have it; a set of labels is right when it holds the predicted one."""
    total = right = 0.0
    for n, (known, given) in enumerate(zip(gold, predicted, strict=True)):
        weight = 1.0 if sample_weight is None else sample_weight[n]
        for label, guess in zip(known, given, strict=True):
            if label is not None:
                total += weight
                right += weight * (guess in label if isinstance(label, set | frozenset) else guess == label)
    return float(right / total) if total else 0.0
