"""What is in a model can be seen, whatever kind of model it is: `describe` in Python, `crfkit inspect` on files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from crfkit import CRF, LBFGS, Chain, FeatureFunctions, Parser, Pattern, Patterns
from crfkit.cli.inspect import as_text
from crfkit.models import NotFittedError, describe
from tests.cli.commands import run
from tests.oracles.treebanks import random_treebank

WORDS = [["the", "dog", "runs"], ["a", "cat", "runs"], ["dogs", "run"]]
TAGS = [["D", "N", "V"], ["D", "N", "V"], ["N", "V"]]
CASES = [["n-s", "v-s", "n-p"][: len(words)] for words in WORDS]
SHORT = LBFGS(max_iterations=5)


def same(x: list[str], label: str, i: int) -> float:
    """A feature function that a file can name."""
    return float(x[i][0] == label[0].lower())


def models() -> dict[str, Any]:
    """Models of every kind that can be saved, untrained, with their data."""
    rows = [np.eye(3)[: len(words)] for words in WORDS]
    return {
        "dicts": (CRF(optimizer=SHORT), [[{"w": word} for word in words] for words in WORDS], TAGS),
        "dense": (CRF(optimizer=SHORT), rows, TAGS),
        "preset": (CRF(features="pos", optimizer=SHORT), WORDS, TAGS),
        "transition": (
            CRF(features="word=%x[0,0]\ntransition word=%x[0,0]\nB", optimizer=SHORT),
            WORDS,
            TAGS,
        ),
        "functions": (CRF(features=FeatureFunctions([same]), optimizer=SHORT), WORDS, TAGS),
        "patterns": (CRF(Patterns([Pattern("D N V")]), features="pos", optimizer=SHORT), WORDS, TAGS),
        "facets": (CRF(features="pos", facets="characters", optimizer=SHORT), WORDS, CASES),
        "dictionary": (CRF(features="pos", tag_dictionary=True, optimizer=SHORT), WORDS, TAGS),
        "bigrams": (CRF(Chain(bigrams="observed"), features="pos", optimizer=SHORT), WORDS, TAGS),
        "numbers": (
            CRF(features="pos", optimizer=SHORT),
            WORDS,
            [[0, 1, 2][-len(words) :] for words in WORDS],
        ),
    }


@pytest.mark.parametrize("kind", models())
def test_every_kind_of_sequence_model(kind: str, tmp_path: Path) -> None:
    model, X, y = models()[kind]
    model.fit(X, y)
    description = describe(model, 50)
    assert description["type"] == "CRF"
    assert description["sizes"]["weights"] == len(model.weights_)
    assert json.loads(json.dumps(description)) == description
    model.save(tmp_path / "m.crf")
    shown = run("inspect", str(tmp_path / "m.crf"), "--top", "50").stdout
    read = json.loads(run("inspect", str(tmp_path / "m.crf"), "--top", "50", "--json").stdout)
    for part in (
        "labels",
        "sizes",
        "training",
        "transitions",
        "bigrams",
        *(name for name in read if "heaviest" in name),
    ):
        assert read[part] == description[part]
    assert shown.startswith(f"labels ({len(model.classes_)}): ")
    wanted = {
        "preset": "word=the",
        "transition": "word=dog",
        "functions": "same",
        "patterns": "D N V",
        "facets": "]",
        "numbers": "0 → 1",
        "dense": "x[0]",
        "dicts": "w:the",
        "dictionary": "labels (3): D N V",
        "bigrams": "5 of 16 pairs",
    }
    assert wanted[kind] in shown


def test_a_label_that_is_0_is_not_the_start() -> None:
    crf = CRF(features="pos", optimizer=SHORT).fit(WORDS, [[0, 1, 2], [0, 1, 2], [1, 2]])
    shown = as_text(describe(crf, 0))
    assert "0 → 1" in shown
    assert "(start) → 0" in shown


def test_a_parser(tmp_path: Path) -> None:
    parser = Parser().fit(random_treebank([3, 5, 4], 0))
    description = describe(parser)
    assert description["type"] == "Parser"
    assert description["labels"] == parser.classes_
    sizes = description["sizes"]
    assert sizes["weights"] == len(parser.weights_) == sizes["arc weights"] + sizes["label weights"]
    of_labels = description["weights of labels"]
    assert sum(count for count, _ in of_labels.values()) == sizes["label weights"]
    squares = parser.weights_[sizes["arc weights"] :] ** 2
    assert sum(norm**2 for _, norm in of_labels.values()) == pytest.approx(squares.sum(), rel=1e-12)
    path = str(tmp_path / "m.parser")
    parser.save(path)
    assert json.loads(run("inspect", path, "--json").stdout)["weights of labels"] == of_labels
    shown = run("inspect", path).stdout
    assert shown.startswith(f"labels ({len(parser.classes_)}): {' '.join(parser.classes_)}")
    for label in parser.classes_:
        assert f"\n  {label}  " in shown
    said = run("inspect", path, "--on", path, status=2).output
    assert f"--on is about models with patterns, but {path} is a parser" in said


def test_a_model_that_is_not_trained() -> None:
    for model in (CRF(), Parser()):
        with pytest.raises((NotFittedError, ValueError), match="not trained"):
            describe(model)
