"""`fit(start=…)`: a model that has little in common with the one that is trained does not go unnoticed."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import pytest

from crfkit import CRF, LBFGS, Parser
from crfkit.data import Sentence, Word
from crfkit.features import encode_pairs
from crfkit.models import UnusedStart

SHORT = LBFGS(max_iterations=3)
X = [[[f"w={'abcdefgh'[(n + i) % 8]}", f"n={i}"] for i in range(4)] for n in range(8)]
y = [["AB"[(n + i) % 2] for i in range(4)] for n in range(8)]
OTHER = [[[f.replace("=", ":") for f in position] for position in x] for x in X]

pytestmark = pytest.mark.filterwarnings("ignore::crfkit.models.ConvergenceWarning")


def start_from(first: CRF[Any], inputs: Any = X, labels: Any = y, **settings: Any) -> str:
    """What is warned about."""
    with pytest.warns(UnusedStart) as found:
        CRF(optimizer=SHORT, **settings).fit(inputs, labels, start=first)
    return str(found[0].message)


def test_the_log_has_the_numbers_of_weights(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "crfkit")
    first = CRF(optimizer=SHORT).fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error", UnusedStart)
        CRF(optimizer=SHORT).fit(X, y, start=first)
        CRF(optimizer=SHORT).fit(X[:2], y[:2], start=first)  # fewer features, all of them known
        CRF(optimizer=SHORT).fit([*X, *OTHER * 3], [*y, *y * 3], start=first)
    n = len(first.weights_)
    assert f"{n} of the {n} weights of start are used, this model has {n}" in caplog.text


@pytest.mark.parametrize(("bits", "others"), [(None, 6), (6, None), (7, 6)])
def test_buckets_and_names(bits: int | None, others: int | None) -> None:
    """Transitions are the same, and no feature."""
    long = [x * 30 for x in X]  # numbers make features of each position
    inputs = [[[*f, f"t={t}", f"u={t}"] for t, f in enumerate(x)] for x in long]
    labels = [labels * 30 for labels in y]
    first = CRF(optimizer=SHORT, hash_bits=bits).fit(inputs, labels)
    text = start_from(first, inputs, labels, hash_bits=others)
    known = {None: "their names", 6: "2^6 buckets of their names", 7: "2^7 buckets of their names"}
    assert f"start knows features by {known[bits]}, this model by {known[others]}" in text
    assert f" of the {len(first.weights_):,} weights of start are used" in text
    assert "all others begin at 0" in text


def test_other_features_and_other_labels(tmp_path: Path) -> None:
    first, second = (
        [[[f"{f}{k}" for f in position for k in range(20)] for position in x] for x in inputs]
        for inputs in (X, OTHER)
    )
    model = CRF(optimizer=SHORT).fit(first, y)
    assert "no feature in common, which are such as 'w=a0' and 'w:a0'" in start_from(model, second)
    data = encode_pairs(zip(second, y, strict=True), tmp_path / "d")
    with pytest.warns(UnusedStart, match="no feature in common"):
        CRF(optimizer=SHORT).fit(data, start=model)
    text = start_from(model, first, [[label.lower() for label in labels] for labels in y])
    assert text.startswith(f"0 of the {len(model.weights_):,} weights of start are used")
    assert "no label in common" in text


def test_parsers() -> None:
    def trees(form: str, relation: str) -> list[Sentence]:
        words = [Word(form, head=2, deprel=relation), Word(form * 2, head=0, deprel=f"root{relation}")]
        return [Sentence(words)] * 4

    parser = Parser(optimizer=SHORT).fit(trees("a", "x"))
    with warnings.catch_warnings():
        warnings.simplefilter("error", UnusedStart)
        Parser(optimizer=SHORT).fit(trees("a", "x"), start=parser)
    other = Parser(optimizer=SHORT).fit(trees("bc", "y"), start=parser)  # tags and distances are the same
    assert other._model.find_difference(parser._model) == "they have no relation in common"
