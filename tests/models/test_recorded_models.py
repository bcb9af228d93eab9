"""Models that CRF++ and Wapiti have trained, and what these programs answer themselves."""

from __future__ import annotations

import re
import tarfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from benchmarks.corpora import find_corpus

import crfkit
from crfkit.cli.model_input import read_model
from crfkit.compat import read_crfpp
from crfkit.data import read_columns
from tests.cli.commands import run

PACKED = find_corpus("foreign_models", "models.tar")
pytestmark = pytest.mark.skipif(PACKED is None, reason="foreign_models is not in the folder CRFKIT_DATA")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    assert PACKED is not None
    path = tmp_path_factory.mktemp("models")
    with tarfile.open(PACKED) as tar:
        tar.extractall(path, filter="data")
    return path


@pytest.fixture(autouse=True)
def in_folder(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)


def blocks(text: str) -> list[list[str]]:
    return [block.split("\n") for block in text.strip("\n").split("\n\n")]


def column(block: Sequence[str], k: int) -> list[str]:
    return [line.split("\t")[k] for line in block if not line.startswith("# ")]


WAPITI = ["wapiti-crf", "wapiti-maxent", "wapiti-memm"]
CRFPP = ["crfpp-template", "crfpp-template_words", "crfpp-mira"]


@pytest.mark.parametrize("name", WAPITI)
def test_labels_of_wapiti(name: str) -> None:
    assert (
        run("tag", f"{name}.mod", "test.txt", "--format", "wapiti").stdout == Path(f"{name}.out").read_text()
    )


@pytest.mark.parametrize("name", [*WAPITI, "wapiti-crf-decimal"])
def test_posterior_scores_of_wapiti(name: str) -> None:
    found = run("tag", f"{name}.mod", "test.txt", "--format", "wapiti", "--scores", "--posterior").stdout
    assert found == Path(f"{name}.scores").read_text()


@pytest.mark.parametrize("name", WAPITI)
def test_n_best_of_wapiti(name: str) -> None:
    found = run("tag", f"{name}.mod", "test.txt", "--format", "wapiti", "--scores", "--nbest", "3").stdout
    check_n_best(f"{name}.mod", found, Path(f"{name}.nbest").read_text(), 1)


@pytest.mark.parametrize("name", CRFPP)
@pytest.mark.parametrize("form", ["bin", "bin.txt"])
def test_labels_and_probabilities_of_crfpp(name: str, form: str) -> None:
    """CRF++ adds weights in single precision, so that its last digit may be another one."""
    found = run("tag", f"{name}.{form}", "test.txt", "--format", "crf++", "--marginals").stdout
    for ours, theirs in zip(blocks(found), blocks(Path(f"{name}.out").read_text()), strict=True):
        assert float(ours[0][2:]) == pytest.approx(float(theirs[0][2:]), abs=2e-6)
        for line, expected in zip(ours[1:], theirs[1:], strict=True):
            assert line.rpartition("/")[0] == expected.rpartition("/")[0]
            p, q = (float(text.rpartition("/")[2]) for text in (line, expected))
            assert p == pytest.approx(q, abs=2e-6)


@pytest.mark.parametrize("name", CRFPP[:2])
@pytest.mark.parametrize("form", ["bin", "bin.txt"])
def test_n_best_of_crfpp(name: str, form: str) -> None:
    found = run("tag", f"{name}.{form}", "test.txt", "--format", "crf++", "--nbest", "3").stdout
    check_n_best(f"{name}.{form}", found, Path(f"{name}.nbest").read_text(), 3)


def check_n_best(model: str, found: str, recorded: str, label_column: int) -> None:
    """The same label sequences with the same scores, in the same order but where two have one score."""
    crf = read_model(Path(model)).crf
    rows = [sequence.rows for sequence in read_columns("test.txt", comment=None)]
    n_ties = 0
    for n, (ours, theirs) in enumerate(zip(blocks(found), blocks(recorded), strict=True)):
        assert ours[0] == theirs[0]
        if ours == theirs:
            continue
        n_ties += 1
        tied = [column(block, label_column) for block in (ours, theirs)]
        logs = crf.log_probability([rows[n // 3]] * 2, tied)
        assert logs[0] == pytest.approx(logs[1], rel=1e-5 if "crfpp" in model else 1e-12)
    assert n_ties <= 10


@pytest.mark.parametrize("name", CRFPP)
def test_binary_and_text_are_the_same_model(name: str) -> None:
    binary, text = read_crfpp(f"{name}.bin"), read_crfpp(f"{name}.bin.txt")
    assert binary.classes_ == text.classes_
    assert binary.features == text.features
    assert binary.n_columns_ == text.n_columns_
    assert binary.encoder_.vocabulary.names() == text.encoder_.vocabulary.names()
    np.testing.assert_array_equal(binary.weights_, text.weights_.astype(np.float32))


@pytest.mark.parametrize("name", ["wapiti-memm.mod", "crfpp-template_words.bin", "wapiti-crf-decimal.mod"])
def test_every_command_takes_the_models_as_they_are(name: str, tmp_path: Path) -> None:
    converted = str(tmp_path / "m.crf")
    run("convert", name, converted)
    crfkit.load(converted)
    for command in (["tag"], ["eval"], ["tag", "--nbest", "2", "--scores"]):
        first, *options = command
        again = run(first, converted, "test.txt", *options).stdout
        assert run(first, name, "test.txt", *options).stdout == again
    assert re.search(r"accuracy: +[89]\d\.", run("eval", name, "test.txt").stdout)
    assert "heaviest features" in run("inspect", name).stdout
