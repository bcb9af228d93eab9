"""Bad input of a command: exit status 2, one sentence with the place, nothing written."""

from __future__ import annotations

import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import crfkit
from tests.cli.commands import SENTENCES, columns, complaint, run

pytestmark = pytest.mark.usefixtures("column_files")


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("ragged.txt", b"the D\ndog\n", "ragged.txt:2: found 1 column, expected 2"),
        ("empty.txt", b"", "empty.txt: the file is empty"),
        ("blank.txt", b"\n\n", "blank.txt: the file has only blank lines"),
        (
            "unlabelled.txt",
            b"the\ndog\n",
            "unlabelled.txt:1: found one column, expected one word a line, with input columns and a label column",
        ),
        ("half.txt", b"the\tD\ndog\t\n", "half.txt:2: the label is empty, expected one for every word"),
        ("latin.txt", b"the D\nd\xf6g N\n", "latin.txt:2: expected UTF-8, found byte 0xf6"),
        ("absent.txt", None, "absent.txt: cannot be read: No such file"),
    ],
)
def test_bad_training_files(name: str, content: bytes | None, words: str) -> None:
    if content is not None:
        Path(name).write_bytes(content)
    Path("tabs.txt").write_text(columns(SENTENCES, 2, "\t"))
    assert words in complaint("train", name, "--model", "m.crf")
    like = "tabs.txt" if b"\t" in (content or b"") else "train.txt"
    assert words in complaint("train", like, "--dev", name, "--model", "m.crf")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--label-column", "5"], "train.txt:1: there is no label column 5, found 2 columns"),
        (["--template", "bad.txt"], "bad.txt:2: "),
        (["--template", "wide.txt"], "wide.txt:1: the template reads column 3"),
        (["--template", "nosuch.txt"], "nosuch.txt: cannot be read"),
        (["--template", "template.txt", "--features", "pos"], "both --template and --features"),
        (["--features", "nosuch"], "no feature preset 'nosuch'"),
        (["--l2", "-1"], "l2 is -1.0, expected a finite number"),
        (["--l1", "nan"], "l1 is nan, expected a finite number"),
        (["--block-l2", "transitions"], "--block-l2 transitions: expected name=number"),
        (["--block-l2", "nosuch=1"], "'nosuch'"),
        (["--min-count", "0"], "min_count is 0"),
        (["--max-iterations", "-1"], "max_iterations=-1"),
        (["--tolerance", "-1"], "tolerance=-1"),
        (["--separator", ""], "separator and comment must not be empty"),
        (["--dev", "chunks.txt"], "chunks.txt:1: found 3 columns, expected 2 as in the training file"),
    ],
)
def test_bad_options_of_training(options: list[str], words: str) -> None:
    Path("bad.txt").write_text("U00:%x[0,0]\nU01:%x[0\n")
    Path("wide.txt").write_text("U00:%x[0,3]\n")
    assert words in complaint("train", "train.txt", "--model", "m.crf", *options)


@pytest.mark.parametrize("path", ["nosuch/m.crf", "train.txt/m.crf", ".", "x" * 300])
def test_an_unwritable_model_is_refused_before_the_training_file_is_read(path: str) -> None:
    Path("bad.txt").write_text("ragged\nragged ragged\n")
    assert "cannot be written" in complaint("train", "bad.txt", "--model", path)


@pytest.mark.parametrize("path", ["train.txt", "./template.txt"])
def test_the_model_never_replaces_what_it_is_made_of(path: str) -> None:
    before = Path(path).read_bytes()
    said = complaint("train", "train.txt", "--template", "template.txt", "--model", path)
    assert "the model would replace the file it is made of" in said
    assert Path(path).read_bytes() == before


