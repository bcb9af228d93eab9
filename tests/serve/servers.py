"""Servers to ask: in this process, or a real one with a port of its own."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
from starlette.testclient import TestClient

from crfkit.serve import Limits, make_app

SOURCES = Path(__file__).parents[2] / "src"


@contextlib.contextmanager
def asking(models: dict[str, Any], limits: Limits | None = None, **options: Any) -> Iterator[TestClient]:
    """A client of an application in this process."""
    app = make_app(models, limits=limits, **options)
    with TestClient(app, raise_server_exceptions=False) as client:
        yield client


class RunningServer:
    """`crfkit serve` in a process of its own."""

    def __init__(self, models: dict[str, Path], *options: str) -> None:
        given = [f"{name}={path}" for name, path in models.items()]
        self.process = subprocess.Popen(
            [sys.executable, "-m", "crfkit", "serve", *given, "--port", "0", *options],
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": str(SOURCES)},
        )
        assert self.process.stderr is not None
        line = self.process.stderr.readline()
        found = re.search(r"http://([\d.]+):(\d+)", line)
        assert found is not None, line + self.process.stderr.read()
        self.url = found[0]
        self.address = (found[1], int(found[2]))
        self.lines: list[str] = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stderr is not None
        self.lines.extend(self.process.stderr)

    def client(self, **options: Any) -> httpx.Client:
        """A client with keep-alive."""
        return httpx.Client(base_url=self.url, timeout=30, trust_env=False, **options)

    def connect(self) -> socket.socket:
        """A bare connection."""
        return socket.create_connection(self.address, timeout=30)

    def memory(self) -> int:
        """Resident bytes of the process."""
        text = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(next(line for line in text.splitlines() if line.startswith("VmRSS")).split()[1]) * 1024

    def signal(self, number: int) -> None:
        """Send a signal."""
        self.process.send_signal(number)

    def stop(self) -> int:
        """End it as Ctrl-C does; its exit status."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise
        finally:
            self._reader.join(5)
            assert self.process.stderr is not None
            self.process.stderr.close()


@contextlib.contextmanager
def running(models: dict[str, Path], *options: str) -> Iterator[RunningServer]:
    """A server that is stopped at the end."""
    server = RunningServer(models, *options)
    try:
        yield server
    finally:
        server.stop()


def exchange(connection: socket.socket, data: bytes) -> bytes:
    """Send bytes, and read until the other side hangs up; what was read."""
    with contextlib.suppress(OSError):
        connection.sendall(data)
    return read_all(connection)


def read_all(connection: socket.socket) -> bytes:
    """Read until the other side hangs up."""
    pieces = []
    with contextlib.suppress(OSError):
        while piece := connection.recv(65536):
            pieces.append(piece)
    return b"".join(pieces)


def status(answer: bytes) -> int:
    """The status of an answer; 0 where there is none."""
    found = re.match(rb"HTTP/1\.1 (\d{3}) ", answer)
    return int(found[1]) if found else 0
