"""Workers, schedulers and clients that end by SIGKILL: the same bits, or a clear error; nothing hangs."""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from crfkit import CRF, LBFGS, Checkpoint
from crfkit.distributed import (
    MissingDataError,
    NoWorkersError,
    SchedulerLostError,
    WorkersFailedError,
    WorkerVersionError,
    fit,
)
from crfkit.distributed.cluster import ATTEMPTS, Cluster, Losses
from crfkit.distributed.errors import WorkersLostError
from crfkit.distributed.remote_loss import RemoteLoss
from tests.distributed.data import random_data
from tests.distributed.processes import Processes, wait_until
from tests.distributed.slow_shards import Faulty, Slow, Source, Unanswered

X, y = random_data()
W = np.random.default_rng(1).standard_normal(1000)


@pytest.fixture
def processes(tmp_path: Path) -> Iterator[Processes]:
    with Processes(tmp_path) as running:
        yield running


@pytest.fixture
def unlike(processes: Processes, tmp_path: Path) -> Processes:
    """Two workers, one of which is in a folder with a file "bad"."""
    (tmp_path / "worse").mkdir()
    (tmp_path / "worse" / "bad").touch()
    processes.add("a")
    processes.add("b", cwd=tmp_path / "worse")
    return processes


def same(found: tuple[float, Any], expected: tuple[float, Any]) -> bool:
    return found[0] == expected[0] and found[1].tobytes() == expected[1].tobytes()


def kill_when_it_computes(process: subprocess.Popen[bytes], started: Path) -> threading.Thread:
    """Ends a worker by SIGKILL in the middle of a task."""

    def kill() -> None:
        wait_until((started / str(process.pid)).exists, "a task on the worker")
        process.kill()

    thread = threading.Thread(target=kill)
    thread.start()
    return thread


@pytest.mark.parametrize("share_memory", [False, True])
@pytest.mark.parametrize("fan_out", [1, 4])  # another worker notices that it is gone, or the client
def test_a_worker_that_is_killed_while_it_computes_is_replaced(
    processes: Processes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fan_out: int, share_memory: bool
) -> None:
    monkeypatch.setattr("crfkit.distributed.remote_loss.FAN_OUT", fan_out)
    started = tmp_path / "started"
    started.mkdir()
    source = Source(n=6, options={"pause": 0.3, "started": started})
    processes.add("a")
    victim = processes.add("b")
    with processes.connect(2) as client:
        loss = RemoteLoss(Cluster(client), source, share_memory=share_memory)
        thread = kill_when_it_computes(victim, started)
        assert same(loss.evaluate(W), source.expect(W))
        thread.join()
        assert victim.poll() == -signal.SIGKILL
        processes.add("c")
        client.wait_for_workers(2, timeout=60)
        time.sleep(1.1)  # after which the workers are looked up again
        assert same(loss.evaluate(-W), source.expect(-W))
        assert all(client.run(lambda dask_worker: sum("load" in key for key in dask_worker.data)).values())
        assert loss.refine()
        assert not loss.refine()


def test_a_scheduler_that_is_gone_is_an_error(processes: Processes) -> None:
    processes.add("a")
    client = processes.connect(1)
    source = Source(n=2)
    loss = RemoteLoss(Cluster(client, timeout=3), source)
    assert same(loss.evaluate(W), source.expect(W))
    processes.scheduler.kill()
    time.sleep(1.1)  # after which the workers are looked up again; until then they answer without a scheduler
    began = time.monotonic()
    with pytest.raises(SchedulerLostError, match=r"has not answered for 3 seconds"):
        loss.evaluate(-W)
    assert time.monotonic() - began < 30
    with pytest.raises(SchedulerLostError):
        Cluster(client, timeout=1)
    client.close(timeout=1)


def test_no_workers_is_an_error(processes: Processes) -> None:
    with processes.connect() as client, pytest.raises(NoWorkersError, match="for 1 seconds"):
        fit(client, CRF(), (X, y), timeout=1)


@pytest.mark.parametrize("kind", ["absent", "other version"])
def test_a_worker_needs_the_same_version(processes: Processes, tmp_path: Path, kind: str) -> None:
    text = {
        "absent": "import sys; sys.modules['crfkit'] = None",
        "other version": "import crfkit; crfkit.__version__ = '0.0.7'",
    }[kind]
    preload = tmp_path / "preload.py"
    preload.write_text(text + "\n")
    processes.add("a", "--preload", str(preload))
    expected = {"absent": "ModuleNotFoundError", "other version": r"has crfkit 0\.0\.7, expected"}[kind]
    with (
        processes.connect(1) as client,
        pytest.raises(WorkerVersionError, match=rf"the worker tcp.*{expected}"),
    ):
        fit(client, CRF(), (X, y))


