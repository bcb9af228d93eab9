"""The label sequences of a chain with patterns. Formulas stand in `crfkit.structures.pattern_chain`."""

from __future__ import annotations

import math
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from crfkit import _core
from crfkit.arrays import Float64s
from crfkit.errors import ArgumentError, SizeLimitError
from crfkit.inference.chain import Allowed, ChainProblem, labels_of
from crfkit.structures import PatternChain, PatternMarginals, PatternMatcher, PatternScores, size_words

MAX_ARCS = 100_000_000


class PatternProblem(ChainProblem):
    """A chain with patterns, and its scores."""

    scores: PatternScores

    def __init__(self, structure: PatternChain, scores: PatternScores, allowed: Allowed = None) -> None:
        _check(structure, scores)
        super().__init__(structure.chain, scores, allowed)
        self.structure = structure

    @cached_property
    def core(self) -> _core.ScoredGraph:
        """The trellis at the scores."""
        return self._scored(self.fold(), self.scores)

    def direction(self, direction: Any) -> _core.ScoredGraph:
        """The trellis at a direction."""
        _check(self.structure, direction)
        return self._scored(self.fold_direction(direction), direction)

    def _scored(self, folded: tuple[Float64s, Float64s], scores: PatternScores) -> _core.ScoredTrellis:
        arcs = np.ascontiguousarray(folded[1][..., *self._trellises.arcs()])
        return _core.ScoredTrellis(self._trellises, 0, folded[0], arcs, _weights(scores))

    @property
    def _trellises(self) -> _core.Trellises:
        return _trellises(self.structure, None if self.allowed is None else self.allowed.key)

    def shape_marginals(self, parts: tuple[Float64s, ...]) -> Any:
        """Numbers of the core's parts, arcs [T − 1, A], in the shapes of the marginals."""
        states, arcs, weights = parts
        n_labels = self.structure.matcher.n_labels
        full = np.zeros((len(arcs), n_labels, n_labels))
        full[:, *self._trellises.arcs()] = arcs
        return PatternMarginals(*super().shape_marginals((states, full)), weights)

    def score(self, output: npt.ArrayLike) -> float:
        """score(y) of label ids [T]; −inf where a label is not allowed or a transition does not exist."""
        plain = super().score(output)
        y = labels_of(output, self.scores.n_positions, self.scores.n_labels)
        return math.fsum([plain, *(self.structure.counts(y.tolist()) * _weights(self.scores))])

    @staticmethod
    def parts(structure: Any, output: npt.ArrayLike, n_labels: int | None = None) -> Any:
        """Which parts a label sequence has: 1 for those, 0 for all others; for each weight how often it is active."""
        labels = structure.matcher.n_labels if n_labels is None else n_labels
        plain = ChainProblem.parts(structure.chain, output, labels)
        return PatternMarginals(*plain, structure.counts(np.asarray(output).tolist()))


def _check(structure: PatternChain, scores: PatternScores) -> None:
    """Refuse what is not scores of this structure."""
    if not isinstance(scores, PatternScores):
        raise ArgumentError(
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
        raise SizeLimitError(_too_large(error, structure.max_states)) from None


def _core_matcher(matcher: PatternMatcher) -> _core.PatternMatcher:
    """The same matcher in the core."""
    names = ("set_ptr", "set_labels", "out_ptr", "out_set", "out_next", "activates", "last_only")
    return _core.PatternMatcher(matcher.n_labels, *(getattr(matcher, name) for name in names))


def _too_large(error: _core.TrellisSizeError, max_states: int) -> str:
    """The error message: what is too large, where, and what to do."""
    _, _, position, n_states, n_arcs, weights = error.args
    what, remedy = size_words(n_states, max_states, n_arcs, MAX_ARCS)
    return f"Position {position}: {what}; the patterns alive there have {len(weights)} weights: {remedy}."
