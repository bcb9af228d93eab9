"""Constraints on the command line: bigrams by name, gold labels outside them, a column of allowed labels."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import crfkit
from crfkit import Bigrams
from crfkit.models import read_metadata
from tests.cli.commands import columns, complaint, run

NAMES = [
    "Mary B-PER Jones I-PER met O Rome B-LOC",
    "he O lives O in O New B-LOC York I-LOC",
    "Peter B-PER sees O Mary B-PER",
] * 4
STRANGE = "old O Mary I-PER met O"
TAGGED = [
    "the D D dog N|V N runs N|V V",
    "a * D run N|V N",
    "dogs _ N run V V",
] * 6  # word, allowed labels, label


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("names.txt").write_text(columns(NAMES, 2))
    Path("strange.txt").write_text(columns([*NAMES, STRANGE], 2))
    Path("tags.txt").write_text(columns(TAGGED, 3))


# ---- bigrams


def test_a_scheme_holds_in_all_that_comes_out() -> None:
    run("train", "names.txt", "--model", "m.crf", "--bigrams", "bio", "--quiet")
    bigrams = crfkit.load("m.crf").structure_.bigrams
    assert bigrams == Bigrams.scheme("bio", ["B-LOC", "B-PER", "I-LOC", "I-PER", "O"])
    for line in run("tag", "m.crf", "-", "--nbest", "20", text="York\nJones\n").stdout.split("\n\n"):
        labels = [row.split()[1] for row in line.splitlines() if row and not row.startswith("#")]
        assert bigrams.allows(labels)


def test_observed_bigrams_and_their_picture() -> None:
    run("train", "names.txt", "--model", "m.crf", "--bigrams", "observed", "--quiet")
    shown = run("inspect", "m.crf", "--top", "0").stdout
    assert (
        "bigrams, label before down, label after across; no others exist\n  12 of 36 pairs (33.3 %)" in shown
    )
    assert "\n  I-PER   ·     ·     ·     ·   ●  ·\n" in shown
    described = json.loads(run("inspect", "m.crf", "--json").stdout)["bigrams"]
    assert [None, "B-PER"] in described["pairs"]
    assert len(described["pairs"]) == 12
    assert described["unseen"] == "error"
    run("train", "names.txt", "--model", "free.crf", "--quiet")
    assert json.loads(run("inspect", "free.crf", "--json").stdout)["bigrams"] is None
    assert "bigrams, label" not in run("inspect", "free.crf").stdout


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (
            ["strange.txt", "--bigrams", "bio"],
            "crfkit: strange.txt:62: I-PER after O is not allowed by bio; 1 of 13 sequences lie outside the bigrams "
            "(--unseen extend, skip or soft says what to do with them)",
        ),
        (
            ["names.txt", "--bigrams", "iobes"],
            "crfkit: names.txt:3: O after I-PER is not allowed by iobes; 12 of 12",
        ),
        (["tags.txt", "--bigrams", "bio"], "crfkit: The label"),
        (["names.txt", "--bigrams", "nosuch"], "crfkit: Chain.bigrams is 'nosuch', expected None"),
        (
            ["names.txt", "--bigrams", "bio", "--unseen", "no"],
            "crfkit: Chain.unseen is 'no', expected one of error",
        ),
        (["names.txt", "--unseen", "no"], "crfkit: Chain.unseen is 'no'"),
    ],
)
def test_labels_outside_are_refused_with_file_and_line(options: list[str], words: str) -> None:
    assert complaint("train", *options, "--model", "m.crf").startswith(words)


def test_labels_outside_can_be_skipped_added_or_borne() -> None:
    said = run("train", "strange.txt", "--model", "m.crf", "--bigrams", "bio", "--unseen", "skip").stderr
    assert "\nstrange.txt: 1 of 13 sequences lie outside the bigrams and are left out\n" in said
    assert "outside the constraints: 1 (7.69%)" in run("eval", "m.crf", "strange.txt").stdout
    assert "outside the constraints: 0 (0.00%)" in run("eval", "m.crf", "names.txt").stdout
    run("train", "strange.txt", "--model", "m.crf", "--bigrams", "bio", "--unseen", "extend", "--quiet")
    assert "outside the constraints: 0 (0.00%)" in run("eval", "m.crf", "strange.txt").stdout
    run("train", "strange.txt", "--model", "m.crf", "--bigrams", "bio", "--unseen", "soft", "--quiet")
    assert (
        "outside the constraints" not in run("eval", "m.crf", "strange.txt").stdout
    )  # all pairs are possible
    assert "others exist too, without weights" in run("inspect", "m.crf").stdout
    run("train", "names.txt", "--model", "m.crf", "--quiet")
    assert "outside the constraints" not in run("eval", "m.crf", "strange.txt").stdout


def test_labels_outside_where_the_bigrams_are_those_of_states() -> None:
    X, y = zip(*crfkit.data.read_pairs("names.txt"), strict=True)
    crfkit.CRF(features="U:%x[0,0]\nB", span_states="iobes").fit(X, y).save("m.crf")
    said = run("eval", "m.crf", "names.txt").stdout
    assert "outside the constraints: 0 (0.00%)" in said
    assert "cannot be predicted: 0 (" in said
    said = run("eval", "m.crf", "strange.txt").stdout
    assert "outside the constraints: 1 (7.69%)" in said
    assert "cannot be predicted: 0 (" in said  # I-PER can be there, though not after O


def test_a_sequence_that_is_impossible_is_named_by_its_line() -> None:
    Path("pairs.txt").write_text("a X\nb Y\n\nb X\na Y\n")
    run("train", "pairs.txt", "--model", "m.crf", "--bigrams", "observed", "--quiet")
    Path("one.txt").write_text("a\nb\n\na\n")
    said = complaint("tag", "m.crf", "one.txt")
    assert said.endswith(
        ":4: no label sequence of length 1 is possible: no label may both begin and end a sequence"
    )
    Path("three.txt").write_text("a X\nb Y\n\na X\nb Y\na X\n")
    assert complaint("eval", "m.crf", "three.txt").startswith(
        "crfkit: three.txt:4: no label sequence of length 3"
    )


# ---- allowed labels


def test_a_column_of_allowed_labels() -> None:
    run("train", "tags.txt", "--model", "m.crf", "--allowed-column", "1", "--quiet")
    model = crfkit.load("m.crf")
    assert (model.n_columns_, read_metadata("m.crf")["label_column"]) == (1, 1)
    assert run("tag", "m.crf", "-", text="the\nrun\n").stdout == "the D\nrun N\n\n"
    only = run("tag", "m.crf", "-", "--allowed-column", "1", text="the N\nrun V\n").stdout
    assert only == "the N N\nrun V V\n\n"
    first = run("tag", "m.crf", "-", "--allowed-column", "0", text="D the\nV run\n").stdout
    assert first == "D the D\nV run V\n\n"
    last = run("tag", "m.crf", "-", "--allowed-column", "-1", text="the D D\nrun N V\n").stdout
    assert last == "the D D D\nrun N V V\n\n"
    shown = run(
        "tag", "m.crf", "-", "--allowed-column", "1", "--marginals", "--nbest", "5", text="run V\n"
    ).stdout
    assert shown == "# 1 1.000000\nrun V V 1.000000\n\n"
    report = run("eval", "m.crf", "tags.txt", "--allowed-column", "1").stdout
    assert "accuracy: 100.00%" in report
    assert "outside the constraints: 0 (0.00%)" in report
    Path("wrong.txt").write_text("the D D\nrun V N\n\nthe D D\n")
    assert (
        "outside the constraints: 1 (50.00%)"
        in run("eval", "m.crf", "wrong.txt", "--allowed-column", "1").stdout
    )


def test_labels_that_the_tag_dictionary_excludes_are_counted() -> None:
    Path("words.txt").write_text("the D\ndog N\nruns V\n\n" * 12)
    run("train", "words.txt", "--model", "m.crf", "--tag-dictionary", "--quiet")
    Path("other.txt").write_text("the D\ndog V\nruns V\n\nthe D\ndog N\n")
    report = run("eval", "m.crf", "other.txt").stdout
    assert "gold sequences outside the constraints: 1 (50.00%)" in report
    assert "gold labels that cannot be predicted: 1 (20.00% of tokens)" in report
    run("train", "words.txt", "--model", "m.crf", "--quiet")
    assert "cannot be predicted" not in run("eval", "m.crf", "other.txt").stdout


@pytest.mark.parametrize(
    ("order", "label_column", "allowed_column"),
    [
        ((0, 1, 2), "-1", "1"),
        ((0, 1, 2), "2", "-2"),
        ((2, 1, 0), "0", "1"),
        ((1, 2, 0), "1", "0"),
        ((0, 2, 1), "1", "-1"),
    ],
)
def test_columns_may_stand_in_any_order(
    order: tuple[int, ...], label_column: str, allowed_column: str
) -> None:
    def reordered(source: str, target: str) -> None:
        rows = [line.split() for line in Path(source).read_text().splitlines()]
        Path(target).write_text("".join(" ".join(row[i] for i in order if row) + "\n" for row in rows))

    reordered("tags.txt", "o.txt")
    run(
        "train", "o.txt", "--model", "o.crf", "--label-column", label_column, "--allowed-column", allowed_column,
        "--dev", "o.txt", "--quiet",
    )  # fmt: skip
    report = run("eval", "o.crf", "o.txt", "--allowed-column", allowed_column).stdout
    assert "accuracy: 100.00%" in report
    assert run("tag", "o.crf", "-", text="the\nrun\n").stdout == "the D\nrun N\n\n"


@pytest.mark.parametrize(
    ("text", "column", "words"),
    [
        ("a N N\nb N V\n", "1", "t.txt:2: the label is 'V', the allowed ones are N"),
        (
            "a N N\nb V| V\n",
            "1",
            "t.txt:2: the allowed labels are 'V|', expected labels joined by |, or * for all",
        ),
        ("a N N\nb V|X V\n", "1", "t.txt:2: the allowed label 'X' is none that the model knows"),
        ("a N N\nb V V\n", "3", "t.txt:1: there is no column 3 of allowed labels, found 3 columns"),
        ("a N N\nb V V\n", "2", "t.txt:1: column 2 is the label column, expected another one"),
        ("N N\nV V\n", "0", "t.txt:1: found no input column beside the label and the allowed labels"),
    ],
)
def test_bad_columns_of_allowed_labels(text: str, column: str, words: str) -> None:
    Path("t.txt").write_text(text)
    said = complaint("train", "t.txt", "--model", "m.crf", "--allowed-column", column)
    assert said.startswith(f"crfkit: {words}")


def test_allowed_labels_that_a_model_does_not_know() -> None:
    run("train", "tags.txt", "--model", "m.crf", "--allowed-column", "1", "--quiet")
    said = complaint("tag", "m.crf", "-", "--allowed-column", "1", text="the D\nrun Q|V\n")
    assert said.endswith(":2: the allowed label 'Q' is none that the model knows")
    said = complaint("tag", "m.crf", "-", "--allowed-column", "1", text="the\n")
    assert "found 1 column, the model expects 2 columns, or 3 with a label" in said
    Path("dev.txt").write_text("the Q D\n")
    said = complaint("train", "tags.txt", "--model", "n.crf", "--allowed-column", "1", "--dev", "dev.txt")
    assert said == "crfkit: dev.txt:1: the allowed label 'Q' is none that the model knows"
