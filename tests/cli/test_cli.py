"""The command line: its help, and the commands that show something (eval, inspect)."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import crfkit
from crfkit.models import describe
from tests.cli.commands import run

pytestmark = pytest.mark.usefixtures("column_files")


def test_eval_reports_accuracy_spans_and_confusions(model: str) -> None:
    Path("test.txt").write_text("the D\ndog V\n")
    report = run("eval", model, "test.txt").stdout
    assert "tokens: 2; accuracy:  50.00%" in report
    assert "V → N" in report
    assert "confusion table" in report
    assert "confusion table" not in run("eval", model, "test.txt", "--confusion", "0").stdout
    run("train", "chunks.txt", "--model", "c.crf", "--features", "chunks", "--quiet")
    report = run("eval", "c.crf", "chunks.txt").stdout
    assert "processed 64 tokens with 40 phrases; found: 40 phrases; correct: 40." in report
    assert "NP: precision: 100.00%; recall: 100.00%; FB1: 100.00" in report


def test_inspect(model: str) -> None:
    shown = run("inspect", model, "--top", "3").stdout
    for words in (
        "labels (3): D N V",
        "weights: ",
        "heaviest features",
        "heaviest transitions",
        "(start) → D",
    ):
        assert words in shown
    described: dict[str, Any] = json.loads(run("inspect", model, "--json", "--top", "2").stdout)
    assert described["labels"] == ["D", "N", "V"]
    assert [len(features) for features in described["heaviest features"].values()] == [2, 2, 2]
    assert len(described["transitions"]) == 15
    assert described == describe(crfkit.load(model), 2)


def test_inspect_shows_features_on_arcs(model: str) -> None:
    assert "features of transitions" not in run("inspect", model).stdout
    Path("arcs.txt").write_text("U00:%x[0,0]\nB01:%x[0,0]\n")
    run("train", "train.txt", "--model", "a.crf", "--template", "arcs.txt", "--quiet")
    assert re.search(
        r"heaviest features of transitions\n +\+1\.\d+  D → N  B01:dog\n", run("inspect", "a.crf").stdout
    )
    described = json.loads(run("inspect", "a.crf", "--json", "--top", "2").stdout)
    assert len(described["heaviest transition features"]) == 2


def test_help_and_version() -> None:
    listed = run("--help").stdout
    for name in ("train", "tag", "eval", "inspect", "convert", "demo"):
        assert name in listed
        assert "Usage" in run(name, "--help").stdout
    assert run("--version").stdout == f"crfkit {crfkit.__version__}\n"
    assert "No such command" in run("nosuch", status=2).stderr
    done = subprocess.run(
        [sys.executable, "-m", "crfkit", "--version"], capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith("crfkit ")
