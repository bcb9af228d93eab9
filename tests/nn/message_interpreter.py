"""The Triton kernels for belief propagation on a CPU: run by `test_triton.py` in a process with TRITON_INTERPRET=1.

What the kernels answer is compared with plain PyTorch, iteration by iteration, and on trees with brute force.
"""

from __future__ import annotations

from typing import Any
from unittest import mock

import numpy as np
import torch

from crfkit import FactorGraph
from crfkit.nn.backends import torch_messages
from crfkit.nn.backends.torch_messages import MessageOptions
from crfkit.nn.problem.factor_graph import GraphProblem, read_problem
from crfkit.nn.triton.messages import backend as kernels
from crfkit.nn.triton.messages.kernels import update_kernel
from tests.nn.graph_batches import draw_batch, mixed_graph

KERNELS = kernels.MessageKernels()
SHAPES = ("tree", "grid", "loop", "disconnected", "one value", "single")


def problem(seed: int, shape: str, dtype: torch.dtype = torch.float64) -> GraphProblem:
    """Three elements, with entries of −inf in every second batch; the first that has no table of three variables."""
    batch = draw_batch(seed, shape, impossible=0.15 * (seed % 2))
    given = read_problem(batch.graph, batch.tensors(dtype))
    return given if KERNELS.suits_shape(given) else problem(seed + 10, shape, dtype)


def compare(given: GraphProblem, options: MessageOptions, name: str, tolerance: float = 1e-11) -> None:
    """log Z, beliefs and what is converged, on both sides."""
    assert KERNELS.suits_shape(given), name
    found, converged = KERNELS.beliefs(given, options)
    expected, reached = torch_messages.beliefs(given, options)
    for what, mine, exact in zip(expected._fields, found, expected, strict=True):
        torch.testing.assert_close(
            mine, exact, rtol=tolerance, atol=tolerance, msg=lambda text, what=what: f"{name}: {what}: {text}"
        )
    if options.tolerance:
        assert torch.equal(converged, reached), f"{name}: {converged} {reached}"


def check_iterations() -> None:
    """Every number of iterations on every shape, with and without damping, and with values that are not allowed."""
    for seed, shape in enumerate(SHAPES):
        given = problem(seed, shape)
        for made, damping in ((1, 0.0), (4, 0.3)):
            name = f"{shape}, {made} iterations, damping {damping}"
            compare(given, MessageOptions(damping, 0.0, made), name)
        V, L = len(given.shape.cardinalities), max(given.shape.cardinalities)
        allowed = torch.zeros(3, V, L, dtype=torch.float64)
        allowed[1, 0, 0] = allowed[2, V - 1, :] = -torch.inf
        compare(given._replace(allowed=allowed), MessageOptions(0.2, 0.0, 2), f"{shape}: some values")
    compare(problem(1, "grid", torch.float32), MessageOptions(0.1, 0.0, 4), "float32", 1e-5)
    with mock.patch.object(kernels, "_block", return_value=(2, 1)):
        compare(problem(1, "grid"), MessageOptions(0.1, 0.0, 3), "several programs")


def check_trees() -> None:
    """Exact where there is no cycle."""
    for seed in range(2):
        batch = draw_batch(seed, "tree", impossible=0.2 * seed)
        found, converged = KERNELS.beliefs(
            read_problem(batch.graph, batch.tensors(torch.float64)), MessageOptions(0.0, 1e-12, 50)
        )
        assert converged.all()
        for b, oracle in enumerate(batch.oracles):
            expected = oracle.log_partition if oracle.outputs else -np.inf
            np.testing.assert_allclose(found.log_partition[b], expected, rtol=1e-10, err_msg="tree: log Z")
            if np.isfinite(expected):
                np.testing.assert_allclose(found.scores[b], oracle.marginals, atol=1e-10, err_msg="tree")


