"""SIGTERM keeps the model as Ctrl-C does, and a full disk does not lose it."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import click
import pytest

import crfkit
from crfkit import CRF, LBFGS, Checkpoint, InputError
from crfkit.cli.saving import keep_model
from crfkit.compat import pycrfsuite, sklearn_crfsuite
from crfkit.models import CheckpointFailed, postpone_signals, save_elsewhere
from tests.cli.commands import columns
from tests.models.test_training import data

ROOT = Path(__file__).parents[2]
HEAD = """
import os, signal, sys, threading, warnings
from crfkit import CRF, LBFGS, FeatureFunctions, Growth, Parser, Patterns, StopReason
from crfkit.data import Sentence, Word
from crfkit.models import TrainingInterrupted
from tests.models.test_training import data

def terminate(progress):
    if progress.iteration == 3:
        signal.raise_signal(signal.SIGTERM)

def interrupted(fit):
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        model = fit()
    assert [w.category for w in said] == [TrainingInterrupted], said
    assert model.stop_reason_ == StopReason.INTERRUPTED, model.stop_reason_
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL
    return model

X, y = data()
"""


def status(program: str) -> int:
    """The exit status of a program; −15 where SIGTERM ended it."""
    command = [sys.executable, "-c", HEAD + program]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=120)
    assert "Error" not in done.stderr, done.stderr
    return done.returncode


def test_sigterm_ends_fit_with_the_best_weights() -> None:
    program = """
model = interrupted(lambda: CRF().fit(X, y, callback=terminate))
assert model.n_iter_ == 3
assert model.weights_.tobytes() == CRF(optimizer=LBFGS(max_iterations=3)).fit(X, y).weights_.tobytes()
class Twice:
    def __call__(self, progress):
        try:
            terminate(progress)
        finally:
            terminate(progress)
assert interrupted(lambda: CRF().fit(X, y, callback=Twice())).n_iter_ == 3
grown = CRF(Patterns(grow=Growth(min_count=1)))
assert interrupted(lambda: grown.fit(X, y, callback=terminate)).n_iter_ == 3
words = [Word(f"w{i}", "_", "X", "_", "_", i, "a", "_", "_") for i in range(4)]
parser = interrupted(lambda: Parser().fit([Sentence(words)], callback=terminate))
assert parser.n_iter_ == 3
signal.raise_signal(signal.SIGTERM)  # the default action is back
"""
    assert status(program) == -signal.SIGTERM


def test_a_handler_of_the_program_stays() -> None:
    program = """
seen = []
signal.signal(signal.SIGTERM, lambda number, frame: seen.append(number))
model = CRF().fit(X, y, callback=terminate)
assert seen == [signal.SIGTERM] and model.n_iter_ > 3
signal.signal(signal.SIGTERM, signal.SIG_IGN)
assert CRF().fit(X, y, callback=terminate).n_iter_ > 3
assert signal.getsignal(signal.SIGTERM) == signal.SIG_IGN
def installs(progress):
    signal.signal(signal.SIGTERM, installs)
signal.signal(signal.SIGTERM, signal.SIG_DFL)
CRF().fit(X, y, callback=installs)
assert signal.getsignal(signal.SIGTERM) is installs
"""
    assert status(program) == 0


@pytest.mark.parametrize(
    "program",
    [
        "threading.Thread(target=lambda: CRF().fit(X, y, callback=terminate)).start()",
        "CRF(features=FeatureFunctions([lambda x, label, i: signal.raise_signal(signal.SIGTERM)])).fit(X, y)",
        """
