"""The questions on a chain. Formulas stand in `crfkit.structures.chain`; the work is done in the native core."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from crfkit import _core
from crfkit.inference.how_many import check_k, check_n
from crfkit.structures import AllowedLabels, Chain, ChainMarginals, ChainScores, NoOutputError, ScoredOutput

Float64s = npt.NDArray[np.float64]
Int32s = npt.NDArray[np.int32]
Allowed = AllowedLabels | npt.ArrayLike | None


def log_partition(structure: Chain, scores: ChainScores, *, allowed: Allowed = None) -> float:
    """log Z = log Σ_y exp(score(y)); −inf when no label sequence is possible, 0 for an empty sequence."""
    try:
        return _core.chain_log_partition(*folded(structure, scores, allowed))
    except NoOutputError:
        return -math.inf


def marginals(structure: Chain, scores: ChainScores, *, allowed: Allowed = None) -> ChainMarginals:
    """∇ log Z: the probability of every part."""
    emissions, transitions = _core.chain_marginals(*folded(structure, scores, allowed))
    return with_ends(structure, emissions, transitions)


def hessian_vector(
    structure: Chain, scores: ChainScores, direction: ChainScores, *, allowed: Allowed = None
) -> ChainMarginals:
    """∇² log Z · direction: how the marginals move when the scores move along `direction` (finite scores)."""
    emissions, transitions = folded(structure, scores, allowed)
    d_states, d_arcs = folded(Chain(structure.start, structure.end), direction, None)
    if direction.emissions.shape != scores.emissions.shape:
        raise ValueError(
            f"Hessian–vector product: the direction's emissions have shape {list(direction.emissions.shape)}, "
            f"expected that of the scores, {list(scores.emissions.shape)}."
        )
    if not (np.isfinite(d_states).all() and np.isfinite(d_arcs).all()):
        raise ValueError("Hessian–vector product: the direction holds −inf, expected finite numbers.")
    moved_states, moved_arcs = _core.chain_hessian_vector(emissions, transitions, d_states, d_arcs)
    return with_ends(structure, moved_states, moved_arcs)


def decode(structure: Chain, scores: ChainScores, *, allowed: Allowed = None) -> ScoredOutput:
    """The highest-scoring label sequence; among equals the one with the lower label at the last position where they
    differ.
    """
    found = _core.chain_k_best(*folded(structure, scores, allowed), 1)
    if not found:
        raise ValueError("best: no label sequence is possible, every one has a part with score −inf.")
    return ScoredOutput(found[0][1], found[0][0])


def k_best(structure: Chain, scores: ChainScores, k: int, *, allowed: Allowed = None) -> list[ScoredOutput]:
    """The k highest-scoring label sequences, best first, all distinct; fewer when fewer are possible."""
    check_k(k)
    try:
        found = _core.chain_k_best(*folded(structure, scores, allowed), k)
    except NoOutputError:
        return []
    return [ScoredOutput(labels, score) for score, labels in found]


def sample(
    structure: Chain,
    scores: ChainScores,
    n: int = 1,
    random_state: int | np.random.Generator | None = None,
    *,
    allowed: Allowed = None,
) -> Int32s:
    """`n` independent label sequences drawn from p(y), as label ids [n, T]."""
    check_n(n)
    emissions, transitions = folded(structure, scores, allowed)
    uniforms = np.random.default_rng(random_state).random((n, len(emissions)))
    return _core.chain_sample(emissions, transitions, uniforms)


def entropy(structure: Chain, scores: ChainScores, *, allowed: Allowed = None) -> float:
    """−Σ_y p(y) log p(y), in nats, summed from terms ≥ 0 so that nothing cancels."""
    return _core.chain_entropy(*folded(structure, scores, allowed))


def score(structure: Chain, scores: ChainScores, output: npt.ArrayLike) -> float:
    """score(y) of one label sequence, given as label ids [T]; −inf where it has an arc that does not exist."""
    _check(structure, scores)
    y = labels_of(output, scores.n_positions, scores.n_labels)
    chain = structure.of_ids(scores.n_labels)
    if chain.constrained and chain.support().first_break(y) is not None:
        return -math.inf
    if len(y) == 0:
        return 0.0
    terms = list(scores.emissions[np.arange(len(y)), y])
    if scores.transitions is not None and len(y) > 1:
        transitions = scores.transitions
        by_position = (
            transitions[np.arange(len(y) - 1), y[:-1], y[1:]]
            if transitions.ndim == 3
            else transitions[y[:-1], y[1:]]
        )
        terms.extend(by_position)
    if scores.start is not None:
        terms.append(scores.start[y[0]])
    if scores.end is not None:
        terms.append(scores.end[y[-1]])
    return math.fsum(terms)


def log_probability(
    structure: Chain, scores: ChainScores, output: npt.ArrayLike, *, allowed: Allowed = None
) -> float:
    """log p(y) = score(y) − log Z; −inf for a label sequence that is not possible."""
    total = _core.chain_log_partition(*folded(structure, scores, allowed))
    if total == -math.inf:
        raise ValueError(
            "log_probability: no label sequence is possible, every one has a part with score −inf."
        )
    if not admits(allowed, scores, output):
        return -math.inf
    return min(0.0, score(structure, scores, output) - total)


def parts(structure: Chain, output: npt.ArrayLike, n_labels: int) -> ChainMarginals:
    """Which parts a label sequence has: 1 for those, 0 for all others, in the shapes of the marginals."""
    y = labels_of(output, None, n_labels)
    n_positions = len(y)
    emissions = np.zeros((n_positions, n_labels))
    emissions[np.arange(n_positions), y] = 1
    transitions = np.zeros((max(n_positions - 1, 0), n_labels, n_labels))
    if n_positions > 1:
        transitions[np.arange(n_positions - 1), y[:-1], y[1:]] = 1
    return with_ends(structure, emissions, transitions)


def folded(structure: Chain, scores: ChainScores, allowed: Allowed) -> tuple[Float64s, Float64s]:
    """States [T, L] with start, end and allowed labels folded in, and transitions [L, L] or [T − 1, L, L].

    What the bigrams of the chain exclude scores −inf, emissions that no output has included; NoOutputError when that is all.
    """
    _check(structure, scores)
    emissions = np.array(scores.emissions, order="C")
    if scores.n_positions:
        if scores.start is not None:
            emissions[0] += scores.start
        if scores.end is not None:
            emissions[-1] += scores.end
    transitions = (
        np.zeros((scores.n_labels, scores.n_labels)) if scores.transitions is None else scores.transitions
    )
    allowed = allowed_of(allowed, scores)
    chain = structure.of_ids(scores.n_labels)
    if chain.constrained:
        emissions[~chain.compile(scores.n_positions, allowed).support(scores.n_labels)] = -math.inf
        transitions = np.where(chain.support().exists[:-1, :-1], transitions, -math.inf)
    elif allowed is not None:
        emissions[~allowed.mask(scores.n_labels)] = -math.inf
    return emissions, transitions


def _check(structure: Chain, scores: ChainScores) -> None:
    """Refuse what is not scores of this structure."""
    if not isinstance(scores, ChainScores):
        raise ValueError(f"The scores of a chain are ChainScores, got {type(scores).__name__}.")
    scores.check(structure)


def allowed_of(allowed: Allowed, scores: ChainScores) -> AllowedLabels | None:
    """The allowed labels as lists, if it goes with the scores."""
    if allowed is None:
        return None
    if not isinstance(allowed, AllowedLabels):
        given = list(np.shape(allowed))
        if given != list(scores.emissions.shape):
            raise ValueError(
                f"The allowed labels have shape {given}, expected [T, L] = {list(scores.emissions.shape)}."
            )
        allowed = AllowedLabels.from_mask(allowed)
    if allowed.n_positions != scores.n_positions:
        raise ValueError(
            f"The allowed labels are of {allowed.n_positions} positions, the scores of {scores.n_positions}."
        )
    return allowed


def admits(allowed: Allowed, scores: ChainScores, output: npt.ArrayLike) -> bool:
    """Whether every label of a label sequence is allowed."""
    y = labels_of(output, scores.n_positions, scores.n_labels)
    allowed = allowed_of(allowed, scores)
    return allowed is None or bool(allowed.mask(scores.n_labels)[np.arange(len(y)), y].all())


def with_ends(structure: Chain, emissions: Float64s, transitions: Float64s) -> ChainMarginals:
    """Marginals with those of the start and end transitions: the first and the last row of the emissions."""
    nothing = np.zeros(emissions.shape[1])
    some = len(emissions) > 0
    return ChainMarginals(
        emissions=emissions,
        transitions=transitions,
        start=emissions[0].copy() if some and structure.start else nothing,
        end=emissions[-1].copy() if some and structure.end else nothing.copy(),
    )


def labels_of(output: npt.ArrayLike, n_positions: int | None, n_labels: int) -> Int32s:
    """One label id per position, checked."""
    y = np.asarray(output)
    if y.ndim != 1 or (y.size and y.dtype.kind not in "iu"):
        raise ValueError(
            f"A label sequence is a list of label ids, got {y.dtype} with shape {list(y.shape)}."
        )
    if n_positions is not None and len(y) != n_positions:
        raise ValueError(f"The label sequence has {len(y)} labels, the scores have {n_positions} positions.")
    wrong = np.flatnonzero((y < 0) | (y >= n_labels))
    if len(wrong):
        raise ValueError(
            f"Position {wrong[0]} has label {y[wrong[0]]}, expected label ids from 0 to {n_labels - 1}."
        )
    return y.astype(np.int32)
