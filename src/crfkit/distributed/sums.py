"""Sums over the tree of shards, from worker to worker: a message with the weights to each, a message with a sum back.

The worker of a node computes the leaves that it has, asks other workers for the nodes that they have, and adds:

    total(leaf) = computed here
    total(node) = total(first half) here + total(second half) of the worker of that half

So weights reach 2^k workers in k steps, and sums come back in as many. The client asks for the largest nodes. Messages go
from process to process, as scheduling a task takes longer than sending a vector. Where the workers of a node are on the
client's machine, vectors are in memory that they share, and messages say where.
"""

from __future__ import annotations

import asyncio
import logging
import pickle
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from distributed.protocol import to_serialize

from crfkit.arrays import Float64s
from crfkit.distributed.errors import WorkersLostError
from crfkit.distributed.placement import Node
from crfkit.distributed.shared_vectors import Place
from crfkit.distributed.worker import LoadedShard, send_message
from crfkit.objective import Loss, evaluate, hessian_vector
from distributed import Worker, get_worker

OPERATION = "crfkit_sum"  # the name of the message


@dataclass(frozen=True)
class Question:
    """What is asked of a node of the tree of sums."""

    kind: str  # "gradient", "product" (with the Hessian) or "refine"
    node: Node
    keys: Sequence[str]  # under which workers have the shards begin, …, end − 1 of the node
    refined: bool  # answer in double precision
    point: int  # the number of the weights; shards remember the last ones
    answer: Place | None = None  # where the client wants the vector; None: in a message

    def part(self, node: Node, answer: Place | None = None) -> Question:
        """The same of a node below."""
        begin = node.begin - self.node.begin
        keys = self.keys[begin : begin + node.end - node.begin]
        return replace(self, node=node, keys=keys, answer=answer)


class Sum(NamedTuple):
    """What the shards of a node give together: a value, and a vector [D], or [0]."""

    value: float
    vector: Float64s

    def __add__(self, other: Sum) -> Sum:  # type: ignore[override]
        """In the memory of the first one, or of the other, where it may be used."""
        out = next((own.vector for own in (self, other) if own.vector.flags.writeable), None)
        return Sum(self.value + other.value, np.add(self.vector, other.vector, out=out))


class ShardFailedError(Exception):
    """A worker raised an error that others may not meet."""

    def __init__(self, worker: str, error: BaseException) -> None:
        super().__init__(worker, error)
        self.worker, self.error = worker, error


Vector = Float64s | Place  # itself, or where it is
NOTHING = np.zeros(0)


async def ask(connection: Any, question: Question, vectors: Sequence[Vector]) -> Sum:
    """The answer of the worker of a node. WorkersLostError, if it or one that it asks is gone.

    Where the question says where the vector goes, that of the answer is empty.
    """
    worker = question.node.worker
    try:
        given = [to_serialize(vector) for vector in vectors]
        reply = await getattr(connection, OPERATION)(question=to_serialize(question), vectors=given)
    except OSError as error:
        raise WorkersLostError(f"{worker}: {error}") from None
    status = "unknown" if reply is None else reply["status"]
    if status == "OK":
        return Sum(reply["value"], reply["vector"])
    if status == "failed":
        raise ShardFailedError(reply["worker"], reply["error"])
    raise WorkersLostError(f"{worker}: it has no shards" if status == "unknown" else reply["message"])


def add_up(node: Node, sums: dict[Node, Sum]) -> Sum:
    """The sum of a node from those of nodes below it."""
    if node in sums:
        return sums[node]
    first, second = (add_up(child, sums) for child in node.children)
    return first + second


def load_shard(
    make: Callable[[Any, int], tuple[Loss, int]], context: Any, n_threads: int, name: str, topic: str
) -> LoadedShard:
    """The loss that make(context, n_threads) gives, with the bytes of its data, on a worker that answers questions then."""
    _answer_questions(get_worker())
    began = perf_counter()
    loss, n_bytes = make(context, n_threads)
    seconds = perf_counter() - began
    send_message(
        topic, logging.DEBUG, f"loaded {name}: {loss.n_sequences:,} sequences, in {seconds:.2f} seconds"
    )
    return LoadedShard(loss, n_bytes)


