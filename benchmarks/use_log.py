"""A log of the uses of test files, so that it can be seen whether a test file had a part in choices."""

from __future__ import annotations

from datetime import UTC, datetime

from benchmarks.measure import PROJECT

LOG = PROJECT / "benchmarks" / "test_uses.txt"


def log_test(file: str, settings: str, score: float) -> None:
    """Add a line: when which test file was asked, with which settings, and the score."""
    line = f"{datetime.now(UTC):%Y-%m-%d %H:%M}\t{file}\t{score:.2%}\t{' '.join(settings.split())}\n"
    with LOG.open("a", encoding="utf-8") as stream:
        stream.write(line)
