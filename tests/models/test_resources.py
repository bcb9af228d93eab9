"""Models that read lexicons, word clusters and word vectors: training, files, pickles, presets, errors."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import crfkit
from crfkit import CRF, Clusters, Lexicon, Template, WordVectors
from crfkit.errors import ArgumentError, FeatureError, FileFormatError, NotLoadedError
from crfkit.features import Resource, resource_lines

CITIES = Lexicon.build({"city": ["New York", "Rome", "Oslo"], "person": ["Ada", "York"]})
BROWN = Clusters.build({"New": "0100", "York": "0101", "Rome": "011", "lives": "10", "in": "11"})
VECTORS = WordVectors.build({"Rome": [1.0, 0.0], "Oslo": [0.9, 0.1], "lives": [0.0, 1.0]})
TEMPLATE = "word=%x[0,0]\nplace=%in[0,0,cities,city]\npath=%cluster[0,0,2]\nv=%vector[0,0,w]\nB"
RESOURCES: dict[str, Resource] = {"cities": CITIES, "brown": BROWN, "w": VECTORS}
X = [["Ada", "lives", "in", "New", "York"], ["Rome", "lives"], ["in", "Rome"]]
Y = [["PER", "O", "O", "LOC", "LOC"], ["LOC", "O"], ["O", "LOC"]]
UNSEEN = [["in", "Oslo"]]


def trained(**settings: Any) -> CRF:
    given: dict[str, Any] = {"features": TEMPLATE, "resources": RESOURCES, "l2": 0.1}
    return CRF(**given | settings).fit(X, Y)


def test_resources_are_features_of_unseen_words() -> None:
    crf = trained()
    assert crf.predict(UNSEEN) == [["O", "LOC"]]
    bare = CRF(features="word=%x[0,0]\nB", l2=0.1).fit(X, Y)
    known, plain = crf.predict_marginals(UNSEEN)[0][1], bare.predict_marginals(UNSEEN)[0][1]
    place = crf.classes_.index("LOC")
    assert known[place] > 0.8 > plain[place]
    assert {"place=S", "place=B", "place=E", "path=01"} <= set(crf.encoder_.vocabulary.names())
    assert crf.encoder_.dense_sizes == {"v": 2}


def test_a_template_with_resources_of_its_own() -> None:
    template = Template.parse(TEMPLATE).bind(RESOURCES)
    crf = CRF(features=template, l2=0.1).fit(X, Y)
    np.testing.assert_array_equal(crf.weights_, trained().weights_)
    assert pickle.loads(pickle.dumps(crf)).predict(UNSEEN) == crf.predict(UNSEEN)


def test_a_model_file_names_its_resources(tmp_path: Path) -> None:
    path, crf = tmp_path / "model.crf", trained()
    crf.save(path)
    loaded = crfkit.load(path, resources=RESOURCES)
    assert loaded.predict_marginals(UNSEEN)[0].tolist() == crf.predict_marginals(UNSEEN)[0].tolist()
    assert loaded.resources == RESOURCES
    loaded.save(tmp_path / "again.crf")
    assert (tmp_path / "again.crf").read_bytes() == path.read_bytes()
    bare = crfkit.load(path)
    assert bare.classes_ == crf.classes_
    with pytest.raises(
        NotLoadedError, match=r"needs the lexicon 'cities' \(digest .{8}…\), which was not loaded"
    ):
        bare.predict(UNSEEN)
    with pytest.raises(NotLoadedError, match="clusters 'brown'"):
        crfkit.load(path, resources={"cities": CITIES}).predict(UNSEEN)
    with pytest.raises(NotLoadedError):
        bare.save(tmp_path / "bundled.crf", bundle=True)
    with pytest.raises(ArgumentError, match="'cities' is not what the model was trained with: lexicon"):
        crfkit.load(path, resources={"cities": Lexicon.build(["Rome"])})
    with pytest.raises(
        ArgumentError, match=r"'brown' is not what the model was trained with: clusters.*given lexicon"
    ):
        crfkit.load(path, resources={"brown": CITIES})
    with pytest.raises(
        ArgumentError, match="resources has 'towns', but the model needs 'brown', 'cities', 'w'"
    ):
        crfkit.load(path, resources={"towns": CITIES})


def test_bundled_resources(tmp_path: Path) -> None:
    path, crf = tmp_path / "model.crf", trained()
    crf.save(path, bundle=True)
    loaded = crfkit.load(path)
    assert loaded.predict_marginals(UNSEEN)[0].tolist() == crf.predict_marginals(UNSEEN)[0].tolist()
    assert loaded.resources == RESOURCES
    again = pickle.loads(pickle.dumps(loaded))
    assert again.predict(UNSEEN) == crf.predict(UNSEEN)
    from crfkit.models import read_model_file, write_model_file

    file = read_model_file(path)
    name = "resource.cities"
    for other in (Lexicon.build(["x"]).to_bytes(), CITIES.to_bytes()[:-100], b"x"):
        arrays = file.arrays | {name: np.frombuffer(other, np.uint8)}
        write_model_file(file._replace(arrays=arrays), tmp_path / "bad.crf")
        with pytest.raises(FileFormatError):
            crfkit.load(tmp_path / "bad.crf")


@pytest.mark.parametrize("preset", ["names", "pos"])
def test_presets_have_lines_for_resources(tmp_path: Path, preset: str) -> None:
    crf = trained(features=preset)
    assert {"cities.city[-1]=B", "cities.city=E", "brown4=0100", "brown[1]=10"} <= set(
        crf.encoder_.vocabulary.names()
    )
    assert crf.encoder_.dense_sizes == {"w[-1]": 2, "w": 2, "w[1]": 2}
    crf.save(tmp_path / "model.crf")
    loaded = crfkit.load(tmp_path / "model.crf", resources=RESOURCES)
    assert loaded.features == preset
    assert loaded.predict(UNSEEN) == crf.predict(UNSEEN) == [["O", "LOC"]]
    assert isinstance(crfkit.load(tmp_path / "model.crf").features, Template)


def test_lines_of_resources() -> None:
    flat = Clusters.build({"a": "17"})
    lines = resource_lines(
        {"c": flat, "one": Lexicon.build(["x"]), "odd": Lexicon.build({"a,b": ["x"], "c": ["y"]})}, (0,)
    )
    assert lines.split("\n") == ["c=%cluster[0,0,c]", "odd=%in[0,0,odd]", "one=%in[0,0,one]"]


def test_pickles_and_copies_and_further_training() -> None:
    from sklearn.base import clone

    crf = trained()
    again = pickle.loads(pickle.dumps(crf))
    assert again.predict_marginals(UNSEEN)[0].tolist() == crf.predict_marginals(UNSEEN)[0].tolist()
    assert clone(crf).resources == RESOURCES
    crf.partial_fit([["to", "Oslo"]], [["O", "LOC"]])
    assert crf.predict(UNSEEN) == [["O", "LOC"]]
    assert crf.fit(X, Y, start=again).predict(UNSEEN) == [["O", "LOC"]]


@pytest.mark.parametrize("given", [None, {**RESOURCES, "cities": Lexicon.build({"city": ["Paris"]})}])
def test_pickles_have_the_resources_of_training_whatever_the_parameter_is_now(given: Any) -> None:
    crf = trained()
    expected = crf.predict_marginals(UNSEEN)[0]
    again = pickle.loads(pickle.dumps(crf.set_params(resources=given)))
    np.testing.assert_array_equal(again.predict_marginals(UNSEEN)[0], expected)
    assert again.resources == given


def test_errors() -> None:
    with pytest.raises(FeatureError, match=r"features:2: %in reads the lexicon 'cities'.*CRF\(resources="):
        CRF(features=TEMPLATE).fit(X, Y)
    with pytest.raises(ArgumentError, match="resources has 'towns', but the macros of the template read"):
        trained(resources={**RESOURCES, "towns": CITIES})
    with pytest.raises(ArgumentError, match="but features is no template"):
        CRF(resources={"cities": CITIES}).fit([[["a"]]], [["A"]])
    with pytest.raises(ArgumentError, match=r"resources\['cities'\] is of type str.*Lexicon\.read\(path"):
        trained(resources={"cities": "cities.txt"})
    with pytest.raises(ArgumentError, match=r"is of type list.*Lexicon\.build\(entries"):
        trained(resources={"cities": ["Rome"]})
    with pytest.raises(ArgumentError, match="the name 'my cities'"):
        trained(resources={"my cities": CITIES})
    with pytest.raises(FeatureError, match="features:1: the lexicon 'cities' has no list 'town'"):
        trained(features="a=%in[0,0,cities,town]\nB", resources={"cities": CITIES})
