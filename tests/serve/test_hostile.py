"""Requests that mean harm: each gets a 4xx, and the server goes on."""

from __future__ import annotations

import json
import socket
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("starlette", reason='needs Starlette: pip install ".[serve]"')
pytest.importorskip("uvicorn", reason='needs uvicorn: pip install ".[serve]"')
pytest.importorskip("httpx", reason="needs httpx")

from crfkit.serve.errors import RequestError
from crfkit.serve.json_body import parse_object
from tests.serve.models import attributes, names, parser
from tests.serve.servers import RunningServer, exchange, read_all, running, status

GOOD = b'{"text": "Anna lives in Oslo."}'


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    folder = tmp_path_factory.mktemp("models")
    models = {"names": names(), "attributes": attributes(), "parser": parser()}
    for name, model in models.items():
        model.save(folder / f"{name}.crf")
    limits = ("--max-body", "200000", "--header-seconds", "1.5", "--body-seconds", "1.5")
    with running({name: folder / f"{name}.crf" for name in models}, *limits) as found:
        yield found
        assert not [line for line in found.lines if "Traceback" in line or "Error" in line], found.lines


@pytest.fixture(autouse=True)
def _alive(server: RunningServer) -> Iterator[None]:
    """After each test the server answers as before, and has not grown."""
    yield
    with server.client() as client:
        response = client.post("/tag", content=GOOD, headers={"content-type": "application/json"})
        assert response.status_code == 200
        assert 'status="500"' not in client.get("/metrics").text
    assert server.memory() < 600 * 1024 * 1024


def post(path: str, body: bytes, *more: str, kind: str = "application/json") -> bytes:
    lines = [f"POST {path} HTTP/1.1", "Host: localhost", f"Content-Type: {kind}", "Connection: close"]
    if not any(line.lower().startswith(("content-length", "transfer-encoding")) for line in more):
        lines.append(f"Content-Length: {len(body)}")
    return "\r\n".join([*lines, *more, "", ""]).encode() + body


def ask(server: RunningServer, data: bytes) -> int:
    with server.connect() as connection:
        return status(exchange(connection, data))


BODIES: dict[str, tuple[bytes, int]] = {
    "nothing": (b"", 400),
    "no JSON": (b"hello", 400),
    "half of it": (b'{"text": "a', 400),
    "an array": (b"[]", 400),
    "null": (b"null", 400),
    "a number": (b"1" * 100, 400),
    "a number of many digits": (b'{"text": "a", "threshold": ' + b"9" * 9000 + b"}", 400),
    "deep arrays": (b"[" * 100_000, 400),
    "deep arrays that end": (b'{"text": ' + b"[" * 50_000 + b"]" * 50_000 + b"}", 400),
    "deep objects": (b'{"a":' * 30_000 + b"1" + b"}" * 30_000, 400),
    "broken UTF-8": (b'{"text": "\xff\xfe"}', 400),
    "overlong UTF-8": (b'{"text": "\xc0\xaf"}', 400),
    "UTF-16": ('{"text": "a"}'.encode("utf-16"), 400),
    "half of a surrogate pair": (b'{"text": "\\ud800"}', 400),
    "half of one in a name": (b'{"text": "a", "model": "\\udfff"}', 400),
    "NaN": (b'{"text": "a", "threshold": NaN}', 400),
    "NaN as a value": (b'{"model": "attributes", "features": [[{"w": NaN}]]}', 400),
    "infinity": (b'{"text": "a", "threshold": -Infinity}', 400),
    "a large exponent": (b'{"text": "a", "threshold": 1e999}', 400),
    "an unknown field": (b'{"text": "a", "__class__": "os"}', 400),
    "a path": (b'{"text": "a", "model": "../../etc/passwd"}', 404),
    "a file": (b'{"file": "/etc/passwd"}', 400),
    "a name that is an array": (b'{"text": "a", "model": [[[]]]}', 404),
    "many tokens": (b'{"text": "' + b"a " * 60_000 + b'"}', 413),
    "a long sentence": (b'{"text": "' + b"a " * 3_000 + b'"}', 413),
    "many texts": (b'{"texts": [' + b'"a",' * 1_500 + b'"a"]}', 413),
    "a long sentence to parse": (b'{"model": "parser", "tokens": [[' + b'"a",' * 300 + b'"a"]]}', 422),
}


