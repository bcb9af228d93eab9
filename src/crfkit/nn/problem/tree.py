"""A batch of sentences as every path to its trees sees it: scores, lengths, and which arcs exist.

Letters: B sentences, n words; scores [B, n + 1, n + 1] by head and dependent, 0 is the root. For projective trees
alone, `siblings` has a score [h, s, m] of words s and m that are neighbours among the dependents of h on one side of it,
s the inner one, and [h, h, m] where m is the innermost.
"""

from typing import NamedTuple

import torch
from torch import Tensor


class TreeProblem(NamedTuple):
    """The scores of a batch, with −inf where there is no arc."""

    scores: Tensor  # [B, n + 1, n + 1]
    lengths: Tensor | None  # [B] words of each sentence; None: n
    single_root: bool
    siblings: Tensor | None = None  # [B, n + 1, n + 1, n + 1] by head, inner sibling and dependent

    @property
    def parts(self) -> tuple[Tensor, ...]:
        """The scores of all parts of a tree."""
        return (self.scores,) if self.siblings is None else (self.scores, self.siblings)


def word_counts(problem: TreeProblem) -> Tensor:
    """The number of words of each sentence [B]."""
    B, size = problem.scores.shape[:2]
    if problem.lengths is not None:
        return problem.lengths
    return torch.full((B,), size - 1, dtype=torch.int64, device=problem.scores.device)


def arcs_of(problem: TreeProblem) -> Tensor:
    """Which arcs exist within the sentences: bool [B, n + 1, n + 1]; none into the root, none from a word to itself."""
    size = problem.scores.shape[1]
    place = torch.arange(size, device=problem.scores.device)
    inside = place <= word_counts(problem)[:, None]  # [B, n + 1]
    exists = inside[:, :, None] & inside[:, None, :] & (place != place[:, None])
    return exists & (place > 0)


def siblings_of(problem: TreeProblem) -> Tensor:
    """Which pairs of siblings exist within the sentences: bool [B, n + 1, n + 1, n + 1], [h, h, m] for the innermost."""
    place = torch.arange(problem.scores.shape[1], device=problem.scores.device)
    h, s, m = place[:, None, None], place[:, None], place
    between = (h == s) | ((h < s) & (s < m)) | ((m < s) & (s < h))  # [n + 1, n + 1, n + 1]
    return between & arcs_of(problem)[:, :, None, :]


def sibling_scores(problem: TreeProblem, heads: Tensor) -> Tensor:
    """The scores of the pairs of siblings of trees [B, P, n] whose heads are known, [B, P]; 0 without scores of siblings."""
    B, P, n = heads.shape
    if problem.siblings is None or n == 0:
        return heads.new_zeros((B, P), dtype=problem.scores.dtype)
    word = torch.arange(1, n + 1, device=heads.device)
    inside = (word <= word_counts(problem)[:, None])[:, None]  # [B, 1, n]
    h = heads.clamp_min(0)
    s, m = word[:, None], word  # a sibling s of m lies between the head and m
    same = h[..., :, None] == h[..., None, :]  # [B, P, s, m]
    head = h[..., None, :]
    right = (same & (head < s) & (s < m)) * s  # the last one before m
    left = n + 1 - (same & (m < s) & (s < head)) * (n + 1 - s)  # the first one after it
    inner = torch.where(h < word, right.amax(2), left.amin(2))
    inner = torch.where((inner == 0) | (inner == n + 1), h, inner)
    at = (h * (n + 1) + inner) * (n + 1) + word  # [B, P, n]
    found = problem.siblings.flatten(1).gather(1, at.flatten(1)).reshape(B, P, n)
    return found.masked_fill(~inside, 0.0).sum(2)
