"""`crfkit train`: its options, what it says meanwhile, the dev set, Ctrl-C."""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import crfkit
from crfkit import StopReason
from crfkit.models import Progress, SecondsLeft
from tests.cli.commands import TEMPLATE, columns, complaint, interrupted_training, run

pytestmark = pytest.mark.usefixtures("column_files")


def test_templates_presets_and_options() -> None:
    run(
        "train",
        "train.txt",
        "--model",
        "t.crf",
        "--template",
        "template.txt",
        "--l1",
        "0.1",
        "--l2",
        "0.5",
        "--quiet",
    )
    crf = crfkit.load("t.crf")
    assert (crf.l1, crf.l2, crf.features.text.strip()) == (0.1, 0.5, TEMPLATE.strip())
    run(
        *(
            "train",
            "chunks.txt",
            "--model",
            "c.crf",
            "--features",
            "chunks",
            "--block-l2",
            "transitions=0.2",
            "--all-possible-states",
        ),
        *("--min-count", "2", "--max-iterations", "7", "--tolerance", "1e-3", "--threads", "1", "--quiet"),
    )
    crf = crfkit.load("c.crf")
    assert (crf.features, crf.l2, crf.all_possible_states, crf.min_count) == (
        "chunks",
        {"default": 1.0, "transitions": 0.2},
        True,
        2,
    )
    assert crf.optimizer == crfkit.LBFGS(max_iterations=7, tolerance=1e-3)
    assert (crf.structure, crf.all_possible_transitions) == (crfkit.Chain(), True)
    run("train", "train.txt", "--model", "e.crf", "--seen-transitions", "--no-start", "--no-end", "--quiet")
    crf = crfkit.load("e.crf")
    assert (crf.structure, crf.all_possible_transitions) == (crfkit.Chain(start=False, end=False), False)
    for file, preset in (("chunks.txt", "names"), ("train.txt", "pos")):
        run("train", file, "--model", "d.crf", "--quiet")
        assert crfkit.load("d.crf").features == preset


def test_training_says_how_it_goes() -> None:
    said = run(
        "train", "train.txt", "--model", "m.crf", "--dev", "train.txt", "--max-iterations", "4"
    ).stderr.splitlines()
    assert said[0] == "train.txt: 32 sequences, 120 words, 3 labels"
    iterations = [line for line in said if line.startswith("iteration")]
    assert len(iterations) == 4
    for word in ("objective", "gradient", "dev accuracy", " s", "left"):
        assert word in iterations[-1]
    assert said[-2].endswith("is in m.crf")
    assert "weights" in said[-1]
    assert (
        run(
            "train", "chunks.txt", "--model", "m.crf", "--dev", "chunks.txt", "--max-iterations", "2"
        ).stderr.count("dev F1")
        == 2
    )
    assert run("train", "train.txt", "--model", "m.crf", "--quiet").stderr == ""


@pytest.mark.skipif(os.name == "nt", reason="a terminal as on POSIX")
def test_on_a_terminal_one_line_changes() -> None:
    import pty

    ours, theirs = pty.openpty()
    command = [
        sys.executable,
        "-m",
        "crfkit",
        "train",
        "train.txt",
        "--model",
        "m.crf",
        "--max-iterations",
        "5",
    ]
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "120"}
    subprocess.run(command, stderr=theirs, env=environment, check=True)
    os.close(theirs)
    said = b""
    with contextlib.suppress(OSError):  # the end of a terminal
        while piece := os.read(ours, 65536):
            said += piece
    os.close(ours)
    text = re.sub(r"\x1b\[[0-9;]*m", "", said.decode())  # without colours
    assert text.count("iteration    1") == 1
    assert "iteration    5" in text
    assert "\x1b[1A" in text or "\x1b[2K" in text  # the line is written over


def test_ctrl_c_before_the_first_iteration_writes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*arguments: Any, **settings: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(crfkit.CRF, "fit", interrupted)
    said = run("train", "train.txt", "--model", "m.crf", status=130).stderr
    assert said == "train.txt: 32 sequences, 120 words, 3 labels\ncrfkit: interrupted\n"
    assert not Path("m.crf").exists()


def test_the_dev_set_ends_the_training_early() -> None:
    result = run(
        "train", "train.txt", "--model", "m.crf", "--dev", "train.txt", "--patience", "2", "--tolerance", "0"
    )
    assert f"{crfkit.load('m.crf').stop_message_}; the model of iteration" in result.stderr
    assert crfkit.load("m.crf").stop_reason_ is StopReason.NO_IMPROVEMENT
    assert crfkit.load("m.crf").n_iter_ < len(crfkit.load("m.crf").history_) - 1


def test_seconds_left_follow_the_gradient_and_the_limit() -> None:
    estimate = SecondsLeft(max_iterations=100, tolerance=1e-4)
    steps = [Progress(i, 0.5 * i, 1.0, 10.0**-i, None, False) for i in range(1, 4)]
    assert estimate(steps[0]) is None
    assert estimate(steps[1]) == pytest.approx(0.5 * 3)  # norms 1e-1, 1e-2, goal 1e-5
    assert estimate(steps[2]) == pytest.approx(0.5 * 2)
    flat = SecondsLeft(max_iterations=10, tolerance=1e-4)
    flat(Progress(1, 1.0, 1.0, 1.0, None, False))
    assert flat(Progress(2, 2.0, 1.0, 1.0, None, False)) == pytest.approx(8.0)