def test_tasks_that_fail_on_one_worker_run_on_others(
    unlike: Processes, caplog: pytest.LogCaptureFixture
) -> None:
    with unlike.connect(2) as client:
        source = Source(n=4, kind=Faulty)
        with caplog.at_level(logging.WARNING, logger="crfkit"):
            assert same(RemoteLoss(Cluster(client), source).evaluate(W), source.expect(W))
        assert "is not used any more: RuntimeError('out of order')" in caplog.text
        with pytest.raises(
            WorkersFailedError, match=r"failed on every worker: tcp.*out of order; tcp.*out of order"
        ):
            RemoteLoss(Cluster(client), Source(kind=Faulty, options={"always": True})).evaluate(W)
        missing = Source(kind=Faulty, options={"missing": True})
        with pytest.raises(MissingDataError, match=r"the worker tcp://\S+ .*/data/part-7\.txt"):
            RemoteLoss(Cluster(client), missing).evaluate(W)


def test_errors_that_cannot_be_sent(unlike: Processes, caplog: pytest.LogCaptureFixture) -> None:
    source = Source(n=4, kind=Unanswered)
    with unlike.connect(2) as client, caplog.at_level(logging.WARNING, logger="crfkit"):
        assert same(RemoteLoss(Cluster(client), source).evaluate(W), source.expect(W))
    assert "is not used any more: RuntimeError('NoCopyError: no answer')" in caplog.text


def test_workers_that_are_lost_again_and_again_are_an_error(caplog: pytest.LogCaptureFixture) -> None:
    losses = Losses("their shards are")
    for i in range(ATTEMPTS - 1):
        losses.add(WorkersLostError(f"left: {i}"))
    assert "workers were lost, and their shards are computed again: left: 0" in caplog.text
    with pytest.raises(WorkersFailedError, match=rf"lost {ATTEMPTS} times in a row .*: left: last"):
        losses.add(WorkersLostError("left: last"))


def test_a_worker_that_is_killed_while_others_load(unlike: Processes) -> None:
    source = Source(n=20, kind=Slow)
    with unlike.connect(2) as client:
        assert same(RemoteLoss(Cluster(client), source).evaluate(W), source.expect(W))


CLIENT = """
import sys
from crfkit import CRF, LBFGS, Checkpoint
from crfkit.distributed import fit
from distributed import Client
from tests.distributed.data import random_data
X, y = random_data()
with Client(scheduler_file=sys.argv[1]) as client:
    fit(client, CRF(optimizer=LBFGS(max_iterations=40, tolerance=0.0)), (X, y), shard_size=50,
        checkpoint=Checkpoint(sys.argv[2], every=1))
"""


@pytest.mark.slow
def test_a_client_that_is_killed_goes_on_from_its_checkpoint(processes: Processes, tmp_path: Path) -> None:
    def model() -> CRF[str]:
        return CRF(optimizer=LBFGS(max_iterations=40, tolerance=0.0))

    processes.add("a")
    processes.add("b")
    file = tmp_path / "run"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    first = subprocess.Popen(
        [sys.executable, "-c", CLIENT, str(processes.file), str(file)], env=environment, cwd=Path.cwd()
    )
    wait_until(file.exists, "the first checkpoint")
    first.kill()
    first.wait()
    with processes.connect(2) as client:
        resumed = fit(
            client, model(), (X, y), shard_size=50, checkpoint=Checkpoint(file, every=100, resume=True)
        )
        # What the first client had on the workers is gone with it.
        wait_until(
            lambda: not any(client.run(lambda dask_worker: len(dask_worker.data)).values()),
            "memory to be freed",
        )
    alone = model().fit(X, y, shard_size=50)
    assert resumed.weights_.tobytes() == alone.weights_.tobytes()


@pytest.mark.slow
def test_half_of_the_workers_are_killed_again_and_again(processes: Processes) -> None:
    for name in "abcd":
        processes.add(name)
    settings: dict[str, Any] = {"optimizer": LBFGS(max_iterations=30, tolerance=0.0)}

    def kill_some(step: Any) -> None:
        if step.iteration in (3, 12):
            first = step.iteration == 3
            for name in ("ab", "cd")[not first]:
                threading.Timer(0.02, processes.workers[name].kill).start()
            for name in ("ef", "gh")[not first]:
                processes.add(name)

    with processes.connect(4) as client:
        together = fit(client, CRF(**settings), (X, y), shard_size=25, callback=kill_some)
    alone = CRF(**settings).fit(X, y, shard_size=25)
    assert [processes.workers[name].poll() for name in "abcd"] == [-signal.SIGKILL] * 4
    assert together.weights_.tobytes() == alone.weights_.tobytes()


@pytest.mark.slow
@pytest.mark.parametrize("n_workers", [1, 2, 4])
def test_separate_workers_have_the_bits_of_one_process(processes: Processes, n_workers: int) -> None:
    for i in range(n_workers):
        processes.add(f"w{i}", *(("--nthreads", "3") if i == 1 else ()))
    settings: dict[str, Any] = {"optimizer": LBFGS(max_iterations=10)}
    with processes.connect(n_workers) as client:
        together = fit(client, CRF(**settings), (X, y), shard_size=25)
    assert together.weights_.tobytes() == CRF(**settings).fit(X, y, shard_size=25).weights_.tobytes()
