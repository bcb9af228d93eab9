"""`crfkit pipeline`: train, run and eval."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from crfkit.data import read_conllu, write_conllu
from crfkit.pipeline import Pipeline, raw_text
from tests.cli.commands import complaint, run
from tests.pipeline.small_treebank import bare, make_treebank

TEST = make_treebank(20, seed=2)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a treebank, its text, and a pipeline that was trained from the command line."""
    path = tmp_path_factory.mktemp("pipeline")
    write_conllu(make_treebank(60), path / "train.conllu")
    write_conllu(make_treebank(10, seed=3), path / "dev.conllu")
    write_conllu(TEST, path / "test.conllu")
    (path / "test.txt").write_bytes(raw_text(TEST).encode())
    options = ["--folds", "2", "--threads", "1"]
    result = run(
        "pipeline",
        "train",
        f"{path}/train.conllu",
        "--dev",
        f"{path}/dev.conllu",
        "--model",
        f"{path}/m",
        *options,
    )
    assert "training the parser" in result.stderr or "trained the parser" in result.stderr
    assert "tokenizer, tagger of" in result.stderr
    return path


def columns(path: Path) -> list[list[tuple[object, ...]]]:
    return [[word[:7] for word in sentence.words] for sentence in read_conllu(path)]


def test_text_in_trees_out(folder: Path, tmp_path: Path) -> None:
    run("pipeline", "run", f"{folder}/m", f"{folder}/test.txt", "-o", f"{tmp_path}/out.conllu")
    assert columns(tmp_path / "out.conllu") == columns(folder / "test.conllu")
    assert raw_text(read_conllu(tmp_path / "out.conllu")).encode() == (folder / "test.txt").read_bytes()
    text = (folder / "test.txt").read_bytes()
    result = run("pipeline", "run", f"{folder}/m", "-", text=text)
    assert result.stdout == (tmp_path / "out.conllu").read_text()
    assert run("pipeline", "run", f"{folder}/m", text=text).stdout == result.stdout


@pytest.mark.parametrize("text", ["a b\r\nc\r\n\r\nd", "\ta  \u00a0b\n\n\n", "no end", "x\n" * 2000])
def test_the_text_comes_back_byte_by_byte(folder: Path, tmp_path: Path, text: str) -> None:
    result = run("pipeline", "run", f"{folder}/m", text=text.encode())
    (tmp_path / "a.conllu").write_text(result.stdout)
    assert raw_text(read_conllu(tmp_path / "a.conllu")) == text


def test_other_forms_of_input(folder: Path, tmp_path: Path) -> None:
    expected = columns(folder / "test.conllu")
    (tmp_path / "tokens.txt").write_text(
        "".join(" ".join(word.form for word in sentence.words) + "\n" for sentence in TEST)
    )
    for source, options in (
        (folder / "test.conllu", []),
        (tmp_path / "tokens.txt", ["--input", "tokens"]),
        (folder / "test.conllu", ["--input", "conllu", "--keep-tags"]),
    ):
        run("pipeline", "run", f"{folder}/m", str(source), "-o", f"{tmp_path}/out.conllu", *options)
        assert columns(tmp_path / "out.conllu") == expected
    text = "The dog sees the cat. The cat\nsees the dog\n"
    lines = run("pipeline", "run", f"{folder}/m", "--input", "sentences", text=text)
    assert lines.stdout.count("# text = ") == 2


def test_json_trees_and_pictures(folder: Path, tmp_path: Path) -> None:
    text = "The dog sees the cat."
    result = run(
        "pipeline",
        "run",
        f"{folder}/m",
        "--format",
        "json",
        "--ranges",
        "--svg",
        f"{tmp_path}/trees",
        text=text,
    )
    [line] = result.stdout.splitlines()
    found = json.loads(line)
    assert found["text"] == text
    assert [word["lemma"] for word in found["words"]] == ["the", "dog", "see", "the", "cat", "."]
    assert "<svg" in (tmp_path / "trees" / "00001.svg").read_text()
    tree = run("pipeline", "run", f"{folder}/m", "--format", "tree", text=text).stdout
    assert tree.startswith(text)
    assert "nsubj" in tree


def test_probabilities(folder: Path) -> None:
    found = run("pipeline", "run", f"{folder}/m", "--probabilities", text="The dog sees the cat.").stdout
    for name in ("TokenProb", "HeadProb", "Prob="):
        assert found.count(name) >= 6


