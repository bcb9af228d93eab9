"""The benchmark of taggers, from end to end on a few sentences."""

from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path

import pytest
from benchmarks.corpora import find_corpus
from benchmarks.parsing import OURS, RIVAL

from benchmarks import tagging, use_log
from crfkit.data import Sentence, Word

needs_latin = pytest.mark.skipif(
    find_corpus("ud_latin_perseus", "la_perseus-ud-train.conllu") is None,
    reason="the Latin treebank is not on this machine",
)
needs_rival = pytest.mark.skipif(
    find_spec("ufal") is None or find_spec("ufal.udpipe") is None, reason="no ufal.udpipe"
)


@needs_latin
@pytest.mark.parametrize("only", ["ours", pytest.param("rival", marks=needs_rival)])
def test_a_quick_run(only: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tagging.main(
        ["--quick", "--only", only, "--corpus", "la", "--tag", "xpos", "--dev", "--out", str(tmp_path)]
    )
    assert "Latin, Perseus, XPOS" in capsys.readouterr().out
    [row] = json.loads((tmp_path / "tagging.json").read_text())["rows"]
    shares = row["outcome"]["accuracy"]["xpos"]
    assert shares["unknown"] < shares["all"] < shares["known"] < 1


def test_uses_of_test_files_are_logged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not those of dev files, of other toolkits, or of a smoke test."""
    monkeypatch.setattr(use_log, "LOG", tmp_path / "log")
    outcome = {"accuracy": {"upos": {"all": 0.875}, "feats": None}, "settings": "CRF()"}
    asked = tagging.Job(OURS, "la", "upos+feats", "", False, None, "words/la.txt")
    for job in (
        asked,
        asked._replace(on_dev=True),
        asked._replace(limit=5),
        asked._replace(toolkit=RIVAL),
    ):
        tagging.log_uses(job, outcome)
    [line] = (tmp_path / "log").read_text().splitlines()
    assert line.split("\t")[1:] == [
        "ud_latin_perseus/la_perseus-ud-test.conllu",
        "87.50%",
        "tagging: TreebankTagger('upos+feats', words='la.txt'): upos; CRF()",
    ]


def test_held_out_sentences_are_not_learned_from() -> None:
    sentences = [Sentence([Word(str(n))]) for n in range(1000)]
    kept, held_out = tagging.split(sentences)
    assert sorted([*kept, *held_out], key=sentences.index) == sentences
    assert len(held_out) == 7 * tagging.BLOCK
