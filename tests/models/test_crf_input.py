"""Input and parameters for which `fit` raises, or warns, before it begins."""

from __future__ import annotations

import pickle
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse

import crfkit
from crfkit import CRF, LBFGS, Chain, Template
from crfkit.data import fewest_weights
from crfkit.errors import ArgumentError, FeatureError, UnsavableError
from crfkit.features import PRESETS, preset
from crfkit.models import UnknownLabels, UnreadColumns, UnsavableModel
from crfkit.models.training.training_set import TrainingInput

WORDS = [["The", "dog", "runs"], ["A", "cat", "sees"]] * 4
TAGS = [["D", "N", "V"]] * 8
SHORT = LBFGS(max_iterations=3)


def positions(value: Any) -> list[Any]:
    return [[{"a": 1.0}], [{"a": 1.0}, {"b": value}]]


# ---- presets


@pytest.mark.parametrize(
    "X",
    [
        WORDS,
        [[(word,) for word in words] for words in WORDS],
        [[], *WORDS],
        [np.array(words, dtype=object) for words in WORDS],
    ],
    ids=["words", "rows", "empty first", "arrays"],
)
def test_a_preset_makes_do_with_the_columns_there_are(X: list[Any], tmp_path: Path) -> None:
    y = [["D", "N", "V"][: len(x)] for x in X]
    crf = CRF(features="chunks").fit(X, y)
    assert crf.n_columns_ == 1
    assert crf.encoder_.template == preset("chunks", 1) != preset("chunks")
    assert crf.predict([["The", "cat"]]) == [["D", "N"]]
    crf.save(tmp_path / "m.crf")
    for again in (crfkit.load(tmp_path / "m.crf"), pickle.loads(pickle.dumps(crf))):
        assert again.features == "chunks"
        assert again.encoder_.template == crf.encoder_.template
        np.testing.assert_array_equal(again.predict_marginals(X)[-1], crf.predict_marginals(X)[-1])
    rows = [[(word, "X") for word in words] for words in WORDS]
    assert again.fit(rows, TAGS).encoder_.template == preset(
        "chunks"
    )  # the parameter is the preset, not its lines


def test_names_reads_parts_of_speech_where_there_are() -> None:
    rows = [[(word, tag) for word, tag in zip(*pair, strict=True)] for pair in zip(WORDS, TAGS, strict=True)]
    spans = [["B-X" if tag == "N" else "O" for tag in tags] for tags in TAGS]
    with_tags, without = CRF(features="names").fit(rows, spans), CRF(features="names").fit(WORDS, spans)
    added = {*with_tags.encoder_.vocabulary.names()} - {*without.encoder_.vocabulary.names()}
    assert {name.partition("=")[0] for name in added} == {"pos[-1]", "pos[1]", "pos[-1]|pos[1]"}
    assert with_tags.encoder_.template == preset("names") == preset("names", 3)
    assert without.encoder_.template == preset("names", 1)
    with pytest.raises(FeatureError, match="sequence 0, position 0"):
        with_tags.predict(WORDS)
    with pytest.raises(FeatureError, match="sequence 0, position 0"):
        without.predict(rows)
    with pytest.warns(UnreadColumns, match="no feature reads column 1"):
        chosen = CRF(features=preset("names", 1)).fit(rows, spans)
    assert {*chosen.encoder_.vocabulary.names()} == {*without.encoder_.vocabulary.names()}


def test_a_preset_reads_iterators_once() -> None:
    crf = CRF(features="chunks").fit([iter(words) for words in WORDS], TAGS)
    assert crf.predict(WORDS) == TAGS


def test_a_preset_of_nothing_is_refused() -> None:
    with pytest.raises(FeatureError):
        CRF(features="pos").fit([[()]], [["D"]])
    with pytest.raises(FeatureError, match="sequence 0, position 0"):
        CRF(features="pos").fit([[7]], [["D"]])
    with pytest.raises(FeatureError, match="sequence 0"):
        CRF(features="pos").fit(["ab"], [["D"]])


@pytest.mark.parametrize("name", ["Base", "Names", "Unames", "BIO", "chunk", "", "names ", "U 1"])
def test_mistyped_presets_are_refused(name: str) -> None:
    with pytest.raises(ArgumentError) as raised:
        CRF(features=name).fit(WORDS, TAGS)
    assert str(raised.value) == (
        f"features is {name!r}, expected the name of a preset ({', '.join(PRESETS)}), or a template: "
        "lines that begin with U or B, or with a name and =; crfkit.Template.read(path) reads a template from a file"
    )


@pytest.mark.parametrize(
    "text",
    [
        "U",
        "B",
        "B00",
        "U00:%x[0,0]",
        "Uword=%x[0,0]",
        "U1:",
        "# x\nU",
        "U%x[0,0]",
        "w[-1]|w=%x[0,0]",
        "bias=1",
    ],
)
@pytest.mark.filterwarnings("ignore::crfkit.models.UnreadColumns")
@pytest.mark.filterwarnings("ignore::crfkit.models.UninformativeData")
def test_templates_of_one_line(text: str) -> None:
    assert CRF(features=text, optimizer=SHORT).fit(WORDS, TAGS).encoder_.template == Template(text)


# ---- labels


