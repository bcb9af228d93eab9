"""A chain with the patterns that begin in one input, and the scores of their parts.

    score(y) = chain score(y) + Σ_{starts} Σ_{states reached by y from there} value · weights[activates]

Letters: T positions, L labels, W weights of patterns.
"""

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from crfkit.arrays import Float64s, Int32s, Int64s
from crfkit.errors import ArgumentError, ShapeError
from crfkit.structures.chain import Chain, ChainScores
from crfkit.structures.pattern_matcher import PatternMatcher
from crfkit.structures.patterns import MAX_STATES
from crfkit.structures.structure import AllowedLabels


class PatternStarts(NamedTuple):
    """Where patterns begin: at position t in the states `states[ptr[t]:ptr[t + 1]]`, with these values."""

    ptr: Int64s  # [T + 1]
    states: Int32s
    values: Float64s

    @classmethod
    def at(cls, n_positions: int, starts: Iterable[tuple[int, int, float]]) -> "PatternStarts":
        """From (position, state, value) in any order."""
        in_order = sorted(starts, key=lambda start: start[0])
        positions = np.array([position for position, _, _ in in_order], dtype=np.int64)
        if len(positions) and not 0 <= positions[0] <= positions[-1] < n_positions:
            raise ArgumentError(
                f"A pattern begins at position {positions[-1]}, expected positions from 0 to {n_positions - 1}."
            )
        return cls(
            np.searchsorted(positions, np.arange(n_positions + 1)).astype(np.int64),
            np.array([state for _, state, _ in in_order], dtype=np.int32),
            np.array([value for _, _, value in in_order], dtype=np.float64),
        )


@dataclass(frozen=True, eq=False)
class PatternChain:
    """A chain, and the patterns that begin in one input.

    `max_states` is how many states a position may have; a larger trellis raises an error before it is built.
    """

    chain: Chain
    matcher: PatternMatcher
    starts: PatternStarts
    max_states: int = MAX_STATES

    @property
    def n_positions(self) -> int:
        """T."""
        return len(self.starts.ptr) - 1

    @property
    def start(self) -> bool:
        """Whether the transition into the first label has a score."""
        return self.chain.start

    @property
    def end(self) -> bool:
        """Whether the transition out of the last label has a score."""
        return self.chain.end

    def bind(
        self, labels: Sequence[Hashable], outputs: Iterable[npt.ArrayLike | AllowedLabels]
    ) -> "PatternChain":
        """The same with its chain bound."""
        return replace(self, chain=self.chain.bind(labels, outputs))

    def counts(self, output: Sequence[int]) -> Float64s:
        """Pattern counts of one label sequence: Σ of values by weight, [W]."""
        return self.matcher.counts(output, *self.starts)


@dataclass(frozen=True, eq=False)
class PatternScores(ChainScores):
    """The scores of the parts of a chain with patterns: those of the chain, and one for each weight of the patterns."""

    weights: Float64s | None = None  # [W] finite

    def __post_init__(self) -> None:
        """Convert and check the arrays."""
        super().__post_init__()
        weights = np.array([] if self.weights is None else self.weights, dtype=np.float64)
        if weights.ndim != 1 or not np.isfinite(weights).all():
            raise ShapeError(
                f"PatternScores.weights: expected a list of finite numbers, got shape {list(weights.shape)}."
            )
        weights.flags.writeable = False
        object.__setattr__(self, "weights", weights)

    def check_patterns(self, structure: PatternChain) -> None:
        """Raise an error for scores that do not fit this structure."""
        self.check(structure.chain)
        given = (self.n_positions, self.n_labels, 0 if self.weights is None else len(self.weights))
        expected = (structure.n_positions, structure.matcher.n_labels, structure.matcher.n_weights)
        for name, value, wanted in zip(("positions", "labels", "weights"), given, expected, strict=True):
            if value != wanted:
                raise ShapeError(f"PatternScores have {value} {name}, the patterns have {wanted}.")


class PatternMarginals(NamedTuple):
    """∇ log Z with respect to the scores, part by part; or other numbers in the same shapes."""

    emissions: Float64s  # [T, L]         P(y_t = b)
    transitions: Float64s  # [max(T − 1, 0), L, L]   P(y_t = a, y_{t+1} = b)
    start: Float64s  # [L]
    end: Float64s  # [L]
    weights: Float64s  # [W]           E[Σ of values of matches with the weight]
