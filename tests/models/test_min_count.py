"""min_count: features that are seen too rarely are left out; "auto" goes by the size of the training set."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from crfkit import CRF, LBFGS, load
from crfkit.errors import ArgumentError
from crfkit.models import settings

X = [["a", "b"], ["a", "c"], ["d", "b"]]
y = [["A", "B"], ["A", "B"], ["A", "B"]]
TEMPLATE = "word=%x[0,0]\nB"


def words_of(**parameters: Any) -> set[str]:
    crf = CRF(features=TEMPLATE, optimizer=LBFGS(max_iterations=3), **parameters).fit(X, y)
    return {name.removeprefix("word=") for name in crf._model.potentials.encoder.vocabulary.names()}


def test_auto_keeps_what_a_small_training_set_has() -> None:
    assert words_of(min_count="auto") == words_of(min_count=1) == {"a", "b", "c", "d"}


def test_auto_leaves_out_what_a_large_one_has_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settings, "MANY_POSITIONS", 7)
    assert words_of(min_count="auto") == {"a", "b", "c", "d"}  # six positions
    monkeypatch.setattr(settings, "MANY_POSITIONS", 6)
    assert words_of(min_count="auto") == words_of(min_count=2) == {"a", "b"}


def test_files_keep_it(tmp_path: Path) -> None:
    for value in (2, "auto"):
        crf = CRF(features=TEMPLATE, optimizer=LBFGS(max_iterations=3), min_count=value).fit(X, y)
        crf.save(tmp_path / "m.crf")
        assert load(tmp_path / "m.crf").min_count == value


@pytest.mark.parametrize("value", [0, "many", 1.5, True])
def test_what_is_no_count_is_refused(value: Any) -> None:
    with pytest.raises(ArgumentError, match="min_count"):
        CRF(min_count=value).fit([[["f"]]], [["A"]])
