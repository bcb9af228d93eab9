"""`python -m benchmarks.growth`: how the cost of a pass grows with positions, labels and features.

Random data, L-BFGS on one thread: processor seconds of a pass (value and gradient, with the work of the optimizer) for a
million positions, and bytes of memory for a position. ``--quick`` is a smoke test.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from benchmarks.measure import PROJECT
from benchmarks.memory import peak_mb, restart_peak_mb
from crfkit import CRF, LBFGS
from crfkit.models import Progress

RESULTS = PROJECT / "benchmarks" / "results"
LENGTH = 25  # positions of a sequence


class Size(NamedTuple):
    """What is trained on."""

    n_positions: int
    n_labels: int
    n_active: int  # features of a position
    n_words: int = 2_000  # values of each of these


class Cost(NamedTuple):
    """What it takes."""

    seconds: float  # of a pass
    megabytes: float  # beyond the lists
    n_weights: int


BASE = Size(40_000, 20, 20)
SIZES = {
    "positions": [BASE._replace(n_positions=n) for n in (20_000, 40_000, 80_000, 160_000)],
    "labels": [BASE._replace(n_labels=n) for n in (5, 10, 20, 40, 80)],
    "features of a position": [BASE._replace(n_active=n) for n in (5, 10, 20, 40)],
    "different features": [BASE._replace(n_words=n) for n in (500, 2_000, 8_000)],
}


def data(size: Size) -> tuple[list[list[list[str]]], list[list[str]]]:
    """Random features, frequent ones more often than others, and labels that follow the first one."""
    random = np.random.default_rng(0)
    shape = (size.n_positions // LENGTH, LENGTH, size.n_active)
    words = (size.n_words ** random.random(shape)).astype(np.int64)
    X = [[[f"{k}={word}" for k, word in enumerate(row)] for row in rows] for rows in words.tolist()]
    y = [[f"L{word % size.n_labels}" for word in row] for row in words[:, :, 0].tolist()]
    return X, y


def measure(size: Size, iterations: int) -> Cost:
    """Processor seconds of a pass, after the first one, and memory."""
    X, y = data(size)
    clocks: list[tuple[float, float]] = []

    def note(step: Progress) -> None:
        clocks.append((time.process_time(), step.passes))

    before = restart_peak_mb()
    optimizer = LBFGS(max_iterations=iterations, tolerance=0.0, change=0.0)
    crf: CRF = CRF(optimizer=optimizer, n_threads=1).fit(X, y, callback=note)
    seconds, passes = np.diff(np.array(clocks), axis=0).T
    return Cost(float(np.min(seconds / passes)), peak_mb() - before, len(crf.weights_))


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure all sizes and write a table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--out", type=Path, default=RESULTS)
    given = parser.parse_args(arguments)
    lines = ["| | | weights | s per million positions | bytes per position |", "|---|---|---|---|---|"]
    for name, sizes in SIZES.items():
        for size in sizes[: 1 if given.quick else None]:
            scaled = size._replace(n_positions=1_000) if given.quick else size
            cost = measure(scaled, 3 if given.quick else 6)
            value = {
                "positions": size.n_positions,
                "labels": size.n_labels,
                "features of a position": size.n_active,
                "different features": size.n_words * size.n_active,
            }[name]
            seconds = cost.seconds / scaled.n_positions * 1e6
            n_bytes = cost.megabytes * 1e6 / scaled.n_positions
            lines.append(f"| {name} | {value:,} | {cost.n_weights:,} | {seconds:.2f} | {n_bytes:,.0f} |")
    text = "\n".join(lines)
    print(text)
    given.out.mkdir(parents=True, exist_ok=True)
    (given.out / "growth.md").write_text(text + "\n")


if __name__ == "__main__":
    main()
