"""Exact inference on factor graphs, by variable elimination in the core (`core/graphs/junction_tree.hpp`).

What memory and how many operations it takes is known before it begins: `plan`. What does not fit raises `SizeLimitError`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from crfkit import _core
from crfkit.arrays import Float64s, Int32s
from crfkit.errors import ArgumentError, NoOutputError, SizeLimitError
from crfkit.inference.graph_scores import GraphScores
from crfkit.inference.memory import read_memory_limit, shown_bytes
from crfkit.inference.problem import check_finite
from crfkit.structures import FactorGraph, GraphMarginals, ScoredOutput

_KEPT = 4  # plans of one graph: for as many sets of allowed values


@dataclass(frozen=True)
class Plan:
    """What exact inference on a factor graph takes."""

    width: int  # variables of the largest clique, less one
    cliques: Sequence[tuple[str, ...]]  # variables of each; none where the graph is too large
    largest_clique: tuple[str, ...]
    largest_entries: float  # configurations of the largest clique
    memory: float  # bytes for all questions but log_partition; hessian_vector takes up to twice as much
    log_partition_memory: float  # bytes for log_partition
    operations: float  # multiplications for log_partition; marginals take about three times as many
    fits: bool  # whether `memory` is within the limit


def plan(
    graph: FactorGraph,
    *,
    allowed: Mapping[Any, Any] | None = None,
    memory_limit: float | str | None = None,
) -> Plan:
    """What exact inference will take, without doing it.

    `memory_limit` is in bytes, or a text such as "4G"; the default is half of what the process may use. The graph keeps
    the plan: questions with the same `allowed` and `memory_limit` do not plan again as long as it does not change.

    >>> graph = FactorGraph.from_arrays([2, 2, 2], [(0, 1), (1, 2)], [[[0, 1], [1, 0]]] * 2)
    >>> plan(graph).width
    1
    """
    return FactorGraphProblem(graph, None, allowed, memory_limit).plan()


def junction_tree(cardinalities: Sequence[int], scopes: Sequence[Sequence[int]]) -> _core.JunctionTree:
    """The core's plan of exact inference on tables over these variables, of whose scores nothing is known."""
    ptr = np.cumsum([0, *map(len, scopes)], dtype=np.int64)
    flat = np.array([v for scope in scopes for v in scope], dtype=np.int32)
    graph = _core.FactorGraph(np.array(cardinalities, dtype=np.int32), ptr, flat)
    return _core.JunctionTree(graph, None, None, read_memory_limit(None))


