"""A cluster as training sees it: which workers there are, and answers that arrive or fail within a time limit."""

from __future__ import annotations

import asyncio
import concurrent.futures
import logging
import time
import warnings
from collections.abc import Callable, Collection, Coroutine, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pickle import PicklingError
from typing import Any
from uuid import uuid4

from dask.delayed import Delayed
from distributed.actor import ProxyRPC
from distributed.client import _wait
from distributed.comm import CommClosedError
from distributed.scheduler import KilledWorker

from crfkit import __version__
from crfkit.distributed.errors import (
    ClusterError,
    NoWorkersError,
    SchedulerLostError,
    UnequalProcessors,
    WorkersFailedError,
    WorkersLostError,
    WorkerVersionError,
)
from crfkit.distributed.worker import Machine, describe_machine
from crfkit.errors import ArgumentError, InputError, UnsupportedError
from distributed import Client, Future

logger = logging.getLogger("crfkit.distributed")
POLL = 0.5  # seconds between looks at the workers while an answer is awaited
ATTEMPTS = 8  # to compute something, while workers are lost
RETRIES = 2  # of a task that failed, on any worker
AHEAD = 2  # tasks for each thread that are under way
REACH = 5.0  # seconds to connect to a worker, before messages to it pass through the scheduler
BAD = ("cancelled", "lost", "error")  # states of a future that has no result
IMPORT = 60.0  # seconds for another machine to import crfkit, which may be slow the first time
# What is raised when the connection to the scheduler goes away.
GONE = (
    asyncio.CancelledError,
    concurrent.futures.CancelledError,
    CommClosedError,
    OSError,
    TimeoutError,
)


