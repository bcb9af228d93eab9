"""The Triton kernels of semi-Markov chains on a CPU: run by `test_triton.py` in a process of its own.

Everything that the kernels answer is compared with plain PyTorch in float64, which brute force has checked.
"""

import itertools
import sys
from collections.abc import Callable
from typing import Any

import torch

from crfkit.nn import SegmentDistribution
from crfkit.nn.backends.segments import TORCH
from crfkit.nn.problem.segments import N_SCORES, SegmentProblem, inside, segmentation_score
from crfkit.nn.triton.segments import backend as kernels

KERNELS = kernels.SegmentKernels()
NAMES = SegmentProblem._fields
Ask = Callable[[Any], Any]


def problem(
    seed: int,
    shape: tuple[int, int, int, int],
    *,
    ends: bool = True,
    edges: str = "",
    whole: bool = False,
    lengths: list[int] | None = None,
    own_transitions: bool = False,
    forbidden: bool = False,
    spread: float = 1.0,
    dtype: torch.dtype = torch.float32,
) -> SegmentProblem:
    """A random batch."""
    rng = torch.Generator().manual_seed(seed)
    B, T, K, L = shape

    def normal(*size: int, given: bool = True) -> Any:
        return (spread * torch.randn(*size, generator=rng)).to(dtype) if given else None

    found = SegmentProblem(
        normal(B, T, L),
        normal(K, L),
        normal(*([B] if own_transitions else []), L, L),
        normal(L, given=ends),
        normal(L, given=ends),
        normal(B, T, L, given="first" in edges),
        normal(B, T, L, given="last" in edges),
        normal(B, T, K, L, given=whole),
        None if lengths is None else torch.tensor(lengths),
    )
    if forbidden:
        found.transitions[..., range(L), range(L)] = -torch.inf
        found.durations[1:, 0] = -torch.inf
        found.durations[0, 1] = -torch.inf
        found.emissions[0, 1, 2:] = -torch.inf
    return found


CASES: dict[str, dict[str, Any]] = {
    "plain": {"shape": (2, 9, 4, 5)},
    "lengths, no ends": {"shape": (4, 7, 3, 2), "lengths": [7, 0, 1, 5], "ends": False},
    "one position": {"shape": (2, 1, 3, 3)},
    "length one": {"shape": (2, 6, 1, 4)},
    "longer than the sequence": {"shape": (2, 5, 20, 3)},
    "chunks": {"shape": (2, 23, 11, 3), "lengths": [23, 17]},
    "first": {"shape": (2, 9, 4, 3), "edges": "first"},
    "last": {"shape": (2, 9, 4, 3), "edges": "last", "lengths": [4, 9]},
    "whole segments": {"shape": (2, 11, 5, 3), "edges": "first, last", "whole": True, "lengths": [11, 6]},
    "own transitions": {"shape": (3, 8, 3, 4), "own_transitions": True},
    "forbidden": {"shape": (2, 12, 4, 4), "forbidden": True},
    "far apart": {"shape": (2, 12, 4, 4), "spread": 60.0},
    "far apart, forbidden": {"shape": (2, 12, 4, 4), "spread": 40.0, "forbidden": True},
    "half precision": {"shape": (2, 9, 4, 5), "dtype": torch.bfloat16},
    "double precision": {"shape": (2, 12, 4, 5), "dtype": torch.float64, "edges": "first, last"},
    "17 labels": {"shape": (1, 5, 3, 17)},
}
TOLERANCE = {torch.float32: 2e-5, torch.bfloat16: 1e-2, torch.float64: 1e-9}


def check(name: str, given: SegmentProblem) -> None:
    """Value and gradient of one problem, twice with the same bits."""
    exact = SegmentProblem._make(
        [part if part is None else part.double() for part in given[:N_SCORES]] + [given.lengths]
    )
    upstream = torch.linspace(0.5, 2.0, len(given.emissions))
    value, kept = TORCH.value(exact, True)
    expected = TORCH.gradient(exact, upstream.double(), kept)
    tolerance = TOLERANCE[given.emissions.dtype]
    if float(given.durations[given.durations.isfinite()].abs().max()) > 20:
        tolerance *= 100  # logarithms of 1,000 have four digits after the point
    found, kept = KERNELS.value(given, True)
    alone, _ = KERNELS.value(given, False)
    close(f"{name}: log Z", found, value, tolerance)
    if not torch.equal(found, alone):
        sys.exit(f"{name}: log Z alone has other bits")
    best, score = KERNELS.argmax(given), segmentation_score(exact, TORCH.argmax(exact))
    close(f"{name}: score of the best", segmentation_score(exact, best), score, tolerance)
    if not torch.equal(best >= 0, inside(given) & (value > -torch.inf)[:, None]):
        sys.exit(f"{name}: tags of the best segmentation")
    for one, other in zip(KERNELS.summed(given)[1:], TORCH.summed(given)[1:], strict=True):
        exists = inside(given).reshape(one.shape[0], -1, *[1] * (one.ndim - 2)) if one.ndim > 1 else None
        one, other = (x if exists is None else torch.where(exists, x, 0.0) for x in (one, other))
        close(f"{name}: messages in float64", one, other, 1e-9)
    parts = KERNELS.gradient(given, upstream.to(found.dtype), kept)
    again = KERNELS.gradient(given, upstream.to(found.dtype), kept)
    for field, part, same, right in zip(NAMES, parts, again, expected, strict=False):
        if right is None:
            if part is not None:
                sys.exit(f"{name}: {field} is absent, but has a gradient")
            continue
        assert part is not None and same is not None  # noqa: PT018
        close(f"{name}: gradient of {field}", part, right, tolerance)
        if not torch.equal(part, same):
            sys.exit(f"{name}: the gradient of {field} has other bits the second time")


