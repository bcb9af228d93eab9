"""The backends for dependency trees on a CPU: all questions through the C++ core, exact for scores of any spread."""

from typing import Any

import torch
from torch import Tensor

from crfkit.nn.backends.decode import NOTHING
from crfkit.nn.backends.tree import TreeBackend
from crfkit.nn.problem.tree import TreeProblem, arcs_of, siblings_of, word_counts


class CoreTreeBackend(TreeBackend):
    """All questions through `crfkit.inference.TreeBatch`, on spanning trees or on projective ones."""

    name = "core"

    def __init__(self, *, projective: bool = False) -> None:
        self.projective = projective

    def log_partition(self, problem: TreeProblem, dtype: torch.dtype = torch.float64) -> Tensor:
        """log Z [B] in float64; NaN where a score is, for which the core raises an error."""
        undefined, problem = _without_nan(problem)
        log_z = torch.from_numpy(self._batch(problem).log_partition())
        return log_z.masked_fill(undefined, torch.nan).to(dtype)

    def marginals(self, problem: TreeProblem, dtype: torch.dtype = torch.float64) -> tuple[Tensor, ...]:
        """log Z [B] and the probabilities of all parts in float64; NaN where a score is."""
        undefined, problem = _without_nan(problem)
        batch = self._batch(problem)
        try:
            log_z, found = batch.log_partition_and_marginals()
            log_z, parts = torch.from_numpy(log_z), _tensors(found)
        except ValueError:  # some sentence has no tree
            log_z = torch.from_numpy(batch.log_partition())
            possible = torch.isfinite(log_z)
            parts = [torch.zeros(part.shape, dtype=torch.float64) for part in problem.parts]
            if possible.any():
                for part, some in zip(
                    parts, _tensors(self._select(problem, possible)[1].marginals()), strict=True
                ):
                    part[possible] = some
        log_z[undefined] = torch.nan
        for part in parts:
            part[undefined] = torch.nan
        return log_z.to(dtype), *(part.to(dtype) for part in parts)

    def argmax(self, problem: TreeProblem) -> Tensor:
        """Chu–Liu–Edmonds, or Eisner's algorithm."""
        B, size = problem.scores.shape[:2]
        heads = torch.full((B, size - 1), NOTHING, dtype=torch.int64)
        try:
            rows, found = range(B), self._batch(problem).decode()
        except ValueError:  # some sentence has no tree, or a score that is not a number
            rows, batch = self._select(problem, self.log_partition(problem).isfinite())
            found = batch.decode()
        for b, best in zip(rows, found, strict=True):
            heads[b, : len(best.output)] = torch.from_numpy(best.output)
        return heads.to(problem.scores.device)

    def k_best(self, problem: TreeProblem, k: int) -> tuple[Tensor, Tensor]:
        """The k best trees, in the core."""
        B, size = problem.scores.shape[:2]
        scores = torch.full((B, k), -torch.inf, dtype=torch.float64)
        heads = torch.full((B, k, size - 1), NOTHING, dtype=torch.int64)
        for b, trees in enumerate(self._batch(problem).k_best(k)):
            for i, tree in enumerate(trees):
                scores[b, i] = tree.score
                heads[b, i, : len(tree.output)] = torch.from_numpy(tree.output)
        return scores, heads

    def sample(self, problem: TreeProblem, count: int, generator: torch.Generator | None) -> Tensor:
        """Exact samples, in the core."""
        B, size = problem.scores.shape[:2]
        seed = int(torch.randint(2**62, (1,), generator=generator))
        heads = torch.full((count, B, size - 1), NOTHING, dtype=torch.int64)
        log_z = torch.from_numpy(self._batch(problem).log_partition())
        possible, batch = self._select(problem, log_z.isfinite())
        for b, drawn in zip(possible, batch.sample(count, seed), strict=True):
            heads[:, b, : drawn.shape[1]] = torch.from_numpy(drawn)
        return heads

    def _batch(self, problem: TreeProblem) -> Any:
        """The problem as arrays of the core."""
        from crfkit.inference import SiblingTreeBatch, TreeBatch
        from crfkit.structures import ProjectiveTree, SpanningTree, TreeParts

        scores, *siblings = (part.detach().double().cpu().numpy() for part in problem.parts)
        lengths, n_threads = word_counts(problem).cpu().numpy(), torch.get_num_threads()
        if siblings:
            parts = TreeParts(scores, siblings[0])
            structure = ProjectiveTree(problem.single_root, order=2)
            return SiblingTreeBatch(structure, parts, lengths, n_threads=n_threads)
        trees = ProjectiveTree if self.projective else SpanningTree
        return TreeBatch(trees(problem.single_root), scores, lengths, n_threads=n_threads)

    def _select(self, problem: TreeProblem, possible: Tensor) -> tuple[Any, Any]:
        """The numbers of the sentences that are `possible` [B], and these as arrays of the core."""
        pairs = None if problem.siblings is None else problem.siblings[possible]
        some = TreeProblem(
            problem.scores[possible], word_counts(problem)[possible], problem.single_root, pairs
        )
        return possible.nonzero()[:, 0].tolist(), self._batch(some)


CORE = CoreTreeBackend()
PROJECTIVE_CORE = CoreTreeBackend(projective=True)


def _without_nan(problem: TreeProblem) -> tuple[Tensor, TreeProblem]:
    """Which sentences have a score that is not a number [B], and the problem with other scores for these."""
    undefined = (problem.scores.isnan() & arcs_of(problem)).flatten(1).any(1)
    if problem.siblings is not None and problem.siblings.isnan().any():
        undefined |= (problem.siblings.isnan() & siblings_of(problem)).flatten(1).any(1)
    if not undefined.any():
        return undefined, problem
    scores = problem.scores.masked_fill(undefined[:, None, None], 0.0)
    siblings = problem.siblings
    if siblings is not None:
        siblings = siblings.masked_fill(undefined[:, None, None, None], 0.0)
    return undefined, problem._replace(scores=scores, siblings=siblings)


def _tensors(found: Any) -> list[Tensor]:
    """Numbers of arcs, or of arcs and siblings, as tensors."""
    return [torch.from_numpy(part) for part in (found if isinstance(found, tuple) else (found,))]