@pytest.mark.parametrize("label", [complex(1, 2), b"x", float("inf"), "\ud800", ("a", b"x")])
def test_labels_that_no_file_can_hold_are_said_at_once(label: Any, tmp_path: Path) -> None:
    with pytest.warns(
        UnsavableModel, match="this model cannot be saved or pickled: the label .* cannot be saved"
    ):
        crf = CRF().fit([[["a"], ["b"]]], [[label, 1]])
    assert crf.predict([[["a"], ["b"]]]) == [[label, 1]]
    with pytest.raises(UnsavableError):
        crf.save(tmp_path / "m.crf")
    assert list(tmp_path.iterdir()) == []


def test_so_many_labels_need_weights() -> None:
    assert fewest_weights(1024) == 0
    assert fewest_weights(8192) == 65_536
    n = 4000
    X, y = [[["bias"]] * n], [list(range(n))]
    few = "it has 8,001 weights for 4,000 labels, expected at least 15,625"
    assert (
        TrainingInput(X, y, None, CRF(all_possible_transitions=False)._settings())
        .learn()
        .model.find_unsavable()
        == few
    )
    model = TrainingInput(X, y, None, CRF()._settings()).learn().model
    assert model.find_unsavable() is None
    assert model.prune(np.zeros(model.n_weights))[0].find_unsavable() is None


def test_the_weights_that_a_file_needs_are_not_pruned() -> None:
    n = 1100
    X, y = [[[f"{i}.{k}" for k in range(3)] for i in range(n)]], [list(range(n))]
    crf = CRF(Chain(start=False, end=False), all_possible_transitions=False)
    model = TrainingInput(X, y, None, crf._settings()).learn().model
    weights = np.zeros(model.n_weights)
    assert len(weights) == 3 * n + n - 1 > fewest_weights(n) > n - 1
    assert model.prune(weights)[0].find_unsavable() is None
    weights[:n] = 1.0
    assert len(model.prune(weights)[1]) == n + n - 1


def test_labels_that_only_the_dev_set_has() -> None:
    dev = (WORDS[:2], [["D", None, {"N", "V"}], [{"D", "Q"}, "X", {"Y", "Z"}]])
    with pytest.warns(UnknownLabels) as warned:
        crf = CRF(features="pos").fit(WORDS, TAGS, dev=dev)
    assert [str(warning.message) for warning in warned] == [
        "dev sequence 1, position 1: the label 'X' does not occur in training; such labels count as errors, at 2 positions"
    ]
    assert warned[0].filename == __file__
    assert crf.score(*dev) == 3 / 5
    CRF(features="pos", optimizer=SHORT).fit(WORDS, TAGS, dev=(WORDS[:1], [["D", None, "V"]]))  # no warning


# ---- numbers


@pytest.mark.parametrize("n_threads", [2**40, 2**64, 4097])
def test_too_many_threads(n_threads: int) -> None:
    with pytest.raises(ArgumentError, match=f"n_threads is {n_threads:,}, expected at most 4,096"):
        CRF(n_threads=n_threads).fit([[["a"]]], [["x"]])


def test_counts_beyond_what_the_core_counts_to() -> None:
    crf = CRF().fit([[["a"], ["b"]]], [["x", "y"]])
    for ask in (crf.predict_nbest, crf.sample):
        with pytest.raises(ArgumentError, match="n"):
            ask([[["a"]]], 2**40)


@pytest.mark.parametrize("value", [1e300, -1e300, 1.1e20])
@pytest.mark.parametrize(
    ("form", "words"),
    [
        (positions, "feature 'b' has the value"),
        (
            lambda value: [np.ones((1, 2)), np.array([[1.0, 2.0], [3.0, value]])],
            "column 1 of block 'x' has the value",
        ),
        (
            lambda value: [sparse.csr_matrix([[1.0]]), sparse.csr_matrix([[1.0], [value]])],
            "feature 'x:0' has",
        ),
        (lambda value: [[{"v": np.ones(1)}], [{}, {"v": np.array([value])}]], "column 0 of block 'v' has"),
    ],
    ids=["dicts", "matrices", "sparse", "rows"],
)
def test_values_that_overflow(form: Callable[[float], list[Any]], words: str, value: float) -> None:
    y = [["x"], ["x", "y"]]
    with pytest.raises(
        FeatureError, match=f"sequence 1, position 1: {words}.*{re.escape(str(value))}"
    ) as raised:
        CRF().fit(form(value), y)
    assert str(raised.value).endswith("expected a finite number, at most 1e20 in size")
    crf = CRF().fit(form(1e20), y)
    assert np.isfinite(crf.weights_).all()
    with pytest.raises(FeatureError, match="sequence 1, position 1"):
        crf.predict(form(value))


@pytest.mark.parametrize("weight", [1e38, 1.1e15, np.inf, np.nan, -1.0])
def test_sample_weights_that_overflow(weight: float) -> None:
    X, y = positions(1.0), [["x"], ["x", "y"]]
    with pytest.raises(ArgumentError, match="sample_weight"):
        CRF().fit(X, y, sample_weight=[1.0, weight])
    assert np.isfinite(CRF().fit(X, y, sample_weight=[1.0, 1e15]).weights_).all()
