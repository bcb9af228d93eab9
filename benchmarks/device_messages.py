"""Loopy belief propagation on a device: `nn.FactorGraphDistribution` beside PGMax, one graph and a batch of them.

All graphs of a batch have the same variables, factors and couplings; the scores of single variables differ. Both packages
make the same number of synchronous updates in single precision and end with the marginals of all variables, on the device.
Building and compiling are measured apart, once; a run is timed by the clock, the least of several, with the device idle
before and after.
"""

from __future__ import annotations

import importlib.util
import time
from collections.abc import Callable
from typing import Any, Literal

import numpy as np

from benchmarks import rival_pgmax
from crfkit import FactorGraph

RUNS = 5
Device = Literal["cpu", "cuda"]
Array = np.ndarray[Any, Any]


def fields(graph: FactorGraph, batch: int) -> Array:
    """Scores of single variables [B, V, L]: those of the graph first, then others like them."""
    counts = {len(variable) for variable in graph.variables}
    assert len(counts) == 1, "a grid: all variables have the same number of values"
    own = np.zeros((len(graph.variables), counts.pop()))
    for factor in graph.factors:
        if len(factor.variables) == 1:
            own[factor.variables[0]] += factor.scores
    others = np.random.default_rng(1).normal(scale=own.std(), size=(batch - 1, *own.shape))
    return np.concatenate([own[None], others])


def timed(run: Callable[[], Any], wait: Callable[[Any], Any]) -> tuple[float, float, Any]:
    """Seconds of the first run, the least seconds of several later ones, and what the last one gave."""
    seconds = []
    for _ in range(1 + RUNS):
        start = time.perf_counter()
        found = wait(run())
        seconds.append(time.perf_counter() - start)
    return seconds[0], min(seconds[1:]), found


def run_crfkit(
    graph: FactorGraph, own: Array, iterations: int, damping: float, device: Device
) -> dict[str, Any]:
    """`nn.FactorGraphDistribution`: seconds to make it from the scores of its factors, and to the marginals."""
    import torch

    from crfkit.nn import FactorGraphDistribution

    batch = len(own)
    scores = [
        torch.as_tensor(
            own[:, factor.variables[0]]
            if len(factor.variables) == 1
            else np.broadcast_to(factor.scores, (batch, *factor.scores.shape)).copy(),
            dtype=torch.float32,
        ).to(device)
        for factor in graph.factors
    ]

    def make() -> FactorGraphDistribution:
        return FactorGraphDistribution(
            graph,
            scores,
            method="belief_propagation",
            damping=damping,
            tolerance=0.0,
            max_iterations=iterations,
        )

    def wait(found: Any) -> Any:
        if device == "cuda":
            torch.cuda.synchronize()
        return found

    with torch.no_grad():
        first_build, build, graphs = timed(make, wait)
        first, seconds, marginals = timed(graphs.marginals, wait)
    return {
        "s": seconds,
        "first": first,
        "build": build,
        "first build": first_build,
        "marginals": marginals.cpu().numpy(),
    }


def run_pgmax(
    graph: FactorGraph, own: Array, iterations: int, damping: float, device: Device
) -> dict[str, Any]:
    """PGMax: seconds to compile with the first run, and to the marginals."""
    import jax

    target = jax.devices("gpu" if device == "cuda" else "cpu")[0]
    with jax.default_device(target):
        start = time.perf_counter()
        built = rival_pgmax.build(graph)
        build = time.perf_counter() - start
        given = [jax.device_put(built.arrays(one), target) for one in own]
        arrays = jax.tree.map(lambda *parts: jax.numpy.stack(parts), *given) if len(own) > 1 else given[0]
        run = built.compile(iterations, damping, batch=len(own) > 1)
        first, seconds, found = timed(lambda: run(arrays), jax.block_until_ready)
    marginals = np.asarray(found)
    return {
        "s": seconds,
        "first": first,
        "build": build,
        "marginals": marginals if len(own) > 1 else marginals[None],
    }


CONTENDERS = {"crfkit.nn": run_crfkit, "pgmax": run_pgmax}


def measure(
    graph: FactorGraph, iterations: int, damping: float, *, device: Device, batch: int
) -> dict[str, dict[str, Any]]:
    """Each package's seconds, and its marginals of the first graph [V, L]."""
    own = fields(graph, batch)
    row = {}
    for name, run in CONTENDERS.items():
        if name == "pgmax" and importlib.util.find_spec("pgmax") is None:
            continue
        row[name] = run(graph, own, iterations, damping, device)
    return row