@pytest.mark.skipif(os.name == "nt", reason="signals are sent as on POSIX")
def test_ctrl_c_saves_the_best_model_and_exits_with_130() -> None:
    sentences = [f"{' '.join(f'w{i * j % 97} L{i * j % 7}' for j in range(2, 22))}" for i in range(1, 150)]
    Path("big.txt").write_text(columns(sentences, 2))
    limits = ["--max-iterations", "100000", "--tolerance", "0", "--l2", "1e-9"]
    rest = interrupted_training("train", "big.txt", "--model", "m.crf", *limits)
    assert "crfkit: interrupted; the best model so far is in m.crf" in rest
    assert "Traceback" not in rest
    crf = crfkit.load("m.crf")
    assert crf.stop_reason_ == StopReason.INTERRUPTED
    assert crf.n_iter_ >= 3
    assert sorted(path.name for path in Path().iterdir() if path.name.startswith(".")) == []


def test_segments() -> None:
    Path("subjects.txt").write_text("the dog\n\na cat\n", encoding="utf-8")
    train = ("train", "chunks.txt", "--model", "s.crf", "--quiet")
    run(*train, "--structure", "segments", "--max-length", "3", "--dictionary", "subjects=subjects.txt")
    crf = crfkit.load("s.crf")
    assert crf.structure.max_length == 3
    assert crf.structure.dictionaries == {"subjects": (("a", "cat"), ("the", "dog"))}
    assert "B-NP\n" in run("tag", "s.crf", "chunks.txt").output
    assert "FB1: 100.00" in run("eval", "s.crf", "chunks.txt").output
    assert "NP in subjects" in run("inspect", "s.crf").output
    for wrong, message in (
        (("--max-length", "3"), "is about segments"),
        (("--structure", "segments", "--bigrams", "bio"), "is about types of segments"),
        (("--structure", "segments", "--bigrams", "iobes"), "is about types of segments"),
        (("--structure", "segments", "--order", "2"), "is about chains"),
        (("--structure", "segments", "--dictionary", "x"), "expected name=file"),
    ):
        assert message in run(*train, *wrong, status=2).output


NAMES = ["Ann B-PER Hill I-PER runs O", "the O hill O is O May B-PER", "in O May O it O rains O"]


def _names() -> str:
    Path("names.txt").write_text(columns(NAMES, 2))
    return "names.txt"


def _cost_options(given: list[str]) -> list[str]:
    return [word for text in given for word in ("--cost", text)]


@pytest.mark.parametrize(
    ("given", "costs"),
    [
        (["2"], 2.0),
        (["-0.5"], -0.5),
        (["missed=2", "invented=.5"], {"missed": 2.0, "invented": 0.5}),
        (["B-PER>O=3", "O>I-PER=1"], {("B-PER", "O"): 3.0, ("O", "I-PER"): 1.0}),
    ],
)
def test_costs_of_mistakes(given: list[str], costs: Any) -> None:
    run("train", _names(), "--model", "c.crf", "--quiet", *_cost_options(given))
    rows = [line.split()[::2] for line in NAMES], [line.split()[1::2] for line in NAMES]
    expected = crfkit.CRF(features="names").fit(*rows, costs=costs)
    assert (crfkit.load("c.crf").weights_ == expected.weights_).all()
    assert not (expected.weights_ == crfkit.CRF(features="names").fit(*rows).weights_).all()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["much"], "--cost much: expected a number"),
        (["missed="], "--cost missed=: expected a number"),
        (["O>=1"], "--cost O>=1: expected a number"),
        (["=1"], "--cost =1: expected a number"),
        (["2", "missed=1"], "--cost 2 was given beside others"),
        (["lost=1"], "the key 'lost', expected pairs"),
        (["O>B-X=1"], "the label 'B-X', which y does not have"),
    ],
)
def test_costs_that_are_none(given: list[str], message: str) -> None:
    assert message in complaint("train", _names(), "--model", "c.crf", *_cost_options(given))


def test_a_search_for_l2() -> None:
    said = run("train", "chunks.txt", "--model", "c.crf", "--features", "chunks", "--l2", "auto").stderr
    found = crfkit.load("c.crf").l2
    assert f"l2 {found:g} made 3 held-out sequences most likely" in said
    assert "--l2 much: expected a number, or auto" in complaint(
        "train", "chunks.txt", "--model", "d.crf", "--l2", "much"
    )


def test_a_search_for_the_l2_of_a_block() -> None:
    given = ("train", "chunks.txt", "--model", "d.crf", "--features", "chunks")
    said = run(*given, "--l2", "2", "--block-l2", "transitions=auto").stderr
    found = crfkit.load("d.crf").l2
    assert found["default"] == 2
    assert f"l2 transitions {found['transitions']:g} made 3 held-out sequences most likely" in said
    run(*given, "--l2", "auto", "--block-l2", "transitions=1")
    assert crfkit.load("d.crf").l2["transitions"] == 1
    assert "expected name=number, such as transitions=0.1, or name=auto" in complaint(
        *given, "--block-l2", "transitions=much"
    )


def test_states_of_spans() -> None:
    """Of files and of data sets; `inspect` lists them."""
    run("encode", "chunks.txt", "--out", "data", "--features", "chunks", "--quiet")
    for given in (("chunks.txt", "--features", "chunks"), ("data",)):
        command = ("train", *given, "--model", "s.crf", "--quiet")
        run(*command, "--span-states", "iobes")
        assert "labels (3): B-NP B-VP I-NP\nstates (5): B-NP S-NP S-VP I-NP E-NP\n" in _inspected()
        assert crfkit.load("s.crf").span_states == "iobes"
        run(*command, "--span-states", "none")
        assert "states" not in _inspected().split("sizes")[0]
    assert "does not go with crfkit.Segments" in complaint(
        "train", "train.txt", "--model", "s.crf", "--structure", "segments", "--span-states", "iobes"
    )


def _inspected() -> str:
    return run("inspect", "s.crf").stdout
