"""The questions, and which module answers them for which structure.

A structure is answered for by a module with a function for each question that it has (`_Answers`); a new one is a line in
`_ANSWERS`, and an overload where its answer has a type of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, overload

import numpy as np
import numpy.typing as npt

from crfkit.inference import chain, paths, patterns, spanning_tree
from crfkit.structures import (
    Chain,
    ChainMarginals,
    ChainScores,
    PathGraph,
    PatternChain,
    PatternMarginals,
    PatternScores,
    ScoredOutput,
    SpanningTree,
    Structure,
)

Float64s = npt.NDArray[np.float64]
Int32s = npt.NDArray[np.int32]


class _Answers(Protocol):
    """What the module of a structure has to offer."""

    def log_partition(self, structure: Any, scores: Any, *, allowed: Any = None) -> float: ...
    def marginals(self, structure: Any, scores: Any, *, allowed: Any = None) -> Any: ...
    def hessian_vector(self, structure: Any, scores: Any, direction: Any, *, allowed: Any = None) -> Any: ...
    def decode(self, structure: Any, scores: Any, *, allowed: Any = None) -> ScoredOutput: ...
    def k_best(self, structure: Any, scores: Any, k: int, *, allowed: Any = None) -> list[ScoredOutput]: ...
    def sample(
        self, structure: Any, scores: Any, n: int = 1, random_state: Any = None, *, allowed: Any = None
    ) -> Int32s: ...
    def entropy(self, structure: Any, scores: Any, *, allowed: Any = None) -> float: ...
    def score(self, structure: Any, scores: Any, output: Any) -> float: ...
    def log_probability(self, structure: Any, scores: Any, output: Any, *, allowed: Any = None) -> float: ...
    def parts(self, structure: Any, output: Any, n_labels: Any) -> Any: ...


_ANSWERS: Mapping[type, _Answers] = {
    Chain: chain,
    PatternChain: patterns,
    PathGraph: paths,
    SpanningTree: spanning_tree,
}


def _answers(structure: object, question: str) -> _Answers:
    """The module that answers for this structure."""
    for kind, answers in _ANSWERS.items():
        if isinstance(structure, kind):
            return answers
    known = ", ".join(kind.__name__ for kind in _ANSWERS)
    raise ValueError(f"{question}: expected a structure ({known}), got {type(structure).__name__}.")


def log_partition(structure: Structure | PathGraph, scores: Any, *, allowed: Any = None) -> float:
    """log Z = log Σ_y exp(score(y)); −inf when no output is possible, 0 for an empty sequence.

    >>> import math, numpy as np
    >>> scores = ChainScores(emissions=np.zeros((3, 2)))  # 2³ label sequences, each with the score 0
    >>> round(math.exp(log_partition(Chain(), scores)), 6)
    8.0
    """
    return _answers(structure, "log_partition").log_partition(structure, scores, allowed=allowed)


@overload
def marginals(structure: Chain, scores: ChainScores, *, allowed: Any = None) -> ChainMarginals: ...
@overload
def marginals(structure: PatternChain, scores: PatternScores, *, allowed: Any = None) -> PatternMarginals: ...
@overload
def marginals(
    structure: PathGraph | SpanningTree, scores: npt.ArrayLike, *, allowed: Any = None
) -> Float64s: ...
@overload
def marginals(structure: Structure | PathGraph, scores: Any, *, allowed: Any = None) -> Any: ...
def marginals(structure: Structure | PathGraph, scores: Any, *, allowed: Any = None) -> Any:
    """∇ log Z: the probability of every part."""
    return _answers(structure, "marginals").marginals(structure, scores, allowed=allowed)


@overload
def hessian_vector(
    structure: Chain, scores: ChainScores, direction: ChainScores, *, allowed: Any = None
) -> ChainMarginals: ...
@overload
def hessian_vector(
    structure: PatternChain, scores: PatternScores, direction: PatternScores, *, allowed: Any = None
) -> PatternMarginals: ...
@overload
def hessian_vector(
    structure: PathGraph | SpanningTree,
    scores: npt.ArrayLike,
    direction: npt.ArrayLike,
    *,
    allowed: Any = None,
) -> Float64s: ...
@overload
def hessian_vector(
    structure: Structure | PathGraph, scores: Any, direction: Any, *, allowed: Any = None
) -> Any: ...
def hessian_vector(
    structure: Structure | PathGraph, scores: Any, direction: Any, *, allowed: Any = None
) -> Any:
    """∇² log Z · direction: how the marginals move when the scores move along `direction` (finite scores)."""
    return _answers(structure, "hessian_vector").hessian_vector(structure, scores, direction, allowed=allowed)


def decode(structure: Structure | PathGraph, scores: Any, *, allowed: Any = None) -> ScoredOutput:
    """The highest-scoring output; which one among equals is always the same."""
    return _answers(structure, "decode").decode(structure, scores, allowed=allowed)


def k_best(
    structure: Structure | PathGraph, scores: Any, k: int, *, allowed: Any = None
) -> list[ScoredOutput]:
    """The k highest-scoring outputs, best first, all distinct; fewer when fewer are possible."""
    return _answers(structure, "k_best").k_best(structure, scores, k, allowed=allowed)


def sample(
    structure: Structure | PathGraph,
    scores: Any,
    n: int = 1,
    random_state: int | np.random.Generator | None = None,
    *,
    allowed: Any = None,
) -> Int32s:
    """`n` independent outputs drawn from p(y), one after the other along the first axis."""
    return _answers(structure, "sample").sample(structure, scores, n, random_state, allowed=allowed)


def entropy(structure: Structure | PathGraph, scores: Any, *, allowed: Any = None) -> float:
    """−Σ_y p(y) log p(y), in nats."""
    return _answers(structure, "entropy").entropy(structure, scores, allowed=allowed)


def score(structure: Structure | PathGraph, scores: Any, output: npt.ArrayLike) -> float:
    """score(y) of one output; −inf where it has a part that does not exist."""
    return _answers(structure, "score").score(structure, scores, output)


def log_probability(
    structure: Structure | PathGraph, scores: Any, output: npt.ArrayLike, *, allowed: Any = None
) -> float:
    """log p(y) = score(y) − log Z; −inf for an output that is not possible."""
    return _answers(structure, "log_probability").log_probability(structure, scores, output, allowed=allowed)


@overload
def parts(structure: Chain, output: npt.ArrayLike, n_labels: int) -> ChainMarginals: ...
@overload
def parts(
    structure: PatternChain, output: npt.ArrayLike, n_labels: int | None = None
) -> PatternMarginals: ...
@overload
def parts(
    structure: PathGraph | SpanningTree, output: npt.ArrayLike, n_labels: int | None = None
) -> Float64s: ...
@overload
def parts(structure: Structure | PathGraph, output: npt.ArrayLike, n_labels: int | None = None) -> Any: ...
def parts(structure: Structure | PathGraph, output: npt.ArrayLike, n_labels: int | None = None) -> Any:
    """Which parts an output has: 1 for those, 0 for all others, in the shapes of the marginals."""
    return _answers(structure, "parts").parts(structure, output, n_labels)
