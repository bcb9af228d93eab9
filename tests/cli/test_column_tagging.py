"""`crfkit tag` by the core, chunk by chunk: the bytes and the errors of the general code, for any number of threads."""

from __future__ import annotations

import io
import os
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from crfkit.cli import column_tagging
from crfkit.cli import tag as tag_command
from crfkit.cli.streams import ArrivingLines
from tests.cli.commands import complaint, run

WORDS = ["Rome", "the", "dog", "İstanbul", "x-27", "ß", "#", "was", "été", "1999"]


def text_of(seed: int, n: int, *, separator: str = " ", labels: bool = True, end: str = "\n") -> bytes:
    """Sequences of words, tags and labels, with comments, blank lines and white space at the ends of lines."""
    source = random.Random(seed)
    lines: list[str] = []
    for _ in range(n):
        lines += source.choice([[], [], ["# text = a b"], ["", "# c"]])
        for _ in range(source.randint(1, 8)):
            columns = [
                source.choice(WORDS),
                source.choice("NV"),
                *(["L" + source.choice("ABC")] if labels else []),
            ]
            lines.append(
                separator.join(columns) + ("  " if separator == " " and source.random() < 0.1 else "")
            )
        lines += [""] * source.randint(1, 2)
    return end.join(lines).encode()


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("models")
    template = folder / "template"
    template.write_text("U0:%x[0,0]\nU1:%lower_suffix[-1,0,2]\nU2:%shape[1,0]/%x[0,1]\nB:%x[0,1]\nB\n")
    options = {
        "preset": ["--features", "chunks"],
        "template": ["--template", str(template)],
        "first": ["--template", str(template), "--label-column", "0"],
        "tabs": ["--features", "chunks"],
        "observed": ["--features", "chunks", "--bigrams", "observed"],
        "segments": ["--features", "chunks", "--structure", "segments"],
    }
    found = {}
    for name, arguments in options.items():
        file, model = folder / f"{name}.txt", folder / f"{name}.crf"
        separator = "\t" if name == "tabs" else " "
        file.write_bytes(
            text_of(0, 60, separator=separator).replace(b"# c\n", b"").replace(b"# text = a b\n", b"")
        )
        run("train", str(file), "--model", str(model), "--quiet", "--max-iterations", "5", *arguments)
        found[name] = str(model)
    return found


@pytest.fixture
def in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(column_tagging, "CHUNK", 300)
    return tmp_path


def general(monkeypatch: pytest.MonkeyPatch, *arguments: str, **settings: Any) -> bytes:
    """What the general code writes."""
    with monkeypatch.context() as patch:
        patch.setattr(tag_command, "find_column_tagger", lambda *_: None)
        return run("tag", *arguments, "--quiet", **settings).stdout_bytes


FILES = {
    "plain": text_of(1, 40),
    "no labels": text_of(2, 40, labels=False),
    "tabs": text_of(3, 40, separator="\t"),
    "tabs among blanks": text_of(4, 40).replace(b" N ", b"\tN ").replace(b" V ", b" \t V\t"),
    "carriage returns": text_of(5, 40, end="\r\n"),
    "byte order mark": b"\xef\xbb\xbf" + text_of(6, 3),
    "no line end": text_of(7, 3).rstrip(b"\n"),
    "one": b"Rome N LA",
    "comments at the end": text_of(8, 3) + b"\n\n# nothing\n",
}


@pytest.mark.parametrize(
    ("name", "form"),
    [
        *((name, form) for name in ("preset", "template", "first", "observed") for form in FILES),
        ("tabs", "tabs"),
    ],
)
def test_the_bytes_are_those_of_the_general_code(
    models: dict[str, str], in_folder: Path, monkeypatch: pytest.MonkeyPatch, name: str, form: str
) -> None:
    Path("in.txt").write_bytes(FILES[form])
    general_code = tag_command.tag
    monkeypatch.setattr(tag_command, "tag", lambda *_, **__: pytest.fail("the general code was called"))
    for more in ([], ["--labels-only"]):
        for n_threads in (1, 3):
            arguments = [models[name], "in.txt", *more]
            found = run("tag", *arguments, "--quiet", "--threads", str(n_threads)).stdout_bytes
            with monkeypatch.context() as patch:
                patch.setattr(tag_command, "tag", general_code)
                assert found == general(monkeypatch, *arguments)
            assert found
    by_stream = run("tag", models[name], "-", "--quiet", text=FILES[form]).stdout_bytes
    run("tag", models[name], "in.txt", "--quiet", "--output", "out.txt")
    assert Path("out.txt").read_bytes() == by_stream


