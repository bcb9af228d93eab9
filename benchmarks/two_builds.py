"""`python -m benchmarks.two_builds OLD NEW`: two builds of crfkit beside each other, each in its own Python environment.

OLD and NEW are Python interpreters that have crfkit installed. Every workload runs in fresh processes of both, which take
turns; the best CPU seconds of each and the lowest peak memory count. Ratios are new by old. `--instructions` counts the
instructions of one run with valgrind's callgrind, which no other work on the machine disturbs (in the instruction set that
valgrind knows).
"""

from __future__ import annotations

import argparse
import json
import math
import os
import pickle
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from benchmarks.build_inputs import INPUTS
from benchmarks.measure import PROJECT, THREAD_VARIABLES, JobError, Outcome
from benchmarks.table import grid
from benchmarks.workloads import WORKLOADS

QUICK = 0.05  # share of the data
SMALL = 10.0  # MB: less is not compared
HEAD = ("workload", "old, s", "new, s", "time", "iteration", "old, MB", "new, MB", "memory", "difference")
COUNTING = ("valgrind", "--tool=callgrind", "--instr-atstart=no", "--callgrind-out-file=/dev/null")
COUNTED = re.compile(r"Collected : (\d+)")


class Pair(NamedTuple):
    """What both builds took for a workload."""

    old: Outcome
    new: Outcome

    def ratio(self, key: str, least: float = 0.0) -> str:
        """New by old, where old is more than `least`."""
        old, new = self.old.get(key), self.new.get(key)
        return f"{new / old:.3f}" if old is not None and new is not None and old > least else "–"

    def difference(self) -> str:
        """Of the values found, relative."""
        old, new = self.old["value"], self.new["value"]
        if old == new:
            return "0"
        return f"{abs(new - old) / max(abs(old), 1e-300):.0e}" if math.isfinite(old) else f"{old} → {new}"


def call(python: str, job: dict[str, Any], *before: str) -> subprocess.CompletedProcess[str]:
    """Run a workload in a process of its own, on one thread."""
    limits = dict.fromkeys(THREAD_VARIABLES, "1") | {"PYTHONHASHSEED": "0"}
    command = [*before, python, "-m", "benchmarks.workloads", json.dumps(job)]
    done = subprocess.run(
        command, cwd=PROJECT, env=os.environ | limits, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise JobError(f"{python}, {job['name']}: status {done.returncode}\n{done.stderr.strip()[-2000:]}")
    return done


def outcome(python: str, job: dict[str, Any]) -> Outcome:
    """CPU seconds, memory and value of a workload in one build."""
    found: Outcome = json.loads(call(python, job).stdout.splitlines()[-1])
    return found


def best(outcomes: Sequence[Outcome]) -> Outcome:
    """The least of each figure."""
    iterations = [o["iteration"] for o in outcomes if o["iteration"] is not None]
    return {
        "cpu": min(o["cpu"] for o in outcomes),
        "iteration": min(iterations, default=None),
        "peak_mb": min(o["peak_mb"] for o in outcomes),
        "value": outcomes[-1]["value"],
    }


def timed(pythons: Sequence[str], job: dict[str, Any], rounds: int) -> Pair:
    """Both builds by turns."""
    found: list[list[Outcome]] = [[], []]
    for turn in range(rounds):
        for which in (0, 1) if turn % 2 == 0 else (1, 0):
            found[which].append(outcome(pythons[which], job))
    return Pair(best(found[0]), best(found[1]))


def instructions(python: str, job: dict[str, Any]) -> int:
    """Instructions of one run of the workload."""
    said = call(python, {**job, "repeats": 1, "counted": True}, *COUNTING).stderr
    return int(COUNTED.findall(said)[-1])


def row_of(title: str, pair: Pair) -> list[str]:
    """A row of the table."""
    seconds = [f"{o['cpu']:.3f}" for o in pair]
    memory = [f"{o['peak_mb']:.1f}" for o in pair]
    return [
        *(title, *seconds, pair.ratio("cpu"), pair.ratio("iteration")),
        *(*memory, pair.ratio("peak_mb", SMALL), pair.difference()),
    ]


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.two_builds", description=__doc__.splitlines()[0]
    )
    parser.add_argument("old", help="a Python interpreter with the old build")
    parser.add_argument("new", help="a Python interpreter with the new build")
    parser.add_argument("--quick", action="store_true", help="a smoke test on a part of the data")
    parser.add_argument(
        "--only", action="append", choices=list(WORKLOADS), metavar="WORKLOAD", help=", ".join(WORKLOADS)
    )
    parser.add_argument("--rounds", type=int, default=3, help="processes of each build; the best counts")
    parser.add_argument("--repeats", type=int, default=2, help="runs in each process; the best counts")
    parser.add_argument("--instructions", action="store_true", help="count instructions (needs valgrind)")
    given = parser.parse_args(arguments)
    pythons = (given.old, given.new)
    part = QUICK if given.quick or given.instructions else 1.0
    rows = []
    with TemporaryDirectory(prefix="crfkit-builds-") as name:
        folder = Path(name)
        for key in given.only or WORKLOADS:
            workload = WORKLOADS[key]
            path = folder / workload.input
            if not path.exists():
                path.write_bytes(pickle.dumps(INPUTS[workload.input](part)))
            job = {"name": key, "path": str(path), "repeats": 1 if given.quick else given.repeats}
            print(key, file=sys.stderr, flush=True)
            try:
                if given.instructions:
                    old, new = (instructions(python, job) for python in pythons)
                    rows.append([workload.title, f"{old:,}", f"{new:,}", f"{new / old:.4f}"])
                else:
                    rows.append(
                        row_of(workload.title, timed(pythons, job, 1 if given.quick else given.rounds))
                    )
            except JobError as error:
                print(error, file=sys.stderr)
                rows.append([workload.title, "failed"])
    head = ("workload", "old, instructions", "new", "ratio") if given.instructions else HEAD
    print(grid(head, [[*row, *["–"] * (len(head) - len(row))] for row in rows]))


if __name__ == "__main__":
    main()
