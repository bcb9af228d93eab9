"""`crfkit tag --spans` and `crfkit eval --spans`."""

import json
from pathlib import Path

import pytest

import crfkit
from tests.cli.commands import complaint, run

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
    for decode in ("viterbi", "f1"):
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
    assert "--threshold" in complaint("tag", chunker, "-", "--threshold", "0.3", text=TEXT)
    assert "--json" in complaint("tag", chunker, "-", "--json", text=TEXT)
    assert "--nbest" in complaint("tag", chunker, "-", "--spans", "--nbest", "2", text=TEXT)
    assert "--format" in complaint("tag", chunker, "-", "--spans", "--format", "columns", text=TEXT)
    assert "threshold is 2.0" in complaint("tag", chunker, "-", "--spans", "--threshold", "2", text=TEXT)


def test_evaluation_of_probabilities(chunker: str) -> None:
    report = run("eval", chunker, "chunks.txt", "--spans", "--confusion", "0").stdout
    assert "area under precision and recall: 100.00%" in report
    assert "expected calibration error:" in report
    assert "area" not in run("eval", chunker, "chunks.txt").stdout


def test_evaluation_of_a_decoding(chunker: str) -> None:
    labels = run("eval", chunker, "chunks.txt", "--confusion", "0").stdout
    for decode, title in (
        ("viterbi", "spans of the best labels:"),
        ("f1", "spans with the highest expected F1:"),
    ):
        report = run("eval", chunker, "chunks.txt", "--spans", "--decode", decode, "--confusion", "0").stdout
        assert report.startswith(labels)
        _, found = report.split(f"{title}\n")
        assert found.splitlines()[0] == "processed 40 phrases; found: 40 phrases; correct: 40."
        assert found.splitlines()[1] == "precision: 100.00%; recall: 100.00%; FB1: 100.00"
    assert "--decode is about spans" in complaint("eval", chunker, "chunks.txt", "--decode", "f1")


def test_plain_labels_are_runs(model: str) -> None:
    found = run("tag", model, "-", "--spans", text="the\ndog\nsees\n").stdout
    assert [line.split("\t")[3] for line in found.splitlines()] == ["D", "N", "V"]
    assert "expected calibration error" in run("eval", model, "train.txt", "--spans").stdout
