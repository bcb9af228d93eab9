"""What type checkers see of the public interface: labels are strings unless a model says otherwise."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

import crfkit

api = pytest.importorskip("mypy.api", reason="mypy is not installed")

PROGRAM = """
from typing import assert_type

import numpy as np
import numpy.typing as npt

from crfkit import CRF, Parser, load
from crfkit.compat import read_crfsuite, write_crfsuite
from crfkit.data import Sentence
from crfkit.models import heaviest_features

X = [[["w=the"], ["w=dog"]]]
crf = CRF(l2=0.1).fit(X, [["DET", "NOUN"]])
assert_type(crf, CRF[str])
labels: list[list[str]] = crf.predict(X)
classes: list[str] = crf.classes_
best: list[list[tuple[float, list[str]]]] = crf.predict_nbest(X, 2)
samples: list[list[list[str]]] = crf.sample(X, 3)
assert_type(crf.predict_marginals(X), list[npt.NDArray[np.float64]])
assert_type(read_crfsuite("m").predict(X), list[list[str]])

def share(gold: list[list[str]], predicted: list[list[str]]) -> float:
    return float(gold == predicted)

crf.fit(X, [["DET", "NOUN"]], dev=(X, [["DET", "NOUN"]]), metric=share, allowed=[[{"DET"}, None]])

numbers = CRF[int]().fit(X, [[1, 2]], start=crf)
assert_type(numbers.predict(X), list[list[int]])
assert_type(numbers.predict_nbest(X, 2), list[list[tuple[float, list[int]]]])
pairs: CRF[tuple[str, int]] = CRF()
assert_type(pairs.classes_, list[tuple[str, int]])
heaviest_features(numbers, 1)
write_crfsuite(crf, "m")

loaded = load("m")  # labels of any type
names: list[list[str]] = loaded.predict(X)
ids: list[list[int]] = loaded.predict(X)

sentences: list[Sentence] = Parser().predict([])
relations: list[str] = Parser().classes_
"""

MISTAKES = """
from crfkit import CRF

wrong: list[list[int]] = CRF().predict([])
lists = CRF[list[str]]()
"""


def checked(program: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[str, int]:
    """mypy --strict on a program outside the package: what it reports, and its exit status."""
    package = Path(crfkit.__file__).parents[1]
    if package.name != "position-packages":  # where mypy finds packages by itself
        monkeypatch.setenv("MYPYPATH", str(package))
    (tmp_path / "program.py").write_text(program, encoding="utf-8")
    report, errors, status = api.run(
        [
            *("--strict", "--config-file=", f"--python-executable={sys.executable}"),
            *("--follow-imports=silent", f"--cache-dir={tmp_path.parent / 'mypy'}"),
            str(tmp_path / "program.py"),
        ]
    )
    assert not errors
    return report, status


def test_labels_are_strings_unless_a_model_says_otherwise(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    report, status = checked(PROGRAM, tmp_path, monkeypatch)
    assert status == 0, report


def test_mistakes_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    report, status = checked(MISTAKES, tmp_path, monkeypatch)
    assert status == 1
    assert "program.py:4: error: Incompatible types in assignment" in report
    assert 'program.py:5: error: Value of type variable "Label" of "CRF" cannot be "list[str]"' in report


def test_a_model_with_declared_labels_is_the_same_estimator() -> None:
    crf = crfkit.CRF[int](l2=0.1).fit([[["a"], ["b"]]], [[1, 2]])
    assert crf.predict([[["a"], ["b"]]]) == [[1, 2]]
    assert type(crf) is crfkit.CRF
    assert repr(crf) == "CRF(l2=0.1)"
