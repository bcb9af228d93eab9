"""What the tests of more than one file begin with."""

from __future__ import annotations

import math
import signal
from pathlib import Path

import pytest

from crfkit import CRF
from tests.cli.commands import CHUNKS, SENTENCES, TEMPLATE, columns, run
from tests.models.small_corpus import corpus

# A shell ignores SIGINT in what it runs in the background, and Python then does too: the tests interrupt themselves.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="module")
def trained() -> CRF:
    """An estimator trained on the small corpus."""
    return CRF(random_state=0).fit(*corpus())


@pytest.fixture(autouse=True)
def _steady_display(monkeypatch: pytest.MonkeyPatch) -> None:
    """What commands show in tests does not depend on how fast the machine is."""
    monkeypatch.setattr("crfkit.cli.progress.PATIENCE", math.inf)


@pytest.fixture
def column_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder to be in, with files of columns and a template."""
    monkeypatch.chdir(tmp_path)
    Path("train.txt").write_text(columns(SENTENCES, 2))
    Path("chunks.txt").write_text(columns(CHUNKS, 3, "\t"))
    Path("template.txt").write_text(TEMPLATE)


@pytest.fixture
def model(column_files: None) -> str:
    """A model of train.txt in the folder of `column_files`."""
    run("train", "train.txt", "--model", "m.crf", "--quiet")
    return "m.crf"
