"""`python -m benchmarks.belief_propagation`: loopy belief propagation beside PGMax, on a CPU.

Grids of n × n variables (Ising: 2 values, random signs of the couplings; Potts: 5 values), and graphs in UAI files that are
named on the command line, with their evidence beside them (`NAME.uai.evid`). Both packages run synchronous updates with the
same damping on one thread; PGMax's function is compiled before it is measured. It has no test of convergence: it gets as
many iterations as crfkit's synchronous schedule needs for a largest residual of 1e-6. crfkit computes in double precision,
PGMax in single. Errors are differences of marginals from exact ones, where these are computed (`--exact-gib`).

Seconds are those of the processor, the least of several runs. PGMax (`pip install pgmax`) is left out if it is missing.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import time
import types
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np

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
LOWEST_SCORE = -1e4  # stands for −inf in PGMax, which has no zero probabilities
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


def build_pgmax(graph: FactorGraph) -> tuple[Any, Any, Any]:
    """PGMax's inferer, its arrays at the start, its variables."""
    import jax.extend.backend

    if not hasattr(jax.lib, "xla_bridge"):  # which PGMax 0.6.1 asks for, and newer versions of JAX lack
        jax.lib.xla_bridge = types.SimpleNamespace(get_backend=jax.extend.backend.get_backend)
    from pgmax import fgraph, fgroup, infer, vgroup

    counts = np.array([len(variable) for variable in graph.variables])
    group = vgroup.NDVarArray(num_states=counts, shape=counts.shape)
    model = fgraph.FactorGraph(variable_groups=[group])
    own = np.zeros((len(counts), counts.max()))
    by_shape: dict[tuple[int, ...], list[tuple[tuple[int, ...], Any]]] = {}
    for factor in graph.factors:  # tables, all of them
        scope, table = factor.variables, np.maximum(factor.scores, LOWEST_SCORE)
        if len(scope) == 1:
            own[scope[0], : len(table)] += table
        elif scope:
            by_shape.setdefault(table.shape, []).append((scope, table))
    for shape, some in by_shape.items():
        scopes = [[group[v] for v in scope] for scope, _ in some]
        scores = np.stack([table for _, table in some])
        if len(shape) == 2:
            model.add_factors(
                fgroup.PairwiseFactorGroup(variables_for_factors=scopes, log_potential_matrix=scores)
            )
        else:
            configurations = np.array(list(np.ndindex(*shape)), dtype=int)
            model.add_factors(
                fgroup.EnumFactorGroup(
                    variables_for_factors=scopes,
                    factor_configs=configurations,
                    log_potentials=scores.reshape(len(some), -1),
                )
            )
    inferer = infer.build_inferer(model.bp_state, backend="bp")
    return inferer, inferer.init(evidence_updates={group: own}), group


def run_pgmax(graph: FactorGraph, iterations: int, damping: float) -> tuple[float, Marginals]:
    """Seconds, and marginals."""
    import jax
    from pgmax import infer

    inferer, arrays, group = build_pgmax(graph)
    run = jax.jit(lambda a: inferer.run(a, num_iters=iterations, damping=damping, temperature=1.0))
    jax.block_until_ready(run(arrays))
    seconds, after = least_seconds(lambda: jax.block_until_ready(run(arrays)))
    found = infer.get_marginals(inferer.get_beliefs(after))[group]
    return seconds, [np.asarray(found[v.index])[: len(v)] for v in graph.variables]


def error(found: Marginals, exact: Marginals) -> tuple[float, float]:
    """The largest and the mean absolute difference."""
    differences = np.concatenate([np.abs(a - b) for a, b in zip(found, exact, strict=True)])
    return float(differences.max()), float(differences.mean())


def measure(name: str, graph: FactorGraph, damping: float, exact_gib: float) -> dict[str, Any]:
    """One row."""
    row: dict[str, Any] = {
        "problem": name,
        "variables": len(graph.variables),
        "factors": len(graph.factors),
        "damping": damping,
    }
    for schedule in SCHEDULES:
        run = partial(
            belief_propagation, graph, schedule=schedule, damping=damping, max_iterations=MOST_ITERATIONS
        )
        seconds, ours = least_seconds(run)
        row[schedule] = {"s": seconds, "iterations": ours.iterations, "converged": ours.converged}
    ours_marginals = [ours.marginals[v.name] for v in graph.variables]
    try:
        truth = marginals(graph, memory_limit=exact_gib * 2**30) if exact_gib else None
    except InputError:
        truth = None
    exact = None if truth is None else [truth[v.name] for v in graph.variables]
    if exact is not None:
        row["error"] = error(ours_marginals, exact)
    if importlib.util.find_spec("pgmax"):
        iterations = int(row["synchronous"]["iterations"])
        seconds, theirs = run_pgmax(graph, iterations, damping)
        row["pgmax"] = {"s": seconds, "iterations": iterations}
        row["difference"] = error(theirs, ours_marginals)[0]
        if exact is not None:
            row["pgmax error"] = error(theirs, exact)
    return row


def main() -> None:
    """Measure, print, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--quick", action="store_true", help="small grids only")
    parser.add_argument("--exact-gib", type=float, default=0.5, help="memory for exact marginals; 0: none")
    options = parser.parse_args()
    rows = []
    for problem in problems(options.files, options.quick):
        rows.append(measure(*problem, options.exact_gib))
        print(json.dumps(rows[-1]), flush=True)
    if not options.quick:
        RESULTS.mkdir(exist_ok=True)
        text = json.dumps({"machine": machine(), "rows": rows}, indent=1)
        (RESULTS / "belief_propagation.json").write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
