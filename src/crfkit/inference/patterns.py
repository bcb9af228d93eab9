"""The questions on a chain with patterns. Formulas stand in `crfkit.structures.pattern_chain`; the core does the work."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from crfkit import _core
from crfkit.inference import chain
from crfkit.inference.chain import Allowed, Float64s, Int32s
from crfkit.inference.how_many import check_k, check_n
from crfkit.structures import (
    Chain,
    NoOutputError,
    PatternChain,
    PatternMarginals,
    PatternMatcher,
    PatternScores,
    ScoredOutput,
    size_words,
)

MAX_ARCS = 100_000_000
Asked = tuple[
    _core.Trellises, int, Float64s, Float64s, Float64s
]  # states [T, L], arcs [A] or [T − 1, A], weights [W]


def log_partition(structure: PatternChain, scores: PatternScores, *, allowed: Allowed = None) -> float:
    """log Z; −inf when no label sequence is possible, 0 for an empty sequence."""
    try:
        return _core.trellis_log_partition(*_asked(structure, scores, allowed))
    except NoOutputError:
        return -math.inf


def marginals(structure: PatternChain, scores: PatternScores, *, allowed: Allowed = None) -> PatternMarginals:
    """∇ log Z: the probability of every part, and what is expected to fire each weight."""
    asked = _asked(structure, scores, allowed)
    return _parts(structure, asked[0], *_core.trellis_marginals(*asked))


def hessian_vector(
    structure: PatternChain, scores: PatternScores, direction: PatternScores, *, allowed: Allowed = None
) -> PatternMarginals:
    """∇² log Z · direction."""
    asked = _asked(structure, scores, allowed)
    _check(structure, direction)
    d_states, d_arcs = chain.folded(Chain(structure.start, structure.end), direction, None)
    d_arcs = np.ascontiguousarray(d_arcs[..., *asked[0].arcs()])
    if not (np.isfinite(d_states).all() and np.isfinite(d_arcs).all()):
        raise ValueError("Hessian–vector product: the direction holds −inf, expected finite numbers.")
    return _parts(
        structure, asked[0], *_core.trellis_hessian_vector(*asked, d_states, d_arcs, _weights(direction))
    )


def decode(structure: PatternChain, scores: PatternScores, *, allowed: Allowed = None) -> ScoredOutput:
    """The highest-scoring label sequence; which one among equals is always the same."""
    score, labels = _core.trellis_best(*_asked(structure, scores, allowed))
    if score == -math.inf:
        raise ValueError("best: no label sequence is possible, every one has a part with score −inf.")
    return ScoredOutput(labels, score)


def k_best(
    structure: PatternChain, scores: PatternScores, k: int, *, allowed: Allowed = None
) -> list[ScoredOutput]:
    """The k highest-scoring label sequences, best first, all distinct; fewer when fewer are possible."""
    check_k(k)
    try:
        found = _core.trellis_k_best(*_asked(structure, scores, allowed), k)
    except NoOutputError:
        return []
    return [ScoredOutput(labels, score) for score, labels in found]


def sample(
    structure: PatternChain,
    scores: PatternScores,
    n: int = 1,
    random_state: int | np.random.Generator | None = None,
    *,
    allowed: Allowed = None,
) -> Int32s:
    """`n` independent label sequences drawn from p(y), as label ids [n, T]."""
    check_n(n)
    asked = _asked(structure, scores, allowed)
    uniforms = np.random.default_rng(random_state).random((n, structure.n_positions))
    return _core.trellis_sample(*asked, uniforms)


def entropy(structure: PatternChain, scores: PatternScores, *, allowed: Allowed = None) -> float:
    """−Σ_y p(y) log p(y), in nats, summed from terms ≥ 0 so that nothing cancels."""
    return _core.trellis_entropy(*_asked(structure, scores, allowed))


def score(structure: PatternChain, scores: PatternScores, output: npt.ArrayLike) -> float:
    """score(y) of one label sequence, given as label ids [T]; −inf where it has an arc that does not exist."""
    _check(structure, scores)
    plain = chain.score(structure.chain, scores, output)
    active = structure.counts(chain.labels_of(output, scores.n_positions, scores.n_labels).tolist())
    return math.fsum([plain, *(active * _weights(scores))])


def log_probability(
    structure: PatternChain, scores: PatternScores, output: npt.ArrayLike, *, allowed: Allowed = None
) -> float:
    """log p(y) = score(y) − log Z; −inf for a label sequence that is not possible."""
    total = _core.trellis_log_partition(*_asked(structure, scores, allowed))
    if total == -math.inf:
        raise ValueError(
            "log_probability: no label sequence is possible, every one has a part with score −inf."
        )
    if not chain.admits(allowed, scores, output):
        return -math.inf
    return min(0.0, score(structure, scores, output) - total)


def parts(structure: PatternChain, output: npt.ArrayLike, n_labels: int | None = None) -> PatternMarginals:
    """Which parts a label sequence has: 1 for those, 0 for all others; for each weight how often it is active."""
    labels = structure.matcher.n_labels if n_labels is None else n_labels
    plain = chain.parts(structure.chain, output, labels)
    return PatternMarginals(*plain, structure.counts(np.asarray(output).tolist()))


def _asked(structure: PatternChain, scores: PatternScores, allowed: Allowed) -> Asked:
    """The arguments of a question to the core; NoOutputError where the bigrams exclude every label sequence."""
    _check(structure, scores)
    states, arcs = chain.folded(structure.chain, scores, allowed)
    known = chain.allowed_of(allowed, scores)
    allowed = None if known is None else (known.position_ptr.tobytes(), known.labels.tobytes())
    trellises = _trellises(structure, allowed)
    return trellises, 0, states, np.ascontiguousarray(arcs[..., *trellises.arcs()]), _weights(scores)


def _check(structure: PatternChain, scores: PatternScores) -> None:
    """Refuse what is not scores of this structure."""
    if not isinstance(scores, PatternScores):
        raise ValueError(
            f"The scores of a chain with patterns are PatternScores, got {type(scores).__name__}."
        )
    scores.check_patterns(structure)


def _weights(scores: PatternScores) -> Float64s:
    """The scores of the weights [W]."""
    return np.zeros(0) if scores.weights is None else scores.weights


@lru_cache(maxsize=64)
def _trellises(structure: PatternChain, allowed: tuple[bytes, bytes] | None) -> _core.Trellises:
    """The trellis of a structure with this allowed labels (position_ptr, labels), as a data set of one sequence."""
    n_labels, n_positions = structure.matcher.n_labels, structure.n_positions
    nothing, zero = np.zeros(0, np.int32), np.zeros(1, np.int64)
    linked = structure.chain.of_ids(n_labels)
    if linked.constrained:
        existing = linked.support().exists  # [L + 1, L + 1] START and END included
        before, after = (ids.astype(np.int32) for ids in np.nonzero(existing))
        inside = (before < n_labels) & (after < n_labels)
        pairs = (before[inside], after[inside], zero, nothing, before, after)
        layout = _core.Layout(n_labels, zero, nothing, zero[:0], *pairs)
    else:
        first, second = np.divmod(np.arange(n_labels**2, dtype=np.int32), n_labels)
        layout = _core.Layout(n_labels, zero, nothing, zero[:0], first, second, zero, nothing)
    design = _core.Design(
        layout,
        np.array([0, n_positions], np.int64),
        np.zeros(n_positions + 1, np.int64),
        nothing,
        None,
        None,
        None,
        None,
        [],
        1,
        None if allowed is None else np.frombuffer(allowed[0], np.int64),
        None if allowed is None else np.frombuffer(allowed[1], np.int32),
        "questions",
    )
    try:
        return _core.Trellises(
            layout,
            design,
            _core_matcher(structure.matcher),
            *structure.starts,
            0,
            structure.max_states,
            MAX_ARCS,
            1,
        )
    except _core.TrellisSizeError as error:
        raise ValueError(_too_large(error, structure.max_states)) from None


def _core_matcher(matcher: PatternMatcher) -> _core.PatternMatcher:
    """The same matcher in the core."""
    arrays = (
        matcher.set_ptr,
        matcher.set_labels,
        matcher.out_ptr,
        matcher.out_set,
        matcher.out_next,
        matcher.activates,
    )
    return _core.PatternMatcher(matcher.n_labels, *arrays, matcher.last_only)


def _too_large(error: _core.TrellisSizeError, max_states: int) -> str:
    """What is too large, where, and what can be done, in words."""
    _, _, position, n_states, n_arcs, weights = error.args
    what, remedy = size_words(n_states, max_states, n_arcs, MAX_ARCS)
    return f"Position {position}: {what}; the patterns alive there have {len(weights)} weights: {remedy}."


def _parts(
    structure: PatternChain, trellises: _core.Trellises, states: Float64s, arcs: Float64s, weights: Float64s
) -> PatternMarginals:
    """Numbers of the core's parts, arcs [T − 1, A], in the shapes of the marginals."""
    n_labels = structure.matcher.n_labels
    full = np.zeros((len(arcs), n_labels, n_labels))
    full[:, *trellises.arcs()] = arcs
    plain = chain.with_ends(structure.chain, states, full)
    return PatternMarginals(*plain, weights)
