"""`python -m benchmarks.cluster_simulation`: one pass of training on 1 to 1,000 workers, task by task.

The tasks, and the workers that they run on, are those of `crfkit.distributed`: the weights go from worker to worker, each
worker computes its shards, sums go up the fixed tree, and the client gets the last one. What is assumed:

    a shard          positions · seconds per position, one after the other on each worker
    a message        latency + bytes / bandwidth; a machine sends one message at a time
    an addition      bytes / memory bandwidth
    the scheduler    so many seconds for each task, one after the other, in the order of submission
    the client       so many seconds for each task that it submits, and the work of the optimizer

`calibrate` measures what positions, tasks, messages and the optimizer take on this machine; ``--measured FILE`` compares
with what `benchmarks.distributed` measured. By the clock that needs a machine that does nothing else; ``--cpu`` counts
processor seconds instead: of the busiest worker, and of client and scheduler. ``--quick`` is a smoke test.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.distributed import local_client
from benchmarks.measure import PROJECT
from crfkit.distributed.placement import Node, assign, slots_of, sum_tree
from crfkit.distributed.remote_loss import FAN_OUT
from crfkit.objective import python_loss

RESULTS = PROJECT / "benchmarks" / "results"
WORKERS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1000)


@dataclass(frozen=True)
class Machines:
    """What the machines and the network are like."""

    seconds_per_position: float  # value and gradient, one thread
    latency: float  # seconds of a message
    bandwidth: float  # bytes a second, of each machine
    per_task: float  # seconds of the scheduler for a task
    submit: float  # seconds of the client for a task
    optimizer: float  # seconds of the client for each weight and pass
    memory_bandwidth: float = 5e9  # bytes a second, for additions
    shared_cores: int | None = (
        None  # all workers share so many cores, as on one machine; None: each has its own
    )


@dataclass(frozen=True)
class Problem:
    """What is trained."""

    n_positions: int
    n_weights: int
    n_shards: int

    @property
    def n_bytes(self) -> float:
        """Of a gradient, with the value."""
        return 8.0 * (self.n_weights + 1)


@dataclass(frozen=True)
class Pass:
    """The seconds of one pass, and what they are spent on: work of the slowest worker, and all else."""

    total: float
    compute: float

    @property
    def network(self) -> float:
        """Everything but computing."""
        return self.total - self.compute


class Cluster:
    """One pass in simulated time, which begins at 0."""

    def __init__(self, machines: Machines, problem: Problem, n_workers: int) -> None:
        self.machines, self.problem = machines, problem
        names = [f"w{i:04d}" for i in range(n_workers)]
        costs = [1.0] * problem.n_shards
        threads = dict.fromkeys(names, 1)
        placed = assign(costs, threads, {})
        self.tree = sum_tree(slots_of(placed, costs, threads))
        self.workers = list(dict.fromkeys(placed[leaf.begin] for leaf in self.tree.leaves()))
        self.seconds_per_shard = problem.n_positions / problem.n_shards * machines.seconds_per_position
        if machines.shared_cores is not None:
            self.seconds_per_shard *= max(len(self.workers) / machines.shared_cores, 1.0)
        self.link_free = dict.fromkeys(self.workers, 0.0)
        self.busy_until = dict.fromkeys(self.workers, 0.0)
        self.computed = dict.fromkeys(self.workers, 0.0)
        self.n_tasks = 0

    def send(self, sender: str, ready: float) -> float:
        """When a vector arrives that is ready at a worker, whose link may be busy."""
        begin = max(ready, self.link_free[sender])
        self.link_free[sender] = begin + self.problem.n_bytes / self.machines.bandwidth
        return self.link_free[sender] + self.machines.latency

    def dispatch(self) -> float:
        """When the next task is known to its worker: client and scheduler work one after the other."""
        self.n_tasks += 1
        slower = max(self.machines.submit, self.machines.per_task)
        return self.n_tasks * slower + self.machines.latency

    def broadcast(self) -> dict[str, float]:
        """When each worker has the weights; the client sends them by way of the scheduler."""
        hop = self.machines.latency + self.problem.n_bytes / self.machines.bandwidth
        there = {self.workers[0]: 2 * hop}
        for i, worker in enumerate(self.workers[1:]):
            source = self.workers[i // FAN_OUT]
            there[worker] = max(self.send(source, there[source]), self.dispatch())
        return there

    def total(self, node: Node, weights: dict[str, float]) -> tuple[str, float]:
        """Where the sum of a node is, and when."""
        if node.slot is not None:
            worker = node.slot[0]
            seconds = (node.end - node.begin) * self.seconds_per_shard
            begin = max(weights[worker], self.busy_until[worker], self.dispatch())
            self.busy_until[worker] = begin + seconds
            self.computed[worker] += seconds
            return worker, self.busy_until[worker]
        (first, ready), (second, other) = (self.total(child, weights) for child in node.children)
        known = self.dispatch()
        if first != second:
            other = self.send(second, max(other, known))
        added = max(ready, other, known) + 3 * self.problem.n_bytes / self.machines.memory_bandwidth
        return first, added

    def run(self) -> Pass:
        """All of it."""
        worker, ready = self.total(self.tree, self.broadcast())
        hop = self.machines.latency + self.problem.n_bytes / self.machines.bandwidth
        arrived = self.send(worker, ready) + hop  # by way of the scheduler
        return Pass(arrived + self.machines.optimizer * self.problem.n_weights, max(self.computed.values()))


def simulate(machines: Machines, problem: Problem, n_workers: int) -> Pass:
    """One pass with so many workers."""
    return Cluster(machines, problem, n_workers).run()


def alone(machines: Machines, problem: Problem) -> float:
    """The seconds of a pass on one thread of one machine."""
    return (
        problem.n_positions * machines.seconds_per_position
        + 3 * problem.n_bytes * problem.n_shards / machines.memory_bandwidth
        + machines.optimizer * problem.n_weights
    )


def limit(machines: Machines, problem: Problem) -> int:
    """The largest number of workers, a power of two, with which computing takes at least half of the time."""
    n, found = 1, 1
    while n <= 4096:
        pieces = replace(problem, n_shards=max(problem.n_shards, 4 * n))
        took = simulate(machines, pieces, n)
        if took.network > took.compute:
            break
        n, found = 2 * n, n
    return found


@dataclass(frozen=True)
class Probe:
    """The seconds of a pass over shards that need no work: of messages and tasks alone."""

    n_workers: int
    n_weights: int
    seconds: float


class Nothing:
    """A loss that is 0, and what makes it on a worker."""

    def __init__(self, n_weights: int) -> None:
        self.gradient = np.zeros(n_weights)

    def evaluate(self, w: Any) -> tuple[float, Any]:
        """No work."""
        return 0.0, self.gradient

    def hessian_vector(self, w: Any, v: Any) -> Any:
        """No work."""
        return self.gradient

    def refine(self) -> bool:
        """There is nothing to refine."""
        return False

    def __call__(self, context: Any, n_threads: int) -> tuple[Any, int]:
        """The loss, and its bytes."""
        return python_loss(self, n_weights=len(self.gradient), n_sequences=1), self.gradient.nbytes


@dataclass(frozen=True)
class EmptyShards:
    """Shards without data."""

    n_weights: int
    n_shards: int
    context: None = None

    @property
    def costs(self) -> list[float]:
        """All the same."""
        return [1.0] * self.n_shards

    def recipe(self, shard: int) -> Nothing:
        """A shard without data."""
        return Nothing(self.n_weights)


def probe(n_workers: int, sizes: Sequence[int], repeats: int, *, cpu: bool = False) -> list[Probe]:
    """Passes without work over a local cluster, for vectors of these sizes: the lower quartile of some.

    With `cpu`, the mean of processor seconds.
    """
    from crfkit.distributed.cluster import Cluster as Connection
    from crfkit.distributed.remote_loss import RemoteLoss

    found = []
    with local_client(n_workers) as client:
        for n_weights in sizes:
            loss = RemoteLoss(Connection(client), EmptyShards(n_weights, n_workers))
            seconds = []
            loss.evaluate(np.zeros(n_weights))
            before, own = list(client.run(time.process_time).values()), time.process_time()
            for i in range(1, repeats + 1):
                w = np.full(n_weights, float(i))
                began = time.perf_counter()
                loss.evaluate(w)
                seconds.append(time.perf_counter() - began)
            own = time.process_time() - own
            busiest = float(max(np.array(list(client.run(time.process_time).values())) - before))
            loss.close()
            clock = float(np.quantile(seconds, 0.25))
            found.append(Probe(n_workers, n_weights, (own + busiest) / repeats if cpu else clock))
    return found


def fit_network(probes: Sequence[Probe], start: Machines) -> Machines:
    """Latency, bandwidth and seconds per task with which simulated passes are nearest to the measured ones."""

    def error(machines: Machines) -> float:
        return sum(
            math.log(simulate(machines, Problem(0, p.n_weights, p.n_workers), p.n_workers).total / p.seconds)
            ** 2
            for p in probes
        )

    best, step = start, 2.0
    while step > 1.005:
        tries = [
            replace(best, **{name: getattr(best, name) * factor})
            for name in ("latency", "bandwidth", "per_task")
            for factor in (step, 1 / step)
        ]
        nearest = min(tries, key=error)
        if error(nearest) < error(best):
            best = nearest
        else:
            step = math.sqrt(step)
    return best


def calibrate(*, quick: bool = False, cpu: bool = False) -> Machines:
    """What this machine is like: passes in one process over data of two sizes, and passes without work over a cluster."""
    from benchmarks.distributed import Plan, measure
    from benchmarks.tasks import TASKS, load

    part, copies = (0.02, 3) if quick else (0.5, 4)
    X, y = load(TASKS["chunk"], "train", part)
    plan = Plan(part=part, iterations=4 if quick else 12)
    small, large = (measure(plan, 0, (X * n, y * n)) for n in (1, copies))
    seconds = [run.cpu if cpu else run.clock for run in (small, large)]
    slope = (seconds[1] - seconds[0]) / (large.n_positions - small.n_positions)
    rest = max(seconds[0] - slope * small.n_positions, 0.0)
    sizes = (1_000, 100_000) if quick else (1_000, 200_000, 1_000_000)
    repeats, numbers = (4, (1, 2)) if quick else (30, (1, 2, 4))
    probes = [found for n in numbers for found in probe(n, sizes, repeats, cpu=cpu)]
    start = Machines(
        slope, 2e-3, 1e9, 1e-3, 1e-4, rest / small.n_weights, shared_cores=None if cpu else os.cpu_count()
    )
    return fit_network(probes, start)


def table(machines: Machines, problem: Problem, shards_per_worker: int = 4) -> list[str]:
    """Passes with more and more workers, as Markdown."""
    one = alone(machines, problem)
    lines = ["| workers | seconds | speed-up | efficiency | computing |", "|---|---|---|---|---|"]
    for n in WORKERS:
        pieces = replace(problem, n_shards=max(problem.n_shards, shards_per_worker * n))
        took = simulate(machines, pieces, n)
        lines.append(
            f"| {n:,} | {took.total:.3f} | {one / took.total:.1f} | {one / took.total / n:.2f} | "
            f"{took.compute / took.total:.0%} |"
        )
    return lines


def compare(machines: Machines, file: Path, *, cpu: bool = False) -> list[str]:
    """Simulated and measured passes (`benchmarks.distributed`), as Markdown."""
    lines = ["| workers | measured, s | simulated, s | difference |", "|---|---|---|---|"]
    for run in json.loads(file.read_text())["runs"]:
        if run["workers"]:
            problem = Problem(run["n_positions"], run["n_weights"], run["n_shards"])
            took, found = simulate(machines, problem, run["workers"]).total, run["cpu" if cpu else "clock"]
            lines.append(f"| {run['workers']} | {found:.3f} | {took:.3f} | {took / found - 1:+.0%} |")
    return lines


NETWORKS = {  # (latency, bytes a second) between machines
    "1 Gbit/s": (2e-3, 0.125e9),
    "10 Gbit/s": (1e-3, 1.25e9),
    "100 Gbit/s": (0.5e-3, 12.5e9),
}


def main(arguments: Sequence[str] | None = None) -> None:
    """Calibrate, compare, simulate."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--cpu", action="store_true")
    parser.add_argument("--measured", type=Path, help="distributed.json of benchmarks.distributed")
    parser.add_argument("--machines", type=Path, help="what an earlier run wrote, in place of measuring")
    parser.add_argument("--out", type=Path, default=RESULTS)
    given = parser.parse_args(arguments)
    here = (
        Machines(**json.loads(given.machines.read_text()))
        if given.machines
        else calibrate(quick=given.quick, cpu=given.cpu)
    )
    lines = [f"- {name}: {value}" for name, value in asdict(here).items()]
    if given.measured:
        lines += ["", *compare(here, given.measured, cpu=given.cpu)]
    for n_positions, n_weights in (
        (1_000_000, 500_000),
        (100_000_000, 5_000_000),
        (10_000_000_000, 50_000_000),
    ):
        problem = Problem(n_positions, n_weights, 1)
        for name, (latency, bandwidth) in NETWORKS.items():
            there = replace(here, latency=latency, bandwidth=bandwidth, shared_cores=None)
            lines += [
                "",
                f"{n_positions:,} positions, {n_weights:,} weights, {name}: the network takes more than half",
            ]
            lines += [f"with more than {limit(there, problem):,} workers", "", *table(there, problem)]
    text = "\n".join(lines)
    print(text)
    given.out.mkdir(parents=True, exist_ok=True)
    (given.out / "cluster_simulation.md").write_text(text + "\n")
    (given.out / "cluster_machines.json").write_text(json.dumps(asdict(here), indent=1) + "\n")


if __name__ == "__main__":
    main()
