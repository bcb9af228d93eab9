"""What stands before the routes: how many requests at a time, which hosts, headers for browsers, counts and times."""

import time
from collections.abc import Awaitable, Callable, Collection, MutableMapping
from typing import Any

from crfkit.serve.asking import to_json
from crfkit.serve.errors import RequestError
from crfkit.serve.limits import Limits
from crfkit.serve.metrics import Metrics

Message = MutableMapping[str, Any]
Scope = MutableMapping[str, Any]
Send = Callable[[Message], Awaitable[None]]
Receive = Callable[[], Awaitable[Message]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

LOCAL_HOSTS = ("localhost", "127.0.0.1", "[::1]", "::1")

MOST_HEADERS = 100
LONGEST_HEADERS = 32 * 1024  # bytes of all of them

_SAFE = [
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"x-frame-options", b"DENY"),
]
_NO_CONTENT = (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'")


class Guard:
    """Counts requests, refuses those beyond the limits, and adds headers to all answers."""

    def __init__(
        self,
        app: App,
        limits: Limits,
        metrics: Metrics,
        paths: Collection[str],
        hosts: Collection[str] | None = None,
    ) -> None:
        self.app = app
        self.limits = limits
        self.metrics = metrics
        self.paths = frozenset(paths)  # all others are counted together
        self.hosts = None if hosts is None else frozenset(host.lower() for host in hosts)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or refuse it."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        began, status = time.perf_counter(), 500

        async def send_safely(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = list(message.get("headers", ()))
                if not any(name == b"content-security-policy" for name, _ in headers):
                    headers.append(_NO_CONTENT)
                message = {**message, "headers": [*headers, *_SAFE]}
            await send(message)

        self.metrics.running += 1
        try:
            error = self._find_error(scope)
            if error is not None:
                headers, body = error_parts(error)
                await send_safely({"type": "http.response.start", "status": error.status, "headers": headers})
                await send_safely({"type": "http.response.body", "body": body})
            else:
                await self.app(scope, receive, send_safely)
        finally:
            self.metrics.running -= 1
            path = scope["path"] if scope["path"] in self.paths else "other"
            self.metrics.record(path, status, time.perf_counter() - began)

    def _find_error(self, scope: Scope) -> RequestError | None:
        """Why a request is not even read."""
        headers = scope["headers"]
        if (
            len(headers) > MOST_HEADERS
            or sum(len(name) + len(value) for name, value in headers) > LONGEST_HEADERS
        ):
            return RequestError(431, "the headers are too large", close=True)
        if self.hosts is not None:
            given = [value for name, value in headers if name == b"host"]
            host = given[0].decode("latin-1") if given else ""
            if _without_port(host).lower() not in self.hosts:
                return RequestError(400, "the host of the request is not one of this server", close=True)
        if scope["method"] == "POST" and self.metrics.running > self.limits.max_requests:
            return RequestError(429, "too many requests at a time", close=True, retry_after=1)
        return None


def _without_port(host: str) -> str:
    """`localhost:8000` → localhost, `[::1]:8000` → [::1]."""
    name, colon, port = host.rpartition(":")
    return name if colon and port.isdigit() else host


def error_parts(error: RequestError) -> tuple[list[tuple[bytes, bytes]], bytes]:
    """An error as JSON: headers and body."""
    body = to_json({"error": error.message})
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    if error.close:
        headers.append((b"connection", b"close"))
    if error.retry_after is not None:
        headers.append((b"retry-after", str(error.retry_after).encode()))
    return headers, body
