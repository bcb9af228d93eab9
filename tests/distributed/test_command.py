"""`crfkit train --cluster`."""

from __future__ import annotations

import re
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from crfkit import load
from tests.cli.commands import CHUNKS, columns, run
from tests.distributed.processes import Processes, wait_until


def test_a_model_of_a_cluster_is_that_of_one_machine(client: Any, tmp_path: Path) -> None:
    address = client.scheduler.address
    file = tmp_path / "train.txt"
    file.write_text(columns(CHUNKS * 5, 3))
    options = ("--max-iterations", "5", "--shard-size", "10", "--features", "names", "--quiet")
    alone, together = tmp_path / "alone.crf", tmp_path / "together.crf"
    run("train", str(file), "--model", str(alone), *options)
    run("train", str(file), "--model", str(together), "--cluster", address, *options)
    assert load(together).weights_.tobytes() == load(alone).weights_.tobytes()
    assert together.read_bytes() == alone.read_bytes()


@pytest.mark.parametrize(
    "options",
    [
        (),
        ("--bigrams", "observed", "--l1", "0.1"),
        ("--facets", "parts"),  # the client gets the sequences
        ("--label-column", "1"),  # and reads them itself
        ("--min-count", "auto"),
        ("--dev", "dev.txt"),
    ],
)
def test_workers_read_the_file(
    client: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: tuple[str, ...]
) -> None:
    """As the options allow; features, the first line and the model are those of one machine."""
    monkeypatch.chdir(tmp_path)
    Path("train.txt").write_text(columns(CHUNKS * 5, 3))
    Path("dev.txt").write_text(columns(CHUNKS, 3))
    command = ("train", "train.txt", "--max-iterations", "4", *options, "--model")
    alone = run(*command, "alone.crf")
    together = run(*command, "together.crf", "--cluster", client.scheduler.address)
    read_here = "--label-column" in options or "auto" in options
    expected = [alone.stderr.splitlines()[0] + ("" if read_here else ", read by workers")]
    assert together.stderr.splitlines()[1:2] == expected
    assert Path("together.crf").read_bytes() == Path("alone.crf").read_bytes()


