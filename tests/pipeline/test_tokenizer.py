"""`Tokenizer`: learnt text comes back, no character is lost, pieces make no difference, files, and what is refused."""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest

import crfkit
from crfkit import Tokenizer
from crfkit.data import Sentence, Word
from crfkit.errors import ArgumentError, EmptyDataError, FileFormatError, ShapeError
from crfkit.models import NotFittedError, read_model_file, write_model_file
from crfkit.pipeline import raw_text, tokenizer
from crfkit.pipeline.paragraphs import ParagraphReader
from crfkit.pipeline.text_units import UnitReader
from crfkit.pipeline.written_text import misc_value, tokens_of
from tests.pipeline.small_treebank import make_treebank

TRAIN = make_treebank(60)


@pytest.fixture(scope="module")
def trained() -> Tokenizer:
    return Tokenizer(n_threads=1).fit(TRAIN)


def forms(sentences: list[Sentence]) -> list[list[str]]:
    return [[word.form for word in sentence.words] for sentence in sentences]


def tokens(sentences: list[Sentence]) -> list[list[str]]:
    return [[token.form for token in tokens_of(sentence)] for sentence in sentences]


def test_the_training_text_is_split_as_the_treebank_has_it(trained: Tokenizer) -> None:
    found = trained.predict(raw_text(TRAIN))
    assert forms(found) == forms(TRAIN)
    assert tokens(found) == tokens(TRAIN)
    assert [sentence.multiwords for sentence in found] == [sentence.multiwords for sentence in TRAIN]
    begins = [any(c.startswith("# newpar") for c in sentence.comments) for sentence in found]
    assert begins == [i % 5 == 0 for i in range(60)]


def test_other_sentences_of_the_same_kind_are_split_right(trained: Tokenizer) -> None:
    other = make_treebank(40, seed=2)
    assert forms(trained.predict(raw_text(other))) == forms(other)


PARTS = [
    "the",
    "dog",
    "n't",
    "don't",
    ".",
    "!",
    "...",
    " ",
    "  ",
    "\t",
    "\n",
    "\r\n",
    "\n\n",
    " \n \n",
    "7",
    "é",
    "e\u0301",
]
PARTS += [
    "\u00a0",
    "\u2028",
    "\x0b",
    "\x00",
    "|",
    "\\",
    "SpaceAfter=No",
    "日本",
    "🙂",
    "\u200d",
    "ß",
    "İ",
    "_",
    "#",
    "\x85",
]


@pytest.mark.parametrize("lines", [False, True])
def test_no_character_is_lost_whatever_the_text(trained: Tokenizer, lines: bool) -> None:
    number = random.Random(3)
    for _ in range(300):
        text = "".join(number.choices(PARTS, k=number.randrange(1, 40)))
        found = trained.predict(text, lines=lines, ranges=True)
        assert raw_text(found) == (text if text.strip() else "")
        for sentence in found:
            for token in tokens_of(sentence):
                begin, end = map(int, str(misc_value(token.misc, "TokenRange")).split(":"))
                assert text[begin:end] == token.written
        if lines:
            assert len(found) == sum(bool(line.strip()) for line in text.split("\n"))


def test_sentences_survive_a_conllu_file(trained: Tokenizer, tmp_path: Path) -> None:
    text = "  The dog doesn't see\tthe cat.\n\nThe  cats | \\ help\u2028the dog!\n"
    crfkit.data.write_conllu(trained.predict(text), tmp_path / "a.conllu")
    assert raw_text(crfkit.data.read_conllu(tmp_path / "a.conllu")) == text


@pytest.mark.parametrize("code", ["\\u00A0", "\\u00a0"])
def test_codes_of_white_space_may_have_capital_digits(code: str) -> None:
    words = [
        crfkit.data.Word("have", misc=f"SpacesAfter={code}"),
        crfkit.data.Word("been", misc="SpaceAfter=No"),
    ]
    assert raw_text([crfkit.data.Sentence(words)]) == "have\u00a0been"


def test_pieces_of_a_text_make_no_difference(trained: Tokenizer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tokenizer, "LONGEST", 150)  # a few sentences: paragraphs are cut
    monkeypatch.setattr(tokenizer, "BATCH", 400)
    text = raw_text(make_treebank(60, seed=5, paragraph=20))
    expected = list(trained.stream([text], ranges=True))
    assert raw_text(expected) == text
    number = random.Random(4)
    for most in (1, 7, 100):
        pieces, at = [], 0
        while at < len(text):
            size = number.randint(1, most)
            pieces.append(text[at : at + size])
            at += size
        assert list(trained.stream(pieces, ranges=True)) == expected


