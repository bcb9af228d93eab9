"""The questions on a chain that is normalised at each position: a maximum entropy Markov model (McCallum et al. 2000).

    p(y) = Π_t p(y_t | y_{t−1}),    p(b | a) = exp(states[t, b] + arcs[t, a, b]) / Σ_b exp(states[t, b] + arcs[t, a, b])

With log p(b | a) as transition scores it is a chain as others are, with Z = 1.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from crfkit import _core
from crfkit.inference import chain
from crfkit.inference.tagger import Sets, Tagger
from crfkit.structures import AllowedLabels, Chain, ChainScores

Float64s = npt.NDArray[np.float64]
Int32s = npt.NDArray[np.int32]
Int64s = npt.NDArray[np.int64]

_CHAIN = Chain(start=False, end=False)


class LocalDesign(NamedTuple):
    """A data set for a `LocalTagger`."""

    design: _core.Design  # in which all labels are allowed
    sequence_ptr: Int64s  # [N + 1]
    allowed: AllowedLabels | None  # the labels that each position may have; None: all


def normalise_locally(scores: ChainScores) -> ChainScores:
    """The scores log p(y_t | y_{t−1}) of the same chain, normalised at each position."""
    states, arcs = scores.emissions, scores.transitions
    n_positions, n_labels = states.shape
    if n_positions == 0:
        return scores
    first = states[:1] - _log_sum_exp(states[:1])
    following = (0.0 if arcs is None else arcs) + states[1:, None, :]  # [T − 1, L, L]
    following = following - _log_sum_exp(following)
    return ChainScores(np.concatenate([first, np.zeros((n_positions - 1, n_labels))]), following)


def _log_sum_exp(scores: Float64s) -> Float64s:
    """log Σ exp over the last axis, which is kept."""
    top = scores.max(axis=-1, keepdims=True)
    total: Float64s = top + np.log(np.exp(scores - top).sum(axis=-1, keepdims=True))
    return total


class LocalTagger(Tagger):
    """The questions of `Tagger` for weights that are normalised at each position. Its designs are `LocalDesign`s."""

    def scores(self, design: LocalDesign, n: int) -> ChainScores:
        """log p(y_t | y_{t−1}) of sequence n, as scores of transitions; those of the first position are states."""
        return normalise_locally(super().scores(design.design, n))

    def best(self, design: LocalDesign, n_threads: int = 1) -> Int32s:
        """The best label of every position, [T] over all sequences."""
        found = [chain.best(_CHAIN, scores, allowed=allowed).output for scores, allowed in self._each(design)]
        return np.concatenate([np.zeros(0, np.int32), *found])

    def marginals(self, design: LocalDesign, n_threads: int = 1) -> Float64s:
        """P(y_t = b), [T, L] over all sequences."""
        found = [
            chain.marginals(_CHAIN, scores, allowed=allowed).emissions
            for scores, allowed in self._each(design)
        ]
        return np.concatenate(found) if found else np.zeros((0, 0))

    def log_partitions(
        self,
        design: LocalDesign,
        labels: Int32s | None = None,
        sets: Sets | None = None,
        n_threads: int = 1,
    ) -> Float64s:
        """log Z of every sequence, [N]; with labels (−1: unknown) and sets, over the label sequences they allow."""
        totals = []
        for (begin, end), (scores, allowed) in zip(
            pairwise(design.sequence_ptr.tolist()), self._each(design), strict=True
        ):
            mask = np.ones(scores.emissions.shape, np.bool_)
            if allowed is not None:
                mask &= allowed.mask(scores.n_labels)
            for t in range(begin, end):
                if labels is not None and labels[t] >= 0:
                    mask[t - begin] &= np.arange(scores.n_labels) == labels[t]
                elif sets is not None and sets.position_ptr[t + 1] > sets.position_ptr[t]:
                    listed = sets.labels[sets.position_ptr[t] : sets.position_ptr[t + 1]]
                    mask[t - begin] &= np.isin(np.arange(scores.n_labels), listed)
            totals.append(chain.log_partition(_CHAIN, scores, allowed=mask))
        return np.array(totals, np.float64)

    def k_best(self, design: LocalDesign, k: int, n_threads: int = 1) -> list[list[tuple[float, Int32s]]]:
        """The k best (score, labels) of every sequence, best first."""
        return [
            [
                (found.score, found.output)
                for found in chain.k_best(_CHAIN, scores, min(k, 2**31), allowed=allowed)
            ]
            for scores, allowed in self._each(design)
        ]

    def sample(self, design: LocalDesign, n: int, uniforms: Float64s, n_threads: int = 1) -> Int32s:
        """n samples of every sequence from n · T uniform numbers: [n, length] for one sequence after the other."""
        drawn, begin = [np.zeros(0, np.int32)], 0
        for scores, allowed in self._each(design):
            end = begin + n * scores.n_positions
            some = uniforms[begin:end].reshape(n, scores.n_positions)
            drawn.append(_core.chain_sample(*chain.folded(_CHAIN, scores, allowed), some).ravel())
            begin = end
        return np.concatenate(drawn)

    def _each(self, design: LocalDesign) -> Iterator[tuple[ChainScores, AllowedLabels | None]]:
        """The scores of each sequence, and the labels that it may have."""
        for n, (begin, end) in enumerate(pairwise(design.sequence_ptr.tolist())):
            allowed = None if design.allowed is None else design.allowed.between(begin, end)
            yield self.scores(design, n), allowed
