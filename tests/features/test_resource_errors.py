"""What is no word, no vector, no number of words: resources say so."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from crfkit import Clusters, Lexicon, WordVectors
from crfkit.errors import ArgumentError, FileFormatError, ShapeError, UnwritableFileError
from crfkit.features import ClusteredWord, learn_clusters

Loose: Any = WordVectors


@pytest.mark.parametrize("fold_case", [False, True])
@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda **how: learn_clusters([["a", 1]], 2, **how), r"a sentence has 1 \(int\), expected words"),  # type: ignore[list-item]
        (lambda **how: learn_clusters([None], 2, **how), "a sentence is None, expected a list"),  # type: ignore[list-item]
        (lambda **how: learn_clusters(None, 2, **how), "sentences is None, expected lists"),  # type: ignore[arg-type]
        (lambda **how: learn_clusters([["a"]], 2**40, **how), "n_classes is 1,099,511,627,776, expected at"),
        (lambda **how: Lexicon.build([["a", 1]], **how), r"has 1 \(int\), expected tokens that are strings"),  # type: ignore[list-item]
        (lambda **how: Lexicon.build(["a"], split=lambda _: [None], **how), "has None, expected tokens"),  # type: ignore[list-item]
        (lambda **how: Lexicon.build(["a"], split=5, **how), r"split is 5 \(int\), expected a function"),  # type: ignore[arg-type]
        (lambda **how: Lexicon.build(["a"], split=len, **how), r"split makes 1 \(int\) of the entry 'a'"),  # type: ignore[arg-type]
        (
            lambda **how: Lexicon.build(["a b"], split=str.upper, **how),
            "split makes the string 'A B' of the entry",
        ),
        (lambda **how: Clusters.build(3, **how), r"words is 3 \(int\), expected words"),  # type: ignore[arg-type]
        (lambda **how: Clusters.build("ab", **how), "words is the string 'ab', expected"),  # type: ignore[arg-type]
        (lambda **how: Clusters.build([("a", "0")], **how), "expected a ClusteredWord: a word, its class"),  # type: ignore[list-item]
        (lambda **how: Clusters.build(["abc"], **how), "words has the string 'abc', expected a Clu"),  # type: ignore[list-item]
        (lambda **how: Clusters.build([ClusteredWord("a", "0", 1.5)], **how), "the count of 'a' is 1.5"),  # type: ignore[arg-type]
        (lambda **how: Clusters.build([ClusteredWord("a", "0", "3")], **how), "the count of 'a' is '3'"),  # type: ignore[arg-type]
        (lambda **how: Clusters.build([ClusteredWord("a", "0", None)], **how), "the count of 'a' is None"),  # type: ignore[arg-type]
        (lambda **how: Clusters.build([ClusteredWord("a", "0", 2**64)], **how), "expected at most 18,446,"),
        (
            lambda **how: Loose.build({1: [1.0]}, **how),
            r"has 1 \(int\) with .*, expected a word with numbers",
        ),
        (
            lambda **how: Loose.build({"a": ["x"]}, **how),
            "the string 'a' with .*, expected a word with numbers",
        ),
        (lambda **how: Loose.build(None, **how), "vectors is None, expected a dict"),
    ],
)
def test_what_is_no_word(make: Callable[..., Any], message: str, fold_case: bool) -> None:
    with pytest.raises(ArgumentError, match=message):
        make(fold_case=fold_case)


def test_vectors_without_numbers() -> None:
    with pytest.raises(ShapeError, match="rows of numbers"):
        WordVectors.build({"a": []})


@pytest.mark.parametrize("limit", [-1, 0, 1.5, "2", True])
def test_what_is_no_number_of_words(limit: Any, tmp_path: Path) -> None:
    path = tmp_path / "v.txt"
    path.write_text("a 1 2 3\nb 1 2 3\n")
    assert len(WordVectors.read(path, limit=1)) == 1
    with pytest.raises(ArgumentError, match=f"limit is {limit!r}, expected a whole number of at least 1"):
        WordVectors.read(path, limit=limit)


@pytest.mark.parametrize("text", ["", "\n \n"])
def test_files_without_words(text: str, tmp_path: Path) -> None:
    path = tmp_path / "c.txt"
    path.write_text(text)
    with pytest.raises(FileFormatError, match=r"c.txt: the file has no word"):
        Clusters.read(path)


@pytest.mark.parametrize("write", [Clusters.write, Clusters.save])
def test_files_of_clusters_are_written_as_model_files_are(
    write: Callable[[Clusters, Path], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clusters = Clusters.build({"a": "0"})
    (tmp_path / "link").symlink_to(tmp_path / "real")
    write(clusters, tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    write(clusters, Path("/dev/null"))
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)
    monkeypatch.chdir(tmp_path)
    for folder in (Path(), Path(".."), tmp_path):
        with pytest.raises(UnwritableFileError, match="it is a folder"):
            write(clusters, folder)
    assert sorted(os.listdir(tmp_path)) == ["link", "real"]
