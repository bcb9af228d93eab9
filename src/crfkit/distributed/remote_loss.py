"""The loss of a data set whose shards are on the workers of a cluster."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, NamedTuple, NoReturn, Protocol
from uuid import uuid4

import numpy as np

from crfkit.arrays import Float64s
from crfkit.distributed.cluster import ATTEMPTS, Cluster
from crfkit.distributed.errors import MissingDataError, WorkersFailedError, WorkersLostError
from crfkit.distributed.placement import Node, assign, slots_of, sum_tree
from crfkit.distributed.worker import add, answer, load_shard, same
from crfkit.errors import InputError, MissingFileError, reword
from crfkit.objective import Loss
from distributed import Future

FAN_OUT = 4  # workers that get the weights from one other worker
AGE = 1.0  # seconds after which it is asked again which workers there are
BAD = ("cancelled", "lost", "error")  # states of a future that has no result
logger = logging.getLogger("crfkit.distributed")


class ShardSource(Protocol):
    """The shards of a data set, as a client has them."""

    @property
    def costs(self) -> Sequence[float]:
        """[n] the positions of each shard."""

    @property
    def context(self) -> Any:
        """What all shards have in common: where the weights are."""

    def recipe(self, shard: int) -> Callable[[Any, int], tuple[Loss, int]]:
        """What makes the loss of a shard on a worker, from the context and a number of threads; and its bytes."""


class _Loaded(NamedTuple):
    worker: str
    future: Future  # of a `LoadedShard`
    recipe: Future | None  # until it is loaded


class _Copies(NamedTuple):
    """A vector, and its copies on workers."""

    vector: Float64s
    copies: dict[str, Future]


class RemoteLoss:
    """Value, gradient and Hessian–vector products of shards, summed in a fixed tree; `LossFunctions` of an objective.

    The client knows which worker has which shard. Shards of workers that left are loaded by others, those that join get
    a share, and what was being computed is computed again: the sums have the same bits.
    """

    def __init__(self, cluster: Cluster, source: ShardSource, *, n_threads: int = 1) -> None:
        self._cluster, self._source, self._n_threads = cluster, source, n_threads
        self._costs = list(source.costs)
        self._loaded: dict[int, _Loaded] = {}
        self._threads: dict[str, int] = {}  # of the workers that shards were last assigned to
        self._context: Future | None = None
        self._weights: _Copies | None = None  # those of the last question
        self._refined = False
        self._name = uuid4().hex
        self._n_tasks = 0

    def evaluate(self, w: Float64s) -> tuple[float, Float64s]:
        """The value and the gradient [D] at weights w [D]."""
        total = self._ask("gradient", w)
        return float(total[-1]), total[:-1]

    def hessian_vector(self, w: Float64s, v: Float64s) -> Float64s:
        """H(w) v, [D]."""
        return self._ask("product", w, v)[:-1]

    def refine(self) -> bool:
        """Answer in double precision from now on. Returns whether that is a change."""
        change = not self._refined and bool(self._ask("refine")[0])
        self._refined = True
        return change

    def close(self) -> None:
        """The workers may forget the data."""
        with suppress(Exception):  # the scheduler may be gone
            self._loaded.clear()
            self._context = self._weights = None

    def _ask(self, question: str, *vectors: Float64s) -> Float64s:
        """The answer of all shards; again where workers were lost meanwhile."""
        n_lost = 0
        while True:
            threads = self._cluster.workers(age=0.0 if n_lost else AGE)
            try:
                self._place(threads)
                return self._sum(question, vectors)
            except WorkersLostError as error:
                n_lost += 1
                self._weights = None
                logger.warning("workers were lost, and their shards are computed again: %s", error)
                if n_lost == ATTEMPTS:
                    raise WorkersFailedError(
                        f"workers were lost {ATTEMPTS} times in a row while they computed: {error}"
                    ) from None
            except _TaskError as failed:
                n_lost, self._weights = 1, None  # the workers are to be looked up again
                self._cluster.exclude(failed.worker, failed.error)
                logger.warning("%s is not used any more: %r", failed.worker, failed.error)

    def _place(self, threads: dict[str, int]) -> None:
        """Each shard to a worker, which loads it."""
        for shard, loaded in list(self._loaded.items()):
            if loaded.worker not in threads or loaded.future.status in BAD:
                del self._loaded[shard]
        if len(self._loaded) == len(self._costs) and threads == self._threads:
            return
        owners = {shard: loaded.worker for shard, loaded in self._loaded.items()}
        placed = assign(self._costs, threads, owners)
        moved = [shard for shard, worker in placed.items() if owners.get(shard) != worker]
        if moved:
            n_workers = len(set(placed.values()))
            logger.info("%d of %d shards are loaded; workers: %d", len(moved), len(placed), n_workers)
        if self._context is None or self._context.status in BAD:
            self._context = self._cluster.send(self._source.context, placed[0])
        for shard in moved:
            self._loaded.pop(shard, None)  # before it is loaded elsewhere
        for shard in moved:
            self._loaded[shard] = self._load(shard, placed[shard])
        self._threads = dict(threads)

    def _load(self, shard: int, worker: str) -> _Loaded:
        recipe = self._cluster.send(self._source.recipe(shard), worker)
        name = f"shard {shard} of {len(self._costs)}"
        about = (self._n_threads, name, self._cluster.topic)
        future = self._submit("load", worker, load_shard, recipe, self._context, *about)
        return _Loaded(worker, future, recipe)

    def _sum(self, question: str, vectors: Sequence[Float64s]) -> Float64s:
        """The answers of all shards, added in the tree."""
        placed = {shard: loaded.worker for shard, loaded in self._loaded.items()}
        tree = sum_tree(slots_of(placed, self._costs, self._threads))
        workers = list(dict.fromkeys(placed[leaf.begin] for leaf in tree.leaves()))
        copies = self._broadcast(vectors, workers)
        leaves: dict[Node, Future] = {}
        whole = self._total(tree, question, copies, leaves)
        try:
            (found,) = self._cluster.gather([whole], workers)
        except WorkersLostError:
            raise
        except Exception as error:
            self._blame(error, leaves)
        self._loaded = {shard: loaded._replace(recipe=None) for shard, loaded in self._loaded.items()}
        sums: Float64s = found
        return sums

    def _total(
        self, node: Node, question: str, copies: dict[str, list[Future]], leaves: dict[Node, Future]
    ) -> Future:
        """The sum of the shards of a node; the tasks of workers are noted in `leaves`."""
        if node.slot is None:
            first, second = (self._total(child, question, copies, leaves) for child in node.children)
            return self._submit("add", None, add, first, second)
        worker = node.slot[0]
        shards = [self._loaded[shard].future for shard in range(node.begin, node.end)]
        task = self._submit(question, worker, answer, question, shards, self._refined, *copies[worker])
        leaves[node] = task
        return task

    def _broadcast(self, vectors: Sequence[Float64s], workers: list[str]) -> dict[str, list[Future]]:
        """Copies of vectors on all workers; Hessian–vector products at one point share that of the weights."""
        copies: dict[str, list[Future]] = {worker: [] for worker in workers}
        for i, vector in enumerate(vectors):
            known = self._weights
            if (
                i
                or known is None
                or list(known.copies) != workers
                or not np.array_equal(known.vector, vector)
            ):
                known = _Copies(vector, self._copy(vector, workers))
            if not i:
                self._weights = known
            for worker in workers:
                copies[worker].append(known.copies[worker])
        return copies

    def _copy(self, vector: Float64s, workers: list[str]) -> dict[str, Future]:
        """Each worker gets a vector from another one, the first from here."""
        copies = {workers[0]: self._cluster.send(vector, workers[0])}
        for i, worker in enumerate(workers[1:]):
            copies[worker] = self._submit("copy", worker, same, copies[workers[i // FAN_OUT]])
        return copies

    def _submit(self, kind: str, worker: str | None, function: Callable[..., Any], *arguments: Any) -> Future:
        """A task, on one worker alone where that is given."""
        self._n_tasks += 1
        key = f"crfkit_{kind}-{self._name}-{self._n_tasks}"
        pinned = {} if worker is None else {"workers": [worker], "allow_other_workers": False}
        return self._cluster.client.submit(function, *arguments, key=key, pure=False, **pinned)

    def _blame(self, error: Exception, leaves: dict[Node, Future]) -> NoReturn:
        """Raises what the error of a task means."""
        worker = next((own.worker for own in self._loaded.values() if own.future.status == "error"), None)
        if worker is None:
            worker = next(
                (node.slot[0] for node, own in leaves.items() if node.slot and own.status == "error"), None
            )
        if worker is None:
            raise error
        if isinstance(error, MissingFileError):
            raise MissingDataError(
                f"the worker {worker} does not have a file that it is to read: {error}; expected on every worker, "
                "at the same path"
            ) from None
        if isinstance(error, InputError):
            raise reword(error, f"the worker {worker}: {error}") from None
        raise _TaskError(worker, error) from None


class _TaskError(Exception):
    """A task raised an error that others may not meet."""

    def __init__(self, worker: str, error: Exception) -> None:
        super().__init__(worker, error)
        self.worker, self.error = worker, error
