"""How long a training run still takes, by what it has done."""

import math

from crfkit.models.training.progress import Progress
from crfkit.optimizers import LBFGS


class SecondsLeft:
    """An estimate of the time that a training run still takes.

    The gradient norm of a quasi-Newton method goes up and down, but its lowest value so far falls roughly like a geometric
    sequence. Its mean fall says how many more iterations it takes to the tolerance; the limit on them is never passed.
    """

    def __init__(self, max_iterations: int, tolerance: float = 0.0, time_budget: float | None = None) -> None:
        self._max_iterations = max_iterations
        self._tolerance = tolerance
        self._time_budget = time_budget
        self._first: Progress | None = None
        self._lowest_norm = math.inf

    @classmethod
    def of(cls, optimizer: object, time_budget: float | None) -> "SecondsLeft":
        """For an optimizer; for "auto", whose limit is not known yet, L-BFGS stands in."""
        if isinstance(optimizer, str):
            optimizer = LBFGS()
        return cls(getattr(optimizer, "max_iterations", 0), getattr(optimizer, "tolerance", 0.0), time_budget)

    def __call__(self, progress: Progress) -> float | None:
        """Seconds left after this iteration; None while there is nothing to go by."""
        # The first iteration, or that of another round.
        if self._first is None or progress.iteration <= self._first.iteration:
            self._first, self._lowest_norm = progress, progress.gradient_norm
            return None
        self._lowest_norm = min(self._lowest_norm, progress.gradient_norm)
        n_seen = progress.iteration - self._first.iteration
        n_left = float(self._max_iterations - progress.iteration)
        goal = self._tolerance * self._first.gradient_norm
        if 0.0 < goal < self._lowest_norm < self._first.gradient_norm:
            fall = math.log(self._first.gradient_norm / self._lowest_norm) / n_seen
            n_left = min(n_left, math.log(self._lowest_norm / goal) / fall)
        left = n_left * (progress.seconds - self._first.seconds) / n_seen
        if self._time_budget is None:
            return left
        return min(left, max(0.0, self._time_budget - progress.seconds))
