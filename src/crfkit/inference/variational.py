"""Naive mean field on factor graphs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from crfkit import _core
from crfkit.arrays import Float64s
from crfkit.inference.graph_scores import GraphScores, check_counts, check_tolerance
from crfkit.structures import FactorGraph, GraphMarginals


@dataclass(frozen=True)
class MeanFieldResult:
    """Independent distributions of the variables, and the lower bound on log Z that they give."""

    converged: bool  # the residual, measured at the end, is below the tolerance
    residual: float  # the largest change that one more update of any variable would make to its probabilities
    iterations: int
    log_partition: float  # a lower bound, converged or not
    marginals: GraphMarginals  # of factors: products of those of their variables
    bounds: Float64s  # the lower bound after each iteration; it never falls
    status: str
    bound: Literal["lower"] = "lower"


def mean_field(
    graph: FactorGraph,
    *,
    allowed: Mapping[Any, Any] | None = None,
    tolerance: float = 1e-6,
    max_iterations: int = 1000,
) -> MeanFieldResult:
    """The product of independent distributions that is nearest to p, by coordinate ascent on a lower bound of log Z.

    Where factors exclude configurations (−inf), the distributions begin at one possible assignment and widen only as far
    as no excluded configuration gets a probability; NoOutputError if there is none.

    >>> graph = FactorGraph.from_arrays([2, 2], [(0, 1)], [[[0.0, -1.0], [-1.0, 0.5]]])
    >>> result = mean_field(graph)
    >>> result.converged, result.log_partition < 1.2192  # log Z = 1.21922…
    (True, True)
    """
    check_tolerance(tolerance)
    check_counts(max_iterations=max_iterations)
    problem = GraphScores.of(graph, allowed)
    run = problem.checked(
        _core.mean_field(problem.core, problem.scores, problem.allowed, tolerance, max_iterations)
    )
    said = "converged" if run["converged"] else "not converged"
    return MeanFieldResult(
        converged=run["converged"],
        residual=run["residual"],
        iterations=run["iterations"],
        log_partition=run["lower_bound"],
        marginals=problem.marginals(run["of_variables"], run["of_tables"]),
        bounds=run["bounds"],
        status=f"{said} after {run['iterations']} iterations: largest residual {run['residual']:.2g}, "
        f"tolerance {tolerance:.2g}",
    )
