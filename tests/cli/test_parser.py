"""`crfkit train-parser`, `crfkit parse`, and `crfkit eval` of a parser."""

from __future__ import annotations

import os
import re
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import crfkit
from crfkit import StopReason
from crfkit.data import Sentence, check_tree, read_conllu
from crfkit.evaluation import evaluate_trees
from tests.cli.commands import complaint, interrupted_training, run

TREES = """\
# sent_id = 1
1 the the DET _ _ 2 det _ _
2 dog dog NOUN _ _ 3 nsubj _ _
3 sees see VERB _ _ 0 root _ _
4 the the DET _ _ 5 det _ _
5 cat cat NOUN _ _ 3 obj _ SpaceAfter=No

# sent_id = 2
0.1 so so ADV _ _ _ _ 2:advmod _
1 cats cat NOUN _ Number=Plur 4 nsubj 4:nsubj _
2-3 don't _ _ _ _ _ _ _ _
2 do do AUX _ _ 4 aux _ _
3 not not PART _ _ 4 advmod _ _
4 run run VERB _ _ 0 root _ Foo=Bar|p=0.1

1 here here ADV _ _ 0 root _ _
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write("train.conllu", TREES)


@pytest.fixture
def model() -> str:
    run("train-parser", "train.conllu", "--model", "m.parser", "--quiet", "--l2", "0.01")
    return "m.parser"


def write(name: str, text: str) -> None:
    """A file of trees whose columns are separated by blanks here."""
    rows = (line if line.startswith("#") else line.replace(" ", "\t") for line in text.splitlines())
    Path(name).write_text("\n".join(rows) + "\n\n", encoding="utf-8")


def read(text: str) -> list[Sentence]:
    Path("output.conllu").write_text(text, encoding="utf-8")
    return list(read_conllu("output.conllu"))


# ---- train-parser


def test_training_says_what_it_does() -> None:
    said = run("train-parser", "train.conllu", "--model", "m.parser").stderr
    assert said.startswith("train.conllu: 3 sentences, 10 words, 6 relations\niteration    1  objective")
    assert re.search(r"the model of iteration \d+ is in m\.parser\n[\d,]+ weights, \d\.\d MB\n$", said)
    assert run("train-parser", "train.conllu", "--model", "m.parser", "--quiet").stderr == ""


def test_options_reach_the_parser() -> None:
    run(
        *(
            "train-parser",
            "train.conllu",
            "--model",
            "m.parser",
            "--quiet",
            "--multi-root",
            "--decode",
            "best",
        ),
        *("--structure", "spanning", "--order", "1", "--columns", "form, upos"),
        *("--l1", "0.001", "--l2", "0.2", "--min-count", "2", "--max-iterations", "3"),
    )
    parser = crfkit.load("m.parser")
    found = parser.get_params(deep=False)
    usual = crfkit.Parser().optimizer
    assert isinstance(usual, crfkit.AdaGrad)
    assert found == {
        "optimizer": crfkit.AdaGrad(max_iterations=3, rate=usual.rate),
        "l1": 0.001,
        "l2": 0.2,
        "single_root": False,
        "decode": "best",
        "min_count": 2,
        "structure": "spanning",
        "order": 1,
        "columns": ["form", "upos"],
        "n_threads": None,
        "clusters": None,
        "vectors": None,
    }


def test_the_default_is_that_of_the_parser(model: str) -> None:
    run("train-parser", "train.conllu", "--model", "usual.parser", "--quiet")
    ours = crfkit.Parser().fit(read_conllu("train.conllu"))
    assert crfkit.load("usual.parser").get_params() == ours.get_params()
    np.testing.assert_array_equal(crfkit.load("usual.parser").weights_, ours.weights_)


def test_a_run_goes_on_from_its_checkpoint() -> None:
    kept = ("--checkpoint", "c", "--every", "1", "--quiet")
    run("train-parser", "train.conllu", "--model", "m.parser", *kept, "--max-iterations", "3")
    assert Path("c").exists()
    said = run("train-parser", "train.conllu", "--model", "m.parser", *kept[:-1], "--resume").stderr
    assert "iteration    3" not in said
    whole = crfkit.Parser().fit(read_conllu("train.conllu"))
    np.testing.assert_array_equal(crfkit.load("m.parser").weights_, whole.weights_)
    refused = complaint("train-parser", "train.conllu", "--model", "m.parser", *kept, "--resume", "--l2", "4")
    assert "the checkpoint was written with l2" in refused
    refused = complaint("train-parser", "train.conllu", "--model", "c", *kept)
    assert "the model would replace the checkpoint" in refused


def test_a_warm_start(model: str) -> None:
    command = ("train-parser", "train.conllu", "--model", "m2.parser", "--quiet", "--optimizer", "lbfgs")
    run(*command, "--max-iterations", "0", "--warm-start", model)
    np.testing.assert_array_equal(crfkit.load("m2.parser").weights_, crfkit.load(model).weights_)
    assert "start is of type CRF" in complaint(*command, "--warm-start", labels_model())


def labels_model() -> str:
    """A model that gives labels."""
    crfkit.CRF(features="pos").fit([["a", "b"]], [["x", "y"]]).save("labels.crf")
    return "labels.crf"


@pytest.mark.parametrize("name", ["lbfgs", "tron", "sgd", "arow", "auto"])
def test_other_optimizers(name: str) -> None:
    said = run("train-parser", "train.conllu", "--model", "m.parser", "--optimizer", name).stderr
    assert "the model of iteration" in said
    assert ("AdaGrad" in said) == (name == "auto")


def test_a_dev_file_is_scored_by_las() -> None:
    result = run(
        "train-parser", "train.conllu", "--model", "m.parser", "--dev", "train.conllu", "--patience", "2"
    )
    assert re.search(r"iteration    1 .* dev LAS +\d+\.\d\d\*", result.stderr)
    parser = crfkit.load("m.parser")
    assert parser.stop_reason_ is StopReason.NO_IMPROVEMENT
    assert parser.stop_message_ in result.stderr


def test_files_without_trees_are_named() -> None:
    write("bare.conllu", "1 a a X _ _ _ _ _ _")
    assert "sentences (bare.conllu): no word has a label" in complaint(
        "train-parser", "bare.conllu", "--model", "m"
    )
    assert "dev (bare.conllu): no word has a head and a label" in complaint(
        "train-parser", "train.conllu", "--model", "m", "--dev", "bare.conllu"
    )
    assert not Path("m").exists()


def test_partial_trees_are_enough() -> None:
    write("part.conllu", TREES.replace("2 det", "_ _").replace("4 advmod", "4 _"))
    run("train-parser", "part.conllu", "--model", "m.parser", "--quiet")
    assert "advmod" not in crfkit.load("m.parser").classes_


def wrong(before: str, after: str) -> str:
    assert before in TREES
    write("wrong.conllu", TREES.replace(before, after))
    return complaint("train-parser", "wrong.conllu", "--model", "m.parser")


def test_trees_that_are_none_are_refused_with_their_line() -> None:
    assert wrong("_ _ 0 root _ Foo", "_ _ 1 root _ Foo").startswith("crfkit: wrong.conllu:")
    assert ":4: the HEAD is 'x'" in wrong("_ _ 0 root _ _\n4", "_ _ x root _ _\n4")
    assert wrong("5 det", "9 det").startswith(
        "crfkit: wrong.conllu:5: the HEAD is 9, but the sentence has 5 words"
    )
    two = wrong("3 obj", "0 obj")
    assert two.startswith("crfkit: wrong.conllu:6: ")
    assert "root" in two
    run("train-parser", "wrong.conllu", "--model", "m.parser", "--quiet", "--multi-root")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nosuch.conllu", "--model", "m"], "nosuch.conllu: cannot be read: No such file"),
        (
            ["train.conllu", "--model", "train.conllu"],
            "train.conllu: the model would replace the file it is made of",
        ),
        (["train.conllu", "--model", "no/where"], "no/where: cannot be written"),
        (
            ["train.conllu", "--model", "m", "--optimizer", "nosuch"],
            "--optimizer nosuch: there is no such one",
        ),
        (["train.conllu", "--model", "m", "--set", "memory=3"], "--optimizer adagrad has no setting memory"),
        (["train.conllu", "--model", "m", "--l2", "-1"], "l2 is -1.0, expected a number from 0 on"),
    ],
)
def test_what_training_refuses(arguments: list[str], words: str) -> None:
    assert words in complaint("train-parser", *arguments)


def test_ctrl_c_before_the_first_iteration_writes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*arguments: Any, **settings: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(crfkit.Parser, "fit", interrupted)
    said = run("train-parser", "train.conllu", "--model", "m.parser", status=130).stderr
    assert said == "train.conllu: 3 sentences, 10 words, 6 relations\ncrfkit: interrupted\n"
    assert not Path("m.parser").exists()


@pytest.mark.skipif(os.name == "nt", reason="signals are sent as on POSIX")
def test_ctrl_c_saves_the_best_model_and_exits_with_130() -> None:
    limits = ["--max-iterations", "1000000", "--tolerance", "0", "--l2", "1e-9"]
    rest = interrupted_training(
        "train-parser", "train.conllu", "--model", "m.parser", "--optimizer", "lbfgs", *limits
    )
    assert "crfkit: interrupted; the best model so far is in m.parser" in rest
    assert crfkit.load("m.parser").stop_reason_ == StopReason.INTERRUPTED


# ---- parse


def test_a_learnt_treebank_comes_back_byte_by_byte(model: str) -> None:
    text = Path("train.conllu").read_text(encoding="utf-8")
    assert run("parse", model, "train.conllu").stdout == text
    write("bare.conllu", re.sub(r" \d+ (det|nsubj|root|obj|aux|advmod) ", " _ _ ", TREES))
    assert run("parse", model, "bare.conllu").stdout == text
    assert run("parse", model, "-", text=Path("bare.conllu").read_bytes()).stdout == text
    assert run("parse", model, "bare.conllu", "--output", "out.conllu").stdout == ""
    assert Path("out.conllu").read_text(encoding="utf-8") == text
    run("parse", model, "bare.conllu", "--out", "out.conllu", "--threads", "2")
    assert Path("out.conllu").read_text(encoding="utf-8") == text


def test_probabilities_of_arcs_in_misc(model: str) -> None:
    found = read(run("parse", model, "train.conllu", "--probabilities").stdout)
    tables = crfkit.load(model).arc_probabilities(found)
    for sentence, table in zip(found, tables, strict=True):
        for number, word in enumerate(sentence.words, 1):
            assert word.misc.endswith(f"p={table[word.head, number]:.4f}")
            assert word.misc.count("p=") == 1
    assert found[0].words[4].misc.startswith("SpaceAfter=No|p=")
    assert found[1].words[3].misc.startswith("Foo=Bar|p=")


def test_the_n_best_trees(model: str) -> None:
    found = read(run("parse", model, "train.conllu", "--nbest", "3", "--probabilities").stdout)
    assert [sentence.comments[0] for sentence in found] == [
        f"# rank = {n}" for n in (1, 2, 3, 1, 2, 3, 1, 2, 3)
    ]
    assert found[0].comments[2] == "# sent_id = 1"
    shares = [float(sentence.comments[1].removeprefix("# probability = ")) for sentence in found[:3]]
    assert shares == sorted(shares, reverse=True)
    assert sum(shares) <= 1.0
    [best] = crfkit.load(model).predict_nbest(found[:1], 1)
    assert shares[0] == pytest.approx(best[0].probability, abs=1e-6)
    assert all("p=" in word.misc for sentence in found for word in sentence.words)


def test_minimum_risk(model: str) -> None:
    found = read(run("parse", model, "train.conllu", "--decode", "mbr").stdout)
    expected = crfkit.load(model).predict(read_conllu("train.conllu"), decode="mbr")
    assert [sentence.words for sentence in found] == [sentence.words for sentence in expected]
    assert "--nbest and --decode mbr were given" in complaint(
        "parse", model, "train.conllu", "--nbest", "2", "--decode", "mbr"
    )


@pytest.mark.parametrize(
    ("options", "asked"), [([], None), (["--decode", "best"], "best"), (["--decode", "mbr"], "mbr")]
)
def test_the_way_to_decode_reaches_the_parser(
    model: str, options: list[str], asked: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = []
    predict = crfkit.Parser.predict

    def watched(self: crfkit.Parser, sentences: Any, *, decode: str | None = None) -> list[Sentence]:
        seen.append(decode)
        return predict(self, sentences, decode=decode)

    monkeypatch.setattr(crfkit.Parser, "predict", watched)
    run("parse", model, "train.conllu", *options)
    assert seen == [asked]


def test_trees_are_drawn(model: str) -> None:
    run("parse", model, "train.conllu", "--svg", "pictures/new", "--nbest", "2")
    files = sorted(Path("pictures/new").iterdir())
    assert [file.name for file in files] == ["00001.svg", "00002.svg", "00003.svg"]
    texts = [text.text for text in ET.parse(files[0]).iter("{http://www.w3.org/2000/svg}text")]
    assert {"dog", "nsubj", "VERB"} <= set(texts)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["m.parser", "nosuch.conllu"], "nosuch.conllu: cannot be read: No such file"),
        (
            ["m.parser", "train.txt"],
            "train.txt:1: found a line without tabs, expected the 10 tab-separated columns of CoNLL-U",
        ),
        (["train.conllu", "train.conllu"], "train.conllu: not a crfkit model file"),
        (["m.parser", "train.conllu", "--svg", "train.txt/x"], "train.txt/x: no folder can be made there"),
        (["m.crf", "train.conllu"], "m.crf: not a parser: a model of labels, for crfkit tag"),
    ],
)
def test_what_parsing_refuses(model: str, arguments: list[str], words: str) -> None:
    Path("train.txt").write_text("the D\ndog N\n")
    run("train", "train.txt", "--model", "m.crf", "--quiet")
    assert words in complaint("parse", *arguments)


def test_a_parser_is_no_tagger(model: str) -> None:
    assert model in complaint("tag", model, "train.conllu")


def test_sentences_of_one_and_of_500_words_between_empty_lines(model: str) -> None:
    rows = [f"{number}\tdog\tdog\tNOUN\t_\t_\t_\t_\t_\t_" for number in range(1, 501)]
    Path("long.conllu").write_text("\n\n" + rows[0] + "\n\n\n\n" + "\n".join(rows) + "\n\n\n")
    one, many = read(run("parse", model, "long.conllu", "--svg", "pictures").stdout)
    assert [word.head for word in one.words] == [0]
    assert len(many.words) == 500
    check_tree(many)
    assert Path("pictures/00002.svg").stat().st_size > 500 * 100
    Path("blank.conllu").write_text("\n\n")
    assert "blank.conllu: the file has no sentence" in complaint("parse", model, "blank.conllu")


# ---- eval


def test_eval_prints_the_figures(model: str) -> None:
    write("gold.conllu", TREES.replace("3 obj", "2 nmod").replace("4 aux", "4 advmod"))
    gold = list(read_conllu("gold.conllu"))
    report = evaluate_trees(gold, crfkit.load(model).predict(gold))
    printed = run("eval", model, "gold.conllu").stdout
    assert printed == f"{report}\n\n{report.table()}\n"
    assert printed.splitlines()[:4] == [
        "words: 10; sentences: 3; wholly correct: 33.33%",
        "UAS 90.00%",
        "LAS 80.00%",
        "CLAS 80.00%",
    ]
    assert "\nlabel accuracy 80.00%\n" in printed
    assert run("eval", model, "gold.conllu", "--confusion", "0").stdout == f"{report}\n"
    assert run("eval", model, "gold.conllu", "--confusion", "1").stdout == f"{report}\n\n{report.table(1)}\n"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (
            ["train.conllu", "--separator", ","],
            "--separator is about files of columns and labels, but m.parser is a parser",
        ),
        (["train.conllu", "--allow-unknown"], "--allow-unknown is about files of columns"),
        (["train.conllu", "--allowed-column", "0"], "--allowed-column is about files of columns"),
        (["bare.conllu"], "bare.conllu:6: 5 'cat' has no HEAD, expected the number of a word or 0"),
        (
            ["circle.conllu"],
            "circle.conllu:2: the heads form a cycle, 1 'the' → 2 'dog' → 1 'the', expected a tree",
        ),
        (["nosuch.conllu"], "nosuch.conllu: cannot be read"),
    ],
)
def test_what_eval_refuses(model: str, options: list[str], words: str) -> None:
    write("bare.conllu", TREES.replace("3 obj", "_ _"))
    write("circle.conllu", TREES.replace("3 nsubj _ _", "1 nsubj _ _", 1))
    assert words in complaint("eval", model, *options)


def test_two_roots_can_be_compared_with(model: str) -> None:
    write("roots.conllu", TREES.replace("3 obj", "0 root"))
    assert "UAS 90.00%" in run("eval", model, "roots.conllu").stdout