class FactorGraphProblem:
    """A factor graph with its own scores, or with others: one array for each factor."""

    def __init__(
        self,
        structure: FactorGraph,
        scores: Sequence[npt.ArrayLike] | None = None,
        allowed: Mapping[Any, Any] | None = None,
        memory_limit: float | str | None = None,
    ) -> None:
        self.numbers = GraphScores.of(structure, allowed)
        self.graph, self.tables = structure, structure.tables
        self.scores = self.tables.scores
        self.given = None if scores is None else self.tables.read(scores, "scores")
        if self.given is not None:
            self.scores = self.tables.with_scores(self.given)
            if np.isnan(self.scores).any() or (self.scores == np.inf).any():
                raise ArgumentError(
                    "Scores of a factor graph: expected finite numbers or −inf, got NaN or +inf."
                )
        self.limit = read_memory_limit(memory_limit)

    @cached_property
    def tree(self) -> _core.JunctionTree:
        """The plan in the core. It depends on which scores are −inf; that of the graph's own is kept with its tables."""
        n_values = float(self.tables.cardinalities.sum())
        if 8 * n_values > self.limit:
            raise SizeLimitError(
                f"Exact inference: the variables have {n_values:.3g} values, which need more than "
                f"{shown_bytes(8 * n_values)} of memory, expected at most {shown_bytes(self.limit)} (memory_limit)."
            )
        allowed = None if self.numbers.allowed is None else self.numbers.allowed.view(np.uint8)
        own = self.given is None or np.array_equal(np.isneginf(self.scores), np.isneginf(self.tables.scores))
        key = ("exact", None if allowed is None else allowed.tobytes(), self.limit)
        kept = self.tables.plans
        tree = kept.pop(key, None) if own else None
        if tree is None:
            tree = _core.JunctionTree(self.numbers.core, allowed, self.scores, self.limit)
        if own:
            kept[key] = tree  # the latest last
            for old in [other for other in kept if other[0] == "exact"][:-_KEPT]:
                kept.pop(old, None)
        return tree

    def plan(self) -> Plan:
        """What the questions take."""
        tree = self.tree
        largest, *cliques = self._names([tree.largest_clique, *tree.cliques])
        return Plan(
            width=max(0, len(largest) - 1),
            cliques=cliques,
            largest_clique=largest,
            largest_entries=tree.largest_entries,
            memory=tree.bytes,
            log_partition_memory=tree.bytes_of_log_partition,
            operations=tree.operations,
            fits=tree.complete and tree.bytes <= self.limit,
        )

    def log_partition(self) -> float:
        """log Z; −inf when no assignment is possible."""
        return self._checked(self.tree.bytes_of_log_partition).log_partition(self.scores)

    def marginals(self) -> GraphMarginals:
        """∇ log Z: of the values of variables, and of the scores of factors."""
        return self._shape(self._checked(self.tree.bytes).marginals(self.scores))

    def hessian_vector(self, direction: Sequence[npt.ArrayLike]) -> GraphMarginals:
        """∇² log Z · direction, which has one array for each factor."""
        moves = self.tables.with_scores(self.tables.read(direction, "direction"), other=0.0)
        check_finite(moves)
        return self._shape(
            self._checked(self.tree.bytes_of_hessian_vector).hessian_vector(self.scores, moves)
        )

    def decode(self) -> ScoredOutput:
        """The assignment with the highest score."""
        found = self.k_best(1)
        if not found:
            self._check_possible(-math.inf)
        return found[0]

    def k_best(self, k: int) -> list[ScoredOutput]:
        """The k assignments with the highest scores, best first."""
        tree = self._checked(self.tree.bytes)
        self._check_answers(f"k_best: {k:,} assignments", self.tree.bytes_of_k_best(k) if k > 1 else 0.0)
        found = tree.k_best(self.scores, k)
        return [ScoredOutput(self.numbers.assignment(values), score) for score, values in found]

    def sample(self, n: int, random: np.random.Generator) -> Int32s:
        """`n` independent assignments as value ids [n, V]."""
        tree = self._checked(self.tree.bytes)
        self._check_answers(
            f"sample: {n:,} samples", tree.bytes + 8.0 * n * (tree.n_free + len(self.tables.cardinalities))
        )
        log_z, values = tree.sample(self.scores, n, random.random(n * tree.n_free))
        self._check_possible(log_z)
        return np.ascontiguousarray(values[:, : self.tables.n_variables])

    def entropy(self) -> float:
        """−Σ_y p(y) log p(y), summed from conditional entropies, none of which is negative."""
        log_z, entropy = self._checked(self.tree.bytes).entropy(self.scores)
        self._check_possible(log_z)
        return entropy

    def score(self, output: Mapping[str, Any] | npt.ArrayLike) -> float:
        """score(y) of one assignment; −inf where it is excluded."""
        ids = self.graph.assignment(output)
        masks = self.numbers.masks
        if masks is not None and not all(mask[x] for mask, x in zip(masks, ids, strict=True)):
            return -math.inf
        terms: list[float] = []
        for number, factor in enumerate(self.graph.factors):
            place = factor.place(ids[list(factor.variables)])
            if place is None:
                return -math.inf
            numbers = factor.scores if self.given is None else self.given[number]
            terms.extend(numbers.reshape(-1)[place : place + 1])
        return math.fsum(terms) if all(term > -math.inf for term in terms) else -math.inf

    @staticmethod
    def parts(structure: FactorGraph, output: Any, n_labels: int | None = None) -> GraphMarginals:
        """1 for the values and the scores that an assignment has, 0 for all others."""
        ids = structure.assignment(output)
        values = [np.zeros(len(variable)) for variable in structure.variables]
        for numbers, x in zip(values, ids, strict=True):
            numbers[x] = 1.0
        factors = [np.zeros_like(factor.scores) for factor in structure.factors]
        for numbers, factor in zip(factors, structure.factors, strict=True):
            place = factor.place(ids[list(factor.variables)])
            if place is not None:
                numbers.reshape(-1)[place : place + 1] = 1.0
        return GraphMarginals(structure.variables, values, factors)

    def _checked(self, memory: float) -> _core.JunctionTree:
        """The plan in the core, if a question that takes so much memory fits."""
        tree = self.tree
        if tree.complete and memory <= self.limit:
            return tree
        names = self._names([tree.largest_clique])[0]
        some = ", ".join(names[:8]) + (", …" if len(names) > 8 else "")
        more = "" if tree.complete else " or more"  # the order was not followed to its end
        joined = f", joined when {names[0]!r} is eliminated" if names else ""
        raise SizeLimitError(
            f"Exact inference: width {max(0, len(names) - 1)}{more}, {shown_bytes(memory)}{more} of memory, "
            f"expected at most {shown_bytes(self.limit)} (memory_limit); the largest clique has "
            f"{tree.largest_entries:.3g} configurations of {len(names)} variables ({some}){joined}"
            f"{self._factor_within(tree.largest_clique)}."
        )

    def _check_answers(self, what: str, memory: float) -> None:
        """Refuse more answers than there is memory for."""
        if memory > self.limit:
            raise SizeLimitError(
                f"{what} of {len(self.graph.variables):,} variables need {shown_bytes(memory)} of memory, expected at most "
                f"{shown_bytes(self.limit)} (memory_limit)."
            )

    def _factor_within(self, clique: Int32s) -> str:
        """The factor that shares most variables with a clique, and the largest among these, for a message."""
        factors = self.graph.factors
        inside = np.zeros(len(self.tables.cardinalities), dtype=np.int64)
        inside[clique] = 1
        ptr = np.cumsum([0, *(len(factor.variables) for factor in factors)])
        flat = np.fromiter((v for factor in factors for v in factor.variables), np.int64, ptr[-1])
        shared = np.diff(np.concatenate([[0], np.cumsum(inside[flat])])[ptr])
        if not len(shared) or not shared.max():
            return ""
        number = max(np.flatnonzero(shared == shared.max()).tolist(), key=lambda f: factors[f].scores.size)
        names = ", ".join(self.graph.variables[v].name for v in factors[number].variables[:8])
        return f"; its largest factor is number {number} over {names}"

    def _names(self, cliques: Sequence[Int32s]) -> list[tuple[str, ...]]:
        """Names of variables; those that were added for factors have none of their own."""
        known = [variable.name for variable in self.graph.variables]
        known += [f"(added {number})" for number in range(len(self.tables.cardinalities) - len(known))]
        return [tuple(known[v] for v in clique.tolist()) for clique in cliques]

    def _shape(self, answer: tuple[float, Float64s, Float64s]) -> GraphMarginals:
        log_z, of_values, of_scores = answer
        self._check_possible(log_z)
        values = self.numbers.of_variables(of_values)
        return GraphMarginals(self.graph.variables, values, self.tables.of_factors(of_scores))

    def _check_possible(self, log_z: float) -> None:
        if log_z == -math.inf:
            raise NoOutputError(
                "Factor graph: no assignment is possible, all have a score of −inf"
                + (" or a value that is not allowed." if self.numbers.masks is not None else ".")
            )
