"""Chains and trees on a GPU against the same questions in memory, in double precision.

`python -m tests.gpu_cases` asks them all, where neither pytest nor the native core need be.
"""

from __future__ import annotations

import itertools
from typing import Any

import torch

from crfkit.nn import ChainDistribution, TreeDistribution

SIZES = [(3, 1, 2), (4, 9, 9), (5, 13, 17), (3, 40, 64), (2, 7, 100), (3, 6, 200), (2, 20, 520)]  # B, T, L
MASKS = ("none", "ends", "any")
FORMS = ("plain", "no ends", "own arcs", "allowed", "bigrams", "never")
CASES = list(itertools.product(SIZES, MASKS, FORMS))
TOLERANCE = {torch.float32: 2e-4, torch.float64: 1e-9}  # of sums over a sequence, and of probabilities


def arguments(size: tuple[int, int, int], mask: str, form: str, seed: int = 0) -> dict[str, Any]:
    """The arguments of a distribution, in memory and in double precision."""
    B, T, L = size
    rng = torch.Generator().manual_seed(seed)

    def normal(*shape: int) -> torch.Tensor:
        return 2 * torch.randn(*shape, generator=rng, dtype=torch.float64)

    given: dict[str, Any] = {
        "emissions": normal(B, T, L),
        "transitions": normal(B, L, L) if form == "own arcs" else normal(L, L),
        "start": None if form == "no ends" else normal(L),
        "end": None if form == "no ends" else normal(L),
    }
    lengths = torch.randint(1, T + 1, (B,), generator=rng)
    if mask == "ends":
        given["mask"] = torch.arange(T) < lengths[:, None]
    elif mask == "any":
        given["mask"] = torch.rand(B, T, generator=rng) < 0.6
    if form == "allowed":
        allowed = torch.rand(B, T, L, generator=rng) < 0.5
        allowed[..., 0] = True
        given["allowed"] = allowed
    elif form == "bigrams":
        table = torch.rand(L, L, generator=rng) < 0.5
        table[0] = table[:, 0] = True
        given["bigrams"] = table
    elif form == "never":
        given["transitions"][torch.rand(L, L, generator=rng) < 0.3] = -torch.inf
        given["transitions"][:, 0] = given["transitions"][0, :] = 0.0
    return given


def answers(given: dict[str, Any], tags: torch.Tensor) -> dict[str, torch.Tensor]:
    """What is compared: sums, their gradients, probabilities, and the score of the best labelling."""
    leaves = {
        name: value.detach().requires_grad_()
        for name, value in given.items()
        if value is not None and value.is_floating_point()
    }
    distribution = ChainDistribution(**{**given, **leaves})
    log_z, log_p = distribution.log_partition(), distribution.log_prob(tags)
    gradients = torch.autograd.grad(log_z.sum() + 0.5 * log_p.sum(), list(leaves.values()))
    best = distribution.argmax()
    found = {"log Z": log_z, "log p": log_p, "marginals": distribution.marginals()}
    found["best"] = distribution.log_prob(best.where(best >= 0, -100), complete=False)
    found |= {f"gradient of {name}": g for name, g in zip(leaves, gradients, strict=True)}
    return {name: value.detach().double().cpu() for name, value in found.items()}


def check_chain(size: tuple[int, int, int], mask: str, form: str, dtype: torch.dtype = torch.float32) -> None:
    """One batch on both sides."""
    given = arguments(size, mask, form)
    tags = ChainDistribution(**given).sample(1)[0]
    tags = tags.where(tags >= 0, -100)
    expected = answers(given, tags)
    there = {
        name: value if value is None else value.to("cuda", dtype if value.is_floating_point() else None)
        for name, value in given.items()
    }
    found = answers(there, tags.to("cuda"))
    for name, value in expected.items():
        scale = TOLERANCE[dtype] * max(1.0, float(value.nan_to_num(0, 0, 0).abs().max()))
        torch.testing.assert_close(found[name], value, atol=scale, rtol=0, msg=lambda m, n=name: f"{n}: {m}")


def check_trees(B: int, n: int) -> None:
    """A batch of graphs on both sides."""
    rng = torch.Generator().manual_seed(n)
    scores = 3 * torch.randn(B, n + 1, n + 1, generator=rng, dtype=torch.float64)
    lengths = torch.randint(1, n + 1, (B,), generator=rng)
    sides = [TreeDistribution(scores.to(device), lengths=lengths.to(device)) for device in ("cpu", "cuda")]
    here, there = ([d.log_partition(), d.marginals(), d.argmax()] for d in sides)
    for a, b in zip(here, there, strict=True):
        torch.testing.assert_close(b.cpu().double(), a.double(), atol=1e-7, rtol=1e-9)


def main() -> None:
    """Ask all, and count what went wrong."""
    wrong = 0
    for dtype in TOLERANCE:
        for case in CASES:
            try:
                check_chain(*case, dtype)
            except Exception as error:  # all of them are to be seen
                wrong += 1
                print(*case, dtype, type(error).__name__, str(error)[:300].replace("\n", " "), flush=True)
    for B, n in ((2, 1), (4, 6), (16, 40)):
        check_trees(B, n)
    print(f"{2 * len(CASES) - wrong} of {2 * len(CASES)} chains are the same on both sides, and all trees")


if __name__ == "__main__":
    main()
