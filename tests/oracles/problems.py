"""Functions to minimise, and slow or foreign minimisers: what the optimizers are tested with."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.optimize

from crfkit.optimizers import LBFGS

Vector = npt.NDArray[np.float64]
Function = Callable[[Vector], tuple[float, Vector]]


class Problem:
    """A function as an objective; its evaluations are counted."""

    def __init__(self, function: Function, n_weights: int, l1: Any = 0.0) -> None:
        self.function = function
        self.n_weights = n_weights
        self.l1 = l1
        self.n_evaluations = 0

    def value_and_gradient(self, weights: Vector) -> tuple[float, Vector]:
        self.n_evaluations += 1
        return self.function(weights)


class Curved(Problem):
    """A function with Hessian products too."""

    def __init__(self, function: Function, n_weights: int, l1: Any = 0.0) -> None:
        super().__init__(function, n_weights, l1)
        self.n_products = 0

    def hessian_vector(self, weights: Vector, v: Vector) -> Vector:
        """By central differences of the gradient."""
        self.n_products += 1
        step = 1e-5 / max(float(np.linalg.norm(v)), 1e-300)
        return (self.function(weights + step * v)[1] - self.function(weights - step * v)[1]) / (2 * step)


def rosenbrock(w: Vector) -> tuple[float, Vector]:
    return float(scipy.optimize.rosen(w)), np.asarray(scipy.optimize.rosen_der(w))


def quadratic(condition: float, n: int, seed: int) -> tuple[Function, Vector]:
    """½ w·A w − b·w with eigenvalues 1 … condition in random directions, and its minimum."""
    rng = np.random.default_rng(seed)
    basis = np.linalg.qr(rng.normal(size=(n, n)))[0]
    eigenvalues = np.logspace(0, np.log10(condition), n)
    A = (basis * eigenvalues) @ basis.T
    b = rng.normal(size=n)

    def function(w: Vector) -> tuple[float, Vector]:
        Aw = A @ w
        return float(0.5 * w @ Aw - b @ w), Aw - b

    return function, basis @ ((basis.T @ b) / eigenvalues)


def logistic(n_samples: int, n_weights: int, l2: float, seed: int, dtype: Any = np.float64) -> Function:
    """Negative log-likelihood of a logistic regression + ½ l2 |w|²; computed in dtype."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_samples, n_weights)) * np.logspace(0, -1.5, n_weights)
    truth = rng.normal(size=n_weights) * (rng.random(n_weights) < 0.5)
    signs = np.where(rng.random(n_samples) < 1 / (1 + np.exp(-3 * X @ truth)), 1.0, -1.0)
    X = (X * signs[:, None]).astype(dtype)

    def function(w: Vector) -> tuple[float, Vector]:
        margins = X @ w.astype(dtype)
        losses = np.logaddexp(dtype(0), -margins)
        slopes = -1 / (1 + np.exp(margins))
        value = losses.sum(dtype=dtype) + dtype(0.5 * l2 * w @ w)
        return float(value), (slopes @ X).astype(np.float64) + l2 * w

    return function


def scipy_minimum(function: Function, start: Vector) -> Any:
    options = {"maxiter": 2000, "maxfun": 4000, "gtol": 1e-8, "ftol": 0.0}
    return scipy.optimize.minimize(function, start, jac=True, method="L-BFGS-B", options=options)


def proximal_minimum(function: Function, l1: Vector, lipschitz: float, n_steps: int = 10_000) -> Vector:
    """The slow oracle for f + Σ l1_i |w_i|: accelerated proximal gradient steps with restarts."""
    w = z = np.zeros(len(l1))
    momentum = 1.0
    for _ in range(n_steps):
        moved = z - function(z)[1] / lipschitz
        new = np.sign(moved) * np.maximum(np.abs(moved) - l1 / lipschitz, 0.0)
        if (z - new) @ (new - w) > 0:
            momentum, z = 1.0, w
            continue
        following = 0.5 * (1 + np.sqrt(1 + 4 * momentum**2))
        z = new + (momentum - 1) / following * (new - w)
        w, momentum = new, following
    return w


def exact(**settings: Any) -> LBFGS:
    return LBFGS(**{"tolerance": 1e-8, "change": 0.0, "max_iterations": 5000, **settings})
