"""The memory of this process; imports nothing of crfkit."""

from __future__ import annotations

import resource
import sys
from pathlib import Path


def restart_peak_mb() -> float:
    """The memory now resident, in MB; where the system allows it (Linux), the peak is counted from here."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
        return _status_mb("VmRSS")
    except OSError:
        return peak_mb()


def peak_mb() -> float:
    """The most memory that was resident, in MB."""
    try:
        return _status_mb("VmHWM")
    except OSError:
        unit = 1 if sys.platform == "darwin" else 1024
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e6


def _status_mb(name: str) -> float:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(name):
            return int(line.split()[1]) * 1024 / 1e6
    raise OSError(f"/proc/self/status has no {name}")
