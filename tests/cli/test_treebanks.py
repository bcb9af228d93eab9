"""`crfkit eval GOLD SYSTEM` of two treebanks."""

from __future__ import annotations

from pathlib import Path

import pytest

from crfkit.evaluation import evaluate_treebank
from tests.cli.commands import complaint, run

GOLD = """\
# text = Dogs bark. Cats sleep.
1	Dogs	dog	NOUN	NNS	Number=Plur	2	nsubj	_	_
2	bark	bark	VERB	VBP	_	0	root	_	SpaceAfter=No
3	.	.	PUNCT	.	_	2	punct	_	_

1	Cats	cat	NOUN	NNS	Number=Plur	2	nsubj	_	_
2	sleep	sleep	VERB	VBP	_	0	root	_	_
"""
SYSTEM = """\
1	Dogs	dog	NOUN	NNS	Number=Plur	2	nsubj	_	_
2	bark.	bark.	VERB	VBP	_	0	root	_	_
3	Cats	cat	NOUN	NNS	Number=Plur	4	nsubj	_	_
4	sleep	sleep	VERB	VBP	_	2	conj	_	_
"""


@pytest.fixture(autouse=True)
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("gold.conllu").write_text(GOLD, encoding="utf-8")
    Path("system.conllu").write_text(SYSTEM.replace("\n", "\r\n"), encoding="utf-8", newline="")


def test_the_table() -> None:
    report = evaluate_treebank("gold.conllu", "system.conllu")
    assert report["Tokens"].correct == 3
    assert run("eval", "gold.conllu", "system.conllu").stdout == f"{report}\n"
    assert run("eval", "gold.conllu", "-", text=SYSTEM).stdout == f"{report}\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["gold.conllu", "none.conllu"], "none.conllu"),
        (
            ["gold.conllu", "system.conllu", "--spans"],
            "--spans is about files of columns and labels, but gold.conllu is a",
        ),
        (["gold.conllu", "other.conllu"], "gold.conllu:2: the texts differ after 'Dog': gold has 's"),
        (["gold.conllu", "cycle.conllu"], "cycle.conllu:2: the heads form a cycle, 2 'bark.' → 4 'sleep'"),
        (
            ["gold.conllu", "columns.txt"],
            "columns.txt:1: found 2 tab-separated columns, expected the 10 of CoNLL-U",
        ),
        (
            ["bad.conllu", "system.conllu"],
            "bad.conllu:2: the HEAD is 'x', expected the number of a word, 0 or _",
        ),
    ],
)
def test_bad_input(arguments: list[str], message: str) -> None:
    Path("other.conllu").write_text(SYSTEM.replace("Dogs", "Dog"), encoding="utf-8")
    Path("cycle.conllu").write_text(SYSTEM.replace("\t0\troot", "\t4\troot"), encoding="utf-8")
    Path("columns.txt").write_text("Dogs\tNOUN\n", encoding="utf-8")
    Path("bad.conllu").write_text(GOLD.replace("\t2\tnsubj", "\tx\tnsubj"), encoding="utf-8")
    assert message in complaint("eval", *arguments)


def test_model_and_treebank_in_the_wrong_order() -> None:
    Path("plain.txt").write_text("dogs N\nbark V\n\n", encoding="utf-8")
    run("train", "plain.txt", "--model", "m.crf")
    expected = (
        "m.crf is a model, and gold.conllu a treebank: expected the model first, crfkit eval MODEL FILE"
    )
    assert expected in complaint("eval", "gold.conllu", "m.crf")
    Path("text.txt").write_text("Dogs bark.\n", encoding="utf-8")
    expected = "text.txt:1: found a line without tabs, expected the 10 tab-separated columns of CoNLL-U (raw text is for"
    assert expected in complaint("eval", "gold.conllu", "text.txt")
