"""What happens while an estimator is trained: dev set, callbacks, Ctrl-C, failures."""

from __future__ import annotations

import logging

import numpy as np
import pytest

from crfkit import CRF, LBFGS, Parser, StopReason
from crfkit.data import Sentence, Word
from crfkit.errors import ArgumentError, ShapeError
from crfkit.models import Progress, TrainingInterrupted
from tests.models.small_corpus import corpus


def test_the_weights_with_the_best_dev_score_are_kept() -> None:
    X, y = corpus()
    seen: list[Progress] = []
    scores = iter([0.1, 0.5, 0.5, 0.4, 0.3, 0.2, 0.1])
    crf = CRF().fit(
        X,
        y,
        dev=corpus(5, seed=2),
        metric=lambda gold, predicted: next(scores),
        patience=3,
        callback=seen.append,
    )
    assert [progress.dev_score for progress in seen] == [0.1, 0.5, 0.5, 0.4, 0.3]
    assert [progress.improved for progress in seen] == [True, True, False, False, False]
    assert crf.n_iter_ == 2
    assert crf.stop_reason_ == StopReason.NO_IMPROVEMENT
    assert len(crf.history_) == 6
    np.testing.assert_array_equal(crf.weights_, CRF(optimizer=LBFGS(max_iterations=2)).fit(X, y).weights_)


def test_without_a_metric_the_dev_score_is_accuracy() -> None:
    seen: list[Progress] = []
    X, y = corpus(20, seed=2)
    crf = CRF().fit(*corpus(), dev=(X, y), callback=seen.append)
    assert crf.score(X, y) == max(progress.dev_score or 0.0 for progress in seen)


def test_a_callback_ends_the_training() -> None:
    crf = CRF().fit(*corpus(), callback=lambda progress: progress.iteration == 3)
    assert crf.n_iter_ == 3


def test_ctrl_c_keeps_the_best_weights_and_warns() -> None:
    def interrupt(progress: Progress) -> None:
        if progress.iteration == 4:
            raise KeyboardInterrupt

    with pytest.warns(
        TrainingInterrupted, match="interrupted; the model has the best weights so far, of iteration 4"
    ):
        crf = CRF().fit(*corpus(), callback=interrupt)
    assert crf.stop_reason_ == StopReason.INTERRUPTED
    assert crf.score(*corpus()) > 0.8


def test_a_failed_fit_leaves_the_old_model() -> None:
    X, y = corpus()
    crf = CRF().fit(X, y)
    before = crf.predict(X)
    with pytest.raises(ShapeError):
        crf.fit(X, y[:-1])
    assert crf.predict(X) == before


def test_verbose_writes_stages_and_some_iterations(capsys: pytest.CaptureFixture[str]) -> None:
    X, y = corpus()
    optimizer = LBFGS(max_iterations=15, tolerance=0.0, change=0.0)
    silent = CRF(optimizer=optimizer).fit(X, y)
    assert capsys.readouterr() == ("", "")
    crf = CRF(optimizer=optimizer).fit(X, y, verbose=True)
    out, said = capsys.readouterr()
    lines = said.splitlines()
    assert out == ""
    assert lines[0] == f"encoding {len(X)} sequences"
    assert lines[1].startswith(f"minimising over {len(crf.weights_):,} weights")
    assert [line.split()[:2] for line in lines[2:-1]] == [["iteration", str(n)] for n in range(1, 11)]
    assert lines[-1].startswith("the iteration limit was reached: 15 iterations, ")
    np.testing.assert_array_equal(crf.weights_, silent.weights_)
    CRF(optimizer=optimizer).fit(X, y, verbose=2)
    assert capsys.readouterr().err.count("iteration  ") == 15
    crf.partial_fit(X, y, verbose=1)
    assert capsys.readouterr().err.startswith(f"encoding {len(X)} sequences")


def test_logging_gets_what_verbose_writes(
    caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    X, y = corpus()
    optimizer = LBFGS(max_iterations=12, tolerance=0.0, change=0.0)
    with caplog.at_level(logging.INFO, "crfkit"):
        CRF(optimizer=optimizer).fit(X, y, dev=(X, y), verbose=True)
    assert capsys.readouterr().err == ""  # logging shows it
    assert [record.levelname for record in caplog.records] == ["INFO"] * 13
    assert caplog.messages[0] == f"encoding {len(X)} sequences"
    assert [record.progress.iteration for record in caplog.records if hasattr(record, "progress")] == [
        *range(1, 11)
    ]
    caplog.clear()
    with caplog.at_level(logging.DEBUG, "crfkit"):
        CRF(optimizer=optimizer).fit(X, y)
    assert len(caplog.records) == 15


def test_parsers_have_verbose_too(capsys: pytest.CaptureFixture[str]) -> None:
    words = [
        Word("the", "the", "DET", "_", "_", 2, "det", "_", "_"),
        Word("dog", "dog", "NOUN", "_", "_", 0, "root", "_", "_"),
    ]
    Parser().fit([Sentence(words)], verbose=True)
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "encoding 1 sentences"
    assert lines[1].startswith("projective trees: 0.00% of the words of the training set have crossing arcs")
    assert lines[2].startswith("minimising over ")
    assert lines[3].startswith("iteration    1  objective")


def test_bad_values_of_verbose() -> None:
    for verbose in ("yes", -1, 3, None, 1.0):
        with pytest.raises(ArgumentError, match="verbose"):
            CRF().fit(*corpus(), verbose=verbose)  # type: ignore[arg-type]