@pytest.mark.parametrize(
    "broken",
    [
        b"",
        b"\n \n",
        b"# c\n# d\n",
        b"Rome N LA extra\n",
        b"Rome\n",
        FILES["plain"] + b"\n\nRome N LA LB\n\nRome N LA\n",
        FILES["plain"] + b"\n\n# one more\nRome N\xff LA\n",
        FILES["plain"] + b"\n\nRome N LA\n# c d e f\n",
        b"1\tRome\t_\t_\t_\t_\t0\troot\t_\t_\n",
    ],
)
def test_the_errors_are_those_of_the_general_code(
    models: dict[str, str], in_folder: Path, monkeypatch: pytest.MonkeyPatch, broken: bytes
) -> None:
    Path("in.txt").write_bytes(broken)
    found = run("tag", models["preset"], "in.txt", "--quiet", status=2).stderr
    by_stream = run("tag", models["preset"], "-", "--quiet", text=broken, status=2).stderr
    monkeypatch.setattr(tag_command, "find_column_tagger", lambda *_: None)
    assert found == run("tag", models["preset"], "in.txt", "--quiet", status=2).stderr
    assert by_stream == run("tag", models["preset"], "-", "--quiet", text=broken, status=2).stderr
    assert "crfkit: in.txt" in found


def test_what_came_before_an_error_is_written(models: dict[str, str], in_folder: Path) -> None:
    Path("in.txt").write_bytes(FILES["plain"] + b"\n\nRome N LA LB\n")
    found = run("tag", models["preset"], "in.txt", "--quiet", status=2).stdout_bytes
    Path("in.txt").write_bytes(FILES["plain"])
    whole = run("tag", models["preset"], "in.txt", "--quiet").stdout_bytes
    assert whole.startswith(found)
    assert len(found) > len(whole) // 2


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("segments", []),
        ("preset", ["--marginals"]),
        ("preset", ["--nbest", "2"]),
        ("preset", ["--probability"]),
        ("preset", ["--format", "crf++"]),
        ("preset", ["--posterior"]),
        ("preset", ["--decode", "marginal"]),
        ("preset", ["--decode", "f1"]),
        ("preset", ["--spans"]),
    ],
)
def test_other_models_and_options_take_the_general_code(
    models: dict[str, str], in_folder: Path, monkeypatch: pytest.MonkeyPatch, name: str, options: list[str]
) -> None:
    Path("in.txt").write_bytes(FILES["plain"])
    monkeypatch.setattr(column_tagging.ColumnTagging, "run", lambda _: pytest.fail("the core was called"))
    assert run("tag", models[name], "in.txt", "--quiet", *options).stdout_bytes


def test_columns_that_the_model_does_not_expect(models: dict[str, str], in_folder: Path) -> None:
    Path("in.txt").write_bytes(b"Rome N V LA\n")
    assert complaint("tag", models["preset"], "in.txt", "--quiet") == (
        "crfkit: in.txt:1: found 4 columns, the model expects 2 columns, or 3 with a label (separated by blanks, as in "
        "training, or as --separator says)"
    )


@pytest.mark.skipif(os.name == "nt", reason="pipes are those of POSIX")
def test_a_pipe_gets_its_answers_while_it_is_open(models: dict[str, str]) -> None:
    command = [sys.executable, "-m", "crfkit", "tag", models["preset"], "-", "--quiet", "--labels-only"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for _ in range(3):
            process.stdin.write(b"Rome N\nwas V\n\nthe")
            process.stdin.flush()
            assert [process.stdout.readline()[:1] for _ in range(3)] == [b"L", b"L", b"\n"]
            process.stdin.write(b" N\n\n")
            process.stdin.flush()
            assert [process.stdout.readline()[:1] for _ in range(2)] == [b"L", b"\n"]
        process.stdin.close()
        assert process.stdout.read() == b""
        assert process.wait(60) == 0


def test_bytes_that_have_arrived() -> None:
    read, write = os.pipe()
    with os.fdopen(read, "rb") as stream:
        source = ArrivingLines(stream, "pipe")
        assert not source.has_arrived()
        os.write(write, b"a\n")
        assert source.has_arrived()
        pieces = source.pieces()
        assert next(pieces) == b"a\n"
        assert not source.has_arrived()
        os.close(write)
        assert source.has_arrived()
        assert list(pieces) == []
    assert not ArrivingLines(io.BytesIO(b"a"), "bytes").has_arrived()
