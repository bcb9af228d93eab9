"""`crfkit train --cluster`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from crfkit import load
from tests.cli.commands import CHUNKS, columns, run


def test_a_model_of_a_cluster_is_that_of_one_machine(client: Any, tmp_path: Path) -> None:
    address = client.scheduler.address
    file = tmp_path / "train.txt"
    file.write_text(columns(CHUNKS * 5, 3))
    options = ("--max-iterations", "5", "--shard-size", "10", "--quiet")
    alone, together = tmp_path / "alone.crf", tmp_path / "together.crf"
    run("train", str(file), "--model", str(alone), *options)
    run("train", str(file), "--model", str(together), "--cluster", address, *options)
    assert load(together).weights_.tobytes() == load(alone).weights_.tobytes()
    assert together.read_bytes() == alone.read_bytes()


def test_errors(client: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "train.txt"
    file.write_text(columns(CHUNKS, 3))
    command = ("train", str(file), "--model", str(tmp_path / "m.crf"), "--quiet")
    found = run(*command, "--cluster", client.scheduler.address, "--optimizer", "sgd", status=2)
    assert "SGD takes steps along single sequences" in found.stderr
    monkeypatch.setattr("crfkit.cli.machines.SECONDS", 0.5)
    found = run(*command, "--cluster", "tcp://127.0.0.1:9", status=2)
    assert "no scheduler answers there" in found.stderr
    monkeypatch.setitem(sys.modules, "distributed", None)
    found = run(*command, "--cluster", "tcp://127.0.0.1:9", status=2)
    assert "pip install '.[distributed]'" in found.stderr
