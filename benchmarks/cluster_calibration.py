"""What a machine is like for `benchmarks.cluster_simulation`: computing, messages and the optimizer, measured one by one.

    a pass in one process           at two sizes of shards: seconds for a position, and for a weight of each shard
    several passes side by side     how much longer they take that begin together, until the last one ends: processes
                                    share memory and caches, and take turns
    questions without work          to one worker, about vectors of several lengths, in messages and in shared memory:
                                    latency and bytes a second; to several workers: seconds for each
    a cluster without work          the processor time that client, scheduler and workers take all the same
    the optimizer                   iterations on a function that costs nothing, with one thread and with all
    an addition                     of two vectors

Nothing is fitted to passes on several workers, which the simulation is compared with.
"""

from __future__ import annotations

import multiprocessing
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from benchmarks.distributed import Plan, Run, best, local_client, measure
from crfkit import CRF, LBFGS
from crfkit.arrays import Float64s
from crfkit.models import Progress
from crfkit.objective import Objective, evaluate, python_loss

SIZES = (1_000, 500_000, 2_000_000)  # of vectors in messages
MANY = 4  # workers that the client asks


@dataclass(frozen=True)
class Machines:
    """What the machines and the network are like."""

    seconds_per_position: float  # value and gradient, one thread
    per_shard: float  # seconds for each weight and shard: its gradient is cleared and added
    latency: float  # seconds of a message
    bandwidth: float  # bytes a second, of each machine
    addition: float  # seconds for each weight of a sum of two vectors
    optimizer: float  # seconds of the client for each weight and pass
    optimizer_alone: float  # the same with one thread
    handling: float = 0.0  # seconds of the client for each message
    contention: float = 1.0  # how much longer computing takes where each core of one machine has a process
    crowding: float = 1.0  # the same where it has several, beside the turns that they take
    idle_client: float = 0.0  # processor time of client and scheduler that have nothing to do, in a second
    idle_worker: float = 0.0  # the same of a worker
    near_latency: float = 0.0  # seconds of a message on one machine, where vectors are in shared memory
    near_copy: float = 0.0  # seconds for each weight until it is in shared memory
    cores: int | None = None  # that all workers share, as on one machine; None: each has its own


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

    def release(self) -> None:
        """There is nothing to release."""


class Quadratic:
    """½ Σ a_d w_d², which counts its seconds and its evaluations."""

    def __init__(self, n_weights: int, clock: Callable[[], float]) -> None:
        self.scale = np.random.default_rng(0).uniform(0.1, 10.0, n_weights)
        self.clock, self.seconds, self.n = clock, 0.0, 0

    def evaluate(self, w: Float64s) -> tuple[float, Float64s]:
        """Value and gradient."""
        began = self.clock()
        gradient = w * self.scale
        value = 0.5 * float(w @ gradient)
        self.seconds, self.n = self.seconds + self.clock() - began, self.n + 1
        return value, gradient

    def hessian_vector(self, w: Float64s, v: Float64s) -> Float64s:
        """H v."""
        return v * self.scale

    def refine(self) -> bool:
        """There is nothing to refine."""
        return False


def optimizer_seconds(n_weights: int, iterations: int, n_threads: int, clock: Callable[[], float]) -> float:
    """Of L-BFGS for each weight and pass, beside the function that it minimises."""
    functions = Quadratic(n_weights, clock)
    loss = python_loss(functions, n_weights=n_weights, n_sequences=1, n_threads=n_threads)
    objective = Objective(loss, l2=1.0)
    optimizer = LBFGS(max_iterations=iterations, tolerance=0.0, change=0.0)
    start = np.ones(n_weights)
    began = clock()
    objective.minimize(optimizer, start, n_threads=n_threads)
    return (clock() - began - functions.seconds) / functions.n / n_weights


def addition_seconds(n_weights: int, clock: Callable[[], float], repeats: int = 20) -> float:
    """Of an addition in place, for each weight; the vectors are not in a cache."""
    vectors = np.ones((2 * repeats, n_weights))
    began = clock()
    for i in range(repeats):
        np.add(vectors[2 * i], vectors[2 * i + 1], out=vectors[2 * i])
    return (clock() - began) / repeats / n_weights


def question_seconds(
    sizes: Sequence[int], repeats: int, *, n_workers: int = 1, share_memory: bool = False, cpu: bool = False
) -> list[float]:
    """Of a question to workers about a vector of each size, and its answer, without what the empty loss itself takes.

    The lower quartile by the clock; with `cpu`, the mean of the processor seconds of client and worker.
    """
    from crfkit.distributed.cluster import Cluster
    from crfkit.distributed.remote_loss import RemoteLoss

    found = []
    with local_client(n_workers) as client:
        for n_weights in sizes:
            shards = EmptyShards(n_weights, n_workers)
            remote = RemoteLoss(Cluster(client), shards, share_memory=share_memory)
            own = Nothing(n_weights)(None, 1)[0]
            remote.evaluate(np.zeros(n_weights))
            seconds, empty = [], []
            before, here = sum(client.run(time.process_time).values()), time.process_time()
            for i in range(1, repeats + 1):
                w = np.full(n_weights, float(i))
                began = time.perf_counter()
                remote.evaluate(w)
                seconds.append(time.perf_counter() - began)
            spent = time.process_time() - here + sum(client.run(time.process_time).values()) - before
            clock = time.process_time if cpu else time.perf_counter
            for _ in range(repeats):
                began = clock()
                evaluate(own, w)
                empty.append(clock() - began)
            remote.close()
            total = spent / repeats if cpu else float(np.quantile(seconds, 0.25))
            found.append(max(total - float(np.quantile(empty, 0.25)), 1e-6))
    return found


