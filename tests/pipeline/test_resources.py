"""Resources of taggers and pipelines: lexicons and clusters in features, model files that name or hold them."""

from __future__ import annotations

import pickle
from dataclasses import replace
from pathlib import Path

import pytest

import crfkit
from crfkit import CRF, Clusters, Lexicon, Parser, TreebankTagger, WordVectors
from crfkit.data import Sentence, Word, write_conllu
from crfkit.errors import ArgumentError, NotLoadedError
from crfkit.models import CheckpointMismatchError
from crfkit.pipeline import Lemmatizer, Pipeline, choose_crf
from crfkit.pipeline.tag_columns import TagColumns
from tests.cli.commands import complaint, run
from tests.pipeline.small_treebank import make_treebank

NAMES = ("Ada", "Bob", "Cyd", "Dora")
VERBS = ("kwak", "mlek", "swok", "trok")


def sentence(name: str, verb: str) -> Sentence:
    return Sentence([Word(name.lower(), upos="PROPN"), Word(verb, upos="VERB")])


SEEN = [sentence(name, verb) for name in NAMES for verb in VERBS]
UNSEEN = Sentence([Word("trud", upos="PROPN"), Word("ezra", upos="VERB")])  # alike but for the lexicon
PEOPLE = Lexicon.build([*map(str.lower, NAMES), "trud"])
BROWN = Clusters.build({**dict.fromkeys(VERBS, "0110"), "ezra": "0110", "trud": "1000"})


@pytest.fixture(scope="module")
def tagger() -> TreebankTagger:
    return TreebankTagger("upos", resources={"people": PEOPLE, "brown": BROWN}).fit(SEEN)


def tags(tagger: TreebankTagger) -> list[str]:
    [found] = tagger.predict([UNSEEN])
    return [word.upos for word in found.words]


def test_taggers_read_resources(tagger: TreebankTagger) -> None:
    assert tags(tagger) == ["PROPN", "VERB"]
    assert {"people", "brown"} == set(tagger.crf_.resources or ())
    assert "resources={'people'" in repr(tagger)
    assert tags(pickle.loads(pickle.dumps(tagger))) == ["PROPN", "VERB"]


@pytest.mark.parametrize("n_tags", [5, 300, 2000])
def test_features_of_resources_for_any_number_of_tags(n_tags: int) -> None:
    columns = TagColumns.parse("upos+feats")
    labels = [f"NOUN\tCase={n}" for n in range(n_tags)]
    crf = choose_crf(columns, labels, resources={"people": PEOPLE}).crf
    assert "people=%in[0,0,people]" in str(crf.features)
    assert crf.resources == {"people": PEOPLE}


def test_files_name_or_hold_them(tagger: TreebankTagger, tmp_path: Path) -> None:
    named, bundled = tmp_path / "named", tmp_path / "bundled"
    tagger.save(named)
    tagger.save(bundled, bundle=True)
    given = {"people": PEOPLE, "brown": BROWN}
    for loaded in (
        TreebankTagger.load(named, resources=given),
        crfkit.load(named, resources=given),
        TreebankTagger.load(bundled),
    ):
        assert tags(loaded) == ["PROPN", "VERB"]
        assert loaded.resources == given
    again = TreebankTagger.load(bundled)
    again.save(bundled, bundle=True)
    assert tags(TreebankTagger.load(bundled)) == ["PROPN", "VERB"]
    loaded = TreebankTagger.load(named)
    assert loaded.classes_ == ["PROPN", "VERB"]  # it can be inspected
    with pytest.raises(NotLoadedError, match=r"needs the (lexicon|clusters) '(people|brown)'"):
        loaded.predict([UNSEEN])
    with pytest.raises(ArgumentError, match="'people' is not what the model was trained with"):
        TreebankTagger.load(named, resources={"people": Lexicon.build(["ada"]), "brown": BROWN})
    with pytest.raises(ArgumentError, match=r"resources has 'towns', but the model needs"):
        TreebankTagger.load(named, resources={"towns": PEOPLE})


def test_resources_stand_in_a_given_crf(tmp_path: Path) -> None:
    crf = CRF(features="pos", resources={"people": PEOPLE})
    with pytest.raises(ArgumentError, match="beside a CRF"):
        TreebankTagger("upos", crf, resources={"people": PEOPLE}).fit(SEEN)
    with pytest.raises(ArgumentError, match="people"):
        TreebankTagger("upos", resources={"people": ["ada"]}).fit(SEEN)  # type: ignore[dict-item]
    tagger = TreebankTagger("upos", crf).fit(SEEN)
    tagger.save(tmp_path / "m")
    loaded = TreebankTagger.load(tmp_path / "m", resources={"people": PEOPLE})
    assert [word.upos for word in loaded.predict([UNSEEN])[0].words] == tags(tagger)


