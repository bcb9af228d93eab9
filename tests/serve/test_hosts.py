"""Which hosts are answered."""

from __future__ import annotations

import pytest

pytest.importorskip("starlette", reason='needs Starlette: pip install ".[serve]"')
pytest.importorskip("uvicorn", reason='needs uvicorn: pip install ".[serve]"')
pytest.importorskip("httpx", reason="needs httpx")

from crfkit.errors import ArgumentError
from crfkit.serve import Limits
from crfkit.serve.server import _fit_files, _hosts, _listen
from tests.serve.models import names
from tests.serve.servers import asking


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("localhost", 200),
        ("localhost:8000", 200),
        ("LOCALHOST:1", 200),
        ("127.0.0.1:8000", 200),
        ("[::1]:8000", 200),
        ("names.example.org", 200),
        ("evil.example", 400),
        ("localhost.evil.example", 400),
        ("localhost:8000.evil.example", 400),
        ("", 400),
    ],
)
def test_hosts(host: str, status: int) -> None:
    with asking({"names": names()}, allowed_hosts=_hosts("127.0.0.1", ["names.example.org"])) as client:
        assert client.get("/health", headers={"host": host}).status_code == status


def test_other_addresses_answer_all_hosts_but_where_some_are_named() -> None:
    assert _hosts("0.0.0.0", []) is None
    assert _hosts("0.0.0.0", ["a"]) == ["a"]


def test_connections_fit_the_files_of_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    resource = pytest.importorskip("resource", reason="not a Unix system")
    current = [100, 300]
    monkeypatch.setattr(resource, "getrlimit", lambda which: tuple(current))
    monkeypatch.setattr(resource, "setrlimit", lambda which, given: current.__setitem__(slice(None), given))
    assert _fit_files(Limits(max_connections=20)).max_connections == 20
    assert current == [100, 300]
    assert _fit_files(Limits(max_connections=150)).max_connections == 150
    assert current == [214, 300]
    assert _fit_files(Limits(max_connections=1000)).max_connections == 236
    assert current == [300, 300]


def test_an_address_that_is_taken() -> None:
    with _listen("127.0.0.1", 0) as first, pytest.raises(ArgumentError, match="cannot listen"):
        _listen("127.0.0.1", first.getsockname()[1])
    with pytest.raises(ArgumentError, match="cannot listen"):
        _listen("256.0.0.1", 0)
