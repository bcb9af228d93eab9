"""`crfkit tag`: what it writes, where, and for which columns."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.cli.commands import complaint, listens_to_ctrl_c, run

pytestmark = pytest.mark.usefixtures("column_files")


def test_train_then_tag(model: str) -> None:
    tagged = run("tag", model, "-", text="the\ndog\n\na\ncat\nsees\n").stdout
    assert tagged == "the D\ndog N\n\na D\ncat N\nsees V\n\n"


def test_a_gold_column_and_comments_are_kept(model: str) -> None:
    text = "# id = 1\nthe X\ndog Y\n"
    assert run("tag", model, "-", text=text).stdout == "# id = 1\nthe X D\ndog Y N\n\n"


def test_tabs_stay_tabs(model: str) -> None:
    assert run("tag", model, "-", text="the\tX\ndog\tY\n").stdout == "the\tX\tD\ndog\tY\tN\n\n"


def test_marginals_and_nbest(model: str) -> None:
    rows = [
        line.split() for line in run("tag", model, "-", "--marginals", text="the\ndog\n").stdout.splitlines()
    ]
    assert [row[:2] for row in rows[:2]] == [["the", "D"], ["dog", "N"]]
    assert all(0.5 < float(row[2]) <= 1.0 for row in rows[:2])
    lines = run("tag", model, "-", "--nbest", "3", text="the\ndog\n").stdout.splitlines()
    heads = [line.split() for line in lines if line.startswith("#")]
    assert [head[1] for head in heads] == ["1", "2", "3"]
    probabilities = [float(head[2]) for head in heads]
    assert probabilities == sorted(probabilities, reverse=True)
    assert lines[1:3] == ["the D", "dog N"]
    both = run("tag", model, "-", "--nbest", "2", "--marginals", text="the\ndog\n").stdout
    assert len(both.splitlines()[1].split()) == 3


def test_output_goes_to_a_file_whole_or_not_at_all(model: str) -> None:
    Path("in.txt").write_text("the\ndog\n\ncat\n")
    run("tag", model, "in.txt", "--output", "out.txt")
    assert Path("out.txt").read_text() == "the D\ndog N\n\ncat N\n\n"
    Path("in.txt").write_text("the\ndog\n\ncat N x y\n")
    assert complaint("tag", model, "in.txt", "--output", "out.txt").startswith("crfkit: in.txt:4: ")
    assert Path("out.txt").read_text() == "the D\ndog N\n\ncat N\n\n"


def test_many_sequences_are_tagged_as_a_stream(model: str) -> None:
    text = "the\ndog\n\n" * 2500
    assert run("tag", model, "-", text=text).stdout == "the D\ndog N\n\n" * 2500


def test_any_column_may_hold_the_label(model: str) -> None:
    rows = [line.split() for line in Path("train.txt").read_text().splitlines()]
    Path("first.txt").write_text("".join(" ".join(reversed(row)) + "\n" for row in rows))
    run("train", "first.txt", "--model", "first.crf", "--label-column", "0", "--quiet")
    assert run("tag", "first.crf", "-", text="the\ndog\n").stdout == "the D\ndog N\n\n"
    assert run("tag", "first.crf", "-", text="X the\nY dog\n").stdout == "X the D\nY dog N\n\n"
    assert "accuracy: 100.00%" in run("eval", "first.crf", "first.txt").stdout


def test_tagging_imports_neither_scikit_learn_nor_scipy(model: str) -> None:
    program = f"""
import sys
from crfkit.cli import main
try:
    main(["tag", "{model}", "-", "--quiet"])
except SystemExit as end:
    assert end.code == 0
assert not {{"sklearn", "scipy", "rich", "torch"}} & set(sys.modules)
"""
    done = subprocess.run(
        [sys.executable, "-c", program], input="the\n", capture_output=True, text=True, check=False
    )
    assert done.stderr == ""
    assert done.stdout == "the D\n\n"


@pytest.mark.skipif(os.name == "nt", reason="signals are sent as on POSIX")
def test_ctrl_c_while_waiting_for_input_leaves_nothing(model: str) -> None:
    command = [sys.executable, "-m", "crfkit", "tag", model, "-", "--output", "out.txt", "--quiet"]
    with subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=listens_to_ctrl_c,
    ) as process:
        while not any(path.name.startswith(".out.txt") for path in Path().iterdir()):
            time.sleep(0.02)  # until it is reading
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 130
        assert process.stderr is not None
        assert process.stderr.read() == "crfkit: interrupted\n"
    assert not [path for path in Path().iterdir() if "out.txt" in path.name]
