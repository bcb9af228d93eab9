"""`crfkit train-tagger`, and `crfkit tag`, `eval` and `inspect` of its models."""

from __future__ import annotations

import gzip
import lzma
import os
import re
from pathlib import Path
from typing import Any

import pytest

import crfkit
from crfkit import StopReason
from crfkit.data import read_conllu
from tests.cli.commands import complaint, interrupted_training, run

TREES = """\
# sent_id = 1
# text = the dog sees the cat
1 the the DET DT Definite=Def 2 det _ _
2 dog dog NOUN NN Number=Sing 3 nsubj _ _
3 sees see VERB VBZ Number=Sing 0 root _ _
4 the the DET DT Definite=Def 5 det _ _
5 cat cat NOUN NN Number=Sing 3 obj _ SpaceAfter=No

# sent_id = 2
0.1 so so ADV RB _ _ _ 2:advmod E=1
1 cats cat NOUN NNS Number=Plur 4 nsubj 4:nsubj A=1|B=2
2-3 don't _ _ _ Typo=Yes _ _ _ M=1
2 do do AUX VBP Number=Plur 4 aux _ _
# between
3 not not PART RB _ 4 advmod _ _
4 run run VERB VB _ 0 root _ Foo=Bar

1 here here ADV RB _ 0 root _ _
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write("train.conllu", TREES)


@pytest.fixture
def model() -> str:
    return trained("xpos")


def trained(tag: str) -> str:
    run("train-tagger", "train.conllu", "--tag", tag, "--model", "m.tagger", "--quiet")
    return "m.tagger"


def write(name: str, text: str) -> None:
    """A file of trees whose columns are separated by blanks here."""
    rows = (line if line.startswith("#") else line.replace(" ", "\t") for line in text.splitlines())
    Path(name).write_text("\n".join(rows) + "\n\n", encoding="utf-8")


def without(column: int) -> str:
    """The same trees with one column of all words empty; ranges and empty nodes stay."""
    lines = []
    for line in Path("train.conllu").read_text(encoding="utf-8").splitlines():
        columns = line.split("\t")
        if len(columns) == 10 and columns[0].isdecimal():
            columns[column] = "_"
        lines.append("\t".join(columns))
    return "\n".join(lines) + "\n"


# ---- train-tagger


def test_training_says_what_it_does() -> None:
    said = run("train-tagger", "train.conllu", "--model", "m.tagger").stderr.splitlines()
    assert said[0].startswith("train.conllu: 3 sentences, 10 words, 6 tags: ")
    assert said[1].startswith("iteration    1  objective")
    assert said[-2].endswith("is in m.tagger")
    assert re.fullmatch(r"[\d,]+ features, [\d,]+ weights, \d\.\d MB", said[-1])
    assert crfkit.load("m.tagger").tag == "upos"
    assert run("train-tagger", "train.conllu", "--model", "m.tagger", "--quiet").stderr == ""


def test_options_reach_the_tagger() -> None:
    options = ["--l2", "0.3", "--min-count", "2", "--features", "morphology", "--max-iterations", "3"]
    said = run("train-tagger", "train.conllu", "--tag", "feats+upos", "--model", "m.tagger", *options).stderr
    assert "but features, l2, min_count, optimizer as given\n" in said
    tagger = crfkit.load("m.tagger")
    assert tagger.tag == "upos+feats"
    found = tagger.crf_.get_params(deep=False)
    assert (found["l2"], found["min_count"], found["features"]) == (
        {"default": 0.3, "near": 6},
        2,
        "morphology",
    )
    assert found["optimizer"].max_iterations == 3
    run("train-tagger", "train.conllu", "--tag", "upos+feats", "--model", "m.tagger", "--l2", "2", "--quiet")
    assert crfkit.load("m.tagger").crf_.l2 in (2, {"default": 2, "near": 40})  # by the number of tags
    run("train-tagger", "train.conllu", "--model", "m.tagger", "--optimizer", "lbfgs", "--quiet")
    assert isinstance(crfkit.load("m.tagger").crf_.optimizer, crfkit.LBFGS)


def test_a_dev_file_is_scored_by_accuracy() -> None:
    said = run(
        "train-tagger", "train.conllu", "--model", "m", "--dev", "train.conllu", "--patience", "2"
    ).stderr
    assert re.search(r"iteration    1 .* dev accuracy +\d+\.\d\d\*", said)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nosuch.conllu", "--model", "m"], "nosuch.conllu: cannot be read: No such file"),
        (["train.conllu", "--model", "train.conllu"], "the model would replace the file it is made of"),
        (["train.conllu", "--model", "m", "--tag", "deprel"], "tag is 'deprel', expected one of upos, xpos"),
        (["train.conllu", "--model", "m", "--l2", "-1"], "l2 is -1.0, expected"),
        (["train.conllu", "--model", "m", "--features", "nosuch"], "expected the name of a preset"),
        (["bare.conllu", "--model", "m", "--tag", "xpos"], "no word has a tag in XPOS"),
        (
            ["words.txt", "--model", "m"],
            "words.txt:1: found a line without tabs, expected the 10 tab-separated columns of CoNLL-U",
        ),
    ],
)
def test_what_training_refuses(arguments: list[str], words: str) -> None:
    Path("words.txt").write_text("the DT\n")
    Path("bare.conllu").write_text(without(4))
    assert words in complaint("train-tagger", *arguments)


@pytest.mark.skipif(os.name == "nt", reason="signals are sent as on POSIX")
def test_ctrl_c_saves_the_best_model_and_exits_with_130() -> None:
    options = ["--optimizer", "lbfgs", "--max-iterations", "1000000", "--tolerance", "0", "--l2", "1e-9"]
    rest = interrupted_training("train-tagger", "train.conllu", "--model", "m.tagger", *options)
    assert "crfkit: interrupted; the best model so far is in m.tagger" in rest
    assert crfkit.load("m.tagger").stop_reason_ == StopReason.INTERRUPTED


# ---- tag


@pytest.mark.parametrize(("tag", "column"), [("upos", 3), ("xpos", 4), ("feats", 5)])
def test_the_column_is_filled_in_place(tag: str, column: int) -> None:
    model, text = trained(tag), Path("train.conllu").read_text(encoding="utf-8")
    assert run("tag", model, "train.conllu").stdout == text
    bare = without(column)
    assert bare != text
    Path("bare.conllu").write_text(bare, encoding="utf-8")
    assert run("tag", model, "bare.conllu").stdout == text
    assert run("tag", model, "-", text=bare.encode()).stdout == text
    for name, packer in (("bare.conllu.gz", gzip), ("bare.conllu.xz", lzma)):
        Path(name).write_bytes(packer.compress(bare.encode()))
        assert run("tag", model, name, "--threads", "2").stdout == text
    assert run("tag", model, "bare.conllu", "--output", "out.conllu").stdout == ""
    assert Path("out.conllu").read_text(encoding="utf-8") == text


def test_joint_tags_fill_two_columns() -> None:
    model, text = trained("upos+feats"), Path("train.conllu").read_text(encoding="utf-8")
    Path("bare.conllu").write_text(without(3), encoding="utf-8")
    Path("train.conllu").write_text(without(5), encoding="utf-8")
    assert run("tag", model, "bare.conllu").stdout == text
    assert run("tag", model, "train.conllu").stdout == text


def test_probabilities_in_misc(model: str) -> None:
    Path("out.conllu").write_text(run("tag", model, "train.conllu", "--marginals").stdout, encoding="utf-8")
    found = list(read_conllu("out.conllu"))
    assert found == crfkit.load(model).predict(found, probabilities=True)
    assert re.fullmatch(r"A=1\|B=2\|XposProb=[01]\.\d{4}", found[1].words[0].misc)
    assert found[1].multiwords[0].misc == "M=1"


def test_a_tagged_treebank_can_be_parsed(model: str) -> None:
    run("train-parser", "train.conllu", "--model", "m.parser", "--quiet", "--l2", "0.01")
    tagged = run("tag", model, "-", text=without(4).encode()).stdout
    assert run("parse", "m.parser", "-", text=tagged.encode()).stdout == Path("train.conllu").read_text(
        encoding="utf-8"
    )


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (
            ["m.tagger", "words.txt"],
            "words.txt:1: found a line without tabs, expected the 10 tab-separated columns of CoNLL-U",
        ),
        (
            ["m.tagger", "train.conllu", "--spans"],
            "--spans is about files of columns and labels, but m.tagger is a",
        ),
        (["m.tagger", "train.conllu", "--nbest", "2"], "--nbest is about files of columns and labels"),
        (["m.tagger", "train.conllu", "--separator", ","], "--separator is about files of columns"),
        (["m.tagger", "train.conllu", "--format", "crfsuite"], "--format is about files of columns"),
        (["m.tagger", "train.conllu", "--output", "train.conllu"], "would replace the file it is made of"),
    ],
)
def test_what_tagging_refuses(model: str, arguments: list[str], words: str) -> None:
    Path("words.txt").write_text("the DT\n")
    assert words in complaint("tag", *arguments)


def test_a_tagger_is_no_parser(model: str) -> None:
    assert "m.tagger: not a parser" in complaint("parse", model, "train.conllu")
    assert "m.tagger: a tagger of treebanks" in complaint("convert", model, "out.crf")


# ---- eval and inspect


def test_eval_prints_accuracy_of_known_and_unknown_words(model: str) -> None:
    write("gold.conllu", TREES.replace("1 here here ADV RB", "1 herely here ADV JJ"))
    report = crfkit.load(model).evaluate(read_conllu("gold.conllu"))
    printed = run("eval", model, "gold.conllu").stdout
    assert printed.startswith(f"{report}\n\nconfusion table (gold down, predicted across):\ngold ")
    assert printed.splitlines()[:3] == [
        "XPOS accuracy:    90.00% of 10 words",
        "  known words:   100.00% of 9",
        "  unknown words:   0.00% of 1",
    ]
    assert run("eval", model, "gold.conllu", "--confusion", "0").stdout == f"{report}\n"
    text = Path("gold.conllu").read_bytes()
    assert (
        run(
            "eval",
            model,
            "-",
            text=text,
        ).stdout
        == printed
    )


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["train.conllu", "--spans"], "--spans is about files of columns and labels"),
        (["train.conllu", "--allow-unknown"], "--allow-unknown is about files of columns and labels"),
        (["bare.conllu"], "bare.conllu: no word of the gold sentences has a tag in XPOS"),
    ],
)
def test_what_eval_refuses(model: str, options: list[str], words: str) -> None:
    Path("bare.conllu").write_text(without(4))
    assert words in complaint("eval", model, *options)


def test_inspect_shows_its_tags(model: str) -> None:
    printed = run("inspect", model).stdout
    assert printed.startswith("labels (7): DT NN NNS RB VB VBP VBZ\n")


def test_ctrl_c_before_the_first_iteration_writes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*arguments: Any, **settings: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(crfkit.TreebankTagger, "fit", interrupted)
    said = run("train-tagger", "train.conllu", "--model", "m.tagger", status=130).stderr
    assert said.endswith("crfkit: interrupted\n")
    assert not Path("m.tagger").exists()
