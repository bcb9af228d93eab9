"""Files that workers read: who has them, and what workers find there."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from crfkit.distributed.cluster import Cluster
from crfkit.distributed.encoding import check_files, find_missing
from distributed import Client


def missing_files(
    client: Client, files: Sequence[str | os.PathLike[str]], *, timeout: float = 60.0
) -> dict[str, Path | None]:
    """For the address of each worker, the first of the files that it does not have; None where it has all of them."""
    return find_missing(Cluster(client, timeout), _paths(files))


def map_files(
    client: Client,
    function: Callable[[Path], Any],
    files: Sequence[str | os.PathLike[str]],
    *,
    timeout: float = 60.0,
) -> list[Any]:
    """What a function gives for the path of each file, in order, by the workers, which must all have the files.

    `MissingDataError` names a worker that does not have one of them, and the file.
    """
    cluster, paths = Cluster(client, timeout), _paths(files)
    check_files(cluster, paths)
    return list(cluster.map_tasks(function, [(path,) for path in paths]))


def _paths(files: Sequence[str | os.PathLike[str]]) -> list[Path]:
    return [Path(file).absolute() for file in files]