@pytest.mark.skipif(
    not Path("/dev/full").exists(), reason="there is no /dev/full, the device that is always full"
)
@pytest.mark.parametrize("command", ["tag", "inspect"])
def test_a_full_standard_output_is_said_in_a_sentence(command: str, model: str) -> None:
    arguments = [
        sys.executable,
        "-m",
        "crfkit",
        command,
        model,
        *(["train.txt", "--quiet"] if command == "tag" else []),
    ]
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(arguments, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr == "crfkit: standard output: cannot be written (No space left on device)\n"


def test_an_unwritable_output_of_tag(model: str) -> None:
    assert "cannot be written" in complaint("tag", model, "train.txt", "--output", "nosuch/out.txt")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            b"the a b\n",
            "1: found 3 columns, the model expects 1 column, or 2 with a label",
        ),
        (b"the D\ndog\n", "2: found 1 column, expected 2"),
        (b"", ": the file is empty"),
        (b"\xff\n", "1: expected UTF-8"),
    ],
)
def test_bad_files_to_tag(model: str, text: bytes, words: str) -> None:
    assert words in complaint("tag", model, "-", text=text)


def test_texts_and_other_separators_get_advice(model: str) -> None:
    advice = complaint("tag", "m.crf", "-", text="the dog sleeps\n")
    assert advice.endswith("; a file has one word a line")
    assert "one word a line" not in complaint("eval", "m.crf", "-", text="the\n")
    Path("table.csv").write_text("the,D\ndog,N\n")
    advice = complaint("train", "table.csv", "--model", "n.crf")
    assert advice.endswith("a label column between tabs or blanks (--separator names another separator)")
    run("train", "table.csv", "--model", "n.crf", "--separator", ",")


def test_bad_files_to_evaluate(model: str) -> None:
    Path("unknown.txt").write_text("the D\n\ndog N\nruns XYZ\n")
    said = complaint("eval", model, "unknown.txt")
    assert said.startswith("crfkit: unknown.txt:4: the model does not know the label 'XYZ' (--allow-unknown")
    assert "XYZ → V" in run("eval", model, "unknown.txt", "--allow-unknown").stdout
    Path("unlabelled.txt").write_text("the\n")
    assert "unlabelled.txt:1: found 1 column, the model expects 2 columns, with a label" in complaint(
        "eval", model, "unlabelled.txt"
    )


def test_counts_of_what_is_shown_are_not_negative(model: str) -> None:
    run("eval", model, "train.txt", "--confusion", "-1", status=2)
    run("inspect", model, "--top", "-1", status=2)


@pytest.mark.parametrize("command", ["tag", "eval", "inspect"])
def test_bad_model_files(command: str, model: str) -> None:
    good = Path(model).read_bytes()
    Path("empty.crf").write_bytes(b"")
    Path("cut.crf").write_bytes(good[: len(good) // 2])
    Path("pickle.crf").write_bytes(pickle.dumps([1]))
    Path("newer.crf").write_bytes(good.replace(b'"crfkit.version": "1"', b'"crfkit.version": "7"'))
    files = [] if command == "inspect" else ["train.txt"]
    for path, words in {
        "empty.crf": "the file is empty",
        "cut.crf": "truncated",
        "pickle.crf": "looks like a pickle",
        "newer.crf": "written by a newer crfkit",
        "nosuch.crf": "cannot be read",
        ".": "not a file",
    }.items():
        said = complaint(command, path, *files)
        assert said.startswith(f"crfkit: {path}: ")
        assert words in said


def test_a_model_trained_on_features_from_python_reads_no_columns() -> None:
    crfkit.CRF().fit([[["a"], ["b"]]], [["x", "y"]]).save("p.crf")
    assert "expected a label and attributes with tabs" in complaint("tag", "p.crf", "train.txt")
    crfkit.CRF().fit([np.ones((2, 2))], [["x", "y"]]).save("v.crf")
    assert "trained on features made in Python" in complaint("tag", "v.crf", "train.txt")
    assert "labels (2): x y" in run("inspect", "p.crf").stdout
