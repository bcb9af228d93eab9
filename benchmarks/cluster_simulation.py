"""`python -m benchmarks.cluster_simulation`: one pass of training on 1 to 1,000 workers, message by message.

The messages, and the workers that compute, are those of `crfkit.distributed`: the client sends the weights to a few workers,
these to others, each computes its shards, and sums come back along the tree. What is assumed:

    computing        seconds for each position, and for each weight of a shard; workers of one machine share its cores,
                     with what client, scheduler and workers do in the background
    a message        latency + bytes / bandwidth; a machine sends one at a time, and receives one at a time
                     on one machine: the client copies the weights to shared memory, workers compute their sums there,
                     and messages say no more than that
    an addition      seconds for each weight
    the optimizer    seconds of the client for each weight

`benchmarks.cluster_calibration` measures these, one by one. Passes on 1, 2 and 4 workers (`benchmarks.distributed`) are
measured in the same run, unless ``--measured FILE`` has them, and compared. By the clock that needs a machine that does
nothing else; ``--cpu`` counts processor seconds instead: of the busiest worker, and of client and scheduler. What is
printed are the tables of docs/scaling.md. ``--quick`` is a smoke test.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from benchmarks.cluster_calibration import Machines, calibrate
from benchmarks.distributed import (
    QUICK,
    QUIET,
    RESULTS,
    Plan,
    Run,
    check_bits,
    load_data,
    run_all,
    write_report,
)
from crfkit.distributed.placement import Node, assign, slots_of, sum_tree
from crfkit.distributed.remote_loss import FAN_OUT

CLIENT = "client"


@dataclass(frozen=True)
class Problem:
    """What is trained."""

    n_positions: int
    n_weights: int
    n_shards: int
    shard_size: int | None = (
        None  # positions of a shard, of which the last one has fewer; None: all have as many
    )

    @property
    def costs(self) -> list[float]:
        """[n_shards] the positions of each shard, by which workers get them."""
        if self.shard_size is None:
            return [self.n_positions / self.n_shards] * self.n_shards
        full = self.n_shards - 1
        return [float(self.shard_size)] * full + [float(self.n_positions - full * self.shard_size)]


@dataclass(frozen=True)
class Pass:
    """The seconds of one pass, and those of the slowest worker's computing."""

    total: float
    compute: float

    @property
    def rest(self) -> float:
        """Everything but computing."""
        return self.total - self.compute


class Simulation:
    """One pass in simulated time, which begins at 0."""

    def __init__(self, machines: Machines, problem: Problem, n_workers: int) -> None:
        self.machines, self.problem = machines, problem
        threads = {f"w{i:04d}": 1 for i in range(n_workers)}
        costs = problem.costs
        self.tree = sum_tree(slots_of(assign(costs, threads, {}), costs, threads))
        self.work: dict[str, float] = {}  # seconds of each worker
        for leaf in self.tree.leaves():
            own = costs[leaf.begin : leaf.end]
            seconds = sum(own) * machines.seconds_per_position
            seconds += len(own) * machines.per_shard * problem.n_weights
            self.work[leaf.worker] = self.work.get(leaf.worker, 0.0) + seconds
        self.sending = dict.fromkeys([CLIENT, *self.work], 0.0)  # until when
        self.receiving = dict(self.sending)
        self.begins: dict[str, float] = {}  # when a worker has the weights
        self.ends: dict[str, float] = {}  # when it has computed

    def message(self, sender: str, receiver: str, ready: float) -> float:
        """When a vector arrives that is ready at the sender."""
        here = self.machines
        near = here.cores is not None
        begin = max(ready, self.sending[sender], self.receiving[receiver])
        end = begin + here.handling + (0.0 if near else 8.0 * self.problem.n_weights / here.bandwidth)
        self.sending[sender] = self.receiving[receiver] = end
        return end + max((here.near_latency if near else here.latency) - here.handling, 0.0)

    def spread(self, sender: str, node: Node, ready: float) -> None:
        """The weights go to the worker of a node, and from there to others."""
        there = self.message(sender, node.worker, ready)
        self.begins[node.worker] = min(there, self.begins.get(node.worker, there))
        while node.children:
            node, second = node.children
            if second.worker != node.worker:
                self.spread(node.worker, second, there)

    def collect(self, node: Node) -> float:
        """When the sum of a node is at its worker."""
        if not node.children:
            return self.ends[node.worker]
        first, second = node.children
        ready, other = self.collect(first), self.collect(second)
        if first.worker != second.worker:
            other = self.message(second.worker, first.worker, other)
        return max(ready, other) + self.machines.addition * self.problem.n_weights

    def run(self) -> Pass:
        """All of it."""
        D, parts = self.problem.n_weights, self.tree.split(FAN_OUT)
        copy = self.machines.near_copy * D if self.machines.cores is not None else 0.0
        for part in parts:
            self.spread(CLIENT, part, copy)
        self.ends = share_cores(self.begins, self.work, self.machines)
        ready = max(self.message(part.worker, CLIENT, self.collect(part)) for part in parts)
        total = ready + (len(parts) - 1) * self.machines.addition * D + self.machines.optimizer * D
        return Pass(total, max(self.ends[worker] - begin for worker, begin in self.begins.items()))


