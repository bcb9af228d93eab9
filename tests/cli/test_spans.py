"""`crfkit tag --spans` and `crfkit eval --spans`."""

import json
from pathlib import Path

import pytest

import crfkit
from crfkit.data import read_columns
from tests.cli.commands import columns, complaint, run

pytestmark = pytest.mark.usefixtures("column_files")

TEXT = "the\tD\ndog\tN\nsees\tV\n\na\tD\ncat\tN\n"


@pytest.fixture
def chunker() -> str:
    """A model of chunks.txt."""
    run("train", "chunks.txt", "--model", "c.crf", "--quiet")
    return "c.crf"


def test_spans_line_by_line(chunker: str) -> None:
    lines = [line.split("\t") for line in run("tag", chunker, "-", "--spans", text=TEXT).stdout.splitlines()]
    assert [line[:4] + line[5:] for line in lines] == [
        ["1", "0", "2", "NP", "the dog"],
        ["1", "2", "3", "VP", "sees"],
        ["2", "0", "2", "NP", "a cat"],
    ]
    crf = crfkit.load(chunker)
    [exact, _] = crf.predict_spans([[("the", "D"), ("dog", "N"), ("sees", "V")], [("a", "D"), ("cat", "N")]])
    assert [line[4] for line in lines[:2]] == [f"{span.probability:.6f}" for span in exact]


def test_a_threshold_and_decodings(chunker: str) -> None:
    many = run("tag", chunker, "-", "--spans", "--threshold", "0.001", text=TEXT).stdout.splitlines()
    assert len(many) > 3
    assert run("tag", chunker, "-", "--spans", "--threshold", "1", text=TEXT).stdout == ""
    for decode in ("viterbi", "spans", "f1"):
        found = run("tag", chunker, "-", "--spans", "--decode", decode, text=TEXT).stdout
        assert [line.split("\t")[5] for line in found.splitlines()] == ["the dog", "sees", "a cat"]


def test_json_with_offsets_in_characters(chunker: str) -> None:
    text = "# text = The (dog) sees\n" + TEXT.replace("the", "The", 1)
    lines = run("tag", chunker, "-", "--spans", "--json", text=text).stdout.splitlines()
    first, second = (json.loads(line) for line in lines)
    assert first["sequence"] == 1
    span = first["spans"][0]
    assert (span["start"], span["end"], span["label"], span["text"]) == (0, 2, "NP", "The (dog")
    assert (span["begin_character"], span["end_character"]) == (0, 8)
    assert 0.5 < span["probability"] <= 1
    assert second["spans"][0].keys() == {"start", "end", "label", "probability", "text"}
    other = run("tag", chunker, "-", "--spans", "--json", text=text.replace("(dog)", "cat")).stdout
    assert "begin_character" not in other


def test_the_output_file_and_allowed_labels(chunker: str) -> None:
    Path("in.txt").write_text("the\tD\t*\ndog\tN\tB-VP\n")
    run("tag", chunker, "in.txt", "--spans", "--allowed-column", "2", "--output", "out.txt")
    found = [line.split("\t") for line in Path("out.txt").read_text().splitlines()]
    assert ["1", "1", "2", "VP", "1.000000", "dog"] in found


def test_options_that_do_not_go_together(chunker: str) -> None:
    for threshold in ("0.3", "0"):
        assert "--threshold" in complaint("tag", chunker, "-", "--threshold", threshold, text=TEXT)
    assert "--json" in complaint("tag", chunker, "-", "--json", text=TEXT)
    assert "--nbest" in complaint("tag", chunker, "-", "--spans", "--nbest", "2", text=TEXT)
    assert "--format" in complaint("tag", chunker, "-", "--spans", "--format", "columns", text=TEXT)
    assert "threshold is 2.0" in complaint("tag", chunker, "-", "--spans", "--threshold", "2", text=TEXT)


def test_evaluation_of_probabilities(chunker: str) -> None:
    report = run("eval", chunker, "chunks.txt", "--spans", "--confusion", "0").stdout
    assert "area under precision and recall: 100.00%" in report
    assert "expected calibration error:" in report
    assert "area" not in run("eval", chunker, "chunks.txt").stdout


@pytest.fixture
def unsure() -> str:
    """A model of few data, whose decodings differ, and a file unsure.txt."""
    y = ["a B-P b I-P c O", "b O a B-P", "c B-Q c I-Q", "a O b B-P b B-P"] * 3
    new = ["c O a B-P b I-P a O", "b B-Q a O b O", "a O a B-P c O", "c O b B-Q b B-P a O"] * 3
    Path("names.txt").write_text(columns(y, 2))
    Path("unsure.txt").write_text(columns(new, 2))
    run("train", "names.txt", "--model", "unsure.crf", "--template", "template.txt", "--quiet")
    return "unsure.crf"


@pytest.mark.parametrize("decode", ["viterbi", "marginal", "spans", "f1"])
def test_labels_of_a_decoding(unsure: str, decode: str) -> None:
    crf, rows = crfkit.load(unsure), list(read_columns("unsure.txt"))
    X = [[row[:1] for row in sequence.rows] for sequence in rows]
    expected = crf.predict(X, decode=decode)
    found = run("tag", unsure, "unsure.txt", "--labels-only", "--decode", decode).stdout
    assert [block.split() for block in found.strip().split("\n\n")] == expected
    if decode != "viterbi":
        assert expected != crf.predict(X)
    report = run("eval", unsure, "unsure.txt", "--decode", decode, "--confusion", "0").stdout
    f1 = 100 * crf.score(X, [[row[1] for row in sequence.rows] for sequence in rows], decode=decode)
    assert f"FB1: {f1:6.2f}" in report


@pytest.mark.parametrize("decode", ["viterbi", "spans", "auto"])
def test_a_model_that_was_trained_with_a_decoding(unsure: str, decode: str) -> None:
    """`tag` and `eval` choose labels as the model says, unless an option says otherwise."""
    given = ("--template", "template.txt", "--decode", decode, "--quiet")
    run("train", "names.txt", "--model", "own.crf", *given)
    named = "viterbi" if decode == "viterbi" else "spans"
    assert crfkit.load("own.crf").decode_ == named
    for command in (("tag",), ("eval", "--confusion", "0")):
        name, *options = command
        own = run(name, "own.crf", "unsure.txt", *options).stdout
        assert own == run(name, unsure, "unsure.txt", *options, "--decode", named).stdout
        other = run(name, "own.crf", "unsure.txt", *options, "--decode", "viterbi").stdout
        assert (own == other) is (decode == "viterbi")


def test_what_does_not_go_with_a_decoding(unsure: str) -> None:
    for option in (["--nbest", "2"], ["--probability"], ["--scores"], ["--posterior"]):
        given = ("tag", unsure, "unsure.txt", "--decode", "marginal", *option)
        assert f"{option[0]} does not go with --decode" in complaint(*given)
    given = ("tag", unsure, "unsure.txt", "--spans", "--decode", "marginal")
    assert "expected viterbi, spans or f1 with --spans" in complaint(*given)


def test_plain_labels_are_runs(model: str) -> None:
    found = run("tag", model, "-", "--spans", text="the\ndog\nsees\n").stdout
    assert [line.split("\t")[3] for line in found.splitlines()] == ["D", "N", "V"]
    assert "expected calibration error" in run("eval", model, "train.txt", "--spans").stdout
