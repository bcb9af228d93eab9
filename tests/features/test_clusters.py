"""Word clusters: text files, lookups, macros of templates."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from crfkit import Clusters, Template
from crfkit.errors import ArgumentError, FeatureError, FileFormatError, TemplateError
from crfkit.features import ClusteredWord, open_resource

PATHS = "0010\tParis\t20\n0011\tRome\t10\n01\tthe\t99\n1\truns\t3\n"


def test_paths_files(tmp_path: Path) -> None:
    path = tmp_path / "paths"
    path.write_text(PATHS, encoding="utf-8")
    clusters = Clusters.read(path, tmp_path / "mapped")
    assert clusters == Clusters.load(tmp_path / "mapped") == open_resource(path)
    assert clusters["Rome"] == "0011"
    assert clusters.get("Rome", 2) == "00"
    assert clusters.get("runs", 2) == "1"
    assert clusters.get("rome") is None
    assert "rome" not in clusters
    assert len(clusters) == 4
    assert clusters.words()[0] == ClusteredWord("Paris", "0010", 20)
    clusters.write(tmp_path / "written")
    assert (tmp_path / "written").read_text(encoding="utf-8") == PATHS
    assert pickle.loads(pickle.dumps(clusters)) == clusters
    with pytest.raises(KeyError):
        clusters["Oslo"]


def test_flat_classes(tmp_path: Path) -> None:
    path = tmp_path / "classes"
    path.write_text("Paris 17\nRome 17\n1 4\n", encoding="utf-8")
    clusters = Clusters.read(path)
    assert [clusters.get(word) for word in ("Paris", "Rome", "1")] == ["17", "17", "4"]


def test_folded_words_have_the_class_of_the_most_frequent() -> None:
    words = [ClusteredWord("may", "0", 5), ClusteredWord("May", "1", 9), ClusteredWord("MAY", "01", 1)]
    clusters = Clusters.build(words, fold_case=True)
    assert [clusters.get(word) for word in ("may", "May", "mAY")] == ["1", "1", "1"]


def test_features_and_macros(tmp_path: Path) -> None:
    clusters = Clusters.build({"Paris": "001011", "runs": "11"})
    assert clusters.features(["Paris", "Oslo"], lengths=(2, None)) == [["cluster2=00", "cluster=001011"], []]
    template = Template.parse(
        "a=%cluster[0,0]\nb=%cluster[0,0,4]\nc=%cluster[1,0,brown,2]\nd=%cluster[0,0,brown]"
    ).bind({"brown": clusters})
    assert template.expand(["Paris", "runs"], 0) == (["a=001011", "b=0010", "c=11", "d=001011"], [])
    assert template.expand(["x", "Oslo"], 0) == ([], [])


def test_errors(tmp_path: Path) -> None:
    path = tmp_path / "bad"
    path.write_text("0010\tParis\t20\nRome\n", encoding="utf-8")
    with pytest.raises(FileFormatError, match=r"bad:2: expected a path, a word and its count"):
        Clusters.read(path)
    with pytest.raises(ArgumentError, match="expected words with strings"):
        Clusters.build({"a": 3})  # type: ignore[arg-type]
    for text in ("a=%cluster[0,0,]", "a=%cluster[0,0,0]", "a=%cluster[0,0,4,brown]", "a=%cluster[0]"):
        with pytest.raises(TemplateError, match="expected %cluster"):
            Template.parse(text)
    one, two = Clusters.build({"a": "0"}), Clusters.build({"a": "1"})
    with pytest.raises(FeatureError, match="there are several: one, two"):
        Template.parse("a=%cluster[0,0]").bind({"one": one, "two": two}).check_resources()
    with pytest.raises(FeatureError, match=r"CRF\(resources=\{'clusters': crfkit.Clusters"):
        Template.parse("a=%cluster[0,0]").check_resources()
    with pytest.raises(
        FeatureError, match="template:2: %in reads the lexicon 'cities', but it was not given"
    ):
        Template.parse("U\na=%in[0,0,cities]").check_resources()
    with pytest.raises(
        FeatureError, match="template:1: %in reads lexicon, but 'one' is of the kind clusters"
    ):
        Template.parse("a=%in[0,0,one]").bind({"one": one}).check_resources()


@pytest.mark.parametrize(
    ("word", "path"), [("a\tb", "0"), ("a\nb", "0"), ("", "0"), ("a", ""), ("a", "0\t1"), ("\ud800", "0")]
)
def test_what_a_text_file_cannot_hold_leaves_it_as_it_is(word: str, path: str, tmp_path: Path) -> None:
    file = tmp_path / "paths"
    file.write_text(PATHS, encoding="utf-8")
    with pytest.raises(ArgumentError, match="a line of a text file"):
        Clusters.build({"b": "1", word: path}).write(file)
    assert file.read_text(encoding="utf-8") == PATHS
    assert list(tmp_path.iterdir()) == [file]


def test_counts_beyond_64_bits(tmp_path: Path) -> None:
    path = tmp_path / "paths"
    path.write_text(f"01\ta\t{2**64 - 1}\n10\tb\t{2**64}\n", encoding="utf-8")
    with pytest.raises(
        FileFormatError, match=r"paths:2: the count is 18446744073709551616, expected at most"
    ):
        Clusters.read(path)
    with pytest.raises(ArgumentError, match="the count of 'a' is -1"):
        Clusters.build([ClusteredWord("a", "0", -1)])
