"""The benchmark of taggers, from end to end on a few sentences."""

from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path

import pytest
from benchmarks.corpora import find_corpus

from benchmarks import tagging
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


def test_held_out_sentences_are_not_learned_from() -> None:
    sentences = [Sentence([Word(str(n))]) for n in range(1000)]
    kept, held_out = tagging.split(sentences)
    assert sorted([*kept, *held_out], key=sentences.index) == sentences
    assert len(held_out) == 7 * tagging.BLOCK
