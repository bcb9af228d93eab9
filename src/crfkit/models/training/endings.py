"""Warnings about training runs that ended before the minimum: interrupted, at the iteration limit, or with no way down."""

import warnings
from functools import cache

from crfkit.models.warning_types import TrainingInterrupted
from crfkit.optimizers import History, Optimizer, StopReason

PERIOD = 10  # iterations over which the decrease of the objective is looked at
FAR = 1e-3  # the relative decrease that shows that the minimum is far
STEEP = 1e-3  # the share of the largest gradient norm, and of the objective, that shows the same


class ConvergenceWarning(UserWarning):
    """A training run ended far from the minimum: at the iteration limit, or where no step lowers the objective.

    Where scikit-learn is installed, what is given is a `sklearn.exceptions.ConvergenceWarning` too.
    """


def warn_of_ending(reason: str, history: History, optimizer: Optimizer, n_iter: int, stacklevel: int) -> None:
    """Warn where a training run was interrupted, or ended far from the minimum."""
    if reason == StopReason.INTERRUPTED:
        warnings.warn(
            f"training was interrupted; the model has the best weights so far, of iteration {n_iter}",
            TrainingInterrupted,
            stacklevel=stacklevel + 1,
        )
    if not optimizer.needs <= {"value_and_gradient", "hessian_vector"} or len(history) < 2:
        return
    if any(record.dev_score is not None for record in history):
        return
    if reason == StopReason.MAX_ITERATIONS:
        _warn_of_decrease([record.objective for record in history], type(optimizer).__name__, stacklevel + 1)
    elif reason == StopReason.NO_DESCENT:
        _warn_of_gradient(history, stacklevel + 1)


def _warn_of_decrease(values: list[float], optimizer: str, stacklevel: int) -> None:
    """Warn where the objective still fell when the iteration limit was reached."""
    period = min(PERIOD, len(values) - 1)
    before = values[-1 - period]
    decrease = (before - values[-1]) / max(abs(before), 1e-300)
    if decrease > FAR:
        warnings.warn(
            f"the iteration limit ended the training run far from the minimum: the objective fell by {decrease:.1%} in the "
            f"last {period} of {len(values) - 1} iterations, expected at most {FAR:.1%}; allow more with "
            f"{optimizer}(max_iterations=…), on the command line --max-iterations",
            _category(),
            stacklevel=stacklevel + 1,
        )


def _warn_of_gradient(history: History, stacklevel: int) -> None:
    """Warn where no step lowers the objective though its gradient is large: it is not smooth."""
    norms = [record.gradient_norm for record in history]
    share = norms[-1] / max(max(norms), 1e-300)
    if share > STEEP and norms[-1] > STEEP * abs(history[-1].objective):
        warnings.warn(
            f"the training run ended far from the minimum: no step lowers the objective, but its gradient norm is "
            f"{norms[-1]:.3g}, {share:.1%} of the largest one, expected at most {STEEP:.1%}: the objective is not smooth "
            'there. That of GraphCRF(objective="belief_propagation") is not where couplings are strong; '
            '"tree_reweighted" is convex.',
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
