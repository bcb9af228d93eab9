"""`crfkit report`: pages from the command line, and its error messages."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

pytest.importorskip("jinja2")
pytest.importorskip("matplotlib")

from crfkit import Lemmatizer
from crfkit.data import write_conllu
from tests.cli.commands import complaint, run
from tests.pipeline.small_treebank import make_treebank
from tests.report.pages import Element, check_page, rows_of


def page(path: str) -> Element:
    return check_page(Path(path).read_text(encoding="utf-8"))


@pytest.fixture
def chunks(column_files: None) -> str:
    run("train", "chunks.txt", "--model", "c.crf", "--quiet")
    return "c.crf"


def write_treebank(path: str, n: int, seed: int) -> None:
    with open(path, "w", encoding="utf-8") as stream:
        write_conllu(make_treebank(n, seed), stream)


def test_a_report(chunks: str) -> None:
    result = run("report", chunks, "chunks.txt", "-o", "r.html")
    assert result.stderr.splitlines()[-1].startswith("r.html: ")
    found = page("r.html")
    assert found.all("h1")[0].text == "c.crf on chunks.txt"
    assert "F1 of spans 100.00" in found.all("dl")[0].text
    run("report", chunks, "chunks.txt", "--quiet")
    assert Path("report.html").read_bytes() == Path("r.html").read_bytes()


def test_all_options(chunks: str) -> None:
    run("train", "chunks.txt", "--model", "d.crf", "--features", "chunks", "--max-iterations", "1", "--quiet")
    arguments = "--against d.crf --train chunks.txt --learning-curve chunks.txt --errors 5 --explanations 2 --samples 50"
    run(
        "report",
        chunks,
        "chunks.txt",
        *arguments.split(),
        "--seed",
        "3",
        "--title",
        "A title",
        "--threads",
        "1",
    )
    found = page("report.html")
    assert found.all("h1")[0].text == "A title"
    assert "words of the training set" in found.find("words").text
    assert "50 samples of sentences, seed 3" in found.find("comparison").text
    assert found.find("curve").all("table")


def test_plain_labels_and_standard_input(model: str) -> None:
    run("report", model, "-", text=Path("train.txt").read_text())
    assert "accuracy of labels 100.00" in page("report.html").all("dl")[0].text


def test_models_of_attributes(column_files: None) -> None:
    Path("a.txt").write_text("X\tw=a\tbias\nY\tw=b\tbias\n\nX\tw=a\tbias\n")
    run("train", "a.txt", "--attributes", "--model", "a.crf", "--quiet")
    run("report", "a.crf", "a.txt")
    assert "accuracy of labels 100.00" in page("report.html").text


def test_parsers_and_taggers(column_files: None) -> None:
    write_treebank("train.conllu", 4, 0)
    write_treebank("test.conllu", 8, 1)
    run(
        "train-parser", "train.conllu", "--model", "p.crf", "--order", "1", "--max-iterations", "2", "--quiet"
    )
    run(
        "train-parser", "train.conllu", "--model", "q.crf", "--order", "1", "--max-iterations", "1", "--quiet"
    )
    run("report", "p.crf", "test.conllu", "--against", "q.crf", "--samples", "20", "--train", "train.conllu")
    found = page("report.html")
    assert rows_of(found.find("comparison").all("table")[0])[0][1:3] == ["p.crf", "q.crf"]
    run("train-tagger", "train.conllu", "--model", "t.crf", "--quiet")
    run("report", "t.crf", "test.conllu", "-o", "t.html")
    assert "The labels are UPOS." in page("t.html").text
    Path("empty.conllu").write_text("\n")
    assert complaint("report", "t.crf", "empty.conllu").startswith("crfkit: empty.conllu: ")
    assert complaint("report", "p.crf", "test.conllu", "--against", "t.crf").startswith(
        "crfkit: --against t.crf: a tagger of treebanks"
    )
    assert "--separator is about files of columns" in complaint(
        "report", "p.crf", "test.conllu", "--separator", ";"
    )
    assert "--columns is about files of columns" in complaint(
        "report", "t.crf", "test.conllu", "--columns", "1"
    )


def test_errors_are_one_sentence(chunks: str) -> None:
    Path("empty.txt").write_text("\n\n")
    Path("unlabelled.txt").write_text("the\tD\n")
    Path("wide.txt").write_text("the\tD\tX\tB-NP\n")
    Path("unknown.txt").write_text("the\tD\tB-XY\n")
    assert complaint("report", chunks, "empty.txt") == (
        "crfkit: empty.txt: the file has only blank lines, expected rows of columns"
    )
    assert "found 2 columns, the model expects 3 columns, with a label" in complaint(
        "report", chunks, "unlabelled.txt"
    )
    assert "found 4 columns, the model expects 3" in complaint("report", chunks, "wide.txt")
    assert "unknown.txt:1: the model does not know the label 'B-XY'" in complaint(
        "report", chunks, "unknown.txt"
    )
    assert "no.txt" in complaint("report", chunks, "no.txt")
    assert "no.crf" in complaint("report", "no.crf", "chunks.txt")
    assert "would replace" in complaint("report", chunks, "chunks.txt", "-o", "chunks.txt")
    assert "no/r.html" in complaint("report", chunks, "chunks.txt", "-o", "no/r.html")
    run("report", chunks, "unknown.txt", "--allow-unknown")


def test_a_model_without_a_report(column_files: None) -> None:
    Lemmatizer().fit(make_treebank(5)).save("l.crf")
    assert complaint("report", "l.crf", "chunks.txt") == (
        "crfkit: l.crf: there is no report for such a model: a lemmatizer, to be used from Python, or as a component of a "
        "pipeline"
    )


def test_missing_packages_are_named(chunks: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert complaint("report", chunks, "chunks.txt") == (
        "crfkit: a report needs matplotlib, which is not installed: pip install jinja2 matplotlib "
        "(the extra `report` of crfkit)"
    )
