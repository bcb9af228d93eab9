"""Load on an HTTP server, from a process of its own: requests as fast as they are answered, or at a fixed rate.

`python -m benchmarks.http_load` reads a plan as JSON from standard input and writes what it saw as JSON.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from dataclasses import asdict, dataclass, field
from itertools import cycle
from typing import Any


@dataclass
class LoadPlan:
    """What to ask, how often and for how long."""

    port: int
    path: str
    bodies: list[str]  # sent in turn
    seconds: float
    connections: int = 4
    rate: float | None = None  # requests a second; None: each connection asks again when it is answered


@dataclass
class Seen:
    """What came back."""

    seconds: float = 0.0
    statuses: dict[str, int] = field(default_factory=dict)
    latencies: list[float] = field(
        default_factory=list
    )  # seconds, from when a request was due to the end of its answer
    received: int = 0  # bytes

    @property
    def n_requests(self) -> int:
        """Requests that were answered."""
        return len(self.latencies)

    def quantile(self, share: float) -> float:
        """The latency that this share of the requests does not exceed."""
        ordered = sorted(self.latencies)
        return ordered[min(int(share * len(ordered)), len(ordered) - 1)]


class Connection:
    """One connection that is kept alive."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def ask(self, request: bytes) -> tuple[str, int]:
        """Status and length of the answer; "closed" where there is none."""
        try:
            if self.streams is None:
                self.streams = await asyncio.open_connection("127.0.0.1", self.port)
            reader, writer = self.streams
            writer.write(request)
            head = await reader.readuntil(b"\r\n\r\n")
            lines = head.split(b"\r\n")
            headers = {
                name.lower(): value for name, _, value in (line.partition(b": ") for line in lines[1:])
            }
            length = int(headers[b"content-length"])
            await reader.readexactly(length)
            if headers.get(b"connection") == b"close":
                self.close()
            return lines[0].split()[1].decode(), len(head) + length
        except (OSError, EOFError, asyncio.IncompleteReadError):
            self.close()
            return "closed", 0

    def close(self) -> None:
        """Hang up."""
        if self.streams is not None:
            self.streams[1].close()
            self.streams = None


async def apply(plan: LoadPlan) -> Seen:
    """Ask as the plan says."""
    requests = cycle([_request(plan, body.encode()) for body in plan.bodies])
    seen, began = Seen(), time.perf_counter()
    end = began + plan.seconds
    due = iter(_times(began, plan))

    async def work() -> None:
        connection = Connection(plan.port)
        while True:
            at = next(due)
            if at is None:
                at = time.perf_counter()
            if at >= end:
                break
            if (wait := at - time.perf_counter()) > 0:
                await asyncio.sleep(wait)
            status, length = await connection.ask(next(requests))
            seen.statuses[status] = seen.statuses.get(status, 0) + 1
            seen.latencies.append(time.perf_counter() - at)
            seen.received += length
        connection.close()

    await asyncio.gather(*(work() for _ in range(plan.connections)))
    seen.seconds = time.perf_counter() - began
    return seen


def _times(began: float, plan: LoadPlan) -> Any:
    """When each request is due; None: at once."""
    number = 0
    while True:
        yield None if plan.rate is None else began + number / plan.rate
        number += 1


def _request(plan: LoadPlan, body: bytes) -> bytes:
    head = (
        f"POST {plan.path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


if __name__ == "__main__":
    print(json.dumps(asdict(asyncio.run(apply(LoadPlan(**json.load(sys.stdin)))))))
