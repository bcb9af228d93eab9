"""Warnings about training runs that ended before the minimum: interrupted, or at the iteration limit."""

import warnings
from functools import cache

from crfkit.models.warning_types import TrainingInterrupted
from crfkit.optimizers import History, Optimizer, StopReason

PERIOD = 10  # iterations over which the decrease of the objective is looked at
FAR = 1e-3  # the relative decrease that shows that the minimum is far


class ConvergenceWarning(UserWarning):
    """The iteration limit ended a training run far from the minimum.

    Where scikit-learn is installed, what is given is a `sklearn.exceptions.ConvergenceWarning` too.
    """


def warn_of_ending(reason: str, history: History, optimizer: Optimizer, n_iter: int, stacklevel: int) -> None:
    """Warn where a training run was interrupted, or where its iteration limit ended it far from the minimum."""
    if reason == StopReason.INTERRUPTED:
        warnings.warn(
            f"training was interrupted; the model has the best weights so far, of iteration {n_iter}",
            TrainingInterrupted,
            stacklevel=stacklevel + 1,
        )
    if reason != StopReason.MAX_ITERATIONS or not optimizer.needs <= {"value_and_gradient", "hessian_vector"}:
        return
    values = [record.objective for record in history]
    if any(record.dev_score is not None for record in history) or len(values) < 2:
        return
    period = min(PERIOD, len(values) - 1)
    before = values[-1 - period]
    decrease = (before - values[-1]) / max(abs(before), 1e-300)
    if decrease > FAR:
        name, n = type(optimizer).__name__, len(values) - 1
        warnings.warn(
            f"the iteration limit ended the training run far from the minimum: the objective fell by {decrease:.1%} in the "
            f"last {period} of {n} iterations, expected at most {FAR:.1%}; allow more with {name}(max_iterations=…), "
            "on the command line --max-iterations",
            _category(),
            stacklevel=stacklevel + 1,
        )


@cache
def _category() -> type[UserWarning]:
    """Our warning, and scikit-learn's as well where it is installed."""
    try:
        from sklearn.exceptions import ConvergenceWarning as Theirs
    except ImportError:
        return ConvergenceWarning
    return type("ConvergenceWarning", (ConvergenceWarning, Theirs), {})
