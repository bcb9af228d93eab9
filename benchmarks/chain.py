"""`python -m benchmarks.chain`: crfkit beside python-crfsuite; a table in benchmarks/results/.

Both toolkits get the same Python lists, minimise the same objective and make the same number of iterations,
one after another in fresh processes. ``--quick`` is a smoke test on a part of the data.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.curves import clock_of, pooled
from benchmarks.machine import machine
from benchmarks.measure import PROJECT, Job, Outcome, run
from benchmarks.startup import cold_start
from benchmarks.table import markdown
from benchmarks.tasks import TASKS, Task

RESULTS = PROJECT / "benchmarks" / "results"
CONTENDERS = (("crfsuite", 1), ("crfkit", 1), ("crfkit", 2))  # (toolkit, threads)
MEASURES = ("speed", "gap", "scaling", "optimum", "startup")
COPIES = (1, 2, 4)
BUSY = 0.5  # load before the benchmark has begun


@dataclass(frozen=True)
class Plan:
    """How much to measure."""

    part: float = 1.0  # share of the sentences
    iterations: int = 100
    repeats: int = 2
    scaling_iterations: int = 30
    limit: int = 1000  # iterations of a descent to convergence


QUICK = Plan(part=0.02, iterations=4, repeats=1, scaling_iterations=3, limit=6)


def jobs_of(plan: Plan, folder: Path, task: Task, toolkits: Sequence[str]) -> list[Job]:
    """The training of each contender whose toolkit takes part; its model lies in `folder`."""
    return [
        Job(
            "train",
            task.name,
            toolkit,
            model=str(folder / f"{task.name}-{toolkit}-{n_threads}.model"),
            n_threads=n_threads,
            iterations=plan.iterations,
            part=plan.part,
        )
        for toolkit, n_threads in CONTENDERS
        if toolkit in toolkits
    ]


def announced_machine() -> dict[str, str | float]:
    """The machine, with a word on standard error when it is too busy for two threads to be timed."""
    found = machine()
    if float(found["load"]) > BUSY:
        words = f"the machine is busy (load {found['load']:.1f}): do not trust seconds by the wall clock"
        print(words, file=sys.stderr, flush=True)
    return found


def announced(job: Job) -> Outcome:
    """Do a job and say so on standard error."""
    words = f"{job.kind} {job.task}: {job.toolkit}, {job.n_threads} thread{'s' * (job.n_threads > 1)}"
    print(words, "…", end=" ", file=sys.stderr, flush=True)
    outcome = run(job)
    print(f"{outcome['fit_wall' if job.kind == 'train' else 'wall']:.2f} s", file=sys.stderr, flush=True)
    return outcome


def speed(plan: Plan, jobs: Sequence[Job], *, gap: bool) -> Outcome:
    """Training and tagging of every contender; the repeats of all contenders take turns."""
    runs: dict[Job, list[Outcome]] = {job: [] for job in jobs}
    for _ in range(plan.repeats):
        for job in jobs:
            runs[job].append(announced(job))
    tagging = {job: announced(replace(job, kind="tag")) for job in jobs}
    longer: dict[Job, list[Outcome]] = {job: [] for job in jobs}
    optimum = None
    if gap:
        limit = min(TASKS[jobs[0].task].gap_iterations, plan.limit)
        longer = {job: [announced(replace(job, iterations=limit))] for job in jobs}
        optimum = lowest(announced(replace(jobs[-1], iterations=plan.limit, to_convergence=True)))
        optimum = min(optimum, *(lowest(outcome) for outcomes in longer.values() for outcome in outcomes))
    return {
        "tokens": runs[jobs[0]][0]["tokens"],
        "iterations": plan.iterations,
        "optimum": optimum,
        "rows": [row_of(job, runs[job], longer[job], tagging[job], optimum) for job in jobs],
    }


def lowest(training: Outcome) -> float:
    """The lowest objective of a training run."""
    return min(float(tick[2]) for tick in training["ticks"])


def row_of(
    job: Job, runs: list[Outcome], longer: list[Outcome], tagging: Outcome, optimum: float | None
) -> Outcome:
    """One contender's figures, the best of its repeats."""
    clock = clock_of(job.n_threads)
    curve = pooled(runs + longer, job.n_threads)
    descent = curve.first(job.iterations)
    return {
        "toolkit": job.toolkit,
        "version": runs[0]["version"],
        "n_threads": job.n_threads,
        "seconds_per_iteration": descent.seconds_per_iteration,
        "seconds_to_gap": None if optimum is None else curve.seconds_to_gap(optimum),
        "fit_seconds": min(run[f"fit_{clock}"] for run in runs),
        "tokens_per_second": tagging["tokens"] / tagging[clock],
        "peak_mb": min(run["peak_mb"] for run in runs),
        "model_mb": runs[0]["model_mb"],
        "objective": descent.objectives[-1],
        "accuracy": tagging["accuracy"],
        "f1": tagging["f1"],
    }


