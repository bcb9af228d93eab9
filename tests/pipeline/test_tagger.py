"""`TreebankTagger`: labels of columns, training, filling, probabilities, files, and what is refused."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import crfkit
from crfkit import CRF, LBFGS, InputError, TagDictionary, TreebankTagger
from crfkit.data import EmptyNode, Multiword, Sentence, Word, check_tree
from crfkit.errors import ArgumentError, EmptyDataError, FileFormatError, ShapeError
from crfkit.evaluation import evaluate_tags
from crfkit.models import ModelFile, NotFittedError, read_model_file, write_model_file
from crfkit.pipeline import TagColumns, WordList
from crfkit.pipeline.tagger_input import white_space

TAGS = {  # form: upos, xpos, feats
    "the": ("DET", "DT", "Definite=Def"),
    "dog": ("NOUN", "NN", "Number=Sing"),
    "dogs": ("NOUN", "NNS", "Number=Plur"),
    "cat": ("NOUN", "NN", "Number=Sing"),
    "cats": ("NOUN", "NNS", "Number=Plur"),
    "barks": ("VERB", "VBZ", "Number=Sing|Person=3"),
    "bark": ("VERB", "VBP", "Number=Plur"),
    "now": ("ADV", "RB", "_"),
}
TEXTS = [
    "the dog barks",
    "the dogs bark now",
    "the cat barks now",
    "the cats bark",
    "dogs bark",
    "now the dog barks",
]


def sentence(text: str) -> Sentence:
    return Sentence([Word(form, "_", *TAGS[form]) for form in text.split()])


TRAIN = [sentence(text) for text in TEXTS] * 3


def bare(sentence: Sentence) -> Sentence:
    words = [word._replace(upos="_", xpos="_", feats="_") for word in sentence.words]
    return replace(sentence, words=words)


@pytest.mark.parametrize("tag", ["upos", "xpos", "feats", "upos+feats", "upos+xpos+feats"])
def test_the_columns_of_learnt_sentences_come_back(tag: str) -> None:
    tagger = TreebankTagger(tag, n_threads=1).fit(TRAIN)
    given = [bare(one) for one in TRAIN]
    kept = copy.deepcopy(given)
    found = tagger.predict(given)
    assert given == kept
    names = tag.split("+")
    for gold, one in zip(TRAIN, found, strict=True):
        for right, word in zip(gold.words, one.words, strict=True):
            expected = {
                name: getattr(right, name) if name in names else "_" for name in ("upos", "xpos", "feats")
            }
            assert word == Word(right.form, **expected)  # type: ignore[arg-type]
    assert tagger.score(TRAIN) == 1.0


def test_all_but_the_column_stays_as_it_was() -> None:
    tagger = TreebankTagger("xpos").fit(TRAIN)
    given = Sentence(
        [Word("the", "the", "X", "_", "A=b", 2, "det", "2:det", "SpaceAfter=No"), Word("dog", head=0)],
        [Multiword(1, 2, "thedog", "M=1")],
        [EmptyNode(1, 1, "x", "_", "U", "XX", "_", "_", "_")],
        ["# text = thedog"],
        7,
        "file",
        (),
    )
    [found] = tagger.predict([given])
    words = [given.words[0]._replace(xpos="DT"), given.words[1]._replace(xpos="NN")]
    assert found == replace(given, words=words)
    check_tree(found)


def test_joint_labels_are_split_and_joined() -> None:
    columns = TagColumns.parse("feats+upos")
    assert str(columns) == "upos+feats"
    word = TRAIN[0].words[2]
    assert columns.join(word) == "VERB\tNumber=Sing|Person=3"
    assert columns.split(columns.join(word)) == {"upos": "VERB", "feats": "Number=Sing|Person=3"}
    components = {"upos": "VERB", "feats Number": "Sing", "feats Person": "3"}
    assert columns.facets(columns.join(word)) == components | {"whole label": columns.join(word)}
    assert TagColumns.parse("upos").join(word) == "VERB"


@pytest.mark.parametrize("tag", ["", "pos", "upos+", "upos+upos", "deprel", 3, None])
def test_tags_that_are_no_columns(tag: str) -> None:
    with pytest.raises(ArgumentError, match="expected one of upos, xpos, feats"):
        TreebankTagger(tag).fit(TRAIN)


def test_unknown_tags_are_no_labels() -> None:
    partly = [
        replace(one, words=[w._replace(upos="_") if w.form == "bark" else w for w in one.words])
        for one in TRAIN
    ]
    tagger = TreebankTagger("upos").fit(partly)
    assert "_" not in tagger.classes_
    assert tagger.evaluate(partly).words.total == sum(w.upos != "_" for one in partly for w in one.words)
    joint = TagColumns.parse("upos+feats")
    known = joint.known_labels(TRAIN)
    word = Word("dog", upos="_", feats="Number=Sing")
    assert joint.annotate([Sentence([word])], known) == [[frozenset({"NOUN\tNumber=Sing"})]]
    assert joint.annotate([Sentence([Word("dog")])], known) == [[None]]
    assert TagColumns.parse("feats").annotate([Sentence([Word("dog")])], known) == [["_"]]


def test_sentences_without_tags_are_refused() -> None:
    empty = [bare(one) for one in TRAIN]
    with pytest.raises(EmptyDataError, match="no word has a tag in UPOS"):
        TreebankTagger("upos").fit(empty)
    with pytest.raises(EmptyDataError, match=r"dev \(<stream>\): no word has a tag in XPOS"):
        TreebankTagger("xpos").fit(TRAIN, dev=empty)
    with pytest.raises(ArgumentError, match="expected sentences as read_conllu gives them"):
        TreebankTagger().fit("text")  # type: ignore[arg-type]
    with pytest.raises(NotFittedError):
        TreebankTagger().predict(TRAIN)


def test_probabilities_are_marginals_in_misc() -> None:
    tagger = TreebankTagger("upos+feats").fit(TRAIN[:6])
    given = [replace(TRAIN[0], words=[w._replace(misc="A=1|UposFeatsProb=0.1") for w in TRAIN[0].words])]
    [found] = tagger.predict(given, probabilities=True)
    [table] = tagger.predict_marginals(given)
    np.testing.assert_allclose(table.sum(axis=1), 1.0, rtol=1e-9)
    for row, word in zip(table, found.words, strict=True):
        place = tagger.classes_.index(f"{word.upos}\t{word.feats}")
        assert word.misc == f"A=1|UposFeatsProb={row[place]:.4f}"
    assert tagger.predict([TRAIN[0]], probabilities=True)[0].words[0].misc.startswith("UposFeatsProb=")


def test_a_dev_set_and_a_callback() -> None:
    seen: list[float] = []
    tagger = TreebankTagger("xpos").fit(
        TRAIN, dev=TRAIN[:4], callback=lambda p: seen.append(p.dev_score or 0.0)
    )
    assert seen
    assert all(0.0 <= score <= 1.0 for score in seen)
    assert tagger.n_iter_ == 1 + seen.index(max(seen))


@pytest.mark.parametrize("tag", ["upos", "upos+feats"])
def test_the_same_bits_for_any_number_of_threads(tag: str) -> None:
    one, two = (TreebankTagger(tag, n_threads=n).fit(TRAIN) for n in (1, 2))
    np.testing.assert_array_equal(one.weights_, two.weights_)


def test_settings_of_ones_own() -> None:
    crf = CRF(features="morphology", l2=0.3)
    tagger = TreebankTagger("upos", crf).fit(TRAIN)
    assert tagger.crf_ is not crf
    assert tagger.crf_.get_params(deep=False) == crf.get_params(deep=False)
    assert tagger.settings_reason_ == "settings as given"
    with pytest.raises(ArgumentError, match="crf is 'best', expected 'auto' or a CRF"):
        TreebankTagger(crf="best").fit(TRAIN)


# ---- files


@pytest.mark.parametrize("tag", ["upos", "upos+feats"])
def test_a_model_file_gives_the_same_answers(tmp_path: Path, tag: str) -> None:
    tagger = TreebankTagger(tag).fit(TRAIN)
    tagger.save(tmp_path / "m", single_precision=False, metadata={"made": "today"})
    for again in (crfkit.load(tmp_path / "m"), TreebankTagger.load(tmp_path / "m")):
        assert repr(again) == repr(tagger)
        assert again.known_forms_ == set(TAGS)
        assert again.settings_reason_ == tagger.settings_reason_
        np.testing.assert_array_equal(again.weights_, tagger.weights_)
        assert again.predict(TRAIN, probabilities=True) == tagger.predict(TRAIN, probabilities=True)
    assert crfkit.models.read_metadata(tmp_path / "m") == {"made": "today"}
    tagger.save(tmp_path / "small")
    assert crfkit.load(tmp_path / "small").predict(TRAIN) == TRAIN or tag == "upos"
    assert pickle.loads(pickle.dumps(tagger)).predict(TRAIN) == tagger.predict(TRAIN)


def test_training_goes_on_from_a_model(tmp_path: Path) -> None:
    tagger = TreebankTagger("xpos").fit(TRAIN)
    tagger.save(tmp_path / "m", single_precision=False)
    still = CRF(features=tagger.crf_.features, optimizer=LBFGS(max_iterations=0))
    for start in (tagger, tmp_path / "m"):
        found = TreebankTagger("xpos", still).fit(TRAIN, start=start)
        np.testing.assert_allclose(found.weights_, tagger.weights_, rtol=1e-12)


def test_other_models_are_no_taggers(tmp_path: Path) -> None:
    CRF(features="pos").fit([["a", "b"]], [["X", "Y"]]).save(tmp_path / "m")
    with pytest.raises(ArgumentError, match="a CRF, expected a tagger of treebanks"):
        TreebankTagger.load(tmp_path / "m")
    with pytest.raises(FileNotFoundError):
        TreebankTagger.load(tmp_path / "nosuch")


def without_crf(file: ModelFile) -> ModelFile:
    return file._replace(settings={**file.settings, "parts": {}})


def other_columns(file: ModelFile) -> ModelFile:
    return file._replace(settings={**file.settings, "tag": "upos+xpos"})


def no_columns(file: ModelFile) -> ModelFile:
    return file._replace(settings={**file.settings, "tag": "nosuch"})


def lost_words(file: ModelFile) -> ModelFile:
    return file._replace(arrays={name: a for name, a in file.arrays.items() if name != "forms.names"})


def lost_weights(file: ModelFile) -> ModelFile:
    return file._replace(arrays={name: a for name, a in file.arrays.items() if name != "crf/weights"})


def other_parts(file: ModelFile) -> ModelFile:
    return file._replace(settings={**file.settings, "parts": {"crf": 3}})


@pytest.mark.parametrize(
    "damage", [without_crf, other_columns, no_columns, lost_words, lost_weights, other_parts]
)
def test_damaged_files_are_refused(tmp_path: Path, damage: Callable[[ModelFile], ModelFile]) -> None:
    path = tmp_path / "m"
    TreebankTagger("upos").fit(TRAIN).save(path)
    write_model_file(damage(read_model_file(path)), path)
    with pytest.raises(FileFormatError, match=f"{path}: not a usable"):
        crfkit.load(path)


# ---- evaluation


def test_figures_of_known_and_unknown_words() -> None:
    gold = [sentence("the dog barks"), sentence("cats bark now")]
    words = [gold[0].words[0], gold[0].words[1]._replace(upos="VERB"), gold[0].words[2]._replace(feats="_")]
    report = evaluate_tags(
        gold, [replace(gold[0], words=words), gold[1]], ("upos", "feats"), {"the", "dog", "bark"}
    )
    assert (report.words.correct, report.words.total) == (4, 6)
    assert report.known is not None
    assert report.unknown is not None
    assert (report.known.correct, report.known.total) == (2, 3)
    assert (report.unknown.correct, report.unknown.total) == (2, 3)
    assert [share.correct for share in report.by_column] == [5, 5]
    assert (report.n_sentences, report.n_correct_sentences) == (2, 1)
    assert report.confusion.errors() == [
        ("NOUN Number=Sing", "VERB Number=Sing", 1),
        ("VERB Number=Sing|Person=3", "VERB _", 1),
    ]
    assert str(report).splitlines()[:3] == [
        "UPOS+FEATS accuracy:    66.67% of 6 words",
        "  known words:    66.67% of 3",
        "  unknown words:  66.67% of 3",
    ]
    assert evaluate_tags(gold, gold).known is None


def test_tags_that_cannot_be_predicted_are_counted() -> None:
    """By a tag dictionary, whose words have its tags alone; all others have any that there are."""
    known = TagDictionary.from_lexicon({"dog": ["NOUN"], "bark": ["VERB"]}, ending_length=0)
    crf = CRF(features="pos", tag_dictionary=known)
    tagger = TreebankTagger("upos", crf=crf).fit(TRAIN)
    words = [
        Word("dog", upos="VERB"),
        Word("dog", upos="NOUN"),
        Word("bark", upos="X"),
        Word("bark", upos="_"),
    ]
    assert [found.tolist() for found in tagger.find_impossible([Sentence(words)])] == [
        [True, False, True, False]
    ]
    report = tagger.evaluate([Sentence(words), sentence("dog bark")])
    assert report.n_impossible == 2
    assert "\ngold tags that cannot be predicted: 2 (40.00% of words)\n" in str(report)
    joint = TreebankTagger("upos+feats", crf=CRF(features="pos")).fit(TRAIN)
    half = Sentence(
        [Word("dog", upos="_", feats="Number=None"), Word("dog", upos="NOUN", feats="Number=None")]
    )
    assert joint.find_impossible([half])[0].tolist() == [False, True]


def test_what_cannot_be_compared() -> None:
    gold = [sentence("the dog barks")]
    with pytest.raises(
        ShapeError, match="sentence 0 has the words 'the dog barks' in gold and 'now' predicted"
    ):
        evaluate_tags(gold, [sentence("now")])
    with pytest.raises(ShapeError, match="1 gold sentences and 0 predicted"):
        evaluate_tags(gold, [])
    with pytest.raises(ArgumentError, match="columns is"):
        evaluate_tags(gold, gold, ("deprel",))
    with pytest.raises(EmptyDataError):
        evaluate_tags([bare(gold[0])], gold)
    assert issubclass(EmptyDataError, InputError)


# ---- lists of words


LISTED = [stem + ending for stem in ("walk", "talk", "jump", "call") for ending in ("", "s", "ed", "ing")]


def test_a_list_of_words_shows_which_endings_alternate(tmp_path: Path) -> None:
    words = WordList([*LISTED, "Rex", "NATO"])
    assert {("", "s"), ("", "ed"), ("", "ing"), ("s", "ed"), ("s", "ing")} == set(words.alternations)
    listed, endings, bases = words.columns("Jump")
    assert (listed, len(endings), bases) == ("l", 3, "-")
    assert words.columns("jumping")[2].startswith(f"ing|{endings}")
    assert [words.columns(form)[0] for form in ("rex", "Nato", "nobody")] == ["c", "u", "-"]
    (tmp_path / "words.txt").write_text("\n".join(LISTED) + "\n\n")
    assert WordList.read(tmp_path / "words.txt") == WordList(LISTED)
    assert pickle.loads(pickle.dumps(words)) == words
    assert pickle.loads(pickle.dumps(words)).columns("Jump") == words.columns("Jump")


def test_no_list_of_words(tmp_path: Path) -> None:
    (tmp_path / "words.txt").write_text("\n \n")
    with pytest.raises(EmptyDataError, match=r"words.txt: the file has no word"):
        WordList.read(tmp_path / "words.txt")
    with pytest.raises(EmptyDataError, match="the list of words is empty"):
        WordList([])
    for wrong in ("walk", 3, [1]):
        with pytest.raises(ArgumentError, match="expected a list of words"):
            TreebankTagger("upos", words=wrong)  # type: ignore[arg-type]


def test_a_tagger_with_a_list_of_words_knows_other_words(tmp_path: Path) -> None:
    """Verbs take `ing`, nouns do not; unknown words differ in that alone."""
    verbs, nouns = ("walk", "talk", "jump"), ("bird", "tree", "lamp")
    listed = [
        *(v + e for v in (*verbs, "limp") for e in ("", "s", "ing")),
        *(n + e for n in (*nouns, "kiln") for e in ("", "s")),
    ]
    seen = [
        Sentence([Word(form, upos=tag)])
        for tag, forms in (("VERB", verbs), ("NOUN", nouns))
        for form in forms
    ] * 3
    tagger = TreebankTagger("upos", words=listed).fit(seen)
    given = [Sentence([Word("limp")]), Sentence([Word("kiln")])]
    assert [one.words[0].upos for one in tagger.predict(given)] == ["VERB", "NOUN"]
    assert len(tagger.positions(given)[0][0]) == 5
    tagger.save(tmp_path / "m", single_precision=False)
    again = crfkit.load(tmp_path / "m")
    assert again.words == tagger.words
    assert again.predict(given, probabilities=True) == tagger.predict(given, probabilities=True)
    file = read_model_file(tmp_path / "m")
    write_model_file(file._replace(settings={**file.settings, "alternations": [["s"]]}), tmp_path / "m")
    with pytest.raises(FileFormatError, match="alternations of endings are no pairs"):
        crfkit.load(tmp_path / "m")


def test_white_space_around_words() -> None:
    words = [Word("do"), Word("n't"), Word("go", misc="SpaceAfter=No"), Word(".")]
    one = Sentence(words, [Multiword(1, 2, "don't", "_")])
    assert white_space(one) == ["sn", "ns", "sn", "ns"]
    assert white_space(Sentence([Word("a"), Word("b")])) == ["?", "?"]


# ---- trials


def many_tags(n: int, *, mixed: bool) -> list[Sentence]:
    """Sentences with more than a hundred tags; where they are `mixed`, one word of a sentence decides on that of another."""
    found = []
    for i in range(n):
        k, style = i % 60, i // 60 % 2
        tag = f"T{k}-{style}" if mixed else f"T{k}-{k % 2}"
        fill = [Word(f"x{(i * 7 + j) % 50}", xpos="F") for j in range(5)]
        found.append(
            Sentence(
                [
                    Word(f"style{style}", xpos="S"),
                    *fill,
                    Word(f"w{k}", xpos=tag),
                    Word("z", xpos=f"Z{i % 110}" if i < 110 else "Z0"),
                ]
            )
        )
    return found


def test_a_trial_on_held_out_sentences_chooses_features() -> None:
    tagger = TreebankTagger("xpos", n_threads=1).fit(many_tags(480, mixed=True))
    assert "all features (held-out sentences: " in tagger.settings_reason_
    assert "near=" in str(tagger.crf_.features)
    few = TreebankTagger("xpos", n_threads=1).fit(many_tags(150, mixed=True))
    assert "held-out" not in few.settings_reason_
    same = CRF(**tagger.crf_.get_params(deep=False))
    assert "held-out" not in TreebankTagger("xpos", same).fit(many_tags(480, mixed=True)).settings_reason_
