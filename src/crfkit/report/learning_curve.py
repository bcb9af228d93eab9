"""How good models are that were trained on less: the learning curve."""

import warnings
from collections.abc import Callable, Sequence
from dataclasses import fields, is_dataclass, replace
from typing import Any, NamedTuple, TypeVar

import numpy as np

from crfkit.errors import EmptyDataError
from crfkit.models import ConvergenceWarning, Estimator
from crfkit.report.page import Section
from crfkit.report.plots import draw_curve

SHARES = (1 / 16, 1 / 8, 1 / 4, 1 / 2, 1.0)

Model = TypeVar("Model", bound=Estimator)


class Point(NamedTuple):
    """One model of the curve."""

    n_sequences: int
    score: float


def learning_curve(
    model: Model,
    n_sequences: int,
    fit_and_score: Callable[[Model, Sequence[int]], float],
    progress: Callable[[str], None],
    *,
    seed: int = 0,
) -> list[Point]:
    """Train models with the settings of this one on growing parts of `n_sequences`, each with the part before it.

    `fit_and_score(model, numbers)` trains a model on the sequences with these numbers and scores it. No model takes more
    iterations than this one did.
    """
    if not n_sequences:
        raise EmptyDataError("learning curve: the training file has no sequence")
    order = np.random.default_rng(seed).permutation(n_sequences).tolist()
    sizes = sorted({max(1, round(share * n_sequences)) for share in SHARES})
    points = []
    for size in sizes:
        progress(f"learning curve: training on {size:,} of {n_sequences:,} sequences")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # the limit is on purpose
            points.append(Point(size, fit_and_score(untrained(model), sorted(order[:size]))))
    return points


def untrained(model: Model) -> Model:
    """An estimator with the same parameters, and an optimizer that takes no more iterations than this one took."""
    params = model.get_params(deep=False)
    optimizer = getattr(model, "optimizer_", params["optimizer"])  # a file keeps the parameter alone
    if (
        is_dataclass(optimizer)
        and "max_iterations" in {field.name for field in fields(optimizer)}
        and model.n_iter_
    ):
        params["optimizer"] = replace(optimizer, max_iterations=model.n_iter_)  # type: ignore[type-var]
    return type(model)(**params)


def curve_section(points: Sequence[Point], metric: str) -> Section:
    """The curve as a plot and as a table."""
    plot = draw_curve(
        "learning_curve",
        [point.n_sequences for point in points],
        [point.score for point in points],
        along="training sentences",
        up=f"{metric} (%)",
    )
    return Section("curve", "Learning curve", {"points": points, "plot": plot, "metric": metric})


def pick(items: Sequence[Any], numbers: Sequence[int]) -> list[Any]:
    """The items with these numbers."""
    return [items[n] for n in numbers]
