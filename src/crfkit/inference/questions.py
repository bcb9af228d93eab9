"""The questions, and which class answers them for which structure.

A structure is answered for by a class like `_Problem`; a new one is a line in `_PROBLEMS`, and an overload where its answer
has a type of its own.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Protocol, overload

import numpy as np
import numpy.typing as npt

from crfkit.arrays import Float64s, Int32s
from crfkit.errors import ArgumentError
from crfkit.inference.chain import ChainProblem
from crfkit.inference.factor_graph import FactorGraphProblem
from crfkit.inference.paths import GraphProblem
from crfkit.inference.patterns import PatternProblem
from crfkit.inference.problem import check_k, check_n
from crfkit.inference.projective_tree import ProjectiveProblem
from crfkit.inference.spanning_tree import TreeProblem
from crfkit.structures import (
    Chain,
    ChainMarginals,
    ChainScores,
    FactorGraph,
    GraphMarginals,
    NoOutputError,
    PathGraph,
    PatternChain,
    PatternMarginals,
    PatternScores,
    ProjectiveTree,
    ScoredOutput,
    SpanningTree,
    Structure,
)

__all__ = [
    "decode",
    "entropy",
    "hessian_vector",
    "k_best",
    "log_partition",
    "log_probability",
    "marginals",
    "parts",
    "sample",
    "score",
]


class _Problem(Protocol):
    """A structure with its scores; NoOutputError where constraints exclude every output."""

    def __init__(self, structure: Any, scores: Any = None, allowed: Any = None) -> None: ...
    def log_partition(self) -> float: ...
    def marginals(self) -> Any: ...
    def hessian_vector(self, direction: Any) -> Any: ...
    def decode(self) -> ScoredOutput: ...
    def k_best(self, k: int) -> list[ScoredOutput]: ...
    def sample(self, n: int, random: np.random.Generator) -> Int32s: ...
    def entropy(self) -> float: ...
    def score(self, output: npt.ArrayLike) -> float: ...
    @staticmethod
    def parts(structure: Any, output: npt.ArrayLike, n_labels: Any) -> Any: ...


AnyStructure = Structure | FactorGraph

_PROBLEMS: Mapping[type, type[_Problem]] = {
    Chain: ChainProblem,
    PatternChain: PatternProblem,
    PathGraph: GraphProblem,
    SpanningTree: TreeProblem,
    ProjectiveTree: ProjectiveProblem,
    FactorGraph: FactorGraphProblem,
}


def _problem(structure: object) -> type[_Problem]:
    """The class that answers for this structure."""
    for kind, problem in _PROBLEMS.items():
        if isinstance(structure, kind):
            return problem
    known = ", ".join(kind.__name__ for kind in _PROBLEMS)
    raise ArgumentError(f"Expected a structure ({known}), got {type(structure).__name__}.")


def _ask(
    structure: object, scores: Any, allowed: Any = None, memory_limit: float | str | None = None
) -> _Problem:
    """The structure at its scores. A factor graph has scores of its own, and exact inference on it a limit of memory."""
    problem = _problem(structure)
    if problem is FactorGraphProblem:
        return FactorGraphProblem(structure, scores, allowed, memory_limit)  # type: ignore[arg-type]
    if scores is None or memory_limit is not None:
        wrong = "no scores" if scores is None else "memory_limit"
        raise ArgumentError(f"{type(structure).__name__}: got {wrong}, which only a FactorGraph can have.")
    return problem(structure, scores, allowed)


def log_partition(
    structure: AnyStructure,
    scores: Any = None,
    *,
    allowed: Any = None,
    memory_limit: float | str | None = None,
) -> float:
    """The log partition function log Z = log Σ_y exp(score(y)); −inf when no output is possible, 0 for an empty sequence.

    A `FactorGraph` has scores of its own; here and below, `scores` with one array for each factor replaces them, `allowed`
    maps variables to a label or a set of labels, and `memory_limit` (bytes, or "4G"; by default half of what the process may
    use) is what exact inference may take, or raise `SizeLimitError`.

    >>> import math, numpy as np
    >>> scores = ChainScores(emissions=np.zeros((3, 2)))  # 2³ label sequences, each with the score 0
    >>> round(math.exp(log_partition(Chain(), scores)), 6)
    8.0
    """
    try:
        return _ask(structure, scores, allowed, memory_limit).log_partition()
    except NoOutputError:
        return -math.inf


@overload
def marginals(structure: Chain, scores: ChainScores, *, allowed: Any = None) -> ChainMarginals: ...
@overload
def marginals(structure: PatternChain, scores: PatternScores, *, allowed: Any = None) -> PatternMarginals: ...
@overload
def marginals(
    structure: FactorGraph,
    scores: Any = None,
    *,
    allowed: Any = None,
    memory_limit: float | str | None = None,
) -> GraphMarginals: ...
@overload
def marginals(
    structure: PathGraph | SpanningTree, scores: npt.ArrayLike, *, allowed: Any = None
) -> Float64s: ...
@overload
def marginals(structure: AnyStructure, scores: Any = None, *, allowed: Any = None) -> Any: ...
def marginals(
    structure: AnyStructure,
    scores: Any = None,
    *,
    allowed: Any = None,
    memory_limit: float | str | None = None,
) -> Any:
    """∇ log Z: the probability of every part."""
    return _ask(structure, scores, allowed, memory_limit).marginals()


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
    structure: FactorGraph,
    scores: Any = None,
    direction: Any = None,
    *,
    allowed: Any = None,
    memory_limit: float | str | None = None,
) -> GraphMarginals: ...
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
    structure: AnyStructure, scores: Any = None, direction: Any = None, *, allowed: Any = None
) -> Any: ...
def hessian_vector(
    structure: AnyStructure,
    scores: Any = None,
    direction: Any = None,
    *,
    allowed: Any = None,
    memory_limit: float | str | None = None,
) -> Any:
    """∇² log Z · direction: how the marginals move when the scores move along `direction` (finite scores)."""
    if direction is None:
        raise ArgumentError(
            "Hessian–vector product: no direction, expected numbers in the form of the scores."
        )
    return _ask(structure, scores, allowed, memory_limit).hessian_vector(direction)


def decode(
    structure: AnyStructure,
    scores: Any = None,
    *,
    allowed: Any = None,
    memory_limit: float | str | None = None,
) -> ScoredOutput:
    """The highest-scoring output (Viterbi for chains); which one among equals is always the same."""
    return _ask(structure, scores, allowed, memory_limit).decode()


def k_best(
    structure: AnyStructure,
    scores: Any = None,
    k: int = 1,
    *,
    allowed: Any = None,
    memory_limit: float | str | None = None,
) -> list[ScoredOutput]:
    """The k highest-scoring outputs, best first, all distinct; fewer when fewer are possible."""
    k = check_k(k)
    try:
        return _ask(structure, scores, allowed, memory_limit).k_best(k)
    except NoOutputError:
        return []


def sample(
    structure: AnyStructure,
    scores: Any = None,
    n: int = 1,
    random_state: int | np.random.Generator | None = None,
    *,
    allowed: Any = None,
    memory_limit: float | str | None = None,
) -> Int32s:
    """`n` independent outputs drawn from p(y), one after the other along the first axis."""
    check_n(n)
    problem = _ask(structure, scores, allowed, memory_limit)
    return problem.sample(n, np.random.default_rng(random_state))


def entropy(
    structure: AnyStructure,
    scores: Any = None,
    *,
    allowed: Any = None,
    memory_limit: float | str | None = None,
) -> float:
    """−Σ_y p(y) log p(y), in nats."""
    return _ask(structure, scores, allowed, memory_limit).entropy()


def score(structure: AnyStructure, scores: Any = None, output: Any = None) -> float:
    """score(y) of one output; −inf where it has a part that does not exist."""
    _check_output(output)
    return _ask(structure, scores).score(output)


def log_probability(
    structure: AnyStructure,
    scores: Any = None,
    output: Any = None,
    *,
    allowed: Any = None,
    memory_limit: float | str | None = None,
) -> float:
    """log p(y) = score(y) − log Z; −inf for an output that is not possible."""
    _check_output(output)
    problem = _ask(structure, scores, allowed, memory_limit)
    total = problem.log_partition()
    if total == -math.inf:
        problem.marginals()  # raises an error that says what is missing
    return min(0.0, problem.score(output) - total)


def _check_output(output: object) -> None:
    if output is None:
        raise ArgumentError("Score of an output: got no output, expected one.")


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
def parts(structure: FactorGraph, output: Any, n_labels: int | None = None) -> GraphMarginals: ...
@overload
def parts(structure: AnyStructure, output: Any, n_labels: int | None = None) -> Any: ...
def parts(structure: AnyStructure, output: Any, n_labels: int | None = None) -> Any:
    """Which parts an output has: 1 for those, 0 for all others, in the shapes of the marginals."""
    return _problem(structure).parts(structure, output, n_labels)
