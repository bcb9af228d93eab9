"""Whether crfkit.nn on a device says what it says in float64 on a CPU: masks, constraints, kinds of arcs, precisions."""

from __future__ import annotations

import sys
from typing import Any

import torch

from crfkit.nn import ChainDistribution

KINDS: dict[str, dict[str, Any]] = {
    "plain": {},
    "lengths": {"lengths": True},
    "any mask": {"mask": True},
    "forbidden arcs": {"forbidden": True, "mask": True},
    "arcs far apart": {"spread": 30.0},
    "arcs of each sequence": {"own": True, "mask": True},
    "forbidden arcs of each sequence": {"own": True, "forbidden": True},
    "arcs of each position": {"by_position": True, "mask": True},
    "labels allowed": {"allowed": True, "lengths": True},
    "float64": {"dtype": torch.float64, "mask": True},
    "float64, forbidden arcs": {"dtype": torch.float64, "forbidden": True},
    "bfloat16": {"dtype": torch.bfloat16, "mask": True},
    "100 labels": {"n_labels": 100, "lengths": True},
    "300 labels": {"n_labels": 300, "mask": True},
}

LIMITS = {
    torch.float64: 1e-9,
    torch.float32: 2e-5,
    torch.bfloat16: 1e-2,
}  # gradients have the precision of the scores


def agreement(device: str) -> None:
    """Print the largest error of every kind; end the program where one is too large."""
    for seed, (name, kind) in enumerate(KINDS.items()):
        errors = _errors(seed, device, **kind)
        limit = LIMITS[kind.get("dtype", torch.float32)]
        print(f"agreement, {name}: " + ", ".join(f"{what} {error:.1e}" for what, error in errors.items()))
        if not all(error < limit for error in errors.values()):
            sys.exit(f"{name}: an error is larger than {limit}.")


def _errors(
    seed: int,
    device: str,
    *,
    n_labels: int = 11,
    dtype: torch.dtype = torch.float32,
    lengths: bool = False,
    mask: bool = False,
    forbidden: bool = False,
    own: bool = False,
    by_position: bool = False,
    allowed: bool = False,
    spread: float = 1.0,
) -> dict[str, float]:
    """The largest errors of values, gradients and scores of best label sequences of one random batch."""
    rng = torch.Generator().manual_seed(seed)
    B, T, L = 5, 37, n_labels
    shape = (B, T - 1, L, L) if by_position else (B, L, L) if own else (L, L)
    scores = [torch.randn(s, generator=rng) for s in ((B, T, L), shape, (L,), (L,))]
    scores[1] *= spread
    if forbidden:
        scores[1][..., 0, 1:4] = -torch.inf
    scores = [part.to(dtype) for part in scores]
    places: dict[str, Any] = {}
    if lengths:
        places["lengths"] = torch.tensor([37, 1, 0, 20, 36])
    if mask:
        places["mask"] = torch.rand(B, T, generator=rng) < 0.7
        places["mask"][1] = False
    if allowed:
        places["allowed"] = torch.rand(B, T, L, generator=rng) < 0.7
        places["allowed"][:, :, 5] = True
    tags = torch.randint(4, min(L, 11), (B, T), generator=rng)
    if allowed:
        tags[:] = 5
    weights = torch.rand(B, generator=rng) + 0.5
    found = _answers(scores, places, tags, weights, device, dtype)
    exact = _answers(scores, places, tags, weights, "cpu", torch.float64)
    return {what: max(_error(a, b) for a, b in zip(found[what], exact[what], strict=True)) for what in exact}


def _error(found: Any, exact: Any) -> float:
    """The largest difference, relative to numbers above 1."""
    return float(
        ((found.detach().double().cpu() - exact.detach()).abs() / exact.detach().abs().clamp_min(1.0)).max()
    )


def _answers(
    scores: list[Any], places: dict[str, Any], tags: Any, weights: Any, device: str, dtype: torch.dtype
) -> dict[str, list[Any]]:
    """Values, gradients of a weighted sum, and scores of the best label sequences."""
    given = [part.to(device, dtype).requires_grad_() for part in scores]
    chains = ChainDistribution(*given, **{name: part.to(device) for name, part in places.items()})
    values = [chains.log_partition(), chains.log_prob(tags.to(device))]
    total = ((values[0] + values[1]) * weights.to(device)).sum()
    gradients = torch.autograd.grad(total, given)
    exact = ChainDistribution(*(part.double() for part in scores), **places)
    best = exact.score(chains.argmax().cpu().clamp_min(0))
    return {"values": values, "gradients": list(gradients), "best": [best]}
