"""The objective as an optimizer walks on it: points with their values and slopes, and how exact these are."""

from math import isfinite, sqrt
from typing import NamedTuple

import numpy as np

from crfkit import _core
from crfkit.errors import ArgumentError, ShapeError
from crfkit.optimizers.protocols import Objective, Vector, check_l1

SINGLE_NOISE = 1e-6  # relative error of a value that may have been computed in single precision
DOUBLE_NOISE = 1e-11  # of one summed in double precision, with much to spare


class Point(NamedTuple):
    """A place and what is known there: F = f + P with P = Σ l1_i |x_i|."""

    x: Vector  # [D]
    value: float  # F(x)
    penalty: float  # P(x), 0 without l1
    gradient: Vector  # [D]  ∇f(x)
    descent: Vector  # [D]  ∇F(x), with l1 the pseudo-gradient; steepest descent goes along its opposite
    norm: float  # |descent|

    def is_finite(self) -> bool:
        """Whether the objective has a value and a gradient here."""
        return isfinite(self.value) and isfinite(self.norm)


class CountedObjective:
    """An objective with its l1 penalty; evaluations and products are counted, answers checked."""

    def __init__(self, objective: Objective, n_threads: int) -> None:
        self.l1 = check_l1(objective)  # [1] or [D], None without penalty
        self.n_threads = n_threads
        self.n_evaluations = 0
        self.n_products = 0
        self.noise = SINGLE_NOISE if callable(getattr(objective, "refine", None)) else DOUBLE_NOISE
        self._objective = objective
        self._gradient: Vector | None = None  # the last one

    def at(self, x: Vector) -> Point:
        """The point x."""
        if self.l1 is None:
            return self.smooth_point(x, None)[0]
        return self.penalised_point(x, _core.vector_penalty(x, self.l1, self.n_threads))

    def smooth_point(self, x: Vector, direction: Vector | None) -> tuple[Point, float]:
        """The point x of an objective without l1, and the slope there: gradient·direction."""
        value, gradient = self._value_and_gradient(x)
        slope, square = _core.vector_products(
            gradient, gradient if direction is None else direction, self.n_threads
        )
        return Point(x, value, 0.0, gradient, gradient, sqrt(square)), slope

    def penalised_point(self, x: Vector, penalty: float) -> Point:
        """The point x, whose l1 penalty is known."""
        assert self.l1 is not None
        value, gradient = self._value_and_gradient(x)
        return self.known_point(x, value + penalty, penalty, gradient)

    def known_point(self, x: Vector, value: float, penalty: float, gradient: Vector) -> Point:
        """A point that has been evaluated before."""
        if self.l1 is None:
            square = _core.vector_products(gradient, gradient, self.n_threads)[1]
            return Point(x, value, penalty, gradient, gradient, sqrt(square))
        descent, square = _core.vector_pseudo_gradient(x, gradient, self.l1, self.n_threads)
        return Point(x, value, penalty, gradient, descent, sqrt(square))

    def product(self, x: Vector, v: Vector) -> Vector:
        """H(x) v, [D]; the objective may remember x from one product to the next."""
        self.n_products += 1
        product = np.ascontiguousarray(self._objective.hessian_vector(x, v), dtype=np.float64)  # type: ignore[attr-defined]
        if product.shape != x.shape:
            raise ShapeError(
                f"The objective's Hessian product has shape {product.shape}, expected {x.shape}."
            )
        return product

    @property
    def passes(self) -> float:
        """Over the data, until now."""
        return float(self.n_evaluations + self.n_products)

    @property
    def is_coarse(self) -> bool:
        """Whether values may still come from single precision."""
        return self.noise == SINGLE_NOISE

    def refine(self) -> bool:
        """Asks the objective for double precision; True when it answers otherwise from now on."""
        if not self.is_coarse:
            return False
        self.noise = DOUBLE_NOISE
        return bool(self._objective.refine())  # type: ignore[attr-defined]

    def _value_and_gradient(self, x: Vector) -> tuple[float, Vector]:
        """The objective's answer; raises ValueError unless it is a number and float64[D]."""
        self.n_evaluations += 1
        value, answer = self._objective.value_and_gradient(x)
        gradient = np.ascontiguousarray(answer, dtype=np.float64)
        if gradient.shape != x.shape:
            raise ShapeError(f"The objective's gradient has shape {gradient.shape}, expected {x.shape}.")
        if (
            self._gradient is not None
            and gradient.size
            and gradient.ctypes.data == self._gradient.ctypes.data
        ):
            raise ArgumentError(
                "The objective gave the same gradient array twice; value_and_gradient must make a new one."
            )
        self._gradient = gradient
        return float(value), gradient
