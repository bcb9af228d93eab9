"""Bodies of requests: read within the limits, and parsed as strict JSON."""

import asyncio
import json
import re
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from contextlib import suppress
from typing import Any, NoReturn

from crfkit.serve.errors import RequestError, bad_value
from crfkit.serve.limits import Limits

Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]

_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
_DRAIN_SECONDS, _DRAIN_BYTES = (
    0.5,
    4 * 1024 * 1024,
)  # read and thrown away before a client that still sends is refused


async def read_body(headers: Iterable[tuple[bytes, bytes]], receive: Receive, limits: Limits) -> bytes:
    """The body of a request; RequestError where it is too long, or too slow."""
    given = dict(headers)
    check_type(given.get(b"content-type", b""))
    length = given.get(b"content-length", b"0")
    if not length.isdigit() or len(length) > 18 or int(length) > limits.max_body:
        await _refuse(receive, limits)
    try:
        async with asyncio.timeout(limits.body_seconds):
            return await _collect(receive, limits)
    except TimeoutError:
        raise RequestError(
            408, f"the body did not arrive within {limits.body_seconds:g} seconds", close=True
        ) from None


async def _collect(receive: Receive, limits: Limits) -> bytes:
    pieces: list[bytes] = []
    size, more = 0, True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise RequestError(400, "the client went away", close=True)
        piece = message.get("body", b"")
        size += len(piece)
        if size > limits.max_body:
            pieces.clear()
            await _refuse(receive, limits)
        pieces.append(piece)
        more = message.get("more_body", False)
    return b"".join(pieces)


async def _refuse(receive: Receive, limits: Limits) -> NoReturn:
    """Read on for a moment, so that the client is through with sending and sees the answer; then refuse."""
    left = _DRAIN_BYTES
    with suppress(TimeoutError):
        async with asyncio.timeout(_DRAIN_SECONDS):
            while left > 0:
                message = await receive()
                left -= len(message.get("body", b""))
                if not message.get("more_body", False):
                    break
    raise RequestError(413, f"the body is too large, expected at most {limits.max_body:,} bytes", close=True)


def check_type(content_type: bytes) -> None:
    """Refuse what is not JSON. A page of another origin cannot send this type without being asked first."""
    name = content_type.split(b";", 1)[0].strip().lower()
    if name != b"application/json":
        shown = name[:60].decode("latin-1") or "missing"
        raise RequestError(415, f"the content type is {shown}, expected application/json", close=True)


def parse_object(body: bytes) -> dict[str, Any]:
    """The JSON object that a body holds; numbers are finite, and all text is text that UTF-8 can hold."""
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError as error:
        raise bad_value(f"the body is not UTF-8: byte {error.start} is 0x{body[error.start]:02x}") from None
    try:
        found = json.loads(text, parse_constant=_refuse_constant)
    except RecursionError:
        raise bad_value("the JSON is nested too deeply") from None
    except json.JSONDecodeError as error:
        raise bad_value(
            f"the body is not JSON: {error.msg} at line {error.lineno}, column {error.colno}"
        ) from None
    except ValueError as error:  # a number with thousands of digits, NaN
        raise bad_value(f"the body is not JSON: {str(error)[:200]}") from None
    if not isinstance(found, dict):
        raise bad_value(f"the body is {_kind(found)}, expected an object")
    if _SURROGATE.search(text):
        _check_text(found)
    return found


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number of JSON")


def _check_text(value: Any) -> None:
    """Refuse halves of surrogate pairs, which no text has."""
    try:
        json.dumps(value, ensure_ascii=False).encode("utf-8")
    except UnicodeEncodeError:
        raise bad_value("a text has one half of a surrogate pair (\\ud800 to \\udfff) alone") from None
    except RecursionError:  # writing needs a little more of the stack than reading
        raise bad_value("the JSON is nested too deeply") from None


def _kind(value: Any) -> str:
    names = {list: "an array", str: "a string", bool: "a boolean", type(None): "null"}
    return names.get(type(value), "a number")
