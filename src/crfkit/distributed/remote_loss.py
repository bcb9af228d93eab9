"""The loss of a data set whose shards are on the workers of a cluster."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, NamedTuple, NoReturn, Protocol
from uuid import uuid4

import numpy as np

from crfkit.arrays import Float64s
from crfkit.distributed.cluster import BAD, Cluster, Losses
from crfkit.distributed.errors import MissingDataError, WorkersLostError
from crfkit.distributed.placement import Node, assign, slots_of, sum_tree
from crfkit.distributed.shared_vectors import Nearby, SharedVectors, can_open
from crfkit.distributed.sums import Question, ShardFailedError, Sum, add_up, ask, load_shard
from crfkit.errors import InputError, MissingFileError, reword
from crfkit.objective import Loss
from distributed import Future

FAN_OUT = 4  # nodes of the tree of sums that the client asks for
AGE = 1.0  # seconds after which it is asked again which workers there are
PAUSE = 0.05  # seconds before a pass is tried again; twice as many each time
logger = logging.getLogger("crfkit.distributed")


class ShardSource(Protocol):
    """The shards of a data set, as a client has them."""

    @property
    def costs(self) -> Sequence[float]:
        """[n] the positions of each shard."""

    @property
    def context(self) -> Any:
        """What all shards have in common: where the weights are."""

    def recipe(self, shard: int) -> Callable[[Any, int], tuple[Loss, int]] | Future:
        """What makes the loss of a shard on a worker, from the context and a number of threads; and its bytes."""

    def release(self) -> None:
        """All shards are loaded."""


class _Loaded(NamedTuple):
    worker: str
    future: Future  # of a `LoadedShard`
    recipe: Future | None  # until it is loaded


class _Point(NamedTuple):
    """Weights that all workers of a tree have."""

    number: int
    weights: Float64s
    tree: Node


class RemoteLoss:
    """Value, gradient and Hessian–vector products of shards, summed in a fixed tree; `LossFunctions` of an objective.

    A vector that is given back holds until the next question. The client knows which worker has which shard. Shards of
    workers that left are loaded by others, those that join get a share, and what was being computed is computed again:
    the sums have the same bits.
    """

    def __init__(
        self, cluster: Cluster, source: ShardSource, *, n_threads: int = 1, share_memory: bool = True
    ) -> None:
        self._cluster, self._source, self._n_threads = cluster, source, n_threads
        self._share_memory = share_memory  # with workers of this machine
        self._costs = list(source.costs)
        self._loaded: dict[int, _Loaded] = {}
        self._threads: dict[str, int] = {}  # of the workers that shards were last assigned to
        self._context: Future | None = None
        self._tree: Node | None = None  # with all shards loaded
        self._point: _Point | None = None  # of the last question
        self._refined = False
        self._nearby: Nearby | None = None  # of the workers of the tree; None: not known yet
        self._name = uuid4().hex
        self._n_loads = self._n_points = 0

    def evaluate(self, w: Float64s) -> tuple[float, Float64s]:
        """The value and the gradient [D] at weights w [D]."""
        return self._ask("gradient", w)

    def hessian_vector(self, w: Float64s, v: Float64s) -> Float64s:
        """H(w) v, [D]."""
        return self._ask("product", w, v).vector

    def refine(self) -> bool:
        """Answer in double precision from now on. Returns whether that is a change."""
        change = not self._refined and self._ask("refine").value > 0
        self._refined = True
        return change

    def close(self) -> None:
        """The workers may forget the data."""
        with suppress(Exception):  # the scheduler may be gone
            self._loaded.clear()
            self._context = self._tree = self._point = self._nearby = None

    def _ask(self, kind: str, *vectors: Float64s) -> Sum:
        """The answer of all shards; again where workers were lost meanwhile."""
        losses, age = Losses("their shards are"), AGE
        while True:
            threads = self._cluster.workers(age=age)
            try:
                return self._sum(kind, vectors, self._place(threads))
            except WorkersLostError as error:
                losses.add(error)
                time.sleep(PAUSE * 2 ** (losses.n - 1))  # the scheduler may not know yet
            except ShardFailedError as failed:
                losses.n = 0
                self._cluster.exclude(failed.worker, failed.error)
                logger.warning("%s is not used any more: %r", failed.worker, failed.error)
            self._tree = self._point = None
            age = 0.0  # the workers are to be looked up again

    def _place(self, threads: dict[str, int]) -> Node:
        """Each shard to a worker, which loads it; the tree of their sums."""
        for shard, loaded in list(self._loaded.items()):
            if loaded.worker not in threads or loaded.future.status in BAD:
                del self._loaded[shard]
        if self._tree is not None and len(self._loaded) == len(self._costs) and threads == self._threads:
            return self._tree
        owners = {shard: loaded.worker for shard, loaded in self._loaded.items()}
        placed = assign(self._costs, threads, owners)
        moved = [shard for shard, worker in placed.items() if owners.get(shard) != worker]
        if moved:
            n_workers = len(set(placed.values()))
            text = "loading %d of %d shards; workers: %d"
            logger.info(text, len(moved), len(placed), n_workers, extra={"stage": True})
        if self._context is None or self._context.status in BAD:
            self._context = self._cluster.send(self._source.context, placed[0])
        for shard in moved:
            self._loaded.pop(shard, None)  # before it is loaded elsewhere
        for shard in moved:
            self._loaded[shard] = self._load(shard, placed[shard])
        self._wait_until_loaded()
        self._threads = dict(threads)
        self._nearby = None
        self._tree = sum_tree(slots_of(placed, self._costs, threads))
        return self._tree

    def _load(self, shard: int, worker: str) -> _Loaded:
        self._n_loads += 1
        recipe = self._source.recipe(shard)
        if not isinstance(recipe, Future):
            recipe = self._cluster.send(recipe, worker)
        future = self._cluster.client.submit(
            load_shard,
            recipe,
            self._context,
            self._n_threads,
            f"shard {shard} of {len(self._costs)}",
            self._cluster.topic,
            key=f"crfkit_load-{self._name}-{self._n_loads}",
            pure=False,
            workers=[worker],
            allow_other_workers=False,
        )
        return _Loaded(worker, future, recipe)

    def _wait_until_loaded(self) -> None:
        """All shards; some may have been on their way when another worker was lost."""
        shards = [shard for shard, loaded in self._loaded.items() if loaded.recipe is not None]
        futures = [self._loaded[shard].future for shard in shards]
        self._cluster.wait_for(futures, {self._loaded[shard].worker for shard in shards})
        for shard in shards:
            worker, future, _ = self._loaded[shard]
            if future.status == "error":
                _blame(worker, self._cluster.error_of(future))
            self._loaded[shard] = _Loaded(worker, future, None)
        self._source.release()

    def _sum(self, kind: str, vectors: Sequence[Float64s], tree: Node) -> Sum:
        """The answers of all shards, added in the tree."""
        given = self._leave_out_known(vectors, tree)
        keys = [self._loaded[shard].future.key for shard in range(len(self._costs))]
        whole = Question(kind, tree, keys, self._refined, self._n_points)
        parts = tree.split(FAN_OUT)
        workers = {leaf.worker for leaf in tree.leaves()}
        nearby = self._find_nearby(vectors, workers)
        places = nearby.place(given, len(vectors) - len(given))

        async def ask_part(part: Node) -> Sum:
            connection = self._cluster.connection(part.worker)
            if not nearby.workers.issuperset(leaf.worker for leaf in part.leaves()):
                return await ask(connection, whole.part(part), given)
            answer = nearby.vectors[part]
            found = await ask(connection, whole.part(part, answer.place), places)
            return Sum(found.value, answer.numbers)

        async def ask_all() -> list[Sum]:
            return await asyncio.gather(*map(ask_part, parts))

        try:
            found = self._cluster.wait(ask_all(), workers)
        except ShardFailedError as failed:
            nearby.vectors.discard()
            _blame(failed.worker, failed.error)
        except BaseException:
            nearby.vectors.discard()  # some workers may still compute
            raise
        return add_up(tree, dict(zip(parts, found, strict=True)))

    def _find_nearby(self, vectors: Sequence[Float64s], workers: Collection[str]) -> Nearby:
        """The workers with which vectors of this length are shared."""
        if not vectors:
            return Nearby(frozenset(), SharedVectors(0))
        if self._nearby is None:
            shared = SharedVectors(len(vectors[0]))
            place = shared.try_out() if self._share_memory else None
            sees = {} if place is None else self._cluster.run_on_workers(partial(can_open, place), workers)
            near = frozenset(worker for worker, seen in sees.items() if seen is True)
            self._nearby = Nearby(near, shared)
        return self._nearby

    def _leave_out_known(self, vectors: Sequence[Float64s], tree: Node) -> Sequence[Float64s]:
        """Hessian–vector products at one point share its weights, which workers have."""
        known = self._point
        same_tree = known is not None and known.tree is tree and len(vectors) == 2
        if same_tree and known is not None and np.array_equal(known.weights, vectors[0]):
            return vectors[1:]
        if vectors:
            self._n_points += 1
            self._point = _Point(self._n_points, vectors[0], tree)
        return vectors


def _blame(worker: str, error: BaseException) -> NoReturn:
    """Raises what the error of a worker means."""
    if isinstance(error, MissingFileError):
        raise MissingDataError(
            f"the worker {worker} does not have a file that it is to read: {error}; expected on every worker, "
            "at the same path"
        ) from None
    if isinstance(error, InputError):
        raise reword(error, f"the worker {worker}: {error}") from None
    raise ShardFailedError(worker, error) from None
