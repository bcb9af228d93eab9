"""`python -m benchmarks.neural_graphs`: batches of one grid graph through `crfkit.nn.FactorGraphDistribution`.

Milliseconds of log Z and its gradient by all scores, in float32: belief propagation on a square grid with all its
iterations, and exact elimination on a narrow one. On a GPU the median wall clock until the device is idle; on a CPU,
one thread, the least CPU time. Errors are those of log Z, relative, and of marginals against float64 in memory.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any, Literal

import numpy as np
import torch

from benchmarks.machine import machine
from benchmarks.neural import milliseconds
from crfkit import FactorGraph
from crfkit.nn import FactorGraphDistribution

Method = Literal["exact", "belief_propagation"]
# rows, columns, values of a variable, method
GRIDS: tuple[tuple[int, int, int, Method], ...] = (
    (16, 16, 2, "belief_propagation"),
    (16, 16, 8, "belief_propagation"),
    (4, 25, 3, "exact"),
    (6, 10, 2, "exact"),
)
BATCHES = (1, 32, 256)
ITERATIONS = 25


def grid(rows: int, columns: int, n_values: int) -> FactorGraph:
    """Variables with a factor each, and one for each pair of neighbours."""
    number = np.arange(rows * columns).reshape(rows, columns)
    across = zip(number[:, :-1].ravel().tolist(), number[:, 1:].ravel().tolist(), strict=True)
    down = zip(number[:-1].ravel().tolist(), number[1:].ravel().tolist(), strict=True)
    scopes = [*((v,) for v in number.ravel().tolist()), *across, *down]
    scores = [np.zeros([n_values] * len(scope)) for scope in scopes]
    return FactorGraph.from_arrays([n_values] * number.size, scopes, scores)


def distribution(graph: FactorGraph, scores: list[Any], method: Method) -> FactorGraphDistribution:
    """With a fixed number of iterations, where there are any."""
    return FactorGraphDistribution(
        graph, scores, method=method, tolerance=0.0, max_iterations=ITERATIONS, damping=0.1
    )


def step(graph: FactorGraph, scores: list[Any], method: Method) -> Callable[[], Any]:
    """log Z and its gradient."""
    return lambda: torch.autograd.grad(distribution(graph, scores, method).log_partition().sum(), scores)


def errors(graph: FactorGraph, scores: list[Any], method: Method) -> str:
    """Against float64 in memory."""
    with torch.no_grad():
        found = distribution(graph, scores, method)
        exact = distribution(graph, [part.double().cpu() for part in scores], method)
        log_z = exact.log_partition()
        relative = ((found.log_partition().cpu() - log_z) / log_z).abs().max()
        absolute = (found.marginals().cpu() - exact.marginals()).abs().max()
    return f"log Z {relative:.1e} (relative), marginals {absolute:.1e}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--smoke", action="store_true", help="small batches of small grids, once")
    options = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)
    name = torch.cuda.get_device_name() if options.device != "cpu" else "1 thread"
    print(f"{machine()}\nPyTorch {torch.__version__}, {options.device}: {name}")
    grids = tuple((2, 3, L, method) for _, _, L, method in GRIDS[1:3]) if options.smoke else GRIDS
    for rows, columns, n_values, method in grids:
        graph = grid(rows, columns, n_values)
        print(f"\n## {rows} × {columns} grid, {n_values} values, {method}", flush=True)
        for B in (2,) if options.smoke else BATCHES:
            scores = [
                torch.randn(B, *factor.scores.shape, device=options.device, requires_grad=True)
                for factor in graph.factors
            ]
            found = milliseconds({"": step(graph, scores, method)}, options.device, options.repeats)[""]
            shown = "out of memory" if found is None else f"{found:.3g}"
            print(
                f"B = {B}: log Z + gradient, ms: {shown}; errors: {errors(graph, scores, method)}", flush=True
            )


if __name__ == "__main__":
    main()
