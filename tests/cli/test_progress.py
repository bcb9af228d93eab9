"""What commands show while they work, and what they do without a terminal."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from crfkit.cli import progress
from crfkit.models import Pace, Progress
from tests.cli.commands import columns, run

pytestmark = pytest.mark.usefixtures("column_files")
TREES = "".join(
    f"1\t{a}\t{a}\tDET\t_\t_\t2\tdet\t_\t_\n2\t{b}\t{b}\tNOUN\t_\t_\t0\troot\t_\t_\n\n"
    for a, b in (("the", "dog"), ("a", "cat"))
)


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stages are shown after a hundredth of a second."""
    monkeypatch.setattr(progress, "PATIENCE", 0.01)
    monkeypatch.setattr(progress, "INTERVAL", 0.05)


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Makes a function take a third of a second more; an iterator, before each of its first items."""

    def slow_down(name: str) -> None:
        module, _, attribute = name.rpartition(".")
        function = getattr(__import__("importlib").import_module(module), attribute)

        def slower(*args: Any, **kwargs: Any) -> Any:
            time.sleep(0.3)
            found = function(*args, **kwargs)
            return waiting(found) if isinstance(found, Iterator) else found

        monkeypatch.setattr(name, slower)

    return slow_down


def waiting(items: Iterator[Any]) -> Iterator[Any]:
    for n, item in enumerate(items):
        yield item
        if n < 5:
            time.sleep(0.1)


@pytest.mark.usefixtures("impatient")
def test_every_stage_of_a_training_run_is_shown(slow: Callable[[str], None]) -> None:
    for name in (
        "cli.train.read_column_examples",
        "models.kinds.kind.learn_sequences",
        "models.training.crf_task.choose",
    ):
        slow(f"crfkit.{name}")
    said = run("train", "train.txt", "--model", "m.crf", "--optimizer", "auto").stderr.splitlines()
    header = said.index("train.txt: 32 sequences, 120 words, 3 labels")
    assert said[0] == "reading train.txt"
    assert all(line.startswith("reading train.txt") for line in said[:header])
    first = next(n for n, line in enumerate(said) if line.startswith("iteration    1 "))
    between = "\n".join(said[header + 1 : first])
    assert re.match(r"encoding 32 sequences\n(.*\n)*minimising over \d+ weights, for 3 labels", between)
    quiet = ("--model", "m.crf", "--optimizer", "auto", "--quiet")
    assert run("train", "train.txt", *quiet).stderr == ""


@pytest.mark.usefixtures("impatient")
def test_other_commands_show_their_stages(slow: Callable[[str], None], model: str) -> None:
    Path("trees.conllu").write_text(TREES)
    for name in (
        "data.read_conllu",
        "cli.tag.tag_columns",
        "cli.evaluate.read_for_tagger",
        "cli.parse.load_parser",
    ):
        slow(f"crfkit.{name}")
    said = run("train-parser", "trees.conllu", "--model", "m.parser").stderr.splitlines()
    assert said[0] == "reading trees.conllu"
    assert "trees.conllu: 2 sentences, 4 words, 2 relations" in said
    for arguments, words in (
        (("tag", model, "train.txt"), "tagging train.txt"),
        (("eval", model, "train.txt"), f"loading {model}"),
        (("parse", "m.parser", "trees.conllu"), "loading m.parser"),
    ):
        result = run(*arguments)
        assert words in result.stderr.splitlines()
        quiet = run(*arguments, "--quiet")
        assert (quiet.stdout, quiet.stderr) == (result.stdout, "")


def test_a_stage_that_waits_for_input_is_silent(monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[str] = []
    monkeypatch.setattr(progress, "PATIENCE", 0.01)
    monkeypatch.setattr(progress, "complain", shown.append)
    with progress.Display() as display:
        display.stage("tagging -", "sequences", waits=True)
        time.sleep(0.2)
        assert shown == []
        items = display.count(iter([1, 2]))
        next(items)
        next(items)
        time.sleep(0.2)
    assert shown == ["tagging -: 1 sequences"]


def test_lines_of_iterations_come_at_intervals_that_grow() -> None:
    pace = Pace()
    steps = [Progress(i, 0.1 * i, 1.0, 1.0, None, False) for i in range(1, 20_001)]
    due = [step.iteration for step in steps if pace.is_due(step)]
    assert due[:12] == [*range(1, 11), 30, 50]
    gaps = [after - before for before, after in pairwise(due[10:])]
    assert gaps == sorted(gaps)
    assert 100 < len(due) < 300
    assert pace.is_due(steps[0])  # of another run


def test_the_last_iteration_is_always_shown() -> None:
    said = run("train", "train.txt", "--model", "m.crf", "--tolerance", "1e-9", "--set", "change=0.0").stderr
    shown = [int(n) for n in re.findall(r"^iteration +(\d+)", said, re.MULTILINE)]
    assert shown[:10] == [*range(1, 11)]
    last = re.search(r"the model of iteration (\d+) is in", said)
    assert last is not None
    assert shown[-1] == int(last[1]) > 11
    assert len(shown) == 11


def test_a_warning_is_shown_once(capsys: pytest.CaptureFixture[str]) -> None:
    """Several questions to a parser find the same column missing."""
    with progress.Display(quiet=False):
        for n in (1, 1, 2, 1):
            warnings.warn(f"warning {n}", UserWarning, stacklevel=1)
            warnings.warn("again from another line", UserWarning, stacklevel=1)
            warnings.warn("again from another line", UserWarning, stacklevel=1)
    lines = capsys.readouterr().err.splitlines()
    assert lines == [
        f"crfkit: warning: {text}" for text in ("warning 1", "again from another line", "warning 2")
    ]


def test_warnings_follow_the_last_iteration() -> None:
    arguments = ("train", "train.txt", "--model", "m.crf", "--max-iterations", "12", "--l2", "1e-6")
    *_, last, warning, ending, _ = run(*arguments).stderr.splitlines()
    assert last.startswith("iteration   12 ")
    assert warning.startswith("crfkit: warning: the iteration limit ended")
    assert ending.startswith("the iteration limit was reached")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
def test_training_goes_on_where_nobody_can_see_it() -> None:
    command = f"{sys.executable} -m crfkit train train.txt --model m.crf 2> /dev/full"
    assert subprocess.run(["bash", "-c", command], check=False, timeout=60).returncode == 0
    assert Path("m.crf").exists()


def test_many_labels_without_constraints_get_a_hint() -> None:
    words = [f"w{n} L{n % 70}" for n in range(700)]
    Path("many.txt").write_text(columns([" ".join(words[n : n + 7]) for n in range(0, 700, 7)], 2))
    arguments = ("train", "many.txt", "--model", "m.crf", "--max-iterations", "1")
    said = run(*arguments).stderr
    assert "many.txt: 70 labels without constraints: each word looks at all 4,900 pairs" in said
    assert "of which the file has 60; --bigrams observed trains on these alone" in said
    assert "--bigrams observed" not in run(*arguments, "--bigrams", "observed").stderr
    assert "--bigrams observed" not in run("train", "train.txt", "--model", "m.crf").stderr


@pytest.mark.skipif(os.name == "nt", reason="a terminal as on POSIX")
def test_on_a_terminal_stages_change_in_one_line() -> None:
    import pty

    program = """
import time
from crfkit.cli.progress import Display
with Display() as display:
    display.stage("reading [a] file", "sequences")
    time.sleep(1.6)
    display.say("a line that stays")
    display.stage("writing")
    time.sleep(1.6)
print("done")
"""
    ours, theirs = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "120"}
    done = subprocess.run(
        [sys.executable, "-c", program], stderr=theirs, stdout=subprocess.PIPE, env=environment, check=True
    )
    os.close(theirs)
    text = os.read(ours, 65536).decode()
    os.close(ours)
    assert done.stdout == b"done\n"
    assert "reading [a] file, 1 s" in text
    assert "a line that stays\r\n" in text
    assert "writing, 1 s" in text
    assert text.rstrip().endswith(("\x1b[2K", "\x1b[?25h"))  # the line of the last stage is taken off
