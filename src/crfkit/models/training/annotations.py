"""Annotations that predictions are compared with."""

from __future__ import annotations

from typing import Any

import numpy as np

from crfkit.arrays import Int64s
from crfkit.features import check_entries, label_lists


def checked_lists(y: Any, ptr: Int64s, which: str = "") -> list[Any]:
    """y as a list that has one label for each position ptr[n]:ptr[n + 1] of each sequence n."""
    lists = label_lists(y, np.diff(ptr).tolist(), which)
    check_entries(lists, which)
    return lists
