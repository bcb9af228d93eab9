"""Parameters that a preset brings along: used where none are given, and kept by files, copies and the command line."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

from crfkit import CRF, LBFGS, Chain, Patterns, Segments, load
from crfkit.features import PRESETS, guess_facets
from crfkit.features.facets import Facets
from crfkit.models.recommended import RECOMMENDED, STANDARD
from tests.cli.commands import run

X = [["bona", "puella"], ["bonus", "servus"], ["bonam", "puellam"], ["bonum", "servum"]]
y = [["a-sfn", "n-sfn"], ["a-smn", "n-smn"], ["a-sfa", "n-sfa"], ["a-sma", "n-sma"]]
ABSENT = {"facets", "tag_dictionary", "span_states"}  # parameters that False leaves out


@pytest.mark.parametrize("features", [None, *PRESETS])
def test_what_is_not_given_is_recommended_or_standard(features: str | None) -> None:
    found = CRF(features=features).get_params(deep=False)
    expected = {**STANDARD, **RECOMMENDED.get(features or "", {}), "features": features}
    assert {name: found[name] for name in expected} == expected
    assert repr(CRF()) == "CRF()"


@pytest.mark.parametrize("name", STANDARD)
def test_what_is_given_wins_even_if_it_is_the_standard(name: str) -> None:
    value: Any = False if name in ABSENT else copy.copy(STANDARD[name])
    crf = CRF(features="morphology", **{name: value})
    assert getattr(crf, name) == ({"default": 1.0, "near": 20.0} if name == "l2" else value)
    usual = {**STANDARD, **RECOMMENDED["morphology"]}
    assert all(getattr(crf, other) == usual[other] for other in STANDARD if other != name)


def test_a_number_scales_the_penalties_of_the_preset() -> None:
    scaled = {"default": 0.5, "near": 10.0}
    crf = CRF(features="morphology", l2=0.5)
    assert crf.l2 == CRF(features="morphology").set_params(l2=np.float64(0.5)).l2 == clone(crf).l2 == scaled
    assert crf.fit(X, y).l2_ == scaled
    given = {"default": 0.5, "near": 1.0}
    assert CRF(features="morphology", l2=given).l2 is given
    assert CRF(features="morphology", l2={"default": 0.5}).l2 == {"default": 0.5}
    assert CRF(features="morphology", l2="auto").l2 == "auto"
    assert CRF(Segments(), "morphology", l2=0.5).l2 == CRF(features="pos", l2=0.5).l2 == 0.5
    assert CRF(features="names", l2=0.1).l2 == {"default": 0.1, "character": 0.01}
    assert CRF(features="names", l2=1 / 3).l2["default"] == 1 / 3  # type: ignore[index]
    search = GridSearchCV(CRF(features="morphology"), {"l2": [0.5]}, cv=2).fit(X, y)
    assert search.best_estimator_.l2_ == scaled


def test_hashed_features_have_no_blocks() -> None:
    assert CRF(features="names").l2 == {"default": 1.0, "character": 0.1}
    crf = CRF(features="names", hash_bits=10)
    assert (crf.l2, clone(crf).l2, crf.set_params(l2=0.5).l2) == (1.0, 1.0, 0.5)
    assert crf.fit(X, y).l2_ == 0.5


def test_other_features_have_other_blocks() -> None:
    assert CRF(features="names").set_params(features="pos").l2 == 1.0
    assert CRF(features="names", l2=0.3).set_params(features="pos").l2 == 0.3
    assert CRF(features="names").set_params(hash_bits=10).l2 == 1.0
    given = {"default": 0.3, "character": 2.0}
    assert CRF(features="names", l2=given).set_params(features="pos").l2 is given
    assert CRF(features="names").set_params(features="pos", l2=given).l2 is given
    search = GridSearchCV(CRF(features="names"), {"features": ["names", "pos"]}, cv=2, error_score="raise")
    search.fit(X, y)


def test_one_number_for_all_blocks_stays_one(tmp_path: Path) -> None:
    crf = CRF(features="morphology")
    crf.l2 = 0.5  # as in model files that were written before numbers were scaled
    assert clone(crf).l2 == {"default": 0.5}
    crf.fit(X, y).save(tmp_path / "m.crf")
    again = load(tmp_path / "m.crf")
    assert again.l2_ == {"default": 0.5}
    assert (again.fit(X, y).weights_ == crf.weights_).all()


@pytest.mark.parametrize("structure", [Segments(), Chain(), Patterns(["a b"])])
def test_recommendations_are_for_chains(structure: Any) -> None:
    is_chain = not isinstance(structure, Segments)
    assert CRF(structure, "morphology").tag_dictionary == ("related" if is_chain else None)


def test_the_recommended_parameters_can_be_seen() -> None:
    assert "tag_dictionary='related'" in repr(CRF(features="morphology"))
    crf = CRF(features="morphology").set_params(optimizer__max_iterations=3)
    assert crf.optimizer.max_iterations == 3  # type: ignore[union-attr]


def test_a_preset_that_is_set_later_brings_nothing_along() -> None:
    crf = CRF().set_params(features="morphology")
    assert (crf.l2, crf.min_count) == (1.0, 1)
    copied = clone(crf)  # refuses a model whose copy has other parameters
    assert (bool(copied.facets), bool(copied.tag_dictionary)) == (False, False)
    assert repr(eval(repr(crf), {"CRF": CRF, "Chain": Chain, "LBFGS": LBFGS})) == repr(crf) == repr(copied)


@pytest.mark.parametrize(
    "given", [{}, {"facets": False, "tag_dictionary": False}, {"optimizer": LBFGS(), "l2": 1.0}]
)
def test_copies_and_files_keep_what_was_used(given: dict[str, Any], tmp_path: Path) -> None:
    crf = CRF(features="morphology", **given)
    fresh = crf.get_params(deep=False)
    assert clone(crf).get_params(deep=False) == fresh
    crf.fit(X, y).save(tmp_path / "m.crf")
    for again in (load(tmp_path / "m.crf"), pickle.loads(pickle.dumps(crf))):
        assert again.get_params(deep=False) == fresh
        assert again.predict(X) == crf.predict(X)


def test_the_command_line_trains_the_same_model(tmp_path: Path) -> None:
    file, model = tmp_path / "train.txt", tmp_path / "m.crf"
    rows = [zip(words, tags, strict=True) for words, tags in zip(X, y, strict=True)]
    file.write_text("".join("".join(f"{a}\t{b}\n" for a, b in row) + "\n" for row in rows), encoding="utf-8")
    command = ["train", str(file), "--model", str(model), "--features", "morphology", "--quiet"]
    run(*command)
    crf = CRF(features="morphology").fit([[(word,) for word in words] for words in X], y)
    assert load(model).get_params(deep=False) == crf.get_params(deep=False)
    assert (load(model).weights_ == crf.weights_).all()
    options = [
        "--facets",
        "none",
        "--no-tag-dictionary",
        "--optimizer",
        "lbfgs",
        "--l2",
        "0.5",
        "--all-possible-transitions",
    ]
    run(*command, *options)
    found = load(model)
    assert (found.facets, found.tag_dictionary, found.l2, found.all_possible_transitions) == (
        False,
        False,
        {"default": 0.5, "near": 10.0},
        True,
    )
    assert isinstance(found.optimizer, LBFGS)


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        (["n-s---mn-", "v3spia---", "u--------"], "characters"),
        (["Case=Nom|Number=Sing", "Case=Acc", "_"], "features"),
        (["NOUN|Case=Nom", "VERB|Tense=Past", "ADV"], "features"),
        (["subst:sg:nom", "fin:sg", "interp"], "parts"),
        (["NN|UTR|SIN", "VB|PRS", "AB"], "parts"),
        (["NN", "VBZ", "DT", "PRP$"], None),
        (["B-LOC", "I-LOC", "O"], None),
        ([1, 2], None),
        ([], None),
    ],
)
def test_facets_by_the_look_of_labels(labels: list[Any], expected: str | None) -> None:
    assert guess_facets(labels) == expected
    found = Facets.find(labels, "auto")
    assert (None if found is None else found.names) == (
        None if expected is None else Facets.build(labels, expected).names
    )


def test_parts_of_labels_by_their_places() -> None:
    assert Facets.build(["subst:sg:nom", "fin:sg", "NN|-|SIN"], "parts").names == (
        "0=NN",
        "0=fin",
        "0=subst",
        "1=sg",
        "2=SIN",
        "2=nom",
    )


@pytest.mark.parametrize("trained", [False, True])
def test_pickles_of_versions_with_fewer_parameters(trained: bool) -> None:
    """What they did not know is standard: Viterbi, no margin, no span states."""
    crf = CRF(features="names", l2=0.5, span_states="auto")
    if trained:
        crf.fit([["in", "Bonn"]], [["O", "B-LOC"]])
    state = crf.__getstate__()
    for name in ("decode", "margin", "span_states"):
        del state["params"][name]
    again: CRF = CRF.__new__(CRF)
    again.__setstate__(state)
    expected = crf.get_params(deep=False) | {"decode": "auto" if trained else "viterbi", "margin": 0.0}
    expected["span_states"] = "auto" if trained else None
    assert repr(again.get_params(deep=False)) == repr(expected)
    assert again.fit([["in", "Bonn"]], [["O", "B-LOC"]]).predict([["in", "Bonn"]]) == [["O", "B-LOC"]]
