"""Word segmenters and models of word lattices on the command line."""

from __future__ import annotations

from pathlib import Path

import pytest

import crfkit
from crfkit import CRF, Lattice, WordDictionary, WordLattice, WordSegmenter
from tests.cli.commands import complaint, run

LEXICON = [("the", "D,x"), ("cat", "N,x"), ("cats", "N,y"), ("sat", "V,x"), ("a,b", 'N,"q"')]


@pytest.fixture
def segmenter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A model in a folder of its own."""
    monkeypatch.chdir(tmp_path)
    model = WordSegmenter(WordDictionary.build(LEXICON, ["N,z"]), l2=0.1)
    model.fit([[("the", "D,x"), ("cat", "N,x"), ("sat", "V,x")], [("the", "D,x"), ("a,b", 'N,"q"')]])
    model.save("words.crf")
    return "words.crf"


def test_texts_line_by_line(segmenter: str) -> None:
    found = run("tag", segmenter, "-", text="thecatsat\n\nthe a,b")
    assert found.stdout == "the\tD,x\ncat\tN,x\nsat\tV,x\nEOS\nEOS\nthe\tD,x\na,b\tN,q\nEOS\n"
    Path("in.txt").write_text("thecatsat\n")
    run("tag", segmenter, "in.txt", "--output", "out.txt", "--threads", "1")
    assert Path("out.txt").read_text() == "the\tD,x\ncat\tN,x\nsat\tV,x\nEOS\n"


def test_several_analyses(segmenter: str) -> None:
    lines = run("tag", segmenter, "-", "--nbest", "2", text="thecat\n").stdout.splitlines()
    model = crfkit.load(segmenter)
    ((best, words), (second, _)) = model.predict_nbest(["thecat"], 2)[0]
    assert lines[: len(words) + 2] == [f"# 1 {best:.6f}", "the\tD,x", "cat\tN,x", "EOS"]
    assert f"# 2 {second:.6f}" in lines
    assert lines.count("EOS") == 2


def test_evaluation(segmenter: str) -> None:
    """Fields with commas or in columns, sentences that end in EOS or a blank line."""
    Path("gold.txt").write_text("the\tD,x\ncat\tN,y\nsat\tV,x\nEOS\nthe\tD\tx\ncats\tN\ty\n\n")
    report = run("eval", segmenter, "gold.txt").stdout
    assert report.splitlines() == [
        "sentences: 2; wholly correct:  50.00%",
        "words: 5; found: 5; correct: 5",
        "            words: precision: 100.00%; recall: 100.00%; F1: 100.00",
        "     with 1 field: precision: 100.00%; recall: 100.00%; F1: 100.00",
        "    with 2 fields: precision:  80.00%; recall:  80.00%; F1:  80.00",
    ]


def test_inspection(segmenter: str) -> None:
    assert "B1:D,x/N,x" in run("inspect", segmenter).stdout
    assert "--on is about" in complaint("inspect", segmenter, "--on", "words.crf")


def test_bad_files_and_options(segmenter: str) -> None:
    Path("gold.txt").write_text("the\tD\ncat\n")
    assert complaint("eval", segmenter, "gold.txt") == (
        "crfkit: gold.txt:2: 'cat', expected a form and its fields between tabs"
    )
    assert "--spans is about labels" in complaint("tag", segmenter, "-", "--spans", text="thecat")
    assert "--format is about labels" in complaint(
        "tag", segmenter, "-", "--format", "columns", text="thecat"
    )
    assert "--allow-unknown is about" in complaint("eval", segmenter, "gold.txt", "--allow-unknown")
    assert "UTF-8" in complaint("tag", segmenter, "-", text=b"\xff\n")


def test_lattices_are_in_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    CRF(Lattice()).fit([WordLattice(1, [(0, 1, "X", ["a"]), (0, 1, "Y", ["a"])])], [[1]]).save("m.crf")
    for command in ("tag", "eval"):
        expected = "crfkit: m.crf: the model reads word lattices, which no file holds; use it from Python"
        assert complaint(command, "m.crf", "-", text="a\n") == expected
    assert "X" in run("inspect", "m.crf").stdout
