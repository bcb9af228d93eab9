"""The benchmark of parsers, from end to end on a few sentences."""

from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path

import pytest
from benchmarks.corpora import corpus_path, find_corpus

from benchmarks import parsing, rival_udpipe
from crfkit.data import read_conllu

needs_latin = pytest.mark.skipif(
    find_corpus("ud_latin_perseus", "la_perseus-ud-train.conllu") is None,
    reason="the Latin treebank is not on this machine",
)


@needs_latin
def test_a_quick_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    parsing.main(["--quick", "--only", "ours", "--corpus", "la", "--out", str(tmp_path)])
    assert "| UAS |" in capsys.readouterr().out
    figures = json.loads((tmp_path / "parsing.json").read_text())["corpora"]["la"]["crfkit"]
    assert 0.2 < figures["las"] < figures["uas"] < 1
    assert figures["sentences"] == figures["test_sentences"] == parsing.QUICK


@needs_latin
@pytest.mark.skipif(find_spec("ufal") is None or find_spec("ufal.udpipe") is None, reason="no ufal.udpipe")
def test_the_rival_reads_the_same_sentences(tmp_path: Path) -> None:
    training = corpus_path("ud_latin_perseus", "la_perseus-ud-train.conllu")
    rival_udpipe.train(training, tmp_path / "model", 5)
    found, _ = rival_udpipe.parse(tmp_path / "model", training, 5)
    gold = list(read_conllu(training))[:5]
    assert [len(arcs) for arcs in found] == [len(sentence.words) for sentence in gold]
    assert all(sum(head == 0 for head, _ in arcs) == 1 for arcs in found)


@pytest.mark.slow
@pytest.mark.parametrize("name", parsing.CORPORA)
def test_no_test_sentence_is_learned_from(name: str) -> None:
    """Of more than five words: shorter ones, such as greetings, do return."""
    corpus = parsing.CORPORA[name]
    files = [find_corpus(corpus.folder, file) for file in (corpus.train, corpus.test, corpus.dev) if file]
    if None in files:
        pytest.skip("the corpus is not on this machine")
    train, *others = (
        [tuple(word.form for word in one.words) for one in read_conllu(path)] for path in files if path
    )
    seen = set(train)
    for test in others:
        long = [words for words in test if len(words) > 5]
        assert sum(words in seen for words in long) < 0.005 * len(long)
