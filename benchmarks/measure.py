"""One measurement in one fresh process, so that peak memory and clocks belong to it alone.

    outcome = run(Job("train", "chunk", "crfkit", model="/tmp/chunk.model", n_threads=2))

starts ``python -m benchmarks.measure`` with the job as JSON and reads the outcome from its last line.
"""

from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks.adapters import Clock, Settings, adapter
from benchmarks.memory import peak_mb, restart_peak_mb
from benchmarks.tasks import TASKS, load
from crfkit.evaluation import accuracy, span_report

Outcome = dict[str, Any]

PROJECT = Path(__file__).resolve().parent.parent
THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
TAGGING_PASSES = 5


class JobError(RuntimeError):
    """A measurement that did not end well; the message has what its process said."""


@dataclass(frozen=True)
class Job:
    """What to measure."""

    kind: str  # "train" or "tag"
    task: str
    toolkit: str
    model: str  # the model file: "train" writes it, "tag" reads it
    n_threads: int = 1
    iterations: int = 100
    to_convergence: bool = False
    part: float = 1.0  # share of the sentences
    copies: int = 1  # the training data so many times, with so many times the penalty: the same descent


def run_module(module: str, *arguments: str, n_threads: int | None = None) -> Any:
    """What a module of this package prints in its last line, as JSON, in a process of its own.

    `n_threads` is what the libraries under it may use; None leaves them as they are.
    """
    limits = {} if n_threads is None else dict.fromkeys(THREAD_VARIABLES, str(n_threads))
    command = [sys.executable, "-m", f"benchmarks.{module}", *arguments]
    done = subprocess.run(
        command, cwd=PROJECT, env=os.environ | limits, capture_output=True, text=True, check=False
    )
    if done.returncode:
        words = " ".join([module, *arguments])
        raise JobError(f"{words} ended with status {done.returncode}:\n{done.stderr.strip()}")
    return json.loads(done.stdout.splitlines()[-1])


def run(job: Job) -> Outcome:
    """Do a job in a process of its own."""
    outcome: Outcome = run_module("measure", json.dumps(asdict(job)), n_threads=job.n_threads)
    return outcome


def train(job: Job) -> Outcome:
    """Fit from Python lists: clocks at each iteration, memory beyond the input, size of the model file."""
    task = TASKS[job.task]
    toolkit = adapter(job.toolkit)
    X, y = load(task, "train", job.part)
    X, y = X * job.copies, y * job.copies
    settings = Settings(
        task.l2 * job.copies, task.all_possible_transitions, job.iterations, job.n_threads, job.to_convergence
    )
    clock = Clock()
    gc.collect()
    input_mb = restart_peak_mb()
    start_cpu, start_wall = time.process_time(), time.perf_counter()
    toolkit.fit(X, y, settings, Path(job.model), clock)
    cpu, wall = time.process_time() - start_cpu, time.perf_counter() - start_wall
    return {
        "version": toolkit.version(),
        "tokens": sum(map(len, y)),
        "fit_cpu": cpu,
        "fit_wall": wall,
        "ticks": [(tick.cpu - start_cpu, tick.wall - start_wall, tick.objective) for tick in clock.ticks[1:]],
        "descent_start": (clock.ticks[0].cpu - start_cpu, clock.ticks[0].wall - start_wall),
        "input_mb": input_mb,
        "peak_mb": peak_mb() - input_mb,
        "model_mb": Path(job.model).stat().st_size / 1e6,
    }


def tag(job: Job) -> Outcome:
    """Tag the test sentences from Python lists with an opened model: the best pass, and how right it is."""
    task = TASKS[job.task]
    toolkit = adapter(job.toolkit)
    X, y = load(task, "test", job.part)
    toolkit.open(Path(job.model), job.n_threads)
    passes = []
    for _ in range(TAGGING_PASSES):
        start_cpu, start_wall = time.process_time(), time.perf_counter()
        predicted = toolkit.tag(X)
        passes.append((time.process_time() - start_cpu, time.perf_counter() - start_wall))
    return {
        "tokens": sum(map(len, y)),
        "cpu": min(cpu for cpu, _ in passes),
        "wall": min(wall for _, wall in passes),
        "accuracy": accuracy(y, predicted),
        "f1": span_report(y, predicted, "IOB2").overall.f1 if task.has_spans else None,
    }


KINDS: dict[str, Callable[[Job], Outcome]] = {"train": train, "tag": tag}


def main() -> None:
    """Do the job given as JSON in the first argument."""
    job = Job(**json.loads(sys.argv[1]))
    print(json.dumps(KINDS[job.kind](job)))


if __name__ == "__main__":
    main()