def check_convergence() -> None:
    """Elements that stop at different times, one never; also where the host asks less often than that, or in between."""
    counts, pairs = [2] * 4, [(u, v) for v in range(4) for u in range(v)]
    attracted = torch.tensor([[0.4, -0.2], [0.0, 0.3]], dtype=torch.float64)
    repelled = torch.tensor([[-1.0, 1.0], [1.0, -1.2]], dtype=torch.float64)
    graph = FactorGraph.from_arrays(counts, pairs, [np.zeros((2, 2))] * len(pairs))
    given = read_problem(graph, [torch.stack([attracted, repelled, 0.1 * attracted])] * len(pairs))
    expected = torch_messages.beliefs(given, MessageOptions(0.0, 1e-3, 30))[1]
    assert expected.tolist() == [True, False, True]
    easy = given._replace(scores=given.scores[[0, 2]])
    for every in (1, 3):
        with mock.patch.multiple(kernels, ITERATIONS=every, _block=lambda _: (4, 1)):  # two programs
            for tolerance in (1e-2, 1e-4):
                for most in (3, 4, 12):
                    options = MessageOptions(0.0, tolerance, most)
                    compare(given, options, f"{tolerance}, at most {most}, asked every {every}")
            compare(easy, MessageOptions(0.1, 1e-4, 100), f"all converge, asked every {every}")


def check_stopping() -> None:
    """No launch after the host has found that all are converged."""
    given, launched = problem(0, "tree"), []
    original = kernels._launch

    def counted(kernel: Any, n_warps: int) -> Any:
        def launch(*arguments: Any) -> None:
            launched.append(kernel)
            original(kernel, n_warps)(*arguments)

        return launch

    with mock.patch.object(kernels, "_launch", side_effect=counted):
        KERNELS.beliefs(given, MessageOptions(0.0, 1e-6, 1000))
    assert launched.count(update_kernel) == kernels.ITERATIONS, launched


def check_gradients() -> None:
    """The gradient of log Z is the beliefs where all are converged; else that of the iterations, as of other answers."""
    given = problem(7, "loop")
    reached, few = MessageOptions(0.0, 1e-13, 100), MessageOptions(0.1, 0.0, 3)
    assert torch_messages.beliefs(given, reached)[1].all()
    for options, asked in ((reached, ("log Z", "both")), (few, ("log Z", "both", "twice"))):
        for of in asked:
            slopes = []
            for ask in (KERNELS.beliefs, torch_messages.beliefs):
                leaf = given.scores.clone().requires_grad_()
                found, _ = ask(given._replace(scores=leaf), options)
                value = found.log_partition.sum()
                if of == "both":
                    value = value + (found.scores**2).sum() + found.values[:, 0, 0].sum()
                [slope] = torch.autograd.grad(value, [leaf], create_graph=of == "twice")
                if of == "twice":
                    [slope] = torch.autograd.grad((slope**2).sum(), [leaf])
                slopes.append(slope)
            torch.testing.assert_close(*slopes, rtol=1e-8, atol=1e-8, msg=lambda text, of=of: f"{of}: {text}")


def check_what_suits() -> None:
    """Tables of three variables, variables of many values or tables: not these kernels."""
    graph, scores = mixed_graph(2)
    assert not KERNELS.suits_shape(read_problem(graph, [torch.tensor(part) for part in scores]))
    many = kernels.MOST_TABLES + 1
    star = FactorGraph.from_arrays([2], [(0,)] * many, [np.zeros(2)] * many)
    assert not KERNELS.suits_shape(read_problem(star, [torch.zeros(1, 2)] * many))
    wide = FactorGraph.from_arrays([65], [(0,)], [np.zeros(65)])
    assert not KERNELS.suits_shape(read_problem(wide, [torch.zeros(1, 65)]))
    twenty = FactorGraph.from_arrays([3, 2], [(0, 1), *[(0,)] * 20], [np.zeros((3, 2)), *[np.zeros(3)] * 20])
    rng = torch.Generator().manual_seed(0)
    given = [torch.randn(2, 3, 2, generator=rng), *(torch.randn(2, 3, generator=rng) for _ in range(20))]
    compare(read_problem(twenty, [part.double() for part in given]), MessageOptions(0.1, 0.0, 3), "20 tables")


def main() -> None:
    """All of them."""
    check_iterations()
    check_trees()
    check_convergence()
    check_stopping()
    check_gradients()
    check_what_suits()
    print("all kernels agree")


if __name__ == "__main__":
    main()
