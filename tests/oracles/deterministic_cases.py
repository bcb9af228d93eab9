"""All answers of chains and trees with their gradients, to be had twice with the same bits.

`python -m tests.oracles.deterministic_cases` asks them on a GPU, where pytest need not be.
"""

from __future__ import annotations

from typing import Any

import torch

from crfkit.nn import ChainDistribution, TreeDistribution

FORMS = ("plain", "mask", "lengths", "bigrams", "own arcs", "by position", "wide")


def chain(form: str, device: str) -> tuple[ChainDistribution, list[torch.Tensor], torch.Tensor]:
    """A distribution, its scores, and tags."""
    rng = torch.Generator().manual_seed(len(form))
    B, T, L = (2, 4, 200) if form == "wide" else (3, 7, 5)
    shapes = {"own arcs": (B, L, L), "by position": (B, T - 1, L, L)}
    scores = [
        torch.randn(*shape, generator=rng).to(device).requires_grad_()
        for shape in ((B, T, L), shapes.get(form, (L, L)), (L,), (L,))
    ]
    given: dict[str, Any] = {}
    if form in ("mask", "by position"):
        given["mask"] = (torch.rand(B, T, generator=rng) < 0.7).to(device)
    elif form == "lengths":
        given["lengths"] = torch.tensor([7, 0, 3], device=device)
    elif form == "bigrams":
        table = torch.rand(L, L, generator=rng) < 0.6
        table[:, 0] = table[0] = True
        given["bigrams"] = table.to(device)
    return ChainDistribution(*scores, **given), scores, torch.zeros(B, T, dtype=torch.int64, device=device)


def answers(device: str) -> dict[str, torch.Tensor]:
    """Every answer and its gradient, by name."""
    found: dict[str, torch.Tensor] = {}
    for form in FORMS:
        distribution, scores, tags = chain(form, device)
        unknown = torch.where(torch.arange(tags.shape[1], device=device) == 1, -100, tags)
        values = {
            "log Z": distribution.log_partition(),
            "log p": distribution.log_prob(tags),
            "log p of some": distribution.log_prob(unknown),
            "marginals": distribution.marginals().square(),
            "transition marginals": distribution.transition_marginals().square(),
            "entropy": distribution.entropy(),
        }
        for name, value in values.items():
            gradients = torch.autograd.grad(value.sum(), scores, retain_graph=True)
            found |= {f"{form}, {name}, {k}": g for k, g in enumerate((value.detach(), *gradients))}
        found[f"{form}, best"] = distribution.argmax()
        found[f"{form}, 3 best"] = distribution.topk(3)[1]
    rng = torch.Generator().manual_seed(0)
    arcs = torch.randn(3, 8, 8, generator=rng).to(device).requires_grad_()
    trees = TreeDistribution(arcs, lengths=torch.tensor([7, 3, 1], device=device))
    heads = trees.argmax()
    for name, value in (
        ("log Z", trees.log_partition()),
        ("log p", trees.log_prob(heads)),
        ("entropy", trees.entropy()),
    ):
        found |= {
            f"trees, {name}": value.detach(),
            f"trees, {name}, gradient": torch.autograd.grad(value.sum(), arcs)[0],
        }
    return found


def main() -> None:
    """On a GPU: twice the same bits."""
    torch.use_deterministic_algorithms(True)
    first, again = answers("cuda"), answers("cuda")
    different = [name for name, value in first.items() if not torch.equal(value, again[name])]
    print(f"{len(first) - len(different)} of {len(first)} answers have the same bits twice {different}")


if __name__ == "__main__":
    main()
