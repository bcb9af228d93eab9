"""Models with tag dictionaries and facets: what they predict, what they save, and what is refused."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

from crfkit import CRF, LBFGS, Chain, TagDictionary, Template, load
from crfkit.errors import ArgumentError, FeatureError
from crfkit.features.facets import Facets
from crfkit.models import heaviest_features, transition_weights
from crfkit.models.training.training_set import TrainingInput

X = [
    ["ἡ", "καλὴ", "θάλασσα"],
    ["ὁ", "καλὸς", "λόγος"],
    ["τὴν", "καλὴν", "θάλασσαν", "ὁρῶ"],
    ["τὸν", "καλὸν", "λόγον", "λέγω"],
    ["ὁ", "λόγος"],
]
Y = ["lsfn asfn nsfn", "lsmn asmn nsmn", "lsfa asfa nsfa v1--", "lsma asma nsma v1--", "lsmn nsmn"]
y = [tags.split() for tags in Y]
FEW = LBFGS(max_iterations=30)
SOFT = Chain(bigrams="observed", unseen="soft")


def trained(**parameters: Any) -> CRF:
    settings: dict[str, Any] = {"structure": SOFT, "features": "morphology", "optimizer": FEW, "l2": 0.1}
    return CRF(**{**settings, "tag_dictionary": True, "facets": "characters", **parameters}).fit(X, y)


def kinds(label: str) -> dict[str, str]:
    return {"pos": label[0], "case": label[-1]}


def enumerate_characters(label: str) -> list[tuple[str, str]]:
    return [(str(place), character) for place, character in enumerate(label) if character != "-"]


def test_words_have_only_labels_of_the_dictionary() -> None:
    dictionary = TagDictionary.from_data(X, y, min_count=2, ending_count=1)
    crf = trained(tag_dictionary=dictionary)
    assert crf.predict(X) == y
    new = [["καλὸς", "ἄλλον", "ὁ"], ["λέγω"]]
    marginals = crf.predict_marginals(new)
    for words, rows, labels in zip(new, marginals, crf.predict(new), strict=True):
        for word, row, label in zip(words, rows, labels, strict=True):
            allowed = dictionary.allowed_labels(word)
            assert label in allowed
            assert {crf.classes_[k] for k in np.flatnonzero(row)} == set(allowed)
    assert crf.log_probability([["ὁ"]], [["v1--"]])[0] == -np.inf


def test_what_a_user_allows_goes_before_the_dictionary() -> None:
    crf = trained(tag_dictionary=TagDictionary.from_data(X, y, min_count=2, ending_count=1))
    assert crf.predict([["ὁ", "λόγος"]]) == [["lsmn", "nsmn"]]
    assert crf.predict([["ὁ", "λόγος"]], allowed=[[{"v1--"}, None]]) == [["v1--", "nsmn"]]


@pytest.mark.filterwarnings("ignore::crfkit.models.UnusedEntries")
def test_labels_of_the_training_data_are_added_to_a_lexicon() -> None:
    lexicon = TagDictionary.from_lexicon({"ὁ": ["lsmn"], "λόγος": ["zzzz"], "λόγον": ["nsfa"]})
    crf = trained(tag_dictionary=lexicon)
    assert "zzzz" not in crf.classes_
    assert crf.predict([["λόγον"]]) == [["nsfa"]]  # in training it could be nsma too
    partly: list[list[Any]] = [[None, {"asfn", "asma"}, "nsfn"], *y[1:]]
    assert CRF(SOFT, "morphology", FEW, tag_dictionary=lexicon).fit(X, partly).predict([["ὁ"]]) == [["lsmn"]]


def test_facets_share_weights() -> None:
    seen, unseen = ["ἡ", "καλὴ", "ψυχή"], ["lsfn", "asfn", "nsfn"]
    crf = trained(tag_dictionary=None)
    assert crf.predict([seen]) == [unseen]
    pairs = crf.feature_map_.pair_labels
    assert pairs.min() > len(crf.classes_)  # facets alone
    names = {weight.feature.rpartition(" ")[2] for weight in heaviest_features(crf, "nsfn", 1000)}
    assert names == {"[0=n]", "[1=s]", "[2=f]", "[3=n]"}
    arcs = {(arc.before, arc.after) for arc in transition_weights(crf)}
    assert {("3=n", "3=n"), ("lsfn", "asfn"), (None, "lsfn")} <= arcs


def test_whole_labels_stand_beside_facets() -> None:
    crf = trained(tag_dictionary=None, facets="characters+labels")
    names = {weight.feature.rpartition(" [")[2] for weight in heaviest_features(crf, "nsfn", 1000)}
    assert names == {"0=n]", "1=s]", "2=f]", "3=n]", "whole label=nsfn]"}
    listed = {label: {**dict(enumerate_characters(label)), "all": label} for label in crf.classes_}
    own = trained(tag_dictionary=None, facets=listed)
    for one, other in zip(crf.predict_marginals(X), own.predict_marginals(X), strict=True):
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-9)


def test_whole_labels_alone_are_no_facets() -> None:
    assert Facets.find(["NN", "VB"], "auto+labels") is None
    found = Facets.find(["n-s", "v--"], "auto+labels")
    assert found is not None
    assert found.of(["n-s", "v--"])["v--"] == {"0": "v", "whole label": "v--"}
    with pytest.raises(ArgumentError, match="facets"):
        Facets.build(["NN", "VB"], "+labels")


@pytest.mark.parametrize("dictionary", [None, TagDictionary.from_data(X, y, min_count=2, ending_count=1)])
def test_all_pairs_are_those_of_facets_that_positions_may_have(dictionary: TagDictionary | None) -> None:
    crf = CRF(SOFT, all_possible_states=True, facets="characters", tag_dictionary=dictionary)
    model = TrainingInput(X, y, None, crf._settings(), Template.parse("U:%x[0,0]\nB")).learn().model
    feature_map = model.potentials.feature_map
    classes, facets = model.labels.classes, feature_map.facets
    pairs, ptr = feature_map.pair_labels, feature_map.pair_ptr
    assert facets is not None
    for sequence, labels in zip(X, y, strict=True):
        for word, label in zip(sequence, labels, strict=True):
            f = model.potentials.encoder.vocabulary.get(f"U:{word}")
            possible = classes if dictionary is None else [*dictionary.allowed_labels(word), label]
            expected = {f"{place}={c}" for tag in possible for place, c in enumerate(str(tag)) if c != "-"}
            found = [facets.names[k - len(classes) - 1] for k in pairs[ptr[f] : ptr[f + 1]].tolist()]
            assert found == sorted(expected)


@pytest.mark.parametrize("facets", [False, "auto", "characters", "auto+labels", kinds])
@pytest.mark.parametrize("dictionary", [False, True, TagDictionary.from_data(X, y, min_count=1)])
def test_models_are_saved_with_them(facets: Any, dictionary: Any, tmp_path: Path) -> None:
    crf = trained(facets=facets, tag_dictionary=dictionary)
    crf.save(tmp_path / "m.crf")
    again = load(tmp_path / "m.crf")
    new = [["καλὸς", "ἄλλον", "ὁ"], ["λέγω"]]
    for one, other in zip(crf.predict_marginals(new), again.predict_marginals(new), strict=True):
        np.testing.assert_array_equal(one, other)
    again.save(tmp_path / "again.crf")
    assert (tmp_path / "m.crf").read_bytes() == (tmp_path / "again.crf").read_bytes()
    if facets is kinds:
        assert again.facets == {label: kinds(label) for label in crf.classes_}
    else:
        assert again.facets == facets
    if isinstance(dictionary, TagDictionary):
        assert again.tag_dictionary.words == dictionary.words
    else:
        assert again.tag_dictionary is dictionary
    refitted = clone(again).fit(X, y)
    assert refitted.predict(X) == crf.predict(X)
    assert pickle.loads(pickle.dumps(crf)).predict(new) == crf.predict(new)


def test_sequences_that_can_be_read_only_once() -> None:
    crf = CRF(SOFT, "morphology", FEW, tag_dictionary=True).fit([iter(words) for words in X], y)
    assert crf.predict([iter(words) for words in X]) == crf.predict(X)


def test_complaints() -> None:
    with pytest.raises(ArgumentError, match="facets"):
        trained(facets="bio")
    with pytest.raises(ArgumentError, match="tag_dictionary"):
        trained(tag_dictionary=3)
    with pytest.raises(FeatureError, match="sequence 0, position 0"):
        CRF(tag_dictionary=True).fit([[{"w": "a"}]], [["x"]])
    with pytest.raises(ArgumentError, match="facets"):
        trained(facets=lambda label: {"a=b": label})


def test_facets_that_are_no_mapping_are_refused() -> None:
    characters: Any = list
    with pytest.raises(ArgumentError, match="facets"):
        CRF(facets=characters).fit([[[word] for word in words] for words in X], y)
