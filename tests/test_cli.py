"""The command line: each command's function, the commands themselves, and what they say of bad input."""

from __future__ import annotations

import contextlib
import json
import os
import pickle
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from benchmarks.corpora import find_corpus

import crfkit
from crfkit.cli.demo import demo, read_sample
from crfkit.cli.inspect import describe
from crfkit.cli.progress import SecondsLeft
from crfkit.data import read_conllu
from crfkit.models import Progress
from tests.commands import columns, complaint, interrupted_training, listens_to_ctrl_c, run

SENTENCES = [
    "the D dog N runs V",
    "a D cat N sees V the D dog N",
    "the D house N",
    "a D dog N eats V a D cat N",
] * 8
CHUNKS = ["the D B-NP dog N I-NP runs V B-VP", "a D B-NP cat N I-NP sees V B-VP the D B-NP dog N I-NP"] * 8
TEMPLATE = "U00:%x[0,0]\nU01:%x[-1,0]\nB\n"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder to be in, with some files."""
    monkeypatch.chdir(tmp_path)
    Path("train.txt").write_text(columns(SENTENCES, 2))
    Path("chunks.txt").write_text(columns(CHUNKS, 3, "\t"))
    Path("template.txt").write_text(TEMPLATE)
    return tmp_path


@pytest.fixture
def model() -> str:
    run("train", "train.txt", "--model", "m.crf", "--quiet")
    return "m.crf"


# ---- train, tag, eval


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
    run("tag", model, "train.txt", "--output", "train.txt")  # the input itself
    assert Path("train.txt").read_text().startswith("the D D\ndog N N\n")


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
    assert (crf.l1, crf.l2, crf.features.text.strip()) == (0.1, 0.5, TEMPLATE.strip())  # type: ignore[union-attr]
    run(
        *(
            "train",
            "chunks.txt",
            "--model",
            "c.crf",
            "--features",
            "chunks",
            "--block-l2",
            "arcs=0.2",
            "--all-pairs",
        ),
        *("--min-count", "2", "--max-iterations", "7", "--tolerance", "1e-3", "--threads", "1", "--quiet"),
    )
    crf = crfkit.load("c.crf")
    assert (crf.features, crf.l2, crf.all_pairs, crf.min_count) == (
        "chunks",
        {"default": 1.0, "arcs": 0.2},
        True,
        2,
    )
    assert crf.optimizer == crfkit.LBFGS(max_iterations=7, tolerance=1e-3)
    assert (crf.structure, crf.all_arcs) == (crfkit.Chain(), True)
    run("train", "train.txt", "--model", "e.crf", "--seen-arcs", "--no-start", "--no-end", "--quiet")
    crf = crfkit.load("e.crf")
    assert (crf.structure, crf.all_arcs) == (crfkit.Chain(start=False, end=False), False)
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
    assert run("train", "train.txt", "--model", "m.crf", status=130).stderr == "crfkit: interrupted\n"
    assert not Path("m.crf").exists()


def test_the_dev_set_ends_the_training_early() -> None:
    result = run(
        "train", "train.txt", "--model", "m.crf", "--dev", "train.txt", "--patience", "2", "--tolerance", "0"
    )
    assert "no better dev score in 2 iterations; the model of iteration" in result.stderr
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


def test_eval_reports_accuracy_spans_and_confusions(model: str) -> None:
    Path("test.txt").write_text("the D\ndog V\n")
    report = run("eval", model, "test.txt").stdout
    assert "tokens: 2; accuracy:  50.00%" in report
    assert "V → N" in report
    assert "confusion table" in report
    assert "confusion table" not in run("eval", model, "test.txt", "--confusion", "0").stdout
    run("train", "chunks.txt", "--model", "c.crf", "--features", "chunks", "--quiet")
    report = run("eval", "c.crf", "chunks.txt").stdout
    assert "processed 64 tokens with 40 phrases; found: 40 phrases; correct: 40." in report
    assert "NP: precision: 100.00%; recall: 100.00%; FB1: 100.00" in report


def test_inspect(model: str) -> None:
    shown = run("inspect", model, "--top", "3").stdout
    for words in (
        "labels (3): D N V",
        "weights: ",
        "heaviest features",
        "heaviest arcs",
        "(start) → D",
    ):
        assert words in shown
    described: dict[str, Any] = json.loads(run("inspect", model, "--json", "--top", "2").stdout)
    assert described["labels"] == ["D", "N", "V"]
    assert [len(features) for features in described["heaviest features"].values()] == [2, 2, 2]
    assert len(described["arcs"]) == 15
    assert described == describe(crfkit.load(model), 2)


def test_inspect_shows_features_on_arcs(model: str) -> None:
    assert "features on arcs" not in run("inspect", model).stdout
    Path("arcs.txt").write_text("U00:%x[0,0]\nB01:%x[0,0]\n")
    run("train", "train.txt", "--model", "a.crf", "--template", "arcs.txt", "--quiet")
    assert re.search(
        r"heaviest features on arcs\n +\+1\.\d+  D → N  B01:dog\n", run("inspect", "a.crf").stdout
    )
    described = json.loads(run("inspect", "a.crf", "--json", "--top", "2").stdout)
    assert len(described["heaviest arc features"]) == 2


def test_help_and_version() -> None:
    listed = run("--help").stdout
    for name in ("train", "tag", "eval", "inspect", "convert", "demo"):
        assert name in listed
        assert "Usage" in run(name, "--help").stdout
    assert run("--version").stdout == f"crfkit {crfkit.__version__}\n"
    assert "No such command" in run("nosuch", status=2).stderr
    done = subprocess.run(
        [sys.executable, "-m", "crfkit", "--version"], capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith("crfkit ")


def test_the_demonstration_reaches_its_accuracy() -> None:
    said: list[str] = []
    assert demo(said.append, max_iterations=15) > 0.85
    text = "\n".join(said)
    assert "Accuracy on the 500 test sentences" in text
    assert "lake       NOUN" in text
    assert "CC BY-SA 4.0" in text


def test_the_sample_is_what_its_description_says() -> None:
    train, test = read_sample("train"), read_sample("test")
    assert (len(train), sum(len(example.inputs) for example in train)) == (2000, 32247)
    assert (len(test), sum(len(example.inputs) for example in test)) == (500, 5810)
    assert len({label for example in train for label in example.labels or []}) == 17


def test_the_sample_is_taken_from_the_treebank() -> None:
    source = find_corpus("ud_english_ewt", "en_ewt-ud-test.conllu")
    if source is None:
        pytest.skip("the corpus ud_english_ewt is not on this machine")
    sentences = [[(word.form, word.upos) for word in sentence.words] for sentence in read_conllu(source)]
    sample = [list(example.rows) for example in read_sample("test")]
    assert sample == sentences[:: len(sentences) // 500][:500]


# ---- bad input: exit status 2, one sentence with the place, nothing written


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("ragged.txt", b"the D\ndog\n", "ragged.txt:2: found 1 column, expected 2"),
        ("empty.txt", b"", "empty.txt: the file is empty"),
        ("blank.txt", b"\n\n", "blank.txt: the file has only blank lines"),
        (
            "unlabelled.txt",
            b"the\ndog\n",
            "unlabelled.txt:1: found one column, expected input columns and a label column",
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
        (["--block-l2", "arcs"], "--block-l2 arcs: expected name=number"),
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
    arguments = [sys.executable, "-m", "crfkit", command, model, *(["train.txt"] if command == "tag" else [])]
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(arguments, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr == "crfkit: standard output: cannot be written (No space left on device)\n"


def test_an_unwritable_output_of_tag(model: str) -> None:
    assert "cannot be written" in complaint("tag", model, "train.txt", "--output", "nosuch/out.txt")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (b"the a b\n", "1: found 3 columns, the model expects 1 column, or 2 with a label"),
        (b"the D\ndog\n", "2: found 1 column, expected 2"),
        (b"", ": the file is empty"),
        (b"\xff\n", "1: expected UTF-8"),
    ],
)
def test_bad_files_to_tag(model: str, text: bytes, words: str) -> None:
    assert words in complaint("tag", model, "-", text=text)


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
    crfkit.CRF().fit([[["a"]]], [["x"]]).save("p.crf")
    assert "expected a label and attributes with tabs" in complaint("tag", "p.crf", "train.txt")
    crfkit.CRF().fit([np.ones((1, 2))], [["x"]]).save("v.crf")
    assert "trained on features made in Python" in complaint("tag", "v.crf", "train.txt")
    assert "labels (1): x" in run("inspect", "p.crf").stdout


# ---- real processes


def test_tagging_imports_neither_scikit_learn_nor_scipy(model: str) -> None:
    program = f"""