def test_the_table_of_the_shared_task(folder: Path) -> None:
    for origin in ("raw", "tokens"):
        found = run("pipeline", "eval", f"{folder}/m", f"{folder}/test.conllu", "--from", origin).stdout
        assert "LAS" in found
        assert "BLEX" in found
        figures = json.loads(
            run("pipeline", "eval", f"{folder}/m", f"{folder}/test.conllu", "--from", origin, "--json").stdout
        )
        assert {name: round(100 * row["f1"]) for name, row in figures.items()} == dict.fromkeys(figures, 100)


def test_other_commands_know_pipelines(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    arguments = [f"{folder}/m", f"{folder}/test.conllu"]
    assert run("eval", *arguments).stdout == run("pipeline", "eval", *arguments).stdout
    assert "--spans is about files of columns" in complaint("eval", *arguments, "--spans")
    described = run("inspect", f"{folder}/m").stdout.splitlines()
    assert described[0] == "tokenizer"
    assert described[-1] == "parser"
    assert json.loads(run("inspect", f"{folder}/m", "--json").stdout) == {"components": described}
    assert "m: a pipeline, for crfkit pipeline run" in complaint("tag", *arguments)
    assert "m: not a parser: a pipeline, for crfkit pipeline run" in complaint("parse", *arguments)
    assert "but" in complaint("inspect", f"{folder}/m", "--on", f"{folder}/test.conllu")


@pytest.mark.parametrize("part", ["tokenizer", "lemmatizer"])
def test_parts_for_python_alone(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, part: str
) -> None:
    monkeypatch.chdir(tmp_path)
    pipeline = Pipeline.load(folder / "m")
    parts = {"tokenizer": pipeline.tokenizer_, "lemmatizer": pipeline.components_[-2]}
    parts[part].save("part")  # type: ignore[union-attr]
    assert f"part: a {part}, to be used from Python" in complaint("tag", "part", f"{folder}/test.conllu")


def test_text_that_is_not_utf_8(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("latin1.txt").write_bytes(b"The dog\nsees a caf\xe9.\n")
    expected = "crfkit: latin1.txt:2: expected UTF-8, found byte 0xe9"
    result = run("pipeline", "run", f"{folder}/m", "latin1.txt", "--quiet", status=2)
    assert result.stderr.splitlines() == [expected]


def test_what_the_treebank_lacks_is_said(tmp_path: Path) -> None:
    write_conllu([bare(sentence) for sentence in make_treebank(20)], tmp_path / "a.conllu")
    found = run("pipeline", "train", f"{tmp_path}/a.conllu", "--model", f"{tmp_path}/m")
    assert "no --dev" in found.stderr
    assert "warning: no parser: no word of the treebank has a HEAD" in found.stderr
    words = run("pipeline", "run", f"{tmp_path}/m", text="The dog sees the cat.").stdout
    assert words.count("\n") == 10
    refused = run("pipeline", "run", f"{tmp_path}/m", "--format", "tree", text="a", status=2)
    assert "no parser" in refused.stderr


def test_a_checkpoint_goes_on(folder: Path, tmp_path: Path) -> None:
    arguments = [
        f"{folder}/train.conllu",
        "--folds",
        "2",
        "--checkpoint",
        f"{tmp_path}/run",
        "--threads",
        "1",
    ]
    run("pipeline", "train", *arguments, "--model", f"{tmp_path}/a")
    again = run("pipeline", "train", *arguments, "--model", f"{tmp_path}/b")
    assert "training the" not in again.stderr
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    other = run(
        "pipeline", "train", f"{folder}/dev.conllu", *arguments[1:], "--model", f"{tmp_path}/b", status=2
    )
    assert "other training data" in other.stderr


def test_what_is_refused(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "empty.conllu").touch()
    assert "has no sentence" in complaint("pipeline", "eval", f"{folder}/m", f"{tmp_path}/empty.conllu")
    missing = run("pipeline", "run", f"{tmp_path}/nothing", text="a", status=2)
    assert "nothing" in missing.stderr
    (tmp_path / "text.txt").write_bytes(b"a\xffb")
    broken = run("pipeline", "run", f"{folder}/m", f"{tmp_path}/text.txt", status=2)
    assert "UTF-8" in broken.stderr
    run("pipeline", "run", f"{folder}/m", f"{tmp_path}/absent.txt", status=2)
    (tmp_path / "bad.conllu").write_text("1\tx\n\n")
    bad = run("pipeline", "train", f"{tmp_path}/bad.conllu", "--model", f"{tmp_path}/m", status=2)
    assert "bad.conllu:1" in bad.stderr
    for command in ("tag", "parse"):
        refused = run(command, f"{folder}/m", f"{folder}/test.conllu", status=2)
        assert "a pipeline, for crfkit pipeline run" in refused.stderr
    other = run("pipeline", "eval", f"{folder}/train.conllu", f"{folder}/test.conllu", status=2)
    assert "not a crfkit model" in other.stderr
