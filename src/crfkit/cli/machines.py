"""Options of commands that train on a cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import click

from crfkit.errors import ArgumentError, InputError, MissingPackageError

SECONDS = 30.0  # to connect

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
def open_cluster(address: str | None) -> Iterator[Any]:
    """A client of the scheduler at an address; None without one. What goes wrong there is bad input of the command."""
    if address is None:
        yield None
        return
    try:
        from crfkit.distributed import ClusterError
        from distributed import Client
    except ImportError:
        raise MissingPackageError("--cluster needs dask: pip install '.[distributed]'") from None
    try:
        client = Client(address, timeout=SECONDS)
    except (OSError, ValueError) as error:
        raise ArgumentError(f"--cluster {address}: no scheduler answers there ({error})") from None
    with client:
        try:
            yield client
        except ClusterError as error:
            raise InputError(f"--cluster {address}: {error}") from None
