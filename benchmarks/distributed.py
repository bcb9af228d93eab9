"""`python -m benchmarks.distributed`: training on the workers of a local dask cluster beside training in one process.

The chunks of CoNLL-2000, several copies, L-BFGS, the same shards: every run computes the same bits, which is compared.
One process has one thread, and so has each worker; the client may use all cores for the vectors of the optimizer.
Seconds are those of one pass over the data (value and gradient, with the work of the optimizer):

    clock    the lower quartile of the passes by the clock, since other programs make single passes longer
    cpu      processor time: of the busiest worker plus that of the client and the scheduler, which work while workers wait

The profiler of dask's workers, which looks at them a hundred times a second, is off, and event loops look once a second at
how late they are, not fifty times. Efficiency with n workers is the
seconds of one process over n times the seconds with n workers. ``--quick`` is a smoke test.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.machine import machine
from benchmarks.measure import PROJECT
from benchmarks.tasks import TASKS, load
from crfkit import CRF, LBFGS
from crfkit.models import Progress

RESULTS = PROJECT / "benchmarks" / "results"
QUIET = {"DASK_DISTRIBUTED__WORKER__PROFILE__ENABLED": "False"}  # for processes that are started from here
TICKS = {"distributed.admin.tick.interval": "1s"}  # of event loops


@dataclass(frozen=True)
class Plan:
    """How much to measure."""

    part: float = 1.0  # share of the sentences
    copies: int = 8
    iterations: int = 8
    shard_size: int = 1 << 16
    workers: tuple[int, ...] = (1, 2, 4)
    repeats: int = 2


QUICK = Plan(part=0.02, copies=1, iterations=4, shard_size=512, workers=(2,), repeats=1)


@dataclass(frozen=True)
class Run:
    """One training run."""

    workers: int  # 0: one process without a cluster
    passes: int
    clock: float  # seconds of a pass
    cpu: float
    worker_cpu: float  # of the busiest worker
    client_cpu: float
    n_positions: int
    n_weights: int
    n_shards: int
    digest: str  # of the weights


class Watch:
    """The seconds at each iteration, by the clock and of processors."""

    def __init__(self, worker_seconds: Any) -> None:
        self.worker_seconds = worker_seconds
        self.rows: list[tuple[float, float]] = []  # (clock, passes)
        self.first: tuple[float, list[float]] = (0.0, [])
        self.last: tuple[float, list[float]] = (0.0, [])
        self.watching = 0.0  # processor seconds of this

    def __call__(self, step: Progress) -> None:
        """A callback of `fit`."""
        self.rows.append((time.perf_counter(), step.passes))
        began = time.process_time()
        self.last = (began - self.watching, self.worker_seconds())
        if len(self.rows) == 1:
            self.first = self.last
        self.watching += time.process_time() - began
        self.rows[-1] = (time.perf_counter(), step.passes)  # the next pass begins here

    def per_pass(self) -> tuple[float, float, float]:
        """Clock, processor time of the busiest worker, and that of the client, each of one pass after the first."""
        clock, passes = np.diff(np.array(self.rows), axis=0).T
        n = passes.sum()
        busiest = max((b - a for a, b in zip(self.first[1], self.last[1], strict=True)), default=0.0)
        return float(np.quantile(clock / passes, 0.25)), busiest / n, (self.last[0] - self.first[0]) / n


def digest(weights: Any) -> str:
    """A short text that tells bits apart."""
    from hashlib import blake2b

    return blake2b(weights.tobytes(), digest_size=8).hexdigest()


@contextmanager
def local_client(n_workers: int) -> Iterator[Any]:
    """A client of a cluster on this machine, with one process of one thread for each worker."""
    import dask

    from distributed import Client, LocalCluster

    settings = {"threads_per_worker": 1, "processes": True, "scheduler_port": 0, "dashboard_address": ":0"}
    with (
        dask.config.set(TICKS),
        LocalCluster(n_workers=n_workers, **settings) as cluster,
        Client(cluster) as client,
    ):
        yield client


def measure(plan: Plan, n_workers: int, data: tuple[Any, Any]) -> Run:
    """A training run with so many workers; 0: in this process."""
    settings: dict[str, Any] = {
        "optimizer": LBFGS(max_iterations=plan.iterations, tolerance=0.0, change=0.0),
    }
    if not n_workers:
        watch = Watch(list)
        crf: CRF = CRF(n_threads=1, **settings).fit(*data, shard_size=plan.shard_size, callback=watch)
    else:
        from crfkit.distributed import fit

        with local_client(n_workers) as client:
            watch = Watch(lambda: list(client.run(time.process_time).values()))
            crf = fit(client, CRF(**settings), data, shard_size=plan.shard_size, callback=watch)
    clock, worker, own = watch.per_pass()
    n_positions = sum(map(len, data[1]))
    n_shards = max(-(-n_positions // plan.shard_size), 1)
    passes = int(watch.rows[-1][1] - watch.rows[0][1])
    return Run(
        n_workers,
        passes,
        clock,
        worker + own,
        worker,
        own,
        n_positions,
        len(crf.weights_),
        n_shards,
        digest(crf.weights_),
    )


def best(runs: Sequence[Run]) -> Run:
    """The run that other programs disturbed least, with the least processor time of all."""
    fastest = min(runs, key=lambda run: run.clock)
    cpu = min(runs, key=lambda run: run.cpu)
    return Run(
        **{**asdict(fastest), "cpu": cpu.cpu, "worker_cpu": cpu.worker_cpu, "client_cpu": cpu.client_cpu}
    )


def load_data(plan: Plan) -> tuple[Any, Any]:
    """The sequences and their labels."""
    X, y = load(TASKS["chunk"], "train", plan.part)
    return X * plan.copies, y * plan.copies


def run_all(plan: Plan, data: tuple[Any, Any]) -> list[Run]:
    """All runs, in turn, so that a load on the machine meets all of them."""
    found: dict[int, list[Run]] = {}
    for _ in range(plan.repeats):
        for n_workers in (0, *plan.workers):
            found.setdefault(n_workers, []).append(measure(plan, n_workers, data))
    return [best(runs) for runs in found.values()]


def table(runs: Sequence[Run]) -> str:
    """The runs as Markdown."""
    one = runs[0]
    lines = [
        f"{one.n_positions:,} positions, {one.n_weights:,} weights, {one.n_shards} shards",
        "",
        "| workers | clock, s | efficiency | cpu, s | of the busiest worker | of client and scheduler | efficiency | bits |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for run in runs:
        n = max(run.workers, 1)
        lines.append(
            f"| {run.workers or 'none'} | {run.clock:.3f} | {one.clock / run.clock / n:.2f} | {run.cpu:.3f} | "
            f"{run.worker_cpu:.3f} | {run.client_cpu:.3f} | {one.cpu / run.cpu / n:.2f} | {run.digest} |"
        )
    return "\n".join(lines)


def check_bits(runs: Sequence[Run]) -> None:
    """Stops where a run has other weights than the others."""
    if len({run.digest for run in runs}) > 1:
        raise SystemExit(f"the runs have different bits: {[run.digest for run in runs]}")


def write_report(folder: Path, plan: Plan, runs: Sequence[Run]) -> None:
    """The runs as JSON and as Markdown."""
    folder.mkdir(parents=True, exist_ok=True)
    report = {"machine": machine(), "plan": asdict(plan), "runs": [asdict(run) for run in runs]}
    (folder / "distributed.json").write_text(json.dumps(report, indent=1) + "\n")
    (folder / "distributed.md").write_text(table(runs) + "\n")


def main(arguments: Sequence[str] | None = None) -> None:
    """Run all and write the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--copies", type=int)
    parser.add_argument("--repeats", type=int)
    parser.add_argument("--out", type=Path, default=RESULTS)
    given = parser.parse_args(arguments)
    os.environ.update(QUIET)
    plan = QUICK if given.quick else Plan()
    changes = {name: getattr(given, name) for name in ("copies", "repeats") if getattr(given, name)}
    plan = Plan(**{**asdict(plan), **changes})
    runs = run_all(plan, load_data(plan))
    check_bits(runs)
    print(table(runs))
    write_report(given.out, plan, runs)


if __name__ == "__main__":
    main()