def close(what: str, found: torch.Tensor, expected: torch.Tensor, tolerance: float) -> None:
    """Say what is not close, and stop."""
    scale = tolerance * expected.abs().clamp(1.0, 1e6)
    same = (found == expected) | ((found.double() - expected).abs() <= scale)
    if found.shape != expected.shape or not bool(same.all()):
        error = (
            (found.double() - expected).abs().max().item() if found.shape == expected.shape else "its shape"
        )
        sys.exit(f"{what}: off by {error}")


def check_autograd() -> None:
    """Gradients that the forward pass computed, and those for other upstream gradients, also of a retained graph."""
    leaves = [part.requires_grad_() for part in problem(2, (3, 9, 4, 3))[:5] if part is not None]
    exact = [part.detach().double().requires_grad_() for part in leaves]
    chains, right = SegmentDistribution(*leaves), SegmentDistribution(*exact)
    chains._choice = KERNELS
    tags = right.sample(1, generator=torch.Generator().manual_seed(0))[0]
    weights = torch.tensor([0.5, 3.0, -1.0])
    questions: dict[str, Ask] = {
        "log Z": lambda one: one.log_partition(),
        "log p": lambda one: one.log_prob(tags),
    }
    losses: dict[str, Ask] = {
        "sum": lambda x: -2 * x.sum(),
        "weighted": lambda x: (x * weights).sum(),
        "mean": lambda x: x.mean(),
    }
    for (what, ask), (name, loss) in itertools.product(questions.items(), losses.items()):
        value, expected = loss(ask(chains)), loss(ask(right))
        close(f"{what}, {name}", value, expected, 1e-5)
        theirs = torch.autograd.grad(expected, exact)
        for turn in range(2):
            mine = torch.autograd.grad(value, leaves, retain_graph=True)
            for i, (a, b) in enumerate(zip(mine, theirs, strict=True)):
                close(f"{what}, {name}: gradient {i}, turn {turn}", a, b, 2e-5)
    value, found = chains.value_and_gradient(tags)
    expected, gradient = right.value_and_gradient(tags)
    close("value_and_gradient", value, expected, 1e-5)
    for a, b in zip(found[:5], gradient[:5], strict=True):
        assert a is not None
        assert b is not None
        close("value_and_gradient: gradient", a, b, 2e-5)


def main() -> None:
    """All cases: in chunks of 8 positions, so that there are several; sums by one chunk, and by two."""
    kernels.CHUNK = 8
    for name, options in CASES.items():
        check(name, problem(len(name), **options))
    check_autograd()
    kernels.MOST_SUMS = 1
    check("chunks in turns", problem(3, **CASES["chunks"]))
    given = problem(5, (3, 6, 3, 2))
    given.emissions[1, 2, 1] = torch.nan
    value, kept = KERNELS.value(given, True)
    emissions = KERNELS.gradient(given, torch.ones(3), kept)[0]
    assert emissions is not None
    if value.isnan().tolist() != [False, True, False] or not bool(emissions[1].isnan().any()):
        sys.exit("a score that is no number is not seen")
    impossible = given._replace(emissions=torch.zeros(3, 6, 2), durations=torch.full((3, 2), -torch.inf))
    value, kept = KERNELS.value(impossible, True)
    found = KERNELS.gradient(impossible, torch.ones(3), kept)
    if not bool(value.isneginf().all()) or any(
        part is not None and bool((part != 0).any()) for part in found
    ):
        sys.exit("no segmentation is possible, but it has a gradient")
    if not bool((KERNELS.argmax(impossible) == -1).all()):
        sys.exit("no segmentation is possible, but there is a best one")
    print("all kernels agree")


if __name__ == "__main__":
    main()