def test_long_paragraphs_are_cut_between_sentences(
    trained: Tokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = make_treebank(50, seed=6, paragraph=1000)
    monkeypatch.setattr(tokenizer, "LONGEST", 200)
    found = trained.predict(raw_text(other))
    assert forms(found) == forms(other)
    assert sum("# newpar" in sentence.comments for sentence in found) == 1


@pytest.mark.parametrize(
    "text", ["x" * 5000, "x " * 5000, "." * 5000, " " * 5000 + "x" + " " * 5000, "a b\n" * 999]
)
def test_endless_sentences_words_and_white_space_are_kept(
    trained: Tokenizer, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    monkeypatch.setattr(tokenizer, "LONGEST", 300)
    assert raw_text(trained.predict(text)) == text


def test_paragraphs_are_those_of_a_regular_expression() -> None:
    number = random.Random(9)
    for _ in range(500):
        text = "".join(number.choices(["a", "b c", "\n", " \n", "\n\n", " "], k=number.randrange(30)))
        reader = ParagraphReader(list(text), 10**6)
        found = list(iter(reader.read, None))
        expected = [part.strip() for part in re.split(r"\n[^\S\n]*\n\s*", text.strip()) if part]
        assert [paragraph.text.strip() for paragraph in found] == expected
        if expected:
            assert found[0].spaces_before + "".join(paragraph.text for paragraph in found) == text


def test_each_line_is_a_sentence_on_request(trained: Tokenizer) -> None:
    found = trained.predict("The dog sees the cat. The cat\nsees the dog\n\nThe cats", lines=True)
    assert tokens(found) == [
        ["The", "dog", "sees", "the", "cat", ".", "The", "cat"],
        ["sees", "the", "dog"],
        ["The", "cats"],
    ]


def test_probabilities_of_tokens_are_in_misc(trained: Tokenizer) -> None:
    [first, second] = trained.predict("The dog sees the cat. The cat helps the dog.", probabilities=True)
    for word in (*first.words, *second.words):
        assert 0.5 < float(str(misc_value(word.misc, "TokenProb"))) <= 1.0
    assert first.comments[-1] == "# sentence_probability = 1.0000"
    assert 0.5 < float(second.comments[-1].split()[-1]) <= 1.0


def test_text_without_spaces_is_read_character_by_character() -> None:
    seen = [
        Sentence([Word(form, misc="SpaceAfter=No") for form in text.split()])
        for text in ["ab c d .", "c ab .", "d ab ab ."]
    ]
    model = Tokenizer(n_threads=1).fit(seen * 10)
    assert model.units_ == "characters"
    assert forms(model.predict("abc.dab.cabd.")) == [
        ["ab", "c", "."],
        ["d", "ab", "."],
        ["c", "ab", "d", "."],
    ]


def test_tokens_may_hold_spaces() -> None:
    seen = [Sentence([Word("10 000"), Word("dogs")]), Sentence([Word("the"), Word("20 000"), Word("cats")])]
    model = Tokenizer(n_threads=1).fit(seen * 10)
    found = model.predict("the 10  000 dogs", lines=True)
    assert forms(found) == [["the", "10 000", "dogs"]]
    assert raw_text(found) == "the 10  000 dogs"


def test_a_saved_tokenizer_is_the_same(trained: Tokenizer, tmp_path: Path) -> None:
    trained.save(tmp_path / "a.model")
    text = raw_text(make_treebank(20, seed=8))
    loaded = Tokenizer.load(tmp_path / "a.model")
    loaded.n_threads = 2
    assert loaded.predict(text, ranges=True) == trained.predict(text, ranges=True)
    loaded.save(tmp_path / "b.model")
    assert (tmp_path / "a.model").read_bytes() == (tmp_path / "b.model").read_bytes()


@pytest.mark.parametrize("name", ["units", "spaces_inside", "bytes", "parts"])
def test_damaged_files_are_refused(trained: Tokenizer, tmp_path: Path, name: str) -> None:
    file = trained.to_file()
    file.settings[name] = {"units": "words", "spaces_inside": 3, "bytes": {}, "parts": {}}[name]
    write_model_file(file, tmp_path / "a.model")
    with pytest.raises(FileFormatError, match=r"a\.model"):
        crfkit.load(tmp_path / "a.model")
    assert read_model_file(tmp_path / "a.model").type == "Tokenizer"


def test_what_cannot_be_is_refused(trained: Tokenizer, tmp_path: Path) -> None:
    with pytest.raises(EmptyDataError):
        Tokenizer().fit([])
    with pytest.raises(ArgumentError, match="units"):
        Tokenizer(units="words").fit(TRAIN)
    with pytest.raises(ArgumentError, match="text is of type list"):
        trained.predict(["a"])  # type: ignore[arg-type]
    with pytest.raises(NotFittedError):
        Tokenizer().predict("a")
    with pytest.raises((ShapeError, ArgumentError)):
        Tokenizer().fit("text")  # type: ignore[arg-type]
    crfkit.CRF().fit([[["a"], ["b"]]], [["b", "c"]]).save(tmp_path / "crf.model")
    with pytest.raises(ArgumentError, match="expected a tokenizer"):
        Tokenizer.load(tmp_path / "crf.model")


@pytest.mark.parametrize("units", ["runs", "characters"])
@pytest.mark.parametrize(
    "whole",
    [
        "👨\u200d👩\u200d👧",
        "👍🏽",
        "🇩🇪",
        "1\ufe0f\u20e3",
        "#\ufe0f\u20e3",
        "❤\ufe0f",
        "🏴\U000e0067\U000e0062\U000e007f",
        ".\u0301",
    ],
)
def test_what_is_drawn_as_one_character_is_one_position(whole: str, units: str) -> None:
    reader = UnitReader(characters=units == "characters")
    text = f"{whole}{whole} a{whole}."
    found = reader.read(text)
    assert [row[0] for row in found.rows][:2] == [whole, whole]
    assert "".join(row[0] for row in found.rows) == text.replace(" ", "")


def test_flags_of_countries_are_not_joined() -> None:
    found = UnitReader(characters=False).read("🇩🇪🇫🇷🇩12\u03013")
    assert [row[0] for row in found.rows] == ["🇩🇪", "🇫🇷", "🇩", "12\u03013"]


def test_a_sentence_without_end_is_split(
    trained: Tokenizer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(tokenizer, "MOST_TOKENS", 10)
    text = "the dog " * 17
    found = trained.predict(text)
    assert [len(sentence.words) for sentence in found] == [10, 10, 10, 4]
    assert raw_text(found) == text
    assert "no end of a sentence for 10 tokens from character 0 on" in caplog.text
    assert len(trained.predict(text, probabilities=True)) == 4
    [one] = trained.predict(text, lines=True)  # a line is a sentence, whatever it holds
    assert len(one.words) == 34
