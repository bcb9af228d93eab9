"""Running the command line in tests."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

from click.testing import CliRunner, Result

from crfkit.cli import main

SENTENCES = [
    "the D dog N runs V",
    "a D cat N sees V the D dog N",
    "the D house N",
    "a D dog N eats V a D cat N",
] * 8
CHUNKS = ["the D B-NP dog N I-NP runs V B-VP", "a D B-NP cat N I-NP sees V B-VP the D B-NP dog N I-NP"] * 8
TEMPLATE = "U00:%x[0,0]\nU01:%x[-1,0]\nB\n"


def columns(sentences: list[str], n: int, separator: str = " ") -> str:
    """Sentences of words and labels in one line each as a file with n columns."""
    blocks = []
    for sentence in sentences:
        values = sentence.split()
        rows = [values[i : i + n] for i in range(0, len(values), n)]
        blocks.append("".join(separator.join(row) + "\n" for row in rows))
    return "\n".join(blocks)


def run(*arguments: str, text: str | bytes = "", status: int = 0) -> Result:
    result = CliRunner().invoke(main, list(arguments), input=text, prog_name="crfkit")
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == status, result.output
    return result


def complaint(*arguments: str, text: str | bytes = "") -> str:
    """The one sentence that bad input gets; no file is left behind."""
    before = sorted(os.listdir())
    result = run(*arguments, text=text, status=2)
    assert sorted(os.listdir()) == before
    *header, last = result.stderr.splitlines()  # the header of a training file that could be read
    assert len(header) <= 1, result.stderr
    assert not any(line.startswith("crfkit:") for line in header)
    assert result.stdout == ""
    return last


def listens_to_ctrl_c() -> None:
    """In a new process: tests may be run from a shell whose children ignore Ctrl-C."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


def interrupted_training(*arguments: str) -> str:
    """The output of a training run after Ctrl-C in its third iteration; its exit status is 130."""
    command = [sys.executable, "-m", "crfkit", *arguments]
    with subprocess.Popen(
        command, stderr=subprocess.PIPE, text=True, preexec_fn=listens_to_ctrl_c
    ) as process:
        assert process.stderr is not None
        for line in process.stderr:
            if line.startswith("iteration    3"):
                process.send_signal(signal.SIGINT)
                break
        rest = process.stderr.read()
    assert process.returncode == 130, rest
    return rest
