"""Column files on the command line: what separates the columns, how many there are, which labels a dev file has."""

from __future__ import annotations

import pickle
import re
from pathlib import Path

import pytest

import crfkit
from crfkit.models import read_metadata
from crfkit.models.files.model_file import decode, encode
from tests.cli.commands import columns, complaint, run

SENTENCES = ["the D dog N runs V", "a D cat N sees V the D dog N"] * 8
CHUNKS = ["the D B-NP dog N I-NP runs V B-VP", "a D B-NP cat N I-NP sees V B-VP"] * 8


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder to be in."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def trained(separator: str, sentences: list[str] = SENTENCES, n: int = 2, *options: str) -> str:
    """A model of a file with this separator."""
    Path("train.txt").write_text(columns(sentences, n, separator))
    run("train", "train.txt", "--model", "m.crf", "--quiet", *options)
    return "m.crf"


# ---- separators


def test_the_separator_of_the_training_file_is_kept() -> None:
    for separator, options in ((",", ("--separator", ",")), ("\t", ()), (" ", ()), ("  ", ())):
        model = trained(separator, SENTENCES, 2, *options)
        assert read_metadata(model)["separator"] == separator[:1]
        text = f"the{separator}X\ndog{separator}Y\n"
        joint = separator[:1]
        wanted = f"the{joint}X{joint}D\ndog{joint}Y{joint}N\n\n"
        assert run("tag", model, "-", text=text).stdout == wanted
        assert "accuracy: 100.00%" in run("eval", model, "train.txt").stdout


def test_words_with_blanks_in_files_separated_by_tabs() -> None:
    Path("train.txt").write_text("old\tO\nNew York\tLOC\n\nthe\tO\nSan Juan\tLOC\n\n" * 4)
    run("train", "train.txt", "--model", "m.crf", "--quiet")
    assert run("tag", "m.crf", "-", text="the\nNew York\n").stdout == "the\tO\nNew York\tLOC\n\n"


@pytest.mark.parametrize("command", [("tag",), ("eval",)])
@pytest.mark.parametrize(("separator", "name"), [("\t", "tabs"), (",", "','")])
def test_blanks_where_the_training_file_had_something_else(
    command: tuple[str], separator: str, name: str
) -> None:
    options = () if separator == "\t" else ("--separator", separator)
    model = trained(separator, SENTENCES, 2, *options)
    said = complaint(*command, model, "-", text="the D\ndog N\n")
    assert said == (
        f"crfkit: <stdin>:1: the columns of the training file were separated by {name}, and this row has none but "
        "blanks; expected one word a line, or --separator, which says what separates its columns"
    )
    run(*command, model, "-", "--separator", " ", text="the D\ndog N\n")


def test_tabs_and_blanks_mixed_where_the_training_file_had_blanks() -> None:
    model = trained(" ", CHUNKS, 3)
    text = "the D\tB-NP\ndog  N\tI-NP\n"  # by tabs alone: two columns, as many as the inputs
    assert run("tag", model, "-", text=text).stdout == "the\tD\tB-NP\tB-NP\ndog\tN\tI-NP\tI-NP\n\n"
    said = complaint("tag", model, "-", text="New York\tN\tB-NP\n")
    assert said == (
        "crfkit: <stdin>:1: found 4 columns, the model expects 2 columns, or 3 with a label "
        "(separated by blanks, as in training, or as --separator says)"
    )
    assert run("tag", model, "-", "--separator", "\t", text="New York\tN\tB-NP\n").stdout.count("\t") == 3


def test_a_dev_file_is_separated_like_the_training_file() -> None:
    Path("train.txt").write_text(columns(CHUNKS, 3, "\t"))
    Path("dev.txt").write_text(columns(CHUNKS, 3, " "))
    assert complaint("train", "train.txt", "--dev", "dev.txt", "--model", "m.crf") == (
        "crfkit: dev.txt:1: found one column, expected one word a line, with input columns and a label column, "
        "separated by tabs"
    )


def test_models_that_know_no_separator_let_each_file_decide() -> None:
    X, y = [[("the",), ("dog",)]], [["D", "N"]]
    crfkit.CRF(features="pos").fit(X, y).save("m.crf")
    old = decode(Path("m.crf").read_bytes())
    del old.settings["metadata"]  # as files were before
    Path("old.crf").write_bytes(encode(old))
    for model in ("m.crf", "old.crf"):
        assert run("tag", model, "-", text="the X\n").stdout == "the X D\n\n"
        assert run("tag", model, "-", text="the\tX\n").stdout == "the\tX\tD\n\n"