@pytest.mark.parametrize("what", BODIES)
def test_bodies(server: RunningServer, what: str) -> None:
    body, expected = BODIES[what]
    for path in ("/spans", "/predict", "/doccano", "/setup"):
        found = ask(server, post(path, body))
        assert 400 <= found < 500 or (path in ("/setup", "/doccano") and found == 200), (path, found)
        if path == "/spans":
            assert found == expected


@pytest.fixture
def usual_stack() -> Iterator[None]:
    """The depth that Python allows by itself: packages of notebooks raise it for the whole process."""
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(1000)
    yield
    sys.setrecursionlimit(limit)


@pytest.mark.usefixtures("usual_stack")
def test_json_at_the_end_of_the_stack() -> None:
    """A text with a surrogate pair is looked at once more, wherever it stands."""
    refused = 0
    for depth in range(400, 1100):
        body = b'{"x": ' + b"[" * depth + b'"\\ud83d\\ude00"' + b"]" * depth + b"}"
        try:
            assert parse_object(body)
        except RequestError:
            refused += 1
    assert refused


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (b'{"text": ""}', 200),
        (b'{"model": "attributes", "features": [[' + b'{"a":' * 900 + b"1" + b"}" * 900 + b"]]}", 200),
        (b'{"text": "\\u0000"}', 200),
        (b'{"text": "a\\u0000b \\u2028 \\ufeff \\ud83d\\ude00"}', 200),
        (json.dumps({"text": "<script>alert(1)</script>"}).encode(), 200),
        (json.dumps({"text": "e\u0301" * 500}).encode(), 200),
        (json.dumps({"text": "x" * 150_000}).encode(), 200),  # one token
    ],
)
def test_strange_texts_are_texts(server: RunningServer, body: bytes, expected: int) -> None:
    assert ask(server, post("/spans", body)) == expected


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        ("/../../etc/passwd", 404),
        ("/%2e%2e/%2e%2e/etc/passwd", 404),
        ("/models/../../etc/passwd", 404),
        ("/models/%2e%2e%2fnames/health", 404),
        ("/models/nobody/health", 404),
        ("/page.html", 404),
        ("/tag/", 404),
        ("//tag", 404),
        ("/tag", 405),
        ("/\x7f", 400),
        ("*", 404),
        ("http://localhost/etc/passwd", 404),
        ("/" + "a" * 80_000, 400),
        ("/?" + "&".join(f"a{i}=1" for i in range(3_000)), 200),
    ],
)
def test_paths(server: RunningServer, target: str, expected: int) -> None:
    lines = f"GET {target} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
    with server.connect() as connection:
        answer = exchange(connection, lines.encode("latin-1"))
    assert status(answer) == expected or (400 <= status(answer) < 500 and expected >= 400)
    assert b"root:" not in answer


@pytest.mark.parametrize(
    "data",
    [
        b"hello\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",  # the beginning of TLS
        b"\x00" * 2_000,
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET /\r\n\r\n",
        b"POST /tag HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n",
        b"POST /tag HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello",
        b"POST /tag HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: gzip\r\n\r\n",
        b"POST /tag HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        b"Transfer-Encoding: chunked\r\n\r\nxyz\r\n",
        b"GET / HTTP/1.1\r\nHost: localhost\r\n" + b"a: b\r\n" * 20_000 + b"\r\n",
        b"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + b"y" * 100_000 + b"\r\n\r\n",
        b"GET / HTTP/1.1\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n",
        b"GET / HTTP/1.0\r\n\r\n",
        b"CONNECT localhost:22 HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
        b"TRACE / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
        b"DELETE /tag HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
    ],
)
def test_what_is_no_proper_request(server: RunningServer, data: bytes) -> None:
    found = ask(server, data)
    assert 400 <= found < 500


