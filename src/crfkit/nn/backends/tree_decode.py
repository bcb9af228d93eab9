"""Trees themselves: the best one, the k best, and samples, on whichever device the scores are."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import torch
from torch import Tensor

from crfkit.nn.backends.chu_liu_edmonds import best_tree
from crfkit.nn.backends.core import core_is_there
from crfkit.nn.backends.decode import NOTHING
from crfkit.nn.backends.torch_tree import kernels_for, marginals, tree_batch
from crfkit.nn.problem.tree import TreeProblem, arcs_of, word_counts

MOST_AT_ONCE = 2**27  # scores of the sets of trees that are searched together


def best(problem: TreeProblem) -> Tensor:
    """The heads of the best tree [B, n]; −1 for words that are none, and where no tree exists."""
    if torch.compiler.is_compiling():  # as for the sums
        return torch.compiler.disable(best)(problem)
    with torch.no_grad():
        if kernels := kernels_for(problem):
            return kernels.best(problem)
        B, size = problem.scores.shape[:2]
        heads = torch.full((B, size - 1), NOTHING, dtype=torch.int64)
        for b, found in enumerate(_best_in_memory(problem)):
            if found is not None:
                heads[b, : len(found)] = torch.from_numpy(found)
        return heads.to(problem.scores.device)


def _best_in_memory(problem: TreeProblem) -> list[Any]:
    """The heads of the best tree of each sentence as arrays, None where there is none."""
    if core_is_there():
        with suppress(ValueError):  # some sentence has no tree
            return [best.output for best in tree_batch(problem).decode()]
    scores = problem.scores.detach().double().cpu().numpy()
    lengths = word_counts(problem).tolist()
    return [best_tree(scores[b, : n + 1, : n + 1], problem.single_root) for b, n in enumerate(lengths)]


def k_best(problem: TreeProblem, k: int) -> tuple[Tensor, Tensor]:
    """The scores [B, k] in float64 and the heads [B, k, n] of the k best trees; −inf and −1 where fewer exist."""
    with torch.no_grad():
        if problem.scores.device.type == "cpu" and core_is_there():
            return _k_best_by_core(problem, k)
        size = problem.scores.shape[1]
        scores = problem.scores.double().masked_fill(~arcs_of(problem), -torch.inf)
        step = max(1, MOST_AT_ONCE // size**3)  # sentences at once
        parts = [
            _k_best(TreeProblem(some, lengths, problem.single_root), k)
            for some, lengths in zip(scores.split(step), word_counts(problem).split(step), strict=True)
        ]
        return torch.cat([values for values, _ in parts]), torch.cat([heads for _, heads in parts])


def _k_best_by_core(problem: TreeProblem, k: int) -> tuple[Tensor, Tensor]:
    B, size = problem.scores.shape[:2]
    scores = torch.full((B, k), -torch.inf, dtype=torch.float64)
    heads = torch.full((B, k, size - 1), NOTHING, dtype=torch.int64)
    for b, trees in enumerate(tree_batch(problem).k_best(k)):
        for i, tree in enumerate(trees):
            scores[b, i] = tree.score
            heads[b, i, : len(tree.output)] = torch.from_numpy(tree.output)
    return scores, heads


def _k_best(problem: TreeProblem, k: int) -> tuple[Tensor, Tensor]:
    """Lawler (1972): the trees but the best one y of a set are split by the first word whose head is not that of y.

    The pool holds sets of trees that share none, each with its best: scores [B, P], heads [B, P, n], the arcs that a set
    allows [B, P, n + 1, n + 1], and the number of words whose heads it has fixed [B, P].
    """
    heads = best(problem)[:, None]
    pool = [
        scores_of(problem, heads),
        heads,
        arcs_of(problem)[:, None],
        torch.zeros_like(heads[:, :, :0].sum(2)),
    ]
    found: list[tuple[Tensor, Tensor]] = []
    sentence = torch.arange(len(heads), device=heads.device)
    for _ in range(k):
        at = pool[0].argmax(1)
        score, y, arcs, fixed = (part[sentence, at] for part in pool)
        found.append((score, y.masked_fill((score == -torch.inf)[:, None], NOTHING)))
        pool[0][sentence, at] = -torch.inf
        parts = _split(problem, y, arcs & (score > -torch.inf)[:, None, None], fixed)
        pool = [torch.cat([old, new], dim=1) for old, new in zip(pool, parts, strict=True)]
        # no more than k of them are ever wanted
        order = pool[0].topk(min(k, pool[0].shape[1]), dim=1).indices
        pool = [part[sentence[:, None], order] for part in pool]
    return torch.stack([score for score, _ in found], 1), torch.stack([y for _, y in found], 1)


def _split(problem: TreeProblem, y: Tensor, arcs: Tensor, fixed: Tensor) -> list[Tensor]:
    """The sets of trees that agree with y [B, n] on the words before m, and not on m; for every m, as a pool."""
    B, n = y.shape
    word = torch.arange(n, device=y.device)
    chosen = (
        torch.arange(n + 1, device=y.device)[:, None]
        == torch.nn.functional.pad(y, (1, 0), value=NOTHING)[:, None]
    )
    before, itself = word[None, :] < word[:, None], word[None, :] == word[:, None]  # [m, words]
    before, itself = (torch.nn.functional.pad(part, (1, 0))[None, :, None] for part in (before, itself))
    chosen = chosen[:, None]  # [B, 1, n + 1, n + 1]
    within = arcs[:, None] & torch.where(before, chosen, ~(itself & chosen))  # [B, m, n + 1, n + 1]
    open_words = (word >= fixed[:, None]) & (word < word_counts(problem)[:, None])
    within &= open_words[:, :, None, None]
    scores = problem.scores[:, None].masked_fill(~within, -torch.inf)
    lengths = word_counts(problem).repeat_interleave(n)
    heads = best(TreeProblem(scores.flatten(0, 1), lengths, problem.single_root)).reshape(B, n, n)
    values = scores_of(problem, heads).masked_fill(~open_words, -torch.inf)
    return [values, heads, within, word.expand(B, n)]


def scores_of(problem: TreeProblem, heads: Tensor) -> Tensor:
    """The scores [B, P] of trees [B, P, n]; −inf where there is none, 0 for an empty sentence."""
    n = heads.shape[2]
    inside = torch.arange(n, device=heads.device) < word_counts(problem)[:, None]  # [B, n]
    by_word = problem.scores.mT[:, None, 1:].expand(-1, heads.shape[1], -1, -1)  # [B, P, n, n + 1]
    arcs = by_word.gather(3, heads.clamp_min(0)[..., None]).squeeze(3)
    missing = ((heads < 0) & inside[:, None]).any(2)
    return arcs.masked_fill(~inside[:, None], 0.0).sum(2).masked_fill(missing, -torch.inf)


def sample(problem: TreeProblem, count: int, generator: torch.Generator | None) -> Tensor:
    """`count` independent trees of each sentence [count, B, n]; −1 for words that are none, and where no tree exists."""
    with torch.no_grad():
        if problem.scores.device.type == "cpu" and core_is_there():
            return _sample_by_core(problem, count, generator)
        return _sample(problem, count, generator)


def _sample_by_core(problem: TreeProblem, count: int, generator: torch.Generator | None) -> Tensor:
    B, size = problem.scores.shape[:2]
    seed = int(torch.randint(2**62, (1,), generator=generator))
    heads = torch.full((count, B, size - 1), NOTHING, dtype=torch.int64)
    possible = torch.from_numpy(tree_batch(problem).log_partition()).isfinite()
    some = TreeProblem(problem.scores[possible], word_counts(problem)[possible], problem.single_root)
    for b, drawn in zip(possible.nonzero()[:, 0].tolist(), tree_batch(some).sample(count, seed), strict=True):
        heads[:, b, : drawn.shape[1]] = torch.from_numpy(drawn)
    return heads


def _sample(problem: TreeProblem, count: int, generator: torch.Generator | None) -> Tensor:
    """Word after word draws its head from its marginals given the heads drawn before."""
    B, size = problem.scores.shape[:2]
    device = problem.scores.device
    scores = problem.scores.detach().repeat(count, 1, 1)  # [count · B, n + 1, n + 1]
    lengths = word_counts(problem).repeat(count)
    heads = torch.full((count * B, size - 1), NOTHING, dtype=torch.int64, device=device)
    place = torch.arange(size, device=device)
    uniforms = torch.rand(
        (size - 1, count * B, 1),
        generator=generator,
        dtype=torch.float64,
        device=generator.device if generator else device,
    ).to(device)
    for word in range(1, size):
        log_z, by_arc = marginals(TreeProblem(scores, lengths, problem.single_root))
        reached = by_arc[:, :, word].cumsum(1)  # [count · B, n + 1]
        total = reached[:, -1:]
        threshold = torch.minimum(uniforms[word - 1] * total, torch.nextafter(total, torch.zeros_like(total)))
        drawn = (reached <= threshold).sum(1)
        there = (word <= lengths) & torch.isfinite(log_z)
        heads[:, word - 1] = torch.where(there, drawn, NOTHING)
        scores[:, :, word].masked_fill_(there[:, None] & (place != drawn[:, None]), -torch.inf)
    return heads.reshape(count, B, size - 1)
