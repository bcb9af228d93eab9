"""`python -m benchmarks.threads`: how training scales with the number of threads.

An iteration of L-BFGS (value, gradient, and the passes over the vectors of the method) is timed with 1, 2, 4, … threads on
the same data, for 9, 22 and 44 labels. Beside it stands the limit of the machine: as many processes as there are cores, one
thread each, all at the same time on copies of the data of their own; their joint speed by that of one process alone.
The processor time of all threads together says what more threads cost by themselves, also where there are fewer cores than
threads. Objectives have the same bits for any number of threads, which the last column shows.

    python -m benchmarks.threads [--threads 1 2 4 8 16] [--copies 4] [--problem chunking …]
"""

from __future__ import annotations

import argparse
import multiprocessing
import time
from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from typing import NamedTuple

import numpy as np

from benchmarks.machine import machine
from benchmarks.problems import PROBLEMS, Data
from benchmarks.table import grid
from benchmarks.tasks import TASKS, load
from crfkit.features import Annotation, Dataset, Encoder, FeatureMap, Labels
from crfkit.objective import Objective
from crfkit.optimizers import LBFGS
from crfkit.structures import Chain

ITERATIONS = 12  # of which the fastest counts; the first ones search for a step
HEAD = (
    "problem",
    "labels",
    "tokens",
    "threads",
    "ms / iteration",
    "CPU ms",
    "times one thread",
    "of the limit",
    "objective",
)


class Case(NamedTuple):
    """A data set, encoded."""

    name: str
    copies: int
    data: tuple[Dataset, Annotation]
    feature_map: FeatureMap

    @property
    def n_labels(self) -> int:
        return self.feature_map.n_labels

    @property
    def n_tokens(self) -> int:
        return int(self.data[0].sequence_ptr[-1])

    def objective(self, n_threads: int) -> Objective:
        """What is minimised, with so many threads."""
        loss = self.feature_map.loss(*self.data, single_precision=True, n_threads=n_threads)
        return Objective(loss, l2=2.0 * self.copies)


class Timing(NamedTuple):
    """Of a training run of a few iterations."""

    seconds: float  # of the fastest iteration
    cpu_seconds: float  # of all threads, in the iteration that took least
    objective: float


def tagging() -> Data:
    """CoNLL-2000, parts of speech."""
    task = TASKS["tag"]
    return Data(*load(task, "train"), *load(task, "test"))


READERS: dict[str, Callable[[], Data]] = {
    "names": PROBLEMS["names"].read,
    "chunking": PROBLEMS["chunking"].read,
    "tagging": tagging,
}


def encode(name: str, copies: int) -> Case:
    """A problem with its data repeated, and its penalty as many times."""
    data = READERS[name]()
    X, y = list(data.X) * copies, list(data.y) * copies
    encoder = Encoder(None)
    dataset = encoder.fit_encode(X)
    labels = Labels.learn(y)
    annotation = labels.encode(y, np.diff(dataset.sequence_ptr))
    feature_map = FeatureMap.build(
        dataset, annotation, Chain(), n_labels=len(labels), n_features=len(encoder.vocabulary)
    )
    return Case(name, copies, (dataset, annotation), feature_map)


def train(case: Case, n_threads: int) -> Timing:
    """A few iterations."""
    objective = case.objective(n_threads)
    clocks: list[tuple[float, float]] = []
    found = objective.minimize(
        LBFGS(max_iterations=ITERATIONS),
        np.zeros(objective.n_weights),
        n_threads=n_threads,
        callback=lambda *_: clocks.append((time.perf_counter(), time.process_time())),
    )
    seconds, cpu_seconds = np.diff(clocks, axis=0)[1:].min(axis=0)
    return Timing(float(seconds), float(cpu_seconds), objective.value_and_gradient(found.weights)[0])


def train_side_by_side(case: Case, n_processes: int) -> list[float]:
    """Seconds of the fastest iteration in each of so many processes, each on one thread and all at once."""
    context = multiprocessing.get_context("fork")
    barrier, results = context.Barrier(n_processes), context.SimpleQueue()

    def work() -> None:
        own = case._replace(data=deepcopy(case.data))  # memory that no other process reads
        barrier.wait()
        results.put(train(own, 1).seconds)

    processes = [context.Process(target=work) for _ in range(n_processes)]
    for process in processes:
        process.start()
    seconds = [results.get() for _ in processes]
    for process in processes:
        process.join()
    return seconds


def rows(name: str, copies: int, threads: Sequence[int], repeats: int) -> Iterator[tuple[str, ...]]:
    """The table of one problem."""
    case = encode(name, copies)
    most = max(threads)
    together = train_side_by_side(case, most)
    timings = {n: min(train(case, n) for _ in range(repeats)) for n in threads}
    alone = timings[min(threads)].seconds
    limit = sum(alone / seconds for seconds in together)
    for n, timing in timings.items():
        speedup = alone / timing.seconds
        share = f"{100 * speedup / limit:.0f} %" if n == most else ""
        yield (name, str(case.n_labels), f"{case.n_tokens:,}", str(n), f"{1000 * timing.seconds:.1f}",
               f"{1000 * timing.cpu_seconds:.1f}", f"{speedup:.2f}", share, timing.objective.hex())  # fmt: skip
    yield (name, str(case.n_labels), f"{case.n_tokens:,}", f"{most} processes",
           f"{1000 * max(together):.1f}", "", f"{limit:.2f}", "", "")  # fmt: skip


def main() -> None:
    """The table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2, 4, 8, 16])
    parser.add_argument("--copies", type=int, default=4, help="the training data so many times")
    parser.add_argument("--problem", nargs="+", choices=READERS, default=list(READERS))
    parser.add_argument("--repeats", type=int, default=2, help="of which the fastest counts")
    options = parser.parse_args()
    found: list[tuple[str, ...]] = []
    for name in options.problem:
        for row in rows(name, options.copies, options.threads, options.repeats):
            print(*row, flush=True)
            found.append(row)
    print(grid(HEAD, found))
    print(machine())


if __name__ == "__main__":
    main()
