"""Workers that leave and join while files, bags and lists are trained on: the same bits; what happens is logged."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from dask.bag import from_sequence
from dask.delayed import delayed

from crfkit import CRF, LBFGS, Template
from crfkit.distributed import MissingDataError, fit
from tests.distributed.data import random_data
from tests.distributed.processes import Processes, wait_until

X, y = random_data()
PAIRS = list(zip(X, y, strict=True))
OPTIMIZER = LBFGS(max_iterations=25, tolerance=0.0)
TEMPLATE = Template("U00:%x[0,0]\nU01:%x[0,1]\nB")


@pytest.fixture
def processes(tmp_path: Path) -> Iterator[Processes]:
    with Processes(tmp_path) as running:
        yield running


def write_files(folder: Path) -> list[Path]:
    """The sequences as three column files."""
    folder.mkdir()
    files = []
    for i, cut in enumerate((PAIRS[:20], PAIRS[20:25], PAIRS[25:])):
        rows = ("".join(f"{p[1]}\t{p[2]}\t{label}\n" for p, label in zip(*pair, strict=True)) for pair in cut)
        files.append(folder / f"{i}.txt")
        files[-1].write_text("\n".join(rows))
    return files


@pytest.mark.parametrize("kind", ["files", "bag", "delayed"])
def test_shards_of_a_worker_that_is_killed_are_read_again(
    processes: Processes, tmp_path: Path, kind: str
) -> None:
    files = write_files(tmp_path / "data")
    data: Any = files
    features = TEMPLATE if kind == "files" else None
    if kind == "bag":
        data = from_sequence(PAIRS, npartitions=1)
    elif kind == "delayed":
        data = [delayed(list)(PAIRS)]
    processes.add("a")
    processes.add("b")

    def kill(step: Any) -> None:
        if step.iteration == 3:
            threading.Timer(0.02, processes.workers["a"].kill).start()
        if step.iteration == 4:
            wait_until(lambda: processes.workers["a"].poll() is not None, "the end of a worker")

    def model() -> CRF[str]:
        return CRF(features=features, optimizer=OPTIMIZER)

    with processes.connect(2) as client:
        together = fit(client, model(), data, shard_size=40, callback=kill)
    assert processes.workers["a"].poll() is not None
    alone = model().fit(files if kind == "files" else iter(PAIRS), shard_size=40)
    assert together.weights_.tobytes() == alone.weights_.tobytes()


def test_a_worker_that_joins_is_used(processes: Processes, caplog: pytest.LogCaptureFixture) -> None:
    processes.add("a")
    held: list[int] = []

    def add(step: Any) -> None:
        if step.iteration == 2:
            processes.add("b")
            client.wait_for_workers(2, timeout=60)
            time.sleep(1.1)  # after which the workers are looked up again
        if step.iteration == 5:
            held.extend(
                client.run(lambda dask_worker: sum("load" in key for key in dask_worker.data)).values()
            )

    with processes.connect(1) as client, caplog.at_level(logging.INFO, logger="crfkit"):
        together = fit(client, CRF(optimizer=OPTIMIZER), (X, y), shard_size=25, callback=add)
    assert len(held) == 2
    assert min(held) >= sum(held) // 2 - 1
    assert "loading 19 of 19 shards; workers: 1" in caplog.text
    assert " of 19 shards; workers: 2" in caplog.text
    alone = CRF(optimizer=OPTIMIZER).fit(X, y, shard_size=25)
    assert together.weights_.tobytes() == alone.weights_.tobytes()


def test_a_file_that_one_worker_does_not_have(
    processes: Processes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_files(tmp_path / "data")
    (tmp_path / "elsewhere").mkdir()
    file = Path("/proc/self/cwd/1.txt")  # which is another file in each process
    monkeypatch.chdir(tmp_path / "data")
    processes.add("a", cwd=tmp_path / "data")
    processes.add("b", cwd=tmp_path / "elsewhere")
    with processes.connect(2) as client:
        addresses = {
            worker["name"]: address for address, worker in client.scheduler_info()["workers"].items()
        }
        expected = rf"the worker {addresses['b']} does not have .*/proc/self/cwd/1\.txt"
        with pytest.raises(MissingDataError, match=expected):
            fit(client, CRF(features=TEMPLATE), [file])


def test_encoding_is_logged(processes: Processes, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    files = write_files(tmp_path / "data")
    processes.add("a")
    with processes.connect(1) as client, caplog.at_level(logging.INFO, logger="crfkit"):
        fit(client, CRF(features=TEMPLATE, optimizer=LBFGS(max_iterations=2)), files)
        wait_until(lambda: "2.txt" in caplog.text, "messages of the worker")
    assert "0.txt: 20 sequences" in caplog.text
