"""`python -m benchmarks.projective_tiles`: the kernels for projective trees on a GPU by the tiles that they work in.

Milliseconds of log Z and gradient, and of best trees, as a CUDA graph is replayed, for warps, rows and columns of a tile and
the most registers of a thread. The fastest is what `crfkit.nn.triton.projective.backend` should have.
"""

from __future__ import annotations

import itertools
from typing import Any

import torch

from benchmarks.neural import GPU_TREES, replayed
from crfkit.nn.problem.tree import TreeProblem
from crfkit.nn.triton.projective import backend

TILES = ((4, 8, 32), (4, 16, 32), (8, 8, 32), (8, 16, 32), (8, 32, 32), (8, 8, 64), (8, 16, 64), (16, 16, 64))
REGISTERS = (64, 128, 255)


def milliseconds(problem: TreeProblem, log: bool) -> tuple[float, float]:
    """Of sums with their gradient and of best trees; with `log`, all in log space."""
    kernels = backend.EisnerKernels()
    if log:
        scores = problem.scores.clone()
        scores[:, 0] -= 1000.0  # every tree is unlikely
        problem = problem._replace(scores=scores)
    sums: Any = replayed(lambda: kernels.marginals(problem, torch.float32), 20)
    return sums, replayed(lambda: kernels.argmax(problem), 20)


def main() -> None:
    torch.manual_seed(0)
    print(torch.cuda.get_device_name(), torch.__version__)
    for (B, n), log in itertools.product(GPU_TREES, (False, True)):
        problem = TreeProblem(torch.randn(B, n + 1, n + 1, device="cuda"), None, True)
        print(f"\n## B, n = {B, n}" + (", log space" if log else ""), flush=True)
        for tile, registers in itertools.product(TILES, REGISTERS):
            if tile[0] * 32 * registers > 65_536:
                continue
            backend.TILES[1024] = backend.LOG_TILES[1024] = tile
            backend.MOST_REGISTERS = registers
            backend._sums.cache_clear()
            backend._best.cache_clear()
            sums, best = milliseconds(problem, log)
            print(f"{tile}, {registers} registers: sums {sums:.3f}, best trees {best:.3f}", flush=True)


if __name__ == "__main__":
    main()
