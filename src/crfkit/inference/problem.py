"""Structures whose outputs are the paths of a graph: the path engine of the core answers for them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from crfkit import _core
from crfkit.arrays import Float64s, Int32s
from crfkit.errors import ArgumentError
from crfkit.structures import ScoredOutput


class PathProblem(ABC):
    """A structure with the scores of its parts, and every question on it."""

    @property
    @abstractmethod
    def core(self) -> _core.ScoredGraph:
        """The scores in the core; NoOutputError where constraints exclude every output."""

    @abstractmethod
    def direction(self, direction: Any) -> _core.ScoredGraph:
        """A direction of the scores in the core, which must be finite."""

    @abstractmethod
    def shape_marginals(self, parts: tuple[Float64s, ...]) -> Any:
        """Numbers of the core's parts as marginals of the structure."""

    def log_partition(self) -> float:
        """log Z; −inf when no output is possible."""
        return self.core.log_partition()

    def marginals(self) -> Any:
        """∇ log Z."""
        return self.shape_marginals(self.core.marginals())

    def hessian_vector(self, direction: Any) -> Any:
        """∇² log Z · direction."""
        return self.shape_marginals(self.core.hessian_vector(self.direction(direction)))

    def decode(self) -> ScoredOutput:
        """The highest-scoring output; among equals the one with the lower arc at the last place where they differ."""
        score, output = self.core.decode()
        return ScoredOutput(output, score)

    def k_best(self, k: int) -> list[ScoredOutput]:
        """The k highest-scoring outputs, best first."""
        return [ScoredOutput(output, score) for score, output in self.core.k_best(k)]

    def sample(self, n: int, random: np.random.Generator) -> Int32s:
        """`n` independent outputs."""
        return self.core.sample(random.random((n, self.core.n_uniforms)))

    def entropy(self) -> float:
        """−Σ_y p(y) log p(y), summed from terms ≥ 0 so that nothing cancels."""
        return self.core.entropy()


def check_finite(*directions: Float64s) -> None:
    """Refuse a direction that is not finite."""
    if not all(np.isfinite(direction).all() for direction in directions):
        raise ArgumentError("Hessian–vector product: the direction holds −inf, expected finite numbers.")


MOST = (1 << 62) - 1  # what a count of the core can be
WHOLE = ", a whole number"


def is_whole(number: object) -> bool:
    """Whether it is a whole number."""
    return isinstance(number, int | np.integer) and not isinstance(number, bool)


def check_k(k: int) -> int:
    """How many outputs `k_best` is asked for; there are never more than `MOST`."""
    if not is_whole(k) or k < 1:
        raise ArgumentError(f"k_best: k is {k!r}, expected 1 or more{WHOLE}.")
    return min(int(k), MOST)


def check_n(n: int) -> None:
    """How many outputs `sample` is asked for."""
    if not is_whole(n) or not 0 <= n <= MOST:
        raise ArgumentError(f"sample: n is {n!r}, expected 0 or more{WHOLE}.")
