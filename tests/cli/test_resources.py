"""Resources on the command line: lexicons, clusters, `train --resource`, `tag` and `eval`."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

import crfkit
from crfkit import Clusters, Lexicon
from crfkit.cli import main
from crfkit.data import write_conllu
from tests.pipeline.small_treebank import make_treebank

TRAIN = "Ada PER\nlives O\nin O\nNew LOC\nYork LOC\n\nRome LOC\nlives O\n\nin O\nRome LOC\n\n"
TEST = "in O\nOslo LOC\n\n"
TEMPLATE = "word=%x[0,0]\nplace=%in[0,0,cities]\nB\n"


def run(*arguments: object, status: int = 0) -> str:
    result = CliRunner().invoke(main, [str(argument) for argument in arguments])
    assert result.exit_code == status, result.output
    return result.output


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in {
        "train": TRAIN,
        "test": TEST,
        "template": TEMPLATE,
        "cities.txt": "New York\nRome\nOslo\n",
    }.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path


def test_train_tag_and_eval(folder: Path) -> None:
    cities = f"cities={folder / 'cities.txt'}"
    named, bundled = folder / "named.crf", folder / "bundled.crf"
    settings = (
        "train",
        folder / "train",
        "--template",
        folder / "template",
        "--l2",
        "0.1",
        "--resource",
        cities,
    )
    run(*settings, "--model", named)
    run(*settings, "--model", bundled, "--bundle")
    expected = "in\tO\tO\nOslo\tLOC\tLOC\n\n".replace("\t", " ")
    assert run("tag", named, folder / "test", "--resource", cities, "--quiet") == expected
    assert run("tag", bundled, folder / "test", "--quiet") == expected
    assert "100.00" in run("eval", named, folder / "test", "--resource", cities, "--quiet")
    assert "Oslo" in run("explain", named, folder / "test", "--resource", cities)
    assert "needs the lexicon 'cities'" in run("tag", named, folder / "test", status=2)
    (folder / "other.txt").write_text("Rome\n", encoding="utf-8")
    other = f"cities={folder / 'other.txt'}"
    assert "'cities' is not what the model was trained with" in run(
        "tag", named, folder / "test", "--resource", other, status=2
    )
    assert "but it was not given" in run(*settings[:-2], "--model", folder / "none.crf", status=2)
    for wrong in ("cities", "=x", "my cities=x"):
        assert "expected name=file" in run(*settings[:-1], wrong, "--model", named, status=2)
    assert "given twice" in run(*settings, "--resource", cities, "--model", named, status=2)


def test_a_preset_takes_resources(folder: Path) -> None:
    lexicon = folder / "cities.lexicon"
    assert "3 entries in the lists city" in run("lexicon", f"city={folder / 'cities.txt'}", "--out", lexicon)
    run(
        "train", folder / "train", "--features", "pos", "--model", folder / "m.crf", "--l2", "0.1",
        "--resource", f"cities={lexicon}", "--bundle", "--quiet",
    )  # fmt: skip
    assert "cities=S" in crfkit.load(folder / "m.crf").encoder_.vocabulary.names()


def test_lexicons(folder: Path) -> None:
    (folder / "names.txt").write_text("Ada\n", encoding="utf-8")
    out = folder / "out"
    run(
        "lexicon",
        f"city={folder / 'cities.txt'}",
        f"name={folder / 'names.txt'}",
        "--out",
        out,
        "--fold-case",
    )
    lexicon = Lexicon.load(out)
    assert lexicon.lists == ("city", "name")
    assert lexicon["NEW york"] == ("city",)
    run("lexicon", folder / "names.txt", "--out", out, "--characters")
    assert Lexicon.load(out).states(list("Ada")) == ["B", "I", "E"]
    assert "two files of the list" in run(
        "lexicon", folder / "cities.txt", folder / "names.txt", "--out", out, status=2
    )
    assert "would replace" in run("lexicon", folder / "names.txt", "--out", folder / "names.txt", status=2)


def test_resources_of_standard_input(folder: Path) -> None:
    def pipe(text: str, *arguments: object, status: int = 0) -> str:
        result = CliRunner().invoke(main, [str(argument) for argument in arguments], input=text)
        assert result.exit_code == status, result.output
        return result.output

    pipe("Oslo\nNew York\n", "lexicon", "city=-", f"other={folder / 'cities.txt'}", "--out", folder / "l")
    assert Lexicon.load(folder / "l")["New York"] == ("city", "other")
    assert "given twice" in pipe("", "lexicon", "a=-", "b=-", "--out", folder / "l", status=2)
    assert "<stdin>: the file has no entry" in pipe("", "lexicon", "-", "--out", folder / "l", status=2)
    pipe("a b\nb a\n", "cluster", "-", "--out", folder / "paths", "--classes", 2)
    assert len(Clusters.read(folder / "paths")) == 2
    assert "<stdin>:1: expected more than 3 columns" in pipe(
        "a\n", "cluster", "-", "--column", 3, "--out", folder / "paths", status=2
    )


@pytest.mark.parametrize("command", ["cluster", "lexicon"])
def test_where_nothing_can_be_written_nothing_is_read(folder: Path, command: str) -> None:
    for out, reason in ((folder / "no" / "out", "No such file"), (folder, "it is a folder")):
        assert f"{out}: cannot be written ({reason}" in run(command, folder / "none", "--out", out, status=2)


def test_clusters(folder: Path) -> None:
    text, out = folder / "text", folder / "paths"
    text.write_text(
        "the cat sleeps\nthe dog sleeps\nthe cat runs\nthe dog runs\nthe mouse sleeps\n" * 20,
        encoding="utf-8",
    )
    assert "6 words in 2 classes" in run("cluster", text, "--classes", "2", "--out", out)
    clusters = Clusters.read(out)
    assert clusters["cat"] == clusters["dog"] == clusters["mouse"] != clusters["runs"]
    run(
        "cluster",
        folder / "train",
        "--column",
        "0",
        "--classes",
        "4",
        "--out",
        out,
        "--min-count",
        "2",
        "--quiet",
    )
    assert {word for word, _, _ in Clusters.read(out).words()} == {"in", "lives", "Rome"}
    assert "train:1: expected more than 7 columns" in run(
        "cluster", folder / "train", "--column", "7", "--out", out, status=2
    )
    text.write_text("a\tA\n\tB\n", encoding="utf-8")
    assert "text:2: column 0 is empty" in run("cluster", text, "--column", "0", "--out", out, status=2)


def test_taggers_and_pipelines_of_treebanks(tmp_path: Path) -> None:
    treebank, clusters = tmp_path / "train.conllu", tmp_path / "brown.clusters"
    write_conllu(make_treebank(40), treebank)
    Clusters.build({"dog": "00", "cat": "00", "see": "11"}).save(clusters)
    brown = ("--resource", f"brown={clusters}")
    quiet = ("--threads", "1", "--quiet")
    for command, options in ((["train-tagger"], ()), (["pipeline", "train"], ("--folds", "2"))):
        named, bundled = tmp_path / f"{command[0]}.named", tmp_path / f"{command[0]}.bundled"
        run(*command, treebank, "--model", named, *options, *brown, *quiet)
        run(*command, treebank, "--model", bundled, *options, *brown, "--bundle", *quiet)
        ask = ["tag"] if command == ["train-tagger"] else ["pipeline", "run"]
        expected = run(*ask, bundled, treebank, *quiet)
        assert run(*ask, named, treebank, *brown, *quiet) == expected
        assert "needs the clusters 'brown'" in run(*ask, named, treebank, *quiet, status=2)
        report = run("eval", bundled, treebank, *quiet)
        assert run("eval", named, treebank, *brown, *quiet) == report
    assert run("pipeline", "eval", named, treebank, *brown, *quiet) == run(
        "pipeline", "eval", bundled, treebank, *quiet
    )


def test_training_says_what_each_resource_is(folder: Path) -> None:
    """A file of vectors that is called .txt is a list of entries: whoever meant vectors must see that."""
    (folder / "glove.txt").write_text("Rome 1 0.5\nOslo 1 0.25\n", encoding="utf-8")
    output = run(
        "train", folder / "train", "--features", "pos", "--model", folder / "m.crf",
        "--resource", f"cities={folder / 'cities.txt'}", "--resource", f"glove={folder / 'glove.txt'}",
    )  # fmt: skip
    assert "resource cities: Lexicon of 3 entries" in output
    assert "resource glove: Lexicon of 2 entries" in output


def test_errors_of_resources_say_where_and_what_to_do(folder: Path) -> None:
    train = ("train", folder / "train", "--model", folder / "m.crf", "--template", folder / "template")
    cities = ("--resource", f"cities={folder / 'cities.txt'}")
    assert "or by --resource cities=FILE" in run(*train, status=2)
    (folder / "template").write_text("word=%x[0,0]\nplace=%in[0,0,cities,town]\nB\n")
    output = run(*train, *cities, status=2)
    assert (
        "template:2: the lexicon 'cities' has no list 'town': its entries are in one list without a name"
        in output
    )
    run("lexicon", f"city={folder / 'cities.txt'}", "--out", folder / "l")
    output = run(*train, "--resource", f"cities={folder / 'l'}", status=2)
    assert "template:2: the lexicon 'cities' has no list 'town', expected one of 'city'" in output
    (folder / "empty").write_text("\n")
    assert "empty: the file has no entry" in run("lexicon", folder / "empty", "--out", folder / "o", status=2)
    assert "empty: there is no word" in run("cluster", folder / "empty", "--out", folder / "o", status=2)
