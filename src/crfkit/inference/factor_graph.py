"""Exact inference on factor graphs, by variable elimination in the core (`core/graphs/junction_tree.hpp`).

What memory and how many operations it takes is known before it begins: `plan`. What does not fit raises `SizeLimitError`.
"""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from crfkit import _core
from crfkit.arrays import Float64s, Int32s
from crfkit.errors import ArgumentError, NoOutputError, SizeLimitError
from crfkit.inference.problem import check_finite
from crfkit.structures import Assignment, FactorGraph, GraphMarginals, ScoredOutput

MEMORY_SHARE = 0.5  # of the memory of the machine, or of the process where that is less: the default limit


@dataclass(frozen=True)
class Plan:
    """What exact inference on a factor graph takes."""

    width: int  # variables of the largest clique, less one
    cliques: Sequence[tuple[str, ...]]  # variables of each; none where the graph is too large
    largest_clique: tuple[str, ...]
    largest_entries: float  # configurations of the largest clique
    memory: float  # bytes for all questions but log_partition; hessian_vector takes twice as much
    log_partition_memory: float  # bytes for log_partition
    operations: float  # multiplications for log_partition; marginals take about three times as many
    fits: bool  # whether `memory` is within the limit


def plan(
    graph: FactorGraph,
    *,
    allowed: Mapping[Any, Any] | None = None,
    memory_limit: float | None = None,
) -> Plan:
    """What exact inference will take, without doing it.

    `memory_limit` is in bytes; the default is half of what the process may use.

    >>> graph = FactorGraph.from_arrays([2, 2, 2], [(0, 1), (1, 2)], [[[0, 1], [1, 0]]] * 2)
    >>> plan(graph).width
    1
    """
    return FactorGraphProblem(graph, None, allowed, memory_limit).plan()


class FactorGraphProblem:
    """A factor graph with its own scores, or with others: one array for each factor."""

    def __init__(
        self,
        structure: FactorGraph,
        scores: Sequence[npt.ArrayLike] | None = None,
        allowed: Mapping[Any, Any] | None = None,
        memory_limit: float | None = None,
    ) -> None:
        self.graph, self.tables = structure, structure.tables
        self.masks = structure.allowed_values(allowed)
        self.scores = self.tables.scores
        self.given = None if scores is None else [np.asarray(s, dtype=np.float64) for s in scores]
        if self.given is not None:
            self.scores = self.tables.with_scores(self.given)
            if np.isnan(self.scores).any() or (self.scores == np.inf).any():
                raise ArgumentError(
                    "Scores of a factor graph: expected finite numbers or −inf, got NaN or +inf."
                )
        self.limit = default_memory_limit() if memory_limit is None else float(memory_limit)
        if not self.limit > 0:
            raise ArgumentError(f"memory_limit is {memory_limit}, expected a positive number of bytes.")

    @cached_property
    def core(self) -> _core.FactorGraph:
        """The graph in the core."""
        return _core.FactorGraph(self.tables.cardinalities, self.tables.scope_ptr, self.tables.scopes)

    @cached_property
    def tree(self) -> _core.JunctionTree:
        """The plan in the core."""
        allowed = None
        if self.masks is not None:
            added = int(self.tables.cardinalities[self.tables.n_variables :].sum())
            allowed = np.concatenate([*self.masks, np.ones(added, dtype=np.bool_)]).astype(np.uint8)
        return _core.JunctionTree(self.core, allowed, self.scores, self.limit)

    def plan(self) -> Plan:
        """What the questions take."""
        tree = self.tree
        largest = self._names(tree.largest_clique)
        return Plan(
            width=max(0, len(largest) - 1),
            cliques=[self._names(clique) for clique in tree.cliques],
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
        moves = self.tables.with_scores([np.asarray(d, dtype=np.float64) for d in direction], other=0.0)
        check_finite(moves)
        return self._shape(self._checked(2 * self.tree.bytes).hessian_vector(self.scores, moves))

    def decode(self) -> ScoredOutput:
        """The assignment with the highest score."""
        found = self.k_best(1)
        if not found:
            self._check_possible(-math.inf)
        return found[0]

    def k_best(self, k: int) -> list[ScoredOutput]:
        """The k assignments with the highest scores, best first."""
        found = self._checked(self.tree.bytes).k_best(self.scores, k)
        return [ScoredOutput(self._assignment(values), score) for score, values in found]

    def sample(self, n: int, random: np.random.Generator) -> Int32s:
        """`n` independent assignments as value ids [n, V]."""
        tree = self._checked(self.tree.bytes)
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
        if self.masks is not None and not all(mask[x] for mask, x in zip(self.masks, ids, strict=True)):
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
        names = self._names(tree.largest_clique)
        some = ", ".join(names[:8]) + (", …" if len(names) > 8 else "")
        raise SizeLimitError(
            f"Exact inference: width {len(names) - 1}, {'' if tree.complete else 'more than '}{_bytes(memory)} of memory, "
            f"expected at most {_bytes(self.limit)} (memory_limit); the largest clique has "
            f"{tree.largest_entries:.3g} configurations of {len(names)} variables ({some}), joined when {names[0]!r} "
            f"is eliminated{self._factor_within(tree.largest_clique)}."
        )

    def _factor_within(self, clique: Int32s) -> str:
        """The factor that shares most variables with a clique, and the largest among these, for a message."""
        inside = set(clique.tolist())
        factors = self.graph.factors
        shared = [(len(inside.intersection(factor.variables)), factor.scores.size) for factor in factors]
        if not shared:
            return ""
        number = max(range(len(factors)), key=shared.__getitem__)
        names = ", ".join(self.graph.variables[v].name for v in factors[number].variables[:8])
        return f"; its largest factor is number {number} over {names}"

    def _names(self, variables: Int32s) -> tuple[str, ...]:
        """Names of variables; those that were added for factors have none of their own."""
        known = self.graph.variables
        return tuple(known[v].name if v < len(known) else f"(added {v - len(known)})" for v in variables)

    def _shape(self, answer: tuple[float, Float64s, Float64s]) -> GraphMarginals:
        log_z, of_values, of_scores = answer
        self._check_possible(log_z)
        ends = np.cumsum(self.tables.cardinalities[: self.tables.n_variables])
        values = np.split(of_values[: ends[-1]], ends[:-1]) if len(ends) else []
        return GraphMarginals(self.graph.variables, values, self.tables.of_factors(of_scores))

    def _assignment(self, values: Int32s) -> Assignment:
        return Assignment(self.graph.variables, values[: self.tables.n_variables])

    def _check_possible(self, log_z: float) -> None:
        if log_z == -math.inf:
            raise NoOutputError(
                "Factor graph: no assignment is possible, all have a score of −inf"
                + (" or a value that is not allowed." if self.masks is not None else ".")
            )


def default_memory_limit() -> float:
    """Half of the memory that this process may use."""
    pages = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    limits = [float(pages)]
    if sys.platform != "win32":
        import resource

        limits.extend(float(n) for n in resource.getrlimit(resource.RLIMIT_AS)[:1] if n >= 0)
    for path in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        try:
            limits.append(float(Path(path).read_text(encoding="ascii")))
        except (OSError, ValueError):
            continue
    return MEMORY_SHARE * min(limits)


def _bytes(count: float) -> str:
    """For a message: 1.5 GB."""
    for unit, size in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= size:
            return f"{count / size:.3g} {unit}"
    return f"{count:.0f} bytes"
