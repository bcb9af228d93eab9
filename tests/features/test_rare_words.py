"""Templates that ask how often training data have a word, against features that are made by hand from counts."""

from __future__ import annotations

import pickle
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from crfkit import CRF, Template, load
from crfkit.data import open_dataset
from crfkit.errors import FileFormatError, TemplateError, UnsupportedError
from crfkit.features import (
    ColumnRows,
    Encoder,
    EncodingSettings,
    FrequentWords,
    encode_files,
    encode_pairs,
    encode_part,
)
from crfkit.models import average_models
from tests.cli.commands import run

TEXT = """
word=%x[0,0]
suffix2|rare=%suffix[0,0,2]|%rare[0,0,3]
tag|rare=%x[-1,1]|%rare[-1,1,2]
transition once=%lower[0,0]|%rare[0,0,2]
B
"""
rng = np.random.default_rng(5)
WORDS = ["dog", "cat", "dogs", "cats", "runs", "walks", "a", "the", "Łódź", "seen", "rarely"]
X = [
    [
        (WORDS[min(int(rng.zipf(1.5)) - 1, 10)], f"T{int(rng.zipf(1.7)) % 7}")
        for _ in range(int(rng.integers(1, 9)))
    ]
    for _ in range(30)
]
Y = [["N" if word.endswith("s") else "V" if tag < "T3" else "D" for word, tag in x] for x in X]
NEW = [[("new", "T0"), ("dogs", "T9")], [("rarely", "T1"), ("cat", "T1"), ("a", "T2")]]


def by_hand(data: list[Any], i: int, x: Any) -> tuple[list[str], list[str]]:
    """The features of position i, by counting all of the data each time."""
    words = Counter(word for one in data for word, _ in one)
    tags = Counter(tag for one in data for _, tag in one)
    word = x[i][0]
    states = [f"word={word}"]
    if len(word) >= 2 and words[word] < 3:
        states.append(f"suffix2|rare={word[-2:]}|1")
    if i == 0:
        states.append("tag|rare=_B-1|_B-1")
    elif tags[x[i - 1][1]] < 2:
        states.append(f"tag|rare={x[i - 1][1]}|1")
    return states, [f"once={word.lower()}|1"] if i and words[word] < 2 else []


def names_of(encoder: Encoder, dataset: Any) -> list[tuple[list[str], list[str]]]:
    """The names of the features of each position."""
    found = []
    for vocabulary, features in (
        (encoder.vocabulary, dataset.states),
        (encoder.arc_vocabulary, dataset.arcs),
    ):
        names, ptr = vocabulary.names(), features.position_ptr.tolist()
        found.append([[names[f] for f in features.ids[a:b]] for a, b in pairwise(ptr)])
    return [*zip(*found, strict=True)]


def test_features_are_those_of_counts() -> None:
    encoder = Encoder(Template.parse(TEXT))
    found = names_of(encoder, encoder.fit_encode(map(iter, X)))
    assert found == [by_hand(X, i, x) for x in X for i in range(len(x))]
    assert any("rare=" in name for states, _ in found for name in states)
    again = names_of(encoder, encoder.encode(NEW))
    known = {*encoder.vocabulary.names()}, {*encoder.arc_vocabulary.names()}
    expected = [by_hand(X, i, x) for x in NEW for i in range(len(x))]
    assert again == [
        tuple([name for name in names if name in some] for names, some in zip(pair, known, strict=True))
        for pair in expected
    ]
    template = encoder.template
    assert template is not None
    assert [template.expand(x, i) for x in NEW for i in range(len(x))] == [
        (states, [*arcs, "B"] if arcs or i else arcs)
        for x in NEW
        for i in range(len(x))
        for states, arcs in [by_hand(X, i, x)]
    ]
    assert Template.parse(TEXT).expand([("dogs", "T")], 0)[0][1] == "suffix2|rare=gs|1"  # it has seen nothing


def as_file(path: Path, data: Any, labels: Any) -> Path:
    lines = [
        "".join(f"{a}\t{b}\t{c}\n" for (a, b), c in zip(x, y, strict=True))
        for x, y in zip(data, labels, strict=True)
    ]
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


