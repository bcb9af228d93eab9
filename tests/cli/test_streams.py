"""Standard streams of the command line: closed, full, broken, in other encodings, and input that arrives slowly."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from crfkit.cli.streams import ArrivingLines, batches
from crfkit.data import read_columns
from tests.cli.commands import complaint, run

pytestmark = [
    pytest.mark.usefixtures("column_files"),
    pytest.mark.skipif(os.name == "nt", reason="streams are those of POSIX"),
]
CRFKIT = [sys.executable, "-m", "crfkit"]


def crfkit(*arguments: str, **settings: Any) -> subprocess.CompletedProcess[bytes]:
    """Run a command in a process of its own."""
    return subprocess.run(
        [*CRFKIT, *arguments], check=False, timeout=60, **{"capture_output": True, **settings}
    )


def shell(command: str) -> subprocess.CompletedProcess[str]:
    """Run a command line in which `crfkit` is this package's command."""
    command = command.replace("crfkit", f"{sys.executable} -m crfkit")
    return subprocess.run(["bash", "-c", command], check=False, capture_output=True, text=True, timeout=60)


@pytest.fixture(scope="module")
def nouns(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    """A training file and a model whose words and labels few encodings have."""
    folder = tmp_path_factory.mktemp("nouns")
    file, model = str(folder / "j.txt"), str(folder / "j.crf")
    Path(file).write_text("a 名詞\nb 動詞é\n\na 名詞\n", encoding="utf-8")
    run("train", file, "--model", model, "--quiet")
    return file, model


@pytest.mark.parametrize("encoding", ["latin-1", "cp1252", "koi8-r", "ascii", "utf-8"])
def test_reports_are_written_in_any_encoding(nouns: tuple[str, str], encoding: str) -> None:
    file, model = nouns
    environment = {**os.environ, "PYTHONIOENCODING": encoding, "PYTHONUTF8": "0"}
    report = crfkit("eval", model, file, "--quiet", env=environment)
    assert (report.returncode, report.stderr) == (0, b"")
    described = crfkit("inspect", model, env=environment)
    assert (described.returncode, described.stderr) == (0, b"")
    if encoding in ("latin-1", "cp1252"):
        labels = "labels (2): \\u52d5\\u8a5eé \\u540d\\u8a5e\n"
        assert described.stdout.startswith(labels.encode(encoding))


@pytest.mark.parametrize("encoding", ["latin-1", "ascii", "utf-8"])
def test_data_are_utf8_in_any_encoding(nouns: tuple[str, str], encoding: str) -> None:
    file, model = nouns
    environment = {**os.environ, "PYTHONIOENCODING": encoding}
    described = json.loads(crfkit("inspect", model, "--json", env=environment).stdout.decode("utf-8"))
    assert described["labels"] == ["動詞é", "名詞"]
    tagged = crfkit("tag", model, file, "--labels-only", env=environment).stdout
    assert tagged.decode("utf-8") == "名詞\n動詞é\n\n名詞\n\n"


def test_closed_streams_are_said_in_a_sentence(model: str) -> None:
    done = shell(f"crfkit tag {model} train.txt --quiet >&-")
    assert done.returncode == 2
    assert done.stderr == "crfkit: standard output: cannot be written (Bad file descriptor)\n"
    done = shell(f"crfkit tag {model} - --quiet <&-")
    assert done.returncode == 2
    assert done.stderr == "crfkit: <stdin>: cannot be read: Bad file descriptor\n"
    assert shell("crfkit --help >&-").returncode == 2


def test_closed_streams_are_not_taken_by_files(model: str) -> None:
    done = shell("crfkit train train.txt --model m.crf <&- >&- 2>&-")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert run("tag", "m.crf", "train.txt").stdout == run("tag", model, "train.txt").stdout


@pytest.fixture(params=["buffered", "unbuffered"])
def buffering(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """The streams of commands hold what they could not write yet, or hold nothing."""
    monkeypatch.delenv("PYTHONUNBUFFERED", raising=False)
    if request.param == "unbuffered":
        monkeypatch.setenv("PYTHONUNBUFFERED", "1")


@pytest.mark.usefixtures("buffering")
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
@pytest.mark.parametrize("command", ["--help", "train --help", "--version"])
def test_help_on_a_full_device(command: str) -> None:
    done = shell(f"crfkit {command} > /dev/full")
    assert done.returncode == 2
    assert done.stderr == "crfkit: standard output: cannot be written (No space left on device)\n"


@pytest.mark.usefixtures("buffering")
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
def test_an_error_stream_that_is_full(model: str) -> None:
    for command in ("nosuch", "tag nosuch.crf train.txt", "train"):
        assert shell(f"crfkit {command} 2> /dev/full").returncode == 2
    assert shell(f"crfkit eval {model} train.txt 2> /dev/full").returncode == 0
    assert shell(f"crfkit eval {model} train.txt &> /dev/full").returncode == 2
    assert shell("crfkit lexicon train.txt --out x.lexicon 2> /dev/full").returncode == 0
    with Path("/dev/full").open("wb") as full:
        done = crfkit("convert", model, "x.crf", "--to", "crfkit", capture_output=False, stderr=full)
    assert done.returncode == 0


def test_a_reader_that_has_enough_ends_the_command_quietly(model: str) -> None:
    Path("long.txt").write_text("the\ndog\n\n" * 50_000)
    done = shell(f"crfkit tag {model} long.txt --quiet | head -n 1; echo ${{PIPESTATUS[0]}}")
    assert done.stdout == "the D\n141\n"
    assert done.stderr == ""


@pytest.mark.parametrize("source", ["-", "/dev/stdin"])
def test_answers_come_while_the_input_stays_open(model: str, source: str) -> None:
    talk = [
        (b"the\ndog\n\n", b"the D\ndog N\n\n"),
        (b"a\n\n\ncat\n\n# id = 1\nthe", b"a D\n\ncat N\n\n"),  # the last sentence has only begun
        (b"\ndog\n\n# id = 2\n", b"# id = 1\nthe D\ndog N\n\n"),
        (b"cat\n\n", b"# id = 2\ncat N\n\n"),
    ]
    with subprocess.Popen(
        [*CRFKIT, "tag", model, source], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for asked, answer in talk:
            process.stdin.write(asked)
            process.stdin.flush()
            assert process.stdout.read(len(answer)) == answer
        process.stdin.close()
        assert process.stdout.read() == b""
    assert process.returncode == 0


def test_lines_that_arrive_in_pieces() -> None:
    text = b"".join(b"a%d\nb\n \t\r\n\n# c\n" % n for n in range(100)) + b"last"
    for size in (1, 2, 3, 7, 100, 10_000):
        stream = Pieces(text, size)
        lines = ArrivingLines(stream, "pieces")  # type: ignore[arg-type]
        assert list(lines) == text.splitlines(keepends=True)
        assert not lines.has_sequence()


class Pieces:
    """A stream of which so many bytes arrive at a time."""

    def __init__(self, text: bytes, size: int) -> None:
        self._pieces = iter([text[i : i + size] for i in range(0, len(text), size)])

    def read1(self, n: int) -> bytes:
        return next(self._pieces, b"")


def test_batches_hold_nothing_back_and_are_as_large_as_they_may() -> None:
    lines = ArrivingLines(Pieces(b"a\n\nb\n\nc\n\nd\n\n# x\n\ne\n\nf", 24), "pieces")  # type: ignore[arg-type]
    found = [
        [row[0] for sequence in batch for row in sequence.rows]
        for batch in batches(read_columns(lines), 3, lines)
    ]
    assert found == [["a", "b", "c"], ["d", "e"], ["f"]]


@pytest.mark.parametrize("link", ["symbolic", "hard", "folder", "same", "absolute"])
@pytest.mark.parametrize("command", ["tag", "train", "convert", "parse"])
def test_no_command_writes_over_what_it_reads(model: str, command: str, link: str) -> None:
    source = {"tag": "train.txt", "train": "train.txt", "convert": model, "parse": "train.txt"}[command]
    target = "other"
    if link == "symbolic":
        Path(target).symlink_to(source)
    elif link == "hard":
        os.link(source, target)
    else:
        Path("folder").mkdir()
        target = {"folder": f"folder/../{source}", "same": source, "absolute": str(Path(source).resolve())}[
            link
        ]
    before = Path(source).read_bytes()
    arguments = {
        "tag": ["tag", model, source, "--output", target],
        "train": ["train", source, "--model", target],
        "convert": ["convert", source, target],
        "parse": ["parse", model, source, "--output", target],
    }[command]
    assert "would replace the file it is made of, expected another path" in complaint(*arguments)
    assert Path(source).read_bytes() == before


def test_standard_output_is_not_the_file_that_is_read(model: str) -> None:
    before = Path("train.txt").read_bytes()
    for command in (
        f"crfkit tag {model} train.txt >> train.txt",
        f"crfkit tag {model} - < train.txt >> train.txt",
    ):
        done = shell(command)
        assert done.returncode == 2
        assert done.stderr.startswith("crfkit: standard output: the output would replace the file")
    assert Path("train.txt").read_bytes() == before
    assert shell(f"crfkit tag {model} train.txt > /dev/null < /dev/null").returncode == 0


def test_results_go_to_pipes() -> None:
    commands = ("cluster train.txt --classes 2 --min-count 1", "lexicon word=train.txt")
    for command in (*commands, "train train.txt --quiet --model"):
        option = "" if command.endswith("--model") else " --out"
        assert shell(f"crfkit {command}{option} kept 2> /dev/null").returncode == 0
        done = shell(f"set -o pipefail; crfkit {command}{option} /dev/stdout | cmp - kept")
        assert done.returncode == 0, done.stderr
