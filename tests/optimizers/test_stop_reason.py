"""Why a minimisation ended: codes, their texts, and the texts of earlier model files."""

from __future__ import annotations

import json
from typing import Any

import pytest

import crfkit
from crfkit import StopReason
from tests.oracles.treebanks import random_treebank

TEXTS = {
    StopReason.CONVERGED: "the gradient norm fell below the tolerance",
    StopReason.NO_CHANGE: "the objective no longer changes",
    StopReason.MAX_ITERATIONS: "the iteration limit was reached",
    StopReason.NO_IMPROVEMENT: "no better dev score within the patience",
    StopReason.TIME_BUDGET: "the time budget is used up",
    StopReason.CALLBACK: "the callback asked to stop",
    StopReason.NO_DESCENT: "no step lowers the objective any further",
    StopReason.INTERRUPTED: "interrupted",
}


def test_every_reason_is_a_text() -> None:
    assert list(TEXTS) == list(StopReason)
    for reason, text in TEXTS.items():
        assert f"{reason}" == str(reason) == text
        assert json.loads(json.dumps({"reason": reason})) == {"reason": text}
        assert StopReason.parse(text) is reason
    assert [reason for reason in StopReason if reason.converged] == [
        StopReason.CONVERGED,
        StopReason.NO_CHANGE,
    ]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("no better dev score in 3 iterations", StopReason.NO_IMPROVEMENT),
        ("the time budget of 1e-09 seconds is used up", StopReason.TIME_BUDGET),
        ("the weights were given", "the weights were given"),
    ],
)
def test_texts_in_files(text: str, reason: str) -> None:
    assert StopReason.parse(text) == reason
    assert type(StopReason.parse(text)) is type(reason)


def test_a_model_keeps_its_reason(tmp_path: object) -> None:
    X, y = [[["a"], ["b"]]], [["A", "B"]]
    path = f"{tmp_path}/m.crf"
    crf = crfkit.CRF().fit(X, y, callback=lambda progress: True)
    assert crf.stop_reason_ is StopReason.CALLBACK
    crf.save(path)
    loaded = crfkit.load(path)
    assert isinstance(loaded, crfkit.CRF)
    assert loaded.stop_reason_ is StopReason.CALLBACK


@pytest.mark.parametrize(
    ("options", "reason", "message"),
    [
        ({"patience": 3}, StopReason.NO_IMPROVEMENT, "no better dev score in 3 iterations"),
        ({"time_budget": 1e-9}, StopReason.TIME_BUDGET, "the time budget of 1e-09 seconds is used up"),
    ],
)
def test_messages_have_numbers_also_in_files(
    options: dict[str, Any], reason: StopReason, message: str, tmp_path: object
) -> None:
    X, y = [[["a"], ["b"]]], [["A", "B"]]
    crf = crfkit.CRF(optimizer=crfkit.SGD(max_iterations=20)).fit(X, y, dev=(X, y), **options)
    trees = random_treebank([5], 0)
    parser = crfkit.Parser(crfkit.SGD(max_iterations=20)).fit(trees, dev=trees, **options)
    for model in (crf, parser):
        path = f"{tmp_path}/m.crf"
        model.save(path)
        for one in (model, crfkit.load(path)):
            assert (one.stop_reason_, one.stop_message_) == (reason, message)
            assert one.stop_reason_ is reason
