"""The benchmark of lexicons and clusters, on a few sentences."""

from __future__ import annotations

import pytest
from benchmarks.corpora import find_corpus

from benchmarks import knowledge, lexicons, name_features, parser_knowledge


@pytest.mark.skipif(find_corpus("conll2002", "esp.train") is None, reason="needs CoNLL-2002")
def test_quick_run(capsys: pytest.CaptureFixture[str]) -> None:
    knowledge.main(["--quick", "--languages", "spanish"])
    lines = capsys.readouterr().out.strip().splitlines()
    expected = ["preset names", "and Brown clusters of the training text", "and the words around"]
    expected.append("and the words around, second chain")
    assert [line.split("|")[2].strip() for line in lines[-4:]] == expected
    assert lines[-6].startswith("| language | variant | F1, ")


@pytest.mark.skipif(find_corpus("conll2002", "esp.train") is None, reason="needs CoNLL-2002")
def test_features_of_names(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("pycrfsuite")
    name_features.main(["--quick"])
    rows = [line.strip("| ").split(" | ") for line in capsys.readouterr().out.splitlines()[2:]]
    assert [row[0] for row in rows] == ["spanish"] * 3 + ["dutch"] * 3
    assert all(20 < float(row[2]) < 80 for row in rows)


def test_latin_names() -> None:
    assert [name for name in ("Łódź", "éa", "Москва", "", "42") if knowledge.is_latin(name)] == ["Łódź"]


def test_quick_run_of_lexicons(capsys: pytest.CaptureFixture[str]) -> None:
    lexicons.main(["--quick"])
    lines = capsys.readouterr().out.strip().splitlines()
    assert "same matches as by a set of the entries: True" in lines
    assert lines[-1].startswith("2,000 words, ")


@pytest.mark.skipif(find_corpus(parser_knowledge.FOLDER, parser_knowledge.TRAIN) is None, reason="needs EWT")
def test_parsers_with_vectors_are_measured(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("scipy")
    parser_knowledge.main(["--limit", "40", "--variants", "neither,vectors", "--size", "4"])
    rows = capsys.readouterr().out.splitlines()
    assert [row.split("|")[1].strip() for row in rows[2:]] == ["neither", "vectors"]