def optimum(plan: Plan, jobs: Sequence[Job]) -> Outcome:
    """Where each toolkit arrives when it descends until nothing moves any more."""
    rows = []
    for job in jobs:
        if job.n_threads == 1:
            training = announced(replace(job, iterations=plan.limit, to_convergence=True))
            tagging = announced(replace(job, kind="tag"))
            rows.append(
                {
                    "toolkit": job.toolkit,
                    "version": training["version"],
                    "iterations": len(training["ticks"]),
                    "fit_seconds": training["fit_cpu"],
                    "objective": lowest(training),
                    "accuracy": tagging["accuracy"],
                    "f1": tagging["f1"],
                }
            )
    return {"rows": rows}


def scaling(plan: Plan, job: Job) -> Outcome:
    """Seconds an iteration on the training data once, twice and four times."""
    rows = []
    for copies in COPIES:
        copied = replace(job, iterations=plan.scaling_iterations, copies=copies)
        runs = [announced(copied) for _ in range(plan.repeats)]
        seconds = pooled(runs, job.n_threads).seconds_per_iteration
        rows.append({"copies": copies, "tokens": runs[0]["tokens"], "seconds_per_iteration": seconds})
    return {"rows": rows}


def bench(plan: Plan, tasks: Sequence[str], measures: Sequence[str], toolkits: Sequence[str]) -> Outcome:
    """All measurements asked for, as one JSON value."""
    results: Outcome = {
        "machine": announced_machine(),
        "speed": {},
        "optimum": {},
        "scaling": {},
        "startup": None,
    }
    with TemporaryDirectory(prefix="crfkit-bench-") as name:
        folder = Path(name)
        for task in (TASKS[name] for name in tasks):
            jobs = jobs_of(plan, folder, task, toolkits)
            if task.gap_iterations and not {"speed", "gap"}.isdisjoint(measures):
                results["speed"][task.name] = speed(plan, jobs, gap="gap" in measures)
            if task.gap_iterations and "scaling" in measures:
                for job in jobs:
                    if job.toolkit == "crfkit" and job.n_threads == 1:
                        results["scaling"][task.name] = scaling(plan, job)
            if not task.gap_iterations and "optimum" in measures:
                results["optimum"][task.name] = optimum(plan, jobs)
        if "startup" in measures and "crfkit" in toolkits:
            results["startup"] = cold_start(folder, plan.part, plan.iterations)
    return results


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print the table, and write it with all figures to the folder of results."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.chain", description="crfkit beside python-crfsuite"
    )
    parser.add_argument(
        "--quick", action="store_true", help="a smoke test: few iterations on a part of the data"
    )
    parser.add_argument(
        "--task", action="append", choices=list(TASKS), help="only this task (may be repeated)"
    )
    parser.add_argument(
        "--only", action="append", choices=MEASURES, help="only this measure (may be repeated)"
    )
    parser.add_argument(
        "--toolkit", action="append", choices=["crfsuite", "crfkit"], help="only this toolkit"
    )
    parser.add_argument("--repeats", type=int, help="runs of each training; the best counts")
    parser.add_argument("--out", type=Path, help=f"folder of results (default {RESULTS}; none with --quick)")
    given = parser.parse_args(arguments)
    plan = QUICK if given.quick else Plan(repeats=given.repeats or Plan.repeats)
    results = bench(
        plan, given.task or list(TASKS), given.only or MEASURES, given.toolkit or ["crfsuite", "crfkit"]
    )
    text = markdown(results)
    print(text)
    out = given.out or (None if given.quick else RESULTS)
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
        (out / "chain.md").write_text(text + "\n", encoding="utf-8")
        (out / "chain.json").write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
