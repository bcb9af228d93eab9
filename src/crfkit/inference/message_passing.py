"""Belief propagation on factor graphs: sums and maxima of products, with messages of trees or tree-reweighted ones."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from crfkit import _core
from crfkit.errors import ArgumentError
from crfkit.inference.factor_graph import FactorGraphProblem
from crfkit.inference.graph_scores import GraphScores, check_counts, check_tolerance
from crfkit.structures import Assignment, FactorGraph, GraphMarginals

Schedule = Literal["residual", "sequential", "synchronous"]
SCHEDULES = ("residual", "sequential", "synchronous")
_EXACT_MEMORY = 64e6  # bytes, of exact inference in place of bounds


@dataclass(frozen=True)
class BeliefPropagationResult:
    """Marginals and log Z by belief propagation."""

    converged: bool  # the largest residual of all messages, measured at the end, is below the tolerance
    residual: float  # the largest change that one more update would make to any message (largest number 1)
    iterations: float  # updates of factors, divided by their number
    damping: float  # the share of old messages that was kept at the end
    log_partition: float  # Bethe approximation; tree-reweighted: an upper bound, converged or not
    marginals: GraphMarginals
    averaged: int  # of how many states of the messages marginals and Bethe's log_partition are means; 1: the last one
    exact: bool  # the graph has no cycles
    bound: Literal["upper"] | None  # what log_partition is; exact and None apart
    status: str


@dataclass(frozen=True)
class MapResult:
    """An assignment with a high score, and what is known of the highest."""

    output: Assignment | None  # None: none was found that is possible
    score: float  # of the output; −inf without one
    bound: float  # no assignment scores more; +inf where the method has no bound
    converged: bool
    residual: float
    iterations: float
    status: str
    scale: float = 1.0  # below which a score is 0, for what is relative to it: 1, or less if all scores are

    @property
    def gap(self) -> float:
        """bound − score: how much a better assignment could gain at most."""
        return max(0.0, self.bound - self.score)

    @property
    def optimal(self) -> bool:
        """Whether the bound proves that no assignment scores more, up to rounding."""
        return self.output is not None and self.gap <= 1e-9 * max(self.scale, abs(self.score))


def belief_propagation(
    graph: FactorGraph,
    *,
    allowed: Mapping[Any, Any] | None = None,
    schedule: Schedule = "sequential",
    damping: float | None = None,
    tolerance: float = 1e-6,
    max_iterations: int = 1000,
    tree_reweighted: bool = False,
    n_threads: int = 1,
) -> BeliefPropagationResult:
    """Marginals and log Z by sum-product; exact if the factor graph has no cycles, whatever the schedule.

    `schedule`: "sequential" updates all factors forwards and backwards; "residual" does so while changes fall steadily, then
    the factors whose incoming messages have changed most; "synchronous" updates all at once (on `n_threads` threads, with
    the same numbers). `damping` keeps that share of the old message; by default none, and more as long as changes do not
    fall. Where messages do not settle, marginals are means over the second half of the iterations. `tree_reweighted` weighs
    factors by how often they occur in spanning forests of the graph; then `log_partition` is an upper bound. NoOutputError
    where messages show that no assignment is possible.

    >>> graph = FactorGraph.from_arrays([2, 2], [(0, 1)], [[[0.0, -1.0], [-1.0, 0.5]]], names=["a", "b"])
    >>> result = belief_propagation(graph)
    >>> result.exact, result.converged, [round(float(p), 4) for p in result.marginals["a"]]
    (True, True, [0.4042, 0.5958])
    """
    problem = GraphScores.of(graph, allowed)
    run, exact = _run(
        problem, schedule, damping, tolerance, max_iterations, tree_reweighted, n_threads, maximise=False
    )
    return BeliefPropagationResult(
        converged=run["converged"],
        residual=run["residual"],
        iterations=run["iterations"],
        damping=run["damping"],
        averaged=max(1, run["n_averaged"]),
        log_partition=run["log_partition"],
        marginals=problem.marginals(run["of_variables"], run["of_tables"]),
        exact=exact,
        bound="upper" if tree_reweighted and not exact else None,
        status=_status(run, exact, tolerance),
    )


def max_product(
    graph: FactorGraph,
    *,
    allowed: Mapping[Any, Any] | None = None,
    schedule: Schedule = "sequential",
    damping: float | None = None,
    tolerance: float = 1e-6,
    max_iterations: int = 1000,
    tree_reweighted: bool = False,
    n_threads: int = 1,
) -> MapResult:
    """An assignment with a high score by max-product; the best one if the factor graph has no cycles.

    The arguments are those of `belief_propagation`. With `tree_reweighted` the result has an upper bound on the best
    score; `map_estimate` has a tighter one. Variables get their values one after the other, each the best by the messages
    and by the values before.
    """
    problem = GraphScores.of(graph, allowed)
    run, exact = _run(
        problem, schedule, damping, tolerance, max_iterations, tree_reweighted, n_threads, maximise=True
    )
    best = run["best"] if len(run["best"]) == len(graph.tables.cardinalities) else None
    score = -math.inf if best is None else problem.core.score(problem.scores, best)
    output = None if score == -math.inf or best is None else problem.assignment(best)
    bound = run["log_partition"] if exact or tree_reweighted else math.inf
    found = "" if output is not None else "; no possible assignment was found"
    return MapResult(
        output=output,
        score=score,
        bound=max(bound, score),
        converged=run["converged"],
        residual=run["residual"],
        iterations=run["iterations"],
        status=_status(run, exact, tolerance) + found,
    )


def map_estimate(
    graph: FactorGraph,
    *,
    allowed: Mapping[Any, Any] | None = None,
    max_iterations: int = 1000,
    tolerance: float = 1e-9,
    cluster_size: int = 65536,
) -> MapResult:
    """An assignment with a high score, with an upper bound on all scores.

    The bound is the dual of a linear relaxation, whose factors are joined into clusters of at most `cluster_size`
    configurations: the larger they are, the tighter and slower it is; with 1 it is the relaxation of the graph itself.
    Messages between clusters lower it, and it holds whenever they end. Assignments are read from the messages and improved
    by local search. Where the bound meets the score the assignment is proved best (`optimal`). `tolerance` is that of the
    gap, relative to the score; `converged` says that the gap is that small, or that the bound fell no further. `residual`
    is the gap. The same graph always has the same result.

    Where exact inference takes at most (cluster_size / 16)² operations and 64 MB, the answer is that of `decode`, after 0
    iterations.

    >>> graph = FactorGraph.from_arrays([2, 2], [(0, 1), (0,)], [[[0.0, 2.0], [2.0, 0.0]], [0.0, 1.0]], ["a", "b"])
    >>> result = map_estimate(graph)
    >>> dict(result.output), result.score, result.optimal
    ({'a': 1, 'b': 0}, 3.0, True)
    """
    check_tolerance(tolerance)
    check_counts(max_iterations=max_iterations, cluster_size=cluster_size)
    problem = GraphScores.of(graph, allowed)
    exact = _exact_answer(graph, allowed, (cluster_size / 16) ** 2)
    if exact is not None:
        return exact
    run = problem.checked(
        _core.solve_map(
            problem.core, problem.scores, problem.allowed, max_iterations, tolerance, float(cluster_size)
        )
    )
    output = problem.assignment(run["best"]) if run["score"] > -math.inf else None
    bound = max(run["bound"], run["score"])
    result = MapResult(
        output=output,
        score=run["score"],
        bound=bound,
        converged=run["optimal"] or run["converged"],
        residual=max(0.0, bound - run["score"]),
        iterations=float(run["iterations"]),
        status="",
        scale=run["scale"],
    )
    return replace(result, status=_map_status(result, within=run["optimal"]))


def _exact_answer(
    graph: FactorGraph, allowed: Mapping[Any, Any] | None, most_operations: float
) -> MapResult | None:
    """The best assignment by a junction tree, where that takes few operations and little memory."""
    if 8 * float(graph.tables.cardinalities.sum()) > _EXACT_MEMORY:
        return None
    problem = FactorGraphProblem(graph, None, allowed, _EXACT_MEMORY)
    tree = problem.tree
    if not tree.complete or tree.bytes > _EXACT_MEMORY or tree.operations > most_operations:
        return None
    best = problem.decode()
    return MapResult(
        output=best.output,
        score=best.score,
        bound=best.score,
        converged=True,
        residual=0.0,
        iterations=0.0,
        status="optimal: by exact inference",
    )


def _map_status(result: MapResult, *, within: bool) -> str:
    """`within`: the gap is within the tolerance, which may be larger than that of a proof."""
    after = f"after {result.iterations:.0f} iterations"
    if result.output is None:
        return "no possible assignment was found"
    if result.optimal:
        return f"optimal: the bound meets the score {after}"
    if within:
        return f"within the tolerance {after}: gap {result.gap:.3g}"
    ended = "the bound falls no further" if result.converged else "not converged"
    return f"{ended} {after}: gap {result.gap:.3g}"


def _run(
    problem: GraphScores,
    schedule: str,
    damping: float | None,
    tolerance: float,
    max_iterations: int,
    tree_reweighted: bool,
    n_threads: int,
    *,
    maximise: bool,
) -> tuple[dict[str, Any], bool]:
    """What the core returns, and whether the graph has no cycles."""
    if schedule not in SCHEDULES:
        raise ArgumentError(f"schedule is {schedule!r}, expected one of {', '.join(map(repr, SCHEDULES))}.")
    if damping is not None and (
        not isinstance(damping, int | float | np.integer | np.floating) or not 0 <= damping < 1
    ):
        raise ArgumentError(f"damping is {damping!r}, expected 0 ≤ damping < 1.")
    check_tolerance(tolerance)
    check_counts(max_iterations=max_iterations, n_threads=n_threads)
    plan = problem.messages(bool(tree_reweighted))
    run = plan.run(
        problem.scores, problem.allowed, schedule, maximise, damping, tolerance, max_iterations, n_threads
    )
    return problem.checked(run), plan.is_exact


def _status(run: dict[str, Any], exact: bool, tolerance: float) -> str:
    if exact:
        return "exact: the factor graph has no cycles"
    after = f"after {run['iterations']:.4g} iterations"
    residual = f"largest residual {run['residual']:.2g}, tolerance {tolerance:.2g}"
    if run["converged"]:
        return f"converged {after}: {residual}"
    means = f"; marginals are means of {run['n_averaged']} iterations" if run["n_averaged"] else ""
    return f"not converged {after}: {residual}{means}"
