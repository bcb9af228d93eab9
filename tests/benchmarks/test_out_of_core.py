"""The benchmarks of encoding and of training out of core, on a small part of their data."""

from __future__ import annotations

import re

import pytest
from benchmarks.corpora import find_corpus

from benchmarks import encoding, feature_hashing, out_of_core


@pytest.mark.slow
@pytest.mark.skipif(find_corpus(*out_of_core.CORPUS) is None, reason="CoNLL-2000 is not on this machine")
def test_it_runs(capsys: pytest.CaptureFixture[str]) -> None:
    out_of_core.main(["--quick"])
    text = capsys.readouterr().out
    assert "the same bits of the objective in all iterations: True" in text
    assert re.search(r"encoded [0-9,]+ tokens, [0-9,]+ features, 3 shards", text)


@pytest.mark.slow
@pytest.mark.skipif(find_corpus(*feature_hashing.CORPUS) is None, reason="CoNLL-2000 is not on this machine")
def test_feature_hashing_runs(capsys: pytest.CaptureFixture[str]) -> None:
    feature_hashing.main(["--quick", "--bits", "8"])
    assert re.search(r"\| 2\^8 buckets \| 256 \|", capsys.readouterr().out)


@pytest.mark.slow
@pytest.mark.skipif(find_corpus(*encoding.CORPUS) is None, reason="CoNLL-2000 is not on this machine")
def test_encoding_runs(capsys: pytest.CaptureFixture[str]) -> None:
    encoding.main(["--quick", "--threads", "1"])
    assert re.search(r"\| core \| 1 \|", capsys.readouterr().out)
