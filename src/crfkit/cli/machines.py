"""Options of commands that train on a cluster."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic
from typing import Any

import click

from crfkit.cli.progress import Display
from crfkit.errors import ArgumentError, InputError, MissingPackageError

SECONDS = 30.0  # to connect
REMIND = 3.0  # seconds without an answer after which a line says so
AGAIN = 9.0  # after which another one does

Command = Callable[..., Any]


def cluster_options(command: Command) -> Command:
    """`--cluster` and `--shard-size`."""
    for option in (
        click.option(
            "--shard-size",
            type=click.IntRange(min=1),
            metavar="N",
            help="Words of a shard at most, which workers have.  [default: 1,048,576]",
        ),
        click.option(
            "--cluster", metavar="ADDRESS", help="Train on the workers of the dask scheduler at ADDRESS."
        ),
    ):
        command = option(command)
    return command


@contextmanager
def open_cluster(address: str | None, display: Display) -> Iterator[Any]:
    """A client of the scheduler at an address; None without one. What goes wrong there is bad input of the command."""
    if address is None:
        yield None
        return
    try:
        from crfkit.distributed import ClusterError
        from distributed import Client
    except ImportError:
        raise MissingPackageError("--cluster needs dask: pip install '.[distributed]'") from None
    display.say(f"connecting to the scheduler at {address}")
    try:
        with _remind(address, display):
            client = Client(address, timeout=SECONDS)
    except OSError as error:
        raise ArgumentError(
            f"--cluster {address}: no scheduler has answered there for {SECONDS:g} seconds ({error})"
        ) from None
    except ValueError as error:
        raise ArgumentError(
            f"--cluster {address}: expected the address of a dask scheduler, such as tcp://host:8786 ({error})"
        ) from None
    with client:
        try:
            yield client
        except ClusterError as error:
            raise InputError(f"--cluster {address}: {error}") from None


@contextmanager
def _remind(address: str, display: Display) -> Iterator[None]:
    """In this block, lines say that nothing has answered yet, and how long it is tried."""
    began, ended = monotonic(), threading.Event()

    def say() -> None:
        pause = REMIND
        while not ended.wait(pause):
            left = SECONDS - (monotonic() - began)
            if left >= 1.0:
                display.say(f"the scheduler at {address} does not answer; trying for {left:.0f} s more")
            pause = AGAIN

    thread = threading.Thread(target=say, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
