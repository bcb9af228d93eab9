"""Projective trees on a GPU against plain PyTorch in memory, in double precision.

`python -m tests.nn.gpu_projective_cases` asks them all.
"""

import itertools
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any

import torch

from crfkit.nn import ProjectiveTreeDistribution
from crfkit.nn.backends.torch_projective import EISNER
from crfkit.nn.backends.tree import scores_of
from crfkit.nn.problem.tree import TreeProblem
from tests.nn.gpu_cases import failures

SIZES = [
    # sentences, words, spread of the scores, share of arcs that do not exist
    (2, 1, 3.0, 0.0),
    (6, 6, 3.0, 0.4),
    (5, 9, 1000.0, 0.3),  # log space
    (4, 12, 60.0, 0.0),
    (3, 31, 3.0, 0.0),  # as many nodes as a tile has columns
    (3, 32, 3.0, 0.0),
    (16, 40, 3.0, 0.2),
    (8, 64, 10.0, 0.0),
    (300, 20, 1.0, 0.0),  # more programs than multiprocessors
    (6, 100, 1.0, 0.0),
    (3, 100, 20.0, 0.8),
    (2, 210, 1.0, 0.0),  # the probability of a tree of independent heads is below exp(−600)
]
CASES = list(itertools.product(SIZES, (True, False)))
TOLERANCE = {torch.float32: (1e-6, 1e-5), torch.float64: (1e-12, 1e-9)}  # log Z, relative; probabilities
MOST_DRAWN = 12  # words up to which samples, k-best trees and second derivatives are asked for
PROCESSES = 8


def batch(size: tuple[int, int, float, float]) -> tuple[torch.Tensor, torch.Tensor]:
    """Scores and lengths in memory; in a large batch one score is not a number."""
    B, n, spread, holes = size
    rng = torch.Generator().manual_seed(n)
    scores = spread * torch.randn(B, n + 1, n + 1, generator=rng)
    scores[torch.rand(scores.shape, generator=rng) < holes] = -torch.inf
    lengths = torch.randint(0, n + 1, (B,), generator=rng)
    lengths[0] = n
    if B > 4:
        lengths[4] = n
        scores[4, 1, 2] = torch.nan
    return scores, lengths


def close(name: str, found: Any, exact: Any, relative: float, absolute: float) -> None:
    """Raise an error where numbers differ; NaN and −inf have to be in the same places."""
    torch.testing.assert_close(
        found.detach().cpu().double(), exact.double(), rtol=relative, atol=absolute, equal_nan=True,
        msg=lambda text: f"{name}: {text}",
    )  # fmt: skip


def check_projective(size: tuple[int, int, float, float], single_root: bool, dtype: torch.dtype) -> None:
    """A batch of sentences on a GPU: sums, gradients, probabilities and best trees, with the same bits when asked again."""
    scores, lengths = batch(size)
    here = TreeProblem(scores.double(), lengths, single_root)
    log_z, marginals = EISNER.marginals(here)
    possible = torch.isfinite(log_z)
    weights = torch.linspace(1.0, 2.0, len(scores), dtype=dtype)
    leaf = scores.to("cuda", dtype).requires_grad_()
    there = ProjectiveTreeDistribution(leaf, lengths=lengths.to("cuda"), single_root=single_root)
    assert there._backend.name == "triton"

    def ask() -> list[torch.Tensor]:
        value = there.log_partition()
        chosen = value[possible.to("cuda")] * weights[possible].to("cuda")
        [gradient] = torch.autograd.grad(chosen.sum(), [leaf])
        with torch.no_grad():
            return [value.detach(), gradient, there.log_partition(), there.marginals(), there.argmax()]

    found = ask()
    for mine, again in zip(found, ask(), strict=True):
        assert torch.equal(mine.nan_to_num(7.0), again.nan_to_num(7.0)), "other bits when asked again"
    relative, absolute = TOLERANCE[dtype]
    close("log Z", found[0], log_z, relative, relative)
    close("log Z alone", found[2], log_z, relative, relative)
    close("P", found[3], marginals, 0.0, absolute)
    upstream = torch.where(possible, weights.double(), 0.0)[:, None, None]
    close("gradient", found[1][possible.to("cuda")], (upstream * marginals)[possible], 0.0, 2 * absolute)
    best = found[4].cpu()
    inside = torch.arange(best.shape[1]) < lengths[:, None]
    assert bool(((best >= 0) == (inside & possible[:, None])).all()), "best: which words have heads"
    top, mine = (scores_of(here, y[:, None])[possible] for y in (EISNER.argmax(here), best))
    close("best", mine, top, 1e-12, 1e-12)
    forced = torch.arange(size[1] + 1)[:, None] == torch.nn.functional.pad(best, (1, 0), value=-1)[:, None]
    whole = EISNER.log_partition(here._replace(scores=here.scores.masked_fill(~forced, -torch.inf)))
    close("best: no projective tree", whole[possible], mine[:, 0], 1e-9, 1e-9)
    if size[1] <= MOST_DRAWN and dtype == torch.float64:
        check_others(scores, lengths, single_root, possible)


def check_others(scores: Any, lengths: Any, single_root: bool, possible: Any) -> None:
    """k-best trees, samples, entropy and its gradient, also with scores of siblings, on both sides."""
    rng = torch.Generator().manual_seed(1)
    scores, lengths = scores[possible].double(), lengths[possible]
    siblings = torch.randn(*scores.shape, scores.shape[1], generator=rng, dtype=torch.float64)
    for pairs in (None, siblings):
        found = []
        for device in ("cpu", "cuda"):
            leaf = scores.to(device).requires_grad_()
            trees = ProjectiveTreeDistribution(
                leaf,
                siblings=None if pairs is None else pairs.to(device),
                lengths=lengths.to(device),
                single_root=single_root,
            )
            entropy = trees.entropy()
            [gradient] = torch.autograd.grad(entropy.sum(), [leaf])
            drawn = trees.sample(2)
            assert bool(((drawn >= 0) == (trees.argmax() >= 0)).all()), "sample"
            assert bool(torch.isfinite(trees.log_prob(drawn[0])).all()), "sample: no projective tree"
            found.append([entropy, gradient, trees.topk(3)[0], trees.sibling_marginals()])
        for name, here, there in zip(("entropy", "its gradient", "k best", "siblings"), *found, strict=True):
            close(name, there, here.detach(), 1e-9, 1e-9)


def main() -> None:
    """Ask all, in several processes as compiling takes most of the time, and count what went wrong."""
    cases = [(size, single_root, dtype) for dtype in TOLERANCE for size, single_root in CASES]
    parts = [[(check_projective, case) for case in cases[first::PROCESSES]] for first in range(PROCESSES)]
    with ProcessPoolExecutor(
        PROCESSES, mp_context=get_context("spawn"), initializer=torch.set_num_threads, initargs=(1,)
    ) as pool:
        wrong = [failure for found in pool.map(failures, parts) for failure in found]
    print(*wrong, f"{len(cases) - len(wrong)} of {len(cases)} cases are the same on both sides", sep="\n")


if __name__ == "__main__":
    main()
