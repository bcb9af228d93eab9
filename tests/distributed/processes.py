"""A cluster of separate processes, as on separate machines: one scheduler, and workers that come and go."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from types import TracebackType
from typing import Any, Self

WAIT = 60.0  # seconds for a process to start


class Processes:
    """`dask scheduler` and `dask worker`, in a folder for their files."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.file = folder / "scheduler.json"
        self.workers: dict[str, subprocess.Popen[bytes]] = {}
        self.scheduler = self._start("dask_scheduler", "--port", "0", "--scheduler-file", str(self.file))
        wait_until(self.file.exists, "the scheduler to start")

    def add(self, name: str, *options: str, cwd: Path | None = None) -> subprocess.Popen[bytes]:
        """Another worker, without a nanny that would start it again."""
        place = ("--scheduler-file", str(self.file), "--name", name, "--nthreads", "1", "--no-nanny")
        self.workers[name] = self._start("dask_worker", *place, *options, cwd=cwd)
        return self.workers[name]

    def connect(self, n_workers: int = 0) -> Any:
        """A client, when there are so many workers."""
        from distributed import Client

        client = Client(scheduler_file=str(self.file), timeout=WAIT)
        if n_workers:
            client.wait_for_workers(n_workers, timeout=WAIT)
        return client

    def _start(self, module: str, *options: str, cwd: Path | None = None) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", f"distributed.cli.{module}", "--no-dashboard", *options]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        log = (self.folder / f"{module}-{len(self.workers)}.log").open("wb")
        with log:
            return subprocess.Popen(
                command, cwd=cwd or self.folder, env=environment, stdout=log, stderr=subprocess.STDOUT
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for process in (*self.workers.values(), self.scheduler):
            process.kill()
            process.wait()


def wait_until(condition: Any, what: str) -> None:
    """Waits until a function gives something true."""
    began = time.monotonic()
    while not condition():
        if time.monotonic() - began > WAIT:
            raise TimeoutError(f"waited {WAIT:g} seconds for {what}")
        time.sleep(0.02)
