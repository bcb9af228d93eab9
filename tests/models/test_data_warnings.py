"""Warnings about data from which, or for which, a model can know less than somebody might think; CoNLL-U as columns."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import pickle
import warnings
from pathlib import Path
from typing import Any

import pytest

from crfkit import CRF, Lexicon, Parser, Segments, TagDictionary, load
from crfkit.data import Sentence, is_conllu, read_columns, read_conllu
from crfkit.errors import FileFormatError
from crfkit.features import encode_pairs
from crfkit.models import MissingColumns, UninformativeData, UnreadColumns, UnusedEntries
from crfkit.models.files.loading import from_bytes
from crfkit.models.training.data_warnings import filled_shares, warn_of_missing_columns
from tests.cli.commands import complaint, run

SENTENCES = """# text = don't run
1-2\tdon't\t_\t_\t_\t_\t_\t_\t_\t_
1\tdo\tdo\tAUX\tVB\tMood=Ind\t3\taux\t_\t_
2\tn't\tnot\tPART\tRB\t_\t3\tadvmod\t_\t_
3\trun\trun\tVERB\tVB\tVerbForm=Inf\t0\troot\t_\t_

1\tdogs\tdog\tNOUN\tNNS\tNumber=Plur\t2\tnsubj\t_\t_
2\tsleep\tsleep\tVERB\tVBP\tTense=Pres\t0\troot\t_\t_
2.1\tdeeply\t_\t_\t_\t_\t_\t_\t_\t_
"""
X = [[["a"], ["b"]], [["b"], ["a"]]]


# ---- training data


def test_one_label_and_no_features() -> None:
    with pytest.warns(
        UninformativeData, match="all labels are 'x': the model can give no other one"
    ) as found:
        CRF().fit(X, [["x", "x"], ["x", "x"]])
    assert found[0].filename == __file__
    with pytest.warns(UninformativeData, match="the training data have no feature: labels are learned from"):
        CRF().fit([[[], []], [{}, {}]], [["x", "y"], ["y", "x"]])
    with pytest.warns(UninformativeData, match="no feature that was seen at 5 positions or more"):
        CRF(min_count=5).fit(X, [["x", "y"], ["y", "x"]])
    CRF().fit(X, [["x", "y"], ["y", "x"]])


def test_columns_that_no_feature_reads() -> None:
    rows, y = [[("a", "D", "1"), ("b", "N", "2")]], [["x", "y"]]
    with pytest.warns(UnreadColumns, match=r"no feature reads columns 1 and 2 of the input \(counted from 0"):
        CRF(features="U:%x[0,0]").fit(rows, y)
    with pytest.warns(UnreadColumns, match="no feature reads column 1 of the input"):
        CRF(features="U:%x[0,0]/%x[-1,2]\nB").fit(rows, y)
    CRF(features="U:%x[0,0]\nU1:%x[0,1]\nB2:%x[0,2]").fit(rows, y)


def test_columns_that_segments_read() -> None:
    rows, y = [[("a", "D", "1"), ("b", "N", "2")]], [["x", "y"]]
    for structure, unread in (
        (Segments(), "columns 1 and 2"),
        (Segments(segment_features=2), "column 1"),
        (Segments(dictionaries={"d": ["D"]}, column=1), "column 2"),
    ):
        with pytest.warns(UnreadColumns, match=f"no feature reads {unread} of the input"):
            CRF(structure, "U:%x[0,0]\nB").fit(rows, y)
    for structure in (Segments(segment_features=[1, 2]), Segments(segment_features=_no_feature)):
        CRF(structure, "U:%x[0,0]\nB").fit(rows, y)


def _no_feature(x: Any, start: int, end: int) -> None:
    """It may read any column."""


TITLES = [list("王伟总经理"), list("总经理王伟")]
TITLE_TAGS = [["B-P", "I-P", "B-T", "I-T", "I-T"], ["B-T", "I-T", "I-T", "B-P", "I-P"]]


@pytest.mark.parametrize(
    "features", ["names", "U:%x[0,0]\ntitle=%in[0,0,titles]", "a=%x[0,0]\nb=%in[-1,0,titles]"]
)
def test_lexicon_without_an_entry_in_the_data(features: str) -> None:
    with pytest.warns(
        UnusedEntries, match="the training data have no entry of the lexicon 'titles': "
    ) as found:
        CRF(features=features, resources={"titles": Lexicon.build(["总经理"])}).fit(TITLES, TITLE_TAGS)
    assert found[0].filename == __file__
    CRF(features=features, resources={"titles": Lexicon.build(["总经理", "a b"], split=list)}).fit(
        TITLES, TITLE_TAGS
    )


def test_lexicon_of_lists_and_rare_entries() -> None:
    lists = Lexicon.build({"title": ["总经理"], "city": ["上海"]}, split=list)
    CRF(features="names", resources={"titles": lists}).fit(TITLES, TITLE_TAGS)
    with pytest.warns(UnusedEntries, match="'titles' that was seen at 3 positions or more: "):
        CRF(features="names", resources={"titles": lists}, min_count=3).fit(TITLES, TITLE_TAGS)


def test_lexicon_whose_states_stand_in_pairs_alone() -> None:
    features = "a=%x[0,0]\nb=%in[0,0,titles]/%x[1,0]"
    CRF(features=features, resources={"titles": Lexicon.build(["总经理"])}).fit(TITLES, TITLE_TAGS)


@pytest.mark.parametrize("stored", [False, True])
def test_tag_dictionary_with_labels_of_another_tag_set(stored: bool, tmp_path: Path) -> None:
    words, tags = [["a", "b", "c"]] * 3, [["x", "y", "x"]] * 3
    known = TagDictionary.from_data(words, tags)
    strange = TagDictionary.from_lexicon({"a": ["x", "N;SG"], "d": ["N;PL"], "e": ["N;PL", "V"]})
    data: Any = (words, tags)
    if stored:
        pairs = zip(words, tags, strict=True)
        data = (encode_pairs(pairs, tmp_path / "data", features="pos", word_column=0),)
    features = None if stored else "pos"
    with pytest.warns(
        UnusedEntries, match="2 of 5 words of the tag dictionary have no label .* 'd' with 'N;PL'"
    ):
        CRF(features=features, tag_dictionary=known.join(strange)).fit(*data)
    CRF(features=features, tag_dictionary=known).fit(*data)


@pytest.mark.usefixtures("column_files")
def test_the_command_line_says_it() -> None:
    Path("three.txt").write_text("a D x\nb N y\n\nb N y\na D x\n")
    said = run("train", "three.txt", "--model", "m.crf", "--features", "pos").stderr
    warning = "crfkit: warning: no feature reads column 1 of the input (counted from 0, the label apart)\n"
    assert said.count(warning) == 1
    assert run("train", "three.txt", "--model", "m.crf", "--features", "pos", "--quiet").stderr == ""
    Path("one.txt").write_text("a x\nb x\n")
    said = run("train", "one.txt", "--model", "m.crf").stderr
    assert "crfkit: warning: all labels are 'x': the model can give no other one\n" in said


# ---- CoNLL-U handed to a tagger


def test_conllu_is_recognised() -> None:
    sequences = list(read_columns(io.StringIO(SENTENCES)))
    assert all(is_conllu(sequence.rows) for sequence in sequences)
    rows = sequences[1].rows
    assert not is_conllu([row[:9] for row in rows])
    assert is_conllu(rows[1:])  # begins with word 2: damaged, but nothing else
    assert is_conllu([(*row[:6], "DET", *row[7:]) for row in rows])
    assert not is_conllu([("0.0", *row[1:]) for row in rows])
    assert not is_conllu([("one", *row[1:]) for row in rows])
    assert not is_conllu([])


@pytest.mark.usefixtures("column_files")
def test_conllu_is_no_file_of_columns(model: str) -> None:
    Path("x.conllu").write_text(SENTENCES)
    looks = ": this looks like CoNLL-U (ten columns, the first one a number)"
    said = complaint("train", "x.conllu", "--model", "u.crf", "--attributes")
    assert said.startswith(f"crfkit: x.conllu:1{looks}")
    for arguments in (
        ("train", "x.conllu", "--model", "u.crf"),
        ("train", "x.conllu", "--model", "u.crf", "--label-column", "3", "--features", "pos"),
    ):
        assert complaint(*arguments).startswith(
            f"crfkit: x.conllu:2{looks}: train on it with crfkit train-tagger"
        )
    for command in ("tag", "eval"):
        said = complaint(command, model, "x.conllu")
        assert said.startswith(f"crfkit: x.conllu:2{looks}, which the model was not trained on: expected a")


@pytest.mark.usefixtures("column_files")
def test_packed_files_and_streams_are_recognised_too(model: str) -> None:
    looks = ": this looks like CoNLL-U (ten columns, the first one a number)"
    for name, packer in (("x.xz", lzma), ("x.gz", gzip), ("x.bz2", bz2)):
        Path(name).write_bytes(packer.compress(SENTENCES.encode()))
        assert complaint("train", name, "--model", "u.crf").startswith(f"crfkit: {name}:2{looks}")
        assert complaint("tag", model, name).startswith(f"crfkit: {name}:2{looks}")
    assert complaint("tag", model, "-", text=SENTENCES).startswith(f"crfkit: <stdin>:2{looks}")


@pytest.mark.usefixtures("column_files")
def test_one_may_insist_on_plain_columns() -> None:
    Path("x.conllu").write_text(SENTENCES)
    said = run("train", "x.conllu", "--model", "u.crf", "--plain-columns").stderr
    assert "the model of iteration" in said
    assert run("tag", "u.crf", "x.conllu", "--labels-only").stdout


@pytest.mark.usefixtures("column_files")
def test_a_template_may_read_conllu() -> None:
    Path("x.conllu").write_text(SENTENCES)
    Path("forms.txt").write_text("U:%x[0,1]\nB\n")
    said = run(
        "train", "x.conllu", "--model", "u.crf", "--template", "forms.txt", "--label-column", "3"
    ).stderr
    assert "crfkit: warning: no feature reads columns 0, 2, 3, 4, 5, 6, 7 and 8 of the input" in said
    assert "\tVERB\n" in run("tag", "u.crf", "x.conllu").stdout


# ---- parsers


def without(sentences: list[Sentence], *columns: str) -> list[Sentence]:
    """The sentences with nothing in these columns."""
    empty = dict.fromkeys(columns, "_")
    return [Sentence([word._replace(**empty) for word in one.words]) for one in sentences]  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def sentences() -> list[Sentence]:
    return list(read_conllu(io.StringIO(SENTENCES)))


@pytest.fixture(scope="module")
def parser(sentences: list[Sentence]) -> Parser:
    return Parser().fit(sentences)


def test_a_parser_misses_the_columns_that_it_has_learned_from(
    parser: Parser, sentences: list[Sentence], tmp_path: Path
) -> None:
    parser.predict(sentences)
    parser.predict(sentences[:1])
    with pytest.warns(MissingColumns, match="the parser has learned from UPOS tags, and no word of") as found:
        parser.predict(without(sentences, "upos"))
    assert found[0].filename == __file__
    parser.save(tmp_path / "m.parser")
    bare = without(sentences, "lemma", "upos", "xpos")
    for other in (load(tmp_path / "m.parser"), pickle.loads(pickle.dumps(parser))):
        with pytest.warns(MissingColumns, match="learned from lemmas, UPOS tags and XPOS tags, and no word"):
            other.score(bare)
    Parser().fit(bare).predict(bare)  # it has learned without them


def test_few_words_may_lack_a_column_by_chance(sentences: list[Sentence]) -> None:
    assert filled_shares(sentences) == {"lemma": 1.0, "upos": 1.0, "xpos": 1.0, "feats": 0.8}
    bare = without(sentences, "feats")
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        for n_copies in (0, 1, 2):  # 0.2^5 is a chance of 3e-4; 0.2^3 one of 8e-3
            warn_of_missing_columns({"feats": 0.8}, bare * n_copies, stacklevel=1)
        warn_of_missing_columns({"feats": 0.8}, bare[:1], stacklevel=1)
        warn_of_missing_columns({"feats": 0.0}, bare, stacklevel=1)
    assert len(found) == 2


@pytest.mark.parametrize("columns", [[], "upos", {"upos": 2}, {"upos": None}, {"form": 0.5}, {"upos": -1}])
def test_damaged_columns_of_a_model_file(
    parser: Parser, columns: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parser, "_model", parser._model._replace(columns=columns))  # type: ignore[arg-type]
    with pytest.raises(FileFormatError, match="not a usable parser: its columns are no shares"):
        from_bytes(parser._to_bytes(), "m.parser")


@pytest.mark.usefixtures("column_files")
def test_commands_for_parsers_warn_too() -> None:
    Path("x.conllu").write_text(SENTENCES)
    lines = [line.split("\t") for line in SENTENCES.splitlines()]
    for columns in lines:
        columns[2:6] = ["_"] * len(columns[2:6])
    Path("bare.conllu").write_text("\n".join("\t".join(columns) for columns in lines) + "\n")
    run("train-parser", "x.conllu", "--model", "m.parser", "--quiet")
    for command in ("parse", "eval"):
        said = run(command, "m.parser", "bare.conllu").stderr
        assert said.startswith("crfkit: warning: the parser has learned from lemmas, UPOS tags, XPOS tags")
        assert run(command, "m.parser", "x.conllu").stderr == ""
        assert run(command, "m.parser", "bare.conllu", "--quiet").stderr == ""
