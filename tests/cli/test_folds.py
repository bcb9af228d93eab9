"""Cross-validation on the command line."""

from __future__ import annotations

import re
from pathlib import Path
from statistics import fmean, pstdev
from typing import Any

import pytest

import crfkit
from crfkit.cli.train import train
from tests.cli.commands import columns, complaint, run

MODULE = "crfkit.cli.train"
SENTENCES = [
    "the D dog N runs V",
    "a D cat N sees V the D dog N",
    "dogs N bark V",
    "the D runs N end V",
    "we X run V",
]
SPANS = ["U B-N N I-N eats O", "the O U B-N", "N I-N eats O N B-N"] * 2


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder to be in."""
    monkeypatch.chdir(tmp_path)
    Path("train.txt").write_text(columns(SENTENCES, 2))
    Path("spans.txt").write_text(columns(SPANS, 2))
    return tmp_path


def test_each_part_is_labelled_by_a_model_of_the_others() -> None:
    found = run("train", "train.txt", "--model", "m.crf", "--folds", "5", "--quiet").stdout
    *parts, mean = found.splitlines()
    scores = []
    for k, line in enumerate(parts):
        rest = [sentence for i, sentence in enumerate(SENTENCES) if i != k]
        Path("rest.txt").write_text(columns(rest, 2))
        Path("part.txt").write_text(columns(SENTENCES[k : k + 1], 2))
        run("train", "rest.txt", "--model", "rest.crf", "--quiet")
        report = run("eval", "rest.crf", "part.txt", "--allow-unknown").stdout
        accuracy = re.search(r"accuracy: +([0-9.]+)%", report)
        assert accuracy is not None
        assert line == f"part {k + 1} of 5: accuracy {accuracy[1]}"
        scores.append(float(accuracy[1]))
    assert len(set(scores)) > 1
    assert mean == f"mean of 5: accuracy {fmean(scores):.2f} ± {pstdev(scores):.2f}"


def test_the_model_is_that_of_all_sequences() -> None:
    run("train", "train.txt", "--model", "m.crf", "--folds", "2", "--quiet")
    run("train", "train.txt", "--model", "plain.crf", "--quiet")
    assert (crfkit.load("m.crf").weights_ == crfkit.load("plain.crf").weights_).all()


def test_spans_have_f1() -> None:
    lines = run("train", "spans.txt", "--model", "m.crf", "--folds", "3", "--quiet").stdout.splitlines()
    number = r"[0-9.]+"
    assert all(re.fullmatch(rf"part \d of 3: accuracy {number}, F1 {number}", line) for line in lines[:-1])
    assert re.fullmatch(rf"mean of 3: accuracy {number} ± {number}, F1 {number} ± {number}", lines[-1])


def test_more_parts_than_sequences_are_refused() -> None:
    words = complaint("train", "train.txt", "--model", "m.crf", "--folds", "6")
    assert words == "crfkit: --folds 6: the file has only 5 sequences, expected at most as many"
    assert not Path("m.crf").exists()


def test_allowed_labels_that_only_one_part_has() -> None:
    sentences = ["dogs N|X N bark * V", "we X X run V|X V", "dogs * N run V V"]
    Path("allowed.txt").write_text(columns(sentences, 3))
    options = ("--allowed-column", "1", "--folds", "3", "--quiet")
    lines = run("train", "allowed.txt", "--model", "m.crf", *options).stdout.splitlines()
    assert lines[1] == "part 2 of 3: accuracy 50.00"  # X is known to the other two models only


def test_every_part_has_the_features_of_the_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    features = []

    def noting(model: crfkit.CRF, *arguments: Any, **settings: Any) -> bool:
        features.append(model.features)
        return train(model, *arguments, **settings)

    monkeypatch.setattr(f"{MODULE}.train", noting)
    Path("few.txt").write_text(columns(["U B-N", "eats O", "sees O"], 2))  # without part 1 nothing but O
    run("train", "few.txt", "--model", "m.crf", "--folds", "3", "--quiet")
    assert features == ["names"] * 4


def test_a_complaint_names_the_part() -> None:
    Path("short.txt").write_text(columns(["the D", "the D dog D runs D", "a D"], 2))
    options = ("--bigrams", "observed", "--folds", "3", "--quiet")
    result = run("train", "short.txt", "--model", "m.crf", *options, status=2)
    assert re.match(r"crfkit: --folds 3, part 2: short.txt:3: no label sequence of length 3", result.stderr)


def test_ctrl_c_ends_it_without_a_model(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(f"{MODULE}.train", lambda *_, **__: True)  # what it gives after Ctrl-C
    result = run("train", "train.txt", "--model", "m.crf", "--folds", "2", "--quiet", status=130)
    assert result.stderr == "crfkit: interrupted in the cross-validation; there is no model\n"
    assert not Path("m.crf").exists()
