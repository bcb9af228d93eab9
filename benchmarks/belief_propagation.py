"""`python -m benchmarks.belief_propagation`: loopy belief propagation beside PGMax, on a CPU or a GPU.

Grids of n × n variables (Ising: 2 values, random signs of the couplings; Potts: 5 values), and graphs in UAI files that are
named on the command line, with their evidence beside them (`NAME.uai.evid`). crfkit runs with its defaults, and with each
of its schedules at a given damping; PGMax with synchronous updates at the same damping, on one thread. PGMax's function is
compiled before it is measured. It has no test of convergence: it gets as many iterations as crfkit's synchronous schedule
needs for a largest residual of 1e-6. crfkit computes in double precision, PGMax in single. Errors are differences of
marginals from exact ones, where these are computed (`--exact-gib`); those of crfkit are of its defaults.

Seconds are those of the processor, the least of several runs. PGMax (`pip install pgmax`) is left out if it is missing.

With `--device cuda`: PGMax and `nn.FactorGraphDistribution` on a GPU, one Ising grid and a batch of them, beside one core of
the CPU, all by the clock; see `benchmarks/device_messages.py`.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np

from benchmarks import device_messages, rival_pgmax
from benchmarks.machine import machine
from benchmarks.measure import PROJECT
from crfkit import FactorGraph
from crfkit.data import read_uai
from crfkit.errors import InputError
from crfkit.inference import belief_propagation, marginals

RESULTS = PROJECT / "benchmarks" / "results"
RUNS = 3
SCHEDULES: tuple[Literal["residual", "sequential", "synchronous"], ...] = (
    "residual",
    "sequential",
    "synchronous",
)
MOST_ITERATIONS = 500
SIDES = (10, 20, 50, 100)  # of the grids on a device
BATCHES = (1, 32)
Marginals = list[np.ndarray[Any, Any]]


def lattice(n: int, count: int, coupling: float, field: float) -> FactorGraph:
    """A grid of n × n variables with couplings of random signs."""
    random = np.random.default_rng(0)
    scopes: list[tuple[int, ...]] = [(v, v + 1) for v in range(n * n) if v % n < n - 1]
    scopes += [(v, v + n) for v in range(n * n - n)]
    tables = [coupling * sign * (2 * np.eye(count) - 1) for sign in random.choice([-1, 1], len(scopes))]
    fields = field * random.normal(size=(n * n, count))
    return FactorGraph.from_arrays(
        [count] * (n * n), [*scopes, *((v,) for v in range(n * n))], [*tables, *fields]
    )


def problems(files: list[Path], quick: bool) -> Iterator[tuple[str, FactorGraph, float]]:
    """(name, graph, damping)."""
    for n in (10,) if quick else (10, 100):
        yield f"Ising {n} × {n}", lattice(n, 2, 0.5, 0.5), 0.0
        yield f"Potts {n} × {n}", lattice(n, 5, 0.5, 0.5), 0.0
    for path in files:
        evidence = path.with_name(path.name + ".evid")
        yield path.stem, read_uai(path, evidence if evidence.exists() else None), 0.3


def least_seconds(run: Callable[[], Any]) -> tuple[float, Any]:
    """The least seconds of the processor in a few runs, and what the last gave."""
    seconds = []
    for _ in range(RUNS):
        start = time.process_time()
        found = run()
        seconds.append(time.process_time() - start)
    return min(seconds), found


def run_pgmax(graph: FactorGraph, iterations: int, damping: float) -> tuple[float, Marginals]:
    """Seconds, and marginals."""
    import jax

    built = rival_pgmax.build(graph)
    run, arrays = built.compile(iterations, damping), built.arrays()
    jax.block_until_ready(run(arrays))
    seconds, found = least_seconds(lambda: jax.block_until_ready(run(arrays)))
    return seconds, [np.asarray(found)[v.index, : len(v)] for v in graph.variables]


def error(found: Marginals, exact: Marginals) -> tuple[float, float]:
    """The largest and the mean absolute difference."""
    differences = np.concatenate([np.abs(a - b) for a, b in zip(found, exact, strict=True)])
    return float(differences.max()), float(differences.mean())


def exact_marginals(graph: FactorGraph, gib: float) -> Marginals | None:
    """Of all variables, if they fit into this memory."""
    try:
        truth = marginals(graph, memory_limit=gib * 2**30) if gib else None
    except InputError:
        return None
    return None if truth is None else [truth[v.name] for v in graph.variables]


def measure(name: str, graph: FactorGraph, damping: float, exact_gib: float) -> dict[str, Any]:
    """One row."""
    row: dict[str, Any] = {
        "problem": name,
        "variables": len(graph.variables),
        "factors": len(graph.factors),
        "damping": damping,
    }
    runs = {"default": partial(belief_propagation, graph, max_iterations=MOST_ITERATIONS)}
    for schedule in SCHEDULES:
        runs[schedule] = partial(runs["default"], schedule=schedule, damping=damping)
    found: dict[str, Marginals] = {}
    for kind, run in runs.items():
        seconds, ours = least_seconds(run)
        row[kind] = {"s": seconds, "iterations": ours.iterations, "converged": ours.converged}
        found[kind] = [ours.marginals[v.name] for v in graph.variables]
    exact = exact_marginals(graph, exact_gib)
    if exact is not None:
        row["error"] = error(found["default"], exact)
        row["synchronous error"] = error(found["synchronous"], exact)
    if importlib.util.find_spec("pgmax"):
        iterations = int(row["synchronous"]["iterations"])
        seconds, theirs = run_pgmax(graph, iterations, damping)
        row["pgmax"] = {"s": seconds, "iterations": iterations}
        row["difference"] = error(theirs, found["synchronous"])[0]
        if exact is not None:
            row["pgmax error"] = error(theirs, exact)
    return row


def measure_device(n: int, device: device_messages.Device, exact_gib: float) -> dict[str, Any]:
    """One row: an Ising grid on one core, and on a device alone and in a batch."""
    graph, name = lattice(n, 2, 0.5, 0.5), f"Ising {n} × {n}"
    ask = partial(belief_propagation, graph, schedule="synchronous", max_iterations=MOST_ITERATIONS)
    _, seconds, ours = device_messages.timed(ask, lambda found: found)
    iterations, core = int(ours.iterations), [ours.marginals[v.name] for v in graph.variables]
    row: dict[str, Any] = {
        "problem": name,
        "iterations": iterations,
        "converged": ours.converged,
        "core": {"s": seconds},
    }
    exact = exact_marginals(graph, exact_gib)
    if exact is not None:
        row["core"]["error"] = error(core, exact)
    for batch in BATCHES:
        found = device_messages.measure(graph, iterations, 0.0, device=device, batch=batch)
        for outcome in found.values():
            first = list(outcome.pop("marginals")[0])
            outcome["difference"] = error(first, core)[0]
            if exact is not None:
                outcome["error"] = error(first, exact)
        row[f"batch {batch}"] = found
    return row


def main() -> None:
    """Measure, print, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--quick", action="store_true", help="small grids only")
    parser.add_argument("--exact-gib", type=float, default=0.5, help="memory for exact marginals; 0: none")
    parser.add_argument("--device", choices=("cpu", "cuda"), help="PyTorch and JAX on this device")
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder of results")
    options = parser.parse_args()
    rows = []
    if options.device:
        sides = SIDES[:2] if options.quick else SIDES
        measured = (measure_device(n, options.device, options.exact_gib) for n in sides)
    else:
        measured = (measure(*one, options.exact_gib) for one in problems(options.files, options.quick))
    for row in measured:
        rows.append(row)
        print(json.dumps(row), flush=True)
    if not options.quick:
        options.out.mkdir(parents=True, exist_ok=True)
        text = json.dumps({"machine": machine(), "rows": rows}, indent=1)
        name = "belief_propagation.json" if options.device is None else f"messages_{options.device}.json"
        (options.out / name).write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
