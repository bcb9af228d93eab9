"""The interface of the backends for dependency trees; k-best trees and samples by means of best trees and marginals.

Letters: B sentences, n words; scores [B, n + 1, n + 1] by head and dependent, 0 is the root.
"""

from abc import ABC, abstractmethod

import torch
from torch import Tensor

from crfkit.nn.backends.decode import NOTHING
from crfkit.nn.problem.tree import TreeProblem, arcs_of, sibling_scores, word_counts

MOST_AT_ONCE = 2**27  # scores of the sets of trees that are searched together


class TreeBackend(ABC):
    """Sums over trees, best trees and samples of a batch. `choice` selects it."""

    name: str

    @abstractmethod
    def marginals(self, problem: TreeProblem, dtype: torch.dtype = torch.float64) -> tuple[Tensor, ...]:
        """log Z [B] (−inf where no tree exists, 0 for an empty sentence) and the probability of every arc
        [B, n + 1, n + 1], and of every pair of siblings where these have scores."""

    @abstractmethod
    def argmax(self, problem: TreeProblem) -> Tensor:
        """The heads of the best tree [B, n]; −1 beyond the end, and where no tree exists."""

    def log_partition(self, problem: TreeProblem, dtype: torch.dtype = torch.float64) -> Tensor:
        """log Z [B] alone."""
        return self.marginals(problem, dtype)[0]

    def k_best(self, problem: TreeProblem, k: int) -> tuple[Tensor, Tensor]:
        """The scores [B, k] in float64 and the heads [B, k, n] of the k best trees; −inf and −1 where fewer exist."""
        size = problem.scores.shape[1]
        scores = problem.scores.double().masked_fill(~arcs_of(problem), -torch.inf)
        lengths, siblings = word_counts(problem), problem.siblings
        step = max(1, MOST_AT_ONCE // (size**3 if siblings is None else size**4))  # sentences at once
        parts = []
        for first in range(0, max(1, len(scores)), step):
            some = slice(first, first + step)
            pairs = None if siblings is None else siblings[some].double()
            parts.append(
                _k_best(self, TreeProblem(scores[some], lengths[some], problem.single_root, pairs), k)
            )
        return torch.cat([values for values, _ in parts]), torch.cat([heads for _, heads in parts])

    def sample(self, problem: TreeProblem, count: int, generator: torch.Generator | None) -> Tensor:
        """`count` independent trees of each sentence [count, B, n]; −1 beyond the end, and where no tree exists.

        Word after word draws its head from its marginals given the heads drawn before.
        """
        B, size = problem.scores.shape[:2]
        device = problem.scores.device
        scores = problem.scores.detach().repeat(count, 1, 1)  # [count · B, n + 1, n + 1]
        siblings = None if problem.siblings is None else problem.siblings.detach().repeat(count, 1, 1, 1)
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
            log_z, by_arc, *_ = self.marginals(TreeProblem(scores, lengths, problem.single_root, siblings))
            reached = by_arc[:, :, word].cumsum(1)  # [count · B, n + 1]
            total = reached[:, -1:]
            threshold = torch.minimum(
                uniforms[word - 1] * total, torch.nextafter(total, torch.zeros_like(total))
            )
            drawn = (reached <= threshold).sum(1)
            there = (word <= lengths) & torch.isfinite(log_z)
            heads[:, word - 1] = torch.where(there, drawn, NOTHING)
            scores[:, :, word].masked_fill_(there[:, None] & (place != drawn[:, None]), -torch.inf)
        return heads.reshape(count, B, size - 1)


def _k_best(backend: TreeBackend, problem: TreeProblem, k: int) -> tuple[Tensor, Tensor]:
    """Lawler (1972): the trees but the best one y of a set are split by the first word whose head is not that of y.

    The pool holds sets of trees that share none, each with its best: scores [B, P], heads [B, P, n], the arcs that a set
    allows [B, P, n + 1, n + 1], and the number of words whose heads it has fixed [B, P].
    """
    heads = backend.argmax(problem)[:, None]
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
        parts = _split(backend, problem, y, arcs & (score > -torch.inf)[:, None, None], fixed)
        pool = [torch.cat([old, new], dim=1) for old, new in zip(pool, parts, strict=True)]
        # no more than k of them are ever wanted
        order = pool[0].topk(min(k, pool[0].shape[1]), dim=1).indices
        pool = [part[sentence[:, None], order] for part in pool]
    return torch.stack([score for score, _ in found], 1), torch.stack([y for _, y in found], 1)


def _split(
    backend: TreeBackend, problem: TreeProblem, y: Tensor, arcs: Tensor, fixed: Tensor
) -> list[Tensor]:
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
    pairs = None if problem.siblings is None else problem.siblings.repeat_interleave(n, 0)
    every = TreeProblem(scores.flatten(0, 1), lengths, problem.single_root, pairs)
    heads = backend.argmax(every).reshape(B, n, n)
    values = scores_of(problem, heads).masked_fill(~open_words, -torch.inf)
    return [values, heads, within, word.expand(B, n)]


def scores_of(problem: TreeProblem, heads: Tensor) -> Tensor:
    """The scores [B, P] of trees [B, P, n]; −inf where there is none, 0 for an empty sentence."""
    n = heads.shape[2]
    inside = torch.arange(n, device=heads.device) < word_counts(problem)[:, None]  # [B, n]
    by_word = problem.scores.mT[:, None, 1:].expand(-1, heads.shape[1], -1, -1)  # [B, P, n, n + 1]
    arcs = by_word.gather(3, heads.clamp_min(0)[..., None]).squeeze(3)
    missing = ((heads < 0) & inside[:, None]).any(2)
    total = arcs.masked_fill(~inside[:, None], 0.0).sum(2) + sibling_scores(problem, heads)
    return total.masked_fill(missing, -torch.inf)