class Cluster:
    """The workers of a client. Everything that asks the cluster ends after `timeout` seconds without a sign of life."""

    def __init__(self, client: Client, timeout: float = 60.0) -> None:
        if not isinstance(client, Client):
            raise ArgumentError(
                f"client is of type {type(client).__name__}, expected a distributed.Client of dask"
            )
        if client.asynchronous:
            raise ArgumentError("client is asynchronous, expected distributed.Client(…) as it is by default")
        if not timeout > 0:
            raise ArgumentError(f"timeout is {timeout!r}, expected a number of seconds above 0")
        self.client = client
        self.timeout = timeout
        self.topic = f"crfkit-{uuid4().hex}"  # of the messages of workers
        self._address = _address(client)
        self._machines: dict[str, Machine] = {}  # workers that were asked, by address
        self._excluded: dict[str, BaseException] = {}
        self._reached: set[str] = set()  # workers that this process can connect to
        self._threads: dict[str, int] = {}
        self._n_kinds = 1  # of processors, until now
        self._looked = -1.0
        self._check_scheduler()

    def workers(self, *, age: float = 0.0) -> dict[str, int]:
        """The address and the number of threads of each worker that can be used, at most `age` seconds ago.

        Waits for the first one, up to the time limit.
        """
        if self._threads and time.monotonic() - self._looked < age:
            return self._threads
        began = time.monotonic()
        while True:
            found = self._look()
            usable = {address: n for address, n in found.items() if address not in self._excluded}
            if usable:
                self._check_workers(usable)
                if usable := {address: n for address, n in usable.items() if address in self._machines}:
                    self._threads, self._looked = dict(sorted(usable.items())), time.monotonic()
                    return self._threads
            if found and not usable:
                reasons = "; ".join(f"{worker}: {error}" for worker, error in self._excluded.items())
                raise WorkersFailedError(f"the task failed on every worker: {reasons}")
            if time.monotonic() - began > self.timeout:
                raise self._no_workers()
            time.sleep(min(POLL, self.timeout / 4))

    def exclude(self, worker: str, error: BaseException) -> None:
        """Use a worker no more, whose task failed."""
        self._excluded[worker] = error

    def gather(self, futures: Sequence[Future], needs: Collection[str] = ()) -> list[Any]:
        """What tasks give, or the error that one of them raised.

        WorkersLostError as soon as a worker that they need is gone.
        """
        try:
            return list(self.wait(self.client._gather(list(futures)), needs))
        except (WorkersLostError, SchedulerLostError):
            raise
        except Exception as error:
            if any(future.status == "error" for future in futures) and not isinstance(error, KilledWorker):
                raise
            raise WorkersLostError(f"{type(error).__name__}: {error}") from None

    def wait_for(self, futures: Sequence[Future], needs: Collection[str]) -> None:
        """Until tasks have ended, with or without an error. WorkersLostError as soon as a worker that they need is gone."""
        try:
            self.wait(_wait(list(futures)), needs)
        except (WorkersLostError, SchedulerLostError, NoWorkersError):
            raise
        except GONE as error:
            raise WorkersLostError(f"{type(error).__name__}: {error}") from None

    def error_of(self, future: Future) -> BaseException:
        """What a task that failed has raised; WorkersLostError where workers were lost over and over again."""
        error: BaseException = self.wait(future._exception())
        if isinstance(error, KilledWorker):
            raise WorkersLostError(f"{type(error).__name__}: {error}")
        return error

    def connection(self, worker: str) -> Any:
        """What sends messages to a worker: directly, or by way of the scheduler where the worker cannot be reached."""
        return self.client.rpc(worker) if worker in self._reached else ProxyRPC(self.client.scheduler, worker)

    def map_tasks(
        self, function: Callable[..., Any], arguments: Sequence[tuple[Any, ...]], shared: Any = None
    ) -> Iterator[Any]:
        """function(*arguments[i]) for each i, in order, by any workers; `shared`, if given, is the first argument of all.

        Delayed objects among the arguments are computed by workers. Some tasks beyond the one that is awaited are under
        way, so that memory is bounded. What workers were computing that are lost, others compute.
        """
        done, losses = 0, Losses("what they had is")
        while done < len(arguments):
            threads = self.workers()
            ahead = AHEAD * sum(threads.values())
            futures: dict[int, Future] = {}
            try:
                first = () if shared is None else (self.send(shared, next(iter(threads))),)
                while done < len(arguments):
                    for i in range(done, min(done + ahead, len(arguments))):
                        if i not in futures:
                            futures[i] = self.submit(function, *first, *arguments[i])
                    yield self._one(futures.pop(done))
                    done += 1
                    losses.n = 0
            except WorkersLostError as error:
                losses.add(error)

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Future:
        """A task for any worker. Delayed objects among the arguments are computed by workers."""
        given = [self.client.compute(thing) if isinstance(thing, Delayed) else thing for thing in arguments]
        return self.client.submit(function, *given, pure=False, retries=RETRIES)

    def _one(self, future: Future) -> Any:
        try:
            return self.gather([future])[0]
        except (InputError, ClusterError):
            raise
        except Exception as error:
            raise WorkersFailedError(f"a task failed {RETRIES + 1} times: {error!r}") from error

    def send(self, thing: Any, worker: str) -> Future:
        """A thing in the memory of a worker."""
        try:
            direct = worker in self._reached
            sent = self.wait(
                self.client._scatter([thing], workers=[worker], hash=False, direct=direct), [worker]
            )
        except (KeyError, ValueError, *GONE) as error:  # no such worker
            raise WorkersLostError(f"{worker}: {error}") from None
        except (TypeError, AttributeError, PicklingError) as error:
            raise UnsupportedError(f"the model or its data cannot be sent to workers: {error}") from None
        future: Future = sent[0]
        return future

    def wait(self, answer: Coroutine[Any, Any, Any], needs: Collection[str] = ()) -> Any:
        """What a coroutine of the client gives. WorkersLostError as soon as a worker that it needs is gone."""
        running = asyncio.run_coroutine_threadsafe(answer, self.client.loop.asyncio_loop)
        alive = time.monotonic()
        try:
            while True:
                try:
                    return running.result(timeout=POLL)
                except TimeoutError:
                    if running.done():
                        raise
                except concurrent.futures.CancelledError as error:
                    raise WorkersLostError(f"{type(error).__name__}: {error}") from None
                found = self._look()
                if missing := sorted(set(needs) - set(found)):
                    raise WorkersLostError(f"left: {', '.join(missing)}")
                alive = time.monotonic() if found else alive
                if time.monotonic() - alive > self.timeout:
                    raise self._no_workers()
        finally:
            if not running.done():
                running.cancel()

    @contextmanager
    def listen(self) -> Iterator[None]:
        """Messages that workers `send_message` meanwhile go to the logger here."""
        self.client.subscribe_topic(self.topic, _log)
        try:
            yield
        finally:
            with suppress(Exception):  # the scheduler may be gone
                self.client.unsubscribe_topic(self.topic)

    def run_on_workers(self, function: Any, workers: Iterable[str]) -> dict[str, Any]:
        """What a function gives on each worker, or the error that it raises; workers that left are not listed."""
        running = self.client._run(function, workers=list(workers), on_error="return")
        answers = self._ask(running, extra=IMPORT)
        return {worker: answer for worker, answer in answers.items() if not isinstance(answer, OSError)}

    def _look(self) -> dict[str, int]:
        """The workers that the scheduler knows, and their threads."""
        began = time.monotonic()
        while True:
            try:
                identity = self._ask(self.client.scheduler.identity(n_workers=-1), began)
            except GONE:
                if time.monotonic() - began > self.timeout:
                    raise self._lost() from None
                time.sleep(min(POLL, self.timeout / 4))
                continue
            return {
                address: worker["nthreads"]
                for address, worker in identity["workers"].items()
                if worker.get("status", "running") == "running"
            }

    def _ask(self, answer: Coroutine[Any, Any, Any], began: float | None = None, extra: float = 0.0) -> Any:
        """The same as `wait` for an answer of the scheduler itself, or of workers at once."""
        loop = self.client.loop
        left = self.timeout + extra - (0.0 if began is None else time.monotonic() - began)
        if self.client.status == "closed" or loop is None or loop.asyncio_loop.is_closed():
            answer.close()
            raise self._lost()
        running = asyncio.run_coroutine_threadsafe(answer, loop.asyncio_loop)
        try:
            return running.result(timeout=max(left, 0.1))
        finally:
            if not running.done():
                running.cancel()

    def _no_workers(self) -> NoWorkersError:
        return NoWorkersError(
            f"the scheduler at {self._address} has had no worker for {self.timeout:g} seconds"
        )

    def _lost(self) -> SchedulerLostError:
        return SchedulerLostError(
            f"the scheduler at {self._address} has not answered for {self.timeout:g} seconds, "
            f"or the client was closed"
        )

    def _check_scheduler(self) -> None:
        """Tasks pass through the scheduler, which reads the names of their functions."""
        self._look()
        try:
            machine = self._ask(self.client._run_on_scheduler(describe_machine), extra=IMPORT)
        except GONE:
            raise self._lost() from None
        except Exception as error:
            machine = error
        _check_version(f"the scheduler at {self._address}", machine)

    def _check_workers(self, workers: Collection[str]) -> None:
        """Refuse workers that cannot compute the same."""
        new = [worker for worker in workers if worker not in self._machines]
        if not new:
            return
        for worker, machine in self.run_on_workers(describe_machine, new).items():
            _check_version(f"the worker {worker}", machine)
            self._machines[worker] = machine
        self._reach(new)
        kinds = {self._machines[worker].instruction_set for worker in workers if worker in self._machines}
        if len(kinds) > self._n_kinds:
            warnings.warn(
                f"the workers compute with different instruction sets ({', '.join(sorted(kinds))}): the last bits "
                "of results depend on which worker has which data",
                UnequalProcessors,
                stacklevel=2,
            )
        self._n_kinds = len(kinds)

    def _reach(self, workers: Collection[str]) -> None:
        """Find out which workers this process can connect to."""

        async def reach(worker: str) -> None:
            with suppress(OSError):
                await asyncio.wait_for(self.client.rpc(worker).identity(), REACH)
                self._reached.add(worker)

        async def reach_all() -> None:
            await asyncio.gather(*map(reach, workers))

        self._ask(reach_all(), extra=REACH)
        if far := sorted(set(workers) - self._reached):
            logger.info(
                "messages pass through the scheduler to workers that cannot be reached: %s", ", ".join(far)
            )


class Losses:
    """How often workers were lost in a row while they computed something, which is computed again."""

    def __init__(self, what: str) -> None:
        self._what = what  # with its verb
        self.n = 0

    def add(self, error: WorkersLostError) -> None:
        """Workers were lost once more; WorkersFailedError after too many times."""
        self.n += 1
        logger.warning("workers were lost, and %s computed again: %s", self._what, error)
        if self.n == ATTEMPTS:
            raise WorkersFailedError(
                f"workers were lost {ATTEMPTS} times in a row while they computed: {error}"
            ) from None


def _log(event: tuple[float, Any]) -> None:
    """A message of a worker."""
    level, worker, message = event[1]
    logger.log(level, "%s: %s", worker, message)


def _address(client: Client) -> str:
    scheduler = client.scheduler
    return "?" if scheduler is None else str(scheduler.address)


def _check_version(who: str, machine: Machine | BaseException) -> None:
    if isinstance(machine, BaseException):
        raise WorkerVersionError(f"{who} cannot import crfkit.distributed of crfkit {__version__}: {machine}")
    if machine.version != __version__:
        raise WorkerVersionError(
            f"{who} has crfkit {machine.version}, expected {__version__} as the client has"
        )
