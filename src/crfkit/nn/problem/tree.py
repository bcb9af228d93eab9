"""A batch of sentences as every path to its trees sees it: scores, lengths, and which arcs exist.

Letters: B sentences, n words; scores [B, n + 1, n + 1] by head and dependent, 0 is the root.
"""

from typing import NamedTuple

import torch
from torch import Tensor


class TreeProblem(NamedTuple):
    """The scores of a batch, with −inf where there is no arc."""

    scores: Tensor  # [B, n + 1, n + 1]
    lengths: Tensor | None  # [B] words of each sentence; None: n
    single_root: bool


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
