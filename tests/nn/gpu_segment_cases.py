"""Semi-Markov chains on a GPU against the same questions in memory, in double precision.

`python -m tests.nn.gpu_segment_cases` asks them all, where neither pytest nor the native core need be.
"""

import itertools
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any

import torch

from crfkit.nn import SegmentDistribution
from tests.nn.gpu_cases import PROCESSES, failures

SIZES = [
    (3, 1, 2, 2),
    (4, 9, 4, 9),
    (5, 70, 3, 17),
    (2, 150, 70, 24),
    (2, 300, 260, 5),
    (3, 40, 8, 64),
    (2, 20, 5, 128),
]
FORMS = ("plain", "lengths", "mask", "edges", "whole", "own transitions", "never", "far apart")
CASES = list(itertools.product(SIZES, FORMS))
TOLERANCE = {torch.float32: 1e-4, torch.float64: 1e-9}


def arguments(size: tuple[int, int, int, int], form: str, seed: int = 0) -> dict[str, Any]:
    """The arguments of a distribution, in memory and in double precision."""
    B, T, K, L = size
    rng = torch.Generator().manual_seed(seed)
    spread = 30.0 if form == "far apart" else 2.0

    def normal(*shape: int) -> torch.Tensor:
        return (spread * torch.randn(*shape, generator=rng)).double()

    given: dict[str, Any] = {"emissions": normal(B, T, L), "durations": normal(K, L)}
    given["transitions"] = normal(*([B] if form == "own transitions" else []), L, L)
    given |= {"start": normal(L), "end": normal(L)}
    if form == "lengths":
        given["lengths"] = torch.randint(0, T + 1, (B,), generator=rng)
    elif form == "mask":
        given["mask"] = torch.rand(B, T, generator=rng) < 0.7
    if form in ("edges", "whole"):
        given["first"] = normal(B, T, L)
    if form == "edges":
        given["last"] = normal(B, T, L)
    elif form == "whole":
        given["segments"] = normal(B, T, K, L)
    elif form == "never":
        given["transitions"][range(L), range(L)] = -torch.inf
        given["durations"][1:, 0] = -torch.inf
    return given


def answers(given: dict[str, Any]) -> dict[str, torch.Tensor]:
    """log Z, its gradients, twice, and the score of the best segmentation."""
    leaves = {
        name: part.detach().requires_grad_() for name, part in given.items() if part.is_floating_point()
    }
    chains = SegmentDistribution(**{**given, **leaves})
    log_z = chains.log_partition()
    weights = torch.linspace(0.5, 2.0, len(log_z), device=log_z.device, dtype=log_z.dtype)
    found = {"log Z": log_z, "best": chains.score(chains.argmax())}
    for turn in ("gradient", "again"):
        gradients = torch.autograd.grad((log_z * weights).sum(), list(leaves.values()), retain_graph=True)
        found |= {f"{turn} of {name}": part for name, part in zip(leaves, gradients, strict=True)}
    with torch.no_grad():
        found["alone"], found["marginals"] = chains.log_partition(), chains.marginals()
    return {name: part.detach().cpu() for name, part in found.items()}


def check_segments(size: tuple[int, int, int, int], form: str, dtype: torch.dtype) -> None:
    """One batch on both sides."""
    given = arguments(size, form)
    expected = answers(given)
    there = {
        name: part.to("cuda", dtype if part.is_floating_point() else None) for name, part in given.items()
    }
    found = answers(there)
    for name, value in expected.items():
        scale = TOLERANCE[dtype] * max(1.0, float(value.nan_to_num(0, 0, 0).abs().max()))
        scale *= 100.0 if form == "far apart" else 1.0
        torch.testing.assert_close(
            found[name].double(), value, atol=scale, rtol=0, msg=lambda m, n=name: f"{n}: {m}"
        )
        if name.startswith("again"):
            assert torch.equal(found[name], found[name.replace("again", "gradient")]), f"{name}: other bits"


def main() -> None:
    """Ask all, and count what went wrong."""
    cases = [(size, form, dtype) for dtype in TOLERANCE for size, form in CASES]
    parts = [[(check_segments, case) for case in cases[first::PROCESSES]] for first in range(PROCESSES)]
    with ProcessPoolExecutor(
        PROCESSES, mp_context=get_context("spawn"), initializer=torch.set_num_threads, initargs=(1,)
    ) as pool:
        wrong = [failure for found in pool.map(failures, parts) for failure in found]
    print(*wrong, f"{len(cases) - len(wrong)} of {len(cases)} cases are the same on both sides", sep="\n")


if __name__ == "__main__":
    main()