def slowdown(n_processes: int, machines: Machines) -> float:
    """How much longer computing takes for each of so many processes."""
    if machines.cores is None or n_processes < 2:
        return 1.0
    if n_processes < machines.cores:
        return machines.contention
    idle = machines.idle_client + n_processes * machines.idle_worker  # which needs a core
    turns = n_processes / machines.cores
    return (machines.contention if turns == 1 else turns * machines.crowding) / (1 - idle / machines.cores)


def share_cores(
    begins: Mapping[str, float], work: Mapping[str, float], machines: Machines
) -> dict[str, float]:
    """When processes end that begin at these times and have so many seconds of work; equal shares of the cores."""
    if machines.cores is None:
        return {name: begin + work[name] for name, begin in begins.items()}
    ends: dict[str, float] = {}
    left = dict(work)
    waiting = sorted(begins, key=begins.__getitem__, reverse=True)
    running: list[str] = []
    now = 0.0
    while waiting or running:
        slower = slowdown(len(running), machines)
        done = now + min((left[name] for name in running), default=float("inf")) * slower
        after = min(done, begins[waiting[-1]]) if waiting else done
        for name in running:
            left[name] -= (after - now) / slower
        now = after
        if waiting and begins[waiting[-1]] <= now:
            running.append(waiting.pop())
            continue
        ends |= {name: now for name in running if left[name] <= 1e-12}
        running = [name for name in running if name not in ends]
    return ends


def simulate(machines: Machines, problem: Problem, n_workers: int) -> Pass:
    """One pass with so many workers."""
    return Simulation(machines, problem, n_workers).run()


def alone(machines: Machines, problem: Problem) -> float:
    """The seconds of a pass on one thread of one machine."""
    return (
        problem.n_positions * machines.seconds_per_position
        + problem.n_shards * machines.per_shard * problem.n_weights
        + machines.optimizer_alone * problem.n_weights
    )


def in_pieces(problem: Problem, n_workers: int) -> Problem:
    """The same, with a shard for each worker."""
    return replace(problem, n_shards=max(problem.n_shards, n_workers))


def limit(machines: Machines, problem: Problem) -> int:
    """The largest number of workers, a power of two, with which computing takes at least half of the time."""
    n, found = 1, 1
    while n <= 4096:
        took = simulate(machines, in_pieces(problem, n), n)
        if took.rest > took.compute:
            break
        n, found = 2 * n, n
    return found


def compare(machines: Machines, runs: Sequence[Run], shard_size: int, *, cpu: bool = False) -> list[str]:
    """Simulated and measured passes, as Markdown."""
    one = runs[0]
    lines = [
        "| workers | seconds of a pass | efficiency | by CPU seconds | simulated, s | difference |",
        "|---|---:|---:|---:|---:|---:|",
        f"| none: one process | {one.clock:.3f} | 1.00 | 1.00 | | |",
    ]
    for run in runs[1:]:
        problem = Problem(run.n_positions, run.n_weights, run.n_shards, shard_size)
        took, found = simulate(machines, problem, run.workers).total, run.cpu if cpu else run.clock
        clock, spent = one.clock / run.clock / run.workers, one.cpu / run.cpu / run.workers
        difference = f"{took / found - 1:+.0%}".replace("-", "−").replace("%", " %")
        lines.append(
            f"| {run.workers} | {run.clock:.3f} | {clock:.2f} | {spent:.2f} | {took:.3f} | {difference} |"
        )
    return lines


NETWORKS = {  # (seconds of a message beside those of the program, bytes a second) between machines
    "1 Gbit/s": (0.3e-3, 0.125e9),
    "10 Gbit/s": (0.1e-3, 1.25e9),
    "100 Gbit/s": (0.05e-3, 12.5e9),
}
PROBLEMS = ((1_000_000, 500_000), (100_000_000, 5_000_000), (10_000_000_000, 50_000_000))
COLUMNS = (8, 64, 512, 1000)  # workers