def test_standard_input_is_read_here(client: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    text, address = columns(CHUNKS * 5, 3), client.scheduler.address
    options = ("--max-iterations", "4", "--quiet", "--model")
    run("train", "-", *options, "alone.crf", text=text)
    run("train", "-", *options, "together.crf", "--cluster", address, text=text)
    assert Path("together.crf").read_bytes() == Path("alone.crf").read_bytes()
    refused = run("train", "-", "x.txt", *options, "x.crf", "--cluster", address, text=text, status=2)
    assert "- is standard input, which is read here, and 2 files were given" in refused.stderr


def test_several_files(client: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    texts = [columns(CHUNKS[:5], 3), columns(CHUNKS[3:] * 2, 3), columns(CHUNKS, 3)]
    for name, text in zip("abc", texts, strict=True):
        Path(name).write_text(text)
    Path("all").write_text("\n".join(texts))
    command = ("--max-iterations", "60", "--model", "m.crf")
    run("train", "all", *command, "--quiet")
    alone = load("m.crf")
    found = run("train", "a", "b", "c", *command, "--cluster", client.scheduler.address)
    assert "3 files: 47 sequences, " in found.stderr
    np.testing.assert_allclose(load("m.crf").weights_, alone.weights_, rtol=1e-3, atol=1e-4)
    Path("b").write_text("the D\n")
    found = run("train", "a", "b", *command, "--cluster", client.scheduler.address, status=2)
    assert f"{tmp_path / 'b'}: rows have 2 columns, expected 3 as before" in found.stderr
    Path("b").write_text("the D B-NP\ndog N \n")
    found = run("train", "a", "b", *command, "--cluster", client.scheduler.address, status=2)
    assert "b:2: " in found.stderr
    found = run("train", "a", "c", *command, "--cluster", client.scheduler.address, "--folds", "2", status=2)
    assert "--folds needs one file, which is read here, and 2 were given" in found.stderr
    found = run("train", "a", "c", *command, status=2)
    assert "2 files were given, expected one, or --cluster" in found.stderr


def test_files_that_workers_do_not_have(client: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a").write_text(columns(CHUNKS, 3))
    command = ("--max-iterations", "3", "--model", "m.crf", "--cluster", client.scheduler.address)
    for files in (("a", "b"), ("b",)):
        found = run("train", *files, *command, status=2)
        expected = rf"the worker tcp://\S+ does not have a file that it is to read: {tmp_path / 'b'}: there is no such"
        assert re.search(expected, found.stderr)
    workers = list(client.scheduler_info()["workers"])
    paths = iter([dict.fromkeys(workers, Path("a")), {workers[0]: None, workers[1]: Path("a")}])
    monkeypatch.setattr("crfkit.distributed.missing_files", lambda *_: next(paths))
    found = run("train", "a", *command)
    assert "a: no worker has it; it is read here and sent to them" in found.stderr
    found = run("train", "a", *command)
    assert "read by workers" in found.stderr


def test_progress_and_an_encoded_data_set(client: Any, tmp_path: Path) -> None:
    address = client.scheduler.address
    file, folder = tmp_path / "train.txt", tmp_path / "data"
    file.write_text(columns(CHUNKS * 5, 3))
    run("encode", str(file), "--out", str(folder), "--shard-size", "10", "--features", "names", "--quiet")
    alone, together = tmp_path / "alone.crf", tmp_path / "together.crf"
    run("train", str(folder), "--model", str(alone), "--max-iterations", "4", "--quiet")
    command = ("train", str(folder), "--model", str(together), "--max-iterations", "4")
    found = run(*command, "--cluster", address)
    assert load(together).weights_.tobytes() == load(alone).weights_.tobytes()
    assert [line.split()[1] for line in found.stderr.splitlines() if line.startswith("iteration")] == list(
        "1234"
    )


def test_workers_that_are_lost_are_shown(tmp_path: Path) -> None:
    """The command goes on, says so, and writes the model of one machine."""
    file = tmp_path / "train.txt"
    file.write_text(columns(CHUNKS * 5, 3))
    command = ("train", str(file), "--shard-size", "10", "--max-iterations", "60", "--model")
    alone, together = tmp_path / "alone.crf", tmp_path / "together.crf"
    run(*command, str(alone), "--quiet")
    with Processes(tmp_path) as processes:
        for name in "ab":
            processes.add(name)
        with processes.connect(2) as client:
            address = client.scheduler.address
            thread = threading.Thread(target=_kill_when_it_has_shards, args=(client, processes.workers["a"]))
            thread.start()
            found = run(*command, str(together), "--cluster", address)
            thread.join()
    assert together.read_bytes() == alone.read_bytes()
    assert "crfkit: warning: workers were lost, and their shards are computed again" in found.stderr


def _kill_when_it_has_shards(client: Any, process: Any) -> None:
    def has_shards() -> bool:
        return all(client.run(lambda dask_worker: any("load" in key for key in dask_worker.data)).values())

    wait_until(has_shards, "shards on workers")
    process.kill()


def test_errors(client: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "train.txt"
    file.write_text(columns(CHUNKS, 3))
    command = ("train", str(file), "--model", str(tmp_path / "m.crf"), "--quiet")
    found = run(*command, "--cluster", client.scheduler.address, "--optimizer", "sgd", status=2)
    assert "SGD takes steps along single sequences" in found.stderr
    for name in ("missing_files", "map_files"):  # it is said before any worker reads
        monkeypatch.setattr(f"crfkit.distributed.{name}", lambda *_: pytest.fail("files were read"))
    address = client.scheduler.address
    found = run(*command, "--cluster", address, "--features", "morphology", status=2)
    assert "AdaGrad takes steps along single sequences" in found.stderr
    monkeypatch.setattr("crfkit.cli.machines.SECONDS", 0.5)
    found = run(*command, "--cluster", "tcp://127.0.0.1:9", status=2)
    assert "no scheduler has answered there for 0.5 seconds" in found.stderr
    found = run(*command, "--cluster", "nowhere://127.0.0.1:9", status=2)
    assert "expected the address of a dask scheduler, such as tcp://host:8786" in found.stderr
    monkeypatch.setitem(sys.modules, "distributed", None)
    found = run(*command, "--cluster", "tcp://127.0.0.1:9", status=2)
    assert "pip install '.[distributed]'" in found.stderr


def test_a_scheduler_that_does_not_answer_is_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "train.txt"
    file.write_text(columns(CHUNKS, 3))
    for name, seconds in (("SECONDS", 3.0), ("REMIND", 0.5), ("AGAIN", 1.2)):
        monkeypatch.setattr(f"crfkit.cli.machines.{name}", seconds)
    command = ("train", str(file), "--model", str(tmp_path / "m.crf"), "--cluster", "tcp://127.0.0.1:9")
    lines = run(*command, status=2).stderr.splitlines()
    assert lines[0] == "connecting to the scheduler at tcp://127.0.0.1:9"
    assert lines[1:3] == [
        f"the scheduler at tcp://127.0.0.1:9 does not answer; trying for {left} s more" for left in (2, 1)
    ]
    assert "no scheduler has answered there for 3 seconds" in lines[-1]
