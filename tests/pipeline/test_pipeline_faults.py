"""What a pipeline makes of faults in its input: bad trees, bad files, bytes; and copies of it in other processes."""

from __future__ import annotations

import pickle
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from crfkit import Pipeline
from crfkit.data import Sentence
from crfkit.errors import ArgumentError, InputError
from tests.cli.commands import run
from tests.pipeline.small_treebank import bare, make_treebank


@pytest.fixture(scope="module")
def trained() -> Pipeline:
    return Pipeline(folds=2, n_threads=1).fit(make_treebank(60))


def with_heads(sentence: Sentence, *heads: int) -> Sentence:
    """The sentence with other heads of its first words."""
    words = list(sentence.words)
    for i, head in enumerate(heads):
        words[i] = words[i]._replace(head=head)
    return replace(sentence, words=words)


@pytest.mark.parametrize(("heads", "message"), [((0, 0), "roots"), ((2, 1), "cycle")])
def test_bad_trees_are_refused_before_anything_is_trained(heads: tuple[int, int], message: str) -> None:
    sentences = make_treebank(20)
    bad = [*sentences[:-1], with_heads(sentences[-1], *heads)]
    seen: list[Any] = []
    with pytest.raises(InputError, match=message):
        Pipeline(folds=2).fit(bad, callback=seen.append)
    assert not seen
    if message == "cycle":
        with pytest.raises(InputError, match=message):
            Pipeline(folds=2).fit(sentences, dev=bad, callback=seen.append)
        assert not seen


def test_a_dev_treebank_without_tags_is_refused_before_anything_is_trained() -> None:
    seen: list[Any] = []
    dev = [bare(sentence) for sentence in make_treebank(5)]
    with pytest.raises(InputError, match=r"dev.*no word has a tag in UPOS"):
        Pipeline(folds=2).fit(make_treebank(20), dev=dev, callback=seen.append)
    assert not seen


def test_a_kept_tag_has_no_probability_of_another_one(trained: Pipeline) -> None:
    [sentence] = trained.predict([bare(make_treebank(1, seed=5)[0])], probabilities=True)
    assert all("Prob=" in word.misc for word in sentence.words)
    given = [
        word._replace(upos="X" if i == 0 else word.upos, misc="_") for i, word in enumerate(sentence.words)
    ]
    [kept] = trained.predict([replace(sentence, words=given)], keep_tags=True, probabilities=True)
    assert kept.words[0].upos == "X"
    assert "Prob" not in kept.words[0].misc.replace("HeadProb", "")
    assert "XposFeatsProb" in kept.words[1].misc
    assert "HeadProb" in kept.words[0].misc


def test_errors_in_conllu_name_the_file(trained: Pipeline, tmp_path: Path) -> None:
    path = tmp_path / "bad.conllu"
    path.write_text("1\tdogs" + "\t_" * 8 + "\n3\tbark" + "\t_" * 8 + "\n")
    with path.open() as stream, pytest.raises(InputError, match=r"bad\.conllu:2: the ID is 3"):
        list(trained.stream(stream))
    with pytest.raises(InputError, match="<text>:2: the ID is 3"):
        trained(path.read_text())
    trained.save(tmp_path / "m")
    assert "bad.conllu:2" in run("pipeline", "run", f"{tmp_path}/m", str(path), status=2).stderr


def test_a_file_called_conllu_is_no_raw_text(trained: Pipeline, tmp_path: Path) -> None:
    """Nine columns in its first line are an error, not words."""
    trained.save(tmp_path / "m")
    row = "1\tdogs" + "\t_" * 7 + "\n"
    for name in ("bad.conllu", "bad.txt"):
        (tmp_path / name).write_text(row)
    refused = run("pipeline", "run", f"{tmp_path}/m", f"{tmp_path}/bad.conllu", status=2)
    assert "bad.conllu:1: found 9 tab-separated columns" in refused.stderr
    run("pipeline", "run", f"{tmp_path}/m", f"{tmp_path}/bad.txt")
    run("pipeline", "run", f"{tmp_path}/m", f"{tmp_path}/bad.conllu", "--input", "text")


@pytest.mark.parametrize("form", ["auto", "text", "tokens", "conllu"])
def test_bytes_are_no_text(trained: Pipeline, form: str) -> None:
    with pytest.raises(ArgumentError, match="of type bytes, expected strings"):
        list(trained.stream([b"dogs bark"], input=form))  # type: ignore[list-item]


def test_a_pickled_pipeline_is_the_same(trained: Pipeline) -> None:
    text = "Dogs see birds. A dog barks."
    assert pickle.loads(pickle.dumps(trained))(text) == trained(text)
