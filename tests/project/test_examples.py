"""The networks of `examples`: each learns a handful of sentences by heart."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="PyTorch is not installed (pip install '.[torch]')")

from examples import parser, tagger
from examples.components import NeuralParser, NeuralTagger
from examples.training import Settings

from crfkit import Pipeline, Tokenizer
from crfkit.data import check_tree, read_conllu

SENTENCES = [
    "the DET 2 det|dog NOUN 3 nsubj|sees VERB 0 root|a DET 5 det|cat NOUN 3 obj",
    "cats NOUN 2 nsubj|sleep VERB 0 root|here ADV 2 advmod",
    "run VERB 0 root|! PUNCT 1 punct",
    "she PRON 2 nsubj|saw VERB 0 root|him PRON 2 obj|in ADP 6 case|the DET 6 det|house NOUN 2 obl",
]


@pytest.fixture
def arguments(tmp_path: Path) -> list[str]:
    """Files with these sentences, and few epochs."""
    blocks = []
    for sentence in SENTENCES:
        rows = [word.split() for word in sentence.split("|")]
        blocks.append(
            "".join(
                f"{i}\t{form}\t{form}\t{upos}\t_\t_\t{head}\t{relation}\t_\t_\n"
                for i, (form, upos, head, relation) in enumerate(rows, 1)
            )
        )
    file = tmp_path / "few.conllu"
    file.write_text("\n".join(blocks) + "\n", encoding="utf-8")
    named = [argument for name in ("train", "dev", "test") for argument in (f"--{name}", str(file))]
    return [
        *named,
        "--epochs",
        "25",
        "--n-words",
        "6",
        "--rate",
        "0.005",
        "--hidden",
        "50",
        "--device",
        "cpu",
    ]


def test_the_tagger_learns(
    arguments: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tagger, "Tagger", partial(tagger.Tagger, dropout=0.1))
    tagger.main(arguments)
    assert float(capsys.readouterr().out.split()[-1]) > 90


def test_the_parser_learns(
    arguments: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parser, "Parser", partial(parser.Parser, dropout=0.1))
    parser.main(arguments)
    words = capsys.readouterr().out.split()
    assert float(words[words.index("LAS") + 1]) > 80


def test_the_networks_join_a_pipeline(arguments: list[str]) -> None:
    settings = Settings(epochs=2, n_words=20)
    learned = list(read_conllu(arguments[1]))
    stages = [Tokenizer(n_threads=1), NeuralTagger(8, 0.1, settings), NeuralParser(8, 0.1, settings)]
    pipeline = Pipeline(stages, folds=2, n_threads=1).fit(learned, dev=learned)
    [found] = pipeline("the dog sees a cat", input="sentences")
    assert [word.form for word in found.words] == ["the", "dog", "sees", "a", "cat"]
    assert {word.upos for word in found.words} <= {word.upos for s in learned for word in s.words}
    assert {word.deprel for word in found.words} <= {word.deprel for s in learned for word in s.words}
    check_tree(found)