def test_a_request_smuggled_behind_another(server: RunningServer) -> None:
    """The body is one of the two lengths, never the next request."""
    inner = b"GET /models HTTP/1.1\r\nHost: localhost\r\n\r\n"
    data = (
        b"POST /tag HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 4\r\n"
        b"Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n0\r\n\r\n" + inner
    )
    with server.connect() as connection:
        answer = exchange(connection, data)
    assert answer.count(b"HTTP/1.1 ") == 1
    assert 400 <= status(answer) < 500


@pytest.mark.parametrize(
    "kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""]
)
def test_other_types_of_content(server: RunningServer, kind: str) -> None:
    """A page of another origin can send these without asking; JSON it cannot."""
    assert ask(server, post("/tag", GOOD, kind=kind)) == 415
    assert ask(server, post("/webhook", b'{"action": "START_TRAINING"}', kind=kind)) == 415


def test_training_is_off(server: RunningServer) -> None:
    assert ask(server, post("/webhook", b'{"action": "START_TRAINING"}')) == 403
    assert ask(server, post("/train", b'{"annotations": [{}]}')) == 403


def test_a_body_of_a_gigabyte(server: RunningServer) -> None:
    """It is refused by its length, before it has arrived."""
    assert ask(server, post("/tag", b"", "Content-Length: 1000000000")) == 413
    assert ask(server, post("/tag", b"", f"Content-Length: {'9' * 30}")) in (400, 413)
    assert ask(server, post("/tag", b"x" * 3_000_000)) == 413


def test_an_endless_body(server: RunningServer) -> None:
    """Chunks without end: refused, and the connection is closed; the client cannot go on for ever."""
    before = server.memory()
    with server.connect() as connection:
        connection.sendall(post("/tag", b"", "Transfer-Encoding: chunked"))
        piece = b"8000\r\n" + b" " * 0x8000 + b"\r\n"
        sent, began = 0, time.monotonic()
        try:
            while time.monotonic() - began < 20:
                connection.sendall(piece)
                sent += len(piece)
        except OSError:
            pass
        answer = read_all(connection)
    assert time.monotonic() - began < 15
    assert status(answer) in (413, 0)  # a client that does not read may lose the answer with the connection
    assert server.memory() - before < 50 * 1024 * 1024


def test_an_endless_body_is_answered_while_it_comes(server: RunningServer) -> None:
    with server.connect() as connection:
        connection.sendall(post("/tag", b"", "Transfer-Encoding: chunked"))
        for _ in range(10):
            connection.sendall(b"8000\r\n" + b" " * 0x8000 + b"\r\n")
        assert status(connection.recv(1000)) == 413


def test_a_client_that_sends_no_request(server: RunningServer) -> None:
    began = time.monotonic()
    with server.connect() as connection:
        answer = read_all(connection)
    assert status(answer) == 408
    assert time.monotonic() - began < 10


@pytest.mark.parametrize("keep_alive", [False, True])
def test_a_client_that_sends_headers_slowly(server: RunningServer, keep_alive: bool) -> None:
    began = time.monotonic()
    with server.connect() as connection:
        if keep_alive:
            connection.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
            first = b""
            while b"UP" not in first:
                first += connection.recv(10_000)  # headers and body may come one after the other
        connection.settimeout(0.2)
        answer = b""
        for byte in b"GET / HTTP/1.1\r\nHost: localhost\r\nA: b\r\nC: d\r\n" * 10:
            try:
                connection.sendall(bytes([byte]))
                answer += connection.recv(10_000)
            except TimeoutError:
                continue
            except OSError:
                break
            if answer:
                break
    assert status(answer) == 408
    assert time.monotonic() - began < 10


def test_a_client_that_sends_its_body_slowly(server: RunningServer) -> None:
    began = time.monotonic()
    with server.connect() as connection:
        connection.sendall(post("/tag", b'{"te', "Content-Length: 1000"))
        answer = read_all(connection)
    assert status(answer) == 408
    assert time.monotonic() - began < 10


def test_clients_that_go_away(server: RunningServer) -> None:
    for data in (b"", b"GET", post("/tag", b"{", "Content-Length: 1000"), post("/tag", GOOD)):
        for _ in range(20):
            with server.connect() as connection:
                connection.sendall(data)


