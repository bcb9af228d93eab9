"""Sums over trees and best trees for `python -m benchmarks.neural`: crfkit.nn beside torch-struct and SuPar."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import torch

from crfkit.nn import TreeDistribution

Step = Callable[[], Any]


def tree_steps(size: tuple[int, int], device: str) -> tuple[dict[str, Step], dict[str, Step], bool]:
    """log Z and gradient, and best trees, of each way, with one root; whether kernels alone answer where they should."""
    B, n = size
    scores = torch.randn(B, n + 1, n + 1, device=device, requires_grad=True)

    def ours() -> None:
        scores.grad = None
        TreeDistribution(scores).log_partition().sum().backward()

    sums: dict[str, Step] = {"crfkit": ours}
    bests: dict[str, Step] = {"crfkit": lambda: TreeDistribution(scores).argmax()}
    if find_spec("torch_struct"):
        import torch_struct

        arcs = torch.randn(B, n, n, device=device, requires_grad=True)  # the root's on the diagonal

        def struct() -> None:
            arcs.grad = None
            torch_struct.NonProjectiveDependencyCRF(arcs, multiroot=False).partition.sum().backward()

        sums["torch-struct"] = struct
    if find_spec("supar"):
        from supar.structs import MatrixTree

        heads = scores.detach().mT.contiguous().requires_grad_()  # by dependent and head

        def supar() -> None:
            heads.grad = None
            MatrixTree(heads).log_partition.sum().backward()

        sums["SuPar"], bests["SuPar"] = supar, lambda: MatrixTree(heads.detach().clone()).argmax
    trees = TreeDistribution(scores)
    kernels: Any = trees._backend
    fast = device == "cpu" or (
        kernels.name == "triton" and kernels.is_eliminated(trees._problem, scores.dtype)
    )
    return sums, bests, fast


def tree_errors(size: tuple[int, int], device: str) -> str:
    """log Z and marginals of scores of spread 3 against float64 on a CPU."""
    _, n = size
    scores = 3 * torch.randn(4, n + 1, n + 1, device=device)
    found, exact = TreeDistribution(scores), TreeDistribution(scores.double().cpu())
    log_z = exact.log_partition()
    relative = ((found.log_partition().cpu() - log_z) / log_z).abs().max()
    absolute = (found.marginals().cpu() - exact.marginals()).abs().max()
    return f"errors against float64: log Z {relative:.1e} (relative), marginals {absolute:.1e}"
