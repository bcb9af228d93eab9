"""Small batches of chains for the tests of `crfkit.nn`, and what brute force says about each of their sequences."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from crfkit.nn import ChainDistribution
from tests.oracles.oracle import Bools, ChainOracle, Floats


@dataclass(frozen=True)
class ChainBatch:
    """Scores of B sequences; `mask` says which positions are theirs, `forbidden` which arcs do not exist."""

    emissions: Floats  # [B, T, L]
    transitions: Floats  # [L, L], [B, L, L] or [B, T − 1, L, L]
    start: Floats | None
    end: Floats | None
    mask: Bools | None
    allowed: Bools | None

    def tensors(self, dtype: torch.dtype = torch.float64, device: str = "cpu") -> dict[str, Any]:
        """The arguments of a distribution; scores ask for gradients."""

        def scores(values: Floats | None) -> torch.Tensor | None:
            if values is None:
                return None
            return torch.tensor(values, dtype=dtype, device=device).requires_grad_()

        def bools(values: Bools | None) -> torch.Tensor | None:
            return None if values is None else torch.tensor(values, device=device)

        return {
            "emissions": scores(self.emissions),
            "transitions": scores(self.transitions),
            "start": scores(self.start),
            "end": scores(self.end),
            "mask": bools(self.mask),
            "allowed": bools(self.allowed),
        }

    def distribution(self, dtype: torch.dtype = torch.float64) -> ChainDistribution:
        """The distribution, without gradients."""
        given = self.tensors(dtype)
        return ChainDistribution(**{k: v if v is None else v.detach() for k, v in given.items()})

    def positions(self, b: int) -> Any:
        """Where the positions of a sequence are."""
        T = self.emissions.shape[1]
        return np.arange(T) if self.mask is None else np.flatnonzero(self.mask[b])

    def oracle(self, b: int) -> ChainOracle:
        """Brute force over one sequence."""
        at = self.positions(b)
        arcs = self.transitions
        if arcs.ndim == 3:
            arcs = arcs[b]
        elif arcs.ndim == 4:
            arcs = arcs[b][at[1:] - 1]
        return ChainOracle(
            self.emissions[b][at],
            arcs,
            self.start,
            self.end,
            allowed=None if self.allowed is None else self.allowed[b][at],
            has_start=self.start is not None,
            has_end=self.end is not None,
        )


def batch(
    seed: int,
    *,
    shape: tuple[int, int, int] = (4, 4, 3),
    arcs: str = "shared",
    ends: bool = True,
    masked: bool = False,
    forbidden: bool = False,
    restricted: bool = False,
    spread: float = 1.5,
) -> ChainBatch:
    """A random batch; a masked one has a first token that is off, inner ones, and an empty sequence."""
    rng = np.random.default_rng(seed)
    B, T, L = shape
    sizes = {"shared": (L, L), "by sequence": (B, L, L), "by position": (B, T - 1, L, L)}
    transitions = spread * rng.standard_normal(sizes[arcs])
    if forbidden:
        transitions[..., 0, 1] = -np.inf
        transitions[..., 2, 2] = -np.inf
    mask = None
    if masked:
        mask = rng.random((B, T)) < 0.7
        mask[0], mask[1], mask[2] = True, False, True
        mask[2, 0] = mask[2, T // 2] = False
    allowed = None
    if restricted:
        allowed = rng.random((B, T, L)) < 0.6
        allowed[:, :, 0] = True
    return ChainBatch(
        spread * rng.standard_normal((B, T, L)),
        transitions,
        rng.standard_normal(L) if ends else None,
        rng.standard_normal(L) if ends else None,
        mask,
        allowed,
    )


KINDS: dict[str, dict[str, Any]] = {
    "plain": {},
    "no ends": {"ends": False},
    "masked": {"masked": True},
    "by sequence": {"arcs": "by sequence", "masked": True},
    "by position": {"arcs": "by position", "masked": True},
    "forbidden": {"forbidden": True, "masked": True},
    "forbidden by sequence": {"forbidden": True, "arcs": "by sequence"},
    "restricted": {"restricted": True, "masked": True},
    "far apart": {"spread": 60.0},
    "one position": {"shape": (3, 1, 4)},
    "one label": {"shape": (3, 3, 1)},
}
