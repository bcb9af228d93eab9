"""The callbacks for MLflow and Weights & Biases of docs/integrations.md: what they log is what training did."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import pytest

import crfkit
from tests.project.test_docs import PROJECT, blocks_of

BLOCKS = {
    tracker: block.text
    for tracker in ("mlflow", "wandb")
    for block in blocks_of((PROJECT / "docs" / "integrations.md").read_text(encoding="utf-8"))
    if block.kind == "python" and f"import {tracker}" in block.text
}


def run(tracker: str, monkeypatch: pytest.MonkeyPatch, folder: Path, space: dict[str, Any]) -> MagicMock:
    """Run the example of the page with a module that keeps what is logged."""
    module = MagicMock()
    monkeypatch.setitem(sys.modules, tracker, module)
    monkeypatch.chdir(folder)
    space.update(crfkit=crfkit, X=[["Ann", "saw", "Rome"]], y=[["B-PER", "O", "B-LOC"]])
    exec(BLOCKS[tracker], space)
    return module


def test_mlflow_gets_every_iteration(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    space: dict[str, Any] = {}
    module = run("mlflow", monkeypatch, tmp_path, space)
    history = space["crf"].history_
    logged = [(call.kwargs["step"], call.args[0]["objective"]) for call in module.log_metrics.call_args_list]
    assert logged == [(record.iteration, record.objective) for record in history[1:]]
    assert module.log_params.call_args.args[0]["l2"] == "{'default': 0.1, 'character': 0.01}"
    module.log_artifact.assert_called_once_with("names.crf")
    assert (tmp_path / "names.crf").exists()


def test_wandb_gets_every_iteration(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    space: dict[str, Any] = {}
    module = run("wandb", monkeypatch, tmp_path, space)
    tracked = module.init.return_value.__enter__.return_value
    logged = [(call.kwargs["step"], call.args[0]["objective"]) for call in tracked.log.call_args_list]
    assert logged == [(record.iteration, record.objective) for record in space["crf"].history_[1:]]
    assert space["crf"].l2 == {"default": 0.1, "character": 0.01}