# ---- presets and columns


def test_a_preset_makes_do_with_the_columns_there_are() -> None:
    Path("train.txt").write_text(columns(SENTENCES, 2))
    said = run("train", "train.txt", "--model", "m.crf", "--features", "chunks").stderr
    assert (
        "\ntrain.txt: no column 1 beside the label, the preset chunks leaves out what it reads there\n"
        in said
    )
    assert crfkit.load("m.crf").features == "chunks"
    assert run("tag", "m.crf", "-", text="the\ncat\n").stdout == "the D\ncat N\n\n"
    Path("chunks.txt").write_text(columns(CHUNKS, 3))
    said = run("train", "chunks.txt", "--model", "m.crf", "--features", "chunks").stderr
    assert "leaves out" not in said


def test_names_reads_a_column_of_parts_of_speech_where_there_is_one() -> None:
    Path("chunks.txt").write_text(columns(CHUNKS, 3))
    said = run("train", "chunks.txt", "--model", "m.crf").stderr  # labels of spans: the preset names
    assert said.splitlines()[1] == "chunks.txt: the preset names reads column 1 as the part of speech"
    assert "pos[-1]=D" in run("inspect", "m.crf", "--top", "1000").stdout
    assert "found 1 column, the model expects 2" in complaint("tag", "m.crf", "-", text="the\ncat\n")
    tagged = run("tag", "m.crf", "-", text="the D\ncat N\n").stdout
    assert tagged == "the D B-NP\ncat N I-NP\n\n"
    words = [" ".join(w for i, w in enumerate(line.split()) if i % 3 != 1) for line in CHUNKS]
    Path("words.txt").write_text(columns(words, 2))
    said = run("train", "words.txt", "--model", "w.crf").stderr
    assert "column" not in said
    assert "pos[" not in run("inspect", "w.crf", "--top", "1000").stdout


def test_too_many_threads() -> None:
    Path("train.txt").write_text(columns(SENTENCES, 2))
    said = complaint("train", "train.txt", "--model", "m.crf", "--threads", str(2**40))
    assert said == "crfkit: n_threads is 1,099,511,627,776, expected at most 4,096"


# ---- labels of a dev file


def test_labels_that_only_the_dev_file_has() -> None:
    Path("train.txt").write_text(columns(SENTENCES, 2))
    Path("dev.txt").write_text("the D\n\na D\ncat XYZ\n")
    arguments = ("train", "train.txt", "--dev", "dev.txt", "--model", "m.crf")
    assert complaint(*arguments) == (
        "crfkit: dev.txt:4: the training file does not have the label 'XYZ' "
        "(--allow-unknown counts such labels as errors)"
    )
    said = run(*arguments, "--allow-unknown").stderr
    assert re.search(r"dev accuracy +66\.67\*", said), said


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("label_column", 7, "its label column is 7"),
        ("label_column", "x", "its label column is 'x'"),
        ("separator", "", "its separator is '', expected 1 to 100 characters"),
        ("separator", 7, "its separator is '7', expected 1 to 100 characters"),
    ],
)
def test_a_model_file_that_says_nonsense_of_columns(name: str, value: object, words: str) -> None:
    model = trained(" ")
    file = decode(Path(model).read_bytes())
    file.settings["metadata"][name] = value
    Path(model).write_bytes(encode(file))
    assert f"{model}: not a usable model: {words}" in complaint("tag", model, "-", text="the\n")


def test_what_a_file_says_of_columns_survives_python() -> None:
    model = trained(",", SENTENCES, 2, "--separator", ",")
    crf = crfkit.load(model)
    pickle.loads(pickle.dumps(crf)).save("copy.crf")
    assert read_metadata("copy.crf") == read_metadata(model) == {"label_column": -1, "separator": ","}
    crf.save(model, metadata={"mine": [1]})
    assert read_metadata(model) == {"mine": [1]}
    crf.fit([[("a",), ("c",)]], [["x", "y"]]).save(model)
    assert read_metadata(model) == {}


def test_files_of_earlier_versions_say_it_among_their_settings() -> None:
    model = trained(",", SENTENCES, 2, "--separator", ",")
    file = decode(Path(model).read_bytes())
    file.settings.update(file.settings.pop("metadata"))
    Path(model).write_bytes(encode(file))
    assert read_metadata(model) == {"label_column": -1, "separator": ","}
    assert run("tag", model, "-", text="the,X\n").stdout.startswith("the,X,")
