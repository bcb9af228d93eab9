"""Factor graphs on a GPU against the same questions in memory, in double precision: `python -m tests.nn.gpu_graph_cases`."""

import itertools
from typing import Any

import torch

from crfkit.nn import FactorGraphDistribution
from tests.nn.gpu_cases import failures
from tests.nn.graph_batches import draw_batch, mixed_graph
from tests.oracles.factor_graphs import SHAPES

MIXED = "every kind of factor"
CASES = list(itertools.product((*SHAPES, MIXED), ("exact", "belief_propagation")))
TOLERANCE = {torch.float32: 1e-4, torch.float64: 1e-10}


def answers(graphs: FactorGraphDistribution, exact: bool) -> dict[str, Any]:
    """By name, on the CPU; what is impossible has no gradient."""
    outputs = torch.zeros(graphs.marginals().shape[:2], dtype=torch.int64, device=graphs._given[0].device)
    outputs[:, 1:] = -1
    log_z = graphs.log_partition()
    possible = torch.isfinite(log_z)
    gradient = torch.autograd.grad((log_z + graphs.entropy())[possible].sum(), graphs._given)
    found = {
        "log Z": log_z,
        "log_prob": graphs.log_prob(outputs)[possible],
        "marginals": graphs.marginals(),
        "entropy": graphs.entropy()[possible],
        "converged": graphs.converged,
    }
    found |= {f"factor {number}": part for number, part in enumerate(graphs.factor_marginals())}
    found |= {f"gradient {number}": part for number, part in enumerate(gradient)}
    best = graphs.argmax()
    if exact:
        found["best"], found["k best"] = best, graphs.topk(2)[0]
        found["divergence"] = graphs.kl(graphs)[possible]
        assert ((graphs.sample(3) >= 0).all(2) == possible).all()
    return {name: part.detach().cpu() for name, part in found.items()}


def check_graphs(shape: str, method: Any, dtype: Any) -> None:
    """One batch on both sides; belief propagation makes the same number of iterations."""
    if shape == MIXED:
        graph, given = mixed_graph(5)
    else:
        batch = draw_batch(7, shape, B=5, impossible=0.1)
        graph, given = batch.graph, batch.scores
    options = {"method": method, "tolerance": 0.0, "max_iterations": 12, "damping": 0.1}
    expected, found = (
        answers(
            FactorGraphDistribution(
                graph,
                [torch.tensor(part, dtype=kind, device=device, requires_grad=True) for part in given],
                **options,
            ),
            method == "exact",
        )
        for kind, device in ((torch.float64, "cpu"), (dtype, "cuda"))
    )
    for name, value in expected.items():
        if name == "converged" and method != "exact":
            continue  # whether the last change is 0 is up to rounding
        torch.testing.assert_close(
            found[name].to(value),
            value,
            atol=TOLERANCE[dtype],
            rtol=TOLERANCE[dtype],
            msg=lambda m, n=name: f"{n}: {m}",
        )


def main() -> None:
    """Ask all, and count what went wrong."""
    cases = [(shape, method, dtype) for dtype in TOLERANCE for shape, method in CASES]
    wrong = failures([(check_graphs, case) for case in cases])
    print(*wrong, f"{len(cases) - len(wrong)} of {len(cases)} cases are the same on both sides", sep="\n")


if __name__ == "__main__":
    main()
