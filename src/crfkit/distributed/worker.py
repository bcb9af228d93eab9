"""What runs on workers: losses of shards, and questions to them."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from threading import Lock
from time import perf_counter
from typing import Any, NamedTuple, NoReturn

import numpy as np

from crfkit import __version__
from crfkit.arrays import Float64s
from crfkit.objective import Loss, evaluate, hessian_vector, instruction_set, refine, sum_losses
from distributed import get_worker


class Machine(NamedTuple):
    """What a worker or the scheduler says of itself."""

    version: str  # of crfkit
    instruction_set: str


def describe_machine() -> Machine:
    """Of the process that runs this."""
    return Machine(__version__, instruction_set())


class LoadedShard:
    """The loss of one shard, in the memory of a worker: it lives as long as the client wants it, and cannot move."""

    def __init__(self, loss: Loss, n_bytes: int) -> None:
        self.loss, self.n_bytes = loss, n_bytes
        self.lock = Lock()  # a task that nobody waits for any more may still be running
        self._refined = False
        self._changes = False

    def refine(self) -> bool:
        """Answers in double precision from now on. Returns whether single precision came before."""
        if not self._refined:
            self._refined, self._changes = True, refine(self.loss)
        return self._changes

    def __sizeof__(self) -> int:
        return self.n_bytes + sys.getsizeof(self.lock)

    def __reduce__(self) -> NoReturn:
        raise TypeError("the loss of a shard stays where it is")


def send_message(topic: str, level: int, message: str) -> None:
    """The logger of the client gets a message (`Cluster.listen`)."""
    worker = get_worker()
    worker.log_event(topic, (level, worker.address, message))


def load_shard(
    make: Callable[[Any, int], tuple[Loss, int]], context: Any, n_threads: int, name: str, topic: str
) -> LoadedShard:
    """The loss that make(context, n_threads) gives, with the bytes of its data."""
    began = perf_counter()
    loss, n_bytes = make(context, n_threads)
    seconds = perf_counter() - began
    send_message(
        topic, logging.DEBUG, f"loaded {name}: {loss.n_sequences:,} sequences, in {seconds:.2f} seconds"
    )
    return LoadedShard(loss, n_bytes)


def answer(
    question: str, shards: Sequence[LoadedShard], refined: bool, *vectors: Float64s
) -> Float64s:  # [D + 1], or [1]
    """A question to consecutive shards, which are a node of the tree of sums: the sum [D], then its value."""
    with ExitStack() as stack:
        for shard in shards:
            stack.enter_context(shard.lock)
        if question == "refine":
            return np.array([max(map(LoadedShard.refine, shards))], dtype=np.float64)
        if refined:
            for shard in shards:
                shard.refine()
        loss = shards[0].loss if len(shards) == 1 else sum_losses([shard.loss for shard in shards])
        vectors = tuple(np.ascontiguousarray(vector) for vector in vectors)
        out = np.empty(loss.n_weights + 1)
        if question == "gradient":
            out[-1], out[:-1] = evaluate(loss, *vectors)
        else:
            out[-1], out[:-1] = 0.0, hessian_vector(loss, *vectors)
        return out


def add(first: Float64s, second: Float64s) -> Float64s:
    """Of two nodes of the tree of sums."""
    return first + second


def same(vector: Any) -> Any:
    """A copy of what another worker has."""
    return vector
