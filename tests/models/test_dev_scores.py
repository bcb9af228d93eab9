"""Dev scores that are not numbers: no such score is ever the best one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import inf, isnan, nan
from pathlib import Path
from typing import Any

import pytest

from crfkit import CRF, LBFGS, Checkpoint, StopReason
from crfkit.errors import UnsupportedError

X = [[["a"], ["b"]], [["b"], ["c"], ["a"]]] * 3
y = [["A", "B"], ["B", "A", "A"]] * 3
EIGHT = LBFGS(max_iterations=8, change=0, tolerance=0)


def scores(*values: float) -> Callable[[Any, Any], float]:
    """A metric that gives these values, then 0."""
    left: Iterator[float] = iter(values)
    return lambda gold, predicted: next(left, 0.0)


@pytest.mark.parametrize(
    ("values", "kept"),
    [
        ((nan, 0.2, 0.3, 0.4), 4),
        ((nan, nan, -inf, -1.0), 5),
        ((0.5, nan, 0.4, 0.6, nan), 4),
        ((nan,) * 8, 8),
        ((nan, 0.0, nan, inf, nan), 4),
    ],
)
def test_nan_is_lower_than_any_score(values: tuple[float, ...], kept: int) -> None:
    model = CRF(optimizer=EIGHT).fit(X, y, dev=(X, y), metric=scores(*values))
    assert model.n_iter_ == kept
    assert len(model.history_) == 9
    whole = CRF(optimizer=LBFGS(max_iterations=kept, change=0, tolerance=0)).fit(X, y)
    assert model.weights_.tobytes() == whole.weights_.tobytes()


def test_patience_counts_scores_that_are_no_numbers() -> None:
    for values, n in (((nan,) * 8, 4), ((nan, 0.1, nan, nan, nan), 5), ((0.1, nan, nan, nan), 4)):
        model = CRF(optimizer=EIGHT).fit(X, y, dev=(X, y), metric=scores(*values), patience=3)
        assert model.stop_reason_ == StopReason.NO_IMPROVEMENT
        assert len(model.history_) == n + 1


@pytest.mark.parametrize(
    ("values", "kept", "n"),
    [
        ((0.0, 0.0, 0.0, 0.0, 0.1), 5, 8),  # F1 while no span is found yet
        ((0.0,) * 8, 8, 8),
        ((0.0, 0.0, -1.0, 0.0, -1.0), 2, 5),
        ((0.0, 0.1, 0.0, 0.0, 0.0), 2, 5),
    ],
)
def test_scores_of_0_from_the_start_on_wait_for_others(values: tuple[float, ...], kept: int, n: int) -> None:
    model = CRF(optimizer=EIGHT).fit(X, y, dev=(X, y), metric=scores(*values), patience=3)
    assert (model.n_iter_, len(model.history_) - 1) == (kept, n)
    whole = CRF(optimizer=LBFGS(max_iterations=kept, change=0, tolerance=0)).fit(X, y)
    assert model.weights_.tobytes() == whole.weights_.tobytes()


@pytest.mark.parametrize("values", [(nan, 0.2, inf, 0.3), (nan,) * 8, (0.5, nan, 0.4, 0.6, nan)])
def test_such_scores_survive_a_checkpoint(values: tuple[float, ...], tmp_path: Path) -> None:
    path = tmp_path / "c"
    fit: dict[str, Any] = {"dev": (X, y), "checkpoint": Checkpoint(path, every=1)}
    metric = Given(values)
    CRF(optimizer=EIGHT).fit(X, y, metric=metric, callback=lambda step: step.iteration == 4, **fit)
    fit["checkpoint"] = Checkpoint(path, every=1, resume=True)
    model = CRF(optimizer=EIGHT).fit(X, y, metric=metric, **fit)
    whole = CRF(optimizer=EIGHT).fit(X, y, dev=(X, y), metric=Given(values))
    assert (model.n_iter_, model.weights_.tobytes()) == (whole.n_iter_, whole.weights_.tobytes())
    given = [record.dev_score for record in whole.history_]
    for record, score in zip(model.history_, given, strict=True):
        assert record.dev_score == score or (
            score is not None and isnan(score) and isnan(record.dev_score or 0)
        )


N_ASKED: dict[tuple[float, ...], int] = {}


class Given:
    """A metric that gives its values in turn, over all its calls."""

    def __init__(self, values: tuple[float, ...]) -> None:
        self.values = values
        N_ASKED[values] = 0

    def __call__(self, gold: Any, predicted: Any) -> float:
        N_ASKED[self.values] += 1
        return (*self.values, *[0.0] * 99)[N_ASKED[self.values] - 1]


def test_dev_without_scores_is_still_refused() -> None:
    with pytest.raises(UnsupportedError, match="metric"):
        CRF().fit(X, y, metric=scores(0.1))
