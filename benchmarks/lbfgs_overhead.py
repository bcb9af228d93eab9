"""What L-BFGS itself costs: milliseconds per iteration outside the objective, crfkit's beside SciPy's L-BFGS-B.

    python -m benchmarks.lbfgs_overhead [D ...]

Both minimise the same ill-conditioned separable quadratic with a memory of 10 pairs. The time inside the objective
is taken off, and the best iteration counts of those in which the memory is full. One thread: CPU time; two threads:
the wall clock, which other work on the machine lengthens.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from time import perf_counter, process_time

import numpy as np
import numpy.typing as npt
import scipy.optimize

from crfkit.optimizers import LBFGS

Vector = npt.NDArray[np.float64]
MEMORY = 10
N_ITERATIONS = 40


class Quadratic:
    """½ Σ a_i (w_i − b_i)² with a_i from 1e-3 to 1e3; `seconds` is the time spent here by `clock`."""

    def __init__(self, n_weights: int, l1: float, clock: Callable[[], float]) -> None:
        rng = np.random.default_rng(0)
        self.n_weights = n_weights
        self.l1 = l1
        self.clock = clock
        self.seconds = 0.0
        self._a = 10 ** rng.uniform(-3, 3, n_weights)
        self._b = rng.normal(size=n_weights)

    def value_and_gradient(self, w: Vector) -> tuple[float, Vector]:
        began = self.clock()
        away = w - self._b
        gradient = self._a * away
        value = 0.5 * float(gradient @ away)
        self.seconds += self.clock() - began
        return value, gradient


class Stopwatch:
    """Called after each iteration; keeps the time since the last call, less what the objective took."""

    def __init__(self, objective: Quadratic) -> None:
        self._objective = objective
        self._last = objective.clock()
        self.laps: list[float] = []

    def __call__(self, _: object) -> None:
        now = self._objective.clock()
        self.laps.append(now - self._last - self._objective.seconds)
        self._objective.seconds = 0.0
        self._last = now

    @property
    def milliseconds(self) -> float:
        return 1e3 * min(self.laps[MEMORY + 2 :])


def crfkit_milliseconds(n_weights: int, n_threads: int, l1: float = 0.0) -> float:
    objective = Quadratic(n_weights, l1, process_time if n_threads == 1 else perf_counter)
    watch = Stopwatch(objective)
    optimizer = LBFGS(max_iterations=N_ITERATIONS, tolerance=0.0, change=0.0, memory=MEMORY)
    optimizer.minimize(objective, np.zeros(n_weights), callback=watch, n_threads=n_threads)
    return watch.milliseconds


def scipy_milliseconds(n_weights: int) -> float:
    objective = Quadratic(n_weights, 0.0, process_time)
    watch = Stopwatch(objective)
    options = {"maxiter": N_ITERATIONS, "maxcor": MEMORY, "ftol": 0.0, "gtol": 0.0}
    scipy.optimize.minimize(
        objective.value_and_gradient,
        np.zeros(n_weights),
        jac=True,
        method="L-BFGS-B",
        options=options,
        callback=watch,
    )
    return watch.milliseconds


def main(sizes: list[int]) -> None:
    print("| weights | crfkit, 1 thread | 2 threads | with l1, 1 thread | SciPy L-BFGS-B | ratio |")
    print("|---:|---:|---:|---:|---:|---:|")
    for n_weights in sizes:
        ours = crfkit_milliseconds(n_weights, 1)
        both = crfkit_milliseconds(n_weights, 2)
        orthant = crfkit_milliseconds(n_weights, 1, l1=0.01)
        rival = scipy_milliseconds(n_weights)
        figures = " | ".join(f"{figure:.1f} ms" for figure in (ours, both, orthant, rival))
        print(f"| {n_weights:,} | {figures} | {rival / ours:.1f} |", flush=True)


if __name__ == "__main__":
    main([int(argument) for argument in sys.argv[1:]] or [453_000, 2_000_000, 5_000_000])
