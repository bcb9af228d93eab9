"""Chains with many labels and few bigrams: lists of them, all pairs, and pytorch-crf with −10,000 for what is not there."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import torch

from crfkit.nn import ChainCRF, ChainDistribution

Step = Callable[[], Any]
FORBIDDEN = -1e4  # of an arc in pytorch-crf


def uneven_bigrams(n_labels: int, n_bigrams: int) -> torch.Tensor:
    """Random bools [L, L], frequent labels having more neighbours than rare ones, every label itself at least."""
    rng = torch.Generator().manual_seed(0)
    share = torch.arange(1, n_labels + 1) ** -0.7
    share = share[torch.randperm(n_labels, generator=rng)]
    pairs = (share[:, None] * share).flatten()
    table = torch.eye(n_labels, dtype=torch.bool)
    chosen = torch.multinomial(pairs, max(n_bigrams - n_labels, 1), generator=rng)
    table.view(-1)[chosen] = True
    return table


def bigram_steps(
    size: tuple[int, int, int], n_bigrams: int, device: str
) -> tuple[dict[str, Step], dict[str, Step], ChainCRF, Any, bool]:
    """Loss and gradient, and best label sequence, of each way; the layer, its emissions, and whether lists were used."""
    B, T, L = size
    layer = ChainCRF(L, bigrams=uneven_bigrams(L, n_bigrams), device=device)
    pairs = ChainCRF(L, device=device)
    pairs.load_state_dict(layer.state_dict())
    with torch.no_grad():
        pairs.transitions.masked_fill_(~layer.bigrams[:-1, :-1], -torch.inf)
    emissions = torch.randn(B, T, L, device=device, requires_grad=True)
    tags = layer.distribution(emissions).sample()[0]

    def training(model: Any, **options: Any) -> Step:
        def step() -> None:
            emissions.grad = None
            model.zero_grad()
            model(emissions, tags, **options).backward()

        return step

    losses = {"crfkit": training(layer, complete=True), "crfkit, all pairs": training(pairs, complete=True)}
    bests = {"crfkit": lambda: layer.decode(emissions), "crfkit, all pairs": lambda: pairs.decode(emissions)}
    if find_spec("torchcrf"):
        import torchcrf

        rival = torchcrf.CRF(L, batch_first=True).to(device)
        rival.load_state_dict(layer.state_dict())
        with torch.no_grad():
            rival.transitions.masked_fill_(~layer.bigrams[:-1, :-1], FORBIDDEN)
        losses["pytorch-crf"], bests["pytorch-crf"] = training(rival), lambda: rival.decode(emissions)
    listed = layer.distribution(emissions)._chosen[0].name == "sparse"
    return losses, bests, layer, emissions, listed


def bigram_errors(size: tuple[int, int, int], n_bigrams: int, device: str) -> str:
    """log Z and marginals of scores of spread 3 against float64."""
    _, T, L = size
    layer = ChainCRF(L, bigrams=uneven_bigrams(L, n_bigrams), device=device)
    emissions = 3 * torch.randn(2, T, L, device=device)
    with torch.no_grad():
        layer.transitions.normal_()
        found = layer.distribution(emissions)
        exact = ChainDistribution(
            *(None if part is None else part.double().cpu() for part in found._problem[:4])
        )
        log_z = exact.log_partition()
        relative = ((found.log_partition().cpu() - log_z) / log_z).abs().max()
        absolute = (found.marginals().cpu() - exact.marginals()).abs().max()
    return f"errors against float64: log Z {relative:.1e} (relative), marginals {absolute:.1e}"
