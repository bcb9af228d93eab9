"""`Lemmatizer`: edit scripts, learnt and new words, files, and what is refused."""

from __future__ import annotations

import copy
import random
from pathlib import Path

import pytest

import crfkit
from crfkit import Lemmatizer
from crfkit.data import Sentence, Word
from crfkit.errors import ArgumentError, EmptyDataError, FileFormatError
from crfkit.models import NotFittedError, write_model_file
from crfkit.pipeline.edit_scripts import apply_script, common_part, find_script, is_script
from tests.pipeline.small_treebank import make_treebank

TRAIN = make_treebank(60)


@pytest.fixture(scope="module")
def trained() -> Lemmatizer:
    return Lemmatizer(n_threads=1).fit(TRAIN)


def lemmas(sentences: list[Sentence]) -> list[list[str]]:
    return [[word.lemma for word in sentence.words] for sentence in sentences]


def bare(sentences: list[Sentence]) -> list[Sentence]:
    return [Sentence([word._replace(lemma="_") for word in s.words], s.multiwords) for s in sentences]


def test_a_script_makes_the_lemma_it_was_found_for() -> None:
    number = random.Random(1)
    for _ in range(20_000):
        form, lemma = ("".join(number.choices("abAßéİı-1", k=number.randint(1, 6))) for _ in range(2))
        script = find_script(form, lemma)
        assert is_script(script)
        assert apply_script(script, form) == lemma


def test_the_common_part_is_the_longest_by_enumeration() -> None:
    number = random.Random(2)
    for _ in range(2000):
        a, b = ("".join(number.choices("abc", k=number.randrange(8))) for _ in range(2))
        longest = max(
            (j - i for i in range(len(a) + 1) for j in range(i, len(a) + 1) if a[i:j] in b), default=0
        )
        length, i, j = common_part(a, b)
        assert length == longest
        assert a[i : i + length] == b[j : j + length]


@pytest.mark.parametrize(
    ("form", "lemma", "other", "expected"),
    [
        ("dogs", "dog", "Cats", "cat"),
        ("Dogs", "dog", "cats", "cat"),
        ("London", "London", "Paris", "Paris"),
        ("PARIS", "Paris", "LONDON", "London"),
        ("gesehen", "sehen", "gelesen", "lesen"),
        ("was", "be", "anything", "be"),
        ("nato", "NATO", "unesco", "UNESCO"),
        ("ran", "ran", "x", "x"),
    ],
)
def test_scripts_of_examples(form: str, lemma: str, other: str, expected: str) -> None:
    assert apply_script(find_script(form, lemma), other) == expected


def test_nothing_is_left_of_a_short_form() -> None:
    assert apply_script(find_script("houses", "hous"), "is") is None


def test_learnt_lemmas_come_back_and_nothing_else_changes(trained: Lemmatizer) -> None:
    given = bare(TRAIN)
    kept = copy.deepcopy(given)
    found = trained.predict(given)
    assert given == kept
    assert lemmas(found) == lemmas(TRAIN)
    assert bare(found) == given
    assert trained.score(TRAIN) == 1.0


def test_new_words_are_inflected_like_known_ones(trained: Lemmatizer) -> None:
    words = [
        Word("tables", "_", "NOUN", "NNS", "Number=Plur"),
        Word("opens", "_", "VERB", "VBZ", "VerbForm=Fin"),
    ]
    assert lemmas(trained.predict([Sentence(words)])) == [["table", "open"]]


def test_exceptions_are_in_the_dictionary() -> None:
    words = [Word(f"x{i}s", f"x{i}", "NOUN") for i in range(50)] + [
        Word("news", "news", "NOUN"),
        Word("y", "zz", "X"),
    ]
    model = Lemmatizer(l2=100.0, n_threads=1).fit([Sentence(words)])
    assert ("news", "NOUN", "_") in model.dictionary_
    assert lemmas(model.predict([Sentence(words)])) == [[word.lemma for word in words]]


def test_the_most_frequent_lemma_of_a_word_wins() -> None:
    words = [Word("saw", lemma, "VERB") for lemma in ["see", "saw", "see", "see"]]
    assert lemmas(Lemmatizer(n_threads=1).fit([Sentence(words)]).predict([Sentence(words[:1])])) == [["see"]]


def test_a_saved_lemmatizer_is_the_same(trained: Lemmatizer, tmp_path: Path) -> None:
    trained.save(tmp_path / "a.model")
    loaded = Lemmatizer.load(tmp_path / "a.model")
    loaded.n_threads = 2
    other = bare(make_treebank(30, seed=7))
    assert loaded.predict(other) == trained.predict(other)
    loaded.save(tmp_path / "b.model")
    assert (tmp_path / "a.model").read_bytes() == (tmp_path / "b.model").read_bytes()


@pytest.mark.parametrize("name", ["n_words", "parts"])
def test_damaged_files_are_refused(trained: Lemmatizer, tmp_path: Path, name: str) -> None:
    file = trained.to_file()
    file.settings[name] = {"n_words": 7, "parts": {}}[name]
    write_model_file(file, tmp_path / "a.model")
    with pytest.raises(FileFormatError, match=r"a\.model"):
        crfkit.load(tmp_path / "a.model")


def test_what_cannot_be_is_refused(tmp_path: Path) -> None:
    with pytest.raises(EmptyDataError, match="no word has a lemma"):
        Lemmatizer().fit([Sentence([Word("a")])])
    with pytest.raises(NotFittedError):
        Lemmatizer().predict([])
    crfkit.CRF().fit([[["a"], ["b"]]], [["b", "c"]]).save(tmp_path / "crf.model")
    with pytest.raises(ArgumentError, match="expected a lemmatizer"):
        Lemmatizer.load(tmp_path / "crf.model")
