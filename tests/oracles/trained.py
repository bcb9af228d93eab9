"""Losses of data sets of every structure, with all outputs of each sequence and what these have of each weight.

Everything a loss answers follows from these lists: with φ(y) [D] the counts of output y, p ∝ exp(φ w) and c the weight of
a sequence, its value is c (log Z − log Z_gold), its gradient c (E[φ] − E_gold[φ]) and its Hessian–vector product
c (Cov[φ] − Cov_gold[φ]) v, where gold means the outputs that the annotation admits.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from crfkit.objective import Loss, Objective
from tests.oracles.function_problems import FUNCTION_KINDS, FUNCTIONS, FunctionProblem
from tests.oracles.online_reference import every_kind_of_feature
from tests.oracles.oracle import TreeOracle
from tests.oracles.parser_problems import ParserProblem, real_arcs
from tests.oracles.pattern_cases import PatternCase
from tests.oracles.restricted import KINDS, Problem
from tests.oracles.treebanks import random_treebank

Float64s = npt.NDArray[np.float64]
L2 = 0.3


class Outputs(NamedTuple):
    """The outputs of one sequence."""

    counts: Float64s  # [outputs, D]
    admitted: npt.NDArray[np.bool_]  # [outputs] by the annotation

    def moments(self, w: Float64s, v: Float64s) -> tuple[float, Float64s, Float64s]:
        """log Z, E[counts] and Cov[counts]·v."""
        scores = self.counts @ w
        log_z = np.logaddexp.reduce(scores)
        p = np.exp(scores - log_z)
        mean = p @ self.counts
        return float(log_z), mean, (p * (self.counts @ v)) @ self.counts - (mean @ v) * mean

    def right(self) -> Outputs:
        """Those that the annotation admits."""
        return Outputs(self.counts[self.admitted], self.admitted[self.admitted])


class Trained:
    """A loss at weights w, with a direction v."""

    def __init__(self, loss: Callable[..., Loss], outputs: list[Outputs], weight: Float64s) -> None:
        self.loss = loss  # of single_precision and n_threads
        self.outputs = outputs  # [N]
        self.weight = weight  # [N]
        random = np.random.default_rng(len(outputs))
        self.w, self.v = random.normal(size=(2, outputs[0].counts.shape[1]))

    def objective(self, *, l2: float = L2, single_precision: bool = False, n_threads: int = 1) -> Objective:
        """The loss with a penalty."""
        return Objective(self.loss(single_precision=single_precision, n_threads=n_threads), l2=l2)

    def enumerated(self) -> tuple[float, Float64s, Float64s]:
        """Value, gradient and Hessian–vector product of the objective."""
        value, gradient, product = 0.5 * L2 * float(self.w @ self.w), L2 * self.w, L2 * self.v
        for outputs, weight in zip(self.outputs, self.weight, strict=True):
            for sign, some in ((weight, outputs), (-weight, outputs.right())):
                log_z, mean, moved = some.moments(self.w, self.v)
                value, gradient, product = (
                    value + sign * log_z,
                    gradient + sign * mean,
                    product + sign * moved,
                )
        return value, gradient, product


def of_chain(kind: Mapping[str, Any]) -> Trained:
    """Rows, lattices or batches: see `Problem`."""
    problem = Problem(1, **kind)
    outputs = [
        Outputs(
            np.array([problem.counts(n, y) for y in problem.label_sequences(n)]),
            np.array([problem.admits(n, y) for y in problem.label_sequences(n)]),
        )
        for n in range(len(problem.lengths))
    ]
    loss = partial(problem.map.loss, problem.dataset, problem.annotation, sample_weight=problem.sample_weight)
    return Trained(loss, outputs, problem.sample_weight)


def of_every_kind_of_feature() -> Trained:
    """Rows, with features of transitions and a dense block."""
    dataset, annotation, map_, sequences = every_kind_of_feature()
    outputs = []
    for sequence in sequences:
        counts = np.zeros((len(sequence.counts), map_.n_weights))
        for row, phi in zip(counts, sequence.counts, strict=True):
            for d, count in phi.items():
                row[d] = count
        outputs.append(Outputs(counts, np.array(sequence.admitted)))
    return Trained(partial(map_.loss, dataset, annotation), outputs, np.ones(len(sequences)))


def of_functions(functions: str, kind: Mapping[str, Any]) -> Trained:
    """Feature functions."""
    problem = FunctionProblem(3, FUNCTIONS[functions], **kind)
    outputs = [
        Outputs(
            np.array([problem.counts(n, y) for y in problem.paths(n)]),
            np.array([problem.admits(n, y) for y in problem.paths(n)]),
        )
        for n in range(len(problem.lengths))
    ]

    def loss(*, single_precision: bool, n_threads: int) -> Loss:
        return problem.data.loss(problem.annotation, sample_weight=problem.sample_weight, n_threads=n_threads)

    return Trained(loss, outputs, problem.sample_weight)


def of_patterns(**settings: Any) -> Trained:
    """Patterns."""
    case = PatternCase(**settings)
    outputs = []
    for n in range(len(case.lengths)):
        paths, gold = case.outputs(n), case.gold[int(case.ptr[n]) : int(case.ptr[n + 1])]
        admitted = [all(label in gold[t] for t, label in enumerate(y)) for y in paths]
        outputs.append(Outputs(np.array([case.features(n, y) for y in paths]), np.array(admitted)))
    return Trained(case.loss, outputs, case.weight)


def of_trees(*, single_root: bool, unknown: float) -> Trained:
    """Trees: what an arc has of each weight is its score where that weight is 1 and all others are 0."""
    sentences = random_treebank([1, 2, 3, 3], 3, single_root=single_root, unknown=unknown)
    problem = ParserProblem(sentences, single_root=single_root)
    n_weights = problem.map.n_weights
    parts = [
        np.stack(columns, axis=-1)
        for columns in zip(*(problem.scores(unit) for unit in np.eye(n_weights)), strict=True)
    ]  # [heads, dependents, labels, D] of each sentence
    outputs = []
    for sentence, arcs in zip(sentences, parts, strict=True):
        trees = TreeOracle(real_arcs(np.zeros(arcs.shape[:3])), single_root)
        allowed = problem.allowed(sentence, arcs.shape[:3])
        every: list[Any] = trees.outputs
        admitted = [all(allowed[h, m, r] for m, (h, r) in enumerate(y, start=1)) for y in every]
        outputs.append(Outputs(trees.counts @ arcs.reshape(-1, n_weights), np.array(admitted)))

    def loss(*, single_precision: bool, n_threads: int) -> Loss:
        return problem.loss(n_threads)

    return Trained(loss, outputs, problem.sample_weight)


def _named(kind: Mapping[str, Any]) -> str:
    return ", ".join(name if value is True else f"{name} {value}" for name, value in kind.items() if value)


ROWS: dict[str, Callable[[], Trained]] = {
    **{f"chain, {_named(kind)}": partial(of_chain, kind) for kind in KINDS},
    "chain, every kind of feature": of_every_kind_of_feature,
    **{
        f"functions {name}, {_named(kind)}": partial(of_functions, name, kind)
        for name in FUNCTIONS
        for kind in FUNCTION_KINDS
    },
    **{
        f"patterns, {_named(kind)}": partial(of_patterns, seed=seed, **kind)
        for seed, kind in enumerate(PatternCase.KINDS)
    },
    **{
        f"trees, {'one root' if single_root else 'roots'}, {unknown:.0%} unknown": partial(
            of_trees, single_root=single_root, unknown=unknown
        )
        for single_root in (True, False)
        for unknown in (0.0, 0.4)
    },
}


@cache
def trained(row: str) -> Trained:
    """The problem of a row: the same one in every run."""
    return ROWS[row]()
