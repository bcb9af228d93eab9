"""`Pipeline`: raw text to trees, jack-knifing, components of other kinds, input formats, files, interruptions."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import crfkit
from crfkit import Lemmatizer, Parser, Pipeline, Tokenizer, TreebankTagger
from crfkit.data import Sentence, check_tree, write_conllu
from crfkit.errors import ArgumentError, EmptyDataError, FileFormatError, InputError, UnsavableError
from crfkit.evaluation import evaluate_treebank
from crfkit.models import (
    CheckpointMismatchError,
    MissingColumns,
    NotFittedError,
    Progress,
    TrainingInterrupted,
    write_model_file,
)
from crfkit.pipeline import Component, raw_text, sentence_to_json
from crfkit.pipeline.text_input import recognise
from crfkit.pipeline.training import fold_of
from crfkit.pipeline.written_text import misc_value
from tests.pipeline.small_treebank import bare, make_treebank

TRAIN, TEST = make_treebank(60), make_treebank(30, seed=2)


@pytest.fixture(scope="module")
def trained() -> Pipeline:
    return Pipeline(folds=2, n_threads=1).fit(make_treebank(120), dev=make_treebank(10, seed=3))


def columns(sentences: Sequence[Sentence]) -> list[Any]:
    return [[word[:7] for word in sentence.words] for sentence in sentences]


def test_raw_text_is_analysed_as_the_treebank_is(trained: Pipeline) -> None:
    text = raw_text(TEST)
    found = trained(text)
    assert raw_text(found) == text
    assert columns(found) == columns(TEST)
    assert evaluate_treebank(TEST, found)["LAS"].f1 == 1.0
    for sentence in found:
        check_tree(sentence)


def test_given_sentences_keep_their_tokens_and_are_not_changed(trained: Pipeline) -> None:
    given = [bare(sentence) for sentence in TEST]
    kept = copy.deepcopy(given)
    found = trained.predict(given)
    assert given == kept
    assert columns(found) == columns(TEST)
    assert [s.multiwords for s in found] == [s.multiwords for s in TEST]


def test_what_given_sentences_had_is_replaced_unless_it_is_to_be_kept(trained: Pipeline) -> None:
    wrong = [replace(s, words=[w._replace(upos="X", head=0, deprel="x") for w in s.words]) for s in TEST]
    assert columns(trained.predict(wrong)) == columns(TEST)
    kept = trained.predict(wrong, keep_tags=True)
    assert {word.upos for sentence in kept for word in sentence.words} == {"X"}
    assert [[w.xpos for w in s.words] for s in kept] == [[w.xpos for w in s.words] for s in TEST]
    assert not any(word.deprel == "x" for sentence in kept for word in sentence.words)


def test_each_form_of_input_gives_the_same_analysis(trained: Pipeline, tmp_path: Path) -> None:
    gold = TEST[:5]
    write_conllu(gold, tmp_path / "gold.conllu")
    conllu = (tmp_path / "gold.conllu").read_text()
    lines = "".join(raw_text([replace(s, comments=[])]).rstrip() + "\n" for s in gold)
    tokens = "".join(" ".join(word.form for word in s.words) + "\n" for s in gold)
    expected = columns(gold)
    assert columns(trained(conllu)) == expected  # recognised by itself
    assert columns(trained(conllu, input="conllu")) == expected
    assert columns(trained(lines, input="sentences")) == expected
    assert columns(trained(tokens, input="tokens")) == expected
    for pieces in (list(conllu), conllu.splitlines(keepends=True)):
        assert list(trained.stream(pieces)) == trained(conllu)
    with pytest.raises(ArgumentError, match="input is 'words'"):
        trained("a", input="words")


@pytest.mark.parametrize(
    "text", ["", " \n\n", "# not CoNLL-U", "#\n#", "1\tx", "a\tb\tc\td\te\tf\tg\th\ti\tj"]
)
def test_other_texts_are_raw_text(trained: Pipeline, text: str) -> None:
    assert raw_text(trained(text)) == (text if text.strip() else "")


def test_batches_and_threads_make_no_difference(trained: Pipeline) -> None:
    text = raw_text(TEST)
    expected = trained(text)
    assert list(trained.stream([text], batch=3)) == expected
    loaded = copy.copy(trained)
    loaded.n_threads = 2
    assert loaded(text) == expected
    assert [word.upos for word in trained.components_[0].predict(TEST)[0].words]  # the same components


def test_a_stream_is_read_as_it_is_asked_for(trained: Pipeline) -> None:
    read = 0

    def lines() -> Any:
        nonlocal read
        for sentence in make_treebank(200, seed=4, paragraph=1):
            read += 1
            yield raw_text([replace(sentence, comments=[])]).rstrip() + "\n"

    next(trained.stream(lines(), input="tokens", batch=10))
    assert read < 15


def test_probabilities_and_ranges_are_in_misc(trained: Pipeline) -> None:
    text = raw_text(TEST[:3])
    for sentence in trained(text, probabilities=True, ranges=True):
        for word in sentence.words:
            for name in ("UposXposFeatsProb", "HeadProb"):
                assert 0.0 < float(str(misc_value(word.misc, name))) <= 1.0
        place = str(misc_value(sentence.words[0].misc, "TokenRange")).split(":")
        assert text[int(place[0]) : int(place[1])] == sentence.words[0].form


def test_json_has_what_the_sentence_has(trained: Pipeline) -> None:
    [sentence] = trained("The dogs don't see the cat.", ranges=True)
    found = sentence_to_json(sentence)
    assert found["text"] == "The dogs don't see the cat."
    assert found["tokens"][2] == {"text": "don't", "words": [3, 4], "start": 9, "end": 14}
    assert [word["form"] for word in found["words"]] == [word.form for word in sentence.words]
    assert [word["head"] for word in found["words"]] == [word.head for word in sentence.words]


class Recorder:
    """A component of another kind: upper-case XPOS; it remembers what it was trained on."""

    def __init__(self, log: list[tuple[int, int]]) -> None:
        self.log = log

    def fit(self, sentences: Sequence[Sentence], *, dev: object = None) -> Recorder:
        self.seen = {id(sentence) for sentence in sentences}
        self.forms = [word.form for sentence in sentences for word in sentence.words]
        self.log.append((len(sentences), 0))
        return self

    def __deepcopy__(self, memo: object) -> Recorder:
        return Recorder(self.log)

    def predict(self, sentences: Sequence[Sentence]) -> list[Sentence]:
        inside = sum(id(sentence) in self.seen for sentence in sentences)
        self.log.append((len(sentences), inside))
        return [replace(s, words=[w._replace(xpos=w.upos.upper()) for w in s.words]) for s in sentences]


class Last:
    """A component that cannot be trained."""

    def predict(self, sentences: Sequence[Sentence]) -> list[Sentence]:
        return [replace(s, words=[w._replace(deprel=w.xpos) for w in s.words]) for s in sentences]


def test_no_sentence_is_predicted_by_a_copy_that_has_learnt_from_it() -> None:
    log: list[tuple[int, int]] = []
    Pipeline([Recorder(log), Last()], folds=3, n_threads=1).fit(TRAIN)
    sizes = [sum(fold_of(n, 3) == fold for n in range(60)) for fold in range(3)]
    assert log[:2] == [(60, 0), (10, 0)]  # the component itself, on all sentences; and what it fills
    assert log[2:] == [pair for size in sizes for pair in [(60 - size, 0), (size, 0)]]


def test_the_parser_learns_from_no_column_that_the_pipeline_does_not_fill() -> None:
    pipeline = Pipeline([TreebankTagger("upos"), Parser()], folds=2, n_threads=1).fit(TRAIN)
    with warnings.catch_warnings():
        warnings.simplefilter("error", MissingColumns)
        found = pipeline.predict(TEST)
    assert [[w.head for w in s.words] for s in found] == [[w.head for w in s.words] for s in TEST]
    assert {word.xpos for sentence in found for word in sentence.words} == {"_"}


def test_components_of_any_kind_join() -> None:
    class Shouting:
        def predict(self, sentences: Sequence[Sentence]) -> list[Sentence]:
            return [replace(s, words=[w._replace(lemma=w.form.upper()) for w in s.words]) for s in sentences]

    assert isinstance(Shouting(), Component)
    tokenizer = Tokenizer(n_threads=1).fit(TRAIN)
    pipeline = Pipeline([tokenizer, Shouting()])
    [found] = pipeline("The dog sees the cat.")
    assert [word.lemma for word in found.words] == ["THE", "DOG", "SEES", "THE", "CAT", "."]
    with pytest.raises(UnsavableError, match="Shouting"):
        pipeline.to_file()
    assert columns(Pipeline([Shouting()]).predict(TEST)) != columns(TEST)
    with pytest.raises(ArgumentError, match="no tokenizer"):
        Pipeline([Shouting()])("some text")


@pytest.mark.parametrize(
    "answer",
    [lambda s: None, lambda s: [], lambda s: [Sentence(x.words[:-1]) for x in s], lambda s: [1 for _ in s]],
)
def test_an_answer_with_other_words_is_refused(answer: Any) -> None:
    class Wrong:
        def predict(self, sentences: Sequence[Sentence]) -> list[Sentence]:
            return answer(sentences)

    with pytest.raises(ArgumentError, match="Wrong"):
        Pipeline([Wrong()]).predict(TEST)


def test_a_saved_pipeline_is_the_same(trained: Pipeline, tmp_path: Path) -> None:
    trained.save(tmp_path / "a.model", metadata={"note": 1})
    loaded = crfkit.load(tmp_path / "a.model")
    assert isinstance(loaded, Pipeline)
    text = raw_text(TEST)
    assert loaded(text) == trained(text)
    assert (
        loaded.describe() == trained.describe() == "tokenizer\ntagger of upos+xpos+feats\nlemmatizer\nparser"
    )
    assert crfkit.models.read_metadata(tmp_path / "a.model") == {"note": 1}
    assert isinstance(Pipeline.load(tmp_path / "a.model"), Pipeline)
    trained.tokenizer_.save(tmp_path / "t.model")  # type: ignore[union-attr]
    with pytest.raises(ArgumentError, match="expected a pipeline"):
        Pipeline.load(tmp_path / "t.model")


@pytest.mark.parametrize(
    "damage", [{"components": ["x"]}, {"components": None}, {"left_out": 3}, {"parts": {}}]
)
def test_damaged_files_are_refused(trained: Pipeline, tmp_path: Path, damage: dict[str, Any]) -> None:
    file = trained.to_file()
    write_model_file(file._replace(settings=file.settings | damage), tmp_path / "a.model")
    with pytest.raises(FileFormatError, match=r"a\.model"):
        crfkit.load(tmp_path / "a.model")


def test_what_the_treebank_lacks_is_left_out() -> None:
    pipeline = Pipeline(folds=2, n_threads=1).fit([bare(sentence) for sentence in TRAIN])
    assert list(pipeline.left_out_) == [
        "tagger of upos",
        "tagger of xpos",
        "tagger of feats",
        "lemmatizer",
        "parser",
    ]
    assert pipeline.components_ == []
    assert "no parser: no word of the treebank has a HEAD" in pipeline.describe()
    [found] = pipeline("The dog sees the cat.")
    assert [word.head for word in found.words] == [None] * 6


def test_what_cannot_be_is_refused() -> None:
    with pytest.raises(EmptyDataError):
        Pipeline().fit([])
    with pytest.raises(NotFittedError):
        Pipeline()("a")
    with pytest.raises(ArgumentError, match="folds"):
        Pipeline(folds=1).fit(TRAIN)
    with pytest.raises(ArgumentError, match="component 0"):
        Pipeline([3]).fit(TRAIN)
    with pytest.raises(ArgumentError, match="first one"):
        Pipeline([Parser(), Tokenizer()]).fit(TRAIN)
    with pytest.raises(ArgumentError, match="text is of type bytes"):
        Pipeline([Last()])(b"a")  # type: ignore[arg-type]


def components() -> list[Any]:
    return [Tokenizer(), TreebankTagger("upos"), Lemmatizer(), Parser()]


def test_an_interrupted_run_keeps_what_is_finished_and_goes_on(tmp_path: Path) -> None:
    iterations: list[int] = []
    expected = Pipeline(components(), folds=2, n_threads=1)
    expected.fit(TRAIN, callback=lambda progress: iterations.append(progress.iteration))
    longest = max(iterations)  # of a component: each run below finishes at least one

    def interrupt(progress: Progress) -> None:
        iterations.append(progress.iteration)
        if len(iterations) == longest + 1:
            raise KeyboardInterrupt

    pipeline = Pipeline(components(), folds=2, n_threads=1)
    finished = [0]
    interrupted: str | None = ""
    while interrupted is not None:
        iterations.clear()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            pipeline.fit(TRAIN, callback=interrupt, checkpoint=tmp_path / "run")
        interrupted = pipeline.interrupted_
        said = [warning for warning in caught if warning.category is TrainingInterrupted]
        assert len(said) == (interrupted is not None)
        finished.append(len(list((tmp_path / "run").iterdir())))
        assert finished[-1] > finished[-2]
        assert interrupted is None or len(pipeline.components_) < 4
    assert len(finished) > 3
    text = raw_text(TEST)
    assert pipeline(text) == expected(text)
    with pytest.raises(CheckpointMismatchError, match="training data"):
        Pipeline(components(), folds=2).fit(TRAIN[1:], checkpoint=tmp_path / "run")
    with pytest.raises(CheckpointMismatchError, match="components"):
        Pipeline(components()[:2], folds=2).fit(TRAIN, checkpoint=tmp_path / "run")


def test_a_word_of_another_script_or_a_control_character_is_analysed(trained: Pipeline) -> None:
    text = "\x00\x01 日本語 🙂 ‏אבג‏ _ # | \\ İ\n"
    found = trained(text)
    assert raw_text(found) == text
    assert all(word.upos != "_" and word.head is not None for sentence in found for word in sentence.words)


@pytest.mark.parametrize("size", [1, 3, 1000])
@pytest.mark.parametrize(
    ("begin", "form"),
    [
        ("", "text"),
        ("# a\n\n", "text"),
        ("\ufeff# a\n", "conllu"),
        ("\ufeff", "conllu"),
        ("\n # b\n", "text"),
    ],
)
def test_the_first_line_that_is_no_comment_tells_the_format(begin: str, form: str, size: int) -> None:
    line = "1\tGo\t_\t_\t_\t_\t0\troot\t_\t_" if form == "conllu" else "Go"
    for end in ("", "\n", "\r\n", "\n\nmore"):
        text = begin + line + end
        found, pieces = recognise(text[i : i + size] for i in range(0, len(text), size))
        assert (found, "".join(pieces)) == (form, text)


def test_each_piece_is_searched_once_for_the_first_line() -> None:
    """Blank lines and comments at the beginning, however many, are not joined again for each piece."""

    class Counted(str):
        n_splits = 0

        def split(self, *arguments: Any) -> list[str]:
            Counted.n_splits += 1
            return str(self).split(*arguments)

    pieces = [Counted("# comment\n" if i % 2 else "\n") for i in range(1000)]
    found, again = recognise(pieces)
    assert found == "text"
    assert list(again) == pieces
    assert Counted.n_splits == 1000


def test_a_file_whose_components_are_numbers_is_refused(trained: Pipeline, tmp_path: Path) -> None:
    file = trained.to_file()
    parts = {str(i): part for i, part in enumerate(file.settings["parts"].values())}
    damaged = file._replace(settings={**file.settings, "parts": parts, "components": list(range(len(parts)))})
    write_model_file(damaged, tmp_path / "model.crf")
    with pytest.raises(FileFormatError, match="components"):
        crfkit.load(tmp_path / "model.crf")


def test_a_sentence_that_is_too_long_to_parse_is_refused(
    trained: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("crfkit.pipeline.components.MOST_WORDS", 10)
    for form in ("tokens", "sentences"):
        with pytest.raises(
            InputError, match=r":\d+: a sentence of 11 words, expected at most 10: the parser"
        ):
            trained("the dog sees the cat .\n" + "the " * 11, input=form)
    assert len(trained("the " * 10, input="tokens")[0].words) == 10


def test_kept_features_that_are_empty_stay_empty(trained: Pipeline) -> None:
    words = [word._replace(feats="_") if i else word for i, word in enumerate(TEST[0].words)]
    [found] = trained.predict([replace(TEST[0], words=words)], keep_tags=True)
    assert [word.feats for word in found.words] == [word.feats for word in words]
    without = [word._replace(feats="_") for word in words]
    [found] = trained.predict([replace(TEST[0], words=without)], keep_tags=True)
    assert [word.feats for word in found.words] == [word.feats for word in TEST[0].words]
