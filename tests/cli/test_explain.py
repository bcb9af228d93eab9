"""`crfkit explain`."""

import json
import math
from pathlib import Path

import pytest

import crfkit
from crfkit.data import write_conllu
from tests.cli.commands import complaint, run
from tests.oracles.treebanks import random_treebank

pytestmark = pytest.mark.usefixtures("column_files")

TEXT = "the\tD\ndog\tN\nsees\tV\n\na\tD\ncat\tN\n"


@pytest.fixture
def chunker() -> str:
    """A model of chunks.txt."""
    run("train", "chunks.txt", "--model", "c.crf", "--quiet")
    return "c.crf"


def test_one_position(chunker: str) -> None:
    found = run("explain", chunker, "-", "--sentence", "2", "--position", "1", text=TEXT).stdout
    exact = crfkit.load(chunker).explain([("a", "D"), ("cat", "N")], 1)
    assert found == f"sequence 2, cat\n{exact.to_text(12)}\n\n"


def test_uncertain_positions_as_json(chunker: str) -> None:
    lines = run("explain", chunker, "-", "--json", "--below", "1", text=TEXT).stdout.splitlines()
    found = [json.loads(line) for line in lines]
    assert [(line["sequence"], line["start"], line["word"]) for line in found] == [
        (1, 0, "the"),
        (1, 1, "dog"),
        (1, 2, "sees"),
        (2, 0, "a"),
        (2, 1, "cat"),
    ]
    for line in found:
        total = math.fsum(part["value"] for part in line["parts"])
        assert total == pytest.approx(line["log_odds"], abs=1e-9)
    assert run("explain", chunker, "-", "--json", "--below", "0", text=TEXT).stdout == ""


def test_labels_and_html(chunker: str) -> None:
    options = ("--position", "0", "--label", "B-VP", "--against", "I-NP")
    found = run("explain", chunker, "-", *options, text=TEXT).stdout
    assert found.count(": B-VP (") == found.count("not I-NP (") == 2
    run("explain", chunker, "-", "--html", "--below", "1", "--output", "e.html", text="<b>\tN\n")
    page = Path("e.html").read_text(encoding="utf-8")
    assert page.startswith("<!doctype html>")
    assert "&lt;b&gt;" in page
    assert "<b>" not in page


def test_allowed_labels(chunker: str) -> None:
    text = "the\tD\t*\ndog\tN\tB-VP\n"
    found = run("explain", chunker, "-", "--allowed-column", "2", "--position", "1", text=text).stdout
    assert "is not among the labels allowed here" in found


def test_parsers() -> None:
    sentences = random_treebank([3, 4], 1)
    parser = crfkit.Parser(order=1, optimizer=crfkit.AdaGrad(max_iterations=2)).fit(sentences)
    parser.save("p.crf")
    with Path("t.conllu").open("w", encoding="utf-8") as stream:
        write_conllu(sentences, stream)
    found = run("explain", "p.crf", "t.conllu", "--sentence", "1", "--position", "2").stdout
    assert (
        found
        == f"sequence 1, {sentences[0].words[1].form}\n{parser.explain_arc(sentences[0], 2).to_text(12)}\n\n"
    )
    found = run("explain", "p.crf", "t.conllu", "--sentence", "1", "--position", "2", "--label", "0").stdout
    assert "head of word 2: 0 (" in found
    lines = run("explain", "p.crf", "t.conllu", "--json", "--below", "1").stdout.splitlines()
    assert len(lines) == sum(len(sentence.words) for sentence in sentences)


def test_bad_input(chunker: str) -> None:
    Path("in.txt").write_text(TEXT)
    assert "--sentence 9: the file has 2 sequences" in complaint(
        "explain", chunker, "in.txt", "--sentence", "9"
    )
    assert "the positions 0 to 2" in complaint("explain", chunker, "in.txt", "--position", "7")
    assert "unknown label 'X'" in complaint("explain", chunker, "in.txt", "--label", "X")