def message_line(sizes: Sequence[int], seconds: Sequence[float]) -> tuple[float, float]:
    """Latency and bytes a second of a message, from questions, which are two messages each: the line through the ends."""
    n_bytes = 8.0 * (sizes[-1] - sizes[0])
    per_byte = max(seconds[-1] - seconds[0], 1e-9) / n_bytes / 2
    return max(seconds[0] / 2 - per_byte * 8.0 * sizes[0], 1e-6), 1 / per_byte


_data: tuple[Any, Any] = ([], [])  # of processes that are forked
_barrier: Any = None


def _passes(plan: Plan) -> list[tuple[float, float, float]]:
    """When the iterations of a training run begin and end, and their passes; all processes begin one together."""
    rows: list[tuple[float, float, float]] = []
    began = done = 0.0

    def callback(step: Progress) -> None:
        nonlocal began, done
        rows.append((began, time.perf_counter(), step.passes - done))
        done = step.passes
        _barrier.wait(600)
        began = time.perf_counter()

    optimizer = LBFGS(max_iterations=2 * plan.iterations, tolerance=0.0, change=0.0)
    CRF(n_threads=1, optimizer=optimizer).fit(*_data, shard_size=plan.shard_size, callback=callback)
    return rows[1:]


def pass_beside(n_processes: int, plan: Plan, data: tuple[Any, Any]) -> float:
    """The seconds of a pass in so many processes, each with all of the data, from when they begin until the last one ends.

    The lower quartile, as for the passes that are measured on workers.
    """
    global _data, _barrier
    fork = multiprocessing.get_context("fork")
    _data, _barrier = data, fork.Barrier(n_processes)
    with fork.Pool(n_processes) as pool:
        begin, end, passes = np.array(pool.map(_passes, [plan] * n_processes, chunksize=1)).T
    return float(np.quantile((end.max(axis=1) - begin.min(axis=1)) / passes[:, 0], 0.25))


def contention_of(plan: Plan, data: tuple[Any, Any], cores: int) -> tuple[float, float]:
    """How much longer a pass takes where each core has a process, and where it has two, which take turns."""
    found: dict[int, list[float]] = {1: [], cores: [], 2 * cores: []}
    some = tuple(part[: len(part) // 4] for part in data)
    for _ in range(plan.repeats):  # in turn, so that a load on the machine meets all of them
        for n, seconds in found.items():
            seconds.append(pass_beside(n, plan, some))
    alone, each, twice = (min(seconds) for seconds in found.values())
    return max(each / alone, 1.0), max(twice / alone / 2, 1.0)


def idle_seconds(seconds: float) -> tuple[float, float]:
    """Processor time, in a second, of the client with its scheduler, and of a worker, that have nothing to do."""
    with local_client(1) as client:
        client.run(time.process_time)
        before, here, began = client.run(time.process_time), time.process_time(), time.perf_counter()
        time.sleep(seconds)
        own = time.process_time() - here
        after, took = client.run(time.process_time), time.perf_counter() - began
    return own / took, sum(after[worker] - before[worker] for worker in before) / took


def calibrate(plan: Plan, data: tuple[Any, Any], one: Run, *, cpu: bool = False) -> Machines:
    """What this machine is like; `one` is a pass in one process with the same plan.

    By the clock that needs a machine that does nothing else. With `cpu`, seconds are those of processors, of client and
    worker together, and nothing is shared.
    """
    clock = time.process_time if cpu else time.perf_counter
    D, repeats = one.n_weights, 10 if plan.part < 1.0 else 40
    n_threads = os.cpu_count() or 1
    alone, together = (optimizer_seconds(D, plan.iterations, n, clock) for n in (1, n_threads))
    coarse = replace(plan, shard_size=4 * plan.shard_size)
    larger = best([measure(coarse, 0, data) for _ in range(plan.repeats)])
    seconds, others = (run.cpu if cpu else run.clock for run in (one, larger))
    n_fewer = max(one.n_shards - larger.n_shards, 1)
    per_shard = max(seconds - others, 0.0) / n_fewer / D
    computing = seconds - alone * D - per_shard * one.n_shards * D
    latency, bandwidth = message_line(SIZES, question_seconds(SIZES, repeats, cpu=cpu))
    near = (SIZES[0], max(D, 2 * SIZES[0]))
    near_seconds = question_seconds(near, repeats, share_memory=True, cpu=cpu)
    near_latency, near_bandwidth = message_line(near, near_seconds)
    many = question_seconds(near[:1], repeats, n_workers=MANY, share_memory=True, cpu=cpu)[0]
    contention, crowding = (1.0, 1.0) if cpu else contention_of(plan, data, n_threads)
    idle_client, idle_worker = (0.0, 0.0) if cpu else idle_seconds(0.1 * repeats)
    return Machines(
        seconds_per_position=max(computing, 0.1 * seconds) / one.n_positions,
        per_shard=per_shard,
        latency=latency,
        bandwidth=bandwidth,
        addition=addition_seconds(D, clock),
        optimizer=together,
        optimizer_alone=alone,
        handling=min(max(many - near_seconds[0], 0.0) / (MANY - 1) / 2, latency),
        contention=contention,
        crowding=crowding,
        idle_client=idle_client,
        idle_worker=idle_worker,
        near_latency=near_latency,
        near_copy=2 * 8.0 / near_bandwidth,
        cores=None if cpu else n_threads,
    )
