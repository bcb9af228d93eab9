"""The machine and the versions that a table was measured with."""

from __future__ import annotations

import os
import platform
from pathlib import Path


def processor() -> str:
    """The processor's own name where the system tells it, else its architecture."""
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def machine() -> dict[str, str | float]:
    """What a reader must know to compare figures."""
    return {
        "processor": processor(),
        "cores": os.cpu_count() or 1,
        "python": platform.python_version(),
        "system": platform.system(),
        "load": os.getloadavg()[0],  # processes that wanted a core, mean of the last minute
    }
