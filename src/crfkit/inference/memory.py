"""Limits on the memory of exact inference: as a user gives them, and as messages show them."""

from __future__ import annotations

import math
import os
import re
import sys
from pathlib import Path

import numpy as np

from crfkit.errors import ArgumentError

MEMORY_SHARE = 0.5  # of the memory of the machine, or of the process where that is less: the default limit
_UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
_SIZE = re.compile(r"(\d+(?:\.\d*)?(?:e\d+)?)\s*([KMGT]?)B?", re.IGNORECASE)


def read_memory_limit(limit: float | str | None) -> float:
    """A limit in bytes: a number, a text such as "1.5G" or "500 MB", or None for the default.

    >>> read_memory_limit("1.5G")
    1500000000.0
    """
    if limit is None:
        return default_memory_limit()
    if isinstance(limit, str) and (found := _SIZE.fullmatch(limit.strip())):
        size = float(found[1]) * _UNITS[found[2].upper()]
    elif isinstance(limit, int | float | np.integer | np.floating) and not isinstance(limit, bool):
        size = float(limit)
    else:
        size = math.nan
    if not size > 0:
        raise ArgumentError(
            f'memory_limit is {limit!r}, expected a positive number of bytes, or a text such as "500M" or "4G".'
        )
    return size


def default_memory_limit() -> float:
    """Half of the memory that this process may use."""
    pages = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    limits = [float(pages)]
    if sys.platform != "win32":
        import resource

        limits.extend(float(n) for n in resource.getrlimit(resource.RLIMIT_AS)[:1] if n >= 0)
    for path in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        try:
            limits.append(float(Path(path).read_text(encoding="ascii")))
        except (OSError, ValueError):
            continue
    return MEMORY_SHARE * min(limits)


def shown_bytes(count: float) -> str:
    """For a message: 1.5 GB."""
    for unit, size in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= size:
            return f"{count / size:.3g} {unit}"
    return f"{count:.0f} bytes"
