"""Gibbs sampling on factor graphs, with what its chains say about their own convergence."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from crfkit import _core
from crfkit.arrays import Float64s, Int32s, Int64s
from crfkit.errors import ArgumentError, SizeLimitError
from crfkit.inference.graph_scores import GraphScores, check_counts
from crfkit.inference.memory import default_memory_limit, shown_bytes
from crfkit.inference.problem import MOST, WHOLE, is_whole
from crfkit.structures import FactorGraph, GraphMarginals

HIGHEST_R_HAT = 1.05  # with which chains count as mixed
FEWEST_SAMPLES = 100  # effective ones
TRACED = 64  # variables whose effective sample size is computed: those with the highest R̂


@dataclass(frozen=True)
class GibbsResult:
    """Samples of all chains, and estimates from them."""

    samples: Int32s  # [n, V] value ids, chain after chain
    marginals: (
        GraphMarginals  # of variables: means of probabilities given other blocks; of factors: frequencies
    )
    chain_ptr: Int64s  # [chains + 1] where the samples of each chain begin
    scores: Float64s  # [n] of the samples
    r_hat: float  # the highest split R̂ of the score and of any value of any variable
    effective_samples: float  # the fewest, of the score and of the values of the variables that mix worst
    n_blocks: int  # that are drawn one after the other
    converged: (
        bool  # R̂ below 1.05 and 100 effective samples or more: no proof, but the lack of a sign against it
    )
    status: str
    log_partition: None = None  # Gibbs sampling does not estimate it


def gibbs(
    graph: FactorGraph,
    n: int = 4000,
    *,
    burn_in: int = 200,
    thin: int = 1,
    random_state: int | np.random.Generator | None = None,
    blocked: bool = True,
    n_chains: int = 4,
    allowed: Mapping[Any, Any] | None = None,
    n_threads: int = 1,
) -> GibbsResult:
    """`n` dependent samples from p(y), drawn by `n_chains` chains that begin at random possible assignments.

    Each chain draws every block of variables from its distribution given all others, `burn_in` times before its first
    sample and `thin` times for each. `blocked`: blocks are forests, as large as possible; otherwise single variables.
    Configurations that are excluded (−inf) can cut the assignments into parts between which no chain moves, above all with
    single variables; then R̂ is high if chains begin in different parts.

    >>> graph = FactorGraph.from_arrays([2, 2], [(0, 1)], [[[0.0, -1.0], [-1.0, 0.5]]], names=["a", "b"])
    >>> result = gibbs(graph, random_state=0)
    >>> result.converged, result.samples.shape, round(float(result.marginals["a"][1]), 2)
    (True, (4000, 2), 0.6)
    """
    check_counts(n=n, thin=thin, n_chains=n_chains, n_threads=n_threads)
    if not is_whole(burn_in) or not 0 <= burn_in <= MOST:
        raise ArgumentError(f"burn_in is {burn_in!r}, expected 0 or more{WHOLE}.")
    if n < 4 * n_chains:
        raise ArgumentError(f"n is {n}, expected at least 4 samples for each of {n_chains} chains.")
    problem = GraphScores.of(graph, allowed)
    memory, most = 8.0 * n * (len(graph.tables.cardinalities) + 2), default_memory_limit()
    if memory > most:
        raise SizeLimitError(
            f"gibbs: {n:,} samples of {len(graph.variables):,} variables need {shown_bytes(memory)} of memory, expected at "
            f"most {shown_bytes(most)}: fewer samples, or a larger `thin`."
        )
    seed = int(np.random.default_rng(random_state).integers(2**63))
    run = problem.checked(
        _core.gibbs(
            problem.core,
            problem.scores,
            problem.allowed,
            n,
            burn_in,
            thin,
            n_chains,
            seed,
            blocked,
            n_threads,
        )
    )
    samples = np.ascontiguousarray(run["samples"].reshape(n, -1)[:, : graph.tables.n_variables])
    r_hat, effective = _diagnose(samples, run["scores"], run["chain_ptr"], [len(v) for v in graph.variables])
    converged = r_hat < HIGHEST_R_HAT and effective >= FEWEST_SAMPLES
    return GibbsResult(
        samples=samples,
        marginals=problem.marginals(run["of_variables"], run["of_tables"]),
        chain_ptr=run["chain_ptr"],
        scores=run["scores"],
        r_hat=r_hat,
        effective_samples=effective,
        n_blocks=run["n_blocks"],
        converged=converged,
        status=f"{'' if converged else 'not '}converged: highest R̂ {r_hat:.3f}, {effective:.0f} effective samples of {n} "
        f"in {n_chains} chains",
    )


def _diagnose(samples: Int32s, scores: Float64s, ptr: Int64s, counts: list[int]) -> tuple[float, float]:
    """The highest split R̂, and the fewest effective samples."""
    length = int(np.diff(ptr).min()) // 2 * 2
    chains = np.stack([np.arange(begin, begin + length) for begin in ptr[:-1]])  # [C, length]
    halves = chains.reshape(-1, length // 2)
    worst = np.ones(len(counts))
    for v, count in enumerate(counts):
        column = samples[:, v][halves]
        # a value's indicator has the variance p (1 − p)
        means = np.stack([(column == value).mean(axis=1) for value in range(count)])  # [K, halves]
        worst[v] = _r_hat(means, means * (1 - means) * (length / (length - 2)), length // 2).max()
    of_score = _r_hat(
        scores[halves].mean(axis=1)[None], scores[halves].var(axis=1, ddof=1)[None], length // 2
    )
    traced = np.argsort(-worst, kind="stable")[:TRACED]
    traces = [scores[chains], *(samples[:, v][chains].astype(np.float64) for v in traced)]
    effective = min(_effective(trace) for trace in traces)
    return float(max(of_score.max(), worst.max(initial=1.0))), effective


def _r_hat(means: Float64s, variances: Float64s, n: int) -> Float64s:
    """Split R̂ (Gelman et al. 2013, eq. 11.4) from means and variances of half chains [K, halves] of n samples."""
    within = variances.mean(axis=1)
    total = (n - 1) / n * within + means.var(axis=1, ddof=1)
    still = np.where(total > 0, np.inf, 1.0)  # nothing moves: all at one place, or each at its own
    return np.asarray(np.sqrt(np.divide(total, within, out=still, where=within > 0)))


def _effective(trace: Float64s) -> float:
    """Effective samples of chains [C, n]: C n / (1 + 2 Σ_t ρ_t), pairs of ρ as long as their sum is positive (Geyer)."""
    n_chains, n = trace.shape
    if np.ptp(trace) == 0:
        return float(trace.size)
    centred = trace - trace.mean(axis=1, keepdims=True)
    spectrum = np.fft.rfft(centred, 2 * n)
    covariance = np.fft.irfft(np.abs(spectrum) ** 2)[:, :n].mean(axis=0) / n
    total = covariance[0] + trace.mean(axis=1).var(ddof=1) if n_chains > 1 else covariance[0]
    rho = 1 - (covariance[0] - covariance) / total
    pairs = rho[: n // 2 * 2].reshape(-1, 2).sum(axis=1)
    negative = np.flatnonzero(pairs <= 0)
    pairs = np.minimum.accumulate(pairs[: negative[0]] if len(negative) else pairs)
    return float(min(trace.size, trace.size / max(2 * pairs.sum() - 1, 1e-3)))
