"""Answers from the definition: every output is listed, scored and summed. Nothing of the library is used.

`Enumeration` answers all questions about a finite list of outputs; a structure needs only a class that lists
its outputs and their parts (`ChainOracle`, `TreeOracle`). For what cannot be listed there are the textbook recursions, in
log space (`LogSpaceChain`) and in arbitrary precision, where nothing can underflow or cancel (`long_chain`).

Letters: T positions, L labels, P parts, N outputs.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from typing import Any, NamedTuple

import mpmath  # type: ignore[import-untyped]
import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]
Output = tuple[int, ...]


class Enumeration:
    """The distribution p(y) = exp(score(y)) / Z over outputs that are listed one by one.

    `outputs` yields each output with the numbers of its parts; `part_scores` [P] are their scores. Outputs
    with a part of score −inf do not exist.
    """

    def __init__(self, outputs: Iterable[tuple[Output, list[int]]], part_scores: Floats) -> None:
        listed = [(y, parts, math.fsum(part_scores[parts])) for y, parts in outputs]
        listed = [entry for entry in listed if entry[2] > -math.inf]
        self.outputs = [y for y, _, _ in listed]
        self.scores = np.array([score for _, _, score in listed])  # [N]
        self.counts = np.zeros((len(listed), len(part_scores)))  # [N, P] how often output n has part k
        for row, (_, parts, _) in zip(self.counts, listed, strict=True):
            np.add.at(row, parts, 1.0)
        self.by_output = dict(zip(self.outputs, range(len(listed)), strict=True))

    @property
    def log_partition(self) -> float:
        """Log Z = m + log Σ_y exp(score(y) − m), m the highest score."""
        if not self.outputs:
            return -math.inf
        highest = self.scores.max()
        return float(highest + math.log(math.fsum(np.exp(self.scores - highest))))

    @property
    def probabilities(self) -> Floats:
        """P(y) [N]."""
        weights = np.exp(self.scores - self.scores.max())
        return np.asarray(weights / math.fsum(weights))

    @property
    def marginals(self) -> Floats:
        """Σ_y p(y) counts(y) [P]."""
        return np.asarray(self.probabilities @ self.counts)

    def hessian_vector(self, direction: Floats) -> Floats:
        """Covariance of the counts × direction [P]: Σ_y p(y) counts(y) (z(y) − E z), z = counts·direction."""
        z = self.counts @ direction
        p = self.probabilities
        return np.asarray((p * (z - p @ z)) @ self.counts)

    @property
    def k_best(self) -> list[tuple[float, Output]]:
        """All outputs, highest score first."""
        return sorted(zip(self.scores.tolist(), self.outputs, strict=True), reverse=True)

    def best_outputs(self, tolerance: float) -> set[Output]:
        """The outputs whose score is the highest, ties included."""
        near = np.flatnonzero(self.scores >= self.scores.max() - tolerance)
        return {self.outputs[n] for n in near}

    @property
    def entropy(self) -> float:
        """−Σ_y p(y) log p(y)."""
        return -math.fsum(self.probabilities * (self.scores - self.log_partition))

    def score(self, output: Output) -> float:
        """The sum of the scores of its parts; −inf when it does not exist."""
        n = self.by_output.get(output)
        return -math.inf if n is None else float(self.scores[n])

    def log_probability(self, output: Output) -> float:
        """Log p(output)."""
        return self.score(output) - self.log_partition


class ChainParts:
    """The parts of a chain, numbered: states [T, L], arcs [max(T − 1, 0), L, L], start [L], end [L]."""

    def __init__(self, n_positions: int, n_labels: int) -> None:
        self.n_positions, self.n_labels, self.n_pairs = n_positions, n_labels, max(n_positions - 1, 0)

    def flat(self, states: Any, arcs: Any = None, start: Any = None, end: Any = None) -> Floats:
        """Numbers per part as one vector [P]; None counts as 0, arcs [L, L] as the same for every pair."""
        L = self.n_labels
        return np.concatenate(
            [
                np.ravel(states),
                np.ravel(np.broadcast_to(0.0 if arcs is None else arcs, (self.n_pairs, L, L))),
                np.broadcast_to(0.0 if start is None else start, (L,)),
                np.broadcast_to(0.0 if end is None else end, (L,)),
            ]
        )

    def split(self, vector: Floats) -> tuple[Floats, Floats, Floats, Floats]:
        """The inverse of `flat`: states, arcs, start, end."""
        T, L = self.n_positions, self.n_labels
        states, arcs, start, end = np.split(vector, np.cumsum([T * L, self.n_pairs * L * L, L]))
        return states.reshape(T, L), arcs.reshape(self.n_pairs, L, L), start, end

    def of(self, output: Output, has_start: bool, has_end: bool) -> list[int]:
        """The numbers of the parts of one output."""
        T, L = self.n_positions, self.n_labels
        first_arc, first_start = T * L, T * L + self.n_pairs * L * L
        numbers = [t * L + b for t, b in enumerate(output)]
        numbers += [first_arc + (t * L + a) * L + b for t, (a, b) in enumerate(itertools.pairwise(output))]
        if T and has_start:
            numbers.append(first_start + output[0])
        if T and has_end:
            numbers.append(first_start + L + output[-1])
        return numbers


class ChainOracle(Enumeration):
    """All label sequences of a chain; one without start or end arcs has no output with such a part."""

    def __init__(
        self,
        states: Floats,
        arcs: Floats | None = None,
        start: Floats | None = None,
        end: Floats | None = None,
        *,
        allowed: Bools | None = None,
        has_start: bool = True,
        has_end: bool = True,
        exists: Bools
        | None = None,  # [L + 1, L + 1] the pairs that exist; L: before the first, after the last
    ) -> None:
        parts = ChainParts(*states.shape)
        mask = np.ones(states.shape, dtype=np.bool_) if allowed is None else allowed
        labels = [np.flatnonzero(row).tolist() for row in mask]
        super().__init__(
            (
                (y, parts.of(y, has_start, has_end))
                for y in itertools.product(*labels)
                if exists is None or all(exists[pair] for pair in itertools.pairwise((-1, *y, -1)))
            ),
            parts.flat(states, arcs, start, end),
        )


class PatternState(NamedTuple):
    """A state of a pattern: (labels, next state) pairs, the weight that entering it activates (−1: none), and where."""

    transitions: tuple[tuple[frozenset[int], int], ...] = ()
    activates: int = -1
    last_only: bool = False


class StartedPattern(NamedTuple):
    """A pattern that begins at a position, in the first of its states."""

    position: int
    states: tuple[PatternState, ...]
    value: float

    def active_weights(self, output: Output) -> Iterator[int]:
        """The weights that are active in an output, as often as they are."""
        here = self.states[0]
        for t in range(self.position, len(output)):
            leads_to = [after for labels, after in here.transitions if output[t] in labels]
            if not leads_to:
                return
            [after] = leads_to
            here = self.states[after]
            if here.activates >= 0 and (t == len(output) - 1 or not here.last_only):
                yield here.activates


class PatternOracle(ChainOracle):
    """All label sequences of a chain in which patterns begin; part P + k is weight k, its count how often it is active."""

    def __init__(
        self, patterns: Sequence[StartedPattern], weights: Floats, *chain: Any, **exists: Any
    ) -> None:
        super().__init__(*chain, **exists)
        active = np.zeros((len(self.outputs), len(weights)))
        for row, y in zip(active, self.outputs, strict=True):
            for pattern in patterns:
                for weight in pattern.active_weights(y):
                    row[weight] += pattern.value
        self.counts = np.hstack([self.counts, active])
        added = [math.fsum([score, *(row * weights)]) for score, row in zip(self.scores, active, strict=True)]
        self.scores = np.array(added)


class TreeOracle(Enumeration):
    """All spanning trees of a sentence: every choice of a head for each word in which each word leads up to the root.

    An output is the heads, or pairs of head and label. Arcs are numbered as in the scores, [T + 1, T + 1] or
    [T + 1, T + 1, R].
    """

    def __init__(self, scores: Floats, single_root: bool, allowed: Bools | None = None) -> None:
        shape = scores.shape
        open_arcs = scores > -np.inf if allowed is None else allowed & (scores > -np.inf)
        numbers = np.arange(scores.size).reshape(shape)
        choices = [
            [tuple(int(i) for i in choice) for choice in np.argwhere(open_arcs[:, word])]
            for word in range(1, shape[0])
        ]
        labelled = len(shape) == 3

        def trees() -> Iterator[tuple[Any, list[int]]]:
            for tree in itertools.product(*choices):
                heads = [choice[0] for choice in tree]
                if all_lead_to_the_root(heads) and not (single_root and heads.count(0) > 1):
                    arcs = [int(numbers[c[0], word, *c[1:]]) for word, c in enumerate(tree, start=1)]
                    yield (tree if labelled else tuple(heads)), arcs

        super().__init__(trees(), scores.ravel())


def all_lead_to_the_root(heads: list[int]) -> bool:
    """Whether one comes to the root from every word by going from head to head."""
    for word in range(1, len(heads) + 1):
        here = word
        for _ in heads:
            here = heads[here - 1] if here else 0
        if here:
            return False
    return True


def log_sum(values: Any, axis: int) -> Any:
    """Log Σ exp along one axis."""
    highest = np.max(values.real, axis=axis, keepdims=True)
    highest = np.where(np.isfinite(highest), highest, 0.0)
    with np.errstate(divide="ignore"):
        return np.log(np.sum(np.exp(values - highest), axis=axis)) + np.squeeze(highest, axis)


class LogSpaceChain:
    """A second implementation for chains too large to list: messages in log space, in plain NumPy.

    It takes complex scores, so that its derivative in any direction is the imaginary part of one evaluation,
    f'(x) = Im f(x + i h) / h for h → 0, and not a difference.
    """

    def __init__(self, states: Any, arcs: Any, start: Any, end: Any) -> None:
        self.states, self.arcs = states, arcs  # [T, L], [T − 1, L, L]
        self.start, self.end = start, end  # [L], [L]
        self.alpha, self.beta = np.empty_like(states), np.empty_like(states)
        self.alpha[0] = start + states[0]
        for t in range(1, len(states)):
            self.alpha[t] = log_sum(self.alpha[t - 1][:, None] + arcs[t - 1], axis=0) + states[t]
        self.beta[-1] = end
        for t in range(len(states) - 1, 0, -1):
            self.beta[t - 1] = log_sum(arcs[t - 1] + states[t] + self.beta[t], axis=1)
        self.log_partition = log_sum(self.alpha[-1] + end, axis=0)

    def marginals(self) -> tuple[Any, Any]:
        """States [T, L] and arcs [T − 1, L, L]."""
        before, after = self.alpha[:-1, :, None], (self.states + self.beta)[1:, None, :]
        return (
            np.exp(self.alpha + self.beta - self.log_partition),
            np.exp(before + self.arcs + after - self.log_partition),
        )

    def best(self) -> list[int]:
        """The output with the highest score (of real scores)."""
        tops = [self.states[-1] + self.end]  # what follows position t, the position included
        for here, arcs in zip(self.states[-2::-1], self.arcs[::-1], strict=True):
            tops.append(here + np.max(arcs + tops[-1], axis=1))
        output = [int(np.argmax(self.start + tops[-1]))]
        for top, arcs in zip(tops[-2::-1], self.arcs, strict=True):
            output.append(int(np.argmax(arcs[output[-1]] + top)))
        return output


def long_chain(
    states: Floats, arcs: Floats, start: Floats, end: Floats, positions: list[int], digits: int = 50
) -> tuple[float, dict[int, Floats]]:
    """Log Z and the marginals P(y_t = b) [L] at a few positions, by recursions in `digits` decimal digits.

    alpha_1 = e^(start + states_1),  alpha_t(b) = e^states_t(b) Σ_a alpha_{t−1}(a) e^arcs(a, b)
    beta_T = e^end,                  beta_{t−1}(a) = Σ_b e^(arcs(a, b) + states_t(b)) beta_t(b)

    Scores that repeat are exponentiated once: give long chains scores from a small set of values.
    """
    with mpmath.workdps(digits):
        exp = cache(lambda score: mpmath.exp(mpmath.mpf(score)))
        weights = [[exp(arc) for arc in row] for row in arcs.tolist()]  # [L, L]
        by_after = list(zip(*weights, strict=True))
        emitted = [[exp(score) for score in row] for row in states.tolist()]  # [T, L]

        def forward() -> Iterator[list[Any]]:
            alpha = [exp(s) * e for s, e in zip(start.tolist(), emitted[0], strict=True)]
            yield alpha
            for here in emitted[1:]:
                alpha = [e * _dot(alpha, column) for e, column in zip(here, by_after, strict=True)]
                yield alpha

        def backward() -> Iterator[list[Any]]:
            beta = [exp(score) for score in end.tolist()]
            yield beta
            for after in reversed(emitted[1:]):
                beta = [e * b for e, b in zip(after, beta, strict=True)]
                beta = [_dot(beta, row) for row in weights]
                yield beta

        wanted, last = set(positions), len(emitted) - 1
        alphas = {t: alpha for t, alpha in enumerate(forward()) if t in wanted or t == last}
        betas = {last - t: beta for t, beta in enumerate(backward()) if last - t in wanted}
        total = _dot(alphas[last], [exp(score) for score in end.tolist()])
        marginals = {
            t: np.array([float(a * b / total) for a, b in zip(alphas[t], betas[t], strict=True)])
            for t in positions
        }
        return float(mpmath.log(total)), marginals


def _dot(left: Iterable[Any], right: Iterable[Any]) -> Any:
    """Σ_i left_i right_i in the precision at hand."""
    return mpmath.fdot(left, right)
