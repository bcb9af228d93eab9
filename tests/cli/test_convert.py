"""`crfkit convert`."""

from __future__ import annotations

from pathlib import Path

import pytest

import crfkit
from crfkit import CRF, Chain
from crfkit.compat import read_crfsuite, write_crfsuite
from tests.cli.commands import run

X = [[["a", "b"], ["c"]], [["c"], ["a"]]]
Y = [["x", "y"], ["y", "x"]]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_there_and_back() -> None:
    crf = CRF(Chain(start=False, end=False), l2=0.2).fit(X, Y)
    write_crfsuite(crf, "a.crfsuite")
    assert "written as a model of crfkit" in run("convert", "a.crfsuite", "b.crf").stderr
    assert crfkit.load("b.crf").predict(X) == crf.predict(X)
    Path("new.att").write_text("x\ta\tb\ny\tc\n")
    assert run("tag", "a.crfsuite", "new.att").stdout == run("tag", "b.crf", "new.att").stdout == "x\ny\n\n"
    assert "accuracy: 100.00%" in run("eval", "a.crfsuite", "new.att").stdout
    run("convert", "b.crf", "c.crfsuite")
    assert Path("c.crfsuite").read_bytes() == Path("a.crfsuite").read_bytes()
    run("convert", "a.crfsuite", "d.crfsuite", "--to", "crfsuite")
    assert read_crfsuite("d.crfsuite").classes_ == ["x", "y"]


def test_what_cannot_be_converted_is_said_with_a_message() -> None:
    CRF().fit(X, Y).save("a.crf")
    assert "start or end arcs" in run("convert", "a.crf", "b.crfsuite", status=2).stderr
    assert "cannot be read" in run("convert", "none", "b", status=2).stderr
    Path("bad").write_bytes(b"lCRF" + bytes(100))
    assert "not a model of CRFsuite" in run("convert", "bad", "b", status=2).stderr
    assert not Path("b").exists()
