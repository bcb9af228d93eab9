"""The questions on the paths of a graph that is given by its arcs, by the path engine of the core (`core/paths`).

Scores, marginals and directions are float64 [A], one number for each arc; −inf marks an arc that does not exist. `allowed`
is a bool array [A]. Outputs are lists of arcs.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from crfkit import _core
from crfkit.inference.how_many import check_k, check_n
from crfkit.structures import PathGraph, ScoredOutput

Float64s = npt.NDArray[np.float64]
Int32s = npt.NDArray[np.int32]
Allowed = npt.NDArray[np.bool_] | None


def log_partition(structure: PathGraph, scores: npt.ArrayLike, *, allowed: Allowed = None) -> float:
    """log Z; −inf when no path is possible."""
    return _graph(structure).log_partition(_scores(structure, scores, allowed))


def marginals(structure: PathGraph, scores: npt.ArrayLike, *, allowed: Allowed = None) -> Float64s:
    """∇ log Z: the probability of every arc [A]."""
    return _graph(structure).marginals(_scores(structure, scores, allowed))[0]


def hessian_vector(
    structure: PathGraph, scores: npt.ArrayLike, direction: npt.ArrayLike, *, allowed: Allowed = None
) -> Float64s:
    """∇² log Z · direction [A]."""
    moves = _numbers(structure, direction)
    if not np.isfinite(moves).all():
        raise ValueError("hessian_vector: the direction holds −inf, expected finite numbers.")
    return _graph(structure).hessian_vector(_scores(structure, scores, allowed), moves)


def decode(structure: PathGraph, scores: npt.ArrayLike, *, allowed: Allowed = None) -> ScoredOutput:
    """The path with the highest score; which one among equals is always the same."""
    score, arcs = _graph(structure).decode(_scores(structure, scores, allowed))
    return ScoredOutput(arcs.astype(np.int32), score)


def k_best(
    structure: PathGraph, scores: npt.ArrayLike, k: int, *, allowed: Allowed = None
) -> list[ScoredOutput]:
    """The k paths with the highest scores, best first, all distinct; fewer when fewer are possible."""
    check_k(k)
    found = _graph(structure).k_best(_scores(structure, scores, allowed), k)
    return [ScoredOutput(arcs.astype(np.int32), score) for score, arcs in found]


def sample(
    structure: PathGraph,
    scores: npt.ArrayLike,
    n: int = 1,
    random_state: int | np.random.Generator | None = None,
    *,
    allowed: Allowed = None,
) -> Int32s:
    """`n` independent paths drawn from p(y), as arcs [n, length of the longest], −1 after the end of a path."""
    check_n(n)
    graph = _graph(structure)
    uniforms = np.random.default_rng(random_state).random((n, max(graph.n_levels - 1, 1)))
    drawn = graph.sample(_scores(structure, scores, allowed), uniforms)
    out = np.full((n, max((len(arcs) for arcs in drawn), default=0)), -1, dtype=np.int32)
    for row, arcs in zip(out, drawn, strict=True):
        row[: len(arcs)] = arcs
    return out


def entropy(structure: PathGraph, scores: npt.ArrayLike, *, allowed: Allowed = None) -> float:
    """−Σ_y p(y) log p(y), in nats, summed from terms ≥ 0 so that nothing cancels."""
    return _graph(structure).entropy(_scores(structure, scores, allowed))


def score(structure: PathGraph, scores: npt.ArrayLike, output: npt.ArrayLike) -> float:
    """score(y) of one path; −inf where it is none, or has an arc that does not exist."""
    arcs = np.asarray(output, dtype=np.int64)
    if not structure.is_path(arcs):
        return -math.inf
    return math.fsum(_numbers(structure, scores)[arcs])


def log_probability(
    structure: PathGraph, scores: npt.ArrayLike, output: npt.ArrayLike, *, allowed: Allowed = None
) -> float:
    """log p(y) = score(y) − log Z; −inf for a path that is not possible."""
    given = _scores(structure, scores, allowed)
    total = _graph(structure).log_partition(given)
    if total == -math.inf:
        raise ValueError("log_probability: no path is possible, every one has an arc with score −inf.")
    return min(0.0, score(structure, given, output) - total)


def parts(structure: PathGraph, output: npt.ArrayLike, n_labels: int | None = None) -> Float64s:
    """1 for the arcs of a path, 0 for all others [A]."""
    counts = np.zeros(structure.n_arcs)
    counts[np.asarray(output, dtype=np.int64)] = 1.0
    return counts


def _numbers(structure: PathGraph, numbers: npt.ArrayLike) -> Float64s:
    """One number for each arc."""
    array = np.ascontiguousarray(numbers, dtype=np.float64)
    if array.shape != (structure.n_arcs,):
        raise ValueError(f"Scores of a path graph: expected [{structure.n_arcs}], got {list(array.shape)}.")
    if np.isnan(array).any() or (array == np.inf).any():
        raise ValueError("Scores of a path graph: expected finite numbers or −inf, got NaN or +inf.")
    return array


def _scores(structure: PathGraph, scores: npt.ArrayLike, allowed: Allowed) -> Float64s:
    """The scores of the arcs; −inf for those that are not allowed."""
    array = _numbers(structure, scores)
    if allowed is None:
        return array
    mask = np.asarray(allowed)
    if mask.dtype != np.bool_ or mask.shape != array.shape:
        raise ValueError(
            f"allowed: expected bools [{structure.n_arcs}], got {mask.dtype} with shape {list(mask.shape)}."
        )
    return np.where(mask, array, -np.inf)


@lru_cache(maxsize=64)
def _graph(structure: PathGraph) -> _core.PathGraph:
    """The same graph in the core."""
    return _core.PathGraph(structure.n_nodes, structure.sources, structure.targets)
