"""What runs on workers: the losses of shards, in memory."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from threading import Lock
from typing import NamedTuple, NoReturn

from crfkit import __version__
from crfkit.arrays import Float64s
from crfkit.distributed.shared_vectors import OpenVectors
from crfkit.objective import Loss, instruction_set, refine, sum_losses
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
        self.lock = Lock()  # a question that nobody waits for any more may still be answered
        self.weights: tuple[int, Float64s] | None = None  # of the last question: their number, and [D]
        self.opened = OpenVectors()
        self._refined = False
        self._changes = False
        self._sum: tuple[list[Loss], Loss] | None = None  # of shards of which this is the first

    def refine(self) -> bool:
        """Answers in double precision from now on. Returns whether single precision came before."""
        if not self._refined:
            self._refined, self._changes = True, refine(self.loss)
        return self._changes

    def add(self, others: Sequence[LoadedShard]) -> Loss:
        """The sum of its loss and those of other shards: the one of last time, with its memory, where it was of these."""
        losses = [self.loss, *(other.loss for other in others)]
        if self._sum is None or not _are_same(self._sum[0], losses):
            self._sum = losses, sum_losses(losses)
        return self._sum[1]

    def __sizeof__(self) -> int:
        return self.n_bytes + sys.getsizeof(self.lock)

    def __reduce__(self) -> NoReturn:
        raise TypeError("the loss of a shard stays where it is")


def _are_same(some: Sequence[Loss], others: Sequence[Loss]) -> bool:
    return len(some) == len(others) and all(a is b for a, b in zip(some, others, strict=True))


def send_message(topic: str, level: int, message: str) -> None:
    """The logger of the client gets a message (`Cluster.listen`)."""
    worker = get_worker()
    worker.log_event(topic, (level, worker.address, message))