def _answer_questions(worker: Worker) -> None:
    """The worker takes messages from now on."""
    if OPERATION not in worker.handlers:
        answers = _Answers(worker)

        async def answer(comm: Any, question: Question, vectors: list[Vector]) -> dict[str, Any]:
            return await answers.reply(question, vectors)

        worker.handlers[OPERATION] = answer


class _Answers:
    """The answers of a worker; everything but computing and adding runs in its event loop."""

    def __init__(self, worker: Worker) -> None:
        self._worker = worker

    async def reply(self, question: Question, vectors: list[Vector]) -> dict[str, Any]:
        """To a message."""
        try:
            found = await self._total(question, vectors)
            if question.answer is not None:
                found = Sum(found.value, NOTHING)  # the vector is there
        except WorkersLostError as error:
            return {"status": "lost", "message": str(error)}
        except ShardFailedError as failed:
            return {
                "status": "failed",
                "worker": failed.worker,
                "error": to_serialize(_portable(failed.error)),
            }
        return {"status": "OK", "value": found.value, "vector": to_serialize(found.vector)}

    async def _total(self, question: Question, vectors: list[Vector]) -> Sum:
        node = question.node
        if node.slot is not None:
            return await self._compute(question, vectors)
        first, second = question.part(node.children[0], question.answer), question.part(node.children[1])
        other = second.node.worker
        there = (
            self._total(second, vectors)
            if other == self._worker.address
            else ask(self._worker.rpc(other), second, vectors)
        )
        parts = await asyncio.gather(there, self._total(first, vectors))
        found: Sum = await self._run(parts[1].__add__, parts[0])
        return found

    async def _compute(self, question: Question, vectors: list[Vector]) -> Sum:
        """The answer of a leaf, by a thread of those that dask has for tasks."""
        data = self._worker.data
        if missing := [key for key in question.keys if key not in data]:
            raise WorkersLostError(f"{self._worker.address} does not have {missing[0]} any more")
        shards: list[LoadedShard] = [data[key] for key in question.keys]
        shared = shards[0].opened
        try:
            opened = [shared.open(own) if isinstance(own, Place) else own for own in vectors]
            out = None if question.answer is None else shared.open(question.answer)
        except OSError as error:  # the client is gone
            raise WorkersLostError(f"{self._worker.address}: {error}") from None
        try:
            found: Sum = await self._run(compute, question, shards, opened, out)
        except WorkersLostError:
            raise
        except Exception as error:
            raise ShardFailedError(self._worker.address, error) from None
        return found

    async def _run(self, function: Any, *arguments: Any) -> Any:
        return await asyncio.get_running_loop().run_in_executor(self._worker.executor, function, *arguments)


def _portable(error: BaseException) -> BaseException:
    """An error that arrives: itself, or its text."""
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return RuntimeError(f"{type(error).__name__}: {error}")
    return error


def compute(
    question: Question, shards: Sequence[LoadedShard], vectors: Sequence[Float64s], out: Float64s | None
) -> Sum:
    """The answer of consecutive shards, which are a node of the tree; the vector in `out`, if given."""
    locks = [shard.lock for shard in shards]
    for lock in locks:
        lock.acquire()
    try:
        if question.kind == "refine":
            return Sum(float(max([shard.refine() for shard in shards])), np.zeros(0))
        if question.refined:
            for shard in shards:
                shard.refine()
        w, *direction = _place_weights(question, shards, vectors)
        loss = shards[0].add(shards[1:])
        if question.kind == "gradient":
            return Sum(*evaluate(loss, w, out))
        return Sum(0.0, hessian_vector(loss, w, direction[0], out))
    finally:
        for lock in locks:
            lock.release()


def _place_weights(
    question: Question, shards: Sequence[LoadedShard], vectors: Sequence[Float64s]
) -> list[Float64s]:
    """The vectors as the core takes them, with the weights, which are left out where all workers have them."""
    given = [np.require(vector, np.float64, ["C", "A"]) for vector in vectors]
    if len(given) == (1 if question.kind == "gradient" else 2):
        for shard in shards:
            shard.weights = question.point, given[0]
        return given
    known = shards[0].weights
    if known is None or known[0] != question.point:
        raise WorkersLostError("the weights of a worker are not those of the others")
    return [known[1], *given]
