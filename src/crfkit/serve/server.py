"""A server of its own: uvicorn, signals, and the end of all that was begun."""

import contextlib
import gc
import logging
import signal
import socket
import threading
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import uvicorn

from crfkit.errors import ArgumentError
from crfkit.serve.app import make_app
from crfkit.serve.guard import LOCAL_HOSTS
from crfkit.serve.limits import Limits
from crfkit.serve.protocol import bounded_protocol
from crfkit.serve.store import Loader, ModelStore

LOGGER = logging.getLogger("crfkit.serve")
RELOAD_SECONDS = 1.0
SHUTDOWN_SECONDS = 30
SPARE_FILES = 64  # besides those of connections
BACKLOG = 1024  # connections that wait to be accepted


def serve(
    models: Mapping[str, Any],
    *,
    host: str = "127.0.0.1",
    port: int = 8000,
    limits: Limits | None = None,
    loader: Loader | None = None,
    n_threads: int | None = None,
    reload_models: bool = False,
    allowed_hosts: Collection[str] = (),
    train: bool = False,
    save_dir: Path | None = None,
    started: Callable[[str], None] | None = None,
) -> None:
    """Serve models over HTTP until SIGINT or SIGTERM; requests that are under way are answered first.

    `models` are trained models, or paths of model files, by name; the first one is the default. SIGHUP reads the files
    again, and `reload_models` does when they change. `port` 0 takes a free one; `started` is called with the address.
    On a loopback address, only requests to its names and to `allowed_hosts` are answered. Other options as for `make_app`.
    """
    limits = _fit_files(limits or Limits())
    options = {} if loader is None else {"loader": loader}
    store = ModelStore(models, limits, n_threads=n_threads, **options)
    try:
        listening = _listen(host, port)
        app = make_app(
            store,
            allowed_hosts=_hosts(host, allowed_hosts),
            reload_seconds=RELOAD_SECONDS if reload_models else None,
            train=train,
            save_dir=save_dir,
        )
        config = uvicorn.Config(
            app,
            http=bounded_protocol(limits),
            ws="none",
            loop="asyncio",
            lifespan="on",
            log_config=None,
            access_log=False,
            server_header=False,
            date_header=True,
            proxy_headers=False,
            backlog=BACKLOG,
            timeout_keep_alive=limits.keep_alive_seconds,
            timeout_graceful_shutdown=SHUTDOWN_SECONDS,
        )
        server = uvicorn.Server(config)
        gc.collect()
        gc.freeze()  # models and modules stay: later collections need not look at them, which keeps pauses short
        with listening, _signals(server, store):
            address = _address(host, listening)
            if started is not None:
                started(address)
            server.run(sockets=[listening])
    finally:
        store.close()


def _fit_files(limits: Limits) -> Limits:
    """As many connections as the system lets a process open files; its soft limit is raised where that helps."""
    try:
        import resource
    except ImportError:  # not a Unix system
        return limits
    wanted = limits.max_connections + SPARE_FILES
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return limits
    if hard == resource.RLIM_INFINITY or hard > soft:
        soft = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    most = max(min(limits.max_connections, soft - SPARE_FILES), 1)
    if most < limits.max_connections:
        LOGGER.warning("%d connections at a time: the system allows a process %d files", most, soft)
    return replace(limits, max_connections=most)


def _hosts(host: str, allowed: Collection[str]) -> list[str] | None:
    """The hosts that are answered: on a loopback address its names, so that no other page can be led there."""
    if host in LOCAL_HOSTS:
        return [*LOCAL_HOSTS, *allowed]
    return list(allowed) or None


def _listen(host: str, port: int) -> socket.socket:
    listening = None
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        # asyncio sends small answers at once (TCP_NODELAY) where the protocol is named: else they wait 40 ms for others.
        listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((host, port))
        listening.listen(BACKLOG)  # from now on nobody is refused
    except OSError as error:
        if listening is not None:
            listening.close()
        raise ArgumentError(
            f"{host}:{port}: the server cannot listen there ({error.strerror or error})"
        ) from None
    return listening


def _address(host: str, listening: socket.socket) -> str:
    name = f"[{host}]" if ":" in host else host
    return f"http://{name}:{listening.getsockname()[1]}"


@contextlib.contextmanager
def _signals(server: uvicorn.Server, store: ModelStore) -> Iterator[None]:
    """SIGHUP reads the model files again, beside the event loop; SIGINT and SIGTERM end the server, also before it listens.

    uvicorn raises the signals again that have ended it, for those who were there before: that is a normal end here.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def reload(*_: object) -> None:
        threading.Thread(target=store.reload, name="crfkit-reload", daemon=True).start()

    def end(*_: object) -> None:
        server.should_exit = True

    handlers = {signal.SIGINT: end, signal.SIGTERM: end}
    if hasattr(signal, "SIGHUP"):
        handlers[signal.SIGHUP] = reload
    before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
