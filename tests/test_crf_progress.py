"""What happens while an estimator is trained: dev set, callbacks, Ctrl-C, failures."""

from __future__ import annotations

import numpy as np
import pytest

from crfkit import CRF, LBFGS, InputError
from crfkit.models import Progress, TrainingInterrupted
from tests.small_corpus import corpus


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
    assert crf.stop_reason_ == "no better dev score in 3 iterations"
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
    assert crf.stop_reason_ == "interrupted"
    assert crf.score(*corpus()) > 0.8


def test_a_failed_fit_leaves_the_old_model() -> None:
    X, y = corpus()
    crf = CRF().fit(X, y)
    before = crf.predict(X)
    with pytest.raises(InputError):
        crf.fit(X, y[:-1])
    assert crf.predict(X) == before
