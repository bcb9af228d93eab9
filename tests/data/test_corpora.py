"""Where corpora are looked for."""

from __future__ import annotations

from pathlib import Path

import pytest
from benchmarks.corpora import MissingCorpusError, corpora_folder, corpus_path, find_corpus


def test_the_folder_is_named_or_beside_the_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CRFKIT_DATA", raising=False)
    assert corpora_folder() == Path(__file__).resolve().parents[3] / "shared" / "data"
    monkeypatch.setenv("CRFKIT_DATA", str(tmp_path))
    assert corpora_folder() == tmp_path


def test_corpora_are_found_packed_or_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CRFKIT_DATA", str(tmp_path))
    assert find_corpus("c", "train.txt") is None
    with pytest.raises(MissingCorpusError, match=r"c/train\.txt is not in .*set CRFKIT_DATA"):
        corpus_path("c", "train.txt")
    (tmp_path / "c").mkdir()
    packed = tmp_path / "c" / "train.txt.xz"
    packed.touch()
    assert corpus_path("c", "train.txt") == packed
    plain = tmp_path / "c" / "train.txt"
    plain.touch()
    assert find_corpus("c", "train.txt") == plain
