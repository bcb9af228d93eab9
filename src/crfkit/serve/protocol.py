"""HTTP connections that end: those that are too many, too slow to ask, or too slow to read their answer."""

import asyncio
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

from crfkit.serve.errors import RequestError
from crfkit.serve.guard import error_parts
from crfkit.serve.limits import Limits


class BoundedProtocol(H11Protocol):
    """uvicorn's HTTP protocol within `Limits`. uvicorn itself waits for the headers of a request for ever."""

    limits = Limits()
    _timer: asyncio.TimerHandle | None = None  # until the headers are there
    _write_timer: asyncio.TimerHandle | None = None  # until the client reads on

    def connection_made(self, transport: Any) -> None:
        """Refuse a connection beyond the limit; else wait for its first request."""
        super().connection_made(transport)
        if len(self.connections) > self.limits.max_connections:
            self._refuse(RequestError(429, "too many connections", close=True, retry_after=1))
        else:
            self._expect_request()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop waiting."""
        self._stop_timers()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Read on. Time runs from the first byte of a request to the last one of its headers."""
        if self.transport.is_closing():
            return
        super().data_received(data)
        if self.cycle is not None and not self.cycle.response_complete:
            self._stop_timer()
        elif self._timer is None:
            self._expect_request()

    def on_response_complete(self) -> None:
        """Wait for the next request."""
        super().on_response_complete()
        self._stop_timer()

    def pause_writing(self) -> None:
        """The client does not read: wait for it, but not for ever."""
        super().pause_writing()
        if self._write_timer is None:
            self._write_timer = self.loop.call_later(self.limits.write_seconds, self.transport.abort)

    def resume_writing(self) -> None:
        """The client reads on."""
        super().resume_writing()
        self._stop_write_timer()

    def _expect_request(self) -> None:
        self._timer = self.loop.call_later(self.limits.header_seconds, self._expire)

    def _expire(self) -> None:
        self._timer = None
        if self.cycle is None or self.cycle.response_complete:
            seconds = f"{self.limits.header_seconds:g}"
            self._refuse(RequestError(408, f"no request within {seconds} seconds", close=True))

    def _refuse(self, error: RequestError) -> None:
        """Answer without a request, and hang up."""
        if self.transport.is_closing():
            return
        headers, body = error_parts(error)
        names = {408: b"Request Timeout", 429: b"Too Many Requests"}
        lines = [b"HTTP/1.1 %d %s" % (error.status, names[error.status])]
        lines += [name + b": " + value for name, value in headers]
        self.transport.write(b"\r\n".join([*lines, b"", body]))
        self.transport.close()

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _stop_write_timer(self) -> None:
        if self._write_timer is not None:
            self._write_timer.cancel()
            self._write_timer = None

    def _stop_timers(self) -> None:
        self._stop_timer()
        self._stop_write_timer()


def bounded_protocol(limits: Limits) -> type[BoundedProtocol]:
    """The protocol with these limits."""
    return type("BoundedProtocol", (BoundedProtocol,), {"limits": limits})
