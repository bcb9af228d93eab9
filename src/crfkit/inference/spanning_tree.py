"""The questions on the spanning trees of one sentence. Formulas stand in `crfkit.structures.spanning_tree`.

Many sentences at once, on several threads: `TreeBatch`.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from crfkit.inference.tree_batch import TreeBatch
from crfkit.structures import (
    AllowedLabels,
    ScoredOutput,
    SpanningTree,
    allowed_arcs,
    is_tree,
    tree_output,
    tree_scores,
)

Float64s = npt.NDArray[np.float64]
Int32s = npt.NDArray[np.int32]
Allowed = AllowedLabels | npt.ArrayLike | None


def log_partition(structure: SpanningTree, scores: npt.ArrayLike, *, allowed: Allowed = None) -> float:
    """log Z = log Σ_y exp(score(y)); −inf when no tree exists."""
    return float(_one(structure, scores, allowed).log_partition()[0])


def marginals(structure: SpanningTree, scores: npt.ArrayLike, *, allowed: Allowed = None) -> Float64s:
    """∇ log Z: the probability of every arc, in the shape of the scores; 0 on the diagonal and in column 0."""
    return _one(structure, scores, allowed).marginals()[0]


def hessian_vector(
    structure: SpanningTree, scores: npt.ArrayLike, direction: npt.ArrayLike, *, allowed: Allowed = None
) -> Float64s:
    """∇² log Z · direction: how the marginals move when the scores move along `direction` (finite scores)."""
    return _one(structure, scores, allowed).hessian_vector([direction])[0]


def decode(structure: SpanningTree, scores: npt.ArrayLike, *, allowed: Allowed = None) -> ScoredOutput:
    """The highest-scoring tree: heads [T], or heads and labels [T, 2]."""
    return _one(structure, scores, allowed).decode()[0]


def k_best(
    structure: SpanningTree, scores: npt.ArrayLike, k: int, *, allowed: Allowed = None
) -> list[ScoredOutput]:
    """The k highest-scoring trees, best first, all distinct; fewer when fewer exist."""
    return _one(structure, scores, allowed).k_best(k)[0]


def minimum_risk(structure: SpanningTree, scores: npt.ArrayLike, *, allowed: Allowed = None) -> ScoredOutput:
    """The tree with the most expected correct arcs, Σ_m P(arc into m), and this number as its score."""
    return _one(structure, scores, allowed).minimum_risk()[0]


def sample(
    structure: SpanningTree,
    scores: npt.ArrayLike,
    n: int = 1,
    random_state: int | np.random.Generator | None = None,
    *,
    allowed: Allowed = None,
) -> Int32s:
    """`n` independent trees drawn from p(y), [n, T] or [n, T, 2]."""
    return _one(structure, scores, allowed).sample(n, random_state)[0]


def entropy(structure: SpanningTree, scores: npt.ArrayLike, *, allowed: Allowed = None) -> float:
    """−Σ_y p(y) log p(y), in nats; no number of the size of the scores enters."""
    return float(_one(structure, scores, allowed).entropy()[0])


def score(structure: SpanningTree, scores: npt.ArrayLike, output: npt.ArrayLike) -> float:
    """score(y) of one tree; −inf where it has an arc that does not exist, a circle, or one root too many."""
    arcs = tree_scores(scores)
    n_words = len(arcs) - 1
    heads, labels = tree_output(output, n_words, _n_labels(arcs))
    if not is_tree(heads, structure.single_root):
        return -math.inf
    by_label = arcs.reshape(n_words + 1, n_words + 1, -1)
    return math.fsum(by_label[heads, np.arange(1, n_words + 1), labels])


def log_probability(
    structure: SpanningTree, scores: npt.ArrayLike, output: npt.ArrayLike, *, allowed: Allowed = None
) -> float:
    """log p(y) = score(y) − log Z; −inf for a tree that is not possible."""
    arcs = tree_scores(scores)
    allowed = allowed_arcs(allowed, arcs.shape)
    if allowed is not None:
        arcs = np.where(allowed, arcs, -np.inf)
    total = log_partition(structure, arcs)
    if total == -math.inf:
        marginals(structure, arcs)  # says what is missing
    return min(0.0, score(structure, arcs, output) - total)


def parts(structure: SpanningTree, output: npt.ArrayLike, n_labels: int | None = None) -> Float64s:
    """Which arcs a tree has: 1 for those, 0 for all others, [T + 1, T + 1], or [T + 1, T + 1, R] with `n_labels`."""
    heads, labels = tree_output(output, None, n_labels)
    n_words = len(heads)
    arcs = np.zeros((n_words + 1, n_words + 1, n_labels or 1))
    arcs[heads, np.arange(1, n_words + 1), labels] = 1
    return arcs[:, :, 0] if n_labels is None else arcs


def _one(structure: SpanningTree, scores: npt.ArrayLike, allowed: Allowed) -> TreeBatch:
    """A batch of one sentence."""
    return TreeBatch(structure, [tree_scores(scores)], allowed=None if allowed is None else [allowed])


def _n_labels(arcs: Float64s) -> int | None:
    """R of labelled scores."""
    return arcs.shape[2] if arcs.ndim == 3 else None