def without(sentences: list[Sentence]) -> list[Sentence]:
    return [
        replace(s, words=[word._replace(upos="_", xpos="_", feats="_") for word in s.words])
        for s in sentences
    ]


def test_pipelines(tmp_path: Path) -> None:
    treebank, brown = make_treebank(40), Clusters.build({"dog": "00", "cat": "00", "see": "11"})
    pipeline = Pipeline(folds=2, n_threads=1, resources={"brown": brown})
    pipeline.fit(treebank, checkpoint=tmp_path / "steps")
    expected = pipeline.predict(without(treebank[:5]))
    [tagger] = [part for part in pipeline.components_ if isinstance(part, TreebankTagger)]
    assert tagger.crf_.resources == {"brown": brown}

    again = Pipeline(folds=2, n_threads=1, resources={"brown": brown})
    assert again.fit(treebank, checkpoint=tmp_path / "steps").predict(without(treebank[:5])) == expected
    other = Pipeline(folds=2, resources={"brown": Clusters.build({"dog": "01", "cat": "01", "see": "11"})})
    with pytest.raises(CheckpointMismatchError, match="of other components"):
        other.fit(treebank, checkpoint=tmp_path / "steps")

    pipeline.save(tmp_path / "named")
    pipeline.save(tmp_path / "bundled", bundle=True)
    assert Pipeline.load(tmp_path / "bundled").predict(without(treebank[:5])) == expected
    loaded = Pipeline.load(tmp_path / "named", resources={"brown": brown})
    assert loaded.predict(without(treebank[:5])) == expected
    with pytest.raises(NotLoadedError, match="needs the clusters 'brown'"):
        Pipeline.load(tmp_path / "named").predict(without(treebank[:1]))
    with pytest.raises(ArgumentError, match="resources has 'people', but the components need 'brown'"):
        Pipeline.load(tmp_path / "named", resources={"people": PEOPLE})


def test_the_parser_of_a_pipeline_reads_clusters_and_vectors(tmp_path: Path) -> None:
    treebank, brown = make_treebank(40), Clusters.build({"dog": "00", "cat": "00", "see": "11"})
    vectors = WordVectors.build({"dog": [1.0, 0.0], "cat": [0.5, 1.0]})
    pipeline = Pipeline(folds=2, n_threads=1, clusters=brown, vectors=vectors)
    pipeline.fit(treebank, checkpoint=tmp_path / "steps")
    [parser] = [part for part in pipeline.components_ if isinstance(part, Parser)]
    assert (parser.clusters, parser.vectors) == (brown, vectors)
    again = Pipeline(folds=2, n_threads=1, clusters=brown, vectors=vectors)
    expected = pipeline.predict(without(treebank[:5]))
    assert again.fit(treebank, checkpoint=tmp_path / "steps").predict(without(treebank[:5])) == expected
    with pytest.raises(CheckpointMismatchError, match="of other components"):
        Pipeline(
            folds=2, clusters=Clusters.build({"dog": "01", "cat": "00", "see": "11"}), vectors=vectors
        ).fit(treebank, checkpoint=tmp_path / "steps")
    pipeline.save(tmp_path / "m")
    assert Pipeline.load(tmp_path / "m").predict(without(treebank[:5])) == expected


def test_the_command_line_gives_them_to_the_parser(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_conllu(make_treebank(30), Path("train.conllu"))
    Path("paths.txt").write_text("00\tdog\t3\n01\tcat\t2\n")
    Path("glove.txt").write_text("dog 0.5 1 2\ncat 1 2 0.5\n")
    command = ["pipeline", "train", "train.conllu", "--model", "m", "--folds", "2", "--quiet"]
    run(*command, "--clusters", "paths.txt", "--vectors", "glove.txt")
    [parser] = [part for part in Pipeline.load("m").components_ if isinstance(part, Parser)]
    assert parser.clusters == Clusters.read("paths.txt")
    assert parser.vectors == WordVectors.read("glove.txt")
    assert "nosuch.txt: cannot be read" in complaint(*command, "--vectors", "nosuch.txt")


def test_models_without_resources(tmp_path: Path) -> None:
    lemmatizer = Lemmatizer().fit(make_treebank(20))
    lemmatizer.save(tmp_path / "m", bundle=True)
    with pytest.raises(ArgumentError, match="a Lemmatizer has none"):
        Lemmatizer.load(tmp_path / "m", resources={"people": PEOPLE})