def test_a_client_that_does_not_read(server: RunningServer) -> None:
    """It asks on and on, and reads nothing: the others are answered."""
    text = json.dumps({"text": "Anna lives in Oslo. " * 300}).encode()
    request = post("/tag", text).replace(b"Connection: close\r\n", b"")
    with server.connect() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.settimeout(0.5)
        try:
            for _ in range(500):
                connection.sendall(request)
        except OSError:
            pass
        with server.client() as client:
            for _ in range(5):
                began = time.monotonic()
                assert client.get("/health").status_code == 200
                assert time.monotonic() - began < 1


def test_a_thousand_connections(server: RunningServer) -> None:
    """All are held or refused, and requests of others are answered quickly meanwhile."""
    connections = []
    try:
        connections += [server.connect() for _ in range(1_000)]
        with server.client() as client:
            seconds = []
            for _ in range(20):
                began = time.monotonic()
                response = client.post("/tag", content=GOOD, headers={"content-type": "application/json"})
                assert response.status_code == 200
                seconds.append(time.monotonic() - began)
        assert sorted(seconds)[10] < 0.5
        answers = [status(read_all(connection)) for connection in connections]
        assert set(answers) == {408}
    finally:
        for connection in connections:
            connection.close()


def test_connections_beyond_the_limit(tmp_path: Path) -> None:
    names().save(tmp_path / "names.crf")
    with running({"names": tmp_path / "names.crf"}, "--max-connections", "5") as server:
        held = [server.connect() for _ in range(5)]
        time.sleep(0.3)
        with server.connect() as connection:
            answer = read_all(connection)
        assert status(answer) == 429
        assert b"retry-after: 1" in answer
        for connection in held:
            connection.close()
        time.sleep(0.3)
        assert ask(server, post("/tag", GOOD)) == 200


def test_requests_beyond_the_limit(tmp_path: Path) -> None:
    """Some wait, all others get a 429; none gets a 5xx, and none is lost."""
    names().save(tmp_path / "names.crf")
    with running({"names": tmp_path / "names.crf"}, "--max-requests", "3") as server:
        body = json.dumps({"texts": ["Anna lives in Oslo. " * 50] * 100}).encode()
        found: list[int] = []

        def one() -> None:
            found.append(ask(server, post("/tag", body)))

        threads = [threading.Thread(target=one) for _ in range(30)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(found) == 30
        assert set(found) == {200, 429}
        with server.client() as client:
            assert client.get("/health").status_code == 200


def test_an_answer_names_no_file(server: RunningServer) -> None:
    with server.client() as client:
        for path in ("/health", "/models", "/metrics", "/openapi.json"):
            assert ".crf" not in client.get(path).text


def test_random_requests(server: RunningServer) -> None:
    """JSON of any form, at every path: 200 or a 4xx."""
    import random

    random_ = random.Random(0)
    leaves: list[Any] = [
        "",
        "a",
        "Anna Oslo",
        None,
        True,
        0,
        -1,
        1e9,
        0.5,
        "viterbi",
        "names",
        "parser",
        [],
        {},
    ]
    keys = ["text", "texts", "tokens", "rows", "features", "words", "model", "n", "threshold", "decode", "form",
            "position", "sentence", "label", "against", "tasks", "data", "label_config", "action", "schema"]  # fmt: skip

    def value(depth: int) -> Any:
        kind = random_.random()
        if depth == 0 or kind < 0.4:
            return random_.choice(leaves)
        if kind < 0.8:
            return [value(depth - 1) for _ in range(random_.randrange(3))]
        return {random_.choice(keys): value(depth - 1) for _ in range(random_.randrange(3))}

    paths = [
        "/tag",
        "/spans",
        "/nbest",
        "/explain",
        "/parse",
        "/predict",
        "/setup",
        "/train",
        "/webhook",
        "/doccano",
    ]
    with server.client() as client:
        for _ in range(600):
            request = {random_.choice(keys): value(4) for _ in range(random_.randrange(1, 5))}
            response = client.post(random_.choice(paths), json=request)
            assert response.status_code == 200 or 400 <= response.status_code < 500, (request, response.text)
