"""`python -m benchmarks.penalties`: what l2 does, and what `l2="auto"` chooses.

Names of CoNLL-2002 (train, testa) with the preset `names`, and parts of speech of the treebank EWT (train, dev) with the
preset `pos`: F1 of spans or accuracy on development data, and the log-likelihood of a sentence there, for a grid of l2; then
what a search on held-out training sentences chooses, and the CPU seconds that it takes. ``--quick`` is a smoke test.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence

from benchmarks.decoding import TASKS, read_task
from benchmarks.table import grid
from crfkit import CRF

GRID = (10.0, 3.0, 1.0, 0.3, 0.1)
QUICK = 200  # sentences of each file


def rows_of(task: str, limit: int | None) -> list[list[str]]:
    """A row for each l2, each from the weights of the one before, and one for "auto"."""
    train, dev = read_task(task, "train", limit), read_task(task, "dev", limit)
    features = "pos" if task == "english" else "names"
    rows, start = [], None
    for l2 in (*GRID, "auto"):
        print(f"{task}, l2 = {l2} …", file=sys.stderr, flush=True)
        begin = time.process_time()
        start = CRF(features=features, l2=l2, n_threads=1).fit(*train, start=None if l2 == "auto" else start)
        seconds = time.process_time() - begin
        known = set(start.classes_)
        gold = [[label if label in known else None for label in labels] for labels in dev.y]
        likelihood = float(start.log_probability(dev.X, gold).mean())
        name = f"auto: {start.l2_:g}" if l2 == "auto" else f"{l2:g}"
        figures = [f"{100 * start.score(*dev):.2f}", f"{likelihood:.3f}", f"{seconds:.1f}"]
        rows.append([task, name, *figures])
    return rows


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, and print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.penalties", description="l2, and l2=auto")
    parser.add_argument("--quick", action="store_true", help="a smoke test on a few sentences")
    parser.add_argument("--task", action="append", choices=TASKS, help="only this one")
    given = parser.parse_args(arguments)
    head = ["development data", "l2", "F1, or accuracy", "log-likelihood of a sentence", "CPU s"]
    rows = [row for task in given.task or TASKS for row in rows_of(task, QUICK if given.quick else None)]
    print(grid(head, rows))


if __name__ == "__main__":
    main()
