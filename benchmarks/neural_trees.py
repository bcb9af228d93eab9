"""Sums over trees and best trees for `python -m benchmarks.neural`: crfkit.nn beside torch-struct and SuPar."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import torch

from crfkit.nn import ProjectiveTreeDistribution, TreeDistribution

Step = Callable[[], Any]
KINDS = {"trees": TreeDistribution, "projective trees": ProjectiveTreeDistribution}


def tree_steps(
    size: tuple[int, int], device: str, kind: str = "trees"
) -> tuple[dict[str, Step], dict[str, Step], bool]:
    """log Z and gradient, and best trees, of each way, with one root; whether kernels alone answer where they should."""
    B, n = size
    scores = torch.randn(B, n + 1, n + 1, device=device, requires_grad=True)
    ours = KINDS[kind]
    sums: dict[str, Step] = {"crfkit": _sum_step(lambda given: ours(given).log_partition(), scores)}
    bests: dict[str, Step] = {"crfkit": lambda: ours(scores).argmax()}
    if find_spec("torch_struct"):
        import torch_struct

        arcs = torch.randn(B, n, n, device=device, requires_grad=True)  # the root's on the diagonal
        theirs = {
            "trees": torch_struct.NonProjectiveDependencyCRF,
            "projective trees": torch_struct.DependencyCRF,
        }[kind]
        sums["torch-struct"] = _sum_step(lambda given: theirs(given, multiroot=False).partition, arcs)
        if kind == "projective trees":
            bests["torch-struct"] = lambda: theirs(arcs.detach().requires_grad_(), multiroot=False).argmax
    if find_spec("supar"):
        from supar import structs

        heads = scores.detach().mT.contiguous().requires_grad_()  # by dependent and head
        other = {"trees": structs.MatrixTree, "projective trees": structs.DependencyCRF}[kind]
        sums["SuPar"] = _sum_step(lambda given: other(given).log_partition, heads)
        bests["SuPar"] = lambda: other(heads.detach().clone()).argmax
    trees = ours(scores)
    kernels: Any = trees._backend
    fast = device == "cpu" or kernels.name == "triton"
    if kind == "trees" and device != "cpu":
        fast &= kernels.is_eliminated(trees._problem, scores.dtype)
    return sums, bests, fast


def _sum_step(log_partition: Callable[[Any], Any], leaf: Any) -> Step:
    """log Z and its gradient by the scores."""

    def step() -> None:
        leaf.grad = None
        log_partition(leaf).sum().backward()

    return step


def tree_errors(size: tuple[int, int], device: str, kind: str = "trees") -> str:
    """log Z and marginals of scores of spread 3 against float64 on a CPU."""
    _, n = size
    scores = 3 * torch.randn(4, n + 1, n + 1, device=device)
    found, exact = KINDS[kind](scores), KINDS[kind](scores.double().cpu())
    log_z = exact.log_partition()
    relative = ((found.log_partition().cpu() - log_z) / log_z).abs().max()
    absolute = (found.marginals().cpu() - exact.marginals()).abs().max()
    return f"errors against float64: log Z {relative:.1e} (relative), marginals {absolute:.1e}"