import multiprocessing
multiprocessing.current_process().name = "Worker-1"
CRF().fit(X, y, callback=terminate)
""",
    ],
)
def test_elsewhere_sigterm_ends_the_process(program: str) -> None:
    """In another thread, before there is a model, in a worker process."""
    assert status(program) == -signal.SIGTERM


def train_command(*arguments: str, **options: Any) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "crfkit", "train", *arguments]
    return subprocess.Popen(command, stderr=subprocess.PIPE, text=True, **options)


def test_the_command_saves_the_model(tmp_path: Path) -> None:
    text = columns(
        [" ".join(f"{w} {'DNV'[int(w[1:]) % 3]}" for w in f"w{n} w{n * 7 % 50}".split()) for n in range(99)],
        2,
    )
    (tmp_path / "t.txt").write_text(text, encoding="utf-8")
    limits = ("--max-iterations", "100000", "--tolerance", "0", "--set", "change=0", "--l2", "1e-9")
    with train_command("t.txt", "--model", "m.crf", *limits, cwd=tmp_path) as process:
        assert process.stderr is not None
        for line in process.stderr:
            if line.startswith("iteration    3"):
                process.terminate()
                break
        rest = process.stderr.read()
    assert process.returncode == 143, rest
    assert "crfkit: terminated; the best model so far is in m.crf" in rest
    assert crfkit.load(tmp_path / "m.crf").n_iter_ >= 3


def test_what_must_not_be_interrupted_is_not() -> None:
    done: list[int] = []

    def work() -> None:
        with postpone_signals():
            for n in range(3):
                signal.raise_signal(signal.SIGINT)
                done.append(n)

    with pytest.raises(KeyboardInterrupt):
        work()
    assert done == [0, 1, 2]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    with postpone_signals():
        pass
    with pytest.raises(InputError), postpone_signals():
        raise InputError


def test_a_model_that_cannot_be_written_goes_elsewhere(tmp_path: Path) -> None:
    (tmp_path / "t.txt").write_text(columns(["the D dog N runs V"] * 3, 2), encoding="utf-8")
    spare = tmp_path / "spare"
    spare.mkdir()
    environment = {**os.environ, "TMPDIR": str(spare)}
    with train_command("t.txt", "--model", "/dev/full", "--quiet", cwd=tmp_path, env=environment) as process:
        _, said = process.communicate()
    assert process.returncode == 2
    (found,) = spare.iterdir()
    assert (
        said == f"crfkit: /dev/full: cannot be written (No space left on device); the model is in {found}\n"
    )
    assert crfkit.load(found).classes_ == ["D", "N", "V"]


def test_a_model_of_the_drop_in_interfaces_goes_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    X, y = data()
    crf = sklearn_crfsuite.CRF(max_iterations=3, model_filename="/dev/full")
    expected = r"full: cannot be written \(No space left on device\); the model is in (.*)"
    with pytest.raises(InputError, match=expected) as raised:
        crf.fit(X, y)
    (found,) = tmp_path.iterdir()
    assert str(raised.value).endswith(str(found))
    with pycrfsuite.Tagger().open(str(found)) as tagger:
        assert sorted(tagger.labels()) == ["D", "N", "V"]


@pytest.mark.parametrize("learned", [False, True])
def test_a_first_pass_that_was_interrupted_is_kept(*, learned: bool, tmp_path: Path) -> None:
    model = CRF(optimizer=LBFGS(max_iterations=int(learned))).fit(*data())
    model.n_iter_ = 0
    with click.Context(click.Command("train")), pytest.raises(click.exceptions.Exit) as ended:
        keep_model(model, tmp_path / "m", lambda _: None, interrupted=True)
    assert ended.value.exit_code == 130
    assert (tmp_path / "m").exists() == learned


def test_folders_that_do_not_exist_are_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "absent"))
    monkeypatch.setattr(Path, "home", missing)
    monkeypatch.chdir(tmp_path)
    model = CRF(optimizer=LBFGS(max_iterations=1)).fit(*data())
    found = save_elsewhere(model.save, "m.crf")
    assert found is not None
    assert list(tmp_path.iterdir()) == [found]
    assert found.match("m-????????.crf")


def limited() -> None:
    """In a new process: no file grows beyond 500 bytes."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (500, 500))


def test_a_model_that_no_disk_can_hold(tmp_path: Path) -> None:
    (tmp_path / "t.txt").write_text(columns(["the D dog N runs V"] * 3, 2), encoding="utf-8")
    arguments = ("t.txt", "--model", "m", "--checkpoint", "c", "--every", "1")
    with train_command(*arguments, cwd=tmp_path, preexec_fn=limited) as process:
        _, said = process.communicate()
    assert process.returncode == 2
    assert said.splitlines()[-1] == "crfkit: m: cannot be written (File too large)"
    assert "Traceback" not in said
    assert "crfkit: warning: no checkpoint was written, training goes on: c: cannot be written" in said
    assert os.listdir(tmp_path) == ["t.txt"]


def test_training_goes_on_without_a_checkpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = data()
    path = tmp_path / "c"
    few = LBFGS(max_iterations=5)
    CRF(optimizer=few).fit(X, y, checkpoint=Checkpoint(path, every=5))
    kept = path.read_bytes()

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("crfkit.data.drafts.os.fsync", full)
    with pytest.warns(CheckpointFailed, match="training goes on: .*c: cannot be written"):
        model = CRF(optimizer=few).fit(X, y, checkpoint=Checkpoint(path, every=1))
    assert model.weights_.tobytes() == CRF(optimizer=few).fit(X, y).weights_.tobytes()
    assert os.listdir(tmp_path) == ["c"]
    assert path.read_bytes() == kept
