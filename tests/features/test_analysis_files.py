"""Tag dictionaries of outside analyses: UniMorph and other full-form files, joined with training data."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from crfkit import CRF, LBFGS
from crfkit.errors import ArgumentError, EmptyDataError, FileFormatError
from crfkit.features import TagDictionary
from tests.features.test_tag_dictionary import corpus

UNIMORPH = """\
amo\tamat\tV;IND;PRS;3;SG
rosa\trosa\tN;NOM;SG
rosa\trosa\tN;ABL;SG

rosa\trosam\tN;ACC;SG\tr|osam
res publica\tres publica\tN;NOM;SG
"""
LABELS: dict[str, Any] = {"N;NOM;SG": "n-sn", "N;ABL;SG": ["n-sb", "n-sv"], "N;ACC;SG": "n-sa"}


def write(folder: Path, text: str) -> Path:
    path = folder / "words.tsv"
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize("mapping", [LABELS, LABELS.get])
def test_unimorph_features_become_labels(mapping: Any, tmp_path: Path) -> None:
    dictionary = TagDictionary.from_unimorph(write(tmp_path, UNIMORPH), mapping)
    assert dictionary.allowed_labels("Rosa") == ("n-sb", "n-sn", "n-sv")
    assert dictionary.allowed_labels("rosam") == ("n-sa",)
    assert "amat" not in dictionary  # its tag has no label
    assert "res publica" not in dictionary


def test_a_form_may_stand_first_and_tags_may_be_labels(tmp_path: Path) -> None:
    path = write(tmp_path, "rosa\trosa\tn-sn\r\nrosa\trosa\tn-sb\r\nrosam\trosa\tn-sa")
    dictionary = TagDictionary.from_analyses(path)
    assert dictionary.classes == ("n-sa", "n-sb", "n-sn")
    assert dictionary.allowed_labels("rosa") == ("n-sb", "n-sn")
    assert dictionary.allowed_labels("aqua") == dictionary.classes  # endings are asked for
    assert TagDictionary.from_analyses(path, ending_length=2, ending_count=1).allowed_labels("aquam") == (
        "n-sa",
    )


def test_complaints(tmp_path: Path) -> None:
    with pytest.raises(FileFormatError, match=r"words\.tsv:2: expected lemma, form, tag"):
        TagDictionary.from_unimorph(write(tmp_path, "a\tb\tN\nc d e\n"))
    with pytest.raises(FileFormatError, match=":1:"):
        TagDictionary.from_unimorph(write(tmp_path, "a\t\tN\n"))
    with pytest.raises(EmptyDataError, match="'V;IND;PRS;3;SG'"):
        TagDictionary.from_unimorph(write(tmp_path, UNIMORPH), {})
    with pytest.raises(EmptyDataError):
        TagDictionary.from_unimorph(write(tmp_path, "\n"))
    for columns in (("word", "tag"), ("form", "tag", "tag"), "form"):
        with pytest.raises(ArgumentError, match=r'columns is .*one is "form" and one is "tag"'):
            TagDictionary.from_analyses(write(tmp_path, UNIMORPH), columns=columns)  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="mapping is 3"):
        TagDictionary.from_unimorph(write(tmp_path, UNIMORPH), 3)  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="V;IND;PRS;3;SG"):
        TagDictionary.from_unimorph(write(tmp_path, UNIMORPH), lambda tag: [{tag: 1}])


def test_joined_dictionaries_allow_what_either_does() -> None:
    for seed in range(20):
        ones = TagDictionary.from_data(*corpus(seed, 20), min_count=2, ending_count=3)
        others = TagDictionary.from_data(*corpus(seed + 100, 20), min_count=1, ending_length=0)
        kept = others.bind_labels(others.classes[:-2])  # words without a label may have all
        for dictionary in (others, kept):
            joint = ones.join(dictionary)
            assert set(joint.words) == {*ones.words, *dictionary.words}
            for word in joint.words:
                holding = [d for d in (ones, dictionary) if word in d]
                listed = [set(d.allowed_labels(word)) for d in holding]
                free = any(set(d.classes) == has for d, has in zip(holding, listed, strict=True))
                expected = set(joint.classes) if free else set.union(*listed)
                assert set(joint.allowed_labels(word)) == expected


def test_outside_analyses_decide_what_training_did_not_show(tmp_path: Path) -> None:
    X, y = [["rosa", "floret"], ["rosam", "amat"]], [["n-sn", "v3s-"], ["n-sa", "v3s-"]]
    outside = TagDictionary.from_unimorph(write(tmp_path, UNIMORPH + "fama\tfama\tN;NOM;SG\n"), LABELS)
    joint = TagDictionary.from_data(X, y, ending_count=1).join(outside)
    assert joint.allowed_labels("fama") == ("n-sn",)
    crf = CRF(features="morphology", optimizer=LBFGS(max_iterations=20), tag_dictionary=joint).fit(X, y)
    assert crf.predict([["fama", "amat"]]) == [["n-sn", "v3s-"]]
