"""Clusters for tests, and a limit: nothing hangs."""

from __future__ import annotations

import logging
import signal
from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip("distributed")

logging.getLogger("distributed").setLevel(logging.CRITICAL)  # clusters that end in tests complain at length
_LOOSE_ENDS = (  # of clusters that are ended, or ports that are taken
    "ignore::ResourceWarning",
    "ignore::pytest.PytestUnraisableExceptionWarning",
    "ignore::pytest.PytestUnhandledThreadExceptionWarning",
    "ignore:Port .* is already in use:UserWarning",
)
LIMIT = 120  # seconds that a test may take


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "tests/distributed" in item.path.as_posix():
            for text in _LOOSE_ENDS:
                item.add_marker(pytest.mark.filterwarnings(text))


@pytest.fixture(autouse=True)
def limit_seconds() -> Iterator[None]:
    def stop(*_: Any) -> None:
        raise TimeoutError(f"the test took more than {LIMIT} seconds")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(LIMIT)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    """Two workers, each a process with one thread."""
    from distributed import Client, LocalCluster

    with (
        LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, scheduler_port=0, dashboard_address=":0"
        ) as cluster,
        Client(cluster) as client,
    ):
        yield client