def extrapolate(here: Machines) -> list[str]:
    """Many machines of one core each, as Markdown; a program does not send faster than here."""
    lines = [
        "| positions, weights | network | limit | " + " | ".join(f"{n:,} workers" for n in COLUMNS) + " |",
        "|---" * (3 + len(COLUMNS)) + "|",
    ]
    for n_positions, n_weights in PROBLEMS:
        problem = Problem(n_positions, n_weights, 1)
        for name, (latency, bandwidth) in NETWORKS.items():
            there = replace(
                here,
                latency=here.latency + latency,
                bandwidth=min(here.bandwidth, bandwidth),
                cores=None,
            )
            cells = []
            for n in COLUMNS:
                pieces = in_pieces(problem, n)
                took = simulate(there, pieces, n).total
                cells.append(f"{alone(there, problem) / took:.1f} × ({took:.3f} s)")
            head = f"| {n_positions:,}, {n_weights:,} | {name} | {limit(there, problem):,} | "
            lines.append(head + " | ".join(cells) + " |")
    return lines


def describe(here: Machines) -> list[str]:
    """The measured figures, as Markdown."""
    return [
        "| what | |",
        "|---|---:|",
        f"| computing, for a position | {here.seconds_per_position * 1e6:.3f} µs |",
        f"| computing, for a weight and shard | {here.per_shard * 1e9:.2f} ns |",
        f"| with a process on each core, longer by | {here.contention - 1:.0%} |".replace("%", " %"),
        f"| with two on each core, longer by | {here.crowding - 1:.0%} |".replace("%", " %"),
        f"| in the background of a second: client and scheduler | {here.idle_client * 1e3:.1f} ms |",
        f"| the same, a worker | {here.idle_worker * 1e3:.1f} ms |",
        f"| a message: latency | {here.latency * 1e3:.2f} ms |",
        f"| a message: bytes a second | {here.bandwidth / 1e9:.2f} GB |",
        f"| a message: seconds of the client | {here.handling * 1e3:.2f} ms |",
        f"| with shared memory: latency | {here.near_latency * 1e3:.2f} ms |",
        f"| with shared memory: a copy, for a weight | {here.near_copy * 1e9:.2f} ns |",
        f"| an addition, for a weight | {here.addition * 1e9:.2f} ns |",
        f"| the optimizer, for a weight | {here.optimizer * 1e9:.1f} ns |",
        f"| the same with one thread | {here.optimizer_alone * 1e9:.1f} ns |",
    ]


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, calibrate, compare, simulate."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--cpu", action="store_true")
    parser.add_argument("--repeats", type=int, help="of the measured passes")
    parser.add_argument("--measured", type=Path, help="distributed.json of benchmarks.distributed")
    parser.add_argument("--machines", type=Path, help="what an earlier run wrote, in place of calibrating")
    parser.add_argument("--out", type=Path, default=RESULTS)
    given = parser.parse_args(arguments)
    os.environ.update(QUIET)
    plan = QUICK if given.quick else Plan()
    plan = replace(plan, repeats=given.repeats or plan.repeats)
    data = ([], []) if given.measured and given.machines else load_data(plan)
    if given.measured:
        report = json.loads(given.measured.read_text())
        runs = [Run(**run) for run in report["runs"]]
        plan = replace(plan, shard_size=report["plan"]["shard_size"])
    else:
        runs = run_all(plan, data)
        check_bits(runs)
        write_report(given.out, plan, runs)
    here = (
        Machines(**json.loads(given.machines.read_text()))
        if given.machines
        else calibrate(plan, data, runs[0], cpu=given.cpu)
    )
    one = runs[0]
    size = f"{one.n_positions:,} positions, {one.n_weights:,} weights, {one.n_shards} shards"
    lines = [
        size,
        "",
        *compare(here, runs, plan.shard_size, cpu=given.cpu),
        "",
        *describe(here),
        "",
        *extrapolate(here),
    ]
    text = "\n".join(lines)
    print(text)
    given.out.mkdir(parents=True, exist_ok=True)
    (given.out / "cluster_simulation.md").write_text(text + "\n")
    (given.out / "cluster_machines.json").write_text(json.dumps(asdict(here), indent=1) + "\n")


if __name__ == "__main__":
    main()
