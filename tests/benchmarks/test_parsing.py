"""The benchmark of parsers, from end to end on a few sentences."""

from __future__ import annotations

import io
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
    model, _ = rival_udpipe.find_part("la", "parser", training, None, tmp_path, 5)
    found, _ = rival_udpipe.parse(model, training, 5)
    gold = list(read_conllu(training))[:5]
    assert [len(arcs) for arcs in found] == [len(sentence.words) for sentence in gold]
    assert all(sum(head == 0 for head, _ in arcs) == 1 for arcs in found)


@needs_latin
@pytest.mark.slow  # an epoch of its tokenizer takes long, however little there is to learn from
@pytest.mark.skipif(find_spec("ufal") is None or find_spec("ufal.udpipe") is None, reason="no ufal.udpipe")
def test_the_rival_from_raw_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    training = corpus_path("ud_latin_perseus", "la_perseus-ud-train.conllu")
    monkeypatch.setitem(rival_udpipe.TOKENIZER_OPTIONS, "la", "dimension=24;epochs=1;batch_size=1")
    monkeypatch.setitem(rival_udpipe.TAGGER_OPTIONS, "la", "iterations=1")
    model, figures = rival_udpipe.train_parts("la", training, None, tmp_path, 20)
    assert list(figures) == ["tokenizer", "tagger", "parser"]
    assert all(part["cpu_s"] > 0 and part["peak_mb"] > 0 for part in figures.values())
    again, same = rival_udpipe.train_parts("la", training, None, tmp_path, 20)  # from the folder
    assert (again, same) == (model, figures)
    found, _ = rival_udpipe.annotate(model, "Gallia est omnis divisa in partes tres.")
    words = [word for sentence in read_conllu(io.StringIO(found)) for word in sentence.words]
    assert "".join(word.form for word in words) == "Galliaestomnisdivisainpartestres."
    assert all(word.head is not None and word.upos != "_" for word in words)


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
