"""`crfkit train`: the optimizer and its settings, time budget, warm start, checkpoints."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import crfkit
from crfkit import StopReason
from crfkit.optimizers import AUTO, OPTIMIZERS
from tests.cli.commands import columns, complaint, run

SENTENCES = ["the D dog N runs V", "a D cat N sees V the D dog N", "dogs N run V"] * 5


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("train.txt").write_text(columns(SENTENCES, 2))


def train(*options: str) -> crfkit.CRF:
    run("train", "train.txt", "--model", "m.crf", "--quiet", *options)
    return crfkit.load("m.crf")


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_every_optimizer_can_be_asked_for_by_name(name: str) -> None:
    crf = train("--optimizer", name, "--max-iterations", "3")
    assert crf.optimizer == OPTIMIZERS[name](max_iterations=3)
    assert crf.predict([[("the",), ("dog",)]]) == [["D", "N"]]


def test_the_help_names_every_optimizer() -> None:
    shown = " ".join(run("train", "--help").stdout.split())
    listed = shown.split("How to minimise: ")[1].split(".")[0].replace(" or ", ", ").split(", ")
    assert set(listed) == {AUTO, *OPTIMIZERS}


def test_auto_says_what_it_chose() -> None:
    said = run("train", "train.txt", "--model", "m.crf", "--optimizer", "auto").stderr
    assert crfkit.load("m.crf").optimizer == AUTO
    assert "LBFGS" in said


def test_settings_are_read_as_numbers() -> None:
    assert train("--set", "memory=30", "--set", "change=1e-3").optimizer == crfkit.LBFGS(
        memory=30, change=1e-3
    )
    assert train("--optimizer", "sgd", "--set", "rate=0.1").optimizer == crfkit.SGD(rate=0.1)
    short = train("--optimizer", "pa", "--set", "average=false").optimizer
    assert short == crfkit.PassiveAggressive(average=False)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--optimizer", "nosuch"], "--optimizer nosuch: there is no such one, expected auto, "),
        (["--optimizer", "auto", "--tolerance", "1e-3"], "--optimizer auto decides tolerance too"),
        (["--set", "memory"], "--set memory: expected name=value"),
        (["--set", "=3"], "--set =3: expected name=value"),
        (["--set", "speed=3"], "--optimizer lbfgs has no setting speed, expected one of max_iterations, "),
        (["--set", "period=none"], "period=None"),
        (["--set", "memory=much"], "memory='much'"),
        (["--optimizer", "tron", "--l1", "1"], "TRON takes no l1 penalty"),
        (["--time-budget", "0"], "time_budget is 0.0"),
        (["--resume"], "--resume was given without --checkpoint"),
        (["--checkpoint", "train.txt"], "train.txt: the checkpoint would replace the file it is made of"),
        (["--checkpoint", "m.crf"], "m.crf: the model would replace the checkpoint"),
        (["--checkpoint", "nosuch/c.state"], "nosuch/c.state: cannot be written"),
        (["--warm-start", "nosuch.crf"], "nosuch.crf"),
        (["--warm-start", "train.txt"], "train.txt"),
    ],
)
def test_what_has_no_meaning_is_refused(options: list[str], words: str) -> None:
    assert words in complaint("train", "train.txt", "--model", "m.crf", *options)


def test_a_time_budget_ends_the_training() -> None:
    said = run(
        *("train", "train.txt", "--model", "m.crf", "--tolerance", "0", "--set", "change=0"),
        *("--time-budget", "1e-9"),
    ).stderr
    model = crfkit.load("m.crf")
    assert model.stop_reason_ is StopReason.TIME_BUDGET
    assert f"{model.stop_message_}; the model of iteration 0" in said


def test_a_warm_start_begins_where_the_model_ended() -> None:
    first = train("--tolerance", "1e-9", "--set", "change=0")
    Path("m.crf").rename("first.crf")
    again = train("--warm-start", "first.crf", "--max-iterations", "0")
    np.testing.assert_array_equal(again.weights_, first.weights_)
    assert train("--max-iterations", "0").weights_.any() is np.False_


def test_a_checkpoint_goes_on_to_the_same_bits() -> None:
    whole = train("--tolerance", "1e-9")
    saved = ("--tolerance", "1e-9", "--checkpoint", "c.state", "--every", "2")
    train(*saved, "--time-budget", "1e-9")
    train(*saved)
    resumed = train(*saved, "--resume")
    np.testing.assert_array_equal(resumed.weights_, whole.weights_)
    Path("train.txt").write_text(columns(SENTENCES[:-1], 2))
    refused = complaint("train", "train.txt", "--model", "n.crf", *saved, "--resume")
    assert "c.state" in refused
