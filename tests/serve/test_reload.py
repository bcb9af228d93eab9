"""New versions of model files take the place of old ones, and no request is lost."""

from __future__ import annotations

import signal
import threading
import time
from pathlib import Path

import pytest

pytest.importorskip("starlette", reason='needs Starlette: pip install ".[serve]"')
pytest.importorskip("uvicorn", reason='needs uvicorn: pip install ".[serve]"')
pytest.importorskip("httpx", reason="needs httpx")

from crfkit import CRF
from tests.serve.servers import RunningServer, running


def train(label: str) -> CRF:
    """A model that gives the word `a` this label."""
    return CRF(features="pos", l2=0.01).fit([["a", "b"], ["b"], ["a"]], [[label, "B"], ["B"], [label]])


def wait_for(server: RunningServer, version: str) -> None:
    with server.client() as client:
        for _ in range(500):
            if client.get("/health").json()["models"] == [version]:
                return
            time.sleep(0.02)
    raise AssertionError(f"no {version}: {server.lines}")


class Load:
    """Requests without a pause, from several clients."""

    def __init__(self, server: RunningServer, clients: int = 3) -> None:
        self.answers: list[tuple[int, str, str]] = []  # status, version, label
        self._ends = threading.Event()
        self._threads = [threading.Thread(target=self._run, args=(server,)) for _ in range(clients)]

    def _run(self, server: RunningServer) -> None:
        with server.client() as client:
            while not self._ends.is_set():
                response = client.post("/tag", json={"tokens": [["a", "b"]] * 20})
                found = response.json()
                label = (
                    found["results"][0]["sentences"][0]["labels"][0] if response.status_code == 200 else ""
                )
                self.answers.append((response.status_code, found.get("version", ""), label))

    def __enter__(self) -> Load:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._ends.set()
        for thread in self._threads:
            thread.join()


@pytest.mark.parametrize("by_signal", [True, False])
def test_no_request_is_lost(tmp_path: Path, by_signal: bool) -> None:
    file = tmp_path / "m.crf"
    train("OLD").save(file)
    options = () if by_signal else ("--reload-models",)
    with running({"m": file}, *options) as server, Load(server) as load:
        time.sleep(0.3)
        for number, label in enumerate(("NEW", "OLD", "NEW"), 2):
            train(label).save(file)
            if by_signal:
                server.signal(signal.SIGHUP)
            wait_for(server, f"m-{number}")
        time.sleep(0.2)
    labels = {"m-1": "OLD", "m-2": "NEW", "m-3": "OLD", "m-4": "NEW"}
    assert {status for status, _, _ in load.answers} == {200}
    assert {version for _, version, _ in load.answers} == set(labels)
    # `version` is the one that was current when the request was read; the model that answers is that or the next one.
    assert all(label in ("OLD", "NEW") for _, _, label in load.answers)
    agreeing = sum(labels[version] == label for _, version, label in load.answers)
    assert agreeing >= len(load.answers) - 9


def test_a_file_that_cannot_be_read_changes_nothing(tmp_path: Path) -> None:
    file = tmp_path / "m.crf"
    train("OLD").save(file)
    with running({"m": file}) as server, server.client() as client:
        file.write_bytes(b"no model")
        server.signal(signal.SIGHUP)
        for _ in range(200):
            if 'crfkit_reloads_total{result="failed"} 1' in client.get("/metrics").text:
                break
            time.sleep(0.02)
        answer = client.post("/tag", json={"tokens": [["a"]]}).json()
        assert answer["version"] == "m-1"
        assert answer["results"][0]["sentences"][0]["labels"] == ["OLD"]
        train("NEW").save(file)
        server.signal(signal.SIGHUP)
        wait_for(server, "m-2")
    assert any("was not reloaded" in line for line in server.lines)


def test_requests_under_way_are_answered_at_the_end(tmp_path: Path) -> None:
    file = tmp_path / "m.crf"
    train("X").save(file)
    server = RunningServer({"m": file})
    found: list[int] = []

    def ask() -> None:
        with server.client() as client:
            response = client.post("/tag", json={"tokens": [["a", "b"] * 20] * 900})
            found.append(len(response.json()["results"]))

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    with server.client() as client:
        for _ in range(500):
            running_now = [
                line for line in client.get("/metrics").text.splitlines() if line.startswith("crfkit_running")
            ]
            if int(running_now[0].split()[1]) >= 4 or len(found) == 4:
                break
    assert server.stop() == 0
    for thread in threads:
        thread.join()
    assert found == [900] * 4