def test_data_in_every_form_train_the_same_model(tmp_path: Path) -> None:
    file = as_file(tmp_path / "train.txt", X, Y)
    crf = CRF(features=TEXT, l2=0.5).fit(X, Y, shard_size=40)
    pairs: Iterator[Any] = iter(zip(map(iter, X), Y, strict=True))
    stored = encode_files(file, tmp_path / "stored", features=Template.parse(TEXT), shard_size=40)
    listed = encode_pairs(pairs, tmp_path / "pairs", features=Template.parse(TEXT), shard_size=40)
    models = [
        CRF(features=TEXT, l2=0.5).fit(str(file), shard_size=40),
        CRF(features=TEXT, l2=0.5).fit(iter(zip(X, Y, strict=True)), shard_size=40),
        CRF(l2=0.5).fit(stored),
        CRF(l2=0.5).fit(listed),
        CRF(features=TEXT, l2=0.5).fit(open_dataset(tmp_path / "stored")),
    ]
    rows = ColumnRows.read(file, label_column=2)
    models.append(CRF(features=TEXT, l2=0.5).fit(rows, rows.labels, shard_size=40))
    for other in models:
        assert other.weights_.tolist() == crf.weights_.tolist()
        assert other.predict_marginals(NEW)[1].tolist() == crf.predict_marginals(NEW)[1].tolist()
    assert not (tmp_path / "pairs" / "pairs").exists()


def counts_of(crf: CRF[Any]) -> FrequentWords | None:
    template = crf._model.potentials.encoder.template
    return None if template is None else template.counts


def test_models_keep_the_counts(tmp_path: Path) -> None:
    crf = CRF(features=TEXT, l2=0.5).fit(X, Y)
    crf.save(tmp_path / "m")
    for again in (load(tmp_path / "m"), pickle.loads(pickle.dumps(crf))):
        assert again.predict_marginals(NEW)[0].tolist() == crf.predict_marginals(NEW)[0].tolist()
    explained = crf.explain(NEW[0], 0)
    assert sum(part.value for part in explained.parts) == pytest.approx(explained.log_odds)
    before = counts_of(crf)
    crf.partial_fit([[("dogs", "T1")] * 9], [["N"] * 9])  # features mean what they meant
    assert counts_of(crf) == before
    other = CRF(features=TEXT).fit(X[:10], Y[:10])
    with pytest.raises(UnsupportedError, match="expected models of the same features"):
        average_models([crf, other])


def test_hashed_features_and_presets() -> None:
    text = "word=%x[0,0]\nsuffix2|rare=%suffix[0,0,2]|%rare[0,0,3]\nB"
    crf = CRF(features=text, hash_bits=12).fit([[w for w, _ in x] for x in X], Y)
    assert crf.predict([["dogs", "new"]])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("r=%rare[0,0]", r"expected %rare\[row,column,count\] with whole numbers"),
        ("r=%rare[0,0,0]", "count 0 is below 1"),
        ("r=%rare[0,0,x]", r"expected %rare\[row,column,count\]"),
        ("r=%often[0,0]", "unknown function %often: expected one of x, .*, rare"),
    ],
)
def test_errors(text: str, message: str) -> None:
    with pytest.raises(TemplateError, match=message):
        Template.parse(text)


def test_counts_in_files() -> None:
    counts = FrequentWords({0: {"Łódź": 3, "\udcff": 2}, 2: {"": 5}})
    assert FrequentWords.from_arrays(counts.to_arrays()) == counts
    assert FrequentWords.from_arrays(FrequentWords({}).to_arrays()) == FrequentWords({})
    for name, damaged in (
        ("names", np.frombuffer(b"\xff" * 9, np.uint8)),
        ("lengths", np.array([1, 2])),
        ("lengths", np.array([-1, 2, 8])),
        ("counts", np.array([1.5, 2.0, 3.0])),
        ("columns", None),
    ):
        with pytest.raises(FileFormatError, match="counts of words"):
            FrequentWords.from_arrays({**counts.to_arrays(), name: damaged})


def test_a_part_alone_cannot_be_encoded() -> None:
    with pytest.raises(UnsupportedError, match="%rare counts the words of all sequences"):
        encode_part([(X[0], Y[0])], EncodingSettings(Template.parse(TEXT)))


def test_the_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    as_file(Path("train.txt"), X, Y)
    Path("template.txt").write_text(TEXT)
    run("train", "train.txt", "--template", "template.txt", "--model", "m.crf", "--quiet", "--l2", "0.5")
    assert "suffix2|rare=" in run("inspect", "m.crf").stdout
    run("encode", "train.txt", "--template", "template.txt", "--out", "stored", "--quiet")
    run("train", "stored", "--model", "n.crf", "--quiet", "--l2", "0.5")
    assert run("tag", "m.crf", "train.txt").stdout == run("tag", "n.crf", "train.txt").stdout
    np.testing.assert_allclose(load("m.crf").weights_, load("n.crf").weights_, atol=1e-6)
