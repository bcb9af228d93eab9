"""Factor graphs on a GPU against the same questions in memory, in double precision: `python -m tests.nn.gpu_graph_cases`."""

import itertools
from typing import Any

import numpy as np
import torch

from crfkit import FactorGraph
from crfkit.nn import FactorGraphDistribution
from crfkit.nn.backends import choice, torch_messages
from crfkit.nn.backends.torch_messages import MessageOptions
from crfkit.nn.problem.factor_graph import read_problem
from tests.nn.gpu_cases import failures
from tests.nn.graph_batches import draw_batch, mixed_graph
from tests.oracles.factor_graphs import SHAPES

MIXED = "every kind of factor"
GRIDS = [
    # side, values of a variable, elements, damping, tolerance
    (1, 2, 1, 0.0, 1e-4),
    (4, 2, 3, 0.0, 1e-4),
    (5, 3, 4, 0.2, 1e-4),
    (20, 2, 33, 0.0, 1e-4),
    (20, 2, 5, 0.1, 0.0),
    (6, 5, 3, 0.0, 1e-4),
    (4, 9, 2, 0.3, 0.0),
    (4, 32, 2, 0.0, 1e-4),
    (3, 64, 2, 0.1, 0.0),
]
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


def grid(side: int, count: int, B: int) -> tuple[FactorGraph, list[Any]]:
    """Tables for single variables and for neighbours, some entries −inf; elements take ever more iterations."""
    random = np.random.default_rng(side * count)
    scopes: list[tuple[int, ...]] = [(v,) for v in range(side**2)]
    scopes += [(v, v + 1) for v in range(side**2) if v % side < side - 1]
    scopes += [(v + side, v) for v in range(side**2 - side)]
    graph = FactorGraph.from_arrays(
        [count] * side**2, scopes, [np.zeros((count,) * len(scope)) for scope in scopes]
    )
    spread = np.linspace(0.1, 0.7, B)
    scores = []
    for scope in scopes:
        shape = (B, *(count,) * len(scope))
        part = random.normal(size=shape) * spread.reshape(-1, *[1] * len(scope))
        part[random.random(shape) < 0.02] = -np.inf
        part.reshape(B, -1)[:, 0] = 0.0  # so that some assignment is possible
        scores.append(part)
    return graph, scores


def check_grid(side: int, count: int, B: int, damping: float, tolerance: float, dtype: Any) -> None:
    """Kernels on a GPU against plain PyTorch in memory: the same iterates, stopped at the same time, and gradients."""
    graph, given = grid(side, count, B)
    options = MessageOptions(damping, tolerance, 40)
    here = read_problem(graph, [torch.tensor(part) for part in given])
    expected, reached = torch_messages.beliefs(here, options)
    leaf = here.scores.to("cuda", dtype).requires_grad_()
    there = here._replace(scores=leaf)
    ask = choice.choose_beliefs(there)
    assert ask is not torch_messages.beliefs, "no kernels"
    found, converged = ask(there, options)
    again, _ = ask(there, options)
    limit = TOLERANCE[dtype]
    for name, exact, mine, same in zip(expected._fields, expected, found, again, strict=True):
        assert torch.equal(mine, same), f"{name}: other bits when asked again"
        torch.testing.assert_close(
            mine.detach().cpu().double(), exact, rtol=limit, atol=limit, msg=lambda m, n=name: f"{n}: {m}"
        )
    if tolerance and dtype == torch.float64:
        assert torch.equal(converged.cpu(), reached), f"converged: {converged} {reached}"
    possible = torch.isfinite(expected.log_partition)
    [slope] = torch.autograd.grad(found.log_partition[possible.to("cuda")].sum(), [leaf])
    own = here.scores.clone().requires_grad_()
    unrolled = torch_messages.beliefs(here._replace(scores=own), options)[0].log_partition
    [exact] = torch.autograd.grad(unrolled[possible].sum(), [own])
    limit = max(limit, 100 * tolerance)  # the beliefs of what has just reached the tolerance
    torch.testing.assert_close(
        slope.cpu().double(), exact, rtol=0, atol=limit, msg=lambda m: f"gradient: {m}"
    )


def main() -> None:
    """Ask all, and count what went wrong."""
    cases = [(shape, method, dtype) for dtype in TOLERANCE for shape, method in CASES]
    asked: list[tuple[Any, Any]] = [(check_graphs, case) for case in cases]
    asked += [(check_grid, (*case, dtype)) for dtype in TOLERANCE for case in GRIDS]
    wrong = failures(asked)
    print(*wrong, f"{len(asked) - len(wrong)} of {len(asked)} cases are the same on both sides", sep="\n")


if __name__ == "__main__":
    main()
