"""Running the command line in tests."""

from __future__ import annotations

import os

from click.testing import CliRunner, Result

from crfkit.cli import main


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
    lines = result.stderr.splitlines()
    assert len(lines) == 1, result.stderr
    assert result.stdout == ""
    return lines[0]
