"""The distribution over the dependency trees of a batch of sentences, in the manner of torch.distributions."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import torch
from torch import Tensor

from crfkit.nn.chain_core import core_is_there
from crfkit.nn.chain_paths import NOTHING
from crfkit.nn.problem import working_dtype
from crfkit.nn.tree_best import best_tree
from crfkit.nn.tree_sums import (
    TreeProblem,
    arcs_of,
    differentiable_log_partition,
    log_partition,
    marginals,
    tree_batch,
    word_counts,
)


class TreeDistribution:
    """p(y) = exp(score(y)) / Z over the spanning trees y of each of B sentences; score(y) = Σ_m scores[y_m, m].

    `scores` [B, n + 1, n + 1] by head and dependent, where 0 is the root; the diagonal and column 0 are ignored, and −inf
    forbids an arc. `lengths` [B] are the words of each sentence (None: n). With `single_root` exactly one word has the root
    as its head, else one or more.

    >>> trees = TreeDistribution(torch.zeros(1, 4, 4))  # 3² trees over 3 words, one root each
    >>> trees.log_partition().exp().round()
    tensor([9.])
    """

    def __init__(self, scores: Tensor, *, lengths: Tensor | None = None, single_root: bool = True) -> None:
        if scores.ndim != 3 or scores.shape[1] != scores.shape[2] or not scores.is_floating_point():
            raise ValueError(
                f"scores: got {scores.dtype} with shape {list(scores.shape)}, expected numbers [B, n + 1, n + 1]."
            )
        if scores.shape[1] == 0:
            raise ValueError("scores: got no root, expected [B, n + 1, n + 1].")
        B, size = scores.shape[:2]
        if lengths is not None:
            if lengths.shape != (B,) or lengths.is_floating_point():
                raise ValueError(
                    f"lengths: got {lengths.dtype} with shape {list(lengths.shape)}, expected integers [B] = [{B}]."
                )
            lengths = lengths.to(scores.device, torch.int64).clamp(0, size - 1)
        self._problem = TreeProblem(scores, lengths, single_root)

    @property
    def lengths(self) -> Tensor:
        """The number of words of each sentence, [B]."""
        return word_counts(self._problem)

    def log_partition(self) -> Tensor:
        """log Z [B]; −inf where no tree exists, 0 for an empty sentence."""
        return log_partition(self._problem)

    def log_prob(self, heads: Tensor) -> Tensor:
        """log p(heads) [B], or the logarithm of what all trees that agree with the known heads have together.

        `heads` [B, n] are those of words 1 … n, 0 for the root, negative (such as −100) where unknown.
        """
        B, size = self._problem.scores.shape[:2]
        if heads.shape != (B, size - 1) or heads.is_floating_point():
            raise ValueError(
                f"heads: got {heads.dtype} with shape {list(heads.shape)}, expected integers {[B, size - 1]}."
            )
        heads = torch.nn.functional.pad(heads.long(), (1, 0), value=NOTHING)  # [B, n + 1]
        place = torch.arange(size, device=heads.device)
        allowed = (place[:, None] == heads[:, None, :]) | (heads < 0)[:, None, :]  # [B, n + 1, n + 1]
        within = self._problem._replace(scores=self._problem.scores.masked_fill(~allowed, -torch.inf))
        return log_partition(within) - log_partition(self._problem)

    def marginals(self) -> Tensor:
        """The probability of every arc [B, n + 1, n + 1]; differentiable where a gradient is wanted."""
        if torch.is_grad_enabled() and self._problem.scores.requires_grad:
            return self._moments()[1].to(self._dtype)
        return marginals(self._problem)[1].to(self._dtype)

    def argmax(self) -> Tensor:
        """The heads of the best tree [B, n]; −1 for words that are none, and where no tree exists."""
        B, size = self._problem.scores.shape[:2]
        heads = torch.full((B, size - 1), NOTHING, dtype=torch.int64)
        for b, found in enumerate(self._best_trees()):
            if found is not None:
                heads[b, : len(found)] = torch.from_numpy(found)
        return heads.to(self._problem.scores.device)

    def _best_trees(self) -> list[Any]:
        """The heads of the best tree of each sentence as arrays, None where there is none."""
        if core_is_there():
            with suppress(ValueError):  # some sentence has no tree
                return [best.output for best in tree_batch(self._problem).best()]
        scores = self._problem.scores.detach().double().cpu().numpy()
        return [
            best_tree(scores[b, : n + 1, : n + 1], self._problem.single_root)
            for b, n in enumerate(self.lengths.tolist())
        ]

    def sample(self, n: int = 1, *, generator: torch.Generator | None = None) -> Tensor:
        """n independent trees of each sentence, as heads [n, B, n_words]; −1 for words that are none."""
        if not core_is_there():
            raise RuntimeError(
                "TreeDistribution.sample needs the native core of crfkit, which was not built here."
            )
        B, size = self._problem.scores.shape[:2]
        seed = int(torch.randint(2**62, (1,), generator=generator))
        heads = torch.full((n, B, size - 1), NOTHING, dtype=torch.int64)
        for b, drawn in enumerate(tree_batch(self._problem).sample(n, seed)):
            heads[:, b, : drawn.shape[1]] = torch.from_numpy(drawn)
        return heads.to(self._problem.scores.device)

    def entropy(self) -> Tensor:
        """−Σ_y p(y) log p(y) [B], in nats."""
        log_z, by_arc = self._moments()
        scores = self._problem.scores.double()
        scores = scores.masked_fill(~arcs_of(self._problem) | torch.isinf(scores), 0.0)
        return torch.relu(log_z - (by_arc * scores).sum((1, 2))).to(self._dtype)

    @property
    def _dtype(self) -> torch.dtype:
        return working_dtype(self._problem.scores.dtype)

    def _moments(self) -> tuple[Tensor, Tensor]:
        """log Z [B] and the probability of every arc in float64, with a graph where a gradient is wanted."""
        problem = self._problem
        if not (torch.is_grad_enabled() and problem.scores.requires_grad):
            return marginals(problem)
        log_z = differentiable_log_partition(problem)
        [by_arc] = torch.autograd.grad(log_z.sum(), [problem.scores], create_graph=True)
        return log_z, by_arc.double()