import sys
from crfkit.cli import main
try:
    main(["tag", "{model}", "-"])
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
def test_ctrl_c_saves_the_best_model_and_exits_with_130() -> None:
    sentences = [f"{' '.join(f'w{i * j % 97} L{i * j % 7}' for j in range(2, 22))}" for i in range(1, 150)]
    Path("big.txt").write_text(columns(sentences, 2))
    limits = ["--max-iterations", "100000", "--tolerance", "0", "--l2", "1e-9"]
    rest = interrupted_training("train", "big.txt", "--model", "m.crf", *limits)
    assert "crfkit: interrupted; the best model so far is in m.crf" in rest
    assert "Traceback" not in rest
    crf = crfkit.load("m.crf")
    assert crf.stop_reason_ == "interrupted"
    assert crf.n_iter_ >= 3
    assert sorted(path.name for path in Path().iterdir() if path.name.startswith(".")) == []


@pytest.mark.skipif(os.name == "nt", reason="signals are sent as on POSIX")
def test_ctrl_c_while_waiting_for_input_leaves_nothing(model: str) -> None:
    command = [sys.executable, "-m", "crfkit", "tag", model, "-", "--output", "out.txt"]
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


def test_a_reader_that_goes_away_is_no_error(model: str) -> None:
    Path("long.txt").write_text("the\ndog\n\n" * 50_000)
    pipe = f"{sys.executable} -m crfkit tag {model} long.txt | head -n 1"
    done = subprocess.run(pipe, shell=True, capture_output=True, text=True, check=False)
    assert done.stdout == "the D\n"
    assert done.stderr == ""
