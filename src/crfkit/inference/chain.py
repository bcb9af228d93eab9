"""The label sequences of a chain. Formulas stand in `crfkit.structures.chain`; the work is done in the native core."""

from __future__ import annotations

import math
from functools import cached_property

import numpy as np
import numpy.typing as npt

from crfkit import _core
from crfkit.arrays import Float64s, Int32s
from crfkit.errors import ArgumentError, LabelError, ShapeError
from crfkit.inference.problem import PathProblem, check_finite
from crfkit.structures import AllowedLabels, Chain, ChainMarginals, ChainScores

Allowed = AllowedLabels | npt.ArrayLike | None


class ChainProblem(PathProblem):
    """A chain with its scores."""

    def __init__(self, structure: Chain, scores: ChainScores, allowed: Allowed = None) -> None:
        if not isinstance(scores, ChainScores):
            raise ArgumentError(f"The scores of a chain are ChainScores, got {type(scores).__name__}.")
        scores.check(structure)
        self.chain, self.scores = structure, scores
        self.allowed = _allowed_labels(allowed, scores)

    @cached_property
    def core(self) -> _core.ScoredGraph:
        """Emissions and transitions with everything else folded in."""
        return _core.ScoredChain(*self.fold())

    def fold(self) -> tuple[Float64s, Float64s]:
        """Emissions [T, L] with start, end and allowed labels folded in, and transitions [L, L] or [T − 1, L, L].

        What the bigrams of the chain exclude scores −inf, emissions that no output has included; NoOutputError when
        that is all.
        """
        scores, n_labels = self.scores, self.scores.n_labels
        emissions = np.array(scores.emissions, order="C")
        if scores.n_positions:
            if scores.start is not None:
                emissions[0] += scores.start
            if scores.end is not None:
                emissions[-1] += scores.end
        transitions = np.zeros((n_labels, n_labels)) if scores.transitions is None else scores.transitions
        chain = self.chain.of_ids(n_labels)
        if chain.constrained:
            emissions[~chain.possible_labels(scores.n_positions, n_labels, self.allowed)] = -math.inf
            transitions = np.where(chain.support().exists[:-1, :-1], transitions, -math.inf)
        elif self.allowed is not None:
            emissions[~self.allowed.mask(n_labels)] = -math.inf
        return emissions, transitions

    def direction(self, direction: ChainScores) -> _core.ScoredGraph:
        """The same for a direction."""
        return _core.ScoredChain(*self.fold_direction(direction))

    def fold_direction(self, direction: ChainScores) -> tuple[Float64s, Float64s]:
        """Emissions and transitions of a direction, which no constraint restricts."""
        folded = ChainProblem(Chain(self.chain.start, self.chain.end), direction).fold()
        if direction.emissions.shape != self.scores.emissions.shape:
            raise ShapeError(
                f"Hessian–vector product: the direction's emissions have shape {list(direction.emissions.shape)}, "
                f"expected that of the scores, {list(self.scores.emissions.shape)}."
            )
        check_finite(*folded)
        return folded

    def shape_marginals(self, parts: tuple[Float64s, ...]) -> ChainMarginals:
        """Marginals with those of start and end."""
        return with_ends(self.chain, parts[0], parts[1])

    def score(self, output: npt.ArrayLike) -> float:
        """score(y) of label ids [T]; −inf where a label is not allowed or a transition does not exist."""
        scores = self.scores
        y = labels_of(output, scores.n_positions, scores.n_labels)
        at = np.arange(len(y))
        if self.allowed is not None and not self.allowed.mask(scores.n_labels)[at, y].all():
            return -math.inf
        chain = self.chain.of_ids(scores.n_labels)
        if chain.constrained and chain.support().first_break(y) is not None:
            return -math.inf
        if len(y) == 0:
            return 0.0
        terms = list(scores.emissions[at, y])
        if scores.transitions is not None and len(y) > 1:
            pairs = (y[:-1], y[1:])
            by_position = scores.transitions.ndim == 3
            terms.extend(scores.transitions[(at[:-1], *pairs) if by_position else pairs])
        if scores.start is not None:
            terms.append(scores.start[y[0]])
        if scores.end is not None:
            terms.append(scores.end[y[-1]])
        return math.fsum(terms)

    @staticmethod
    def parts(structure: Chain, output: npt.ArrayLike, n_labels: int) -> ChainMarginals:
        """Which parts a label sequence has: 1 for those, 0 for all others, in the shapes of the marginals."""
        y = labels_of(output, None, n_labels)
        emissions = np.zeros((len(y), n_labels))
        emissions[np.arange(len(y)), y] = 1
        transitions = np.zeros((max(len(y) - 1, 0), n_labels, n_labels))
        transitions[np.arange(len(transitions)), y[:-1], y[1:]] = 1
        return with_ends(structure, emissions, transitions)


def _allowed_labels(allowed: Allowed, scores: ChainScores) -> AllowedLabels | None:
    """The allowed labels as lists, if they go with the scores."""
    if allowed is None:
        return None
    if not isinstance(allowed, AllowedLabels):
        given = list(np.shape(allowed))
        if given != list(scores.emissions.shape):
            raise ShapeError(
                f"The allowed labels have shape {given}, expected [T, L] = {list(scores.emissions.shape)}."
            )
        allowed = AllowedLabels.from_mask(allowed)
    if allowed.n_positions != scores.n_positions:
        raise ShapeError(
            f"The allowed labels are of {allowed.n_positions} positions, the scores of {scores.n_positions}."
        )
    return allowed


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
        raise ShapeError(
            f"A label sequence is a list of label ids, got {y.dtype} with shape {list(y.shape)}."
        )
    if n_positions is not None and len(y) != n_positions:
        raise ShapeError(f"The label sequence has {len(y)} labels, the scores have {n_positions} positions.")
    wrong = np.flatnonzero((y < 0) | (y >= n_labels))
    if len(wrong):
        raise LabelError(
            f"Position {wrong[0]} has label {y[wrong[0]]}, expected label ids from 0 to {n_labels - 1}."
        )
    return y.astype(np.int32)
